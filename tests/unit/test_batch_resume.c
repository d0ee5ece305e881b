/* SPDX-License-Identifier: Apache-2.0 */
/* Resumed batches: what is left of one is run, and nothing else, on the devices that may. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdlib.h>
#include <string.h>

#include "filch/filch.h"

#define N 1000
#define DEVICES 3

static filch_runtime *runtime;
static filch_codelet *body;

/* What the body does and finds. */
static _Atomic int ran[N];     /* successes of each item */
static _Atomic bool bad[N];    /* the chunk of such an item fails */
static _Atomic uint64_t works; /* sums of what the work function was asked about */
static _Atomic int wrong;
static _Atomic int cancel_after; /* chunks; 0: never */
static filch_job **cancelled;
static uint64_t grain, total;
static uint32_t code; /* that the arguments hold, and failures return */

static int run_items(const filch_call *call)
{
    uint32_t given;
    memcpy(&given, call->args, sizeof given);
    wrong += given != code || call->lo % grain != 0 || call->hi > total ||
             (call->hi % grain != 0 && call->hi != total);
    if (cancel_after != 0 && --cancel_after == 0) {
        wrong += filch_job_cancel(*cancelled) != FILCH_OK;
    }
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        wrong += ran[i] != 0; /* it had finished before */
        if (bad[i]) {
            return (int)given;
        }
    }
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        ++ran[i];
    }
    return 0;
}

static int set_up(void **state)
{
    (void)state;
    runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, NULL);
    body = fixture_codelet(runtime, "body", run_items, sizeof code);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static filch_batch_desc batch(uint64_t n, uint64_t cuts)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = body;
    desc.args = &code;
    desc.n = total = n;
    desc.grain = grain = cuts;
    code = 77;
    for (int i = 0; i < N; ++i) {
        ran[i] = 0;
        bad[i] = false;
    }
    wrong = cancel_after = 0;
    return desc;
}

static filch_job *submit(const filch_batch_desc *desc, filch_status result)
{
    filch_job *job = NULL;
    assert_ok(filch_batch_submit(runtime, desc, NULL, &job));
    assert_status(filch_job_wait(job, -1), result);
    return job;
}

/* Gives the old job back before the new one is waited for. */
static filch_job *resume(filch_job *job, const filch_resume_desc *desc, filch_status result)
{
    filch_job *rest = NULL;
    assert_ok(filch_job_resume(job, desc, NULL, &rest));
    assert_ok(filch_job_release(job));
    assert_status(filch_job_wait(rest, -1), result);
    return rest;
}

static filch_job_info stats(filch_job *job, filch_device_stats *devices, uint32_t count)
{
    filch_job_info info = {.size = sizeof info};
    assert_ok(filch_job_stats(job, &info, devices, count));
    return info;
}

/* Of a job that is complete: items are told of by their numbers, and agree with the totals and with
 * what the body saw. Returns how many are left. */
static uint64_t check_items(filch_job *job, uint64_t given)
{
    static filch_item_range ranges[2 * N];
    size_t count = 0;
    uint64_t at = 0, left = 0;
    assert_ok(filch_job_items(job, ranges, 2 * N, &count));
    for (size_t i = 0; i < count; ++i) {
        assert_int_equal(ranges[i].lo, at);
        at = ranges[i].hi;
        left += ranges[i].status != FILCH_OK ? ranges[i].hi - ranges[i].lo : 0;
        assert_int_equal(ranges[i].code, ranges[i].status == FILCH_TASK_FAILED ? code : 0);
        for (uint64_t k = ranges[i].lo; k < ranges[i].hi; ++k) {
            assert_int_equal(ran[k], ranges[i].status == FILCH_OK);
        }
    }
    assert_int_equal(at, total);
    filch_job_info info = stats(job, NULL, 0);
    assert_int_equal(info.total, given);
    assert_int_equal(info.failed + info.skipped, left);
    assert_int_equal(info.done, given - left);
    assert_int_equal(wrong, 0);
    return left;
}

/* --- What is refused --- */

static void refused(filch_job *job, const filch_resume_desc *desc, const filch_submit_desc *how,
                    filch_status expected)
{
    filch_job *rest = NULL;
    assert_status(filch_job_resume(job, desc, how, &rest), expected);
    assert_null(rest);
    assert_int_equal(fixture_error(runtime).status, expected);
    assert_string_equal(fixture_error(runtime).call, "filch_job_resume");
}

static void bad_calls_are_refused(void **state)
{
    (void)state;
    filch_batch_desc desc = batch(100, 1);
    bad[50] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    uint64_t left = check_items(job, 100);
    static const uint32_t devices[] = {1, DEVICES};
    const filch_resume_desc good = FILCH_RESUME_DESC_INIT;
    filch_resume_desc how = good;
    assert_status(filch_job_resume(NULL, NULL, NULL, NULL), FILCH_INVALID_HANDLE);
    how.size = sizeof how - 1;
    refused(job, &how, NULL, FILCH_INVALID_ARGUMENT);
    how = good;
    how.device_count = 1;
    refused(job, &how, NULL, FILCH_INVALID_ARGUMENT);
    how = good;
    how.reserved = 1;
    refused(job, &how, NULL, FILCH_INVALID_ARGUMENT);
    how = good;
    how.devices = devices;
    how.device_count = 2;
    refused(job, &how, NULL, FILCH_BAD_INDEX);
    how.device_count = 0;
    refused(job, &how, NULL, FILCH_NO_DEVICE);
    filch_submit_desc submission = FILCH_SUBMIT_DESC_INIT;
    submission.reserved = 1;
    refused(job, NULL, &submission, FILCH_INVALID_ARGUMENT);
    bad[50] = false;
    job = resume(job, NULL, FILCH_OK); /* none of these was the one time that it can be */
    assert_int_equal(check_items(job, left), 0);
    assert_ok(filch_job_release(job));
}

static int hold_until_told(const filch_call *call)
{
    _Atomic int *told;
    memcpy(&told, call->args, sizeof told);
    return fixture_await(told, 1) ? 0 : 1;
}

static void only_complete_batches_are_resumed(void **state)
{
    (void)state;
    _Atomic int told = 0;
    _Atomic int *at = &told;
    filch_codelet *holds = fixture_codelet(runtime, "holds", hold_until_told, sizeof at);
    filch_batch_desc desc = batch(1, 1);
    desc.codelet = holds;
    desc.args = &at;
    filch_job *job = NULL;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    refused(job, NULL, NULL, FILCH_WRONG_STATE);
    told = 1;
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_job_release(job));
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(graph, holds, &at, NULL, 0);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, -1));
    refused(job, NULL, NULL, FILCH_WRONG_STATE);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

static void a_job_is_resumed_once(void **state)
{
    (void)state;
    filch_batch_desc desc = batch(N, 3);
    bad[500] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED), *rest = NULL;
    bad[500] = false;
    assert_ok(filch_job_resume(job, NULL, NULL, &rest));
    refused(job, NULL, NULL, FILCH_WRONG_STATE);
    assert_ok(filch_job_wait(rest, -1));
    refused(job, NULL, NULL, FILCH_WRONG_STATE);
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(rest));
    /* Its memory is another's now. */
    desc = batch(N, 3);
    bad[500] = true;
    job = submit(&desc, FILCH_TASK_FAILED);
    bad[500] = false;
    job = resume(job, NULL, FILCH_OK);
    assert_ok(filch_job_release(job));
}

static void what_the_host_has_acquired_is_busy(void **state)
{
    (void)state;
    static double buffer[N];
    filch_data *data = fixture_vector(runtime, buffer, 8, N, N);
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = batch(N, 3);
    desc.accesses = &access;
    desc.access_count = 1;
    bad[4] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    uint64_t left = check_items(job, N);
    bad[4] = false;
    assert_ok(filch_data_acquire(data, FILCH_READWRITE));
    refused(job, NULL, NULL, FILCH_BUSY);
    assert_ok(filch_data_release(data));
    job = resume(job, NULL, FILCH_OK);
    assert_int_equal(check_items(job, left), 0);
    assert_ok(filch_job_release(job));
    assert_ok(filch_data_destroy(data));
}

#ifndef NDEBUG
/* Debug builds remember dead handles. */
static void destroyed_handles_are_refused(void **state)
{
    (void)state;
    static double buffer[N];
    filch_data *data = fixture_vector(runtime, buffer, 8, N, N);
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = batch(N, 3);
    desc.accesses = &access;
    desc.access_count = 1;
    bad[4] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    assert_ok(filch_data_destroy(data));
    refused(job, NULL, NULL, FILCH_INVALID_HANDLE);
    assert_ok(filch_job_release(job));
    assert_status(filch_job_resume(job, NULL, NULL, &job), FILCH_INVALID_HANDLE);
}
#endif

/* --- What is run --- */

static void what_failed_is_run_again(void **state)
{
    (void)state;
    static const uint64_t grains[] = {1, 7, 64, 999, 1000};
    for (size_t g = 0; g < sizeof grains / sizeof *grains; ++g) {
        for (uint64_t n = N - 3; n <= N; ++n) {
            filch_batch_desc desc = batch(n, grains[g]);
            for (uint64_t i = 0; i < n; i += 97) {
                bad[i] = true;
            }
            bad[n - 1] = true;
            filch_job *job = submit(&desc, FILCH_TASK_FAILED);
            uint64_t left = check_items(job, n);
            assert_true(left >= n / 97);
            for (uint64_t i = 0; i < n; ++i) {
                bad[i] = false;
            }
            job = resume(job, NULL, FILCH_OK);
            assert_int_equal(check_items(job, left), 0);
            assert_ok(filch_job_release(job));
        }
    }
}

/* Every second grain is left, so chunks are of one, however long they would be. */
static void gaps_are_kept(void **state)
{
    (void)state;
    filch_batch_desc desc = batch(N, 1);
    for (uint64_t i = 0; i < N; ++i) {
        bad[i] = i % 2 == 0;
    }
    /* The odd ones fail with their neighbours, until they are in a chunk without. */
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    uint64_t left = check_items(job, N);
    for (int round = 0; round < 10; ++round) {
        job = resume(job, NULL, FILCH_TASK_FAILED);
        left = check_items(job, left);
    }
    for (uint64_t i = 0; i < N; ++i) {
        bad[i] = false;
    }
    job = resume(job, NULL, FILCH_OK);
    assert_int_equal(check_items(job, left), 0);
    assert_ok(filch_job_release(job));
}

static void cancelled_items_are_run(void **state)
{
    (void)state;
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    for (int round = 0; round < 100; ++round) {
        filch_job *job = NULL, *rest = NULL;
        filch_batch_desc desc = batch(N, 1);
        how.on_failure = round % 2 == 0 ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
        bad[N / 2] = round % 2 != 0;
        assert_ok(filch_batch_submit(runtime, &desc, &how, &job));
        if (round % 2 == 0) {
            assert_ok(filch_job_cancel(job));
        }
        (void)filch_job_wait(job, -1);
        uint64_t left = check_items(job, N);
        bad[N / 2] = false;
        /* The rest is cancelled, too, after some chunks. */
        cancelled = &rest;
        cancel_after = 1 + round % 3;
        filch_status expected = left != 0 ? FILCH_CANCELLED : FILCH_OK;
        assert_ok(filch_job_resume(job, NULL, NULL, &rest));
        assert_ok(filch_job_release(job));
        filch_status result = filch_job_wait(rest, -1);
        assert_true(result == expected || result == FILCH_OK);
        cancel_after = 0;
        uint64_t less = check_items(rest, left);
        rest = resume(rest, NULL, FILCH_OK);
        assert_int_equal(check_items(rest, less), 0);
        assert_ok(filch_job_release(rest));
    }
}

static void resumes_end(void **state)
{
    (void)state;
    filch_batch_desc desc = batch(N, 4);
    for (uint64_t i = 0; i < N; i += 50) {
        bad[i] = true;
    }
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    uint64_t left = check_items(job, N);
    for (uint64_t i = 0; i < N; i += 50) { /* one of them is healed at a time */
        bad[i] = false;
        job = resume(job, NULL, i + 50 < N ? FILCH_TASK_FAILED : FILCH_OK);
        uint64_t less = check_items(job, left);
        assert_true(less <= left); /* a chunk may hold the healed one and others */
        left = less;
    }
    assert_int_equal(left, 0);
    assert_ok(filch_job_release(job));
}

static void errors_tell_of_the_items_by_their_numbers(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    filch_batch_desc desc = batch(N, 1000);
    desc.grain = grain = 10;
    bad[N - 1] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED);
    job = resume(job, NULL, FILCH_TASK_FAILED);
    assert_ok(filch_job_error(job, &error));
    assert_non_null(strstr(error.text, " to 999 of job 'body' returned 77"));
    assert_ok(filch_job_release(job));
}

/* --- Nothing left --- */

static _Atomic int completions;

static void on_complete(filch_job *job, filch_status status, void *user)
{
    (void)job;
    *(filch_status *)user = status;
    ++completions;
}

static void nothing_left_is_complete_at_once(void **state)
{
    (void)state;
    static double buffer[N];
    filch_data *data = fixture_vector(runtime, buffer, 8, N, N);
    filch_batch_access access = {
        .data = data, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    filch_status result = FILCH_INTERNAL;
    filch_item_range range;
    size_t count = 0;
    how.on_complete = on_complete;
    how.user = &result;
    for (uint64_t n = 0; n <= N; n += N) {
        filch_batch_desc desc = batch(n, 1);
        desc.accesses = &access;
        desc.access_count = 1;
        filch_job *job = submit(&desc, FILCH_OK), *rest = NULL;
        completions = 0;
        assert_ok(filch_data_acquire(data, FILCH_READ)); /* which it does not mind */
        assert_ok(filch_job_resume(job, NULL, &how, &rest));
        assert_ok(filch_job_release(job));
        assert_ok(filch_job_status(rest));
        assert_int_equal(completions, 1);
        assert_int_equal(result, FILCH_OK);
        assert_ok(filch_data_release(data));
        assert_int_equal(check_items(rest, 0), 0);
        assert_ok(filch_job_items(rest, &range, 1, &count));
        assert_int_equal(count, n != 0);
        rest = resume(rest, NULL, FILCH_OK); /* nothing of nothing */
        assert_ok(filch_job_release(rest));
    }
    assert_ok(filch_data_destroy(data));
}

/* --- Devices --- */

static void only_named_devices_run_it(void **state)
{
    (void)state;
    static const filch_policy policies[] = {FILCH_POLICY_STEAL, FILCH_POLICY_STATIC};
    filch_runtime *kept = runtime;
    filch_codelet *kept_body = body;
    for (int p = 0; p < 2; ++p) {
        filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
        config.devices = "host:3";
        config.policy = policies[p];
        config.drive = FILCH_DRIVE_THREADS;
        assert_ok(filch_runtime_create(&config, NULL, &runtime));
        body = fixture_codelet(runtime, "body", run_items, sizeof code);
        for (uint32_t set = 1; set < 1u << DEVICES; ++set) {
            uint32_t named[DEVICES + 1];
            filch_resume_desc how = FILCH_RESUME_DESC_INIT;
            how.devices = named;
            for (uint32_t d = DEVICES; d-- > 0;) {
                named[how.device_count] = d;
                how.device_count += set >> d & 1;
            }
            named[how.device_count] = named[0]; /* twice is once */
            ++how.device_count;
            filch_batch_desc desc = batch(N, 1);
            filch_job *job = NULL, *rest = NULL;
            filch_device_stats devices[DEVICES];
            assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
            assert_ok(filch_job_cancel(job));
            (void)filch_job_wait(job, -1);
            uint64_t left = check_items(job, N);
            rest = resume(job, &how, FILCH_OK);
            memset(named, 0xff, sizeof named);
            assert_int_equal(check_items(rest, left), 0);
            (void)stats(rest, devices, DEVICES);
            uint64_t items = 0;
            for (uint32_t d = 0; d < DEVICES; ++d) {
                items += devices[d].items;
                assert_true((set >> d & 1) != 0 || devices[d].items == 0);
            }
            assert_int_equal(items, left);
            assert_ok(filch_job_release(rest));
        }
        assert_ok(filch_runtime_destroy(runtime));
    }
    runtime = kept;
    body = kept_body;
}

/* --- Data --- */

static void map_reverse(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    uint64_t n = *(const uint64_t *)user;
    *first = n - hi;
    *last = n - lo;
}

/* to[i] += sum of from[i - 1 .. i + 1]; fails before it writes. */
static int add_around(const filch_call *call)
{
    double *to = call->views[0].ptr;
    const double *from = call->views[1].ptr;
    uint64_t first = call->views[0].row, rows = call->views[0].rows;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        if (bad[i]) {
            return 1;
        }
    }
    wrong += rows != call->hi - call->lo;
    for (uint64_t i = first; i < first + rows; ++i) {
        for (uint64_t k = i == 0 ? 0 : i - 1; k < N && k <= i + 1; ++k) {
            wrong += k < call->views[1].row || k >= call->views[1].row + call->views[1].rows;
            to[i - first] += from[k - call->views[1].row];
        }
    }
    return 0;
}

static void two_jobs_make_what_one_does(void **state)
{
    (void)state;
    static double to[N], from[N], expected[N];
    uint64_t n = N;
    filch_data *handles[2] = {fixture_vector(runtime, to, 8, N, 7),
                              fixture_vector(runtime, from, 8, N, N)};
    filch_codelet *adds = fixture_codelet(runtime, "add", add_around, 0);
    for (int callback = 0; callback < 2; ++callback) {
        filch_batch_access accesses[2] = {
            {.data = handles[0], .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
            {.data = handles[1],
             .mode = FILCH_READ,
             .map = FILCH_MAP_AFFINE,
             .scale = 1,
             .before = 1,
             .after = 1}};
        if (callback != 0) {
            accesses[0].map = FILCH_MAP_CALLBACK;
            accesses[0].fn = map_reverse;
            accesses[0].user = &n;
            accesses[1].map = FILCH_MAP_WHOLE;
        }
        filch_batch_desc desc = batch(N, 1);
        desc.codelet = adds;
        desc.args = NULL;
        desc.accesses = accesses;
        desc.access_count = 2;
        for (int i = 0; i < N; ++i) {
            to[i] = i;
            from[i] = i % 10;
        }
        for (int i = 0; i < N; ++i) {
            expected[i] = i + (i != 0 ? from[i - 1] : 0) + from[i] + (i != N - 1 ? from[i + 1] : 0);
        }
        for (int i = 0; i < N; i += 150) {
            bad[i] = true;
        }
        filch_job *job = submit(&desc, FILCH_TASK_FAILED);
        assert_memory_not_equal(to, expected, sizeof to);
        for (int i = 0; i < N; ++i) {
            bad[i] = false;
        }
        memset(accesses, 0xff, sizeof accesses);
        job = resume(job, NULL, FILCH_OK);
        assert_ok(filch_job_release(job));
        assert_int_equal(wrong, 0);
        assert_memory_equal(to, expected, sizeof to);
    }
    assert_ok(filch_data_destroy(handles[0]));
    assert_ok(filch_data_destroy(handles[1]));
}

/* A later job on the same handle runs before the rest, one submitted after it behind. */
static void the_rest_takes_its_turn(void **state)
{
    (void)state;
    static double to[N], from[N];
    filch_data *handles[2] = {fixture_vector(runtime, to, 8, N, 1),
                              fixture_vector(runtime, from, 8, N, N)};
    filch_batch_access accesses[2] = {
        {.data = handles[0], .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = handles[1], .mode = FILCH_READ, .map = FILCH_MAP_WHOLE}};
    filch_batch_desc desc = batch(N, 1);
    desc.codelet = fixture_codelet(runtime, "add", add_around, 0);
    desc.args = NULL;
    desc.accesses = accesses;
    desc.access_count = 2;
    memset(to, 0, sizeof to);
    for (int i = 0; i < N; ++i) {
        from[i] = 1;
    }
    bad[N / 2] = true;
    filch_job *job = submit(&desc, FILCH_TASK_FAILED), *rest = NULL, *last = NULL;
    bad[N / 2] = false;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, NULL));
    assert_ok(filch_job_resume(job, NULL, NULL, &rest));
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &last));
    assert_ok(filch_job_wait(last, -1));
    /* What it wrote is there; it may tell so a moment after it let the next one start. */
    assert_ok(filch_job_wait(rest, -1));
    for (int i = 0; i < N; ++i) {
        assert_true(to[i] == (i == 0 || i == N - 1 ? 6 : 9));
    }
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(rest));
    assert_ok(filch_job_release(last));
    assert_ok(filch_data_destroy(handles[0]));
    assert_ok(filch_data_destroy(handles[1]));
}

/* --- From callbacks --- */

static _Atomic int victim_order, over;

/* Resumes until all is done, with nothing kept by anybody. */
static void resume_itself(filch_job *job, filch_status status, void *user)
{
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.on_complete = resume_itself;
    how.user = user;
    if (status == FILCH_OK) {
        over = 1;
        return;
    }
    for (int i = 0; i < N; ++i) {
        if (bad[i]) {
            bad[i] = false;
            break;
        }
    }
    ++victim_order;
    wrong += filch_job_resume(job, NULL, &how, NULL) != FILCH_OK;
    wrong += filch_job_resume(job, NULL, &how, NULL) != FILCH_WRONG_STATE;
}

static void a_callback_may_resume(void **state)
{
    (void)state;
    filch_batch_desc desc = batch(N, 1);
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    for (int i = 100; i < N; i += 100) {
        bad[i] = true;
    }
    how.on_complete = resume_itself;
    victim_order = over = 0;
    assert_ok(filch_batch_submit(runtime, &desc, &how, NULL));
    assert_true(fixture_await(&over, 1));
    assert_int_equal(victim_order, 9);
    assert_int_equal(wrong, 0);
    for (int i = 0; i < N; ++i) {
        assert_int_equal(ran[i], 1);
    }
    assert_ok(filch_runtime_drain(runtime, -1));
}

/* --- Work, memory --- */

/* Declares three an item, of items that have not finished. */
static double work_left(const filch_call *call)
{
    wrong += call->lo >= call->hi || call->hi > total;
    for (uint64_t i = call->lo; i < call->hi && i < total; ++i) {
        wrong += ran[i] != 0;
    }
    ++works;
    return 3.0 * (double)(call->hi - call->lo);
}

/* In poll mode, where nothing finishes while another device asks. */
static void work_is_asked_for_of_what_is_left(void **state)
{
    (void)state;
    filch_runtime *polled = fixture_runtime("host:3", FILCH_DRIVE_POLL, NULL);
    filch_codelet_desc made = FILCH_CODELET_DESC_INIT;
    filch_batch_desc desc = batch(N, 1);
    made.name = "works";
    made.host = run_items;
    made.work = work_left;
    made.arg_size = sizeof code;
    assert_ok(filch_codelet_create(polled, &made, &desc.codelet));
    for (int i = 0; i < N; i += 9) {
        bad[i] = true;
    }
    filch_job *job = NULL, *rest = NULL;
    assert_ok(filch_batch_submit(polled, &desc, NULL, &job));
    assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
    uint64_t left = check_items(job, N);
    for (int i = 0; i < N; ++i) {
        bad[i] = false;
    }
    works = 0;
    assert_ok(filch_job_resume(job, NULL, NULL, &rest));
    assert_ok(filch_job_wait(rest, -1));
    assert_true(works != 0);
    assert_int_equal(check_items(rest, left), 0);
    filch_device_stats devices[DEVICES];
    (void)stats(rest, devices, DEVICES);
    double work = devices[0].work + devices[1].work + devices[2].work;
    assert_true(work == 3.0 * (double)left);
    assert_ok(filch_job_release(job));
    assert_ok(filch_job_release(rest));
    assert_ok(filch_runtime_destroy(polled));
}

static void without_memory_the_job_can_be_resumed_later(void **state)
{
    (void)state;
    fixture_memory memory;
    fixture_memory_init(&memory);
    filch_runtime *kept = runtime;
    runtime = fixture_runtime("host:3", FILCH_DRIVE_THREADS, &memory);
    int failures = 0;
    for (int64_t nth = 1; nth < 10; ++nth) {
        filch_job *job = NULL, *rest = NULL;
        filch_batch_desc desc = batch(N, 1);
        desc.codelet = fixture_codelet(runtime, "body", run_items, sizeof code);
        bad[1] = bad[N - 1] = true;
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        assert_status(filch_job_wait(job, -1), FILCH_TASK_FAILED);
        uint64_t left = check_items(job, N);
        bad[1] = bad[N - 1] = false;
        fixture_memory_fail_after(&memory, nth);
        filch_status status = filch_job_resume(job, NULL, NULL, &rest);
        fixture_memory_fail_after(&memory, 0);
        if (status != FILCH_OK) {
            assert_int_equal(status, FILCH_OUT_OF_MEMORY);
            assert_null(rest);
            ++failures;
            assert_ok(filch_job_resume(job, NULL, NULL, &rest));
        }
        assert_ok(filch_job_wait(rest, -1));
        assert_int_equal(check_items(rest, left), 0);
        assert_ok(filch_job_release(job));
        assert_ok(filch_job_release(rest));
    }
    assert_true(failures > 0);
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
    runtime = kept;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(only_complete_batches_are_resumed),
        cmocka_unit_test(a_job_is_resumed_once),
        cmocka_unit_test(what_the_host_has_acquired_is_busy),
#ifndef NDEBUG
        cmocka_unit_test(destroyed_handles_are_refused),
#endif
        cmocka_unit_test(what_failed_is_run_again),
        cmocka_unit_test(gaps_are_kept),
        cmocka_unit_test(cancelled_items_are_run),
        cmocka_unit_test(resumes_end),
        cmocka_unit_test(errors_tell_of_the_items_by_their_numbers),
        cmocka_unit_test(nothing_left_is_complete_at_once),
        cmocka_unit_test(only_named_devices_run_it),
        cmocka_unit_test(two_jobs_make_what_one_does),
        cmocka_unit_test(the_rest_takes_its_turn),
        cmocka_unit_test(a_callback_may_resume),
        cmocka_unit_test(work_is_asked_for_of_what_is_left),
        cmocka_unit_test(without_memory_the_job_can_be_resumed_later),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
