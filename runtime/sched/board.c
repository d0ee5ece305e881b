/* SPDX-License-Identifier: Apache-2.0 */
/* Who takes what from the board. A device that is free, by what is predicted:
 *
 * - takes the first task of which it would make the earliest finish, when all before it have gone
 *   to those that finish them first. So the fast ones have what is urgent, and a slow one begins
 *   nothing that a fast one would have done sooner (the rule of list schedulers: H. Topcuoglu, S.
 *   Hariri, M. Wu, "Performance-effective and low-complexity task scheduling for heterogeneous
 *   computing", IEEE Trans. Parallel and Distributed Systems 13, 2002; here asked anew whenever a
 *   device is free, so that a wrong prediction costs one task);
 * - or else the least urgent one that it can end so early that what follows from it, on the fastest
 *   device, is over before all devices together are done with what is left of the graph. What is
 *   ready is little beside what will be, and a slow device that waits for enough of it waits
 *   mostly. Not where hardly any other is ready: others would have to wait for it.
 *
 * A device of which nothing is known is tried with the least urgent task. */
#include "sched/board.h"

#include <math.h>

#include "sched/sched.h"

/* Lists of tasks by rank: as many as a mask has bits. */
#define RANKS 64u
/* A slow device is to be done earlier than it must by this part of its time for the task: not all
 * that is left can run at once. */
#define MARGIN 0.5
/* Ready tasks that are to be left for the others then. */
#define LEFT_FOR_OTHERS 2u
/* Tasks that are looked at from the urgent end and from the other; of the first fewer where there
 * are many devices, as each is weighed for all of them. */
#define MOST_WEIGHED 512u
#define LEAST_URGENT 8u
#define MOST_URGENT 32u
#define MOST_SPARE 16u
/* Of two devices that finish at the same time, whatever sums were rounded to, the first. */
#define TIE 1e-12
/* A device that took none looks again after this part of the time that it would have taken. */
#define LOOKS_OF_TASK 4.0
#define LOOK_AGAIN_NS 20000.0
/* Of a device with a score of 1 where no speed was measured, in ns a unit of work; and in place of
 * a score of 0. As for policies that ask (view.c). */
#define WORK_USUAL 1000.0
#define SCORE_LEAST 1e-9

/* One device. Under the lock. */
typedef struct fl_seat {
    bool is_busy;     /* took something, and has not asked since */
    uint64_t until;   /* predicted end of that */
    double after;     /* predicted ns of what follows from it, on the fastest device */
    double rest;      /* while one chooses: ns until it is free; with what it is thought to take */
    double speed;     /* the same: of the most urgent task, a ns; 0: it is out of it */
    uint64_t look_at; /* the worker's: since the last pick, or never */
} fl_seat;

struct fl_board {
    fl_mutex lock;
    _Atomic uint32_t filled; /* whether there is any task; release after the lists */
    uint32_t count;
    uint64_t ranks; /* lists that are not empty; all below: under the lock */
    fl_link *first[RANKS], *last[RANKS];
    uint64_t waiting[FL_IDLE_WORDS]; /* who found nothing since they were woken last */
    fl_seat seats[];
};

static uint64_t now(const fl_sched *sched)
{
    return fl_clock_now(&sched->core->clock);
}

/* --- Beginning and end --- */

static size_t board_bytes(const fl_sched *sched)
{
    return sizeof(fl_board) + sched->count * sizeof(fl_seat);
}

filch_status fl_board_open(fl_sched *sched)
{
    const fl_rules *rules = &sched->rules;
    if (rules->kind != FILCH_POLICY_STEAL || !sched->mails || sched->looks_ahead ||
        sched->core->places->count > 1) {
        return FILCH_OK;
    }
    fl_board *board = fl_alloc_zeroed(&sched->core->memory, board_bytes(sched));
    if (board == NULL) {
        return FILCH_OUT_OF_MEMORY;
    }
    filch_status status = fl_mutex_init(&board->lock);
    if (status != FILCH_OK) {
        fl_free(&sched->core->memory, board, board_bytes(sched));
        return status;
    }
    for (uint32_t d = 0; d < sched->count; ++d) {
        board->seats[d].look_at = FL_TIME_NEVER;
    }
    sched->board = board;
    return FILCH_OK;
}

void fl_board_close(fl_sched *sched)
{
    if (sched->board != NULL) {
        fl_mutex_fini(&sched->board->lock);
        fl_free(&sched->core->memory, sched->board, board_bytes(sched));
        sched->board = NULL;
    }
}

/* --- Lists. Under the lock. --- */

/* A place in the lists. */
typedef struct fl_spot {
    uint32_t rank;
    fl_link *before; /* null: it is the first */
    fl_link *link;   /* null: there is none */
} fl_spot;

static uint32_t rank_of(const fl_task *task)
{
    float most = task->graph->rank_most;
    if (most <= 0) {
        return (task->level + 1u) * (RANKS / FL_LEVELS) - 1;
    }
    float rank = task->rank / most * (float)RANKS;
    return rank <= 0 ? 0 : rank < (float)RANKS ? (uint32_t)rank : RANKS - 1;
}

static void add(fl_board *board, fl_task *task)
{
    uint32_t rank = rank_of(task);
    task->link.next = NULL;
    if ((board->ranks >> rank & 1) != 0) {
        board->last[rank]->next = &task->link;
    } else {
        board->first[rank] = &task->link;
    }
    board->last[rank] = &task->link;
    board->ranks |= (uint64_t)1 << rank;
    ++board->count;
    /* Release: who looks after announcing that it is idle sees it. */
    fl_store_release(&board->filled, 1);
}

static fl_task *take(fl_board *board, fl_spot spot)
{
    fl_link *next = spot.link->next;
    *(spot.before != NULL ? &spot.before->next : &board->first[spot.rank]) = next;
    if (next == NULL) {
        board->last[spot.rank] = spot.before;
    }
    if (board->first[spot.rank] == NULL) {
        board->ranks &= ~((uint64_t)1 << spot.rank);
    }
    --board->count;
    fl_store_release(&board->filled, board->count != 0);
    return fl_task_of_link(spot.link);
}

/* The next task after the spot, from urgent ones on or from the others; a spot without a link is
 * before all. False: that was the last. */
static bool step(const fl_board *board, fl_spot *spot, bool is_upwards)
{
    uint64_t rest = board->ranks;
    if (spot->link != NULL) {
        spot->before = spot->link;
        spot->link = spot->link->next;
        if (spot->link != NULL) {
            return true;
        }
        uint64_t own = (uint64_t)1 << spot->rank;
        rest &= is_upwards ? ~(own | (own - 1)) : own - 1;
    }
    if (rest == 0) {
        return false;
    }
    spot->rank = (uint32_t)(is_upwards ? __builtin_ctzll(rest) : 63 - __builtin_clzll(rest));
    spot->before = NULL;
    spot->link = board->first[spot->rank];
    return true;
}

/* Whether the worker may have the task; `user` is the caller's. */
typedef bool (*fl_may_fn)(const fl_worker *worker, const fl_task *task, const void *user);

static bool find(const fl_board *board, const fl_worker *w, fl_may_fn may, const void *user,
                 fl_spot *spot)
{
    *spot = (fl_spot){0};
    while (step(board, spot, false)) {
        if (may(w, fl_task_of_link(spot->link), user)) {
            return true;
        }
    }
    return false;
}

/* --- What is predicted. Under the lock. --- */

/* Recent mean of a device's tasks; 0: it has run none. Estimates, here and below: no order. */
static double mean_ns(const fl_worker *w)
{
    return fl_bits_double(fl_load_relaxed(&w->tile_ns));
}

/* Of a device without any measure, by its score and what another has measured, if any has. */
static double guess(const fl_worker *w, const fl_task *task, double work)
{
    const fl_sched *sched = w->sched;
    double score = fmax(sched->scores[w->index], SCORE_LEAST);
    double ns = fl_sched_ns(sched, task->codelet, w->index) * work;
    for (uint32_t d = 0; ns <= 0 && d < sched->count; ++d) {
        ns = mean_ns(&sched->workers[d]) * sched->scores[d] / score;
    }
    return ns > 0 ? ns : work * WORK_USUAL / score;
}

/* Ns of a task on a device; above 0. */
static double predict(const fl_worker *w, const fl_task *task)
{
    const fl_speed *speed = fl_codelet_speed(task->codelet, w->index);
    double work = task->work > 0 ? (double)task->work : 1, mean = mean_ns(w);
    double ns = fl_speed_get(speed) > 0 ? fl_speed_time(speed, work)
                : mean > 0              ? mean
                                        : guess(w, task, work);
    return ns > 1 ? ns : 1;
}

static bool is_there(const fl_worker *w, uint64_t t)
{
    return !fl_worker_is_lost(w) && w->device->joins_at <= t;
}

static void longest_below(fl_task *successor, void *user)
{
    float *longest = user;
    *longest = successor->rank > *longest ? successor->rank : *longest;
}

/* The part of a task's rank that is its own. */
static double own_rank(const fl_task *task)
{
    float longest = 0;
    if (task->graph->rank_most <= 0) {
        return 0;
    }
    if (task->successor_count != 0) {
        fl_graph_each_successor(task, longest_below, &longest);
    }
    return (double)(task->rank - longest);
}

/* Ns until a device is free, by what it took from the board. One that is at that for longer than
 * was predicted is taken to need as long again, and one that is at something else, as long as it
 * has been at it. */
static double time_to_free(const fl_worker *w, const fl_seat *seat, uint64_t t)
{
    uint64_t since = t;
    if (seat->is_busy) {
        if (seat->until > t) {
            return (double)(seat->until - t);
        }
        since = seat->until;
    } else if (fl_load_relaxed(&w->ledger.kind) == FL_SPELL_ON) { /* estimates: no order */
        since = fl_load_relaxed(&w->ledger.since);
    } else {
        return 0;
    }
    return t > since ? (double)(t - since) + 1 : 1;
}

/* Looks at all devices: when each is free, and how fast it is at the task. Nobody relies on one
 * that has never run any, but such. */
static void survey(const fl_worker *asker, uint64_t t, const fl_task *task)
{
    fl_sched *sched = asker->sched;
    bool is_known = mean_ns(asker) > 0;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        fl_seat *seat = &sched->board->seats[d];
        bool counts = is_there(w, t) && fl_worker_can_run(w, task) && (!is_known || mean_ns(w) > 0);
        bool is_free = w == asker && !seat->is_busy;
        seat->rest = is_free ? 0 : time_to_free(w, seat, t);
        seat->speed = counts ? 1 / predict(w, task) : 0;
    }
}

/* --- Choosing. Under the lock. --- */

/* Which device ends the task first, after what it has; UINT32_MAX: none that is there. */
static uint32_t first_to_end(const fl_sched *sched, const fl_task *task, double *ns)
{
    uint32_t best = UINT32_MAX;
    double soonest = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        const fl_seat *seat = &sched->board->seats[d];
        if (seat->speed == 0 || !fl_worker_can_run(w, task)) {
            continue;
        }
        double own = predict(w, task), end = seat->rest + own;
        if (end < soonest * (1 - TIE) || best == UINT32_MAX) {
            soonest = end;
            best = d;
            *ns = own;
        }
    }
    return best;
}

/* Of tasks as urgent as the one at the spot, one whose home is the worker's device, if there is one
 * among the next. */
static void prefer_own(const fl_worker *w, fl_spot *spot)
{
    fl_spot at = *spot;
    for (uint32_t i = 0; i < MOST_SPARE && at.link != NULL; ++i) {
        const fl_task *task = fl_task_of_link(at.link);
        if (task->home == w->index + 1 && fl_worker_can_run(w, task)) {
            *spot = at;
            return;
        }
        at.before = at.link;
        at.link = at.link->next;
    }
}

/* The first of the urgent tasks that the worker ends before anybody else. */
static bool find_urgent(fl_worker *w, fl_spot *spot)
{
    fl_sched *sched = w->sched;
    uint32_t most = MOST_WEIGHED / sched->count;
    most = most < LEAST_URGENT ? LEAST_URGENT : most < MOST_URGENT ? most : MOST_URGENT;
    *spot = (fl_spot){0};
    while (most-- > 0 && step(sched->board, spot, false)) {
        double ns = 0;
        uint32_t best = first_to_end(sched, fl_task_of_link(spot->link), &ns);
        if (best == w->index) {
            return true;
        }
        if (best != UINT32_MAX) {
            sched->board->seats[best].rest += ns;
        }
    }
    return false;
}

/* What is left of the graph, at the time of a survey. */
typedef struct fl_outlay {
    double speed;   /* of the fastest device */
    double all;     /* of all together, in such devices */
    double in_work; /* ns that the fastest would take for what the devices have */
    double longest; /* ns until the last that follows from what they have is over */
} fl_outlay;

static fl_outlay sum_up(const fl_sched *sched)
{
    const fl_seat *seats = sched->board->seats;
    fl_outlay sum = {0};
    for (uint32_t d = 0; d < sched->count; ++d) {
        sum.speed = fmax(sum.speed, seats[d].speed);
    }
    for (uint32_t d = 0; d < sched->count && sum.speed > 0; ++d) {
        sum.all += seats[d].speed / sum.speed;
        sum.in_work += seats[d].rest * seats[d].speed / sum.speed;
        if (seats[d].is_busy) {
            sum.longest = fmax(sum.longest, seats[d].rest + seats[d].after);
        }
    }
    return sum;
}

/* Ns of the task on the device that is fastest at it. */
static double least_ns(const fl_sched *sched, const fl_task *task)
{
    double least = INFINITY;
    for (uint32_t d = 0; d < sched->count; ++d) {
        const fl_worker *w = &sched->workers[d];
        if (sched->board->seats[d].speed > 0 && fl_worker_can_run(w, task)) {
            least = fmin(least, predict(w, task));
        }
    }
    return least;
}

/* The least urgent task that does not hold up the graph's end where the worker runs it. */
static bool find_spare(fl_worker *w, const fl_outlay *outlay, fl_spot *spot)
{
    const fl_sched *sched = w->sched;
    const fl_board *board = sched->board;
    double top = (64 - __builtin_clzll(board->ranks)) / (double)RANKS;
    *spot = (fl_spot){0};
    for (uint32_t i = 0; i < MOST_SPARE && step(board, spot, true); ++i) {
        const fl_task *task = fl_task_of_link(spot->link);
        const filch_graph *graph = task->graph;
        double own = own_rank(task);
        if (!fl_worker_can_run(w, task) || !(own > 0)) {
            continue;
        }
        double least = least_ns(sched, task), unit = least / own; /* ns of a unit of rank */
        double left = fmax(0, graph->rank_sum - graph->rank_taken) * unit;
        double end = fmax((left + outlay->in_work) / outlay->all, outlay->longest);
        end = fmax(end, top * (double)graph->rank_most * unit);
        if ((1 + MARGIN) * predict(w, task) + ((double)task->rank - own) * unit <= end) {
            return true;
        }
    }
    return false;
}

/* The least urgent task that the worker can run. */
static bool find_last(const fl_worker *w, fl_spot *spot)
{
    *spot = (fl_spot){0};
    while (step(w->sched->board, spot, true)) {
        if (fl_worker_can_run(w, fl_task_of_link(spot->link))) {
            return true;
        }
    }
    return false;
}

static bool may_run(const fl_worker *w, const fl_task *task, const void *user)
{
    (void)user;
    return fl_worker_can_run(w, task);
}

static bool choose(fl_worker *w, uint64_t t, fl_spot *spot)
{
    fl_sched *sched = w->sched;
    fl_board *board = sched->board;
    fl_seat *seat = &board->seats[w->index];
    if (!find(board, w, may_run, NULL, spot)) {
        return false;
    }
    const fl_task *task = fl_task_of_link(spot->link);
    survey(w, t, task);
    fl_outlay outlay = sum_up(sched);
    double ns = predict(w, task);
    if (mean_ns(w) == 0 && board->count > 1) {
        return find_last(w, spot);
    }
    if (find_urgent(w, spot) || (board->count > LEFT_FOR_OTHERS && find_spare(w, &outlay, spot))) {
        return true;
    }
    ns = fmax(ns / LOOKS_OF_TASK, LOOK_AGAIN_NS);
    seat->look_at = t + (uint64_t)fmin(ns, 0x1p60);
    fl_ledger_refuse(&w->ledger, FL_REFUSED_HELD);
    return false;
}

/* Takes it for the worker, whose it is from then on. */
static fl_task *take_for(fl_worker *w, uint64_t t, fl_spot spot)
{
    fl_sched *sched = w->sched;
    fl_seat *seat = &sched->board->seats[w->index];
    fl_task *task = take(sched->board, spot);
    double own = own_rank(task), ns = predict(w, task);
    uint64_t from = seat->is_busy && seat->until > t ? seat->until : t;
    seat->until = from + (uint64_t)fmin(ns, 0x1p60);
    seat->after = own > 0 ? ((double)task->rank - own) / own * least_ns(sched, task) : 0;
    seat->is_busy = true;
    task->graph->rank_taken += own;
    if (task->home != 0 && task->home != w->index + 1) {
        const filch_job *job = task->graph->job;
        fl_count(&fl_job_share(job, w->index)->stolen_in, 1);
        fl_add_relaxed(&fl_job_share(job, task->home - 1)->stolen_out, 1);
    }
    return task;
}

static bool fill(fl_tile *tile, fl_task *task)
{
    tile->is_replay = tile->is_claimed = false;
    tile->task = task;
    return task != NULL;
}

bool fl_board_pick(fl_worker *w, fl_tile *tile)
{
    fl_board *board = w->sched->board;
    fl_seat *seat = &board->seats[w->index];
    /* What waits behind another could begin elsewhere; short ones are over before that. */
    if (w->in_flight != 0 && mean_ns(w) > FL_SHORT_NS) {
        return false;
    }
    seat->look_at = FL_TIME_NEVER;
    /* Acquire: pairs with the release above. */
    if (fl_load_acquire(&board->filled) == 0 && w->in_flight != 0) {
        return false;
    }
    fl_task *task = NULL;
    fl_spot spot;
    uint64_t t = now(w->sched);
    fl_mutex_lock(&board->lock);
    seat->is_busy = seat->is_busy && w->in_flight != 0;
    if (board->count != 0 && choose(w, t, &spot)) {
        prefer_own(w, &spot);
        task = take_for(w, t, spot);
    }
    fl_mutex_unlock(&board->lock);
    return fill(tile, task);
}

/* What its job needs, and what became ready while jobs ran, as of its own; but no roots of others
 * where it is deep, each of which might wait in turn. */
static bool may_run_waiting(const fl_worker *w, const fl_task *task, const void *user)
{
    return fl_worker_can_run(w, task) && (task->graph->job == user || task->predecessors != 0);
}

bool fl_board_pick_goal(fl_worker *w, const filch_job *goal, fl_tile *tile)
{
    fl_board *board = w->sched->board;
    fl_task *task = NULL;
    fl_spot spot;
    fl_mutex_lock(&board->lock);
    if (find(board, w, may_run_waiting, goal, &spot)) {
        task = take_for(w, now(w->sched), spot);
    }
    fl_mutex_unlock(&board->lock);
    return fill(tile, task);
}

typedef struct fl_left {
    bool (*is_left)(const fl_worker *worker, const fl_task *task);
} fl_left;

static bool is_left_to(const fl_worker *w, const fl_task *task, const void *user)
{
    const fl_left *left = user;
    return fl_worker_can_run(w, task) && left->is_left(w, task);
}

fl_task *fl_board_drop(fl_worker *w, bool (*is_left)(const fl_worker *worker, const fl_task *task))
{
    fl_board *board = w->sched->board;
    const fl_left left = {is_left};
    fl_task *task = NULL;
    fl_spot spot;
    fl_mutex_lock(&board->lock);
    if (find(board, w, is_left_to, &left, &spot)) {
        task = take(board, spot);
    }
    fl_mutex_unlock(&board->lock);
    return task;
}

/* --- Putting --- */

/* Of those that wait, the one that is fastest at the task; it does not wait any more. UINT32_MAX:
 * none. */
static uint32_t call_one(fl_sched *sched, const fl_task *task)
{
    fl_board *board = sched->board;
    uint32_t best = UINT32_MAX;
    double least = INFINITY;
    for (uint32_t word = 0; word < FL_IDLE_WORDS && word * 64 < sched->count; ++word) {
        for (uint64_t bits = board->waiting[word]; bits != 0; bits &= bits - 1) {
            const fl_worker *w = &sched->workers[word * 64 + (uint32_t)__builtin_ctzll(bits)];
            double ns =
                fl_worker_is_lost(w) || !fl_worker_can_run(w, task) ? INFINITY : predict(w, task);
            if (ns < least) {
                least = ns;
                best = w->index;
            }
        }
    }
    if (best != UINT32_MAX) {
        board->waiting[best / 64] &= ~((uint64_t)1 << best % 64);
    }
    return best;
}

bool fl_board_put(fl_sched *sched, fl_task *task)
{
    fl_board *board = sched->board;
    if (!task->graph->is_on_board || fl_task_is_own(task)) {
        return false;
    }
    fl_mutex_lock(&board->lock);
    uint32_t called = call_one(sched, task);
    add(board, task);
    fl_mutex_unlock(&board->lock);
    if (called != UINT32_MAX) {
        fl_sched_wake_worker(sched, called);
    }
    return true;
}

bool fl_board_begin(fl_sched *sched, filch_job *job)
{
    filch_graph *graph = job->graph;
    fl_board *board = sched->board;
    uint32_t count = graph->root_count, own = 0;
    graph->is_on_board = board != NULL;
    graph->rank_taken = 0;
    if (board == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < count; ++i) {
        own += fl_task_is_own(graph->roots[i]);
    }
    /* Those of filch's own first: until the others are there the job cannot end. */
    for (uint32_t i = 0, left = own; left != 0; ++i) {
        if (fl_task_is_own(graph->roots[i])) {
            --left;
            fl_sched_route(sched, graph->roots[i]);
        }
    }
    if (own == count) {
        return true;
    }
    fl_mutex_lock(&board->lock);
    for (uint32_t i = 0; i < count; ++i) {
        if (!fl_task_is_own(graph->roots[i])) {
            add(board, graph->roots[i]);
        }
    }
    fl_mutex_unlock(&board->lock);
    fl_sched_wake(sched, sched->count);
    return true;
}

void fl_board_note_idle(fl_worker *w)
{
    fl_board *board = w->sched->board;
    uint64_t look_at = board->seats[w->index].look_at;
    board->seats[w->index].look_at = FL_TIME_NEVER;
    fl_mutex_lock(&board->lock);
    board->waiting[w->index / 64] |= (uint64_t)1 << w->index % 64;
    board->seats[w->index].is_busy = false;
    fl_mutex_unlock(&board->lock);
    w->ready_at = look_at < w->ready_at ? look_at : w->ready_at;
}
