/* SPDX-License-Identifier: Apache-2.0 */
/* Vector copies with large steps, of every precision, by Fortran's names and by CBLAS's: one after
 * another, after pauses in which helpers sleep or end, from many threads at once, and in children
 * of the process. Every element of the target is looked at, also those between the steps. A vector
 * may lie in pages that only the program's own handler opens, and may be moved along itself. */
#define _GNU_SOURCE
#include "sanitized.h"

#include <cblas.h>

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* The thread sanitizer has a thread of its own, which ends with the process; and threads that ended
 * in the parent, not joined yet, are leaks of the child's to it. */
#ifdef __SANITIZE_THREAD__
#define MAIN_MAY_END_FIRST 0
const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "report_thread_leaks=0";
}
#else
#define MAIN_MAY_END_FIRST 1
#endif

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
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};
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

enum { ROWS = 4000, STEP = 100 };
static double matrix[(ROWS + 1) * STEP], column[ROWS];

static void fill_matrix(void)
{
    for (int i = 0; i <= ROWS; i++)
        matrix[i * STEP] = i + 1;
}

/* Buffers are made before: a sanitizer's malloc may hang in the child of a process with threads. */
static int column_is_wrong(void)
{
    const int n = ROWS, step = STEP, one = 1;
    int wrong = 0;
    memset(column, 0, sizeof column);
    dcopy_(&n, matrix, &step, column, &one);
    for (int i = 0; i < ROWS; i++)
        wrong += column[i] != i + 1;
    return wrong != 0;
}

/* 0: the system does not tell. */
static int threads_of_process(void)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks)) != NULL;)
        count += task->d_name[0] != '.';
    if (tasks)
        (void)closedir(tasks);
    return count;
}

/* Its main thread ends before the process does, which ends with the last helper. A child of a
 * process that has had helpers makes none. */
static int child_is_right(int has_had_helpers)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        for (int k = 0; k < 3 * PAUSES; k++)
            if (column_is_wrong())
                _exit(1);
        if (CHILD_MAY_ALLOCATE && has_had_helpers && threads_of_process() > 1)
            _exit(3);
        if (!MAIN_MAY_END_FIRST)
            _exit(0);
        pthread_exit(NULL);
    }
    return child > 0 && waitpid(child, &status, 0) == child && status == 0;
}

/* BLAS copies from the first element on. */
static int shift_is_right(void)
{
    const int n = ROWS, step = STEP;
    int wrong = 0;
    for (int round = 0; round < ROUNDS && !wrong; round++) {
        fill_matrix();
        dcopy_(&n, matrix + STEP, &step, matrix, &step);
        for (int i = 0; i < ROWS; i++)
            wrong += matrix[i * STEP] != i + 2;
    }
    fill_matrix();
    return !wrong;
}

/* Columns of one matrix lie between each other. */
static int columns_are_right(void)
{
    const int n = ROWS, step = STEP;
    int wrong = 0;
    dcopy_(&n, matrix, &step, matrix + 1, &step);
    for (int i = 0; i < ROWS; i++)
        wrong += matrix[i * STEP] != i + 1 || matrix[i * STEP + 1] != i + 1;
    return !wrong;
}

static char *closed;
static size_t closed_bytes, page;

static void open_page(int signal, siginfo_t *info, void *context)
{
    char *at = (char *)((uintptr_t)info->si_addr / page * page);
    (void)signal;
    (void)context;
    if (at < closed || at >= closed + closed_bytes ||
        mprotect(at, page, PROT_READ | PROT_WRITE) != 0)
        _exit(2);
}

static int faults_are_handled(void)
{
    struct sigaction before, action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
    const int n = ROWS, step = STEP, one = 1;
    int wrong = 0;
    page = (size_t)sysconf(_SC_PAGESIZE);
    closed_bytes = (sizeof matrix / page + 1) * page;
    closed = mmap(NULL, closed_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (closed == MAP_FAILED || sigaction(SIGSEGV, &action, &before) != 0)
        return 0;
    for (int i = 0; i < ROWS; i++)
        column[i] = i + 1;
    dcopy_(&n, column, &one, (double *)closed, &step);
    (void)sigaction(SIGSEGV, &before, NULL);
    for (int i = 0; i < ROWS; i++)
        wrong += ((double *)closed)[i * STEP] != i + 1;
    (void)munmap(closed, closed_bytes);
    return !wrong;
}

int main(void)
{
    fill_matrix();
    int is_right = child_is_right(0) && all_are_right();
    for (int k = 0; k < PAUSES && is_right; k++) {
        pause_ms(k < PAUSES - 1 ? 2 : 1200); /* asleep; ended */
        is_right = !is_wrong(D, 0, 5000, 150, 1);
    }
    is_right = is_right && threads_are_right() && child_is_right(1) && shift_is_right() &&
               columns_are_right() && faults_are_handled() && all_are_right();
    puts(is_right ? "every copy is right" : "a copy is wrong");
    return !is_right;
}
