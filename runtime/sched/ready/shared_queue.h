/* SPDX-License-Identifier: Apache-2.0 */
/* The board: the ready tasks of graphs, in the order of their ranks, for devices that are unlike
 * but reach the same memory: slices of one GPU, cores, simulated devices without links.
 *
 * A deque is its owner's, and a thief sees of it what the owner has not got to. Where one device is
 * ten times slower than another that is not enough: a task that it keeps since it released it, or
 * takes because the victim at hand has more to do than it, may hold up all the rest. So there the
 * ready tasks of a closed graph stand on the board, and a device that is free takes one if that
 * serves the whole (eft.c says how that is found); else it waits, and looks again when more is
 * ready or what was predicted does not come true.
 *
 * Tasks of slices that are too short for that are on the board all the same, where a graph is
 * narrow: who has room takes the most urgent one.
 *
 * Whether devices are unlike, and tasks long enough beside a lock that all of them take, is
 * measured, and asked when a graph begins, and when a task was timed: then the graph's tasks that
 * become ready from there on go to the board. What is in deques stays there. While no graph has
 * tasks on the board nobody takes its lock, and devices that were always alike never do.
 *
 * Where tiles have to be brought there is no board, and deques and mailboxes serve: it does not
 * weigh who has what. On a device whose memory is short, or for whose tasks tiles still arrive,
 * deques do so for that time, as the worker chooses among them by what is there (locality.c). */
#ifndef FL_SCHED_READY_SHARED_QUEUE_H
#define FL_SCHED_READY_SHARED_QUEUE_H

#include "sched/worker/worker.h"

typedef struct fl_shared_queue fl_shared_queue;

/* Tasks that are measured shorter than this are not weighed, and say nothing of the devices: an
 * empty one of a GPU's measures nearly as much. */
#define FL_SHARED_QUEUE_LEAST_NS 6000.0

/* Makes sched->board, where the devices may be unlike and the policy calls for one; else it stays
 * null. FILCH_OUT_OF_MEMORY. The devices are sorted. */
filch_status fl_shared_queue_open(fl_sched *sched);
void fl_shared_queue_close(fl_sched *sched);
/* A closed graph's job begins: false where its roots are to be in ranges. True: they are on the
 * board or on their way, and the job may be over. */
bool fl_shared_queue_begin(fl_sched *sched, filch_job *job);
/* The job is over. */
void fl_shared_queue_end(fl_sched *sched, const filch_job *job);
/* A task was timed, which is not retired yet: whether it tells that devices are unlike. */
void fl_shared_queue_learn(fl_worker *worker, const fl_item *item);
/* Puts a ready task there, the caller's; any thread; self is the worker that it is, or null. False:
 * it belongs elsewhere. */
bool fl_shared_queue_put(fl_sched *sched, const fl_worker *self, fl_task *task);
/* Takes a task for a worker that is free, if that should have one. */
bool fl_shared_queue_pick(fl_worker *worker, fl_item *item);
/* For a wait, predictions or not: the same of the job's; if there is none, and that is not strictly
 * what is wanted, of those that a wait may take besides. Only the job's address counts: it may be
 * over. */
bool fl_shared_queue_pick_of(fl_worker *worker, const filch_job *job, bool is_strict,
                             fl_item *item);
/* Whether a task of a graph on the board, which depends on what is in flight on the worker's device
 * alone, is to be put there behind that; if so, it is counted as taken. */
bool fl_shared_queue_bid_ahead(fl_worker *worker, fl_task *task);
/* Of a worker that was lost or is away: takes a task that is_left tells of; null: there is none. */
fl_task *fl_shared_queue_drop(fl_worker *worker,
                              bool (*is_left)(const fl_worker *worker, const fl_task *task));
/* The worker's device was lost: once true, if others are to look at the board again for that. */
bool fl_shared_queue_leave(fl_worker *worker);
/* When a worker that is about to sleep is to look again, unless it is told before: asked once for
 * each time that it found nothing. */
uint64_t fl_shared_queue_look_at(fl_worker *worker);

#endif
