/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/place.h"

#include "sched/decide/pick.h"
#include "sched/model/transfer.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* The core that used the access's tile last, its index + 1; 0: not known, or nobody wrote it. */
static uint32_t holder_of(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    const filch_data *data = fl_graph_data(task->graph, access.slot);
    /* Relaxed: who wrote it last is a predecessor, whose end the caller has seen. */
    return data->holders != NULL ? fl_load_relaxed(&data->holders[access.tile]) : 0;
}

static bool is_mate(const fl_task *task, uint32_t i)
{
    return i < FL_TASK_MATES && (task->mates >> i & 1) != 0;
}

/* The core that holds most of the main tile's mates, its index + 1; 0: nobody holds any. Contents
 * that are read have to come, those that are overwritten only give way. Of two that hold as much it
 * is not the one that holds the main tile: the other one took tasks of this place over, and if it
 * did not get this one, too, the tiles of a place would stay apart. */
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
        return main; /* beyond the accesses that are looked at */
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

/* The index + 1 of the core that the task belongs to; 0: none. Where the way of its data costs less
 * than handing the task over, that is its home: homes are even, and after a theft tasks go back. */
static uint32_t owner_of(const fl_task *task)
{
    bool is_data_dear = task->bytes > FL_TASK_CHEAP_BYTES || task->home == 0;
    uint32_t holder = task->is_placed || !is_data_dear ? 0 : most_frequent_holder(task);
    return holder != 0 ? holder : task->home;
}

/* --- Kinds of tasks --- */

static fl_kind *kind_of(fl_worker *w, const filch_codelet *codelet)
{
    /* The high bits of a product: addresses are multiples of their size. */
    return &w->kinds[(uint32_t)((uintptr_t)codelet >> 4) * 2654435761u >> FL_KIND_SHIFT];
}

void fl_place_turn(fl_worker *w, const filch_codelet *codelet)
{
    uint64_t mean = fl_load_relaxed(&w->item_ns); /* only we write it */
    if (codelet == NULL) {
        return; /* a gate takes no time */
    }
    if (w->kind != NULL) {
        *kind_of(w, w->kind) = (fl_kind){w->kind, mean};
    }
    const fl_kind *kind = kind_of(w, codelet);
    w->kind = codelet;
    if (kind->codelet == codelet && kind->mean != mean) {
        fl_store_relaxed(&w->item_ns, kind->mean);
    }
}

/* --- Roots --- */

/* Finding a root's core, ns: one thread does it for all, while the cores wait. */
#define ROOT_LOOK_NS 40.0
/* A root takes at least so many times that, for each core. */
#define LOOKS_A_ROOT 4
/* Times its even share that a core may have of the roots. */
#define MOST_SHARES 2u

typedef struct fl_root_room {
    fl_task **roots; /* as many as the graph's: the two change places */
    uint16_t *cores; /* of each root */
    uint32_t *begin; /* for each core and level, and one more, where its roots begin */
    uint32_t *positions;
    uint32_t cores_count;
    bool is_swapped; /* the graph has ours, and we have its own */
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
    room_free(&graph->object.core->memory, graph->root_room, graph->root_count);
    graph->root_room = NULL;
}

static size_t bin_of(const fl_task *task, uint16_t core)
{
    return (size_t)core * FL_LEVELS + (FL_LEVELS - 1u - task->level);
}

/* Finds the core of each root and counts the roots by core and level; those of core 0's first level
 * at begin[1], and so on. */
static void choose_cores(const fl_sched *sched, const filch_graph *graph, fl_root_room *room)
{
    uint32_t most = MOST_SHARES * graph->root_count / sched->count + 1;
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
               ? (double)task->work * fl_sched_ns(sched, codelet, core)
               : 0;
}

static void swap_roots(filch_graph *graph)
{
    fl_root_room *room = graph->root_room;
    fl_task **before = graph->roots;
    graph->roots = room->roots;
    room->roots = before;
    room->is_swapped = !room->is_swapped;
}

void fl_place_restore(filch_graph *graph)
{
    if (graph->root_room != NULL && graph->root_room->is_swapped) {
        swap_roots(graph);
    }
}

const uint32_t *fl_place_roots(fl_sched *sched, filch_graph *graph)
{
    const fl_task *root = graph->roots[0];
    double ns = fl_place_root_ns(sched, root, root->home - 1u); /* an estimate, for all of them */
    fl_place_restore(graph); /* where the last run did not begin */
    if (!graph->has_dear_roots || (ns > 0 && ns < LOOKS_A_ROOT * ROOT_LOOK_NS * sched->count)) {
        return graph->root_begin;
    }
    if (graph->root_room == NULL) {
        graph->root_room = room_new(&graph->object.core->memory, graph->root_count, sched->count);
    }
    fl_root_room *room = graph->root_room;
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

void fl_place_note(const fl_worker *w, const fl_task *task)
{
    uint16_t self = (uint16_t)(w->index + 1);
    /* Who only reads a place leaves it where it is. */
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
        /* Relaxed, both: successors learn of it with the release of their count; two readers at
         * once may come in any order. A store that changes nothing would take the line from the
         * other cores. What nobody writes is in all caches that want it. */
        uint16_t before = fl_load_relaxed(&data->holders[access.tile]);
        if (before != self && (before != 0 || !is_read)) {
            fl_store_relaxed(&data->holders[access.tile], self);
            if (before != 0 && i == task->main_access) {
                fl_count(&w->share->moved, 1);
            }
        }
    }
}

static double mean_of(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->item_ns));
}

double fl_place_theft_ns(const fl_worker *thief, const fl_worker *victim)
{
    /* Relaxed: an estimate. */
    return thief->sched->keeps_holders
               ? fl_transfer_ns(victim->device, thief->device, fl_load_relaxed(&victim->cargo))
               : 0;
}

/* Whether it pays to wake the owner, which sleeps. A worker that would begin the task at once
 * compares what the tile's way costs. One with other work to do first loses a task's time of one
 * core each time: it wakes the owner when that adds up to what waking costs. */
static bool is_worth_waking(fl_worker *w, double price, bool has_work)
{
    if (price > FL_WAKE_UP_NS) {
        return true;
    }
    double mean = mean_of(w);
    if (!has_work || mean <= FL_HANDOFF_NS) {
        return false;
    }
    w->owed_ns += mean;
    if (w->owed_ns < FL_WAKE_UP_NS) {
        return false;
    }
    w->owed_ns = 0;
    return true;
}

void fl_place_tell(fl_sched *sched, const fl_worker *owner)
{
    /* Seq_cst, behind the push's: either this sees that the owner is about to sleep, or the owner's
     * last look sees the task. */
    fl_worker_state state = (fl_worker_state)fl_load_seq_cst(&owner->state);
    double mean = mean_of(owner);
    if (state == FL_WORKER_ASLEEP) {
        (void)fl_sched_wake_worker(sched, owner->index);
    } else if (state == FL_WORKER_RUNNING && (mean == 0 || mean >= FL_WAKE_UP_NS) &&
               fl_load_relaxed(&sched->searching) == 0) { /* a hint: relaxed */
        fl_sched_wake(sched, 1);
    }
}

uint32_t fl_place_target(fl_sched *sched, const fl_task *task, uint32_t target)
{
    uint32_t index = task->access_count != 0 ? owner_of(task) : 0;
    target = index != 0 && fl_worker_can_run(&sched->workers[index - 1], task) ? index - 1 : target;
    double mean = mean_of(&sched->workers[target]);
    /* Relaxed, all: estimates; who is awake is looked at again behind the push. */
    if (fl_load_relaxed(&sched->workers[target].state) != FL_WORKER_ASLEEP || mean <= 0) {
        return target;
    }
    double owed = fl_bits_double(fl_load_relaxed(&sched->owed)) + mean;
    bool is_enough = owed >= FL_WAKE_UP_NS;
    fl_store_relaxed(&sched->owed, fl_double_bits(is_enough ? 0 : owed));
    for (uint32_t i = 1; i < sched->count && !is_enough; ++i) {
        uint32_t other = (target + i) % sched->count;
        const fl_worker *w = &sched->workers[other];
        if (fl_load_relaxed(&w->state) != FL_WORKER_ASLEEP && !fl_worker_is_unavailable(w) &&
            fl_worker_can_run(w, task)) {
            return other;
        }
    }
    return target;
}

bool fl_place_gives(fl_worker *w, fl_task *task)
{
    fl_sched *sched = w->sched;
    uint32_t index = owner_of(task);
    if (index == 0 || index == w->index + 1) {
        return false;
    }
    fl_worker *owner = &sched->workers[index - 1];
    /* Relaxed: who is just beginning to wait inside a task takes it all the same. */
    if (fl_worker_is_unavailable(owner) || !fl_worker_can_run(owner, task) ||
        fl_load_relaxed(&owner->nested) != 0 || w->frames != NULL) {
        return false;
    }
    bool has_work = w->next_task != NULL || w->mask != 0;
    double price = fl_transfer_ns(owner->device, w->device, task->bytes);
    /* Relaxed: looked at again behind the push. */
    if (fl_load_relaxed(&owner->state) == FL_WORKER_ASLEEP &&
        !is_worth_waking(w, price, has_work)) {
        return false;
    }
    fl_inbox_push(&owner->inbox, &task->link);
    fl_place_tell(sched, owner);
    return true;
}
