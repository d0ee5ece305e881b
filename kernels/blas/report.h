/* SPDX-License-Identifier: Apache-2.0 */
/* Counts of calls by routine; FILCH_BLAS_REPORT=1 prints them when the process ends. */
#ifndef FILCH_BLAS_REPORT_H
#define FILCH_BLAS_REPORT_H

#include "kernels/blas/call.h"

/* Thread safety: any thread. */
void fl_report_taken(const fl_blas_call *call, double seconds);
void fl_report_passed(const fl_blas_call *call, double seconds);

/* A vector copy that was timed. */
void fl_report_copy(fl_blas_precision precision, bool is_shared, double seconds);

#endif
