/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "property.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "count.h"
#include "measure/policies.h"

enum { FAILURES_SHOWN = 10 };

/* The case that runs; there is one at a time. */
static struct {
    const char *name;
    uint64_t seed;
    const char *world;
    _Atomic uint32_t failures;
} present;

void property_fail(const char *format, ...)
{
    if (fl_add_relaxed(&present.failures, 1) >= FAILURES_SHOWN) {
        return;
    }
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    fprintf(stderr, "%s: %s (%s; repeat with: test_property_%s 1 %" PRIu64 ")\n", present.name,
            text, present.world, present.name, present.seed);
}

void property_expect(filch_status got, filch_status wanted, const char *call)
{
    if (got != wanted) {
        property_fail("%s returned %s, not %s", call, filch_status_name(got),
                      filch_status_name(wanted));
    }
}

bool property_has_failed(void)
{
    return fl_load_relaxed(&present.failures) != 0;
}

bool property_chance(fl_random *random, uint32_t percent)
{
    return fl_random_below(random, 100) < percent;
}

uint64_t property_mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));
    return fl_splitmix64(&state);
}

void *property_alloc(size_t count, size_t size)
{
    void *pointer = calloc(count != 0 ? count : 1, size);
    if (pointer == NULL) {
        fprintf(stderr, "no memory for %zu elements of %zu bytes\n", count, size);
        exit(2);
    }
    return pointer;
}

static int poll_loop(void *arg)
{
    property_world *world = arg;
    while (fl_load_acquire(&world->stop) == 0) {
        bool worked = false;
        filch_status status = filch_runtime_poll(world->runtime, 0.0005, &worked);
        if (status != FILCH_OK) {
            property_fail("filch_runtime_poll returned %s", filch_status_name(status));
            return 1;
        }
        if (!worked) {
            fl_thread_yield();
        }
    }
    return 0;
}

/* --- Policies --- */

/* Answers of a policy that knows nothing, some of which make no sense. Called by any worker. */
static _Atomic uint64_t asked;

static uint32_t any_answer(const filch_policy_view *view)
{
    filch_policy_item item = {.size = sizeof item};
    uint64_t chance = property_mix(present.seed, fl_add_relaxed(&asked, 1));
    uint32_t devices = filch_policy_devices(view);
    property_ok(filch_policy_item_get(view, &item));
    for (uint32_t d = 0; d <= devices; ++d) {
        double seconds = filch_policy_load(view, d) + filch_policy_seconds(view, d) +
                         filch_policy_transfer(view, d);
        if (!(seconds >= 0 && filch_policy_load(view, d) < 1e10) ||
            (d == devices && seconds != 0) ||
            (filch_policy_missing(view, d) != 0 && item.kind == FILCH_POLICY_THEFT)) {
            property_fail("device %u: a view says %g s", d, seconds);
        }
        chance += filch_policy_queued(view, d);
    }
    switch (chance % 8) {
    case 0:
        return FILCH_POLICY_AUTO;
    case 1:
    case 2:
        return FILCH_POLICY_ANYONE;
    case 3:
        return FILCH_POLICY_NOBODY;
    case 4:
        return (uint32_t)(chance >> 32);
    default:
        return (uint32_t)(chance >> 32) % (devices + 1);
    }
}

static uint32_t place_anyhow(const filch_policy_view *view, void *user)
{
    (void)user;
    return any_answer(view);
}

static uint32_t chunk_anyhow(const filch_policy_view *view, void *user)
{
    (void)user;
    return any_answer(view) % 1000;
}

static uint32_t steal_anyhow(const filch_policy_view *view, uint32_t *amount, void *user)
{
    (void)user;
    *amount = any_answer(view) % 10;
    return any_answer(view);
}

const char *property_policy(fl_random *random, bool is_sim, filch_runtime_desc *config)
{
    static filch_policy_desc policy; /* of the world that is there */
    static bench_policy_room room;   /* likewise */
    uint32_t chance = fl_random_below(random, 100);
    policy = (filch_policy_desc)FILCH_POLICY_DESC_INIT;
    if (chance < 20) {
        uint32_t which = fl_random_below(random, 8);
        policy.place = (which & 1) != 0 ? place_anyhow : NULL;
        policy.chunk = (which & 2) != 0 ? chunk_anyhow : NULL;
        policy.steal = (which & 4) != 0 ? steal_anyhow : NULL;
        policy.batches = (filch_policy_batches)fl_random_below(random, 3);
        if (policy.place == NULL && policy.batches == FILCH_POLICY_BATCHES_PLACED) {
            policy.batches = FILCH_POLICY_BATCHES_COMMON;
        }
        config->custom_policy = &policy;
        return "custom";
    }
    bench_policy kind = chance < 45 ? BENCH_POLICY_STEAL
                        : chance < 60
                            ? BENCH_POLICY_STATIC
                            : (bench_policy)(BENCH_POLICY_PERFECT + fl_random_below(random, 5));
    if (kind == BENCH_POLICY_PERFECT && !is_sim) {
        kind = BENCH_POLICY_STATIC; /* nothing was measured */
    }
    bench_policy_choose(kind, &room, config);
    return bench_policy_name(kind);
}

/* Speeds over three decades, scores that need not agree with them. */
static void write_sim_file(FILE *file, fl_random *random)
{
    uint32_t kinds = 1 + fl_random_below(random, 4);
    fprintf(file, "{\"devices\": [\n");
    for (uint32_t i = 0; i < kinds; ++i) {
        static const double speeds[] = {1e7, 1e8, 5e8, 1e9, 1e10};
        fprintf(file, "%s{\"speed\": %g, \"overhead_us\": %u, \"window\": %u, \"count\": %u",
                i != 0 ? ",\n" : "", speeds[fl_random_below(random, 5)],
                fl_random_below(random, 20), 1 + fl_random_below(random, 4),
                1 + fl_random_below(random, 2));
        if (property_chance(random, 50)) {
            fprintf(file, ", \"score\": %u", fl_random_below(random, 10));
        }
        fprintf(file, "}");
    }
    fprintf(file, "\n]}\n");
}

static filch_status open_sim(property_world *world, filch_runtime_desc *config, filch_error *error,
                             fl_random *random)
{
    const char *folder = getenv("TMPDIR");
    char path[200], devices[sizeof path + 8];
    snprintf(path, sizeof path, "%s/filch-property-XXXXXX", folder != NULL ? folder : "/tmp");
    int descriptor = mkstemp(path);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (file == NULL) {
        perror(path);
        exit(2);
    }
    write_sim_file(file, random);
    fclose(file);
    snprintf(devices, sizeof devices, "sim:%s", path);
    config->devices = devices;
    filch_status status = filch_runtime_create(config, error, &world->runtime);
    unlink(path);
    return status;
}

static void world_open(property_world *world, fl_random *random)
{
    memset(world, 0, sizeof *world);
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status;
    char devices[32] = "sim";
    world->is_sim = property_chance(random, 40);
    world->policy = property_policy(random, world->is_sim, &config);
    world->is_static = config.policy == FILCH_POLICY_STATIC;
    config.trace = property_chance(random, 10);
    bool polls = !world->is_sim && property_chance(random, 35);
    if (world->is_sim) {
        status = open_sim(world, &config, &error, random);
    } else {
        snprintf(devices, sizeof devices, "host:%u", 1 + fl_random_below(random, 4));
        config.devices = devices;
        config.drive = polls ? FILCH_DRIVE_POLL : FILCH_DRIVE_THREADS;
        status = filch_runtime_create(&config, &error, &world->runtime);
    }
    if (status != FILCH_OK) {
        fprintf(stderr, "no runtime: %s\n", error.text);
        exit(2);
    }
    world->devices = filch_device_count(world->runtime);
    world->poller_count = polls ? fl_random_below(random, PROPERTY_MOST_POLLERS + 1) : 0;
    snprintf(world->text, sizeof world->text, "%s, %u devices, %s, %s, %u pollers", devices,
             world->devices, world->policy,
             polls           ? "poll"
             : world->is_sim ? "virtual clock"
                             : "threads",
             world->poller_count);
    for (uint32_t i = 0; i < world->poller_count; ++i) {
        property_ok(fl_thread_start(&world->pollers[i], poll_loop, world));
    }
}

static void world_close(property_world *world)
{
    property_ok(filch_runtime_drain(world->runtime, -1));
    fl_store_release(&world->stop, 1);
    for (uint32_t i = 0; i < world->poller_count; ++i) {
        fl_thread_join(world->pollers[i]);
    }
    property_ok(filch_runtime_destroy(world->runtime));
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

int property_main(const char *name, int argc, char **argv, property_check check, uint64_t optimized)
{
    uint64_t count = argc > 1 ? number(argv[1]) : test_count(optimized);
    uint64_t seed = argc > 2 ? number(argv[2]) : fl_time_now(), cases = 0;
    static property_world world;
    present.name = name;
    present.world = world.text;
    printf("%s: seed %" PRIu64 "\n", name, seed);
    fflush(stdout);
    while (cases < count && !property_has_failed()) {
        fl_random random;
        present.seed = seed + cases++;
        fl_random_init(&random, present.seed, 0);
        world_open(&world, &random);
        check(&world, &random);
        if (property_has_failed()) {
            break; /* what is left of the world may hang */
        }
        world_close(&world);
    }
    printf("%s: %" PRIu64 " cases, %s\n", name, cases, property_has_failed() ? "FAILED" : "passed");
    fflush(stdout);
    return property_has_failed() ? 1 : 0;
}
