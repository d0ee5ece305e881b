/* SPDX-License-Identifier: Apache-2.0 */
/* Access queue of a handle. */
#include "memory/tiles/data.h"

/* Tells whether two blocks of tiles overlap; row1 0: every tile. */
static bool overlap(fl_tiles a, fl_tiles b)
{
    return a.row1 == 0 || b.row1 == 0 || fl_tiles_meet(a, b);
}

bool fl_access_queue_conflict(const fl_queued_access *a, const fl_queued_access *b)
{
    if (a->job != NULL && a->job == b->job) {
        return false;
    }
    if (!a->is_hold && !b->is_hold) {
        return a->writes || b->writes;
    }
    return (a->writes && overlap(a->wrote, b->used)) || (b->writes && overlap(b->wrote, a->used));
}

static bool is_grantable(const fl_queued_access *use)
{
    for (const fl_queued_access *before = use->prev; before != NULL; before = before->prev) {
        if (fl_access_queue_conflict(use, before)) {
            return false;
        }
    }
    return true;
}

bool fl_access_queue_enqueue(fl_queued_access *use)
{
    return fl_access_queue_enqueue_before(use, NULL);
}

static void link_before(fl_queued_access *use, fl_queued_access *next)
{
    filch_data *data = use->data;
    fl_queued_access *prev = next != NULL ? next->prev : data->last;
    use->next = next;
    use->prev = prev;
    *(prev != NULL ? &prev->next : &data->first) = use;
    *(next != NULL ? &next->prev : &data->last) = use;
}

static void take_out(fl_queued_access *use)
{
    filch_data *data = use->data;
    *(use->prev != NULL ? &use->prev->next : &data->first) = use->next;
    *(use->next != NULL ? &use->next->prev : &data->last) = use->prev;
    use->next = use->prev = NULL; /* a neighbour may end before the owner of this entry */
}

bool fl_access_queue_enqueue_before(fl_queued_access *use, fl_queued_access *next)
{
    filch_data *data = use->data;
    link_before(use, next);
    use->queued = true;
    data->holds += use->is_hold;
    data->upgrades += use->is_upgrade;
    use->granted = is_grantable(use);
    return use->granted;
}

void fl_access_queue_move(fl_queued_access *use, fl_queued_access *next)
{
    take_out(use);
    link_before(use, next);
}

void fl_access_queue_unlink(fl_queued_access *use)
{
    filch_data *data = use->data;
    take_out(use);
    use->queued = false;
    data->holds -= use->is_hold;
    data->upgrades -= use->is_upgrade;
}

void fl_access_queue_leave(fl_queued_access *use,
                           void (*granted)(fl_queued_access *use, void *user), void *user)
{
    const filch_data *data = use->data;
    fl_access_queue_unlink(use);
    for (fl_queued_access *waiting = data->first; waiting != NULL; waiting = waiting->next) {
        if (!waiting->granted) {
            if (is_grantable(waiting)) {
                waiting->granted = true;
                granted(waiting, user);
            } else if (data->holds == 0 && data->upgrades == 0) {
                return; /* every later entry conflicts with the waiting job, or with a writer */
            }
        }
    }
}
