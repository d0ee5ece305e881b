/* SPDX-License-Identifier: Apache-2.0 */
/* A task, its state word, and the rules of ownership.
 *
 * Hints. Deques and mailboxes hold hints {task, epoch}. A hint gives nobody a task: it is claimed
 * by one compare-and-swap on the task's word. Task memory is type-stable while the runtime lives
 * (it only moves between graphs through the store), so a stale hint can always be read; its epoch
 * is older than the task's, and the claim fails.
 *
 * The word. {epoch : 32 | bits : 32}. Claiming a task of a closed graph moves it to the next epoch
 * at once, which is also all the resetting that the next run of the graph needs, together with
 * `pending`, which the claimer sets back. A task of an open graph stays in its epoch until it
 * retires, because tasks being added must tell whether it still runs. */
#ifndef FL_GRAPH_TASK_TASK_H
#define FL_GRAPH_TASK_TASK_H

#include "base/atomic.h"
#include "graph/task/codelet.h"
#include "memory/tiles/data.h"
#include "sync/inbox.h"

#define FL_TASK_SUCCESSORS 3
#define FL_MORE_SUCCESSORS 14
/* Accesses that fl_task.mates has bits for; and how much larger a tile is that alone counts. */
#define FL_TASK_MATES 8u
#define FL_FAR_LARGER 16u
/* What comes from another core's caches in less than a hand-off (at about 0.06 ns a byte). */
#define FL_TASK_CHEAP_BYTES 5120u
#define FL_LEVELS 8

enum {
    FL_TASK_POISONED = 1u << 0, /* a predecessor failed or was skipped: do not run */
    FL_TASK_CLAIMED = 1u << 1,  /* open graphs: somebody runs it */
    FL_TASK_LOCKED = 1u << 2,   /* open graphs: its successors are being added to or released */
    FL_TASK_OPEN = 1u << 3,     /* of an open graph */
    FL_TASK_READY = 1u << 4     /* closed graphs, where workers look ahead: may be hinted at */
};

typedef struct fl_task fl_task;
struct filch_graph;

/* Successors beyond the first few, in a chain. */
typedef struct fl_more {
    struct fl_more *next;
    uint64_t count;
    fl_task *tasks[FL_MORE_SUCCESSORS];
} fl_more;

/* One access, resolved: tile of the graph's handle. mode FILCH_SCRATCH: tile = bytes / 64, rounded
 * up. */
typedef struct fl_task_access {
    uint32_t slot : 27;    /* in graph->slots */
    uint32_t is_final : 1; /* no later task of the graph is known to write the tile */
    uint32_t mode : 4;     /* filch_access_mode */
    uint32_t tile;
} fl_task_access;

struct fl_task {
    /* What running and retiring an empty task touches: one cache line. */
    _Alignas(128) _Atomic uint64_t word;
    _Atomic uint32_t pending; /* predecessors that have not retired in this run */
    uint32_t predecessors;    /* what pending is set back to */
    const filch_codelet *codelet;
    struct filch_graph *graph;
    fl_task *successors[FL_TASK_SUCCESSORS];
    uint32_t successor_count;
    uint8_t level; /* 0 … FL_LEVELS - 1, higher first */
    uint8_t access_count;
    uint8_t is_gate : 1;   /* calls nothing: stands for others that have to be over */
    uint8_t commutes : 1;  /* needs turns (commute_lock.h) */
    uint8_t reduces : 1;   /* adds to partial results (reduction.h) */
    uint8_t combines : 1;  /* filch's own: adds those up */
    uint8_t begins : 1;    /* filch's own: makes one neutral */
    uint8_t is_large : 1;  /* some devices of its codelet's have no room for it (capacity.h) */
    uint8_t has_items : 1; /* its calls are for ranges of items (fl_items) */
    uint8_t is_placed : 1; /* its home is what the caller named */
    _Atomic uint8_t able;  /* number of the set of its devices, for thieves, who look by hints that
                              may be stale */
    /* The rest. */
    fl_more *more; /* successors from FL_TASK_SUCCESSORS on; newest block first */
    void *args;
    fl_task_access *accesses;
    const char *label;
    fl_link link;   /* in an inbox, a free list or a list of retired tasks; one at a time */
    float work;     /* declared units */
    float rank;     /* longest path to an exit; user's priority in a caller-ordered graph */
    uint16_t home;  /* preferred device + 1, or 0 */
    uint16_t moves; /* of who has claimed it: times that it went on to another device (full.c) */
    uint32_t order; /* position in the graph, from 0 */
    /* Where cores share one memory: the access that names its main tile, the largest that is
     * written unless others are far larger, else the largest; of the first eight accesses a bit for
     * each of the main tile's mates: itself, and tiles at its place in other handles, most likely
     * of the same part of the problem, that are not far smaller; and the bytes of all mates. */
    uint32_t bytes;
    uint8_t main_access;
    uint8_t mates;
};

/* What commuting and reducing accesses need besides. A task with such accesses has one an access,
 * behind the accesses themselves. */
typedef union fl_extra {
    struct fl_commute_lock *turn;
    struct fl_reduction *reduction;
} fl_extra;

/* What a task with items has behind all these. */
typedef struct fl_items {
    uint64_t count, grain;
    uint32_t grains;
    bool is_over; /* all pieces are, but what they wrote is still on the way home */
    /* What it is being run as (sched/execute/divide.h); null: in one call, if at all. Of those
     * alone who have the task, or a part of it. */
    struct fl_division *division;
} fl_items;

static inline size_t fl_access_bytes(uint32_t count, bool has_extras, bool has_items)
{
    return count * (sizeof(fl_task_access) + (has_extras ? sizeof(fl_extra) : 0)) +
           (has_items ? sizeof(fl_items) : 0);
}

static inline bool fl_task_has_extras(const fl_task *task)
{
    return task->commutes || task->reduces || task->combines || task->begins;
}

/* Of a task that has them. */
static inline fl_extra *fl_task_extras(const fl_task *task)
{
    return (fl_extra *)(void *)(task->accesses + task->access_count);
}

/* Of a task that has them. */
static inline fl_items *fl_task_items(const fl_task *task)
{
    size_t before = fl_access_bytes(task->access_count, fl_task_has_extras(task), false);
    return (fl_items *)(void *)((char *)task->accesses + before);
}

/* Items of grains [lo, hi). */
static inline void fl_items_range(const fl_items *items, uint32_t lo, uint32_t hi, uint64_t *first,
                                  uint64_t *last)
{
    *first = lo * items->grain;
    /* The last grain may be short; there are fewer than 2^63 items, so that the product fits. */
    *last = hi == items->grains ? items->count : hi * items->grain;
}

/* Whether the task is none of a group, nor filch's own, nor one with items. */
static inline bool fl_task_is_plain(const fl_task *task)
{
    return !(task->is_gate || task->commutes || task->reduces || task->combines || task->begins ||
             task->has_items);
}

/* Whether there is nothing to do for the task: a gate that has an access brings its tile to the
 * host's memory (split.c). */
static inline bool fl_task_passes(const fl_task *task)
{
    return task->is_gate && task->access_count == 0;
}

/* Whether filch added the task by itself: no count includes it. */
static inline bool fl_task_is_own(const fl_task *task)
{
    return task->is_gate || task->combines || task->begins;
}

/* Whether the task must be ready before it is put on a device. */
static inline bool fl_task_is_patient(const fl_task *task)
{
    return task->is_gate || task->commutes || task->reduces || task->combines;
}

_Static_assert(sizeof(fl_task) == 128, "two cache lines a task");
_Static_assert(offsetof(fl_task, more) == 64, "the hot half is one cache line");
_Static_assert(sizeof(fl_task_access) == 8, "an access is one word");

/* The task that a link in an inbox or a free list is part of. */
static inline fl_task *fl_task_of_link(fl_link *link)
{
    return (fl_task *)(void *)((char *)link - offsetof(fl_task, link));
}

static inline uint32_t fl_word_epoch(uint64_t word)
{
    return (uint32_t)(word >> 32);
}

static inline uint64_t fl_word_next_epoch(uint64_t word)
{
    return ((word >> 32) + 1) << 32;
}

/* {task, epoch} in one word: tasks are 128-byte aligned and user addresses have at most 48 bits
 * (the store refuses others), which leaves 23 bits for the epoch. */
#define FL_HINT_EPOCH_BITS 23
#define FL_HINT_EPOCH_MASK ((1u << FL_HINT_EPOCH_BITS) - 1)

static inline uint64_t fl_hint_make(const fl_task *task, uint64_t word)
{
    return ((uint64_t)(uintptr_t)task >> 7 << FL_HINT_EPOCH_BITS) |
           (fl_word_epoch(word) & FL_HINT_EPOCH_MASK);
}

static inline fl_task *fl_hint_task(uint64_t hint)
{
    return (fl_task *)(uintptr_t)(hint >> FL_HINT_EPOCH_BITS << 7);
}

/* Whether the hint's task is as it was then, and nobody's: a guess, for statistics. */
static inline bool fl_hint_is_live(uint64_t hint)
{
    const fl_task *task = fl_hint_task(hint);
    uint64_t word = fl_load_relaxed(&task->word);
    return (fl_word_epoch(word) & FL_HINT_EPOCH_MASK) == (uint32_t)(hint & FL_HINT_EPOCH_MASK) &&
           (word & FL_TASK_CLAIMED) == 0;
}

/* Claims the task of a hint: true when the caller now owns it, *poisoned telling whether to skip
 * it. Lock-free; any thread. Nothing but word and pending is read before the claim succeeds, since
 * a stale hint's task may be being rebuilt for another graph.
 *
 * Aliased epochs (exactly 2^23 runs after the hint was made) are harmless: a task is claimed only
 * while it is ready, pending == 0, and claiming a ready task is right whatever the hint meant. (A
 * closed graph's root is always at 0. It is found through ranges, and has a hint only where it was
 * kept and given back, or its device was lost: only that hint could outlive its run so long.) */
static inline bool fl_task_claim(uint64_t hint, fl_task **claimed, bool *poisoned)
{
    fl_task *task = fl_hint_task(hint);
    /* Acquire, here and in the swap: what the releaser of the task wrote is seen by its runner. */
    uint64_t word = fl_load_acquire(&task->word);
    do {
        if ((fl_word_epoch(word) & FL_HINT_EPOCH_MASK) != (uint32_t)(hint & FL_HINT_EPOCH_MASK) ||
            (word & FL_TASK_CLAIMED) != 0 || fl_load_relaxed(&task->pending) != 0) {
            return false;
        }
    } while (!fl_cas_weak_acq_rel(&task->word, &word,
                                  (word & FL_TASK_OPEN) != 0 ? word | FL_TASK_CLAIMED
                                                             : fl_word_next_epoch(word)));
    *claimed = task;
    *poisoned = (word & FL_TASK_POISONED) != 0;
    return true;
}

/* The same for a ready task that nobody else can find: no hint to it was ever given, or the caller
 * took the only one. */
static inline bool fl_task_own(fl_task *task)
{
    /* Relaxed: the caller released the task itself, or got it from a range or a deque by an
     * acquire. An adder of an open graph may hold the lock bit, so that word is changed by a
     * read-modify-write. */
    uint64_t word = fl_load_relaxed(&task->word);
    if ((word & FL_TASK_OPEN) != 0) {
        word = fl_or_relaxed(&task->word, FL_TASK_CLAIMED);
    } else {
        fl_store_relaxed(&task->word, fl_word_next_epoch(word));
    }
    return (word & FL_TASK_POISONED) != 0;
}

#endif
