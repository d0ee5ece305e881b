/* SPDX-License-Identifier: Apache-2.0 */
/* Results of an item: commit, write-back, and copies that the item depends on. */
#ifndef FL_SCHED_EXECUTE_PUBLISH_H
#define FL_SCHED_EXECUTE_PUBLISH_H

#include "sched/worker/worker.h"

/* The item runs, but its results are no good: it retires as failed. */
void fl_publish_fail(fl_worker *worker, fl_in_flight *flight, const filch_error *error);
/* The item is over no earlier than the copy `home` is past. */
void fl_publish_add_copy(fl_worker *worker, fl_in_flight *flight, fl_marker home);
/* Whether every write-back copy is past; a failed copy counts as past. */
bool fl_publish_is_home(fl_worker *worker, fl_in_flight *flight);
/* Notes copies in other memory nodes that the item's operands come from. False: one failed;
 * worker->stall.error says why. */
bool fl_publish_note_foreign(fl_worker *worker, fl_in_flight *flight);
/* Checks these copies once the item is past: a failed copy fails the item. */
void fl_publish_check_foreign(fl_worker *worker, fl_in_flight *flight);
/* Makes an item wait for copies fetched ahead. False: every copy has arrived. */
bool fl_publish_note_fetched(fl_worker *worker, fl_in_flight *flight);
/* Commits the operands listed last behind the marker, and starts write-back of final results,
 * except results waiting for the decision of a race. False: worker->stall.error says why. */
bool fl_publish_results(fl_worker *worker, fl_in_flight *flight, fl_marker marker);
/* All pieces of the task are over: makes its results valid, and sends them home with `flight`.
 * False: that failed. */
bool fl_publish_pieces(fl_worker *worker, fl_in_flight *flight);
/* Brings a gate's operands to the host's memory, and notes them as valid there alone where the gate
 * writes; `flight` is over when they are there. False: impossible, and nothing is under way. */
bool fl_publish_move(fl_worker *worker, fl_in_flight *flight);
/* The item ran on the host: its results are valid there alone, until they are copied to a GPU whose
 * buffer is to have them. A copy that fails fails the item. */
void fl_publish_on_host(fl_worker *worker, fl_item *item);

#endif
