/* SPDX-License-Identifier: Apache-2.0 */
/* The program of docs/cublas.md: C := C + A B in tiles, by cuBLAS on GPUs and by loops on cores. */
#include <cublas_v2.h>
#include <math.h>
#include <stdio.h>

#include <filch/filch.h>

/* Called once for each lane of each GPU, when the codelet is made. */
static int open_lane(const filch_lane *lane, void *user, void **state)
{
    cublasHandle_t handle;
    (void)user;
    if (cublasCreate(&handle) != CUBLAS_STATUS_SUCCESS)
        return 1;
    if (cublasSetStream(handle, (cudaStream_t)lane->stream) != CUBLAS_STATUS_SUCCESS) {
        cublasDestroy(handle);
        return 2;
    }
    *state = handle;
    return 0;
}

static void close_lane(const filch_lane *lane, void *user, void *state)
{
    (void)lane;
    (void)user;
    cublasDestroy(state);
}

/* Puts a task's work on the lane's stream, and does not wait for it. */
static int gemm_gpu(const filch_call *call, const filch_lane *lane, void *state)
{
    const filch_view *a = &call->views[0], *b = &call->views[1], *c = &call->views[2];
    const double one = 1;
    (void)lane;
    return cublasDgemm(state, CUBLAS_OP_N, CUBLAS_OP_N, (int)c->rows, (int)c->cols, (int)a->cols,
                       &one, a->ptr, (int)a->ld, b->ptr, (int)b->ld, &one, c->ptr, (int)c->ld);
}

static int gemm_host(const filch_call *call)
{
    const filch_view *a = &call->views[0], *b = &call->views[1], *c = &call->views[2];
    for (uint64_t j = 0; j < c->cols; j++)
        for (uint64_t k = 0; k < a->cols; k++)
            for (uint64_t i = 0; i < c->rows; i++)
                ((double *)c->ptr)[j * c->ld + i] +=
                    ((double *)a->ptr)[k * a->ld + i] * ((double *)b->ptr)[j * b->ld + k];
    return 0;
}

static double operations(const filch_call *call)
{
    return 2.0 * (double)call->views[2].rows * (double)call->views[2].cols *
           (double)call->views[0].cols;
}

static filch_status make_gemm(filch_runtime *rt, filch_codelet **gemm)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc code = FILCH_CODELET_DESC_INIT;
    cuda.enqueue = gemm_gpu;
    cuda.open = open_lane;
    cuda.close = close_lane;
    code.name = "gemm";
    code.cuda = &cuda;
    code.host = gemm_host;
    code.work = operations;
    return filch_codelet_create(rt, &code, gemm);
}

static filch_data *square(filch_runtime *rt, double *values, uint64_t n, uint64_t tile)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = desc.cols = n;
    desc.tile_rows = desc.tile_cols = tile;
    filch_data_create(rt, &desc, &data);
    return data; /* null is refused by filch_graph_add */
}

static int multiply(filch_runtime *rt, uint64_t n, uint64_t tile, double *const *values,
                    filch_error *error)
{
    const uint32_t tiles = (uint32_t)((n + tile - 1) / tile);
    filch_codelet *gemm = NULL;
    filch_graph *graph = NULL;
    filch_data *a = square(rt, values[0], n, tile), *b = square(rt, values[1], n, tile);
    filch_data *c = square(rt, values[2], n, tile);
    int bad = make_gemm(rt, &gemm) || filch_graph_create(rt, NULL, &graph);
    for (uint32_t at = 0; !bad && at < tiles * tiles * tiles; at++) {
        const uint32_t i = at % tiles, j = at / tiles % tiles, k = at / tiles / tiles;
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = gemm;
        task.accesses = (filch_access[]){FILCH_R(a, i, k), FILCH_R(b, k, j), FILCH_RW(c, i, j)};
        task.access_count = 3;
        bad = filch_graph_add(graph, &task, NULL) != FILCH_OK;
    }
    if (bad)
        return filch_runtime_error(rt, error), 1;
    return filch_graph_run(graph, NULL, error) != FILCH_OK;
}

int main(void)
{
    enum { N = 240, TILE = 100 }; /* the last tiles are smaller */
    static double a[N * N], b[N * N], c[N * N];
    double *const values[] = {a, b, c};
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *rt = NULL;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            a[j * N + i] = i + 1;
            b[j * N + i] = (i + j) % 7;
            c[j * N + i] = 1;
        }
    int bad = filch_runtime_create(NULL, &error, &rt) != FILCH_OK;
    if (!bad) {
        bad = multiply(rt, N, TILE, values, &error);
        filch_runtime_abort(rt); /* and all that was made from it */
    }
    if (bad) {
        fprintf(stderr, "%s: %s\n", filch_status_message(error.status), error.text);
        return 1;
    }
    double worst = 0;
    for (int j = 0; j < N; j++) {
        double sum = 0; /* of column j of B: row i of A is i + 1 throughout */
        for (int k = 0; k < N; k++)
            sum += b[j * N + k];
        for (int i = 0; i < N; i++)
            worst = fmax(worst, fabs(c[j * N + i] - (1 + (i + 1) * sum)));
    }
    printf("n = %d, largest error = %.1e\n", N, worst);
    return worst > 0;
}
