/* SPDX-License-Identifier: Apache-2.0 */
/* Back-pressure of open graphs: adds wait at a limit, waits for few live tasks end, and tasks that
 * add and wait never keep each other from going on. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>

static filch_runtime *runtime;
static filch_codelet *count, *gate, *code;
static _Atomic int64_t added, ended;
static _Atomic int gate_open, gate_entered;
static int64_t cells[64];

static int count_end(const filch_call *call)
{
    (void)call;
    ++ended;
    return 0;
}

static int wait_at_gate(const filch_call *call)
{
    (void)call;
    ++gate_entered;
    int failed = !fixture_await(&gate_open, 1);
    ++ended;
    return failed;
}

static int return_code(const filch_call *call)
{
    ++ended;
    return *(const int *)call->args;
}

static void begin(const char *devices, filch_drive drive)
{
    runtime = fixture_runtime(devices, drive, NULL);
    count = fixture_codelet(runtime, "count", count_end, 0);
    gate = fixture_codelet(runtime, "gate", wait_at_gate, 0);
    code = fixture_codelet(runtime, "code", return_code, sizeof(int));
    added = ended = 0;
    gate_open = gate_entered = 0;
    memset(cells, 0, sizeof cells);
}

static filch_graph *limited(uint64_t most)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    desc.label = "limited";
    desc.max_live = most;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

static filch_job *submit(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

static void finish(filch_graph *graph, filch_job *job, filch_status expected, uint64_t total)
{
    filch_job_info info = FILCH_JOB_INFO_INIT;
    assert_ok(filch_graph_close(graph));
    assert_status(filch_job_wait(job, PATIENCE), expected);
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_int_equal(info.total, total);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_destroy(graph));
}

/* Any thread. */
static filch_status add(filch_graph *graph, filch_codelet *codelet, const void *args,
                        const filch_access *access)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.args = args;
    desc.accesses = access;
    desc.access_count = access != NULL;
    return filch_graph_add(graph, &desc, NULL);
}

/* --- What is refused --- */

static void wrong_calls_are_refused(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.max_live = 1;
    assert_status(filch_graph_create(runtime, &desc, &graph), FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "max_live"));
    /* A program compiled with an older header has no limit. */
    desc.kind = FILCH_GRAPH_OPEN;
    desc.size = offsetof(filch_graph_desc, max_live);
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    assert_status(filch_graph_wait_below(graph, 1, -1), FILCH_WRONG_STATE); /* not submitted */
    assert_non_null(strstr(fixture_error(runtime).text, "not submitted"));
    filch_job *job = submit(graph);
    assert_status(filch_graph_wait_below(graph, 0, -1), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_wait_below(graph, 1, (double)NAN), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_wait_below(NULL, 1, -1), FILCH_INVALID_HANDLE);
    assert_ok(filch_graph_wait_below(graph, 1, -1)); /* no task yet */
    assert_ok(filch_graph_close(graph));
    assert_ok(filch_job_wait(job, -1));
    assert_ok(filch_graph_wait_below(graph, 1, -1)); /* complete */
    assert_ok(filch_job_release(job));
    filch_graph *closed = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    assert_status(filch_graph_wait_below(closed, 1, -1), FILCH_WRONG_STATE);
    assert_string_equal(fixture_error(runtime).text, "the graph is not open");
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Threads of the host --- */

/* A task may count its end before filch does, so no more tasks seem live than are. */
static void add_many(filch_graph *graph, int64_t total, int64_t most)
{
    for (int64_t i = 0; i < total; ++i) {
        fixture_add(graph, count, NULL, NULL, 0);
        assert_true(++added - ended <= most);
    }
}

/* Nobody else runs the tasks: without a limit all of them would be live. */
static void an_add_drives_the_workers(void **state)
{
    (void)state;
    begin("host:3", FILCH_DRIVE_POLL);
    for (int64_t most = 1; most <= 64; most *= 4) {
        filch_graph *graph = limited((uint64_t)most);
        filch_job *job = submit(graph);
        added = ended = 0;
        add_many(graph, 1000, most);
        finish(graph, job, FILCH_OK, 1000);
    }
    assert_ok(filch_runtime_destroy(runtime));
}

/* The call waits on its way: the tasks are never live all at once. */
static void many_in_one_call_keep_to_the_limit(void **state)
{
    (void)state;
    enum { MANY = 500 };
    static filch_task_desc descs[MANY];
    begin("host:2", FILCH_DRIVE_POLL);
    filch_graph *graph = limited(4);
    filch_job *job = submit(graph);
    size_t in_graph = 0;
    for (int i = 0; i < MANY; ++i) {
        descs[i] = (filch_task_desc)FILCH_TASK_DESC_INIT;
        descs[i].codelet = count;
    }
    assert_ok(filch_graph_add_many(graph, descs, MANY, NULL, &in_graph));
    assert_int_equal(in_graph, MANY);
    assert_true(ended >= MANY - 4);
    finish(graph, job, FILCH_OK, MANY);
    assert_ok(filch_runtime_destroy(runtime));
}

static void a_wait_drives_the_workers(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_POLL);
    filch_graph *graph = limited(0);
    filch_job *job = submit(graph);
    filch_job_info info = FILCH_JOB_INFO_INIT;
    add_many(graph, 100, 100);
    assert_ok(filch_graph_wait_below(graph, 101, -1));
    assert_int_equal(ended, 0);
    assert_ok(filch_graph_wait_below(graph, 40, -1));
    assert_ok(filch_job_stats(job, &info, NULL, 0));
    assert_true(info.total - info.done < 40);
    assert_ok(filch_graph_wait_below(graph, 1, -1));
    assert_int_equal(ended, 100);
    finish(graph, job, FILCH_OK, 100);
    assert_ok(filch_runtime_destroy(runtime));
}

static void on_a_virtual_clock(void **state)
{
    (void)state;
    begin("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT);
    filch_graph *graph = limited(8);
    filch_job *job = submit(graph);
    add_many(graph, 200, 8);
    assert_ok(filch_graph_wait_below(graph, 2, -1));
    assert_true(ended >= 199);
    finish(graph, job, FILCH_OK, 200);
    assert_ok(filch_runtime_destroy(runtime));
}

typedef struct adder {
    filch_graph *graph;
    int64_t total, most;
    filch_status status;
    bool is_over_limit;
} adder;

static void *add_in_thread(void *user)
{
    adder *a = user;
    for (int64_t i = 0; i < a->total && a->status == FILCH_OK; ++i) {
        a->status = add(a->graph, count, NULL, NULL);
        added += a->status == FILCH_OK;
        /* Others add meanwhile; the ends are counted no later than filch does. */
        int64_t seen = added;
        a->is_over_limit = a->is_over_limit || seen - ended > a->most;
    }
    return NULL;
}

static void threads_share_a_limit(void **state)
{
    (void)state;
    enum { THREADS = 4, EACH = 5000 };
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_graph *graph = limited(7);
    filch_job *job = submit(graph);
    adder adders[THREADS];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        adders[i] = (adder){.graph = graph, .total = EACH, .most = 7};
        assert_int_equal(pthread_create(&threads[i], NULL, add_in_thread, &adders[i]), 0);
    }
    for (int i = 0; i < THREADS; ++i) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(adders[i].status);
        assert_false(adders[i].is_over_limit);
    }
    assert_ok(filch_graph_wait_below(graph, 1, PATIENCE));
    assert_int_equal(ended, THREADS * EACH);
    finish(graph, job, FILCH_OK, THREADS * EACH);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- What ends a wait --- */

typedef enum ending { BY_CANCEL, BY_CLOSE, BY_FAILURE, BY_FINISH } ending;

typedef struct waiter {
    filch_graph *graph;
    bool adds;
    _Atomic int begun;
    filch_status status;
} waiter;

static void *wait_in_thread(void *user)
{
    waiter *w = user;
    ++w->begun;
    w->status =
        w->adds ? add(w->graph, count, NULL, NULL) : filch_graph_wait_below(w->graph, 1, PATIENCE);
    return NULL;
}

static _Atomic int told; /* an ending + 1 */

/* Fails, or finishes the job, when told, and lives on behind the gate. */
static int end_when_told(const filch_call *call)
{
    ++gate_entered;
    int failed = !fixture_await(&told, 1);
    if (told == BY_FINISH + 1) {
        failed += filch_call_finish(call) != FILCH_OK;
    }
    ++ended;
    return failed != 0 || told == BY_FAILURE + 1;
}

/* Two tasks are live; one of them stays until the waits have ended. */
static void a_wait_is_ended(ending how)
{
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_graph *graph = limited(2);
    filch_job *job = NULL;
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    filch_codelet *teller = fixture_codelet(runtime, "teller", end_when_told, 0);
    filch_access access =
        fixture_access(fixture_vector(runtime, cells, 8, 1, 1), 0, FILCH_READWRITE);
    desc.on_failure = FILCH_FAILURE_CANCEL;
    told = 0;
    assert_ok(filch_graph_submit(graph, &desc, &job));
    fixture_add(graph, gate, NULL, NULL, 0);
    fixture_add(graph, teller, NULL, how == BY_FINISH ? NULL : &access, how != BY_FINISH);
    assert_true(fixture_await(&gate_entered, 2));
    waiter waiters[2] = {{.graph = graph, .adds = true}, {.graph = graph}};
    pthread_t threads[2];
    for (int i = 0; i < 2; ++i) {
        assert_int_equal(pthread_create(&threads[i], NULL, wait_in_thread, &waiters[i]), 0);
        assert_true(fixture_await(&waiters[i].begun, 1));
    }
    if (how == BY_CANCEL) {
        assert_ok(filch_job_cancel(job));
    } else if (how == BY_CLOSE) {
        assert_ok(filch_graph_close(graph));
    } else {
        told = (int)how + 1;
    }
    assert_int_equal(pthread_join(threads[0], NULL), 0);
    assert_status(waiters[0].status, FILCH_WRONG_STATE);
    assert_int_equal(gate_open, 0);
    told = told == 0 ? BY_CANCEL + 1 : (int)told;
    gate_open = how == BY_CLOSE; /* a closed graph's tasks can be waited for */
    assert_int_equal(pthread_join(threads[1], NULL), 0);
    assert_status(waiters[1].status, how == BY_CLOSE ? FILCH_OK : FILCH_CANCELLED);
    gate_open = 1;
    if (how != BY_CLOSE) {
        assert_ok(filch_graph_close(graph));
    }
    assert_status(filch_job_wait(job, PATIENCE), how == BY_FAILURE ? FILCH_TASK_FAILED : FILCH_OK);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

static void a_cancellation_ends_waits(void **state)
{
    (void)state;
    a_wait_is_ended(BY_CANCEL);
}

static void a_close_ends_waiting_adds(void **state)
{
    (void)state;
    a_wait_is_ended(BY_CLOSE);
}

static void a_failure_that_cancels_ends_waits(void **state)
{
    (void)state;
    a_wait_is_ended(BY_FAILURE);
}

static void an_early_finish_ends_waits(void **state)
{
    (void)state;
    a_wait_is_ended(BY_FINISH);
}

static void failed_and_skipped_tasks_have_ended(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_graph *graph = limited(3);
    filch_job *job = submit(graph);
    filch_access access =
        fixture_access(fixture_vector(runtime, cells, 8, 1, 1), 0, FILCH_READWRITE);
    int bad = 7;
    for (int i = 0; i < 1000; ++i) { /* the first fails, the others are skipped */
        fixture_add(graph, code, &bad, &access, 1);
    }
    assert_ok(filch_graph_wait_below(graph, 1, PATIENCE));
    finish(graph, job, FILCH_TASK_FAILED, 1000);
    assert_int_equal(ended, 1);
    assert_ok(filch_runtime_destroy(runtime));
}

static void a_time_limit_passes(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS);
    filch_graph *graph = limited(0);
    filch_job *job = submit(graph);
    fixture_add(graph, gate, NULL, NULL, 0);
    assert_status(filch_graph_wait_below(graph, 1, 0), FILCH_TIMEOUT);
    assert_status(filch_graph_wait_below(graph, 1, 0.002), FILCH_TIMEOUT);
    assert_ok(filch_graph_wait_below(graph, 2, 0));
    gate_open = 1;
    assert_ok(filch_graph_wait_below(graph, 1, PATIENCE));
    finish(graph, job, FILCH_OK, 1);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Inside tasks --- */

typedef struct branch {
    filch_graph *graph;
    filch_codelet *self;
    int depth, width; /* adds so many of a lesser depth */
    filch_data *data; /* the tasks added read its first tile; may be null */
} branch;

static _Atomic int64_t unfinished, over;
static _Thread_local int nested;
static _Atomic int deepest;

static void end_branch(filch_graph *graph)
{
    ++ended;
    over += --unfinished == 0 && filch_graph_close(graph) != FILCH_OK;
}

static int grow(const filch_call *call)
{
    branch b = *(const branch *)call->args;
    int failed = 0, depth = ++nested;
    if (depth > deepest) {
        deepest = depth;
    }
    filch_access access = fixture_access(b.data, 0, FILCH_READ);
    for (--b.depth; b.depth >= 0 && b.width > 0 && failed == 0;) {
        branch child = b;
        child.width = b.depth == 0 ? 0 : ((const branch *)call->args)->width;
        --b.width;
        ++unfinished;
        ++added;
        failed += add(b.graph, b.self, &child, b.data != NULL ? &access : NULL) != FILCH_OK;
    }
    --nested;
    end_branch(b.graph);
    return failed;
}

static uint64_t tree_size(int depth, int width)
{
    uint64_t size = 1, level = 1;
    for (int i = 0; i < depth; ++i) {
        size += level *= (uint64_t)width;
    }
    return size;
}

/* Tasks alone add, more than may be live. */
static void run_tree(const char *devices, filch_drive drive, uint64_t most, int depth, int width)
{
    begin(devices, drive);
    filch_graph *graph = limited(most);
    filch_job *job = submit(graph);
    branch root = {graph, fixture_codelet(runtime, "grow", grow, sizeof(branch)), depth, width,
                   NULL};
    unfinished = 1;
    deepest = 0;
    over = 0;
    fixture_add(graph, root.self, &root, NULL, 0);
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_int_equal(ended, tree_size(depth, width));
    assert_int_equal(over, 0);
    /* Each worker has a task, and one in each of 17 waits. Poll mode has one stack for all. */
    assert_true(deepest <= 18);
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

static void tasks_that_add_never_hang(void **state)
{
    (void)state;
    for (uint64_t most = 1; most <= 64; most *= 2) {
        run_tree("host:1", FILCH_DRIVE_THREADS, most, 9, 2);
        run_tree("host:3", FILCH_DRIVE_THREADS, most, 9, 2);
        run_tree("host:3", FILCH_DRIVE_THREADS, most, 2, 60);
        run_tree("host:2", FILCH_DRIVE_POLL, most, 9, 2);
    }
    run_tree("sim:bench/data/sim/two.json", FILCH_DRIVE_DEFAULT, 4, 6, 2);
}

/* The tasks that are added cannot run before the adding task has ended. */
static void tasks_behind_the_adding_task_pass(void **state)
{
    (void)state;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        begin("host:2", (filch_drive)drive);
        filch_graph *graph = limited(4);
        filch_job *job = submit(graph);
        filch_data *data = fixture_vector(runtime, cells, 8, 1, 1);
        branch root = {graph, fixture_codelet(runtime, "grow", grow, sizeof(branch)), 1, 100, data};
        filch_access writes = fixture_access(data, 0, FILCH_READWRITE);
        unfinished = 1;
        fixture_add(graph, root.self, &root, &writes, 1);
        assert_ok(filch_job_wait(job, PATIENCE));
        assert_int_equal(ended, 101);
        assert_ok(filch_job_release(job));
        assert_ok(filch_runtime_destroy(runtime));
    }
}

typedef struct request {
    filch_graph *graph;
    filch_codelet *child;
    filch_data *data;
    uint64_t below;
    filch_status expected;
} request;

static _Atomic int asked, answered;

/* Adds three tasks, waits, and compares. */
static int ask(const filch_call *call)
{
    const request *r = call->args;
    filch_access access = fixture_access(r->data, 0, FILCH_READWRITE);
    int failed = 0;
    for (int i = 0; i < 3; ++i) {
        failed += add(r->graph, r->child, NULL, r->data != NULL ? &access : NULL) != FILCH_OK;
    }
    ++asked;
    filch_status status = filch_graph_wait_below(r->graph, r->below, PATIENCE);
    ++answered;
    return failed != 0 || status != r->expected;
}

static void run_request(request r, int askers, bool writes, filch_drive drive)
{
    begin("host:2", drive);
    asked = answered = 0;
    r.graph = limited(0);
    r.child = count;
    r.data = writes ? fixture_vector(runtime, cells, 8, 2, 1) : NULL;
    filch_job *job = submit(r.graph);
    filch_codelet *asker = fixture_codelet(runtime, "ask", ask, sizeof r);
    filch_access access = fixture_access(r.data, 0, FILCH_READ);
    for (int i = 0; i < askers; ++i) {
        fixture_add(r.graph, asker, &r, &access, writes);
    }
    assert_ok(filch_graph_wait_below(r.graph, 1, PATIENCE));
    finish(r.graph, job, FILCH_OK, 4 * (uint64_t)askers);
    assert_int_equal(ended, 3 * askers);
    assert_ok(filch_runtime_destroy(runtime));
}

static void a_task_waits_for_all_others(void **state)
{
    (void)state;
    run_request((request){.below = 1, .expected = FILCH_OK}, 1, false, FILCH_DRIVE_THREADS);
    run_request((request){.below = 1, .expected = FILCH_OK}, 1, false, FILCH_DRIVE_POLL);
    run_request((request){.below = 2, .expected = FILCH_OK}, 2, false, FILCH_DRIVE_THREADS);
    run_request((request){.below = 1, .expected = FILCH_OK}, 2, false, FILCH_DRIVE_THREADS);
}

/* What a task waits for stands behind it, or behind the other task that waits. */
static void a_wait_in_vain_says_so(void **state)
{
    (void)state;
    for (int drive = FILCH_DRIVE_THREADS; drive <= FILCH_DRIVE_POLL; ++drive) {
        run_request((request){.below = 1, .expected = FILCH_DEADLOCK}, 1, true, (filch_drive)drive);
        run_request((request){.below = 3, .expected = FILCH_DEADLOCK}, 1, true, (filch_drive)drive);
        run_request((request){.below = 1, .expected = FILCH_DEADLOCK}, 2, true, (filch_drive)drive);
    }
}

/* --- Other jobs --- */

static filch_graph *other;

/* Adds to the other graph, whose tasks wait for the end of the caller's job. */
static int add_to_other(const filch_call *call)
{
    filch_data *const *data = call->args;
    filch_access access = fixture_access(*data, 0, FILCH_READWRITE);
    int failed = 0;
    for (int i = 0; i < 50; ++i) {
        failed += add(other, count, NULL, &access) != FILCH_OK;
    }
    return failed != 0 || filch_graph_wait_below(other, 1, PATIENCE) != FILCH_DEADLOCK;
}

static void an_add_behind_its_own_job_passes(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_data *data = fixture_vector(runtime, cells, 8, 1, 1);
    filch_codelet *adds = fixture_codelet(runtime, "adds", add_to_other, sizeof data);
    filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    filch_graph *first = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    fixture_add(first, adds, &data, &access, 1);
    other = limited(3);
    filch_job *later = submit(other), *job = submit(first);
    assert_ok(filch_job_wait(job, PATIENCE));
    assert_ok(filch_job_release(job));
    finish(other, later, FILCH_OK, 50);
    assert_int_equal(ended, 50);
    assert_ok(filch_runtime_destroy(runtime));
}

typedef struct generator {
    filch_graph *graph;
    filch_data *data;
} generator;

static int generate(const filch_call *call)
{
    const generator *g = call->args;
    filch_access access = fixture_access(g->data, 0, FILCH_READ);
    int failed = 0;
    for (int i = 0; i < 1000; ++i) {
        failed += add(g->graph, count, NULL, &access) != FILCH_OK;
        failed += ++added - ended > 10;
    }
    return failed;
}

/* All that is added waits for an earlier job, which goes on by itself: the limit holds. */
static void a_limit_holds_behind_another_job(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_data *data = fixture_vector(runtime, cells, 8, 1, 1);
    filch_access access = fixture_access(data, 0, FILCH_READWRITE);
    filch_graph *first = fixture_graph(runtime, FILCH_GRAPH_CLOSED), *graph = limited(10);
    fixture_add(first, gate, NULL, &access, 1);
    filch_job *earlier = submit(first), *job = submit(graph);
    assert_true(fixture_await(&gate_entered, 1));
    ended = 0;
    generator g = {graph, data};
    fixture_add(graph, fixture_codelet(runtime, "generate", generate, sizeof g), &g, NULL, 0);
    while (added < 10) {
        sched_yield();
    }
    gate_open = 1;
    assert_ok(filch_job_wait(earlier, PATIENCE));
    assert_ok(filch_job_release(earlier));
    assert_ok(filch_graph_wait_below(graph, 1, PATIENCE));
    finish(graph, job, FILCH_OK, 1001);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Callbacks, pending tasks, the end of the runtime --- */

static _Atomic int in_callback;

static void add_in_callback(filch_job *job, filch_status status, void *user)
{
    (void)job;
    (void)status;
    for (int i = 0; i < 5; ++i) {
        in_callback += add(user, count, NULL, NULL) == FILCH_OK;
    }
    in_callback += 10 * (filch_graph_wait_below(user, 1, PATIENCE) == FILCH_WRONG_STATE);
}

static void a_callback_does_not_wait(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_POLL);
    filch_graph *graph = limited(2), *first = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_job *job = submit(graph), *before = NULL;
    filch_submit_desc desc = FILCH_SUBMIT_DESC_INIT;
    desc.on_complete = add_in_callback;
    desc.user = graph;
    in_callback = 0;
    fixture_add(first, count, NULL, NULL, 0);
    assert_ok(filch_graph_submit(first, &desc, &before));
    assert_ok(filch_job_wait(before, PATIENCE));
    assert_int_equal(in_callback, 15);
    assert_ok(filch_job_release(before));
    finish(graph, job, FILCH_OK, 5);
    assert_ok(filch_runtime_destroy(runtime));
}

static filch_pending pendings[64];
static _Atomic int pended;

static int pend(const filch_call *call)
{
    int at = pended;
    if (filch_call_pend(call, &pendings[at]) != FILCH_OK) {
        return 1;
    }
    ++pended;
    return FILCH_PENDING;
}

static void *end_pending(void *user)
{
    int *failed = user;
    for (int i = 0; i < 64; ++i) {
        *failed += !fixture_await(&pended, i + 1);
        ++ended;
        *failed += filch_pending_end(pendings[i], 0, NULL) != FILCH_OK;
    }
    return NULL;
}

static void pending_tasks_are_live(void **state)
{
    (void)state;
    begin("host:1", FILCH_DRIVE_THREADS);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *pends = NULL;
    desc.name = "pend";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &pends));
    filch_graph *graph = limited(5);
    filch_job *job = submit(graph);
    pthread_t thread;
    int failed = 0;
    pended = 0;
    for (int i = 0; i < 5; ++i) {
        fixture_add(graph, pends, NULL, NULL, 0);
    }
    assert_true(fixture_await(&pended, 5));
    assert_status(filch_graph_wait_below(graph, 5, 0), FILCH_TIMEOUT);
    added = 5;
    assert_int_equal(pthread_create(&thread, NULL, end_pending, &failed), 0);
    for (int i = 5; i < 64; ++i) {
        fixture_add(graph, pends, NULL, NULL, 0);
        assert_true(++added - ended <= 5);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(failed, 0);
    finish(graph, job, FILCH_OK, 64);
    assert_ok(filch_runtime_destroy(runtime));
}

static _Atomic int results[3];

/* Waits for tasks that never end by themselves. */
static int wait_until_aborted(const filch_call *call)
{
    filch_graph *graph = *(filch_graph *const *)call->args;
    ++asked;
    filch_status status = filch_graph_wait_below(graph, 1, -1);
    ++results[status == FILCH_CANCELLED ? 0 : status == FILCH_DEADLOCK ? 1 : 2];
    return 0;
}

static void *end_after_answers(void *user)
{
    int *failed = user;
    *failed += !fixture_await(&results[0], 2);
    *failed += filch_pending_end(pendings[0], 0, NULL) != FILCH_OK;
    return NULL;
}

static void an_abort_ends_waits_in_tasks(void **state)
{
    (void)state;
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *pends = NULL;
    desc.name = "pend";
    desc.host = pend;
    desc.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &desc, &pends));
    filch_graph *graph = limited(0);
    assert_ok(filch_graph_submit(graph, NULL, NULL));
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_until_aborted, sizeof graph);
    pthread_t thread;
    int failed = 0;
    asked = pended = 0;
    memset(results, 0, sizeof results);
    fixture_add(graph, pends, NULL, NULL, 0);
    fixture_add(graph, waits, &graph, NULL, 0);
    fixture_add(graph, waits, &graph, NULL, 0);
    assert_true(fixture_await(&pended, 1) && fixture_await(&asked, 2));
    assert_int_equal(pthread_create(&thread, NULL, end_after_answers, &failed), 0);
    assert_ok(filch_runtime_abort(runtime));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(failed, 0);
    assert_int_equal(results[0], 2);
}

/* --- Memory --- */

static void memory_stays_with_the_limit(void **state)
{
    (void)state;
#ifdef __SANITIZE_THREAD__
    const int total = 100000;
#else
    const int total = 1000000;
#endif
    enum { MOST = 1000 };
    begin("host:2", FILCH_DRIVE_THREADS);
    filch_graph *graph = limited(MOST);
    filch_job *job = submit(graph);
    filch_data *data = fixture_vector(runtime, cells, 8, 8, 1);
    filch_usage usage = FILCH_USAGE_INIT;
    uint64_t early = 0;
    for (int i = 0; i < total; ++i) {
        filch_access accesses[2] = {
            fixture_access(data, (uint32_t)i % 7, i % 3 == 0 ? FILCH_READWRITE : FILCH_READ),
            fixture_access(data, 7, FILCH_READ)};
        fixture_add(graph, count, NULL, accesses, 2);
        if (i % (total / 20) == 0) {
            assert_ok(filch_runtime_usage(runtime, &usage));
            assert_true(usage.tasks_live <= MOST);
            early = i == total / 20 ? usage.host_bytes : early;
        }
    }
    assert_ok(filch_runtime_usage(runtime, &usage));
#ifdef NDEBUG /* else destroyed objects are kept */
    /* Tasks and lists for so many live tasks, whenever the limit was reached first. */
    assert_true(usage.host_bytes < early + MOST * 1024);
#endif
    assert_true(usage.task_bytes < 4 * MOST * 512);
    finish(graph, job, FILCH_OK, (uint64_t)total);
    assert_int_equal(ended, total);
    assert_ok(filch_runtime_destroy(runtime));
}

#define TEST cmocka_unit_test

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(wrong_calls_are_refused),
        TEST(an_add_drives_the_workers),
        TEST(many_in_one_call_keep_to_the_limit),
        TEST(a_wait_drives_the_workers),
        TEST(on_a_virtual_clock),
        TEST(threads_share_a_limit),
        TEST(a_cancellation_ends_waits),
        TEST(a_close_ends_waiting_adds),
        TEST(a_failure_that_cancels_ends_waits),
        TEST(an_early_finish_ends_waits),
        TEST(failed_and_skipped_tasks_have_ended),
        TEST(a_time_limit_passes),
        TEST(tasks_that_add_never_hang),
        TEST(tasks_behind_the_adding_task_pass),
        TEST(a_task_waits_for_all_others),
        TEST(a_wait_in_vain_says_so),
        TEST(an_add_behind_its_own_job_passes),
        TEST(a_limit_holds_behind_another_job),
        TEST(a_callback_does_not_wait),
        TEST(pending_tasks_are_live),
        TEST(an_abort_ends_waits_in_tasks),
        TEST(memory_stays_with_the_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
