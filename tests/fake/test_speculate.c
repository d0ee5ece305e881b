/* SPDX-License-Identifier: Apache-2.0 */
/* Chunks run twice where GPUs are: the one that is done first counts, wherever it ran, and the
 * other one touches nothing that anybody else can see, however late it is. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../random.h"
#include "base/clock.h"
#include "base/thread.h"
#include "runtime.h"

#include "jobs.h"
#include "patience.h"

enum {
    GRAIN = 16,
    GRAINS = 2,
    ITEMS = GRAIN * GRAINS,
    HOST = 100,
    NOWHERE = 101,
    DEVICES = 4,
    KERNEL_US = 200
};

static const char image[] = "FAKECUBIN arch=90 entry=fill";
static const char *const two_gpus = "cuda:0,cuda:1", *const gpu_and_core = "cuda:0,host:1";

static uint64_t in[ITEMS], out[ITEMS];
static filch_data *in_data, *out_data;
static filch_codelet *fills;
static filch_report report;
static filch_losses losses[DEVICES];
static filch_device_stats stats[DEVICES];
static filch_job_info info;

/* Where a run is held half-way, the first to come there; its first item; what it returns then; and
 * how many were, and went on. The second gate is for another run of what is held at the first. */
typedef struct gate {
    _Atomic uint32_t at;
    _Atomic uint64_t lo;
    _Atomic int code, held, let_go, over;
} gate;

static gate gates[2];
/* At random: of so many runs one sleeps, for up to so long. */
static _Atomic uint32_t nap_turn, nap_most, naps;

static uint32_t where(const filch_call *call)
{
    return call->opaque != NULL ? HOST : call->device;
}

static void nap(uint64_t us)
{
    const struct timespec span = {0, (long)us * 1000};
    (void)nanosleep(&span, NULL);
}

static int pass_gates(uint32_t at, uint64_t lo)
{
    uint32_t turn = atomic_load(&nap_turn);
    for (int g = 0; g < 2; g++) {
        uint32_t wanted = at;
        if ((g == 1 && atomic_load(&gates[0].lo) != lo) ||
            !atomic_compare_exchange_strong(&gates[g].at, &wanted, NOWHERE))
            continue;
        atomic_store(&gates[g].lo, lo);
        atomic_fetch_add(&gates[g].held, 1);
        while (atomic_load(&gates[g].let_go) == 0)
            nap(100);
        atomic_fetch_add(&gates[g].over, 1);
        return atomic_load(&gates[g].code);
    }
    if (turn != 0) {
        uint32_t k = atomic_fetch_add(&naps, 1);
        nap(k % turn == 0 ? atomic_load(&nap_most) : 0);
    }
    return 0;
}

/* fill(to, from): each element is the input's, thrice, and its number. */
static int fill(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    const uint64_t *from = call->views[1].ptr;
    uint32_t at = where(call);
    uint64_t count = call->hi - call->lo, half = count / 2;
    for (uint64_t i = 0; i < half; i++)
        to[i] = 3 * from[i] + call->lo + i;
    if (at == HOST)
        nap(KERNEL_US);
    int code = pass_gates(at, call->lo);
    for (uint64_t i = half; i < count; i++)
        to[i] = 3 * from[i] + call->lo + i;
    return code;
}

static filch_data *vector(uint64_t *at, uint32_t flags)
{
    return vector_of(runtime, at, ITEMS, GRAIN, flags);
}

static void set_gate(int g, uint32_t at, int code)
{
    atomic_store(&gates[g].code, code);
    atomic_store(&gates[g].held, 0);
    atomic_store(&gates[g].let_go, 0);
    atomic_store(&gates[g].over, 0);
    atomic_store(&gates[g].at, at);
}

static void open_gate(int g)
{
    atomic_store(&gates[g].at, NOWHERE);
    atomic_store(&gates[g].let_go, 1);
}

static void await(_Atomic int *count, int value)
{
    for (uint64_t end = fl_time_now() + PATIENCE_S * FL_NS_PER_S; atomic_load(count) < value;) {
        nap(100);
        assert_true(fl_time_now() < end);
    }
}

static filch_job *submit_batch(filch_access_mode mode)
{
    filch_batch_access accesses[2] = {
        {.data = out_data, .mode = mode, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = in_data, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = fills;
    desc.n = ITEMS;
    desc.grain = GRAIN;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    return job;
}

/* Waits, and has what became of it in info, stats, report and losses. */
static void end_batch(filch_job *job, filch_status expected)
{
    assert_int_equal(filch_job_wait(job, SOON), expected);
    info = (filch_job_info){.size = sizeof info};
    report = (filch_report)FILCH_REPORT_INIT;
    assert_ok(filch_job_stats(job, &info, stats, DEVICES));
    assert_ok(filch_job_report(job, NULL, &report, losses, DEVICES));
    assert_int_equal(info.done + info.failed + info.skipped, ITEMS);
    /* One that begins a second run counts it, and takes that back where it was too late. */
    for (int look = 0; look < 100 && report.total.restarts !=
                                         report.total.restarts_won + report.total.restarts_lost;
         look++) {
        nap(1000);
        assert_ok(filch_job_report(job, NULL, &report, losses, DEVICES));
    }
    assert_int_equal(report.total.restarts, report.total.restarts_won + report.total.restarts_lost);
    assert_ok(filch_job_release(job));
}

/* Every device is measured, with batches that are never run twice. */
static void warm_up(void)
{
    uint64_t done[DEVICES] = {0}, least = 0;
    size_t count = filch_device_count(runtime);
    for (int round = 0; round < 2000 && least < 4 && (count <= GRAINS || round < 200); round++) {
        end_batch(submit_batch(FILCH_READWRITE), FILCH_OK);
        nap(round < 50 ? 0 : 1000); /* all come to rest, and are woken alike */
        assert_int_equal(report.total.restarts, 0);
        least = UINT64_MAX;
        for (size_t d = 0; d < count; d++) {
            done[d] += stats[d].tiles;
            least = done[d] < least ? done[d] : least;
        }
    }
    assert_true(least >= 4 || count > GRAINS);
}

static void open_with(const char *devices, const char *driver, uint32_t flags)
{
    static const double even[DEVICES] = {1, 1, 1, 1};
    fakecuda_register_filch("fill", fill, 2, true, 0);
    set_gate(0, NOWHERE, 0);
    set_gate(1, NOWHERE, 0);
    atomic_store(&nap_turn, 0);
    scores = even;
    score_count = strstr(devices, "+64,") != NULL ? 4 : strstr(devices, ":2") != NULL ? 3 : 2;
    start(devices, "2", driver);
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    cuda.image = image;
    cuda.image_bytes = sizeof image;
    cuda.entry = "fill";
    desc.name = "fill";
    desc.cuda = &cuda;
    desc.host = fill;
    desc.flags = FILCH_CODELET_RESTARTABLE;
    assert_ok(filch_codelet_create(runtime, &desc, &fills));
    for (int i = 0; i < ITEMS; i++)
        in[i] = 7 * (uint64_t)i;
    memset(out, 0, sizeof out);
    in_data = vector(in, flags);
    out_data = vector(out, flags);
    warm_up();
}

static void expect_filled(bool is_managed)
{
    if (is_managed)
        assert_ok(filch_data_acquire(out_data, FILCH_READ));
    for (uint64_t i = 0; i < ITEMS; i++)
        assert_int_equal(out[i], 22 * i);
    if (is_managed)
        assert_ok(filch_data_release(out_data));
}

/* The host writes to all of it, behind whoever uses it. */
static void clear(void)
{
    filch_hold *hold_all = NULL;
    assert_ok(filch_data_acquire_tiles(out_data, NULL, FILCH_WRITE, SOON, &hold_all));
    memset(out, 0, sizeof out);
    assert_ok(filch_hold_release(hold_all));
}

static void close_all(void)
{
    open_gate(0);
    assert_ok(filch_runtime_drain(runtime, SOON));
    assert_ok(filch_data_destroy(in_data));
    assert_ok(filch_data_destroy(out_data));
    stop();
}

/* A batch of which one run, on a device, stands still: some have none there. */
static filch_job *submit_held(uint32_t at, filch_access_mode mode)
{
    for (int round = 0; round < 1000; round++) {
        set_gate(0, at, 0);
        filch_job *job = submit_batch(mode);
        while (atomic_load(&gates[0].held) == 0 && filch_job_status(job) == FILCH_NOT_READY) {
            nap(100);
        }
        if (atomic_load(&gates[0].held) != 0)
            return job;
        open_gate(0); /* a late one may come there even now */
        end_batch(job, FILCH_OK);
        assert_ok(filch_runtime_drain(runtime, SOON));
    }
    fail_msg("no run came to %u", at);
    return NULL;
}

/* The same, and the batch ends all the same. */
static void spoil_one(uint32_t at)
{
    filch_job *job = submit_held(at, FILCH_WRITE);
    end_batch(job, FILCH_OK);
    assert_int_equal(info.done, ITEMS);
    assert_int_equal(report.total.restarts, 1); /* the one that is held may be the second */
    assert_int_equal(atomic_load(&gates[0].over), 0);
}

/* --- Who is done first --- */

/* The one that stands still ends when its results are long the host's, or of a later job. */
static void spoil_on(const char *devices, uint32_t at, uint32_t flags)
{
    bool is_managed = (flags & FILCH_DATA_MANAGED) != 0;
    open_with(devices, "{\"kernel_ns\": 200000}", flags);
    for (int round = 0; round < 3; round++) {
        spoil_one(at);
        expect_filled(is_managed);
        if (round != 1)
            clear();
        open_gate(0);
        await(&gates[0].over, 1);
        assert_ok(filch_runtime_drain(runtime, SOON));
        if (round == 1) {
            expect_filled(is_managed);
        } else {
            if (is_managed)
                assert_ok(filch_data_acquire(out_data, FILCH_READ));
            for (int i = 0; i < ITEMS; i++)
                assert_int_equal(out[i], 0);
            if (is_managed)
                assert_ok(filch_data_release(out_data));
        }
        end_batch(submit_batch(FILCH_READWRITE), FILCH_OK);
        expect_filled(is_managed);
    }
    close_all();
}

static void a_gpu_takes_over_from_a_gpu(void **state)
{
    (void)state;
    spoil_on(two_gpus, 1, 0);
    spoil_on(two_gpus, 1, FILCH_DATA_MANAGED);
    spoil_on(two_gpus, 0, FILCH_DATA_MANAGED);
}

static void a_gpu_takes_over_from_the_host(void **state)
{
    (void)state;
    spoil_on(gpu_and_core, HOST, 0);
    spoil_on(gpu_and_core, HOST, FILCH_DATA_MANAGED);
}

static void the_host_takes_over_from_a_gpu(void **state)
{
    (void)state;
    spoil_on(gpu_and_core, 0, 0);
    spoil_on(gpu_and_core, 0, FILCH_DATA_MANAGED);
}

static void a_slice_takes_over_from_a_slice(void **state)
{
    (void)state;
    spoil_on("cuda:0/64+64", 0, 0);
    spoil_on("cuda:0/64+64", 0, FILCH_DATA_MANAGED);
}

/* A later job has written the handle on the same GPU, and others read it, when the one that lost
 * ends. */
static void the_late_one_is_seen_by_no_later_job(void **state)
{
    (void)state;
    static const char *const sets[] = {"cuda:0,cuda:1", "cuda:0,host:1", "cuda:0/64+64"};
    for (int k = 0; k < 3; k++) {
        open_with(sets[k], "{\"kernel_ns\": 200000}", FILCH_DATA_MANAGED);
        for (int round = 0; round < 4; round++) {
            spoil_one(0);
            uint64_t copied[ITEMS];
            /* Its input is read until then, so that only the output changes hands. */
            filch_data *copy_data = vector(copied, FILCH_DATA_MANAGED), *kept = in_data;
            in_data = out_data;
            out_data = copy_data;
            end_batch(submit_batch(FILCH_WRITE), FILCH_OK);
            open_gate(0);
            await(&gates[0].over, 1);
            assert_ok(filch_runtime_drain(runtime, SOON));
            assert_ok(filch_data_acquire(copy_data, FILCH_READ));
            for (uint64_t i = 0; i < ITEMS; i++)
                assert_int_equal(copied[i], 3 * 22 * i + i);
            assert_ok(filch_data_release(copy_data));
            out_data = in_data;
            in_data = kept;
            expect_filled(true);
            assert_ok(filch_data_destroy(copy_data));
        }
        close_all();
    }
}

/* The last chunk of a device a hundred times as slow is done by the other one, in its time: in one
 * of several rounds, as other processes may be in the way. */
static void a_slow_device_delays_nobody(void **state)
{
    double least = 1e9;
    (void)state;
    open_with(two_gpus,
              "{\"kernel_ns\": 2000000, \"devices\": [{\"speed\": 1}, {\"speed\": 0.01}]}", 0);
    for (int round = 0; round < 3; round++) {
        end_batch(submit_batch(FILCH_WRITE), FILCH_OK);
        expect_filled(false);
        least = info.seconds < least ? info.seconds : least;
        assert_ok(filch_runtime_drain(runtime, SOON));
    }
    assert_true(least < 0.15); /* alone the slow one takes 0.2 for its chunk */
    close_all();
}

/* --- What goes wrong --- */

/* All other chunks are over: what else is in flight on a device would be lost with it. */
static void await_others(filch_job *job)
{
    filch_job_info now = {.size = sizeof now};
    for (int looks = 0; looks < 2000 && now.done != ITEMS - GRAIN; looks++) {
        nap(1000);
        assert_ok(filch_job_stats(job, &now, NULL, 0));
    }
}

/* A first run is held on GPU 1, and its second one on GPU 0; either is lost when it is let go,
 * where its code is not 0. */
static filch_job *hold_both(int first_code, int second_code)
{
    for (int round = 0; round < 100; round++) {
        filch_job *job = submit_held(1, FILCH_WRITE);
        set_gate(1, 0, second_code);
        while (atomic_load(&gates[1].held) == 0 && filch_job_status(job) == FILCH_NOT_READY)
            nap(100);
        if (atomic_load(&gates[1].held) != 0) {
            await_others(job);
            atomic_store(&gates[0].code, first_code);
            return job;
        }
        open_gate(0); /* it was a second run, and not the last */
        end_batch(job, FILCH_OK);
        assert_ok(filch_runtime_drain(runtime, SOON));
    }
    fail_msg("no chunk was held twice");
    return NULL;
}

static void open_two(bool is_managed)
{
    open_with(two_gpus, "{\"kernel_ns\": 200000}", is_managed ? FILCH_DATA_MANAGED : 0);
}

/* The second run's device is lost in the middle of it: the first one goes on, and counts. */
static void the_second_is_lost(void **state)
{
    (void)state;
    for (int managed = 0; managed < 2; managed++) {
        open_two(managed != 0);
        filch_job *job = hold_both(0, 1);
        open_gate(1);
        nap(20000);
        assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
        open_gate(0);
        end_batch(job, FILCH_OK);
        assert_int_equal(info.done, ITEMS);
        assert_int_equal(report.total.restarts_lost, 1);
        if (managed == 0)
            expect_filled(false); /* else some was lost with the device */
        close_all();
    }
}

/* The first run's is: the second one counts. */
static void the_first_is_lost(void **state)
{
    (void)state;
    for (int managed = 0; managed < 2; managed++) {
        open_two(managed != 0);
        filch_job *job = hold_both(1, 0);
        open_gate(0);
        nap(20000);
        assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
        open_gate(1);
        end_batch(job, FILCH_OK);
        assert_int_equal(info.done, ITEMS);
        assert_int_equal(report.total.restarts_won, 1);
        expect_filled(managed != 0);
        close_all();
    }
}

/* Both are: the chunk has failed, once. */
static void both_are_lost(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        open_two(k % 2 != 0);
        filch_job *job = hold_both(1, 1);
        open_gate(k / 2);
        nap(20000);
        assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
        open_gate(1 - k / 2);
        end_batch(job, FILCH_TASK_FAILED);
        assert_int_equal(info.failed, GRAIN);
        assert_int_equal(info.done, ITEMS - GRAIN);
        close_all();
    }
}

/* The one that has lost is, when the job is over. */
static void the_late_one_is_lost(void **state)
{
    (void)state;
    for (int k = 0; k < 4; k++) {
        open_two(k % 2 != 0);
        filch_job *job = hold_both(k / 2 == 0, k / 2 != 0);
        open_gate(k / 2 == 0 ? 1 : 0);
        end_batch(job, FILCH_OK);
        assert_int_equal(info.done, ITEMS);
        if (k != 3)
            expect_filled(k % 2 != 0);
        open_gate(0);
        open_gate(1);
        assert_ok(filch_runtime_drain(runtime, SOON));
        if (k != 3) /* else the first chunk was on the device that is lost */
            expect_filled(k % 2 != 0);
        close_all();
    }
}

/* Where there is no memory to write to apart, a chunk is run where its results go, and once. */
static void without_memory_it_is_run_once(void **state)
{
    (void)state;
    open_two(true);
    for (uint32_t place = 1; place <= 2; place++)
        fl_place_cap(&runtime->places, place, 0);
    filch_job *job = submit_held(1, FILCH_WRITE);
    nap(20000);
    assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
    open_gate(0);
    end_batch(job, FILCH_OK);
    assert_int_equal(report.total.restarts, 0);
    assert_int_equal(report.total.restarts_refused, GRAINS);
    expect_filled(true);
    close_all();
}

/* Nor is it begun anew where the driver refuses it, and then where it does not. */
static void a_second_run_may_be_refused(void **state)
{
    (void)state;
    uint64_t restarts = 0;
    for (int k = 0; k < 6; k++) {
        open_two(k % 2 != 0);
        set_gate(0, 1, 0);
        fakecuda_fail("cuLaunchKernel", 2, 3, 701, 0, false); /* but its own chunk */
        filch_job *job = submit_batch(FILCH_WRITE);
        filch_status status = filch_job_wait(job, 0.2);
        open_gate(0);
        status = status == FILCH_TIMEOUT ? filch_job_wait(job, SOON) : status;
        assert_true(status == FILCH_OK || status == FILCH_TASK_FAILED); /* had it both chunks */
        end_batch(job, status);
        restarts += report.total.restarts;
        if (status == FILCH_OK)
            expect_filled(k % 2 != 0);
        close_all();
    }
    assert_int_not_equal(restarts, 0);
}

/* A cancelled job's runs end, each once. */
static void a_cancelled_job_ends(void **state)
{
    (void)state;
    for (int managed = 0; managed < 2; managed++) {
        open_with(two_gpus, "{\"kernel_ns\": 200000}", managed != 0 ? FILCH_DATA_MANAGED : 0);
        for (int round = 0; round < 8; round++) {
            filch_job *job = submit_held(1, FILCH_WRITE);
            nap((uint64_t)round * 100);
            (void)filch_job_cancel(job);
            nap((uint64_t)round * 100);
            open_gate(0);
            filch_status status = filch_job_wait(job, SOON);
            assert_true(status == FILCH_OK || status == FILCH_CANCELLED);
            end_batch(job, status);
            assert_int_equal(info.failed, 0);
            assert_ok(filch_runtime_drain(runtime, SOON));
        }
        close_all();
    }
}

static int let_go_later(void *unused)
{
    (void)unused;
    nap(50000);
    open_gate(0);
    return 0;
}

/* The end of the runtime waits for a run that lost. */
static void the_end_waits_for_the_late_one(void **state)
{
    (void)state;
    for (int managed = 0; managed < 2; managed++) {
        fl_thread thread;
        open_with(two_gpus, "{\"kernel_ns\": 200000}", managed != 0 ? FILCH_DATA_MANAGED : 0);
        spoil_one(1);
        assert_int_equal(filch_data_destroy(in_data), FILCH_BUSY);
        assert_int_equal(filch_data_destroy(out_data), FILCH_BUSY);
        assert_ok(fl_thread_start(&thread, let_go_later, NULL));
        stop();
        assert_int_equal(atomic_load(&gates[0].over), 1);
        fl_thread_join(thread);
    }
}

/* What reads what it writes is not run twice. */
static void what_is_read_and_written_is_run_once(void **state)
{
    (void)state;
    open_with(two_gpus, "{\"kernel_ns\": 200000}", 0);
    filch_job *job = submit_held(1, FILCH_READWRITE);
    nap(50000);
    assert_int_equal(filch_job_status(job), FILCH_NOT_READY);
    open_gate(0);
    end_batch(job, FILCH_OK);
    assert_int_equal(report.total.restarts, 0);
    assert_int_equal(report.total.restarts_refused, GRAINS);
    close_all();
}

/* --- At random --- */

enum { MANY = 16 * GRAIN, ROUNDS = 60, MOST_STEPS = 6 };

typedef struct field {
    fl_random random;
    filch_data *data[2];
    uint64_t real[2][MANY], model[2][MANY];
    bool is_managed;
    uint64_t restarts, won;
} field;

static _Atomic int is_over;

/* Devices come and go meanwhile, all but the first. */
static int come_and_go(void *user)
{
    fl_random random;
    uint32_t count = (uint32_t)(uintptr_t)user;
    fl_random_init(&random, count, 1);
    while (atomic_load(&is_over) == 0) {
        uint32_t d = 1 + fl_random_below(&random, count - 1);
        (void)filch_device_withdraw(runtime, d);
        nap(fl_random_below(&random, 3000));
        (void)filch_device_readmit(runtime, d);
        nap(fl_random_below(&random, 9000));
    }
    return 0;
}

static void write_model(field *f, int k)
{
    filch_hold *whole = NULL;
    assert_ok(filch_data_acquire_tiles(f->data[k], NULL, FILCH_WRITE, SOON, &whole));
    for (int i = 0; i < MANY; i++)
        f->real[k][i] = f->model[k][i] = fl_random_next(&f->random);
    assert_ok(filch_hold_release(whole));
}

static void check_model(field *f, int k)
{
    filch_hold *whole = NULL;
    assert_ok(filch_data_acquire_tiles(f->data[k], NULL, FILCH_READ, SOON, &whole));
    assert_memory_equal(f->real[k], f->model[k], sizeof f->real[k]);
    assert_ok(filch_hold_release(whole));
}

static filch_job *submit_many(field *f, int to)
{
    filch_batch_access accesses[2] = {
        {.data = f->data[to], .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = f->data[1 - to], .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1}};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = fills;
    desc.n = MANY;
    desc.grain = GRAIN;
    desc.accesses = accesses;
    desc.access_count = 2;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    return job;
}

/* True: it ended well. */
static bool end_many(field *f, filch_job *job)
{
    filch_status status = filch_job_wait(job, SOON);
    filch_job_info end = {.size = sizeof end};
    filch_report what = FILCH_REPORT_INIT;
    assert_true(status == FILCH_OK || status == FILCH_CANCELLED);
    assert_ok(filch_job_stats(job, &end, NULL, 0));
    /* One that comes too late to begin is counted for a moment. */
    for (int looks = 0; looks < 100; looks++) {
        assert_ok(filch_job_report(job, NULL, &what, NULL, 0));
        if (what.total.restarts == what.total.restarts_won + what.total.restarts_lost)
            break;
        nap(1000);
    }
    assert_int_equal(end.done + end.failed + end.skipped, MANY);
    assert_int_equal(end.failed, 0);
    assert_int_equal(what.total.restarts, what.total.restarts_won + what.total.restarts_lost);
    f->restarts += what.total.restarts;
    f->won += what.total.restarts_won;
    assert_ok(filch_job_release(job));
    return status == FILCH_OK;
}

/* Some jobs in a row, each of which reads what the one before has written, and writes what that has
 * read; the last one may be cancelled. */
static void run_some(field *f)
{
    filch_job *jobs[MOST_STEPS];
    int steps = 1 + (int)fl_random_below(&f->random, MOST_STEPS), to = 0;
    bool cancels = fl_random_below(&f->random, 6) == 0, is_good = true;
    atomic_store(&nap_turn, 4 + fl_random_below(&f->random, 20));
    atomic_store(&nap_most, fl_random_below(&f->random, 4000));
    for (int k = 0; k < steps; k++) {
        to = 1 - to;
        jobs[k] = submit_many(f, to);
        for (uint64_t i = 0; i < MANY; i++)
            f->model[to][i] = 3 * f->model[1 - to][i] + i;
    }
    if (cancels) {
        nap(fl_random_below(&f->random, 2000));
        (void)filch_job_cancel(jobs[steps - 1]);
    }
    for (int k = 0; k < steps; k++)
        is_good = end_many(f, jobs[k]) && is_good;
    if (is_good)
        check_model(f, to);
    else
        write_model(f, to);
    if (steps > 1)
        check_model(f, 1 - to);
    if (to == 1 || !is_good || fl_random_below(&f->random, 3) == 0)
        write_model(f, 0); /* what the next ones read first */
}

static void at_random(const char *set, uint32_t flags, bool comes_and_goes)
{
    static field f;
    fl_thread thread;
    f = (field){.is_managed = flags != 0};
    fl_random_init(&f.random, strlen(set) + flags, comes_and_goes);
    open_with(set, "{\"kernel_ns\": 200000}", flags);
    for (int k = 0; k < 2; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = f.real[k];
        desc.element = sizeof f.real[k][0];
        desc.rows = MANY;
        desc.tile_rows = GRAIN;
        desc.flags = flags;
        assert_ok(filch_data_create(runtime, &desc, &f.data[k]));
        write_model(&f, k);
    }
    atomic_store(&is_over, 0);
    uintptr_t count = filch_device_count(runtime);
    if (comes_and_goes)
        assert_ok(fl_thread_start(&thread, come_and_go, (void *)count));
    for (int round = 0; round < ROUNDS; round++)
        run_some(&f);
    atomic_store(&is_over, 1);
    if (comes_and_goes)
        fl_thread_join(thread);
    atomic_store(&nap_turn, 0);
    assert_ok(filch_runtime_drain(runtime, SOON));
    assert_true(f.restarts != 0 && f.won != 0);
    assert_ok(filch_data_destroy(f.data[0]));
    assert_ok(filch_data_destroy(f.data[1]));
    close_all();
}

static void results_are_right(void **state)
{
    static const char *const sets[] = {"cuda:0,cuda:1", "cuda:0,host:2",
                                       "cuda:0/64+64,cuda:1,host:1"};
    (void)state;
    for (int k = 0; k < 3; k++) {
        at_random(sets[k], 0, false);
        at_random(sets[k], FILCH_DATA_MANAGED, false);
        at_random(sets[k], FILCH_DATA_MANAGED, true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_gpu_takes_over_from_a_gpu),
        cmocka_unit_test(a_gpu_takes_over_from_the_host),
        cmocka_unit_test(the_host_takes_over_from_a_gpu),
        cmocka_unit_test(a_slice_takes_over_from_a_slice),
        cmocka_unit_test(the_late_one_is_seen_by_no_later_job),
        cmocka_unit_test(a_slow_device_delays_nobody),
        cmocka_unit_test(the_second_is_lost),
        cmocka_unit_test(the_first_is_lost),
        cmocka_unit_test(both_are_lost),
        cmocka_unit_test(the_late_one_is_lost),
        cmocka_unit_test(a_second_run_may_be_refused),
        cmocka_unit_test(without_memory_it_is_run_once),
        cmocka_unit_test(a_cancelled_job_ends),
        cmocka_unit_test(the_end_waits_for_the_late_one),
        cmocka_unit_test(what_is_read_and_written_is_run_once),
        cmocka_unit_test(results_are_right),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
