/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for few live tasks of an open graph.
 *
 * Live is a task of the caller's that was added and has not ended. To a task that asks, neither it
 * nor tasks that wait inside their functions count: a task that adds and waits in turn is no
 * obstacle to itself.
 *
 * A thread of the host waits until enough tasks have ended, as for a job. A task helps: its worker
 * runs further tasks on the task's stack (nested_wait.h). Nobody hangs, because a task waits no
 * longer than some task of the graph can go on without it:
 *
 *   active = made ready - ended - waiting,  over all tasks of the graph, filch's own, too.
 *
 * A task that is ready, runs, or is pending is active. While active > 0, some worker, or the ender
 * of a pending task, takes the graph on. At 0 every live task waits itself, or waits for a task
 * that does; more ends may never come, so the wait is in vain and says so. A task that is added
 * nevertheless is active again, or stands behind the waiting task: the wait that gave up is the one
 * way to the end of that task.
 *
 * A gate for another job's end counts as active from its making, because the other job goes on by
 * itself: the order of jobs has no circles. The exception is a job with a task that waits, maybe
 * for this graph: gates behind such a job do not count.
 *
 * Depth. Each wait that helps may run a task that waits and helps. Waits end as in vain
 * FL_DEEP_WAIT deep, so that the stack does not grow with the number of tasks.
 *
 * Counts are the workers' own, written without read-modify-writes; a look sums them up. Reading
 * `ended` first makes the sum of active tasks too large rather than too small while tasks move on,
 * and both questions of a look, how many are live and how many active, are put to the same counts.
 * The last change before a standstill is seen: its worker wrote its counts, then pushed the ended
 * task (seq_cst), then looked for waits when it left the job (fl_pressure_left); the wait was
 * announced (seq_cst) before the look at the pushes. A worker that sees no wait is seen by the
 * look; otherwise it moves the turn, and the wait looks again. */
#include "sched/execute/pressure.h"

#include "sched/worker/pressure.h"

/* Value of `pressed` between the announcement of a wait and its look: more than tasks can end. */
#define FL_PRESSED ((uint64_t)1 << 62)

uint64_t fl_pressure_live(const fl_sched *sched, const filch_job *job)
{
    uint64_t ended = 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        /* Acquire: the effects of the ended tasks. */
        ended += fl_load_acquire(&fl_job_share(job, d)->ended);
    }
    /* Read last: the number is too large rather than too small. */
    uint64_t added = fl_load_relaxed(&job->total);
    return added > ended ? added - ended : 0;
}

uint64_t fl_pressure_others(const fl_worker *w, const filch_job *job, uint64_t live)
{
    uint64_t waiting = fl_load_acquire(&job->suspended);
    waiting += w->now.item.state != FL_ITEM_DONE && w->now.item.job == job;
    return live > waiting ? live - waiting : 0;
}

/* The counts of one look, of all devices. Read in the order of the members. */
typedef struct fl_pressure_look {
    uint64_t before;     /* tasks added, at first */
    uint64_t ended, own; /* tasks of the caller's, and of filch, that have ended */
    uint64_t waiting;    /* tasks that wait in their functions */
    uint64_t gates;      /* gates that stand before another job's end */
    uint64_t readied;    /* tasks made ready, and gates */
    uint64_t added;      /* tasks added, at last */
} fl_pressure_look;

static fl_pressure_look look_at(const fl_sched *sched, const filch_graph *graph,
                                const filch_job *job)
{
    /* Acquire, up to the gates: keeps the order, and what went before a count is seen, too. */
    fl_pressure_look look = {.before = fl_load_acquire(&job->total)};
    for (uint32_t d = 0; d < sched->count; ++d) {
        look.ended += fl_load_acquire(&fl_job_share(job, d)->ended);
        look.own += fl_load_acquire(&fl_job_share(job, d)->ended_own);
    }
    look.waiting = fl_load_acquire(&job->suspended);
    look.gates = fl_load_acquire(&graph->gate_count);
    look.readied = fl_load_relaxed(&graph->readied);
    for (uint32_t d = 0; d < sched->count; ++d) {
        look.readied += fl_load_relaxed(&fl_job_share(job, d)->readied);
    }
    look.gates -= fl_load_relaxed(&graph->gates_begun);
    look.added = fl_load_relaxed(&job->total);
    return look;
}

static bool has_waiting_task(const filch_job *job, const void *user)
{
    (void)user;
    return fl_load_acquire(&job->suspended) != 0;
}

/* Tells whether no task of the graph can go on but those that wait. True at the moment of reading
 * `waiting`: as long as a count read before, or after, differs from its value at that moment, the
 * sum of active tasks is too large. */
static bool is_vain(const fl_pressure_look *look, filch_job *job)
{
    uint64_t out = look->ended + look->own + look->waiting;
    return look->readied <= out ||
           (look->readied - out <= look->gates && fl_job_waits_for(job, has_waiting_task, NULL));
}

static bool is_stopped(const fl_open_wait *what)
{
    const filch_job *job = what->job;
    /* Relaxed: who changes one moves the turn afterwards. */
    return fl_load_relaxed(&job->cancelled) != 0 ||
           (what->is_add && fl_load_relaxed(&job->remaining) <= FL_OPEN_BIAS / 2);
}

static bool is_any_idle(const fl_sched *sched)
{
    uint64_t idle = 0;
    for (uint32_t word = 0; word < FL_IDLE_WORDS && word * 64 < sched->count; ++word) {
        idle |= fl_load_relaxed(&sched->idle[word]); /* behind a fence */
    }
    return idle != 0;
}

/* Number of tasks that have to end before the wait looks again; `live` are live. */
static uint64_t needed(const fl_pressure_wait *wait, uint64_t live)
{
    uint64_t target = wait->what->below - 1;
    if (wait->is_eased) {
        fl_sched *sched = wait->sched;
        /* Fence: a worker sets its idle bit before it looks at eased. Where a device has nothing to
         * do, every task counts; else a sleep for each task would cost more than short tasks. */
        fl_store_relaxed(&sched->pressure.eased, 1);
        fl_fence_seq_cst();
        target = is_any_idle(sched) ? target : wait->what->low;
    }
    return live - target;
}

/* Lowers `pressed` to `need`, less what was counted down since it was `base`. False: look again. */
static bool press(_Atomic uint64_t *pressed, uint64_t base, uint64_t need)
{
    uint64_t now = fl_load_seq_cst(pressed);
    for (;;) {
        uint64_t ended = base - now;
        if (now == 0 || now > base || ended >= need) {
            return false;
        }
        if (now <= need - ended || fl_cas_seq_cst(pressed, &now, need - ended)) {
            return true;
        }
    }
}

static fl_pressure_end judge(const fl_pressure_wait *wait)
{
    const fl_open_wait *what = wait->what;
    _Atomic uint64_t *pressed = &fl_part_of_graph(what->graph)->pressed;
    for (;;) {
        uint64_t base = fl_load_seq_cst(pressed);
        if (base == 0 && fl_cas_seq_cst(pressed, &base, FL_PRESSED)) {
            base = FL_PRESSED;
        }
        /* Seq_cst, behind the announcement: the counts of all who pushed before are visible. */
        (void)fl_load_seq_cst(&what->graph->retired.head);
        fl_pressure_look look = look_at(wait->sched, what->graph, what->job);
        /* To a task, those that wait do not count; the waiting task itself is one of them. */
        uint64_t gone = look.ended + (wait->is_nested ? look.waiting : 0);
        if (look.added < gone + what->below) {
            return FL_PRESSURE_BELOW;
        }
        if (is_stopped(what)) {
            return FL_PRESSURE_STOPPED;
        }
        if (wait->is_nested && is_vain(&look, what->job)) {
            /* So many were live at that moment, too, or else tasks were added since. */
            if (look.before >= gone + what->below) {
                return FL_PRESSURE_VAIN;
            }
        } else if (press(pressed, base, needed(wait, look.added - gone))) {
            return FL_PRESSURE_ON;
        }
    }
}

bool fl_pressure_is_over(void *of)
{
    fl_pressure_wait *wait = of;
    /* Acquire: what moved the turn. */
    uint64_t turn = fl_load_acquire(&wait->sched->pressure.turn);
    if (wait->end == FL_PRESSURE_ON && turn != wait->seen) {
        wait->seen = turn;
        wait->end = judge(wait);
    }
    return wait->end != FL_PRESSURE_ON;
}

void fl_pressure_begin(fl_pressure_wait *wait, fl_sched *sched, const fl_open_wait *what,
                       bool is_nested)
{
    *wait = (fl_pressure_wait){.sched = sched,
                               .what = what,
                               .is_nested = is_nested,
                               .is_eased = !is_nested && sched->drive == FILCH_DRIVE_THREADS &&
                                           sched->events == NULL && what->low < what->below - 1,
                               /* Any other value: the first look comes at once. */
                               .seen = fl_load_relaxed(&sched->pressure.turn) - 1,
                               .end = FL_PRESSURE_ON};
    /* Seq_cst, both: before the first look. */
    fl_add_seq_cst(&fl_part_of_graph(what->graph)->waits, 1);
    fl_add_seq_cst(&sched->pressure.nested, is_nested);
}

void fl_pressure_end_wait(fl_pressure_wait *wait)
{
    fl_sched *sched = wait->sched;
    fl_graph_part *part = fl_part_of_graph(wait->what->graph);
    fl_sub_seq_cst(&sched->pressure.nested, wait->is_nested);
    if (fl_sub_seq_cst(&part->waits, 1) == 1) {
        fl_store_seq_cst(&part->pressed, 0);
        /* A wait that has begun meanwhile may have lost its number. */
        if (fl_load_seq_cst(&part->waits) != 0) {
            fl_pressure_turn(sched);
        }
    }
}
