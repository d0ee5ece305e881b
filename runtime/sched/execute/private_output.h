/* SPDX-License-Identifier: Apache-2.0 */
/* Private output of the two runs of a chunk, on the host and on a GPU. */
#ifndef FL_SCHED_EXECUTE_PRIVATE_OUTPUT_H
#define FL_SCHED_EXECUTE_PRIVATE_OUTPUT_H

#include "sched/worker/worker.h"

/* Takes memory for a run on the host, or where devices share the host's memory. False: no memory,
 * or the chunk's mapping is wrong, which the run reports. */
bool fl_private_take(fl_worker *worker, const fl_item *item, fl_backup_run *run);
/* Views of a run's private output in place of the chunk's views. */
void fl_private_views(const fl_item *item, filch_view *views);
/* Gives the memory back, also a GPU's. */
void fl_private_give(fl_worker *worker, fl_backup_run *run);
/* Copies the run's output to the chunk's place. */
void fl_private_copy(fl_worker *worker, const fl_item *item);
/* As fl_private_copy where the chunk's place may be in another memory. False: the place cannot be
 * had; worker->stall.error says why. */
bool fl_private_publish(fl_worker *worker, const fl_item *item);
/* GPU: the memory of the operands just launched becomes the run's. */
void fl_private_hold(fl_worker *worker, fl_backup_run *run);
/* GPU: sends the output to the place of the results, which may fail `flight`. */
void fl_private_send(fl_worker *worker, fl_in_flight *flight);

#endif
