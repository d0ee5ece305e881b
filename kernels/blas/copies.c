/* SPDX-License-Identifier: Apache-2.0 */
/* Mean seconds an element of both ways, by length and by whether the larger step is read or
 * written. The faster way makes a copy; one in so many goes the other way. */
#define _GNU_SOURCE
#include "kernels/blas/copies.h"

#include "kernels/blas/gate.h"
#include "kernels/blas/helpers.h"
#include "kernels/blas/report.h"
#include "kernels/blas/settings.h"

#include <stdatomic.h>

/* A new time has a weight of 1/WEIGHT in the mean, so that one long copy does not turn the choice;
 * of the slower way, which has few new times, one of 1/RETRY_WEIGHT. */
#define WEIGHT 128
#define RETRY_WEIGHT 8
/* The mean begins as the least of the first times, which include first touches of pages and the
 * making of threads. */
#define FIRST 4
/* The slower way is measured again once in as many copies. */
#define RETRY 512
/* Elements that a thread takes at a time: some microseconds of work. */
#define CHUNK 256
/* Lengths of 2^11 to 2^26 and more. */
#define LENGTHS 16

typedef struct way {
    _Atomic double mean; /* seconds an element */
    atomic_uint times;   /* up to FIRST */
} way;

typedef struct ways {
    way next, shared;
    atomic_uint copies;
} ways;

static ways measured[2][LENGTHS];

static int64_t magnitude(int64_t x)
{
    return x < 0 ? -x : x;
}

static size_t element_of(const fl_blas_copy *copy)
{
#define SIZE(p, type, NAME) sizeof(type),
    static const size_t sizes[] = {FL_BLAS_PRECISIONS(SIZE)};
#undef SIZE
    return sizes[copy->precision];
}

static ways *ways_of(const fl_blas_copy *copy)
{
    int length = 0;
    while (length < LENGTHS - 1 && copy->n >> (length + 1) >= FL_COPIES_LEAST)
        length++;
    return &measured[magnitude(copy->incx) < magnitude(copy->incy)][length];
}

/* Relaxed throughout: statistics, which order nothing. Two threads at once may lose one of their
 * times. */
static void note(way *of, const way *other, double value)
{
    double old = atomic_load_explicit(&of->mean, memory_order_relaxed);
    unsigned times = atomic_load_explicit(&of->times, memory_order_relaxed);
    bool is_slower = old > atomic_load_explicit(&other->mean, memory_order_relaxed);
    double mean = old + (value - old) / (is_slower ? RETRY_WEIGHT : WEIGHT);
    if (times < FIRST) {
        mean = times == 0 || value < old ? value : old;
        atomic_store_explicit(&of->times, times + 1, memory_order_relaxed);
    }
    atomic_store_explicit(&of->mean, mean, memory_order_relaxed);
}

static bool is_known(way *of)
{
    return atomic_load_explicit(&of->times, memory_order_relaxed) >= FIRST;
}

static bool is_to_share(ways *of)
{
    if (fl_settings()->least_flops == 0) /* the user wants every call to go to filch */
        return true;
    if (!is_known(&of->next) || !is_known(&of->shared))
        return is_known(&of->next);
    double next = atomic_load_explicit(&of->next.mean, memory_order_relaxed);
    double shared = atomic_load_explicit(&of->shared.mean, memory_order_relaxed);
    unsigned copies = atomic_fetch_add_explicit(&of->copies, 1, memory_order_relaxed);
    return (shared < next) != (copies % RETRY == RETRY - 1);
}

/* Bytes [begin, end) that a vector lies in. */
static void find_range(const void *at, int64_t n, int64_t inc, size_t element, uintptr_t range[2])
{
    range[0] = (uintptr_t)at;
    range[1] = range[0] + (size_t)((n - 1) * magnitude(inc) + 1) * element;
}

/* Whether an element of y may be one of x: the order of the copies then counts. Rows of one matrix
 * lie between each other, and have no element in common. */
static bool may_meet(const fl_blas_copy *copy)
{
    size_t element = element_of(copy), step = (size_t)magnitude(copy->incx) * element;
    uintptr_t x[2], y[2];
    find_range(copy->x, copy->n, copy->incx, element, x);
    find_range(copy->y, copy->n, copy->incy, element, y);
    if (x[1] <= y[0] || y[1] <= x[0])
        return false;
    size_t offset = (x[0] < y[0] ? y[0] - x[0] : x[0] - y[0]) % step;
    return magnitude(copy->incx) != magnitude(copy->incy) || offset < element ||
           offset > step - element;
}

/* Elements [first, last). */
static void copy_part(const void *user, int64_t first, int64_t last)
{
    const fl_blas_copy *copy = user;
    int64_t incx = copy->incx, incy = copy->incy;
    int64_t x_at = incx < 0 ? (1 - copy->n) * incx : 0, y_at = incy < 0 ? (1 - copy->n) * incy : 0;
/* NOLINTBEGIN(bugprone-macro-parentheses): a type takes none */
#define COPY(p, type, NAME)                           \
    case FL_BLAS_PRECISION_##NAME: {                  \
        const type *x = (const type *)copy->x + x_at; \
        type *y = (type *)copy->y + y_at;             \
        for (int64_t i = first; i < last; i++)        \
            y[i * incy] = x[i * incx];                \
        return;                                       \
    }
    /* NOLINTEND(bugprone-macro-parentheses) */
    switch (copy->precision) {
        FL_BLAS_PRECISIONS(COPY)
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
    ways *of = ways_of(copy);
    double begin = fl_gate_now_s();
    *pass = (fl_copies_pass){.is_timed = !fl_gate_is_suspended() && !may_meet(copy)};
    if (!pass->is_timed)
        return false;
    if (is_to_share(of) && fl_helpers_share(copy_part, copy, copy->n, CHUNK)) {
        double seconds = fl_gate_now_s() - begin;
        fl_report_copy(copy->precision, true, seconds);
        note(&of->shared, &of->next, seconds / (double)copy->n);
        return true;
    }
    filch_blas_suspend();
    pass->begin_s = fl_gate_now_s();
    return false;
}

void fl_copies_passed(const fl_blas_copy *copy, const fl_copies_pass *pass)
{
    if (!pass->is_timed)
        return;
    double seconds = fl_gate_now_s() - pass->begin_s;
    filch_blas_resume();
    fl_report_copy(copy->precision, false, seconds);
    ways *of = ways_of(copy);
    note(&of->next, &of->shared, seconds / (double)copy->n);
}
