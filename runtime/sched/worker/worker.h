/* SPDX-License-Identifier: Apache-2.0 */
/* The worker of one device, as data: a state machine that never blocks. Drivers (driver.h) call its
 * step (step.h) from a pinned thread, from filch_poll, or under a virtual clock. */
#ifndef FL_SCHED_WORKER_WORKER_H
#define FL_SCHED_WORKER_WORKER_H

#include "backend/backend.h"
#include "graph/job/job.h"
#include "observe/trace.h"
#include "sched/model/speed.h"
#include "sched/worker/item.h"
#include "sched/worker/operands.h"
#include "sched/worker/parts.h"
#include "sched/worker/share.h"
#include "sync/deque.h"
#include "sync/division.h"
#include "sync/eventcount.h"
#include "sync/inbox.h"
#include "sync/mailbox.h"
#include "sync/race.h"

_Static_assert(FL_MEMBER_WORDS * 64 >= FL_DEVICE_LIMIT, "any device may take part");

typedef struct fl_sched fl_sched;

/* Result of a step. */
typedef enum fl_act {
    FL_ACT_RUN,  /* synchronous device: the driver runs worker->item, then steps again */
    FL_ACT_MORE, /* progress was made: step again */
    FL_ACT_WAIT  /* nothing to do until worker->wake_at, or until notified */
} fl_act;

/* What the worker of a core does. */
typedef enum fl_worker_state {
    FL_WORKER_RUNNING,   /* looks into its inbox after the present task */
    FL_WORKER_SEARCHING, /* has nothing to do, and looks for work */
    FL_WORKER_ASLEEP     /* has to be woken */
} fl_worker_state;

typedef struct fl_worker {
    /* Read by thieves and by workers that make tasks ready. */
    fl_deque levels[FL_LEVELS];
    _Alignas(64) _Atomic uint32_t
        level_mask; /* levels that may hold entries; written by the owner */
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
    fl_inbox moved; /* claimed tasks for which another device had no capacity */
    fl_mailbox mailbox;
    fl_ledger ledger;
    _Alignas(64) _Atomic(filch_job *) hazard;
    fl_eventcount event;
    _Atomic uint32_t held;     /* poll mode: a thread drives this worker */
    _Atomic uint32_t is_lost;  /* the device failed; set once, by the owner */
    _Atomic uint32_t duties;   /* FL_DUTY_*; FL_DUTY_OFFLINE changes under sched->slots_lock */
    _Atomic uint32_t nested;   /* waits inside items on the owner's stack; release, by the owner */
    _Atomic uint32_t is_quiet; /* offline, and nothing is in flight any more */
    _Atomic uint32_t racing; /* first runs in flight here that may get a backup run; the owner's */
    fl_race races[FL_RACES];
    _Atomic uint32_t open; /* open divisions; a hint, relaxed: written by who opens or ends one */
    fl_division divisions[FL_DIVISIONS];

    /* Constant. A line apart, as all threads read it. */
    _Alignas(64) fl_sched *sched;
    fl_device *device;
    uint32_t index;

    /* The owner's from here on. */
    _Alignas(64) uint64_t roster; /* sched->roster when the offline worker last gave tasks away */
    uint32_t queued; /* entries pushed less entries popped: an upper bound of the deques' sizes */
    uint32_t mask;   /* copy of level_mask */
    bool pushed;     /* entries were queued since the worker last looked for idle workers */
    double owed_ns;  /* time that sleeping cores could have worked for this worker, ns (wake.c) */
    uint64_t
        robbed;     /* count of the present job's stolen tasks when an idle worker was last woken */
    double dear_ns; /* owed_ns at which the next idle worker is woken */
    bool in_step;
    fl_task *next_task; /* the next-task slot: ready, known to the owner alone */
    fl_task *adopted;   /* claimed by a theft, to be run next */
    bool adopted_poisoned;
    bool is_dividing; /* asynchronous: a piece of a task is in flight, and nothing else is begun */
    fl_link *kept;    /* claimed tasks, none poisoned, that could not run when picked: run next */
    const filch_graph *graph; /* graph of the current job */
    filch_job *job; /* current job: its retired items are counted in `retired`, its time as busy */
    fl_share *share;
    int64_t retired;
    uint64_t busy_since;
    bool has_item;
    fl_item item; /* synchronous: the running item */
    fl_frame *frames;
    fl_in_flight *flights; /* asynchronous: flight_count elements */
    uint32_t flight_count, free_flight, in_flight;
    uint32_t computing;           /* items in flight that are not past on their lane */
    uint64_t long_ns;             /* predicted time of the long items that compute, ns */
    uint32_t homing, homing_last; /* items past whose results are on the way home, oldest first */
    uint32_t homing_count;
    uint64_t clock;      /* time of a recent launch, ns */
    uint32_t clock_age;  /* launches since */
    uint64_t last_done;  /* when an item was last seen past, ns */
    fl_offload *offload; /* null where all devices share the host's memory */
    bool is_fetching;    /* synchronous: the item waits for its operands */
    bool has_stalled;    /* the item `stalled` waits until other items give memory back */
    bool is_hungry;      /* counted in sched->hungry */
    fl_item stalled;
    uint32_t piece;      /* grains at once of a chunk that is too large for the memory; 0: all */
    uint64_t stalled_at; /* when the stalled item was last tried, ns */
    filch_error loss;    /* how the device failed */
    filch_error late;    /* of the item that failed last while in flight */
    filch_error error;   /* of the item that was refused last */
    uint64_t wake_at;
    uint64_t idle_since; /* ns; 0: not idle; with ledger.is_gap: start of a measured dispatch */
    uint64_t ready_at;   /* when a theft that was refused pays, ns; FL_TIME_NEVER: not by itself */
    uint64_t nap_ns;     /* length of the last sleep without a wake-up; 0: has just worked */
    fl_watch watch;      /* one victim of the last refusals */
    fl_watch next_watch; /* victim to watch after the present theft */
    fl_explore trial;
    fl_slow lag;
    fl_victim_order victim_order;
    double brought_ns;    /* time to bring the operands of the last stolen task, ns */
    filch_job *completed; /* jobs whose last item was counted in this step; linked by next */
    fl_backup_run runs[FL_RACES]; /* one a race, and second runs in free elements */
    uint64_t spoil_at; /* no backup run begins before, ns: the device refused the last one */
    char *shadow;      /* private output of a run that is over, kept for the next run; or null */
    size_t private_bytes;
    filch_view *views; /* FL_MOST_VIEWS views of the innermost running item */
    char *scratch;
    size_t scratch_bytes;
    _Atomic(fl_trace_ring *) trace; /* null: not recording */
    /* Time since the last theft that the worker was idle beside work it could steal, and when it
     * was last seen so, ns; 0: the worker ran an item since (steal.c). */
    double waited_ns;
    uint64_t waited_at;
    double theft_ns; /* cores: recent mean time of a theft, from the look on */
    /* Cores: the kind of task that item_ns is of, and the means of kinds that the worker ran
     * before, by their codelets: thieves predict by the present kind (place.c). */
    const filch_codelet *kind;
    fl_kind kinds[FL_KIND_SLOTS];
} fl_worker;

filch_status fl_worker_init(fl_worker *worker, fl_sched *sched, fl_device *device, uint32_t index);
void fl_worker_fini(fl_worker *worker);

#endif
