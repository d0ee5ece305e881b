/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/ready/shared.h"

#include "sched/worker/device.h"

bool fl_may_run(const fl_worker *w, const fl_task *task, const void *user)
{
    (void)user;
    return fl_worker_can_run(w, task);
}

bool fl_may_run_of(const fl_worker *w, const fl_task *task, const void *sought)
{
    return fl_is_sought(sought, task->graph->job) && fl_worker_can_run(w, task);
}

bool fl_may_run_waiting(const fl_worker *w, const fl_task *task, const void *user)
{
    (void)user;
    return task->predecessors != 0 && fl_worker_can_run(w, task);
}

bool fl_shared_find(const fl_ranked_lists *lists, const fl_worker *w, fl_may_fn may,
                    const void *user, fl_ranked_spot *spot)
{
    *spot = (fl_ranked_spot){0};
    while (fl_ranked_step(lists, spot, false)) {
        if (may(w, fl_task_of_link(spot->link), user)) {
            return true;
        }
    }
    return false;
}

void fl_common_put(fl_common *common, fl_task *task)
{
    fl_mutex_lock(&common->lock);
    fl_ranked_add(&common->tasks, 0, &task->link);
    /* Release, before the waker's fence: a worker that announces idleness and then looks sees the
     * task. */
    fl_store_release(&common->filled, 1);
    fl_mutex_unlock(&common->lock);
}

fl_task *fl_common_take(fl_worker *w, fl_may_fn may, const void *user)
{
    fl_common *common = &w->sched->rules.common;
    fl_ranked_spot spot = {0};
    if (fl_load_acquire(&common->filled) == 0) { /* acquire: pairs with the release above */
        return NULL;
    }
    fl_mutex_lock(&common->lock);
    bool found = fl_shared_find(&common->tasks, w, may, user, &spot);
    if (found) {
        fl_ranked_remove(&common->tasks, spot);
        fl_store_release(&common->filled, common->tasks.count != 0);
    }
    fl_mutex_unlock(&common->lock);
    return found ? fl_task_of_link(spot.link) : NULL;
}
