/* SPDX-License-Identifier: Apache-2.0 */
/* One owner and three thieves that look at entries before they take one: every entry is settled
 * exactly once, by who marks it first, with what the owner wrote before the push, and none is lost
 * to a thief that drops a dead entry. Of every four entries the thieves must leave one alone, so
 * they reach past tops that stay, and leave dead entries in the middle. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "stress.h"
#include "sync/deque.h"

enum {
    THIEVES = 3,
    PHASES = 64, /* each with a new deque, whose first ring has two slots */
    BURST = 12,
    PAUSE = 48,
    DEPTH = 6,
    LONG_BURST = 3000, /* now and then, to grow far while thieves are inside */
};

typedef struct field {
    stress stress;
    fl_deque deque;
    stress_set settled;
    uint64_t
        *payload;   /* plain memory: what an entry publishes, one element for each of the phase */
    uint64_t first; /* item of payload[0] */
    _Atomic bool done;
} field;

typedef struct thief {
    field *field;
    uint64_t taken, dropped;
} thief;

static uint64_t entry_of(uint64_t item)
{
    return item + 1; /* 0 is none */
}

/* False when somebody else has it. */
static bool settle(field *f, uint64_t item)
{
    if (!stress_set_mark(&f->settled, item))
        return false;
    if (item < f->first)
        stress_fail(&f->stress, "left over from an earlier deque", item);
    else if (f->payload[item - f->first] != stress_hash(&f->stress, item))
        stress_fail(&f->stress, "taken without what was written before the push", item);
    return true;
}

static bool is_for_thieves(uint64_t item)
{
    return item % 4 != 0;
}

/* False when nothing was found. */
static bool take_one(thief *t)
{
    field *f = t->field;
    int64_t index = 0;
    uint64_t entry;
    bool is_top;
    for (int i = 0; i < DEPTH && fl_deque_look(&f->deque, &index, &entry, &is_top); i++, index++) {
        if (entry == 0 || !is_for_thieves(entry - 1))
            continue;
        bool is_ours = settle(f, entry - 1);
        if (is_top)
            t->dropped += fl_deque_drop(&f->deque, index);
        if (is_ours)
            return true;
    }
    return false;
}

static int thief_main(void *arg)
{
    thief *t = arg;
    uint64_t in_vain = 0;
    for (;;) {
        /* Acquire: the owner stops after its last pop. */
        bool done = fl_load_acquire(&t->field->done);
        if (take_one(t))
            t->taken++;
        else if (done)
            return 0;
        else if (++in_vain % 64 == 0)
            fl_thread_yield();
    }
}

static uint64_t pop_some(field *f, uint64_t pops)
{
    uint64_t entry, taken = 0;
    for (; pops > 0 && fl_deque_pop(&f->deque, &entry); pops--) {
        bool is_ours = settle(f, entry - 1);
        taken += is_ours;
        if (!is_ours && !is_for_thieves(entry - 1))
            stress_fail(&f->stress, "popped twice", entry - 1);
    }
    return taken;
}

/* Pushes items first .. end - 1 in bursts, pops some in between and the rest at the end. */
static uint64_t owner_main(field *f, fl_random *random, uint64_t end)
{
    uint64_t taken = 0, next = f->first;
    while (next < end) {
        uint64_t longest = stress_below(random, 256) == 0 ? LONG_BURST : BURST;
        uint64_t pushes = 1 + stress_below(random, longest);
        for (; pushes > 0 && next < end; pushes--, next++) {
            f->payload[next - f->first] = stress_hash(&f->stress, next);
            if (!fl_deque_push(&f->deque, entry_of(next))) {
                stress_fail(&f->stress, "push failed", next);
                return taken;
            }
        }
        for (uint64_t pause = stress_below(random, PAUSE); pause > 0; pause--)
            fl_relax();
        taken += pop_some(f, stress_below(random, 2 * longest));
    }
    return taken + pop_some(f, UINT64_MAX);
}

int main(int argc, char **argv)
{
    field f;
    stress_begin(&f.stress, "deque_look", argc, argv, 10000000, 100000000);
    fl_memory memory = fl_memory_system();
    uint64_t items = f.stress.operations / 2, each = items / PHASES + 1;
    uint64_t popped = 0, taken = 0, dropped = 0;
    fl_random random;
    fl_random_init(&random, f.stress.seed, 0);
    stress_set_init(&f.settled, items);
    f.payload = stress_alloc((size_t)each, sizeof *f.payload);
    atomic_init(&f.done, false);
    for (f.first = 0; f.first < items; f.first += each) {
        thief thieves[THIEVES];
        fl_thread threads[THIEVES];
        fl_store_relaxed(&f.done, false);
        if (fl_deque_init(&f.deque, &memory, 1) != FILCH_OK)
            return 2;
        for (int i = 0; i < THIEVES; i++) {
            thieves[i] = (thief){.field = &f};
            if (fl_thread_start(&threads[i], thief_main, &thieves[i]) != FILCH_OK)
                return 2;
        }
        popped += owner_main(&f, &random, f.first + each < items ? f.first + each : items);
        /* Release: pairs with the thieves' acquire. */
        fl_store_release(&f.done, true);
        for (int i = 0; i < THIEVES; i++) {
            fl_thread_join(threads[i]);
            taken += thieves[i].taken;
            dropped += thieves[i].dropped;
        }
        fl_deque_fini(&f.deque);
    }
    if (popped + taken != items)
        stress_fail(&f.stress, "taken is not pushed; taken", popped + taken);
    if (stress_set_marked(&f.settled) != items)
        stress_fail(&f.stress, "items lost", items - stress_set_marked(&f.settled));
    printf("%" PRIu64 " pushed, %" PRIu64 " popped alive, %" PRIu64 " taken; %" PRIu64
           " dropped at the top\n",
           items, popped, taken, dropped);
    stress_set_fini(&f.settled);
    free(f.payload);
    return stress_end(&f.stress);
}
