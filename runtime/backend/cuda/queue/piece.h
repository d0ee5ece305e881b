/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of columns, cut into pieces that fit into page-locked slots; and what processors move
 * between a slot, where a piece's columns lie without gaps, and the host's buffer. */
#ifndef FL_BACKEND_CUDA_QUEUE_PIECE_H
#define FL_BACKEND_CUDA_QUEUE_PIECE_H

#include "backend/backend.h"

#define FL_CUT_LEADS 3

/* How a copy is cut: whole columns, or parts of one. */
typedef struct fl_cut {
    bool is_by_columns;
    size_t each;               /* columns of a piece, or bytes … */
    size_t lead[FL_CUT_LEADS]; /* … and of the first ones … */
    size_t parts;              /* … of which so many make up the block, or one column */
    size_t pieces;
} fl_cut;

/* Some pieces of `most` bytes at most. is_led: begins with smaller ones, so that the device has
 * something to do soon. */
fl_cut fl_cut_copy(const fl_copy *copy, size_t most, bool is_led);
/* Piece k, as a copy between the device and a slot, to be set; *host: where it is in the host's
 * buffer, whose columns are as far apart as the copy says. */
fl_copy fl_cut_piece(const fl_copy *copy, const fl_cut *cut, size_t k, char **host);

/* Bytes [begin, end) of a slot, from or to columns of `width` bytes in the host's buffer; is_past:
 * with stores that go past the caches. */
void fl_slot_fill(char *slot, const char *host, size_t pitch, size_t width, size_t begin,
                  size_t end, bool is_past);
void fl_slot_land(const char *slot, char *host, size_t pitch, size_t width, size_t begin,
                  size_t end);

/* Whether two blocks of columns have bytes in common, or might have: of unlike pitches the columns
 * are taken for as long as these. */
bool fl_columns_overlap(const char *a, size_t a_pitch, size_t a_width, size_t a_height,
                        const char *b, size_t b_pitch, size_t b_width, size_t b_height);

#endif
