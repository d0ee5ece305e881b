/* SPDX-License-Identifier: Apache-2.0 */
/* Links between GPUs, and between a GPU and the host. Members of the table of operations; see
 * backend.h. */
#ifndef FL_BACKEND_CUDA_LINKS_H
#define FL_BACKEND_CUDA_LINKS_H

#include "backend/backend.h"

filch_status fl_cuda_link_describe(const fl_device *device, const fl_device *other,
                                   filch_link *link, filch_error *error);
filch_status fl_cuda_link_measure(const fl_device *from, const fl_device *to, double *rate,
                                  filch_error *error);

#endif
