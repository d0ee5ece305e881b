/* SPDX-License-Identifier: Apache-2.0 */
/* Batches cut by a policy: into pieces owned by devices, or not at all, with a single range for
 * every device. A range of pieces counts positions in a list ordered by device, and for a device by
 * items. */
#include "sched/decide/chunk.h"
#include "sched/decide/policy.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Largest number of pieces, even if the policy asks for smaller pieces. */
#define MOST_PIECES (1u << 20)

static uint32_t ask_chunk(fl_sched *sched, const filch_policy_view *view, uint32_t usual)
{
    fl_rules *rules = &sched->rules;
    if (rules->with.chunk == NULL) {
        return usual;
    }
    uint32_t grains = rules->with.chunk(view, rules->with.user);
    fl_add_relaxed(&rules->chunks.times, 1);
    fl_add_relaxed(&rules->chunks.refused, grains == 0);
    return grains == 0 || grains == FILCH_POLICY_AUTO ? usual
           : grains < view->rest                      ? grains
                                                      : view->rest;
}

uint32_t fl_policy_chunk(fl_worker *w, const filch_job *job, uint32_t lo, uint32_t rest,
                         uint32_t usual)
{
    const filch_policy_view view = {
        .sched = w->sched, .worker = w, .job = job, .lo = lo, .hi = lo + rest, .rest = rest};
    return ask_chunk(w->sched, &view, usual);
}

/* --- Cutting --- */

/* Returns the grains of a piece, limited by the memory of every device that may have the piece. */
static uint32_t piece_size(fl_sched *sched, const filch_job *job)
{
    uint32_t grains = fl_batch_grains(job->batch);
    const filch_policy_view view = {
        .sched = sched, .worker = fl_sched_self(sched), .job = job, .hi = grains, .rest = grains};
    uint32_t size = ask_chunk(sched, &view, fl_chunk_equal(sched, job));
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (fl_devices_have(fl_batch_devices(job->batch), d)) {
            size = fl_chunk_fit(&sched->workers[d], job, 0, size);
        }
    }
    uint32_t least = grains / MOST_PIECES + 1;
    return size > least ? size : least;
}

/* Returns the end of the piece beginning at lo; no piece spans a gap between items. */
static uint32_t piece_end(const filch_job *job, uint32_t lo, uint32_t size)
{
    uint32_t reach = fl_batch_reach(job->batch, lo), grains = fl_batch_grains(job->batch);
    uint32_t end = grains - lo > size ? lo + size : grains;
    return end < reach ? end : reach;
}

static uint32_t place_piece(fl_sched *sched, const filch_job *job, uint32_t lo, uint32_t hi)
{
    fl_rules *rules = &sched->rules;
    const uint64_t *able = fl_batch_devices(job->batch);
    const filch_policy_view view = {.sched = sched,
                                    .worker = fl_sched_self(sched),
                                    .job = job,
                                    .lo = lo,
                                    .hi = hi,
                                    .rest = fl_batch_grains(job->batch) - lo};
    uint32_t device = rules->with.place(&view, rules->with.user);
    bool is_good = device == FILCH_POLICY_AUTO || filch_policy_can_run(&view, device);
    fl_add_relaxed(&rules->places.times, 1);
    fl_add_relaxed(&rules->places.refused, !is_good);
    if (!is_good || device == FILCH_POLICY_AUTO) {
        fl_scheduler *scheduler = &sched->scheduler;
        return scheduler->owner(scheduler, able, lo, fl_batch_grains(job->batch));
    }
    fl_view_charge(&view, device);
    return device;
}

/* Sorts pieces by device, by counting; every piece has a device. begins[d] becomes the end of
 * device d's pieces. */
static void sort_pieces(fl_pieces *pieces, const fl_piece *from, const uint32_t *devices,
                        uint32_t *begins, uint32_t device_count)
{
    for (uint32_t i = 0; i < pieces->count; ++i) {
        ++begins[devices[i] + 1];
    }
    for (uint32_t d = 0; d < device_count; ++d) {
        begins[d + 1] += begins[d];
    }
    for (uint32_t i = 0; i < pieces->count; ++i) {
        pieces->at[begins[devices[i]]++] = from[i];
    }
    /* Every entry of `begins` has moved to the begin of the next device. */
}

fl_pieces *fl_pieces_cut(fl_sched *sched, const filch_job *job, uint32_t *begins)
{
    const fl_memory *memory = &sched->core->memory;
    uint32_t grains = fl_batch_grains(job->batch), size = piece_size(sched, job), count = 0;
    for (uint32_t lo = 0; lo < grains; lo = piece_end(job, lo, size)) {
        ++count;
    }
    size_t bytes = sizeof(fl_pieces) + count * sizeof(fl_piece);
    fl_pieces *pieces = fl_alloc(memory, bytes);
    fl_piece *from = fl_alloc(memory, count * sizeof *from);
    uint32_t *devices = fl_alloc(memory, count * sizeof *devices);
    if (pieces != NULL && from != NULL && devices != NULL) {
        *pieces = (fl_pieces){.bytes = bytes, .count = count};
        fl_add_relaxed(&sched->rules.placing, 1);
        for (uint32_t i = 0, lo = 0; i < count; ++i) {
            uint32_t hi = piece_end(job, lo, size);
            from[i] = (fl_piece){lo, hi};
            devices[i] = place_piece(sched, job, lo, hi);
            lo = hi;
        }
        sort_pieces(pieces, from, devices, begins, sched->count);
        fl_sub_relaxed(&sched->rules.placing, 1);
    } else {
        fl_free(memory, pieces, bytes);
        pieces = NULL;
    }
    fl_free(memory, from, count * sizeof *from);
    fl_free(memory, devices, count * sizeof *devices);
    return pieces;
}
