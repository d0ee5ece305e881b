/* SPDX-License-Identifier: Apache-2.0 */
/* Batches: what is refused, where cuts fall, what a chunk sees, and what became of each item. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/job/job.h"

#define N 1000
#define WARNING_SIZE 256

static filch_runtime *runtime, *other;
static filch_codelet *body, *nothing;
static double buffer[4096];
static _Atomic int seen[N];
static _Atomic uint64_t items;
static _Atomic int wrong;

/* What the body expects of each chunk; set before the submission. */
static uint64_t grain, total, scale, offset, before, after, extent;
static filch_job **cancel_from_inside;
static _Atomic int failing; /* the item whose chunk fails, or -1 */

static int count_items(const filch_call *call)
{
    wrong += call->lo >= call->hi || call->hi > total || call->lo % grain != 0 ||
             (call->hi % grain != 0 && call->hi != total) || call->runtime == NULL;
    for (uint64_t i = call->lo; i < call->hi && i < N; ++i) {
        ++seen[i];
    }
    items += call->hi - call->lo;
    if (call->view_count == 1) {
        const filch_view *view = call->views;
        uint64_t from = offset + scale * call->lo, to = offset + scale * call->hi;
        from = from > before ? from - before : 0;
        to = to + after < extent ? to + after : extent;
        bool is_row = view->cols == 1 && view->row == from;
        uint64_t first = is_row ? view->row : view->col;
        uint64_t count = is_row ? view->rows : view->cols;
        wrong += first != from || count != to - from ||
                 view->ptr != (char *)buffer + first * (is_row ? 1 : view->ld) * view->element;
    }
    if (cancel_from_inside != NULL && filch_job_cancel(*cancel_from_inside) != FILCH_OK) {
        ++wrong;
    }
    bool fails = failing >= 0 && (uint64_t)failing >= call->lo && (uint64_t)failing < call->hi;
    return fails ? 100 + failing : 0;
}

static int set_up(void **state)
{
    (void)state;
    runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, NULL);
    other = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    body = fixture_codelet(runtime, "body", count_items, 0);
    nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    assert_ok(filch_runtime_destroy(other));
    return 0;
}

static filch_batch_desc batch(uint64_t n, uint64_t cuts)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = body;
    desc.n = n;
    desc.grain = cuts;
    total = n;
    grain = cuts != 0 ? cuts : 1;
    scale = 1;
    offset = before = after = extent = 0;
    failing = -1;
    cancel_from_inside = NULL;
    for (int i = 0; i < N; ++i) {
        seen[i] = 0;
    }
    items = 0;
    wrong = 0;
    return desc;
}

static filch_status run(const filch_batch_desc *desc)
{
    filch_job *job = NULL;
    assert_ok(filch_batch_submit(runtime, desc, NULL, &job));
    filch_status status = filch_job_wait(job, -1);
    assert_ok(filch_job_release(job));
    return status;
}

static void bad_batches_are_refused(void **state)
{
    (void)state;
    filch_job *job = (filch_job *)(void *)buffer;
    filch_codelet *foreign = fixture_codelet(other, "foreign", fixture_nothing, 0);
    filch_codelet *with_args = fixture_codelet(runtime, "args", fixture_nothing, 8);
    filch_batch_desc good = batch(10, 1), desc;
    assert_status(filch_batch_submit(runtime, NULL, NULL, &job), FILCH_INVALID_ARGUMENT);
#define REFUSE(member, value, expected)                                          \
    do {                                                                         \
        desc = good;                                                             \
        desc.member = (value);                                                   \
        assert_status(filch_batch_submit(runtime, &desc, NULL, &job), expected); \
        assert_int_equal(fixture_error(runtime).status, expected);               \
        assert_string_equal(fixture_error(runtime).call, "filch_batch_submit");  \
    } while (0)
    REFUSE(size, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(codelet, NULL, FILCH_INVALID_HANDLE);
    REFUSE(codelet, foreign, FILCH_WRONG_RUNTIME);
    REFUSE(codelet, with_args, FILCH_INVALID_ARGUMENT);
    REFUSE(access_count, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(access_count, 256, FILCH_INVALID_ARGUMENT);
    REFUSE(reserved, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(n, (uint64_t)1 << 63, FILCH_OVERFLOW);
    REFUSE(n, UINT64_MAX, FILCH_OVERFLOW);
    REFUSE(grain, (uint64_t)1 << 63, FILCH_OVERFLOW);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.reserved = 1;
    assert_status(filch_batch_submit(runtime, &good, &submit, &job), FILCH_INVALID_ARGUMENT);
    assert_ptr_equal(job, buffer);
    assert_int_equal(items, 0);
}

static filch_data *vector(uint64_t n, uint64_t tile)
{
    return fixture_vector(runtime, buffer, 8, n, tile);
}

static void refuse_access(filch_batch_access access, uint64_t n, filch_status expected)
{
    filch_batch_desc desc = batch(n, 1);
    desc.accesses = &access;
    desc.access_count = 1;
    filch_job *job = NULL;
    assert_status(filch_batch_submit(runtime, &desc, NULL, &job), expected);
    assert_null(job);
}

static void map_wrap(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    uint64_t k = *(const uint64_t *)user;
    *first = lo % k;
    *last = *first + (hi - lo);
}

static void map_overlap(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    (void)user;
    *first = lo;
    *last = hi + 1;
}

static void map_reverse(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    uint64_t n = *(const uint64_t *)user;
    *first = n - hi;
    *last = n - lo;
}

static void map_outside(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    (void)user;
    *first = lo + 1;
    *last = hi + 1;
}

static void bad_accesses_are_refused(void **state)
{
    (void)state;
    filch_data *data = vector(100, 10);
    filch_data *foreign = fixture_vector(other, buffer, 8, 100, 10);
    filch_batch_access good = {
        .data = data, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_access access;
#undef REFUSE
#define REFUSE(expected, n, ...)            \
    do {                                    \
        access = good;                      \
        __VA_ARGS__;                        \
        refuse_access(access, n, expected); \
    } while (0)
    REFUSE(FILCH_INVALID_HANDLE, 10, access.data = NULL);
    REFUSE(FILCH_WRONG_RUNTIME, 10, access.data = foreign);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.mode = (filch_access_mode)0);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.mode = FILCH_SCRATCH);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.map = (filch_map_kind)3);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.map = FILCH_MAP_CALLBACK);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.scale = 0);
    REFUSE(FILCH_INVALID_ARGUMENT, 101, (void)0);
    REFUSE(FILCH_INVALID_ARGUMENT, 100, access.offset = 1);
    REFUSE(FILCH_INVALID_ARGUMENT, 34, access.scale = 3);
    assert_non_null(strstr(fixture_error(runtime).text, "102, past the 100 elements"));
    REFUSE(FILCH_OVERFLOW, 10, access.scale = UINT64_MAX / 4);
    REFUSE(FILCH_OVERFLOW, 10, access.offset = UINT64_MAX);
    REFUSE(FILCH_ALIAS, 10, access.mode = FILCH_WRITE, access.map = FILCH_MAP_WHOLE);
    REFUSE(FILCH_ALIAS, 10, access.mode = FILCH_READWRITE, access.before = 1);
    REFUSE(FILCH_ALIAS, 10, access.mode = FILCH_WRITE, access.after = 1);
    REFUSE(FILCH_INVALID_ARGUMENT, 10, access.mode = FILCH_WRITE, access.offset = 5);
    assert_non_null(strstr(fixture_error(runtime).text, "element 5, where no tile of 10"));
    uint64_t k = 2;
    access = (filch_batch_access){.data = data,
                                  .mode = FILCH_WRITE,
                                  .map = FILCH_MAP_CALLBACK,
                                  .fn = map_overlap,
                                  .user = &k};
    refuse_access(access, 50, FILCH_ALIAS);
    access.fn = map_wrap;
    for (k = 2; k < 50; ++k) {
        refuse_access(access, 50, FILCH_ALIAS);
    }
    access.fn = map_outside;
    refuse_access(access, 100, FILCH_INVALID_ARGUMENT);
    /* One handle twice, once to write it. */
    filch_batch_access pair[2] = {good, good};
    pair[1].mode = FILCH_WRITE;
    filch_batch_desc desc = batch(10, 1);
    desc.accesses = pair;
    desc.access_count = 2;
    assert_status(filch_batch_submit(runtime, &desc, NULL, NULL), FILCH_ALIAS);
    assert_ok(filch_data_destroy(foreign));
    assert_ok(filch_data_destroy(data)); /* nothing was left behind */
}

static void every_item_runs_once(void **state)
{
    (void)state;
    static const uint64_t ns[] = {1, 2, 3, 7, 64, 999, 1000};
    static const uint64_t grains[] = {0, 1, 2, 7, 64, 1000, 5000};
    for (size_t i = 0; i < 7; ++i) {
        for (size_t g = 0; g < 7; ++g) {
            filch_batch_desc desc = batch(ns[i], grains[g]);
            assert_ok(run(&desc));
            assert_int_equal(wrong, 0);
            assert_int_equal(items, ns[i]);
            for (uint64_t k = 0; k < ns[i]; ++k) {
                assert_int_equal(seen[k], 1);
            }
        }
    }
}

static void huge_ranges_are_covered(void **state)
{
    (void)state;
    static const struct {
        uint64_t n, cuts;
    } cases[] = {{((uint64_t)1 << 63) - 1, (uint64_t)1 << 50},
                 {((uint64_t)1 << 63) - 1, ((uint64_t)1 << 63) - 1},
                 {((uint64_t)1 << 63) - 1, ((uint64_t)1 << 62) + 1},
                 {(uint64_t)1 << 40, ((uint64_t)1 << 30) + 7}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        filch_batch_desc desc = batch(cases[i].n, cases[i].cuts);
        filch_job_info info = {.size = sizeof info};
        filch_job *job = NULL;
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(wrong, 0);
        assert_int_equal(items, cases[i].n);
        assert_int_equal(info.total, cases[i].n);
        assert_int_equal(info.done, cases[i].n);
        assert_ok(filch_job_release(job));
    }
    /* More grains than fit 32 bits: the runtime takes multiples of what was asked for. */
    filch_batch_desc desc = batch((uint64_t)1 << 62, 3);
    filch_job *job = NULL;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_ok(filch_job_cancel(job));
    filch_status status = filch_job_wait(job, -1);
    assert_true(status == FILCH_CANCELLED || status == FILCH_OK);
    assert_int_equal(wrong, 0);
    assert_ok(filch_job_release(job));
}

static _Atomic int completions;

static void on_complete(filch_job *job, filch_status status, void *user)
{
    (void)job;
    *(filch_status *)user = status;
    ++completions;
}

static void no_items_complete_at_once(void **state)
{
    (void)state;
    filch_data *data = vector(100, 10);
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = batch(0, 1);
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    filch_status result = FILCH_INTERNAL;
    filch_item_range range;
    size_t count = 7;
    filch_job *job = NULL;
    /* Even behind a job that holds the handle. */
    filch_graph *holder = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_job *holding = NULL;
    assert_ok(filch_graph_submit(holder, NULL, &holding));
    filch_access hold = fixture_access(data, 0, FILCH_WRITE);
    fixture_add(holder, nothing, NULL, &hold, 1);
    desc.accesses = &access;
    desc.access_count = 1;
    submit.on_complete = on_complete;
    submit.user = &result;
    completions = 0;
    assert_ok(filch_batch_submit(runtime, &desc, &submit, &job));
    assert_ok(filch_job_status(job));
    assert_int_equal(completions, 1);
    assert_int_equal(result, FILCH_OK);
    assert_ok(filch_job_items(job, &range, 1, &count));
    assert_int_equal(count, 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_close(holder));
    assert_ok(filch_job_wait(holding, -1));
    assert_ok(filch_job_release(holding));
    assert_ok(filch_graph_destroy(holder));
    assert_ok(filch_data_destroy(data));
}

static void cuts_fall_on_written_tiles(void **state)
{
    (void)state;
    static const struct {
        uint64_t tile, scale, cuts, expected;
    } cases[] = {{10, 1, 1, 10}, {10, 1, 4, 20}, {12, 2, 1, 6},
                 {12, 8, 1, 3},  {7, 3, 2, 14},  {1, 1, 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        uint64_t n = 900 / cases[i].scale;
        filch_data *data = vector(4000, cases[i].tile);
        filch_batch_access access = {.data = data,
                                     .mode = FILCH_READWRITE,
                                     .map = FILCH_MAP_AFFINE,
                                     .offset = 2 * cases[i].tile,
                                     .scale = cases[i].scale};
        filch_batch_desc desc = batch(n, cases[i].cuts);
        desc.accesses = &access;
        desc.access_count = 1;
        grain = cases[i].expected;
        scale = cases[i].scale;
        offset = 2 * cases[i].tile;
        extent = 4000;
        assert_ok(run(&desc));
        assert_int_equal(wrong, 0);
        assert_int_equal(items, n);
        assert_ok(filch_data_destroy(data));
    }
}

/* Cuts of the three tiles of unlike sizes: between them, on multiples of the grain. */
static void cuts_fall_where_uneven_tiles_end(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {30, 10, 60, 20};
    static const struct {
        uint64_t offset, scale, cuts, n, chunks;
    } cases[] = {{0, 1, 1, 120, 4},  {0, 1, 1, 110, 4}, {30, 1, 1, 90, 3}, {0, 2, 1, 60, 4},
                 {0, 1, 20, 120, 3}, {0, 7, 1, 17, 1},  {0, 1, 50, 120, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        filch_data_desc made = FILCH_DATA_DESC_INIT;
        filch_data *data = NULL;
        made.ptr = buffer;
        made.element = 1;
        made.rows = 120;
        made.row_cuts = sizes;
        made.row_cut_count = 4;
        assert_ok(filch_data_create(runtime, &made, &data));
        filch_batch_access access = {.data = data,
                                     .mode = FILCH_READWRITE,
                                     .map = FILCH_MAP_AFFINE,
                                     .offset = cases[i].offset,
                                     .scale = cases[i].scale};
        filch_batch_desc desc = batch(cases[i].n, cases[i].cuts);
        desc.accesses = &access;
        desc.access_count = 1;
        grain = 1;
        scale = cases[i].scale;
        offset = cases[i].offset;
        extent = 120;
        filch_job *job = NULL;
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        uint32_t grains = fl_batch_grains(job->batch);
        assert_int_equal(grains, cases[i].chunks);
        uint64_t end = 0;
        for (uint32_t g = 0; g < grains; ++g) {
            uint64_t first, last;
            fl_batch_range(job->batch, g, g + 1, &first, &last);
            assert_int_equal(first, end);
            assert_int_equal(first % cases[i].cuts, 0);
            end = last;
        }
        assert_int_equal(end, cases[i].n);
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        access.offset = 31;
        desc.n = 9;
        assert_status(filch_batch_submit(runtime, &desc, NULL, &job), FILCH_INVALID_ARGUMENT);
        assert_ok(filch_data_destroy(data));
    }
}

static void keep_warning(filch_log_level level, const char *text, void *user)
{
    if (level == FILCH_LOG_WARNING)
        snprintf(user, WARNING_SIZE, "%s", text);
}

/* Tiles and items without a small common multiple: said once, and only where it matters. */
static void what_cannot_be_divided_is_said(void **state)
{
    (void)state;
    char warning[WARNING_SIZE];
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *two = NULL;
    config.devices = "host:2";
    config.log = keep_warning;
    config.log_user = warning;
    assert_ok(filch_runtime_create(&config, NULL, &two));
    filch_data *data = fixture_vector(two, buffer, 8, 400, 100);
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 7};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = fixture_codelet(two, "odd", fixture_nothing, 0);
    desc.accesses = &access;
    desc.access_count = 1;
    static const struct {
        uint64_t n, scale, grain;
        bool is_said;
    } cases[] = {{57, 7, 0, true},
                 {4, 100, 0, false},
                 {1, 7, 0, false},
                 {40, 1, 40, true},
                 {100, 1, 100, false}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        filch_job *job = NULL;
        warning[0] = '\0';
        desc.n = cases[i].n;
        desc.grain = cases[i].grain;
        access.scale = cases[i].scale;
        assert_ok(filch_batch_submit(two, &desc, NULL, &job));
        assert_ok(filch_job_wait(job, -1));
        assert_ok(filch_job_release(job));
        assert_int_equal(strstr(warning, "'odd' cannot be divided") != NULL, cases[i].is_said);
    }
    assert_ok(filch_runtime_abort(two));
}

static void halos_are_cut_to_the_handle(void **state)
{
    (void)state;
    filch_data *data = vector(N, 10);
    filch_batch_access access = {.data = data,
                                 .mode = FILCH_READ,
                                 .map = FILCH_MAP_AFFINE,
                                 .scale = 1,
                                 .before = 3,
                                 .after = 5};
    filch_batch_desc desc = batch(N, 17);
    desc.accesses = &access;
    desc.access_count = 1;
    before = 3;
    after = 5;
    extent = N;
    assert_ok(run(&desc));
    assert_int_equal(wrong, 0);
    access.before = access.after = before = after = UINT64_MAX / 4;
    desc = batch(N, 17);
    desc.accesses = &access;
    desc.access_count = 1;
    before = after = UINT64_MAX / 4;
    extent = N;
    assert_ok(run(&desc));
    assert_int_equal(wrong, 0);
    assert_ok(filch_data_destroy(data));
}

static void columns_of_a_matrix_are_divided(void **state)
{
    (void)state;
    filch_data_desc shape = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    shape.ptr = buffer;
    shape.element = 8;
    shape.rows = 30;
    shape.cols = 100;
    shape.ld = 40;
    shape.tile_rows = 30;
    shape.tile_cols = 4;
    assert_ok(filch_data_create(runtime, &shape, &data));
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = batch(100, 1);
    desc.accesses = &access;
    desc.access_count = 1;
    grain = 4;
    extent = 100;
    assert_ok(run(&desc));
    assert_int_equal(wrong, 0);
    assert_int_equal(items, 100);
    assert_ok(filch_data_destroy(data));
}

static int fill_view(const filch_call *call)
{
    double *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] += (double)(call->views[0].row + i);
    }
    return call->views[0].rows == call->hi - call->lo ? 0 : 1;
}

static void callback_maps_decide(void **state)
{
    (void)state;
    uint64_t n = N;
    filch_data *data = vector(N, N);
    filch_batch_access access = {.data = data,
                                 .mode = FILCH_READWRITE,
                                 .map = FILCH_MAP_CALLBACK,
                                 .fn = map_reverse,
                                 .user = &n};
    filch_batch_desc desc = batch(N, 3);
    desc.codelet = fixture_codelet(runtime, "fill", fill_view, 0);
    desc.accesses = &access;
    desc.access_count = 1;
    memset(buffer, 0, sizeof buffer);
    assert_ok(run(&desc));
    for (int i = 0; i < N; ++i) {
        assert_true(buffer[i] == i);
    }
    assert_ok(filch_data_destroy(data));
}

/* Ranges ascend, cover 0..n and agree with the totals. */
static void check_items(filch_job *job, uint64_t n)
{
    size_t count = 0, again = 0;
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_items(job, NULL, 0, &count));
    filch_item_range *ranges = calloc(count + 1, sizeof *ranges);
    ranges[count].lo = 77;
    assert_ok(filch_job_items(job, ranges, count + 1, &again));
    assert_int_equal(again, count);
    assert_int_equal(ranges[count].lo, 77);
    uint64_t at = 0, done = 0, failed = 0, skipped = 0;
    for (size_t i = 0; i < count; ++i) {
        uint64_t width = ranges[i].hi - ranges[i].lo;
        assert_int_equal(ranges[i].lo, at);
        assert_true(ranges[i].hi > ranges[i].lo);
        at = ranges[i].hi;
        done += ranges[i].status == FILCH_OK ? width : 0;
        failed += ranges[i].status == FILCH_TASK_FAILED ? width : 0;
        skipped += ranges[i].status == FILCH_SKIPPED ? width : 0;
        assert_int_equal(ranges[i].code != 0, ranges[i].status == FILCH_TASK_FAILED);
        for (uint64_t k = ranges[i].lo; k < ranges[i].hi && k < N; ++k) {
            assert_int_equal(seen[k], ranges[i].status == FILCH_SKIPPED ? 0 : 1);
        }
    }
    assert_int_equal(at, n);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.done, done);
    assert_int_equal(info.failed, failed);
    assert_int_equal(info.skipped, skipped);
    assert_int_equal(done + failed + skipped, n);
    if (count > 1) {
        filch_item_range first[1];
        assert_ok(filch_job_items(job, first, 1, &again)); /* less room than ranges */
        assert_int_equal(again, count);
        assert_memory_equal(first, ranges, sizeof first);
    }
    free(ranges);
}

static void a_failed_chunk_is_reported_with_its_items(void **state)
{
    (void)state;
    for (int on_failure = 0; on_failure < 2; ++on_failure) {
        for (int item = 0; item < N; item += 111) {
            filch_batch_desc desc = batch(N, 7);
            filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
            filch_error error = FILCH_ERROR_INIT;
            filch_job *job = NULL;
            submit.on_failure = (filch_on_failure)on_failure;
            submit.label = "sweep";
            failing = item;
            assert_ok(filch_batch_submit(runtime, &desc, &submit, &job));
            assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
            assert_ok(filch_job_error(job, &error));
            assert_int_equal(error.native_code, 100 + item);
            assert_string_equal(error.label, "body");
            assert_non_null(strstr(error.text, "'sweep'"));
            check_items(job, N);
            if (on_failure == 0) {
                filch_job_info info = {.size = sizeof info};
                assert_ok(filch_job_stats(job, &info, NULL, 0));
                assert_int_equal(info.skipped, 0);
            }
            assert_ok(filch_job_release(job));
        }
    }
}

static void cancelling_leaves_the_rest_out(void **state)
{
    (void)state;
    for (int round = 0; round < 20; ++round) {
        filch_job *job = NULL;
        filch_batch_desc desc = batch(N, 1);
        filch_runtime *one = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
        desc.codelet = fixture_codelet(one, "body", count_items, 0);
        cancel_from_inside = &job;
        assert_ok(filch_batch_submit(one, &desc, NULL, &job));
        assert_status(filch_job_wait(job, -1), FILCH_CANCELLED);
        check_items(job, N);
        assert_true(items < N);
        assert_ok(filch_job_release(job));
        assert_ok(filch_runtime_destroy(one));
        desc = batch(N, 1); /* with threads, from outside, at some time */
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        assert_ok(filch_job_cancel(job));
        filch_status status = filch_job_wait(job, -1);
        assert_int_equal(status, items == N ? FILCH_OK : FILCH_CANCELLED);
        check_items(job, N);
        assert_ok(filch_job_release(job));
    }
}

static int bump_view(const filch_call *call)
{
    double *to = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; ++i) {
        to[i] = to[i] * 2 + *(const double *)call->args;
    }
    return 0;
}

static void batches_on_one_handle_run_in_order(void **state)
{
    (void)state;
    filch_data *data = vector(N, 8);
    filch_codelet *bump = fixture_codelet(runtime, "bump", bump_view, sizeof(double));
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_job *last = NULL;
    double expected = 0;
    memset(buffer, 0, sizeof buffer);
    for (int i = 0; i < 40; ++i) {
        filch_batch_desc desc = batch(N, 1);
        double x = i % 3;
        desc.codelet = bump;
        desc.args = &x;
        desc.accesses = &access;
        desc.access_count = 1;
        expected = expected * 2 + x;
        assert_ok(filch_batch_submit(runtime, &desc, NULL, i == 39 ? &last : NULL));
    }
    assert_ok(filch_job_wait(last, -1));
    for (int i = 0; i < N; ++i) {
        assert_true(buffer[i] == expected);
    }
    assert_ok(filch_job_release(last));
    assert_ok(filch_runtime_drain(runtime, -1));
    assert_ok(filch_data_destroy(data));
}

static void many_short_batches_come_and_go(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; ++i) {
        filch_batch_desc desc = batch((uint64_t)(i % 5 + 1), 1);
        assert_ok(run(&desc));
        assert_int_equal(items, i % 5 + 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_batches_are_refused),
        cmocka_unit_test(bad_accesses_are_refused),
        cmocka_unit_test(every_item_runs_once),
        cmocka_unit_test(huge_ranges_are_covered),
        cmocka_unit_test(no_items_complete_at_once),
        cmocka_unit_test(cuts_fall_on_written_tiles),
        cmocka_unit_test(cuts_fall_where_uneven_tiles_end),
        cmocka_unit_test(what_cannot_be_divided_is_said),
        cmocka_unit_test(halos_are_cut_to_the_handle),
        cmocka_unit_test(columns_of_a_matrix_are_divided),
        cmocka_unit_test(callback_maps_decide),
        cmocka_unit_test(a_failed_chunk_is_reported_with_its_items),
        cmocka_unit_test(cancelling_leaves_the_rest_out),
        cmocka_unit_test(batches_on_one_handle_run_in_order),
        cmocka_unit_test(many_short_batches_come_and_go),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
