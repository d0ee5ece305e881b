/* SPDX-License-Identifier: Apache-2.0 */
/* Each case is compared with the definition evaluated in long double, and what lies outside of what
 * the kernel may write with what was there before. Kernels that promise bits are held to those of
 * their host functions. */
#include "kernels/cases.h"

#include "random.h"

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Roundoffs by which a sum of n products may differ from the exact one, n included. */
#define ROUNDOFFS 4.0

typedef struct bench {
    kernel_runner run;
    void *user;
    fl_random random;
    int wrong;
    const char *suffix;
    uint64_t element;
    double unit; /* roundoff */
} bench;

static void __attribute__((format(printf, 3, 4)))
complain(bench *b, const char *kernel, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    fprintf(stderr, "%s_%s: ", kernel, b->suffix);
    vfprintf(stderr, format, list);
    fputc('\n', stderr);
    va_end(list);
    b->wrong++;
}

static double get(const filch_view *v, uint64_t i, uint64_t j)
{
    uint64_t at = i + j * v->ld;
    return v->element == sizeof(double) ? ((const double *)v->ptr)[at]
                                        : (double)((const float *)v->ptr)[at];
}

static void set(const filch_view *v, uint64_t i, uint64_t j, double value)
{
    uint64_t at = i + j * v->ld;
    if (v->element == sizeof(double))
        ((double *)v->ptr)[at] = value;
    else
        ((float *)v->ptr)[at] = (float)value;
}

static size_t bytes_of(const filch_view *v)
{
    return v->ld * v->cols * v->element;
}

/* A matrix of numbers in [-1, 1), also between its columns. */
static filch_view make(bench *b, uint64_t rows, uint64_t cols, uint64_t gap)
{
    filch_view v = {NULL, rows, cols, rows + gap, 0, 0, b->element};
    v.ptr = malloc(bytes_of(&v));
    if (!v.ptr)
        abort();
    for (uint64_t j = 0; j < cols; j++)
        for (uint64_t i = 0; i < v.ld; i++)
            set(&v, i, j, 2 * fl_random_unit(&b->random) - 1);
    return v;
}

static filch_view copy(const filch_view *v)
{
    filch_view other = *v;
    other.ptr = malloc(bytes_of(v));
    if (!other.ptr)
        abort();
    memcpy(other.ptr, v->ptr, bytes_of(v));
    return other;
}

static void drop(const filch_view *v)
{
    free(v->ptr);
}

static kernel_case begin(const bench *b, const char *name, const void *args)
{
    char full[32];
    kernel_case c = {.args = args};
    snprintf(full, sizeof full, "%s_%s", name, b->suffix);
    c.kernel = filch_kernel_find(full);
    if (!c.kernel)
        abort();
    return c;
}

static void use(kernel_case *c, uint32_t index, const filch_view *view, filch_access_mode mode,
                uint64_t scale)
{
    c->views[index] = *view;
    c->modes[index] = mode;
    c->scale[index] = scale;
}

filch_call cases_call(const kernel_case *c, uint64_t lo, uint64_t hi, filch_view *views)
{
    for (uint32_t v = 0; v < c->kernel->view_count; v++) {
        views[v] = c->views[v];
        if (!c->kernel->is_batch || c->scale[v] == 0)
            continue;
        bool is_vector = views[v].cols == 1;
        uint64_t extent = is_vector ? views[v].rows : views[v].cols;
        uint64_t first = lo * c->scale[v];
        uint64_t last = hi * c->scale[v] + c->halo[v];
        first = first > c->halo[v] ? first - c->halo[v] : 0;
        last = last < extent ? last : extent;
        *(is_vector ? &views[v].row : &views[v].col) = first;
        *(is_vector ? &views[v].rows : &views[v].cols) = last - first;
        views[v].ptr =
            (char *)views[v].ptr + first * (is_vector ? 1 : views[v].ld) * views[v].element;
    }
    return (filch_call){.views = views,
                        .view_count = c->kernel->view_count,
                        .team = 1,
                        .args = c->args,
                        .lo = lo,
                        .hi = hi};
}

/* Whether a result is what is expected: within `most` in the lower triangle or everywhere, and
 * untouched elsewhere. */
static void compare(bench *b, const char *what, const filch_view *result, const filch_view *before,
                    const long double *expected, bool is_lower, double most)
{
    double worst = 0;
    uint64_t rows = result->rows;
    for (uint64_t j = 0; j < result->cols; j++)
        for (uint64_t i = 0; i < result->ld; i++) {
            bool is_written = i < rows && (!is_lower || i >= j);
            double exact = is_written ? (double)expected[i + j * rows] : get(before, i, j);
            double off = fabs(get(result, i, j) - exact);
            if (!is_written && off > 0) {
                complain(b, what, "%ju x %ju: wrote (%ju, %ju)", (uintmax_t)rows,
                         (uintmax_t)result->cols, (uintmax_t)i, (uintmax_t)j);
                return;
            }
            if (is_written && !(off <= worst))
                worst = off;
        }
    if (!(worst <= most))
        complain(b, what, "%ju x %ju, ld %ju: off by %.3g, allowed %.3g", (uintmax_t)rows,
                 (uintmax_t)result->cols, (uintmax_t)result->ld, worst, most);
}

static void expect_code(bench *b, const char *what, int code, int expected)
{
    if (code != expected)
        complain(b, what, "code %d, not %d", code, expected);
}

static long double *numbers(uint64_t count)
{
    long double *made = calloc(count ? count : 1, sizeof *made);
    if (!made)
        abort();
    return made;
}

/* op(x)(i, k) */
static double element(const filch_view *x, uint32_t is_transposed, uint64_t i, uint64_t k)
{
    return is_transposed ? get(x, k, i) : get(x, i, k);
}

static void test_gemm(bench *b, uint64_t m, uint64_t n, uint64_t k, uint32_t variant)
{
    const filch_gemm_args args = {variant & 4 ? -1 : 0.75, variant & 8 ? 0 : -1.5, variant & 1,
                                  variant >> 1 & 1};
    uint64_t gap = variant % 3;
    filch_view a = args.transpose_a ? make(b, k, m, gap) : make(b, m, k, gap);
    filch_view y = args.transpose_b ? make(b, n, k, gap + 1) : make(b, k, n, gap + 1);
    filch_view c = make(b, m, n, gap + 2);
    if (args.beta == 0)
        set(&c, m / 2, n / 2, NAN); /* not read */
    filch_view before = copy(&c);
    long double *expected = numbers(m * n);
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = 0; i < m; i++) {
            long double sum = 0;
            for (uint64_t p = 0; p < k; p++)
                sum += (long double)element(&a, args.transpose_a, i, p) *
                       element(&y, args.transpose_b, p, j);
            expected[i + j * m] =
                args.alpha * sum + (args.beta == 0 ? 0 : args.beta * (long double)get(&c, i, j));
        }
    kernel_case t = begin(b, "gemm", &args);
    use(&t, 0, &a, FILCH_READ, 0);
    use(&t, 1, &y, FILCH_READ, 0);
    use(&t, 2, &c, FILCH_READWRITE, 0);
    expect_code(b, "gemm", b->run(&t, b->user), 0);
    compare(b, "gemm", &c, &before, expected, false, ROUNDOFFS * b->unit * ((double)k + 4));
    drop(&a);
    drop(&y);
    drop(&c);
    drop(&before);
    free(expected);
}

static void test_syrk(bench *b, uint64_t n, uint64_t k, uint32_t variant)
{
    const filch_syrk_args args = {variant & 2 ? 0.5 : -1, variant & 4 ? 0 : 1, variant & 1, 0};
    filch_view a = args.transpose ? make(b, k, n, variant % 3) : make(b, n, k, variant % 3);
    filch_view c = make(b, n, n, variant % 2);
    filch_view before = copy(&c);
    long double *expected = numbers(n * n);
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = j; i < n; i++) {
            long double sum = 0;
            for (uint64_t p = 0; p < k; p++)
                sum += (long double)element(&a, args.transpose, i, p) *
                       element(&a, args.transpose, j, p);
            expected[i + j * n] = args.alpha * sum + args.beta * (long double)get(&c, i, j);
        }
    kernel_case t = begin(b, "syrk", &args);
    use(&t, 0, &a, FILCH_READ, 0);
    use(&t, 1, &c, FILCH_READWRITE, 0);
    expect_code(b, "syrk", b->run(&t, b->user), 0);
    compare(b, "syrk", &c, &before, expected, true, ROUNDOFFS * b->unit * ((double)k + 4));
    drop(&a);
    drop(&c);
    drop(&before);
    free(expected);
}

/* A well-conditioned triangle: its solutions are as exact as they can be. */
static void test_trsm(bench *b, uint64_t m, uint64_t n, uint64_t gap)
{
    filch_view l = make(b, n, n, gap);
    filch_view a = make(b, m, n, gap + 1);
    for (uint64_t j = 0; j < n; j++) {
        for (uint64_t i = 0; i < n; i++)
            set(&l, i, j, i < j ? NAN : get(&l, i, j) / (double)n);
        set(&l, j, j, 1 + fl_random_unit(&b->random));
    }
    filch_view before = copy(&a);
    long double *expected = numbers(m * n);
    for (uint64_t i = 0; i < m; i++)
        for (uint64_t j = 0; j < n; j++) {
            long double x = get(&a, i, j);
            for (uint64_t p = 0; p < j; p++)
                x -= expected[i + p * m] * get(&l, j, p);
            expected[i + j * m] = x / get(&l, j, j);
        }
    kernel_case t = begin(b, "trsm", NULL);
    use(&t, 0, &l, FILCH_READ, 0);
    use(&t, 1, &a, FILCH_READWRITE, 0);
    expect_code(b, "trsm", b->run(&t, b->user), 0);
    compare(b, "trsm", &a, &before, expected, false, ROUNDOFFS * b->unit * ((double)n + 4));
    drop(&l);
    drop(&a);
    drop(&before);
    free(expected);
}

enum potrf { POTRF, FACTORED, INVERTED };

/* W := L^-1, as it should be, against the inverse of the expected factor. */
static void expect_inverse(bench *b, const filch_view *w, const long double *l, uint64_t n)
{
    long double *x = numbers(n);
    double worst = 0;
    for (uint64_t j = 0; j < n; j++) {
        for (uint64_t i = 0; i < n; i++)
            x[i] = i == j;
        for (uint64_t k = j; k < n; k++) {
            x[k] /= l[k + k * n];
            for (uint64_t i = k + 1; i < n; i++)
                x[i] -= x[k] * l[i + k * n];
        }
        for (uint64_t i = 0; i < n; i++) {
            double off = fabs((double)(get(w, i, j) - x[i]));
            worst = !(off <= worst) ? off : worst;
            if (i < j && get(w, i, j) != 0)
                complain(b, "potrf_trtri", "the inverse is not 0 above the diagonal");
        }
    }
    /* The diagonal dominates: elements of the inverse are at most 1. */
    if (!(worst <= ROUNDOFFS * b->unit * ((double)n + 4)))
        complain(b, "potrf_trtri", "the inverse is wrong");
    free(x);
}

/* The factor of a dominant matrix, and its inverse if that is wanted; `bad` is the row whose pivot
 * is made to fail, from 1. */
static void test_potrf(bench *b, enum potrf which, uint64_t n, uint64_t gap, uint64_t bad)
{
    const char *kernel = which == POTRF ? "potrf" : "potrf_trtri";
    const filch_potrf_trtri_args args = {.inverts = which == INVERTED};
    bool has_state = which != POTRF;
    filch_view a = make(b, n, n, gap);
    filch_view w = make(b, n + gap, which == FACTORED && n > 64 ? 64 : n, gap);
    int32_t info[FILCH_POTRF_TRTRI_STATE(800)] = {0};
    uint64_t words = has_state ? FILCH_POTRF_TRTRI_STATE(n) : 1;
    filch_view told = {info, words, 1, words, 0, 0, sizeof *info};
    for (uint64_t j = 0; j < n; j++) {
        for (uint64_t i = 0; i < j; i++)
            set(&a, i, j, NAN);
        set(&a, j, j, j + 1 == bad ? (bad % 2 ? -1 : NAN) : (double)n + get(&a, j, j));
    }
    filch_view before = copy(&a);
    long double *expected = numbers(n * n);
    for (uint64_t j = 0; j < n; j++)
        for (uint64_t i = j; i < n; i++) {
            long double x = get(&a, i, j);
            for (uint64_t p = 0; p < j; p++)
                x -= expected[i + p * n] * expected[j + p * n];
            expected[i + j * n] = i == j ? sqrtl(x) : x / expected[j + j * n];
        }
    kernel_case t = begin(b, kernel, has_state ? &args : NULL);
    use(&t, 0, &a, FILCH_READWRITE, 0);
    use(&t, 1, &told, FILCH_READWRITE, 0);
    if (has_state)
        use(&t, 2, &w, FILCH_WRITE, 0);
    int code = b->run(&t, b->user);
    if (bad == 0) {
        for (uint64_t j = 0; j < n; j++) /* not a number is no number that compares */
            for (uint64_t i = 0; i < j; i++) {
                if (!isnan(get(&a, i, j)))
                    complain(b, kernel, "wrote above the diagonal");
                set(&a, i, j, 0);
                set(&before, i, j, 0);
            }
        expect_code(b, kernel, code, 0);
        expect_code(b, kernel, info[0], 0);
        compare(b, kernel, &a, &before, expected, true, ROUNDOFFS * b->unit * ((double)n + 4));
    } else {
        if (code != 0) /* a kernel cannot fail */
            expect_code(b, kernel, code, (int)bad);
        expect_code(b, kernel, info[0], (int)bad);
        filch_view left = copy(&a);
        (void)b->run(&t, b->user);
        if (info[0] != (int)bad || memcmp(left.ptr, a.ptr, bytes_of(&a)) != 0)
            complain(b, kernel, "did something after a failure");
        drop(&left);
    }
    for (uint64_t k = 1; k < words; k++)
        if (info[k] != 0)
            complain(b, kernel, "left words of its state");
    if (args.inverts && bad == 0)
        expect_inverse(b, &w, expected, n);
    drop(&a);
    drop(&w);
    drop(&before);
    free(expected);
}

/* A case whose written views must have the bits that the host function gives on one chunk. */
static void expect_same_bits(bench *b, const char *what, kernel_case *t)
{
    kernel_case host = *t;
    filch_view views[CASE_VIEWS];
    for (uint32_t v = 0; v < t->kernel->view_count; v++)
        host.views[v] = copy(&t->views[v]);
    filch_call call = cases_call(&host, 0, t->items, views);
    expect_code(b, what, t->kernel->host(&call), 0);
    expect_code(b, what, b->run(t, b->user), 0);
    for (uint32_t v = 0; v < t->kernel->view_count; v++) {
        if (memcmp(host.views[v].ptr, t->views[v].ptr, bytes_of(&t->views[v])) != 0)
            complain(b, what, "view %u is not what the host computes, %ju items", v,
                     (uintmax_t)t->items);
        drop(&host.views[v]);
    }
}

static void test_axpy(bench *b, uint64_t n)
{
    const filch_axpy_args args = {-0.7};
    filch_view x = make(b, n, 1, 0);
    filch_view y = make(b, n, 1, 0);
    filch_view before = copy(&y);
    long double *expected = numbers(n);
    kernel_case t = begin(b, "axpy", &args);
    for (uint64_t k = 0; k < n; k++)
        expected[k] = (long double)get(&y, k, 0) + args.alpha * get(&x, k, 0);
    t.items = n;
    use(&t, 0, &x, FILCH_READ, 1);
    use(&t, 1, &y, FILCH_READWRITE, 1);
    expect_same_bits(b, "axpy", &t);
    compare(b, "axpy", &y, &before, expected, false, ROUNDOFFS * b->unit);
    drop(&x);
    drop(&y);
    drop(&before);
    free(expected);
}

static void test_sums(bench *b, bool is_dot, uint64_t n, uint64_t piece)
{
    const char *name = is_dot ? "dot" : "reduce";
    const filch_sums_args args = {piece};
    uint64_t items = (n - 1) / piece + 1;
    filch_view x = make(b, n, 1, 0);
    filch_view y = make(b, n, 1, 0);
    filch_view sums = make(b, items, 1, 0);
    filch_view before = copy(&sums);
    long double *expected = numbers(items);
    kernel_case t = begin(b, name, &args);
    for (uint64_t k = 0; k < n; k++)
        expected[k / piece] += (long double)get(&x, k, 0) * (is_dot ? get(&y, k, 0) : 1);
    t.items = items;
    use(&t, 0, &x, FILCH_READ, piece);
    if (is_dot)
        use(&t, 1, &y, FILCH_READ, piece);
    use(&t, is_dot ? 2 : 1, &sums, FILCH_WRITE, 1);
    expect_same_bits(b, name, &t);
    compare(b, name, &sums, &before, expected, false,
            b->unit * (double)(piece / 256 + 10) * (double)piece);
    drop(&x);
    drop(&y);
    drop(&sums);
    drop(&before);
    free(expected);
}

static void test_jacobi(bench *b, uint64_t rows, uint64_t cols, uint64_t gap)
{
    filch_view u = make(b, rows, cols, gap);
    filch_view f = make(b, rows, cols, 0);
    filch_view to = make(b, rows, cols, gap + 1);
    filch_view before = copy(&to);
    long double *expected = numbers(rows * cols);
    for (uint64_t j = 0; j < cols; j++)
        for (uint64_t i = 0; i < rows; i++) {
            bool is_edge = i == 0 || j == 0 || i + 1 == rows || j + 1 == cols;
            expected[i + j * rows] = is_edge
                                         ? get(&u, i, j)
                                         : ((long double)get(&u, i - 1, j) + get(&u, i + 1, j) +
                                            get(&u, i, j - 1) + get(&u, i, j + 1) + get(&f, i, j)) /
                                               4;
        }
    kernel_case t = begin(b, "jacobi", NULL);
    t.items = cols;
    use(&t, 0, &u, FILCH_READ, 1);
    use(&t, 1, &f, FILCH_READ, 1);
    use(&t, 2, &to, FILCH_WRITE, 1);
    t.halo[0] = 1;
    expect_same_bits(b, "jacobi", &t);
    compare(b, "jacobi", &to, &before, expected, false, ROUNDOFFS * b->unit);
    drop(&u);
    drop(&f);
    drop(&to);
    drop(&before);
    free(expected);
}

static void expect_step(const filch_view *at, const filch_view *speed, const filch_nbody_args *args,
                        long double *faster, long double *moved)
{
    for (uint64_t i = 0; i < at->cols; i++) {
        long double pull[3] = {0};
        for (uint64_t k = 0; k < at->cols; k++) {
            long double r2 = (long double)args->softening * args->softening;
            for (uint64_t d = 0; d < 3; d++)
                r2 += powl((long double)get(at, d, k) - get(at, d, i), 2);
            for (uint64_t d = 0; d < 3; d++)
                pull[d] +=
                    get(at, 3, k) * ((long double)get(at, d, k) - get(at, d, i)) / (r2 * sqrtl(r2));
        }
        for (uint64_t d = 0; d < 3; d++) {
            faster[i * 3 + d] = get(speed, d, i) + args->step * pull[d];
            moved[i * 4 + d] = get(at, d, i) + args->step * faster[i * 3 + d];
        }
        moved[i * 4 + 3] = get(at, 3, i);
    }
}

static void test_nbody(bench *b, uint64_t n)
{
    const filch_nbody_args args = {0.01, 0.1};
    filch_view at = make(b, 4, n, 1);
    filch_view speed = make(b, 3, n, 1);
    filch_view moved = make(b, 4, n, 0);
    filch_view speed_before = copy(&speed);
    filch_view moved_before = copy(&moved);
    long double *faster = numbers(3 * n);
    long double *to = numbers(4 * n);
    expect_step(&at, &speed, &args, faster, to);
    kernel_case t = begin(b, "nbody", &args);
    t.items = n;
    use(&t, 0, &at, FILCH_READ, 0);
    use(&t, 1, &speed, FILCH_READWRITE, 1);
    use(&t, 2, &moved, FILCH_WRITE, 1);
    expect_code(b, "nbody", b->run(&t, b->user), 0);
    /* A pull is at most 1 / softening². */
    double most = ROUNDOFFS * b->unit * (2 + args.step * 100 * (double)n);
    compare(b, "nbody, speed", &speed, &speed_before, faster, false, most);
    compare(b, "nbody, moved", &moved, &moved_before, to, false, most);
    drop(&at);
    drop(&speed);
    drop(&moved);
    drop(&speed_before);
    drop(&moved_before);
    free(faster);
    free(to);
}

static void test_mandelbrot(bench *b, uint64_t width, uint64_t rows)
{
    const filch_mandelbrot_args args = {-2.1, 0.7, -1.4, 1.4, rows, 300, 0};
    filch_view pixels = {calloc(width * rows, 2), width, rows, width, 0, 0, 2};
    kernel_case t = {.kernel = filch_kernel_find("mandelbrot"), .args = &args, .items = rows};
    if (!pixels.ptr || !t.kernel)
        abort();
    use(&t, 0, &pixels, FILCH_WRITE, 1);
    expect_same_bits(b, "mandelbrot", &t);
    /* Points of which one knows: the middle of the cardioid, and outside of the circle. */
    const uint16_t *k = pixels.ptr;
    uint64_t inside = (uint64_t)(1.9 / 2.8 * (double)width) + rows / 2 * width;
    if (k[inside] != args.limit || k[0] > 3)
        complain(b, "mandelbrot", "%u iterations in the middle, %u in the corner", k[inside], k[0]);
    free(pixels.ptr);
}

/* A view that does not fit fails, rather than being read beyond its end. */
static void test_misfits(bench *b)
{
    filch_view a = make(b, 4, 3, 0);
    filch_view c = make(b, 4, 4, 0);
    const filch_gemm_args gemm = {1, 1, 0, 0};
    const filch_syrk_args syrk = {1, 1, 1, 0};
    kernel_case t = begin(b, "gemm", &gemm);
    use(&t, 0, &a, FILCH_READ, 0);
    use(&t, 1, &a, FILCH_READ, 0);
    use(&t, 2, &c, FILCH_READWRITE, 0);
    expect_code(b, "gemm, misfit", b->run(&t, b->user), FILCH_KERNEL_MISFIT);
    t = begin(b, "syrk", &syrk);
    use(&t, 0, &a, FILCH_READ, 0);
    use(&t, 1, &c, FILCH_READWRITE, 0);
    expect_code(b, "syrk, misfit", b->run(&t, b->user), FILCH_KERNEL_MISFIT);
    t = begin(b, "trsm", NULL);
    use(&t, 0, &a, FILCH_READ, 0);
    use(&t, 1, &c, FILCH_READWRITE, 0);
    expect_code(b, "trsm, misfit", b->run(&t, b->user), FILCH_KERNEL_MISFIT);
    t = begin(b, "potrf", NULL);
    use(&t, 0, &c, FILCH_READWRITE, 0);
    use(&t, 1, &a, FILCH_READWRITE, 0); /* no int32_t, or no single one */
    t.views[1].element = 8;
    t.views[1].cols = b->element == 8 ? 3 : 1;
    expect_code(b, "potrf, misfit", b->run(&t, b->user), FILCH_KERNEL_MISFIT);
    int32_t few[FILCH_POTRF_TRTRI_STATE(1) - 1] = {0};
    filch_view state = {few, FILCH_POTRF_TRTRI_STATE(1) - 1, 1, 8, 0, 0, sizeof *few};
    const filch_potrf_trtri_args inverse = {.inverts = true};
    t = begin(b, "potrf_trtri", &inverse);
    use(&t, 0, &c, FILCH_READWRITE, 0);
    use(&t, 1, &state, FILCH_READWRITE, 0); /* not enough words */
    use(&t, 2, &c, FILCH_WRITE, 0);
    expect_code(b, "potrf_trtri, misfit", b->run(&t, b->user), FILCH_KERNEL_MISFIT);
    drop(&a);
    drop(&c);
}

static void test_precision(bench *b)
{
    static const uint64_t shapes[][3] = {{1, 1, 1},    {5, 3, 7},     {64, 64, 64},
                                         {65, 33, 67}, {130, 131, 9}, {31, 200, 40}};
    static const uint64_t orders[] = {1, 5, 31, 32, 33, 64, 97, 150};
    for (uint32_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
        for (uint32_t variant = 0; variant < 16; variant += k < 2 ? 1 : 3)
            test_gemm(b, shapes[k][0], shapes[k][1], shapes[k][2], variant);
    test_gemm(b, 1300, 1290, 21, 2); /* enough for large blocks, */
    for (uint32_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        uint64_t n = orders[k];
        for (uint32_t variant = 0; variant < 8; variant++)
            test_syrk(b, n, orders[(k + variant) % 8], variant);
        for (uint32_t m = 0; m < sizeof orders / sizeof *orders; m += 2)
            test_trsm(b, orders[m], n, k % 3);
        for (int which = POTRF; which <= INVERTED; which++) {
            test_potrf(b, (enum potrf)which, n, k % 3, 0);
            test_potrf(b, (enum potrf)which, n, k % 3, 1);
            test_potrf(b, (enum potrf)which, n, k % 3, n);
            test_potrf(b, (enum potrf)which, n, k % 3, n / 2 + 1);
        }
    }
    test_syrk(b, 2900, 3, 0); /* and here */
    test_potrf(b, POTRF, 700, 3, 0);
    test_potrf(b, FACTORED, 700, 3, 0);
    test_potrf(b, INVERTED, 700, 2, 0);
    test_trsm(b, 100, 300, 0);
    for (uint32_t k = 0; k < sizeof orders / sizeof *orders; k++) {
        uint64_t n = orders[k];
        test_axpy(b, n * n);
        test_nbody(b, n * 3);
        test_jacobi(b, n, 1 + orders[(k + 3) % 8], k % 3);
        const uint64_t pieces[] = {1 + n * n / 7, 300, 7000, 1 + n * n / 40};
        for (uint32_t p = 0; p < sizeof pieces / sizeof *pieces; p++)
            test_sums(b, (k + p) % 2 == 0, n * n, pieces[p]);
    }
    test_misfits(b);
}

int cases_run(kernel_runner run, void *user)
{
    bench b = {.run = run, .user = user, .suffix = "f64", .element = 8, .unit = 0x1p-53};
    fl_random_init(&b.random, 1, 0);
    test_precision(&b);
    test_mandelbrot(&b, 61, 47);
    test_mandelbrot(&b, 16, 100);
    b.suffix = "f32";
    b.element = 4;
    b.unit = 0x1p-24;
    test_precision(&b);
    return b.wrong;
}
