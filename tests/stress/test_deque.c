/* SPDX-License-Identifier: Apache-2.0 */
/* One owner and three thieves: every entry pushed is taken exactly once, with what the owner wrote
 * before the push, and each thief sees the entries in the order of their pushes. A push and the pop
 * or steal that takes the entry are two operations. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/thread.h"
#include "stress.h"
#include "sync/deque.h"

enum {
    THIEVES = 3,
    PHASES = 64, /* each with a new deque, whose first ring has two slots */
    BURST = 24,
    PAUSE = 48,
    LONG_BURST = 6000, /* now and then, to grow far while thieves are inside */
};

typedef struct field {
    stress stress;
    fl_deque deque;
    stress_set taken;
    uint64_t
        *payload;   /* plain memory: what an entry publishes, one element for each of the phase */
    uint64_t first; /* item of payload[0] */
    _Atomic bool done;
} field;

typedef struct thief {
    field *field;
    uint64_t stolen, lost, empty;
} thief;

static void take(field *f, uint64_t item)
{
    if (!stress_set_mark(&f->taken, item))
        stress_fail(&f->stress, "taken twice, or never pushed", item);
    else if (item < f->first)
        stress_fail(&f->stress, "left over from an earlier deque", item);
    else if (f->payload[item - f->first] != stress_hash(&f->stress, item))
        stress_fail(&f->stress, "taken without what was written before the push", item);
}

static int thief_main(void *arg)
{
    thief *t = arg;
    field *f = t->field;
    uint64_t item, after = f->first;
    for (;;) {
        /* Acquire: the owner stops after its last pop, so empty after that is the end. */
        bool done = fl_load_acquire(&f->done);
        switch (fl_deque_steal(&f->deque, &item)) {
        case FL_STEAL_OK:
            t->stolen++;
            if (item < after)
                stress_fail(&f->stress, "stolen out of order", item);
            after = item + 1;
            take(f, item);
            break;
        case FL_STEAL_LOST:
            t->lost++;
            break;
        case FL_STEAL_EMPTY:
            t->empty++;
            if (done)
                return 0;
            if (t->empty % 64 == 0)
                fl_thread_yield();
        }
    }
}

/* Pushes items first .. end - 1 in bursts, pops some in between and the rest at the end. */
static uint64_t owner_main(field *f, fl_random *random, uint64_t end)
{
    uint64_t popped = 0, item, next = f->first;
    while (next < end) {
        uint64_t longest = stress_below(random, 256) == 0 ? LONG_BURST : BURST;
        uint64_t pushes = 1 + stress_below(random, longest);
        for (; pushes > 0 && next < end; pushes--, next++) {
            f->payload[next - f->first] = stress_hash(&f->stress, next);
            if (!fl_deque_push(&f->deque, next)) {
                stress_fail(&f->stress, "push failed", next);
                return popped;
            }
        }
        /* Lets thieves get at what was pushed, some of it or all. */
        for (uint64_t pause = stress_below(random, PAUSE); pause > 0; pause--)
            fl_relax();
        uint64_t pops = stress_below(random, 2 * longest);
        for (; pops > 0 && fl_deque_pop(&f->deque, &item); pops--, popped++)
            take(f, item);
    }
    for (; fl_deque_pop(&f->deque, &item); popped++)
        take(f, item);
    return popped;
}

int main(int argc, char **argv)
{
    field f;
    stress_begin(&f.stress, "deque", argc, argv, 10000000, 100000000);
    fl_memory memory = fl_memory_system();
    uint64_t items = f.stress.operations / 2, each = items / PHASES + 1;
    uint64_t popped = 0, slots = 0;
    thief total = {.field = &f};
    fl_random random;
    fl_random_init(&random, f.stress.seed, 0);
    stress_set_init(&f.taken, items);
    f.payload = stress_alloc((size_t)each, sizeof *f.payload);
    atomic_init(&f.done, false);
    for (f.first = 0; f.first < items; f.first += each) {
        uint64_t end = f.first + each < items ? f.first + each : items;
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
        popped += owner_main(&f, &random, end);
        /* Release: pairs with the thieves' acquire. */
        fl_store_release(&f.done, true);
        for (int i = 0; i < THIEVES; i++) {
            fl_thread_join(threads[i]);
            total.stolen += thieves[i].stolen;
            total.lost += thieves[i].lost;
            total.empty += thieves[i].empty;
        }
        uint64_t mask = fl_load_relaxed(&f.deque.ring)->mask;
        slots = mask + 1 > slots ? mask + 1 : slots;
        fl_deque_fini(&f.deque);
    }
    if (popped + total.stolen != items)
        stress_fail(&f.stress, "taken is not pushed; taken", popped + total.stolen);
    if (stress_set_marked(&f.taken) != items)
        stress_fail(&f.stress, "items lost", items - stress_set_marked(&f.taken));
    printf("%" PRIu64 " pushed, %" PRIu64 " popped, %" PRIu64 " stolen; %" PRIu64
           " races lost, %" PRIu64 " looks at an empty deque; largest ring %" PRIu64 "\n",
           items, popped, total.stolen, total.lost, total.empty, slots);
    stress_set_fini(&f.taken);
    free(f.payload);
    return stress_end(&f.stress);
}
