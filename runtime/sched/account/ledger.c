/* SPDX-License-Identifier: Apache-2.0 */
#include "sched/account/ledger.h"

#include "sched/worker/tuning.h"

#include <string.h>

void fl_backlog_add(fl_backlog *backlog, uint64_t from, uint64_t to)
{
    uint64_t until = fl_load_relaxed(&backlog->until); /* relaxed throughout: statistics */
    do {
        if (to <= until || to <= from) {
            return; /* the period is counted already */
        }
    } while (!fl_cas_relaxed(&backlog->until, &until, to));
    fl_add_relaxed(&backlog->ns, to - (from > until ? from : until));
}

void fl_ledger_init(fl_ledger *ledger, fl_backlog *backlog, uint64_t now)
{
    memset(ledger, 0, sizeof *ledger);
    ledger->backlog = backlog;
    fl_store_relaxed(&ledger->since, now); /* relaxed: not yet visible to other threads */
    fl_store_relaxed(&ledger->idle_since, now);
}

/* Returns the unshared part of `ns`, the time in a spell. seen: the backlog at the begin of the
 * spell. */
static uint64_t unshared(const fl_ledger *ledger, uint64_t kind, uint64_t seen, uint64_t ns)
{
    if (kind != FL_SPELL_STARVED) {
        return 0;
    }
    uint64_t added = fl_load_relaxed(&ledger->backlog->ns) - seen; /* relaxed: a statistic */
    return added < ns ? added : (int64_t)ns > 0 ? ns : 0;
}

void fl_ledger_turn(fl_ledger *ledger, fl_spell kind, const void *job, uint64_t now)
{
    /* Relaxed: the owner is the only writer, and needs no order for own values. */
    uint64_t turn = fl_load_relaxed(&ledger->turn), since = fl_load_relaxed(&ledger->since);
    uint64_t before = fl_load_relaxed(&ledger->kind);
    uint64_t part = unshared(ledger, before, fl_load_relaxed(&ledger->backlog_ns), now - since);
    uint64_t ns = fl_load_relaxed(&ledger->ns[before]) + (now - since) - part;
    uint64_t unshared_ns = fl_load_relaxed(&ledger->ns[FL_SPELL_UNSHARED]) + part;
    fl_store_relaxed(&ledger->turn, turn + 1);
    /* Release, every store: a reader seeing a new value also sees the odd turn. */
    fl_store_release(&ledger->ns[before], ns);
    fl_store_release(&ledger->ns[FL_SPELL_UNSHARED], unshared_ns);
    fl_store_release(&ledger->backlog_ns, fl_load_relaxed(&ledger->backlog->ns));
    fl_store_release(&ledger->since, now);
    fl_store_release(&ledger->kind, (uint64_t)kind);
    fl_store_release(&ledger->job, (uintptr_t)job);
    if (before == FL_SPELL_ON && kind != FL_SPELL_ON) {
        fl_store_release(&ledger->idle_since, now);
    }
    /* Release: a reader of the turn sees every store above. */
    fl_store_release(&ledger->turn, turn + 2);
}

static void copy(const fl_ledger *ledger, fl_reading *reading)
{
    /* Acquire: every load precedes the second load of the turn. */
    for (int kind = 0; kind < FL_SPELLS; ++kind) {
        reading->ns[kind] = fl_load_acquire(&ledger->ns[kind]);
    }
    reading->since = fl_load_acquire(&ledger->since);
    reading->kind = (fl_spell)fl_load_acquire(&ledger->kind);
    reading->job = fl_load_acquire(&ledger->job);
    reading->idle_since = fl_load_acquire(&ledger->idle_since);
    reading->backlog_ns = fl_load_acquire(&ledger->backlog_ns);
}

void fl_ledger_read(const fl_ledger *ledger, uint64_t now, fl_reading *reading)
{
    uint64_t turn;
    int tries = 0;
    do {
        turn = fl_load_acquire(&ledger->turn); /* acquire: precedes the loads of the values */
        copy(ledger, reading);
    } while ((turn % 2 != 0 || fl_load_relaxed(&ledger->turn) != turn) &&
             ++tries < FL_LEDGER_TRIES);
    /* The spell may have begun after the caller read `now`: even then the sum is right. */
    uint64_t ns = now - reading->since;
    uint64_t part = unshared(ledger, reading->kind, reading->backlog_ns, ns);
    reading->ns[reading->kind] += ns - part;
    reading->ns[FL_SPELL_UNSHARED] += part;
    for (int why = 0; why < FL_REFUSALS; ++why) {
        reading->refused[why] = fl_load_relaxed(&ledger->refused[why]); /* statistics */
    }
}

void fl_ledger_add_gap(fl_ledger *ledger, uint64_t ns)
{
    uint32_t sorted[FL_GAPS];
    ledger->gaps[ledger->gap_count++ % FL_GAPS] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
    uint32_t count = ledger->gap_count < FL_GAPS ? ledger->gap_count : FL_GAPS;
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t at = i;
        for (; at > 0 && sorted[at - 1] > ledger->gaps[i]; --at) {
            sorted[at] = sorted[at - 1];
        }
        sorted[at] = ledger->gaps[i];
    }
    /* At least 1, since 0 means unknown. Relaxed: an estimate. */
    fl_store_relaxed(&ledger->gap_ns, sorted[(count - 1) / 2] != 0 ? sorted[(count - 1) / 2] : 1);
}
