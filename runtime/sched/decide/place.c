/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/place.h"

#include "sched/model/cost.h"
#include "sched/model/transfer.h"
#include "sched/worker/device.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/others.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Returns the index + 1 of the core that last used the access's tile; 0: unknown, or never written.
 */
static uint32_t holder_of(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    const filch_data *data = fl_graph_data(task->graph, access.slot);
    /* Relaxed: the last writer is a predecessor, and the caller has seen the predecessor end. */
    return data->holders != NULL ? fl_load_relaxed(&data->holders[fl_task_named(task, i).first])
                                 : 0;
}

static bool is_mate(const fl_task *task, uint32_t i)
{
    return i < FL_TASK_MATES && (task->mates >> i & 1) != 0;
}

/* Returns the index + 1 of the core holding most of the main tile's mates; 0: no holder. A tile to
 * be read counts twice, since the contents have to come; an overwritten tile only gives way. In a
 * tie, the core not holding the main tile wins. The winner took over tasks of the place, and
 * without the present task the tiles of the place would stay apart. */
static uint32_t most_frequent_holder(const fl_task *task)
{
    uint32_t holders[FL_TASK_MATES], weights[FL_TASK_MATES], count = 0;
    for (uint32_t i = 0; i < FL_TASK_MATES && task->mates >> i != 0; ++i) {
        if (is_mate(task, i)) {
            holders[count] = holder_of(task, i);
            weights[count++] = task->accesses[i].mode == FILCH_WRITE ? 1 : 2;
        }
    }
    uint32_t main = task->bytes != 0 ? holder_of(task, task->main_access) : 0;
    if (count == 0) {
        return main; /* no mate among the first FL_TASK_MATES accesses */
    }
    uint32_t best = 0, most = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t sum = 0;
        for (uint32_t k = 0; k < count; ++k) {
            sum += holders[k] == holders[i] ? weights[k] : 0;
        }
        if (holders[i] != 0 && (sum > most || (sum == most && best == main))) {
            most = sum;
            best = holders[i];
        }
    }
    return best;
}

/* Returns the index + 1 of the core owning the task; 0: none. Where the data's transfer costs less
 * than handing the task over, the owner is the home: homes are even, and tasks return after a
 * theft. */
static uint32_t owner_of(const fl_task *task)
{
    bool is_data_dear = task->bytes > FL_TASK_CHEAP_BYTES || task->home == 0;
    uint32_t holder = task->is_placed || !is_data_dear ? 0 : most_frequent_holder(task);
    return holder != 0 ? holder : task->home;
}

/* --- Roots --- */

typedef struct fl_root_room {
    fl_task **roots; /* as many as the graph's roots, and exchanged with the graph's array */
    uint16_t *cores; /* core of every root */
    uint32_t *begin; /* begin of the roots of every core and level, and one more entry */
    uint32_t *positions;
    uint32_t cores_count;
    bool is_swapped; /* the graph has the sorted array, and `roots` is the graph's own array */
} fl_root_room;

static void room_free(const fl_memory *memory, fl_root_room *room, uint32_t roots)
{
    if (room != NULL) {
        fl_free(memory, room->roots, roots * sizeof *room->roots);
        fl_free(memory, room->cores, roots * sizeof *room->cores);
        fl_free(memory, room->begin,
                ((size_t)room->cores_count * FL_LEVELS + 1) * sizeof(uint32_t));
        fl_free(memory, room->positions, ((size_t)room->cores_count + 1) * sizeof(uint32_t));
        fl_free(memory, room, sizeof *room);
    }
}

static fl_root_room *room_new(const fl_memory *memory, uint32_t roots, uint32_t cores)
{
    fl_root_room *room = fl_alloc_zeroed(memory, sizeof *room);
    if (room == NULL) {
        return NULL;
    }
    room->cores_count = cores;
    room->roots = fl_alloc(memory, roots * sizeof *room->roots);
    room->cores = fl_alloc(memory, roots * sizeof *room->cores);
    room->begin = fl_alloc(memory, ((size_t)cores * FL_LEVELS + 1) * sizeof(uint32_t));
    room->positions = fl_alloc(memory, ((size_t)cores + 1) * sizeof(uint32_t));
    if (room->roots == NULL || room->cores == NULL || room->begin == NULL ||
        room->positions == NULL) {
        room_free(memory, room, roots);
        return NULL;
    }
    return room;
}

void fl_place_drop(filch_graph *graph)
{
    fl_graph_part *part = fl_part_of_graph(graph);
    room_free(&graph->object.core->memory, part->root_room, graph->root_count);
    part->root_room = NULL;
}

static size_t bin_of(const fl_task *task, uint16_t core)
{
    return (size_t)core * FL_LEVELS + (FL_LEVELS - 1u - task->level);
}

/* Finds the core of every root, and counts the roots by core and level. The count for core 0's
 * first level is at begin[1], and the rest follows in order. */
static void choose_cores(const fl_sched *sched, const filch_graph *graph, fl_root_room *room)
{
    uint32_t most = FL_ROOT_SHARES * graph->root_count / sched->count + 1;
    memset(room->begin, 0, ((size_t)sched->count * FL_LEVELS + 1) * sizeof *room->begin);
    memset(room->positions, 0, ((size_t)sched->count + 1) * sizeof *room->positions);
    for (uint32_t i = 0; i < graph->root_count; ++i) {
        const fl_task *task = graph->roots[i];
        uint32_t index = task->access_count != 0 ? owner_of(task) : 0;
        uint16_t core = (uint16_t)(task->home - 1);
        if (index != 0 && room->positions[index - 1] < most &&
            !fl_worker_is_unavailable(&sched->workers[index - 1]) &&
            fl_worker_can_run(&sched->workers[index - 1], task)) {
            core = (uint16_t)(index - 1);
        }
        ++room->positions[core];
        ++room->begin[bin_of(task, core) + 1];
        room->cores[i] = core;
    }
}

double fl_place_root_ns(const fl_sched *sched, const fl_task *task, uint32_t core)
{
    const filch_codelet *codelet = task->codelet;
    return codelet != NULL && codelet->work != NULL && fl_codelet_runs_on(codelet, core)
               ? fl_cost_of_work(&sched->workers[core], codelet, (double)task->work,
                                 FL_GUESS_SCORES)
               : 0;
}

static void swap_roots(filch_graph *graph)
{
    fl_root_room *room = fl_part_of_graph(graph)->root_room;
    fl_task **before = graph->roots;
    graph->roots = room->roots;
    room->roots = before;
    room->is_swapped = !room->is_swapped;
}

void fl_place_restore(filch_graph *graph)
{
    const fl_root_room *room = fl_part_of_graph(graph)->root_room;
    if (room != NULL && room->is_swapped) {
        swap_roots(graph);
    }
}

const uint32_t *fl_place_roots(fl_sched *sched, filch_graph *graph)
{
    const fl_task *root = graph->roots[0];
    /* Estimate for every root. */
    double ns = fl_place_root_ns(sched, root, root->home - 1u);
    fl_place_restore(graph); /* needed where the last run did not begin */
    if (!graph->has_dear_roots ||
        (ns > 0 && ns < FL_LOOKS_A_ROOT * FL_ROOT_LOOK_NS * sched->count)) {
        return graph->root_begin;
    }
    fl_graph_part *part = fl_part_of_graph(graph);
    if (part->root_room == NULL) {
        part->root_room = room_new(&graph->object.core->memory, graph->root_count, sched->count);
    }
    fl_root_room *room = part->root_room;
    if (room == NULL) {
        return graph->root_begin;
    }
    choose_cores(sched, graph, room);
    for (size_t bin = 0; bin < (size_t)sched->count * FL_LEVELS; ++bin) {
        room->begin[bin + 1] += room->begin[bin];
    }
    for (uint32_t core = 0; core <= sched->count; ++core) {
        room->positions[core] = room->begin[(size_t)core * FL_LEVELS];
    }
    for (uint32_t i = 0; i < graph->root_count; ++i) {
        room->roots[room->begin[bin_of(graph->roots[i], room->cores[i])]++] = graph->roots[i];
    }
    swap_roots(graph);
    return room->positions;
}

/* --- Writers --- */

/* Notes the worker as the holder of every tile of a written block. */
static void note_block(const filch_data *data, fl_rect tiles, uint16_t self)
{
    for (uint32_t i = 0; i < fl_rect_count(tiles); ++i) {
        /* Relaxed: as in fl_place_note. */
        fl_store_relaxed(&data->holders[fl_rect_at(tiles, i)], self);
    }
}

void fl_place_note(const fl_worker *w, const fl_task *task)
{
    uint16_t self = (uint16_t)(w->index + 1);
    /* A task that only reads the main tile leaves the holders as they are. */
    bool takes = task->accesses[task->main_access].mode != FILCH_READ;
    for (uint32_t i = 0; i < task->access_count; ++i) {
        fl_task_access access = task->accesses[i];
        bool is_read = access.mode == FILCH_READ;
        if ((is_read && !(takes && is_mate(task, i))) || access.mode == FILCH_SCRATCH ||
            access.mode == FILCH_REDUCE) {
            continue;
        }
        const filch_data *data = fl_graph_data(task->graph, access.slot);
        if (data->holders == NULL) {
            continue;
        }
        if (FL_UNLIKELY(access.is_block) && !is_read) {
            note_block(data, fl_task_tiles(task, i), self);
            continue;
        }
        /* Relaxed, twice: the release of the successors' count publishes the holders, and two
         * concurrent readers may store in either order. A store without a change would take the
         * cache line from the other cores. A tile that nobody writes is in every interested cache.
         */
        _Atomic uint16_t *holder = &data->holders[fl_task_named(task, i).first];
        uint16_t before = fl_load_relaxed(holder);
        if (before != self && (before != 0 || !is_read)) {
            fl_store_relaxed(holder, self);
            if (before != 0 && i == task->main_access) {
                fl_count(&w->now.share->moved, 1);
            }
        }
    }
}

double fl_place_theft_ns(const fl_worker *thief, const fl_worker *victim)
{
    /* Relaxed: an estimate. */
    return thief->sched->keeps_holders ? fl_transfer_ns(victim->device, thief->device,
                                                        fl_load_relaxed(&victim->queues.cargo))
                                       : 0;
}

/* Tells whether waking the sleeping owner pays. A worker that would begin the task at once compares
 * the transfer cost. A worker with other work to do first loses a task's time of a core on every
 * occasion. The worker wakes the owner when the lost times add up to the cost of waking. */
static bool is_worth_waking(const fl_worker *w, double price, double *owed_ns)
{
    if (price > FL_WAKE_UP_NS) {
        return true;
    }
    double mean = fl_worker_mean_ns(w);
    bool has_work = w->ready.next_task != NULL || w->ready.mask != 0;
    if (!has_work || mean <= FL_HANDOFF_NS) {
        return false;
    }
    *owed_ns += mean;
    if (*owed_ns < FL_WAKE_UP_NS) {
        return false;
    }
    *owed_ns = 0;
    return true;
}

static bool is_awake(const fl_worker *w, const fl_worker *other, const fl_task *task)
{
    (void)w;
    (void)task;
    return fl_load_relaxed(&other->queues.state) != FL_WORKER_ASLEEP; /* an estimate */
}

uint32_t fl_place_target(const fl_sched *sched, const fl_task *task, uint32_t target,
                         double *owed_ns)
{
    uint32_t index = task->access_count != 0 ? owner_of(task) : 0;
    target = index != 0 && fl_worker_can_run(&sched->workers[index - 1], task) ? index - 1 : target;
    double mean = fl_worker_mean_ns(&sched->workers[target]);
    /* Relaxed, all: estimates; the state is loaded again after the push. */
    if (fl_load_relaxed(&sched->workers[target].queues.state) != FL_WORKER_ASLEEP || mean <= 0) {
        return target;
    }
    *owed_ns += mean;
    bool is_enough = *owed_ns >= FL_WAKE_UP_NS;
    *owed_ns = is_enough ? 0 : *owed_ns;
    const fl_worker *other = !is_enough ? fl_other_for(sched, &sched->workers[target], task,
                                                       FL_OTHERS_ONLINE, target + 1, is_awake)
                                        : NULL;
    return other != NULL ? other->index : target;
}

fl_worker *fl_place_receiver(const fl_worker *w, const fl_task *task, double *owed_ns)
{
    uint32_t index = owner_of(task);
    if (index == 0 || index == w->index + 1) {
        return NULL;
    }
    fl_worker *owner = &w->sched->workers[index - 1];
    /* Relaxed: a worker just beginning to wait inside a task takes the task all the same. */
    if (fl_worker_is_unavailable(owner) || !fl_worker_can_run(owner, task) ||
        fl_load_relaxed(&owner->signals.nested) != 0 || w->now.frames != NULL) {
        return NULL;
    }
    double price = fl_transfer_ns(owner->device, w->device, task->bytes);
    /* Relaxed: loaded again after the push. */
    bool is_asleep = fl_load_relaxed(&owner->queues.state) == FL_WORKER_ASLEEP;
    return is_asleep && !is_worth_waking(w, price, owed_ns) ? NULL : owner;
}
