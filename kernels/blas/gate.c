/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/gate.h"

#include "kernels/blas/loader.h"
#include "kernels/blas/rates.h"
#include "kernels/blas/report.h"
#include "kernels/blas/settings.h"

#include <math.h>
#include <string.h>
#include <time.h>

_Atomic double fl_gate_least;

/* Not 0: this thread computes for filch. */
static _Thread_local int depth;

/* Seconds that filch would have saved so far had it been started; guarded by no lock, as two
 * threads at once lose one of their parts at most. */
static _Atomic double missed_s;

double fl_gate_now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

bool fl_gate_is_suspended(void)
{
    return depth > 0;
}

void filch_blas_suspend(void)
{
    depth++;
}

void filch_blas_resume(void)
{
    depth--;
}

/* With a report every call is counted: none is small. Without one, those above which times are
 * taken are looked at, too. */
static void set_least(double least)
{
    const fl_blas_settings *settings = fl_settings();
    double timed = settings->is_fixed ? least : fmin(least, FL_RATES_TIMED);
    atomic_store_explicit(&fl_gate_least, settings->reports ? 0 : timed, memory_order_relaxed);
}

/* Starting filch is a price paid once. It is paid when the calls so far would have saved as much:
 * the whole then takes at most twice as long as with the best choice (ski rental; A. Karlin et al.,
 * "Competitive snoopy caching", Algorithmica 3, 1988). */
static bool is_worth(const fl_blas_call *call)
{
    const fl_blas_settings *settings = fl_settings();
    double gain = fl_rates_next(call) - fl_rates_filch(call);
    if (settings->is_fixed || (gain > 0 && fl_loader_is_started()))
        return true;
    if (gain <= 0) {
        fl_rates_fade(call);
        return false;
    }
    double missed = atomic_load_explicit(&missed_s, memory_order_relaxed) + gain;
    atomic_store_explicit(&missed_s, missed, memory_order_relaxed);
    return missed >= settings->start_s;
}

/* LAPACKE looks for not-a-numbers first, unless told not to, and refuses them. */
static bool is_refused(const fl_blas_entry *entry, const fl_blas_call *call, const void *caller)
{
    int (*wants)(void) = NULL;
    void *found = entry->nancheck ? fl_next_symbol(entry->nancheck, caller) : NULL;
    memcpy(&wants, &found, sizeof wants);
    return entry->nancheck && (!wants || wants() != 0) && fl_call_has_nan(call);
}

static fl_blas_outcome try(fl_blas_entry *entry, fl_blas_call *call, const void *caller)
{
    if (fl_loader_is_over() || fl_call_flops(call) < fl_settings()->least_flops ||
        !is_worth(call) || is_refused(entry, call, caller))
        return FL_BLAS_LEFT;
    return fl_loader_run(call, caller);
}

bool fl_gate_take(fl_blas_entry *entry, fl_blas_call *call, const void *caller, fl_blas_pass *pass)
{
    fl_blas_call settled = *call;
    double begin = fl_gate_now_s();
    bool is_own = !fl_gate_is_suspended() && fl_call_settle(&settled);
    if (atomic_load_explicit(&fl_gate_least, memory_order_relaxed) == 0)
        set_least(fl_settings()->least_flops);
    fl_blas_outcome outcome = is_own ? try(entry, &settled, caller) : FL_BLAS_LEFT;
    if (fl_loader_is_over())
        set_least(INFINITY);
    if (outcome == FL_BLAS_DONE) {
        double seconds = fl_gate_now_s() - begin;
        fl_report_taken(call, seconds);
        fl_rates_note_filch(&settled, seconds);
        call->info = settled.info;
        return true;
    }
    *pass = (fl_blas_pass){.is_timed = is_own, .begin_s = fl_gate_now_s()};
    return false;
}

void fl_gate_passed(const fl_blas_call *call, const fl_blas_pass *pass)
{
    double seconds = fl_gate_now_s() - pass->begin_s;
    if (fl_gate_is_suspended())
        return;
    fl_report_passed(call, seconds);
    if (pass->is_timed && fl_call_flops(call) >= FL_RATES_TIMED)
        fl_rates_note_next(call, seconds);
}
