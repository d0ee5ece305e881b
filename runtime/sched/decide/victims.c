/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/victims.h"

#include "sched/worker/event_queue.h"
#include "sched/worker/sched.h"
#include "sched/worker/tuning.h"

static uint32_t others(const fl_worker *w)
{
    return w->sched->count - 1;
}

/* Tells whether the worker slept until a time set by the worker, and is not about to sleep. */
static bool is_reminder(const fl_worker *w)
{
    const fl_sched *sched = w->sched;
    /* Relaxed: the worker's own bit. While set, a waker may find the worker asleep after the look.
     */
    uint64_t idle = fl_load_relaxed(&sched->idle[w->index / 64]) >> w->index % 64 & 1;
    /* On a virtual clock with every device idle, the look may be the last. */
    bool may_be_last = sched->events != NULL && sched->events->engaged_count == 0;
    /* In poll mode no bit tells the last look before a sleep: every look is complete. */
    bool is_polled = sched->drive == FILCH_DRIVE_POLL && sched->events == NULL;
    return w->idle.nap_ns != 0 && idle == 0 && !may_be_last && !is_polled &&
           fl_clock_now(&sched->core->clock) >= w->idle.wake_at;
}

void fl_victims_begin(const fl_worker *w, const fl_victim_order *order, fl_victim_list *victims)
{
    victims->left = others(w);
    victims->count = 0;
    victims->is_first = true;
    if (fl_load_relaxed(&w->queues.state) == FL_WORKER_SEARCHING &&
        victims->left > FL_VICTIMS_SEARCHED) {
        /* Relaxed: the worker's own state. The next look visits the next victims. */
        victims->left = FL_VICTIMS_SEARCHED;
        return;
    }
    if (victims->left <= FL_VICTIMS) {
        return;
    }
    for (uint32_t i = 0; i < order->known_count; ++i) {
        victims->victims[victims->count++] = order->known[i];
    }
    if (is_reminder(w)) {
        victims->left = FL_VICTIMS - victims->count;
    }
}

bool fl_victims_next(const fl_worker *w, fl_victim_order *order, fl_victim_list *victims)
{
    uint32_t all = w->sched->count, at = w->index + 1 + order->at;
    if (victims->left == 0) {
        return false;
    }
    victims->count = victims->is_first ? victims->count : 0;
    victims->is_first = false;
    at -= at < all ? 0 : all;
    for (; victims->count < FL_VICTIMS && victims->left != 0; --victims->left) {
        victims->victims[victims->count++] = at;
        at = at + 1 < all ? at + 1 : 0;
        if (at == w->index) { /* once around */
            at = at + 1 < all ? at + 1 : 0;
            order->at = 0;
        } else {
            ++order->at;
        }
    }
    return true;
}

void fl_victims_note(const fl_worker *w, fl_victim_order *order, uint32_t victim)
{
    if (others(w) <= FL_VICTIMS) {
        return;
    }
    for (uint32_t i = 0; i < order->known_count; ++i) {
        if (order->known[i] == victim) {
            return;
        }
    }
    order->known[order->known_next] = victim;
    order->known_next = (order->known_next + 1) % FL_KNOWN;
    order->known_count += order->known_count < FL_KNOWN;
}
