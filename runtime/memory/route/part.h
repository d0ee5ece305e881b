/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of a block of columns, for copies following each other closely. */
#ifndef FL_MEMORY_ROUTE_PART_H
#define FL_MEMORY_ROUTE_PART_H

#include <stdbool.h>
#include <stddef.h>

/* Unit of a single copy: whole columns, or a part of a column. */
typedef struct fl_part {
    size_t column, offset; /* start of the part; offset: bytes into the column */
    size_t width, height;
} fl_part;

/* Returns the part behind the first `sent` bytes of `height` columns of `width` bytes;
 * precondition: bytes remain. The part has at most `piece` bytes. is_tight: the block's columns
 * lie without gaps in every memory, thus the block may be cut as a single long column. */
fl_part fl_part_next(size_t width, size_t height, bool is_tight, size_t sent, size_t piece);

#endif
