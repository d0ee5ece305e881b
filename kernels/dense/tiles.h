/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS 3 and potrf on whole matrices, as graphs of the same routines on tiles. A graph takes the
 * tasks of several routines one after another; results are those of the routines in that order. */
#ifndef FL_KERNELS_DENSE_TILES_H
#define FL_KERNELS_DENSE_TILES_H

#include "kernels/dense/host.h"
#include "kernels/vendor/blas.h"

typedef enum fl_tile_op {
    FL_TILE_GEMM,
    FL_TILE_SYMM,
    FL_TILE_SYRK,
    FL_TILE_TRMM,
    FL_TILE_TRSM,
    FL_TILE_POTRF,
    FL_TILE_INVERT, /* see inverses.h */
    FL_TILE_SOLVE,
    FL_TILE_MULTIPLY, /* inverse of L, A, scratch: A := A L^-T */
    FL_TILE_OPS
} fl_tile_op;

/* The codelets of a runtime. */
typedef struct fl_tiles {
    filch_runtime *runtime;
    const fl_dense_host *host;               /* null: cores of the host have no part in it */
    filch_codelet *codelets[FL_TILE_OPS][2]; /* double, single */
    uint32_t inverted;        /* order of the blocks by whose inverses GPUs solve; 0: by none */
    filch_codelet *panels[2]; /* see fl_tiles_open_panels() */
    bool has_tried_panels[2];
} fl_tiles;

/* vendor null: GPUs have no part in it. is_idle: on simulated devices tasks compute nothing.
 * Statuses as filch_codelet_create(). */
filch_status fl_tiles_open(fl_tiles *tiles, filch_runtime *runtime, fl_vendor *vendor,
                           const fl_dense_host *host, bool is_idle);

/* Makes the codelet of filch's own kernel that factors a diagonal tile and inverts it
 * (filch/kernels.h). Null where a GPU has no compiler for it or too little shared memory. */
filch_codelet *fl_tiles_make_panels(filch_runtime *runtime, bool is_single);

/* Makes that codelet once, for fl_tiles_potrf(). It stays null, and cuSOLVER factors, where it
 * cannot be made, or where cores take part, on which a matrix that is not positive definite would
 * fail the task. One thread at a time. */
void fl_tiles_open_panels(fl_tiles *tiles, bool is_single);

/* A handle and how many tiles it is cut into. Cuts of operands that meet are the same. */
typedef struct fl_tiled {
    filch_data *data;
    uint32_t rows, cols;
    uint64_t tile_rows, tile_cols; /* of the first tile, than which none is larger */
} fl_tiled;

/* A graph under construction. A failure stays in status, and nothing is added any more. */
typedef struct fl_tile_graph {
    const fl_tiles *tiles;
    filch_graph *graph;
    bool is_single;
    int32_t priority; /* of the tasks to come; greater ones run sooner */
    filch_status status;
    filch_data **kept; /* handles that end after the graph */
    size_t kept_count;
} fl_tile_graph;

/* Ranked tasks run by what waits for them; those of products, by priority. */
void fl_tile_graph_open(fl_tile_graph *g, const fl_tiles *tiles, bool is_single, bool is_ranked);
/* The graph, where it is not null, and the handles that tasks were given. */
void fl_tile_graph_close(fl_tile_graph *g);
/* A handle that ends after the graph. Null: the status tells why. */
filch_data *fl_tile_keep(fl_tile_graph *g, const filch_data_desc *desc);
void fl_tile_add(fl_tile_graph *g, fl_tile_op op, const fl_vendor_form *form,
                 const filch_access *accesses, uint32_t count);

/* potrf_trtri of filch/kernels.h. Requires the codelet for panels. */
void fl_tile_add_panel(fl_tile_graph *g, bool inverts, const filch_access accesses[3]);

/* Tile (i, j) of op(M). */
static inline filch_access fl_tile(const fl_tiled *m, int op, uint32_t i, uint32_t j,
                                   filch_access_mode mode)
{
    filch_access access = {.data = m->data, .mode = mode};
    access.row = op == FL_VENDOR_OP_N ? i : j;
    access.col = op == FL_VENDOR_OP_N ? j : i;
    return access;
}

static inline int fl_tile_flip(int op)
{
    return op == FL_VENDOR_OP_N ? FL_VENDOR_OP_T : FL_VENDOR_OP_N;
}

/* As in kernels/vendor/blas.h, but trmm's result is B. alpha is not 0. */
void fl_tiles_gemm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b, const fl_tiled *c);
void fl_tiles_symm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b, const fl_tiled *c);
void fl_tiles_syrk(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *c);
void fl_tiles_trmm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b);
void fl_tiles_trsm(fl_tile_graph *g, const fl_vendor_form *form, const fl_tiled *a,
                   const fl_tiled *b);
/* Elements of int32_t that `infos` has for each diagonal tile. */
uint32_t fl_tiles_potrf_words(const fl_tile_graph *g, int fill, const fl_tiled *a);
/* A := L or U, in the triangle `fill`. infos has a tile of so many elements, zeros at first, for
 * each diagonal tile. The first element receives potrf's info: the row within the tile, or, where a
 * tile has several elements, within A. */
void fl_tiles_potrf(fl_tile_graph *g, int fill, const fl_tiled *a, filch_data *infos);
/* B := the solution of A X = B by the factor. */
void fl_tiles_potrs(fl_tile_graph *g, int fill, const fl_tiled *a, const fl_tiled *b);

#endif
