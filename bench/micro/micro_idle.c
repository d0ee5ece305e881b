/* SPDX-License-Identifier: Apache-2.0 */
/* What an idle worker's attempts to steal cost the one that has the work: a graph of which there is
 * nothing to be had, in a runtime of one device and in one of two, in turn. */
#include "micro/micro.h"
#include "support/timing.h"

#include "filch/filch.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum {
    LINKS = 100000, /* of the chain: never more than one task is ready, and its device has it */
    STAGES = 200,   /* of WIDTH tasks each, one before all of them and one behind */
    WIDTH = 8,
    STEPS = 6000, /* of a task of theirs, a few microseconds … */
    TIMES = 200,  /* … and on the second device so many times that: it is held off */
    RUNS = 7,     /* a round: the fastest counts */
    TRIES = 10    /* for each, as thefts that are due now and then spoil some */
};

enum load { CHAIN, HELD, LOADS };

typedef struct bed {
    filch_runtime *runtime;
    filch_graph *graphs[LOADS];
} bed;

typedef struct figures {
    double ns[2][MICRO_ROUNDS]; /* a task, alone and beside an idle worker */
    double slower[MICRO_ROUNDS];
    double attempts[MICRO_ROUNDS]; /* a second */
} figures;

static int run_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static int run_steps(const filch_call *call)
{
    volatile unsigned sum = 0;
    for (unsigned k = call->device != 0 ? STEPS * TIMES : STEPS; k > 0; k--)
        sum = sum * 3 + k;
    return 0;
}

static unsigned tasks_of(enum load load)
{
    return load == CHAIN ? LINKS : STAGES * (WIDTH + 1) + 1;
}

static filch_status add(filch_graph *graph, filch_codelet *codelet, filch_task *task)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    return filch_graph_add(graph, &desc, task);
}

static filch_status add_chain(filch_graph *graph, filch_codelet *codelet)
{
    filch_task before = {0}, task;
    filch_status status = FILCH_OK;
    for (unsigned k = 0; k < LINKS && status == FILCH_OK; k++) {
        status = add(graph, codelet, &task);
        if (status == FILCH_OK && k > 0)
            status = filch_graph_edge(graph, before, task);
        before = task;
    }
    return status;
}

static filch_status add_stages(filch_graph *graph, filch_codelet *codelet)
{
    filch_task before, last, task;
    filch_status status = add(graph, codelet, &before);
    for (unsigned k = 0; k < STAGES && status == FILCH_OK; k++) {
        status = add(graph, codelet, &last);
        for (unsigned i = 0; i < WIDTH && status == FILCH_OK; i++) {
            status = add(graph, codelet, &task);
            if (status == FILCH_OK)
                status = filch_graph_edge(graph, before, task);
            if (status == FILCH_OK)
                status = filch_graph_edge(graph, task, last);
        }
        before = last;
    }
    return status;
}

static filch_status open_bed(bed *b, const char *devices, size_t count)
{
    static const double scores[2] = {TIMES, 1};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = devices;
    config.scores = scores;
    config.score_count = count;
    filch_status status = filch_runtime_create(&config, NULL, &b->runtime);
    for (int load = 0; load < LOADS && status == FILCH_OK; load++) {
        filch_codelet *codelet = NULL;
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = load == CHAIN ? "nothing" : "steps";
        desc.host = load == CHAIN ? run_nothing : run_steps;
        status = filch_codelet_create(b->runtime, &desc, &codelet);
        if (status == FILCH_OK)
            status = filch_graph_create(b->runtime, NULL, &b->graphs[load]);
        if (status == FILCH_OK)
            status = (load == CHAIN ? add_chain : add_stages)(b->graphs[load], codelet);
        if (status == FILCH_OK)
            status = filch_graph_seal(b->graphs[load]);
    }
    return status;
}

/* *stolen: tasks that the device ran that had fewer. */
static filch_status run_once(const bed *b, enum load load, double *seconds, double *attempts,
                             uint64_t *stolen)
{
    filch_report report = FILCH_REPORT_INIT;
    filch_job_info info = {.size = sizeof info};
    filch_device_stats devices[2] = {{0}};
    filch_job *job = NULL;
    double start = bench_now_s();
    filch_status status = filch_graph_submit(b->graphs[load], NULL, &job);
    if (status != FILCH_OK)
        return status;
    status = filch_job_wait(job, -1);
    *seconds = bench_now_s() - start;
    if (status == FILCH_OK)
        status = filch_job_report(job, NULL, &report, NULL, 0);
    if (status == FILCH_OK)
        status = filch_job_stats(job, &info, devices, 2);
    *attempts = (double)(report.total.refused_held + report.total.refused_empty +
                         report.total.refused_raced) /
                *seconds;
    *stolen = devices[devices[0].tiles > devices[1].tiles].tiles;
    (void)filch_job_release(job);
    return status;
}

/* The fastest of some runs in each runtime, in turn; of two devices those alone in which one of
 * them had nothing. FILCH_TIMEOUT: there were none. */
static filch_status measure_round(const bed *beds, enum load load, size_t round, figures *f)
{
    double best[2] = {INFINITY, INFINITY};
    f->attempts[round] = 0;
    for (int left = RUNS, tries = RUNS * TRIES; left > 0 && tries > 0; tries--) {
        double seconds[2], attempts;
        uint64_t stolen = 0;
        filch_status status = FILCH_OK;
        for (int which = 0; which < 2 && status == FILCH_OK; which++)
            status = run_once(&beds[which], load, &seconds[which], &attempts, &stolen);
        if (status != FILCH_OK)
            return status;
        best[0] = fmin(best[0], seconds[0]);
        if (stolen != 0)
            continue;
        f->attempts[round] = seconds[1] < best[1] ? attempts : f->attempts[round];
        best[1] = fmin(best[1], seconds[1]);
        left--;
    }
    for (int which = 0; which < 2; which++)
        f->ns[which][round] = best[which] / tasks_of(load) * 1e9;
    f->slower[round] = (best[1] / best[0] - 1) * 100;
    return isfinite(best[1]) ? FILCH_OK : FILCH_TIMEOUT;
}

static void report(FILE *out, micro_list *list, enum load load, figures *f)
{
    static const char *const names[LOADS][4] = {
        {"chain, alone", "chain, beside an idle worker", "chain, slower by",
         "chain, attempts of the idle worker"},
        {"held off, alone", "held off, beside an idle worker", "held off, slower by",
         "held off, attempts of the idle worker"},
    };
    micro_report(out, list, names[load][0], micro_median(f->ns[0]), "ns/task");
    micro_report(out, list, names[load][1], micro_median(f->ns[1]), "ns/task");
    micro_report(out, list, names[load][2], micro_median(f->slower), "%");
    micro_report(out, list, names[load][3], micro_median(f->attempts), "/s");
}

int micro_idle(FILE *out, micro_list *list)
{
    static const char *const devices[2] = {"host:1", "host:2"};
    bed beds[2] = {{0}};
    filch_status status = FILCH_OK;
    for (int which = 0; which < 2 && status == FILCH_OK; which++)
        status = open_bed(&beds[which], devices[which], (size_t)which + 1);
    for (int load = 0; load < LOADS && status == FILCH_OK; load++) {
        figures f;
        /* One round more than is kept: the first warms up. */
        for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++)
            status = measure_round(beds, (enum load)load, r < 0 ? 0 : (size_t)r, &f);
        if (status == FILCH_OK)
            report(out, list, (enum load)load, &f);
    }
    for (int which = 0; which < 2; which++) {
        if (beds[which].runtime)
            (void)filch_runtime_abort(beds[which].runtime);
    }
    return status != FILCH_OK;
}
