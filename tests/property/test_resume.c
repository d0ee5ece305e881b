/* SPDX-License-Identifier: Apache-2.0 */
/* Random batches whose items fail some number of times, which are cancelled at any time, and
 * resumed on random devices until nothing is left: each item runs to its end exactly once, on a
 * device that may run it, and the bytes are those of an undisturbed batch. Buffers are plain
 * memory: what runs twice at once is a data race. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "property.h"

enum { MOST_BATCHES = 3, MOST_ITEMS = 900, MOST_RANGES = 2048, MOST_CANCELS = 10, FAIL_CODE = 5 };

typedef struct plan {
    property_world *world;
    filch_data *data;
    filch_job *job;
    uint64_t n, grain, step, scale, tile;
    bool is_callback, is_reversed;
    uint64_t seed;
    uint64_t *real, *expected;
    uint64_t given; /* items of the present job */
    uint64_t left;  /* items that have not finished */
    uint32_t cancels, resumes;
    _Atomic uint32_t completions;
    _Atomic uint64_t may_run;              /* bit set of devices; relaxed: written between jobs */
    _Atomic uint32_t failures[MOST_ITEMS]; /* yet to come; relaxed: they order nothing */
    _Atomic uint32_t ran[MOST_ITEMS];
} plan;

/* --- The body --- */

static uint64_t value_of(const plan *p, uint64_t element, uint64_t before)
{
    return property_mix(property_mix(p->seed, element), before);
}

/* Whether some item of the chunk fails it; each such item has one failure less to come. */
static bool takes_failure(plan *p, uint64_t lo, uint64_t hi)
{
    bool found = false;
    for (uint64_t i = lo; i < hi; ++i) {
        if (fl_load_relaxed(&p->failures[i]) != 0) {
            fl_sub_relaxed(&p->failures[i], 1);
            found = true;
        }
    }
    return found;
}

static int body(const filch_call *call)
{
    plan *p;
    memcpy(&p, call->args, sizeof p);
    uint64_t lo = call->lo, hi = call->hi;
    if (lo >= hi || hi > p->n || lo % p->step != 0 || (hi % p->step != 0 && hi != p->n)) {
        property_fail("chunk [%llu, %llu) of %llu items, step %llu", (unsigned long long)lo,
                      (unsigned long long)hi, (unsigned long long)p->n,
                      (unsigned long long)p->step);
        return 1;
    }
    if ((fl_load_relaxed(&p->may_run) >> call->device & 1) == 0) {
        property_fail("items from %llu ran on device %u", (unsigned long long)lo, call->device);
    }
    for (uint64_t i = lo; i < hi; ++i) {
        if (fl_load_relaxed(&p->ran[i]) != 0) {
            property_fail("item %llu runs again", (unsigned long long)i);
        }
    }
    if (takes_failure(p, lo, hi)) {
        return FAIL_CODE;
    }
    const filch_view *view = &call->views[0];
    uint64_t first = p->is_reversed ? p->scale * (p->n - hi) : p->scale * lo;
    if (view->row != first || view->rows != p->scale * (hi - lo) || view->ptr != p->real + first) {
        property_fail("the view of items from %llu begins at %llu", (unsigned long long)lo,
                      (unsigned long long)view->row);
        return 1;
    }
    for (uint64_t i = first; i < first + view->rows; ++i) {
        p->real[i] = value_of(p, i, p->real[i]);
    }
    for (uint64_t i = lo; i < hi; ++i) {
        fl_add_relaxed(&p->ran[i], 1);
    }
    return 0;
}

static void map_items(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    const plan *p = user;
    *first = p->scale * (p->is_reversed ? p->n - hi : lo);
    *last = p->scale * (p->is_reversed ? p->n - lo : hi);
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

static uint64_t greatest_divisor(uint64_t a, uint64_t b)
{
    return b == 0 ? a : greatest_divisor(b, a % b);
}

static void make_plan(property_world *world, plan *p, fl_random *random)
{
    p->world = world;
    p->seed = fl_random_next(random);
    p->n = 1 + fl_random_below(random, MOST_ITEMS);
    p->grain = property_chance(random, 40) ? 1 : 1 + fl_random_below(random, 30);
    p->scale = 1 + fl_random_below(random, 3);
    p->is_callback = property_chance(random, 30);
    p->is_reversed = p->is_callback && property_chance(random, 50);
    uint64_t elements = p->scale * p->n;
    p->tile = property_chance(random, 50) ? elements : 1 + fl_random_below(random, 20);
    p->tile = p->tile < elements ? p->tile : elements;
    p->step = p->grain;
    if (!p->is_callback && p->tile < elements) {
        uint64_t items = p->tile / greatest_divisor(p->tile, p->scale);
        p->step = p->grain / greatest_divisor(p->grain, items) * items;
    }
    p->real = property_alloc(elements, sizeof *p->real);
    p->expected = property_alloc(elements, sizeof *p->expected);
    for (uint64_t i = 0; i < elements; ++i) {
        p->real[i] = fl_random_next(random);
        p->expected[i] = value_of(p, i, p->real[i]);
    }
    uint32_t percent = fl_random_below(random, 4) * fl_random_below(random, 4);
    for (uint64_t i = 0; i < p->n; ++i) {
        bool fails = property_chance(random, percent);
        fl_store_relaxed(&p->failures[i], fails ? 1 + fl_random_below(random, 3) : 0);
    }
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = p->real;
    desc.element = sizeof *p->real;
    desc.rows = elements;
    desc.tile_rows = p->tile;
    property_ok(filch_data_create(world->runtime, &desc, &p->data));
}

static filch_submit_desc random_submit(plan *p, fl_random *random)
{
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_failure = property_chance(random, 70) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    submit.on_complete = on_complete;
    submit.user = p;
    fl_store_relaxed(&p->completions, 0);
    return submit;
}

static void begin(plan *p, filch_codelet *codelet, fl_random *random)
{
    filch_batch_access access = {.data = p->data,
                                 .mode = FILCH_READWRITE,
                                 .map = p->is_callback ? FILCH_MAP_CALLBACK : FILCH_MAP_AFFINE,
                                 .scale = p->scale,
                                 .fn = map_items,
                                 .user = p};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_submit_desc submit = random_submit(p, random);
    desc.codelet = codelet;
    desc.args = &p;
    desc.n = p->n;
    desc.grain = p->grain;
    desc.accesses = &access;
    desc.access_count = 1;
    p->given = p->left = p->n;
    fl_store_relaxed(&p->may_run, UINT64_MAX);
    property_ok(filch_batch_submit(p->world->runtime, &desc, &submit, &p->job));
}

static void go_on(plan *p, fl_random *random)
{
    uint32_t devices[PROPERTY_MOST_DEVICES];
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
    filch_submit_desc submit = random_submit(p, random);
    filch_job *old = p->job;
    uint64_t set = UINT64_MAX;
    desc.devices = devices;
    if (property_chance(random, 50)) {
        set = 0;
        while (set == 0) {
            set = fl_random_next(random) & ((UINT64_C(1) << p->world->devices) - 1);
        }
        for (uint32_t d = 0; d < p->world->devices; ++d) {
            if ((set >> d & 1) != 0) {
                devices[desc.device_count++] = d;
            }
        }
    }
    p->given = p->left;
    ++p->resumes;
    fl_store_relaxed(&p->may_run, set);
    property_ok(filch_job_resume(old, set != UINT64_MAX ? &desc : NULL, &submit, &p->job));
    property_ok(filch_job_release(old));
}

/* --- After each job --- */

static void check_ranges(plan *p, const filch_item_range *ranges, size_t count)
{
    uint64_t at = 0;
    p->left = 0;
    for (size_t i = 0; i < count; at = ranges[i++].hi) {
        const filch_item_range *range = &ranges[i];
        if (range->lo != at || range->hi <= range->lo || range->hi > p->n) {
            property_fail("items [%llu, %llu) follow %llu", (unsigned long long)range->lo,
                          (unsigned long long)range->hi, (unsigned long long)at);
            return;
        }
        bool is_done = range->status == FILCH_OK;
        p->left += is_done ? 0 : range->hi - range->lo;
        for (uint64_t item = range->lo; item < range->hi; ++item) {
            if (fl_load_relaxed(&p->ran[item]) != is_done) {
                property_fail("item %llu is %s", (unsigned long long)item,
                              filch_status_name(range->status));
            }
        }
    }
    if (at != p->n) {
        property_fail("the ranges end at %llu of %llu items", (unsigned long long)at,
                      (unsigned long long)p->n);
    }
}

static void check_job(plan *p)
{
    static filch_item_range ranges[MOST_RANGES];
    filch_job_info info = {.size = sizeof info};
    filch_status status = filch_job_wait(p->job, PATIENCE);
    size_t count = 0;
    if (status == FILCH_TIMEOUT) {
        property_fail("resume %u of a batch of %llu items hangs", p->resumes,
                      (unsigned long long)p->n);
        exit(property_has_failed());
    }
    property_ok(filch_job_stats(p->job, &info, NULL, 0));
    property_ok(filch_job_items(p->job, ranges, MOST_RANGES, &count));
    check_ranges(p, ranges, count);
    if (info.total != p->given || info.done != p->given - p->left ||
        info.failed + info.skipped != p->left) {
        property_fail("of %llu items %llu are done, %llu failed, %llu skipped; %llu are left",
                      (unsigned long long)p->given, (unsigned long long)info.done,
                      (unsigned long long)info.failed, (unsigned long long)info.skipped,
                      (unsigned long long)p->left);
    }
    property_expect(status,
                    info.failed != 0    ? FILCH_TASK_FAILED
                    : info.skipped != 0 ? FILCH_CANCELLED
                                        : FILCH_OK,
                    "the wait");
    if (fl_load_relaxed(&p->completions) != 1) {
        property_fail("%u calls of the callback", fl_load_relaxed(&p->completions));
    }
}

static void disturb(plan *p, fl_random *random)
{
    if (p->cancels < MOST_CANCELS && property_chance(random, 40)) {
        ++p->cancels;
        (void)filch_job_wait(p->job, fl_random_unit(random) * 1e-4);
        property_ok(filch_job_cancel(p->job));
    }
}

static void check(property_world *world, fl_random *random)
{
    static plan plans[MOST_BATCHES]; /* large */
    memset(plans, 0, sizeof plans);
    filch_codelet *codelet = NULL;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "random";
    desc.host = body;
    desc.work = property_chance(random, 50) ? uneven_work : NULL;
    desc.arg_size = sizeof(plan *);
    property_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    uint32_t count = 1 + fl_random_below(random, MOST_BATCHES);
    for (uint32_t i = 0; i < count; ++i) {
        make_plan(world, &plans[i], random);
        begin(&plans[i], codelet, random);
    }
    for (uint32_t unfinished = count; unfinished != 0 && !property_has_failed();) {
        unfinished = 0;
        for (uint32_t i = 0; i < count; ++i) {
            disturb(&plans[i], random);
        }
        for (uint32_t i = 0; i < count && !property_has_failed(); ++i) {
            plan *p = &plans[i];
            check_job(p);
            if (p->left != 0) {
                ++unfinished;
                go_on(p, random);
            }
        }
    }
    for (uint32_t i = 0; i < count && !property_has_failed(); ++i) {
        plan *p = &plans[i];
        property_ok(filch_job_release(p->job));
        if (memcmp(p->real, p->expected, p->scale * p->n * sizeof *p->real) != 0) {
            property_fail("other bytes than an undisturbed batch's after %u resumes", p->resumes);
        }
        property_ok(filch_data_destroy(p->data));
        free(p->real);
        free(p->expected);
    }
}

int main(int argc, char **argv)
{
    return property_main("resume", argc, argv, check, 2000);
}
