/* SPDX-License-Identifier: Apache-2.0 */
/* Exploration: runs a task on a device that was slow once, to measure whether it still is. */
#ifndef FL_SCHED_MODEL_EXPLORE_H
#define FL_SCHED_MODEL_EXPLORE_H

#include "sched/worker/worker.h"

/* A task was timed and took ns: returns the new mean. */
double fl_explore_mean(fl_worker *worker, const fl_item *item, double mean, double ns);
/* Whether a theft that the mean forbids is to be tried. */
bool fl_explore_is_due(const fl_worker *worker, double mean);
/* The theft was tried, and gave the task. */
void fl_explore_begin(fl_worker *worker, double mean, const fl_task *task);
/* Whether the worker is to keep a task of its own that by prediction is better left to `other`, to
 * measure whether its device is as slow as before. */
bool fl_explore_keeps(const fl_worker *worker, const fl_worker *other, const fl_task *task);
/* The worker keeps the task for that. */
void fl_explore_keep(const fl_worker *worker, const fl_task *task);

#endif
