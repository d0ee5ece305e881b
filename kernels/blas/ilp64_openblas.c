/* SPDX-License-Identifier: Apache-2.0 */
/* Names that tell 64-bit integers by OpenBLAS's suffix (SYMBOLSUFFIX=64_; Julia, Fedora). */
#include <stdint.h>

#define fl_int int64_t
#define FL_FORTRAN(name) name##_64_
#define FL_CBLAS(name) cblas_##name##64_
#define FL_LAPACKE(name) LAPACKE_##name##64_
#define FL_LAPACKE_WORK(name) LAPACKE_##name##_work64_

#include "kernels/blas/entries.h"
