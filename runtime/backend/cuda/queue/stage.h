/* SPDX-License-Identifier: Apache-2.0 */
/* Staging: copies between a GPU's memory and pageable memory of the host, through rings of
 * page-locked slots. Each direction has a ring, shared by the GPU's slices. A staged copy is cut
 * into pieces. A piece is an ordinary copy of its lane, from or to a slot. Processors move the
 * bytes between slot and caller's buffer, in units; several threads may take units of a slot.
 *
 * In: the calling thread and the helpers fill slots, and put a piece on the lane when its slot is
 * full. The call returns when the buffer has been read; the marker is an ordinary one. Out: the
 * caller puts pieces on the lane and returns. A piece is then *aboard* until landed in the caller's
 * buffer by helpers. The lane reaches neither a piece aboard nor any later operation
 * (fl_cuda_stage_bound).
 *
 * Helpers are threads asleep while no work exists. A stage may have no helpers: the host's threads
 * drive the workers, or the system refused threads. Callers then do all the work, and pieces land
 * inside fl_cuda_reached.
 *
 * No deadlock is possible. A helper waits for work and for the device, never for a caller. A helper
 * takes a lane's lock only to look at events or to put a piece; no thread holds a lane's lock while
 * waiting for a helper. The device waits for earlier operations and never for a landing: streams
 * wait for a piece's event, which precedes the landing. Only callers wait for landings. A piece may
 * have to wait for an earlier piece leading to the same bytes; the earlier piece waits for the
 * device alone or for a still earlier piece. */
#ifndef FL_BACKEND_CUDA_QUEUE_STAGE_H
#define FL_BACKEND_CUDA_QUEUE_STAGE_H

#include "backend/backend.h"

struct fl_cuda_lane;
struct fl_cuda_gpu;
typedef struct fl_cuda_slot fl_cuda_slot;
typedef struct fl_cuda_stage fl_cuda_stage;

/* Makes the stage of an open device's GPU. Page-locked memory and threads come with the first copy
 * needing them. */
filch_status fl_cuda_stage_open(fl_device *device, const fl_discovery *how);
/* Frees the stage, with nothing in flight. A GPU without a stage: nothing. */
void fl_cuda_stage_close(struct fl_cuda_gpu *gpu, const fl_memory *memory);
/* Forgets a lane about to be freed; the lane has nothing in flight, or its device is lost. */
void fl_cuda_stage_forget(fl_cuda_stage *stage, const struct fl_cuda_lane *lane);

/* Returns whether a copy is to go through the ring, making the ring if necessary. The context is
 * current. */
bool fl_cuda_stage_takes(const fl_device *device, const fl_copy *copy);
/* Starts a staged copy, after everything its lane waits for; the context is current. A failure
 * leaves nothing of the copy under way. Any thread. */
filch_status fl_cuda_stage_copy(fl_device *device, fl_copy *copy, filch_error *error);
/* Prepares an unstaged copy to the host's memory: waits until no piece aboard leads to the same
 * bytes. */
void fl_cuda_stage_make_way(const fl_device *device, const fl_copy *copy);

/* Puts a slot aboard after its piece out was put on the lane with the given sequence. Under the
 * lane's lock. */
void fl_cuda_stage_board(fl_cuda_stage *stage, fl_cuda_slot *slot, struct fl_cuda_lane *lane,
                         uint64_t sequence);
/* Returns the newest operation, up to `passed`, before the lane's first piece aboard. Under the
 * lane's lock; pieces are aboard. */
uint64_t fl_cuda_stage_bound(fl_cuda_stage *stage, const struct fl_cuda_lane *lane,
                             uint64_t passed);

/* Lands a piece the device is past, if any, on a stage without helpers. */
bool fl_cuda_stage_help(fl_cuda_stage *stage);
/* Waits for landings under way. The GPU is known to be lost; no new landing begins. */
void fl_cuda_stage_quiet(fl_cuda_stage *stage);
/* Waits until a marker of a lane of the device is reached. */
filch_status fl_cuda_stage_await(fl_device *device, fl_marker marker, filch_error *error);

#endif
