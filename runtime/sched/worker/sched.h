/* SPDX-License-Identifier: Apache-2.0 */
/* The scheduler: its workers, the table of active jobs, and who sleeps.
 *
 * Active jobs. Jobs whose devices take from ranges (graphs with roots, batches) stand in a table of
 * slots. A worker that reads a job through the table first sets its hazard pointer (Michael, IEEE
 * TPDS 15, 2004); a job object is used again only when no hazard names it. At the end of a step a
 * hazard is null or names a job of which the worker holds an item, so no reuse waits longer than a
 * step.
 *
 * Sleepers. A worker that finds nothing sets its bit in idle, looks once more, and sleeps on its
 * event. A thread that publishes work makes a full fence and then wakes a worker whose bit is
 * set. */
#ifndef FL_SCHED_WORKER_SCHED_H
#define FL_SCHED_WORKER_SCHED_H

#include "device/pool.h"
#include "filch/policy.h"
#include "graph/scheduler.h"
#include "sched/worker/pending.h"
#include "sched/worker/speed_record.h"
#include "sched/worker/tuning.h"
#include "sched/worker/worker.h"
#include "sync/ranked.h"

/* Tasks for every device, oldest first. */
typedef struct fl_common {
    fl_mutex lock;
    fl_ranked_lists tasks;   /* in the list of rank 0; under the lock */
    _Atomic uint32_t filled; /* nonzero: a task is listed; release, after the lists */
} fl_common;

/* Tasks set aside in deep nested waits (ready/aside.h). */
typedef struct fl_aside {
    fl_mutex lock;
    fl_job_part *jobs;       /* jobs that have such tasks, newest first; under the lock */
    _Atomic uint32_t filled; /* nonzero: there is a task; release, after the list */
} fl_aside;

/* Counts of a function's calls and of refused answers; relaxed: statistics. */
typedef struct fl_asked {
    _Atomic uint64_t times, refused;
} fl_asked;

/* The policy: functions of the host or none, tasks for every device, and counts of the answers. */
typedef struct fl_rules {
    filch_policy kind; /* named by the host */
    char name[32];
    filch_policy_desc with;    /* functions of the policy, or nulls */
    bool is_true;              /* predictions are true where a device tells the true speed */
    _Atomic uint64_t *free_at; /* where tasks are placed: predicted end of a device's work, indexed
                                  by device; relaxed */
    _Atomic uint32_t placing;  /* threads between asking the policy and sending the task; relaxed:
                                  for predictions */
    fl_common common;
    _Alignas(64) fl_asked places;
    fl_asked chunks, steals;
    _Atomic uint32_t strays; /* answers of place() with a nonexistent device */
} fl_rules;

static inline bool fl_rules_place(const fl_rules *rules)
{
    return rules->with.place != NULL;
}

/* Waits for few live tasks of open graphs (worker/pressure.h). */
typedef struct fl_pressure {
    _Alignas(64) _Atomic uint64_t turn; /* changes after which waits look again */
    _Atomic uint32_t nested;            /* waits inside tasks */
    _Atomic uint32_t eased;             /* a thread sleeps until many tasks have ended */
} fl_pressure;

/* Jobs that wait for the host's events, broadcasts under way, and the worker that polls both
 * (execute/host_events.h). */
typedef struct fl_event_polling {
    uint32_t worker; /* the first worker whose device polls events, or is simulated with a memory of
                        its own. Constant */
    fl_inbox arrived;
    /* The worker's. */
    filch_job *waiting; /* linked by next */
    uint64_t since;     /* arrival of the newest job */
    uint64_t look_at;   /* time of the next poll */
} fl_event_polling;

typedef struct fl_event_queue fl_event_queue;
typedef struct fl_shared_queue fl_shared_queue;

#define FL_ACTIVE_SLOTS 256
#define FL_IDLE_WORDS (FL_DEVICE_LIMIT / 64)
/* Sets of FL_IMPL_* bits. */
#define FL_KINDS ((FL_IMPL_HOST_FN | FL_IMPL_CUDA) + 1)

/* Attention mask of the scheduler: what a worker looks at beside its own queues. */
enum {
    FL_ATTEND_CAREFUL = 1, /* a ready task may have to go elsewhere */
    FL_ATTEND_OFFERS = 2,  /* mailboxes are used, or the shared ready queue is */
    FL_ATTEND_SHARED = 4,  /* the shared ready queue may hold tasks */
    FL_ATTEND_LEFT = 8,    /* some device had no capacity for a part of a batch; never cleared */
    FL_ATTEND_RACES = 16   /* some chunk was begun that may be run twice; never cleared */
};

struct fl_sched {
    fl_scheduler scheduler; /* the graph layer's view; first member */
    fl_core *core;
    fl_pool *pool;
    double *scores; /* one a device */
    fl_worker *workers;
    uint32_t count;
    filch_policy policy; /* FILCH_POLICY_STATIC: no theft; otherwise rules decides */
    fl_rules rules;
    fl_shared_queue *shared_queue; /* null: none */
    filch_drive drive;
    bool looks_ahead; /* some device computes by itself: look-ahead applies */
    /* Devices differ in place, and thus perhaps in what they can run, or in implementations: hints
     * may be stale or exist twice. */
    bool mails;
    /* Devices are cores of one memory, each with a thread: ready tasks go to the core that has
     * their data (place.c). */
    bool keeps_holders;
    _Atomic uint32_t attention; /* FL_ATTEND_*; relaxed: advice, and whoever sets a bit wakes */
    uint32_t shared_jobs; /* jobs behind FL_ATTEND_SHARED; under the lock of the shared queue */
    fl_thread *threads;
    uint32_t thread_count;
    _Atomic uint32_t stopping;

    /* Written for every short task, by workers and by threads that make tasks ready outside of a
     * worker: on separate lines, apart from members that all threads read. */
    _Alignas(64) _Atomic uint32_t searching; /* workers looking for work; a hint: relaxed */
    _Alignas(64) _Atomic uint64_t routed;    /* tasks without a preferred device; relaxed: turns */
    _Atomic uint64_t owed; /* time that sleeping cores could have worked, for tasks made ready
                              outside of a worker, ns; bits of a double */

    fl_mutex slots_lock;
    _Alignas(64) _Atomic uint64_t active[FL_ACTIVE_SLOTS / 64]; /* bits of slots in use */
    _Atomic(filch_job *) slots[FL_ACTIVE_SLOTS];
    filch_job *queue, *queue_last; /* jobs without a slot, under slots_lock */

    uint64_t kinds[FL_KINDS][FL_IDLE_WORDS]; /* sets of devices, by their implementations */
    fl_backlog backlogs[FL_KINDS];           /* likewise */
    /* Sets of devices that some codelet runs on, by number. Written under slots_lock, before the
     * number is published. */
    uint64_t able[FL_ABLE_UNKNOWN][FL_IDLE_WORDS];
    uint32_t able_count;
    _Alignas(64) _Atomic uint64_t idle[FL_IDLE_WORDS];
    /* Numbers of hungry devices, with a memory of their own among several memory nodes: without
     * work, or with nothing found to steal beside the present item. hungry: those that are not slow
     * or keep up (decide/slow.h). hungry_fast: those that are not slow. Relaxed: guesses. */
    _Atomic uint32_t hungry, hungry_fast;
    /* Number of offline devices, and number of changes of their presence or of their waiting
     * tasks. */
    _Atomic uint32_t offline_count;
    _Atomic uint64_t roster;
    _Atomic uint32_t dividing; /* open divisions; relaxed: a guess */
    fl_pendings pendings;
    fl_pressure pressure;
    fl_aside aside;
    _Atomic uint32_t stacks_full; /* deep waits that found their stack half used; relaxed */

    fl_event_polling polling;

    fl_speed_file speed_file; /* speeds of earlier runs */
    _Atomic uint64_t recalled, saves;
    _Atomic uint32_t saved; /* a filch_status */

    fl_mutex done_lock; /* for threads that wait for a job */
    fl_cond done;
    _Alignas(64) _Atomic uint32_t waiters;
    /* Poll mode: threads of the host. */
    _Atomic uint32_t drivers;   /* threads that step workers, or run tasks */
    _Atomic uint32_t listeners; /* threads that sleep until the turn moves */
    _Atomic uint64_t turn;      /* moves whenever a sleeping thread may find work */
    fl_mutex drive_lock;        /* virtual clock: one thread drives at a time */
    fl_event_queue *events;     /* of the virtual clock, else null */
    bool has_moved;             /* some worker made progress; the driver's */
};

/* Whether one of the FL_ATTEND_* bits is set. */
static inline bool fl_sched_attends(const fl_sched *sched, uint32_t bits)
{
    /* Relaxed: see the member. */
    return (fl_load_relaxed(&sched->attention) & bits) != 0;
}

static inline uint64_t fl_worker_clock(const fl_worker *w)
{
    return fl_clock_now(&w->sched->core->clock);
}

static inline fl_places *fl_worker_places(const fl_worker *w)
{
    return w->sched->core->places;
}

/* The worker that the calling thread is, or null. */
static inline fl_worker *fl_sched_self(const fl_sched *sched)
{
    return fl_tss_get(sched->core->worker);
}

/* Goal of a wait: one job, all jobs, or what a function says. */
typedef struct fl_goal {
    const filch_job *job; /* null: until *running is 0, or the function says so */
    const _Atomic uint64_t *running;
    /* Not null: the wait ends when the function returns true; the job is helped on. Called by the
     * waiting thread, maybe under done_lock. */
    bool (*is_over)(void *wait);
    void *wait;
} fl_goal;

static inline bool fl_goal_is_met(const fl_goal *goal)
{
    if (goal->is_over != NULL) {
        return goal->is_over(goal->wait);
    }
    /* Acquire: the jobs' writes are visible with the end. */
    return goal->job != NULL ? fl_load_acquire(&goal->job->result) != (int32_t)FILCH_NOT_READY
                             : fl_load_acquire(goal->running) == 0;
}

#endif
