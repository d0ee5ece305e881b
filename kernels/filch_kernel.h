/* SPDX-License-Identifier: Apache-2.0 */
/* What CUDA C sources get from `#include "filch/kernel.h"`: the types of a kernel's parameters, as
 * filch passes them. It is part of the library, which hands it to the compiler; there is no such
 * file to install. It needs no other header. */
#ifndef FILCH_KERNEL_H
#define FILCH_KERNEL_H

/* The layout of filch/codelet.h's filch_view. `ptr` is in the memory of the device. */
typedef struct filch_view {
    void *ptr;
    unsigned long long rows;
    unsigned long long cols;
    unsigned long long ld;
    unsigned long long row;
    unsigned long long col;
    unsigned long long element;
} filch_view;

/* The items [lo, hi) of a batch's chunk. */
typedef struct filch_range {
    unsigned long long lo;
    unsigned long long hi;
} filch_range;

static_assert(sizeof(filch_view) == 56 && sizeof(filch_range) == 16, "the layout is filch's");

/* Element (row, col) of the view, counted from its own first. */
template <typename T>
__device__ inline T &filch_at(const filch_view &view, unsigned long long row,
                              unsigned long long col = 0)
{
    return static_cast<T *>(view.ptr)[col * view.ld + row];
}

/* A row block of a sparse matrix (filch/csr.h): values of type V, columns of type C, pointers of
 * type P. Row i has the entries pointers[i] to pointers[i + 1], less the base of the matrix. */
template <typename V, typename C = int, typename P = int> struct filch_csr {
    unsigned long long rows;
    unsigned long long cols;
    unsigned long long nnz;
    unsigned long long row;   /* first row of the block within the matrix */
    unsigned long long entry; /* entries of the matrix before the block */
    const P *pointers;
    const C *columns;
    V *values;
};

/* What a row block begins with; arrays by their bytes from here. */
typedef struct filch_csr_head {
    unsigned long long magic, rows, cols, nnz, row, entry, column_lo, column_hi, element;
    unsigned int pointer_bytes, column_bytes, base, block_lo, block_hi, reserved;
    unsigned long long pointers, columns, values, bytes;
} filch_csr_head;

static_assert(sizeof(filch_csr_head) == 128, "the layout is filch's");

/* Row block behind the view of an access to a sparse matrix. */
template <typename V, typename C = int, typename P = int>
__device__ inline filch_csr<V, C, P> filch_csr_of(const filch_view &view)
{
    char *at = static_cast<char *>(view.ptr);
    const filch_csr_head *head = static_cast<const filch_csr_head *>(view.ptr);
    return {head->rows,
            head->cols,
            head->nnz,
            head->row,
            head->entry,
            reinterpret_cast<const P *>(at + head->pointers),
            reinterpret_cast<const C *>(at + head->columns),
            reinterpret_cast<V *>(at + head->values)};
}

/* This thread among all of the launch, along x, and their number: where a loop over any number of
 * elements starts, and its step. */
__device__ inline unsigned long long filch_thread()
{
    return (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
}

__device__ inline unsigned long long filch_threads()
{
    return (unsigned long long)gridDim.x * blockDim.x;
}

/* Returns when every kernel in front of this one has ended, and what they wrote can be read. Only a
 * kernel whose descriptor says that it waits (filch/cuda.h) starts earlier. */
__device__ inline void filch_wait()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

#endif
