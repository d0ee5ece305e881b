/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C on the host, as far as the kernels need it: blocks run one after the other, a block's
 * threads as coroutines that switch where they meet. Tensor cores, asynchronous copies and clusters
 * are what __CUDA_ARCH__ asks for and are not there; a race between threads that do not meet is not
 * seen (compute-sanitizer's racecheck on a GPU sees it). */
#ifndef TESTS_KERNELS_EMULATE_H
#define TESTS_KERNELS_EMULATE_H

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <ucontext.h>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __align__(n) __attribute__((aligned(n)))
#define __launch_bounds__(n)
#define __noinline__

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};

static dim3 gridDim, blockDim, blockIdx, threadIdx;

static inline double rsqrt(double x)
{
    return 1 / std::sqrt(x);
}

static inline float rsqrtf(float x)
{
    return 1 / std::sqrt(x);
}

namespace emulate
{
enum class at { start, run, warp, block, end };

struct thread {
    ucontext_t context;
    std::vector<char> stack;
    dim3 index;
    at state;
};

static std::vector<thread> threads;
static thread *current;
static ucontext_t scheduler;
static const std::function<void()> *body;

static void enter()
{
    (*body)();
    current->state = at::end;
    swapcontext(&current->context, &scheduler);
}

static inline void meet(at where)
{
    thread *self = current;
    self->state = where;
    swapcontext(&self->context, &scheduler);
}

static void resume(thread &t)
{
    t.state = at::run;
    current = &t;
    threadIdx = t.index;
    swapcontext(&scheduler, &t.context);
}

/* Whether all that have not ended of threads first .. last wait there. */
static bool all_wait(size_t first, size_t last, at where)
{
    bool any = false;
    for (size_t k = first; k < last; k++) {
        if (threads[k].state != where && threads[k].state != at::end)
            return false;
        any = any || threads[k].state == where;
    }
    return any;
}

static void run_some(size_t first, size_t last)
{
    for (size_t k = first; k < last; k++)
        if (threads[k].state != at::end)
            resume(threads[k]);
}

/* Runs a block; false where its threads wait for each other at different places for ever. */
static bool run_block()
{
    for (thread &t : threads) {
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data();
        t.context.uc_stack.ss_size = t.stack.size();
        t.context.uc_link = nullptr;
        makecontext(&t.context, enter, 0);
        t.state = at::start;
    }
    run_some(0, threads.size());
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = 0; k < threads.size(); k += 32) {
            size_t last = k + 32 < threads.size() ? k + 32 : threads.size();
            while (all_wait(k, last, at::warp)) {
                run_some(k, last);
                moved = true;
            }
        }
        if (all_wait(0, threads.size(), at::block)) {
            run_some(0, threads.size());
            moved = true;
        }
    }
    return all_wait(0, threads.size(), at::end);
}

/* Launches: kernel is called once a thread. */
static void launch(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    gridDim = grid;
    blockDim = block;
    body = &kernel;
    threads.resize(size_t(block.x) * block.y * block.z);
    for (size_t k = 0; k < threads.size(); k++) {
        threads[k].stack.resize(64 << 10);
        threads[k].index = {unsigned(k % block.x), unsigned(k / block.x % block.y),
                            unsigned(k / block.x / block.y)};
    }
    for (blockIdx.z = 0; blockIdx.z < grid.z; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < grid.y; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < grid.x; blockIdx.x++)
                if (!run_block()) {
                    std::fprintf(stderr, "a block's threads do not meet\n");
                    std::abort();
                }
}
} // namespace emulate

static inline void __syncthreads()
{
    emulate::meet(emulate::at::block);
}

static inline void __syncwarp()
{
    emulate::meet(emulate::at::warp);
}

template <typename T> static T __shfl_sync(unsigned, T value, int lane)
{
    static std::vector<T> lent;
    size_t self = size_t(emulate::current - emulate::threads.data());
    lent.resize(emulate::threads.size());
    lent[self] = value;
    __syncwarp();
    T got = lent[self / 32 * 32 + size_t(lane)];
    __syncwarp();
    return got;
}

static inline unsigned atomicAdd(unsigned *word, unsigned more)
{
    unsigned was = *word;
    *word += more;
    return was;
}

static inline unsigned atomicCAS(unsigned *word, unsigned expected, unsigned desired)
{
    unsigned was = *word;
    if (was == expected)
        *word = desired;
    return was;
}

static inline void __threadfence()
{
}

#endif
