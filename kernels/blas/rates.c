/* SPDX-License-Identifier: Apache-2.0 */
/* The next BLAS takes flops / rate; a new time counts a quarter. filch takes factor * (latency +
 * bytes / link + flops / rate) with one factor for each routine and precision, from the times of
 * its calls but the first, in which libraries get ready. A factor that keeps calls away fades, so
 * that filch is tried again some time. Guesses before the first time: of a core, two units of eight
 * multiplications and additions in double precision at 2.5 GHz; of a GPU, what those of data
 * centres reach at least. */
#define _GNU_SOURCE
#include "kernels/blas/rates.h"

#include <sched.h>
#include <stdatomic.h>

#define CORE_FLOPS 40e9
#define GPU_FLOPS 5e12
#define LINK_BYTES 12e9
#define LATENCY_S 1e-3
/* Times as many flops in single precision. */
#define CORE_SINGLE 2
#define GPU_SINGLE 4
#define NEW 0.25
#define FADED 0.99

typedef struct rate {
    _Atomic double next;   /* flops a second; 0: not measured */
    _Atomic double factor; /* of filch's time; 0: not measured */
    atomic_bool is_warm;   /* filch has had a call */
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

static double guess_next(const fl_blas_call *call)
{
    cpu_set_t cores;
    int count = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    return CORE_FLOPS * count * (call->is_single ? CORE_SINGLE : 1);
}

static double guess_filch_s(const fl_blas_call *call)
{
    return LATENCY_S + fl_call_bytes(call) / LINK_BYTES +
           fl_call_flops(call) / (GPU_FLOPS * (call->is_single ? GPU_SINGLE : 1));
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
    if (atomic_exchange_explicit(&rate_of(call)->is_warm, true, memory_order_relaxed))
        blend(&rate_of(call)->factor, seconds / guess_filch_s(call));
}

void fl_rates_fade(const fl_blas_call *call)
{
    _Atomic double *factor = &rate_of(call)->factor;
    double is = atomic_load_explicit(factor, memory_order_relaxed);
    if (is > 1)
        atomic_store_explicit(factor, is * FADED, memory_order_relaxed);
}

void fl_rates_note_next(const fl_blas_call *call, double seconds)
{
    if (seconds > 0)
        blend(&rate_of(call)->next, fl_call_flops(call) / seconds);
}
