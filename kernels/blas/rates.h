/* SPDX-License-Identifier: Apache-2.0 */
/* What a call takes on either side: measured times where there are any, else guesses. */
#ifndef FILCH_BLAS_RATES_H
#define FILCH_BLAS_RATES_H

#include "kernels/blas/call.h"

/* Calls of as many flops are long enough to be timed. */
#define FL_RATES_TIMED 1e8

/* Seconds. Thread safety of all: any thread. */
double fl_rates_filch(const fl_blas_call *call);
double fl_rates_next(const fl_blas_call *call);
void fl_rates_note_filch(const fl_blas_call *call, double seconds);
/* The call goes to the next BLAS because filch is predicted to be slower. */
void fl_rates_fade(const fl_blas_call *call);
void fl_rates_note_next(const fl_blas_call *call, double seconds);

#endif
