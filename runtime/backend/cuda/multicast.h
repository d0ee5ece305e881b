/* SPDX-License-Identifier: Apache-2.0 */
/* Multicast objects of the CUDA driver, 12.1 and newer. */
#ifndef FL_BACKEND_CUDA_MULTICAST_H
#define FL_BACKEND_CUDA_MULTICAST_H

#include "backend/multicast.h"

extern const fl_multicast_ops fl_cuda_multicast;

#endif
