/* SPDX-License-Identifier: Apache-2.0 */
/* The program of docs/cusparse.md: steps of heat flow, x := M x with a sparse matrix in row blocks, by cuSPARSE on GPUs
 * and by loops on cores. */
#include <cusparse.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <filch/filch.h>

enum { SIDE = 60, N = SIDE * SIDE, BLOCKS = 8, STEPS = 20 };

/* What functions of tasks have in call->user. */
typedef struct problem {
    int pointers[N + 1], columns[5 * N];
    double values[5 * N];
    filch_data *A;
    size_t bytes; /* of the buffer of a product */
} problem;

/* cuSPARSE's descriptors of y = A x. */
typedef struct operands {
    cusparseSpMatDescr_t A;
    cusparseDnVecDescr_t x, y;
} operands;

static void forget(const operands *o)
{
    if (o->A)
        cusparseDestroySpMat(o->A);
    if (o->x)
        cusparseDestroyDnVec(o->x);
    if (o->y)
        cusparseDestroyDnVec(o->y);
}

static int describe(const filch_csr_block *a, void *x, void *y, operands *o)
{
    memset(o, 0, sizeof *o);
    int bad = cusparseCreateCsr(&o->A, (int64_t)a->rows, (int64_t)a->cols, (int64_t)a->nnz,
                                (void *)a->pointers, (void *)a->columns, a->values,
                                CUSPARSE_INDEX_32I, CUSPARSE_INDEX_32I, CUSPARSE_INDEX_BASE_ZERO,
                                CUDA_R_64F);
    if (!bad)
        bad = cusparseCreateDnVec(&o->x, (int64_t)a->cols, x, CUDA_R_64F);
    if (!bad)
        bad = cusparseCreateDnVec(&o->y, (int64_t)a->rows, y, CUDA_R_64F);
    if (bad)
        forget(o);
    return bad;
}

/* Called once for each lane of each GPU, when the codelet is made. */
static int open_lane(const filch_lane *lane, void *user, void **state)
{
    cusparseHandle_t handle;
    (void)user;
    if (cusparseCreate(&handle) != CUSPARSE_STATUS_SUCCESS)
        return 1;
    if (cusparseSetStream(handle, (cudaStream_t)lane->stream) != CUSPARSE_STATUS_SUCCESS) {
        cusparseDestroy(handle);
        return 2;
    }
    *state = handle;
    return 0;
}

static void close_lane(const filch_lane *lane, void *user, void *state)
{
    (void)lane;
    (void)user;
    cusparseDestroy(state);
}

/* Puts a row block's product on the lane's stream, and does not wait for it. */
static int multiply_gpu(const filch_call *call, const filch_lane *lane, void *state)
{
    const problem *p = call->user;
    const double one = 1, zero = 0;
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    operands o;
    (void)lane;
    if (filch_csr_view(p->A, &call->views[0], &a) != FILCH_OK) /* addresses on the GPU */
        return -1;
    int bad = describe(&a, call->views[1].ptr, call->views[2].ptr, &o);
    if (bad)
        return bad;
    bad = cusparseSpMV(state, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, o.A, o.x, &zero, o.y,
                       CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, call->views[3].ptr);
    forget(&o);
    return bad;
}

static int multiply_host(const filch_call *call)
{
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &a) != FILCH_OK)
        return -1;
    const int *pointers = a.pointers, *columns = a.columns;
    const double *values = a.values, *x = call->views[1].ptr;
    for (uint64_t i = 0; i < a.rows; i++) {
        double sum = 0;
        for (int k = pointers[i]; k < pointers[i + 1]; k++)
            sum += values[k] * x[columns[k]];
        ((double *)call->views[2].ptr)[i] = sum;
    }
    return 0;
}

/* The most bytes that cuSPARSE wants for a product with one of the blocks, on this GPU. */
static int ask_bytes(const filch_lane *lane, void *user)
{
    problem *p = user;
    const double one = 1, zero = 0;
    void *handle = NULL;
    int bad = open_lane(lane, NULL, &handle);
    for (uint32_t i = 0; !bad && i < BLOCKS; i++) {
        filch_csr_block a = FILCH_CSR_BLOCK_INIT;
        operands o;
        size_t bytes = 0;
        filch_csr_at(p->A, i, &a);
        a.pointers = p->pointers; /* The question reads none of the arrays. */
        a.columns = p->columns;
        a.values = p->values;
        bad = describe(&a, p->values, p->values, &o);
        if (bad)
            break;
        bad = cusparseSpMV_bufferSize(handle, CUSPARSE_OPERATION_NON_TRANSPOSE, &one, o.A, o.x,
                                      &zero, o.y, CUDA_R_64F, CUSPARSE_SPMV_ALG_DEFAULT, &bytes);
        forget(&o);
        p->bytes = bytes > p->bytes ? bytes : p->bytes;
    }
    if (handle)
        close_lane(lane, NULL, handle);
    return bad;
}

static double entries(const filch_call *call)
{
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    const problem *p = call->user;
    return filch_csr_view(p->A, &call->views[0], &a) == FILCH_OK ? (double)a.nnz : 1;
}

/* A codelet, the matrix, and two vectors that are cut as its rows. */
static filch_status make(filch_runtime *rt, problem *p, double *const *values, filch_codelet **code,
                         filch_data **vectors)
{
    filch_cuda_desc cuda = {.size = sizeof cuda, .enqueue = multiply_gpu, .open = open_lane,
                            .close = close_lane};
    filch_codelet_desc desc = {.size = sizeof desc, .name = "multiply", .host = multiply_host,
                               .cuda = &cuda, .work = entries, .user = p};
    filch_csr_desc matrix = FILCH_CSR_DESC_INIT;
    uint64_t cuts[BLOCKS];
    matrix.rows = matrix.cols = N, matrix.nnz = (uint64_t)p->pointers[N];
    matrix.pointers = p->pointers, matrix.columns = p->columns;
    matrix.values = p->values, matrix.element = sizeof *p->values;
    matrix.blocks = BLOCKS; /* about equal numbers of entries */
    filch_status status = filch_codelet_create(rt, &desc, code);
    if (status == FILCH_OK)
        status = filch_csr_create(rt, &matrix, &p->A);
    for (uint32_t i = 0; status == FILCH_OK && i < BLOCKS; i++) {
        filch_csr_block block = FILCH_CSR_BLOCK_INIT;
        status = filch_csr_at(p->A, i, &block);
        cuts[i] = block.rows;
    }
    for (int k = 0; status == FILCH_OK && k < 2; k++) {
        filch_data_desc vector = {.size = sizeof vector, .ptr = values[k], .element = sizeof(double),
                                  .rows = N, .cols = 1, .row_cuts = cuts, .row_cut_count = BLOCKS};
        status = filch_data_create(rt, &vector, &vectors[k]);
    }
    /* Cores refuse the question, and need no buffer. */
    for (uint32_t d = 0; status == FILCH_OK && d < filch_device_count(rt); d++) {
        filch_status asked = filch_device_scope(rt, d, ask_bytes, p);
        status = asked == FILCH_UNSUPPORTED ? FILCH_OK : asked;
    }
    return status;
}

static int flow(filch_runtime *rt, problem *p, double *const *values, filch_error *error)
{
    filch_codelet *code = NULL;
    filch_data *v[2] = {NULL, NULL};
    filch_graph *graph = NULL;
    int bad = make(rt, p, values, &code, v) || filch_graph_create(rt, NULL, &graph);
    for (int step = 0; !bad && step < STEPS; step++)
        for (uint32_t i = 0; !bad && i < BLOCKS; i++) {
            filch_data *x = v[step % 2], *y = v[(step + 1) % 2];
            filch_task_desc task = FILCH_TASK_DESC_INIT;
            task.codelet = code;
            task.accesses = (filch_access[]){
                FILCH_R(p->A, i, 0), FILCH_WHOLE(x, FILCH_READ), FILCH_W(y, i, 0),
                {.mode = FILCH_SCRATCH, .bytes = p->bytes}};
            task.access_count = p->bytes > 0 ? 4 : 3;
            bad = filch_graph_add(graph, &task, NULL) != FILCH_OK;
        }
    if (bad)
        return filch_runtime_error(rt, error), 1;
    return filch_graph_run(graph, NULL, error) != FILCH_OK;
}

/* A point keeps half of its heat, and gives an eighth to each neighbour within the square. */
static void set_up(problem *p)
{
    const int steps[][2] = {{0, -1}, {-1, 0}, {0, 0}, {1, 0}, {0, 1}};
    int at = 0;
    for (int row = 0; row < N; row++) {
        p->pointers[row] = at;
        for (int k = 0; k < 5; k++) {
            const int i = row % SIDE + steps[k][0], j = row / SIDE + steps[k][1];
            if (i < 0 || i >= SIDE || j < 0 || j >= SIDE)
                continue;
            p->columns[at] = j * SIDE + i;
            p->values[at++] = k == 2 ? 0.5 : 0.125;
        }
    }
    p->pointers[N] = at;
}

static double plain_error(const problem *p, double *x, double *y, const double *result)
{
    double worst = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int i = 0; i < N; i++) {
            y[i] = 0;
            for (int k = p->pointers[i]; k < p->pointers[i + 1]; k++)
                y[i] += p->values[k] * x[p->columns[k]];
        }
        memcpy(x, y, N * sizeof *x);
    }
    for (int i = 0; i < N; i++)
        worst = fmax(worst, fabs(result[i] - x[i]));
    return worst;
}

int main(void)
{
    static problem p;
    static double x[N], y[N], plain[2][N];
    double *const values[] = {x, y};
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *rt = NULL;
    set_up(&p);
    for (int i = 0; i < N; i++)
        x[i] = plain[0][i] = i % 7;
    int bad = filch_runtime_create(NULL, &error, &rt) != FILCH_OK;
    if (!bad) {
        bad = flow(rt, &p, values, &error);
        filch_runtime_abort(rt); /* and all that was made from it */
    }
    if (bad) {
        fprintf(stderr, "%s: %s\n", filch_status_message(error.status), error.text);
        return 1;
    }
    const double worst = plain_error(&p, plain[0], plain[1], STEPS % 2 ? y : x);
    printf("n = %d, %d products, largest error = %.1e\n", N, STEPS, worst);
    return !(worst < 1e-13);
}
