/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BLAS_CLIENT_H
#define BLAS_CLIENT_H

#include <stdarg.h>
#include <stdint.h>

extern int client_failures;
extern long client_calls;

uint64_t client_random(void);
int client_pick(int count); /* 0 to count - 1 */
int client_size(void);
int client_largest(void);
__attribute__((format(printf, 1, 2))) void client_wrong(const char *format, ...);

/* A routine's tests, in both precisions; the factorizations' call the solves on their factors. */
#define CLIENT_DECLARE(name)      \
    void client_##name##_d(void); \
    void client_##name##_s(void);
CLIENT_DECLARE(gemm)
CLIENT_DECLARE(symm)
CLIENT_DECLARE(syrk)
CLIENT_DECLARE(trmm)
CLIENT_DECLARE(trsm)
CLIENT_DECLARE(potrf)
CLIENT_DECLARE(getrf)
CLIENT_DECLARE(geqrf)
CLIENT_DECLARE(ormqr)
CLIENT_DECLARE(gels)
CLIENT_DECLARE(posv)
CLIENT_DECLARE(gesv)

#endif
