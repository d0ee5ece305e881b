/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: order among those that share handles, completion, failure. */
#ifndef FL_GRAPH_JOB_JOB_H
#define FL_GRAPH_JOB_JOB_H

#include "filch/batch.h"
#include "graph/build/graph.h"
#include "graph/scheduler.h"
#include "memory/host/broadcast.h"
#include "memory/tiles/replica.h"

typedef struct fl_batch fl_batch;
struct fl_job_trace;

/* Grains of a batch that belong together, where a policy placed them. */
typedef struct fl_piece {
    uint32_t lo, hi;
} fl_piece;

typedef struct fl_pieces {
    size_t bytes; /* of the whole allocation */
    uint32_t count;
    fl_piece at[];
} fl_pieces;

/* The jobs of a runtime: the core's, under core->lock unless said. */
typedef struct fl_jobs {
    filch_job *pool;         /* spare job objects */
    uint32_t reserved;       /* made by fl_job_reserve */
    uint32_t sealed;         /* graphs it was called for that still exist */
    uint64_t submissions;    /* so far */
    uint64_t walks;          /* of fl_job_waits_for, so far */
    _Atomic uint32_t graphs; /* ever made: the number of the newest */
    /* Submitted, and completion not over, and one more for each of … ; release when it falls. */
    _Atomic uint64_t running;
    _Atomic uint64_t kept; /* … those that fl_job_keep kept; relaxed: a statistic */
    /* What traces tell of jobs (graph/job/job_trace.h); null: none records. Release: it was made
     * before.
     */
    _Atomic(struct fl_job_trace *) logbook;
} fl_jobs;

/* What an open graph's count of remaining tasks starts from. */
#define FL_OPEN_BIAS ((int64_t)1 << 62)

struct filch_job {
    fl_object object;
    _Atomic uint32_t refs;   /* the user's, and the run's */
    _Atomic int32_t result;  /* filch_status; FILCH_NOT_READY until everything is over */
    filch_graph *graph;      /* null for a batch or a broadcast, and once complete */
    fl_batch *batch;         /* owned */
    fl_broadcast *broadcast; /* owned; null for others, and once complete */
    bool is_spreading;       /* a broadcast that has begun: asked for as what awaits events is */
    bool is_open;
    const filch_graph *ran; /* which graph it is of, also once complete: a name, never followed */
    filch_on_failure on_failure;
    filch_complete_fn on_complete;
    void *user;
    char label[64];
    uint64_t sequence;    /* number of its submission; under core->lock, constant once it starts */
    uint64_t walk;        /* the last that came by here; under core->lock */
    filch_job *walk_next; /* jobs that it has yet to look at */
    fl_queued_access *late; /* of an open graph's, those that have not begun; under core->lock */
    uint32_t blocked;       /* uses not granted yet, + 1 while submitting; under core->lock */
    filch_job *next;        /* in the pool, or in a list of jobs to start or to complete */
    uint32_t kept;          /* by runs that may outlast the job (fl_job_keep), and whether … */
    bool is_past;           /* … its uses have left their queues, but for those kept: both under
                               core->lock */
    _Atomic uint64_t completer; /* the thread in on_complete, or last there; else 0 */
    _Atomic uint64_t started;   /* ns, 0 before; relaxed: a statistic */
    uint64_t finished;          /* ns; written before result */
    _Atomic uint64_t total;     /* tasks (gates not counted), or items */
    _Atomic uint64_t run_once;  /* of the tasks, those whose codelets would let them be run twice */
    /* Tasks or grains to retire; until an open graph is closed, FL_OPEN_BIAS less the retired. */
    _Alignas(64) _Atomic int64_t remaining;
    _Atomic uint32_t cancelled; /* nothing more is to start; relaxed: it may be seen late */
    _Atomic uint32_t failed;    /* first failure is recorded in error; release after writing it */
    _Atomic uint32_t left_out;  /* something was skipped because of a cancellation */
    /* Scheduler: stands in the table of active jobs or in the queue for it. Release: its ranges are
     * filled. */
    _Atomic uint32_t is_offered;
    filch_job *queued_next; /* scheduler: in that queue */
    fl_pieces *pieces;      /* scheduler: or null; constant while it is offered, as is … */
    uint32_t cut;           /* … what its ranges count (sched/decide/policy.h) */
    /* Scheduler: 1, what its devices are charged at its beginning is noted; 2, at its end. Release:
     * it was. */
    _Atomic uint32_t accounted;
    /* Events of the host's that were not past yet when last asked; owned. From the submission until
     * the job starts they are the scheduler's. */
    void **events;
    uint32_t event_count, event_room;
    fl_link awaiting;         /* scheduler: in the inbox of jobs that wait for such */
    void *signal;             /* of the host's, to record when the job has ended; or null */
    fl_device *signal_device; /* whose it is */
    fl_mutex lock;            /* error, notes, is_resumed */
    filch_error error;
    filch_item_range *notes; /* items that did not succeed, in no order */
    size_t note_count, note_capacity;
    bool notes_lost;
    bool is_resumed; /* another job has, or is about to have, the items that did not succeed */
    _Alignas(64) unsigned char shares[]; /* the scheduler's, one a device */
};

/* Takes n off what remains; completes the job when nothing does. Any thread, but not with
 * core->lock. */
void fl_job_retired(filch_job *job, int64_t n);
/* A task or chunk returned code; records the first failure and cancels where that was asked for. */
void fl_job_fail(filch_job *job, const fl_task *task, int code, const char *device, uint64_t lo,
                 uint64_t hi);
/* The same where the device could not do it: error says why. */
void fl_job_fail_device(filch_job *job, const fl_task *task, const filch_error *error, uint64_t lo,
                        uint64_t hi);
/* A batch's job, its handles, and the contents of those that it only reads stay as they are beyond
 * its end, until each success of this was followed by fl_job_unkeep: somebody may still run a chunk
 * of it that has been run elsewhere. The caller's hazard names the job. False: the job is over. Any
 * thread, not with any lock. */
bool fl_job_keep(filch_job *job);
/* Likewise. The job may be another's when this returns, unless a hazard names it. */
void fl_job_unkeep(filch_job *job);
/* Whether the job is over: complete, or the caller is its callback. */
bool fl_job_is_over(const filch_job *job);
/* Under job->lock, when the job is over: its notes, in ascending order. */
const filch_item_range *fl_job_notes(filch_job *job, size_t *count);
/* Items that were not run. */
void fl_job_note_skipped(filch_job *job, uint64_t lo, uint64_t hi);

/* --- Used by graphs and batches to submit. --- */

/* The job that a link in an inbox is part of. */
static inline filch_job *fl_job_of_link(fl_link *link)
{
    return (filch_job *)(void *)((char *)link - offsetof(filch_job, awaiting));
}

/* A job with both references, not yet visible to anybody; null: no memory. */
filch_job *fl_job_new(fl_core *core, const filch_submit *submit);
/* Makes sure that a later fl_job_new needs no memory. */
filch_status fl_job_reserve(fl_core *core);
/* Once for each success of that, when the graph goes: its job serves the next one. */
void fl_job_unreserve(fl_core *core);
/* Under core->lock: queues the job's uses. Else nothing has changed, and error says why:
 * FILCH_BUSY, the host has acquired a handle of theirs; FILCH_WRONG_STATE, the job reads what
 * nobody has written. */
filch_status fl_job_enqueue(filch_job *job, filch_error *error);

/* --- Handles whose contents are somewhere only once they are written (contents.c). --- */

/* Under core->lock: FILCH_WRONG_STATE where a job that is not open reads of them what neither it
 * nor anybody before it writes. */
filch_status fl_job_check_contents(const filch_job *job, filch_error *error);
/* Under core->lock: what the job is to write counts as written from now on. */
void fl_job_note_contents(const filch_job *job);
/* The same for a task of an open graph, which has just been checked otherwise, or was added; both
 * take core->lock. Under graph->lock. *watches: whether the second need be called. */
filch_status fl_open_check_contents(const filch_graph *graph, const filch_task_desc *desc,
                                    bool *watches);
void fl_open_note_contents(filch_graph *graph, const filch_task_desc *desc);
/* Elements [*first, *last) of a handle that all items together use: no more than it has. */
void fl_batch_reach_of(const fl_batch *batch, uint32_t access, uint64_t *first, uint64_t *last);
const struct filch_batch_access *fl_batch_access(const fl_batch *batch, uint32_t access);
/* A job from fl_job_new that nobody has seen. */
void fl_job_discard(filch_job *job);
/* Starts a job as soon as all its uses, which are queued, are granted. No failure from here on. */
void fl_job_submit(filch_job *job);
/* The job's uses: of a graph one a slot, whose upgrades are not counted. */
fl_queued_access *fl_job_use(filch_job *job, size_t i);
size_t fl_job_use_count(const filch_job *job);
/* Frees what the objects of all jobs hold besides their own memory, when the runtime ends. */
void fl_jobs_fini(fl_core *core);
/* Asks every running job to start nothing more, and closes the open ones. */
void fl_jobs_cancel(fl_core *core);
/* Whether the calling thread is in a callback of one of the jobs. */
bool fl_jobs_in_callback(fl_core *core);
/* Tasks of existing graphs that may still run; under no lock. */
uint64_t fl_jobs_tasks(fl_core *core);
/* Checks a filch_submit (null is fine), and records what is wrong with it, under its label or else
 * the one given, which may be null; else *submit is the same in full. */
filch_status fl_submit_check(fl_core *core, const filch_submit *given, const char *call,
                             const char *label, filch_submit *submit);

/* --- The order of jobs (order.c); all but the first under core->lock --- */

/* Whether the job cannot start, or an open graph's tasks cannot, before one of those that is_one
 * says has ended, because of handles that they share. Takes core->lock, under which is_one is
 * called. */
bool fl_job_waits_for(filch_job *job, bool (*is_one)(const filch_job *job, const void *user),
                      const void *user);
/* Looks for a place in its handle's queue for the first of the uses that an open graph's job asks
 * for, linked by late_next, which name job, data and whether it writes: behind *place, null for the
 * front; is_last: behind all. Else returns a use of another job that the job would wait for, and
 * that waits for the job; or one of its own, where the host's hold waits behind that and would be
 * waited for. */
const fl_queued_access *fl_order_find(const fl_queued_access *asking, bool is_last,
                                      fl_queued_access **place);
/* Puts it there; it has not begun. */
void fl_order_enter(fl_queued_access *use, fl_queued_access *place);
/* Takes the one out that was put in last, before anybody was told. */
void fl_order_undo(filch_job *job);
/* Those that were granted, but have not begun, wait for the use in front of them. */
void fl_order_pass(const fl_queued_access *use);
/* Uses of an open graph's job begin that are granted: all, or only one; and so do the tasks that
 * wait for that. */
void fl_order_begin(filch_job *job, const fl_queued_access *only);
/* What fl_order_find found, for an error's text. */
void fl_order_describe(const filch_job *job, const fl_queued_access *circle, char *text,
                       size_t bytes);

/* --- The host's place in the order of jobs (acquisition.c) --- */

/* Under core->lock: a hold's use waits no more. */
void fl_hold_granted(fl_queued_access *use);
/* Takes the use of a hold out of its handle's queue, and starts what waited for it. */
void fl_job_let_go(fl_queued_access *use);
/* Ends every hold that is granted: nobody will release them. */
void fl_holds_end(fl_core *core);

/* --- Events of the host's (host_events.c) --- */

/* Notes what a job that nobody has seen waits for and signals; records a failure. */
filch_status fl_job_take_events(filch_job *job, const filch_submit *submit, const char *call);
/* Whether it waits no more: for anything, since it is cancelled, or since an event failed, which
 * the job then has, too. A broadcast that has begun: whether it is over; *moved: it went on. */
bool fl_job_events_past(filch_job *job, bool *moved);
/* Forgets those that are left. */
void fl_job_drop_events(filch_job *job);
/* Records what the job signals. */
void fl_job_signal(filch_job *job);
/* Lets a job that waits for no event any more start as soon as all its uses are granted. True: it
 * has nothing to do, and the caller is to retire 1 of it. */
bool fl_job_awaited(filch_job *job);
/* An event that the job waits for failed: it runs nothing. */
void fl_job_fail_start(filch_job *job, const filch_error *error);
/* A running open graph takes its places at the handles of one task, for which each slot of the
 * accesses must be there. Under graph->lock. FILCH_OUT_OF_MEMORY; FILCH_BUSY where the host has
 * acquired one of them; FILCH_DEADLOCK, text saying why, where jobs would wait for each other. On
 * failure nothing changes. */
filch_status fl_open_enter(filch_graph *graph, const fl_task_access *accesses, uint32_t count,
                           char *text, size_t bytes);
/* Adds a task to a running open graph. Under graph->lock. */
filch_status fl_open_add(filch_graph *graph, const filch_task_desc *desc, fl_task **added);
/* The common part of adding: no failure changes the graph. Under graph->lock. */
filch_status fl_graph_add_locked(filch_graph *graph, const filch_task_desc *desc, fl_task **added);
/* A zeroed task of the graph; null: no memory. Under graph->lock. */
fl_task *fl_graph_task_new(filch_graph *graph);
/* Gives the newest one back, which was never shared. Likewise. */
void fl_graph_task_unmake(filch_graph *graph, fl_task *task);

/* --- Broadcasts (broadcast.c). --- */

/* The job has all its uses: starts the first copies. */
void fl_job_spread(filch_job *job);
/* Goes on with it; true once it is over. */
bool fl_job_spread_on(filch_job *job, bool *moved);

/* --- Batches. --- */

/* A batch's uses, for the order of jobs. */
fl_queued_access *fl_batch_uses(fl_batch *batch, size_t *count);
void fl_batch_free(fl_core *core, fl_batch *batch);
const filch_codelet *fl_batch_codelet(const fl_batch *batch);
/* Whether a chunk may be run twice at once: its codelet says so, and it reads nothing that it
 * writes, asks nobody where that is, and writes to no buffer of the caller's on a device. */
bool fl_batch_is_restartable(const fl_batch *batch);
/* Bit set of the devices that may run it. */
const uint64_t *fl_batch_devices(const fl_batch *batch);
const void *fl_batch_args(const fl_batch *batch);
/* Items of the whole, some of which a rest does not run. */
uint64_t fl_batch_items(const fl_batch *batch);
uint32_t fl_batch_grains(const fl_batch *batch);
uint32_t fl_batch_view_count(const fl_batch *batch);
/* Up to where a chunk that begins at grain lo may reach: past it items are left out. */
uint32_t fl_batch_reach(const fl_batch *batch, uint32_t lo);
/* Items of grains [lo, hi), hi within reach. */
void fl_batch_range(const fl_batch *batch, uint32_t lo, uint32_t hi, uint64_t *first,
                    uint64_t *last);
/* What is wrong with what callbacks map the items to: FILCH_INVALID_ARGUMENT, FILCH_ALIAS. They are
 * asked again, so after a refusal alone. error may be null. */
filch_status fl_batch_check(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_error *error);
/* Views of the chunk; false where fl_batch_check would refuse it. */
bool fl_batch_views(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views);
/* Bytes of a place's memory that the chunk of grains [lo, hi) needs, and *whole: that all chunks
 * share. */
uint64_t fl_batch_bytes(const fl_batch *batch, uint32_t lo, uint32_t hi, uint32_t place,
                        uint64_t *whole);
/* What the chunk uses, for devices with memory of their own; views: from fl_batch_views. */
void fl_batch_operands(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views,
                       fl_operand *operands);

#endif
