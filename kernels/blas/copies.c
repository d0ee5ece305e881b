/* SPDX-License-Identifier: Apache-2.0 */
/* Seconds an element, of the next BLAS and of shared copies, by which side has the larger step and
 * by length. The faster way makes the next copy, and the other one every so many copies. */
#define _GNU_SOURCE
#include "kernels/blas/copies.h"

#include "kernels/blas/gate.h"
#include "kernels/blas/helpers.h"
#include "kernels/blas/report.h"
#include "kernels/blas/settings.h"

#include <stdatomic.h>

#define NEW 0.25
/* The slower way is measured again once in as many copies. */
#define AGAIN 512
/* Elements that a thread takes at a time: some microseconds of work. */
#define CHUNK 256
/* Lengths of 2^11 to 2^26 and more. */
#define LENGTHS 16

typedef struct sides {
    _Atomic double next, shared; /* seconds an element; 0: not measured */
    atomic_uint copies;
} sides;

static sides measured[2][LENGTHS];
/* The first shared copy makes the threads, and is not counted. */
static atomic_bool is_warm;

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

static sides *sides_of(const fl_blas_copy *copy)
{
    int length = 0;
    while (length < LENGTHS - 1 && copy->n >> (length + 1) >= FL_COPIES_LEAST)
        length++;
    return &measured[magnitude(copy->incx) < magnitude(copy->incy)][length];
}

/* A thread that lost its core makes one copy a hundred times as long: a time counts as twice the
 * mean at most. Two threads at once may lose one of their times. */
static void blend(_Atomic double *mean, double value)
{
    double old = atomic_load_explicit(mean, memory_order_relaxed);
    if (old > 0 && value > 2 * old)
        value = 2 * old;
    atomic_store_explicit(mean, old == 0 ? value : old + NEW * (value - old), memory_order_relaxed);
}

static bool is_to_share(sides *of)
{
    double next = atomic_load_explicit(&of->next, memory_order_relaxed);
    double shared = atomic_load_explicit(&of->shared, memory_order_relaxed);
    if (fl_settings()->is_fixed && fl_settings()->least_flops == 0)
        return true;
    if (next == 0 || shared == 0)
        return next > 0;
    unsigned copies = atomic_fetch_add_explicit(&of->copies, 1, memory_order_relaxed);
    return (shared < next) != (copies % AGAIN == AGAIN - 1);
}

/* Elements [first, last). */
static void copy_part(const void *user, int64_t first, int64_t last)
{
    const fl_blas_copy *copy = user;
    int64_t incx = copy->incx, incy = copy->incy;
    int64_t x_at = incx < 0 ? (1 - copy->n) * incx : 0, y_at = incy < 0 ? (1 - copy->n) * incy : 0;
#define COPY(p, type, NAME)                           \
    case FL_BLAS_VECTOR_##NAME: {                     \
        const type *x = (const type *)copy->x + x_at; \
        type *y = (type *)copy->y + y_at;             \
        for (int64_t i = first; i < last; i++)        \
            y[i * incy] = x[i * incx];                \
        return;                                       \
    }
    switch (copy->kind) {
        FL_BLAS_VECTORS(COPY)
    default:
        return;
    }
#undef COPY
}

void fl_copies_make(const fl_blas_copy *copy)
{
    copy_part(copy, 0, copy->n);
}

bool fl_copies_take(const fl_blas_copy *copy, fl_copies_pass *pass)
{
    sides *of = sides_of(copy);
    double begin = fl_gate_now_s();
    *pass = (fl_copies_pass){.is_timed = !fl_gate_is_suspended()};
    if (pass->is_timed && is_to_share(of) && fl_helpers_share(copy_part, copy, copy->n, CHUNK)) {
        double seconds = fl_gate_now_s() - begin;
        fl_report_copy(copy->kind, true, seconds);
        if (atomic_exchange_explicit(&is_warm, true, memory_order_relaxed))
            blend(&of->shared, seconds / (double)copy->n);
        return true;
    }
    pass->begin_s = fl_gate_now_s();
    return false;
}

void fl_copies_passed(const fl_blas_copy *copy, const fl_copies_pass *pass)
{
    double seconds = fl_gate_now_s() - pass->begin_s;
    if (!pass->is_timed)
        return;
    fl_report_copy(copy->kind, false, seconds);
    blend(&sides_of(copy)->next, seconds / (double)copy->n);
}
