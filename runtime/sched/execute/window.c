/* SPDX-License-Identifier: Apache-2.0 */
/* Locality window: ready tasks that a worker keeps, hidden from other workers, to choose among them
 * by what is on its device. decide/locality.c has the rules. */
#include "sched/execute/window.h"

#include "sched/decide/locality.h"
#include "sched/execute/fetch.h"
#include "sched/ready/queue.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

/* --- Whether to choose --- */

static void count_down(uint32_t *count, bool again, uint32_t from)
{
    *count = again ? from : *count != 0 ? *count - 1 : 0;
}

bool fl_window_expect(fl_worker *w, const fl_task *task)
{
    fl_offload *offload = w->offload;
    double ns = fl_worker_mean_ns(w); /* relaxed: the worker's own */
    /* Finding missing tiles takes about as long as a short item. Before the first item is over, the
     * item's copies are the only information. */
    bool is_worth = (ns > FL_SHORT_NS || ns == 0) && fl_locality_lacks(w, task);
    count_down(&offload->choosy, is_worth, FL_LOCALITY_RECENT);
    return fl_locality_chooses(w);
}

void fl_window_note_evictions(fl_worker *w, uint64_t evicted)
{
    fl_offload *offload = w->offload;
    count_down(&offload->pressed, evicted != offload->evicted, FL_LOCALITY_RECENT);
    if (fl_locality_chooses(w)) {
        bool hauls = fl_flow_in(w->sched->core->places, w->device->place) != 0;
        count_down(&offload->host_copies, hauls, FL_LOCALITY_HAULS);
    }
    offload->window_lacks = offload->window_lacks || evicted != offload->evicted;
    offload->evicted = evicted;
}

/* --- Keeping --- */

static void add(fl_offload *offload, fl_local_task near)
{
    offload->window_lacks = true;
    offload->window[offload->window_count++] = near;
}

void fl_window_add(fl_worker *w, fl_task *task)
{
    add(w->offload, (fl_local_task){.task = task});
}

/* Makes the worker the owner of a hinted task. Where hints are mailed, an entry may be stale, or be
 * claimed by a second worker at any time: the worker claims the task at once. Elsewhere the entry
 * is the only hint to the task, and the task may return to a deque. */
static bool own(const fl_worker *w, uint64_t hint, fl_local_task *near)
{
    near->is_claimed = w->sched->mails;
    near->task = fl_hint_task(hint);
    return !near->is_claimed || fl_ready_claim(w->sched, hint, &near->task, &near->is_poisoned);
}

/* Takes a ready task of the worker, from then on owned by the worker alone. False: no ready task.
 */
static bool unqueue(fl_worker *w, fl_local_task *near)
{
    uint64_t hint;
    *near = (fl_local_task){.task = w->ready.next_task};
    w->ready.next_task = NULL;
    if (near->task != NULL) {
        return true;
    }
    while (fl_ready_take_hint(w, &hint)) {
        if (own(w, hint, near)) {
            return true;
        }
    }
    return false;
}

/* Returns the level of the next ready task, or more; below 0: no ready task. */
static int next_level(const fl_worker *w)
{
    int queued = w->ready.mask != 0 ? (int)fl_ready_top(w) : -1;
    int next = w->ready.next_task != NULL ? w->ready.next_task->level : -1;
    return fl_inbox_is_empty(&w->queues.inbox) ? (next > queued ? next : queued) : FL_LEVELS;
}

/* Returns the highest level of the kept tasks; below 0: none is kept. */
static int kept_level(const fl_offload *offload)
{
    int level = -1;
    for (uint32_t i = 0; i < offload->window_count; ++i) {
        level = offload->window[i].task->level > level ? offload->window[i].task->level : level;
    }
    return level;
}

int fl_window_top(const fl_worker *w)
{
    int next = next_level(w), kept = kept_level(w->offload);
    return next > kept ? next : kept;
}

/* Returns kept tasks to the queues visible to other workers, except for a few. The worker keeps
 * claimed tasks, a few tasks with tiles fetched ahead, and every such task while a tile is on the
 * way. */
static void give_back(fl_worker *w)
{
    fl_offload *offload = w->offload;
    uint32_t kept = 0, left = offload->window_count;
    bool is_coming = fl_fetch_is_coming(w);
    for (uint32_t i = 0; i < offload->window_count; ++i, --left) {
        fl_local_task *near = &offload->window[i];
        bool is_bound =
            near->is_claimed || (near->is_fetched && (is_coming || kept < FL_LOCALITY_KEPT_FEW));
        if (is_bound || kept + left <= FL_LOCALITY_KEPT_FEW) {
            offload->window[kept++] = *near;
        } else {
            fl_ready_push(w, near->task);
        }
    }
    offload->window_count = kept;
}

void fl_window_share(fl_worker *w)
{
    /* Relaxed: a guess. */
    if (w->offload->window_count > FL_LOCALITY_KEPT_FEW &&
        fl_load_relaxed(&w->sched->hungry) != 0) {
        give_back(w);
    }
}

/* Tells whether the next task is in a queue visible to other workers, and has to be claimed. */
static bool is_shared(const fl_worker *w)
{
    return w->sched->mails && w->ready.next_task == NULL && fl_inbox_is_empty(&w->queues.inbox);
}

bool fl_window_fill(fl_worker *w)
{
    fl_offload *offload = w->offload;
    fl_local_task near;
    uint32_t most = fl_locality_most(w),
             few = most < FL_LOCALITY_KEPT_FEW ? most : FL_LOCALITY_KEPT_FEW;
    fl_window_share(w);
    /* A task of a higher level precedes every kept task. */
    int level = kept_level(offload);
    while (offload->window_count < FL_LOCALITY_WINDOW &&
           (offload->window_count < (is_shared(w) ? few : most) || next_level(w) > level) &&
           unqueue(w, &near)) {
        level = near.task->level > level ? near.task->level : level;
        add(offload, near);
    }
    return offload->window_count != 0;
}

/* --- Taking --- */

void fl_window_take(fl_worker *w, fl_item *item)
{
    fl_offload *offload = w->offload;
    uint64_t least;
    uint32_t best = fl_locality_choose(w, &least);
    item->task = offload->window[best].task;
    offload->passes = fl_locality_passes(w, item->task) ? offload->passes + 1 : 0;
    item->is_claimed = offload->window[best].is_claimed;
    item->skip = offload->window[best].is_poisoned;
    item->is_graph = false;
    /* Present tiles may have left in the meantime. */
    offload->window_lacks = true;
    --offload->window_count;
    for (uint32_t i = best; i < offload->window_count; ++i) { /* in order of arrival */
        offload->window[i] = offload->window[i + 1];
    }
}

fl_local_task *fl_window_to_fetch(fl_worker *w)
{
    fl_offload *offload = w->offload;
    bool has_lack;
    uint32_t next = fl_locality_to_fetch(w, &has_lack);
    offload->window_lacks = has_lack;
    return next == offload->window_count ? NULL : &offload->window[next];
}
