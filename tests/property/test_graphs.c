/* SPDX-License-Identifier: Apache-2.0 */
/* Random task graphs over shared handles, closed (resubmitted, several at once) and open, with
 * failing tasks and cancellations, against a sequential executor in submission order: the tasks
 * that ran are run again on a copy of the data, which must end with the same bytes. Each task runs
 * at most once, and none before its predecessors; what is left out is what a failure explains.
 * Tasks that commute or reduce add to what they name, so that their order does not matter. Of a
 * divisible task all work belongs to the first item; the others are counted.
 *
 * Buffers are plain memory, and the marks that bodies check order nothing: under the thread
 * sanitizer a missing edge is a data race. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "patience.h"
#include "property.h"

enum {
    MOST_HANDLES = 4,
    MOST_SIDE = 12,
    MOST_TASKS = 160,
    MOST_ACCESSES = 5,
    MOST_GRAPHS = 3,
    MOST_PREDS = MOST_TASKS,
    FAIL_CODE = 77
};

typedef struct buffer {
    filch_data *data;
    uint64_t rows, cols, ld, tile_rows, tile_cols;
    uint32_t down, across;
    uint64_t *real, *shadow;                        /* ld * cols elements each */
    _Atomic uint32_t inside[MOST_SIDE * MOST_SIDE]; /* tasks that commute on a tile, now */
} buffer;

typedef struct plan_access {
    uint32_t handle, row, col, rows, cols; /* rows x cols tiles */
    filch_access_mode mode;
    uint64_t bytes; /* scratch */
    filch_halo halo;
    bool has_halo;
} plan_access;

typedef struct plan_task {
    struct plan *plan;
    uint32_t number;
    uint32_t access_count;
    plan_access accesses[MOST_ACCESSES];
    bool fails;
    bool is_lost[MOST_ACCESSES]; /* what it reduced was not combined */
    filch_task name;
    bool waits_for[MOST_TASKS];     /* direct predecessors */
    uint64_t items, grain;          /* items 0: it is not divisible */
    _Atomic uint32_t ran, finished; /* relaxed: they order nothing */
    _Atomic uint64_t covered;       /* items that ran; the same … */
    _Atomic uint32_t calls;         /* … of its calls */
} plan_task;

typedef struct plan {
    struct trial *trial;
    filch_graph *graph;
    filch_job *job;
    bool is_open, is_cancelled, has_failures;
    uint64_t seed;
    uint32_t count; /* tasks */
    filch_on_failure on_failure;
    _Atomic uint32_t completions;
    plan_task tasks[MOST_TASKS];
} plan;

typedef struct trial {
    property_world *world;
    filch_codelet *codelet, *zero, *add;
    bool has_groups;
    uint32_t handle_count, plan_count;
    buffer buffers[MOST_HANDLES];
    plan plans[MOST_GRAPHS];
} trial;

/* --- What a task computes --- */

/* A block of a buffer. */
typedef struct block {
    uint64_t *at;
    uint64_t rows, cols, ld;
} block;

static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* First element of an access along an axis, and the one past the last. */
typedef struct range {
    uint64_t first, end;
} range;

static range rows_of(const buffer *b, const plan_access *access)
{
    uint64_t end = least((access->row + access->rows) * b->tile_rows, b->rows);
    return (range){less(access->row * b->tile_rows, access->halo.rows_before),
                   end + least(b->rows - end, access->halo.rows_after)};
}

static range cols_of(const buffer *b, const plan_access *access)
{
    uint64_t end = least((access->col + access->cols) * b->tile_cols, b->cols);
    return (range){less(access->col * b->tile_cols, access->halo.cols_before),
                   end + least(b->cols - end, access->halo.cols_after)};
}

static block block_of(const buffer *b, const plan_access *access, uint64_t *base)
{
    range rows = rows_of(b, access), cols = cols_of(b, access);
    return (block){base + cols.first * b->ld + rows.first, rows.end - rows.first,
                   cols.end - cols.first, b->ld};
}

static uint64_t fold(const block *b, uint64_t value)
{
    for (uint64_t col = 0; col < b->cols; ++col) {
        for (uint64_t row = 0; row < b->rows; ++row) {
            value = property_mix(value, b->at[col * b->ld + row]);
        }
    }
    return value;
}

static void fill(const block *b, uint64_t value)
{
    for (uint64_t col = 0; col < b->cols; ++col) {
        for (uint64_t row = 0; row < b->rows; ++row) {
            b->at[col * b->ld + row] = property_mix(value, col * b->rows + row);
        }
    }
}

static bool adds(const plan_access *access)
{
    return access->mode == FILCH_COMMUTE || access->mode == FILCH_REDUCE;
}

static void add(const block *b, uint64_t value)
{
    for (uint64_t col = 0; col < b->cols; ++col) {
        for (uint64_t row = 0; row < b->rows; ++row) {
            b->at[col * b->ld + row] += property_mix(value, col * b->rows + row);
        }
    }
}

static void compute(const plan_task *task, const block *blocks)
{
    uint64_t value = property_mix(task->plan->seed, task->number);
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_READ || task->accesses[i].mode == FILCH_READWRITE) {
            value = fold(&blocks[i], value);
        }
    }
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (task->accesses[i].mode == FILCH_WRITE || task->accesses[i].mode == FILCH_READWRITE) {
            fill(&blocks[i], property_mix(value, i));
        } else if (adds(&task->accesses[i]) && blocks[i].at != NULL) {
            add(&blocks[i], property_mix(value, i));
        }
    }
}

static int zero(const filch_call *call)
{
    const filch_view *v = call->views;
    for (uint64_t col = 0; col < v->cols; ++col) {
        memset((uint64_t *)v->ptr + col * v->ld, 0, v->rows * sizeof(uint64_t));
    }
    return call->view_count == 1 ? 0 : 1;
}

static int add_up(const filch_call *call)
{
    const filch_view *to = &call->views[0], *from = &call->views[1];
    for (uint64_t col = 0; col < to->cols; ++col) {
        for (uint64_t row = 0; row < to->rows; ++row) {
            ((uint64_t *)to->ptr)[col * to->ld + row] +=
                ((const uint64_t *)from->ptr)[col * from->ld + row];
        }
    }
    return call->view_count == 2 && to->rows == from->rows && to->cols == from->cols ? 0 : 1;
}

/* --- The body --- */

static void check_view(const plan_task *task, uint32_t i, const filch_view *view, block *found)
{
    const plan_access *access = &task->accesses[i];
    *found = (block){view->ptr, view->rows, view->cols, view->ld};
    if (access->mode == FILCH_SCRATCH) {
        if (view->rows * view->cols * view->element < access->bytes ||
            (uintptr_t)view->ptr % 64 != 0) {
            property_fail("task %u: scratch %u is too small or not aligned", task->number, i);
        } else {
            memset(view->ptr, (int)task->number, access->bytes);
        }
        return;
    }
    const buffer *b = &task->plan->trial->buffers[access->handle];
    block wanted = block_of(b, access, b->real);
    bool is_partial = access->mode == FILCH_REDUCE;
    if ((view->ptr == wanted.at) == is_partial || view->rows != wanted.rows ||
        view->cols != wanted.cols || view->ld != (is_partial ? wanted.rows : wanted.ld) ||
        view->row != rows_of(b, access).first || view->col != cols_of(b, access).first ||
        view->element != sizeof(uint64_t)) {
        property_fail("task %u: view %u is not the tile that was asked for", task->number, i);
        *found = wanted;
    }
}

/* Relaxed: the counts order nothing, and so hide no race. */
static void count_inside(const plan_task *task, bool enters)
{
    for (uint32_t i = 0; i < task->access_count; ++i) {
        const plan_access *access = &task->accesses[i];
        buffer *b = &task->plan->trial->buffers[access->handle];
        _Atomic uint32_t *inside = &b->inside[access->col * b->down + access->row];
        if (access->mode != FILCH_COMMUTE) {
            continue;
        }
        if (!enters) {
            fl_sub_relaxed(inside, 1);
        } else if (fl_add_relaxed(inside, 1) != 0) {
            property_fail("task %u: another one is at its tile, too", task->number);
        }
    }
}

/* Whether all of it ran, and did not fail: of one that is divided a cancellation may have left
 * something out. */
static bool is_done(const plan_task *task)
{
    return fl_load_relaxed(&task->finished) != 0 && fl_load_relaxed(&task->covered) == task->items;
}

static void check_order(const plan_task *task)
{
    /* Of an open graph the count still grows. */
    uint32_t count = task->plan->is_open ? task->number : task->plan->count;
    for (uint32_t i = 0; i < count; ++i) {
        if (i != task->number && task->waits_for[i] && !is_done(&task->plan->tasks[i])) {
            property_fail("task %u ran before its predecessor %u", task->number, i);
        }
    }
}

/* Items of a call. Whether it has the first, with which the task's work goes. */
static bool cover(plan_task *task, const filch_call *call)
{
    bool is_cut = call->lo % task->grain != 0 || call->hi > task->items || call->lo >= call->hi ||
                  (call->hi % task->grain != 0 && call->hi != task->items);
    if (is_cut ||
        fl_add_relaxed(&task->covered, call->hi - call->lo) + call->hi - call->lo > task->items) {
        property_fail("task %u: a call of items %u to %u", task->number, (unsigned)call->lo,
                      (unsigned)call->hi);
    }
    for (uint64_t i = call->lo; i < call->hi; ++i) {
        fl_relax();
    }
    return call->lo == 0;
}

static int body(const filch_call *call)
{
    plan_task *task;
    memcpy(&task, call->args, sizeof task);
    block blocks[MOST_ACCESSES];
    check_order(task);
    fl_add_relaxed(&task->calls, 1);
    if (task->items != 0 ? !cover(task, call) : (call->lo | call->hi) != 0) {
        return 0;
    }
    if (fl_add_relaxed(&task->ran, 1) != 0) {
        property_fail("task %u of graph %d ran twice", task->number,
                      (int)(task->plan - task->plan->trial->plans));
    }
    if (call->view_count != task->access_count ||
        call->device >= task->plan->trial->world->devices ||
        call->runtime != task->plan->trial->world->runtime) {
        property_fail("task %u: its call is wrong", task->number);
        return 1;
    }
    for (uint32_t i = 0; i < task->access_count; ++i) {
        check_view(task, i, &call->views[i], &blocks[i]);
    }
    count_inside(task, true);
    compute(task, blocks);
    count_inside(task, false);
    if (task->fails) {
        return FAIL_CODE;
    }
    fl_store_relaxed(&task->finished, 1);
    return 0;
}

static double work(const filch_call *call)
{
    plan_task *task;
    memcpy(&task, call->args, sizeof task);
    return (double)(1 + task->number % 7) * (task->items != 0 ? 3e5 : 1e4);
}

static void on_complete(filch_job *job, filch_status status, void *user)
{
    plan *p = user;
    if (filch_job_status(job) != FILCH_NOT_READY) {
        property_fail("the callback came after the result (%s)", filch_status_name(status));
    }
    fl_add_relaxed(&p->completions, 1);
}

/* --- Plans --- */

static void make_buffer(trial *t, buffer *b, fl_random *random)
{
    static const char *const labels[] = {"a", "b", NULL};
    b->rows = 1 + fl_random_below(random, MOST_SIDE);
    b->cols = 1 + fl_random_below(random, MOST_SIDE);
    b->ld = b->rows + fl_random_below(random, 3);
    b->tile_rows = 1 + fl_random_below(random, (uint32_t)b->rows);
    b->tile_cols = 1 + fl_random_below(random, (uint32_t)b->cols);
    b->down = (uint32_t)((b->rows + b->tile_rows - 1) / b->tile_rows);
    b->across = (uint32_t)((b->cols + b->tile_cols - 1) / b->tile_cols);
    b->real = property_alloc(b->ld * b->cols, sizeof *b->real);
    b->shadow = property_alloc(b->ld * b->cols, sizeof *b->shadow);
    for (uint64_t i = 0; i < b->ld * b->cols; ++i) {
        b->real[i] = b->shadow[i] = fl_random_next(random);
    }
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = b->real;
    desc.element = sizeof *b->real;
    desc.rows = b->rows;
    desc.cols = b->cols;
    desc.ld = b->ld;
    desc.tile_rows = b->tile_rows;
    desc.tile_cols = b->tile_cols;
    desc.label = labels[fl_random_below(random, 3)];
    desc.flags = fl_random_below(random, 2) ? FILCH_DATA_ORDERED : 0;
    property_ok(filch_data_create(t->world->runtime, &desc, &b->data));
    property_ok(filch_data_reduction(b->data, t->zero, t->add));
}

/* Whether two ranges have a tile in common. */
static bool meet(range a, range b, uint64_t tile)
{
    return a.first / tile <= (b.end - 1) / tile && b.first / tile <= (a.end - 1) / tile;
}

/* Whether the two have a tile in common. */
static bool is_same_tile(const trial *t, const plan_access *a, const plan_access *b)
{
    const buffer *of = &t->buffers[a->handle];
    return a->mode != FILCH_SCRATCH && b->mode != FILCH_SCRATCH && a->handle == b->handle &&
           meet(rows_of(of, a), rows_of(of, b), of->tile_rows) &&
           meet(cols_of(of, a), cols_of(of, b), of->tile_cols);
}

static uint64_t make_width(fl_random *random)
{
    return property_chance(random, 5) ? UINT64_MAX : fl_random_below(random, 4);
}

static void make_halo(plan_access *made, fl_random *random)
{
    made->has_halo = made->mode == FILCH_READ && property_chance(random, 30);
    if (made->has_halo) {
        made->halo = (filch_halo){make_width(random), make_width(random), make_width(random),
                                  make_width(random)};
    }
}

/* Makes some accesses blocks of several tiles, mostly large ones: only readers of these share
 * their edges. */
static void make_block(const buffer *b, plan_access *made, fl_random *random)
{
    made->rows = made->cols = 1;
    if (made->mode == FILCH_SCRATCH || adds(made) || !property_chance(random, 30)) {
        return;
    }
    if (property_chance(random, 50)) {
        made->row = made->col = 0;
        made->rows = b->down;
        made->cols = b->across;
    } else {
        made->rows = 1 + fl_random_below(random, b->down - made->row);
        made->cols = 1 + fl_random_below(random, b->across - made->col);
    }
}

static void add_access(plan_task *task, fl_random *random)
{
    static const filch_access_mode modes[] = {FILCH_READ,      FILCH_READ,      FILCH_WRITE,
                                              FILCH_READWRITE, FILCH_READWRITE, FILCH_SCRATCH,
                                              FILCH_COMMUTE,   FILCH_COMMUTE,   FILCH_COMMUTE,
                                              FILCH_REDUCE,    FILCH_REDUCE,    FILCH_REDUCE};
    const trial *t = task->plan->trial;
    plan_access *made = &task->accesses[task->access_count];
    *made = (plan_access){.handle = fl_random_below(random, t->handle_count),
                          .mode = modes[fl_random_below(random, t->has_groups ? 12 : 6)]};
    made->row = fl_random_below(random, t->buffers[made->handle].down);
    made->col = fl_random_below(random, t->buffers[made->handle].across);
    made->bytes = made->mode == FILCH_SCRATCH ? 1 + fl_random_below(random, 300) : 0;
    make_block(&t->buffers[made->handle], made, random);
    make_halo(made, random);
    for (uint32_t i = 0; i < task->access_count; ++i) {
        if (is_same_tile(t, made, &task->accesses[i])) {
            return; /* one tile twice with a write is refused */
        }
    }
    ++task->access_count;
}

static bool conflict(const plan_task *a, const plan_task *b)
{
    for (uint32_t i = 0; i < a->access_count; ++i) {
        for (uint32_t k = 0; k < b->access_count; ++k) {
            if (is_same_tile(a->plan->trial, &a->accesses[i], &b->accesses[k]) &&
                ((a->accesses[i].mode | b->accesses[k].mode) & FILCH_WRITE) != 0 &&
                !(adds(&a->accesses[i]) && a->accesses[i].mode == b->accesses[k].mode)) {
                return true; /* of two groups: whoever is between them waits, and is waited for */
            }
        }
    }
    return false;
}

/* Whether `to` must wait for `from`, directly or not. */
static bool reaches(const plan *p, uint32_t from, uint32_t to)
{
    bool seen[MOST_TASKS] = {false};
    uint32_t stack[MOST_TASKS], depth = 1;
    stack[0] = to;
    seen[to] = true;
    while (depth != 0) {
        const plan_task *task = &p->tasks[stack[--depth]];
        for (uint32_t i = 0; i < p->count; ++i) {
            if (task->waits_for[i] && !seen[i]) {
                seen[i] = true;
                stack[depth++] = i;
            }
        }
    }
    return seen[from];
}

static void add_task(plan *p, uint32_t number, fl_random *random, uint32_t fail_percent)
{
    plan_task *task = &p->tasks[number];
    *task = (plan_task){.plan = p, .number = number};
    uint32_t wanted = fl_random_below(random, MOST_ACCESSES + 1);
    for (uint32_t i = 0; i < wanted; ++i) {
        add_access(task, random);
    }
    if (property_chance(random, 30)) {
        task->items = 1 + fl_random_below(random, 20000);
        task->grain = 1 + fl_random_below(random, property_chance(random, 50) ? 10 : 5000);
    }
    task->fails = property_chance(random, fail_percent);
    p->has_failures = p->has_failures || task->fails;
    for (uint32_t i = 0; i < number; ++i) {
        task->waits_for[i] = conflict(&p->tasks[i], task);
    }
}

static filch_status submit_task(plan *p, plan_task *task, fl_random *random)
{
    filch_access accesses[MOST_ACCESSES];
    for (uint32_t i = 0; i < task->access_count; ++i) {
        const plan_access *from = &task->accesses[i];
        accesses[i] = (filch_access){.row = from->row, .col = from->col, .mode = from->mode};
        accesses[i].bytes = from->bytes;
        accesses[i].halo = from->has_halo ? &from->halo : NULL;
        if (from->mode != FILCH_SCRATCH) {
            const buffer *b = &p->trial->buffers[from->handle];
            bool to_end = property_chance(random, 50);
            accesses[i].data = b->data;
            accesses[i].rows =
                to_end && from->row + from->rows == b->down ? FILCH_TO_END : from->rows;
            accesses[i].cols =
                to_end && from->col + from->cols == b->across ? FILCH_TO_END : from->cols;
        } else {
            accesses[i].row = accesses[i].col = 0;
        }
    }
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = p->trial->codelet;
    desc.args = &task;
    desc.accesses = accesses;
    desc.access_count = task->access_count;
    desc.items = task->items;
    desc.grain = task->items != 0 ? task->grain : 0;
    desc.priority = (int32_t)fl_random_below(random, 21) - 10;
    desc.affinity =
        property_chance(random, 50) ? fl_random_below(random, p->trial->world->devices + 1) : 0;
    return filch_graph_add(p->graph, &desc, &task->name);
}

/* Edges by hand: mostly forward, some back where that makes no cycle. */
static void add_edges(plan *p, fl_random *random)
{
    uint32_t edges = fl_random_below(random, p->count + 1);
    for (uint32_t i = 0; p->count > 1 && i < edges; ++i) {
        uint32_t from = fl_random_below(random, p->count), to = fl_random_below(random, p->count);
        bool is_back = from > to;
        if (from == to || (is_back && !property_chance(random, 20))) {
            continue;
        }
        if (is_back && reaches(p, to, from)) {
            continue;
        }
        if (!is_back && reaches(p, to, from)) {
            continue; /* an edge back made it so */
        }
        property_ok(filch_graph_edge(p->graph, p->tasks[from].name, p->tasks[to].name));
        p->tasks[to].waits_for[from] = true;
    }
}

static void make_closed(plan *p, fl_random *random)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = property_chance(random, 50) ? FILCH_PRIORITIES_RANK : FILCH_PRIORITIES_CALLER;
    property_ok(filch_graph_create(p->trial->world->runtime, &desc, &p->graph));
    uint32_t fail_percent = property_chance(random, 25) ? 5 : 0;
    p->count = fl_random_below(random, MOST_TASKS + 1);
    for (uint32_t i = 0; i < p->count; ++i) {
        add_task(p, i, random, fail_percent);
        property_ok(submit_task(p, &p->tasks[i], random));
    }
    if (property_chance(random, 50)) {
        add_edges(p, random);
    }
    if (property_chance(random, 50)) {
        property_ok(filch_graph_seal(p->graph));
    }
}

/* A graph with a cycle is refused, and nothing of it runs. */
static void check_cycle(trial *t, fl_random *random)
{
    plan *p = &t->plans[0];
    make_closed(p, random);
    if (p->count > 1 &&
        filch_graph_edge(p->graph, p->tasks[0].name, p->tasks[1].name) == FILCH_OK) {
        property_ok(filch_graph_edge(p->graph, p->tasks[1].name, p->tasks[0].name));
        property_expect(filch_graph_submit(p->graph, NULL, NULL), FILCH_CYCLE, "submit of a cycle");
        property_expect(filch_graph_seal(p->graph), FILCH_CYCLE, "seal of a cycle");
    }
    property_ok(filch_graph_destroy(p->graph));
}

/* --- Running --- */

static void submit_plan(plan *p, fl_random *random)
{
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    p->on_failure = property_chance(random, 80) ? FILCH_FAILURE_SKIP : FILCH_FAILURE_CANCEL;
    submit.on_failure = p->on_failure;
    submit.on_complete = on_complete;
    submit.user = p;
    p->is_cancelled = false;
    for (uint32_t i = 0; i < p->count; ++i) {
        fl_store_relaxed(&p->tasks[i].ran, 0);
        fl_store_relaxed(&p->tasks[i].finished, 0);
        fl_store_relaxed(&p->tasks[i].covered, 0);
        fl_store_relaxed(&p->tasks[i].calls, 0);
    }
    fl_store_relaxed(&p->completions, 0);
    property_ok(filch_graph_submit(p->graph, &submit, &p->job));
}

static void cancel_some(trial *t, fl_random *random)
{
    if (!property_chance(random, 15)) {
        return;
    }
    plan *p = &t->plans[fl_random_below(random, t->plan_count)];
    if (p->job == NULL) {
        return;
    }
    if (property_chance(random, 70)) {
        filch_status status = filch_job_wait(p->job, fl_random_unit(random) * 2e-4);
        if (status == FILCH_WRONG_STATE || status == FILCH_INVALID_HANDLE) {
            property_fail("a short wait returned %s", filch_status_name(status));
        }
    }
    property_ok(filch_job_cancel(p->job));
    p->is_cancelled = true;
}

/* Marks what was reduced in a group of which some task did not succeed: none of it is combined. */
static void find_lost(plan *p)
{
    for (uint32_t i = 0; i < p->count; ++i) {
        for (uint32_t k = 0; k < p->tasks[i].access_count; ++k) {
            p->tasks[i].is_lost[k] = false;
        }
    }
    for (uint32_t i = 0; i < p->count; ++i) {
        for (uint32_t k = 0; k < p->tasks[i].access_count; ++k) {
            plan_access *access = &p->tasks[i].accesses[k];
            bool is_lost = !is_done(&p->tasks[i]);
            bool is_over = access->mode != FILCH_REDUCE || !is_lost;
            /* To the left and to the right, up to another use of the tile. */
            for (int step = -1; step <= 1 && !is_over; step += 2) {
                bool in_group = true;
                for (int64_t j = i; j >= 0 && j < p->count && in_group; j += step) {
                    for (uint32_t m = 0; m < p->tasks[j].access_count; ++m) {
                        plan_access *other = &p->tasks[j].accesses[m];
                        if (is_same_tile(p->trial, access, other)) {
                            in_group = other->mode == FILCH_REDUCE;
                            p->tasks[j].is_lost[m] = in_group;
                        }
                    }
                }
            }
        }
    }
}

/* The sequential executor, for what ran. */
static void replay(plan *p)
{
    find_lost(p);
    for (uint32_t i = 0; i < p->count; ++i) {
        plan_task *task = &p->tasks[i];
        if (fl_load_relaxed(&task->ran) == 0) {
            continue;
        }
        block blocks[MOST_ACCESSES];
        for (uint32_t k = 0; k < task->access_count; ++k) {
            blocks[k] = (block){NULL, 0, 0, 0};
            if (task->accesses[k].mode != FILCH_SCRATCH && !task->is_lost[k]) {
                const buffer *b = &p->trial->buffers[task->accesses[k].handle];
                blocks[k] = block_of(b, &task->accesses[k], b->shadow);
            }
        }
        compute(task, blocks);
    }
}

/* Without a cancellation, exactly what no failed or skipped predecessor forbids has run. */
static void check_left_out(const plan *p)
{
    bool is_out[MOST_TASKS] = {false};
    bool is_new = true;
    while (is_new) { /* edges may lead back */
        is_new = false;
        for (uint32_t i = 0; i < p->count; ++i) {
            for (uint32_t k = 0; k < p->count && !is_out[i]; ++k) {
                if (p->tasks[i].waits_for[k] && (is_out[k] || p->tasks[k].fails)) {
                    is_out[i] = is_new = true;
                }
            }
        }
    }
    for (uint32_t i = 0; i < p->count; ++i) {
        if ((fl_load_relaxed(&p->tasks[i].ran) == 0) != is_out[i]) {
            property_fail("task %u %s", i, is_out[i] ? "ran after a failure" : "was left out");
        }
    }
}

static void check_outcome(plan *p, filch_status status)
{
    filch_job_info info = {.size = sizeof info};
    filch_device_stats devices[PROPERTY_MOST_DEVICES];
    uint32_t ran = 0, finished = 0; /* ran: to the end */
    uint64_t tiles = 0, calls = 0;
    property_ok(filch_job_stats(p->job, &info, devices, PROPERTY_MOST_DEVICES));
    for (uint32_t i = 0; i < p->count; ++i) {
        bool has_failed = p->tasks[i].fails && fl_load_relaxed(&p->tasks[i].ran) != 0;
        finished += is_done(&p->tasks[i]);
        ran += is_done(&p->tasks[i]) || has_failed;
        calls += fl_load_relaxed(&p->tasks[i].calls);
    }
    for (uint32_t d = 0; d < info.device_count; ++d) {
        tiles += devices[d].tiles;
    }
    if (info.total != p->count || info.done != finished || info.failed != ran - finished ||
        info.skipped != p->count - ran || tiles != calls) {
        property_fail("%u tasks, %u ran, %u well; counted: %llu, done %llu, failed %llu, skipped "
                      "%llu, tiles %llu of %llu",
                      p->count, ran, finished, (unsigned long long)info.total,
                      (unsigned long long)info.done, (unsigned long long)info.failed,
                      (unsigned long long)info.skipped, (unsigned long long)tiles,
                      (unsigned long long)calls);
    }
    /* Of all that was to be done, combining may have been left out alone. */
    bool is_left_out =
        ran != p->count || (p->is_cancelled && p->trial->has_groups && status == FILCH_CANCELLED);
    property_expect(status,
                    ran != finished ? FILCH_TASK_FAILED
                    : is_left_out   ? FILCH_CANCELLED
                                    : FILCH_OK,
                    "the wait");
    if (fl_load_relaxed(&p->completions) != 1) {
        property_fail("%u calls of the callback", fl_load_relaxed(&p->completions));
    }
    filch_error error = FILCH_ERROR_INIT;
    property_expect(filch_job_error(p->job, &error),
                    status != FILCH_OK ? FILCH_OK : FILCH_NOT_FOUND, "filch_job_error");
    if (ran != finished && error.native_code != FAIL_CODE) {
        property_fail("the error's code is %d", error.native_code);
    }
}

static void finish_plan(plan *p)
{
    if (p->job == NULL) {
        return;
    }
    filch_status status = filch_job_wait(p->job, PATIENCE);
    if (status == FILCH_TIMEOUT) {
        property_fail("a job of %u tasks hangs", p->count);
        exit(property_has_failed());
    }
    check_outcome(p, status);
    if (!p->is_cancelled && p->on_failure == FILCH_FAILURE_SKIP) {
        check_left_out(p);
    }
    property_ok(filch_job_release(p->job));
    p->job = NULL;
}

/* Where a job was cut short, whether what was reduced was combined is a matter of time. */
static bool is_certain(const trial *t)
{
    bool is_certain = true;
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        const plan *p = &t->plans[i];
        bool may_stop = p->on_failure != FILCH_FAILURE_SKIP && p->has_failures;
        is_certain = is_certain && !p->is_cancelled && !may_stop;
    }
    return is_certain || !t->has_groups;
}

static void check_bytes(const trial *t)
{
    for (uint32_t h = 0; h < t->handle_count; ++h) {
        const buffer *b = &t->buffers[h];
        if (!is_certain(t)) {
            memcpy(b->shadow, b->real, b->ld * b->cols * sizeof *b->real);
        }
        if (memcmp(b->real, b->shadow, b->ld * b->cols * sizeof *b->real) != 0) {
            property_fail("handle %u: other bytes than the sequential executor's", h);
        }
    }
}

/* The graphs in a random order at once; the next round resubmits them. */
static void run_rounds(trial *t, fl_random *random)
{
    uint32_t victim_order = 1 + fl_random_below(random, 3);
    for (uint32_t r = 0; r < victim_order && !property_has_failed(); ++r) {
        uint32_t order[MOST_GRAPHS] = {0};
        for (uint32_t i = 0; i < t->plan_count; ++i) {
            uint32_t k = fl_random_below(random, i + 1);
            order[i] = order[k];
            order[k] = i;
        }
        for (uint32_t i = 0; i < t->plan_count; ++i) {
            submit_plan(&t->plans[order[i]], random);
        }
        cancel_some(t, random);
        for (uint32_t i = 0; i < t->plan_count; ++i) {
            finish_plan(&t->plans[fl_random_below(random, t->plan_count)]);
        }
        for (uint32_t i = 0; i < t->plan_count; ++i) {
            finish_plan(&t->plans[i]);
        }
        for (uint32_t i = 0; i < t->plan_count; ++i) {
            replay(&t->plans[order[i]]);
        }
        check_bytes(t);
    }
}

/* An open graph behind the closed ones that still run. */
static void run_open(trial *t, fl_random *random)
{
    plan *p = &t->plans[t->plan_count++];
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.kind = FILCH_GRAPH_OPEN;
    desc.priorities = property_chance(random, 50) ? FILCH_PRIORITIES_RANK : FILCH_PRIORITIES_CALLER;
    p->is_open = true;
    property_ok(filch_graph_create(t->world->runtime, &desc, &p->graph));
    for (uint32_t i = 0; i + 1 < t->plan_count; ++i) {
        submit_plan(&t->plans[i], random);
    }
    submit_plan(p, random);
    uint32_t wanted = fl_random_below(random, MOST_TASKS + 1);
    uint32_t fail_percent = property_chance(random, 25) ? 5 : 0;
    while (p->count < wanted) {
        add_task(p, p->count, random, fail_percent);
        filch_status status = submit_task(p, &p->tasks[p->count], random);
        if (status != FILCH_OK) {
            if (status != FILCH_WRONG_STATE || p->on_failure != FILCH_FAILURE_CANCEL) {
                property_fail("adding to an open graph: %s", filch_status_name(status));
            }
            break;
        }
        ++p->count;
        if (property_chance(random, 2)) {
            (void)filch_job_wait(p->job, 1e-5); /* lets some of it run meanwhile */
        }
    }
    cancel_some(t, random);
    property_ok(filch_graph_close(p->graph));
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        finish_plan(&t->plans[i]);
    }
    for (uint32_t i = 0; i < t->plan_count; ++i) {
        replay(&t->plans[i]);
    }
    check_bytes(t);
}

static void check(property_world *world, fl_random *random)
{
    static trial t; /* large */
    memset(&t, 0, sizeof t);
    t.world = world;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "random";
    desc.host = body;
    desc.work = property_chance(random, 50) ? work : NULL;
    desc.arg_size = sizeof(plan_task *);
    property_ok(filch_codelet_create(world->runtime, &desc, &t.codelet));
    t.has_groups = property_chance(random, 50);
    desc.name = "zero";
    desc.host = zero;
    desc.work = NULL;
    desc.arg_size = 0;
    property_ok(filch_codelet_create(world->runtime, &desc, &t.zero));
    desc.name = "add";
    desc.host = add_up;
    property_ok(filch_codelet_create(world->runtime, &desc, &t.add));
    t.handle_count = 1 + fl_random_below(random, MOST_HANDLES);
    for (uint32_t i = 0; i < t.handle_count; ++i) {
        make_buffer(&t, &t.buffers[i], random);
    }
    for (uint32_t i = 0; i < MOST_GRAPHS; ++i) {
        t.plans[i].trial = &t;
        t.plans[i].seed = fl_random_next(random);
    }
    if (property_chance(random, 3)) {
        check_cycle(&t, random);
    } else {
        t.plan_count = fl_random_below(random, MOST_GRAPHS + 1);
        for (uint32_t i = 0; i < t.plan_count; ++i) {
            make_closed(&t.plans[i], random);
        }
        run_rounds(&t, random);
        if (t.plan_count < MOST_GRAPHS && !property_has_failed()) {
            run_open(&t, random);
        }
        for (uint32_t i = 0; i < t.plan_count && !property_has_failed(); ++i) {
            property_ok(filch_graph_destroy(t.plans[i].graph));
        }
    }
    for (uint32_t i = 0; i < t.handle_count && !property_has_failed(); ++i) {
        property_ok(filch_data_destroy(t.buffers[i].data));
        free(t.buffers[i].real);
        free(t.buffers[i].shadow);
    }
}

int main(int argc, char **argv)
{
    return property_main("graphs", argc, argv, check, 300);
}
