/* SPDX-License-Identifier: Apache-2.0 */
/* Implements the graph layer's scheduler interface (graph/scheduler.h), and init and fini of the
 * scheduler. */
#include "sched/drive/scheduler.h"

#include "sched/account/account.h"
#include "sched/decide/policy.h"
#include "sched/drive/driver.h"
#include "sched/execute/give.h"
#include "sched/execute/host_events.h"
#include "sched/execute/job_start.h"
#include "sched/execute/launch.h"
#include "sched/execute/next.h"
#include "sched/execute/pending.h"
#include "sched/execute/pressure.h"
#include "sched/execute/shared_queue.h"
#include "sched/execute/step.h"
#include "sched/model/predict.h"
#include "sched/model/slowness.h"
#include "sched/model/speed.h"
#include "sched/model/speed_file.h"
#include "sched/worker/device.h"
#include "sched/worker/event_queue.h"
#include "sched/worker/graph_part.h"
#include "sched/worker/jobs.h"
#include "sched/worker/presence.h"
#include "sched/worker/pressure.h"
#include "sched/worker/sched.h"
#include "sched/worker/wake.h"
#include <stdio.h>
#include <string.h>

static fl_sched *sched_of(fl_scheduler *self)
{
    return (fl_sched *)(void *)self;
}

static uint8_t able(fl_scheduler *self, const uint64_t *set)
{
    fl_sched *sched = sched_of(self);
    uint32_t devices = 0;
    for (uint32_t word = 0; word < FL_IDLE_WORDS; ++word) {
        devices += (uint32_t)__builtin_popcountll(set[word]);
    }
    if (devices == sched->count) {
        return FL_ABLE_ALL;
    }
    uint32_t number = FL_ABLE_ALL + 1;
    fl_mutex_lock(&sched->slots_lock);
    while (number < sched->able_count &&
           memcmp(sched->able[number], set, sizeof sched->able[number]) != 0) {
        ++number;
    }
    if (number == sched->able_count && number < FL_ABLE_UNKNOWN) {
        memcpy(sched->able[number], set, sizeof sched->able[number]);
        ++sched->able_count;
    }
    fl_mutex_unlock(&sched->slots_lock);
    return (uint8_t)number;
}

static bool device_is_lost(fl_scheduler *self, uint32_t device)
{
    const fl_worker *w = &sched_of(self)->workers[device];
    /* The backend may have found a failure not yet noticed by the worker. */
    return fl_worker_has_failed(w) || fl_device_is_lost(w->device, NULL);
}

/* --- Jobs --- */

static fl_traffic *job_traffic(fl_scheduler *self, const filch_job *job)
{
    return fl_job_traffic(job, sched_of(self)->count);
}

/* --- Waiting and totals --- */

static void job_done(fl_scheduler *self, filch_job *job)
{
    fl_sched *sched = sched_of(self);
    (void)job;
    fl_sched_tell(sched);
    /* Workers waiting for the job inside a task sleep as idle workers do. */
    fl_sched_wake(sched, sched->count);
}

static filch_status wait_blocking(fl_sched *sched, const fl_goal *goal, uint64_t deadline)
{
    filch_status status = FILCH_OK;
    /* Seq_cst: precedes the second look, against job_done. */
    fl_add_seq_cst(&sched->waiters, 1);
    fl_fence_seq_cst();
    fl_mutex_lock(&sched->done_lock);
    while (!fl_goal_is_met(goal)) {
        uint64_t t = fl_time_now();
        if (t >= deadline) {
            status = FILCH_TIMEOUT;
            break;
        }
        if (deadline == FL_TIME_NEVER) {
            fl_cond_wait(&sched->done, &sched->done_lock);
        } else {
            fl_cond_wait_for(&sched->done, &sched->done_lock, deadline - t);
        }
    }
    fl_mutex_unlock(&sched->done_lock);
    fl_sub_seq_cst(&sched->waiters, 1);
    return status;
}

/* --- Waits in poll mode --- */

/* A thread of the host that waits, and drives the workers meanwhile. */
typedef struct polled_wait {
    fl_sched *sched;
    const fl_goal *goal;
    uint64_t seen;   /* the turn before the last round */
    uint64_t nap_ns; /* length of the next nap; 0: none since the last work, or sleep */
} polled_wait;

static bool must_look(void *of)
{
    const polled_wait *wait = of;
    /* Acquire: what was made before the turn. */
    return fl_load_acquire(&wait->sched->turn) != wait->seen || fl_goal_is_met(wait->goal);
}

/* Sleeps until the goal is met, the turn has moved since the last round, or the time has come. */
static void listen(polled_wait *wait, uint64_t until)
{
    const fl_goal look = {.is_over = must_look, .wait = wait};
    /* Seq_cst: precedes the second look, against fl_sched_turn. */
    fl_add_seq_cst(&wait->sched->listeners, 1);
    (void)wait_blocking(wait->sched, &look, until);
    fl_sub_seq_cst(&wait->sched->listeners, 1);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Sleeps after a round without work. The round tells enough to sleep until the turn moves, if each
 * worker was stepped and nobody else made work meanwhile. Otherwise the thread takes naps, each
 * twice as long as the last. Where the turn has moved, it looks again at once; if in vain, the turn
 * does not end the naps: some steps hand on, each time, what nobody here can run. */
static void rest_polling(polled_wait *wait, const fl_polled *polled, bool are_others,
                         uint64_t deadline)
{
    uint64_t until = earlier(polled->wake_at, deadline);
    uint64_t nap = wait->nap_ns != 0 ? wait->nap_ns : FL_NAP_LEAST_NS;
    /* Acquire: as in must_look. */
    bool has_turned = fl_load_acquire(&wait->sched->turn) != wait->seen;
    if (!has_turned && !are_others && !polled->has_missed) {
        wait->nap_ns = 0;
        listen(wait, until);
    } else if (has_turned && wait->nap_ns == 0) {
        wait->nap_ns = nap;
    } else {
        wait->nap_ns = earlier(2 * nap, FL_POLL_MODE_NAP_NS);
        until = earlier(until, fl_time_now() + nap);
        if (has_turned) {
            (void)wait_blocking(wait->sched, wait->goal, until);
        } else {
            listen(wait, until);
        }
    }
}

filch_status fl_sched_poll_wait(fl_sched *sched, const fl_goal *goal, uint64_t deadline,
                                bool *worked)
{
    polled_wait wait = {.sched = sched, .goal = goal};
    if (worked != NULL && fl_goal_is_met(goal)) {
        *worked = false; /* a job that is complete needs no round */
        return FILCH_OK;
    }
    for (;;) {
        fl_polled polled = {0};
        bool is_over;
        uint64_t now;
        fl_drive_enter(sched);
        do {
            /* Acquire: as in must_look. */
            wait.seen = fl_load_acquire(&sched->turn);
            fl_drive_round(sched, &polled);
            is_over = fl_goal_is_met(goal) || (worked != NULL && polled.worked);
            now = fl_time_now();
        } while (polled.goes_on && !is_over && now < deadline);
        bool are_others = fl_drive_leave(sched, &polled);
        if (is_over || now >= deadline) {
            if (worked != NULL) {
                *worked = polled.worked;
            }
            return is_over ? FILCH_OK : FILCH_TIMEOUT;
        }
        wait.nap_ns = polled.worked ? 0 : wait.nap_ns;
        rest_polling(&wait, &polled, are_others, deadline);
    }
}

/* --- Waits --- */

static uint64_t deadline_after(const fl_sched *sched, double seconds)
{
    uint64_t start = fl_clock_now(&sched->core->clock);
    uint64_t range = seconds < 0 ? FL_TIME_NEVER : fl_time_from_seconds(seconds);
    return range > FL_TIME_NEVER - start ? FL_TIME_NEVER : start + range;
}

filch_status fl_sched_wait(fl_sched *sched, fl_goal goal, double seconds)
{
    if (fl_goal_is_met(&goal)) {
        return FILCH_OK;
    }
    uint64_t deadline = deadline_after(sched, seconds);
    if (sched->pool->is_virtual) {
        return fl_drive_virtual(sched, goal, deadline);
    }
    return sched->drive == FILCH_DRIVE_POLL ? fl_sched_poll_wait(sched, &goal, deadline, NULL)
                                            : wait_blocking(sched, &goal, deadline);
}

static bool is_callers(const filch_job *job, const void *worker)
{
    return fl_worker_is_inside(worker, job);
}

static bool is_inside(fl_scheduler *self)
{
    return fl_sched_self(sched_of(self)) != NULL;
}

static bool may_wait(fl_scheduler *self)
{
    const fl_worker *w = fl_sched_self(sched_of(self));
    return w == NULL || !w->ready.in_step;
}

static filch_status job_wait(fl_scheduler *self, filch_job *job, double seconds)
{
    fl_sched *sched = sched_of(self);
    fl_goal goal = {.job = job};
    fl_worker *w = fl_sched_self(sched);
    if (w == NULL || fl_goal_is_met(&goal)) {
        return fl_sched_wait(sched, goal, seconds);
    }
    if (w->ready.in_step || fl_worker_is_inside(w, job)) {
        return fl_core_fail(sched->core, FILCH_WRONG_STATE, "filch_job_wait", job->label, "%s",
                            w->ready.in_step ? "a callback cannot wait"
                                             : "a task cannot wait for the job it belongs to");
    }
    if (fl_job_waits_for(job, is_callers, w)) {
        return fl_core_fail(sched->core, FILCH_WRONG_STATE, "filch_job_wait", job->label,
                            "the job waits for the calling task's own, through a handle or in line "
                            "behind a run of its graph");
    }
    return fl_drive_nested(w, goal, deadline_after(sched, seconds), "filch_job_wait");
}

static filch_status count_wait(fl_scheduler *self, const _Atomic uint64_t *count, double seconds)
{
    fl_sched *sched = sched_of(self);
    fl_goal goal = {.running = count};
    if (fl_sched_self(sched) != NULL) {
        return fl_goal_is_met(&goal) ? FILCH_OK : FILCH_TIMEOUT;
    }
    return fl_sched_wait(sched, goal, seconds);
}

static uint64_t open_live(fl_scheduler *self, const filch_job *job, uint64_t *others)
{
    const fl_sched *sched = sched_of(self);
    const fl_worker *w = fl_sched_self(sched);
    uint64_t live = fl_pressure_live(sched, job);
    *others = w != NULL ? fl_pressure_others(w, job, live) : live;
    return live;
}

static filch_status open_wait(fl_scheduler *self, const fl_open_wait *what, double seconds)
{
    static const filch_status ends[] = {[FL_PRESSURE_ON] = FILCH_TIMEOUT,
                                        [FL_PRESSURE_BELOW] = FILCH_OK,
                                        [FL_PRESSURE_STOPPED] = FILCH_CANCELLED,
                                        [FL_PRESSURE_VAIN] = FILCH_DEADLOCK};
    fl_sched *sched = sched_of(self);
    fl_worker *w = fl_sched_self(sched);
    if (w != NULL && (w->ready.in_step || fl_worker_waits_deep(w))) {
        return w->ready.in_step ? FILCH_WRONG_STATE : FILCH_DEADLOCK;
    }
    fl_pressure_wait wait;
    fl_pressure_begin(&wait, sched, what, w != NULL);
    fl_goal goal = {.job = what->job, .is_over = fl_pressure_is_over, .wait = &wait};
    filch_status status =
        w == NULL ? fl_sched_wait(sched, goal, seconds)
                  : fl_drive_nested(w, goal, deadline_after(sched, seconds), what->call);
    fl_pressure_end_wait(&wait);
    return status == FILCH_OK ? ends[wait.end] : status;
}

static void open_closed(fl_scheduler *self)
{
    fl_pressure_turn(sched_of(self));
}

/* --- Beginning and end --- */

static void set_scores(fl_sched *sched, const double *scores)
{
    double total = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        double score = scores != NULL ? scores[d] : sched->pool->devices[d].info.score;
        sched->scores[d] = score > 0 && score <= 1e300 ? score : 0; /* NaN fails the test, too */
        total += sched->scores[d];
    }
    for (uint32_t d = 0; total == 0 && d < sched->count; ++d) {
        sched->scores[d] = 1;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->pool->devices[d].info.score = sched->scores[d];
    }
}

static void fill_interface(fl_sched *sched)
{
    sched->scheduler = (fl_scheduler){
        .device_count = sched->count,
        .looks_ahead = sched->looks_ahead,
        .recalls = fl_speed_file_is_on(&sched->speed_file),
        .speed_bytes = sched->count * sizeof(fl_speed),
        .codelet_init = fl_pending_codelet_init,
        .able = able,
        .device_is_lost = device_is_lost,
        .owner = fl_job_owner,
        .estimate = fl_predict_estimate,
        .graph_bytes = sizeof(fl_graph_part),
        .graph_seal = fl_graph_seal_part,
        .graph_drop = fl_graph_drop_part,
        .job_bytes = sizeof(fl_job_part) + sched->count * (sizeof(fl_share) + sizeof(fl_traffic)),
        .job_reset = fl_job_reset_part,
        .job_drop = fl_job_drop_part,
        .job_start = fl_job_start,
        .job_await = fl_host_events_add,
        .job_cancelled = fl_presence_cancelled,
        .job_add = fl_account_add,
        .job_skip = fl_account_skip,
        .job_traffic = job_traffic,
        .job_retire = fl_job_retire,
        .job_is_quiet = fl_jobs_is_quiet,
        .task_ready = fl_sched_task_ready,
        .is_inside = is_inside,
        .may_wait = may_wait,
        .job_wait = job_wait,
        .count_wait = count_wait,
        .open_live = open_live,
        .open_wait = open_wait,
        .open_closed = open_closed,
        .job_stats = fl_account_stats,
        .job_report = fl_account_report,
        .least_ns = fl_predict_least_ns,
        .job_done = job_done,
    };
}

static filch_status init_locks(fl_sched *sched)
{
    filch_status status = fl_mutex_init(&sched->slots_lock);
    if (status != FILCH_OK) {
        return status;
    }
    if ((status = fl_mutex_init(&sched->done_lock)) != FILCH_OK) {
        goto slots;
    }
    if ((status = fl_cond_init(&sched->done)) != FILCH_OK) {
        goto done;
    }
    if ((status = fl_mutex_init(&sched->drive_lock)) != FILCH_OK) {
        goto cond;
    }
    if ((status = fl_mutex_init(&sched->aside.lock)) != FILCH_OK) {
        goto drive;
    }
    if ((status = fl_pendings_init(sched)) == FILCH_OK) {
        return FILCH_OK;
    }
    fl_mutex_fini(&sched->aside.lock);
drive:
    fl_mutex_fini(&sched->drive_lock);
cond:
    fl_cond_fini(&sched->done);
done:
    fl_mutex_fini(&sched->done_lock);
    slots:
    fl_mutex_fini(&sched->slots_lock);
    return status;
}

static void fini_locks(fl_sched *sched)
{
    fl_pendings_fini(sched);
    fl_mutex_fini(&sched->aside.lock);
    fl_mutex_fini(&sched->drive_lock);
    fl_cond_fini(&sched->done);
    fl_mutex_fini(&sched->done_lock);
    fl_mutex_fini(&sched->slots_lock);
}

static filch_status init_workers(fl_sched *sched)
{
    for (uint32_t d = 0; d < sched->count; ++d) {
        filch_status status =
            fl_worker_init(&sched->workers[d], sched, &sched->pool->devices[d], d);
        fl_ledger_init(&sched->workers[d].ledger,
                       &sched->backlogs[sched->pool->devices[d].implementations % FL_KINDS],
                       fl_clock_now(&sched->core->clock));
        if (status != FILCH_OK) {
            while (d-- > 0) {
                fl_worker_fini(&sched->workers[d]);
            }
            return status;
        }
    }
    return FILCH_OK;
}

void fl_sched_sort_devices(fl_sched *sched)
{
    const fl_device *devices = sched->pool->devices;
    memset(sched->kinds, 0, sizeof sched->kinds);
    sched->able_count = FL_ABLE_ALL + 1;
    for (uint32_t d = 0; d < sched->count; ++d) {
        sched->kinds[devices[d].implementations % FL_KINDS][d / 64] |= (uint64_t)1 << d % 64;
        sched->looks_ahead |= fl_device_computes(&devices[d]) && !fl_rules_place(&sched->rules);
        sched->mails |= devices[d].place != devices[0].place ||
                        devices[d].implementations != devices[0].implementations;
    }
    bool are_cores =
        sched->count > 1 && sched->drive == FILCH_DRIVE_THREADS && !sched->pool->is_virtual;
    for (uint32_t d = 0; d < sched->count; ++d) {
        are_cores = are_cores && devices[d].is_synchronous;
    }
    sched->keeps_holders = are_cores && !sched->mails && sched->rules.kind == FILCH_POLICY_STEAL;
    sched->core->keeps_holders = sched->keeps_holders;
    /* Relaxed: no second thread is running yet. */
    bool is_careful =
        sched->mails || sched->policy == FILCH_POLICY_STATIC || fl_rules_place(&sched->rules);
    fl_store_relaxed(&sched->attention, (sched->mails ? FL_ATTEND_OFFERS : 0u) |
                                            (is_careful ? FL_ATTEND_CAREFUL : 0u));
}

static void stop_threads(fl_sched *sched)
{
    /* Seq_cst: precedes the loads of the idle bits. */
    fl_store_seq_cst(&sched->stopping, 1);
    for (uint32_t i = 0; i < sched->thread_count; ++i) {
        fl_sched_wake_worker(sched, i);
    }
    for (uint32_t i = 0; i < sched->thread_count; ++i) {
        fl_thread_join(sched->threads[i]);
    }
    sched->thread_count = 0;
}

static filch_status start_threads(fl_sched *sched)
{
    if (sched->drive != FILCH_DRIVE_THREADS) {
        return FILCH_OK;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        filch_status status =
            fl_thread_start(&sched->threads[d], fl_drive_thread, &sched->workers[d]);
        if (status != FILCH_OK) {
            stop_threads(sched);
            return status;
        }
        sched->thread_count = d + 1;
    }
    return FILCH_OK;
}

/* Makes the event queue of a virtual clock. */
static filch_status init_agenda(fl_sched *sched)
{
    const fl_memory *memory = &sched->core->memory;
    if (!sched->pool->is_virtual) {
        return FILCH_OK;
    }
    sched->events = fl_alloc_zeroed(memory, sizeof *sched->events);
    if (sched->events == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    return fl_event_queue_init(sched->events, memory, sched->count);
}

static void free_arrays(fl_sched *sched)
{
    const fl_memory *memory = &sched->core->memory;
    if (sched->events != NULL) {
        fl_event_queue_fini(sched->events, memory);
        fl_free(memory, sched->events, sizeof *sched->events);
    }
    fl_free(memory, sched->scores, sched->count * sizeof *sched->scores);
    fl_free_aligned(memory, sched->workers, sched->count * sizeof *sched->workers, 64);
    fl_free(memory, sched->threads, sched->count * sizeof *sched->threads);
}

static void open_history(fl_sched *sched)
{
    fl_speed_file *history = &sched->speed_file;
    fl_speed_file_open(history, &sched->core->memory, sched->core->settings.speeds);
    if (history->loaded != FILCH_OK && history->loaded != FILCH_NOT_FOUND) {
        fl_log_write(&sched->core->log, FILCH_LOG_WARNING,
                     "speeds of earlier runs are not known: %s (%s)", sched->core->settings.speeds,
                     filch_status_name(history->loaded));
    }
}

filch_status fl_sched_init(fl_sched *sched, fl_core *core, fl_pool *pool,
                           const fl_sched_config *config, filch_error *error)
{
    const fl_memory *memory = &core->memory;
    const char *what = "memory for its workers";
    sched->core = core;
    sched->pool = pool;
    sched->count = (uint32_t)pool->count;
    sched->policy = config->policy;
    sched->drive = config->drive;
    sched->scores = fl_alloc(memory, sched->count * sizeof *sched->scores);
    sched->workers = fl_alloc_aligned(memory, sched->count * sizeof *sched->workers, 64);
    sched->threads = fl_alloc(memory, sched->count * sizeof *sched->threads);
    filch_status status = FILCH_OUT_OF_MEMORY;
    if (sched->scores == NULL || sched->workers == NULL || sched->threads == NULL ||
        init_agenda(sched) != FILCH_OK) {
        goto arrays;
    }
    set_scores(sched, config->scores);
    if ((status = fl_rules_init(sched, config->policy, config->custom)) != FILCH_OK) {
        what = "memory for its policy";
        goto arrays;
    }
    fl_sched_sort_devices(sched);
    if ((status = fl_shared_queue_open(sched)) != FILCH_OK) {
        what = "memory for its shared ready queue";
        goto rules;
    }
    fl_host_events_init(sched);
    if ((status = init_locks(sched)) != FILCH_OK) {
        what = "locks";
        goto rules;
    }
    if ((status = init_workers(sched)) != FILCH_OK) {
        goto locks;
    }
    fl_slow_init(sched);
    open_history(sched);
    /* Relaxed: no second thread is running yet. */
    fl_store_relaxed(&sched->saved, (uint32_t)FILCH_NOT_READY);
    fill_interface(sched);
    core->scheduler = &sched->scheduler;
    if ((status = start_threads(sched)) == FILCH_OK) {
        return FILCH_OK;
    }
    what = "worker threads";
    fl_speed_file_close(&sched->speed_file);
    for (uint32_t d = 0; d < sched->count; ++d) {
        fl_worker_fini(&sched->workers[d]);
    }
locks:
    fini_locks(sched);
rules:
    fl_shared_queue_close(sched);
    fl_rules_fini(sched);
arrays:
    free_arrays(sched);
    return fl_error_fill(error, (fl_fault){.status = status, .call = "filch_runtime_create"},
                         "the scheduler has no %s", what);
}

void fl_sched_fini(fl_sched *sched)
{
    stop_threads(sched);
    fl_pendings_quiesce(sched);
    for (uint32_t d = 0; d < sched->count; ++d) {
        if (sched->workers[d].offload != NULL) {
            fl_launch_drop_scratch(&sched->workers[d]);
        }
        fl_worker_fini(&sched->workers[d]);
    }
    fl_speed_file_close(&sched->speed_file);
    fini_locks(sched);
    fl_shared_queue_close(sched);
    fl_rules_fini(sched);
    free_arrays(sched);
}
