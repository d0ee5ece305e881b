/* SPDX-License-Identifier: Apache-2.0 */
/* BLAS's routines, for a file that has defined REAL and P(name). */
#include "client_matrix.h"

/* Names of Fortran and of CBLAS. */
#define f_gemm P(, gemm_)
#define c_gemm P(cblas_, gemm)
#define f_symm P(, symm_)
#define c_symm P(cblas_, symm)
#define f_syrk P(, syrk_)
#define c_syrk P(cblas_, syrk)
#define f_trmm P(, trmm_)
#define c_trmm P(cblas_, trmm)
#define f_trsm P(, trsm_)
#define c_trsm P(cblas_, trsm)

void f_gemm(const char *, const char *, const int *, const int *, const int *, const REAL *,
            const REAL *, const int *, const REAL *, const int *, const REAL *, REAL *, const int *,
            size_t, size_t);
void f_symm(const char *, const char *, const int *, const int *, const REAL *, const REAL *,
            const int *, const REAL *, const int *, const REAL *, REAL *, const int *, size_t,
            size_t);
void f_syrk(const char *, const char *, const int *, const int *, const REAL *, const REAL *,
            const int *, const REAL *, REAL *, const int *, size_t, size_t);
void f_trmm(const char *, const char *, const char *, const char *, const int *, const int *,
            const REAL *, const REAL *, const int *, REAL *, const int *, size_t, size_t, size_t,
            size_t);
void f_trsm(const char *, const char *, const char *, const char *, const int *, const int *,
            const REAL *, const REAL *, const int *, REAL *, const int *, size_t, size_t, size_t,
            size_t);

static const REAL factors[] = {0, 1, -1, (REAL)0.7};

static REAL factor(void)
{
    return factors[client_pick(4)];
}

static void check_product(const char *text, const matrix *c, const matrix *before, double alpha,
                          double beta, char uplo, int k, double (*sum)(const void *, int, int),
                          const void *user)
{
    for (int j = 0; j < c->cols; j++)
        for (int i = 0; i < c->rows; i++) {
            double old = beta == 0 ? 0 : beta * (double)*at(before, i, j);
            double exact = (alpha == 0 ? 0 : alpha * sum(user, i, j)) + old;
            if (is_in(uplo, i, j) && !near((double)*at(c, i, j), exact, k, 4)) {
                client_wrong("%s: (%d, %d) is %g, not %g", text, i, j, (double)*at(c, i, j), exact);
                return;
            }
        }
    check_rest(text, c, before, uplo);
}

typedef struct pair {
    const matrix *a, *b;
    char ta, tb;
    int k;
} pair;

static double sum_pair(const void *user, int i, int j)
{
    const pair *p = user;
    double sum = 0;
    for (int l = 0; l < p->k; l++)
        sum += op(p->a, p->ta, i, l) * op(p->b, p->tb, l, j);
    return sum;
}

static void one_gemm(int form, char ta, char tb, int m, int n, int k, int is_square)
{
    matrix a = ta == 'N' ? make(m, k, form) : make(k, m, form);
    matrix b = is_square ? a : tb == 'N' ? make(k, n, form) : make(n, k, form);
    matrix c = make(m, n, form);
    REAL alpha = factor(), beta = factor();
    char text[128];
    if (beta == 0)
        for (int j = 0; j < n; j++)
            *at(&c, j % m, j) = (REAL)NAN;
    matrix before = copy(&c);
    snprintf(text, sizeof text, "%zu gemm form %d %c%c %d %d %d alpha %g beta %g", sizeof(REAL),
             form, ta, tb, m, n, k, (double)alpha, (double)beta);
    client_calls++;
    if (form == FORTRAN)
        f_gemm(letter(ta), letter(tb), &m, &n, &k, &alpha, a.p, &a.ld, b.p, &b.ld, &beta, c.p,
               &c.ld, 1, 1);
    else
        c_gemm(layout_of(form), c_trans(ta), c_trans(tb), m, n, k, alpha, a.p, a.ld, b.p, b.ld,
               beta, c.p, c.ld);
    const pair p = {&a, &b, ta, tb, k};
    check_product(text, &c, &before, (double)alpha, (double)beta, 0, k, sum_pair, &p);
    forget(&a);
    if (!is_square)
        forget(&b);
    forget(&c);
    forget(&before);
}

static void all_gemm(void)
{
    for (int form = 0; form < FORMS; form++)
        for (const char *ta = "NTC"; *ta; ta++)
            for (const char *tb = "NTC"; *tb; tb++)
                for (int round = 0; round < 4; round++)
                    one_gemm(form, *ta, *tb, client_size(), client_size(), client_size(), 0);
    /* A and B are one matrix. */
    for (int form = 0; form < FORMS; form++)
        for (const char *ta = "NT"; *ta; ta++)
            for (const char *tb = "NT"; *tb; tb++) {
                int n = client_largest();
                one_gemm(form, *ta, *tb, n, n, n, 1);
            }
}

static void one_symm(int form, char side, char uplo, int m, int n)
{
    int order = side == 'L' ? m : n;
    matrix a = make(order, order, form), b = make(m, n, form), c = make(m, n, form);
    matrix before, full;
    REAL alpha = factor(), beta = factor();
    char text[128];
    full = copy(&a);
    for (int j = 0; j < order; j++)
        for (int i = 0; i < order; i++)
            if (!is_in(uplo, i, j))
                *at(&full, i, j) = *at(&full, j, i);
    hide(&a, uplo, 'N');
    if (beta == 0)
        *at(&c, m / 2, n / 2) = (REAL)NAN;
    before = copy(&c);
    snprintf(text, sizeof text, "%zu symm form %d %c%c %d %d alpha %g beta %g", sizeof(REAL), form,
             side, uplo, m, n, (double)alpha, (double)beta);
    client_calls++;
    if (form == FORTRAN)
        f_symm(letter(side), letter(uplo), &m, &n, &alpha, a.p, &a.ld, b.p, &b.ld, &beta, c.p,
               &c.ld, 1, 1);
    else
        c_symm(layout_of(form), side == 'L' ? CblasLeft : CblasRight,
               uplo == 'L' ? CblasLower : CblasUpper, m, n, alpha, a.p, a.ld, b.p, b.ld, beta, c.p,
               c.ld);
    const pair p = side == 'L' ? (pair){&full, &b, 'N', 'N', m} : (pair){&b, &full, 'N', 'N', n};
    check_product(text, &c, &before, (double)alpha, (double)beta, 0, order, sum_pair, &p);
    forget(&a), forget(&b), forget(&c), forget(&before), forget(&full);
}

static void all_symm(void)
{
    for (int form = 0; form < FORMS; form++)
        for (const char *side = "LR"; *side; side++)
            for (const char *uplo = "LU"; *uplo; uplo++)
                for (int round = 0; round < 6; round++)
                    one_symm(form, *side, *uplo, client_size(), client_size());
}

static void one_syrk(int form, char uplo, char trans, int n, int k)
{
    matrix a = trans == 'N' ? make(n, k, form) : make(k, n, form), c = make(n, n, form), before;
    REAL alpha = factor(), beta = factor();
    char text[128];
    if (beta == 0)
        *at(&c, n / 2, n / 2) = (REAL)NAN;
    hide(&c, uplo, 'N');
    before = copy(&c);
    snprintf(text, sizeof text, "%zu syrk form %d %c%c %d %d alpha %g beta %g", sizeof(REAL), form,
             uplo, trans, n, k, (double)alpha, (double)beta);
    client_calls++;
    if (form == FORTRAN)
        f_syrk(letter(uplo), letter(trans), &n, &k, &alpha, a.p, &a.ld, &beta, c.p, &c.ld, 1, 1);
    else
        c_syrk(layout_of(form), uplo == 'L' ? CblasLower : CblasUpper, c_trans(trans), n, k, alpha,
               a.p, a.ld, beta, c.p, c.ld);
    const pair p = {&a, &a, trans, trans == 'N' ? 'T' : 'N', k};
    check_product(text, &c, &before, (double)alpha, (double)beta, uplo, k, sum_pair, &p);
    forget(&a), forget(&c), forget(&before);
}

static void all_syrk(void)
{
    for (int form = 0; form < FORMS; form++)
        for (const char *uplo = "LU"; *uplo; uplo++)
            for (const char *trans = "NTC"; *trans; trans++)
                for (int round = 0; round < 5; round++)
                    one_syrk(form, *uplo, *trans, client_size(), client_size());
}

/* A triangle whose inverse is as moderate as itself, and the full matrix of it. */
static matrix make_triangle(int order, int form, char uplo, char diag, matrix *full)
{
    matrix a = make(order, order, form);
    for (int j = 0; j < order; j++)
        for (int i = 0; i < order; i++)
            *at(&a, i, j) = i == j ? 1 + (REAL)fabs((double)number()) : *at(&a, i, j) / (REAL)order;
    *full = copy(&a);
    for (int j = 0; j < order; j++)
        for (int i = 0; i < order; i++)
            if (!is_in(uplo, i, j))
                *at(full, i, j) = 0;
            else if (i == j && diag == 'U')
                *at(full, i, j) = 1;
    hide(&a, uplo, diag);
    return a;
}

/* X := alpha op(A) B or alpha B op(A), or their solutions. */
static void one_triangle(int solves, int form, const char *options, int m, int n)
{
    char side = options[0], uplo = options[1], trans = options[2], diag = options[3], text[128];
    int order = side == 'L' ? m : n;
    matrix full, a = make_triangle(order, form, uplo, diag, &full);
    matrix b = make(m, n, form), before = copy(&b);
    REAL alpha = factor();
    snprintf(text, sizeof text, "%zu %s form %d %s %d %d alpha %g", sizeof(REAL),
             solves ? "trsm" : "trmm", form, options, m, n, (double)alpha);
    client_calls++;
    if (form == FORTRAN)
        (solves ? f_trsm : f_trmm)(letter(side), letter(uplo), letter(trans), letter(diag), &m, &n,
                                   &alpha, a.p, &a.ld, b.p, &b.ld, 1, 1, 1, 1);
    else
        (solves ? c_trsm : c_trmm)(layout_of(form), side == 'L' ? CblasLeft : CblasRight,
                                   uplo == 'L' ? CblasLower : CblasUpper, c_trans(trans),
                                   diag == 'U' ? CblasUnit : CblasNonUnit, m, n, alpha, a.p, a.ld,
                                   b.p, b.ld);
    /* A solution, multiplied, is alpha B. */
    const matrix *x = solves ? &b : &before, *y = solves ? &before : &b;
    const pair p = side == 'L' ? (pair){&full, x, trans, 'N', m} : (pair){x, &full, 'N', trans, n};
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            double sum = solves ? sum_pair(&p, i, j) : (double)alpha * sum_pair(&p, i, j);
            double value = solves ? (double)alpha * (double)*at(y, i, j) : (double)*at(y, i, j);
            if (!near(value, sum, order, 4)) {
                client_wrong("%s: (%d, %d) is %g, not %g", text, i, j, value, sum);
                i = m, j = n;
            }
        }
    check_rest(text, &b, &before, 0);
    forget(&a), forget(&b), forget(&before), forget(&full);
}

static void all_triangle(int solves)
{
    char options[5] = "";
    for (int form = 0; form < FORMS; form++)
        for (int k = 0; k < 24; k++)
            for (int round = 0; round < 3; round++) {
                options[0] = "LR"[k & 1];
                options[1] = "LU"[k >> 1 & 1];
                options[2] = "NTC"[(k >> 2) % 3];
                options[3] = "NU"[(k >> 2) / 3];
                one_triangle(solves, form, options, client_size(), client_size());
            }
}
