/* SPDX-License-Identifier: Apache-2.0 */
/* The next BLAS takes flops / rate; a new time counts a quarter. filch takes factor * (latency +
 * bytes / link + flops / rate) with one factor for each routine and precision, from the times of
 * its calls. Guesses before the first time: of a core, two units of eight multiplications and
 * additions in double precision at 2.5 GHz; of a GPU, what one of the slower ones reaches. */
#define _GNU_SOURCE
#include "kernels/blas/rates.h"

#include <sched.h>
#include <stdatomic.h>

#define CORE_FLOPS 40e9
#define GPU_FLOPS 2e12
#define LINK_BYTES 8e9
#define LATENCY_S 1e-3
#define SINGLE 2.0 /* times as many flops in single precision */
#define NEW 0.25

typedef struct rate {
    _Atomic double next;   /* flops a second; 0: not measured */
    _Atomic double factor; /* of filch's time; 0: not measured */
} rate;

static rate rates[FL_BLAS_ROUTINES][2];

static rate *rate_of(const fl_blas_call *call)
{
    return &rates[call->routine][call->is_single];
}

/* Two threads at once may lose one of their times. */
static void blend(_Atomic double *mean, double value)
{
    double old = atomic_load_explicit(mean, memory_order_relaxed);
    atomic_store_explicit(mean, old == 0 ? value : old + NEW * (value - old), memory_order_relaxed);
}

static double precision(const fl_blas_call *call)
{
    return call->is_single ? SINGLE : 1;
}

static double guess_next(const fl_blas_call *call)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return CORE_FLOPS * count * precision(call);
}

static double guess_filch_s(const fl_blas_call *call)
{
    return LATENCY_S + fl_call_bytes(call) / LINK_BYTES +
           fl_call_flops(call) / (GPU_FLOPS * precision(call));
}

double fl_rates_filch(const fl_blas_call *call)
{
    double factor = atomic_load_explicit(&rate_of(call)->factor, memory_order_relaxed);
    return (factor == 0 ? 1 : factor) * guess_filch_s(call);
}

double fl_rates_next(const fl_blas_call *call)
{
    double measured = atomic_load_explicit(&rate_of(call)->next, memory_order_relaxed);
    return fl_call_flops(call) / (measured == 0 ? guess_next(call) : measured);
}

void fl_rates_note_filch(const fl_blas_call *call, double seconds)
{
    blend(&rate_of(call)->factor, seconds / guess_filch_s(call));
}

void fl_rates_note_next(const fl_blas_call *call, double seconds)
{
    if (seconds > 0)
        blend(&rate_of(call)->next, fl_call_flops(call) / seconds);
}
