/* SPDX-License-Identifier: Apache-2.0 */
#include "tasks_gpu.h"

#ifdef WITH_CUBLAS

#include <cublas_v2.h>
#include <cusolverDn.h>
#include <stdlib.h>
#include <string.h>

#include "tasks.h"

/* A block has a column; threads of several blocks share the rows of a long one. */
enum { THREADS = 256, ROWS = 2048 };

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "struct step {\n"
    "    const void *problem;\n"
    "    double work;\n"
    "    long long place, offset;\n"
    "    int node, first, panel, below, skip, is_whole;\n"
    "};\n"
    "extern \"C\" __global__ void fill(filch_view to, filch_view values, filch_view starts,\n"
    "                                filch_view entries, filch_view places, step t)\n"
    "{\n"
    "    const double *value = (const double *)values.ptr;\n"
    "    const int *start = (const int *)starts.ptr + t.first + to.col;\n"
    "    const int *entry = (const int *)entries.ptr, *place = (const int *)places.ptr;\n"
    "    for (unsigned long long k = blockIdx.x; k < to.cols; k += gridDim.x) {\n"
    "        double *column = (double *)to.ptr + k * to.ld;\n"
    "        for (unsigned long long i = to.col + threadIdx.x; i < to.rows; i += blockDim.x)\n"
    "            column[i] = 0;\n"
    "        __syncthreads();\n"
    "        for (int p = start[k] + (int)threadIdx.x; p < start[k + 1]; p += (int)blockDim.x)\n"
    "            column[place[p]] = value[entry[p]];\n"
    "    }\n"
    "}\n"
    "extern \"C\" __global__ void add(filch_view to, filch_view from, filch_view places, step t)\n"
    "{\n"
    "    const int *place = (const int *)places.ptr + t.place;\n"
    "    const long long low = t.skip + (long long)to.col, high = low + (long long)to.cols;\n"
    "    const int first = t.is_whole ? 0 : (int)from.col;\n"
    "    const int cols = t.is_whole ? t.below : (int)from.cols;\n"
    "    const unsigned long long ld = t.is_whole ? t.below : from.ld;\n"
    "    for (int k = blockIdx.x; k < cols && place[first + k] < high; k += gridDim.x) {\n"
    "        if (place[first + k] < low)\n"
    "            continue;\n"
    "        const double *source = (const double *)from.ptr + t.offset + k * ld;\n"
    "        double *column = (double *)to.ptr + (place[first + k] - low) * to.ld - t.skip;\n"
    "        for (int i = first + k + (int)(blockIdx.y * blockDim.x + threadIdx.x); i < t.below;\n"
    "             i += (int)(gridDim.y * blockDim.x))\n"
    "            column[place[i]] += source[i];\n"
    "    }\n"
    "}\n";

/* The handles of a lane; of subtract and outer without a solver. */
typedef struct tools {
    cublasHandle_t blas;
    cusolverDnHandle_t solver;
} tools;

static int shape_of_fill(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = (uint32_t)call->views[0].cols;
    shape->block[0] = THREADS;
    return 0;
}

static int shape_of_add(const filch_call *call, filch_shape *shape)
{
    const step *t = call->args;
    shape->grid[0] = t->is_whole ? (uint32_t)t->below : (uint32_t)call->views[1].cols;
    shape->grid[1] = (uint32_t)(t->below + ROWS - 1) / ROWS;
    shape->block[0] = THREADS;
    return 0;
}

static void close_lane(const filch_lane *lane, void *user, void *state)
{
    tools *t = state;
    (void)lane, (void)user;
    if (t->solver)
        cusolverDnDestroy(t->solver);
    if (t->blas)
        cublasDestroy(t->blas);
    free(t);
}

/* A lane's handles; user, if not null, is the workspace to be measured. */
static int open_lane(const filch_lane *lane, void *user, void **state)
{
    const cudaStream_t stream = (cudaStream_t)lane->stream;
    gpu_space *space = user;
    int elements = 0;
    tools *t = calloc(1, sizeof *t);
    bool ok = t && cublasCreate(&t->blas) == CUBLAS_STATUS_SUCCESS &&
              cublasSetStream(t->blas, stream) == CUBLAS_STATUS_SUCCESS;
    if (ok && space)
        ok = cusolverDnCreate(&t->solver) == CUSOLVER_STATUS_SUCCESS &&
             cusolverDnSetStream(t->solver, stream) == CUSOLVER_STATUS_SUCCESS &&
             cusolverDnDpotrf_bufferSize(t->solver, CUBLAS_FILL_MODE_LOWER, space->order, NULL,
                                         space->order, &elements) == CUSOLVER_STATUS_SUCCESS;
    if (ok) {
        if (space && elements >= space->elements)
            space->elements = elements + 1;
        *state = t;
        return 0;
    }
    if (t)
        close_lane(lane, user, t);
    return 1;
}

/* C := beta C - L L^T in the lower part of some columns of a square; the few elements above the
 * diagonal, which nobody reads, change, too. */
static int multiply(tools *own, const double *l, uint64_t depth, uint64_t ldl, double beta,
                    double *c, uint64_t rows, uint64_t cols, uint64_t ldc)
{
    const double minus = -1;
    return (int)cublasDgemm(own->blas, CUBLAS_OP_N, CUBLAS_OP_T, (int)rows, (int)cols, (int)depth,
                            &minus, l, (int)ldl, l, (int)ldl, &beta, c, (int)ldc);
}

static int subtract(const filch_call *call, const filch_lane *lane, void *state)
{
    const filch_view *to = &call->views[0], *l = &call->views[1];
    (void)lane;
    return multiply(state, (const double *)l->ptr + to->col, l->cols, l->ld, 1,
                    (double *)to->ptr + to->col, to->rows - to->col, to->cols, to->ld);
}

static int outer(const filch_call *call, const filch_lane *lane, void *state)
{
    const filch_view *to = &call->views[0];
    int bad = 0;
    (void)lane;
    for (uint32_t k = 1; !bad && k < call->view_count; k++) {
        const filch_view *l = &call->views[k];
        bad =
            multiply(state, (const double *)l->ptr + (l->rows - to->rows) + to->col, l->cols, l->ld,
                     k > 1, (double *)to->ptr + to->col, to->rows - to->col, to->cols, to->ld);
    }
    return bad;
}

/* Where a pivot is not positive, cuSOLVER says so in the supernode's pivots. */
static int pivot(const filch_call *call, const filch_lane *lane, void *state)
{
    const filch_view *c = &call->views[0], *space = &call->views[2];
    const step *t = call->args;
    const double one = 1;
    tools *own = state;
    double *diagonal = (double *)c->ptr + c->col;
    const int cols = (int)c->cols, below = (int)(c->rows - c->col - c->cols), ld = (int)c->ld;
    (void)lane;
    int bad = (int)cusolverDnDpotrf(own->solver, CUBLAS_FILL_MODE_LOWER, cols, diagonal, ld,
                                    space->ptr, (int)(space->rows / sizeof(double)),
                                    (int *)call->views[1].ptr + t->panel);
    if (!bad && below > 0)
        bad = (int)cublasDtrsm(own->blas, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T,
                               CUBLAS_DIAG_NON_UNIT, below, cols, &one, diagonal, ld,
                               diagonal + cols, ld);
    return bad;
}

bool gpu_is_built(void)
{
    return true;
}

bool gpu_describe(const char *kind, gpu_space *space, filch_cuda_desc *made)
{
    const struct {
        const char *kind;
        filch_enqueue_fn enqueue;
    } products[] = {{"subtract", subtract}, {"outer", outer}, {"pivot", pivot}};
    *made = (filch_cuda_desc)FILCH_CUDA_DESC_INIT;
    if (strcmp(kind, "fill") == 0 || strcmp(kind, "add") == 0) {
        made->source = source, made->entry = kind;
        made->shape_of = strcmp(kind, "fill") == 0 ? shape_of_fill : shape_of_add;
        return true;
    }
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        if (strcmp(kind, products[i].kind) == 0) {
            made->enqueue = products[i].enqueue, made->open = open_lane, made->close = close_lane;
            made->user = products[i].enqueue == pivot ? space : NULL;
            return true;
        }
    }
    return false;
}

#else

bool gpu_is_built(void)
{
    return false;
}

bool gpu_describe(const char *kind, gpu_space *space, filch_cuda_desc *made)
{
    (void)kind, (void)space, (void)made;
    return false;
}

#endif
