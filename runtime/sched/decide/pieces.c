/* SPDX-License-Identifier: Apache-2.0 */
/* Batches cut by a policy: into pieces owned by devices, or not at all, with a single range for
 * every device. A range of pieces counts positions in a list ordered by device, and for a device by
 * items. */
#include "sched/decide/pick.h"
#include "sched/execute/full.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* However small the policy wants them. */
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

/* Returns the default chunk: an equal part. */
static uint32_t usual_chunk(const fl_sched *sched, const filch_job *job)
{
    uint64_t able = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        able += fl_devices_have(fl_batch_devices(job->batch), d);
    }
    uint64_t parts = FL_POLICY_PIECES * (able != 0 ? able : 1);
    return (uint32_t)((fl_batch_grains(job->batch) + parts - 1) / parts);
}

/* --- Cutting --- */

/* Returns the grains of a piece, limited by the memory of every device that may have the piece. */
static uint32_t piece_size(fl_sched *sched, const filch_job *job)
{
    uint32_t grains = fl_batch_grains(job->batch);
    const filch_policy_view view = {
        .sched = sched, .worker = fl_sched_self(sched), .job = job, .hi = grains, .rest = grains};
    uint32_t size = ask_chunk(sched, &view, usual_chunk(sched, job));
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

/* Sorts pieces by device, by counting; every piece has a device. *begins has room for a number for
 * every device, and one more. */
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

static bool cut(fl_sched *sched, filch_job *job)
{
    const fl_memory *memory = &sched->core->memory;
    uint32_t grains = fl_batch_grains(job->batch), size = piece_size(sched, job), count = 0;
    for (uint32_t lo = 0; lo < grains; lo = piece_end(job, lo, size)) {
        ++count;
    }
    size_t bytes = sizeof(fl_pieces) + count * sizeof(fl_piece);
    size_t begin_bytes = (sched->count + 1) * sizeof(uint32_t);
    fl_pieces *pieces = fl_alloc(memory, bytes);
    fl_piece *from = fl_alloc(memory, count * sizeof *from);
    uint32_t *devices = fl_alloc(memory, count * sizeof *devices);
    uint32_t *begins = fl_alloc_zeroed(memory, begin_bytes);
    bool is_cut = pieces != NULL && from != NULL && devices != NULL && begins != NULL;
    if (is_cut) {
        *pieces = (fl_pieces){.bytes = bytes, .count = count};
        fl_add_relaxed(&sched->rules.placing, 1);
        for (uint32_t i = 0, lo = 0; i < count; ++i) {
            uint32_t hi = piece_end(job, lo, size);
            from[i] = (fl_piece){lo, hi};
            devices[i] = place_piece(sched, job, lo, hi);
            lo = hi;
        }
        sort_pieces(pieces, from, devices, begins, sched->count);
        job->pieces = pieces;
        job->cut = FL_CUT_PIECES;
        for (uint32_t d = 0, begin = 0; d < sched->count; begin = begins[d++]) {
            fl_range_set(&fl_job_share(job, d)->range, begin, begins[d]);
        }
        fl_sub_relaxed(&sched->rules.placing, 1);
    } else {
        fl_free(memory, pieces, bytes);
    }
    fl_free(memory, from, count * sizeof *from);
    fl_free(memory, devices, count * sizeof *devices);
    fl_free(memory, begins, begin_bytes);
    return is_cut;
}

bool fl_pieces_fill(fl_sched *sched, filch_job *job)
{
    const filch_policy_desc *with = &sched->rules.with;
    if (with->batches == FILCH_BATCHES_COMMON) {
        job->cut = FL_CUT_COMMON;
        fl_range_set(&fl_job_share(job, 0)->range, 0, fl_batch_grains(job->batch));
        return true;
    }
    /* Without memory for a list, the static partition applies. */
    return with->batches == FILCH_BATCHES_PLACED && with->place != NULL && cut(sched, job);
}

/* --- Taking --- */

static bool take_common(fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    fl_range *range = &fl_job_share(job, 0)->range;
    uint32_t rest;
    /* Acquire, in taking from the range: the cutting thread's writes are visible. */
    while (fl_devices_have(fl_batch_devices(job->batch), w->index) &&
           (rest = fl_range_peek(range, lo, hi)) != 0) {
        bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
        uint32_t most = fl_batch_reach(job->batch, *lo) - *lo, want = rest;
        if (!is_cancelled) {
            want = fl_policy_chunk(w, job, *lo, rest, usual_chunk(w->sched, job));
        }
        want = want < most ? want : most;
        want = is_cancelled ? want : fl_chunk_fit(w, job, *lo, want);
        if (fl_range_take_at(range, *lo, want, hi)) {
            return true;
        }
    }
    return false;
}

/* Takes grains that a device could not do, the worker's own device included when trying again. */
static bool take_left(const fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    uint32_t rest;
    if (!fl_devices_have(fl_batch_devices(job->batch), w->index)) {
        return false;
    }
    for (uint32_t d = 0; d < w->sched->count; ++d) {
        fl_range *left = &fl_job_share(job, (w->index + d) % w->sched->count)->left;
        while ((rest = fl_range_peek(left, lo, hi)) != 0) {
            uint32_t want = is_cancelled ? rest : fl_chunk_fit(w, job, *lo, rest);
            if (fl_range_take_at(left, *lo, want, hi)) {
                return true;
            }
        }
    }
    return false;
}

static bool take_piece(const fl_worker *w, const filch_job *job, uint32_t *lo, uint32_t *hi)
{
    uint32_t position, end;
    if (!fl_range_take(&fl_job_share(job, w->index)->range, 1, &position, &end)) {
        return false;
    }
    *lo = job->pieces->at[position].lo;
    *hi = job->pieces->at[position].hi;
    return true;
}

bool fl_pieces_pick(fl_worker *w, filch_job *job, fl_item *item)
{
    uint32_t lo, hi;
    if (fl_load_relaxed(&job->cancelled) == 0 && fl_full_is_out(w, job)) {
        return false;
    }
    if (!(job->cut == FL_CUT_COMMON ? take_common(w, job, &lo, &hi)
                                    : take_piece(w, job, &lo, &hi)) &&
        !take_left(w, job, &lo, &hi)) {
        return false;
    }
    bool is_cancelled = fl_load_relaxed(&job->cancelled) != 0;
    *item = (fl_item){.job = job, .lo = lo, .hi = hi, .skip = is_cancelled, .timed = true};
    item->work = is_cancelled ? 0 : fl_batch_work(w, job, lo, hi);
    return true;
}

static fl_range *range_of(const fl_worker *w, const filch_job *job)
{
    return &fl_job_share(job, job->cut == FL_CUT_COMMON ? 0 : w->index)->range;
}

bool fl_pieces_take_any(const fl_worker *w, filch_job *job, uint32_t *lo, uint32_t *hi)
{
    fl_range *range = range_of(w, job);
    if (job->cut != FL_CUT_SHARES && fl_range_drain(&fl_job_share(job, w->index)->left, lo, hi)) {
        return true;
    }
    if (job->cut == FL_CUT_PIECES) {
        return take_piece(w, job, lo, hi);
    }
    while (fl_range_peek(range, lo, hi) != 0) {
        if (fl_range_take_at(range, *lo, fl_batch_reach(job->batch, *lo) - *lo, hi)) {
            return true;
        }
    }
    return false;
}

bool fl_pieces_return(const fl_worker *w, const fl_item *item)
{
    fl_share *share = fl_job_share(item->job, w->index);
    uint32_t lo, hi;
    if (item->job->cut == FL_CUT_SHARES) {
        return fl_range_return(&share->range, item->lo, item->hi);
    }
    if (fl_range_peek(&share->left, &lo, &hi) != 0) {
        return false;
    }
    /* The worker alone fills `left`. */
    fl_range_set(&share->left, item->lo, item->hi);
    return true;
}

uint32_t fl_pieces_rest(const fl_worker *w, const filch_job *job)
{
    uint32_t lo, hi;
    return fl_range_peek(range_of(w, job), &lo, &hi) +
           fl_range_peek(&fl_job_share(job, w->index)->left, &lo, &hi);
}

double fl_pieces_work(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    if (job->cut != FL_CUT_PIECES) {
        return fl_batch_work(w, job, lo, hi);
    }
    /* Every piece is about as large as the first. */
    fl_piece first = job->pieces->at[lo];
    return fl_batch_work(w, job, first.lo, first.hi) * (hi - lo);
}
