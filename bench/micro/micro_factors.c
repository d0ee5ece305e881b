/* SPDX-License-Identifier: Apache-2.0 */
/* LU and QR of a tall panel on one GPU, as tasks of kernels/dense: by cuSOLVER, and by filch's
 * kernels, in one launch for each 128 columns. The panel begins with the same numbers each time,
 * whose copy is not timed. */
#include "kernels/dense/dense.h"
#include "micro/micro.h"
#include "offload/offload.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "support/timing.h"

#include <stdlib.h>

#define ROWS_LEAST ((size_t)4096)
#define ROWS_MOST ((size_t)65536)
#define COLS_MOST ((size_t)1024)

static const size_t widths[] = {32, 512, 1024};

/* No task runs on the host. */
static const fl_dense_host host;

enum { LU, QR };

static const char *const kinds[] = {[LU] = "lu", [QR] = "qr"};

typedef struct bed {
    int kind;
    FILE *out;
    micro_list *list;
    filch_runtime *runtime;
    bench_offload offload;
    fl_dense *dense;
    filch_codelet *copy;
    double *numbers, *panel, *tau;
} bed;

/* One panel in one way. */
typedef struct trial {
    filch_data *input, *data;
    fl_lu *lu;
    fl_qr *qr;
    filch_graph *restore, *factor;
} trial;

static filch_status make_data(const bed *b, double *at, size_t rows, size_t cols, filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = rows;
    desc.cols = cols;
    desc.flags = FILCH_DATA_MANAGED;
    return filch_data_create(b->runtime, &desc, data);
}

static filch_status add_restore(const bed *b, const trial *t)
{
    const filch_access accesses[] = {FILCH_R(t->input, 0, 0), FILCH_W(t->data, 0, 0)};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = b->copy;
    desc.accesses = accesses;
    desc.access_count = 2;
    return filch_graph_add(t->restore, &desc, NULL);
}

static filch_status open_trial(const bed *b, size_t rows, size_t cols, fl_panels panels, trial *t)
{
    filch_status status = make_data(b, b->numbers, rows, cols, &t->input);
    if (status == FILCH_OK)
        status = make_data(b, b->panel, rows, cols, &t->data);
    const fl_columns a = {.data = t->data, .rows = rows, .cols = cols, .tile = cols};
    if (status == FILCH_OK)
        status = b->kind == LU ? fl_lu_open(b->dense, &a, panels, &t->lu)
                               : fl_qr_open(b->dense, &a, b->tau, panels, &t->qr);
    if (status == FILCH_OK)
        status = filch_graph_create(b->runtime, NULL, &t->restore);
    if (status == FILCH_OK)
        status = filch_graph_create(b->runtime, NULL, &t->factor);
    if (status == FILCH_OK)
        status = add_restore(b, t);
    if (status != FILCH_OK)
        return status;
    return b->kind == LU ? fl_lu_factor(t->lu, t->factor) : fl_qr_factor(t->qr, t->factor);
}

static void close_trial(trial *t)
{
    if (t->restore)
        (void)filch_graph_destroy(t->restore);
    if (t->factor)
        (void)filch_graph_destroy(t->factor);
    fl_lu_close(t->lu);
    fl_qr_close(t->qr);
    if (t->data)
        (void)filch_data_destroy(t->data);
    if (t->input)
        (void)filch_data_destroy(t->input);
}

static filch_status time_trial(const trial *t, double *rounds, filch_error *error)
{
    filch_status status = FILCH_OK;
    for (int r = -1; r < MICRO_ROUNDS && status == FILCH_OK; r++) { /* the first warms up */
        status = filch_graph_run(t->restore, NULL, error);
        double begin = bench_now_s();
        if (status == FILCH_OK)
            status = filch_graph_run(t->factor, NULL, error);
        rounds[r < 0 ? 0 : r] = bench_now_s() - begin;
    }
    if (status == FILCH_OK && t->lu && fl_lu_result(t->lu, NULL) != 0)
        return bench_fail(error, FILCH_DATA, "lu", 0, "a panel of random numbers is singular");
    return status;
}

static filch_status measure(const bed *b, size_t rows, size_t cols, fl_panels panels,
                            filch_error *error)
{
    trial t = {0};
    double rounds[MICRO_ROUNDS];
    char name[MICRO_NAME];
    filch_status status = open_trial(b, rows, cols, panels, &t);
    bool is_there =
        status == FILCH_OK && (b->kind == LU ? fl_lu_has(t.lu, panels) : fl_qr_has(t.qr, panels));
    if (status != FILCH_OK)
        (void)filch_runtime_error(b->runtime, error);
    else if (is_there)
        status = time_trial(&t, rounds, error);
    close_trial(&t);
    if (status != FILCH_OK || !is_there)
        return status;
    snprintf(name, sizeof name, "%zu x %zu: %s", rows, cols,
             panels == FL_PANELS_OWN ? "filch's kernel" : "cuSOLVER");
    micro_report(b->out, b->list, name, micro_median(rounds) * 1e6, "us");
    return FILCH_OK;
}

static filch_status open_dense(bed *b, size_t rows, size_t cols)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    fl_vendor_expect_panel(b->offload.vendor, sizeof(double), rows, cols);
    const fl_dense_desc dense = {.runtime = b->runtime,
                                 .host = &host,
                                 .vendor = b->offload.vendor,
                                 .element = sizeof(double)};
    bench_offload_copy(&b->offload, &cuda);
    desc.name = "copy";
    desc.cuda = &cuda;
    filch_status status = filch_codelet_create(b->runtime, &desc, &b->copy);
    return status == FILCH_OK ? fl_dense_open(&dense, &b->dense) : status;
}

static filch_status open_bed(bed *b, size_t rows, size_t cols, filch_error *error)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = "cuda:0";
    b->numbers = calloc(rows * cols, sizeof *b->numbers);
    b->panel = calloc(rows * cols, sizeof *b->panel);
    b->tau = calloc(cols, sizeof *b->tau);
    if (!b->numbers || !b->panel || !b->tau)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, kinds[b->kind], 0, "no memory for a panel");
    bench_dense_fill(rows, cols, rows, b->numbers, 1);
    filch_status status = filch_runtime_create(&config, error, &b->runtime);
    if (status != FILCH_OK)
        return status;
    bench_offload_meet(&b->offload, b->runtime);
    if (!b->offload.vendor)
        return bench_fail(error, FILCH_NOT_FOUND, kinds[b->kind], 0,
                          "cuBLAS or cuSOLVER is not installed");
    status = open_dense(b, rows, cols);
    if (status != FILCH_OK)
        (void)filch_runtime_error(b->runtime, error);
    return status;
}

static void close_bed(bed *b)
{
    fl_dense_close(b->dense);
    if (b->runtime)
        (void)filch_runtime_destroy(b->runtime);
    bench_offload_close(&b->offload);
    free(b->numbers);
    free(b->panel);
    free(b->tau);
}

static int measure_all(int kind, FILE *out, micro_list *list, size_t rows, size_t cols)
{
    filch_error error = FILCH_ERROR_INIT;
    bed b = {.kind = kind, .out = out, .list = list};
    if (bench_gpu_count(&error) == 0) {
        fprintf(stderr, "filch-bench micro: %s: %s\n", kinds[kind], error.text);
        return MICRO_ABSENT;
    }
    filch_status status = open_bed(&b, rows, cols, &error);
    for (size_t m = rows < ROWS_LEAST ? rows : ROWS_LEAST; m <= rows && status == FILCH_OK; m *= 2)
        for (size_t k = 0; k < sizeof widths / sizeof *widths && status == FILCH_OK; k++) {
            if (widths[k] > cols)
                continue;
            status = measure(&b, m, widths[k], FL_PANELS_VENDOR, &error);
            if (status == FILCH_OK)
                status = measure(&b, m, widths[k], FL_PANELS_OWN, &error);
        }
    close_bed(&b);
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: %s: %s\n", kinds[kind], error.text);
    return status == FILCH_NOT_FOUND ? MICRO_ABSENT : 1;
}

int micro_lu_upto(FILE *out, micro_list *list, size_t rows, size_t cols)
{
    return measure_all(LU, out, list, rows, cols);
}

int micro_qr_upto(FILE *out, micro_list *list, size_t rows, size_t cols)
{
    return measure_all(QR, out, list, rows, cols);
}

int micro_lu(FILE *out, micro_list *list)
{
    return micro_lu_upto(out, list, ROWS_MOST, COLS_MOST);
}

int micro_qr(FILE *out, micro_list *list)
{
    return micro_qr_upto(out, list, ROWS_MOST, COLS_MOST);
}
