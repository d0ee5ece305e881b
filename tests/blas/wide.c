/* SPDX-License-Identifier: Apache-2.0 */
/* Names with 64-bit integers. Extents stand beside ones whose upper half is not 0, so that a reader
 * of 32 bits finds others in a row of them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N 40

typedef void (*fortran_gemm)(const char *, const char *, const int64_t *, const int64_t *,
                             const int64_t *, const double *, const double *, const int64_t *,
                             const double *, const int64_t *, const double *, double *,
                             const int64_t *, size_t, size_t);
typedef void (*c_gemm)(int, int, int, int64_t, int64_t, int64_t, double, const double *, int64_t,
                       const double *, int64_t, double, double *, int64_t);
typedef int64_t (*lapacke_getrf)(int, int64_t, int64_t, double *, int64_t, int64_t *);

static double a[N * N], c[N * N];
static int64_t pivots[N];

static void *find(const char *name)
{
    void *found = dlsym(RTLD_DEFAULT, name);
    if (!found) {
        printf("no %s\n", name);
        exit(1);
    }
    return found;
}

static void fill(void)
{
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            a[j * N + i] = i == (j + 1) % N ? 2 : 0;
    for (int k = 0; k < N * N; k++)
        c[k] = NAN;
}

/* A A: 4 two rows below. */
static int product_is_wrong(const char *name)
{
    int wrong = 0;
    for (int j = 0; j < N; j++)
        for (int i = 0; i < N; i++)
            wrong += c[j * N + i] != (i == (j + 2) % N ? 4 : 0);
    printf("%s: %d wrong\n", name, wrong);
    return wrong;
}

static int fortran_is_wrong(const char *name)
{
    const int64_t n = N;
    const double one = 1, zero = 0;
    void *found = find(name);
    fortran_gemm gemm;
    memcpy(&gemm, &found, sizeof gemm);
    fill();
    gemm("N", "N", &n, &n, &n, &one, a, &n, a, &n, &zero, c, &n, 1, 1);
    return product_is_wrong(name);
}

static int cblas_is_wrong(const char *name)
{
    void *found = find(name);
    c_gemm gemm;
    memcpy(&gemm, &found, sizeof gemm);
    fill();
    gemm(102, 111, 111, N, N, N, 1, a, N, a, N, 0, c, N);
    return product_is_wrong(name);
}

/* Row j + 1 is the pivot of column j, and the last column's is what is left. */
static int lapacke_is_wrong(const char *name)
{
    void *found = find(name);
    lapacke_getrf getrf;
    int wrong = 0;
    memcpy(&getrf, &found, sizeof getrf);
    fill();
    memset(pivots, 0xff, sizeof pivots);
    int64_t info = getrf(102, N, N, a, N, pivots);
    for (int64_t k = 0; k < N; k++)
        wrong += pivots[k] != (k + 1 < N ? k + 2 : N);
    printf("%s: info %lld, %d wrong\n", name, (long long)info, wrong);
    return info != 0 || wrong;
}

/* wide FORTRAN CBLAS LAPACKE, names of gemm, gemm and getrf. */
int main(int argc, char **argv)
{
    int wrong = argc != 4;
    for (int k = 1; k < argc; k++)
        wrong += (k == 1 ? fortran_is_wrong : k == 2 ? cblas_is_wrong : lapacke_is_wrong)(argv[k]);
    return wrong != 0;
}
