/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS and LAPACK of the host, by their Fortran entries with 32-bit integers. The embedder fills
 * the table; its library must use one thread inside tasks. */
#ifndef FL_KERNELS_DENSE_HOST_H
#define FL_KERNELS_DENSE_HOST_H

#include <stddef.h>

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */

/* X(p, name, parameters); the lengths of character arguments come last. */
#define FL_DENSE_ROUTINES(X, p, real)                                                             \
    X(p, gemm,                                                                                    \
      (const char *op_a, const char *op_b, const int *m, const int *n, const int *k,              \
       const real *alpha, const real *a, const int *lda, const real *b, const int *ldb,           \
       const real *beta, real *c, const int *ldc, size_t, size_t))                                \
    X(p, trsm,                                                                                    \
      (const char *side, const char *fill, const char *op, const char *diagonal, const int *m,    \
       const int *n, const real *alpha, const real *a, const int *lda, real *b, const int *ldb,   \
       size_t, size_t, size_t, size_t))                                                           \
    X(p, trmm,                                                                                    \
      (const char *side, const char *fill, const char *op, const char *diagonal, const int *m,    \
       const int *n, const real *alpha, const real *a, const int *lda, real *b, const int *ldb,   \
       size_t, size_t, size_t, size_t))                                                           \
    X(p, syrk,                                                                                    \
      (const char *fill, const char *op, const int *n, const int *k, const real *alpha,           \
       const real *a, const int *lda, const real *beta, real *c, const int *ldc, size_t, size_t)) \
    X(p, symm,                                                                                    \
      (const char *side, const char *fill, const int *m, const int *n, const real *alpha,         \
       const real *a, const int *lda, const real *b, const int *ldb, const real *beta, real *c,   \
       const int *ldc, size_t, size_t))                                                           \
    X(p, potrf, (const char *fill, const int *n, real *a, const int *lda, int *info, size_t))     \
    X(p, getrf, (const int *m, const int *n, real *a, const int *lda, int *pivots, int *info))    \
    X(p, laswp,                                                                                   \
      (const int *n, real *a, const int *lda, const int *first, const int *last,                  \
       const int *pivots, const int *step))                                                       \
    X(p, geqrf,                                                                                   \
      (const int *m, const int *n, real *a, const int *lda, real *tau, real *work,                \
       const int *elements, int *info))

#define FL_DENSE_MEMBER(p, name, parameters) void(*name) parameters;

typedef struct fl_dense_host_d {
    FL_DENSE_ROUTINES(FL_DENSE_MEMBER, d, double)
} fl_dense_host_d;

typedef struct fl_dense_host_s {
    FL_DENSE_ROUTINES(FL_DENSE_MEMBER, s, float)
} fl_dense_host_s;

typedef struct fl_dense_host {
    fl_dense_host_d d;
    fl_dense_host_s s;
} fl_dense_host;

/* For embedders that link the routines: FL_DENSE_DECLARE at file scope, FL_DENSE_LINKED as the
 * initializer of a fl_dense_host. */
#define FL_DENSE_PROTOTYPE(p, name, parameters) void p##name##_ parameters;
#define FL_DENSE_ENTRY(p, name, parameters) .name = p##name##_,
#define FL_DENSE_DECLARE                             \
    FL_DENSE_ROUTINES(FL_DENSE_PROTOTYPE, d, double) \
    FL_DENSE_ROUTINES(FL_DENSE_PROTOTYPE, s, float)
#define FL_DENSE_LINKED                                    \
    {                                                      \
        {FL_DENSE_ROUTINES(FL_DENSE_ENTRY, d, double)},    \
            {FL_DENSE_ROUTINES(FL_DENSE_ENTRY, s, float)}, \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

#endif
