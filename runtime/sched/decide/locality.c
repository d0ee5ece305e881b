/* SPDX-License-Identifier: Apache-2.0 */
/* Locality: the order of ready tasks where tiles have to be brought to the device. The task
 * with the fewest missing bytes comes first. In the order of readiness, every task may bring tiles
 * of its own while other tasks could run. Where memory is too small for all tiles, the order of
 * readiness may bring every tile anew in every round: a needed tile left just before. So a worker
 * of a device with memory of its own keeps ready tasks from ranges and deques in a window
 * (execute/window.c), hidden from other workers, and chooses among the tasks of the highest level,
 * or, for a lane without an item, among those with nothing missing.
 *
 * The worker chooses the task with the fewest missing bytes, and the oldest among equals. Among
 * several tasks with nothing missing, the choice depends on the state:
 * - memory is short: the oldest task, as the given order then brings the fewest tiles;
 * - other devices exist, and nothing comes from the host's memory: the task with the longest path;
 * - otherwise: the task that became ready last, which finishes work already begun.
 *
 * The idea is of "data-aware" policies (C. Augonnet et al., "StarPU: a unified platform for task
 * scheduling on heterogeneous multicore architectures", Concurrency and Computation 23(2), 2011).
 *
 * While the worker has an item to run, missing tiles of the next tasks are fetched ahead, for a few
 * tasks at a time. First come the tiles that let the most kept tasks run for every byte (as the
 * scheduler DARTS chooses data: M. Gonthier, L. Marchal, S. Thibault, "Taming data locality for
 * task scheduling under memory constraint in runtime systems", Future Gener. Comput. Syst. 143,
 * 2023). Where memory is short, tiles of items in flight pin memory needed by other tasks, so fewer
 * items are in flight, too. */
#include "sched/decide/locality.h"

#include "sched/decide/depth.h"
#include "sched/decide/slow.h"
#include "sched/model/missing.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* Roots come in groups, with room left for what they make ready, and the next group when few of all
 * are left: one by one, they would bring the first tiles of their own chains in between. */
#define MOST_ROOTS (FL_LOCALITY_WINDOW / 2)
#define FEW_LEFT (FL_LOCALITY_WINDOW / 4)

/* --- When --- */

/* Number of tasks weighed by the names of missing tiles. */
#define WEIGHED 32
/* Tasks that one after another may pass a task of a higher level. */
#define MOST_PASSES 16u

/* Finds the missing tiles of a kept task. A task to be skipped misses nothing, and nothing may be
 * brought for the task. A skipped task may be ready before the writers of the task's inputs are
 * over, as the tasks between did not run either. */
static fl_lack kept_lack(const fl_worker *w, const fl_local_task *near)
{
    const fl_task *task = near->task;
    /* Relaxed: the worker owns the task; a cancellation seen later changes nothing in a running
     * task. */
    bool is_poisoned = near->is_claimed ? near->is_poisoned
                                        : (fl_load_relaxed(&task->word) & FL_TASK_POISONED) != 0;
    bool is_skipped = is_poisoned || fl_load_relaxed(&task->graph->job->cancelled) != 0;
    return is_skipped ? (fl_lack){.bytes = 0} : fl_missing_of_task(w, task);
}

/* Returns a weight. 0: nothing is missing; 1: tiles on the way; else twice the bytes to be brought.
 */
static uint64_t weigh(fl_lack found)
{
    return found.bytes != 0 ? found.bytes * 2 : found.is_coming;
}

bool fl_locality_lacks(const fl_worker *w, const fl_task *task)
{
    return weigh(fl_missing_of_task(w, task)) > 1;
}

bool fl_locality_keeps(const fl_worker *w, const fl_task *task)
{
    return fl_locality_chooses(w) && (w->offload->pressed != 0 || fl_locality_lacks(w, task));
}

/* --- Keeping --- */

uint32_t fl_locality_room(const fl_worker *w, uint32_t rest)
{
    const fl_offload *offload = w->offload;
    if (!fl_locality_chooses(w) || offload->window_count >= FEW_LEFT || fl_slow_is_on(w)) {
        return 1;
    }
    /* Relaxed: a guess. */
    uint32_t most = fl_load_relaxed(&w->sched->hungry) == 0 ? MOST_ROOTS : FL_LOCALITY_KEPT_FEW;
    uint32_t room = most > offload->window_count ? most - offload->window_count : 1;
    return rest < 1 ? 1 : rest < room ? rest : room;
}

uint32_t fl_locality_most(const fl_worker *w)
{
    if (w->sched->count == 1) {
        return FL_LOCALITY_WINDOW;
    }
    if (fl_slow_is_on(w)) {
        return FL_LOCALITY_KEPT_LEAST; /* other devices might end the task first */
    }
    /* Relaxed: a guess. */
    if (fl_load_relaxed(&w->sched->hungry) != 0) {
        return FL_LOCALITY_KEPT_LEAST;
    }
    return w->offload->host_copies != 0 ? FL_LOCALITY_KEPT : FL_LOCALITY_KEPT_FEW;
}

/* --- Choosing --- */

/* Tells whether `task` is chosen before `before`, an older task. The tasks are of equal level, and
 * miss nothing. */
static bool is_sooner(const fl_worker *w, const fl_task *task, const fl_task *before)
{
    const fl_offload *offload = w->offload;
    bool is_by_rank = w->sched->count > 1 && offload->host_copies == 0;
    return offload->pressed == 0 && (!is_by_rank || task->rank >= before->rank);
}

/* Tells whether a task is chosen before an earlier one of the window, by levels and by what the two
 * lack. */
static bool is_preferred(const fl_worker *w, const fl_task *task, uint64_t lacks,
                         const fl_task *before, uint64_t least)
{
    if (before == NULL || task->level != before->level) {
        return before == NULL || task->level > before->level;
    }
    return lacks < least || (lacks == 0 && least == 0 && is_sooner(w, task, before));
}

bool fl_locality_passes(const fl_worker *w, const fl_task *task)
{
    bool passes = false;
    for (uint32_t i = 0; i < w->offload->window_count && !passes; ++i) {
        passes = w->offload->window[i].task->level > task->level;
    }
    return passes;
}

/* A lane without an item takes a complete task of any level: urgent tasks lack operands. It does so
 * a few times only: what is missing is not always fetched ahead, e.g. where memory is short, but is
 * brought for the task that is taken. */
uint32_t fl_locality_choose(const fl_worker *w, uint64_t *least)
{
    const fl_offload *offload = w->offload;
    bool is_free = w->pipeline.computing < w->device->lanes && offload->passes < MOST_PASSES;
    uint32_t best = offload->window_count;
    *least = UINT64_MAX;
    for (uint32_t i = 0; i < offload->window_count; ++i) {
        const fl_task *task = offload->window[i].task;
        const fl_task *before = best < offload->window_count ? offload->window[best].task : NULL;
        if (before != NULL && task->level < before->level && (!is_free || *least == 0)) {
            continue;
        }
        uint64_t lacks = weigh(kept_lack(w, &offload->window[i]));
        bool is_first_complete = is_free && lacks == 0 && *least != 0;
        bool is_behind = is_free && lacks != 0 && *least == 0;
        if (is_first_complete || (!is_behind && is_preferred(w, task, lacks, before, *least))) {
            *least = lacks;
            best = i;
        }
    }
    return best;
}

bool fl_locality_lane_waits(const fl_worker *w, uint32_t lane)
{
    fl_marker arriving = w->offload->lane_arriving[lane];
    return arriving != 0 && w->offload->lane_load[lane] != 0 &&
           !w->device->backend->lane->is_past(w->device, arriving);
}

/* Tells whether an item waiting for a copy would leave no lane to items without a wait. */
static bool is_last_lane(const fl_worker *w)
{
    uint32_t waiting = 0;
    for (uint32_t lane = 0; lane < w->device->lanes; ++lane) {
        waiting += fl_locality_lane_waits(w, lane);
    }
    return waiting != 0 && waiting + 1 >= w->device->lanes;
}

bool fl_locality_waits(const fl_worker *w)
{
    const fl_offload *offload = w->offload;
    uint64_t least;
    /* Lanes are in order: an item waiting for a copy would delay items without a wait. */
    if (offload->window_count == 0 || !fl_locality_chooses(w) ||
        (w->pipeline.computing < w->device->lanes && (offload->pressed != 0 || !is_last_lane(w)))) {
        return false;
    }
    (void)fl_locality_choose(w, &least);
    return least != 0;
}

/* --- Fetching ahead --- */

static bool is_among(const fl_lack *few, const fl_lack *many)
{
    bool all = few->count <= FL_LACK_NAMES && many->count <= FL_LACK_NAMES;
    for (uint32_t i = 0; all && i < few->count; ++i) {
        uint32_t at = 0;
        while (at < many->count &&
               (few->of[i].data != many->of[at].data || few->of[i].tile != many->of[at].tile)) {
            ++at;
        }
        all = at < many->count;
    }
    return all;
}

static bool is_of_higher_rank(const fl_offload *offload, uint32_t index, uint32_t before)
{
    return offload->window[index].task->rank > offload->window[before].task->rank;
}

/* Returns the index of the task whose missing tiles to bring; window_count: no task. The task is of
 * the highest level among tasks with missing bytes, and lets the most tasks run for every byte;
 * among equals, it has the highest rank. */
static uint32_t choose_missing(const fl_worker *w, uint64_t *bytes)
{
    const fl_offload *offload = w->offload;
    fl_lack lacks[WEIGHED];
    uint32_t at[WEIGHED], count = 0, best = offload->window_count;
    int level = -1;
    for (uint32_t i = 0; i < offload->window_count; ++i) {
        const fl_task *task = offload->window[i].task;
        if (task->level < level || (task->level == level && count == WEIGHED)) {
            continue;
        }
        fl_lack lack = kept_lack(w, &offload->window[i]);
        if (lack.bytes != 0) {
            count = task->level > level ? 0 : count; /* highest level only */
            level = task->level;
            lacks[count] = lack;
            at[count++] = i;
        }
    }
    double most = 0;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t served = 0;
        for (uint32_t k = 0; k < count; ++k) {
            served += k == i || is_among(&lacks[k], &lacks[i]);
        }
        double each = served / (double)lacks[i].bytes;
        if (each > most || (each == most && is_of_higher_rank(offload, at[i], best))) {
            most = each;
            best = at[i];
            *bytes = lacks[i].bytes;
        }
    }
    return best;
}

uint32_t fl_locality_to_fetch(const fl_worker *w, bool *has_lack)
{
    const fl_offload *offload = w->offload;
    const fl_places *places = w->sched->core->places;
    uint64_t budget = fl_place_budget(places, w->device->place);
    uint64_t part = budget / FL_FETCH_PART, bytes = 0;
    uint64_t most = part < FL_FETCH_BYTES ? part : FL_FETCH_BYTES;
    uint32_t ahead = 0, none = offload->window_count;
    for (uint32_t i = 0; i < offload->window_count; ++i) {
        ahead += offload->window[i].is_fetched;
    }
    *has_lack = offload->window_lacks;
    if (!offload->window_lacks ||
        ahead >= (offload->pressed != 0 ? FL_FETCH_TASKS_PRESSED : FL_LOCALITY_KEPT) ||
        w->pipeline.computing == 0 || fl_flow_in(places, w->device->place) >= most ||
        fl_flow_peer(places, w->device->place) >= FL_FETCH_PEERS * most) {
        return none;
    }
    uint32_t next = choose_missing(w, &bytes);
    *has_lack = next != none;
    bool is_large =
        offload->pressed != 0 && bytes > budget / (FL_FETCH_PART * FL_FETCH_TASKS_PRESSED);
    return is_large ? none : next;
}
