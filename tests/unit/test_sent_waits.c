/* SPDX-License-Identifier: Apache-2.0 */
/* Many tasks that wait for jobs of their own, where a policy sends the jobs' tasks to devices whose
 * tasks wait as well: the waits nest no deeper than the programme needs, and all of them end. */
#include "fixture.h"
#include "measure/policies.h"
#include "patience.h"
#include "sched/worker/parts.h"

#include "filch/policy.h"

enum { CROWD = 300 };

static _Thread_local int depth;
static _Atomic int deepest, done, failed;

/* --- Policies --- */

/* Sends a task that a task made ready to the next device, and others to the devices in turn. */
static uint32_t place_next_door(const filch_policy_view *view, void *user)
{
    static _Atomic uint32_t turn;
    filch_policy_item item = FILCH_POLICY_ITEM_INIT;
    uint32_t count = filch_policy_devices(view);
    (void)user;
    return filch_policy_item_get(view, &item) == FILCH_OK && item.device < count
               ? (item.device + 1) % count
               : turn++ % count;
}

/* Sends every task of the crowd to the first device, and all other tasks to the last. */
static uint32_t place_apart(const filch_policy_view *view, void *user)
{
    filch_policy_item item = FILCH_POLICY_ITEM_INIT;
    (void)user;
    bool is_crowd = filch_policy_item_get(view, &item) == FILCH_OK && item.name[0] == 'c';
    return is_crowd ? 0 : filch_policy_devices(view) - 1;
}

/* Sends a task to the device that its name ends with. */
static uint32_t place_by_name(const filch_policy_view *view, void *user)
{
    filch_policy_item item = FILCH_POLICY_ITEM_INIT;
    uint32_t device = 0;
    (void)user;
    if (filch_policy_item_get(view, &item) != FILCH_OK) {
        return FILCH_POLICY_AUTO;
    }
    for (const char *at = item.name; *at != '\0'; ++at) {
        device = (uint32_t)(*at - '0');
    }
    return device < filch_policy_devices(view) ? device : FILCH_POLICY_AUTO;
}

static uint32_t steal_from_nobody(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)amount;
    (void)user;
    return FILCH_POLICY_NOBODY;
}

/* A policy for comparison, or a function of this file. */
typedef struct rule {
    bench_policy policy;
    filch_place_fn place; /* null: the policy */
} rule;

static filch_runtime *begin(const char *devices, filch_drive drive, rule what)
{
    static bench_policy_room room; /* outlives the runtime */
    static filch_policy_desc own = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    own.place = what.place;
    own.steal = steal_from_nobody;
    if (what.place != NULL) {
        config.custom_policy = &own;
    } else {
        bench_policy_choose(what.policy, &room, &config);
    }
    deepest = done = failed = 0;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    return runtime;
}

/* --- Depth --- */

static void enter(void)
{
    ++depth;
    for (int most = deepest;
         most < depth && !atomic_compare_exchange_weak(&deepest, &most, depth);) {
    }
}

static void leave(bool is_good)
{
    --depth;
    ++done;
    failed += !is_good;
}

/* --- Crowds --- */

enum { LEVELS = 3 };

static filch_codelet *levels[LEVELS + 1];
static _Atomic int innermost;

/* The first ones let the other threads come far. */
static int dawdle(const filch_call *call)
{
    (void)call;
    for (volatile int i = innermost++ < 40 ? 30000 : 0; i > 0; --i) {
    }
    return 0;
}

/* A task of level n runs a graph of two tasks of the level below, one behind the other. */
static bool run_below(const filch_call *call, int level)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_task one, two;
    desc.codelet = levels[level - 1];
    bool is_made = filch_graph_create(call->runtime, NULL, &graph) == FILCH_OK;
    bool is_good = is_made && filch_graph_add(graph, &desc, &one) == FILCH_OK &&
                   filch_graph_add(graph, &desc, &two) == FILCH_OK &&
                   filch_graph_edge(graph, one, two) == FILCH_OK &&
                   filch_graph_run(graph, NULL, NULL) == FILCH_OK;
    return is_made && filch_graph_destroy(graph) == FILCH_OK && is_good;
}

static int nest(const filch_call *call)
{
    int level = *(const int *)call->user;
    enter();
    leave(run_below(call, level));
    return 0;
}

static void make_levels(filch_runtime *runtime)
{
    static int numbers[LEVELS + 1];
    innermost = 0;
    levels[0] = fixture_codelet(runtime, "dawdle", dawdle, 0);
    for (int level = 1; level <= LEVELS; ++level) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        numbers[level] = level;
        desc.name = "nest";
        desc.host = nest;
        desc.user = &numbers[level];
        assert_ok(filch_codelet_create(runtime, &desc, &levels[level]));
    }
}

/* Number of tasks below a task of the level, and the task itself, that wait. */
static int waits_of(int level)
{
    return level == 0 ? 0 : 1 + 2 * waits_of(level - 1);
}

/* A crowd becomes ready at once; each of its tasks waits `level` jobs deep. */
static void crowd_stays_shallow(const char *devices, filch_drive drive, rule what, int level)
{
    filch_runtime *runtime = begin(devices, drive, what);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    int count = CROWD >> level;
    make_levels(runtime);
    filch_task first = fixture_add(graph, levels[0], NULL, NULL, 0);
    desc.codelet = levels[level];
    desc.label = "crowd";
    for (int i = 0; i < count; ++i) {
        filch_task task;
        assert_ok(filch_graph_add(graph, &desc, &task));
        assert_ok(filch_graph_edge(graph, first, task));
    }
    assert_ok(fixture_run(graph));
    assert_int_equal(failed, 0);
    assert_int_equal(done, count * waits_of(level));
    /* A deep wait takes tasks of its own job alone, which are of the next level. */
    assert_in_range(deepest, 1, FL_DEEP_WAIT + level);
    assert_ok(filch_runtime_destroy(runtime));
}

static void crowds_stay_shallow(rule what)
{
    static const char *const devices[] = {"host:1", "host:2", "host:4"};
    for (int i = 0; i < 3; ++i) {
        for (int level = 1; level <= LEVELS; ++level) {
            crowd_stays_shallow(devices[i], FILCH_DRIVE_THREADS, what, level);
            crowd_stays_shallow(devices[i], FILCH_DRIVE_POLL, what, level);
        }
    }
}

static void waits_stay_shallow_in_round_robin(void **state)
{
    (void)state;
    crowds_stay_shallow((rule){.policy = BENCH_POLICY_ROUND_ROBIN});
}

static void waits_stay_shallow_by_earliest_finish(void **state)
{
    (void)state;
    crowds_stay_shallow((rule){.policy = BENCH_POLICY_EARLIEST});
}

static void waits_stay_shallow_where_tasks_go_next_door(void **state)
{
    (void)state;
    crowds_stay_shallow((rule){.place = place_next_door});
}

static void waits_stay_shallow_where_nested_tasks_go_apart(void **state)
{
    (void)state;
    crowds_stay_shallow((rule){.place = place_apart});
}

static void waits_stay_shallow_without_a_policy_of_the_host(void **state)
{
    (void)state;
    crowds_stay_shallow((rule){.policy = BENCH_POLICY_STEAL});
    crowds_stay_shallow((rule){.policy = BENCH_POLICY_STATIC});
}

/* --- Crossed waits --- */

static _Atomic int held, released;
static filch_job *awaited[CROWD];

/* Keeps the device until everything has been submitted. */
static int hold(const filch_call *call)
{
    (void)call;
    ++held;
    return fixture_await(&released, 1) ? 0 : 1;
}

static int wait_for_one(const filch_call *call)
{
    filch_job *job = awaited[*(const int *)call->args];
    enter();
    leave(filch_job_wait(job, PATIENCE) == FILCH_OK);
    return 0;
}

static filch_graph *one_task(filch_runtime *runtime, filch_codelet *codelet, const void *args,
                             const char *label)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task;
    desc.codelet = codelet;
    desc.args = args;
    desc.label = label;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return graph;
}

/* On each of two devices stand tasks, and over them tasks that wait for those of the other device.
 * Each device takes its waiting tasks first: both are deep in waits then, and each has what the
 * other one waits for, out of the other's sight. */
static void crossed_waits_end(filch_drive drive)
{
    static const char *const labels[] = {"on 0", "on 1"};
    filch_runtime *runtime = begin("host:2", drive, (rule){.place = place_by_name});
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_codelet *holds = fixture_codelet(runtime, "hold", hold, 0);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_for_one, sizeof(int));
    bool are_threads = drive == FILCH_DRIVE_THREADS;
    filch_job *waiting[CROWD];
    held = 0;
    released = !are_threads; /* without threads nothing runs yet */
    for (int device = 0; device < 2; ++device) {
        filch_graph *graph = one_task(runtime, holds, NULL, labels[device]);
        assert_ok(filch_graph_submit(graph, NULL, NULL));
    }
    assert_true(!are_threads || fixture_await(&held, 2));
    for (int i = 0; i < CROWD; ++i) {
        filch_graph *graph = one_task(runtime, nothing, NULL, labels[i % 2]);
        assert_ok(filch_graph_submit(graph, NULL, &awaited[i]));
    }
    for (int i = 0; i < CROWD; ++i) {
        filch_graph *graph = one_task(runtime, waits, &i, labels[(i + 1) % 2]);
        assert_ok(filch_graph_submit(graph, NULL, &waiting[i]));
    }
    released = 1;
    for (int i = 0; i < CROWD; ++i) {
        assert_ok(filch_job_wait(waiting[i], PATIENCE));
        assert_ok(filch_job_release(waiting[i]));
        assert_ok(filch_job_release(awaited[i]));
    }
    assert_int_equal(failed, 0);
    assert_int_equal(done, CROWD);
    assert_in_range(deepest, 1, FL_DEEP_WAIT + 1);
    assert_ok(filch_runtime_destroy(runtime));
}

static void crossed_waits_end_in_every_drive(void **state)
{
    (void)state;
    crossed_waits_end(FILCH_DRIVE_THREADS);
    crossed_waits_end(FILCH_DRIVE_POLL);
}

/* --- Crossed waits for batches that one device may run --- */

enum { ROW = FL_DEEP_WAIT + 4 };

static int refuse(const filch_call *call)
{
    (void)call;
    return held < 2 ? 1 : 0;
}

/* A batch of one item that has failed: a job for the rest may be restricted to a device. */
static filch_job *failed_batch(filch_runtime *runtime, filch_codelet *codelet)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job;
    desc.codelet = codelet;
    desc.n = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    assert_status(filch_job_wait(job, PATIENCE), FILCH_TASK_FAILED);
    return job;
}

static filch_job *resume_on(filch_job *job, uint32_t device)
{
    filch_resume_desc desc = FILCH_RESUME_DESC_INIT;
    filch_job *rest;
    desc.devices = &device;
    desc.device_count = 1;
    assert_ok(filch_job_resume(job, &desc, NULL, &rest));
    assert_ok(filch_job_release(job));
    return rest;
}

/* Each of two devices is deep in waits for a batch that only the other one may run. */
static void crossed_waits_for_bound_batches_end(void **state)
{
    static const char *const labels[] = {"on 0", "on 1"};
    filch_runtime *runtime = begin("host:2", FILCH_DRIVE_THREADS, (rule){.place = place_by_name});
    filch_codelet *refuses = fixture_codelet(runtime, "refuse", refuse, 0);
    filch_codelet *holds = fixture_codelet(runtime, "hold", hold, 0);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_for_one, sizeof(int));
    filch_job *failures[2], *waiting[2 * ROW];
    (void)state;
    held = released = 0;
    for (int device = 0; device < 2; ++device) {
        failures[device] = failed_batch(runtime, refuses);
    }
    for (int device = 0; device < 2; ++device) {
        filch_graph *graph = one_task(runtime, holds, NULL, labels[device]);
        assert_ok(filch_graph_submit(graph, NULL, NULL));
    }
    assert_true(fixture_await(&held, 2));
    for (int device = 0; device < 2; ++device) {
        awaited[device] = resume_on(failures[device], (uint32_t)device);
    }
    for (int i = 0; i < 2 * ROW; ++i) {
        int other = 1 - i % 2;
        filch_graph *graph = one_task(runtime, waits, &other, labels[i % 2]);
        assert_ok(filch_graph_submit(graph, NULL, &waiting[i]));
    }
    released = 1;
    for (int i = 0; i < 2 * ROW; ++i) {
        assert_ok(filch_job_wait(waiting[i], PATIENCE));
        assert_ok(filch_job_release(waiting[i]));
    }
    for (int device = 0; device < 2; ++device) {
        assert_ok(filch_job_release(awaited[device]));
    }
    assert_int_equal(failed, 0);
    assert_int_equal(done, 2 * ROW);
    assert_in_range(deepest, 1, FL_DEEP_WAIT + 1);
    assert_ok(filch_runtime_destroy(runtime));
}

/* --- Behind many jobs --- */

enum { MANY_AHEAD = 40 };

static filch_pending unfinished[MANY_AHEAD];
static _Atomic int begun;

static int begin_one(const filch_call *call)
{
    return filch_call_pend(call, &unfinished[begun++]) == FILCH_OK ? FILCH_PENDING : 1;
}

static int end_all(const filch_call *call)
{
    int wrong = begun != MANY_AHEAD;
    (void)call;
    for (int i = 0; i < begun; ++i) {
        wrong += filch_pending_end(unfinished[i], 0, NULL) != FILCH_OK;
    }
    return wrong;
}

static filch_job *use(filch_runtime *runtime, filch_codelet *codelet, filch_data *data,
                      filch_access_mode mode)
{
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 0, mode);
    filch_job *job;
    (void)fixture_add(graph, codelet, NULL, &access, 1);
    assert_ok(filch_graph_submit(graph, NULL, &job));
    return job;
}

/* Deep waits stand behind many readers of a handle. None ends before the one found last runs. */
static void a_wait_finds_the_last_of_many_jobs_ahead(void **state)
{
    static double values[8];
    static const int first = 0;
    filch_runtime *runtime = begin("host:1", FILCH_DRIVE_THREADS, (rule){.place = place_by_name});
    filch_data *data = fixture_vector(runtime, values, sizeof(double), 8, 8);
    filch_codelet *holds = fixture_codelet(runtime, "hold", hold, 0);
    filch_codelet *waits = fixture_codelet(runtime, "wait", wait_for_one, sizeof(int));
    filch_codelet *begins;
    filch_codelet_desc pending = FILCH_CODELET_DESC_INIT;
    filch_codelet *ends = fixture_codelet(runtime, "end", end_all, 0);
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_job *readers[MANY_AHEAD + 1], *waiting[ROW];
    (void)state;
    pending.name = "begin";
    pending.host = begin_one;
    pending.flags = FILCH_CODELET_MAY_PEND;
    assert_ok(filch_codelet_create(runtime, &pending, &begins));
    held = released = begun = 0;
    assert_ok(filch_graph_submit(one_task(runtime, holds, NULL, "on 0"), NULL, NULL));
    assert_true(fixture_await(&held, 1));
    for (int i = 0; i <= MANY_AHEAD; ++i) {
        readers[i] = use(runtime, i == 0 ? ends : begins, data, FILCH_READ);
    }
    awaited[0] = use(runtime, nothing, data, FILCH_WRITE);
    for (int i = 0; i < ROW; ++i) {
        filch_graph *graph = one_task(runtime, waits, &first, "on 0");
        assert_ok(filch_graph_submit(graph, NULL, &waiting[i]));
    }
    released = 1;
    for (int i = 0; i < ROW; ++i) {
        assert_ok(filch_job_wait(waiting[i], PATIENCE));
        assert_ok(filch_job_release(waiting[i]));
    }
    for (int i = 0; i <= MANY_AHEAD; ++i) {
        assert_ok(filch_job_wait(readers[i], PATIENCE));
        assert_ok(filch_job_release(readers[i]));
    }
    assert_ok(filch_job_release(awaited[0]));
    assert_int_equal(failed, 0);
    assert_int_equal(deepest, FL_DEEP_WAIT + 1);
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(waits_stay_shallow_in_round_robin),
        cmocka_unit_test(waits_stay_shallow_by_earliest_finish),
        cmocka_unit_test(waits_stay_shallow_where_tasks_go_next_door),
        cmocka_unit_test(waits_stay_shallow_where_nested_tasks_go_apart),
        cmocka_unit_test(waits_stay_shallow_without_a_policy_of_the_host),
        cmocka_unit_test(crossed_waits_end_in_every_drive),
        cmocka_unit_test(crossed_waits_for_bound_batches_end),
        cmocka_unit_test(a_wait_finds_the_last_of_many_jobs_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
