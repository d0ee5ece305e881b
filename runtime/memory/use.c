/* SPDX-License-Identifier: Apache-2.0 */
/* The queue of those that use a handle. */
#include "memory/data.h"

static bool is_grantable(const fl_use *use)
{
    for (const fl_use *before = use->prev; before != NULL; before = before->prev) {
        if (use->writes || before->writes) {
            return false;
        }
    }
    return true;
}

bool fl_use_enqueue(fl_use *use)
{
    return fl_use_enqueue_before(use, NULL);
}

bool fl_use_enqueue_before(fl_use *use, fl_use *next)
{
    filch_data *data = use->data;
    fl_use *prev = next != NULL ? next->prev : data->last;
    use->next = next;
    use->prev = prev;
    *(prev != NULL ? &prev->next : &data->first) = use;
    *(next != NULL ? &next->prev : &data->last) = use;
    use->queued = true;
    use->granted = is_grantable(use);
    return use->granted;
}

void fl_use_leave(fl_use *use, void (*granted)(fl_use *use, void *user), void *user)
{
    filch_data *data = use->data;
    if (use->prev != NULL) {
        use->prev->next = use->next;
    } else {
        data->first = use->next;
    }
    if (use->next != NULL) {
        use->next->prev = use->prev;
    } else {
        data->last = use->prev;
    }
    use->queued = false;
    for (fl_use *waiting = data->first; waiting != NULL; waiting = waiting->next) {
        if (!waiting->granted) {
            if (!is_grantable(waiting)) {
                return;
            }
            waiting->granted = true;
            granted(waiting, user);
        }
    }
}
