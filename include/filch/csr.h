/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file csr.h
 * Sparse matrices in compressed rows (CSR) as data handles. A matrix is one handle of one column of
 * tiles; tile (i, 0) is row block i, with pointers, columns and values together. A task names a row
 * block by one access, FILCH_R(matrix, i, 0) or FILCH_RW(matrix, i, 0), and gets one view.
 *
 * A row block is a CSR matrix of its own: its pointers begin with the base, so a kernel needs no
 * offset. Columns keep the numbers of the whole matrix. filch_csr_view() finds the arrays of a
 * block on the host; kernels use `filch_csr_of<double>(view)` of `filch/kernel.h`.
 *
 * Tasks read blocks, change values (FILCH_READWRITE), or change values in any order
 * (FILCH_COMMUTE); nothing may change pointers or columns. Guide: docs/concepts.md, "Sparse
 * matrices".
 */
#ifndef FILCH_CSR_H
#define FILCH_CSR_H

#include "filch/codelet.h"
#include "filch/data.h"

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Description of a sparse matrix; see ::FILCH_CSR_DESC_INIT.
 *
 * At most one of tile_rows, row_cuts and blocks is given; with none the matrix is one block. A
 * matrix without rows has one block without rows. Every other block has a row at least.
 */
typedef struct filch_csr_desc {
    size_t size;              /**< sizeof(filch_csr_desc). */
    uint64_t rows;            /**< Rows, below 2^60. */
    uint64_t cols;            /**< Columns, below 2^60. */
    uint64_t nnz;             /**< Stored entries, below 2^60. */
    const void *pointers;     /**< rows + 1 integers: row i has the entries pointers[i] to
                                   pointers[i + 1]. The first is base, none is less than the one
                                   before, the last is base + nnz. */
    const void *columns;      /**< nnz integers, base to base + cols - 1, in any order within a
                                   row; may be null where nnz is 0. */
    const void *values;       /**< nnz values; null: zeros, for tasks to fill. */
    uint64_t element;         /**< Bytes a value; 0: the matrix is a pattern, and values is null. */
    uint32_t pointer_bytes;   /**< Bytes an integer of pointers: 4 or 8. Integers are signed, or
                                   unsigned and below 2^31 or 2^63. */
    uint32_t column_bytes;    /**< Bytes an integer of columns: 4 or 8. */
    uint32_t base;            /**< What pointers and columns count from: 0 or 1. */
    uint32_t flags;           /**< FILCH_DATA_PIN, or 0. */
    uint64_t tile_rows;       /**< Rows a block, at most rows; the last block may have fewer. */
    const uint64_t *row_cuts; /**< Rows of each block, from top to bottom: at least 1 each, and the
                                   sum is rows. Copied. */
    uint32_t row_cut_count;   /**< Elements of row_cuts; 0 where row_cuts is null. */
    uint32_t blocks;          /**< Number of blocks with about equal numbers of entries: no block
                                   has more than nnz / blocks (rounded up) and the longest row
                                   together. With more blocks than rows, rows blocks. */
    const char *label;        /**< Appears in errors; copied, cut at 63 bytes; may be null. */
} filch_csr_desc;

/** Initializer of a ::filch_csr_desc: integers of 4 bytes, counted from 0. */
#define FILCH_CSR_DESC_INIT                                                                   \
    {                                                                                         \
        sizeof(filch_csr_desc), 0, 0, 0, NULL, NULL, NULL, 0, 4, 4, 0, 0, 0, NULL, 0, 0, NULL \
    }

/** A row block; see filch_csr_at() and filch_csr_view(). */
typedef struct filch_csr_block {
    size_t size;            /**< sizeof(filch_csr_block). */
    uint64_t rows;          /**< Rows of the block. */
    uint64_t cols;          /**< Columns of the matrix. */
    uint64_t nnz;           /**< Entries of the block. */
    uint64_t row;           /**< First row of the block within the matrix, from 0. */
    uint64_t entry;         /**< Entries of the matrix before the block. */
    uint64_t column_lo;     /**< First column with an entry in the block, from 0. */
    uint64_t column_hi;     /**< One past the last column with an entry in the block, from 0; equal
                                 to column_lo where the block has no entries. */
    uint64_t element;       /**< Bytes a value; 0: there are no values. */
    uint32_t pointer_bytes; /**< Bytes an integer of pointers: 4 or 8. */
    uint32_t column_bytes;  /**< Bytes an integer of columns: 4 or 8. */
    uint32_t base;          /**< What pointers and columns count from: 0 or 1. */
    uint32_t block_lo;      /**< First row block with a row from column_lo to column_hi - 1: where a
                                 vector is cut as the rows, tiles block_lo to block_hi - 1 have all
                                 elements that a product with the block needs. */
    uint32_t block_hi;      /**< One past the last such row block; block_lo where there is none. */
    uint32_t reserved;      /**< 0. */
    const void *pointers;   /**< rows + 1 integers, from base to base + nnz. */
    const void *columns;    /**< nnz integers, base to base + cols - 1. */
    void *values;           /**< nnz values; null: the matrix is a pattern. To be changed only where
                                 the access writes. */
} filch_csr_block;

/** Initializer of a ::filch_csr_block, for functions that fill it. */
#define FILCH_CSR_BLOCK_INIT                                                                \
    {                                                                                       \
        sizeof(filch_csr_block), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL \
    }

/**
 * Makes a handle of a sparse matrix. The arrays are checked and copied, block by block: they may be
 * freed or changed after the call, and the matrix needs as much memory again.
 *
 * The handle is managed (FILCH_DATA_MANAGED): blocks stay on a GPU from job to job. The host reads
 * or changes values between filch_data_acquire() or filch_data_acquire_tiles() and their release,
 * by filch_data_view() for tile (i, 0) and filch_csr_view(); acquiring with FILCH_WRITE overwrites
 * values alone. Calls on handles take the matrix as they take other handles, but for these:
 * batches, filch_data_partition() and filch_data_reduction() refuse it with FILCH_UNSUPPORTED, and
 * filch_graph_add() refuses with FILCH_INVALID_ARGUMENT an access that writes without reading,
 * reduces, or names several blocks.
 *
 * @param runtime the runtime.
 * @param desc    description; copied.
 * @param matrix  receives the handle, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a size not set, integers of other than 4 or 8
 *         bytes, another base, unknown flags, values without element, more than one way of cutting,
 *         tile_rows over rows, cuts with a wrong sum; pointers that do not begin with base, fall,
 *         or do not end with base + nnz; a column outside the matrix: the error names row and
 *         index); FILCH_OVERFLOW (a number too large, the bytes, or the block count, which must be
 *         below 2^32 - 1); for FILCH_DATA_PIN as filch_data_create(); FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED. On failure there is no handle.
 *
 * Thread safety: any thread; nobody changes the arrays during the call. Blocking: reads and copies
 * the matrix. Since 0.1.
 */
FILCH_API filch_status filch_csr_create(filch_runtime *runtime, const filch_csr_desc *desc,
                                        filch_data **matrix);

/**
 * Describes a row block. The arrays of @p block are null: a block may be anywhere.
 *
 * @param matrix a handle made by filch_csr_create(); filch_data_tiles() counts its blocks.
 * @param at     number of the block, from 0.
 * @param block  receives the description; its size must be set.
 * @return FILCH_OK; FILCH_BAD_INDEX (no such block); FILCH_INVALID_ARGUMENT (not a sparse matrix,
 *         null @p block, or a size too small); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free on success. Since 0.1.
 */
FILCH_API filch_status filch_csr_at(const filch_data *matrix, uint32_t at, filch_csr_block *block);

/**
 * Finds the arrays of a row block by the view that a function got.
 *
 * With a null @p matrix the call reads the description at the start of the block, and the block
 * must be in the host's memory: in host functions, and for filch_data_view(). Functions that may
 * not touch the block (enqueue, shape, work and cost functions) name the matrix; the arrays are
 * then where the view is, for an enqueue function on the GPU, and null where the view's pointer is.
 * They may make this call, unlike others of filch.
 *
 * @param matrix the handle, which must live; or null.
 * @param view   the view of an access to one row block.
 * @param block  receives the block; its size must be set. The arrays are valid as long as the view.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p view or @p block, a size too small, not a
 *         sparse matrix, not a view of a block of @p matrix); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *         Only a named matrix leaves a text for filch_runtime_error().
 *
 * Thread safety: any thread; wait-free on success. Since 0.1.
 */
FILCH_API filch_status filch_csr_view(const filch_data *matrix, const filch_view *view,
                                      filch_csr_block *block);

#ifdef __cplusplus
}
#endif

#endif
