/* SPDX-License-Identifier: Apache-2.0 */
/* Which calls filch gets. The test of a small call is one comparison; all else is behind it. */
#ifndef FILCH_BLAS_GATE_H
#define FILCH_BLAS_GATE_H

#include "kernels/blas/next.h"

/* Calls of fewer flops go to the next BLAS at once. At first 0, which brings the first call to
 * fl_gate_take(), where the settings are read. */
extern _Atomic double fl_gate_least;

static inline bool fl_gate_is_small(double flops)
{
    return flops < atomic_load_explicit(&fl_gate_least, memory_order_relaxed);
}

/* What a call that the next BLAS gets is to be noted with. */
typedef struct fl_blas_pass {
    bool is_timed;
    double begin_s;
} fl_blas_pass;

/* True: filch has computed the call, and call->info is LAPACK's. False: the operands are as they
 * were, and the call is the next BLAS's; then fl_gate_passed() follows. */
bool fl_gate_take(fl_blas_entry *entry, fl_blas_call *call, const void *caller, fl_blas_pass *pass);
void fl_gate_passed(const fl_blas_call *call, const fl_blas_pass *pass);

/* Seconds of a clock that only goes forward. */
double fl_gate_now_s(void);

/* Whether the calling thread's calls all go to the next BLAS. */
bool fl_gate_is_suspended(void);

/* Calls of a thread between the two go to the next BLAS: tasks of filch's own call it. Exported,
 * for programs that want that of a part of theirs (docs/blas.md). */
__attribute__((visibility("default"))) void filch_blas_suspend(void);
__attribute__((visibility("default"))) void filch_blas_resume(void);

#endif
