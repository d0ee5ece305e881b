/* SPDX-License-Identifier: Apache-2.0 */
/* Calls from many threads at once, the first of which starts filch; a child of the process in their
 * midst. */
#include "sanitized.h"

#include <cblas.h>
#include <lapacke.h>

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define N 65
#define THREADS 8
#define ROUNDS 6

#ifdef __SANITIZE_ADDRESS__
#define LOOKS_FOR_LEAKS 1
#else
#define LOOKS_FOR_LEAKS 0
#endif

static int failures;

/* C := A A, of A(i, j) = i - j: C(i, j) = sum of (i - l) (l - j). */
static int product_is_wrong(void)
{
    double *a = malloc(sizeof(double) * N * N), *c = malloc(sizeof(double) * N * N);
    int wrong = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            a[j * N + i] = i - j, c[j * N + i] = NAN;
    cblas_dgemm(CblasColMajor, CblasNoTrans, CblasNoTrans, N, N, N, 1, a, N, a, N, 0, c, N);
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++) {
            double sum = 0;
            for (int l = 0; l < N; l++)
                sum += (double)(i - l) * (l - j);
            wrong += !(c[j * N + i] == sum); /* integers: exact */
        }
    free(a);
    free(c);
    return wrong;
}

/* The factor of min(i, j) + 1 is a triangle of ones. */
static int factor_is_wrong(void)
{
    float *a = malloc(sizeof(float) * N * N);
    int wrong = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            a[j * N + i] = (float)(i < j ? i : j) + 1;
    wrong += LAPACKE_spotrf(LAPACK_COL_MAJOR, 'L', N, a, N) != 0;
    for (int j = 0; j < N; j++)
        for (int i = j; i < N; i++)
            wrong += fabsf(a[j * N + i] - 1) > 1e-3f;
    free(a);
    return wrong;
}

static void *call(void *user)
{
    (void)user;
    for (int round = 0; round < ROUNDS; round++)
        if (product_is_wrong() || factor_is_wrong())
            __atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED);
    return NULL;
}

static int child_is_wrong(void)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        /* The fake driver, and the address sanitizer, look for what the process left, which is the
         * parent's. */
        const char *devices = getenv("FILCH_BLAS_DEVICES");
        int wrong = product_is_wrong() || factor_is_wrong();
        if (LOOKS_FOR_LEAKS || (devices && strstr(devices, "cuda")))
            _exit(wrong);
        exit(wrong);
    }
    return child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
           WEXITSTATUS(status) != 0;
}

int main(void)
{
    pthread_t threads[THREADS];
    int wrong = child_is_wrong(); /* before the parent's first call */
    for (int t = 0; t < THREADS; t++)
        (void)pthread_create(&threads[t], NULL, call, NULL);
    wrong += CHILD_MAY_ALLOCATE && child_is_wrong();
    for (int t = 0; t < THREADS; t++)
        (void)pthread_join(threads[t], NULL);
    wrong += CHILD_MAY_ALLOCATE && child_is_wrong();
    printf("%d wrong, %d of children\n", failures + wrong, wrong);
    return failures + wrong != 0;
}
