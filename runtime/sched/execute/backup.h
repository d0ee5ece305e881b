/* SPDX-License-Identifier: Apache-2.0 */
/* Backup runs: a chunk in flight on a slower device is run a second time (decide/speculate.h). The
 * run that ends first counts. */
#ifndef FL_SCHED_EXECUTE_BACKUP_H
#define FL_SCHED_EXECUTE_BACKUP_H

#include "sched/worker/worker.h"

/* Offers a chunk that the worker is about to run, and whose codelet allows a backup run: gives the
 * chunk private output, and tells idle workers, if possible. On a GPU the chunk gets the output
 * with the operands, and workers are told at the launch. */
void fl_backup_offer(fl_worker *worker, fl_item *item);
/* Gives the private output of an offered chunk up, because a GPU lacks memory: the chunk runs
 * without. False: the item is no offered chunk; a backup run does not run without. */
bool fl_backup_forgo(fl_item *item);
/* Notes the launch of an offered chunk or of a backup run on a GPU. */
void fl_backup_launched(fl_worker *worker, fl_item *item);
/* Notes that the launch was refused. */
void fl_backup_refused(fl_worker *worker, fl_item *item);
/* Settles a run on a GPU that is past and has not failed. If the run counts, the results go to
 * their place, and the item becomes an ordinary item. */
void fl_backup_settle(fl_worker *worker, fl_in_flight *flight);
/* Takes, for a worker without work, a chunk in flight on another device that would end first on the
 * worker's device. False: none; worker->idle.ready_at is no later than the time of the next. */
bool fl_backup_pick(fl_worker *worker, fl_item *item);
/* Decides the race when a run with private output is over. flight: on a GPU, if the run has a
 * result; else null. True: the run counts, and the results are in their place or under way. False:
 * the run has lost; fl_backup_drop follows, after which the job may be reused. */
bool fl_backup_decide(fl_worker *worker, fl_item *item, fl_in_flight *flight);
void fl_backup_drop(fl_worker *worker, fl_item *item);
/* Counts, at the end of the job, device time wasted by runs that go on beyond the end. */
void fl_backup_end(fl_share *share, uint64_t end);

#endif
