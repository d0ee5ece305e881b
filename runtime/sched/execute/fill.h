/* SPDX-License-Identifier: Apache-2.0 */
/* Grains of a batch that fill a device with threads, by the kernel's geometry. */
#ifndef FL_SCHED_EXECUTE_FILL_H
#define FL_SCHED_EXECUTE_FILL_H

#include "sched/worker/worker.h"

/* Notes in the share of the chunk's job how many grains fill the device. call: the chunk's. */
void fl_fill_note(fl_worker *worker, const fl_item *item, const filch_call *call,
                  const fl_kernel *kernel);

#endif
