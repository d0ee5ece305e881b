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
 * products. Copies live for a few panels, in tiles used in turn.
 *
 * Filch's kernel factors a group of a panel's columns, and makes V and T of it, by which the
 * panel's other columns are updated like those of other panels. */
#include "kernels/dense/codelets.h"
#include "kernels/dense/staging.h"
#include "kernels/dense/state.h"
#include "kernels/dense/steps.h"

#include <stdlib.h>

/* Panels whose reflectors are kept at once: the one in use, and those of look-ahead. */
#define RING 4

struct fl_qr {
    const fl_dense *dense;
    fl_columns a;
    size_t order;  /* the smaller side */
    size_t panels; /* block columns that have reflectors */
    int32_t *infos;
    void *unit;           /* the identity, of a tile's order */
    filch_codelet *panel; /* filch's own; null: the vendor's */
    uint32_t *words;      /* that the own one keeps between panels */
    filch_data *tau;
    filch_data *info;
    filch_data *reflectors;
    filch_data *triangles;
    filch_data *identity;
    filch_data *state;  /* words */
    filch_data *blocks; /* inverses, of R, made at the first solve that pays */
};

/* T of V, from row `row` on. views: triangle, identity, scratch. */
static int make_triangle(const fl_place *on, uint64_t order, const filch_view *v, const void *tau,
                         const filch_view *views)
{
    static const fl_vendor_form square = {
        .fill = FL_VENDOR_FILL_UPPER, .op_a = FL_VENDOR_OP_T, .alpha = 1};
    static const fl_vendor_form solve = {
        .fill = FL_VENDOR_FILL_UPPER, .diagonal = FL_VENDOR_UNIT, .alpha = 1};
    const filch_view t = fl_part(&views[0], 0, 0, order, order);
    const filch_view identity = fl_part(&views[1], 0, 0, order, order);
    const filch_view w = fl_dense_room(&views[2], order, order, v->element);
    int code = fl_place_syrk(on, &square, v, &w);
    if (code == 0)
        code = fl_place_scale_rows(on, &w, tau, &w);
    if (code == 0)
        code = fl_place_scale_rows(on, &identity, tau, &t);
    return code ? code : fl_place_trsm(on, &solve, &w, &t);
}

/* V and T, of a panel that is factored. views: reflectors, triangle, identity, scratch. */
static int reflect(const fl_place *on, const fl_dense_args *args, const filch_view *a,
                   const void *tau, const filch_view *views)
{
    uint64_t order = args->order, below = a->rows - args->row - order;
    const filch_view top = fl_part(a, args->row, 0, order, order);
    const filch_view rest = fl_part(a, args->row + order, 0, below, order);
    const filch_view v = fl_part(&views[0], args->row, 0, order + below, order);
    const filch_view v_top = fl_part(&v, 0, 0, order, order);
    const filch_view v_rest = fl_part(&v, order, 0, below, order);
    const filch_view identity = fl_part(&views[2], 0, 0, order, order);
    int code = fl_place_unit_lower(on, &top, &identity, &v_top);
    if (code == 0)
        code = fl_place_copy(on, &rest, &v_rest);
    return code ? code : make_triangle(on, order, &v, tau, &views[1]);
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

int fl_dense_run_triangle(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *reflectors = &call->views[2];
    const filch_view v =
        fl_part(reflectors, args->row, 0, reflectors->rows - args->row, args->order);
    return make_triangle(on, args->order, &v, call->views[1].ptr, &call->views[3]);
}

/* C := C - V op(T) V' C. scratch: two on GPUs, or one. */
static int apply(const fl_place *on, int op, const filch_view *v, const filch_view *t,
                 const filch_view *c, const filch_view *scratch)
{
    static const fl_vendor_form gather = {.op_a = FL_VENDOR_OP_T, .alpha = 1};
    static const fl_vendor_form spread = {.alpha = -1, .beta = 1};
    const fl_vendor_form scale = {.fill = FL_VENDOR_FILL_UPPER, .op_a = op, .alpha = 1};
    const filch_view w = fl_dense_room(&scratch[0], t->rows, c->cols, c->element);
    const filch_view room = fl_dense_room(&scratch[on->lane ? 1 : 0], t->rows, c->cols, c->element);
    int code = fl_place_gemm(on, &gather, v, c, &w);
    if (code == 0)
        code = fl_place_multiply(on, &scale, t, &w, &room);
    return code ? code : fl_place_gemm(on, &spread, v, &w, c);
}

int fl_dense_run_apply(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *all = &call->views[2];
    uint64_t rows = all->rows - args->row;
    const filch_view v = fl_part(&call->views[0], args->row, 0, rows, args->order);
    const filch_view t = fl_part(&call->views[1], 0, 0, args->order, args->order);
    const filch_view c = fl_part(all, args->row, 0, rows, all->cols);
    return apply(on, args->op, &v, &t, &c, &call->views[3]);
}

int fl_dense_run_qr_rest(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    uint64_t row = args->row, count = args->order, first = row - call->views[1].row;
    uint64_t rows = a->rows - row, beyond = first + count;
    const filch_view v = fl_part(&call->views[2], row, first, rows, count);
    const filch_view t = fl_part(&call->views[3], first, first, count, count);
    const filch_view c = fl_part(a, row, beyond, rows, a->cols - beyond);
    return apply(on, FL_VENDOR_OP_T, &v, &t, &c, &call->views[4]);
}

/* By LAPACK's geqrf, and as its larft. */
int fl_dense_host_qr(const filch_call *call)
{
    static const fl_vendor_form square = {
        .fill = FL_VENDOR_FILL_UPPER, .op_a = FL_VENDOR_OP_T, .alpha = 1};
    const fl_dense_args *args = call->args;
    const fl_place on = {.host = args->host};
    const filch_view *a = &call->views[0], *tau = &call->views[1], *v = &call->views[2];
    uint64_t row = args->row, count = args->order, first = row - tau->row;
    const filch_view own = fl_part(a, row, first, a->rows - row, count);
    const filch_view above = fl_part(v, tau->row, first, first, count);
    const filch_view v_own = fl_part(v, row, first, a->rows - row, count);
    const filch_view t = fl_part(&call->views[3], first, first, count, count);
    char *scalars = (char *)tau->ptr + first * tau->element;
    int32_t info;
    int code = fl_place_geqrf(&on, &own, scalars, &info);
    if (code == 0)
        code = fl_place_scale(&on, 0, &above);
    if (code == 0)
        code = fl_place_unit_lower(&on, &own, NULL, &v_own);
    if (code == 0)
        code = fl_place_scale(&on, 0, &t);
    if (code == 0)
        code = fl_place_syrk(&on, &square, &v_own, &t);
    for (uint64_t j = 0; j < count && code == 0; j++) {
        bool is_double = tau->element == sizeof(double);
        double scale = is_double ? ((double *)(void *)scalars)[j] : ((float *)(void *)scalars)[j];
        const fl_vendor_form left = {.fill = FL_VENDOR_FILL_UPPER, .alpha = -scale};
        const filch_view before = fl_part(&t, 0, 0, j, j), column = fl_part(&t, 0, j, j, 1);
        const filch_view diagonal = fl_part(&t, j, j, 1, 1);
        code = fl_place_trmm(&on, &left, &before, &column);
        if (is_double)
            *(double *)diagonal.ptr = scale;
        else
            *(float *)diagonal.ptr = (float)scale;
    }
    return code;
}

double fl_dense_work_qr_panel(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    return fl_flops_qr((double)(a->rows - args->row), (double)a->cols) +
           fl_dense_work_reflect(call);
}

/* With V and T. */
double fl_dense_work_qr_group(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    double rows = (double)(call->views[0].rows - args->row), order = (double)args->order;
    return fl_flops_qr(rows, order) + order * order * rows;
}

double fl_dense_work_qr_rest(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    double order = (double)args->order;
    uint64_t beyond = args->row - call->views[1].row + args->order;
    return order * (double)(a->cols - beyond) * (4 * (double)(a->rows - args->row) + order);
}

double fl_dense_work_triangle(const filch_call *call)
{
    return fl_dense_work_reflect(call);
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
    const filch_data_desc state = {.ptr = qr->words,
                                   .element = sizeof *qr->words,
                                   .rows = FL_QR_PANEL_WORDS,
                                   .flags = FILCH_DATA_MANAGED};
    filch_status status = fl_dense_data(qr->dense, scalars, "tau", &qr->tau);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, infos, "info", &qr->info);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, reflectors, "reflectors", &qr->reflectors);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, triangles, "triangles", &qr->triangles);
    if (status == FILCH_OK)
        status = fl_dense_data(qr->dense, identity, "identity", &qr->identity);
    return status == FILCH_OK && qr->words ? fl_dense_data(qr->dense, state, "panel", &qr->state)
                                           : status;
}

filch_status fl_qr_open(fl_dense *dense, const fl_columns *a, void *tau, fl_panels panels,
                        fl_qr **out)
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
    qr->panel = panels == FL_PANELS_OWN ? fl_dense_panel(dense, FL_DENSE_QR) : NULL;
    if (qr->panel)
        qr->words = calloc(FL_QR_PANEL_WORDS, sizeof *qr->words);
    bool is_there = qr->infos && qr->unit && (qr->words || !qr->panel);
    filch_status status = is_there ? make_handles(qr, tau) : FILCH_OUT_OF_MEMORY;
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
    filch_data *const handles[] = {qr->tau,      qr->info,  qr->reflectors, qr->triangles,
                                   qr->identity, qr->state, qr->blocks};
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    free(qr->infos);
    free(qr->unit);
    free(qr->words);
    free(qr);
}

bool fl_qr_has(const fl_qr *qr, fl_panels panels)
{
    return (qr->panel != NULL) == (panels == FL_PANELS_OWN);
}

static fl_dense_args args_of(const fl_qr *qr, size_t panel)
{
    size_t row = panel * qr->a.tile;
    return (fl_dense_args){.row = row, .order = fl_least(qr->a.tile, qr->order - row)};
}

/* A group of a panel's columns, and what it makes of so many on its right. */
static filch_status add_group(const fl_qr *qr, size_t k, fl_dense_args args, size_t right,
                              filch_graph *graph)
{
    const fl_dense *dense = qr->dense;
    filch_access_mode mode = args.row == k * qr->a.tile ? FILCH_WRITE : FILCH_READWRITE;
    const filch_access group[] = {FILCH_RW(qr->a.data, 0, k),
                                  FILCH_ACCESS(qr->tau, k, 0, mode),
                                  FILCH_ACCESS(qr->reflectors, 0, k % RING, mode),
                                  FILCH_ACCESS(qr->triangles, 0, k % RING, mode),
                                  FILCH_RW(qr->state, 0, 0),
                                  fl_dense_qr_room(dense, qr->a.rows - args.row)};
    const filch_access scratch = fl_dense_scratch(dense, args.order, right);
    const filch_access rest[] = {FILCH_RW(qr->a.data, 0, k),
                                 FILCH_R(qr->tau, k, 0),
                                 FILCH_R(qr->reflectors, 0, k % RING),
                                 FILCH_R(qr->triangles, 0, k % RING),
                                 scratch,
                                 scratch};
    uint32_t owner = fl_columns_owner(&qr->a, k);
    filch_status status = fl_dense_add(dense, graph, qr->panel, args, group, 6, owner);
    return status != FILCH_OK || right == 0
               ? status
               : fl_dense_add(dense, graph, dense->codelets[FL_DENSE_QR_REST], args, rest, 6,
                              owner);
}

/* By filch's kernel, group by group; of several groups the triangle is another task's. */
static filch_status add_own_panel(const fl_qr *qr, size_t k, filch_graph *graph)
{
    const fl_dense_args args = args_of(qr, k);
    const filch_access triangle[] = {FILCH_R(qr->a.data, 0, k),
                                     FILCH_R(qr->tau, k, 0),
                                     FILCH_R(qr->reflectors, 0, k % RING),
                                     FILCH_W(qr->triangles, 0, k % RING),
                                     FILCH_R(qr->identity, 0, 0),
                                     fl_dense_scratch(qr->dense, args.order, args.order)};
    size_t width = fl_columns_width(&qr->a, k);
    filch_status status = FILCH_OK;
    for (size_t first = 0; first < args.order && status == FILCH_OK; first += FL_PANEL_GROUP) {
        size_t count = fl_least(FL_PANEL_GROUP, args.order - first);
        const fl_dense_args group = {.row = args.row + first, .order = count};
        status = add_group(qr, k, group, width - first - count, graph);
    }
    return status != FILCH_OK || args.order <= FL_PANEL_GROUP
               ? status
               : fl_dense_add(qr->dense, graph, qr->dense->codelets[FL_DENSE_TRIANGLE], args,
                              triangle, 6, fl_columns_owner(&qr->a, k));
}

static filch_status add_panel(const fl_qr *qr, size_t k, filch_graph *graph)
{
    const fl_dense_args args = args_of(qr, k);
    if (qr->panel)
        return add_own_panel(qr, k, graph);
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

/* The factors' tiles of rows that panel k makes final: its own block column is then final as a
 * whole. */
static filch_status deliver(const fl_qr *qr, const fl_staging *staging, size_t j, size_t k,
                            filch_graph *graph)
{
    size_t row = k + 1 < qr->panels && j > k ? (k + 1) * qr->a.tile : qr->a.rows;
    return fl_staging_store(qr->dense, staging, &qr->a, j,
                            fl_staging_tiles(staging, &qr->a, k * qr->a.tile),
                            fl_staging_tiles(staging, &qr->a, row), graph, NULL, NULL);
}

filch_status fl_qr_factor_staged(fl_qr *qr, const fl_staging *staging, filch_graph *graph)
{
    filch_status status = FILCH_OK;
    for (size_t j = 0; j < fl_columns_count(&qr->a) && status == FILCH_OK; j++)
        status = fl_staging_load(qr->dense, staging, &qr->a, j, graph);
    for (size_t k = 0; k < qr->panels && status == FILCH_OK; k++) {
        status = add_panel(qr, k, graph);
        for (size_t j = k; j < fl_columns_count(&qr->a) && status == FILCH_OK; j++) {
            if (j > k)
                status = add_apply(qr, k, FL_VENDOR_OP_T, &qr->a, j, graph);
            if (status == FILCH_OK)
                status = deliver(qr, staging, j, k, graph);
        }
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

filch_status fl_qr_solve(fl_qr *qr, int op, const fl_columns *b, filch_graph *graph)
{
    const fl_vendor_form form = {.fill = FL_VENDOR_FILL_UPPER, .op_a = op};
    bool has_blocks = qr->dense->desc.vendor && fl_dense_blocks_pay(&qr->a, b);
    filch_status status =
        has_blocks && !qr->blocks ? fl_dense_blocks(qr->dense, &qr->a, &qr->blocks) : FILCH_OK;
    return status == FILCH_OK
               ? fl_dense_solve(qr->dense, &form, &qr->a, b, has_blocks ? qr->blocks : NULL, graph)
               : status;
}

double fl_flops_qr(double m, double n)
{
    double k = m < n ? m : n, most = m < n ? n : m;
    return 2 * k * k * (most - k / 3);
}
