/* SPDX-License-Identifier: Apache-2.0 */
/* Graph launch: a closed graph submitted repeatedly to one device is launched by a single driver
 * call instead of a call per task. A graph launch claims no task: the tasks' words and counts stay
 * unchanged, and the next run may use either way.
 *
 * A graph launch orders tasks as lanes would: a task runs behind the predecessors and behind the
 * previous task of the chain. Chains also keep the graph cheap: a node following a node costs the
 * device a fraction of an independent node. */
#include "sched/execute/graph_launch.h"

#include "sched/execute/fetch.h"
#include "sched/execute/launch.h"
#include "sched/execute/pipeline.h"
#include "sched/execute/profiler.h"
#include "sched/execute/publish.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Chains of a graph that is launched whole. By the driver alone a wavefront takes 0.31 us a kernel
 * with 4 rows at once, 0.19 with 8, and 0.18 from 16 on (docs/performance.md). */
#define CHAINS 32u
/* FILCH_REPLAY: filch chooses. A graph is made after FL_GRAPH_FIRST runs: as much time was spent
 * without it as making it costs, so at worst half of the time goes into it. It stays if one of its
 * first runs is faster than all runs before. */
#define OWN_CHOICE (-1)
/* Predecessors of a node among which one named twice is looked for; else the driver refuses the
 * node. */
#define FEW_BEHIND 16u

enum {
    TILE_USED = 1,    /* a task uses the tile */
    TILE_NEEDED = 2,  /* the first using task reads the tile */
    TILE_WRITTEN = 4, /* a task writes the tile */
    TILE_FINAL = 8    /* the written tile needs write-back */
};

/* Tile of a handle. */
typedef struct fl_graph_launch_tile {
    const void *ptr; /* address when the graph was instantiated: the kernels use the address */
    uint64_t ld;     /* leading dimension when the graph was instantiated */
    uint32_t bits;   /* TILE_* bits */
} fl_graph_launch_tile;

typedef struct fl_graph_launch {
    fl_device *device;            /* device; outlives the worker, because graphs are freed last */
    void *handle;                 /* handle of the backend */
    fl_graph_launch_tile **tiles; /* tiles by slot, then by tile */
    double work;                  /* work of every task together */
} fl_graph_launch;

/* --- Suitable graphs --- */

static bool is_simple(const fl_worker *w, const fl_task *task)
{
    if (fl_task_is_patient(task)) {
        /* The commute lock or partial result is found in each run. */
        return false;
    }
    const fl_kernel *kernel = task->codelet->kernel;
    if (kernel == NULL || kernel->enqueue != NULL || !fl_worker_can_run(w, task)) {
        return false;
    }
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_SCRATCH || task->accesses[i].is_block) {
            /* The address of scratch memory depends on the lane, that of a block on the run. */
            return false;
        }
    }
    return true;
}

static bool is_suitable(const fl_worker *w, const filch_graph *graph)
{
    if (graph->has_edges_back) {
        /* The tasks' order is not topological. */
        return false;
    }
    for (uint32_t i = 0; i < graph->task_count; ++i) {
        if (!is_simple(w, fl_graph_task_at(graph, i))) {
            return false;
        }
    }
    return true;
}

/* --- Making a graph launch --- */

static void drop(filch_graph *graph, fl_graph_launch *replay)
{
    const fl_memory *memory = &graph->object.core->memory;
    for (size_t s = 0; replay->tiles != NULL && s < graph->slot_count; ++s) {
        fl_free(memory, replay->tiles[s], graph->slots[s]->tile_count * sizeof **replay->tiles);
    }
    fl_free(memory, replay->tiles, graph->slot_count * sizeof *replay->tiles);
    if (replay->handle != NULL) {
        replay->device->backend->graph->free(replay->device, replay->handle);
    }
    fl_free(memory, replay, sizeof *replay);
}

static fl_graph_launch *replay_new(fl_worker *w, const filch_graph *graph)
{
    const fl_memory *memory = &w->sched->core->memory;
    fl_graph_launch *replay = fl_alloc_zeroed(memory, sizeof *replay);
    if (replay == NULL) {
        return NULL;
    }
    replay->device = w->device;
    replay->tiles = fl_alloc_zeroed(memory, graph->slot_count * sizeof *replay->tiles);
    bool fits = replay->tiles != NULL;
    for (size_t s = 0; fits && s < graph->slot_count; ++s) {
        replay->tiles[s] =
            fl_alloc_zeroed(memory, graph->slots[s]->tile_count * sizeof **replay->tiles);
        fits = replay->tiles[s] != NULL;
    }
    if (!fits || w->device->backend->graph->create(w->device, memory, &replay->handle,
                                                   &w->stall.error) != FILCH_OK) {
        replay->handle = NULL;
        drop((filch_graph *)(uintptr_t)graph, replay);
        return NULL;
    }
    return replay;
}

/* Notes the tiles of a task with fetched operands. */
static void note_tiles(const fl_worker *w, fl_graph_launch *replay, const fl_task *task)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        fl_graph_launch_tile *tile = &replay->tiles[access.slot][access.tile];
        if (tile->bits == 0 && (access.mode & FILCH_READ) != 0) {
            tile->bits |= TILE_NEEDED;
        }
        tile->ptr = w->call.views[i].ptr;
        tile->ld = w->call.views[i].ld;
        tile->bits |= TILE_USED;
        if ((access.mode & FILCH_WRITE) != 0) {
            tile->bits |= TILE_WRITTEN;
            tile->bits |= access.is_final ? TILE_FINAL : 0;
        }
    }
}

/* Chain chosen for a task: of the chains ending with a predecessor the one ending last, otherwise
 * the chain that ended first. Thus a task is rarely behind one that runs much later: a wavefront
 * keeps a chain for each row (docs/performance.md). */
typedef struct fl_chains {
    uint32_t last[CHAINS]; /* last task of each chain, plus 1; 0: none yet */
    uint32_t *behind;      /* predecessors of one task */
    size_t capacity;
} fl_chains;

static uint32_t chain_ended_first(const fl_chains *chains)
{
    uint32_t first = 0;
    for (uint32_t c = 1; c < CHAINS; ++c) {
        first = chains->last[c] < chains->last[first] ? c : first;
    }
    return first;
}

static bool list_behind(fl_worker *w, fl_chains *chains, const fl_task *task, uint32_t *count)
{
    const filch_graph *graph = task->graph;
    const uint32_t *preds = graph->pred_list + graph->pred_begin[task->order];
    uint32_t n = graph->pred_begin[task->order + 1] - graph->pred_begin[task->order];
    if (fl_array_reserve(&w->sched->core->memory, &chains->behind, &chains->capacity, (size_t)n + 1,
                         sizeof *chains->behind) != FILCH_OK) {
        return false;
    }
    uint32_t chain = CHAINS;
    *count = 0;
    for (uint32_t i = 0; i < n; ++i) {
        bool is_known = false;
        for (uint32_t k = 0; k < *count && n <= FEW_BEHIND; ++k) {
            is_known = is_known || chains->behind[k] == preds[i];
        }
        if (is_known) {
            /* Two edges join the two tasks. */
            continue;
        }
        chains->behind[(*count)++] = preds[i];
        for (uint32_t c = 0; c < CHAINS; ++c) {
            bool is_later = chain == CHAINS || chains->last[c] > chains->last[chain];
            chain = chains->last[c] == preds[i] + 1 && is_later ? c : chain;
        }
    }
    if (chain == CHAINS) {
        chain = chain_ended_first(chains);
        if (chains->last[chain] != 0) {
            chains->behind[(*count)++] = chains->last[chain] - 1;
        }
    }
    chains->last[chain] = task->order + 1;
    return true;
}

static bool add_task(fl_worker *w, fl_graph_launch *replay, fl_chains *chains, fl_task *task)
{
    fl_item item = {.job = task->graph->job, .task = task};
    fl_launch launch = {.params = w->offload->params};
    uint32_t count;
    if (!fl_fetch_operands(w, &item) || !fl_launch_fill(w, &item, &launch) ||
        fl_shape_has_clusters(&launch.shape) || /* a kernel's node carries no clusters */
        !list_behind(w, chains, task, &count)) {
        return false;
    }
    note_tiles(w, replay, task);
    replay->work += task->codelet->work != NULL ? (double)task->work : 0;
    return w->device->backend->graph->add(w->device, replay->handle, &launch, chains->behind, count,
                                          &w->stall.error) == FILCH_OK;
}

static bool make(fl_worker *w, filch_graph *graph)
{
    fl_graph_launch *replay = replay_new(w, graph);
    fl_chains chains = {.capacity = 0};
    uint32_t fetched = 0;
    bool fits = replay != NULL;
    /* Later errors belong to the present attempt. */
    w->stall.error.status = FILCH_OK;
    for (uint32_t i = 0; fits && i < graph->task_count; ++i) {
        fits = add_task(w, replay, &chains, fl_graph_task_at(graph, i));
        fetched += w->offload->is_admitted;
        w->offload->is_admitted = false;
    }
    fl_free(&w->sched->core->memory, chains.behind, chains.capacity * sizeof *chains.behind);
    fits = fits &&
           w->device->backend->graph->seal(w->device, replay->handle, &w->stall.error) == FILCH_OK;
    /* Operands were pinned until every task was added, lest the last fetch evict the first. */
    for (uint32_t i = 0; i < fetched; ++i) {
        fl_in_flight flight = {.item = {.task = fl_graph_task_at(graph, i)}};
        if (fl_operands_matter(&flight.item)) {
            fl_fetch_release(w, &flight);
        }
    }
    if (!fits && replay != NULL) {
        /* Copies to operands are under way; no thread waits for the copies if the run is
         * cancelled. */
        w->device->backend->lane->drain(w->device, NULL);
        drop(graph, replay);
        replay = NULL;
    }
    fl_launch_history *history = &fl_part_of_graph(graph)->history;
    history->launch = replay;
    history->launched = 0;
    history->launched_ns = 0;
    return fits;
}

void fl_graph_launch_drop(filch_graph *graph)
{
    fl_launch_history *history = &fl_part_of_graph(graph)->history;
    if (history->launch != NULL) {
        drop(graph, history->launch);
        history->launch = NULL;
    }
}

/* --- Using a graph launch --- */

/* Operand for one tile of a handle, as used by the graph launch. */
static fl_operand operand_of(const fl_worker *w, const filch_graph *graph, size_t slot,
                             uint32_t tile, filch_view *view)
{
    filch_data *data = graph->slots[slot]->use.data;
    uint32_t bits = fl_part_of_graph(graph)->history.launch->tiles[slot][tile].bits;
    *view = fl_data_tile_view(data, tile);
    return (fl_operand){
        .data = data,
        .view = view,
        .mode = ((bits & TILE_NEEDED) != 0 ? (uint32_t)FILCH_READ : 0u) |
                ((bits & TILE_WRITTEN) != 0 ? (uint32_t)FILCH_WRITE : 0u),
        .is_final = (bits & TILE_FINAL) != 0 && !data->is_managed,
        .tiles = fl_rect_of_tile(tile),
        .traffic = fl_job_traffic(graph->job, w->sched->count),
    };
}

/* Releases the first `count` tiles used by the graph launch. */
static void release_tiles(fl_worker *w, const filch_graph *graph, uint32_t count)
{
    filch_view view;
    for (size_t s = 0; s < graph->slot_count; ++s) {
        for (uint32_t t = 0; t < graph->slots[s]->tile_count && count != 0; ++t) {
            if (fl_part_of_graph(graph)->history.launch->tiles[s][t].bits != 0) {
                fl_operand operand = operand_of(w, graph, s, t, &view);
                fl_operands_release(fl_worker_places(w), w->device, &operand, 1, NULL);
                --count;
            }
        }
    }
}

void fl_graph_launch_release(fl_worker *w, const filch_graph *graph)
{
    release_tiles(w, graph, UINT32_MAX);
}

/* Pins the tiles of the graph launch. False: a tile moved away from the address used by the
 * kernels, or has no room; no tile is pinned. */
static bool fetch_all(fl_worker *w, const filch_graph *graph)
{
    const fl_admission admission = {.foresight = NULL};
    fl_waits *waits = &w->offload->waits;
    filch_view view;
    uint32_t count = 0;
    bool fits = true;
    waits->count = 0;
    for (size_t s = 0; fits && s < graph->slot_count; ++s) {
        for (uint32_t t = 0; fits && t < graph->slots[s]->tile_count; ++t) {
            const fl_graph_launch_tile *tile =
                &fl_part_of_graph(graph)->history.launch->tiles[s][t];
            if (tile->bits == 0) {
                continue;
            }
            fl_operand operand = operand_of(w, graph, s, t, &view);
            fits = fl_operands_fetch(fl_worker_places(w), w->device, &operand, 1, &admission, waits,
                                     &w->stall.error) == FILCH_OK;
            count += fits;
            fits = fits && view.ptr == tile->ptr && view.ld == tile->ld;
        }
    }
    if (!fits) {
        /* The copies' job may be cancelled now. */
        fl_waits_abandon(fl_worker_places(w), waits);
        release_tiles(w, graph, count);
    }
    return fits;
}

static uint64_t fastest_plain(const fl_launch_history *history)
{
    uint64_t best = UINT64_MAX;
    for (uint32_t i = 0; i < FL_PLAIN_RUNS; ++i) {
        uint64_t ns = history->plain_ns[i];
        best = ns != 0 && ns < best ? ns : best;
    }
    return best;
}

/* Tells whether the exploration of graph launches is over and lost, compared with the fastest of as
 * many recent plain runs. */
static bool has_lost(const fl_worker *w, const filch_graph *graph)
{
    const fl_launch_history *history = &fl_part_of_graph(graph)->history;
    return w->sched->core->settings.replay == OWN_CHOICE && history->launch != NULL &&
           history->launched > FL_PLAIN_RUNS && history->launched_ns >= fastest_plain(history);
}

void fl_graph_launch_note(const filch_job *job)
{
    fl_launch_history *history = &fl_part_of_graph(job->graph)->history;
    /* Relaxed: written before the job's last task. */
    uint64_t begin = fl_load_relaxed(&job->started);
    uint64_t ns = job->finished > begin ? job->finished - begin : 1;
    if (fl_load_relaxed(&job->failed) != 0 || fl_load_relaxed(&job->left_out) != 0) {
        return;
    }
    if (!history->is_launched) {
        history->plain_ns[history->runs % FL_PLAIN_RUNS] = ns;
    } else if (history->launched++ != 0 && /* the first run includes the driver's upload */
               (history->launched_ns == 0 || ns < history->launched_ns)) {
        history->launched_ns = ns;
    }
}

/* Gives up after a failed attempt: only for now, if just memory in use elsewhere is missing. */
static void give_up(const fl_worker *w, fl_launch_history *history)
{
    uint32_t rest = 2 * history->rest;
    history->is_given_up = w->stall.error.status != FILCH_NOT_READY;
    history->rest = rest < FL_GRAPH_LEAST_REST  ? FL_GRAPH_LEAST_REST
                    : rest < FL_GRAPH_MOST_REST ? rest
                                                : FL_GRAPH_MOST_REST;
    history->runs = 0;
}

bool fl_graph_launch_pick(fl_worker *w, filch_job *job, fl_item *item)
{
    uint32_t lo, hi;
    filch_graph *graph = job->graph;
    fl_launch_history *history = &fl_part_of_graph(graph)->history;
    if (history->is_given_up || w->device->backend->graph == NULL ||
        fl_load_relaxed(&job->cancelled) != 0) {
        return false;
    }
    /* Relaxed: written by the worker, no order needed. */
    double ns = fl_worker_mean_ns(w);
    int64_t named = w->sched->core->settings.replay;
    int64_t first = named == OWN_CHOICE ? FL_GRAPH_FIRST : named;
    history->is_launched = false;
    if (++history->runs < first + history->rest || first == 0 ||
        (named == OWN_CHOICE && ns > FL_GRAPH_LONGEST_NS) || fl_trace_of(w) != NULL) {
        return false;
    }
    if (has_lost(w, graph)) {
        fl_graph_launch_drop(graph);
        history->is_given_up = true;
        return false;
    }
    if (history->launch == NULL && (!is_suitable(w, graph) || !make(w, graph))) {
        give_up(w, history);
        return false;
    }
    if (!fetch_all(w, graph)) {
        /* Tiles were evicted meanwhile, and may be evicted again. */
        fl_graph_launch_drop(graph);
        history->runs = 0;
        return false;
    }
    /* Only we take from the range: the runtime has one device. */
    fl_range_drain(&fl_job_share(job, w->index)->range, &lo, &hi);
    history->is_launched = true;
    *item = (fl_item){.job = job, .is_graph = true};
    return true;
}

static bool commit_all(fl_worker *w, const filch_graph *graph, fl_marker marker,
                       fl_in_flight *flight)
{
    filch_view view;
    bool fits = w->device->backend->lane->mark(w->device, &w->stall.error) == FILCH_OK;
    for (size_t s = 0; fits && s < graph->slot_count; ++s) {
        for (uint32_t t = 0; fits && t < graph->slots[s]->tile_count; ++t) {
            fl_marker home = 0;
            if ((fl_part_of_graph(graph)->history.launch->tiles[s][t].bits & TILE_WRITTEN) != 0) {
                fl_operand operand = operand_of(w, graph, s, t, &view);
                fits = fl_operand_commit(fl_worker_places(w), w->device, &operand, marker, &home,
                                         &w->stall.error) == FILCH_OK;
            }
            if (home != 0) {
                fl_publish_add_copy(w, flight, home);
            }
        }
    }
    return fits;
}

bool fl_graph_launch_launch(fl_worker *w, fl_in_flight *flight)
{
    fl_item *item = &flight->item;
    const filch_graph *graph = item->job->graph;
    fl_launch launch = {
        .tag = fl_pipeline_index(w, flight),
        .graph = fl_part_of_graph(graph)->history.launch->handle,
        .behind = w->offload->waits.at,
        .behind_count = w->offload->waits.count,
    };
    if (fl_launch_on(w, item, &launch) != FILCH_OK) {
        fl_fetch_abandon(w);
        fl_graph_launch_release(w, graph);
        return false;
    }
    flight->is_admitted = true;
    item->work = fl_part_of_graph(graph)->history.launch->work;
    flight->lane = 0;
    fl_offload_put(w->offload, 0);
    if (!commit_all(w, graph, launch.marker, flight)) {
        fl_publish_fail(w, flight, &w->stall.error);
    }
    return true;
}
