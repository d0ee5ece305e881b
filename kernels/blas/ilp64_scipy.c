/* SPDX-License-Identifier: Apache-2.0 */
/* Names of the OpenBLAS in wheels of NumPy and SciPy (scipy_openblas64). */
#include <stdint.h>

#define fl_int int64_t
#define FL_FORTRAN(name) scipy_##name##_64_
#define FL_CBLAS(name) scipy_cblas_##name##64_
#define FL_LAPACKE(name) scipy_LAPACKE_##name##64_
#define FL_LAPACKE_WORK(name) scipy_LAPACKE_##name##_work64_

#include "kernels/blas/entries.h"
