/* SPDX-License-Identifier: Apache-2.0 */
/* Successor lists. Retirement of tasks of open graphs, concurrent with threads adding
 * successors. */
#include "graph/build/graph.h"

#include "base/hash.h"

static bool hint_set_put(uint64_t *keys, size_t capacity, uint64_t key)
{
    size_t at = (size_t)fl_hash_mix(key) & (capacity - 1);
    while (keys[at] != 0 && keys[at] != key) {
        at = (at + 1) & (capacity - 1);
    }
    bool is_new = keys[at] == 0;
    keys[at] = key;
    return is_new;
}

bool fl_hint_set_add(fl_hint_set *set, const fl_memory *memory, uint64_t key)
{
    if ((set->count + 1) * 2 > set->capacity) {
        size_t capacity = set->capacity != 0 ? set->capacity * 2 : 64;
        uint64_t *keys = fl_alloc_zeroed(memory, capacity * sizeof *keys);
        if (keys == NULL) {
            return false;
        }
        for (size_t i = 0; i < set->capacity; ++i) {
            if (set->keys[i] != 0) {
                hint_set_put(keys, capacity, set->keys[i]);
            }
        }
        fl_free(memory, set->keys, set->capacity * sizeof *keys);
        set->keys = keys;
        set->capacity = capacity;
    }
    set->count += hint_set_put(set->keys, set->capacity, key);
    return true;
}

bool fl_hint_set_has(const fl_hint_set *set, uint64_t key)
{
    if (set->count == 0) {
        return false;
    }
    size_t at = (size_t)fl_hash_mix(key) & (set->capacity - 1);
    while (set->keys[at] != 0 && set->keys[at] != key) {
        at = (at + 1) & (set->capacity - 1);
    }
    return set->keys[at] == key;
}

bool fl_edges_reserve(filch_graph *graph)
{
    size_t count = 0;
    for (size_t i = 0; i < graph->pred_count; ++i) {
        /* Only adders change the number of successors in an open graph, and the caller holds the
         * lock. The number of a retired task may be old; the reserved memory then stays unused. */
        count += fl_edge_needs_block(graph->preds[i].task);
    }
    return count == 0 || fl_arena_reserve(&graph->arena, count, sizeof(fl_more));
}

static inline fl_task *last_successor(const fl_task *pred)
{
    uint32_t n = pred->successor_count;
    if (n == 0) {
        return NULL;
    }
    return n <= FL_TASK_SUCCESSORS ? pred->successors[n - 1]
                                   : pred->more->tasks[pred->more->count - 1];
}

static inline void append(filch_graph *graph, fl_task *pred, fl_task *task)
{
    if (last_successor(pred) == task) {
        return; /* a single edge is enough; a task's edges are added one task at a time */
    }
    if (FL_LIKELY(pred->successor_count < FL_TASK_SUCCESSORS)) {
        pred->successors[pred->successor_count] = task;
    } else {
        if (fl_edge_needs_block(pred)) {
            fl_more *block = fl_arena_alloc(&graph->arena, sizeof *block); /* reserved */
            block->next = pred->more;
            block->count = 0;
            pred->more = block;
        }
        pred->more->tasks[pred->more->count++] = task;
    }
    ++pred->successor_count;
    ++task->predecessors;
}

/* Takes the lock bit of a task of an open graph. Returns the word without the bit. Holders are the
 * adder (under graph->lock) and the retirer, for a few instructions each. */
static uint64_t lock_word(fl_task *task)
{
    for (;;) {
        /* Acquire: the successors written by the last holder are visible. */
        uint64_t word = fl_or_acquire(&task->word, (uint64_t)FL_TASK_LOCKED);
        if ((word & FL_TASK_LOCKED) == 0) {
            return word;
        }
        fl_relax();
    }
}

static void add_open(filch_graph *graph, fl_pred pred, fl_task *task)
{
    uint64_t word = lock_word(pred.task);
    bool runs = fl_word_epoch(word) == pred.epoch;
    if (runs) {
        /* Count first: the retirer cannot see the edge yet. Relaxed: the release of the lock bit
         * publishes the count. */
        uint32_t before = task->predecessors;
        append(graph, pred.task, task);
        fl_add_relaxed(&task->pending, task->predecessors - before);
    }
    /* Release: the retirer locks afterwards and sees the successor. */
    fl_and_release(&pred.task->word, ~(uint64_t)FL_TASK_LOCKED);
    if (!runs &&
        (graph->poisoned ||
         fl_hint_set_has(&graph->failed, fl_hint_make(pred.task, (uint64_t)pred.epoch << 32)))) {
        fl_or_relaxed(&task->word, (uint64_t)FL_TASK_POISONED); /* not yet shared */
    }
}

void fl_edge_add(filch_graph *graph, fl_pred pred, fl_task *task)
{
    if (graph->kind == FILCH_GRAPH_CLOSED) {
        append(graph, pred.task, task);
    } else {
        add_open(graph, pred, task);
    }
}

void fl_edges_add(filch_graph *graph, fl_task *task)
{
    const fl_pred *pred = graph->preds, *end = pred + graph->pred_count;
    if (graph->kind == FILCH_GRAPH_CLOSED) {
        for (; pred != end; ++pred) {
            append(graph, pred->task, task);
        }
    } else {
        for (; pred != end; ++pred) {
            add_open(graph, *pred, task);
        }
    }
}

void fl_open_retire(fl_task *task, bool failed)
{
    filch_graph *graph = task->graph;
    if (failed) {
        /* Record first, then move the epoch on: a thread finding the task gone must find it among
         * the failed tasks. */
        fl_latch_lock(&graph->lock);
        uint64_t key = fl_hint_make(task, fl_load_relaxed(&task->word));
        if (!fl_hint_set_add(&graph->failed, &graph->object.core->memory, key)) {
            graph->poisoned = true;
        }
        fl_latch_unlock(&graph->lock);
    }
    uint64_t word = lock_word(task);
    /* Release: an adder that finds the new epoch sees the task's results. */
    fl_store_release(&task->word, fl_word_next_epoch(word) | FL_TASK_OPEN);
}

void fl_open_recycle(fl_task *task)
{
    fl_inbox_push(&task->graph->retired, &task->link);
}

void fl_graph_each_successor(const fl_task *task, void (*fn)(fl_task *successor, void *user),
                             void *user)
{
    uint32_t inlined =
        task->successor_count < FL_TASK_SUCCESSORS ? task->successor_count : FL_TASK_SUCCESSORS;
    for (uint32_t i = 0; i < inlined; ++i) {
        fn(task->successors[i], user);
    }
    for (const fl_more *more = task->more; more != NULL; more = more->next) {
        for (uint64_t i = 0; i < more->count; ++i) {
            fn(more->tasks[i], user);
        }
    }
}
