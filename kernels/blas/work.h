/* SPDX-License-Identifier: Apache-2.0 */
/* Private to works.c and factors.c: a call under way. */
#ifndef FILCH_BLAS_WORK_H
#define FILCH_BLAS_WORK_H

#include "kernels/blas/factors.h"
#include "kernels/blas/operands.h"
#include "kernels/blas/works.h"

struct fl_work {
    fl_works *works;
    const fl_works_hold *hold; /* null: results come home as they are made */
    fl_blas_call *call;
    fl_operands operands;
    fl_tile_graph graph;
    int64_t tile;
    filch_error *error;
};

fl_vendor_form fl_work_form(const fl_blas_call *call);
/* In square tiles. */
fl_tiled fl_work_matrix(fl_work *w, void *ptr, int64_t rows, int64_t cols, int64_t ld);
/* Runs the graph, unless it could not be built, and brings held results home. */
filch_status fl_work_run(fl_work *w);
/* Graph and handles end; once more is allowed. */
void fl_work_end(fl_work *w);

#endif
