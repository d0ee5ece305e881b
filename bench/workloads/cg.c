/* SPDX-License-Identifier: Apache-2.0 */
/* Conjugate gradients by blocks of rows: in each iteration a task a block multiplies by the matrix,
 * one adds up the blocks' dot products, a task a block moves solution and residual, one adds up
 * again, and a task a block makes the next direction. An iteration is a graph, or some are, which
 * is submitted again when it is over. The vectors are made by tasks, so that each page is first
 * touched by a device. Where GPUs are among the devices they have no need of the host between
 * iterations, and of a neighbour's direction they get the planes alone that they read. */
#include "offload/offload.h"
#include "support/fail.h"
#include "workloads/cg_tasks.h"
#include "workloads/workload.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 64
#define N_MAX 500
#define ITERATIONS 50
#define ITERATIONS_MAX 100000
#define BLOCKS_A_DEVICE 3
#define BLOCKS_MAX 240 /* a task that adds up has as many accesses, and one more */

/* Iterations of a graph at most, where nothing else is asked for and there are GPUs. */
#define ITERATIONS_A_GRAPH 50
/* Of a solution whose sums were made in another order, beside its largest element. */
#define AGREEMENT 1e-9

/* The vectors first. The last three where there are GPUs. */
enum handle { X, R, P, Q, PARTS, SCALARS, VALUES, COLUMNS, STARTS, EDGES, WORK, HANDLES };
#define VECTORS PARTS

typedef struct cg {
    bench_cg_system system; /* its blocks: 0 until a runtime says how many devices there are */
    size_t steps_a_graph;
    bool is_idle;
    bool is_resident;
    uint32_t dealt; /* among so many GPUs the blocks are dealt out; 0: filch places them */
    double *vectors[VECTORS];
    bench_cg_part *parts; /* of p q for each block, then of r r */
    bench_cg_scalars *scalars;
    double *work;     /* null until there are GPUs */
    double *theirs;   /* a peer's result; null without a peer */
    double *expected; /* null until a check needs it */
    bench_mark *marks;
    bench_peer_work peer;
    bench_offload offload;
} cg;

/* --- The problem --- */

static void teardown(void *state)
{
    cg *s = state;
    bench_offload_close(&s->offload);
    bench_cg_free(&s->system);
    for (size_t k = 0; k < VECTORS; k++)
        free(s->vectors[k]);
    free(s->parts);
    free(s->scalars);
    free(s->work);
    free(s->theirs);
    free(s->expected);
    free(s->marks);
    free(s);
}

static filch_status check_gpu_options(const bench_options *o, filch_error *error)
{
    if (o->strips > BENCH_CG_PARTS)
        return bench_fail(error, FILCH_TOO_LARGE, "--strips", 0,
                          "%zu blocks are more than the %d whose parts a GPU adds up", o->strips,
                          BENCH_CG_PARTS);
    if (o->slow.factor != 0)
        return bench_fail(error, FILCH_UNSUPPORTED, "--slow", 0,
                          "cg's kernels cannot be done again on a GPU");
    return FILCH_OK;
}

static filch_status check_options(const bench_options *o, const cg *s, filch_error *error)
{
    const bench_cg_system *a = &s->system;
    const char *option = o->matrix                      ? "--matrix"
                         : o->tile                      ? "--tile"
                         : o->precision != BENCH_DOUBLE ? "--precision"
                                                        : NULL;
    if (option)
        return bench_fail(error, FILCH_UNSUPPORTED, option, 0,
                          "cg makes its matrix, in double precision, and cuts it in --strips");
    if (a->g > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu is above %d", a->g, N_MAX);
    if (a->blocks > a->g || a->blocks > BLOCKS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--strips", 0,
                          "%zu blocks are more than the %zu planes, or than %d", a->blocks, a->g,
                          BLOCKS_MAX);
    if (a->iterations > ITERATIONS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--steps", 0, "%zu is above %d", a->iterations,
                          ITERATIONS_MAX);
    return bench_steps_check(a->iterations, s->steps_a_graph, error);
}

static filch_status allocate(cg *s, filch_error *error)
{
    filch_status status = bench_cg_assemble(&s->system, error);
    bool is_complete = status == FILCH_OK;
    size_t line = sizeof(bench_cg_part);
    for (size_t k = 0; k < VECTORS && is_complete; k++) {
        size_t bytes = (s->system.rows * sizeof(double) + line - 1) / line * line;
        is_complete = (s->vectors[k] = aligned_alloc(line, bytes)) != NULL;
    }
    if (is_complete) {
        s->parts = aligned_alloc(line, 2 * BLOCKS_MAX * line);
        s->scalars = aligned_alloc(line, BENCH_CG_PARTS * line);
        s->marks = bench_marks_create(BLOCKS_MAX);
    }
    if (status == FILCH_OK && (!s->parts || !s->scalars || !s->marks))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for the vectors");
    return status;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    cg *s = calloc(1, sizeof *s);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "cg", 0, "no memory");
    s->system.g = options->n ? options->n : DEFAULT_N;
    s->system.blocks = options->strips;
    s->system.iterations = options->steps ? options->steps : ITERATIONS;
    bool has_gpus = bench_gpu_is_among(options->devices);
    s->steps_a_graph = options->steps_a_graph ? options->steps_a_graph
                       : has_gpus ? bench_steps_share(s->system.iterations, ITERATIONS_A_GRAPH)
                                  : 1;
    s->is_idle = bench_is_simulated(options) && !options->check;
    s->is_resident = options->resident;
    s->offload.has_no_vendor = true;
    filch_status status = check_options(options, s, error);
    if (status == FILCH_OK && has_gpus)
        status = check_gpu_options(options, error);
    if (status == FILCH_OK)
        status = allocate(s, error);
    if (status != FILCH_OK) {
        teardown(s);
        return status;
    }
    *state = s;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const cg *s = state;
    const bench_cg_system *a = &s->system;
    problem->n = a->g;
    problem->work = (double)a->rows * (double)a->iterations;
    problem->steps = a->iterations;
    problem->step = "iteration";
    snprintf(problem->variant, sizeof problem->variant, "%zu blocks, %zu iterations, %zu a graph",
             a->blocks, a->iterations, s->steps_a_graph);
    snprintf(problem->text, sizeof problem->text,
             "%zu iterations of conjugate gradients on a grid of %zu^3 in %zu blocks, %zu a graph",
             a->iterations, a->g, a->blocks, s->steps_a_graph);
}

/* --- Handles --- */

/* On GPUs what no job needs to begin with stays there, and with --resident all does. */
static uint32_t flags_of(const cg *s, enum handle handle)
{
    bool is_given = handle == X || handle == VALUES || handle == COLUMNS || handle == STARTS;
    if (!s->offload.has_gpus || (is_given && !s->is_resident))
        return 0;
    return handle == EDGES ? FILCH_DATA_MANAGED | FILCH_DATA_NO_BUFFER : FILCH_DATA_MANAGED;
}

static filch_status make_handle(const cg *s, bench_built *built, enum handle handle,
                                filch_data_desc *desc)
{
    static const char *const labels[HANDLES] = {[X] = "x",           [R] = "r",
                                                [P] = "p",           [Q] = "q",
                                                [PARTS] = "parts",   [SCALARS] = "scalars",
                                                [VALUES] = "values", [COLUMNS] = "columns",
                                                [STARTS] = "starts", [EDGES] = "edges",
                                                [WORK] = "work"};
    desc->label = labels[handle];
    desc->flags = flags_of(s, handle);
    return filch_data_create(built->runtime, desc, &built->data[handle]);
}

/* One tile a block; the elements up to a block: its rows, or those of the matrix. */
static filch_status make_blocks(const cg *s, bench_built *built, enum handle handle, void *memory,
                                size_t element)
{
    const bench_cg_system *a = &s->system;
    bool is_matrix = handle == VALUES || handle == COLUMNS;
    uint64_t cuts[BLOCKS_MAX];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    for (size_t b = 0; b < a->blocks; b++) {
        size_t lo = bench_cg_row(a, b), hi = bench_cg_row(a, b + 1);
        cuts[b] = is_matrix ? a->starts[hi] - a->starts[lo] : hi - lo;
    }
    desc.ptr = memory;
    desc.element = element;
    desc.rows = is_matrix ? a->starts[a->rows] : a->rows;
    desc.row_cuts = cuts;
    desc.row_cut_count = (uint32_t)a->blocks;
    return make_handle(s, built, handle, &desc);
}

/* As many tiles, of so many elements each. */
static filch_status make_tiles(const cg *s, bench_built *built, enum handle handle, void *memory,
                               size_t element, size_t tiles, size_t each)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = memory;
    desc.element = element;
    desc.rows = tiles * each;
    desc.tile_rows = each;
    return make_handle(s, built, handle, &desc);
}

static filch_status make_gpu_handles(cg *s, bench_built *built)
{
    bench_cg_system *a = &s->system;
    size_t elements = a->starts[a->rows];
    if (!s->work)
        s->work = calloc((size_t)BENCH_CG_PARTS * BENCH_CG_WORK, sizeof *s->work);
    if (!s->work)
        return FILCH_OUT_OF_MEMORY;
    bench_offload_pin(&s->offload, s->vectors[X], a->rows * sizeof *s->vectors[X]);
    bench_offload_pin(&s->offload, a->values, elements * sizeof *a->values);
    bench_offload_pin(&s->offload, a->columns, elements * sizeof *a->columns);
    bench_offload_pin(&s->offload, a->starts, (a->rows + 1) * sizeof *a->starts);
    filch_status status = make_blocks(s, built, STARTS, a->starts, sizeof *a->starts);
    if (status == FILCH_OK)
        status = make_tiles(s, built, EDGES, NULL, sizeof(double), 2 * a->blocks, a->g * a->g);
    return status == FILCH_OK
               ? make_tiles(s, built, WORK, s->work, sizeof *s->work, a->blocks, BENCH_CG_WORK)
               : status;
}

static filch_status make_handles(cg *s, bench_built *built)
{
    const bench_cg_system *a = &s->system;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < VECTORS && status == FILCH_OK; k++)
        status = make_blocks(s, built, (enum handle)k, s->vectors[k], sizeof(double));
    if (status == FILCH_OK)
        status = make_blocks(s, built, VALUES, a->values, sizeof *a->values);
    if (status == FILCH_OK)
        status = make_blocks(s, built, COLUMNS, a->columns, sizeof *a->columns);
    if (status == FILCH_OK)
        status = make_tiles(s, built, PARTS, s->parts, sizeof *s->parts, 2 * a->blocks, 1);
    if (status == FILCH_OK)
        status = make_tiles(s, built, SCALARS, s->scalars, sizeof *s->scalars,
                            s->offload.has_gpus ? a->blocks : 1, 1);
    return status == FILCH_OK && s->offload.has_gpus ? make_gpu_handles(s, built) : status;
}

/* --- Graphs --- */

typedef struct accesses {
    filch_access each[BLOCKS_MAX + 1];
    uint32_t count;
} accesses;

static void use(accesses *all, const bench_built *built, enum handle handle, size_t tile,
                filch_access_mode mode)
{
    all->each[all->count++] =
        (filch_access){.data = built->data[handle], .row = (uint32_t)tile, .mode = mode};
}

/* A block's first and last plane. */
static void use_edges(accesses *all, const cg *s, const bench_built *built, size_t block)
{
    if (!s->offload.has_gpus)
        return;
    use(all, built, EDGES, 2 * block, FILCH_WRITE);
    use(all, built, EDGES, 2 * block + 1, FILCH_WRITE);
}

static void use_work(accesses *all, const cg *s, const bench_built *built, size_t block)
{
    if (s->offload.has_gpus)
        use(all, built, WORK, block, FILCH_READWRITE);
}

static filch_status add(const cg *s, const bench_built *built, filch_graph *graph,
                        bench_cg_task task, const bench_cg_arguments *args, const accesses *all)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = built->codelets[task];
    desc.args = args;
    desc.accesses = all->each;
    desc.access_count = all->count;
    if (s->dealt && s->system.blocks)
        desc.affinity = (uint32_t)(args->block * s->dealt / s->system.blocks) + 1;
    return filch_graph_add(graph, &desc, NULL);
}

static filch_status add_of_block(const cg *s, const bench_built *built, filch_graph *graph,
                                 bench_cg_task task, size_t block, const accesses *all)
{
    const bench_cg_arguments args = {
        .system = &s->system, .mark = &s->marks[block], .block = block};
    return add(s, built, graph, task, &args, all);
}

/* Where there are GPUs each block has scalars of its own, made of all parts: so that no GPU waits
 * for what another one has made of them. */
static size_t scalars_of(const cg *s, size_t block)
{
    return s->offload.has_gpus ? block : 0;
}

/* first: of the parts that are added up. A kernel has as many views whatever the parts are. */
static filch_status add_sum(const cg *s, const bench_built *built, filch_graph *graph, size_t first,
                            bench_cg_meaning meaning, size_t block)
{
    size_t blocks = s->system.blocks, views = s->offload.has_gpus ? BENCH_CG_PARTS : blocks;
    const bench_cg_arguments args = {
        .system = &s->system, .block = block, .meaning = meaning, .parts = (uint32_t)blocks};
    accesses all = {.count = 0};
    use(&all, built, SCALARS, block, meaning == BENCH_CG_BEGIN ? FILCH_WRITE : FILCH_READWRITE);
    for (size_t k = 0; k < views; k++)
        use(&all, built, PARTS, first + (k < blocks ? k : 0), FILCH_READ);
    return add(s, built, graph, BENCH_CG_SUM, &args, &all);
}

static filch_status add_sums(const cg *s, const bench_built *built, filch_graph *graph,
                             size_t first, bench_cg_meaning meaning)
{
    size_t count = s->offload.has_gpus ? s->system.blocks : 1;
    filch_status status = FILCH_OK;
    for (size_t b = 0; b < count && status == FILCH_OK; b++)
        status = add_sum(s, built, graph, first, meaning, b);
    return status;
}

static filch_status add_multiply(const cg *s, const bench_built *built, filch_graph *graph,
                                 size_t b)
{
    size_t last = s->system.blocks - 1;
    accesses all = {.count = 0};
    use(&all, built, Q, b, FILCH_WRITE);
    use(&all, built, PARTS, b, FILCH_WRITE);
    use(&all, built, VALUES, b, FILCH_READ);
    use(&all, built, COLUMNS, b, FILCH_READ);
    use(&all, built, P, b, FILCH_READ);
    if (s->offload.has_gpus) { /* an outer block reads nothing of the plane beyond: any will do */
        use(&all, built, STARTS, b, FILCH_READ);
        use(&all, built, EDGES, b > 0 ? 2 * b - 1 : 0, FILCH_READ);
        use(&all, built, EDGES, b < last ? 2 * b + 2 : 2 * b + 1, FILCH_READ);
        use_work(&all, s, built, b);
    } else {
        if (b > 0)
            use(&all, built, P, b - 1, FILCH_READ);
        if (b < last)
            use(&all, built, P, b + 1, FILCH_READ);
    }
    return add_of_block(s, built, graph, BENCH_CG_MULTIPLY, b, &all);
}

static filch_status add_update(const cg *s, const bench_built *built, filch_graph *graph, size_t b)
{
    accesses all = {.count = 0};
    use(&all, built, X, b, FILCH_READWRITE);
    use(&all, built, R, b, FILCH_READWRITE);
    use(&all, built, P, b, FILCH_READ);
    use(&all, built, Q, b, FILCH_READ);
    use(&all, built, PARTS, s->system.blocks + b, FILCH_WRITE);
    use(&all, built, SCALARS, scalars_of(s, b), FILCH_READ);
    use_work(&all, s, built, b);
    return add_of_block(s, built, graph, BENCH_CG_UPDATE, b, &all);
}

static filch_status add_direction(const cg *s, const bench_built *built, filch_graph *graph,
                                  size_t b)
{
    accesses all = {.count = 0};
    use(&all, built, P, b, FILCH_READWRITE);
    use(&all, built, R, b, FILCH_READ);
    use(&all, built, SCALARS, scalars_of(s, b), FILCH_READ);
    use_edges(&all, s, built, b);
    return add_of_block(s, built, graph, BENCH_CG_DIRECTION, b, &all);
}

static filch_status add_iteration(const cg *s, const bench_built *built, filch_graph *graph)
{
    size_t blocks = s->system.blocks;
    filch_status status = FILCH_OK;
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++)
        status = add_multiply(s, built, graph, b);
    if (status == FILCH_OK)
        status = add_sums(s, built, graph, 0, BENCH_CG_ALPHA);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++)
        status = add_update(s, built, graph, b);
    if (status == FILCH_OK)
        status = add_sums(s, built, graph, blocks, BENCH_CG_BETA);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++)
        status = add_direction(s, built, graph, b);
    return status;
}

static filch_status add_init(const cg *s, bench_built *built)
{
    size_t blocks = s->system.blocks;
    filch_status status = filch_graph_create(built->runtime, NULL, &built->restore);
    for (size_t b = 0; b < blocks && status == FILCH_OK; b++) {
        accesses all = {.count = 0};
        use(&all, built, X, b, FILCH_WRITE);
        use(&all, built, R, b, FILCH_WRITE);
        use(&all, built, P, b, FILCH_WRITE);
        use(&all, built, PARTS, blocks + b, FILCH_WRITE);
        use_edges(&all, s, built, b);
        use_work(&all, s, built, b);
        status = add_of_block(s, built, built->restore, BENCH_CG_INIT, b, &all);
    }
    return status == FILCH_OK ? add_sums(s, built, built->restore, blocks, BENCH_CG_BEGIN) : status;
}

static double work_of(const filch_call *call)
{
    const bench_cg_arguments *args = call->args;
    const bench_cg_system *a = args->system;
    return (double)(bench_cg_row(a, args->block + 1) - bench_cg_row(a, args->block));
}

static filch_status make_codelets(const cg *s, bench_built *built)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < BENCH_CG_TASKS && status == FILCH_OK; k++) {
        const bench_cg_code *code = &bench_cg_codes[k];
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = code->name;
        desc.host = s->is_idle ? bench_run_nothing : code->host;
        desc.cuda = s->offload.has_gpus ? &code->cuda : NULL;
        desc.work = k == BENCH_CG_SUM ? NULL : work_of;
        desc.arg_size = sizeof(bench_cg_arguments);
        status = filch_codelet_create(built->runtime, &desc, &built->codelets[k]);
    }
    return status;
}

/* GPUs that are alike have a block each: a sum is then made of the fewest parts. */
static size_t blocks_for(const cg *s, uint32_t devices)
{
    size_t most = s->offload.has_gpus ? BENCH_CG_PARTS : BLOCKS_MAX;
    bool is_alike = s->offload.has_gpus && (s->dealt == devices || devices == 1);
    size_t wanted = is_alike ? devices : (size_t)BLOCKS_A_DEVICE * devices;
    most = s->system.g < most ? s->system.g : most;
    return wanted < most ? wanted : most;
}

static filch_status build(void *state, bench_built *built)
{
    cg *s = state;
    bench_offload_meet(&s->offload, built->runtime);
    s->dealt = s->offload.has_gpus ? bench_offload_alike(built->runtime) : 0;
    if (s->system.blocks == 0)
        s->system.blocks = blocks_for(s, filch_device_count(built->runtime));
    filch_status status = make_handles(s, built);
    if (status == FILCH_OK)
        status = make_codelets(s, built);
    if (status == FILCH_OK)
        status = add_init(s, built);
    if (status == FILCH_OK)
        status = filch_graph_create(built->runtime, NULL, &built->graph);
    for (size_t k = 0; k < s->steps_a_graph && status == FILCH_OK; k++)
        status = add_iteration(s, built, built->graph);
    if (status == FILCH_OK && (flags_of(s, X) & FILCH_DATA_MANAGED) != 0)
        built->result = built->data[X];
    return status;
}

/* --- Runs --- */

static void reset(void *state)
{
    cg *s = state;
    bench_marks_reset(s->marks, s->system.blocks);
}

static size_t jobs(const void *state)
{
    const cg *s = state;
    return s->system.iterations / s->steps_a_graph;
}

static bool moves(const void *state, bench_moves *of)
{
    const cg *s = state;
    *of = bench_marks_sum(s->marks, s->system.blocks);
    return !s->is_idle && !s->offload.has_gpus;
}

/* On the host alone sums are made in the same order, and so all bits are the same. */
static filch_status compare_rows(const cg *s, const double *x, filch_error *error)
{
    size_t rows = s->system.rows;
    double most = 0;
    for (size_t row = 0; row < rows && s->offload.has_gpus; row++)
        most = fmax(most, fabs(s->expected[row]));
    for (size_t row = 0; row < rows; row++)
        if (!(fabs(x[row] - s->expected[row]) <= AGREEMENT * most))
            return bench_fail(error, FILCH_DATA, "check", 0,
                              "row %zu is %.17g in place of %.17g, which one thread computes", row,
                              x[row], s->expected[row]);
    return FILCH_OK;
}

static filch_status compare(cg *s, const double *x, filch_error *error)
{
    const bench_cg_system *a = &s->system;
    filch_status status = FILCH_OK;
    if (!s->expected) {
        s->expected = malloc(a->rows * sizeof *s->expected);
        status = s->expected ? bench_cg_solve(a, s->expected, error)
                             : bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory");
    }
    return status == FILCH_OK ? compare_rows(s, x, error) : status;
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    cg *s = state;
    *residual = bench_cg_backward_error(&s->system, s->vectors[X]);
    return compare(s, s->vectors[X], error);
}

/* A solution that nobody has computed since is none. One that stays on GPUs is filch's meanwhile.
 */
static filch_status check_begin(void *state, bool *rebuild, filch_error *error)
{
    cg *s = state;
    (void)rebuild;
    (void)error;
    for (size_t row = 0; row < s->system.rows && !(flags_of(s, X) & FILCH_DATA_MANAGED); row++)
        s->vectors[X][row] = NAN;
    return FILCH_OK;
}

static void check_end(void *state)
{
    (void)state;
}

static filch_status peer(void *state, unsigned workers, filch_error *error, bench_peer_work **work)
{
    cg *s = state;
    if (!s->theirs && !(s->theirs = calloc(s->system.rows, sizeof *s->theirs)))
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    s->peer = (bench_peer_work){.kind = BENCH_PEER_CG,
                                .workers = workers,
                                .n = s->system.g,
                                .problem = &s->system,
                                .c = s->theirs,
                                .keeps_memory = true,
                                .is_resident = s->is_resident};
    *work = &s->peer;
    return FILCH_OK;
}

static filch_status agree(void *state, filch_error *error)
{
    cg *s = state;
    return compare(s, s->theirs, error);
}

const bench_workload bench_cg = {
    .name = "cg",
    .help = "conjugate gradients on a grid of n^3 points, by blocks",
    .unit = "row",
    .takes_slow = true,
    .takes = BENCH_TAKES_STEPS | BENCH_TAKES_STRIPS | BENCH_TAKES_STEPS_A_GRAPH,
    .waits = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .jobs = jobs,
    .moves = moves,
    .check = check,
    .check_begin = check_begin,
    .check_end = check_end,
    .peer = peer,
    .agree = agree,
};
