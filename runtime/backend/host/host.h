/* SPDX-License-Identifier: Apache-2.0 */
/* Host cores as devices: single cores, or teams of cores. Every host device computes in memory node
 * 0.
 *
 * Only cores usable by this process are handed out, a hardware thread per core, near cores
 * together. A specification may name hardware threads instead, in its own order. Cores are shared
 * in turn where a specification asks for more cores than exist. */
#ifndef FL_BACKEND_HOST_HOST_H
#define FL_BACKEND_HOST_HOST_H

#include "backend/backend.h"

extern const fl_backend fl_host_backend;

#endif
