/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "gpu.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/clock.h"
#include "count.h"
#include "runtime.h"

#ifdef FL_FAKE
#include "fakecuda.h"
#include "gpu/twins.h"
#endif

enum { FAILURES_SHOWN = 10, CASES_A_RUNTIME = 12 };

/* The case that runs; there is one at a time. */
static struct {
    const char *name;
    const char *devices;
    char where[384]; /* the runtime, for messages */
    uint64_t seed;
    _Atomic uint32_t failures;
} present;

void gpu_fail(const char *format, ...)
{
    /* Relaxed: a count, which orders nothing. */
    if (fl_add_relaxed(&present.failures, 1) >= FAILURES_SHOWN)
        return;
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s (on %s; repeat with: test_gpu_%s 1 %" PRIu64 ")\n", present.name, text,
            present.where, present.name, present.seed);
}

void gpu_expect(filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted)
        gpu_fail("%s returned %s, not %s", call, filch_status_name(got), filch_status_name(wanted));
}

bool gpu_has_failed(void)
{
    return fl_load_relaxed(&present.failures) != 0;
}

void gpu_explain(filch_runtime *runtime)
{
    filch_error error = FILCH_ERROR_INIT;
    if (filch_runtime_error(runtime, &error) == FILCH_OK)
        fprintf(stderr, "%s: %s: %s\n", present.name, error.label, error.text);
}

void gpu_wait(filch_runtime *runtime, filch_job *job, filch_status wanted)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = filch_job_wait(job, -1);
    if (status != wanted) {
        gpu_fail("a job ended with %s, not %s", filch_status_name(status),
                 filch_status_name(wanted));
        if (filch_job_error(job, &error) == FILCH_OK)
            fprintf(stderr, "%s: %s on %s: %s\n", present.name, error.label, error.device,
                    error.text);
        else
            gpu_explain(runtime);
    }
    gpu_ok(filch_job_release(job));
}

bool gpu_chance(gpu_world *world, uint32_t percent)
{
    return fl_random_below(&world->random, 100) < percent;
}

uint64_t gpu_between(gpu_world *world, uint64_t low, uint64_t high)
{
    return low + fl_random_below(&world->random, (uint32_t)(high - low + 1));
}

void *gpu_alloc(size_t count, size_t size)
{
    void *pointer = calloc(count != 0 ? count : 1, size);
    if (!pointer) {
        fprintf(stderr, "no memory for %zu elements of %zu bytes\n", count, size);
        exit(2);
    }
    return pointer;
}

/* Whether the failure says that there is no GPU here, not that one does not work. */
static bool is_absent(filch_status status)
{
    return status == FILCH_NO_DRIVER || status == FILCH_DRIVER_STUB ||
           status == FILCH_DRIVER_TOO_OLD || status == FILCH_NO_DEVICE;
}

static bool has_gpu(filch_runtime *runtime)
{
    for (uint32_t d = 0; d < filch_device_count(runtime); d++) {
        filch_device_info info = {.size = sizeof info};
        if (filch_device_at(runtime, d, &info) == FILCH_OK && info.backend == FILCH_BACKEND_CUDA)
            return true;
    }
    return false;
}

static filch_runtime *open_runtime(const filch_runtime_desc *config)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    filch_status status = filch_runtime_create(config, &error, &runtime);
    if (status != FILCH_OK || !has_gpu(runtime)) {
        bool skips = status == FILCH_OK || is_absent(status);
        fprintf(stderr, "%s on %s: %s\n", skips ? "skipped" : "failed", present.devices,
                status == FILCH_OK ? "no GPU among the devices" : error.text);
        exit(skips ? GPU_SKIP : 1);
    }
    return runtime;
}

static const char *named_devices(void)
{
    const char *given = getenv("FILCH_DEVICES");
    return given && given[0] ? given : NULL;
}

static bench_policy_room room; /* of the runtime that there is */

filch_runtime *gpu_runtime(bench_policy policy)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    present.devices = named_devices() ? named_devices() : "cuda";
    config.devices = present.devices;
    bench_policy_choose(policy, &room, &config);
    snprintf(present.where, sizeof present.where, "%s", present.devices);
    return open_runtime(&config);
}

/* --- The runtimes of random cases --- */

/* Cases whose seeds have this in common share a runtime, so that each is repeated on the same. */
static uint64_t runtime_of(uint64_t seed)
{
    return seed / CASES_A_RUNTIME;
}

#ifdef FL_FAKE
#define PICK(random, list) (list)[fl_random_below(random, sizeof(list) / sizeof(list)[0])]

/* Another machine each time: how many GPUs, how they are linked, how long things take. */
static void vary_machine(fl_random *random, char *text, size_t bytes)
{
    static const char all[] = "{\"from\": 0, \"to\": 1}, {\"from\": 0, \"to\": 2}, "
                              "{\"from\": 1, \"to\": 2}";
    static const char islands[] = "{\"from\": 0, \"to\": 1}, {\"from\": 1, \"to\": 2}";
    static const char *const links[] = {"", "{\"from\": 0, \"to\": 1}", all, islands};
    static const char *const times[] = {"0", "0", "3000", "30000"};
    snprintf(text, bytes,
             "{\"devices\": [{\"count\": 3}], \"links\": [%s], \"kernel_ns\": %s, \"copy_ns\": %s}",
             PICK(random, links), PICK(random, times), PICK(random, times));
    fakecuda_reset();
    if (!fakecuda_configure(text))
        gpu_fail("the fake driver cannot be configured");
}

static const char *vary_pool(fl_random *random)
{
    static const char *const pools[] = {
        "cuda",          "cuda,host:1",   "cuda:0",
        "cuda:0,host:1", "cuda:1,cuda:2", "cuda:0/88+24+8",
        "cuda,host:3",   "host:1,cuda:2", "cuda:0/64+32,cuda:1,host:1",
    };
    return PICK(random, pools);
}
#endif

/* As if links had been measured, and were as unlike as can be: tiles come over third memories, and
 * in many parts. */
static void tell_rates(filch_runtime *runtime, fl_random *random)
{
    const uint32_t places = runtime->pool.place_count;
    fl_bandwidths *rates = &runtime->pool.bandwidths;
    if (fl_bandwidths_open(rates, &runtime->core.memory, places) != FILCH_OK)
        return;
    for (uint32_t k = 0; k < places * places; k++)
        fl_bandwidths_set(rates, places, k / places, k % places,
                          k / places == 0 || k % places == 0
                              ? 1e5
                              : (double)(1u << fl_random_below(random, 12)) * 1e6);
}

static filch_runtime *random_runtime(void)
{
    static const char *const lanes[] = {"1", "2", "4"};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    fl_random random;
    char machine[256] = "";
    fl_random_init(&random, runtime_of(present.seed), 1);
    const char *lane = lanes[fl_random_below(&random, 3)], *devices = "cuda";
    bool polls = fl_random_below(&random, 4) == 0;
    config.drive = polls ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
    static const bench_policy policies[] = {
        BENCH_POLICY_STEAL,   BENCH_POLICY_STEAL,  BENCH_POLICY_STEAL,    BENCH_POLICY_STATIC,
        BENCH_POLICY_CENTRAL, BENCH_POLICY_GUIDED, BENCH_POLICY_EARLIEST, BENCH_POLICY_ROUND_ROBIN,
    };
    bench_policy policy = policies[fl_random_below(&random, sizeof policies / sizeof *policies)];
    bench_policy_choose(policy, &room, &config);
#ifdef FL_FAKE
    vary_machine(&random, machine, sizeof machine);
    devices = vary_pool(&random);
#endif
    present.devices = config.devices = named_devices() ? named_devices() : devices;
    setenv("FILCH_LANES", lane, 1);
    snprintf(present.where, sizeof present.where, "%s, %s, lanes: %s, %s%s", present.devices,
             bench_policy_name(policy), lane, polls ? "polled" : "threads", machine);
    filch_runtime *runtime = open_runtime(&config);
    if (fl_random_below(&random, 2) == 0)
        tell_rates(runtime, &random);
    return runtime;
}

void gpu_twin(const char *entry, filch_host_fn host, uint32_t views, bool is_batch,
              uint32_t arg_size)
{
#ifdef FL_FAKE
    fakecuda_register_filch(entry, host, views, is_batch, arg_size);
#else
    (void)entry;
    (void)host;
    (void)views;
    (void)is_batch;
    (void)arg_size;
#endif
}

filch_status gpu_codelet(filch_runtime *runtime, const char *source, const char *entry,
                         filch_host_fn host, uint32_t arg_size, filch_shape_fn shape_of,
                         filch_codelet **codelet)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = source;
    cuda.entry = entry;
    cuda.shape_of = shape_of;
    cuda.shape.block[0] = 128;
    cuda.shape.grid[0] = 4;
    desc.name = entry;
    desc.host = host;
    desc.cuda = &cuda;
    desc.arg_size = arg_size;
    filch_status status = filch_codelet_create(runtime, &desc, codelet);
    if (status != FILCH_OK)
        gpu_explain(runtime);
    return status;
}

filch_status gpu_builtin(filch_runtime *runtime, const char *name, filch_codelet **codelet)
{
#ifdef FL_FAKE
    gpu_twins_register();
#endif
    filch_status status = filch_codelet_create_builtin(runtime, name, codelet);
    if (status != FILCH_OK)
        gpu_explain(runtime);
    return status;
}

static uint64_t number(const char *text)
{
    char *end;
    unsigned long long value = strtoull(text, &end, 10);
    if (end == text || *end != '\0' || *text == '-') {
        fprintf(stderr, "not a number: %s\n", text);
        exit(2);
    }
    return value;
}

/* Cases in one runtime. */
static filch_status run_some(const gpu_test *test, gpu_world *world, uint64_t *cases,
                             uint64_t count)
{
    uint64_t first = present.seed;
    world->runtime = random_runtime();
    world->devices = filch_device_count(world->runtime);
    filch_status status = test->open(world);
    while (status == FILCH_OK && runtime_of(present.seed) == runtime_of(first) && *cases < count) {
        fl_random_init(&world->random, present.seed, 0);
        test->check(world);
        if (gpu_has_failed())
            return FILCH_OK; /* what is left of the runtime may hang */
        ++*cases;
        ++present.seed;
    }
    if (status != FILCH_OK && present.seed == first && status != FILCH_NO_COMPILER)
        gpu_fail("the codelets cannot be made: %s", filch_status_name(status));
    gpu_ok(filch_runtime_destroy(world->runtime));
    return status;
}

int gpu_main(const gpu_test *test, int argc, char **argv)
{
    (void)setenv("FILCH_REPLAY", "3", 0); /* few graphs run often */
    uint64_t count = argc > 1 ? number(argv[1]) : test_count(test->cases);
    uint64_t cases = 0;
    gpu_world world = {0};
    filch_status status = FILCH_OK;
    present.name = test->name;
    present.seed = argc > 2 ? number(argv[2]) : fl_time_now();
    printf("%s: seed %" PRIu64 "\n", test->name, present.seed);
    fflush(stdout);
    while (cases < count && !gpu_has_failed() && status == FILCH_OK)
        status = run_some(test, &world, &cases, count);
    if (status == FILCH_NO_COMPILER) {
        printf("%s: skipped, there is no CUDA C compiler\n", test->name);
        return GPU_SKIP;
    }
    printf("%s on %s: %" PRIu64 " cases, %s\n", test->name, present.devices, cases,
           gpu_has_failed() ? "FAILED" : "passed");
    return gpu_has_failed() ? 1 : 0;
}
