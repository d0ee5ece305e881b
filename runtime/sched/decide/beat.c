/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/decide/beat.h"

#include "sched/worker/sched.h"

/* Victims of one look of a core that searches, which looks again soon. */
#define SEARCHED 4u

static uint32_t others(const fl_worker *w)
{
    return w->sched->count - 1;
}

/* Whether the worker slept until a time that it had set itself, and is not about to sleep. */
static bool is_reminder(const fl_worker *w)
{
    const fl_sched *sched = w->sched;
    /* Relaxed: our own bit. It is set where a waker may find us asleep after this look. */
    uint64_t idle = fl_load_relaxed(&sched->idle[w->index / 64]) >> w->index % 64 & 1;
    /* Where no device does anything on a virtual clock, this look may be the last. */
    bool may_be_last = sched->agenda != NULL && sched->agenda->engaged_count == 0;
    return w->nap_ns != 0 && idle == 0 && !may_be_last &&
           fl_clock_now(&sched->core->clock) >= w->wake_at;
}

void fl_beat_begin(fl_worker *w, fl_beat *beat)
{
    const fl_rounds *rounds = &w->rounds;
    beat->left = others(w);
    beat->count = 0;
    beat->is_first = true;
    if (fl_load_relaxed(&w->state) == FL_WORKER_SEARCHING && beat->left > SEARCHED) {
        beat->left = SEARCHED; /* our own state; the next ones in the next look */
        return;
    }
    if (beat->left <= FL_BEAT) {
        return;
    }
    for (uint32_t i = 0; i < rounds->known_count; ++i) {
        beat->victims[beat->count++] = rounds->known[i];
    }
    if (is_reminder(w)) {
        beat->left = FL_BEAT - beat->count;
    }
}

bool fl_beat_next(fl_worker *w, fl_beat *beat)
{
    uint32_t all = w->sched->count, at = w->index + 1 + w->rounds.at;
    if (beat->left == 0) {
        return false;
    }
    beat->count = beat->is_first ? beat->count : 0;
    beat->is_first = false;
    at -= at < all ? 0 : all;
    for (; beat->count < FL_BEAT && beat->left != 0; --beat->left) {
        beat->victims[beat->count++] = at;
        at = at + 1 < all ? at + 1 : 0;
        if (at == w->index) { /* once around */
            at = at + 1 < all ? at + 1 : 0;
            w->rounds.at = 0;
        } else {
            ++w->rounds.at;
        }
    }
    return true;
}

void fl_beat_note(fl_worker *w, uint32_t victim)
{
    fl_rounds *rounds = &w->rounds;
    if (others(w) <= FL_BEAT) {
        return;
    }
    for (uint32_t i = 0; i < rounds->known_count; ++i) {
        if (rounds->known[i] == victim) {
            return;
        }
    }
    rounds->known[rounds->known_next] = victim;
    rounds->known_next = (rounds->known_next + 1) % FL_KNOWN;
    rounds->known_count += rounds->known_count < FL_KNOWN;
}
