/* SPDX-License-Identifier: Apache-2.0 */
/* CUDA C on the host, as far as the kernels need it: blocks run one after the other, a block's
 * threads as coroutines that switch where they meet; or blocks run together, and switch where they
 * look for what another block writes, too. Tensor cores, asynchronous copies and clusters
 * are what __CUDA_ARCH__ asks for and are not there; a race between threads that do not meet is not
 * seen (compute-sanitizer's racecheck on a GPU sees it). */
#ifndef TESTS_KERNELS_EMULATE_H
#define TESTS_KERNELS_EMULATE_H

#include <cmath>
#include <csetjmp>
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
#define __forceinline__ inline

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
enum class at { start, run, warp, block, look, end };

struct thread {
    ucontext_t context; /* begins it */
    jmp_buf place;      /* where it goes on: jumps save no signal mask, and need no system call */
    std::vector<char> stack;
    dim3 index, block;
    at state;
};

static std::vector<thread> threads;
static thread *current;
static jmp_buf scheduler;
static const std::function<void()> *body;
static size_t block_threads;
static std::vector<std::vector<char>> shared; /* of blocks that run together */

static void enter()
{
    (*body)();
    current->state = at::end;
    _longjmp(scheduler, 1);
}

static inline void meet(at where)
{
    thread *self = current;
    self->state = where;
    if (_setjmp(self->place) == 0)
        _longjmp(scheduler, 1);
}

static void resume(thread &t)
{
    bool begins = t.state == at::start;
    t.state = at::run;
    current = &t;
    threadIdx = t.index;
    blockIdx = t.block;
    if (_setjmp(scheduler) != 0)
        return;
    if (begins)
        setcontext(&t.context);
    _longjmp(t.place, 1);
}

static inline void *shared_memory()
{
    return shared[size_t(current - threads.data()) / block_threads].data();
}

static inline unsigned shared_bytes()
{
    return unsigned(shared[0].size());
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

static void start(size_t first, size_t last)
{
    for (size_t k = first; k < last; k++) {
        thread &t = threads[k];
        getcontext(&t.context);
        t.context.uc_stack.ss_sp = t.stack.data();
        t.context.uc_stack.ss_size = t.stack.size();
        t.context.uc_link = nullptr;
        makecontext(&t.context, enter, 0);
        t.state = at::start;
    }
    run_some(first, last);
}

/* Lets threads that have met go on, until none has. */
static void run_met(size_t first, size_t end)
{
    for (bool moved = true; moved;) {
        moved = false;
        for (size_t k = first; k < end; k += 32) {
            size_t last = k + 32 < end ? k + 32 : end;
            while (all_wait(k, last, at::warp)) {
                run_some(k, last);
                moved = true;
            }
        }
        if (all_wait(first, end, at::block)) {
            run_some(first, end);
            moved = true;
        }
    }
}

/* Runs a block; false where its threads wait for each other at different places for ever. */
static bool run_block()
{
    for (thread &t : threads)
        t.block = blockIdx;
    start(0, threads.size());
    run_met(0, threads.size());
    return all_wait(0, threads.size(), at::end);
}

/* Lets threads look again that look for what another block writes; false: there are none. */
static inline bool run_looking(size_t first, size_t last)
{
    bool any = false;
    for (size_t k = first; k < last; k++)
        if (threads[k].state == at::look) {
            resume(threads[k]);
            any = true;
        }
    return any;
}

/* Launches: kernel is called once a thread. */
static inline void launch(dim3 grid, dim3 block, const std::function<void()> &kernel)
{
    gridDim = grid;
    blockDim = block;
    body = &kernel;
    threads.resize(size_t(block.x) * block.y * block.z);
    block_threads = threads.size();
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

/* Launches blocks that wait for each other. So many run together, by turns in an order that differs
 * from turn to turn; the others come after the first have ended, one by one. */
static inline void launch_together(unsigned blocks, unsigned each, size_t bytes, unsigned at_first,
                                   const std::function<void()> &kernel)
{
    gridDim = dim3{blocks};
    blockDim = dim3{each};
    body = &kernel;
    block_threads = each;
    shared.assign(blocks, std::vector<char>(bytes));
    threads.resize(size_t(blocks) * each);
    for (size_t k = 0; k < threads.size(); k++) {
        threads[k].stack.resize(64 << 10);
        threads[k].index = {unsigned(k % each)};
        threads[k].block = {unsigned(k / each)};
    }
    size_t begun = 0, ended = 0;
    unsigned draw = 1;
    for (std::vector<size_t> running; ended < blocks;) {
        while (begun < blocks && (begun < at_first || running.empty())) {
            start(begun * each, (begun + 1) * each);
            running.push_back(begun++);
        }
        bool moved = false;
        for (size_t left = running.size(); left > 0; left--) {
            draw = draw * 1103515245u + 12345u;
            std::swap(running[left - 1], running[(draw >> 16) % left]);
            size_t first = running[left - 1] * each, last = first + each;
            run_met(first, last);
            moved = run_looking(first, last) || moved;
            if (all_wait(first, last, at::end)) {
                running[left - 1] = running.back();
                running.pop_back();
                ended++;
                moved = true;
            }
        }
        if (!moved) {
            std::fprintf(stderr, "blocks that run together do not meet\n");
            std::abort();
        }
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

template <typename T> static T __shfl_xor_sync(unsigned mask, T value, int other)
{
    int lane = int(emulate::current->index.x % 32);
    return __shfl_sync(mask, value, lane ^ other);
}

/* Of all 32 threads of a warp. */
template <typename F> static unsigned reduce_warp(unsigned value, F choose)
{
    static std::vector<unsigned> lent;
    size_t self = size_t(emulate::current - emulate::threads.data());
    lent.resize(emulate::threads.size());
    lent[self] = value;
    __syncwarp();
    unsigned all = value;
    for (size_t k = 0; k < 32; k++)
        all = choose(all, lent[self / 32 * 32 + k]);
    __syncwarp();
    return all;
}

static inline unsigned __reduce_max_sync(unsigned, unsigned value)
{
    return reduce_warp(value, [](unsigned x, unsigned y) { return x > y ? x : y; });
}

static inline unsigned __reduce_min_sync(unsigned, unsigned value)
{
    return reduce_warp(value, [](unsigned x, unsigned y) { return x < y ? x : y; });
}

static inline unsigned __ballot_sync(unsigned, bool is_true)
{
    unsigned lane = emulate::current->index.x % 32;
    return reduce_warp(unsigned(is_true) << lane, [](unsigned x, unsigned y) { return x | y; });
}

static inline bool __any_sync(unsigned mask, bool is_true)
{
    return __ballot_sync(mask, is_true) != 0;
}

static inline int __ffs(int bits)
{
    return __builtin_ffs(bits);
}

/* The bits of one type as another. */
template <typename To, typename From> static To as_bits(From from)
{
    static_assert(sizeof(To) == sizeof from, "");
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

static inline long long __double_as_longlong(double x)
{
    return as_bits<long long>(x);
}

static inline double __longlong_as_double(long long x)
{
    return as_bits<double>(x);
}

static inline unsigned __float_as_uint(float x)
{
    return as_bits<unsigned>(x);
}

static inline float __uint_as_float(unsigned x)
{
    return as_bits<float>(x);
}

static inline unsigned atomicOr(unsigned *word, unsigned more)
{
    unsigned was = *word;
    *word |= more;
    return was;
}

static inline unsigned atomicAdd(unsigned *word, unsigned more)
{
    unsigned was = *word;
    *word += more;
    return was;
}

static inline unsigned long long atomicMax(unsigned long long *word, unsigned long long other)
{
    unsigned long long was = *word;
    *word = other > was ? other : was;
    return was;
}

static inline unsigned atomicCAS(unsigned *word, unsigned expected, unsigned desired)
{
    unsigned was = *word;
    if (was == expected)
        *word = desired;
    return was;
}

/* Reads and writes with a word on caches. */
template <typename T> static T __ldg(const T *at)
{
    return *at;
}

template <typename T> static T __ldcs(const T *at)
{
    return *at;
}

template <typename T> static T __ldcg(const T *at)
{
    return *at;
}

template <typename T> static void __stcs(T *at, T value)
{
    *at = value;
}

static inline void __threadfence()
{
}

#endif
