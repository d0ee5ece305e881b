/* SPDX-License-Identifier: Apache-2.0 */
/* Random batches over shared handles, with halos, callback mappings, failing items and
 * cancellations, against a sequential executor in submission order: each item runs at most once,
 * chunks end at grains and tiles, the items' statuses cover the range, and the bytes are those of
 * the items that ran. Buffers are plain memory: a missing order is a data race. Where the codelet
 * lets chunks be run twice, items that are written only may run in several places; all else holds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "property.h"

enum { MOST_HANDLES = 3, MOST_BATCHES = 4, MOST_ITEMS = 700, MOST_RANGES = 2048, FAIL_CODE = 5 };

/* A 1-D handle of elements, or a 2-D one of columns. */
typedef struct buffer {
    filch_data *data;
    uint64_t rows, ld, extent, tile; /* elements a step of the divided axis: rows of ld */
    bool is_uneven;                  /* tiles of unlike sizes, … */
    uint64_t starts[MOST_ITEMS + 3]; /* … where they begin, and end */
    uint32_t tiles;
    uint64_t *real, *shadow;
} buffer;

/* Which elements item i owns in the written handle: [first, last) along the divided axis. */
typedef struct mapping {
    uint64_t offset, scale;
} mapping;

typedef struct plan {
    struct trial *trial;
    filch_job *job;
    uint32_t written, read; /* handles; read == written: none is read */
    filch_access_mode mode;
    filch_map_kind write_map, read_map;
    mapping map;
    uint64_t before, after;  /* halo of what is read */
    uint64_t n, grain, step; /* cuts fall on multiples of step */
    uint64_t seed;
    uint32_t bad_percent;
    bool is_cancelled;
    filch_on_failure on_failure;
    _Atomic uint32_t completions;
    _Atomic uint32_t ran[MOST_ITEMS + 1]; /* relaxed: they order nothing */
    bool bad[MOST_ITEMS + 1];
} plan;

typedef struct trial {
    property_world *world;
    filch_codelet *codelet;
    bool is_restartable;
    uint32_t handle_count, plan_count;
    buffer buffers[MOST_HANDLES];
    plan plans[MOST_BATCHES];
} trial;

/* --- What an item computes --- */

static void own_range(const plan *p, uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last)
{
    *first = p->map.offset + p->map.scale * lo;
    *last = p->map.offset + p->map.scale * hi;
}

/* What item range [lo, hi) sees of the handle it reads. */
static void seen_range(const plan *p, uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last)
{
    uint64_t extent = p->trial->buffers[p->read].extent;
    if (p->read_map == FILCH_MAP_WHOLE) {
        *first = 0;
        *last = extent;
        return;
    }
    *first = lo > p->before ? lo - p->before : 0;
    *last = hi + p->after < extent ? hi + p->after : extent;
}

/* One item, with views whose first steps are `own_at` and `seen_at`, the former `own_ld` apart;
 * seen may be null. */
static void compute_item(const plan *p, uint64_t item, uint64_t *own, uint64_t own_at,
                         uint64_t own_ld, const uint64_t *seen, uint64_t seen_at)
{
    const buffer *w = &p->trial->buffers[p->written], *r = &p->trial->buffers[p->read];
    uint64_t value = property_mix(p->seed, item), first, last;
    if (seen != NULL) {
        seen_range(p, item, item + 1, &first, &last);
        for (uint64_t i = first; i < last; ++i) {
            for (uint64_t row = 0; row < r->rows; ++row) {
                value = property_mix(value, seen[(i - seen_at) * r->ld + row]);
            }
        }
    }
    own_range(p, item, item + 1, &first, &last);
    for (uint64_t i = first; i < last; ++i) {
        for (uint64_t row = 0; row < w->rows; ++row) {
            uint64_t *at = &own[(i - own_at) * own_ld + row];
            *at = property_mix(p->mode == FILCH_READWRITE ? property_mix(value, *at) : value, row);
        }
    }
}

static bool has_bad(const plan *p, uint64_t lo, uint64_t hi)
{
    bool found = false;
    for (uint64_t i = lo; i < hi; ++i) {
        found = found || p->bad[i];
    }
    return found;
}

/* --- The body --- */

/* Whether chunks of the plan's may be run twice, and so write elsewhere first. */
static bool may_race(const plan *p)
{
    return p->trial->is_restartable && p->mode == FILCH_WRITE;
}

static bool check_view(const plan *p, const filch_view *view, const buffer *b, uint64_t first,
                       uint64_t last)
{
    bool is_flat = b->rows == 1; /* 1-D: the divided axis is the rows */
    uint64_t along = is_flat ? view->rows : view->cols;
    uint64_t at = is_flat ? view->row : view->col;
    bool is_here = view->ptr == b->real + first * b->ld && (is_flat || view->ld == b->ld);
    bool is_own =
        may_race(p) && b == &p->trial->buffers[p->written] && (is_flat || view->ld == view->rows);
    if ((!is_here && !is_own) || along != last - first || at != first ||
        (!is_flat && view->rows != b->rows) || view->element != sizeof(uint64_t)) {
        property_fail("a view is not the range that the mapping gives (n = %llu)",
                      (unsigned long long)p->n);
        return false;
    }
    return true;
}

/* Whether the written handle lets the batch be cut before an item. */
static bool may_cut(const plan *p, uint64_t item)
{
    const buffer *w = &p->trial->buffers[p->written];
    bool is_start = !w->is_uneven || p->write_map != FILCH_MAP_AFFINE || w->tiles == 1;
    for (uint32_t t = 0; t < w->tiles && !is_start; ++t) {
        is_start = w->starts[t] == p->map.offset + p->map.scale * item;
    }
    return item == p->n || (item % p->step == 0 && is_start);
}

static int body(const filch_call *call)
{
    plan *p;
    memcpy(&p, call->args, sizeof p);
    uint64_t lo = call->lo, hi = call->hi, first, last;
    if (lo >= hi || hi > p->n || !may_cut(p, lo) || !may_cut(p, hi)) {
        property_fail("chunk [%llu, %llu) of %llu items, step %llu", (unsigned long long)lo,
                      (unsigned long long)hi, (unsigned long long)p->n,
                      (unsigned long long)p->step);
        return 1;
    }
    for (uint64_t i = lo; i < hi; ++i) {
        if (fl_add_relaxed(&p->ran[i], 1) != 0 && !may_race(p)) {
            property_fail("item %llu ran twice", (unsigned long long)i);
        }
    }
    const buffer *w = &p->trial->buffers[p->written], *r = &p->trial->buffers[p->read];
    own_range(p, lo, hi, &first, &last);
    if (!check_view(p, &call->views[0], w, first, last)) {
        return 1;
    }
    uint64_t seen_first = 0, seen_last = 0;
    const uint64_t *seen = NULL;
    if (p->read != p->written) {
        seen_range(p, lo, hi, &seen_first, &seen_last);
        if (!check_view(p, &call->views[1], r, seen_first, seen_last)) {
            return 1;
        }
        seen = call->views[1].ptr;
    }
    if (has_bad(p, lo, hi)) {
        return FAIL_CODE;
    }
    for (uint64_t i = lo; i < hi; ++i) {
        compute_item(p, i, call->views[0].ptr, first, w->rows == 1 ? w->ld : call->views[0].ld,
                     seen, seen_first);
    }
    return 0;
}

static void map_own(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    own_range(user, lo, hi, first, last);
}

static void map_seen(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    seen_range(user, lo, hi, first, last);
}

static double uneven_work(const filch_call *call)
{
    double work = 0;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        work += (double)(i % 13) * 1e3;
    }
    return work;
}

static void on_complete(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)status;
    fl_add_relaxed(&((plan *)user)->completions, 1);
}

/* --- Plans --- */

/* Cuts a handle into tiles of unlike sizes, and tells how. */
static uint32_t cut(buffer *b, uint64_t *cuts, fl_random *random)
{
    uint64_t most = 1 + fl_random_below(random, 60);
    while (b->starts[b->tiles] < b->extent) {
        uint64_t left = b->extent - b->starts[b->tiles];
        uint64_t size = 1 + fl_random_below(random, (uint32_t)(left < most ? left : most));
        cuts[b->tiles++] = size;
        b->starts[b->tiles] = b->starts[b->tiles - 1] + size;
    }
    return b->tiles;
}

static void make_buffer(trial *t, buffer *b, fl_random *random)
{
    uint64_t cuts[MOST_ITEMS + 2];
    bool is_flat = property_chance(random, 50);
    b->rows = is_flat ? 1 : 2 + fl_random_below(random, 3);
    b->ld = is_flat ? 1 : b->rows + fl_random_below(random, 2);
    b->extent = 2 + fl_random_below(random, MOST_ITEMS);
    b->tile = property_chance(random, 60) ? b->extent : 1 + fl_random_below(random, 40);
    b->tile = b->tile < b->extent ? b->tile : b->extent;
    b->real = property_alloc(b->ld * b->extent, sizeof *b->real);
    b->shadow = property_alloc(b->ld * b->extent, sizeof *b->shadow);
    for (uint64_t i = 0; i < b->ld * b->extent; ++i) {
        b->real[i] = b->shadow[i] = fl_random_next(random);
    }
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = b->real;
    desc.element = sizeof *b->real;
    desc.rows = is_flat ? b->extent : b->rows;
    desc.cols = is_flat ? 1 : b->extent;
    desc.ld = is_flat ? 0 : b->ld;
    b->is_uneven = property_chance(random, 30);
    if (b->is_uneven) {
        *(is_flat ? &desc.row_cuts : &desc.col_cuts) = cuts;
        *(is_flat ? &desc.row_cut_count : &desc.col_cut_count) = cut(b, cuts, random);
    } else {
        desc.tile_rows = is_flat ? b->tile : 0;
        desc.tile_cols = is_flat ? 0 : b->tile;
    }
    property_ok(filch_data_create(t->world->runtime, &desc, &b->data));
}

static uint64_t least_multiple(uint64_t a, uint64_t b)
{
    uint64_t x = a, y = b;
    while (y != 0) {
        uint64_t rest = x % y;
        x = y;
        y = rest;
    }
    return a / x * b;
}

static void make_plan(trial *t, plan *p, fl_random *random)
{
    p->trial = t;
    p->seed = fl_random_next(random);
    p->written = fl_random_below(random, t->handle_count);
    p->read = fl_random_below(random, t->handle_count);
    p->mode = property_chance(random, 50) ? FILCH_WRITE : FILCH_READWRITE;
    p->write_map = property_chance(random, 70) ? FILCH_MAP_AFFINE : FILCH_MAP_CALLBACK;
    p->read_map = (filch_map_kind)fl_random_below(random, 3);
    p->before = fl_random_below(random, 4);
    p->after = fl_random_below(random, 4);
    const buffer *w = &t->buffers[p->written], *r = &t->buffers[p->read];
    p->map.scale = 1 + fl_random_below(random, 3);
    uint64_t tiles = (w->extent + w->tile - 1) / w->tile;
    p->map.offset =
        property_chance(random, 70) ? 0 : fl_random_below(random, (uint32_t)tiles) * w->tile;
    if (w->is_uneven) {
        p->map.offset =
            property_chance(random, 70) ? 0 : w->starts[fl_random_below(random, w->tiles)];
    }
    uint64_t most = (w->extent - p->map.offset) / p->map.scale;
    if (p->read != p->written && p->read_map != FILCH_MAP_WHOLE && most > r->extent) {
        most = r->extent;
    }
    p->n = property_chance(random, 5) ? 0 : fl_random_below(random, (uint32_t)most + 1);
    p->grain = fl_random_below(random, 20);
    p->step = p->grain != 0 ? p->grain : 1;
    if (p->write_map == FILCH_MAP_AFFINE && w->tile < w->extent && !w->is_uneven) {
        /* Items whose elements end at a tile. */
        p->step = least_multiple(p->step, least_multiple(w->tile, p->map.scale) / p->map.scale);
    }
    p->bad_percent = property_chance(random, 25) ? 1 : 0;
    for (uint64_t i = 0; i < p->n; ++i) {
        p->bad[i] = property_chance(random, p->bad_percent);
    }
}

/* --- Running --- */

static void submit_plan(plan *p, fl_random *random)
{
    const trial *t = p->trial;
    filch_batch_access accesses[2] = {{.data = t->buffers[p->written].data,
                                       .mode = p->mode,
                                       .map = p->write_map,
                                       .offset = p->map.offset,
                                       .scale = p->map.scale,
                                       .fn = map_own,
                                       .user = p},
                                      {.data = t->buffers[p->read].data,
                                       .mode = FILCH_READ,
                                       .map = p->read_map,
                                       .scale = 1,
                                       .before = p->before,
                                       .after = p->after,
                                       .fn = map_seen,
                                       .user = p}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = t->codelet;
    desc.args = &p;
    desc.n = p->n;
    desc.grain = p->grain;
    desc.accesses = accesses;
    desc.access_count = p->read != p->written ? 2 : 1;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    p->on_failure = property_chance(random, 80) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    submit.on_failure = p->on_failure;
    submit.on_complete = on_complete;
    submit.user = p;
    p->is_cancelled = false;
    for (uint64_t i = 0; i < p->n; ++i) {
        fl_store_relaxed(&p->ran[i], 0);
    }
    fl_store_relaxed(&p->completions, 0);
    property_ok(filch_batch_submit(t->world->runtime, &desc, &submit, &p->job));
}

/* The ranges of items cover 0..n in order, and say of each item what became of it; items that ran
 * well are computed once more on the copy. */
static void check_items(plan *p, uint64_t *done, uint64_t *failed)
{
    static filch_item_range ranges[MOST_RANGES];
    size_t count = 0, again = 0;
    property_ok(filch_job_items(p->job, ranges, MOST_RANGES, &count));
    property_ok(filch_job_items(p->job, NULL, 0, &again));
    if (count != again || count > MOST_RANGES) {
        property_fail("%zu ranges, then %zu", count, again);
        return;
    }
    const buffer *w = &p->trial->buffers[p->written], *r = &p->trial->buffers[p->read];
    uint64_t at = 0;
    for (size_t i = 0; i < count; at = ranges[i++].hi) {
        const filch_item_range *range = &ranges[i];
        if (range->lo != at || range->hi <= range->lo || range->hi > p->n) {
            property_fail("items [%llu, %llu) follow %llu", (unsigned long long)range->lo,
                          (unsigned long long)range->hi, (unsigned long long)at);
            return;
        }
        for (uint64_t item = range->lo; item < range->hi; ++item) {
            bool ran = fl_load_relaxed(&p->ran[item]) != 0;
            if (ran != (range->status != FILCH_SKIPPED)) {
                property_fail("item %llu %s", (unsigned long long)item,
                              ran ? "ran, but counts as skipped" : "did not run");
            }
        }
        if (range->status == FILCH_OK) {
            *done += range->hi - range->lo;
            for (uint64_t item = range->lo; item < range->hi; ++item) {
                compute_item(p, item, w->shadow, 0, w->ld, p->read != p->written ? r->shadow : NULL,
                             0);
            }
        } else if (range->status == FILCH_TASK_FAILED) {
            *failed += range->hi - range->lo;
        }
        bool is_bad = has_bad(p, range->lo, range->hi);
        if (range->status == FILCH_TASK_FAILED ? !is_bad || range->code != FAIL_CODE
                                               : range->status == FILCH_OK && is_bad) {
            property_fail("items from %llu: status %s, code %d", (unsigned long long)range->lo,
                          filch_status_name(range->status), range->code);
        }
    }
    if (at != p->n) {
        property_fail("the ranges end at %llu of %llu items", (unsigned long long)at,
                      (unsigned long long)p->n);
    }
}

static void finish_plan(plan *p)
{
    filch_status status = filch_job_wait(p->job, PATIENCE);
    if (status == FILCH_TIMEOUT) {
        property_fail("a batch of %llu items hangs", (unsigned long long)p->n);
        exit(property_has_failed());
    }
    filch_job_info info = {.size = sizeof info};
    filch_device_stats devices[PROPERTY_MOST_DEVICES];
    uint64_t done = 0, failed = 0, in = 0, out = 0, items = 0;
    property_ok(filch_job_stats(p->job, &info, devices, PROPERTY_MOST_DEVICES));
    check_items(p, &done, &failed);
    for (uint32_t d = 0; d < info.device_count; ++d) {
        in += devices[d].stolen_in;
        out += devices[d].stolen_out;
        items += devices[d].items;
    }
    if (info.total != p->n || info.done != done || info.failed != failed ||
        info.skipped != p->n - done - failed || items != done + failed || in != out ||
        (in != 0 && p->trial->world->is_static)) {
        property_fail("%llu items: done %llu of %llu, failed %llu of %llu, skipped %llu, stolen "
                      "%llu and %llu",
                      (unsigned long long)p->n, (unsigned long long)info.done,
                      (unsigned long long)done, (unsigned long long)info.failed,
                      (unsigned long long)failed, (unsigned long long)info.skipped,
                      (unsigned long long)in, (unsigned long long)out);
    }
    bool is_whole = !p->is_cancelled && (failed == 0 || p->on_failure == FILCH_FAILURE_SKIP);
    if (is_whole && info.skipped != 0) {
        property_fail("%llu items were left out", (unsigned long long)info.skipped);
    }
    property_expect(status,
                    failed != 0         ? FILCH_TASK_FAILED
                    : info.skipped != 0 ? FILCH_CANCELLED
                                        : FILCH_OK,
                    "the wait");
    if (fl_load_relaxed(&p->completions) != 1) {
        property_fail("%u calls of the callback", fl_load_relaxed(&p->completions));
    }
    property_ok(filch_job_release(p->job));
}

static void run_round(trial *t, fl_random *random)
{
    uint32_t order[MOST_BATCHES] = {0};
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        uint32_t k = fl_random_below(random, i + 1);
        order[i] = order[k];
        order[k] = i;
    }
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        submit_plan(&t->plans[order[i]], random);
    }
    if (property_chance(random, 20)) {
        plan *p = &t->plans[fl_random_below(random, t->plan_count)];
        (void)filch_job_wait(p->job, fl_random_unit(random) * 1e-4);
        property_ok(filch_job_cancel(p->job));
        p->is_cancelled = true;
    }
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        finish_plan(&t->plans[order[i]]); /* in the order of submission, as the copy must be made */
    }
    for (uint32_t h = 0; h < t->handle_count; ++h) {
        const buffer *b = &t->buffers[h];
        if (memcmp(b->real, b->shadow, b->ld * b->extent * sizeof *b->real) != 0) {
            property_fail("handle %u: other bytes than the sequential executor's", h);
        }
    }
}

static void check(property_world *world, fl_random *random)
{
    static trial t; /* large */
    memset(&t, 0, sizeof t);
    t.world = world;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "random";
    desc.host = body;
    desc.work = property_chance(random, 50) ? uneven_work : NULL;
    desc.arg_size = sizeof(plan *);
    t.is_restartable = property_chance(random, 40);
    desc.flags = t.is_restartable ? FILCH_CODELET_RESTARTABLE : 0;
    property_ok(filch_codelet_create(world->runtime, &desc, &t.codelet));
    t.handle_count = 1 + fl_random_below(random, MOST_HANDLES);
    for (uint32_t i = 0; i < t.handle_count; ++i) {
        make_buffer(&t, &t.buffers[i], random);
    }
    t.plan_count = 1 + fl_random_below(random, MOST_BATCHES);
    for (uint32_t i = 0; i < t.plan_count; ++i) {
        make_plan(&t, &t.plans[i], random);
    }
    uint32_t victim_order = 1 + fl_random_below(random, 3);
    for (uint32_t i = 0; i < victim_order && !property_has_failed(); ++i) {
        run_round(&t, random);
    }
    if (t.is_restartable) {
        property_ok(filch_runtime_drain(world->runtime, -1)); /* runs that lost read them */
    }
    for (uint32_t i = 0; i < t.handle_count && !property_has_failed(); ++i) {
        property_ok(filch_data_destroy(t.buffers[i].data));
        free(t.buffers[i].real);
        free(t.buffers[i].shadow);
    }
}

int main(int argc, char **argv)
{
    return property_main("batches", argc, argv, check, 2000);
}
