/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "sim.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void describe(FILE *file, const void *user, size_t count)
{
    const sim_kind *kinds = user;
    fprintf(file, "{\"devices\": [\n");
    for (size_t i = 0; i < count; ++i) {
        const sim_kind *kind = &kinds[i];
        fprintf(file, "%s{\"speed\": %.17g, \"overhead_us\": %.17g, \"count\": %u", i ? ",\n" : "",
                kind->speed, kind->overhead_us, kind->count ? kind->count : 1);
        if (kind->score != 0) {
            fprintf(file, ", \"score\": %.17g", kind->score);
        }
        if (kind->window != 0) {
            fprintf(file, ", \"window\": %u", kind->window);
        }
        fprintf(file, "}");
    }
    fprintf(file, "\n]}\n");
}

static void describe_text(FILE *file, const void *user, size_t count)
{
    (void)count;
    fputs(user, file);
}

/* Devices as write(user, count) puts them into a file; the world is empty. */
static void open_described(sim_world *world, void (*write)(FILE *, const void *, size_t),
                           const void *user, size_t count, filch_runtime_desc config)
{
    const char *folder = getenv("TMPDIR");
    snprintf(world->path, sizeof world->path, "%s/filch-sim-XXXXXX", folder ? folder : "/tmp");
    int descriptor = mkstemp(world->path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    assert_non_null(file);
    write(file, user, count);
    assert_int_equal(fclose(file), 0);

    char devices[sizeof world->path + 8];
    snprintf(devices, sizeof devices, "sim:%s", world->path);
    config.devices = devices;
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = filch_runtime_create(&config, &error, &world->runtime);
    unlink(world->path);
    if (status != FILCH_OK) {
        fail_msg("%s", error.text);
    }
    world->count = filch_device_count(world->runtime);
    assert_true(world->count <= SIM_MOST_DEVICES);
}

void sim_open_text(sim_world *world, const char *text, const filch_runtime_desc *config)
{
    *world = (sim_world){0};
    open_described(world, describe_text, text, 0, *config);
}

void sim_open_machine(sim_world *world, const char *text, bench_policy policy)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    *world = (sim_world){0};
    bench_policy_choose(policy, &world->policy, &config);
    open_described(world, describe_text, text, 0, config);
}

void sim_open(sim_world *world, const sim_kind *kinds, size_t count, bench_policy policy)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    *world = (sim_world){0};
    bench_policy_choose(policy, &world->policy, &config);
    open_described(world, describe, kinds, count, config);
    for (size_t i = 0; i < count; ++i) {
        world->speed += kinds[i].speed * (kinds[i].count ? kinds[i].count : 1);
    }
}

void sim_close(sim_world *world)
{
    sim_ok(filch_runtime_destroy(world->runtime));
}

int sim_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

filch_codelet *sim_codelet(const sim_world *world, filch_host_fn host, filch_work_fn work,
                           filch_work_fn cost)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "tile";
    desc.host = host != NULL ? host : sim_nothing;
    desc.work = work;
    desc.cost = cost;
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    return codelet;
}

void sim_finish(filch_job *job, sim_outcome *outcome)
{
    outcome->status = filch_job_wait(job, -1);
    outcome->info.size = sizeof outcome->info;
    sim_ok(filch_job_stats(job, &outcome->info, outcome->devices, SIM_MOST_DEVICES));
    sim_ok(filch_job_release(job));
}

void sim_batch(const sim_world *world, filch_codelet *codelet, uint64_t n, uint64_t grain,
               sim_outcome *outcome)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = n;
    desc.grain = grain;
    sim_ok(filch_batch_submit(world->runtime, &desc, NULL, &job));
    sim_finish(job, outcome);
}

double sim_excess(const sim_world *world, double work, const sim_outcome *outcome)
{
    return outcome->info.seconds / (work / world->speed);
}
