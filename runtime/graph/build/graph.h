/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: building, inference of dependencies, sealing, retiring.
 *
 * Locks: graph->lock guards building; core->lock guards the order of jobs. Threads take graph->lock
 * first, then core->lock. While tasks succeed, workers take neither lock, except core->lock to make
 * a partial result. Threads take graph->turn_lock alone or under graph->lock. */
#ifndef FL_GRAPH_BUILD_GRAPH_H
#define FL_GRAPH_BUILD_GRAPH_H

#include "base/arena.h"
#include "filch/graph.h"
#include "graph/build/commute_lock.h"
#include "graph/build/rank.h"
#include "graph/build/reduction.h"
#include "graph/task/store.h"
#include "sync/latch.h"

typedef enum fl_graph_state {
    FL_GRAPH_BUILDING, /* closed: tasks are added; open: not submitted yet */
    FL_GRAPH_SEALED,   /* closed: ready to run, or running when job is not null */
    FL_GRAPH_CYCLIC,   /* closed: sealing found a cycle */
    FL_GRAPH_RUNNING,  /* open: submitted, tasks are added */
    FL_GRAPH_ENDED     /* open: no more tasks */
} fl_graph_state;

/* A reader of a tile since the tile's last write. */
typedef struct fl_reader {
    struct fl_reader *next;
    fl_task *task;
    uint32_t epoch;
} fl_reader;

/* A task to wait for, if the task still has the given epoch. */
typedef struct fl_pred {
    fl_task *task;
    uint32_t epoch;
} fl_pred;

/* Use of a tile by the last tasks, listed as readers. Members of a group do not wait for each
 * other. */
typedef enum fl_group { FL_GROUP_READS, FL_GROUP_COMMUTES, FL_GROUP_REDUCES } fl_group;

/* What a tile has beyond readers and writers. */
typedef struct fl_tile_extra {
    fl_group group;
    /* Commute lock of the commuting tasks. Closed graphs: null once a non-commuting task has
     * written the tile. */
    fl_commute_lock *turn;
    fl_reduction *reduction; /* made when a task first reduces to the tile */
} fl_tile_extra;

/* State of a tile during inference. */
typedef struct fl_tile_state {
    fl_task *writer;    /* last writer, or a task that every listed reader waits for */
    fl_reader *readers; /* members of the group */
    uint32_t writer_epoch;
    uint32_t reader_count;
    fl_tile_extra *extra; /* null: no task has commuted on the tile or reduced to it */
} fl_tile_state;

_Static_assert(sizeof(fl_tile_state) == 32, "a cache line has two tiles");

static inline fl_group fl_tile_group(const fl_tile_state *state)
{
    return FL_UNLIKELY(state->extra != NULL) ? state->extra->group : FL_GROUP_READS;
}

/* Accesses of a task being added, resolved to slots and tiles. */
typedef struct fl_access_list {
    const filch_access *given; /* the caller's */
    const fl_task_access *at;  /* resolved */
    uint32_t count;
    const fl_region *blocks; /* of the accesses to blocks; null: none */
} fl_access_list;

/* Returns the tiles of an access to a handle. */
static inline fl_rect fl_list_tiles(const fl_access_list *list, uint32_t i)
{
    fl_task_access access = list->at[i];
    return FL_UNLIKELY(access.is_block) ? list->blocks[access.tile].tiles
                                        : fl_rect_of_tile(access.tile);
}

/* Use of a handle by a graph. A slot never moves: the use of an open graph may be linked into the
 * handle's access queue. The use of a closed graph is the pattern of its runs' uses. */
typedef struct fl_slot {
    fl_queued_access use;
    fl_tile_state *tiles; /* null once a closed graph is sealed */
    /* Readers of blocks, listed at the block instead of at every tile; null: none. */
    struct fl_block_readers *block_readers;
    uint32_t block_count; /* entries of the list above */
    /* Open graphs: gate is the task that every first access of a tile waits for, or null.
     * write_gate is the task that every writing access waits for, where the graph began by reading,
     * or null. */
    fl_task *gate, *write_gate;
    uint32_t gate_epoch, write_epoch;
    uint8_t admits;    /* open graphs: accesses free to skip the access queue: FL_ADMITS_… */
    uint8_t asks;      /* FL_ADMITS_… bits wanted by the task being added */
    bool is_read_only; /* the graph has promised to only read the handle (read_only.h) */
    bool is_joined;    /* the use stands in the handle's access queue, or stood there earlier */
    uint32_t tile_count;
    /* FL_NEEDED and FL_WRITTEN by tile, for a temporary, and in closed graphs for every handle
     * without a home buffer; else null. */
    uint8_t *needs;
    /* Sealed graphs, for a handle with written blocks: the last writer of every tile, by its order;
     * else null. */
    uint32_t *last_writers;
    bool has_contents; /* a job was submitted: the needed contents exist, and stay */
    /* Part for a handle that the graph uses in several tilings (split.h), or null. */
    struct fl_split_part *part;
} fl_slot;

/* Uses of one run of a closed graph, one a slot: the places of the run in the access queues. A run
 * has its places from its submission to its end, however many runs there are at a time. */
typedef struct fl_run_uses {
    struct fl_run_uses *next; /* spare uses of the graph */
    struct fl_run_uses *made_before;
    size_t bytes;
    fl_queued_access at[];
} fl_run_uses;

/* Entry of the table of slots. */
typedef struct fl_slot_entry {
    const filch_data *data; /* null: free */
    uint32_t slot;
} fl_slot_entry;

enum {
    FL_NEEDED = 1, /* the graph's first task on the tile reads the tile */
    FL_WRITTEN = 2 /* some task writes the tile; of a temporary: in the present lifetime */
};

enum {
    FL_ADMITS_READ = 1,
    FL_ADMITS_WRITE = 2 /* writing, and every mode beyond reading */
};

/* Returns the FL_ADMITS_… bit needed for an access with a mode. */
static inline uint8_t fl_mode_asks(uint32_t mode)
{
    return mode == FILCH_READ ? FL_ADMITS_READ : FL_ADMITS_WRITE;
}

/* Set of the failed tasks of an open graph, stored as hints. */
typedef struct fl_hint_set {
    uint64_t *keys; /* 0: free */
    size_t capacity, count;
} fl_hint_set;

/* Number of root positions for a pool of the given number of devices. */
#define FL_ROOT_POSITIONS(devices) (3 * (size_t)(devices) + 1)

struct filch_graph {
    fl_object object;
    filch_graph_kind kind;
    filch_priorities priorities;
    int32_t priority_min, priority_max;
    fl_latch lock;
    fl_graph_state state;
    fl_slab *slabs;              /* newest first */
    _Atomic uint32_t task_count; /* written under lock; relaxed elsewhere: a statistic */
    fl_slab **slab_table;        /* slabs, oldest first: closed graphs find tasks by name */
    size_t slab_count, slab_capacity;
    bool has_edges_back; /* an explicit edge leads to an earlier task: a cycle is possible */
    fl_arena arena;      /* arguments, accesses, successor blocks, slots */
    fl_arena readers;    /* readers of tiles, while the graph is built */
    /* Guarded by lock. The array grows by a larger copy. The last element of the copy leads to the
     * old array, since workers may still be reading the old array. */
    fl_slot **slots;
    size_t slot_count, slot_capacity;
    _Atomic(fl_slot **) seen_slots; /* equal to slots, for workers */
    fl_slot_entry *slot_table;      /* by handle, open addressing; the capacity is a power of two */
    size_t table_capacity;
    const filch_data *last_data; /* handle looked up last, and its slot: likely the next, too */
    uint32_t last_slot;
    fl_pred *preds; /* predecessors of the task being added, without repetition */
    size_t pred_count, pred_capacity;
    bool has_groups;            /* some task commutes or reduces */
    bool has_labels;            /* some task has a label */
    bool has_blocks;            /* some task has an access to a block */
    bool has_read_only;         /* some slot is read_only */
    bool has_temporaries;       /* some task has an access to a temporary */
    uint32_t own_count;         /* tasks that filch added by itself, included in task_count */
    uint32_t restartable_count; /* tasks with a codelet that allows running a task twice */
    fl_task *start;             /* closed: gate for commuting tasks without a predecessor */
    fl_reduction *reductions;   /* list of every reduction */
    struct fl_split *splits;    /* list of every split */
    fl_mutex turn_lock;         /* guards every commute lock; no lock is taken under it */

    /* Members of closed graphs, set by sealing. */
    /* Roots by device; then in three groups, roots that few devices can run first (seal.c); then by
     * level, highest first. */
    fl_task **roots;
    /* FL_ROOT_POSITIONS positions in roots. root_begin[d] is the beginning of device d's roots. */
    uint32_t *root_begin;
    bool has_dear_roots; /* some roots have enough data to be moved to the core holding the data */
    /* Beginning of each device's roots that every device of the codelet's kinds can run. */
    uint32_t *root_kind;
    /* Beginning of each device's roots that every device can run. */
    uint32_t *root_free;
    uint32_t root_count;
    /* Greatest upward rank, and sum of the tasks' own parts of the ranks; 0 under a caller's
     * priorities. */
    float rank_most;
    double rank_sum;
    fl_ranked ranked[FL_RANKED]; /* speeds used for ranking, for the codelets found first */
    uint32_t ranked_count;
    bool has_reserved; /* fl_job_reserve has made a spare job for the graph */
    /* Predecessor lists, where workers look ahead: the predecessors of the task with order i are
     * pred_list[pred_begin[i]] up to, but not including, pred_list[pred_begin[i + 1]]. */
    uint32_t *pred_begin, *pred_list;
    size_t pred_total;

    /* Members of open graphs. */
    /* Gates ever waited for, and released since. Written under core->lock; release: after readied.
     */
    _Atomic uint32_t gate_count, gates_begun;
    _Atomic uint64_t readied; /* tasks ready when added, and gates; relaxed, written under lock */
    uint64_t max_live;        /* adds wait while so many tasks are live; 0: no limit */
    uint64_t adds_until;      /* the number of tasks added before which the limit is not reached */
    fl_inbox retired;         /* tasks with memory for the next adder to reuse */
    fl_task *spare;           /* reusable tasks, linked by link */
    fl_link *left;            /* tasks taken from retired: reusable once their arrays are freed */
    fl_hint_set failed;       /* guarded by lock: tasks that failed or were skipped */
    bool poisoned;            /* the set could not grow: every later task is skipped */

    /* Running job, else null; guarded by core->lock. Further jobs of a closed graph stand in line
     * behind it (graph/job/line.h), up to last_job; null for an open graph. */
    filch_job *job, *last_job;
    struct fl_run_uses *spare_uses; /* uses for further jobs; guarded by core->lock */
    struct fl_run_uses *made_uses;  /* all uses, to be freed; guarded by lock */
    uint32_t number;                /* number among the runtime's graphs, from 1: for traces */
    uint64_t noted; /* number of the structure in the trace of jobs, from 1; 0: none */
    char label[64];
    _Alignas(64) unsigned char part[]; /* the scheduler's: fl_scheduler.graph_bytes */
};

/* --- Functions for the scheduler. Thread-safe; no lock is taken unless stated. --- */

/* Returns the handle of an access. */
static inline filch_data *fl_graph_data(const filch_graph *graph, uint32_t slot)
{
    /* Acquire: slots copied by an adder are visible. Slots of a task were in the array before the
     * task. */
    return fl_load_acquire(&graph->seen_slots)[slot]->use.data;
}
/* Returns the last writers of a handle's tiles by order; null: see fl_slot. */
static inline const uint32_t *fl_graph_last_writers(const filch_graph *graph, uint32_t slot)
{
    return fl_load_acquire(&graph->seen_slots)[slot]->last_writers; /* acquire: as above */
}
/* Tells whether the task adds to, initialises or combines partial results of a reduction. */
static inline bool fl_task_has_partials(const fl_task *task)
{
    return task->reduces || task->combines || task->begins;
}

/* Fills the views of a task's accesses. Scratch views point into scratch; fl_task_scratch returns
 * the necessary size. */
void fl_task_views(const fl_task *task, filch_view *views, char *scratch);
/* Returns the bytes of scratch memory for the task's accesses. */
size_t fl_task_scratch(const fl_task *task);
/* Returns the task's own label, or the codelet's name. */
const char *fl_task_name(const fl_task *task);
/* Writes "label #order", cut to fit. */
void fl_task_describe(const fl_task *task, char *text, size_t bytes);

/* Retires a task of an open graph. Closes the successor list, and the caller may then release the
 * successors. Records a task that failed or was skipped (takes graph->lock for the record). */
void fl_open_retire(fl_task *task, bool failed);
/* Hands the memory of a retired open task back; the successors are already released. */
void fl_open_recycle(fl_task *task);

/* Returns the end of tiles of an access along an axis of `all` tiles. A wrong access may end
 * beyond. */
static inline uint32_t fl_axis_end(uint32_t first, uint32_t tiles, uint32_t all)
{
    uint32_t count = tiles != 0 ? tiles : 1;
    return tiles == FILCH_TO_END && first < all ? all
           : count > UINT32_MAX - first         ? UINT32_MAX
                                                : first + count;
}

/* Returns the rows and columns of the tiles that an access to a handle names. */
static inline fl_tiles fl_access_named(const filch_access *access)
{
    const filch_data *data = access->data;
    return (fl_tiles){access->row, fl_axis_end(access->row, access->rows, data->tiles_down),
                      access->col, fl_axis_end(access->col, access->cols, data->tiles_across)};
}

/* Tells whether an access names more than a tile. A block may be cut to a tile by the handle. */
static inline bool fl_access_may_be_block(const filch_access *access)
{
    return (access->rows | access->cols) > 1 || access->halo != NULL;
}

/* Returns the elements of a valid access to a handle. */
static inline fl_region fl_access_region(const filch_access *access)
{
    fl_tiles named = fl_access_named(access);
    fl_rect rect = {fl_data_tile(access->data, access->row, access->col), named.row1 - named.row0,
                    named.col1 - named.col0, access->data->tiles_down};
    return fl_data_region(access->data, rect, access->halo);
}

/* Returns the block of tiles of a valid access to a handle, those of the halo included. */
static inline fl_rect fl_access_rect(const filch_access *access)
{
    return fl_access_may_be_block(access)
               ? fl_access_region(access).tiles
               : fl_rect_of_tile(fl_data_tile(access->data, access->row, access->col));
}

/* Returns the rows and columns of the tiles of a valid access to a handle. */
static inline fl_tiles fl_access_tiles(const filch_access *access)
{
    return fl_rect_tiles(access->data, fl_access_rect(access));
}

/* Tells whether a valid access to a handle has several tiles. */
static inline bool fl_access_is_block(const filch_access *access)
{
    return FL_UNLIKELY(fl_access_may_be_block(access)) && fl_rect_count(fl_access_rect(access)) > 1;
}

/* Counts a task that the caller, who holds graph->lock, is about to make ready. */
static inline void fl_open_count_ready(filch_graph *graph)
{
    fl_store_relaxed(&graph->readied, fl_load_relaxed(&graph->readied) + 1);
}

/* --- Parts of building, in separate files. Callers hold graph->lock. --- */

/* Returns why no task can be added to the graph, or null: it is sealed, not submitted, or closed.
 */
const char *fl_graph_why_shut(const struct filch_graph *graph);
/* The same where the graph's job may have been cancelled or have finished early as well. */
const char *fl_graph_why_over(const struct filch_graph *graph);
/* Checks whether a call that changes what later tasks mean may still change the graph; records an
 * error otherwise. */
filch_status fl_graph_check_grows(const struct filch_graph *graph, const char *call);
/* Slow path of fl_graph_slot. */
filch_status fl_graph_slot_find(struct filch_graph *graph, filch_data *data, uint32_t *index);
/* Finds the slot of a handle, or makes a slot on first use. A new slot of an open graph has no
 * place in the order of jobs yet. May return FILCH_OUT_OF_MEMORY. */
static inline filch_status fl_graph_slot(struct filch_graph *graph, filch_data *data,
                                         uint32_t *index)
{
    if (FL_LIKELY(graph->last_data == data)) {
        *index = graph->last_slot;
        return FILCH_OK;
    }
    return fl_graph_slot_find(graph, data, index);
}
/* Takes back slots with index from or above. The slots have no place in an access queue and are
 * unused. */
void fl_graph_drop_slots(struct filch_graph *graph, size_t from);
/* Finds the slot of a handle, if it exists. Thread-safe on a sealed graph. */
bool fl_graph_find_slot(const struct filch_graph *graph, const filch_data *data, uint32_t *index);
void fl_graph_free_slots(struct filch_graph *graph);
/* Collects the task's predecessors in graph->preds. Reserves memory for the readers that the task
 * adds. May return FILCH_OUT_OF_MEMORY. */
filch_status fl_infer_gather(struct filch_graph *graph, const fl_access_list *list);
/* Adds the predecessors of a reader of the tiles to graph->preds; false: no memory. */
bool fl_infer_note_writers(struct filch_graph *graph, const fl_slot *slot, fl_rect tiles);
/* Adds a member to a tile's or a block's list of readers. Drops readers that have retired from time
 * to time, in an open graph. */
void fl_infer_add_reader(struct filch_graph *graph, fl_reader **readers, uint32_t *count,
                         fl_reader *reader);
/* Makes graph->preds the tasks that a task behind every user of the tile waits for: the readers or
 * group members, else the last writer, if any. False: no memory. */
bool fl_infer_note_users(struct filch_graph *graph, const fl_tile_state *state);
/* Makes a task of filch, which waits for every user of the tile, the tile's last writer. */
void fl_infer_stand_in(struct filch_graph *graph, fl_tile_state *state, fl_task *task);
/* Adds a task to graph->preds unless already listed; false: no memory. */
bool fl_infer_note(struct filch_graph *graph, fl_task *task, uint32_t epoch);
/* Frees the member list of a tile's group. */
void fl_infer_forget(struct filch_graph *graph, fl_tile_state *state);
/* Notes that a task that does not commute writes the tile. */
static inline void fl_infer_note_written(const struct filch_graph *graph, fl_tile_state *state)
{
    if (FL_UNLIKELY(state->extra != NULL) && graph->kind == FILCH_GRAPH_CLOSED) {
        state->extra->turn = NULL;
    }
}
/* Makes the task the last writer or a group member of each of its tiles, in reserved memory. */
void fl_infer_commit(struct filch_graph *graph, const fl_access_list *list, fl_task *task);
/* Call before fl_infer_gather. Ends a group (graph/build/group.c) on the task's tiles if the task
 * is no member and many tasks would wait for many. Fills extras (null: no access needs an extra).
 * After FILCH_OUT_OF_MEMORY some groups may have ended; the graph is otherwise unchanged. */
filch_status fl_groups_enter(struct filch_graph *graph, const fl_access_list *list,
                             int32_t priority, fl_extra *extras);
/* Adds the missing combining tasks: no more tasks will be added. After FILCH_OUT_OF_MEMORY the
 * function may be called again. */
filch_status fl_groups_end(struct filch_graph *graph);
/* Adds a task of filch behind graph->preds. With a reduction, the task combines partial results.
 * With a null reduction, the task is a gate. A gate with an access (may be null) has the given
 * label, and writes the access's tile back to the host's memory or, in mode FL_MODE_ENDS, ends the
 * tile's lifetime. Call fl_own_let_run once inference knows the task. Null: no memory. */
fl_task *fl_own_add(struct filch_graph *graph, fl_reduction *reduction,
                    const fl_task_access *access, const char *label);
void fl_own_let_run(struct filch_graph *graph, fl_task *task);
/* Ends the group of a tile, unless it is a group of readers. FILCH_OUT_OF_MEMORY: nothing
 * changed. */
filch_status fl_group_end(struct filch_graph *graph, fl_tile_state *state);
/* Returns the name used in errors for a task being added: the task's label, else the codelet's
 * name, else the graph's label. */
const char *fl_graph_name_of(const struct filch_graph *graph, const struct filch_task_desc *desc);
/* Records that filch_graph_add refuses a task. The error has the name above and the task's
 * prospective order. */
filch_status fl_graph_refuse(const struct filch_graph *graph, const struct filch_task_desc *desc,
                             filch_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Checks handles used in several tilings (split.c). A task may access only the current tiling of a
 * handle; records an error otherwise. */
filch_status fl_splits_check(const struct filch_graph *graph, const struct filch_task_desc *desc);
/* Call before fl_infer_gather. Makes the contents of the task's tiles arrive from different
 * tilings. After FILCH_OUT_OF_MEMORY some contents may already move; the graph is otherwise
 * unchanged. */
filch_status fl_splits_enter(struct filch_graph *graph, const fl_access_list *list);
/* Gives every partitioned handle back to its parent: no more tasks will be added. After
 * FILCH_OUT_OF_MEMORY the function may be called again, and tasks may be added. */
filch_status fl_splits_end(struct filch_graph *graph);
/* Frees split data used only while building. */
void fl_splits_drop(struct filch_graph *graph);
/* Part of sealing. Marks the commute locks that are last to write their tiles. Counts commute locks
 * as predecessors. */
void fl_groups_seal(struct filch_graph *graph);
/* Tells whether one more successor of pred needs a new block. A task holds its first successors in
 * itself, and later successors in blocks. */
static inline bool fl_edge_needs_block(const fl_task *pred)
{
    uint32_t n = pred->successor_count;
    return FL_UNLIKELY(n >= FL_TASK_SUCCESSORS) &&
           (n - FL_TASK_SUCCESSORS) % FL_MORE_SUCCESSORS == 0;
}
/* Reserves memory in graph->arena for one more successor of every task in graph->preds. False: no
 * memory. */
bool fl_edges_reserve(struct filch_graph *graph);
/* Adds task to the successors of pred, in reserved memory. If pred has retired, adds no edge, but
 * poisons the task where pred failed. */
void fl_edge_add(struct filch_graph *graph, fl_pred pred, fl_task *task);
/* Adds task to the successors of every task in graph->preds, in reserved memory. */
void fl_edges_add(struct filch_graph *graph, fl_task *task);
/* Makes the slots' last_writers. False: no memory. */
bool fl_final_reserve(struct filch_graph *graph);
/* Marks the last writing access of every tile of a closed graph, and fills last_writers. */
void fl_final_mark(struct filch_graph *graph);
void fl_final_drop(struct filch_graph *graph, fl_slot *slot);
/* Frees inference data used only while building. */
void fl_infer_drop(struct filch_graph *graph);
filch_status fl_graph_seal_locked(struct filch_graph *graph, const char *call);
/* Computes levels anew if codelet speeds have changed since sealing or the last ranking. The caller
 * holds graph->lock, and the graph does not run: no second thread looks at the tasks. */
void fl_graph_rank_anew(struct filch_graph *graph);
/* Tells whether fl_graph_rank_anew has something to do. Only it changes ranks: the caller may be
 * the thread that would call it next, without the lock. */
bool fl_graph_ranks_are_old(const struct filch_graph *graph);
/* Returns the task of a closed graph at a position. */
static inline fl_task *fl_graph_task_at(const struct filch_graph *graph, uint32_t order)
{
    return &graph->slab_table[order / FL_SLAB_TASKS]->tasks[order % FL_SLAB_TASKS];
}
/* Calls fn for every successor of a task. */
void fl_graph_each_successor(const fl_task *task, void (*fn)(fl_task *successor, void *user),
                             void *user);
/* Part of sealing, where workers look ahead: builds lists of predecessors, and moves every task to
 * a common epoch. False: no memory. */
bool fl_graph_list_predecessors(struct filch_graph *graph);
/* Frees the lists of predecessors, if any. */
void fl_graph_drop_predecessors(struct filch_graph *graph);

/* Returns the level of a caller's priority in an open graph. */
uint8_t fl_graph_level(const struct filch_graph *graph, int32_t priority);

/* Destroys a graph that no job uses. */
void fl_graph_free(struct filch_graph *graph);

bool fl_hint_set_add(fl_hint_set *set, const fl_memory *memory, uint64_t key);
bool fl_hint_set_has(const fl_hint_set *set, uint64_t key);

#endif
