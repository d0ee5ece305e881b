/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between a GPU's memory and pageable memory of the host's, through rings of page-locked
 * slots: one ring a direction, shared by the GPU's slices. Such a copy is cut into pieces. Each is
 * an ordinary copy of its lane, from or to a slot; processors do the rest, between slot and
 * caller's buffer, in units of which several threads take some.
 *
 * In: the calling thread and the helpers fill slots, and put a piece on the lane when its slot is
 * full. The call returns when the buffer has been read; nothing else is special about its marker.
 * Out: the caller puts pieces on the lane and returns. A piece is *aboard* from then on until it
 * has landed in the caller's buffer, which helpers see to. The lane does not reach a piece that is
 * aboard, nor what comes after it (fl_cuda_stage_bound).
 *
 * Helpers are threads that sleep while there is nothing to do. Without any (the host's threads
 * drive the workers, or the system refused them) callers do all of it, and pieces land inside
 * fl_cuda_reached.
 *
 * Nothing can wait for each other. A helper waits for work and for the device, never for a caller,
 * and takes a lane's lock only to look at its events or to put a piece there, which nobody holds
 * while waiting for a helper. The device waits for what was put there before and never for a
 * landing: streams wait for a piece's event, which comes before it lands, and only callers wait for
 * the landing itself. What a piece may have to wait for, one put before it that leads to the same
 * bytes, waits for the device alone or for one put still earlier. */
#ifndef FL_BACKEND_CUDA_QUEUE_STAGE_H
#define FL_BACKEND_CUDA_QUEUE_STAGE_H

#include "backend/backend.h"

struct fl_cuda_lane;
struct fl_cuda_gpu;
typedef struct fl_cuda_slot fl_cuda_slot;
typedef struct fl_cuda_stage fl_cuda_stage;

/* Makes the stage of an open device's GPU. Page-locked memory and threads come with the first copy
 * that needs them. */
filch_status fl_cuda_stage_open(fl_device *device, const fl_discovery *how);
/* Nothing is in flight. Null: nothing. */
void fl_cuda_stage_close(struct fl_cuda_gpu *gpu, const fl_memory *memory);
/* The lane is about to be freed; nothing of its is in flight, or its device is lost. */
void fl_cuda_stage_forget(fl_cuda_stage *stage, const struct fl_cuda_lane *lane);

/* Whether a copy is to go through the ring; if so, it is there. With the context current. */
bool fl_cuda_stage_takes(const fl_device *device, const fl_copy *copy);
/* Starts such a copy, behind what its lane waits for; the context is current. A failure leaves
 * nothing of it under way. Any thread. */
filch_status fl_cuda_stage_copy(fl_device *device, fl_copy *copy, filch_error *error);
/* Before a copy that goes to the host's memory by itself: waits until nothing is aboard that leads
 * to the same bytes. */
void fl_cuda_stage_make_way(const fl_device *device, const fl_copy *copy);

/* Under the lane's lock, for a slot of a piece out that has been put there with that number: it is
 * aboard. */
void fl_cuda_stage_board(fl_cuda_stage *stage, fl_cuda_slot *slot, struct fl_cuda_lane *lane,
                         uint64_t sequence);
/* Under the lane's lock, which has pieces aboard: the newest operation, up to `passed`, before the
 * first of them. */
uint64_t fl_cuda_stage_bound(fl_cuda_stage *stage, const struct fl_cuda_lane *lane,
                             uint64_t passed);

/* Where there are no helpers: lands a piece that the device is past, if there is one. */
bool fl_cuda_stage_help(fl_cuda_stage *stage);
/* The GPU is known to be lost, so that no landing begins: waits for those that have begun. */
void fl_cuda_stage_quiet(fl_cuda_stage *stage);
/* Waits until a marker of one of the device's lanes is reached. */
filch_status fl_cuda_stage_await(fl_device *device, fl_marker marker, filch_error *error);

#endif
