/* SPDX-License-Identifier: Apache-2.0 */
/* Live view of a runtime: the setting FILCH_LIVE. Samples the scheduler and the memory nodes for
 * the frames of observe/screen.h, without a lock that a worker takes. */
#ifndef FL_LIVE_H
#define FL_LIVE_H

#include "runtime.h"

/* Starts the view that FILCH_LIVE asks for, if any. What prevents the view is logged as a warning:
 * simulated devices, whose clock is no clock of the wall; no memory, no thread, no standard error.
 * The jobs do not need it. */
void fl_live_start(filch_runtime *rt);
/* Draws the last frame and ends the view, if there is one. */
void fl_live_stop(filch_runtime *rt);

#endif
