/* SPDX-License-Identifier: Apache-2.0 */
/* What the examples use of cuBLAS's header, for machines without a toolkit. */
#ifndef TESTS_EMBED_CUBLAS_V2_H
#define TESTS_EMBED_CUBLAS_V2_H

typedef struct cublasContext *cublasHandle_t;
typedef struct CUstream_st *cudaStream_t;
typedef enum { CUBLAS_STATUS_SUCCESS = 0 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUBLAS_SIDE_RIGHT = 1 } cublasSideMode_t;
typedef enum { CUBLAS_FILL_MODE_LOWER = 0 } cublasFillMode_t;
typedef enum { CUBLAS_DIAG_NON_UNIT = 0 } cublasDiagType_t;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasSetStream cublasSetStream_v2
#define cublasDgemm cublasDgemm_v2
#define cublasDtrsm cublasDtrsm_v2

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasDgemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b,
                           int m, int n, int k, const double *alpha, const double *a, int lda,
                           const double *b, int ldb, const double *beta, double *c, int ldc);
cublasStatus_t cublasDtrsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,
                           cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                           const double *alpha, const double *a, int lda, double *b, int ldb);

#endif
