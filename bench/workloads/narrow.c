/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs of short tasks, a few side by side, as they are in narrow.h: built once and submitted
 * again, or built while they run. Who waits for whom follows from the cells that tasks read and
 * write, one tile each, so that the runtime knows who wrote them. */
#include "problems/narrow.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH 8
#define WIDTH_MAX 10000
#define TASKS 8000
#define TASKS_MAX 10000000
#define TASK_US 1.0

typedef struct narrow {
    bench_narrow_graph problem;
    bench_peer_work work;
    double task_us;
    bool is_open;
    bool is_idle;         /* bodies are left out, and nothing is known of moves */
    bench_cell *expected; /* both rows, one after the other; null until a check needs them */
} narrow;

/* By value in each task. */
typedef struct arguments {
    uint64_t rounds;
    uint32_t self, row; /* the view, and its row, of the point's own cell of the step before */
} arguments;

static int run_narrow(const filch_call *call)
{
    const arguments *args = call->args;
    uint32_t reads = call->view_count - 1;
    const bench_cell *before = (const bench_cell *)call->views[args->self].ptr + args->row;
    bench_cell *own = call->views[reads].ptr;
    uint64_t value = 0, result = 0;
    for (uint32_t r = 0; r < reads; r++)
        for (uint64_t k = 0; k < call->views[r].rows; k++)
            value = bench_narrow_fold(value, ((const bench_cell *)call->views[r].ptr)[k].value);
    for (uint32_t times = bench_slow_times(call->device); times > 0; times--)
        result = bench_narrow_work(value, args->rounds);
    bool has_moved = before->device != BENCH_NARROW_NOBODY && before->device != call->device;
    own->value = result;
    own->device = call->device;
    own->moves = before->moves + has_moved;
    return 0;
}

static void teardown(void *state)
{
    narrow *s = state;
    free(s->problem.cells[0]);
    free(s->expected);
    free(s);
}

static filch_status check_options(const bench_options *o, filch_error *error)
{
    const char *option = o->matrix                      ? "--matrix"
                         : o->n                         ? "--n"
                         : o->tile                      ? "--tile"
                         : o->precision != BENCH_DOUBLE ? "--precision"
                                                        : NULL;
    size_t width = o->width ? o->width : WIDTH;
    if (option)
        return bench_fail(error, FILCH_UNSUPPORTED, option, 0,
                          "the size of a narrow graph is --width, --steps and --task-us");
    if (width > WIDTH_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--width", 0, "%zu is above %d", width,
                          WIDTH_MAX);
    if (o->steps > TASKS_MAX / width)
        return bench_fail(error, FILCH_TOO_LARGE, "--steps", 0,
                          "%zu of %zu tasks make more than %d", o->steps, width, TASKS_MAX);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    filch_status status = check_options(options, error);
    if (status != FILCH_OK)
        return status;
    narrow *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "narrow", 0, "no memory");
    bench_narrow_graph *n = &s->problem;
    n->pattern = options->pattern ? options->pattern : BENCH_PATTERN_STENCIL;
    n->width = options->width ? options->width : WIDTH;
    n->steps = options->steps ? options->steps : n->width < TASKS ? TASKS / n->width : 1;
    s->task_us = options->task_us > 0 ? options->task_us : TASK_US;
    s->is_open = options->open;
    s->is_idle = bench_is_simulated(options) && !options->check;
    n->cells[0] = aligned_alloc(sizeof(bench_cell), 2 * n->width * sizeof(bench_cell));
    if (!n->cells[0]) {
        size_t cells = 2 * n->width;
        teardown(s);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--width", 0, "no memory for %zu cells",
                          cells);
    }
    n->cells[1] = n->cells[0] + n->width;
    n->rounds = bench_is_simulated(options) ? 1 : bench_narrow_rounds(s->task_us);
    s->work = (bench_peer_work){.kind = s->is_open ? BENCH_PEER_NARROW_OPEN : BENCH_PEER_NARROW,
                                .n = n->width * n->steps,
                                .problem = n};
    bench_narrow_reset(n);
    *state = s;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const narrow *s = state;
    const bench_narrow_graph *n = &s->problem;
    const char *pattern = bench_pattern_name(n->pattern);
    problem->n = n->width;
    problem->work = (double)(n->width * n->steps);
    problem->steps = n->steps;
    problem->step = "step";
    snprintf(problem->variant, sizeof problem->variant, "%s, %zu steps, %g us, %s", pattern,
             n->steps, s->task_us, s->is_open ? "open" : "closed");
    snprintf(problem->text, sizeof problem->text,
             "%zu tasks of %g us: %zu steps, %zu wide, by the pattern %s, %s", n->width * n->steps,
             s->task_us, n->steps, n->width, pattern,
             s->is_open ? "built while they run" : "built once and submitted again and again");
}

/* What the task reads: a tile a point, or the whole row as one block. */
static size_t list_reads(const narrow *s, filch_data *row, size_t step, size_t point,
                         filch_access *accesses, arguments *args)
{
    size_t points[BENCH_NARROW_READS];
    if (s->problem.pattern == BENCH_PATTERN_ALL_TO_ALL) {
        accesses[0] = (filch_access)FILCH_WHOLE(row, FILCH_READ);
        args->row = (uint32_t)point;
        return 1;
    }
    size_t reads = bench_narrow_reads(&s->problem, step, point, points);
    for (uint32_t r = 0; r < reads; r++) {
        accesses[r] = (filch_access)FILCH_R(row, points[r], 0);
        if (points[r] == point)
            args->self = r;
    }
    return reads;
}

static filch_status add_task(const narrow *s, const bench_built *built, size_t step, size_t point)
{
    filch_access accesses[BENCH_NARROW_READS + 1];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    arguments args = {.rounds = s->problem.rounds};
    size_t reads = list_reads(s, built->data[1 - step % 2], step, point, accesses, &args);
    accesses[reads] = (filch_access)FILCH_W(built->data[step % 2], point, 0);
    desc.codelet = built->codelets[0];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = (uint32_t)reads + 1;
    return filch_graph_add(built->graph, &desc, NULL);
}

static filch_status add_all(const narrow *s, const bench_built *built)
{
    filch_status status = FILCH_OK;
    for (size_t step = 0; step < s->problem.steps; step++)
        for (size_t point = 0; point < s->problem.width && status == FILCH_OK; point++)
            status = add_task(s, built, step, point);
    return status;
}

static filch_status build(void *state, bench_built *built)
{
    const narrow *s = state;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    codelet.name = "narrow";
    codelet.host = s->is_idle ? bench_run_nothing : run_narrow;
    codelet.arg_size = sizeof(arguments);
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
    for (size_t row = 0; row < 2 && status == FILCH_OK; row++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = s->problem.cells[row];
        desc.element = sizeof(bench_cell);
        desc.rows = s->problem.width;
        desc.tile_rows = 1;
        desc.label = row == 0 ? "even" : "odd";
        status = filch_data_create(built->runtime, &desc, &built->data[row]);
    }
    if (status != FILCH_OK || s->is_open)
        return status;
    status = filch_graph_create(built->runtime, NULL, &built->graph);
    return status == FILCH_OK ? add_all(s, built) : status;
}

static void reset(void *state)
{
    bench_narrow_reset(&((narrow *)state)->problem);
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    const narrow *s = state;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    if (!s->is_open)
        return filch_graph_submit(built->graph, NULL, job);
    desc.kind = FILCH_GRAPH_OPEN;
    filch_status status = filch_graph_create(built->runtime, &desc, &built->graph);
    if (status == FILCH_OK)
        status = filch_graph_submit(built->graph, NULL, job);
    if (status == FILCH_OK)
        status = add_all(s, built);
    filch_status closed = *job ? filch_graph_close(built->graph) : FILCH_OK;
    return status == FILCH_OK ? closed : status;
}

static filch_status finish(void *state, bench_built *built, filch_error *error)
{
    const narrow *s = state;
    (void)error;
    if (s->is_open) {
        (void)filch_graph_destroy(built->graph);
        built->graph = NULL;
    }
    return FILCH_OK;
}

static bool moves(const void *state, bench_moves *of)
{
    const narrow *s = state;
    const bench_narrow_graph *n = &s->problem;
    if (s->is_idle)
        return false;
    of->visits = (double)(n->width * (n->steps - 1));
    of->moves = 0;
    for (size_t p = 0; p < n->width; p++)
        of->moves += n->cells[(n->steps - 1) % 2][p].moves;
    return true;
}

/* Cells that nobody has written since are no result. */
static filch_status check_begin(void *state, bool *rebuild, filch_error *error)
{
    (void)rebuild;
    (void)error;
    reset(state);
    return FILCH_OK;
}

static void check_end(void *state)
{
    (void)state;
}

/* All tasks one after the other, on rows of its own. */
static filch_status expect(narrow *s, filch_error *error)
{
    bench_narrow_graph n = s->problem;
    if (s->expected)
        return FILCH_OK;
    s->expected = aligned_alloc(sizeof(bench_cell), 2 * n.width * sizeof(bench_cell));
    if (!s->expected)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory");
    n.cells[0] = s->expected;
    n.cells[1] = s->expected + n.width;
    bench_narrow_reset(&n);
    for (size_t step = 0; step < n.steps; step++)
        for (size_t point = 0; point < n.width; point++)
            bench_narrow_task(&n, step, point);
    return FILCH_OK;
}

static filch_status agree(void *state, filch_error *error)
{
    narrow *s = state;
    filch_status status = expect(s, error);
    for (size_t k = 0; k < 2 * s->problem.width && status == FILCH_OK; k++)
        if (s->problem.cells[0][k].value != s->expected[k].value)
            status = bench_fail(error, FILCH_DATA, "check", 0,
                                "point %zu is not what one task after the other makes of it",
                                k % s->problem.width);
    return status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    (void)residual;
    return agree(state, error);
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    narrow *s = state;
    (void)error;
    s->work.workers = workers;
    *work = &s->work;
    return FILCH_OK;
}

const bench_workload bench_narrow = {
    .name = "narrow",
    .help = "steps of --width short tasks, each after some of the step before, as in Task Bench",
    .unit = "task",
    .takes_slow = true,
    .takes = BENCH_TAKES_PATTERN | BENCH_TAKES_WIDTH | BENCH_TAKES_TASK_US | BENCH_TAKES_STEPS |
             BENCH_TAKES_OPEN,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .start = start,
    .finish = finish,
    .moves = moves,
    .check = check,
    .check_begin = check_begin,
    .check_end = check_end,
    .peer = peer,
    .agree = agree,
};
