/* SPDX-License-Identifier: Apache-2.0 */
/* The table of routines: names, parameters in the order of the Fortran interface, and flops.
 *
 * Kinds of parameters: O option letter, I integer, N number, R matrix read, W matrix written, P
 * pivots written, Q pivots read. entries.h makes every form of a routine from its row. */
#ifndef FILCH_BLAS_ROUTINES_H
#define FILCH_BLAS_ROUTINES_H

/* X(precision letter, type, name, NAME) */
#define FL_BLAS_PRODUCTS(X, p, real) \
    X(p, real, gemm, GEMM)           \
    X(p, real, symm, SYMM)           \
    X(p, real, syrk, SYRK)           \
    X(p, real, trmm, TRMM)           \
    X(p, real, trsm, TRSM)
/* Those that have work space are apart. */
#define FL_BLAS_FACTORS(X, p, real) \
    X(p, real, potrf, POTRF)        \
    X(p, real, getrf, GETRF)        \
    X(p, real, potrs, POTRS)        \
    X(p, real, getrs, GETRS)        \
    X(p, real, posv, POSV)          \
    X(p, real, gesv, GESV)
#define FL_BLAS_WORKED(X, p, real) \
    X(p, real, geqrf, GEQRF)       \
    X(p, real, ormqr, ORMQR)       \
    X(p, real, gels, GELS)

/* Precisions of vector copies: X(letter, type, LETTER). */
#define FL_BLAS_PRECISIONS(X) \
    X(s, float, S)            \
    X(d, double, D)           \
    X(c, float _Complex, C)   \
    X(z, double _Complex, Z)

#define FL_BLAS_PRECISION(p, type, P) FL_BLAS_PRECISION_##P,
typedef enum fl_blas_precision {
    FL_BLAS_PRECISIONS(FL_BLAS_PRECISION) FL_BLAS_PRECISION_COUNT
} fl_blas_precision;
#undef FL_BLAS_PRECISION

typedef enum fl_blas_routine {
    FL_BLAS_GEMM,
    FL_BLAS_SYMM,
    FL_BLAS_SYRK,
    FL_BLAS_TRMM,
    FL_BLAS_TRSM,
    FL_BLAS_POTRF,
    FL_BLAS_GETRF,
    FL_BLAS_POTRS,
    FL_BLAS_GETRS,
    FL_BLAS_POSV,
    FL_BLAS_GESV,
    FL_BLAS_GEQRF,
    FL_BLAS_ORMQR,
    FL_BLAS_GELS,
    FL_BLAS_ROUTINES
} fl_blas_routine;

#define FL_GEMM_PARAMETERS(O, I, N, R, W, P, Q)                                                  \
    O(transa), O(transb), I(m), I(n), I(k), N(alpha), R(a), I(lda), R(b), I(ldb), N(beta), W(c), \
        I(ldc)
#define FL_SYMM_PARAMETERS(O, I, N, R, W, P, Q) \
    O(side), O(uplo), I(m), I(n), N(alpha), R(a), I(lda), R(b), I(ldb), N(beta), W(c), I(ldc)
#define FL_SYRK_PARAMETERS(O, I, N, R, W, P, Q) \
    O(uplo), O(transa), I(n), I(k), N(alpha), R(a), I(lda), N(beta), W(c), I(ldc)
#define FL_TRMM_PARAMETERS(O, I, N, R, W, P, Q) \
    O(side), O(uplo), O(transa), O(diag), I(m), I(n), N(alpha), R(a), I(lda), W(b), I(ldb)
#define FL_TRSM_PARAMETERS FL_TRMM_PARAMETERS
#define FL_POTRF_PARAMETERS(O, I, N, R, W, P, Q) O(uplo), I(n), W(a), I(lda)
#define FL_GETRF_PARAMETERS(O, I, N, R, W, P, Q) I(m), I(n), W(a), I(lda), P(pivots)
#define FL_POTRS_PARAMETERS(O, I, N, R, W, P, Q) O(uplo), I(n), I(nrhs), R(a), I(lda), W(b), I(ldb)
#define FL_GETRS_PARAMETERS(O, I, N, R, W, P, Q) \
    O(transa), I(n), I(nrhs), R(a), I(lda), Q(pivots), W(b), I(ldb)
#define FL_POSV_PARAMETERS(O, I, N, R, W, P, Q) O(uplo), I(n), I(nrhs), W(a), I(lda), W(b), I(ldb)
#define FL_GESV_PARAMETERS(O, I, N, R, W, P, Q) I(n), I(nrhs), W(a), I(lda), P(pivots), W(b), I(ldb)
#define FL_GEQRF_PARAMETERS(O, I, N, R, W, P, Q) I(m), I(n), W(a), I(lda), W(tau)
#define FL_ORMQR_PARAMETERS(O, I, N, R, W, P, Q) \
    O(side), O(transa), I(m), I(n), I(k), R(a), I(lda), R(tau), W(c), I(ldc)
#define FL_GELS_PARAMETERS(O, I, N, R, W, P, Q) \
    O(transa), I(m), I(n), I(nrhs), W(a), I(lda), W(b), I(ldb)

/* The least work space of a call that filch gets, in elements. */
#define FL_GEQRF_LEAST(V) FL_GREATER(1, V(n))
#define FL_ORMQR_LEAST(V) FL_GREATER(1, V(n))
#define FL_GELS_LEAST(V) \
    FL_GREATER(1, FL_LESSER(V(m), V(n)) + FL_GREATER(FL_LESSER(V(m), V(n)), V(nrhs)))

/* Flops, or above them where a letter decides; V(x) is the value of parameter x. Leading orders of
 * LAPACK Working Note 41, appendix C. */
#define FL_GREATER(x, y) ((x) > (y) ? (x) : (y))
#define FL_LESSER(x, y) ((x) < (y) ? (x) : (y))
#define FL_GEMM_FLOPS(V) 2.0 * V(m) * V(n) * V(k)
#define FL_SYMM_FLOPS(V) 2.0 * V(m) * V(n) * FL_GREATER(V(m), V(n))
#define FL_SYRK_FLOPS(V) 1.0 * V(n) * V(n) * V(k)
#define FL_TRMM_FLOPS(V) 1.0 * V(m) * V(n) * FL_GREATER(V(m), V(n))
#define FL_TRSM_FLOPS FL_TRMM_FLOPS
#define FL_POTRF_FLOPS(V) (1.0 / 3) * V(n) * V(n) * V(n)
#define FL_GETRF_FLOPS(V) 1.0 * V(m) * V(n) * FL_LESSER(V(m), V(n))
#define FL_POTRS_FLOPS(V) 2.0 * V(n) * V(n) * V(nrhs)
#define FL_GETRS_FLOPS FL_POTRS_FLOPS
#define FL_POSV_FLOPS(V) 1.0 * V(n) * V(n) * (V(n) / 3.0 + 2.0 * V(nrhs))
#define FL_GESV_FLOPS(V) 1.0 * V(n) * V(n) * (2.0 * V(n) / 3.0 + 2.0 * V(nrhs))
#define FL_GEQRF_FLOPS(V) 2.0 * V(m) * V(n) * FL_LESSER(V(m), V(n))
#define FL_ORMQR_FLOPS(V) 4.0 * V(m) * V(n) * V(k)
#define FL_GELS_FLOPS(V) 2.0 * V(m) * V(n) * (FL_LESSER(V(m), V(n)) + 3.0 * V(nrhs))

#endif
