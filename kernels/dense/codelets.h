/* SPDX-License-Identifier: Apache-2.0 */
/* Private to kernels/dense: codelets and their arguments. */
#ifndef FL_KERNELS_DENSE_CODELETS_H
#define FL_KERNELS_DENSE_CODELETS_H

#include "kernels/dense/dense.h"
#include "kernels/dense/place.h"

typedef enum fl_dense_kernel {
    FL_DENSE_LU_PANEL, /* A, pivots, info [, inverse, identity, scratch] */
    FL_DENSE_LU_REST,  /* A, pivots: what columns of a panel leave of those on their right */
    FL_DENSE_INVERT,   /* A, inverse, identity, scratch */
    FL_DENSE_BLOCKS,   /* A, blocks: see inverses.h */
    FL_DENSE_SWAP,     /* A, pivots ... */
    FL_DENSE_STEP,     /* triangle's block column, B [, pivots] [, inverse or blocks, scratch] */
    FL_DENSE_PARTS,    /* left parts, right parts, B: see split.h */
    FL_DENSE_QR_PANEL, /* A, tau, info, reflectors, triangle, identity, scratch */
    FL_DENSE_QR_REST,  /* A, tau, reflectors, triangle, scratch [, scratch]: what columns of a panel
                          make of those on their right */
    FL_DENSE_TRIANGLE, /* A, tau, reflectors, triangle, identity, scratch */
    FL_DENSE_REFLECT,  /* A, tau, reflectors, triangle, identity, scratch */
    FL_DENSE_APPLY,    /* reflectors, triangle, C, scratch [, scratch] */
    FL_DENSE_MOVE,     /* from, to: copies as many rows, from row args->row on */
    FL_DENSE_KERNELS
} fl_dense_kernel;

/* Of FL_DENSE_STEP: by blocks in place of one inverse, see inverses.h. */
enum { FL_DENSE_BY_BLOCKS = 2 };

/* Arguments of every codelet. */
typedef struct fl_dense_args {
    const fl_dense_host *host;
    uint64_t row;   /* first row of the diagonal block */
    uint64_t order; /* of the diagonal block */
    int32_t fill, op, diagonal;
    uint8_t swap;    /* FL_DENSE_STEP: rows of B are exchanged before; FL_DENSE_SWAP: backwards */
    uint8_t inverts; /* the diagonal block's inverse is made, or there; FL_DENSE_BY_BLOCKS */
    uint8_t compute; /* FL_DENSE_STEP: of its product */
    uint8_t only_solves; /* FL_DENSE_STEP: without its product */
} fl_dense_args;

struct fl_dense {
    fl_dense_desc desc;
    filch_codelet *codelets[FL_DENSE_KERNELS];
    filch_codelet *list;      /* see fl_dense_has_exchange() */
    filch_codelet *exchange;  /* likewise */
    filch_codelet *panels[2]; /* see fl_dense_panel() */
    filch_codelet *split[2];  /* see split.h */
    bool has_tried_exchange, has_tried_panels[2], has_tried_split;
    /* Of mixed.h; made on demand. */
    struct fl_dense *single;
    filch_codelet *narrow[3]; /* narrow.h */
    filch_codelet *passes[6]; /* passes.h */
};

/* A codelet whose kernel GPUs may be unable to have: null then, or where there are none. */
filch_codelet *fl_dense_make_kernel(const fl_dense *dense, filch_codelet_desc *desc,
                                    filch_cuda_desc *cuda, filch_host_fn host);
/* Whether rows are exchanged by kernels on GPUs, of one tile of at most so many pivots at once. Not
 * so where there are no GPUs, or no compiler. Then dense->list, with accesses to pivots and a list
 * of FL_EXCHANGE_LIST integers of 32 bits a pivot, makes the list, and dense->exchange, with
 * accesses to A, pivots and list, exchanges A's rows. */
#define FL_EXCHANGE_MOST 1024
#define FL_EXCHANGE_LIST 2
bool fl_dense_has_exchange(fl_dense *dense);
/* A codelet that factors `order` columns of a panel, from row `row` on, whose first row is that of
 * the pivots or of tau. At most FL_PANEL_GROUP; fewer are the panel's last. Null as above.
 *
 * LU: the panel's other columns get the exchanges of rows, and those on the right the solutions for
 * the rows on top. Accesses are FL_DENSE_LU_PANEL's first, then FL_LU_PANEL_WORDS words of 32 bits,
 * zero at first.
 *
 * QR: the panel's other columns stay as they are; the reflectors of the columns are made, and the
 * block of the triangle on its diagonal. Accesses are A, tau, reflectors, triangle,
 * FL_QR_PANEL_WORDS words as above, and the scratch of fl_dense_qr_room(). */
#define FL_PANEL_GROUP 128
enum { FL_DENSE_LU, FL_DENSE_QR };
filch_codelet *fl_dense_panel(fl_dense *dense, int which);
/* Their launches. */
int fl_dense_lu_shape(const filch_call *call, filch_shape *shape);
int fl_dense_qr_shape(const filch_call *call, filch_shape *shape);
/* What QR of columns of that many rows works in. */
filch_access fl_dense_qr_room(const fl_dense *dense, size_t rows);

int fl_dense_run_lu_panel(const fl_place *on, const filch_call *call);
int fl_dense_run_lu_rest(const fl_place *on, const filch_call *call);
/* The panels' codelets on the host. */
int fl_dense_host_lu(const filch_call *call);
int fl_dense_host_qr(const filch_call *call);
int fl_dense_run_invert(const fl_place *on, const filch_call *call);
int fl_dense_run_blocks(const fl_place *on, const filch_call *call);
int fl_dense_run_swap(const fl_place *on, const filch_call *call);
int fl_dense_run_step(const fl_place *on, const filch_call *call);
int fl_dense_run_parts(const fl_place *on, const filch_call *call);
int fl_dense_run_qr_panel(const fl_place *on, const filch_call *call);
int fl_dense_run_qr_rest(const fl_place *on, const filch_call *call);
int fl_dense_run_triangle(const fl_place *on, const filch_call *call);
int fl_dense_run_reflect(const fl_place *on, const filch_call *call);
int fl_dense_run_apply(const fl_place *on, const filch_call *call);
int fl_dense_run_move(const fl_place *on, const filch_call *call);
double fl_dense_work_lu_panel(const filch_call *call);
double fl_dense_work_lu_rest(const filch_call *call);
double fl_dense_work_lu_group(const filch_call *call);
double fl_dense_work_invert(const filch_call *call);
double fl_dense_work_blocks(const filch_call *call);
double fl_dense_work_swap(const filch_call *call);
double fl_dense_work_step(const filch_call *call);
double fl_dense_work_parts(const filch_call *call);
double fl_dense_work_qr_panel(const filch_call *call);
double fl_dense_work_qr_group(const filch_call *call);
double fl_dense_work_qr_rest(const filch_call *call);
double fl_dense_work_triangle(const filch_call *call);
double fl_dense_work_reflect(const filch_call *call);
double fl_dense_work_apply(const filch_call *call);

/* Of a tile's order, for free(). Null: no memory. */
void *fl_dense_identity(size_t order, size_t element);
filch_access fl_dense_scratch(const fl_dense *dense, size_t rows, size_t cols);
filch_status fl_dense_data(const fl_dense *dense, filch_data_desc desc, const char *label,
                           filch_data **out);
/* A block in scratch. */
static inline filch_view fl_dense_room(const filch_view *scratch, size_t rows, size_t cols,
                                       size_t element)
{
    return (filch_view){
        .ptr = scratch->ptr, .rows = rows, .cols = cols, .ld = rows, .element = element};
}

/* Adds a task, with the host's table filled in. */
filch_status fl_dense_add(const fl_dense *dense, filch_graph *graph, filch_codelet *codelet,
                          fl_dense_args args, const filch_access *accesses, uint32_t count,
                          uint32_t affinity);
/* The same; *task, unless null, receives its name. */
filch_status fl_dense_add_named(const fl_dense *dense, filch_graph *graph, filch_codelet *codelet,
                                fl_dense_args args, const filch_access *accesses, uint32_t count,
                                uint32_t affinity, filch_task *task);

static inline uint32_t fl_columns_owner(const fl_columns *columns, size_t block)
{
    return columns->dealt ? (uint32_t)(block % columns->dealt) + 1 : FILCH_ANY_DEVICE;
}

static inline size_t fl_columns_width(const fl_columns *columns, size_t block)
{
    size_t left = columns->cols - block * columns->tile;
    return left < columns->tile ? left : columns->tile;
}

static inline size_t fl_least(size_t a, size_t b)
{
    return a < b ? a : b;
}

#endif
