/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of columns, cut into pieces that fit into page-locked slots. */
#ifndef FL_BACKEND_CUDA_PIECE_H
#define FL_BACKEND_CUDA_PIECE_H

#include "backend/backend.h"

/* How a copy is cut: whole columns, or parts of one. */
typedef struct fl_cut {
    size_t part;    /* bytes of a column that a piece has at most … */
    size_t parts;   /* … and pieces of a column */
    size_t columns; /* of a piece, where parts is 1 */
    size_t pieces;
} fl_cut;

/* So that each thread gets some pieces, of `most` bytes at most. */
fl_cut fl_cut_copy(const fl_copy *copy, uint32_t threads, size_t most);
/* Piece k, as a copy between the device and a slot; *host: where it is in the host's buffer, whose
 * columns are as far apart as the copy says. */
fl_copy fl_cut_piece(const fl_copy *copy, const fl_cut *cut, size_t k, char *slot, char **host);

void fl_copy_columns(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
                     size_t height);

/* Whether two blocks of columns have bytes in common, or might have: of unlike pitches the columns
 * are taken for as long as these. */
bool fl_columns_overlap(const char *a, size_t a_pitch, size_t a_width, size_t a_height,
                        const char *b, size_t b_pitch, size_t b_width, size_t b_height);

#endif
