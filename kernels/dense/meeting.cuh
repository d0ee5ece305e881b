/* SPDX-License-Identifier: Apache-2.0 */
/* Thread blocks of one launch that wait for each other; this text is put in front of the kernels
 * that factor panels, behind product.cuh and counters.cuh.
 *
 * Blocks that wait for each other must all run. So only those take part that have come when the
 * first closes the door: it waits for the rest of the grid for a while, but for no more than that.
 * Rows are dealt among those; who comes later leaves at once. Any number of blocks in any order
 * ends the work, beside other kernels, other panels, and on any slice of a GPU.
 *
 * What is published is a packet: a value, a row, and the step's number, in 16 bytes that are
 * written and read whole. Whoever reads the number has what belongs to it, without a fence or a
 * second word (NCCL's protocols LL and LL128). Packets are written by turns in two places. A block
 * writes a place anew two steps later, after it has read what all published a step later; and they
 * published that after they had read the place. Step numbers go on from launch to launch. */
#include "filch/kernel.h"

/* PTX ISA 8.4: accesses of 16 bytes as one. Without, there is no such kernel. */
#if defined(__CUDACC__) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ < 1204
#error "packets need CUDA 12.4 or newer"
#endif

constexpr int W = 32; /* columns of a strip, which are factored one after the other */
constexpr int GROUP = 128; /* columns of a launch; codelets.h has the number, too */
constexpr int WARPS = THREADS / 32;
/* Polls of the first block until it closes the door, of about half a microsecond each. */
constexpr unsigned PATIENCE = 2048;
constexpr unsigned CLOSED = 1u << 31, NONE = ~0u;
/* Step numbers begin anew before they overflow. */
constexpr unsigned STEPS_MOST = 1u << 30;

/* Words of the state, of which all but EPOCH are zero before and after a launch: blocks that have
 * come, and whether the door is closed; blocks that take part; that have left; steps of launches
 * before; arrivals where all meet. Then packets. */
enum { DOOR, PEOPLE, LEFT, EPOCH, GATE, WORDS = 64 };

/* The layout of codelets.h's fl_dense_args. */
struct panel_args {
    const void *host;
    unsigned long long row, order;
    int words[4];
};

static_assert(sizeof(panel_args) == 40, "the layout is that of fl_dense_args");

typedef unsigned long long word;

/* A value's bits, its row where that is not known, and the step's number. */
struct alignas(16) packet {
    word value;
    unsigned row, number;
};

/* Relaxed: a packet is all that it says. */
__device__ inline void packet_put(packet *at, word value, unsigned row, unsigned number)
{
#ifdef __CUDACC__
    word rest = (word)number << 32 | row;
    asm volatile("{ .reg .b128 all; mov.b128 all, {%1, %2}; st.relaxed.gpu.global.b128 [%0], all; }"
                 ::"l"(at), "l"(value), "l"(rest)
                 : "memory");
#else
    *at = {value, row, number};
#endif
}

__device__ inline packet packet_look(const packet *at)
{
#ifdef __CUDACC__
    word value, rest;
    asm volatile("{ .reg .b128 all; ld.relaxed.gpu.global.b128 all, [%2]; mov.b128 {%0, %1}, all; }"
                 : "=l"(value), "=l"(rest)
                 : "l"(at)
                 : "memory");
    return {value, (unsigned)rest, (unsigned)(rest >> 32)};
#else
    return *at;
#endif
}

/* Between looks at what another block writes. */
__device__ inline void look_again()
{
#ifndef __CUDACC__
    emulate::meet(emulate::at::look);
#endif
}

__device__ inline packet packet_take(const packet *at, unsigned number)
{
    packet got = packet_look(at);
    while (got.number != number) {
        look_again();
        got = packet_look(at);
    }
    return got;
}

#ifdef __CUDACC__
extern __shared__ double2 memory[];
#else
#define memory emulate::shared_memory()
#endif

/* A value's bits, and its place in the order of magnitudes, whose upper half is rarely the same: 0
 * for a NaN, which is never chosen but as the first row; then LAPACK's idamax stays there. */
template <typename T> struct number_of;

template <> struct number_of<double> {
    __device__ static word bits(double x)
    {
        return (word)__double_as_longlong(x);
    }

    __device__ static double from(word bits)
    {
        return __longlong_as_double((long long)bits);
    }

    __device__ static word magnitude(double x, bool is_first)
    {
        word size = bits(x) & ~((word)1 << 63);
        return size <= infinity ? size + 1 : is_first ? ~(word)0 : 0;
    }

    /* Where it is written: compilers would move a division to where its result is used. */
    __device__ static double reciprocal(double x)
    {
#ifdef __CUDACC__
        double y;
        asm volatile("rcp.rn.f64 %0, %1;" : "=d"(y) : "d"(x));
        return y;
#else
        return 1 / x;
#endif
    }

    static constexpr word infinity = (word)0x7ff << 52;
    static constexpr double safe = 0x1p-1022; /* LAPACK's: the reciprocal does not overflow */
};

template <> struct number_of<float> {
    __device__ static word bits(float x)
    {
        return __float_as_uint(x);
    }

    __device__ static float from(word bits)
    {
        return __uint_as_float((unsigned)bits);
    }

    __device__ static word magnitude(float x, bool is_first)
    {
        word size = bits(x) & 0x7fffffffu;
        return size <= infinity ? (size + 1) << 32 : is_first ? ~(word)0 : 0;
    }

    __device__ static float reciprocal(float x)
    {
#ifdef __CUDACC__
        float y;
        asm volatile("rcp.rn.f32 %0, %1;" : "=f"(y) : "f"(x));
        return y;
#else
        return 1 / x;
#endif
    }

    static constexpr word infinity = (word)0x7f8 << 20;
    static constexpr float safe = 0x1p-126f;
};

/* One launch's blocks, as each of them sees it. */
struct meeting {
    unsigned *state;
    packet *packets;
    unsigned epoch, me, people, gate;
    int each, first_row, rows; /* own: rows of a block; the first and the number of this one's */

    __device__ void open(unsigned *at)
    {
        state = at;
        packets = (packet *)(state + WORDS);
        epoch = state[EPOCH];
        gate = 0;
    }

    /* How many blocks take part; 0 for one that came late. `seen` is two words in shared memory. */
    __device__ void come(unsigned *seen)
    {
        if (threadIdx.x == 0) {
            me = atomicAdd(&state[DOOR], 1);
            if (me == 0) {
                for (unsigned k = 0; k < PATIENCE && counter_acquire(&state[DOOR]) < gridDim.x; k++)
                    look_again();
                counter_add_release(&state[PEOPLE], atomicOr(&state[DOOR], CLOSED));
            }
            people = 0;
            if (me < CLOSED)
                while ((people = counter_acquire(&state[PEOPLE])) == 0)
                    look_again();
            seen[0] = me;
            seen[1] = people;
        }
        __syncthreads();
        me = seen[0];
        people = seen[1];
        __syncthreads();
    }

    /* The last to leave readies the state, with `count` packets, for the next launch, after so many
     * steps. */
    __device__ void leave(unsigned *seen, int count, unsigned steps)
    {
        __syncthreads();
        if (!leaves_last(state, LEFT, seen))
            return;
        bool is_new = epoch > STEPS_MOST;
#pragma unroll 1
        for (int e = (int)threadIdx.x; is_new && e < count; e += THREADS)
            packets[e] = {0, 0, 0};
        if (threadIdx.x == 0) {
            state[DOOR] = state[PEOPLE] = state[LEFT] = state[GATE] = 0;
            state[EPOCH] = is_new ? 0 : epoch + steps;
        }
    }

    /* All that the block wrote is there for those that wait. */
    __device__ void arrive()
    {
        __syncthreads();
        gate++;
        if (threadIdx.x == 0)
            counter_add_release(&state[GATE], 1);
    }

    /* Until all have arrived as often as this block. */
    __device__ void wait()
    {
        if (threadIdx.x == 0)
            while (counter_acquire(&state[GATE]) < gate * people)
                look_again();
        __syncthreads();
    }

    /* Rows `from` to `end`, in multiples of a sector. */
    __device__ void deal(int from, int end)
    {
        int all = end - from;
        each = (all + (int)people - 1) / (int)people;
        each = (each + 7) / 8 * 8;
        first_row = from + ((int)me * each < all ? (int)me * each : all);
        rows = end - first_row < each ? end - first_row : each;
    }

    /* The first own row from `row` on. */
    __device__ int own_from(int row) const
    {
        return row > first_row ? row - first_row : 0;
    }

    __device__ bool is_own(int row) const
    {
        return row >= first_row && row < first_row + rows;
    }
};
