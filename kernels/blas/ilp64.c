/* SPDX-License-Identifier: Apache-2.0 */
/* The usual names, of 64-bit integers: Debian's libblas64 and libopenblas64, Intel's ILP64. */
#include <stdint.h>

#define fl_int int64_t
#define FL_FORTRAN(name) name##_
#define FL_CBLAS(name) cblas_##name
#define FL_LAPACKE(name) LAPACKE_##name
#define FL_LAPACKE_WORK(name) LAPACKE_##name##_work

#include "kernels/blas/entries.h"
#include "kernels/blas/loader.h"

const size_t fl_loader_integer_bytes = sizeof(int64_t);
