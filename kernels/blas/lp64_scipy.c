/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the OpenBLAS in wheels of NumPy and SciPy (scipy_openblas32). */
#include <stdint.h>

#define fl_int int32_t
#define FL_FORTRAN(name) scipy_##name##_
#define FL_CBLAS(name) scipy_cblas_##name
#define FL_LAPACKE(name) scipy_LAPACKE_##name
#define FL_LAPACKE_WORK(name) scipy_LAPACKE_##name##_work

#include "kernels/blas/entries.h"
