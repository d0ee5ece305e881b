/* SPDX-License-Identifier: Apache-2.0 */
/* Random graphs over shared handles, by tile, by block and with halos, managed or not, on GPUs and
 * host cores, against the tasks in the order of submission, one by one: the same bytes after each
 * round, in padding too. Graphs are submitted again, several at once, or are open ones. In some
 * rounds tasks fail, or jobs are cancelled: then every task is accounted for, and the rounds that
 * follow are as ever. */
#include "steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_HANDLES = 3, MOST_TASKS = 60, MOST_GRAPHS = 4, MOST_ROUNDS = 6 };

typedef struct buffer {
    filch_data *data;
    bool is_managed;
    uint64_t rows, cols, ld, tile_rows, tile_cols;
    uint64_t *real, *shadow;
} buffer;

typedef struct task {
    uint32_t reads;
    filch_access accesses[STEP_MOST_READS + 1]; /* the last one is written */
    filch_halo halos[STEP_MOST_READS + 1];      /* of 0: none */
    uint32_t handles[STEP_MOST_READS + 1];
    step_args args;
} task;

typedef struct plan {
    filch_graph *graph;
    bool is_open;
    bool has_failing;
    uint32_t count;
    task tasks[MOST_TASKS];
} plan;

/* --- Making a case --- */

static void make_buffer(gpu_world *world, buffer *b)
{
    b->rows = gpu_between(world, 1, 70);
    b->cols = gpu_between(world, 1, 40);
    b->ld = b->rows + gpu_between(world, 0, 3);
    b->tile_rows = gpu_between(world, 1 + b->rows / 5, b->rows);
    b->tile_cols = gpu_between(world, 1 + b->cols / 5, b->cols);
    b->is_managed = gpu_chance(world, 50);
    b->real = gpu_alloc(b->ld * b->cols, sizeof *b->real);
    b->shadow = gpu_alloc(b->ld * b->cols, sizeof *b->shadow);
    for (uint64_t k = 0; k < b->ld * b->cols; k++)
        b->real[k] = b->shadow[k] = fl_random_next(&world->random);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = b->real;
    desc.element = sizeof *b->real;
    desc.rows = b->rows;
    desc.cols = b->cols;
    desc.ld = b->ld;
    desc.tile_rows = b->tile_rows;
    desc.tile_cols = b->tile_cols;
    desc.flags = b->is_managed ? FILCH_DATA_MANAGED : 0;
    gpu_ok(filch_data_create(world->runtime, &desc, &b->data));
}

static uint64_t tiles(uint64_t extent, uint64_t tile)
{
    return (extent + tile - 1) / tile;
}

/* A tile, or a block of them. */
static void choose_tiles(gpu_world *world, const buffer *buffers, uint32_t count, task *t,
                         uint32_t at, filch_access_mode mode)
{
    uint32_t handle = fl_random_below(&world->random, count);
    const buffer *b = &buffers[handle];
    uint64_t down = tiles(b->rows, b->tile_rows), across = tiles(b->cols, b->tile_cols);
    filch_access access = {.data = b->data,
                           .row = (uint32_t)gpu_between(world, 0, down - 1),
                           .col = (uint32_t)gpu_between(world, 0, across - 1),
                           .mode = mode,
                           .rows = 1,
                           .cols = 1};
    if (gpu_chance(world, 25)) {
        access.rows = (uint32_t)gpu_between(world, 1, down - access.row);
        access.cols = (uint32_t)gpu_between(world, 1, across - access.col);
    } else if (gpu_chance(world, 10)) {
        access = (filch_access)FILCH_WHOLE(b->data, mode);
        access.rows = (uint32_t)down;
        access.cols = (uint32_t)across;
    }
    t->handles[at] = handle;
    t->accesses[at] = access;
    if (mode == FILCH_READ && gpu_chance(world, 30))
        t->halos[at] = (filch_halo){gpu_between(world, 0, 20), gpu_between(world, 0, 20),
                                    gpu_between(world, 0, 12), gpu_between(world, 0, 12)};
}

/* What an access uses, as the buffer's owner sees it. */
static filch_view view_of(const buffer *b, const filch_access *access, const filch_halo *halo)
{
    uint64_t row = access->row * b->tile_rows, col = access->col * b->tile_cols;
    uint64_t row_end = row + access->rows * b->tile_rows + halo->rows_after;
    uint64_t col_end = col + access->cols * b->tile_cols + halo->cols_after;
    if (row + access->rows * b->tile_rows > b->rows || row_end > b->rows)
        row_end = b->rows;
    if (col + access->cols * b->tile_cols > b->cols || col_end > b->cols)
        col_end = b->cols;
    row -= halo->rows_before < row ? halo->rows_before : row;
    col -= halo->cols_before < col ? halo->cols_before : col;
    return (filch_view){.ptr = b->shadow + row + col * b->ld,
                        .rows = row_end - row,
                        .cols = col_end - col,
                        .ld = b->ld,
                        .row = row,
                        .col = col};
}

static bool meet(uint64_t a, uint64_t a_count, uint64_t b, uint64_t b_count, uint64_t tile)
{
    return a / tile <= (b + b_count - 1) / tile && b / tile <= (a + a_count - 1) / tile;
}

static bool have_common_tile(const buffer *buffers, const task *t, uint32_t a, uint32_t b)
{
    const buffer *of = &buffers[t->handles[a]];
    const filch_view x = view_of(of, &t->accesses[a], &t->halos[a]);
    const filch_view y = view_of(of, &t->accesses[b], &t->halos[b]);
    return t->handles[a] == t->handles[b] && meet(x.row, x.rows, y.row, y.rows, of->tile_rows) &&
           meet(x.col, x.cols, y.col, y.cols, of->tile_cols);
}

/* A task writes tiles that it does not read otherwise. */
static void make_task(gpu_world *world, const buffer *buffers, uint32_t count, task *t)
{
    uint32_t wanted = fl_random_below(&world->random, STEP_MOST_READS + 1);
    task draft = {0};
    t->args.seed = fl_random_next(&world->random);
    t->args.keeps = gpu_chance(world, 60);
    t->args.fails = gpu_chance(world, 4);
    t->reads = 0;
    choose_tiles(world, buffers, count, &draft, STEP_MOST_READS,
                 t->args.keeps ? FILCH_READWRITE : FILCH_WRITE);
    for (uint32_t r = 0; r < wanted; r++) {
        choose_tiles(world, buffers, count, &draft, r, FILCH_READ);
        if (have_common_tile(buffers, &draft, r, STEP_MOST_READS))
            continue;
        t->handles[t->reads] = draft.handles[r];
        t->halos[t->reads] = draft.halos[r];
        t->accesses[t->reads++] = draft.accesses[r];
    }
    t->handles[t->reads] = draft.handles[STEP_MOST_READS];
    t->halos[t->reads] = (filch_halo){0};
    t->accesses[t->reads] = draft.accesses[STEP_MOST_READS];
}

/* False: the graph's job is cancelled already. */
static bool add(const plan *p, const task *t)
{
    static const filch_halo none;
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_access accesses[STEP_MOST_READS + 1];
    for (uint32_t a = 0; a <= t->reads; a++) {
        accesses[a] = t->accesses[a];
        if (memcmp(&t->halos[a], &none, sizeof none) != 0)
            accesses[a].halo = &t->halos[a];
    }
    desc.codelet = step_codelets[t->reads];
    desc.args = &t->args;
    desc.accesses = accesses;
    desc.access_count = t->reads + 1;
    filch_status status = filch_graph_add(p->graph, &desc, NULL);
    if (step_fails_now && p->is_open && status == FILCH_WRONG_STATE)
        return false;
    gpu_expect(status, FILCH_OK, "filch_graph_add");
    return true;
}

static void make_plan(gpu_world *world, const buffer *buffers, uint32_t count, plan *p)
{
    p->is_open = gpu_chance(world, 25);
    p->count = (uint32_t)gpu_between(world, 1, MOST_TASKS);
    p->has_failing = false;
    for (uint32_t k = 0; k < p->count; k++) {
        make_task(world, buffers, count, &p->tasks[k]);
        p->has_failing = p->has_failing || p->tasks[k].args.fails != 0;
    }
    if (p->is_open)
        return;
    gpu_ok(filch_graph_create(world->runtime, NULL, &p->graph));
    for (uint32_t k = 0; k < p->count; k++)
        (void)add(p, &p->tasks[k]);
}

/* --- Running it --- */

static filch_job *submit(gpu_world *world, plan *p)
{
    filch_job *job = NULL;
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    how.on_failure = gpu_chance(world, 30) ? FILCH_FAILURE_CANCEL : FILCH_FAILURE_SKIP;
    if (!p->is_open) {
        gpu_ok(filch_graph_submit(p->graph, &how, &job));
        return job;
    }
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.kind = FILCH_GRAPH_OPEN;
    gpu_ok(filch_graph_create(world->runtime, &desc, &p->graph));
    gpu_ok(filch_graph_submit(p->graph, &how, &job));
    for (uint32_t k = 0; k < p->count; k++)
        if (!add(p, &p->tasks[k]))
            break;
    gpu_ok(filch_graph_close(p->graph));
    return job;
}

static void run_on_shadow(const buffer *buffers, const plan *p)
{
    for (uint32_t k = 0; k < p->count; k++) {
        const task *t = &p->tasks[k];
        filch_view views[STEP_MOST_READS + 1];
        for (uint32_t a = 0; a <= t->reads; a++)
            views[a] = view_of(&buffers[t->handles[a]], &t->accesses[a], &t->halos[a]);
        step_do(views, t->reads, &t->args);
    }
}

/* Compares, and changes a byte of what the host may then change. */
static void compare(gpu_world *world, buffer *b, uint32_t which)
{
    filch_access_mode mode = gpu_chance(world, 50) ? FILCH_READWRITE : FILCH_READ;
    if (b->is_managed)
        gpu_ok(filch_data_acquire(b->data, mode));
    for (uint64_t k = 0; k < b->ld * b->cols; k++)
        if (b->real[k] != b->shadow[k]) {
            gpu_fail("handle %u%s differs at row %llu, column %llu", which,
                     b->is_managed ? ", managed," : "", (unsigned long long)(k % b->ld),
                     (unsigned long long)(k / b->ld));
            break;
        }
    if (mode == FILCH_READWRITE) {
        uint64_t at = gpu_between(world, 0, b->cols - 1) * b->ld;
        b->real[at] = b->shadow[at] = fl_random_next(&world->random);
    }
    if (b->is_managed)
        gpu_ok(filch_data_release(b->data));
}

/* What a broken job wrote is unspecified: the host writes all of it anew. */
static void rewrite(gpu_world *world, buffer *b)
{
    bool reads = gpu_chance(world, 50);
    if (b->is_managed)
        gpu_ok(filch_data_acquire(b->data, reads ? FILCH_READWRITE : FILCH_WRITE));
    for (uint64_t k = 0; k < b->ld * b->cols; k++)
        b->real[k] = b->shadow[k] = fl_random_next(&world->random);
    if (b->is_managed)
        gpu_ok(filch_data_release(b->data));
}

/* Every task has run, failed or was left out, as the result says. False: the job is broken. */
static bool account(const gpu_world *world, filch_job *job, const plan *p, bool is_cancelled)
{
    filch_job_info info = {.size = sizeof info};
    filch_status status = filch_job_wait(job, -1);
    bool may_fail = step_fails_now && p->has_failing;
    /* A replay does not ask for shapes. */
    bool must_fail = may_fail && !is_cancelled && (world->devices > 1 || p->is_open);
    gpu_ok(filch_job_stats(job, &info, NULL, 0));
    if (info.done + info.failed + info.skipped != info.total ||
        (info.failed != 0) != (status == FILCH_TASK_FAILED) ||
        (info.skipped != 0 && status == FILCH_OK))
        gpu_fail("a job that ended with %s did %llu tasks of %llu; %llu failed, %llu were skipped",
                 filch_status_name(status), (unsigned long long)info.done,
                 (unsigned long long)info.total, (unsigned long long)info.failed,
                 (unsigned long long)info.skipped);
    if ((status == FILCH_TASK_FAILED && !may_fail) || (status != FILCH_TASK_FAILED && must_fail) ||
        (status == FILCH_CANCELLED && !is_cancelled))
        gpu_wait(world->runtime, job, may_fail ? FILCH_TASK_FAILED : FILCH_OK);
    else
        gpu_ok(filch_job_release(job));
    return status == FILCH_OK;
}

static void run_round(gpu_world *world, buffer *buffers, uint32_t handles, plan *plans,
                      uint32_t count)
{
    filch_job *jobs[MOST_GRAPHS] = {NULL};
    bool is_cancelled[MOST_GRAPHS] = {false};
    bool is_whole = true;
    step_fails_now = gpu_chance(world, 25);
    bool cancels = gpu_chance(world, 15);
    for (uint32_t g = 0; g < count && !gpu_has_failed(); g++) {
        jobs[g] = submit(world, &plans[g]);
        is_cancelled[g] = cancels && gpu_chance(world, 50);
        if (is_cancelled[g])
            gpu_ok(filch_job_cancel(jobs[g]));
    }
    for (uint32_t g = 0; g < count && !gpu_has_failed(); g++) {
        is_whole = account(world, jobs[g], &plans[g], is_cancelled[g]) && is_whole;
        run_on_shadow(buffers, &plans[g]);
        if (plans[g].is_open)
            gpu_ok(filch_graph_destroy(plans[g].graph));
    }
    step_fails_now = false;
    for (uint32_t h = 0; h < handles && !gpu_has_failed(); h++) {
        if (is_whole)
            compare(world, &buffers[h], h);
        else
            rewrite(world, &buffers[h]);
    }
}

static void check(gpu_world *world)
{
    buffer buffers[MOST_HANDLES] = {0};
    plan *plans = gpu_alloc(MOST_GRAPHS, sizeof *plans);
    uint32_t handles = (uint32_t)gpu_between(world, 1, MOST_HANDLES);
    uint32_t graphs = (uint32_t)gpu_between(world, 1, MOST_GRAPHS);
    uint64_t rounds = gpu_between(world, 1, MOST_ROUNDS);
    for (uint32_t h = 0; h < handles; h++)
        make_buffer(world, &buffers[h]);
    for (uint32_t g = 0; g < graphs; g++)
        make_plan(world, buffers, handles, &plans[g]);
    for (uint64_t r = 0; r < rounds && !gpu_has_failed(); r++)
        run_round(world, buffers, handles, plans, graphs);
    if (gpu_has_failed())
        return;
    for (uint32_t g = 0; g < graphs; g++)
        if (!plans[g].is_open)
            gpu_ok(filch_graph_destroy(plans[g].graph));
    for (uint32_t h = 0; h < handles; h++) {
        gpu_ok(filch_data_destroy(buffers[h].data));
        free(buffers[h].real);
        free(buffers[h].shadow);
    }
    free(plans);
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"graphs", step_open, check, 180};
    return gpu_main(&test, argc, argv);
}
