/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_host.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What follows a tile at no more than so many times what a dispatch costs was put behind it while
 * it ran. */
#define CLOSE_TIMES 4.0
/* So many tiles at least tell that nothing is ever put behind those of a codelet. */
#define LEAST_KEEPS 3
#define LEAST_SIGHTS 8
#define SIGHTS_PART 4

/* By one device's events, each in the order of their beginnings. */
typedef struct events {
    const bench_sim_record *record;
    const bench_sim_tile **tiles;
    const bench_sim_wait **waits; /* and thefts */
    double *copies;               /* beginnings of those to it */
    size_t tile_count, wait_count, copy_count;
} events;

/* Times of one kind. */
typedef struct sample {
    double *at;
    size_t count;
} sample;

/* Of one codelet. */
typedef struct keeper {
    sample gaps; /* behind its tiles, until what might have begun earlier does */
    bool is_followed;
} keeper;

typedef struct finder {
    bench_sim_record *record;
    sample launches, copies, sights;
    keeper *keepers;
    double *ready_us; /* by tile of the record: when the last predecessor ended */
} finder;

bool bench_sim_is_gpu(const bench_sim_record *record, size_t device)
{
    return strncmp(record->devices[device], "cuda", 4) == 0;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* 0: there is none. */
static double median(sample *s)
{
    if (s->count == 0)
        return 0;
    qsort(s->at, s->count, sizeof *s->at, by_value);
    return s->at[s->count / 2];
}

static int by_beginning(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    return ((*x)->start_us > (*y)->start_us) - ((*x)->start_us < (*y)->start_us);
}

static int waits_by_beginning(const void *a, const void *b)
{
    const bench_sim_wait *const *x = a, *const *y = b;
    return ((*x)->start_us > (*y)->start_us) - ((*x)->start_us < (*y)->start_us);
}

/* The record's copies are in order. */
static void events_of(events *e, size_t device)
{
    const bench_sim_record *record = e->record;
    e->tile_count = e->wait_count = e->copy_count = 0;
    for (size_t k = 0; k < record->tile_count; k++)
        if (record->tiles[k].device == device)
            e->tiles[e->tile_count++] = &record->tiles[k];
    for (size_t k = 0; k < record->wait_count; k++)
        if (record->waits[k].device == device)
            e->waits[e->wait_count++] = &record->waits[k];
    for (size_t k = 0; k < record->theft_count; k++)
        if (record->thefts[k].device == device)
            e->waits[e->wait_count++] = &record->thefts[k];
    for (size_t k = 0; k < record->copy_count; k++)
        if (record->copies[k].device == device && record->copies[k].way != BENCH_SIM_OUT)
            e->copies[e->copy_count++] = record->copies[k].start_us;
    qsort(e->tiles, e->tile_count, sizeof *e->tiles, by_beginning);
    qsort(e->waits, e->wait_count, sizeof *e->waits, waits_by_beginning);
}

/* A device that had nothing to do, or took work from another, has its next tile or copy as soon as
 * its worker can have it. */
static void waits_look(finder *f, const events *e)
{
    size_t tile = 0, copy = 0;
    double end = 0;
    for (size_t k = 0; k < e->wait_count; k++) {
        const bench_sim_wait *wait = e->waits[k];
        while (tile < e->tile_count && e->tiles[tile]->start_us < wait->end_us)
            end = fmax(end, e->tiles[tile++]->end_us);
        while (copy < e->copy_count && e->copies[copy] < wait->end_us)
            copy++;
        if (end > 0 && end <= wait->start_us)
            f->sights.at[f->sights.count++] = wait->start_us - end;
        if (tile == e->tile_count ||
            (k + 1 < e->wait_count && e->waits[k + 1]->start_us < e->tiles[tile]->start_us))
            continue; /* it came to nothing */
        if (copy < e->copy_count && e->copies[copy] < e->tiles[tile]->start_us)
            f->copies.at[f->copies.count++] = e->copies[copy] - wait->end_us;
        else
            f->launches.at[f->launches.count++] = e->tiles[tile]->start_us - wait->end_us;
    }
}

static bool has_between(const events *e, double from, double to)
{
    for (size_t k = 0; k < e->copy_count && e->copies[k] < to; k++)
        if (e->copies[k] >= from)
            return true;
    for (size_t k = 0; k < e->wait_count && e->waits[k]->start_us < to; k++)
        if (e->waits[k]->start_us >= from)
            return true;
    return false;
}

/* Pairs of tiles of which the second waited for nothing but the host: a call of the driver's, as of
 * a library that waits for the device in between, may not return before the tile is over. */
static void keeps_look(finder *f, const events *e, double gap_us)
{
    for (size_t k = 0; k + 1 < e->tile_count; k++) {
        const bench_sim_tile *tile = e->tiles[k], *next = e->tiles[k + 1];
        keeper *keep = &f->keepers[tile->codelet];
        double gap = next->start_us - tile->end_us;
        if (tile->job != next->job)
            continue;
        if (gap <= CLOSE_TIMES * gap_us)
            keep->is_followed = true;
        else if (f->ready_us[next - f->record->tiles] < tile->start_us &&
                 !has_between(e, tile->end_us, next->start_us))
            keep->gaps.at[keep->gaps.count++] = gap;
    }
}

/* When the last predecessor of each task ended, of those that ran; of others 0. */
static bool ready_find(finder *f)
{
    const bench_sim_record *record = f->record;
    for (size_t j = 0; j < record->job_count; j++) {
        const bench_sim_job *job = &record->jobs[j];
        const bench_sim_graph *graph = job->graph;
        if (!graph)
            continue;
        double *ready = calloc(graph->count + 1, sizeof *ready);
        if (!ready)
            return false;
        for (size_t k = job->first; k < job->first + job->count; k++) {
            const bench_sim_tile *tile = &record->tiles[k];
            for (size_t s = graph->all_begin[tile->first]; s < graph->all_begin[tile->first + 1];
                 s++) {
                double *at = &ready[graph->all_successors[s]];
                *at = fmax(*at, tile->end_us);
            }
        }
        for (size_t k = job->first; k < job->first + job->count; k++)
            f->ready_us[k] = ready[record->tiles[k].first];
        free(ready);
    }
    return true;
}

static bool finder_init(finder *f, events *e)
{
    const bench_sim_record *record = f->record;
    size_t waits = record->wait_count + record->theft_count + 1;
    e->record = record;
    e->tiles = calloc(record->tile_count + 1, sizeof *e->tiles);
    e->waits = calloc(waits, sizeof *e->waits);
    e->copies = calloc(record->copy_count + 1, sizeof *e->copies);
    f->launches.at = calloc(waits, sizeof(double));
    f->copies.at = calloc(waits, sizeof(double));
    f->sights.at = calloc(waits, sizeof(double));
    f->keepers = calloc(record->codelet_count + 1, sizeof *f->keepers);
    f->ready_us = calloc(record->tile_count + 1, sizeof(double));
    bool fits = e->tiles && e->waits && e->copies && f->launches.at && f->copies.at &&
                f->sights.at && f->keepers && f->ready_us;
    for (size_t k = 0; fits && k < record->codelet_count; k++) {
        f->keepers[k].gaps.at = calloc(record->tile_count + 1, sizeof(double));
        fits = f->keepers[k].gaps.at != NULL;
    }
    return fits;
}

static void finder_free(finder *f, events *e)
{
    for (size_t k = 0; f->keepers && k < f->record->codelet_count; k++)
        free(f->keepers[k].gaps.at);
    free(f->keepers);
    free(f->launches.at);
    free(f->copies.at);
    free(f->sights.at);
    free(f->ready_us);
    free(e->tiles);
    free(e->waits);
    free(e->copies);
}

/* From a tile's end until the worker is done with it: what it takes where it happens to look at the
 * right time, as one of so many does; the others wait for its next look. Where there are few, the
 * least behind a tile that kept it. */
static double sight_us(finder *f)
{
    const bench_sim_record *record = f->record;
    double least = INFINITY;
    if (f->sights.count >= LEAST_SIGHTS) {
        qsort(f->sights.at, f->sights.count, sizeof *f->sights.at, by_value);
        return f->sights.at[f->sights.count / SIGHTS_PART];
    }
    for (size_t k = 0; k < record->codelet_count; k++)
        if (record->keep_us[k] >= 0)
            least = fmin(least, f->keepers[k].gaps.at[0] - record->launch_us);
    return isfinite(least) ? fmax(least, 0) : 0;
}

/* Of a codelet whose launch keeps the worker, all that lies behind its tiles but what every launch
 * takes. */
static void host_fill(finder *f)
{
    bench_sim_record *record = f->record;
    record->launch_us = median(&f->launches);
    record->copy_us = median(&f->copies);
    for (size_t k = 0; k < record->codelet_count; k++) {
        keeper *keep = &f->keepers[k];
        bool keeps = !keep->is_followed && keep->gaps.count >= LEAST_KEEPS;
        record->keep_us[k] = keeps ? median(&keep->gaps) : -1;
    }
    record->see_us = sight_us(f);
    for (size_t k = 0; k < record->codelet_count; k++)
        if (record->keep_us[k] >= 0)
            record->keep_us[k] = fmax(record->keep_us[k] - record->launch_us - record->see_us, 0);
}

bool bench_sim_host_find(bench_sim_record *record)
{
    finder f = {.record = record};
    events e = {0};
    record->keep_us = calloc(record->codelet_count + 1, sizeof *record->keep_us);
    for (size_t d = 0; d < record->device_count; d++)
        record->has_host = record->has_host || bench_sim_is_gpu(record, d);
    for (size_t k = 0; k < record->tile_count; k++)
        record->has_host = record->has_host && !record->tiles[k].is_chunk;
    bool fits = record->keep_us && finder_init(&f, &e) && ready_find(&f);
    for (size_t d = 0; fits && record->has_host && d < record->device_count; d++) {
        if (!bench_sim_is_gpu(record, d))
            continue;
        events_of(&e, d);
        waits_look(&f, &e);
        keeps_look(&f, &e, record->gap_us[d]);
    }
    if (fits)
        host_fill(&f);
    finder_free(&f, &e);
    return fits;
}
