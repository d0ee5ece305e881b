/* SPDX-License-Identifier: Apache-2.0 */
/* Division of column blocks into pieces fitting into page-locked slots. Also moves bytes, by
 * processors, between a slot and the host's buffer; a slot stores a piece's columns without
 * gaps. */
#ifndef FL_BACKEND_CUDA_QUEUE_PIECE_H
#define FL_BACKEND_CUDA_QUEUE_PIECE_H

#include "backend/backend.h"

#define FL_CUT_LEADS 3

/* Division of a copy into pieces: whole columns, or parts of a column. */
typedef struct fl_cut {
    bool is_by_columns;
    size_t each;               /* columns of a piece, or bytes */
    size_t lead[FL_CUT_LEADS]; /* columns or bytes of the first pieces */
    size_t parts;              /* pieces in the block, or in one column */
    size_t pieces;
} fl_cut;

/* Divides a copy into pieces of at most `most` bytes. is_led: the first pieces are smaller, to give
 * the device work soon. */
fl_cut fl_cut_copy(const fl_copy *copy, size_t most, bool is_led);
/* Returns piece k, as a copy between the device and a slot; the caller sets the slot. *host: the
 * piece's address in the host's buffer, with the copy's pitch. */
fl_copy fl_cut_piece(const fl_copy *copy, const fl_cut *cut, size_t k, char **host);

/* Moves bytes [begin, end) of a slot, from or to columns of `width` bytes in the host's buffer;
 * is_past: with stores bypassing the caches. */
void fl_slot_fill(char *slot, const char *host, size_t pitch, size_t width, size_t begin,
                  size_t end, bool is_past);
void fl_slot_land(const char *slot, char *host, size_t pitch, size_t width, size_t begin,
                  size_t end);

/* Returns whether two blocks of columns share bytes, or might. With unequal pitches, overlapping
 * extents count as shared bytes. */
bool fl_columns_overlap(const char *a, size_t a_pitch, size_t a_width, size_t a_height,
                        const char *b, size_t b_pitch, size_t b_width, size_t b_height);

#endif
