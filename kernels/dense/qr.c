/* SPDX-License-Identifier: Apache-2.0 */
/* QR factorization by block columns (R. Schreiber, C. Van Loan, "A storage-efficient WY
 * representation for products of Householder transformations", SIAM J. Sci. Stat. Comput. 10, 1989;
 * LAPACK's geqrf). The triangle T of a block, Q = I - V T V', comes from V'V (C. Puglisi,
 * "Modification of the Householder method based on the compact WY representation", SIAM J. Sci.
 * Stat. Comput. 13, 1992): T^-1 is the strict upper triangle of V'V with 1/tau on the diagonal. A
 * tau of 0, where the reflector is the identity, has no inverse; so T solves
 *
 *     (I + D U) T = D,    D = diag(tau), U the strict upper triangle of V'V,
 *
 * which has a row and a column of zeros there.
 *
 * V is copied with its ones and zeros, which the matrix does not store, so that updates are
 * products. Copies live for a few panels, in tiles used in turn. */
#include "kernels/dense/codelets.h"

#include <stdlib.h>

/* Panels whose reflectors are kept at once: the one in use, and those of look-ahead. */
#define RING 4

struct fl_qr {
    const fl_dense *dense;
    fl_columns a;
    size_t order;  /* the smaller side */
    size_t panels; /* block columns that have reflectors */
    int32_t *infos;
    void *unit; /* the identity, of a tile's order */
    filch_data *tau;
    filch_data *info;
    filch_data *reflectors;
    filch_data *triangles;
    filch_data *identity;
};

/* V and T, of a panel that is factored. views: reflectors, triangle, identity, scratch. */
static int reflect(const fl_place *on, const fl_dense_args *args, const filch_view *a,
                   const void *tau, const filch_view *views)
{
    static const fl_vendor_form square = {
        .fill = FL_VENDOR_FILL_UPPER, .op_a = FL_VENDOR_OP_T, .alpha = 1};
    static const fl_vendor_form solve = {
        .fill = FL_VENDOR_FILL_UPPER, .diagonal = FL_VENDOR_UNIT, .alpha = 1};
    uint64_t order = args->order, below = a->rows - args->row - order;
    const filch_view top = fl_part(a, args->row, 0, order, order);
    const filch_view rest = fl_part(a, args->row + order, 0, below, order);
    const filch_view v = fl_part(&views[0], args->row, 0, order + below, order);
    const filch_view v_top = fl_part(&v, 0, 0, order, order);
    const filch_view v_rest = fl_part(&v, order, 0, below, order);
    const filch_view t = fl_part(&views[1], 0, 0, order, order);
    const filch_view identity = fl_part(&views[2], 0, 0, order, order);
    const filch_view w = fl_dense_room(&views[3], order, order, a->element);
    int code = fl_place_unit_lower(on, &top, &identity, &v_top);
    if (code == 0)
        code = fl_place_copy(on, &rest, &v_rest);
    if (code == 0)
        code = fl_place_syrk(on, &square, &v, &w);
    if (code == 0)
        code = fl_place_scale_rows(on, &w, tau, &w);
    if (code == 0)
        code = fl_place_scale_rows(on, &identity, tau, &t);
    return code ? code : fl_place_trsm(on, &solve, &w, &t);
}

int fl_dense_run_qr_panel(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view panel = fl_part(a, args->row, 0, a->rows - args->row, a->cols);
    int code = fl_place_geqrf(on, &panel, call->views[1].ptr, call->views[2].ptr);
    return code ? code : reflect(on, args, a, call->views[1].ptr, &call->views[3]);
}

int fl_dense_run_reflect(const fl_place *on, const filch_call *call)
{
    return reflect(on, call->args, &call->views[0], call->views[1].ptr, &call->views[2]);
}

/* C := C - V op(T) V' C. */
int fl_dense_run_apply(const fl_place *on, const filch_call *call)
{
    static const fl_vendor_form gather = {.op_a = FL_VENDOR_OP_T, .alpha = 1};
    static const fl_vendor_form spread = {.alpha = -1, .beta = 1};
    const fl_dense_args *args = call->args;
    const fl_vendor_form scale = {.fill = FL_VENDOR_FILL_UPPER, .op_a = args->op, .alpha = 1};
    const filch_view *all = &call->views[2];
    uint64_t rows = all->rows - args->row;
    const filch_view v = fl_part(&call->views[0], args->row, 0, rows, args->order);
    const filch_view t = fl_part(&call->views[1], 0, 0, args->order, args->order);
    const filch_view c = fl_part(all, args->row, 0, rows, all->cols);
    const filch_view w = fl_dense_room(&call->views[3], args->order, all->cols, all->element);
    /* Of GPUs alone. */
    const filch_view *scratch = &call->views[call->view_count > 4 ? 4 : 3];
    const filch_view room = fl_dense_room(scratch, args->order, all->cols, all->element);
    int code = fl_place_gemm(on, &gather, &v, &c, &w);
    if (code == 0)
        code = fl_place_multiply(on, &scale, &t, &w, &room);
    return code ? code : fl_place_gemm(on, &spread, &v, &w, &c);
}

double fl_dense_work_qr_panel(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    return fl_flops_qr((double)(a->rows - args->row), (double)a->cols) +
           fl_dense_work_reflect(call);
}

double fl_dense_work_reflect(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    double order = (double)args->order;
    return order * order * (double)(call->views[0].rows - args->row);
}

double fl_dense_work_apply(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *c = &call->views[2];
    double order = (double)args->order;
    return order * (double)c->cols * (4 * (double)(c->rows - args->row) + order);
}

static filch_status make_handles(fl_qr *qr, void *tau)
{
    size_t tile = qr->a.tile, element = qr->dense->desc.element;
    size_t ring = fl_least(RING, qr->panels);
    const filch_data_desc scalars = {
        .ptr = tau, .element = element, .rows = qr->order, .tile_rows = fl_least(tile, qr->order)};
    const filch_data_desc infos = {
        .ptr = qr->infos, .element = sizeof *qr->infos, .rows = qr->panels, .tile_rows = 1};
    const filch_data_desc reflectors = {.element = element,
                                        .rows = qr->a.rows,
                                        .cols = ring * tile,
                                        .tile_cols = tile,
                                        .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc triangles = {.element = element,
                                       .rows = tile,
                                       .cols = ring * tile,
                                       .tile_cols = tile,
                                       .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc identity = {.ptr = qr->unit,
                                      .element = element,
                                      .rows = tile,
                                      .cols = tile,
                                      .flags = FILCH_DATA_MANAGED};
    filch_status status = fl_dense_data(qr->dense, scalars, "tau", &qr->tau);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, infos, "info", &qr->info);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, reflectors, "reflectors", &qr->reflectors);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, triangles, "triangles", &qr->triangles);
    return status == FILCH_OK ? fl_dense_data(qr->dense, identity, "identity", &qr->identity)
                              : status;
}

filch_status fl_qr_open(const fl_dense *dense, const fl_columns *a, void *tau, fl_qr **out)
{
    fl_qr *qr = calloc(1, sizeof *qr);
    if (!qr)
        return FILCH_OUT_OF_MEMORY;
    qr->dense = dense;
    qr->a = *a;
    qr->order = fl_least(a->rows, a->cols);
    qr->panels = (qr->order + a->tile - 1) / a->tile;
    qr->infos = calloc(qr->panels, sizeof *qr->infos);
    qr->unit = fl_dense_identity(a->tile, dense->desc.element);
    filch_status status = qr->infos && qr->unit ? make_handles(qr, tau) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        *out = qr;
    else
        fl_qr_close(qr);
    return status;
}

void fl_qr_close(fl_qr *qr)
{
    if (!qr)
        return;
    filch_data *const handles[] = {qr->tau, qr->info, qr->reflectors, qr->triangles, qr->identity};
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    free(qr->infos);
    free(qr->unit);
    free(qr);
}

static fl_dense_args args_of(const fl_qr *qr, size_t panel)
{
    size_t row = panel * qr->a.tile;
    return (fl_dense_args){.row = row, .order = fl_least(qr->a.tile, qr->order - row)};
}

static filch_status add_panel(const fl_qr *qr, size_t k, filch_graph *graph)
{
    const fl_dense_args args = args_of(qr, k);
    const filch_access accesses[] = {FILCH_RW(qr->a.data, 0, k),
                                     FILCH_W(qr->tau, k, 0),
                                     FILCH_W(qr->info, k, 0),
                                     FILCH_W(qr->reflectors, 0, k % RING),
                                     FILCH_W(qr->triangles, 0, k % RING),
                                     FILCH_R(qr->identity, 0, 0),
                                     fl_dense_scratch(qr->dense, args.order, args.order)};
    return fl_dense_add(qr->dense, graph, qr->dense->codelets[FL_DENSE_QR_PANEL], args, accesses, 7,
                        fl_columns_owner(&qr->a, k));
}

static filch_status add_reflect(const fl_qr *qr, size_t k, filch_graph *graph)
{
    const fl_dense_args args = args_of(qr, k);
    const filch_access accesses[] = {FILCH_R(qr->a.data, 0, k),
                                     FILCH_R(qr->tau, k, 0),
                                     FILCH_W(qr->reflectors, 0, k % RING),
                                     FILCH_W(qr->triangles, 0, k % RING),
                                     FILCH_R(qr->identity, 0, 0),
                                     fl_dense_scratch(qr->dense, args.order, args.order)};
    return fl_dense_add(qr->dense, graph, qr->dense->codelets[FL_DENSE_REFLECT], args, accesses, 6,
                        fl_columns_owner(&qr->a, k));
}

static filch_status add_apply(const fl_qr *qr, size_t k, int op, const fl_columns *c, size_t j,
                              filch_graph *graph)
{
    fl_dense_args args = args_of(qr, k);
    args.op = op;
    size_t width = fl_columns_width(c, j);
    const filch_access accesses[] = {FILCH_R(qr->reflectors, 0, k % RING),
                                     FILCH_R(qr->triangles, 0, k % RING), FILCH_RW(c->data, 0, j),
                                     fl_dense_scratch(qr->dense, args.order, width),
                                     fl_dense_scratch(qr->dense, args.order, width)};
    return fl_dense_add(qr->dense, graph, qr->dense->codelets[FL_DENSE_APPLY], args, accesses,
                        qr->dense->desc.vendor ? 5 : 4, fl_columns_owner(c, j));
}

filch_status fl_qr_factor(fl_qr *qr, filch_graph *graph)
{
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < qr->panels && status == FILCH_OK; k++) {
        status = add_panel(qr, k, graph);
        for (size_t j = k + 1; j < fl_columns_count(&qr->a) && status == FILCH_OK; j++)
            status = add_apply(qr, k, FL_VENDOR_OP_T, &qr->a, j, graph);
    }
    return status;
}

filch_status fl_qr_apply(fl_qr *qr, int op, const fl_columns *c, filch_graph *graph)
{
    filch_status status = FILCH_OK;
    for (size_t i = 0; i < qr->panels && status == FILCH_OK; i++) {
        size_t k = op == FL_VENDOR_OP_T ? i : qr->panels - 1 - i;
        status = add_reflect(qr, k, graph);
        for (size_t j = 0; j < fl_columns_count(c) && status == FILCH_OK; j++)
            status = add_apply(qr, k, op, c, j, graph);
    }
    return status;
}

double fl_flops_qr(double m, double n)
{
    double k = m < n ? m : n, most = m < n ? n : m;
    return 2 * k * k * (most - k / 3);
}
