/* SPDX-License-Identifier: Apache-2.0 */
/* Row blocks of random sparse matrices, on GPUs and host cores: products, and changes of values
 * between them. Blocks come with pointers and columns of both sizes, counted from 0 and from 1. The
 * geometry of a launch comes from the matrix, by a function that cannot touch the block. */
#include "gpu.h"

#include <stdlib.h>
#include <string.h>

#include "csr_cases.h"

enum { KINDS = 4, MOST_ROWS = 400, MOST_COLS = 300, MOST_ENTRIES = 20, MOST_ROUNDS = 4 };

/* base: of pointers and columns; factor: of the values. */
typedef struct arguments {
    const filch_data *matrix;
    uint64_t base;
    double factor;
} arguments;

/* The four kinds of blocks have kernels of their own: pointers of 4 or 8 bytes, and columns. */
static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "struct arguments { const void *matrix; unsigned long long base; double factor; };\n"
    "template <typename C, typename P>\n"
    "static __device__ void multiply(filch_view m, filch_view x, filch_view y, arguments args)\n"
    "{\n"
    "    const filch_csr<const double, C, P> a = filch_csr_of<const double, C, P>(m);\n"
    "    for (unsigned long long i = filch_thread(); i < a.rows; i += filch_threads()) {\n"
    "        double sum = 0;\n"
    "        for (P k = a.pointers[i]; k < a.pointers[i + 1]; k++)\n"
    "            sum += a.values[k - args.base] *\n"
    "                   filch_at<double>(x, a.columns[k - args.base] - args.base);\n"
    "        filch_at<double>(y, i) = sum;\n"
    "    }\n"
    "}\n"
    "template <typename C, typename P>\n"
    "static __device__ void scale(filch_view m, arguments args)\n"
    "{\n"
    "    const filch_csr<double, C, P> a = filch_csr_of<double, C, P>(m);\n"
    "    for (unsigned long long k = filch_thread(); k < a.nnz; k += filch_threads())\n"
    "        a.values[k] *= args.factor;\n"
    "}\n"
    "#define KERNELS(C, suffix, P) \\\n"
    "    extern \"C\" __global__ void multiply##suffix(filch_view m, filch_view x, filch_view y, "
    "\\\n"
    "                                                arguments args) \\\n"
    "    { multiply<C, P>(m, x, y, args); } \\\n"
    "    extern \"C\" __global__ void scale##suffix(filch_view m, arguments args) \\\n"
    "    { scale<C, P>(m, args); }\n"
    "KERNELS(int, 0, int)\n"
    "KERNELS(int, 1, long long)\n"
    "KERNELS(long long, 2, int)\n"
    "KERNELS(long long, 3, long long)\n";

static filch_codelet *multiply[KINDS], *scale[KINDS];

static int run_multiply(const filch_call *call)
{
    const arguments *args = call->args;
    filch_csr_block block = FILCH_CSR_BLOCK_INIT, named = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &block) != FILCH_OK ||
        filch_csr_view(args->matrix, &call->views[0], &named) != FILCH_OK ||
        memcmp(&block, &named, sizeof block) != 0 || block.base != args->base ||
        block.rows != call->views[2].rows)
        return 1;
    csr_multiply(&block, call->views[1].ptr, call->views[2].ptr);
    return 0;
}

static int run_scale(const filch_call *call)
{
    const arguments *args = call->args;
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &block) != FILCH_OK)
        return 1;
    for (uint64_t k = 0; k < block.nnz; k++)
        ((double *)block.values)[k] *= args->factor;
    return 0;
}

/* A thread a row, in blocks of 64. */
static int shape_of(const filch_call *call, filch_shape *shape)
{
    const arguments *args = call->args;
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(args->matrix, &call->views[0], &block) != FILCH_OK)
        return 1;
    shape->grid[0] = (uint32_t)(block.rows / 64 + 1);
    shape->block[0] = 64;
    return 0;
}

static filch_status open_codelets(gpu_world *world)
{
    static char names[KINDS][2][16];
    filch_status status = FILCH_OK;
    for (int kind = 0; kind < KINDS; kind++) {
        strcpy(names[kind][0], "multiply?");
        strcpy(names[kind][1], "scale?");
        *strchr(names[kind][0], '?') = *strchr(names[kind][1], '?') = (char)('0' + kind);
        gpu_twin(names[kind][0], run_multiply, 3, false, sizeof(arguments));
        gpu_twin(names[kind][1], run_scale, 1, false, sizeof(arguments));
    }
    for (int kind = 0; kind < KINDS && status == FILCH_OK; kind++) {
        status = gpu_codelet(world->runtime, source, names[kind][0], run_multiply,
                             sizeof(arguments), shape_of, &multiply[kind]);
        if (status == FILCH_OK)
            status = gpu_codelet(world->runtime, source, names[kind][1], run_scale,
                                 sizeof(arguments), NULL, &scale[kind]);
    }
    return status;
}

/* --- The test --- */

typedef struct plan {
    csr_case model;
    csr_arrays arrays;
    int kind;
    uint32_t count; /* blocks */
    arguments args;
    filch_data *matrix, *x_data, *y_data;
    double *x, *y, *expected;
} plan;

static void make_matrix(gpu_world *world, plan *p)
{
    uint64_t rows = gpu_between(world, 1, MOST_ROWS), cols = gpu_between(world, 1, MOST_COLS);
    p->model = csr_random(&world->random, rows, cols, (uint32_t)gpu_between(world, 0, MOST_ENTRIES),
                          gpu_chance(world, 40));
    p->kind = (int)fl_random_below(&world->random, KINDS);
    p->args.base = gpu_chance(world, 30);
    p->args.factor = (double)gpu_between(world, 0, 4) - 2;
    filch_csr_desc desc = csr_describe(&p->model, p->kind % 2 != 0 ? 8 : 4, p->kind > 1 ? 8 : 4,
                                       (uint32_t)p->args.base, &p->arrays);
    if (gpu_chance(world, 50))
        desc.blocks = (uint32_t)gpu_between(world, 1, 12);
    else
        desc.tile_rows = gpu_between(world, (rows + 11) / 12, rows);
    desc.flags = gpu_chance(world, 20) ? FILCH_DATA_PIN : 0;
    gpu_ok(filch_csr_create(world->runtime, &desc, &p->matrix));
    p->args.matrix = p->matrix;
    csr_drop(&p->arrays);
}

static void make_vectors(gpu_world *world, plan *p)
{
    uint64_t heights[12], rows = p->model.rows, cols = p->model.cols;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_tiling tiling = FILCH_TILING_INIT;
    gpu_ok(filch_data_tiles(p->matrix, &tiling));
    p->count = (uint32_t)tiling.rows;
    for (uint32_t i = 0; i < p->count && i < 12; i++) {
        filch_csr_block block = FILCH_CSR_BLOCK_INIT;
        gpu_ok(filch_csr_at(p->matrix, i, &block));
        heights[i] = block.rows;
    }
    p->x = csr_memory(cols, sizeof *p->x);
    p->y = csr_memory(rows, sizeof *p->y);
    p->expected = csr_memory(rows, sizeof *p->y);
    for (uint64_t j = 0; j < cols; j++)
        p->x[j] = (double)gpu_between(world, 0, 100) - 50;
    desc.element = sizeof(double);
    desc.ptr = p->x;
    desc.rows = cols;
    gpu_ok(filch_data_create(world->runtime, &desc, &p->x_data));
    desc.ptr = p->y;
    desc.rows = rows;
    desc.row_cuts = heights;
    desc.row_cut_count = p->count;
    gpu_ok(filch_data_create(world->runtime, &desc, &p->y_data));
}

static void add(filch_graph *graph, filch_codelet *codelet, const plan *p,
                const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.args = &p->args;
    desc.accesses = accesses;
    desc.access_count = count;
    gpu_ok(filch_graph_add(graph, &desc, NULL));
}

/* Values are scaled, and the product follows; some rounds on a graph that exists. */
static void run_plan(gpu_world *world, plan *p)
{
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    gpu_ok(filch_graph_create(world->runtime, NULL, &graph));
    for (uint32_t i = 0; i < p->count; i++) {
        const filch_access changed[] = {FILCH_RW(p->matrix, i, 0)};
        const filch_access read[] = {FILCH_R(p->matrix, i, 0), FILCH_R(p->x_data, 0, 0),
                                     FILCH_W(p->y_data, i, 0)};
        add(graph, scale[p->kind], p, changed, 1);
        add(graph, multiply[p->kind], p, read, 3);
    }
    uint64_t rounds = gpu_between(world, 1, MOST_ROUNDS);
    for (uint64_t r = 0; r < rounds && !gpu_has_failed(); r++) {
        gpu_ok(filch_graph_submit(graph, NULL, &job));
        gpu_wait(world->runtime, job, FILCH_OK);
        for (uint64_t k = 0; k < p->model.nnz; k++)
            p->model.values[k] *= p->args.factor;
        csr_product(&p->model, p->x, p->expected);
        for (uint64_t i = 0; i < p->model.rows && !gpu_has_failed(); i++)
            if (p->y[i] != p->expected[i])
                gpu_fail("row %llu of %llu is %g instead of %g, kind %d, round %llu",
                         (unsigned long long)i, (unsigned long long)p->model.rows, p->y[i],
                         p->expected[i], p->kind, (unsigned long long)r);
    }
    gpu_ok(filch_graph_destroy(graph));
}

/* The host finds the changed values. */
static void compare_values(plan *p)
{
    gpu_ok(filch_data_acquire(p->matrix, FILCH_READ));
    for (uint32_t i = 0; i < p->count && !gpu_has_failed(); i++) {
        filch_csr_block block = FILCH_CSR_BLOCK_INIT;
        filch_view view;
        gpu_ok(filch_data_view(p->matrix, i, 0, &view));
        gpu_ok(filch_csr_view(NULL, &view, &block));
        for (uint64_t k = 0; k < block.nnz && !gpu_has_failed(); k++)
            if (((const double *)block.values)[k] != p->model.values[block.entry + k])
                gpu_fail("value %llu of block %u is wrong", (unsigned long long)k, i);
    }
    gpu_ok(filch_data_release(p->matrix));
}

static void check(gpu_world *world)
{
    plan *p = gpu_alloc(1, sizeof *p);
    make_matrix(world, p);
    if (!gpu_has_failed())
        make_vectors(world, p);
    if (!gpu_has_failed())
        run_plan(world, p);
    if (!gpu_has_failed())
        compare_values(p);
    if (!gpu_has_failed()) {
        gpu_ok(filch_data_destroy(p->matrix));
        gpu_ok(filch_data_destroy(p->x_data));
        gpu_ok(filch_data_destroy(p->y_data));
        csr_free(&p->model);
        free(p->x);
        free(p->y);
        free(p->expected);
        free(p);
    }
}

int main(int argc, char **argv)
{
    static const gpu_test test = {"csr", open_codelets, check, 200};
    return gpu_main(&test, argc, argv);
}
