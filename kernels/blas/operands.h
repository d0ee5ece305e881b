/* SPDX-License-Identifier: Apache-2.0 */
/* Handles over the matrices of a call. */
#ifndef FILCH_BLAS_OPERANDS_H
#define FILCH_BLAS_OPERANDS_H

#include "kernels/blas/call.h"
#include "kernels/dense/tiles.h"

#define FL_OPERANDS_MOST 4

typedef struct fl_operands {
    filch_runtime *runtime;
    size_t element;
    bool is_held; /* results stay on the GPUs until fl_operands_bring() */
    fl_blas_output outputs[2];
    int output_count;
    filch_data *handles[FL_OPERANDS_MOST];
    bool is_output[FL_OPERANDS_MOST]; /* of the handle */
    uint32_t count;
    filch_status status; /* a failure stays, and nothing more is made */
} fl_operands;

void fl_operands_open(fl_operands *o, filch_runtime *runtime, const fl_blas_call *call,
                      bool is_held);
/* A rows x cols matrix in tiles of tile_rows x tile_cols. */
fl_tiled fl_operands_matrix(fl_operands *o, void *ptr, int64_t rows, int64_t cols, int64_t ld,
                            int64_t tile_rows, int64_t tile_cols);
/* A column of int32_t, in tiles of so many. */
filch_data *fl_operands_infos(fl_operands *o, int32_t *infos, int64_t count, uint32_t words);
/* After the job: brings results home that were held. */
filch_status fl_operands_bring(fl_operands *o);
/* After the job. */
void fl_operands_close(fl_operands *o);

#endif
