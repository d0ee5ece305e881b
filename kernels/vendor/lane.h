/* SPDX-License-Identifier: Apache-2.0 */
/* Private to vendor*.c: the libraries' calls, and a lane's handles and memory. */
#ifndef FL_KERNELS_VENDOR_LANE_H
#define FL_KERNELS_VENDOR_LANE_H

#include "kernels/vendor/vendor.h"

#include "base/thread.h"

/* What codes are made of; see fl_vendor_explain(). */
enum { FL_VENDOR_CODE_BLAS = 1000, FL_VENDOR_CODE_SOLVER = 2000, FL_VENDOR_CODE_MEMORY = 3000 };

/* X(library, member, symbol, parameters): handles and streams are pointers, enumerations ints.
 * Prototypes as in cublas_api.h and cusolverDn.h of CUDA 12.0 to 13.0. */
#define FL_VENDOR_COMMON_CALLS(X)                                                               \
    X(blas, blas_create, "cublasCreate_v2", (void **handle))                                    \
    X(blas, blas_destroy, "cublasDestroy_v2", (void *handle))                                   \
    X(blas, blas_stream, "cublasSetStream_v2", (void *handle, void *stream))                    \
    X(blas, blas_version, "cublasGetVersion_v2", (void *handle, int *version))                  \
    X(blas, blas_limit, "cublasSetSmCountTarget", (void *handle, int count))                    \
    X(blas, gemm_ex, "cublasGemmEx",                                                            \
      (void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a, \
       int type_a, int lda, const void *b, int type_b, int ldb, const void *beta, void *c,      \
       int type_c, int ldc, int compute, int algorithm))                                        \
    X(solver, solver_create, "cusolverDnCreate", (void **handle))                               \
    X(solver, solver_destroy, "cusolverDnDestroy", (void *handle))                              \
    X(solver, solver_stream, "cusolverDnSetStream", (void *handle, void *stream))

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define FL_VENDOR_REAL_CALLS(X, p, P, real)                                                       \
    X(blas, p##gemm, "cublas" #P "gemm_v2",                                                       \
      (void *handle, int op_a, int op_b, int m, int n, int k, const real *alpha, const real *a,   \
       int lda, const real *b, int ldb, const real *beta, real *c, int ldc))                      \
    X(blas, p##gemv, "cublas" #P "gemv_v2",                                                       \
      (void *handle, int op, int m, int n, const real *alpha, const real *a, int lda,             \
       const real *x, int step_x, const real *beta, real *y, int step_y))                         \
    X(blas, p##trsv, "cublas" #P "trsv_v2",                                                       \
      (void *handle, int fill, int op, int diagonal, int n, const real *a, int lda, real *x,      \
       int step))                                                                                 \
    X(blas, p##gemm_strided, "cublas" #P "gemmStridedBatched",                                    \
      (void *handle, int op_a, int op_b, int m, int n, int k, const real *alpha, const real *a,   \
       int lda, long long step_a, const real *b, int ldb, long long step_b, const real *beta,     \
       real *c, int ldc, long long step_c, int count))                                            \
    X(blas, p##geam, "cublas" #P "geam",                                                          \
      (void *handle, int op_a, int op_b, int m, int n, const real *alpha, const real *a, int lda, \
       const real *beta, const real *b, int ldb, real *c, int ldc))                               \
    X(blas, p##trsm, "cublas" #P "trsm_v2",                                                       \
      (void *handle, int side, int fill, int op, int diagonal, int m, int n, const real *alpha,   \
       const real *a, int lda, real *b, int ldb))                                                 \
    X(blas, p##trsm_batched, "cublas" #P "trsmBatched",                                           \
      (void *handle, int side, int fill, int op, int diagonal, int m, int n, const real *alpha,   \
       const real *const *a, int lda, real *const *b, int ldb, int count))                        \
    X(blas, p##trmm, "cublas" #P "trmm_v2",                                                       \
      (void *handle, int side, int fill, int op, int diagonal, int m, int n, const real *alpha,   \
       const real *a, int lda, const real *b, int ldb, real *c, int ldc))                         \
    X(blas, p##syrk, "cublas" #P "syrk_v2",                                                       \
      (void *handle, int fill, int op, int n, int k, const real *alpha, const real *a, int lda,   \
       const real *beta, real *c, int ldc))                                                       \
    X(blas, p##symm, "cublas" #P "symm_v2",                                                       \
      (void *handle, int side, int fill, int m, int n, const real *alpha, const real *a, int lda, \
       const real *b, int ldb, const real *beta, real *c, int ldc))                               \
    X(blas, p##dgmm, "cublas" #P "dgmm",                                                          \
      (void *handle, int side, int m, int n, const real *a, int lda, const real *x, int step,     \
       real *c, int ldc))                                                                         \
    X(solver, p##potrf_size, "cusolverDn" #P "potrf_bufferSize",                                  \
      (void *handle, int fill, int n, real *a, int lda, int *elements))                           \
    X(solver, p##potrf, "cusolverDn" #P "potrf",                                                  \
      (void *handle, int fill, int n, real *a, int lda, real *work, int elements, int *info))     \
    X(solver, p##getrf_size, "cusolverDn" #P "getrf_bufferSize",                                  \
      (void *handle, int m, int n, real *a, int lda, int *elements))                              \
    X(solver, p##getrf, "cusolverDn" #P "getrf",                                                  \
      (void *handle, int m, int n, real *a, int lda, real *work, int *pivots, int *info))         \
    X(solver, p##laswp, "cusolverDn" #P "laswp",                                                  \
      (void *handle, int n, real *a, int lda, int first, int last, const int *pivots, int step))  \
    X(solver, p##geqrf_size, "cusolverDn" #P "geqrf_bufferSize",                                  \
      (void *handle, int m, int n, real *a, int lda, int *elements))                              \
    X(solver, p##geqrf, "cusolverDn" #P "geqrf",                                                  \
      (void *handle, int m, int n, real *a, int lda, real *tau, real *work, int elements,         \
       int *info))                                                                                \
    X(solver, p##ormqr_size, "cusolverDn" #P "ormqr_bufferSize",                                  \
      (void *handle, int side, int op, int m, int n, int k, const real *a, int lda,               \
       const real *tau, const real *c, int ldc, int *elements))                                   \
    X(solver, p##ormqr, "cusolverDn" #P "ormqr",                                                  \
      (void *handle, int side, int op, int m, int n, int k, const real *a, int lda,               \
       const real *tau, real *c, int ldc, real *work, int elements, int *info))

#define FL_VENDOR_CALLS(X)                \
    FL_VENDOR_COMMON_CALLS(X)             \
    FL_VENDOR_REAL_CALLS(X, d, D, double) \
    FL_VENDOR_REAL_CALLS(X, s, S, float)

typedef struct fl_vendor_calls {
#define MEMBER(library, member, symbol, parameters) int(*member) parameters;
    FL_VENDOR_CALLS(MEMBER)
#undef MEMBER
} fl_vendor_calls;
/* NOLINTEND(bugprone-macro-parentheses) */

/* Memory of a lane's that grows to what its largest tile needs, and stays. */
typedef struct fl_vendor_room {
    CUdeviceptr block;
    size_t bytes;
} fl_vendor_room;

struct fl_vendor_lane {
    fl_vendor *vendor;
    fl_vendor_lane *next;
    void *context;
    void *stream;
    void *blas;
    void *solver;
    fl_vendor_room work;    /* of potrf */
    fl_vendor_room inverse; /* see vendor_inverse.c */
    size_t inverse_element; /* laid out for this, */
    size_t inverse_n;       /* and for this order */
    unsigned users;
};

struct fl_vendor {
    const fl_cuda_api *driver;
    fl_cuda_library *own; /* of load.c; null: the driver is another's */
    fl_vendor_calls call;
    fl_mutex lock; /* of the list */
    fl_vendor_lane *lanes;
    size_t element; /* of the factorizations expected */
    size_t expected;
    bool inverts;
    size_t panel_element; /* of the panels expected */
    size_t panel_rows, panel_cols;
    double seconds; /* that all of it took */
    char text[32];
};

static inline void *fl_vendor_pointer(CUdeviceptr address)
{
    return (void *)(uintptr_t)address;
}

static inline int fl_vendor_blas_code(int status)
{
    return status ? -(FL_VENDOR_CODE_BLAS + status) : 0;
}

static inline int fl_vendor_memory_code(CUresult result)
{
    return result != FL_CUDA_SUCCESS ? -(FL_VENDOR_CODE_MEMORY + result) : 0;
}

static inline int fl_vendor_solver_code(int status)
{
    return status ? -(FL_VENDOR_CODE_SOLVER + status) : 0;
}

/* Waits for what uses the room, where it has to grow. */
int fl_vendor_room_grow(const fl_vendor_lane *lane, fl_vendor_room *room, size_t bytes);
/* What factorizations of the expected panels need, before tasks run. */
int fl_vendor_panel_reserve(fl_vendor_lane *lane);
/* What inverting a tile of this order needs, before tasks run. */
int fl_vendor_inverse_reserve(fl_vendor_lane *lane, size_t element, size_t n);

#endif
