/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a block of columns, for copies that are to follow each other closely. */
#ifndef FL_MEMORY_ROUTE_PART_H
#define FL_MEMORY_ROUTE_PART_H

#include <stdbool.h>
#include <stddef.h>

/* What is copied at once: whole columns, or a part of one. */
typedef struct fl_part {
    size_t column, offset; /* where it begins; offset: bytes into the column */
    size_t width, height;
} fl_part;

/* The part behind the first `sent` bytes of `height` columns of `width` bytes, of which some are
 * left; it has `piece` bytes at most. is_tight: wherever the block lies its columns have no gaps
 * between them, so that it may be cut as one long column. */
fl_part fl_part_next(size_t width, size_t height, bool is_tight, size_t sent, size_t piece);

#endif
