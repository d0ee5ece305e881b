/* SPDX-License-Identifier: Apache-2.0 */
/* The board: the ready tasks of graphs, in the order of their ranks, for devices that are unlike
 * but reach the same memory.
 *
 * A deque is its owner's, and a thief sees of it what the owner has not got to. Where one device is
 * ten times slower than another that is not enough: a task that it keeps since it released it, or
 * takes because the victim at hand has more to do than it, may hold up all the rest. So there the
 * ready tasks of a closed graph stand on the board, and a device that is free takes one if that
 * serves the whole (board.c says how that is found); else it waits, and looks again when more is
 * ready or what was predicted does not come true.
 *
 * One lock guards the board. Tasks of devices so unlike take long beside it; where all are alike,
 * or tiles have to be brought, there is no board, and deques and mailboxes serve. */
#ifndef FL_SCHED_BOARD_H
#define FL_SCHED_BOARD_H

#include "sched/worker.h"

typedef struct fl_board fl_board;

/* Makes sched->board, where devices and policy call for one; else it stays null.
 * FILCH_OUT_OF_MEMORY. The devices are sorted. */
filch_status fl_board_open(fl_sched *sched);
void fl_board_close(fl_sched *sched);
/* A closed graph's job begins: false where its roots are to be in spans. True: they are on the
 * board or on their way, and the job may be over. */
bool fl_board_begin(fl_sched *sched, filch_job *job);
/* Puts a ready task there, the caller's; any thread. False: it belongs elsewhere. */
bool fl_board_put(fl_sched *sched, fl_task *task);
/* Takes a task for a worker that is free, if that should have one. */
bool fl_board_pick(fl_worker *worker, fl_tile *tile);
/* The same of those that a wait may take, predictions or not. */
bool fl_board_pick_goal(fl_worker *worker, const filch_job *goal, fl_tile *tile);
/* Of a worker that was lost: takes a task that is_left tells of; null: there is none. */
fl_task *fl_board_drop(fl_worker *worker,
                       bool (*is_left)(const fl_worker *worker, const fl_task *task));
/* The worker has nothing to do: sets when to look again, no later than it would. */
void fl_board_note_idle(fl_worker *worker);

#endif
