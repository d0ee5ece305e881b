/* SPDX-License-Identifier: Apache-2.0 */
/* A task, its state word, and the rules of ownership.
 *
 * Hints. Deques and mailboxes hold hints {task, epoch}. A hint does not own the task. A worker
 * claims the task by a compare-and-swap on the task's word. Task memory is type-stable while the
 * runtime lives: the memory only moves between graphs through the store. A stale hint can therefore
 * always be read. The epoch of a stale hint is older than the task's epoch, and the claim fails.
 *
 * Word. {epoch : 32 | bits : 32}. Claiming a task of a closed graph moves the task to the next
 * epoch at once, and the claimer sets `pending` back. The next run of the graph needs no further
 * reset. A task of an open graph keeps its epoch until the task retires. An adder can therefore
 * tell whether a predecessor still runs. */
#ifndef FL_GRAPH_TASK_TASK_H
#define FL_GRAPH_TASK_TASK_H

#include "base/atomic.h"
#include "graph/task/codelet.h"
#include "memory/tiles/data.h"
#include "sync/inbox.h"

#define FL_TASK_SUCCESSORS 3
#define FL_MORE_SUCCESSORS 14
/* Number of accesses with a bit in fl_task.mates; and the factor beyond which a larger tile alone
 * counts. */
#define FL_TASK_MATES 8u
#define FL_FAR_LARGER 16u
/* Bytes that arrive from a second core's caches in less time than a hand-off (at about 0.06 ns a
 * byte). */
#define FL_TASK_CHEAP_BYTES 5120u
#define FL_LEVELS 8

enum {
    FL_TASK_POISONED = 1u << 0, /* a predecessor failed or was skipped: do not run */
    FL_TASK_CLAIMED = 1u << 1,  /* open graphs: a worker runs the task */
    FL_TASK_LOCKED = 1u << 2,   /* open graphs: an adder or the retirer has the successor list */
    FL_TASK_OPEN = 1u << 3,     /* task of an open graph */
    FL_TASK_READY = 1u << 4     /* closed graphs with look-ahead: hints to the task may be given */
};

typedef struct fl_task fl_task;
struct filch_graph;

/* Successors beyond the first few, in a chain. */
typedef struct fl_more {
    struct fl_more *next;
    uint64_t count;
    fl_task *tasks[FL_MORE_SUCCESSORS];
} fl_more;

/* A resolved access: a tile, or a block of several tiles, of the graph's handle. A tile with a halo
 * is a block. In mode
 * FILCH_SCRATCH, tile = bytes / 64, rounded up. */
typedef struct fl_task_access {
    uint32_t slot : 26;    /* index in graph->slots */
    uint32_t is_block : 1; /* tile is an index in the task's blocks */
    uint32_t is_final : 1; /* no later task of the graph is known to write some of the tiles */
    uint32_t mode : 4;     /* filch_access_mode */
    uint32_t tile;
} fl_task_access;

#define FL_MOST_SLOTS ((1u << 26) - 1)

/* Mode of the only access of a gate that ends the lifetime of a tile (build/lifetime.h). */
#define FL_MODE_ENDS 0u

struct fl_task {
    /* Members touched when an empty task runs and retires: one cache line. */
    _Alignas(128) _Atomic uint64_t word;
    _Atomic uint32_t pending; /* predecessors not yet retired in this run */
    uint32_t predecessors;    /* value that pending is set back to */
    const filch_codelet *codelet;
    struct filch_graph *graph;
    fl_task *successors[FL_TASK_SUCCESSORS];
    uint32_t successor_count;
    uint8_t level; /* 0 … FL_LEVELS - 1, higher first */
    uint8_t access_count;
    uint8_t is_gate : 1;   /* calls no function: stands for tasks that have to end first */
    uint8_t commutes : 1;  /* needs commute locks (commute_lock.h) */
    uint8_t reduces : 1;   /* adds to partial results (reduction.h) */
    uint8_t combines : 1;  /* added by filch: combines the partial results */
    uint8_t begins : 1;    /* added by filch: makes a partial result neutral */
    uint8_t is_large : 1;  /* too large for some device of the codelet's (capacity.h) */
    uint8_t has_items : 1; /* the calls run ranges of items (fl_items) */
    uint8_t is_placed : 1; /* home is the device named by the caller */
    /* Number of the set of devices able to run the task. Thieves read the number through hints that
     * may be stale. */
    _Atomic uint8_t able;
    /* Second cache line: members used less often. */
    fl_more *more; /* successors from FL_TASK_SUCCESSORS on; newest block first */
    void *args;
    fl_task_access *accesses;
    const char *label;
    fl_link link;  /* link in an inbox, a free list or the retired list; one list at a time */
    float work;    /* declared units */
    float rank;    /* longest path to an exit; user's priority in a caller-ordered graph */
    uint16_t home; /* preferred device + 1, or 0 */
    /* Owned by the worker that claimed the task. */
    uint16_t moves; /* devices without capacity that the task moved on from */
    uint32_t order; /* position in the graph, from 0 */
    /* Members used where cores share a memory. main_access names the main tile: the largest written
     * tile, or the largest tile if far larger than every written tile. mates has a bit for each
     * mate of the main tile among the first eight accesses. Mates are the main tile itself and
     * tiles at its position in further handles that are not far smaller. Mates most likely belong
     * to the same part of the problem. bytes is the sum of the mates' bytes. */
    uint32_t bytes;
    uint8_t main_access;
    uint8_t mates;
    /* Owned by the worker that claimed the task. A byte of its own: workers with parts of a divided
     * task write it beside readers of `moves`. */
    bool is_poisoned;         /* valid in a claimed queue: the task is to be skipped */
    bool has_blocks : 1;      /* some access is to a block; the blocks are behind the items */
    bool has_temporaries : 1; /* some access is to a temporary (build/lifetime.h) */
};

/* Extra data of a commuting or reducing access. A task with such accesses has an array of extras
 * behind the accesses, one element per access. */
typedef struct fl_extra {
    union {
        struct fl_commute_lock *turn;
        struct fl_reduction *reduction;
    };
    uint32_t part; /* the partial result of a reducing access, where a handle's reductions are in
                    * order */
} fl_extra;

/* Extra data of a task with items, behind the accesses and the extras. */
typedef struct fl_items {
    uint64_t count, grain;
    uint32_t grains;
    bool is_over; /* every piece has ended, but a write-back of results is in progress */
    /* Division that runs the task. Null: a single call runs the task, if at all. Owned by the
     * workers that have the task or a part of it. */
    struct fl_division *division;
} fl_items;

/* Bytes of a task's accesses and of all that is behind them. */
static inline size_t fl_access_bytes(uint32_t count, bool has_extras, bool has_items,
                                     uint32_t blocks)
{
    return count * (sizeof(fl_task_access) + (has_extras ? sizeof(fl_extra) : 0)) +
           (has_items ? sizeof(fl_items) : 0) + blocks * sizeof(fl_region);
}

static inline bool fl_task_has_extras(const fl_task *task)
{
    return task->commutes || task->reduces || task->combines || task->begins;
}

/* Returns the extras of a task that has extras. */
static inline fl_extra *fl_task_extras(const fl_task *task)
{
    return (fl_extra *)(void *)(task->accesses + task->access_count);
}

/* Returns the items of a task that has items. */
static inline fl_items *fl_task_items(const fl_task *task)
{
    size_t before = fl_access_bytes(task->access_count, fl_task_has_extras(task), false, 0);
    return (fl_items *)(void *)((char *)task->accesses + before);
}

/* Returns the blocks of a task that has blocks, each with its halo. */
static inline fl_region *fl_task_blocks(const fl_task *task)
{
    size_t before =
        fl_access_bytes(task->access_count, fl_task_has_extras(task), task->has_items, 0);
    return (fl_region *)(void *)((char *)task->accesses + before);
}

/* Returns the tiles of an access to a handle. */
static inline fl_rect fl_task_tiles(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    return FL_UNLIKELY(access.is_block) ? fl_task_blocks(task)[access.tile].tiles
                                        : fl_rect_of_tile(access.tile);
}

/* Returns the elements of an access to a handle. */
static inline fl_region fl_task_region(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    fl_rect tile = fl_rect_of_tile(access.tile);
    return FL_UNLIKELY(access.is_block) ? fl_task_blocks(task)[access.tile]
                                        : (fl_region){.named = tile, .tiles = tile};
}

/* Returns the tiles that an access to a handle names. Its halo has further tiles. */
static inline fl_rect fl_task_named(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    return FL_UNLIKELY(access.is_block) ? fl_task_blocks(task)[access.tile].named
                                        : fl_rect_of_tile(access.tile);
}

/* Returns the block of an access with a halo that has parts of tiles; null: whole tiles alone. */
static inline const fl_region *fl_task_parts(const fl_task *task, uint32_t i)
{
    fl_task_access access = task->accesses[i];
    const fl_region *block =
        FL_UNLIKELY(access.is_block) ? &fl_task_blocks(task)[access.tile] : NULL;
    return block != NULL && fl_region_has_margins(block) ? block : NULL;
}

/* Tells whether an access to a handle names a tile, alone or in a block. */
static inline bool fl_task_names(const fl_task *task, uint32_t i, uint32_t tile)
{
    fl_task_access access = task->accesses[i];
    return FL_UNLIKELY(access.is_block) ? fl_rect_has(fl_task_blocks(task)[access.tile].tiles, tile)
                                        : access.tile == tile;
}

/* Returns the number of accesses to blocks. */
static inline uint32_t fl_task_block_count(const fl_task *task)
{
    uint32_t count = 0;
    for (uint32_t i = 0; task->has_blocks && i < task->access_count; ++i) {
        count += task->accesses[i].is_block;
    }
    return count;
}

/* Items of grains [lo, hi). */
static inline void fl_items_range(const fl_items *items, uint32_t lo, uint32_t hi, uint64_t *first,
                                  uint64_t *last)
{
    *first = lo * items->grain;
    /* The last grain may be short. The product fits, since the number of items is below 2^63. */
    *last = hi == items->grains ? items->count : hi * items->grain;
}

/* Tells whether the task has no items, belongs to no group, and was not added by filch. */
static inline bool fl_task_is_plain(const fl_task *task)
{
    return !(task->is_gate || task->commutes || task->reduces || task->combines || task->begins ||
             task->has_items);
}

/* Tells whether the task is a gate that ends the lifetime of a tile. */
static inline bool fl_task_ends_lifetime(const fl_task *task)
{
    return task->is_gate && task->access_count != 0 && task->accesses[0].mode == FL_MODE_ENDS;
}

/* Tells whether the task needs no device. In contrast, a gate with an access of another mode writes
 * its tile back to the host's memory (split.c). */
static inline bool fl_task_passes(const fl_task *task)
{
    return task->is_gate && (task->access_count == 0 || fl_task_ends_lifetime(task));
}

/* Tells whether filch added the task by itself. No count includes the task. */
static inline bool fl_task_is_own(const fl_task *task)
{
    return task->is_gate || task->combines || task->begins;
}

/* Tells whether the task must be ready before going to a device. */
static inline bool fl_task_is_patient(const fl_task *task)
{
    return task->is_gate || task->commutes || task->reduces || task->combines;
}

_Static_assert(sizeof(fl_task) == 128, "two cache lines a task");
_Static_assert(offsetof(fl_task, more) == 64, "the hot half is one cache line");
_Static_assert(sizeof(fl_task_access) == 8, "an access is one word");

/* Returns the task containing a link of an inbox or a free list. */
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

/* Layout of {task, epoch} in one word. Tasks are 128-byte aligned. User addresses have at most 48
 * bits (the store refuses higher addresses). The epoch has the remaining 23 bits. */
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

/* Tells whether the hint's task has the hint's epoch and is unclaimed. The answer is a guess, for
 * statistics. */
static inline bool fl_hint_is_live(uint64_t hint)
{
    const fl_task *task = fl_hint_task(hint);
    uint64_t word = fl_load_relaxed(&task->word);
    return (fl_word_epoch(word) & FL_HINT_EPOCH_MASK) == (uint32_t)(hint & FL_HINT_EPOCH_MASK) &&
           (word & FL_TASK_CLAIMED) == 0;
}

/* Claims the task of a hint. Returns true when the caller now owns the task; *poisoned tells
 * whether to skip the task. Lock-free; thread-safe. Only word and pending are read before the claim
 * succeeds: a stale hint's task may be under construction for a second graph.
 *
 * Aliased epochs (exactly 2^23 runs after the hint was made) are harmless. A task is claimed only
 * while ready (pending == 0), and claiming a ready task is right whatever the hint meant. (A root
 * of a closed graph has pending == 0 at every time. Workers find roots through ranges. A root has a
 * hint only if a worker kept the root and gave it back, or its device failed. Only a hint of a root
 * could outlive its run for 2^23 runs.) */
static inline bool fl_task_claim(uint64_t hint, fl_task **claimed, bool *poisoned)
{
    fl_task *task = fl_hint_task(hint);
    /* Acquire, here and in the swap: the runner sees the writes of the task's releaser. */
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

/* Claims a ready task that no second thread can find: no hint to the task was ever given, or the
 * caller took the only hint. Returns whether to skip the task. */
static inline bool fl_task_own(fl_task *task)
{
    /* Relaxed: the caller released the task itself, or took the task from a range or a deque by an
     * acquire. An adder of an open graph may hold the lock bit; a read-modify-write keeps the
     * bit. */
    uint64_t word = fl_load_relaxed(&task->word);
    if ((word & FL_TASK_OPEN) != 0) {
        word = fl_or_relaxed(&task->word, FL_TASK_CLAIMED);
    } else {
        fl_store_relaxed(&task->word, fl_word_next_epoch(word));
    }
    return (word & FL_TASK_POISONED) != 0;
}

#endif
