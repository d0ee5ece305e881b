/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/versus.h"

#include "support/fail.h"
#include "support/timing.h"

#include <stdio.h>
#include <string.h>

#define SPIN_NAME "spin"
#define ONE_NAME "one"

/* Policies that need to know nothing beforehand. */
static const bench_policy policies[] = {
    BENCH_POLICY_STATIC,
    BENCH_POLICY_CENTRAL,
    BENCH_POLICY_GUIDED,
    BENCH_POLICY_ROUND_ROBIN,
};

#define POLICIES (sizeof policies / sizeof *policies)

/* BENCH_POLICIES: the name is none of a policy here. */
static bench_policy find_policy(const char *name)
{
    for (size_t k = 0; k < POLICIES; k++)
        if (strcmp(name, bench_policy_name(policies[k])) == 0)
            return policies[k];
    return BENCH_POLICIES;
}

static bool is_filch(const char *name)
{
    return find_policy(name) < BENCH_POLICIES || strcmp(name, SPIN_NAME) == 0 ||
           strcmp(name, ONE_NAME) == 0;
}

void bench_versus_names(const bench_workload *workload, char *text, size_t size)
{
    size_t used = 0;
    for (size_t k = 0; k < POLICIES && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, "%s ", bench_policy_name(policies[k]));
    if (used < size)
        used += (size_t)snprintf(text + used, size - used, SPIN_NAME " " ONE_NAME);
    for (size_t k = 0; workload->peer && bench_peer_at(k) && used < size; k++)
        used += (size_t)snprintf(text + used, size - used, " %s", bench_peer_at(k)->name);
}

filch_status bench_versus_exists(const char *name, const bench_workload *workload,
                                 filch_error *error)
{
    char names[160];
    if (is_filch(name) || (workload->peer && bench_peer_find(name)))
        return FILCH_OK;
    bench_versus_names(workload, names, sizeof names);
    return bench_fail(error, FILCH_NOT_FOUND, "--versus", 0,
                      "'%s' cannot run %s in this build; what can: %s", name, workload->name,
                      names);
}

/* Cores that filch's devices have; a peer gets as many threads. */
static unsigned cores(const bench_session *session)
{
    unsigned count = 0;
    for (uint32_t d = 0; d < session->devices; d++)
        if (session->device_info[d].backend == FILCH_BACKEND_HOST)
            count += session->device_info[d].team;
    return count;
}

static filch_status open_peer(bench_versus *v, const bench_session *beside, filch_error *error)
{
    const bench_workload *w = beside->workload;
    v->peer = bench_peer_find(v->name);
    if (v->config.slow.factor != 0)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0,
                          "--slow makes devices of filch's slower, and no thread of %s", v->name);
    unsigned ordinals[BENCH_PEER_GPUS];
    unsigned gpu_count = bench_session_gpus(beside, ordinals);
    if (v->peer->needs_gpu ? gpu_count == 0 : cores(beside) == 0)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0, "%s runs on %s, and there %s",
                          v->name, v->peer->needs_gpu ? "GPUs" : "host devices",
                          v->peer->needs_gpu ? "is none among the devices" : "are none");
    filch_status status = w->peer(beside->state, cores(beside), error, &v->work);
    if (status != FILCH_OK)
        return status;
    v->work->gpu_count = gpu_count;
    memcpy(v->work->gpus, ordinals, gpu_count * sizeof *ordinals);
    if (!v->peer->supports(v->work->kind))
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0, "%s does not do %s%s%s", v->name,
                          bench_peer_kind_name(v->work->kind), v->peer->lacks ? ": " : "",
                          v->peer->lacks ? v->peer->lacks : "");
    if (v->work->kernels == &bench_kernels_single && !v->peer->has_single)
        return bench_fail(error, FILCH_UNSUPPORTED, "--versus", 0,
                          "%s does %s in double precision only", v->name,
                          bench_peer_kind_name(v->work->kind));
    return v->peer->setup(v->work, error, &v->peer_state);
}

/* The policy is that of the session beside. */
static filch_status choose_one(bench_versus *v, const bench_session *beside, filch_error *error)
{
    for (uint32_t d = 0; d < beside->devices; d++)
        if (beside->device_info[d].backend != FILCH_BACKEND_HOST)
            return bench_fail(
                error, FILCH_UNSUPPORTED, "--versus", 0,
                "%s is a core of the host; %s is none, and cannot be compared with it", v->name,
                beside->device_info[d].name);
    v->config.devices = "host:1";
    v->config.scores = NULL;
    v->config.score_count = 0;
    v->config.slow = (bench_slow){0};
    v->config.withdraw = (bench_withdraw){0};
    return FILCH_OK;
}

filch_status bench_versus_open(bench_versus *v, const char *name, const bench_session *beside,
                               const bench_session_config *config, bool is_cold, filch_error *error)
{
    *v = (bench_versus){.name = name,
                        .workload = beside->workload,
                        .state = beside->state,
                        .config = *config,
                        .is_cold = is_cold};
    if (!is_filch(name))
        return open_peer(v, beside, error);
    v->config.spins = strcmp(name, SPIN_NAME) == 0;
    if (strcmp(name, ONE_NAME) == 0) {
        filch_status status = choose_one(v, beside, error);
        if (status != FILCH_OK)
            return status;
    }
    if (find_policy(name) < BENCH_POLICIES)
        v->config.policy = find_policy(name);
    return bench_session_open(&v->session, beside->workload, beside->state, &v->config, error);
}

filch_status bench_versus_run(bench_versus *v, double *seconds, filch_error *error)
{
    filch_status status = FILCH_OK;
    if (v->peer) {
        double used = bench_cpu_s();
        status = v->peer->run(v->peer_state, error, seconds);
        v->cpu_s = bench_cpu_s() - used;
        return status;
    }
    if (v->is_cold)
        status = bench_session_reopen(&v->session, &v->config, error);
    if (status == FILCH_OK)
        status = bench_session_run(&v->session, seconds, error);
    v->cpu_s = v->session.cpu_s;
    return status;
}

filch_status bench_versus_agrees(bench_versus *v, filch_error *error)
{
    const bench_workload *w = v->workload;
    double seconds;
    if (w->check_begin) {
        bool rebuild = false;
        filch_status status = w->check_begin(v->state, &rebuild, error);
        if (status == FILCH_OK && rebuild && !v->peer)
            status = bench_session_rebuild(&v->session, error);
        if (status == FILCH_OK)
            status = bench_versus_run(v, &seconds, error);
        if (status == FILCH_OK)
            status = v->peer ? w->agree(v->state, error) : w->check(v->state, &seconds, error);
        w->check_end(v->state);
        return status;
    }
    if (v->peer)
        return w->agree(v->state, error);
    filch_status status = bench_versus_run(v, &seconds, error);
    return status == FILCH_OK ? w->check(v->state, &seconds, error) : status;
}

const char *bench_versus_setting(const bench_versus *v)
{
    return v->peer && v->peer->setting ? v->peer->setting(v->peer_state) : "";
}

void bench_versus_close(bench_versus *v)
{
    if (v->peer_state)
        v->peer->teardown(v->peer_state);
    else if (!v->peer && v->session.built.runtime)
        bench_session_close(&v->session);
    *v = (bench_versus){0};
}
