/* SPDX-License-Identifier: Apache-2.0 */
/* A program without a BLAS: small calls have nowhere to go. BLAS's result is not a number, LAPACK's
 * info is -1020, and the program lives. Copies of vectors need no BLAS. */
#include <math.h>
#include <stddef.h>
#include <stdio.h>

void dgemm_(const char *transa, const char *transb, const int *m, const int *n, const int *k,
            const double *alpha, const double *a, const int *lda, const double *b, const int *ldb,
            const double *beta, double *c, const int *ldc, size_t la, size_t lb);
void dpotrf_(const char *uplo, const int *n, double *a, const int *lda, int *info, size_t length);
void dcopy_(const int *n, const double *x, const int *incx, double *y, const int *incy);
int LAPACKE_dpotrf(int layout, char uplo, int n, double *a, int lda);

int main(void)
{
    const int two = 2;
    const double one = 1;
    double a[] = {2, 0, 0, 2}, c[] = {0, 0, 0, 0};
    int info = 0;
    dgemm_("N", "N", &two, &two, &two, &one, a, &two, a, &two, &one, c, &two, 1, 1);
    dpotrf_("L", &two, a, &two, &info, 1);
    const int minus = -1;
    double d[] = {0, 0};
    dcopy_(&two, (const double[]){3, 4}, &minus, d, &(const int){1});
    int told = LAPACKE_dpotrf(102, 'L', 2, a, 2);
    printf("c %g %g, info %d and %d\n", c[0], c[3], info, told);
    return !isnan(c[0]) || !isnan(c[3]) || info != -1020 || told != -1020 || a[0] != 2 ||
           d[0] != 4 || d[1] != 3;
}
