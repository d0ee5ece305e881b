/* SPDX-License-Identifier: Apache-2.0 */
/* Speculative execution: a backup run of a chunk that is in flight on a slower device. The run that
 * ends first counts. */
#ifndef FL_SCHED_DECIDE_SPECULATE_H
#define FL_SCHED_DECIDE_SPECULATE_H

#include "sched/worker/worker.h"

/* A chunk whose codelet allows a backup run is about to run here: gives it private output, and
 * tells idle workers of it, where that is possible. On a GPU the chunk gets its output with its
 * operands, and workers are told at its launch. */
void fl_speculate_offer(fl_worker *worker, fl_item *item);
/* A GPU has no memory for the private output of an offered chunk or of a backup run. True: the
 * chunk goes on without. */
bool fl_speculate_forgo(fl_item *item);
/* The offered chunk, or the backup run, was launched on a GPU. */
void fl_speculate_launched(fl_worker *worker, fl_item *item);
/* It was not launched. */
void fl_speculate_refused(fl_worker *worker, fl_item *item);
/* A run on a GPU is past, and has not failed. If the run counts, its results go to their place, and
 * its item is an ordinary one. */
void fl_speculate_settle(fl_worker *worker, fl_in_flight *flight);
/* The worker has nothing to do: takes a chunk in flight elsewhere that would end here first. False:
 * none; worker->idle.ready_at is no later than the time of the next. */
bool fl_speculate_pick(fl_worker *worker, fl_item *item);
/* Views of a run's private output in place of the chunk's views. */
void fl_speculate_views(const fl_item *item, filch_view *views);
/* A run with private output is over. flight: on a GPU, when the run has a result; else null. True:
 * the run counts, and its results are in their place or under way. False: the run has lost;
 * fl_speculate_drop follows, after which the job may be reused. */
bool fl_speculate_decide(fl_worker *worker, fl_item *item, fl_in_flight *flight);
void fl_speculate_drop(fl_worker *worker, fl_item *item);
/* The job ends: device time wasted by runs that go on beyond its end. */
void fl_speculate_end(fl_share *share, uint64_t end);

#endif
