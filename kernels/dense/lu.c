/* SPDX-License-Identifier: Apache-2.0 */
/* LU factorization with partial pivoting, right-looking, by block columns (LAPACK's getrf; with the
 * next panel first, as in J. Dongarra et al., "The LINPACK benchmark: past, present and future",
 * Concurrency and Computation 15, 2003). A panel's pivots are rows of the panel: they are exchanged
 * in the block columns on the right as those are updated, and on the left at the end, because
 * nothing reads there before. */
#include "kernels/dense/codelets.h"
#include "kernels/dense/split.h"
#include "kernels/dense/staging.h"
#include "kernels/dense/state.h"
#include "kernels/dense/steps.h"

#include <stdlib.h>

/* filch's limit of accesses, but for the block column itself. */
#define PIVOTS_MOST 254
/* Panels after which exchanges on the left are due, and final rows are sent, of a factorization by
 * way of a matrix. */
#define LEFT_PANELS 4
#define SENT_PANELS 8

struct fl_lu {
    const fl_dense *dense;
    fl_columns a;
    size_t order;  /* the smaller side */
    size_t panels; /* block columns that have pivots */
    int32_t *values;
    int32_t *infos;
    bool has_exchange;    /* of rows by kernels; else a step exchanges its rows itself */
    filch_codelet *panel; /* filch's own; null: the vendor's, which inverts blocks, too */
    uint32_t *words;      /* that the own one keeps between panels */
    void *unit;           /* the identity, of a tile's order; null: blocks are not inverted */
    fl_split *split;      /* null: a step's product is one */
    filch_data *pivots;
    filch_data *lists; /* of the pivots' exchanges; null: none are made */
    filch_data *info;
    filch_data *inverses; /* of the panels' diagonal blocks */
    filch_data *identity;
    filch_data *state;     /* words */
    filch_data *uppers;    /* inverses of U's diagonal blocks, turned; null: none are made */
    filch_data *blocks[2]; /* inverses, of L and of U, made at the first solve that pays */
    filch_task begins;     /* the first task of the panel that was added last */
};

/* views: inverse, identity, scratch. */
static int invert(const fl_place *on, const fl_dense_args *args, const filch_view *a,
                  const filch_view *views)
{
    uint64_t order = args->order;
    const filch_view top = fl_part(a, args->row, 0, order, order);
    const filch_view inverse = fl_part(&views[0], 0, 0, order, order);
    const filch_view identity = fl_part(&views[1], 0, 0, order, order);
    const filch_view lower = fl_dense_room(&views[2], order, order, a->element);
    int code = args->fill == FL_VENDOR_FILL_UPPER
                   ? fl_place_turned_upper(on, &top, &identity, &lower)
                   : fl_place_unit_lower(on, &top, &identity, &lower);
    return code ? code : fl_place_invert(on, &lower, &identity, &inverse);
}

int fl_dense_run_lu_panel(const fl_place *on, const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view panel = fl_part(a, args->row, 0, a->rows - args->row, a->cols);
    int code = fl_place_getrf(on, &panel, call->views[1].ptr, call->views[2].ptr);
    return code != 0 || !args->inverts ? code : invert(on, args, a, &call->views[3]);
}

/* By LAPACK's getrf; a column is singular when none before it was. */
static int factor_group(const fl_place *on, const filch_call *call, uint64_t first)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    const filch_view own = fl_part(a, args->row, first, a->rows - args->row, args->order);
    int32_t *pivots = (int32_t *)call->views[1].ptr + first, *info = call->views[2].ptr, own_info;
    int code = fl_place_getrf(on, &own, pivots, &own_info);
    if (first == 0 || *info == 0)
        *info = own_info == 0 ? 0 : own_info + (int32_t)first;
    return code;
}

int fl_dense_host_lu(const filch_call *call)
{
    static const fl_vendor_form lower = {
        .fill = FL_VENDOR_FILL_LOWER, .diagonal = FL_VENDOR_UNIT, .alpha = 1};
    const fl_dense_args *args = call->args;
    const fl_place on = {.host = args->host};
    const filch_view *a = &call->views[0];
    int32_t *pivots = call->views[1].ptr;
    uint64_t row = args->row, count = args->order, first = row - call->views[1].row;
    uint64_t last = first + count;
    const filch_view left = fl_part(a, row, 0, a->rows - row, first);
    const filch_view right = fl_part(a, row, last, a->rows - row, a->cols - last);
    const filch_view triangle = fl_part(a, row, first, count, count);
    const filch_view top = fl_part(&right, 0, 0, count, right.cols);
    int code = factor_group(&on, call, first);
    if (code == 0 && first > 0)
        code = fl_place_laswp(&on, &left, pivots + first, count, false);
    if (code == 0 && right.cols > 0)
        code = fl_place_laswp(&on, &right, pivots + first, count, false);
    if (code == 0 && right.cols > 0)
        code = fl_place_trsm(&on, &lower, &triangle, &top);
    for (uint64_t k = first; k < last; k++)
        pivots[k] += (int32_t)first;
    return code;
}

double fl_dense_work_lu_group(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    double count = (double)args->order;
    return fl_flops_lu((double)(a->rows - args->row), count) + count * count * (double)a->cols;
}

int fl_dense_run_lu_rest(const fl_place *on, const filch_call *call)
{
    static const fl_vendor_form minus = {.alpha = -1, .beta = 1};
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    uint64_t row = args->row, count = args->order, first = row - call->views[1].row;
    uint64_t below = row + count, beyond = first + count;
    const filch_view lower = fl_part(a, below, first, a->rows - below, count);
    const filch_view upper = fl_part(a, row, beyond, count, a->cols - beyond);
    const filch_view rest = fl_part(a, below, beyond, a->rows - below, a->cols - beyond);
    return fl_place_gemm(on, &minus, &lower, &upper, &rest);
}

double fl_dense_work_lu_rest(const filch_call *call)
{
    const fl_dense_args *args = call->args;
    const filch_view *a = &call->views[0];
    uint64_t beyond = args->row - call->views[1].row + args->order;
    return 2 * (double)args->order * (double)(a->rows - args->row - args->order) *
           (double)(a->cols - beyond);
}

int fl_dense_run_invert(const fl_place *on, const filch_call *call)
{
    return invert(on, call->args, &call->views[0], &call->views[1]);
}

double fl_dense_work_invert(const filch_call *call)
{
    double order = (double)((const fl_dense_args *)call->args)->order;
    return order * order * order / 3;
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

static filch_status make_handles(fl_lu *lu)
{
    size_t tile = lu->a.tile, element = lu->dense->desc.element;
    const filch_data_desc pivots = {.ptr = lu->values,
                                    .element = sizeof *lu->values,
                                    .rows = lu->order,
                                    .tile_rows = fl_least(tile, lu->order)};
    const filch_data_desc lists = {.element = sizeof *lu->values,
                                   .rows = FL_EXCHANGE_LIST * lu->order,
                                   .tile_rows = FL_EXCHANGE_LIST * pivots.tile_rows,
                                   .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc infos = {
        .ptr = lu->infos, .element = sizeof *lu->infos, .rows = lu->panels, .tile_rows = 1};
    const filch_data_desc inverses = {.element = element,
                                      .rows = tile,
                                      .cols = lu->panels * tile,
                                      .tile_cols = tile,
                                      .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc identity = {.ptr = lu->unit,
                                      .element = element,
                                      .rows = tile,
                                      .cols = tile,
                                      .flags = FILCH_DATA_MANAGED};
    const filch_data_desc state = {.ptr = lu->words,
                                   .element = sizeof *lu->words,
                                   .rows = FL_LU_PANEL_WORDS,
                                   .flags = FILCH_DATA_MANAGED};
    filch_status status = fl_dense_data(lu->dense, pivots, "pivots", &lu->pivots);
    if (status == FILCH_OK && lu->has_exchange)
        status = fl_dense_data(lu->dense, lists, "exchanges", &lu->lists);
    if (status == FILCH_OK)
        status = fl_dense_data(lu->dense, infos, "info", &lu->info);
    if (status == FILCH_OK && lu->unit)
        status = fl_dense_data(lu->dense, inverses, "inverses", &lu->inverses);
    if (status == FILCH_OK && lu->unit)
        status = fl_dense_data(lu->dense, identity, "identity", &lu->identity);
    if (status == FILCH_OK && lu->words)
        status = fl_dense_data(lu->dense, state, "panel", &lu->state);
    return status;
}

filch_status fl_lu_open(fl_dense *dense, const fl_columns *a, fl_panels panels, fl_lu **out)
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
    bool inverts = dense->desc.vendor != NULL;
    lu->has_exchange = a->tile <= FL_EXCHANGE_MOST && fl_dense_has_exchange(dense);
    if (inverts)
        lu->unit = fl_dense_identity(a->tile, dense->desc.element);
    lu->panel = panels == FL_PANELS_OWN ? fl_dense_panel(dense, FL_DENSE_LU) : NULL;
    if (lu->panel)
        lu->words = calloc(FL_LU_PANEL_WORDS, sizeof *lu->words);
    bool is_there = lu->values && lu->infos && (lu->unit || !inverts) && (lu->words || !lu->panel);
    filch_status status = is_there ? make_handles(lu) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK && dense->desc.compute == FL_DENSE_TF32X3 &&
        dense->desc.element == sizeof(float))
        status = fl_split_open(dense, a, &lu->split);
    if (status == FILCH_OK)
        *out = lu;
    else
        fl_lu_close(lu);
    return status;
}

filch_status fl_lu_keep_inverses(fl_lu *lu)
{
    size_t tile = lu->a.tile;
    const filch_data_desc uppers = {.element = lu->dense->desc.element,
                                    .rows = tile,
                                    .cols = lu->panels * tile,
                                    .tile_cols = tile,
                                    .flags = FILCH_DATA_NO_BUFFER};
    return lu->unit ? fl_dense_data(lu->dense, uppers, "inverses", &lu->uppers) : FILCH_OK;
}

filch_data *fl_lu_inverses(const fl_lu *lu, int fill)
{
    return fill == FL_VENDOR_FILL_UPPER ? lu->uppers : lu->inverses;
}

void fl_lu_close(fl_lu *lu)
{
    if (!lu)
        return;
    filch_data *const handles[] = {lu->pivots,   lu->lists,     lu->info,
                                   lu->inverses, lu->identity,  lu->state,
                                   lu->uppers,   lu->blocks[0], lu->blocks[1]};
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    fl_split_close(lu->split);
    free(lu->unit);
    free(lu->words);
    free(lu->values);
    free(lu->infos);
    free(lu);
}

bool fl_lu_has(const fl_lu *lu, fl_panels panels)
{
    return (lu->panel != NULL) == (panels == FL_PANELS_OWN);
}

static size_t order_of(const fl_lu *lu, size_t panel)
{
    return fl_least(lu->a.tile, lu->order - panel * lu->a.tile);
}

/* A group of a panel's columns, and the product that it leaves. */
static filch_status add_group(fl_lu *lu, size_t k, bool is_first, fl_dense_args args, bool is_last,
                              filch_graph *graph)
{
    const filch_access group[] = {FILCH_RW(lu->a.data, 0, k),
                                  is_first ? (filch_access)FILCH_W(lu->pivots, k, 0)
                                           : (filch_access)FILCH_RW(lu->pivots, k, 0),
                                  is_first ? (filch_access)FILCH_W(lu->info, k, 0)
                                           : (filch_access)FILCH_RW(lu->info, k, 0),
                                  FILCH_RW(lu->state, 0, 0)};
    const filch_access rest[] = {FILCH_RW(lu->a.data, 0, k), FILCH_R(lu->pivots, k, 0)};
    uint32_t owner = fl_columns_owner(&lu->a, k);
    filch_status status = fl_dense_add_named(lu->dense, graph, lu->panel, args, group, 4, owner,
                                             is_first ? &lu->begins : NULL);
    return status != FILCH_OK || is_last
               ? status
               : fl_dense_add(lu->dense, graph, lu->dense->codelets[FL_DENSE_LU_REST], args, rest,
                              2, owner);
}

/* By filch's kernel, group by group; the inverse is another task's. */
static filch_status add_own_panel(fl_lu *lu, size_t k, fl_dense_args args, filch_graph *graph)
{
    const filch_access inverse[] = {FILCH_R(lu->a.data, 0, k), FILCH_W(lu->inverses, 0, k),
                                    FILCH_R(lu->identity, 0, 0),
                                    fl_dense_scratch(lu->dense, args.order, args.order)};
    filch_status status = FILCH_OK;
    for (size_t first = 0; first < args.order && status == FILCH_OK; first += FL_PANEL_GROUP) {
        size_t count = fl_least(FL_PANEL_GROUP, args.order - first);
        const fl_dense_args group = {.row = args.row + first, .order = count};
        status = add_group(lu, k, first == 0, group, first + count == args.order, graph);
    }
    return status != FILCH_OK || !args.inverts
               ? status
               : fl_dense_add(lu->dense, graph, lu->dense->codelets[FL_DENSE_INVERT], args, inverse,
                              4, fl_columns_owner(&lu->a, k));
}

static filch_status add_panel(fl_lu *lu, size_t k, filch_graph *graph)
{
    const fl_dense_args args = {.row = k * lu->a.tile,
                                .order = order_of(lu, k),
                                .inverts = lu->unit && k + 1 < fl_columns_count(&lu->a)};
    if (lu->panel)
        return add_own_panel(lu, k, args, graph);
    const filch_access accesses[] = {
        FILCH_RW(lu->a.data, 0, k),  FILCH_W(lu->pivots, k, 0),
        FILCH_W(lu->info, k, 0),     FILCH_W(lu->inverses, 0, k),
        FILCH_R(lu->identity, 0, 0), fl_dense_scratch(lu->dense, args.order, args.order)};
    return fl_dense_add_named(lu->dense, graph, lu->dense->codelets[FL_DENSE_LU_PANEL], args,
                              accesses, args.inverts ? 6 : 3, fl_columns_owner(&lu->a, k),
                              &lu->begins);
}

static filch_status add_upper(const fl_lu *lu, size_t k, filch_graph *graph)
{
    const fl_dense_args args = {
        .row = k * lu->a.tile, .order = order_of(lu, k), .fill = FL_VENDOR_FILL_UPPER};
    const filch_access accesses[] = {FILCH_R(lu->a.data, 0, k), FILCH_W(lu->uppers, 0, k),
                                     FILCH_R(lu->identity, 0, 0),
                                     fl_dense_scratch(lu->dense, args.order, args.order)};
    return fl_dense_add(lu->dense, graph, lu->dense->codelets[FL_DENSE_INVERT], args, accesses, 4,
                        fl_columns_owner(&lu->a, k));
}

static filch_status add_list(const fl_lu *lu, size_t k, filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_R(lu->pivots, k, 0), FILCH_W(lu->lists, k, 0)};
    return fl_dense_add(lu->dense, graph, lu->dense->list, (fl_dense_args){0}, accesses, 2,
                        fl_columns_owner(&lu->a, k));
}

/* Exchanges in block column j by the pivots of panel k. */
static filch_status add_exchange(const fl_lu *lu, const fl_columns *to, size_t j, size_t k,
                                 filch_graph *graph)
{
    const filch_access accesses[] = {FILCH_RW(to->data, 0, j), FILCH_R(lu->pivots, k, 0),
                                     FILCH_R(lu->lists, k, 0)};
    return fl_dense_add(lu->dense, graph, lu->dense->exchange, (fl_dense_args){0}, accesses, 3,
                        fl_columns_owner(to, j));
}

/* Exchanges in block column j by the pivots of all panels from the first on, or back to it. */
static filch_status add_swaps(const fl_lu *lu, const fl_columns *to, size_t j, size_t first,
                              bool is_back, filch_graph *graph)
{
    const fl_dense_args args = {.swap = is_back};
    filch_status status = FILCH_OK;
    if (lu->has_exchange && !is_back) {
        for (size_t k = first; k < lu->panels && status == FILCH_OK; k++)
            status = add_exchange(lu, to, j, k, graph);
        return status;
    }
    for (size_t i = first; i < lu->panels && status == FILCH_OK;) {
        filch_access accesses[1 + PIVOTS_MOST] = {FILCH_RW(to->data, 0, j)};
        uint32_t count = 1;
        for (; i < lu->panels && count <= PIVOTS_MOST; i++) {
            size_t k = is_back ? lu->panels - 1 - (i - first) : i;
            accesses[count++] = (filch_access)FILCH_R(lu->pivots, k, 0);
        }
        status = fl_dense_add(lu->dense, graph, lu->dense->codelets[FL_DENSE_SWAP], args, accesses,
                              count, fl_columns_owner(to, j));
    }
    return status;
}

/* Panel `at` and what block columns on its right need of it. */
static filch_status begin_step(fl_lu *lu, const fl_step *step, filch_graph *graph)
{
    filch_status status = add_panel(lu, step->at, graph);
    if (lu->has_exchange && status == FILCH_OK)
        status = add_list(lu, step->at, graph);
    if (lu->split && step->at + 1 < fl_columns_count(&lu->a) && status == FILCH_OK)
        status = fl_split_add_left(lu->split, step, graph);
    return status;
}

static filch_status update(fl_lu *lu, const fl_step *step, filch_graph *graph)
{
    filch_status status = FILCH_OK;
    if (lu->has_exchange)
        status = add_exchange(lu, &lu->a, step->to, step->at, graph);
    if (status != FILCH_OK)
        return status;
    return lu->split ? fl_split_add_step(lu->split, step, graph)
                     : fl_dense_add_step(lu->dense, step, graph);
}

static fl_step step_of(const fl_lu *lu)
{
    return (fl_step){.form = {.fill = FL_VENDOR_FILL_LOWER, .diagonal = FL_VENDOR_UNIT},
                     .a = &lu->a,
                     .b = &lu->a,
                     .pivots = lu->has_exchange ? NULL : lu->pivots,
                     .inverses = lu->inverses};
}

filch_status fl_lu_factor(fl_lu *lu, filch_graph *graph)
{
    fl_step step = step_of(lu);
    filch_status status = FILCH_OK;
    for (step.at = 0; step.at < lu->panels && status == FILCH_OK; step.at++) {
        step.order = order_of(lu, step.at);
        status = begin_step(lu, &step, graph);
        for (step.to = step.at + 1; step.to < fl_columns_count(&lu->a) && status == FILCH_OK;
             step.to++)
            status = update(lu, &step, graph);
        if (lu->uppers && status == FILCH_OK)
            status = add_upper(lu, step.at, graph);
    }
    for (size_t j = 0; j + 1 < lu->panels && status == FILCH_OK; j++)
        status = add_swaps(lu, &lu->a, j, j + 1, false, graph);
    return status;
}

/* --- By way of a matrix --- */

/* A panel's exchanges in a block column on its left. */
static filch_status add_left(const fl_lu *lu, size_t j, size_t k, filch_graph *graph,
                             filch_task *last)
{
    const fl_dense *dense = lu->dense;
    const filch_access accesses[] = {FILCH_RW(lu->a.data, 0, j), FILCH_R(lu->pivots, k, 0),
                                     FILCH_R(lu->lists, k, 0)};
    return fl_dense_add_named(
        dense, graph, lu->has_exchange ? dense->exchange : dense->codelets[FL_DENSE_SWAP],
        (fl_dense_args){0}, accesses, lu->has_exchange ? 3 : 2, fl_columns_owner(&lu->a, j), last);
}

static filch_status add_step_staged(fl_lu *lu, const fl_step *step, const fl_staging *staging,
                                    fl_throttle *lefts, fl_throttle *sends, filch_graph *graph)
{
    size_t k = step->at, row = k + 1 < lu->panels ? (k + 1) * lu->a.tile : lu->a.rows;
    size_t first = fl_staging_tiles(staging, &lu->a, k * lu->a.tile);
    size_t end = fl_staging_tiles(staging, &lu->a, row);
    fl_step to = *step;
    filch_status status = begin_step(lu, step, graph);
    filch_task *left = fl_throttle_step(lefts, k, lu->begins, graph, &status);
    filch_task *sent = fl_throttle_step(sends, k, lu->begins, graph, &status);
    for (to.to = 0; to.to < fl_columns_count(&lu->a) && status == FILCH_OK; to.to++) {
        filch_task *last = to.to <= k ? &left[to.to] : NULL;
        if (to.to > k)
            status = update(lu, &to, graph);
        else if (to.to < k)
            status = add_left(lu, to.to, k, graph, last);
        if (status == FILCH_OK)
            status = fl_staging_store(lu->dense, staging, &lu->a, to.to, first, end, graph, last,
                                      &sent[to.to]);
    }
    return status;
}

filch_status fl_lu_factor_staged(fl_lu *lu, const fl_staging *staging, filch_graph *graph)
{
    fl_step step = step_of(lu);
    size_t columns = fl_columns_count(&lu->a);
    fl_throttle lefts = {.tasks = NULL}, sends = {.tasks = NULL};
    filch_status status = fl_throttle_open(&lefts, LEFT_PANELS, columns);
    if (status == FILCH_OK)
        status = fl_throttle_open(&sends, SENT_PANELS, columns);
    for (size_t j = 0; j < columns && status == FILCH_OK; j++)
        status = fl_staging_load(lu->dense, staging, &lu->a, j, graph);
    for (step.at = 0; step.at < lu->panels && status == FILCH_OK; step.at++) {
        step.order = order_of(lu, step.at);
        status = add_step_staged(lu, &step, staging, &lefts, &sends, graph);
        if (lu->uppers && status == FILCH_OK)
            status = add_upper(lu, step.at, graph);
    }
    fl_throttle_close(&sends);
    fl_throttle_close(&lefts);
    return status;
}

/* Two handles, so that the second triangle's blocks do not wait for the first solve. */
static filch_status make_blocks(fl_lu *lu, const fl_columns *b)
{
    filch_status status = FILCH_OK;
    if (!lu->unit || !fl_dense_blocks_pay(&lu->a, b))
        return FILCH_OK;
    for (int k = 0; k < 2 && status == FILCH_OK; k++)
        if (!lu->blocks[k])
            status = fl_dense_blocks(lu->dense, &lu->a, &lu->blocks[k]);
    return status;
}

static filch_status solve(const fl_lu *lu, int fill, int op, const fl_columns *b,
                          filch_graph *graph)
{
    bool is_upper = fill == FL_VENDOR_FILL_UPPER;
    bool has_blocks = fl_dense_blocks_pay(&lu->a, b);
    const fl_vendor_form form = {
        .fill = fill, .op_a = op, .diagonal = is_upper ? FL_VENDOR_NON_UNIT : FL_VENDOR_UNIT};
    return fl_dense_solve(lu->dense, &form, &lu->a, b, has_blocks ? lu->blocks[is_upper] : NULL,
                          graph);
}

filch_status fl_lu_solve(fl_lu *lu, int op, const fl_columns *b, filch_graph *graph)
{
    static const int fills[] = {FL_VENDOR_FILL_LOWER, FL_VENDOR_FILL_UPPER};
    bool is_plain = op == FL_VENDOR_OP_N;
    filch_status status = make_blocks(lu, b);
    for (size_t j = 0; is_plain && j < fl_columns_count(b) && status == FILCH_OK; j++)
        status = add_swaps(lu, b, j, 0, false, graph);
    for (int k = 0; k < 2 && status == FILCH_OK; k++)
        status = solve(lu, fills[is_plain ? k : 1 - k], op, b, graph);
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
