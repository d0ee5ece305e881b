/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs of divisible and other tasks on slices of one GPU or two, with cores beside them or
 * not: each item runs once, the results are those of the tasks one after the other, and memory that
 * is short, slices that come and go, launches that are refused and jobs that are cancelled leave
 * nothing undone or done twice. Times are short and random, so that pieces begin, end and are left
 * in many orders. The seed is FL_TEST_SEED, or the clock's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "random.h"

#define N 512
#include "jobs.h"

enum { VECTORS = 5, TASKS = 16, GRAIN = 4, SLICES = 4, MACHINES = 6, GRAPHS = 12, RUNS = 2 };

#define RANGES "FAKECUBIN arch=90 entry=items"

static fl_random dice;
static uint64_t cells[VECTORS][N], model[VECTORS][N];
static filch_data *data[VECTORS];
static uint32_t flags_of[VECTORS];
static _Atomic uint8_t ran[TASKS][N];
static _Atomic int bad_calls;
static uint64_t divided, pieces, cancelled, failed;

/* A task: to = f(to, from), item by item. */
typedef struct order {
    uint64_t number, to, from, item_ns;
    uint64_t is_divisible;
} order;

static order orders[TASKS];

static uint32_t below(uint32_t n)
{
    return fl_random_below(&dice, n);
}

static void nap(uint64_t ns)
{
    const struct timespec time = {0, (long)ns};
    (void)nanosleep(&time, NULL);
}

static uint64_t value(uint64_t to, uint64_t from, uint64_t number, uint64_t i)
{
    return to * 6364136223846793005u + from + number * N + i;
}

static void run_items(uint64_t *to, const uint64_t *from, const order *o, uint64_t lo, uint64_t hi)
{
    uint64_t end = o->is_divisible != 0 ? hi : N;
    if (o->is_divisible != 0 ? lo % GRAIN != 0 || hi % GRAIN != 0 || lo >= hi || hi > N
                             : lo != 0 || hi != 0) {
        atomic_fetch_add(&bad_calls, 1);
        return;
    }
    nap((end - lo) * o->item_ns);
    for (uint64_t i = lo; i < end; i++) {
        if (atomic_fetch_add(&ran[o->number][i], 1) != 0)
            atomic_fetch_add(&bad_calls, 1);
        to[i] = value(to[i], from[(i * 7 + o->number) % N], o->number, i);
    }
}

/* items(from, to), on GPUs and on the host. */
static int items(const filch_call *call)
{
    run_items(call->views[1].ptr, call->views[0].ptr, call->args, call->lo, call->hi);
    return 0;
}

static void plan(void)
{
    for (uint32_t t = 0; t < TASKS; t++) {
        uint32_t to = below(VECTORS);
        orders[t] = (order){.number = t,
                            .to = to,
                            .from = (to + 1 + below(VECTORS - 1)) % VECTORS,
                            .item_ns = below(3) == 0 ? 0 : below(8000),
                            .is_divisible = below(4) != 0};
    }
}

/* A range that is not asked for is none: kernels have their parameters, whatever the task. */
static void add_orders(filch_graph *to, filch_codelet *ranges, filch_codelet *whole, bool may_fail)
{
    for (uint32_t t = 0; t < TASKS; t++) {
        const order *o = &orders[t];
        const filch_access accesses[2] = {{.data = data[o->from], .mode = FILCH_READ},
                                          {.data = data[o->to], .mode = FILCH_READWRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = o->is_divisible != 0 ? ranges : whole;
        desc.args = o;
        desc.accesses = accesses;
        desc.access_count = 2;
        desc.items = o->is_divisible != 0 ? N : 0;
        desc.grain = o->is_divisible != 0 ? GRAIN : 0;
        desc.affinity = below(SLICES + 1);
        filch_status status = filch_graph_add(to, &desc, NULL);
        assert_true(status == FILCH_OK || (may_fail && status == FILCH_WRONG_STATE));
    }
}

static void run_model(void)
{
    for (uint32_t t = 0; t < TASKS; t++) {
        const order *o = &orders[t];
        for (uint64_t i = 0; i < N; i++)
            model[o->to][i] =
                value(model[o->to][i], model[o->from][(i * 7 + o->number) % N], o->number, i);
    }
}

static void disturb(filch_job *job, bool cancels, bool withdraws)
{
    if (withdraws) {
        uint32_t device = below(SLICES), other = below(SLICES);
        bool both = other != device && below(2) != 0;
        nap(below(4000000));
        assert_ok(filch_device_withdraw(runtime, device));
        if (both)
            assert_ok(filch_device_withdraw(runtime, other));
        nap(below(4000000));
        if (cancels && below(2) != 0)
            (void)filch_job_cancel(job);
        assert_ok(filch_device_readmit(runtime, device));
        if (both)
            assert_ok(filch_device_readmit(runtime, other));
    }
    if (cancels) {
        nap(below(6000000));
        (void)filch_job_cancel(job);
    }
}

/* What is where after a job that did not end well is the new beginning. */
static void check(filch_status status)
{
    for (uint32_t v = 0; v < VECTORS; v++)
        if ((flags_of[v] & FILCH_DATA_MANAGED) != 0)
            assert_ok(filch_data_acquire(data[v], FILCH_READWRITE));
    if (status == FILCH_OK) {
        run_model();
        assert_memory_equal(cells, model, sizeof cells);
        for (uint32_t t = 0; t < TASKS; t++)
            for (uint32_t i = 0; i < N; i++)
                assert_int_equal(atomic_load(&ran[t][i]), 1);
    }
    memcpy(model, cells, sizeof cells);
    for (uint32_t v = 0; v < VECTORS; v++)
        if ((flags_of[v] & FILCH_DATA_MANAGED) != 0)
            assert_ok(filch_data_release(data[v]));
    assert_int_equal(atomic_load(&bad_calls), 0);
}

static void run_graph(filch_codelet *ranges, filch_codelet *whole)
{
    bool is_open = below(3) == 0, cancels = below(5) == 0, refuses = below(5) == 0;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *g = NULL;
    desc.kind = is_open ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED;
    assert_ok(filch_graph_create(runtime, &desc, &g));
    plan();
    if (!is_open)
        add_orders(g, ranges, whole, false);
    for (uint32_t i = 0; i < (is_open ? 1 : RUNS); i++) {
        filch_report report = FILCH_REPORT_INIT;
        filch_job_info info = {.size = sizeof info};
        memset(ran, 0, sizeof ran);
        if (refuses)
            fakecuda_fail("cuLaunchKernel", 1 + below(60), 1, 701, -1, false);
        filch_job *job = submit(g);
        if (is_open) {
            add_orders(g, ranges, whole, true);
            (void)filch_graph_close(g);
        }
        disturb(job, cancels, below(3) == 0);
        filch_status status = filch_job_wait(job, SOON);
        assert_int_not_equal(status, FILCH_TIMEOUT);
        assert_true(status == FILCH_OK || (status == FILCH_CANCELLED && cancels) || refuses);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_int_equal(info.done + info.failed + info.skipped, info.total);
        assert_ok(filch_job_report(job, NULL, &report, NULL, 0));
        assert_ok(filch_job_release(job));
        divided += report.total.divided;
        pieces += report.total.pieces;
        cancelled += status == FILCH_CANCELLED;
        failed += info.failed;
        fakecuda_reset();
        check(status);
    }
    assert_ok(filch_graph_destroy(g));
}

static void run_machine(void)
{
    /* Of five vectors of 4 KiB: all have room, or two and a half, or four and a half. */
    static const char *const limits[] = {"64M", "10K", "18K"};
    static const char *const lanes[] = {"1", "2", "4"};
    static const char *const devices[] = {"cuda:0/64+32+16+8", "cuda:0/64+32+16+8,host:2",
                                          "cuda:0/88+24,cuda:1/48+48"};
    uint32_t kind = below(3);
    bool has_cores = kind == 1, polls = below(4) == 0;
    assert_int_equal(setenv("FILCH_MEMORY_LIMIT", limits[below(3)], 1), 0);
    start_driven(devices[kind], lanes[below(3)],
                 "{\"threads\": 8, \"devices\": [{\"count\": 2}],"
                 " \"links\": [{\"from\": 0, \"to\": 1}]}",
                 polls ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS);
    assert_int_equal(unsetenv("FILCH_MEMORY_LIMIT"), 0);
    fakecuda_register_filch("items", items, 2, true, sizeof(order));
    fakecuda_register_filch("whole", items, 2, false, sizeof(order));
    filch_codelet *ranges =
        codelet_of(runtime, RANGES, "items", has_cores ? items : NULL, sizeof(order));
    filch_codelet *whole = codelet_of(runtime, "FAKECUBIN arch=90 entry=whole", "whole",
                                      has_cores ? items : NULL, sizeof(order));
    for (uint32_t v = 0; v < VECTORS; v++) {
        flags_of[v] = below(2) != 0 ? FILCH_DATA_MANAGED : 0;
        set(cells[v], v);
        data[v] = handle_with(cells[v], flags_of[v]);
    }
    memcpy(model, cells, sizeof cells);
    for (uint32_t i = 0; i < GRAPHS; i++)
        run_graph(ranges, whole);
    for (uint32_t v = 0; v < VECTORS; v++)
        assert_ok(filch_data_destroy(data[v]));
    stop();
}

static void random_graphs(void **state)
{
    const char *given = getenv("FL_TEST_SEED");
    uint64_t seed = given != NULL ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    fl_random_init(&dice, seed, 0);
    for (uint32_t i = 0; i < MACHINES; i++)
        run_machine();
    print_message("%llu tasks in %llu pieces; %llu failed, %llu jobs cancelled\n",
                  (unsigned long long)divided, (unsigned long long)pieces,
                  (unsigned long long)failed, (unsigned long long)cancelled);
    assert_true(divided > 0 && pieces > divided);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_graphs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
