/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks run twice on the virtual clock: a device that stands still, or is slow, while others have
 * nothing left to do. Times are worked out by hand where they can be; however devices pause and are
 * lost, each item counts once.
 *
 *     test_sim_speculate [CASES [SEED]] */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "sim.h"

enum { MOST_ITEMS = 1 << 16, MOST_LOSSES = 16 };

static sim_world world;
static sim_outcome outcome; /* too large for a stack */
static uint32_t out[MOST_ITEMS], in[MOST_ITEMS];
static filch_data *out_data, *in_data;
static filch_losses losses[MOST_LOSSES];
static filch_report report;

/* What the codelet does: runs of each item so far, and when one is to fail. */
static uint32_t runs[MOST_ITEMS];
static uint64_t bad_item;
static uint32_t bad_run; /* of that item, from 1 on; 0: none fails */

static int fill(const filch_call *call)
{
    uint32_t *to = call->views[0].ptr;
    const uint32_t *from = call->view_count > 1 ? call->views[1].ptr : NULL;
    int code = 0;
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        ++runs[i];
        to[i - call->lo] = (from != NULL ? from[i - call->lo] : 0) + (uint32_t)i + 1;
        code = i == bad_item && runs[i] == bad_run ? 7 : code;
    }
    return code;
}

static filch_codelet *make_codelet(uint32_t flags)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "fill";
    desc.host = fill;
    desc.flags = flags;
    sim_ok(filch_codelet_create(world.runtime, &desc, &codelet));
    return codelet;
}

static filch_data *make_data(uint32_t *buffer)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = buffer;
    desc.element = sizeof *buffer;
    desc.rows = MOST_ITEMS;
    sim_ok(filch_data_create(world.runtime, &desc, &data));
    return data;
}

static void open_with(const char *text, const filch_runtime_desc *config)
{
    sim_open_text(&world, text, config);
    memset(out, 0, sizeof out);
    memset(runs, 0, sizeof runs);
    for (uint32_t i = 0; i < MOST_ITEMS; ++i) {
        in[i] = 3 * i;
    }
    bad_run = 0;
    out_data = make_data(out);
    in_data = make_data(in);
}

static void open_text(const char *text)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.policy = FILCH_POLICY_STEAL;
    open_with(text, &config);
}

static void close_world(void)
{
    sim_ok(filch_runtime_drain(world.runtime, -1));
    sim_ok(filch_data_destroy(out_data));
    sim_ok(filch_data_destroy(in_data));
    sim_close(&world);
}

static filch_job *submit(filch_codelet *codelet, uint64_t n, uint64_t grain, filch_access_mode mode)
{
    filch_batch_access accesses[2] = {
        {.data = out_data, .mode = mode, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = in_data, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = n;
    desc.grain = grain;
    desc.accesses = accesses;
    desc.access_count = 2;
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    return job;
}

/* Waits for the job, and has what became of it in outcome and report. */
static void finish(filch_job *job)
{
    (void)filch_job_wait(job, -1);
    report = (filch_report)FILCH_REPORT_INIT;
    sim_ok(filch_job_report(job, NULL, &report, losses, MOST_LOSSES));
    sim_finish(job, &outcome);
    for (uint32_t d = 0; d < world.count; ++d) {
        const filch_losses *l = &losses[d];
        assert_int_equal(l->busy_ns + l->slow_ns + l->unshared_ns + l->dispatch_ns + l->data_ns +
                             l->spoiled_ns + l->starved_ns + l->held_ns + l->tail_ns + l->other_ns,
                         l->wall_ns);
    }
    assert_true(report.area_ns <= report.wall_ns);
    assert_int_equal(report.total.restarts, report.total.restarts_won + report.total.restarts_lost);
}

static void check_filled(uint64_t n)
{
    assert_int_equal(outcome.status, FILCH_OK);
    assert_int_equal(outcome.info.done, n);
    for (uint32_t i = 0; i < n; ++i) {
        assert_int_equal(out[i], 3 * i + i + 1);
    }
}

static uint64_t elapsed_ns(void)
{
    return (uint64_t)llround(outcome.info.seconds * 1e9);
}

/* Batches that cannot be run twice, so that all devices are measured. */
static void warm_up(filch_codelet *codelet)
{
    for (int i = 0; i < 4; ++i) {
        finish(submit(codelet, 32, 1, FILCH_READWRITE));
        assert_int_equal(report.total.restarts, 0);
    }
    memset(runs, 0, sizeof runs);
}

/* --- A device that is slow --- */

/* Said to be as fast as the other one, it takes one of two grains, which the other one has done
 * long before: 1 ms for each grain on the fast device, 100 ms on the slow one. */
#define SLOW                                                                            \
    "{\"devices\": [{\"name\": \"fast\", \"speed\": 1e6, \"score\": 1, \"window\": 1}," \
    "{\"name\": \"slow\", \"speed\": 1e4, \"score\": 1, \"window\": 1}]}"

static void test_slow(void **state)
{
    (void)state;
    open_text(SLOW);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 2000, 1000, FILCH_WRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 2000000);
    assert_int_equal(losses[0].restarts, 1);
    assert_int_equal(losses[0].restarts_won, 1);
    assert_int_equal(outcome.devices[0].items, 2000);
    assert_int_equal(outcome.devices[1].items, 0);
    /* All that the slow device did in it is spoiled, and it was at nothing else. */
    assert_int_equal(losses[1].spoiled_ns, 2000000);
    assert_int_equal(losses[1].busy_ns, 0);
    assert_int_equal(losses[0].busy_ns, 2000000);
    for (int i = 0; i < 2000; ++i) {
        assert_int_equal(runs[i], i < 1000 ? 1 : 2);
    }
    close_world();
}

/* The same without the flag: the job waits for the slow device. */
static void test_not_allowed(void **state)
{
    (void)state;
    open_text(SLOW);
    filch_codelet *codelet = make_codelet(0);
    warm_up(codelet);
    finish(submit(codelet, 2000, 1000, FILCH_WRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 100000000);
    assert_int_equal(report.total.restarts, 0);
    assert_int_equal(report.total.restarts_refused, 0);
    close_world();
}

/* What reads what it writes is not run twice, which is told. */
static void test_read_write(void **state)
{
    (void)state;
    open_text(SLOW);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 2000, 1000, FILCH_READWRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 100000000);
    assert_int_equal(report.total.restarts, 0);
    assert_int_equal(losses[0].restarts_refused, 1);
    assert_int_equal(losses[1].restarts_refused, 1);
    close_world();
}

/* Of a device that nobody has measured nothing is predicted. */
static void test_not_measured(void **state)
{
    (void)state;
    open_text(SLOW);
    finish(submit(make_codelet(FILCH_CODELET_RESTARTABLE), 2000, 1000, FILCH_WRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 100000000);
    assert_int_equal(report.total.restarts, 0);
    close_world();
}

/* A second run that would end no sooner is not begun: it would take 1 ms from 1 ms on, and the slow
 * device's own ends at 2 ms. */
static void test_little_slower(void **state)
{
    (void)state;
    open_text("{\"devices\": [{\"speed\": 1e6, \"score\": 1, \"window\": 1},"
              "{\"speed\": 5e5, \"score\": 1, \"window\": 1}]}");
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 2000, 1000, FILCH_WRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 2000000); /* a fresh run would end then, too */
    assert_int_equal(report.total.restarts, 0);
    close_world();
}

static size_t most_bytes; /* that can be had at once */

static void *limited_alloc(size_t size, size_t align, void *user)
{
    (void)user;
    return size <= most_bytes ? aligned_alloc(align, (size + align - 1) / align * align) : NULL;
}

static void limited_free(void *ptr, size_t size, size_t align, void *user)
{
    (void)size;
    (void)align;
    (void)user;
    free(ptr);
}

/* Without memory for what a chunk writes it is run where its results go, and once. */
static void test_no_memory(void **state)
{
    (void)state;
    static const filch_allocator limited = {limited_alloc, limited_free, NULL};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.policy = FILCH_POLICY_STEAL;
    config.allocator = &limited;
    most_bytes = SIZE_MAX;
    open_with(SLOW, &config);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    most_bytes = 3999; /* a chunk writes 4,000 */
    finish(submit(codelet, 2000, 1000, FILCH_WRITE));
    check_filled(2000);
    assert_int_equal(elapsed_ns(), 100000000);
    assert_int_equal(report.total.restarts, 0);
    assert_int_equal(report.total.restarts_refused, 2);
    /* What one run gave back the next one on the device has. */
    most_bytes = SIZE_MAX;
    filch_job *job = submit(codelet, 2000, 1000, FILCH_WRITE);
    assert_int_equal(filch_job_wait(job, 0), FILCH_TIMEOUT);
    most_bytes = 3999;
    finish(job);
    check_filled(2000);
    assert_int_equal(report.total.restarts_won, 1);
    most_bytes = SIZE_MAX;
    close_world();
}

/* Tasks of graphs are not run twice, either. */
static void test_tasks(void **state)
{
    (void)state;
    open_text(SLOW);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    for (int kind = 0; kind < 2; ++kind) {
        filch_graph *graph = NULL;
        filch_job *job = NULL;
        filch_access access = {.data = out_data, .mode = FILCH_WRITE};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        filch_task task = 0;
        graph_desc.kind = kind == 0 ? FILCH_GRAPH_CLOSED : FILCH_GRAPH_OPEN;
        sim_ok(filch_graph_create(world.runtime, &graph_desc, &graph));
        desc.codelet = codelet;
        desc.accesses = &access;
        desc.access_count = 1;
        if (kind == 1) {
            sim_ok(filch_graph_submit(graph, NULL, &job));
        }
        for (int i = 0; i < 3 + kind; ++i) {
            sim_ok(filch_graph_add(graph, &desc, &task));
        }
        sim_ok(kind == 0 ? filch_graph_submit(graph, NULL, &job) : filch_graph_close(graph));
        finish(job);
        assert_int_equal(outcome.status, FILCH_OK);
        assert_int_equal(report.total.restarts, 0);
        assert_int_equal(report.total.restarts_refused, 3 + kind);
        assert_int_equal(losses[0].restarts_refused + losses[1].restarts_refused, 0);
        sim_ok(filch_graph_destroy(graph));
    }
    close_world();
}

/* --- A device that stands still --- */

static void test_paused(void **state)
{
    (void)state;
    open_text("{\"devices\": [{\"name\": \"steady\", \"speed\": 1e6, \"window\": 1},"
              "{\"name\": \"pauses\", \"speed\": 1e6, \"window\": 1,"
              "\"speeds\": [[0.02, 0], [10, 1e6]]}]}");
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    check_filled(60000);
    /* 30 ms, as long again, 2 us, the tick behind them, and the second run. */
    assert_int_equal(elapsed_ns(), 90002001);
    assert_int_equal(losses[0].restarts_won, 1);
    assert_int_equal(losses[1].spoiled_ns, 90002001);
    assert_int_equal(losses[1].busy_ns, 0);
    /* What the device still runs reads its input: nobody else may write there as yet. */
    assert_int_equal(filch_data_destroy(in_data), FILCH_BUSY);
    assert_int_equal(filch_data_destroy(out_data), FILCH_BUSY);
    filch_hold *hold = NULL;
    assert_int_equal(filch_data_acquire_tiles(in_data, NULL, FILCH_WRITE, 0.1, &hold),
                     FILCH_TIMEOUT);
    sim_ok(filch_data_acquire_tiles(in_data, NULL, FILCH_READ, 0, &hold));
    sim_ok(filch_hold_release(hold));
    sim_ok(filch_data_acquire_tiles(out_data, NULL, FILCH_READWRITE, 0, &hold));
    memset(out, 0, sizeof out);
    sim_ok(filch_hold_release(hold));
    sim_ok(filch_data_acquire_tiles(in_data, NULL, FILCH_WRITE, -1, &hold));
    sim_ok(filch_hold_release(hold));
    for (uint32_t i = 0; i < 60000; ++i) {
        assert_int_equal(out[i], 0); /* the run that lost wrote nothing here */
    }
    close_world();
}

/* --- Runs that fail --- */

#define PAUSES                                                                      \
    "{\"devices\": [{\"name\": \"steady\", \"speed\": 1e6, \"window\": 1},"         \
    "{\"name\": \"pauses\", \"speed\": 1e6, \"window\": 1, \"speeds\": [[0.02, 0]," \
    "[10, 1e6]]}]}"
#define PAUSED_NS 90002001u /* as above */

/* The run that is done first counts, also where it says that it failed, … */
static void test_second_fails(void **state)
{
    (void)state;
    open_text(PAUSES);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    bad_item = 40000;
    bad_run = 2;
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    assert_int_equal(outcome.status, FILCH_TASK_FAILED);
    assert_int_equal(elapsed_ns(), PAUSED_NS);
    assert_int_equal(outcome.info.done, 30000);
    assert_int_equal(outcome.info.failed, 30000);
    assert_int_equal(losses[0].restarts_won, 1);
    assert_int_equal(out[40000], 0); /* and nothing of it is left */
    close_world();
}

/* … and the other one's failure does not. */
static void test_first_fails(void **state)
{
    (void)state;
    open_text(PAUSES);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    bad_item = 40000;
    bad_run = 1;
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    check_filled(60000);
    assert_int_equal(elapsed_ns(), PAUSED_NS);
    close_world();
}

/* A device that is lost says nothing of the chunk: the other run decides. Here the device of the
 * first run is lost when the second is under way, … */
static void test_first_lost(void **state)
{
    (void)state;
    open_text("{\"devices\": [{\"name\": \"steady\", \"speed\": 1e6, \"window\": 1},"
              "{\"name\": \"lost\", \"speed\": 1e6, \"window\": 1, \"speeds\": [[0.02, 0],"
              "[10, 1e6]], \"lost_at\": 0.07}]}");
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    check_filled(60000);
    assert_int_equal(elapsed_ns(), PAUSED_NS);
    assert_int_equal(losses[0].restarts_won, 1);
    close_world();
}

/* … and here that of the second one; a third device is then the next to try. */
static void test_second_lost(void **state)
{
    (void)state;
    open_text("{\"devices\": [{\"name\": \"lost\", \"speed\": 1e6, \"window\": 1,"
              "\"lost_at\": 0.07},"
              "{\"name\": \"pauses\", \"speed\": 1e6, \"window\": 1, \"speeds\": [[0.02, 0],"
              "[10, 1e6]]},"
              "{\"name\": \"late\", \"speed\": 1e6, \"window\": 1, \"joins_at\": 5}]}");
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    check_filled(60000);
    assert_int_equal(report.total.restarts_lost, 1);
    assert_int_equal(outcome.devices[1].items, 30000); /* nobody has measured the third */
    assert_true(elapsed_ns() > 9000000000);
    close_world();
}

/* Both runs go on, and one of them counts, when the job is cancelled. */
static void test_cancelled(void **state)
{
    (void)state;
    open_text(PAUSES);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    filch_job *job = submit(codelet, 60000, 30000, FILCH_WRITE);
    assert_int_equal(filch_job_wait(job, 0.07), FILCH_TIMEOUT);
    sim_ok(filch_job_cancel(job));
    finish(job);
    check_filled(60000);
    assert_int_equal(elapsed_ns(), PAUSED_NS);
    close_world();
    /* Before the second run there will be none. */
    open_text(PAUSES);
    codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    job = submit(codelet, 60000, 30000, FILCH_WRITE);
    assert_int_equal(filch_job_wait(job, 0.05), FILCH_TIMEOUT);
    sim_ok(filch_job_cancel(job));
    finish(job);
    check_filled(60000);
    assert_int_equal(report.total.restarts, 0);
    close_world();
}

/* A runtime ends after the run that lost, and so does a drain; the job does not wait. */
static void test_destroyed(void **state)
{
    (void)state;
    open_text(PAUSES);
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    warm_up(codelet);
    filch_usage usage = {.size = sizeof usage};
    finish(submit(codelet, 60000, 30000, FILCH_WRITE));
    sim_ok(filch_runtime_usage(world.runtime, &usage));
    assert_int_equal(usage.jobs_running, 0);
    assert_int_equal(filch_runtime_drain(world.runtime, 1), FILCH_TIMEOUT);
    /* More jobs meanwhile, one of which writes what that run reads: it waits until 10 s. */
    finish(submit(codelet, 20000, 10000, FILCH_WRITE));
    check_filled(20000);
    assert_true(elapsed_ns() < 1000000000);
    filch_data *kept = out_data;
    out_data = in_data;
    in_data = kept;
    filch_job *writer = submit(codelet, 20, 10, FILCH_WRITE);
    assert_int_equal(filch_job_wait(writer, 8), FILCH_TIMEOUT);
    assert_int_equal(filch_job_wait(writer, 1), FILCH_OK);
    sim_ok(filch_job_release(writer));
    sim_ok(filch_runtime_destroy(world.runtime));
}

/* --- Whatever happens --- */

static fl_random random_state;
static uint64_t cases = 300, first_seed = 1;

static double between(double least, double most)
{
    return least + (most - least) * fl_random_unit(&random_state);
}

static bool chance(uint32_t percent)
{
    return fl_random_below(&random_state, 100) < percent;
}

/* Devices that pause again and again, and some that are lost; but for the first one. */
static void open_random(void)
{
    char text[8192];
    uint32_t count = 2 + fl_random_below(&random_state, 5);
    FILE *file = fmemopen(text, sizeof text, "w");
    assert_non_null(file);
    fprintf(file, "{\"devices\": [");
    for (uint32_t d = 0; d < count; ++d) {
        double speed = 1e6 * exp(between(0, log(50))), t = 0;
        fprintf(file, "%s{\"speed\": %g, \"overhead_us\": 5, \"window\": %u", d != 0 ? ",\n" : "",
                speed, 1 + fl_random_below(&random_state, 3));
        for (int i = 0; d != 0 && i < 4; ++i) {
            double begin = t + between(0.0005, 0.02);
            t = begin + between(0.001, 0.1);
            fprintf(file, "%s[%.17g, 0], [%.17g, %g]", i != 0 ? ", " : ", \"speeds\": [", begin, t,
                    speed);
        }
        fprintf(file, "%s", d != 0 ? "]" : "");
        if (d != 0 && chance(25)) {
            fprintf(file, ", \"lost_at\": %.17g", between(0.001, 0.1));
        }
        fprintf(file, "}");
    }
    fprintf(file, "]}");
    assert_int_equal(fclose(file), 0);
    open_text(text);
}

/* Each item was done once, or failed once; and those done are right. */
static void check_items(filch_job *job, uint64_t n)
{
    finish(job);
    assert_int_equal(outcome.info.done + outcome.info.failed, n);
    assert_int_equal(outcome.info.skipped, 0);
    uint64_t items = 0;
    for (uint32_t d = 0; d < world.count; ++d) {
        items += outcome.devices[d].items;
    }
    assert_int_equal(items, n);
}

static uint64_t tried, won;

static void check_random(uint64_t seed)
{
    fl_random_init(&random_state, seed, 0);
    open_random();
    filch_codelet *codelet = make_codelet(FILCH_CODELET_RESTARTABLE);
    for (int round = 0; round < 3; ++round) {
        uint64_t n = 1 + fl_random_below(&random_state, MOST_ITEMS - 1);
        memset(out, 0, sizeof out);
        check_items(submit(codelet, n, 1 + fl_random_below(&random_state, 64), FILCH_WRITE), n);
        uint64_t good = 0;
        for (uint64_t i = 0; i < n; ++i) {
            assert_true(out[i] == 0 || out[i] == 4 * i + 1);
            good += out[i] != 0;
        }
        assert_int_equal(good, outcome.info.done);
        assert_int_equal(outcome.status, good == n ? FILCH_OK : FILCH_TASK_FAILED);
        tried += report.total.restarts;
        won += report.total.restarts_won;
        if (chance(50)) { /* else what lost goes on beside the next one */
            sim_ok(filch_runtime_drain(world.runtime, -1));
        }
    }
    close_world();
}

static void test_random(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + cases; ++seed) {
        check_random(seed);
    }
    print_message("%llu cases from seed %llu: %llu chunks run twice, %llu of them for good\n",
                  (unsigned long long)cases, (unsigned long long)first_seed,
                  (unsigned long long)tried, (unsigned long long)won);
    if (cases >= 100) {
        assert_true(won > cases / 10 && won < tried);
    }
}

int main(int argc, char **argv)
{
    cases = argc > 1 ? strtoull(argv[1], NULL, 10) : cases;
    first_seed = argc > 2 ? strtoull(argv[2], NULL, 10) : first_seed;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow),          cmocka_unit_test(test_not_allowed),
        cmocka_unit_test(test_read_write),    cmocka_unit_test(test_not_measured),
        cmocka_unit_test(test_little_slower), cmocka_unit_test(test_paused),
        cmocka_unit_test(test_second_fails),  cmocka_unit_test(test_first_fails),
        cmocka_unit_test(test_first_lost),    cmocka_unit_test(test_second_lost),
        cmocka_unit_test(test_cancelled),     cmocka_unit_test(test_destroyed),
        cmocka_unit_test(test_no_memory),     cmocka_unit_test(test_tasks),
        cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
