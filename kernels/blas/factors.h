/* SPDX-License-Identifier: Apache-2.0 */
/* LU and QR calls as jobs, by kernels/dense. */
#ifndef FILCH_BLAS_FACTORS_H
#define FILCH_BLAS_FACTORS_H

#include "filch/filch.h"

typedef struct fl_work fl_work;

/* getrf and gesv. Without a factor, what gesv's B becomes is for the caller to bring back. */
filch_status fl_factors_lu(fl_work *w);
filch_status fl_factors_getrs(fl_work *w);
/* geqrf. */
filch_status fl_factors_qr(fl_work *w);
filch_status fl_factors_ormqr(fl_work *w);
/* FILCH_INVALID_ARGUMENT: elements so small or large that LAPACK would scale them; the next BLAS is
 * to have the call. */
filch_status fl_factors_gels(fl_work *w);

#endif
