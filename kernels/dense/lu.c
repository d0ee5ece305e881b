/* SPDX-License-Identifier: Apache-2.0 */
/* LU factorization with partial pivoting, right-looking, by block columns (LAPACK's getrf; with the
 * next panel first, as in J. Dongarra et al., "The LINPACK benchmark: past, present and future",
 * Concurrency and Computation 15, 2003). A panel's pivots are rows of the panel: they are exchanged
 * in the block columns on the right as those are updated, and on the left at the end, because
 * nothing reads there before. */
#include "kernels/dense/codelets.h"
#include "kernels/dense/steps.h"

#include <stdlib.h>

/* filch's limit of accesses, but for the block column itself. */
#define PIVOTS_MOST 254

struct fl_lu {
    const fl_dense *dense;
    fl_columns a;
    size_t order;  /* the smaller side */
    size_t panels; /* block columns that have pivots */
    int32_t *values;
    int32_t *infos;
    filch_data *pivots;
    filch_data *info;
};

int fl_dense_run_lu_panel(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view panel = fl_part(a, args->row, 0, a->rows - args->row, a->cols);
    return fl_place_getrf(on, &panel, call->views[1].ptr, call->views[2].ptr);
}

double fl_dense_work_lu_panel(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    return fl_flops_lu((double)(a->rows - args->row), (double)a->cols);
}

/* The views of pivots are in the order of the exchanges. */
int fl_dense_run_swap(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    int code = 0;
    for (uint32_t k = 1; k < call->view_count && code == 0; k++) {
        const filch_view *pivots = &call->views[k];
        const filch_view rows = fl_part(a, pivots->row, 0, a->rows - pivots->row, a->cols);
        code = fl_place_laswp(on, &rows, pivots->ptr, pivots->rows, args->swap != 0);
    }
    return code;
}

/* Exchanges are no operations, but take time like some. */
double fl_dense_work_swap(const filch_call *call)
{
    double rows = 0;
    for (uint32_t k = 1; k < call->view_count; k++)
        rows += (double)call->views[k].rows;
    return 2 * rows * (double)call->views[0].cols;
}

static filch_status make_data(fl_lu *lu)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_runtime *runtime = lu->dense->desc.runtime;
    desc.ptr = lu->values;
    desc.element = sizeof *lu->values;
    desc.rows = lu->order;
    desc.tile_rows = fl_least(lu->a.tile, lu->order);
    desc.label = "pivots";
    filch_status status = filch_data_create(runtime, &desc, &lu->pivots);
    if (status != FILCH_OK)
        return status;
    desc.ptr = lu->infos;
    desc.rows = lu->panels;
    desc.tile_rows = 1;
    desc.label = "info";
    return filch_data_create(runtime, &desc, &lu->info);
}

filch_status fl_lu_open(const fl_dense *dense, const fl_columns *a, fl_lu **out)
{
    fl_lu *lu = calloc(1, sizeof *lu);
    if (!lu)
        return FILCH_OUT_OF_MEMORY;
    lu->dense = dense;
    lu->a = *a;
    lu->order = fl_least(a->rows, a->cols);
    lu->panels = (lu->order + a->tile - 1) / a->tile;
    lu->values = calloc(lu->order, sizeof *lu->values);
    lu->infos = calloc(lu->panels, sizeof *lu->infos);
    filch_status status = lu->values && lu->infos ? make_data(lu) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        *out = lu;
    else
        fl_lu_close(lu);
    return status;
}

void fl_lu_close(fl_lu *lu)
{
    if (!lu)
        return;
    if (lu->pivots)
        (void)filch_data_destroy(lu->pivots);
    if (lu->info)
        (void)filch_data_destroy(lu->info);
    free(lu->values);
    free(lu->infos);
    free(lu);
}

static size_t order_of(const fl_lu *lu, size_t panel)
{
    return fl_least(lu->a.tile, lu->order - panel * lu->a.tile);
}

static filch_status add_panel(const fl_lu *lu, size_t k, filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_RW(lu->a.data, 0, k), FILCH_W(lu->pivots, k, 0),
                                     FILCH_W(lu->info, k, 0)};
    const fl_dense_args args = {.row = k * lu->a.tile, .order = order_of(lu, k)};
    return fl_dense_add(lu->dense, graph, FL_DENSE_LU_PANEL, args, accesses, 3,
                        fl_columns_owner(&lu->a, k));
}

/* Exchanges in block column j by the pivots of all panels from the first on, or back to it. */
static filch_status add_swaps(const fl_lu *lu, const fl_columns *to, size_t j, size_t first,
                              bool is_back, filch_graph *graph)
{
    const fl_dense_args args = {.swap = is_back};
    filch_status status = FILCH_OK;
    for (size_t i = first; i < lu->panels && status == FILCH_OK;) {
        filch_access accesses[1 + PIVOTS_MOST] = {FILCH_RW(to->data, 0, j)};
        uint32_t count = 1;
        for (; i < lu->panels && count <= PIVOTS_MOST; i++) {
            size_t k = is_back ? lu->panels - 1 - (i - first) : i;
            accesses[count++] = (filch_access)FILCH_R(lu->pivots, k, 0);
        }
        status = fl_dense_add(lu->dense, graph, FL_DENSE_SWAP, args, accesses, count,
                              fl_columns_owner(to, j));
    }
    return status;
}

filch_status fl_lu_factor(fl_lu *lu, filch_graph *graph)
{
    fl_step step = {.form = {.fill = FL_VENDOR_FILL_LOWER, .diagonal = FL_VENDOR_UNIT},
                    .a = &lu->a,
                    .b = &lu->a,
                    .pivots = lu->pivots};
    filch_status status = FILCH_OK;
    for (step.at = 0; step.at < lu->panels && status == FILCH_OK; step.at++) {
        status = add_panel(lu, step.at, graph);
        step.order = order_of(lu, step.at);
        for (step.to = step.at + 1; step.to < fl_columns_count(&lu->a) && status == FILCH_OK;
             step.to++)
            status = fl_dense_add_step(lu->dense, &step, graph);
    }
    for (size_t j = 0; j + 1 < lu->panels && status == FILCH_OK; j++)
        status = add_swaps(lu, &lu->a, j, j + 1, false, graph);
    return status;
}

filch_status fl_lu_solve(fl_lu *lu, int op, const fl_columns *b, filch_graph *graph)
{
    const fl_vendor_form lower = {
        .fill = FL_VENDOR_FILL_LOWER, .op_a = op, .diagonal = FL_VENDOR_UNIT};
    const fl_vendor_form upper = {.fill = FL_VENDOR_FILL_UPPER, .op_a = op};
    bool is_plain = op == FL_VENDOR_OP_N;
    filch_status status = FILCH_OK;
    for (size_t j = 0; is_plain && j < fl_columns_count(b) && status == FILCH_OK; j++)
        status = add_swaps(lu, b, j, 0, false, graph);
    if (status == FILCH_OK)
        status = fl_dense_solve(lu->dense, is_plain ? &lower : &upper, &lu->a, b, graph);
    if (status == FILCH_OK)
        status = fl_dense_solve(lu->dense, is_plain ? &upper : &lower, &lu->a, b, graph);
    for (size_t j = 0; !is_plain && j < fl_columns_count(b) && status == FILCH_OK; j++)
        status = add_swaps(lu, b, j, 0, true, graph);
    return status;
}

int32_t fl_lu_result(const fl_lu *lu, int32_t *pivots)
{
    for (size_t k = 0; pivots && k < lu->order; k++)
        pivots[k] = lu->values[k] + (int32_t)(k / lu->a.tile * lu->a.tile);
    for (size_t k = 0; k < lu->panels; k++)
        if (lu->infos[k] > 0)
            return lu->infos[k] + (int32_t)(k * lu->a.tile);
    return 0;
}

double fl_flops_lu(double m, double n)
{
    double k = m < n ? m : n, most = m < n ? n : m;
    return k * k * (most - k / 3);
}
