/* SPDX-License-Identifier: Apache-2.0 */
/* Counters in global memory, by which the thread blocks of one launch wait for each other. This
 * text is put in front of the kernels that use it, as product.cuh is. */
#include "filch/kernel.h"

/* Acquire: what the counter's writer, and the threads that it had met, wrote before is seen. */
__device__ inline unsigned counter_acquire(const unsigned *counter)
{
#ifdef __CUDACC__
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(counter) : "memory");
    return value;
#else
    return *counter;
#endif
}

/* Release: what this thread, and threads that it has met, wrote before is seen. */
__device__ inline void counter_release(unsigned *counter, unsigned value)
{
#ifdef __CUDACC__
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(counter), "r"(value) : "memory");
#else
    *counter = value;
#endif
}

/* The same, of a counter to which several blocks add. */
__device__ inline void counter_add_release(unsigned *counter, unsigned more)
{
#ifdef __CUDACC__
    asm volatile("red.release.gpu.global.add.u32 [%0], %1;" ::"l"(counter), "r"(more) : "memory");
#else
    *counter += more;
#endif
}

/* Whether this block, all of whose threads have met, is the last of the launch to call this; what
 * the others wrote before is seen then. state[left] counts the blocks, `seen` is a word in shared
 * memory. */
__device__ inline bool leaves_last(unsigned *const &state, int left, unsigned *seen)
{
    if (threadIdx.x == 0) {
        __threadfence();
        *seen = atomicAdd(&state[left], 1);
        __threadfence();
    }
    __syncthreads();
    return *seen == gridDim.x - 1;
}
