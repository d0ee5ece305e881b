/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/narrow.h"

#include <float.h>
#include <math.h>

extern const char fl_text_narrow[];

/* narrow.cu's threads a block. */
#define NARROW_THREADS 512

typedef struct norms {
    double most, sum;
} norms;

static void norms_add(norms *n, double value, double weight)
{
    double size = fabs(value);
    n->most = isnan(size) || size > n->most ? size : n->most;
    n->sum += size * weight;
}

static void norms_put(const norms *n, const filch_view *view, uint64_t col)
{
    double *at = (double *)view->ptr + col * view->ld;
    at[FL_NARROW_MOST] = n->most;
    at[FL_NARROW_SUM] = n->sum;
}

static int power_of(double most)
{
    int power = 0;
    if (most > 0 && most <= DBL_MAX)
        (void)frexp(most, &power);
    return power;
}

static double sum_of(const filch_view *view, uint64_t col)
{
    return ((const double *)view->ptr)[col * view->ld + FL_NARROW_SUM];
}

static double most_of(const filch_view *view, uint64_t col)
{
    return ((const double *)view->ptr)[col * view->ld + FL_NARROW_MOST];
}

static void narrow_column(const filch_call *call, uint64_t col, const int32_t *rows)
{
    const fl_narrow_args *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1];
    const double *x = (const double *)from->ptr + (args->col + col) * from->ld;
    float *y = (float *)to->ptr + col * to->ld;
    norms n = {0};
    for (uint64_t i = 0; i < from->rows; i++)
        norms_add(&n, x[i], args->weighs ? sum_of(&call->views[4], i) : 1);
    int power = power_of(n.most);
    for (uint64_t i = 0; i < from->rows; i++)
        y[i] = (float)ldexp(x[rows ? (uint64_t)rows[i] : i], -power);
    norms_put(&n, &call->views[2], col);
}

int fl_narrow_host(const filch_call *call)
{
    for (uint64_t j = 0; j < ((const fl_narrow_args *)call->args)->count; j++)
        narrow_column(call, j, NULL);
    return 0;
}

int fl_narrow_rows_host(const filch_call *call)
{
    for (uint64_t j = 0; j < ((const fl_narrow_args *)call->args)->count; j++)
        narrow_column(call, j, call->views[3].ptr);
    return 0;
}

static void widen_column(const filch_call *call, uint64_t col)
{
    const fl_narrow_args *args = call->args;
    const filch_view *from = &call->views[0], *to = &call->views[1], *scales = &call->views[3];
    const float *x = (const float *)from->ptr + col * from->ld;
    double *y = (double *)to->ptr + (args->col + col) * to->ld;
    int power = power_of(most_of(&call->views[4], col));
    norms n = {0};
    for (uint64_t i = 0; i < to->rows; i++) {
        double value = ldexp((double)x[i], power - power_of(most_of(scales, i)));
        y[i] = args->adds ? y[i] + value : value;
        norms_add(&n, y[i], sum_of(scales, i));
    }
    norms_put(&n, &call->views[2], col);
}

int fl_widen_host(const filch_call *call)
{
    for (uint64_t j = 0; j < ((const fl_narrow_args *)call->args)->count; j++)
        widen_column(call, j);
    return 0;
}

static int shape_of(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = (uint32_t)((const fl_narrow_args *)call->args)->count;
    shape->block[0] = NARROW_THREADS;
    return 0;
}

/* Bytes move, and little is computed. */
static double work_of(const filch_call *call)
{
    return (double)call->views[0].rows * (double)((const fl_narrow_args *)call->args)->count;
}

static const struct {
    const char *name, *entry;
    filch_host_fn host;
    uint32_t accesses;
} kernels[FL_NARROW_KERNELS] = {
    [FL_NARROW] = {"narrow", "fl_narrow", fl_narrow_host, 3},
    [FL_NARROW_ROWS] = {"narrow_rows", "fl_narrow_rows", fl_narrow_rows_host, 5},
    [FL_WIDEN] = {"widen", "fl_widen", fl_widen_host, 5},
};

static filch_status make(fl_dense *dense, fl_narrow_kernel which, bool has_kernel, bool has_host)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = fl_text_narrow;
    cuda.entry = kernels[which].entry;
    cuda.shape_of = shape_of;
    desc.name = kernels[which].name;
    desc.cuda = has_kernel ? &cuda : NULL;
    desc.host = has_host ? kernels[which].host : NULL;
    desc.work = work_of;
    desc.arg_size = sizeof(fl_narrow_args);
    return filch_codelet_create(dense->desc.runtime, &desc, &dense->narrow[which]);
}

/* Whether a device runs on the host's cores. */
static bool has_cores(const fl_dense *dense)
{
    uint32_t count = filch_device_count(dense->desc.runtime);
    for (uint32_t k = 0; k < count; k++) {
        filch_device_info info = FILCH_DEVICE_INFO_INIT;
        if (filch_device_at(dense->desc.runtime, k, &info) == FILCH_OK &&
            info.backend != FILCH_BACKEND_CUDA)
            return true;
    }
    return false;
}

filch_status fl_narrow_open(fl_dense *dense)
{
    filch_status status = FILCH_OK;
    if (dense->narrow[FL_WIDEN])
        return FILCH_OK;
    /* Alone at first: with a function on the host a kernel that cannot be had is no failure. */
    bool has_kernel = dense->desc.vendor && make(dense, FL_NARROW, true, false) == FILCH_OK;
    if (!has_kernel && !has_cores(dense))
        return FILCH_UNSUPPORTED;
    for (int k = 0; k < FL_NARROW_KERNELS && status == FILCH_OK; k++)
        status = make(dense, (fl_narrow_kernel)k, has_kernel, true);
    return status;
}

filch_status fl_narrow_add(const fl_dense *dense, filch_graph *graph, fl_narrow_kernel which,
                           fl_narrow_args args, const filch_access *accesses, uint32_t affinity)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = dense->narrow[which];
    desc.args = &args;
    desc.accesses = accesses;
    desc.access_count = kernels[which].accesses;
    desc.affinity = affinity;
    return filch_graph_add(graph, &desc, NULL);
}
