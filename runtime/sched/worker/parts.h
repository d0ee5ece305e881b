/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a worker: queues, signals, ready tasks, the current job, items in flight, stall, idle
 * time, theft, backup runs, calls. Operands have a header of their own (operands.h). */
#ifndef FL_SCHED_WORKER_PARTS_H
#define FL_SCHED_WORKER_PARTS_H

#include "observe/trace.h"
#include "sched/worker/item.h"
#include "sched/worker/job_part.h"
#include "sync/deque.h"
#include "sync/division.h"
#include "sync/eventcount.h"
#include "sync/inbox.h"
#include "sync/mailbox.h"

_Static_assert(FL_MEMBER_WORDS * 64 >= FL_DEVICE_LIMIT, "any device may take part");

/* Attention mask of a worker: what its step looks at beside work. */
enum {
    FL_DUTY_POLL_EVENTS = 1, /* polls the host's events (host_events.h) */
    FL_DUTY_WITHDRAWN = 2,   /* the host has taken the device offline */
    FL_DUTY_LEFT = 4,        /* the device is offline by its description */
    FL_DUTY_OFFLINE = FL_DUTY_WITHDRAWN | FL_DUTY_LEFT
};

/* Divisible tasks that a worker has begun and not ended, at a time; further tasks run in one call.
 */
#define FL_DIVISIONS 4

/* An item that waits for nested work; one a level of nesting. */
typedef struct fl_frame {
    fl_item item;
    const filch_job *goal; /* the job that the item waits for */
    /* Worker of the item. In poll mode the frames of one thread are of several workers. */
    struct fl_worker *worker;
    struct fl_frame *outer;
    uint32_t depth; /* 1: outermost */
    /* Of a deep wait that takes any work when it is stuck (drive/driver.c). */
    bool takes_any;  /* for one look */
    bool has_nested; /* an item that the wait has taken has waited in turn */
    bool goes_on;    /* the last such look had work that did not wait: the next one comes at once,
                        unless that work has woken somebody */
    bool has_asked, has_stack; /* whether the stack was looked at, and has room */
    int64_t floors[FL_LEVELS]; /* ends of the worker's deques when the wait began */
} fl_frame;

/* A deeper wait takes only work of its own job, and of jobs that its job stands behind
 * (nested_wait.h): every further item may wait in turn, and the stack is finite. */
#define FL_DEEP_WAIT 16

/* Victim of a throttled theft: by prediction the victim ends its work before the thief would. */
typedef struct fl_watch {
    uint32_t victim;
    uint64_t steps; /* the victim's count of steps at `since` */
    uint64_t since; /* ns; 0: no watch */
} fl_watch;

/* Exploration of a device that steal throttling keeps from tasks (explore.h). */
typedef struct fl_explore {
    double best;          /* least value that item_ns ever had; 0: none yet */
    uint64_t at;          /* end of the last timed task, ns */
    uint64_t next, after; /* time of the next exploration; time between the last and the next, ns */
    uint32_t count;       /* tasks timed, up to the number of a mean */
    bool is_on;           /* the next timed task is an exploration's */
    bool is_suspected;    /* the last task was far faster than the mean; one task proves nothing */
} fl_explore;

/* Whether a device with its own memory is slow, or weakly linked (slow.h). */
typedef struct fl_slow {
    _Atomic uint32_t is_on;
    bool is_far;     /* no device's memory is linked to this device, while two others are linked */
    uint32_t alike;  /* timed tasks in a row that said "not slow" when it was slow, up to a bound */
    uint32_t unlike; /* timed tasks in a row that say "slow" while it is not */
    /* Time of the last task over its time on the fastest device: bits of a double, written by the
     * worker; and that ratio by the scores. Relaxed: an estimate. */
    _Atomic uint64_t times;
    double by_score;
    _Atomic uint32_t given; /* claimed tasks from slow devices that are not begun; an estimate */
} fl_slow;

/* Victim order for many devices: preferred victims, and the position to go on (victims.h). */
#define FL_KNOWN 8
typedef struct fl_victim_order {
    uint32_t at; /* positions behind the worker's own that were looked at in turn */
    uint32_t known_count, known_next;
    uint32_t known[FL_KNOWN];
} fl_victim_order;

/* Kinds of tasks whose mean times a core's worker remembers. */
#define FL_KIND_SLOTS 8u
#define FL_KIND_SHIFT 29 /* leaves a number below 8 of 32 bits */

typedef struct fl_kind {
    const filch_codelet *codelet; /* a name, never followed */
    uint64_t mean;                /* bits of a double, ns */
} fl_kind;

/* Activity of a core's worker. */
typedef enum fl_worker_state {
    FL_WORKER_RUNNING,   /* looks into its inbox after the present task */
    FL_WORKER_SEARCHING, /* has nothing to do, and looks for work */
    FL_WORKER_ASLEEP     /* has to be woken */
} fl_worker_state;

/* Where ready tasks stand on a worker, and what thieves and workers that make tasks ready read. */
typedef struct fl_worker_queues {
    fl_deque levels[FL_LEVELS];
    _Alignas(64) _Atomic uint32_t level_mask; /* levels that may hold entries; by the owner */
    /* Bits of a double: recent mean time of a task, ns; for a core, of the present kind; 0:
     * unknown. */
    _Atomic uint64_t item_ns;
    /* Bytes of the main tile of a recent task (graph/task/task.h). Relaxed: an estimate. */
    _Atomic uint32_t cargo;
    /* An fl_worker_state where the scheduler keeps holders; else FL_WORKER_RUNNING. A line of its
     * own, which changes seldom: workers that make tasks ready read it. */
    _Alignas(64) _Atomic uint32_t state;
    /* Steps ever made. Relaxed: tells a busy worker from a stuck one. A line apart, as it changes
     * most often. */
    _Alignas(64) _Atomic uint64_t steps;
    fl_inbox inbox;
    fl_inbox claimed; /* claimed tasks sent by other workers */
    fl_mailbox mailbox;
} fl_worker_queues;

/* Signals between a worker and other threads, beside tasks. */
typedef struct fl_worker_signals {
    _Alignas(64) _Atomic(filch_job *) hazard;
    fl_eventcount event;
    _Atomic uint32_t held;       /* poll mode: a thread drives this worker */
    _Atomic uint32_t has_failed; /* the device failed; set once, by the owner */
    _Atomic uint32_t duties;     /* FL_DUTY_*; FL_DUTY_OFFLINE changes under sched->slots_lock */
    _Atomic uint32_t nested;   /* waits inside items on the owner's stack; release, by the owner */
    _Atomic uint32_t is_quiet; /* offline, and nothing is in flight any more */
    _Atomic uint32_t racing; /* first runs in flight here that may get a backup run; the owner's */
    fl_race races[FL_RACES];
    _Atomic uint32_t open; /* open divisions; a hint, relaxed: written by who opens or ends one */
    fl_division divisions[FL_DIVISIONS];
} fl_worker_signals;

/* The owner's view of its ready tasks. */
typedef struct fl_worker_ready {
    uint64_t roster; /* sched->roster when the offline worker last gave tasks away */
    uint32_t queued; /* entries pushed less entries popped: an upper bound of the deques' sizes */
    uint32_t mask;   /* copy of queues.level_mask */
    bool pushed;     /* entries were queued since the worker last looked for idle workers */
    double owed_ns;  /* time that sleeping cores could have worked for this worker, ns (wake.c) */
    uint64_t
        robbed;     /* count of the present job's stolen tasks when an idle worker was last woken */
    double dear_ns; /* owed_ns at which the next idle worker is woken */
    bool in_step;
    fl_task *next_task; /* the next-task slot: ready, known to the owner alone */
    fl_link *claimed;   /* claimed tasks, to be run next */
    fl_task *part;      /* a task in whose team the worker is: the link may be in another's list */
    bool is_dividing; /* asynchronous: a piece of a task is in flight, and nothing else is begun */
} fl_worker_ready;

/* The current job, and the running item. */
typedef struct fl_worker_now {
    const filch_graph *graph; /* graph of the current job */
    filch_job *job; /* its retired items are counted in `retired`, its time counts as busy */
    fl_share *share;
    _Atomic int64_t retired; /* relaxed: written by the owner, read for the live view */
    uint64_t busy_since;
    fl_item item; /* synchronous: the running item, if any */
    fl_frame *frames;
    filch_job *completed; /* jobs whose last item was counted in this step; linked by next */
    /* Something was launched, ended or given away, also where the step has nothing more to do. For
     * drivers that tell: they reset it. */
    bool has_worked;
} fl_worker_now;

/* Items in flight on an asynchronous device. */
typedef struct fl_worker_pipeline {
    fl_in_flight *flights; /* flight_count elements */
    uint32_t flight_count, free_flight, in_flight;
    uint32_t computing; /* items in flight that are not past on their lane */
    uint64_t long_ns;   /* predicted time of the long items that compute, ns */
    uint32_t writing_back,
        writing_back_last; /* items past whose results are on the way home, oldest first */
    uint32_t writing_back_count;
    uint64_t clock;     /* time of a recent launch, ns */
    uint32_t clock_age; /* launches since */
    uint64_t last_done; /* when an item was last seen past, ns */
} fl_worker_pipeline;

/* An item that waits for operands or for memory, and errors of items and of the device. */
typedef struct fl_worker_stall {
    bool is_hungry;      /* counted in sched->hungry */
    bool is_hungry_fast; /* counted in sched->hungry_fast */
    fl_item stalled;     /* waits for memory while its state is FL_ITEM_STALLED */
    uint32_t piece;      /* grains at once of a chunk that is too large for the memory; 0: all */
    uint64_t stalled_at; /* when the stalled item was last tried, ns */
    filch_error failure; /* how the device failed */
    filch_error late;    /* of the item that failed last while in flight */
    filch_error error;   /* of the item that was refused last */
} fl_worker_stall;

/* When a worker without work looks again. */
typedef struct fl_worker_idle {
    uint64_t wake_at;
    uint64_t idle_since; /* ns; 0: not idle; with ledger.is_gap: start of a measured dispatch */
    uint64_t ready_at;   /* when a theft that was refused pays, ns; FL_TIME_NEVER: not by itself */
    uint64_t nap_ns;     /* length of the last sleep without a wake-up; 0: has just worked */
} fl_worker_idle;

/* Theft, and whether the device is slow. */
typedef struct fl_worker_theft {
    fl_watch watch;      /* one victim of the last refusals */
    fl_watch next_watch; /* victim to watch after the present theft */
    fl_explore explore;
    fl_slow slow;
    fl_victim_order victim_order;
    /* Decaying mean of the missing bytes of stolen tasks (note_brought in theft.c): each theft
     * halves the weight of the earlier ones; some 25 thefts that lack nothing make it 0. */
    uint64_t brought_bytes;
    /* Time that the worker was idle beside work whose transfer is dear, less the transfers of the
     * thefts since, and when it was last seen so, ns. 0: the worker ran an item since, or the last
     * look found no such work (theft.c). */
    double waited_ns;
    uint64_t waited_at;
    bool is_waiting; /* the present look has found such work */
    double theft_ns; /* cores: recent mean time of a theft, from the look on */
    /* Cores: the kind of task that queues.item_ns is of, and the means of kinds that the worker ran
     * before, by their codelets: thieves predict by the present kind (place.c). */
    const filch_codelet *kind;
    fl_kind kinds[FL_KIND_SLOTS];
} fl_worker_theft;

/* Backup runs. */
typedef struct fl_worker_backup {
    fl_backup_run runs[FL_RACES]; /* one a race, and second runs in free elements */
    uint64_t next_at; /* no backup run begins before, ns: the device refused the last one */
    char *output;     /* private output of a run that is over, kept for the next run; or null */
    size_t output_bytes;
} fl_worker_backup;

/* Bytes of a caller's text about a failure. */
#define FL_CALL_TEXT 192

/* The reason that a host function gave for its failure, and the item that the function ran. */
typedef struct fl_call_text {
    fl_item_name item;
    char text[FL_CALL_TEXT];
} fl_call_text;

/* Untimed tasks of one codelet that a worker runs one after another for the current job: one event
 * of the trace (sched/account/stretch.h). */
typedef struct fl_trace_stretch {
    const filch_codelet *codelet; /* null: no stretch is open */
    /* The codelet, if its further tasks are as short as the first and have no label; else null. */
    const filch_codelet *uniform;
    struct fl_speed *speed; /* of the codelet */
    fl_trace_ring *ring;    /* receives the open stretch */
    uint64_t from; /* end of the current job's last event, or begin of the worker's time on the job,
                      ns; 0: unknown */
    fl_trace_tasks tasks;
} fl_trace_stretch;

/* Memory and trace for the call of a codelet. */
typedef struct fl_worker_call {
    filch_view *views; /* FL_MOST_VIEWS views of the innermost running item */
    char *scratch;
    size_t scratch_bytes;
    fl_call_text *text;               /* null: no function gave a reason yet */
    struct fl_pending_task *running;  /* record of the innermost call that may pend, or null */
    struct fl_pending_task *returned; /* record of an item in state FL_ITEM_PENDING */
    _Atomic(fl_trace_ring *) trace;   /* null: not recording */
    fl_trace_stretch stretch;
} fl_worker_call;

#endif
