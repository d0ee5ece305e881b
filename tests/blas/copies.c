/* SPDX-License-Identifier: Apache-2.0 */
/* Vector copies with large steps, of every precision, by Fortran's names and by CBLAS's: one after
 * another, after pauses in which helpers sleep, from many threads at once, and in a child of the
 * process. Every element of the target is looked at, also those between the steps. */
#define _GNU_SOURCE
#include <cblas.h>

#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define THREADS 4
#define ROUNDS 20
#define PAUSES 5

typedef enum kind { S, D, C, Z, KINDS } kind;
static const size_t bytes_of[] = {4, 8, 8, 16};

void scopy_(const int *n, const float *x, const int *incx, float *y, const int *incy);
void dcopy_(const int *n, const double *x, const int *incx, double *y, const int *incy);
void ccopy_(const int *n, const void *x, const int *incx, void *y, const int *incy);
void zcopy_(const int *n, const void *x, const int *incx, void *y, const int *incy);

static void copy(kind of, int by_cblas, int n, const void *x, int incx, void *y, int incy)
{
    switch (of) {
    case S:
        by_cblas ? cblas_scopy(n, x, incx, y, incy) : scopy_(&n, x, &incx, y, &incy);
        return;
    case D:
        by_cblas ? cblas_dcopy(n, x, incx, y, incy) : dcopy_(&n, x, &incx, y, &incy);
        return;
    case C:
        by_cblas ? cblas_ccopy(n, x, incx, y, incy) : ccopy_(&n, x, &incx, y, &incy);
        return;
    default:
        by_cblas ? cblas_zcopy(n, x, incx, y, incy) : zcopy_(&n, x, &incx, y, &incy);
    }
}

/* Where element i of n is, in elements from the start; a negative step begins at the end. */
static size_t place(int i, int n, int inc)
{
    return inc < 0 ? (size_t)(n - 1 - i) * (size_t)-inc : (size_t)i * (size_t)inc;
}

static size_t length(int n, int inc)
{
    return n == 0 ? 1 : place(inc < 0 ? 0 : n - 1, n, inc) + 1;
}

/* Bytes that tell their place; none is 0xee. */
static void fill(unsigned char *x, size_t bytes, unsigned seed)
{
    for (size_t k = 0; k < bytes; k++)
        x[k] = (unsigned char)((k * 2654435761u + seed) >> 7 & 0x7f);
}

static int is_wrong(kind of, int by_cblas, int n, int incx, int incy)
{
    size_t size = bytes_of[of], xs = length(n, incx) * size, ys = length(n, incy) * size;
    unsigned char *x = malloc(xs), *y = malloc(ys), *want = malloc(ys);
    int wrong;
    fill(x, xs, (unsigned)(n + incx));
    memset(y, 0xee, ys);
    memset(want, 0xee, ys);
    for (int i = 0; i < n; i++)
        memcpy(want + place(i, n, incy) * size, x + place(i, n, incx) * size, size);
    copy(of, by_cblas, n, x, incx, y, incy);
    wrong = memcmp(y, want, ys) != 0;
    if (wrong)
        printf("kind %d, %s, n %d, steps %d and %d: wrong\n", of, by_cblas ? "C" : "Fortran", n,
               incx, incy);
    free(x);
    free(y);
    free(want);
    return wrong;
}

static const int shapes[][3] = {
    {0, 1, 1},       {5, 700, 1},     {2047, 200, 1},   {2048, 200, 1},   {2049, 1, 200},
    {4097, -150, 1}, {4097, 1, -150}, {3001, 130, 133}, {3001, -1, -200}, {2048, 129, 128}};

static int all_are_right(void)
{
    int wrong = 0;
    for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (kind of = S; of < KINDS; of++)
            for (int by_cblas = 0; by_cblas < 2; by_cblas++)
                wrong += is_wrong(of, by_cblas, shapes[k][0], shapes[k][1], shapes[k][2]);
    return wrong == 0;
}

static void pause_ms(long ms)
{
    const struct timespec time = {.tv_nsec = ms * 1000000};
    (void)nanosleep(&time, NULL);
}

static void *copy_often(void *user)
{
    int *wrong = user;
    for (int round = 0; round < ROUNDS; round++)
        *wrong += is_wrong(round % KINDS, round % 2, 2048 + 97 * round, 140, 1);
    return NULL;
}

static int threads_are_right(void)
{
    pthread_t threads[THREADS];
    int wrong[THREADS] = {0}, sum = 0;
    for (int t = 0; t < THREADS; t++)
        if (pthread_create(&threads[t], NULL, copy_often, &wrong[t]) != 0)
            return 0;
    for (int t = 0; t < THREADS; t++) {
        (void)pthread_join(threads[t], NULL);
        sum += wrong[t];
    }
    return sum == 0;
}

/* Buffers are made before: a sanitizer's malloc may hang in the child of a process with threads. */
static int child_is_right(void)
{
    enum { N = 4000, STEP = 100 };
    static double x[N * STEP], y[N];
    int n = N, step = STEP, one = 1, status;
    for (int i = 0; i < N; i++)
        x[i * STEP] = i + 1;
    pid_t child = fork();
    if (child == 0) {
        dcopy_(&n, x, &step, y, &one);
        for (int i = 0; i < N; i++)
            if (y[i] != i + 1)
                _exit(1);
        _exit(0);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

int main(void)
{
    int is_right = all_are_right();
    for (int k = 0; k < PAUSES && is_right; k++) {
        pause_ms(2);
        is_right = !is_wrong(D, 0, 5000, 150, 1);
    }
    is_right = is_right && threads_are_right() && child_is_right() && all_are_right();
    puts(is_right ? "every copy is right" : "a copy is wrong");
    return !is_right;
}
