/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs: building, inference of dependencies, sealing, retiring.
 *
 * Locks: graph->lock guards building; core->lock guards the order of jobs. Taken in the order
 * graph->lock, then core->lock. Workers take neither while tasks succeed, but core->lock to make a
 * partial result. graph->turn_lock is taken by itself, or under graph->lock. */
#ifndef FL_GRAPH_BUILD_GRAPH_H
#define FL_GRAPH_BUILD_GRAPH_H

#include "base/arena.h"
#include "filch/graph.h"
#include "graph/build/commute_lock.h"
#include "graph/build/rank.h"
#include "graph/build/reduction.h"
#include "graph/task/store.h"

typedef enum fl_graph_state {
    FL_GRAPH_BUILDING, /* closed: tasks are added; open: not submitted yet */
    FL_GRAPH_SEALED,   /* closed: ready to run, or running when job is not null */
    FL_GRAPH_CYCLIC,   /* closed: sealing found a cycle */
    FL_GRAPH_RUNNING,  /* open: submitted, tasks are added */
    FL_GRAPH_ENDED     /* open: no more tasks */
} fl_graph_state;

/* A reader of a tile since its last write. */
typedef struct fl_reader {
    struct fl_reader *next;
    fl_task *task;
    uint32_t epoch;
} fl_reader;

/* A task to wait for, if it is still in this epoch. */
typedef struct fl_pred {
    fl_task *task;
    uint32_t epoch;
} fl_pred;

/* What the last tasks that used a tile did: those in its list of readers, which need not wait for
 * each other. */
typedef enum fl_group { FL_GROUP_READS, FL_GROUP_COMMUTES, FL_GROUP_REDUCES } fl_group;

/* What inference knows of one tile. */
typedef struct fl_tile_state {
    fl_task *writer;    /* or what else all in the list wait for */
    fl_reader *readers; /* those of the group */
    uint32_t writer_epoch;
    uint32_t reader_count;
    fl_group group;
    fl_commute_lock
        *turn; /* of the tasks that commute. Closed graphs: null once another task wrote */
    fl_reduction *reduction; /* made when first reduced to */
} fl_tile_state;

/* A handle as one graph uses it. Does not move: the use may stand in the data's queue. */
typedef struct fl_slot {
    fl_queued_access use;
    fl_tile_state *tiles; /* null once a closed graph is sealed */
    /* Open graphs: what every first access of a tile waits for, or null; and what every access does
     * that writes, where the graph began by reading. */
    fl_task *gate, *write_gate;
    uint32_t gate_epoch, write_epoch;
    uint8_t admits; /* open graphs: accesses that need not ask for a place: FL_ADMITS_… */
    uint8_t asks;   /* those that the task being added asks for */
    bool is_joined; /* the use stands in the data's queue, or stood there */
    uint32_t tile_count;
    /* Closed graphs, of a handle without a home, by tile: FL_NEEDED, FL_WRITTEN; else null. */
    uint8_t *needs;
    bool has_contents; /* a job was submitted: what the graph needs is there, and stays */
    struct fl_split_part
        *part; /* of a handle that the graph uses in several tilings (split.h), or null */
} fl_slot;

enum {
    FL_NEEDED = 1, /* the first of the graph's tasks that use the tile reads it */
    FL_WRITTEN = 2 /* some task writes it */
};

enum {
    FL_ADMITS_READ = 1,
    FL_ADMITS_WRITE = 2 /* and all that is more than reading */
};

/* What an access with a mode asks a slot for. */
static inline uint8_t fl_mode_asks(uint32_t mode)
{
    return mode == FILCH_READ ? FL_ADMITS_READ : FL_ADMITS_WRITE;
}

/* A set of failed tasks of an open graph, by hint. */
typedef struct fl_hint_set {
    uint64_t *keys; /* 0: free */
    size_t capacity, count;
} fl_hint_set;

/* Of a pool of so many devices. */
#define FL_ROOT_POSITIONS(devices) (3 * (size_t)(devices) + 1)

/* The part of a task's mark (filch_graph.markers) that tells in which run it was made. */
#define FL_MARK_RUN_SHIFT 42
#define FL_MARK_RUN ((uint64_t)0xff << FL_MARK_RUN_SHIFT)

static inline uint64_t fl_mark_run(uint32_t epoch)
{
    return (uint64_t)epoch << FL_MARK_RUN_SHIFT & FL_MARK_RUN;
}

/* Runs of which the times are kept, to choose whether to replay. */
#define FL_PLAIN_RUNS 3u

struct filch_graph {
    fl_object object;
    filch_graph_kind kind;
    filch_priorities priorities;
    int32_t priority_min, priority_max;
    fl_mutex lock;
    fl_graph_state state;
    fl_slab *slabs;              /* newest first */
    _Atomic uint32_t task_count; /* written under lock; relaxed elsewhere: a statistic */
    fl_slab **slab_table;        /* the slabs, oldest first: closed graphs find tasks by name */
    size_t slab_count, slab_capacity;
    bool has_edges_back; /* an explicit edge leads to an earlier task: a cycle is possible */
    fl_arena arena;      /* arguments, accesses, successor blocks, slots */
    fl_arena readers;    /* of tiles, while the graph is built */
    /* Under lock. The array grows by a larger one, whose last element leads to the one before:
     * workers may be reading that. */
    fl_slot **slots;
    size_t slot_count, slot_capacity;
    _Atomic(fl_slot **) seen_slots; /* the same, for workers */
    /* Slots by handle, open addressing: slot + 1, 0: free; the capacity is a power of two. */
    uint32_t *slot_table;
    uint32_t last_slot; /* that was found there: likely the next one, too */
    size_t table_capacity;
    fl_pred *preds; /* of the task being added, without repetition */
    size_t pred_count, pred_capacity;
    bool has_groups;            /* some task commutes or reduces */
    uint32_t own_count;         /* tasks that filch added by itself, of task_count */
    uint32_t restartable_count; /* tasks whose codelet lets them be run twice */
    fl_task *start;             /* closed: what a task that commutes waits for if nothing else */
    fl_reduction *reductions;   /* all */
    struct fl_split *splits;    /* all */
    fl_mutex turn_lock;         /* of all turns; a leaf */

    /* Closed graphs, after sealing. */
    /* By device; then those first that few devices can run (seal.c); then by level, from above. */
    fl_task **roots;
    uint32_t *root_begin; /* FL_ROOT_POSITIONS positions in roots: where each device's begin … */
    bool has_dear_roots;  /* the data of some are worth going where they are */
    struct fl_root_room *root_room; /* to sort roots by core anew (sched/decide/place.c), or null */
    uint32_t *root_kind; /* … those that all devices of its implementations can run, … */
    uint32_t *root_free; /* … and those that all devices can run */
    uint32_t root_count;
    /* By upward ranks: the greatest, and the sum of the tasks' own parts; 0 by priorities. */
    float rank_most;
    double rank_sum;
    fl_ranked ranked[FL_RANKED]; /* by what; those of the codelets that were found first */
    uint32_t ranked_count;
    double rank_taken; /* scheduler, under its board's lock: of that, what was begun in this run */
    _Atomic uint32_t is_on_board; /* ready tasks go there (sched/ready/shared_queue.h) … */
    bool was_on_board;            /* … or did in this run; under the lock, too … */
    bool has_roots_on_board;      /* … and from the start; constant while it runs */
    bool has_reserved;            /* a job, by fl_job_reserve */
    /* Where workers look ahead: the predecessors of task i, by their order, are those from
     * pred_begin[i] on to pred_begin[i + 1]. */
    uint32_t *pred_begin, *pred_list;
    size_t pred_total;
    /* By task: the point on a lane behind which its effects are there, {device : 10, lane : 4,
     * run : 8, sequence : 42} (sched/decide/lookahead.c); sequence 0: it has retired, all ones:
     * nobody may follow it. */
    _Atomic uint64_t *markers;
    /* Of the one worker that replays it (sched/execute/graph_launch.c): */
    uint32_t runs;                    /* begun so far */
    bool is_replayed;                 /* the last of them was one launch */
    uint32_t replayed;                /* such runs that succeeded, of this replay */
    uint64_t plain_ns[FL_PLAIN_RUNS]; /* of the last runs that succeeded otherwise; 0: none */
    uint64_t replayed_ns; /* the fastest such run, but for the first of this replay; 0: none */
    uint32_t replay_rest; /* more runs than usual before the next try, as the last found no room */
    bool cannot_replay;
    struct fl_graph_launch *replay;
    /* Who uses each tile when (sched/model/next_use.c): made when memory first runs short; begins
     * with its size, a size_t. */
    _Atomic(void *) forecast;

    /* Open graphs. */
    uint32_t gate_count; /* ever waited for */
    fl_inbox retired;    /* tasks whose memory the next adder reuses */
    fl_task *spare;      /* reusable, linked by link */
    fl_link *left;       /* taken from retired: reusable but for what they still hold */
    fl_hint_set failed;  /* under lock: tasks that failed or were skipped */
    bool poisoned;       /* the set could not grow: everything later is skipped */

    filch_job *job;  /* running, else null; under core->lock */
    uint32_t number; /* among the runtime's graphs, from 1: for traces */
    char label[64];
};

/* --- Used by the scheduler. Any worker; they take no lock unless said. --- */

/* The handle that an access names. */
static inline filch_data *fl_graph_data(const filch_graph *graph, uint32_t slot)
{
    /* Acquire: the slots that an adder copied there. Those of a task were there before it. */
    return fl_load_acquire(&graph->seen_slots)[slot]->use.data;
}
/* Whether it works on a device's part of a reduction, makes the parts ready, or joins them. */
static inline bool fl_task_has_partials(const fl_task *task)
{
    return task->reduces || task->combines || task->begins;
}

/* Views of a task's accesses; scratch points into scratch (room as fl_task_scratch says). */
void fl_task_views(const fl_task *task, filch_view *views, char *scratch);
/* Bytes of scratch memory that the task's accesses need. */
size_t fl_task_scratch(const fl_task *task);
/* The task's own label, or its codelet's name. */
const char *fl_task_name(const fl_task *task);
/* "label #order", cut to fit. */
void fl_task_describe(const fl_task *task, char *text, size_t bytes);

/* Retires a task of an open graph: closes its successor list, so that its caller may release them,
 * and remembers it where it failed or was skipped (takes graph->lock then). */
void fl_open_retire(fl_task *task, bool failed);
/* Hands the memory of a retired open task back; its successors were released. */
void fl_open_recycle(fl_task *task);

/* --- Parts of building, in files of their own. All under graph->lock. --- */

/* Slot of a handle, made on first use; an open graph's has no place in the order of jobs then.
 * FILCH_OUT_OF_MEMORY. */
filch_status fl_graph_slot(struct filch_graph *graph, filch_data *data, uint32_t *index);
/* Takes slots back, from one on, that have no place and were not used. */
void fl_graph_drop_slots(struct filch_graph *graph, size_t from);
/* The slot of a handle, if it has one; of a sealed graph any thread. */
bool fl_graph_find_slot(const struct filch_graph *graph, const filch_data *data, uint32_t *index);
void fl_graph_free_slots(struct filch_graph *graph);
/* Finds what the task must wait for into graph->preds, and how many readers it adds. */
filch_status fl_infer_gather(struct filch_graph *graph, const fl_task_access *accesses,
                             uint32_t count, uint32_t *reader_count);
/* Adds to graph->preds what is not there yet; false: no memory. */
bool fl_infer_note(struct filch_graph *graph, fl_task *task, uint32_t epoch);
/* Returns the list of a tile's group. */
void fl_infer_forget(struct filch_graph *graph, fl_tile_state *state);
/* Makes the task the last writer or a member of the groups of its tiles; readers: nodes, linked by
 * next. */
void fl_infer_commit(struct filch_graph *graph, fl_task *task, fl_reader *readers);
/* Before the task's predecessors are looked for: ends the groups (graph/build/group.c) that it is
 * no member of, where many would wait for many, and fills extras (null: none of its accesses needs
 * any). FILCH_OUT_OF_MEMORY: some may be ended, which changes nothing else. */
filch_status fl_groups_enter(struct filch_graph *graph, const fl_task_access *accesses,
                             uint32_t count, int32_t priority, fl_extra *extras);
/* Has everything combined that tasks reduced to: no more will be added. FILCH_OUT_OF_MEMORY: may be
 * called again. */
filch_status fl_groups_end(struct filch_graph *graph);
/* A task of filch's own that waits for graph->preds: a gate (reduction: null), which brings the
 * tile of an access (may be null) to the host's memory, and is called label then; or one that
 * combines. To be let run when inference knows it. Null: no memory. */
fl_task *fl_own_add(struct filch_graph *graph, fl_reduction *reduction,
                    const fl_task_access *access, const char *label);
void fl_own_let_run(struct filch_graph *graph, fl_task *task);
/* Ends the group of a tile, unless it is one of readers. FILCH_OUT_OF_MEMORY: nothing changed. */
filch_status fl_group_end(struct filch_graph *graph, fl_tile_state *state);
/* What a task to be added is called in errors: its label, else its codelet's name, else the graph's
 * label. */
const char *fl_graph_name_of(const struct filch_graph *graph, const struct filch_task_desc *desc);
/* Records that filch_graph_add refuses a task, with that name and the order it would have had. */
filch_status fl_graph_refuse(const struct filch_graph *graph, const struct filch_task_desc *desc,
                             filch_status status, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Handles in several tilings (split.c). A task with these accesses may use them as they are now
 * partitioned, or what is wrong is recorded. */
filch_status fl_splits_check(const struct filch_graph *graph, const struct filch_task_desc *desc);
/* Before the task's predecessors are looked for: has the contents come that its tiles have in other
 * tilings. FILCH_OUT_OF_MEMORY: some may, which changes nothing else. */
filch_status fl_splits_enter(struct filch_graph *graph, const fl_task_access *accesses,
                             uint32_t count);
/* Gives everything that is partitioned back: no more tasks will be added. FILCH_OUT_OF_MEMORY: may
 * be called again, or tasks be added. */
filch_status fl_splits_end(struct filch_graph *graph);
/* Frees what only building needs. */
void fl_splits_drop(struct filch_graph *graph);
/* Sealing: notes which turns are the last to write their tiles, and counts turns as predecessors.
 */
void fl_groups_seal(struct filch_graph *graph);
/* Whether one more successor of pred needs a new block. */
bool fl_edge_needs_block(const fl_task *pred);
/* Blocks, linked by next, for one more successor of each of graph->preds; false: too few. */
bool fl_edge_take_blocks(struct filch_graph *graph, fl_more **blocks);
/* Adds task to the successors of pred, with *blocks (linked by next) serving where a block is full.
 * Does nothing when pred has retired, but for poisoning the task where pred failed. */
void fl_edge_add(struct filch_graph *graph, fl_pred pred, fl_task *task, fl_more **blocks);
/* Notes for each tile of a closed graph which access is the last to write it. */
void fl_infer_mark_final(struct filch_graph *graph);
/* Frees what only building needs. */
void fl_infer_drop(struct filch_graph *graph);
filch_status fl_graph_seal_locked(struct filch_graph *graph);
/* Levels by what is known of the codelets' speeds now, where that was something else when the graph
 * was sealed, or ranked last. Under its lock, and while it does not run: nobody else looks at its
 * tasks then. */
void fl_graph_rank_anew(struct filch_graph *graph);
/* The task of a closed graph at a position. */
static inline fl_task *fl_graph_task_at(const struct filch_graph *graph, uint32_t order)
{
    return &graph->slab_table[order / FL_SLAB_TASKS]->tasks[order % FL_SLAB_TASKS];
}
/* Calls fn for each successor of a task. */
void fl_graph_each_successor(const fl_task *task, void (*fn)(fl_task *successor, void *user),
                             void *user);
/* Sealing, where workers look ahead: lists of predecessors, and one epoch for all tasks. False: no
 * memory. */
bool fl_graph_list_predecessors(struct filch_graph *graph);

/* The level of a caller's priority in an open graph. */
uint8_t fl_graph_level(const struct filch_graph *graph, int32_t priority);

/* Destroys a graph that no job uses. */
void fl_graph_free(struct filch_graph *graph);

bool fl_hint_set_add(fl_hint_set *set, const fl_memory *memory, uint64_t key);
bool fl_hint_set_has(const fl_hint_set *set, uint64_t key);

#endif
