/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/model/missing.h"

#include <math.h>
#include <string.h>

#include "memory/route/plan.h"
#include "memory/tiles/tiles.h"
#include "sched/model/cost.h"
#include "sched/model/predict.h"
#include "sched/model/transfer.h"
#include "sched/worker/device.h"
#include "sched/worker/jobs.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* A batch with more accesses is not looked at. */
#define MOST_ACCESSES 16u

/* --- Tiles --- */

typedef struct fl_route {
    const fl_places *places;
    const fl_device *thief, *victim;
} fl_route;

/* Returns the bytes of a tile, or of the part in a region (null: no region), that a memory node
 * lacks. A guess, as other workers move tiles meanwhile. */
static double lacking(const filch_data *data, uint32_t tile, const fl_region *region,
                      uint32_t place)
{
    return fl_tile_is_at(data, tile, place) ? 0 : (double)fl_tile_part_bytes(data, tile, region);
}

static bool is_read(const fl_task_access *access)
{
    return access->mode != FILCH_SCRATCH && access->mode != FILCH_WRITE;
}

static void add_lack(const fl_places *places, const filch_data *data, uint32_t tile,
                     const fl_region *region, uint32_t place, fl_lack *lack)
{
    uint64_t bytes = (uint64_t)lacking(data, tile, region, place);
    lack->bytes += bytes;
    lack->is_coming =
        lack->is_coming || (bytes == 0 && fl_tile_is_coming(places, data, tile, place));
    if (bytes != 0 && lack->count++ < FL_LACK_NAMES) {
        lack->of[lack->count - 1].data = data;
        lack->of[lack->count - 1].tile = tile;
    }
}

fl_lack fl_missing_of_task(const fl_worker *w, const fl_task *task)
{
    const fl_places *places = w->sched->core->places;
    uint32_t place = w->device->place;
    fl_lack lack = {.bytes = 0};
    /* A gate needs data in the host's memory. */
    for (uint32_t i = 0; i < task->access_count && !task->is_gate; ++i) {
        const fl_task_access *access = &task->accesses[i];
        if (!is_read(access)) {
            continue;
        }
        const filch_data *data = fl_graph_data(task->graph, access->slot);
        fl_rect tiles = fl_task_tiles(task, i);
        for (uint32_t t = 0; t < fl_rect_count(tiles); ++t) {
            add_lack(places, data, fl_rect_at(tiles, t), fl_task_parts(task, i), place, &lack);
        }
    }
    return lack;
}

/* --- Tiles of a theft --- */

/* Returns ns per byte of a tile missing at `to`; other: the peer's memory node. A tile missing
 * at the two ends comes from the host's memory or through the host's memory. */
static double way_of(const fl_places *places, const filch_data *data, uint32_t tile, uint32_t to,
                     uint32_t other)
{
    double home = fl_transfer_link_ns(places, 0, to, 0);
    if (other == 0 || !fl_tile_is_at(data, tile, other)) {
        return home;
    }
    double peer = fl_transfer_link_ns(places, other, to, 0);
    bool is_home = to != 0 && fl_tile_is_at(data, tile, 0);
    return is_home && home < peer ? home : peer;
}

/* Adds the bytes of tiles missing at thief and victim. */
static void add_tiles(const fl_route *route, const filch_data *data, fl_rect tiles,
                      const fl_region *region, fl_missing *missing)
{
    uint32_t thief = route->thief->place, victim = route->victim->place;
    uint32_t count = fl_rect_count(tiles);
    uint32_t looks = count < FL_SAMPLED_PARTS ? count : FL_SAMPLED_PARTS;
    double each = looks != 0 ? count / (double)looks : 0;
    for (uint32_t i = 0; i < looks; ++i) {
        uint32_t tile = fl_rect_at(tiles, (uint32_t)((uint64_t)count * i / looks));
        double bytes = lacking(data, tile, region, thief) * each,
               theirs = lacking(data, tile, region, victim) * each;
        if (bytes > 0) {
            missing->bytes += (uint64_t)bytes;
            missing->bring_ns += bytes * way_of(route->places, data, tile, thief, victim);
        }
        if (theirs > 0) {
            missing->victim_ns += theirs * way_of(route->places, data, tile, victim, thief);
        }
    }
}

/* --- Tasks --- */

static void add_task(const fl_route *route, const fl_task *task, fl_missing *missing)
{
    for (uint32_t i = 0; i < task->access_count && !task->is_gate; ++i) {
        const fl_task_access *access = &task->accesses[i];
        if (is_read(access)) {
            add_tiles(route, fl_graph_data(task->graph, access->slot), fl_task_tiles(task, i),
                      fl_task_parts(task, i), missing);
        }
    }
}

static double task_ns(const fl_worker *w, const fl_task *task)
{
    return task->is_gate ? 0 : fl_cost_of_task(w, task);
}

static bool is_of(const filch_graph *graph, const fl_task *task)
{
    for (size_t i = 0; i < graph->slab_count; ++i) {
        const fl_slab *slab = graph->slab_table[i];
        uintptr_t at = (uintptr_t)task - (uintptr_t)slab->tasks;
        if (at < sizeof slab->tasks) {
            return at < slab->used * sizeof *task; /* the slab's rest belongs to earlier graphs */
        }
    }
    return false;
}

/* Examines tasks of a kept job; returns how many tasks are known. */
static uint32_t look_at_job(const fl_worker *w, const fl_route *route, const filch_job *job,
                            const uint64_t *hints, uint32_t count, fl_is_late_fn is_late,
                            fl_missing *missing)
{
    const filch_graph *graph = job->graph;
    uint32_t known = 0;
    if (graph == NULL || graph->kind != FILCH_GRAPH_CLOSED ||
        graph->slab_count > FL_MISSING_SLABS) {
        return 0;
    }
    for (uint32_t i = 0; i < count; ++i) {
        const fl_task *task = fl_hint_task(hints[i]);
        if (!missing[i].is_known && is_of(graph, task)) {
            missing[i].is_known = true;
            missing[i].ns = task_ns(w, task);
            missing[i].is_late = is_late(w, task);
            add_task(route, task, &missing[i]);
            ++known;
        }
    }
    return known;
}

static fl_route route_of(const fl_worker *thief, const fl_worker *victim)
{
    return (fl_route){thief->sched->core->places, thief->device, victim->device};
}

void fl_missing_of_hints(fl_worker *thief, const fl_worker *victim, const uint64_t *hints,
                         uint32_t count, fl_is_late_fn is_late, fl_missing *missing)
{
    const fl_route route = route_of(thief, victim);
    uint32_t known = 0, jobs = 0;
    memset(missing, 0, count * sizeof *missing);
    for (uint32_t word = 0; word < FL_ACTIVE_SLOTS / 64; ++word) {
        /* Acquire: the slot is filled before its bit is set. */
        uint64_t bits = fl_load_acquire(&thief->sched->active[word]);
        for (; bits != 0 && known < count && jobs < FL_MISSING_JOBS; bits &= bits - 1) {
            filch_job *job = fl_jobs_peek(thief, word * 64 + (uint32_t)__builtin_ctzll(bits));
            if (job != NULL && job->batch == NULL && fl_jobs_hold(job)) {
                ++jobs;
                known += look_at_job(thief, &route, job, hints, count, is_late, missing);
                fl_jobs_count_off(thief, job, 1);
            }
        }
    }
}

/* --- Copies in and out --- */

static double usual_way(const fl_places *places, uint32_t from, uint32_t to)
{
    return fl_transfer_link_ns(places, from, to, FL_HOST_RATE);
}

/* Returns ns per byte from the best memory node that has the tile. */
static double best_way(const fl_places *places, const filch_data *data, uint32_t tile, uint32_t to)
{
    double best = INFINITY;
    for (uint32_t place = 0; place < places->count; ++place) {
        if (place != to && fl_tile_is_at(data, tile, place)) {
            best = fmin(best, usual_way(places, place, to));
        }
    }
    return best < INFINITY ? best : 0; /* no node seen: a guess */
}

/* Returns ns per byte to the best memory node of a second device. */
static double way_out(const fl_places *places, uint32_t from)
{
    double best = INFINITY;
    for (uint32_t place = 1; place < places->count; ++place) {
        best = place != from ? fmin(best, usual_way(places, from, place)) : best;
    }
    return best < INFINITY ? best : usual_way(places, from, 0);
}

fl_missing_total fl_missing_haul(const fl_worker *w, const fl_task *task)
{
    const fl_places *places = w->sched->core->places;
    uint32_t place = w->device->place;
    fl_missing_total haul = {0};
    /* A successor may be added to an open graph's task at every moment. */
    bool is_followed = task->graph->kind != FILCH_GRAPH_CLOSED || task->successor_count != 0;
    for (uint32_t i = 0; i < task->access_count && !task->is_gate; ++i) {
        const fl_task_access *access = &task->accesses[i];
        if (access->mode == FILCH_SCRATCH) {
            continue; /* a graph with scratch accesses alone has no slots */
        }
        const filch_data *data = fl_graph_data(task->graph, access->slot);
        fl_rect tiles = fl_task_tiles(task, i);
        for (uint32_t t = 0; is_read(access) && t < fl_rect_count(tiles); ++t) {
            uint32_t tile = fl_rect_at(tiles, t);
            double bytes = lacking(data, tile, fl_task_parts(task, i), place);
            haul.in_ns += bytes > 0 ? bytes * best_way(places, data, tile, place) : 0;
        }
        if (access->mode != FILCH_READ && is_followed) {
            haul.out_ns += (double)fl_rect_bytes(data, tiles) * way_out(places, place);
        }
    }
    if (haul.in_ns > 0) {
        haul.in_ns += (double)fl_flow_in(places, place) * usual_way(places, 0, place);
    }
    return haul;
}

/* --- Ranges --- */

static void add_scaled(fl_missing *missing, const fl_missing *seen, double by)
{
    missing->ns += seen->ns * by;
    missing->bytes += (uint64_t)((double)seen->bytes * by);
    missing->bring_ns += seen->bring_ns * by;
    missing->victim_ns += seen->victim_ns * by;
}

static void add_roots(const fl_worker *w, const fl_route *route, const filch_job *job, uint32_t lo,
                      uint32_t hi, fl_is_late_fn is_late, fl_missing *missing)
{
    uint32_t looks = hi - lo < FL_SAMPLED_PARTS ? hi - lo : FL_SAMPLED_PARTS;
    fl_missing seen = {.bytes = 0};
    for (uint32_t i = 0; i < looks; ++i) {
        const fl_task *task = job->graph->roots[lo + (uint32_t)((uint64_t)(hi - lo) * i / looks)];
        add_task(route, task, &seen);
        seen.ns += task_ns(w, task);
        missing->is_late = missing->is_late || is_late(w, task);
    }
    add_scaled(missing, &seen, (double)(hi - lo) / looks);
}

/* Adds an operand copied in anew for every chunk, as the host may write to the operand between
 * jobs. */
static void add_streamed(const fl_route *route, const fl_operand *operand, fl_missing *missing)
{
    const filch_view *view = operand->view;
    double bytes = (double)(view->rows * view->cols * view->element);
    if (route->thief->place != 0) {
        missing->bytes += (uint64_t)bytes;
        missing->bring_ns += bytes * fl_transfer_link_ns(route->places, 0, route->thief->place, 0);
    }
    missing->victim_ns += bytes * fl_transfer_link_ns(route->places, 0, route->victim->place, 0);
}

static void add_grains(const fl_route *route, const filch_job *job, uint32_t lo, uint32_t hi,
                       fl_missing *missing)
{
    const fl_batch *batch = job->batch;
    filch_view views[MOST_ACCESSES];
    fl_operand operands[MOST_ACCESSES];
    uint64_t first, last;
    uint32_t count = fl_batch_view_count(batch), reach = fl_batch_reach(batch, lo);
    if (count > MOST_ACCESSES) {
        return;
    }
    fl_batch_range(batch, lo, hi < reach ? hi : reach, &first, &last);
    if (!fl_batch_views(batch, first, last, views)) {
        return; /* the run of the chunk reports a callback's mistake */
    }
    fl_batch_operands(batch, first, last, views, operands);
    fl_missing seen = {.bytes = 0};
    for (uint32_t i = 0; i < count; ++i) {
        if ((operands[i].mode & FILCH_READ) == 0) {
            continue;
        }
        fl_operand_resolve(&operands[i]);
        if (operands[i].is_streamed) {
            add_streamed(route, &operands[i], &seen);
        } else {
            add_tiles(route, operands[i].data, operands[i].tiles, NULL, &seen);
        }
    }
    add_scaled(missing, &seen, reach < hi ? (double)(hi - lo) / (reach - lo) : 1);
}

uint64_t fl_missing_of_grains(const fl_worker *w, const filch_job *job, uint32_t lo, uint32_t hi)
{
    const fl_route route = route_of(w, w);
    fl_missing missing = {.bytes = 0};
    add_grains(&route, job, lo, hi, &missing);
    return missing.bytes;
}

void fl_missing_of_range(fl_worker *thief, const fl_worker *victim, uint32_t slot, uint32_t lo,
                         uint32_t hi, fl_is_late_fn is_late, fl_missing *missing)
{
    const fl_route route = route_of(thief, victim);
    filch_job *job = fl_jobs_peek(thief, slot);
    *missing = (fl_missing){.is_known = job != NULL && lo < hi && fl_jobs_hold(job)};
    if (!missing->is_known) {
        return;
    }
    /* The slot may hold a new job by now, with different positions. */
    if (job->batch != NULL) {
        if (hi <= fl_batch_grains(job->batch) && fl_part_of_job(job)->cut == FL_CUT_SHARES) {
            add_grains(&route, job, lo, hi, missing);
        }
    } else if (hi <= job->graph->root_count) {
        add_roots(thief, &route, job, lo, hi, is_late, missing);
    }
    fl_jobs_count_off(thief, job, 1);
}

/* --- Backup runs of chunks --- */

/* Returns ns for copying a run's output from its own memory to its final place. Output written in
 * place takes none. */
static double publish_ns(const fl_places *places, const fl_operand *operand, uint32_t place)
{
    double bytes = (double)(operand->view->rows * operand->view->cols * operand->view->element);
    return place == 0             ? fl_transfer_host_ns(bytes)
           : operand->is_streamed ? bytes * fl_transfer_link_ns(places, place, 0, 0)
                                  : 0;
}

double fl_missing_of_run(const fl_worker *thief, const fl_worker *victim, const filch_job *job,
                         uint32_t lo, uint32_t hi, double *there)
{
    const fl_route route = route_of(thief, victim);
    const fl_batch *batch = job->batch;
    filch_view views[MOST_ACCESSES];
    fl_operand operands[MOST_ACCESSES];
    fl_missing missing = {.bytes = 0};
    uint64_t first, last;
    uint32_t count = fl_batch_view_count(batch);
    double here = 0;
    *there = 0;
    fl_batch_range(batch, lo, hi, &first, &last);
    if (count > MOST_ACCESSES || !fl_batch_views(batch, first, last, views)) {
        return 0;
    }
    fl_batch_operands(batch, first, last, views, operands);
    for (uint32_t i = 0; i < count; ++i) {
        fl_operand_resolve(&operands[i]);
        if ((operands[i].mode & FILCH_WRITE) != 0) {
            here += publish_ns(route.places, &operands[i], thief->device->place);
            *there += publish_ns(route.places, &operands[i], victim->device->place);
        }
    }
    add_grains(&route, job, lo, hi, &missing);
    return here + missing.bring_ns;
}
