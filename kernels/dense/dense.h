/* SPDX-License-Identifier: Apache-2.0 */
/* Dense linear algebra as tasks of filch graphs. Matrices are column-major handles whose tiles are
 * whole block columns: tile_rows is the number of rows. Calls that add tasks return the status of
 * the filch call that failed, which filch_runtime_error() explains.
 *
 * One fl_dense a runtime and precision; calls on it and on its parts come from one thread at a
 * time. */
#ifndef FL_KERNELS_DENSE_DENSE_H
#define FL_KERNELS_DENSE_DENSE_H

#include "kernels/dense/host.h"
#include "kernels/vendor/blas.h"

typedef struct fl_dense fl_dense;

/* LU's products as three of TF32, of operands cut in two: nearly as exact as single precision, and
 * faster on tensor cores. In single precision where GPUs have no compiler for the kernels that cut,
 * and in all other products. */
enum { FL_DENSE_TF32X3 = 1 };

typedef struct fl_dense_desc {
    filch_runtime *runtime;
    const fl_dense_host *host; /* outlives the runtime */
    fl_vendor *vendor;         /* null: no task runs on a GPU; outlives the runtime */
    size_t element;            /* sizeof(double) or sizeof(float) */
    bool is_idle;              /* on simulated devices: tasks compute nothing */
    int compute;               /* of products in steps on GPUs, in single precision:
                                  FL_VENDOR_COMPUTE_* or FL_DENSE_TF32X3 */
} fl_dense_desc;

/* A matrix in block columns. */
typedef struct fl_columns {
    filch_data *data;
    size_t rows, cols;
    size_t tile;    /* columns of a block, the last of which may have fewer */
    uint32_t dealt; /* blocks are dealt to so many devices in turn; 0: filch places them */
} fl_columns;

static inline size_t fl_columns_count(const fl_columns *columns)
{
    return (columns->cols + columns->tile - 1) / columns->tile;
}

/* Who factors a panel on GPUs: cuSOLVER, or filch's own kernel, 128 columns a launch with cuBLAS's
 * products between. The kernel runs where GPUs and their compiler can have it, and cuSOLVER
 * elsewhere. Its state stays on the GPU that ran it last: after that GPU failed, close the fl_lu or
 * fl_qr and open it again. */
typedef enum fl_panels { FL_PANELS_VENDOR, FL_PANELS_OWN } fl_panels;

/* Where a factorization's input comes from and its factors go to, other than the matrix that it
 * works on: then that needs no buffer, and tasks copy a block column of the input when it is due,
 * and rows of the factors as soon as they are final. Where both are in the host's memory, these
 * copies are beside kernels from the first block column to the last rows. */
typedef struct fl_staging {
    filch_data *from;    /* as large as the matrix, in its block columns */
    filch_data *to;      /* likewise, in tiles of as many columns and of `rows` rows */
    filch_data *between; /* a temporary in the tiles of `to`, by which rows leave the matrix, so
                            that nothing there waits for the way to the host; null: straight */
    size_t rows;         /* a multiple of the columns of a block */
} fl_staging;

/* Makes codelets; those run until the runtime ends. */
filch_status fl_dense_open(const fl_dense_desc *desc, fl_dense **out);
/* Not before the graphs and the parts that were made from it; null is allowed. */
void fl_dense_close(fl_dense *dense);

/* --- LU --- */

typedef struct fl_lu fl_lu;

/* Memory beside the matrix. The matrix may have any shape, but rows and columns. */
filch_status fl_lu_open(fl_dense *dense, const fl_columns *a, fl_panels panels, fl_lu **out);
/* Whether that is who factors panels on GPUs. */
bool fl_lu_has(const fl_lu *lu, fl_panels panels);
/* Before the factorization: keeps inverses of the factors' diagonal blocks for GPUs, where there
 * are any, in tiles of a block's order. A small triangle is solved by few threads, one row after
 * another; a product with its inverse is not. */
filch_status fl_lu_keep_inverses(fl_lu *lu);
/* Of the lower triangles, but for the last block's; or of the upper ones, transposed. Null: there
 * are none. */
filch_data *fl_lu_inverses(const fl_lu *lu, int fill);
/* After the graph is destroyed; null is allowed. */
void fl_lu_close(fl_lu *lu);
/* A := P L U with partial pivoting, by block columns, in LAPACK's layout. A pivot of 0 does not
 * fail a task. */
filch_status fl_lu_factor(fl_lu *lu, filch_graph *graph);
/* The same by way of the matrix that was given to fl_lu_open(). */
filch_status fl_lu_factor_staged(fl_lu *lu, const fl_staging *staging, filch_graph *graph);
/* B := op(A)^-1 B by the factors, in a later task of the graph or in another one, as LAPACK's
 * getrs; op is FL_VENDOR_OP_*. */
filch_status fl_lu_solve(fl_lu *lu, int op, const fl_columns *b, filch_graph *graph);
/* After a factorization has run: LAPACK's info. pivots, null or of as many elements as the smaller
 * side, receives LAPACK's: rows from 1. */
int32_t fl_lu_result(const fl_lu *lu, int32_t *pivots);

/* --- QR --- */

typedef struct fl_qr fl_qr;

/* tau is the caller's, of as many elements as the smaller side; outlives the parts. */
filch_status fl_qr_open(fl_dense *dense, const fl_columns *a, void *tau, fl_panels panels,
                        fl_qr **out);
/* Whether that is who factors panels on GPUs. */
bool fl_qr_has(const fl_qr *qr, fl_panels panels);
/* After the graph is destroyed; null is allowed. */
void fl_qr_close(fl_qr *qr);
/* A := Q R by block columns, in LAPACK's layout. */
filch_status fl_qr_factor(fl_qr *qr, filch_graph *graph);
/* The same by way of the matrix that was given to fl_qr_open(). */
filch_status fl_qr_factor_staged(fl_qr *qr, const fl_staging *staging, filch_graph *graph);
/* C := op(Q) C, in a later task of the graph or in another one, as LAPACK's ormqr from the left. */
filch_status fl_qr_apply(fl_qr *qr, int op, const fl_columns *c, filch_graph *graph);

/* B := R^-1 B, or R'^-1 B, in B's first rows, likewise; A has no more columns than rows. */
filch_status fl_qr_solve(fl_qr *qr, int op, const fl_columns *b, filch_graph *graph);

/* Floating point operations (LAPACK Working Note 41, appendix C). */
double fl_flops_lu(double m, double n);
double fl_flops_qr(double m, double n);

#endif
