/* SPDX-License-Identifier: Apache-2.0 */
/* The vendor's libraries for those who have no driver at hand. */
#ifndef FL_KERNELS_VENDOR_LOAD_H
#define FL_KERNELS_VENDOR_LOAD_H

#include "kernels/vendor/vendor.h"

/* Loads the driver, and over it what fl_vendor_open() opens. Statuses of fl_cuda_load(), too;
 * FILCH_NO_DEVICE where the driver shows no GPU. */
filch_status fl_vendor_load(filch_error *error, fl_vendor **out);
/* After the runtimes whose lanes were opened; null is allowed. */
void fl_vendor_unload(fl_vendor *vendor);

#endif
