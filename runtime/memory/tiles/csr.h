/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as handles. The host buffer of such a handle is filch's, and consists of the row
 * blocks one behind the other; a row block is a tile of bytes. A row block begins with a head,
 * followed by local pointers, columns and values. */
#ifndef FL_MEMORY_TILES_CSR_H
#define FL_MEMORY_TILES_CSR_H

#include "base/memory.h"
#include "filch/csr.h"

/* Row blocks begin at multiples of this many bytes within the buffer, as allocations of GPUs do. */
#define FL_CSR_ALIGN ((size_t)256)
/* Alignment of a buffer to be page-locked, and unit of its size: it shares no page with other
 * memory. No page of a host with GPUs is larger. */
#define FL_CSR_PAGE ((size_t)1 << 16)
/* Arrays begin at multiples of this many bytes within a row block. */
#define FL_CSR_ARRAY_ALIGN ((size_t)64)
/* "filchCSR" */
#define FL_CSR_MAGIC UINT64_C(0x52534368636c6966)
/* Rows, columns and entries are fewer. */
#define FL_CSR_LIMIT ((uint64_t)1 << 60)

/* Head of a row block; the layout is also in kernels/filch_kernel.h. Arrays by their bytes from the
 * head; values 0: none. */
typedef struct fl_csr_head {
    uint64_t magic, rows, cols, nnz, row, entry, column_lo, column_hi, element;
    uint32_t pointer_bytes, column_bytes, base, block_lo, block_hi, reserved;
    uint64_t pointers, columns, values;
    uint64_t bytes; /* of the row block, padding included */
} fl_csr_head;

_Static_assert(sizeof(fl_csr_head) == 128, "the layout is that of filch/kernel.h");

/* Row block of a matrix. The entry past the last block has the ends. */
typedef struct fl_csr_part {
    uint64_t row, entry;
    uint64_t column_lo, column_hi;
    uint32_t block_lo, block_hi;
} fl_csr_part;

/* What a handle knows of its sparse matrix. */
typedef struct fl_csr {
    uint64_t cols, element;
    uint32_t pointer_bytes, column_bytes, base, count;
    size_t bytes, align; /* of the buffer's allocation */
    char *buffer;
    fl_csr_part parts[]; /* count + 1 */
} fl_csr;

/* Returns an integer of an array of integers of 4 or 8 bytes. */
static inline int64_t fl_csr_integer(const void *array, uint32_t bytes, uint64_t at)
{
    return bytes == 4 ? ((const int32_t *)array)[at] : ((const int64_t *)array)[at];
}

/* Entries in front of a row. */
static inline uint64_t fl_csr_before(const filch_csr_desc *desc, uint64_t row)
{
    return (uint64_t)fl_csr_integer(desc->pointers, desc->pointer_bytes, row) - desc->base;
}

/* Number of row blocks, for a desc with valid members; may exceed every table. */
uint64_t fl_csr_count(const filch_csr_desc *desc);
/* Fills row and entry of count + 1 parts. The pointers are valid. */
void fl_csr_cut(const filch_csr_desc *desc, fl_csr_part *parts, uint32_t count);

/* Frees the table and the buffer; null is allowed. */
void fl_csr_free(const fl_memory *memory, fl_csr *csr);

#endif
