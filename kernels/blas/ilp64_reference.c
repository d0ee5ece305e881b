/* SPDX-License-Identifier: Apache-2.0 */
/* Names that tell 64-bit integers by the suffix of reference LAPACK 3.11's C interfaces and of
 * Intel's oneMKL; Fortran's of the former are those of ilp64_openblas.c. */
#include <stdint.h>

#define fl_int int64_t
#define FL_FORTRAN(name) name##_64
#define FL_CBLAS(name) cblas_##name##_64
#define FL_LAPACKE(name) LAPACKE_##name##_64
#define FL_LAPACKE_WORK(name) LAPACKE_##name##_work_64

#include "kernels/blas/entries.h"
