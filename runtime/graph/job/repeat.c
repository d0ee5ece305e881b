/* SPDX-License-Identifier: Apache-2.0 */
/* Repetitions. The caller's job stands for all runs and never starts. Each run is a job of its own,
 * known to filch alone.
 *
 * A run that has ended parks: its uses stay granted in the access queues, and the graph stays busy.
 * The next run takes the uses over in one step under core->lock, so no other job and no hold of the
 * host comes between. A stop lets the parked run leave the queues.
 *
 * One thread at a time takes turns with a repetition: it asks the predicate and starts runs. The
 * thread that ends a run takes the turns, unless another thread has them: with lag 1 a run may end
 * while the predicate is asked about the run before. The other thread then finds the parked run
 * under core->lock, before it gives up the turns under the lock. No parked run stays behind. */
#include "filch/repeat.h"

#include <string.h>

#include "graph/job/job.h"
#include "graph/job/job_trace.h"
#include "graph/job/line.h"

#define CALL "filch_graph_repeat"
#define LEAST_SIZE sizeof(filch_repeat_desc)

struct fl_repeat {
    filch_job *job; /* the caller's */
    filch_graph *graph;
    filch_repeat_desc desc;
    filch_submit_desc submit; /* of the runs; its label is the job's */
    /* Guarded by core->lock. */
    bool is_parked;      /* the newest run has ended */
    bool has_turns;      /* a thread asks and starts */
    bool is_answered;    /* the predicate said stop, or failed */
    uint64_t ended;      /* runs ended */
    filch_status result; /* of the newest run ended */
    uint64_t whole;      /* runs ended that the predicate is asked about */
    uint64_t asked;      /* runs the predicate was asked about */
    filch_status stop;   /* result of the job; FILCH_NOT_READY: the repetition goes on */
    /* Copies of the value for the last two runs: the copy for a run is written while the predicate
     * may read the copy for the run before. The end of run k + 2 follows the answer about run k. */
    _Alignas(16) unsigned char values[2][FILCH_REPEAT_VALUE_BYTES];
};

typedef enum fl_turn { FL_TURN_ASK, FL_TURN_START, FL_TURN_END, FL_TURN_NONE } fl_turn;

/* --- Runs --- */

/* Takes over a run whose work has all retired: parks the run, asks the predicate, and starts the
 * next run or ends the repetition. On return the run's object may serve another job. Calls the
 * caller's functions; called without locks. */
static void end_run(filch_job *run, filch_status result, filch_job **ready);

static void tie(fl_repeat *repeat, filch_job *run)
{
    run->repeat = repeat;
    run->whole = repeat->job;
    run->ended = end_run;
}

/* Fills a new job for a run of the graph. */
static void fill_run(fl_repeat *repeat, filch_job *run)
{
    filch_graph *graph = repeat->graph;
    tie(repeat, run);
    run->graph = graph;
    run->ran = graph;
    run->ran_number = graph->number;
    run->blocked = 0;
    fl_store_relaxed(&run->refs, 1); /* relaxed, here and below: the run is ours alone */
    fl_store_relaxed(&run->total, graph->task_count - graph->own_count);
    fl_store_relaxed(&run->run_once, graph->restartable_count);
    fl_store_relaxed(&run->remaining, (int64_t)graph->task_count);
}

/* Counts the tasks of a run that is about to start. Relaxed: a statistic. */
static void count_total(fl_repeat *repeat, const filch_job *run)
{
    fl_add_relaxed(&repeat->job->total, fl_load_relaxed(&run->total));
}

/* Gives the parked run's uses to the next run. The caller holds core->lock. */
static void take_over(fl_repeat *repeat, filch_job *next)
{
    fl_core *core = repeat->job->object.core;
    filch_job *last = repeat->job->present;
    fl_job_end_uses(last, repeat->result);
    fl_line_replace(last, next);
    next->sequence = ++core->jobs->submissions;
    last->graph = NULL;
    repeat->job->present = next;
    repeat->is_parked = false;
}

/* Starts the next run, unless the job was cancelled meanwhile or, against expectation, a job has no
 * memory. */
static void start_next(fl_repeat *repeat)
{
    filch_graph *graph = repeat->graph;
    fl_core *core = repeat->job->object.core;
    filch_job *last = repeat->job->present; /* parked: no other thread changes the newest run */
    fl_graph_rank_between(graph);
    filch_job *next = fl_job_new(core, &repeat->submit, "");
    if (next != NULL) {
        fill_run(repeat, next);
    }
    fl_mutex_lock(&core->lock);
    /* Relaxed: a later cancellation finds the next run, under the lock. */
    bool is_cancelled = fl_load_relaxed(&repeat->job->cancelled) != 0;
    if (next != NULL && !is_cancelled) {
        take_over(repeat, next);
    } else {
        repeat->stop = is_cancelled ? FILCH_CANCELLED : FILCH_OUT_OF_MEMORY;
    }
    fl_mutex_unlock(&core->lock);
    if (is_cancelled || next == NULL) {
        if (next != NULL) {
            fl_job_discard(next);
        }
        return;
    }
    count_total(repeat, next);
    fl_job_drop(last);
    fl_job_begin_range(next);
    fl_job_begin(next);
}

/* --- The end --- */

/* Records the job's first failure. */
static void fail(filch_job *job, const filch_error *error)
{
    fl_mutex_lock(&job->lock);
    if (fl_load_relaxed(&job->failed) == 0) {
        job->error = *error;
        fl_store_release(&job->failed, 1); /* release: error is written first */
    }
    fl_mutex_unlock(&job->lock);
}

/* Ends the repetition, whose last run is parked. Collects in *ready the jobs that may start; null:
 * starts them. */
static void end(fl_repeat *repeat, filch_job **ready)
{
    filch_job *job = repeat->job, *last = repeat->job->present;
    filch_job *waiting = NULL, **later = ready != NULL ? ready : &waiting;
    fl_core *core = job->object.core;
    filch_status result = repeat->stop, of_last = repeat->result;
    if (result == FILCH_OUT_OF_MEMORY) {
        filch_error error = FILCH_ERROR_INIT;
        fl_error_fill(&error, (fl_fault){.status = result, .call = CALL, .label = job->label},
                      "no memory for the next run of %s%s%s",
                      FL_NAME("job ", job->label, "the job"));
        fail(job, &error);
        result = FILCH_TASK_FAILED;
    }
    job->finished = last->finished;
    /* From now on a cancellation, and a wait that asks what the job waits for, find no run. */
    fl_mutex_lock(&core->lock);
    job->present = NULL;
    fl_mutex_unlock(&core->lock);
    fl_free(&core->memory, repeat, sizeof *repeat);
    fl_job_unreserve(core);
    fl_job_unreserve(core);
    fl_job_leave(last, of_last, later);
    if (fl_job_has_end(job)) {
        fl_jobs_begin_busy(&waiting);
    }
    fl_job_conclude(last, of_last); /* first: who sees the job complete may destroy the runtime */
    fl_job_conclude(job, result);
    fl_jobs_append(later, job->after);
    fl_jobs_begin(waiting);
    /* The last run kept the runtime from being drained until now. */
    fl_job_close(last);
    core->scheduler->job_done(core->scheduler, job);
    fl_job_drop(job);
}

/* --- Turns --- */

/* Chooses the next step. The caller has the turns, and holds core->lock. */
static fl_turn choose(fl_repeat *repeat)
{
    const filch_repeat_desc *desc = &repeat->desc;
    bool asks = desc->predicate != NULL;
    /* Relaxed: a cancellation seen late is seen by start_next, or finds the next run. */
    bool is_cancelled = fl_load_relaxed(&repeat->job->cancelled) != 0;
    bool must_ask = asks && !repeat->is_answered && !is_cancelled && repeat->asked < repeat->whole;
    bool is_last = desc->max_runs != 0 && repeat->ended == desc->max_runs;
    bool goes_on = repeat->is_parked && repeat->stop == FILCH_NOT_READY;
    if (goes_on && !must_ask && (is_last || is_cancelled)) {
        repeat->stop = is_last ? FILCH_OK : FILCH_CANCELLED;
        goes_on = false;
    }
    if (goes_on && !is_last && (!asks || repeat->asked + desc->lag >= repeat->ended)) {
        return FL_TURN_START;
    }
    return must_ask                                               ? FL_TURN_ASK
           : repeat->is_parked && repeat->stop != FILCH_NOT_READY ? FL_TURN_END
                                                                  : FL_TURN_NONE;
}

/* Asks the predicate about a run. */
static void ask(fl_repeat *repeat, uint64_t run)
{
    filch_job *job = repeat->job;
    fl_core *core = job->object.core;
    const filch_repeat_desc *desc = &repeat->desc;
    int answer =
        desc->predicate(run, desc->value != NULL ? repeat->values[run % 2] : NULL, desc->user);
    filch_status stop = answer == FILCH_REPEAT_AGAIN  ? FILCH_NOT_READY
                        : answer == FILCH_REPEAT_STOP ? FILCH_OK
                                                      : FILCH_TASK_FAILED;
    if (stop == FILCH_TASK_FAILED) {
        filch_error error = FILCH_ERROR_INIT;
        fl_error_fill(&error,
                      (fl_fault){.status = stop, .native_code = answer, .label = job->label},
                      "the predicate of %s%s%s returned %d about run %llu",
                      FL_NAME("job ", job->label, "the job"), answer, (unsigned long long)run);
        fail(job, &error);
    }
    fl_mutex_lock(&core->lock);
    repeat->asked = run;
    repeat->is_answered = stop != FILCH_NOT_READY;
    if (repeat->stop == FILCH_NOT_READY || stop == FILCH_TASK_FAILED) {
        repeat->stop = stop; /* else the run behind has ended the repetition */
    }
    fl_mutex_unlock(&core->lock);
}

/* Takes turns until a run is in progress with nothing to ask, or the repetition is over. ready: as
 * in end. */
static void take_turns(fl_repeat *repeat, filch_job **ready)
{
    fl_core *core = repeat->job->object.core;
    for (;;) {
        fl_mutex_lock(&core->lock);
        fl_turn turn = choose(repeat);
        uint64_t run = repeat->asked + 1;
        repeat->has_turns = turn != FL_TURN_NONE;
        fl_mutex_unlock(&core->lock);
        /* Without the turns the repetition may be gone. */
        if (turn == FL_TURN_NONE) {
            return;
        }
        if (turn == FL_TURN_END) {
            end(repeat, ready);
            return;
        }
        if (turn == FL_TURN_ASK) {
            ask(repeat, run);
        } else {
            start_next(repeat);
        }
    }
}

static void end_run(filch_job *run, filch_status result, filch_job **ready)
{
    fl_repeat *repeat = run->repeat;
    filch_job *job = repeat->job;
    fl_core *core = job->object.core;
    /* The predicate is asked about no other run, and a withdrawn one has not the value. */
    if (repeat->desc.value != NULL && result == FILCH_OK) {
        /* Before the lock: `ended` is ours, since no second run is in progress. */
        memcpy(repeat->values[(repeat->ended + 1) % 2], repeat->desc.value,
               repeat->desc.value_bytes);
    }
    core->scheduler->job_add(core->scheduler, job, run);
    if (result == FILCH_TASK_FAILED) {
        fl_mutex_lock(&run->lock);
        filch_error error = run->error;
        fl_mutex_unlock(&run->lock);
        fail(job, &error);
    }
    fl_mutex_lock(&core->lock);
    ++repeat->ended;
    repeat->result = result;
    fl_store_relaxed(&job->runs, repeat->ended); /* relaxed: a statistic */
    /* Relaxed: the task that finished the run has retired. */
    bool is_finished = fl_load_relaxed(&run->cancelled) == FL_STOP_FINISHED;
    if (result != FILCH_OK || is_finished) {
        repeat->stop = repeat->stop != FILCH_TASK_FAILED ? result : repeat->stop;
    } else {
        ++repeat->whole;
    }
    repeat->is_parked = true;
    bool takes = !repeat->has_turns;
    repeat->has_turns = true;
    fl_mutex_unlock(&core->lock);
    if (takes) {
        take_turns(repeat, ready);
    }
}

/* --- Submission --- */

static filch_status refuse(const filch_graph *graph, filch_status status, const char *text)
{
    return fl_core_fail(graph->object.core, status, CALL, graph->label, "%s", text);
}

static filch_status check(const filch_graph *graph, const filch_repeat_desc *desc,
                          const filch_submit_desc *submit)
{
    if (submit->cuda_wait_count != 0 || submit->cuda_signal != NULL) {
        return refuse(graph, FILCH_UNSUPPORTED, "a repetition has no CUDA events");
    }
    const char *wrong = desc->lag > 1 ? "lag is over 1"
                        : (desc->value == NULL) != (desc->value_bytes == 0)
                            ? "value and value_bytes contradict each other"
                        : desc->value_bytes > FILCH_REPEAT_VALUE_BYTES
                            ? "value_bytes is over FILCH_REPEAT_VALUE_BYTES, 256: let a task make "
                              "one number of many"
                            : NULL;
    return wrong == NULL ? FILCH_OK : refuse(graph, FILCH_INVALID_ARGUMENT, wrong);
}

/* Makes the caller's job, which never starts, and the description of the runs. Null: no memory. */
static fl_repeat *make(filch_graph *graph, const filch_repeat_desc *desc,
                       const filch_submit_desc *submit)
{
    fl_core *core = graph->object.core;
    fl_repeat *repeat = fl_alloc_zeroed(&core->memory, sizeof *repeat);
    filch_job *job = repeat != NULL ? fl_job_new(core, submit, graph->label) : NULL;
    if (job == NULL) {
        fl_free(&core->memory, repeat, sizeof *repeat);
        return NULL;
    }
    job->blocked = 0; /* the job waits for the present run alone */
    job->is_repetition = true;
    *repeat = (fl_repeat){.job = job,
                          .graph = graph,
                          .desc = *desc,
                          .submit = FILCH_SUBMIT_DESC_INIT,
                          .stop = FILCH_NOT_READY};
    repeat->submit.on_failure = submit->on_failure;
    repeat->submit.label = job->label;
    return repeat;
}

/* Undoes reserve, and make where it succeeded. */
static void unmake(fl_core *core, fl_repeat *repeat)
{
    if (repeat != NULL) {
        fl_job_discard(repeat->job);
        fl_free(&core->memory, repeat, sizeof *repeat);
    }
    fl_job_unreserve(core);
    fl_job_unreserve(core);
}

/* Makes spare jobs for the runs: the caller's job and the parked run exist beside the next run. */
static filch_status reserve(fl_core *core)
{
    filch_status status = fl_job_reserve(core);
    if (status == FILCH_OK && (status = fl_job_reserve(core)) != FILCH_OK) {
        fl_job_unreserve(core);
    }
    return status;
}

/* Makes the first run, in the access queues. */
static filch_status make_first(fl_repeat *repeat, filch_job **run)
{
    filch_graph *graph = repeat->graph;
    fl_latch_lock(&graph->lock);
    filch_status status = graph->kind == FILCH_GRAPH_CLOSED && graph->task_count == 0
                              ? refuse(graph, FILCH_INVALID_ARGUMENT, "the graph has no tasks")
                              : fl_graph_seal_to_run(graph, &repeat->submit, CALL);
    if (status == FILCH_OK) {
        status = fl_graph_make_job(graph, &repeat->submit, CALL, run);
    }
    if (status == FILCH_OK) {
        fl_job_lend(*run, false, NULL);
        /* No lock: the run has not started, and no other thread knows the repetition's job. */
        tie(repeat, *run);
        repeat->job->present = *run;
    }
    fl_latch_unlock(&graph->lock);
    return status;
}

filch_status filch_graph_repeat(filch_graph *graph, const filch_repeat_desc *repeat,
                                const filch_submit_desc *submit, filch_job **job)
{
    static const filch_repeat_desc plain = FILCH_REPEAT_DESC_INIT;
    filch_status status = fl_object_check(graph, FL_MAGIC_GRAPH);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = graph->object.core;
    const filch_repeat_desc *desc = repeat != NULL ? repeat : &plain;
    filch_submit_desc full;
    filch_job *run = NULL;
    status =
        fl_size_check(core, desc, LEAST_SIZE, sizeof *desc, "the description", CALL, graph->label);
    status = status == FILCH_OK ? fl_submit_check(core, submit, CALL, graph->label, &full) : status;
    status = status == FILCH_OK ? check(graph, desc, &full) : status;
    if (status != FILCH_OK) {
        return status;
    }
    fl_repeat *made = NULL;
    if (reserve(core) != FILCH_OK) {
        return refuse(graph, FILCH_OUT_OF_MEMORY, "no memory for a repetition");
    }
    made = make(graph, desc, &full);
    if (made == NULL) {
        unmake(core, NULL);
        return refuse(graph, FILCH_OUT_OF_MEMORY, "no memory for a repetition");
    }
    status = make_first(made, &run);
    if (status != FILCH_OK) {
        unmake(core, made);
        return status;
    }
    count_total(made, run);
    fl_job_lend(made->job, true, job);
    fl_job_submit(run);
    return FILCH_OK;
}
