/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/piece.h"

#include <string.h>

/* Copies are cut so that each thread gets some pieces, but not finer. */
#define PIECES_EACH 2
#define LEAST_PIECE ((size_t)128 << 10)

fl_cut fl_cut_copy(const fl_copy *copy, uint32_t threads, size_t most)
{
    size_t bytes = copy->width * copy->height;
    size_t piece = (bytes / (PIECES_EACH * (size_t)threads) + 4095) & ~(size_t)4095;
    piece = piece < LEAST_PIECE ? LEAST_PIECE : piece > most ? most : piece;
    fl_cut cut = {.part = copy->width, .parts = 1, .columns = 1};
    if (copy->width <= piece) {
        cut.columns = piece / copy->width;
        cut.pieces = (copy->height - 1) / cut.columns + 1;
    } else {
        cut.part = piece;
        cut.parts = (copy->width - 1) / piece + 1;
        cut.pieces = cut.parts * copy->height;
    }
    return cut;
}

fl_copy fl_cut_piece(const fl_copy *copy, const fl_cut *cut, size_t k, char *slot, char **host)
{
    size_t column = cut->parts == 1 ? k * cut->columns : k / cut->parts;
    size_t offset = cut->parts == 1 ? 0 : k % cut->parts * cut->part;
    size_t left = copy->width - offset, below = copy->height - column;
    fl_copy piece = *copy;
    char *to = (char *)copy->to + column * copy->to_pitch + offset;
    char *from = (char *)(uintptr_t)copy->from + column * copy->from_pitch + offset;
    piece.behind_count = 0;
    piece.width = left < cut->part ? left : cut->part;
    piece.height = below < cut->columns ? below : cut->columns;
    if (copy->from_device == NULL) {
        *host = from;
        piece.from = slot;
        piece.from_pitch = piece.width;
        piece.to = to;
    } else {
        *host = to;
        piece.to = slot;
        piece.to_pitch = piece.width;
        piece.from = from;
    }
    return piece;
}

/* glibc's memcpy goes past the caches by itself where blocks are large. */
void fl_copy_columns(char *to, size_t to_pitch, const char *from, size_t from_pitch, size_t width,
                     size_t height)
{
    for (size_t i = 0; i < height; ++i) {
        memcpy(to + i * to_pitch, from + i * from_pitch, width);
    }
}

bool fl_columns_overlap(const char *a, size_t a_pitch, size_t a_width, size_t a_height,
                        const char *b, size_t b_pitch, size_t b_width, size_t b_height)
{
    if (b < a) {
        return fl_columns_overlap(b, b_pitch, b_width, b_height, a, a_pitch, a_width, a_height);
    }
    size_t apart = (size_t)(b - a);
    if (apart >= (a_height - 1) * a_pitch + a_width) {
        return false;
    }
    if (a_height == 1 || (a_pitch != b_pitch && b_height != 1)) {
        return true;
    }
    /* b begins in a column of a's or behind its rows; the latter must last until the next. */
    size_t row = apart % a_pitch;
    return row < a_width || row + b_width > a_pitch;
}
