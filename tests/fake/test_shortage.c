/* SPDX-License-Identifier: Apache-2.0 */
/* GPUs that have less memory than their budget, as another process has the rest: jobs of several
 * times of what is left end right, what is given back is used again, and what cannot be done is
 * told with both sizes. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>

#include "count.h"
#include "random.h"

#define N 32768 /* elements of a vector, of 256 KiB in all */
#include "jobs.h"
#include "measure/policies.h"
#include "memory/alloc/slab.h"

#define MIB ((uint64_t)1 << 20)
#define VECTOR (N * sizeof(uint64_t))
/* 512 MiB are left to others from the beginning: the budget is 64 MiB. */
#define FAKE                                                                               \
    "{\"fill\":false,\"kernel_ns\":2000,\"devices\":[{\"count\":2,\"memory\":603979776}]," \
    "\"links\":[{\"from\":0,\"to\":1}]}"
#define MEMORY (576 * MIB)
#define BUDGET (64 * MIB)
#define LEFT (4 * MIB)

enum { VECTORS = 32, CHAIN = 2 };

static uint64_t room[VECTORS][N], model[VECTORS][N];
static filch_data *data[VECTORS];

static const char *const arenas[] = {"jemalloc", "pages", "pool", "plain"};

static void start_on(const char *devices, const char *arena, const char *driver)
{
    (void)setenv("FILCH_ARENA", arena, 1);
    start(devices, "4", driver);
    (void)unsetenv("FILCH_ARENA");
    for (uint32_t i = 0; i < VECTORS; i++) {
        set(room[i], 3 * i);
        set(model[i], 3 * i);
        data[i] = handle(room[i]);
    }
}

static void start_short(const char *devices, const char *arena)
{
    start_on(devices, arena, FAKE);
}

/* Each of the GPUs has so much left that nobody uses. */
static void leave(uint64_t bytes)
{
    filch_memory_stats stats = {.size = sizeof stats};
    for (int d = 0; d < 2; d++) {
        uint64_t held = 0;
        if ((uint32_t)d < filch_device_count(runtime)) {
            assert_ok(filch_device_memory(runtime, (uint32_t)d, &stats));
            held = stats.arena != FILCH_ARENA_DEFAULT ? stats.mapped : 0;
        }
        (void)fakecuda_occupy(d, MEMORY - held - bytes);
    }
}

static filch_memory_stats memory_of(uint32_t device)
{
    filch_memory_stats stats = {.size = sizeof stats};
    assert_ok(filch_device_memory(runtime, device, &stats));
    return stats;
}

/* Every vector is changed a few times, and by others: 8 MiB in all, three of them at once. */
static filch_graph *mixed(filch_codelet *bumps, filch_codelet *sums)
{
    filch_graph *made = graph();
    for (uint32_t round = 0; round < CHAIN; round++)
        for (uint32_t i = 0; i < VECTORS; i++) {
            add(made, bumps, FILCH_READWRITE, data[i], NULL, NULL);
            add(made, sums, FILCH_WRITE, data[i], data[(i + 7) % VECTORS],
                data[(i + 19) % VECTORS]);
        }
    return made;
}

static void run_model(void)
{
    for (uint32_t round = 0; round < CHAIN; round++)
        for (uint32_t i = 0; i < VECTORS; i++)
            for (uint32_t e = 0; e < N; e++) {
                model[i][e]++;
                model[(i + 19) % VECTORS][e] = model[i][e] + model[(i + 7) % VECTORS][e];
            }
}

static void run(filch_graph *made)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_job *job = submit(made);
    filch_status status = filch_job_wait(job, 3 * SOON);
    if (status != FILCH_OK) {
        (void)filch_job_error(job, &error);
        fail_msg("%s: %s", filch_status_name(status), error.text);
    }
    assert_ok(filch_job_release(job));
    run_model();
    for (uint32_t i = 0; i < VECTORS; i++)
        assert_memory_equal(room[i], model[i], VECTOR);
}

static void what_another_process_leaves_is_enough(void **state)
{
    static const char *const devices[] = {"cuda:0", "cuda:0,cuda:1", "cuda:0/88+24",
                                          "cuda:0,host:1"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t a = 0; a < sizeof arenas / sizeof *arenas; a++) {
            if (a == 0 && !fl_slabs_are_there())
                continue;
            start_short(devices[d], arenas[a]);
            filch_graph *made = mixed(on_gpu("bump"), on_gpu("sum"));
            assert_int_equal(memory_of(0).budget, BUDGET);
            leave(LEFT);
            run(made);
            filch_memory_stats stats = memory_of(0);
            if (d % 2 == 0) /* else others may have done the most of it */
                assert_in_range(stats.shortages, 1, UINT64_MAX);
            if (stats.shortages > 0)
                assert_in_range(stats.budget, LEFT - 2 * MIB, LEFT + VECTOR - 1);
            assert_true(stats.mapped_peak <= LEFT);
            stop();
        }
}

/* Memory goes while a runtime holds some, and comes back. */
static void what_is_given_back_is_used_again(void **state)
{
    (void)state;
    for (int trims = 0; trims < 2; trims++) {
        start_short("cuda:0", "pages");
        filch_graph *made = mixed(on_gpu("bump"), on_gpu("sum"));
        filch_job_info info = {.size = sizeof info};
        uint64_t asked;
        int runs = 0;
        run(made);
        assert_int_equal(memory_of(0).shortages, 0);
        assert_int_equal(memory_of(0).budget, BUDGET);
        assert_true(memory_of(0).mapped >= VECTORS * VECTOR);
        assert_ok(filch_graph_destroy(made));
        for (uint32_t i = 0; i < VECTORS; i++)
            assert_ok(filch_data_destroy(data[i]));
        for (uint32_t i = 0; i < VECTORS; i++)
            data[i] = handle(room[i]);
        assert_ok(filch_device_trim(runtime, 0, 0));
        leave(LEFT);
        made = mixed(on_gpu("bump"), on_gpu("sum"));
        run(made);
        run(made);
        assert_true(memory_of(0).budget <= LEFT);
        /* It is not asked for at each eviction: those are hundreds. */
        asked = fakecuda_count("cuMemCreate");
        filch_job *job = submit(made);
        assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
        assert_ok(filch_job_stats(job, &info, NULL, 0));
        assert_ok(filch_job_release(job));
        run_model();
        assert_true(info.evicted > 50);
        assert_true(fakecuda_count("cuMemCreate") - asked < info.evicted / 5);
        (void)fakecuda_occupy(0, 0);
        if (trims != 0) {
            assert_ok(filch_device_trim(runtime, 0, UINT64_MAX));
            assert_int_equal(memory_of(0).budget, BUDGET);
        }
        do
            run(made);
        while (memory_of(0).budget != BUDGET && ++runs < 100);
        assert_true(runs < (trims != 0 ? 1 : 100));
        run(made);
        assert_int_equal(memory_of(0).budget, BUDGET);
        assert_true(memory_of(0).mapped >= VECTORS * VECTOR);
        stop();
    }
}

/* From some call on the device gives no memory any more, whatever it says of what is free: the job
 * ends right with what it has, or says what there is. */
static void memory_may_end_at_any_call(void **state)
{
    static const char *const calls[] = {"cuMemCreate", "cuMemCreate", "cuMemAllocFromPoolAsync",
                                        "cuMemAlloc"};
    (void)state;
    for (size_t a = 0; a < sizeof arenas / sizeof *arenas; a++) {
        uint32_t right = 0, refused = 0;
        if (a == 0 && !fl_slabs_are_there())
            continue;
        for (uint64_t k = 1; k < 12; k += k) {
            filch_error error = FILCH_ERROR_INIT;
            start_short(k % 3 == 1 ? "cuda:0" : "cuda:0,cuda:1", arenas[a]);
            filch_graph *made = mixed(on_gpu("bump"), on_gpu("sum"));
            leave(LEFT);
            fakecuda_fail(calls[a], k, 0, 2, -1, false);
            filch_job *job = submit(made);
            filch_status status = filch_job_wait(job, SOON);
            run_model();
            if (status == FILCH_OK) {
                ++right;
                for (uint32_t i = 0; i < VECTORS; i++)
                    assert_memory_equal(room[i], model[i], VECTOR);
            } else {
                char sizes[64];
                ++refused;
                (void)filch_job_error(job, &error);
                assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
                (void)snprintf(sizes, sizeof sizes, "%zu bytes were asked for, but", VECTOR);
                assert_non_null(strstr(error.text, sizes));
                assert_non_null(strstr(error.text, "gives no more than "));
            }
            assert_ok(filch_job_release(job));
            stop();
        }
        assert_true(refused > 0 && right > 0);
    }
}

/* --- Elsewhere --- */

static filch_codelet *on_both(const char *entry, filch_host_fn host)
{
    return codelet_of(runtime, IMAGE, entry, host, 0);
}

/* A GPU without room for a single task, which no figure told before: what it was given goes on to
 * another one, or to the host. */
static void what_has_no_room_goes_elsewhere(void **state)
{
    static const char *const devices[] = {"cuda:1,cuda:0", "cuda:0,cuda:1", "cuda:1,host:1",
                                          "cuda:1/88+24,host:2"};
    (void)state;
    for (size_t d = 0; d < sizeof devices / sizeof *devices; d++)
        for (size_t a = 1; a < sizeof arenas / sizeof *arenas; a += 2) {
            start_short(devices[d], arenas[a]);
            filch_codelet *bumps = on_both("bump", d >= 2 ? bump : NULL);
            filch_graph *made = mixed(bumps, on_both("sum", d >= 2 ? sum : NULL));
            (void)fakecuda_occupy(1, MEMORY);
            uint32_t without = d == 1 ? 1 : 0;
            for (int again = 0; again < 3 || memory_of(without).shortages == 0; again++)
                run(made);
            assert_int_equal(memory_of(without).mapped, 0);
            stop();
        }
}

/* Slices of one memory, whose driver takes its time to say no: neither waits for what the other
 * does not have. */
static void what_has_no_room_does_not_wait_for_its_neighbour(void **state)
{
    static const char slow[] = "{\"fill\":false,\"kernel_ns\":2000,\"refusal_ns\":300000,"
                               "\"devices\":[{\"count\":2,\"memory\":603979776}]}";
    (void)state;
    for (size_t a = 1; a < sizeof arenas / sizeof *arenas; a++) {
        start_on("cuda:1/44+44+24,host:1", arenas[a], slow);
        filch_graph *made = mixed(on_both("bump", bump), on_both("sum", sum));
        (void)fakecuda_occupy(1, MEMORY);
        for (int again = 0; again < 3; again++)
            run(made);
        stop();
    }
}

/* What waits for a device that is withdrawn, as those that are there have no room, goes to another
 * one that comes back before it. */
static void what_waits_for_one_goes_to_another(void **state)
{
    (void)state;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats stats[3];
    start_short("cuda:1,cuda:0,host:1", "pages");
    filch_graph *made = mixed(on_both("bump", bump), on_both("sum", sum));
    (void)fakecuda_occupy(1, MEMORY);
    assert_ok(filch_device_withdraw(runtime, 1));
    assert_ok(filch_device_withdraw(runtime, 2));
    filch_job *job = submit(made);
    assert_int_equal(filch_job_wait(job, 0.02), FILCH_TIMEOUT);
    assert_ok(filch_device_readmit(runtime, 2));
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_stats(job, &info, stats, 3));
    assert_int_equal(stats[2].tiles, info.done);
    assert_ok(filch_job_release(job));
    assert_ok(filch_device_readmit(runtime, 1));
    stop();
}

/* Nor does it hang where there is room nowhere. */
static void what_has_room_nowhere_is_told(void **state)
{
    (void)state;
    filch_error error = FILCH_ERROR_INIT;
    start_short("cuda:0,cuda:1", "pages");
    filch_graph *made = mixed(on_gpu("bump"), on_gpu("sum"));
    (void)fakecuda_occupy(0, MEMORY);
    (void)fakecuda_occupy(1, MEMORY);
    filch_job *job = submit(made);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    (void)filch_job_error(job, &error);
    assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "262144 bytes were asked for, but "));
    assert_ok(filch_job_release(job));
    stop();
}

/* --- Scratch --- */

static filch_job *submit_scratch(filch_codelet *codelet, uint64_t bytes)
{
    const filch_access access = {.mode = FILCH_SCRATCH, .bytes = bytes};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_graph *made = graph();
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_graph_add(made, &desc, NULL));
    return submit(made);
}

static void assert_too_large(filch_job *job, const char *text)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    (void)filch_job_error(job, &error);
    assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, text));
    assert_ok(filch_job_release(job));
}

/* A task whose only access is scratch for which there is no room. */
static void scratch_without_room_is_told(void **state)
{
    (void)state;
    start_short("cuda:0", "plain");
    (void)fakecuda_occupy(0, MEMORY);
    assert_too_large(submit_scratch(on_gpu("hold"), 8 * MIB), "8388608 bytes were asked for");
    stop();
}

/* A task with scratch alone that the driver refuses is no user of the memory any more: another
 * task's lack of room is told. */
static void refused_scratch_leaves_no_user(void **state)
{
    (void)state;
    start_on("cuda:0", "plain",
             "{\"fill\":false,\"kernel_ns\":2000,\"failures\":[{\"call\":\"cuLaunchKernel\","
             "\"nth\":1,\"count\":1,\"result\":701}],"
             "\"devices\":[{\"count\":2,\"memory\":603979776}]}");
    filch_job *job = submit_scratch(on_gpu("hold"), 64);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    assert_ok(filch_job_release(job));
    (void)fakecuda_occupy(0, MEMORY);
    filch_graph *made = graph();
    add(made, on_gpu("bump"), FILCH_READWRITE, data[0], NULL, NULL);
    assert_too_large(submit(made), "262144 bytes were asked for");
    stop();
}

/* --- GPUs of unlike memory --- */

enum { WIDES = 4, WIDE = 12 * N }; /* 3 MiB each */

/* Budgets of 64 MiB and of 2 MiB. */
#define UNLIKE                                                                            \
    "{\"fill\":false,\"kernel_ns\":2000,\"devices\":[{\"memory\":603979776},{\"memory\":" \
    "538968064}],"                                                                        \
    "\"links\":[{\"from\":0,\"to\":1}]}"

static uint64_t wide_room[WIDES * WIDE], wide_model[WIDES * WIDE];

static filch_data *wide_handle(void)
{
    return vector_of(runtime, wide_room, (uint64_t)WIDES * WIDE, WIDE, 0);
}

/* A random task, of the small ones or of the large ones, wherever it is wanted. */
static void add_any(filch_graph *to, filch_codelet *bumps, filch_data *wide, fl_random *r)
{
    uint32_t which = fl_random_below(r, 3), i = fl_random_below(r, which == 0 ? WIDES : VECTORS);
    const filch_access access = {
        .data = which == 0 ? wide : data[i], .row = which == 0 ? i : 0, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = bumps;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.affinity = fl_random_below(r, 1 + filch_device_count(runtime));
    assert_ok(filch_graph_add(to, &desc, NULL));
    uint64_t *at = which == 0 ? wide_model + (uint64_t)i * WIDE : model[i];
    for (uint32_t e = 0; e < (which == 0 ? WIDE : N); e++)
        at[e]++;
}

static void run_unlike(uint64_t seed, const char *devices, bool is_open, bool has_host)
{
    filch_graph_desc how = FILCH_GRAPH_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_graph *made = NULL;
    filch_job *job = NULL;
    fl_random r;
    fl_random_init(&r, 11, seed);
    (void)setenv("FILCH_POLICY", seed % 3 == 0 ? "static" : "steal", 1);
    start(devices, seed % 2 == 0 ? "1" : "4", UNLIKE);
    (void)unsetenv("FILCH_POLICY");
    for (uint32_t i = 0; i < VECTORS; i++) {
        set(room[i], i);
        set(model[i], i);
        data[i] = handle(room[i]);
    }
    for (uint64_t i = 0; i < (uint64_t)WIDES * WIDE; i++)
        wide_room[i] = wide_model[i] = i;
    filch_data *wide = wide_handle();
    filch_codelet *bumps = on_both("bump", has_host ? bump : NULL);
    how.kind = is_open ? FILCH_GRAPH_OPEN : FILCH_GRAPH_CLOSED;
    assert_ok(filch_graph_create(runtime, &how, &made));
    if (is_open)
        job = submit(made);
    for (int k = 0; k < 60; k++)
        add_any(made, bumps, wide, &r);
    if (is_open)
        assert_ok(filch_graph_close(made));
    else
        job = submit(made);
    filch_status status = filch_job_wait(job, 3 * SOON);
    if (status != FILCH_OK) {
        (void)filch_job_error(job, &error);
        fail_msg("%s: %s", filch_status_name(status), error.text);
    }
    assert_ok(filch_job_release(job));
    for (uint32_t i = 0; i < VECTORS; i++)
        assert_memory_equal(room[i], model[i], VECTOR);
    assert_memory_equal(wide_room, wide_model, sizeof wide_room);
    stop();
}

enum { SEEDS = TEST_ROUNDS(20) };

static void tasks_run_where_they_fit(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        run_unlike(seed, seed % 4 < 2 ? "cuda:0,cuda:1" : "cuda:1,cuda:0", seed % 5 == 4, false);
        run_unlike(seed, seed % 4 < 2 ? "cuda:1,host:1" : "cuda:1/88+24,host:2", seed % 5 == 3,
                   true);
    }
}

/* --- Batches --- */

static filch_batch_desc copy_batch(filch_codelet *codelet, const filch_batch_access *accesses)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = codelet;
    desc.n = N;
    desc.grain = 1024; /* 16 KiB */
    desc.accesses = accesses;
    desc.access_count = 2;
    return desc;
}

/* Chunks are chosen by what the device had: those under way when it has no more are cut. */
static void chunks_are_cut_to_what_is_left(void **state)
{
    (void)state;
    for (int left = 0; left < 3; left++) {
        filch_job *job = NULL;
        filch_error error = FILCH_ERROR_INIT;
        start_short("cuda:0", "plain");
        fakecuda_register_filch("copy", copy, 2, true, 0);
        const filch_batch_access accesses[] = {
            {.data = data[0], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
            {.data = data[1], .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
        filch_batch_desc desc = copy_batch(on_both("copy", NULL), accesses);
        leave(left == 0 ? 64 * 1024 : left == 1 ? 20 * 1024 : 12 * 1024);
        assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
        if (left < 2) {
            finish(job, FILCH_OK);
            assert_memory_equal(room[1], model[0], VECTOR);
        } else { /* for none */
            assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
            (void)filch_job_error(job, &error);
            assert_non_null(strstr(error.text,
                                   "8192 bytes were asked for, but the device, of which "
                                   "others use the memory, too, gives no more than "));
            assert_ok(filch_job_release(job));
        }
        stop();
    }
}

static uint32_t rob_nobody(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)view;
    (void)amount;
    (void)user;
    return FILCH_POLICY_NOBODY;
}

/* Filch's own policy, one of the host's, and those to compare with. */
static void start_under(uint32_t policy, const char *devices, const char *arena)
{
    static const char *const names[] = {"steal",  "steal",       "central",
                                        "guided", "round-robin", "earliest"};
    static bench_policy_room compared;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_policy_desc desc = FILCH_POLICY_DESC_INIT;
    desc.steal = rob_nobody;
    bench_policy_choose(bench_policy_find(names[policy]), &compared, &config);
    custom = policy == 1 ? &desc : config.custom_policy;
    (void)setenv("FILCH_POLICY", "steal", 1);
    start_short(devices, arena);
    (void)unsetenv("FILCH_POLICY");
    custom = NULL;
}

/* Where a GPU has no room for a single grain the others do what it was given, whomever they may rob
 * else: all of it, or none can. */
static void chunks_without_room_go_elsewhere(void **state)
{
    static const char *const devices[] = {"cuda:1,cuda:0", "cuda:0,cuda:1", "cuda:1,host:1",
                                          "cuda:1/88+24,host:2", "cuda:0,cuda:1"};
    enum { NOWHERE = 4, POLICIES = 6 };
    (void)state;
    for (size_t d = 0; d <= NOWHERE; d++)
        for (uint32_t a = 0; a < 2 * POLICIES; a++) {
            filch_error error = FILCH_ERROR_INIT;
            filch_job *job = NULL;
            start_under(a / 2, devices[d], arenas[a % 2 == 0 ? 1 : 3]);
            fakecuda_register_filch("copy", copy, 2, true, 0);
            const filch_batch_access accesses[] = {
                {.data = data[0], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
                {.data = data[1], .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
            filch_codelet *copies = on_both("copy", d >= 2 && d != NOWHERE ? copy : NULL);
            filch_batch_desc desc = copy_batch(copies, accesses);
            (void)fakecuda_occupy(1, MEMORY);
            (void)fakecuda_occupy(0, d == NOWHERE ? MEMORY : 0);
            assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
            assert_int_equal(filch_job_wait(job, SOON),
                             d == NOWHERE ? FILCH_TASK_FAILED : FILCH_OK);
            if (d == NOWHERE) {
                (void)filch_job_error(job, &error);
                assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
            } else {
                filch_job_info info = {.size = sizeof info};
                assert_ok(filch_job_stats(job, &info, NULL, 0));
                assert_int_equal(info.done, N);
                assert_memory_equal(room[1], model[0], VECTOR);
            }
            assert_ok(filch_job_release(job));
            stop();
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_another_process_leaves_is_enough),
        cmocka_unit_test(what_is_given_back_is_used_again),
        cmocka_unit_test(memory_may_end_at_any_call),
        cmocka_unit_test(what_has_no_room_goes_elsewhere),
        cmocka_unit_test(what_has_no_room_does_not_wait_for_its_neighbour),
        cmocka_unit_test(what_waits_for_one_goes_to_another),
        cmocka_unit_test(what_has_room_nowhere_is_told),
        cmocka_unit_test(scratch_without_room_is_told),
        cmocka_unit_test(refused_scratch_leaves_no_user),
        cmocka_unit_test(tasks_run_where_they_fit),
        cmocka_unit_test(chunks_are_cut_to_what_is_left),
        cmocka_unit_test(chunks_without_room_go_elsewhere),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
