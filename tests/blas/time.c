/* SPDX-License-Identifier: Apache-2.0 */
/* dgemm, dpotrf, dgesv and dgels of a BLAS, and of the drop-in in front of it, in one process and
 * in turns.
 *
 *     blas_time [--next LIBRARY] [--front LIBRARY] [--repeat N] [--next-most N] N...
 *
 * Orders above --next-most (8192) are timed with the drop-in alone. Results are checked by products
 * with a random vector. Matrices are pageable memory, touched before. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void (*gemm_fn)(const char *, const char *, const int *, const int *, const int *,
                        const double *, const double *, const int *, const double *, const int *,
                        const double *, double *, const int *, size_t, size_t);
typedef void (*potrf_fn)(const char *, const int *, double *, const int *, int *, size_t);
typedef void (*gesv_fn)(const int *, const int *, double *, const int *, int *, double *,
                        const int *, int *);

typedef void (*gels_fn)(const char *, const int *, const int *, const int *, double *, const int *,
                        double *, const int *, double *, const int *, int *, size_t);

typedef struct library {
    gemm_fn gemm;
    potrf_fn potrf;
    gesv_fn gesv;
    gels_fn gels;
} library;

#define WORK_COLUMNS 64 /* elements of work space, as multiples of the order */

static int n;
static double *a, *b, *c, *kept, *work;
static int *pivots;
static int failures;

static double now_s(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static uint64_t state = 88172645463325252u;

static double number(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (double)(state >> 11) * 0x1p-52 - 1;
}

static void find(void *from, const char *name, void *function)
{
    void *found = dlsym(from, name);
    memcpy(function, &found, sizeof found);
}

static library open_library(const char *path)
{
    library l;
    void *from = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (!from) {
        (void)fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    find(from, "dgemm_", &l.gemm);
    find(from, "dpotrf_", &l.potrf);
    find(from, "dgesv_", &l.gesv);
    find(from, "dgels_", &l.gels);
    return l;
}

/* y += M x, or the part of M in its lower triangle, or the transposed part. */
static void multiply(const double *m, const double *x, double *y, char part)
{
    for (int j = 0; j < n; j++)
        for (int i = part == 'F' ? 0 : j; i < n; i++)
            if (part == 'T')
                y[j] += m[(size_t)j * (size_t)n + (size_t)i] * x[i];
            else
                y[i] += m[(size_t)j * (size_t)n + (size_t)i] * x[j];
}

/* |y - z| in roundings of numbers of about that scale. */
static double distance(const double *y, const double *z, double scale)
{
    double most = 0;
    for (int i = 0; i < n; i++)
        if (!(fabs(y[i] - z[i]) <= most))
            most = fabs(y[i] - z[i]);
    return most / (0x1p-53 * scale);
}

static double check(const char *name)
{
    double *x = calloc((size_t)n * 4, sizeof *x), *y = x + n, *z = y + n, *w = z + n;
    double scale = n;
    for (int i = 0; i < n; i++)
        x[i] = number();
    if (name[0] == 'g' && name[2] == 'm') { /* C x = A (B x) */
        multiply(c, x, y, 'F');
        multiply(b, x, w, 'F');
        multiply(a, w, z, 'F');
        scale *= sqrt(n);
    } else if (name[0] == 'p') { /* L (L' x) = A x */
        multiply(c, x, w, 'T');
        multiply(c, w, y, 'L');
        multiply(kept, x, z, 'F');
        scale *= sqrt(n);
    } else { /* A times the first solution is the first right-hand side */
        double most = 1;
        multiply(kept, c, y, 'F');
        memcpy(z, b, (size_t)n * sizeof *z);
        for (int i = 0; i < n; i++)
            most = fmax(most, fabs(c[i]));
        scale *= most;
    }
    double off = distance(y, z, scale);
    free(x);
    return off;
}

static void prepare(const char *name)
{
    size_t elements = (size_t)n * (size_t)n;
    if (name[0] == 'g' && name[2] == 'm') {
        memset(c, 0, elements * sizeof *c);
        return;
    }
    /* gesv and gels overwrite A; one tenth as many right-hand sides stand in c. */
    memcpy(name[0] == 'p' ? c : a, kept, elements * sizeof *a);
    if (name[0] == 'g')
        memcpy(c, b, elements / 10 * sizeof *c);
}

static double call(const library *l, const char *name)
{
    const double one = 1, zero = 0;
    int info = 0, nrhs = n / 10, count = WORK_COLUMNS * n;
    double begin = now_s();
    if (name[0] == 'p')
        l->potrf("L", &n, c, &n, &info, 1);
    else if (name[2] == 'm')
        l->gemm("N", "N", &n, &n, &n, &one, a, &n, b, &n, &zero, c, &n, 1, 1);
    else if (name[2] == 's')
        l->gesv(&n, &nrhs, a, &n, pivots, c, &n, &info);
    else
        l->gels("N", &n, &n, &nrhs, a, &n, c, &n, work, &count, &info, 1);
    double seconds = now_s() - begin;
    failures += info != 0;
    return seconds;
}

static int has(const library *l, const char *name)
{
    return name[0] == 'p'   ? l->potrf != NULL
           : name[2] == 'm' ? l->gemm != NULL
           : name[2] == 's' ? l->gesv != NULL
                            : l->gels != NULL;
}

static double flops(const char *name)
{
    double m = n;
    return name[0] == 'p'   ? m * m * m / 3
           : name[2] == 'm' ? 2 * m * m * m
           : name[2] == 's' ? m * m * m * (2 / 3. + .2)
                            : m * m * m * (4 / 3. + .3);
}

static int by_value(const void *x, const void *y)
{
    double d = *(const double *)x - *(const double *)y;
    return d < 0 ? -1 : d > 0;
}

static double median(double *times, int count)
{
    qsort(times, (size_t)count, sizeof *times, by_value);
    return times[count / 2];
}

static void compare(const library *next, const library *front, const char *name, int repeat,
                    int with_next)
{
    double times[2][64], off = 0, first = 0;
    if (!has(next, name) || !has(front, name))
        return;
    for (int k = -1; k < repeat; k++)
        for (int which = with_next ? 0 : 1; which < 2; which++) {
            prepare(name);
            double seconds = call(which ? front : next, name);
            if (k >= 0)
                times[which][k] = seconds;
            else if (which)
                first = seconds;
            off = fmax(off, k < 1 ? check(name) : 0);
        }
    double own = median(times[1], repeat), theirs = with_next ? median(times[0], repeat) : NAN;
    printf("%-6s %6d  next %10.4f s  filch %10.4f s (first %.4f)  %8.1f GFLOP/s  ratio %6.2f  %s\n",
           name, n, theirs, own, first, 1e-9 * flops(name) / own, theirs / own,
           off < 100 ? "right" : "WRONG");
    (void)fflush(stdout);
    failures += !(off < 100);
}

static void make(void)
{
    size_t elements = (size_t)n * (size_t)n;
    a = malloc(elements * sizeof *a);
    b = malloc(elements * sizeof *b);
    c = malloc(elements * sizeof *c);
    kept = malloc(elements * sizeof *kept);
    pivots = malloc((size_t)n * sizeof *pivots);
    work = malloc(WORK_COLUMNS * (size_t)n * sizeof *work);
    if (!a || !b || !c || !kept || !pivots || !work) {
        (void)fprintf(stderr, "no memory\n");
        exit(1);
    }
    for (size_t k = 0; k < elements; k++) {
        a[k] = number();
        b[k] = number();
    }
    memset(c, 0, elements * sizeof *c);
}

/* Symmetric, and positive definite by its diagonal; of moderate condition for gesv and gels, too.
 */
static void make_definite(void)
{
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double x = i == j ? n : a[(size_t)j * (size_t)n + (size_t)i];
            kept[(size_t)j * (size_t)n + (size_t)i] = kept[(size_t)i * (size_t)n + (size_t)j] = x;
        }
}

int main(int argc, char **argv)
{
    const char *next_path = "libopenblas.so.0", *front_path = "libfilch_blas.so";
    int repeat = 5, next_most = 8192, k = 1;
    for (; k + 1 < argc && argv[k][0] == '-'; k += 2)
        if (strcmp(argv[k], "--next") == 0)
            next_path = argv[k + 1];
        else if (strcmp(argv[k], "--front") == 0)
            front_path = argv[k + 1];
        else if (strcmp(argv[k], "--repeat") == 0)
            repeat = atoi(argv[k + 1]);
        else if (strcmp(argv[k], "--next-most") == 0)
            next_most = atoi(argv[k + 1]);
    if (k == argc || repeat < 1 || repeat > 64) {
        (void)fprintf(stderr, "usage: blas_time [--next LIBRARY] [--front LIBRARY] [--repeat 1-64] "
                              "[--next-most N] N...\n");
        return 2;
    }
    library next = open_library(next_path), front = open_library(front_path);
    for (; k < argc; k++) {
        n = atoi(argv[k]);
        make();
        compare(&next, &front, "gemm", repeat, n <= next_most);
        make_definite();
        compare(&next, &front, "potrf", repeat, n <= next_most);
        compare(&next, &front, "gesv", repeat, n <= next_most);
        compare(&next, &front, "gels", repeat, n <= next_most);
        free(a), free(b), free(c), free(kept), free(pivots), free(work);
    }
    return failures != 0;
}
