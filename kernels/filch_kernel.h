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
