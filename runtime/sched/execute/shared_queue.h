/* SPDX-License-Identifier: Apache-2.0 */
/* Shared ready queue: the ready tasks of graphs, in the order of ranks, for unlike devices reaching
 * one memory: slices of one GPU, cores, simulated devices without links.
 *
 * A deque belongs to an owner, and a thief sees the tasks not yet reached by the owner. A device
 * ten times slower than the fastest may hold up the whole graph in two ways: by keeping a task
 * released by itself, or by stealing from the victim with most work. The ready tasks of a closed
 * graph therefore stand in the shared ready queue. A free device takes a task if the choice serves
 * the graph as a whole (decide/eft.c has the rule). Otherwise the device waits, and looks again
 * when more tasks are ready or when a prediction fails.
 *
 * Slices of a GPU queue tasks too short for weighing as well, if the graph is narrow: any slice
 * with a free slot takes the most urgent task.
 *
 * Measurements tell whether devices are unlike, and whether tasks are long enough for a lock shared
 * by every device. The test is made when a graph begins, and when a task was timed: tasks becoming
 * ready later go to the queue. Tasks in deques stay in deques. While no graph has tasks in the
 * queue no worker takes the lock, and devices that were always alike never do.
 *
 * Devices with separate memories have no shared ready queue, but use deques and mailboxes: the
 * queue does not weigh the location of tiles. Deques also serve a device while memory is short or
 * tiles for ready tasks still arrive, because the worker chooses by the tiles present
 * (locality.c). */
#ifndef FL_SCHED_EXECUTE_SHARED_QUEUE_H
#define FL_SCHED_EXECUTE_SHARED_QUEUE_H

#include "sched/ready/shared.h"
#include "sched/worker/sched.h"

/* Makes sched->shared_queue if the devices may be unlike and the policy calls for a queue;
 * otherwise the member stays null. Returns FILCH_OUT_OF_MEMORY on failure. The devices are
 * sorted. */
filch_status fl_shared_queue_open(fl_sched *sched);
void fl_shared_queue_close(fl_sched *sched);
/* Begins a closed graph's job. False: the roots belong in ranges. True: the roots are in the queue
 * or on the way, and the job may be over. */
bool fl_shared_queue_begin(fl_sched *sched, filch_job *job);
/* Notes the end of the job. */
void fl_shared_queue_end(fl_sched *sched, const filch_job *job);
/* Learns from a timed task, not yet retired, whether devices are unlike. */
void fl_shared_queue_learn(fl_worker *worker, const fl_item *item);
/* Puts a ready task, owned by the caller, into the queue; any thread. self: the calling worker, or
 * null. False: the task belongs elsewhere. */
bool fl_shared_queue_put(fl_sched *sched, const fl_worker *self, fl_task *task);
/* Takes a task for a free worker, if the worker should have a task. */
bool fl_shared_queue_pick(fl_worker *worker, fl_item *item);
/* Takes a task of the job for a waiting worker, regardless of predictions. If the job has no task,
 * and unless is_strict, takes a task allowed to a wait. */
bool fl_shared_queue_pick_of(fl_worker *worker, const fl_sought *sought, bool is_strict,
                             fl_item *item);
/* Tells whether to put a task of an admitted graph on the worker's device behind items in flight.
 * The task depends on items in flight on the device only. True: the task is counted as taken. */
bool fl_shared_queue_bid_ahead(fl_worker *worker, fl_task *task);
/* Takes a task accepted by `may`, for a worker whose device failed or is offline. Null: no task. */
fl_task *fl_shared_queue_drop(fl_worker *worker, fl_may_fn may);
/* Notes the failure of the worker's device. True once, if the remaining workers are to look at the
 * queue again. */
bool fl_shared_queue_leave(fl_worker *worker);
/* Time at which a worker about to sleep looks again, unless woken earlier. Asked once after every
 * fruitless look. */
uint64_t fl_shared_queue_look_at(fl_worker *worker);

#endif
