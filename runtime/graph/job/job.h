/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs: order among jobs that share handles, completion, failure. */
#ifndef FL_GRAPH_JOB_JOB_H
#define FL_GRAPH_JOB_JOB_H

#include "filch/batch.h"
#include "graph/build/graph.h"
#include "graph/scheduler.h"
#include "memory/host/broadcast.h"
#include "memory/tiles/replica.h"

typedef struct fl_batch fl_batch;
typedef struct fl_repeat fl_repeat;
struct fl_job_trace;

/* Jobs of a runtime; owned by the core, guarded by core->lock unless stated. */
typedef struct fl_jobs {
    filch_job *pool;         /* spare job objects */
    uint32_t reserved;       /* job objects made by fl_job_reserve */
    uint32_t sealed;         /* existing graphs with a successful call of fl_job_reserve */
    uint64_t submissions;    /* number of submissions so far */
    uint64_t walks;          /* number of searches by order.c so far */
    _Atomic uint32_t graphs; /* number of graphs ever made, and the newest graph's number */
    /* Number of jobs submitted and not yet completed, plus one for each keep by fl_job_keep.
     * Sequentially consistent when falling: before the look at the waiters in job_done. */
    _Atomic uint64_t running;
    _Atomic uint64_t kept; /* keeps by fl_job_keep; relaxed: a statistic */
    _Atomic uint64_t done; /* number of complete jobs so far; relaxed: a statistic */
    /* Trace of jobs (graph/job/job_trace.h); null: no trace records. Release: the object is made
     * before its publication. */
    _Atomic(struct fl_job_trace *) logbook;
} fl_jobs;

/* Start value of an open graph's count of remaining tasks. */
#define FL_OPEN_BIAS ((int64_t)1 << 62)

/* Why a job starts nothing more. */
enum {
    FL_STOP_NONE,
    FL_STOP_CANCELLED, /* by the caller, or by a failure */
    FL_STOP_FINISHED   /* by filch_call_finish: left-out work is no failure */
};

struct filch_job {
    fl_object object;
    _Atomic uint32_t refs; /* references: the user's, and the run's */
    /* 1: the user has a handle, to be released (handle.c). Set before the job can start, cleared
     * by the release. */
    _Atomic uint32_t is_lent;
    _Atomic int32_t result; /* filch_status; FILCH_NOT_READY until everything is over */
    /* Null for a batch or a broadcast, once complete, and once withdrawn. */
    filch_graph *graph;
    fl_run_uses *uses;       /* of a closed graph; from the graph's */
    fl_batch *batch;         /* owned by the job */
    fl_broadcast *broadcast; /* owned by the job; null for other jobs, and once complete */
    /* A repetition's job, which stands for the runs (repeat.c): the newest run until the repetition
     * is over, else null. Guarded by core->lock. */
    filch_job *present;
    bool is_repetition; /* also once complete */
    /* A run of a repetition: the repetition, its job, and the function that takes over the run once
     * all work has retired. Null for other jobs; constant once the run starts. */
    fl_repeat *repeat;
    filch_job *whole;
    void (*ended)(filch_job *run, filch_status result, filch_job **ready);
    /* A broadcast is in progress. Host-event polling checks for its end, as for events. */
    bool is_spreading;
    bool is_open;
    /* Line of the jobs of a closed graph (line.h): the neighbours; null at an end, and for other
     * jobs. Guarded by core->lock. */
    filch_job *before, *behind;
    /* Prepares the graph for a run in line, when the job begins; else null. Called without locks.
     */
    void (*prepare)(filch_graph *graph);
    bool is_vacant;    /* the job has nothing to run: it ends when it begins */
    bool is_withdrawn; /* cancelled in line: the job is vacant, and has no graph */
    /* While the callback runs: the job whose callback is around it on the thread, or null; and
     * withdrawn jobs, linked by next, that begin after the callback, which cancelled them. Who
     * concludes the job starts them. For the callback's thread. */
    filch_job *outer, *after, **after_end;
    const filch_graph *ran; /* graph of the job, also once complete: a name, never dereferenced */
    uint32_t ran_number;    /* number of this graph */
    filch_on_failure on_failure;
    filch_complete_fn on_complete;
    void *user;
    char label[64];
    /* Number of the job's submission. Guarded by core->lock; constant once the job starts. */
    uint64_t sequence;
    uint64_t walk; /* number of the last search that visited the job; guarded by core->lock */
    filch_job *walk_next;   /* next job on the search's stack */
    fl_queued_access *late; /* uses of an open graph not yet begun; guarded by core->lock */
    /* Number of uses not granted yet, + 1 while submitting, + 1 while events are pending, + 1 while
     * a job of the graph is before. Guarded by core->lock. */
    uint32_t blocked;
    filch_job *next; /* in the pool, or in a list of jobs to start or to complete */
    /* Number of keeps by runs that may outlast the job (fl_job_keep); guarded by core->lock. */
    uint32_t kept;
    /* The uses have left their queues, except kept uses; guarded by core->lock. */
    bool is_past;
    _Atomic uint64_t completer; /* thread running on_complete, or the last such thread; else 0 */
    _Atomic uint64_t started;   /* start time, ns; 0 before the start; relaxed: a statistic */
    bool has_begun;             /* the job is or was started; set before the scheduler has it */
    uint64_t finished;          /* end time, ns; written before result */
    uint64_t range;             /* number of the profiler's range, while a profiler is attached */
    _Atomic uint64_t total;     /* number of tasks (without filch's own), or of items */
    _Atomic uint64_t runs;      /* number of runs that have ended, of a repetition */
    _Atomic uint64_t run_once; /* number of tasks with a codelet that allows running a task twice */
    /* Tasks or grains to retire. Until an open graph is closed: FL_OPEN_BIAS less the number of
     * retired tasks. */
    _Alignas(64) _Atomic int64_t remaining;
    /* FL_STOP_*: why no further work starts. The first reason stays. Relaxed: a worker may see the
     * reason late. */
    _Atomic uint32_t cancelled;
    _Atomic uint32_t failed;    /* error has the first failure; release after writing error */
    _Atomic uint32_t left_out;  /* some work was skipped because of a cancellation */
    _Atomic uint32_t suspended; /* work items that wait in their functions */
    /* Host events not past at the last query; owned by the job. The scheduler uses the events from
     * the submission to the start of the job. */
    void **events;
    uint32_t event_count, event_room;
    void *signal;             /* host event to record at the end of the job; or null */
    fl_device *signal_device; /* device for recording signal */
    fl_mutex lock;            /* guards error, notes and is_resumed */
    filch_error error;
    filch_item_range *notes; /* items that did not succeed, unordered */
    size_t note_count, note_capacity;
    bool notes_lost;
    bool is_resumed; /* a later job has, or is about to have, the items that did not succeed */
    _Alignas(64) unsigned char part[]; /* the scheduler's: fl_scheduler.job_bytes */
};

/* Subtracts n from the remaining count. Completes the job when the count reaches zero. Thread-safe;
 * call without core->lock. */
void fl_job_retired(filch_job *job, int64_t n);
/* A code of a task or chunk of the caller's. */
typedef struct fl_failure {
    bool was_told; /* filch_pending_end gave the code; else the function returned it */
    int code;
    const char *text;   /* the caller's reason, or null */
    const char *device; /* name of the device that called the function */
} fl_failure;

/* Handles a task or chunk that returned a code: records the first failure, and cancels the job if
 * the caller asked for cancellation. */
void fl_job_fail(filch_job *job, const fl_task *task, const fl_failure *why, uint64_t lo,
                 uint64_t hi);
/* Handles a task or chunk that the device was unable to run, as fl_job_fail; error has the
 * reason. */
void fl_job_fail_device(filch_job *job, const fl_task *task, const filch_error *error, uint64_t lo,
                        uint64_t hi);
/* Keeps a batch's job, its handles, and the contents of handles it only reads, beyond the job's
 * end. The keep lasts until the matching call of fl_job_unkeep. Reason: a worker may still run a
 * chunk that a backup run has already finished. The caller's hazard pointer names the job. False:
 * the job is over. Thread-safe; call without locks. */
bool fl_job_keep(filch_job *job);
/* Ends a keep. Thread-safe; call without locks. On return the job object may serve a new job,
 * unless a hazard pointer names it. */
void fl_job_unkeep(filch_job *job);
/* Notes why the job starts nothing more, unless an earlier reason is there: FL_STOP_*. */
void fl_job_note_stop(filch_job *job, uint32_t why);
/* Lets a job start nothing more, as filch_job_cancel: FL_STOP_*. Thread-safe; call without locks.
 */
void fl_job_stop(filch_job *job, uint32_t why);
/* Tells whether the job is over: complete, or running its callback on the calling thread. */
bool fl_job_is_over(const filch_job *job);
/* Tells whether the calling thread is in the job's callback. */
bool fl_job_is_in_callback(const filch_job *job);
/* Returns the notes of a finished job in ascending order. The caller holds job->lock. */
const filch_item_range *fl_job_notes(filch_job *job, size_t *count);
/* Notes items that were not run. */
void fl_job_note_skipped(filch_job *job, uint64_t lo, uint64_t hi);

/* --- Submission of graphs and batches. --- */

/* Returns a new job with the user's and the run's references, private to the caller; null: no
 * memory. label: the job's label where the submission has none. */
filch_job *fl_job_new(fl_core *core, const filch_submit_desc *submit, const char *label);
/* Makes spare job objects until a later fl_job_new surely needs no memory. */
filch_status fl_job_reserve(fl_core *core);
/* Undoes a successful fl_job_reserve, when the graph is freed. The spare job stays for the next
 * reserving graph. */
void fl_job_unreserve(fl_core *core);
/* Queues the job's uses. The caller holds core->lock. On failure nothing changes, and error has the
 * reason. FILCH_BUSY: the host has acquired a handle of the job. FILCH_WRONG_STATE: the job reads
 * contents never written. */
filch_status fl_job_enqueue(filch_job *job, filch_error *error);

/* --- Handles without a home buffer: contents exist only once written (contents.c). --- */

/* Checks the contents read by a job of a batch, a broadcast or a closed graph. FILCH_WRONG_STATE:
 * neither the job nor an earlier job or the host writes the contents. The caller holds
 * core->lock. */
filch_status fl_job_check_contents(const filch_job *job, filch_error *error);
/* Checks the handles of a closed graph's next job, with a label for errors: FILCH_BUSY and
 * FILCH_WRONG_STATE as from fl_job_enqueue. The caller holds core->lock. */
filch_status fl_graph_check_handles(const filch_graph *graph, const char *label,
                                    filch_error *error);
/* Marks the tiles that the job is to write as written, already now. The caller holds core->lock. */
void fl_job_note_contents(const filch_job *job);
/* Check the contents read by a task of an open graph, before adding the task; and note the task's
 * writes, after adding. The caller holds graph->lock; the functions take core->lock. *watches: the
 * second function must be called. */
filch_status fl_open_check_contents(const filch_graph *graph, const filch_task_desc *desc,
                                    bool *watches);
void fl_open_note_contents(filch_graph *graph, const filch_task_desc *desc);
/* Finds the elements [*first, *last) of a handle used by the batch's items together, limited to the
 * handle's extent. */
void fl_batch_reach_of(const fl_batch *batch, uint32_t access, uint64_t *first, uint64_t *last);
const struct filch_batch_access *fl_batch_access(const fl_batch *batch, uint32_t access);
/* Frees a job from fl_job_new that no second thread has seen; call without core->lock. */
void fl_job_discard(filch_job *job);
/* Starts a job as soon as every queued use is granted. Cannot fail. */
void fl_job_submit(filch_job *job);
/* Makes the graph's next job, in the access queues, ready for fl_job_submit. `call` is for errors.
 * The caller holds graph->lock. */
filch_status fl_graph_make_job(filch_graph *graph, const filch_submit_desc *submit,
                               const char *call, filch_job **made);
/* Seals a closed graph, if the caller has not. `call` is for errors. The caller holds graph->lock.
 */
filch_status fl_graph_seal_for(filch_graph *graph, const char *call);
/* Computes the ranks of a closed graph anew between two runs, as fl_graph_rank_anew. The caller
 * starts the next run. */
void fl_graph_rank_between(filch_graph *graph);
/* Seals a closed graph for a submission, if the caller has not and no handle stands against the
 * submission: a refused graph still takes tasks. The caller holds graph->lock. */
filch_status fl_graph_seal_to_run(filch_graph *graph, const filch_submit_desc *submit,
                                  const char *call);

/* --- Steps of starting and completing a job, for repetitions (repeat.c) --- */

/* Starts a job whose uses are granted. Call without locks. On return the job may be complete. */
void fl_job_begin(filch_job *job);
/* Starts the jobs of a list, linked by next, as fl_job_begin. */
void fl_jobs_begin(filch_job *ready);
/* Starts those that have something to run, and takes them out of the list: before a callback, since
 * devices do not wait for it. The end of a vacant one would call its callback first. */
void fl_jobs_begin_busy(filch_job **ready);
/* Appends a list to a list, both linked by next. */
void fl_jobs_append(filch_job **list, filch_job *jobs);
/* Handles a granted use. Collects in *user the jobs that may start, for fl_jobs_begin. The caller
 * holds core->lock. */
void fl_job_granted(fl_queued_access *use, void *user);
/* Notes the end of a job whose uses are about to leave their queues or to be taken over: begins a
 * version of every written handle. The caller holds core->lock. */
void fl_job_end_uses(filch_job *job, filch_status result);
/* Takes an ended job out of its access queues. Collects in *ready the jobs that may start. */
void fl_job_leave(filch_job *job, filch_status result, filch_job **ready);
/* Tells whether the end of the job has a callback or an event. If not, the result is published
 * before the jobs that waited start: who sees the end of a later run sees that of an earlier. */
static inline bool fl_job_has_end(const filch_job *job)
{
    return job->on_complete != NULL || job->signal != NULL;
}
/* Calls the callback, and publishes the result. */
void fl_job_conclude(filch_job *job, filch_status result);
/* Counts a job with a published result off, tells waiting threads, and drops the run's reference.
 */
void fl_job_close(filch_job *job);
/* Gives the handle of a new job to the user, to be given back by filch_job_release(), or, where
 * is_lent is false, to a caller within filch, to be given back by fl_job_drop(). Null: nobody keeps
 * the job, and the job loses the reference. To be called before the job can start: a callback may
 * use the handle. */
void fl_job_lend(filch_job *job, bool is_lent, filch_job **handle);
/* filch_graph_submit(); is_lent: see fl_job_lend(). */
filch_status fl_graph_submit(filch_graph *graph, const filch_submit_desc *submit, bool is_lent,
                             filch_job **job);
/* Drops a reference. */
void fl_job_drop(filch_job *job);
/* Returns use i of the job. A graph has one use per slot; upgrades are not counted. */
fl_queued_access *fl_job_use(filch_job *job, size_t i);
size_t fl_job_use_count(const filch_job *job);
/* Frees the memory held by every job, except the job objects. Called at the end of the runtime. */
void fl_jobs_fini(fl_core *core);
/* Cancels every running job, and closes the open graphs. */
void fl_jobs_cancel(fl_core *core);
/* Cancels every running job. Returns an open graph, to be closed; null: no graph is open. */
filch_graph *fl_jobs_cancel_all(fl_core *core);
/* Tells whether the calling thread is in a callback of a job. */
bool fl_jobs_in_callback(fl_core *core);
/* Returns the job in whose callback the calling thread is, the innermost one, or null. */
static inline filch_job *fl_job_in_callback(const fl_core *core)
{
    return fl_tss_get(core->callback);
}
/* Tells whether the job, or the run of a repetition, begins after a callback that the calling
 * thread is in: no wait for it would end. */
bool fl_job_is_put_off(const filch_job *job);
/* Returns the number of tasks of existing graphs that may still run. Call without locks. */
uint64_t fl_jobs_tasks(fl_core *core);
/* Checks a filch_submit_desc (may be null). An error is recorded under the submission's label, or
 * else under the given label, which may be null. On success *submit is the complete submission. */
filch_status fl_submit_check(fl_core *core, const filch_submit_desc *given, const char *call,
                             const char *label, filch_submit_desc *submit);

/* --- Order of jobs (order.c); callers hold core->lock, except for the first function --- */

/* Tells whether the job, because of shared handles, cannot start before the end of a job chosen by
 * is_one. For an open graph: whether its tasks cannot start. Takes core->lock, and calls is_one
 * under the lock. */
bool fl_job_waits_for(filch_job *job, bool (*is_one)(const filch_job *job, const void *user),
                      const void *user);
/* Finds a place in the access queue of the first use in asking. asking lists the uses wanted by an
 * open graph's job, linked by late_next; a use names job, data and whether it writes. On success
 * returns null: the place is behind *place (null: at the front). is_last: the place is behind the
 * last use. On failure returns the use that closes a circle: a use of a second job, where both jobs
 * would wait for each other; or a use of the own job, where a hold of the host waits behind the use
 * and the job would wait for the hold. */
const fl_queued_access *fl_order_find(const fl_queued_access *asking, bool is_last,
                                      fl_queued_access **place);
/* Inserts the use at the place; the use has not begun. */
void fl_order_enter(fl_queued_access *use, fl_queued_access *place);
/* Removes the use inserted last, before any waiter was notified. */
void fl_order_undo(filch_job *job);
/* Revokes granted uses behind the given use that have not begun: they wait for the given use. */
void fl_order_pass(const fl_queued_access *use);
/* Begins the granted uses of an open graph's job: every use, or only the given use. Releases the
 * gates waiting for the beginning. */
void fl_order_begin(filch_job *job, const fl_queued_access *only);
/* Describes the circle found by fl_order_find, for an error's text. */
void fl_order_describe(const filch_job *job, const fl_queued_access *circle, char *text,
                       size_t bytes);

/* --- Holds of the host in the order of jobs (acquisition.c) --- */

/* Grants the use of a hold. The caller holds core->lock. */
void fl_hold_granted(fl_queued_access *use);
/* Takes the use of a hold out of its access queue, and starts the jobs waiting for it. */
void fl_job_let_go(fl_queued_access *use);
/* Ends every granted hold: the host will not release the holds any more. */
void fl_holds_end(fl_core *core);

/* --- Host events (host_events.c) --- */

/* Notes the events that a job, still private to the caller, waits for and signals. Records a
 * failure. */
filch_status fl_job_take_events(filch_job *job, const filch_submit_desc *submit, const char *call);
/* Tells whether the job's waiting is over: every event is past, the job is cancelled, or an event
 * failed. A failed event fails the job. For a broadcast in progress, tells whether the broadcast is
 * over; *moved: progress was made. */
bool fl_job_events_past(filch_job *job, bool *moved);
/* Drops the events not yet past. */
void fl_job_drop_events(filch_job *job);
/* Records the event that the job signals. */
void fl_job_signal(filch_job *job);
/* Ends the job's waiting for events: the job starts as soon as every use is granted. True: the job
 * has no work, and the caller retires 1. */
bool fl_job_awaited(filch_job *job);
/* Fails a job because of a failed event: the job runs no task. */
void fl_job_fail_start(filch_job *job, const filch_error *error);
/* Takes places in the access queues for the accesses of a task of a running open graph. The slots
 * of the accesses must exist. The caller holds graph->lock. FILCH_OUT_OF_MEMORY. FILCH_BUSY: the
 * host has acquired a handle. FILCH_DEADLOCK: jobs would wait for each other. Of the last two text
 * tells more. On failure nothing changes. */
filch_status fl_open_enter(filch_graph *graph, const fl_task_access *accesses, uint32_t count,
                           char *text, size_t bytes);
/* Before and after adding a task to a running open graph. The first function refuses the task of a
 * cancelled job, and a read of contents never written; *watches is for the second function. The
 * second function lets the task run. The caller holds graph->lock. */
filch_status fl_open_check(const filch_graph *graph, const filch_task_desc *desc, bool *watches);
void fl_open_added(filch_graph *graph, const filch_task_desc *desc, fl_task *task, bool watches);
/* Tells whether a running open graph has as many live tasks as its limit allows. */
bool fl_open_is_full(filch_graph *graph);
/* Waits until a full graph has fewer live tasks; the lock is released meanwhile. Returns FILCH_OK;
 * FILCH_CANCELLED (or closed), to check the state again; FILCH_OUT_OF_MEMORY; or another status:
 * waiting on may not help. */
filch_status fl_open_await(filch_graph *graph);
/* Returns a zeroed task of the graph; null: no memory. The caller holds graph->lock. */
fl_task *fl_graph_task_new(filch_graph *graph);
/* Gives the newest task back, if never shared. The caller holds graph->lock. */
void fl_graph_task_unmake(filch_graph *graph, fl_task *task);

/* --- Broadcasts (broadcast.c). --- */

/* Starts the first copies of a broadcast; the job's use is granted. */
void fl_job_spread(filch_job *job);
/* Continues the broadcast; true: the broadcast is over. */
bool fl_job_spread_on(filch_job *job, bool *moved);

/* --- Batches. --- */

/* Returns the batch's uses, for the order of jobs. */
fl_queued_access *fl_batch_uses(fl_batch *batch, size_t *count);
void fl_batch_free(fl_core *core, fl_batch *batch);
const filch_codelet *fl_batch_codelet(const fl_batch *batch);
/* Tells whether a chunk may run twice at once. Conditions: the codelet allows a second run; no
 * access both reads and writes; no callback maps the items; no written buffer of the caller lies on
 * a device. */
bool fl_batch_is_restartable(const fl_batch *batch);
/* Returns the bit set of the devices that may run the batch. */
const uint64_t *fl_batch_devices(const fl_batch *batch);
const void *fl_batch_args(const fl_batch *batch);
/* Returns the number of items in the whole batch; a rest runs only a part. */
uint64_t fl_batch_items(const fl_batch *batch);
uint32_t fl_batch_grains(const fl_batch *batch);
uint32_t fl_batch_view_count(const fl_batch *batch);
/* Returns the end of the grains that a chunk beginning at grain lo may include: behind the end,
 * items are left out. */
uint32_t fl_batch_reach(const fl_batch *batch, uint32_t lo);
/* Finds the items of grains [lo, hi), hi within reach. */
void fl_batch_range(const fl_batch *batch, uint32_t lo, uint32_t hi, uint64_t *first,
                    uint64_t *last);
/* Checks the elements that callbacks return for the items. FILCH_INVALID_ARGUMENT, FILCH_ALIAS. The
 * check calls the callbacks again; use the check only to explain a refusal. error may be null. */
filch_status fl_batch_check(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_error *error);
/* Fills the views of a chunk; false: fl_batch_check would refuse the chunk. */
bool fl_batch_views(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views);
/* Returns the bytes that the chunk of grains [lo, hi) needs in a memory node. *whole: bytes shared
 * by every chunk, not included. */
uint64_t fl_batch_bytes(const fl_batch *batch, uint32_t lo, uint32_t hi, uint32_t place,
                        uint64_t *whole);
/* Fills the operands of the chunk, for devices with separate memory; views: from fl_batch_views. */
void fl_batch_operands(const fl_batch *batch, uint64_t lo, uint64_t hi, filch_view *views,
                       fl_operand *operands);

#endif
