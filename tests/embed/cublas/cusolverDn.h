/* SPDX-License-Identifier: Apache-2.0 */
/* What docs/examples/supernodes uses of cuSOLVER's header, for machines without a toolkit. */
#ifndef TESTS_EMBED_CUSOLVERDN_H
#define TESTS_EMBED_CUSOLVERDN_H

#include "cublas_v2.h"

typedef struct cusolverDnContext *cusolverDnHandle_t;
typedef enum { CUSOLVER_STATUS_SUCCESS = 0 } cusolverStatus_t;

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t *handle);
cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t handle);
cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t handle, cudaStream_t stream);
cusolverStatus_t cusolverDnDpotrf_bufferSize(cusolverDnHandle_t handle, cublasFillMode_t fill,
                                             int n, double *a, int lda, int *elements);
cusolverStatus_t cusolverDnDpotrf(cusolverDnHandle_t handle, cublasFillMode_t fill, int n,
                                  double *a, int lda, double *work, int elements, int *info);

#endif
