/* SPDX-License-Identifier: Apache-2.0 */
/* LAPACK's routines, for a file that has defined REAL and P(prefix, name). */
#include "client_matrix.h"

typedef lapack_int integer;

static double product(const matrix *a, const matrix *b, char ta, int i, int j, int k)
{
    double sum = 0;
    for (int l = 0; l < k; l++)
        sum += op(a, ta, i, l) * (double)*at(b, l, j);
    return sum;
}

/* op(A) X = B, to a residual as of a stable method: relative to X. */
static void check_solution(const char *text, const matrix *a, char ta, const matrix *x,
                           const matrix *b)
{
    double most = 1;
    for (int j = 0; j < x->cols; j++)
        for (int i = 0; i < x->rows; i++)
            most = fmax(most, fabs((double)*at(x, i, j)));
    for (int j = 0; j < x->cols; j++)
        for (int i = 0; i < x->rows; i++) {
            double sum = product(a, x, ta, i, j, x->rows);
            if (!near((double)*at(b, i, j), sum, x->rows, 32 * most)) {
                client_wrong("%s: (%d, %d) of A X is %g, not %g", text, i, j, sum,
                             (double)*at(b, i, j));
                return;
            }
        }
    check_rest(text, x, b, 0);
}

/* Symmetric, and positive definite by its diagonal. */
static matrix make_definite(int n, int form)
{
    matrix a = make(n, n, form);
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j; i++) {
            *at(&a, i, j) = i == j ? (REAL)n + 1 : *at(&a, i, j);
            *at(&a, j, i) = *at(&a, i, j);
        }
    return a;
}

static integer call_potrf(int form, char uplo, matrix *a)
{
    integer n = a->rows, ld = a->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, potrf)(letter(uplo), &n, a->p, &ld, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, potrf)(layout_of(form), *letter(uplo), n, a->p, ld);
    else
        info = P(LAPACKE_, potrf_work)(layout_of(form), *letter(uplo), n, a->p, ld);
    return info;
}

static integer call_potrs(int form, char uplo, const matrix *a, matrix *b)
{
    integer n = a->rows, nrhs = b->cols, lda = a->ld, ldb = b->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, potrs)(letter(uplo), &n, &nrhs, a->p, &lda, b->p, &ldb, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, potrs)(layout_of(form), uplo, n, nrhs, a->p, lda, b->p, ldb);
    else
        info = P(LAPACKE_, potrs_work)(layout_of(form), uplo, n, nrhs, a->p, lda, b->p, ldb);
    return info;
}

static void one_potrf(int form, char uplo, int n)
{
    matrix full = make_definite(n, form), a = copy(&full), b = make(n, client_size(), form);
    matrix before, x;
    char text[128];
    snprintf(text, sizeof text, "%zu potrf form %d %c %d", sizeof(REAL), form, uplo, n);
    hide(&a, uplo, 'N');
    before = copy(&a);
    integer info = call_potrf(form, uplo, &a);
    if (info != 0)
        client_wrong("%s: info is %d", text, (int)info);
    for (int j = 0; j < n; j++)
        for (int i = j; i < n; i++) {
            double sum = 0;
            for (int l = 0; l <= j; l++)
                sum += uplo == 'L' ? (double)*at(&a, i, l) * (double)*at(&a, j, l)
                                   : (double)*at(&a, l, i) * (double)*at(&a, l, j);
            if (!near((double)*at(&full, i, j), sum, n, 2 * n)) {
                client_wrong("%s: (%d, %d) of the product is %g, not %g", text, i, j, sum,
                             (double)*at(&full, i, j));
                i = j = n;
            }
        }
    check_rest(text, &a, &before, uplo);
    x = copy(&b);
    info = call_potrs(form, uplo, &a, &x);
    if (info != 0)
        client_wrong("%s: info of potrs is %d", text, (int)info);
    check_solution(text, &full, 'N', &x, &b);
    forget(&full), forget(&a), forget(&b), forget(&before), forget(&x);
}

/* The minor that is not positive is told. */
static void one_indefinite(int form, char uplo, int n)
{
    matrix a = make_definite(n, form);
    int at_row = client_pick(n);
    *at(&a, at_row, at_row) = -1;
    integer info = call_potrf(form, uplo, &a);
    if (info != at_row + 1)
        client_wrong("%zu potrf form %d %c %d: info is %d, not %d", sizeof(REAL), form, uplo, n,
                     (int)info, at_row + 1);
    forget(&a);
}

static void all_potrf(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (const char *uplo = "LU"; *uplo; uplo++)
            for (int round = 0; round < 4; round++) {
                one_potrf(form, *uplo, round ? client_size() : client_largest());
                one_indefinite(form, *uplo, client_size());
            }
}

static integer *make_pivots(int count)
{
    return calloc(count > 0 ? (size_t)count : 1, sizeof(integer));
}

/* P A = L U. */
static void check_lu(const char *text, const matrix *lu, const matrix *a, const integer *pivots)
{
    matrix p = copy(a);
    int least = a->rows < a->cols ? a->rows : a->cols;
    for (int k = 0; k < least; k++) {
        int with = pivots[k] - 1;
        if (with < k || with >= a->rows) {
            client_wrong("%s: pivot %d is %d", text, k, with + 1);
            break;
        }
        for (int j = 0; j < a->cols; j++) {
            REAL x = *at(&p, k, j);
            *at(&p, k, j) = *at(&p, with, j);
            *at(&p, with, j) = x;
        }
    }
    for (int j = 0; j < a->cols; j++)
        for (int i = 0; i < a->rows; i++) {
            double sum = 0;
            for (int l = 0; l < least && l <= i && l <= j; l++)
                sum += (l == i ? 1 : (double)*at(lu, i, l)) * (double)*at(lu, l, j);
            if (!near((double)*at(&p, i, j), sum, least, 20 + least)) {
                client_wrong("%s: (%d, %d) of L U is %g, not %g", text, i, j, sum,
                             (double)*at(&p, i, j));
                i = a->rows, j = a->cols;
            }
        }
    check_rest(text, lu, &p, 0);
    forget(&p);
}

static integer call_getrf(int form, matrix *a, integer *pivots)
{
    integer m = a->rows, n = a->cols, ld = a->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, getrf)(&m, &n, a->p, &ld, pivots, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, getrf)(layout_of(form), m, n, a->p, ld, pivots);
    else
        info = P(LAPACKE_, getrf_work)(layout_of(form), m, n, a->p, ld, pivots);
    return info;
}

static integer call_getrs(int form, char trans, const matrix *a, const integer *pivots, matrix *b)
{
    integer n = a->rows, nrhs = b->cols, lda = a->ld, ldb = b->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, getrs)(letter(trans), &n, &nrhs, a->p, &lda, pivots, b->p, &ldb, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, getrs)(layout_of(form), trans, n, nrhs, a->p, lda, pivots, b->p, ldb);
    else
        info =
            P(LAPACKE_, getrs_work)(layout_of(form), trans, n, nrhs, a->p, lda, pivots, b->p, ldb);
    return info;
}

static void make_dominant(const matrix *a)
{
    for (int j = 0; j < a->cols && j < a->rows; j++)
        *at(a, (j + 3) % a->rows, j) += 3;
}

static void one_getrf(int form, int m, int n)
{
    matrix a = make(m, n, form), lu, b, x;
    integer *pivots = make_pivots(m + n);
    char text[128];
    snprintf(text, sizeof text, "%zu getrf form %d %d %d", sizeof(REAL), form, m, n);
    make_dominant(&a);
    lu = copy(&a);
    integer info = call_getrf(form, &lu, pivots);
    if (info != 0)
        client_wrong("%s: info is %d", text, (int)info);
    check_lu(text, &lu, &a, pivots);
    for (const char *trans = "NTC"; *trans && m == n; trans++) {
        b = make(n, client_size(), form);
        x = copy(&b);
        info = call_getrs(form, *trans, &lu, pivots, &x);
        if (info != 0)
            client_wrong("%s: info of getrs is %d", text, (int)info);
        check_solution(text, &a, *trans, &x, &b);
        forget(&b), forget(&x);
    }
    forget(&a), forget(&lu);
    free(pivots);
}

static void one_singular(int form, int n)
{
    matrix a = make(n, n, form);
    integer *pivots = make_pivots(n);
    int zero = client_pick(n);
    for (int i = 0; i < n; i++)
        *at(&a, i, zero) = 0;
    integer info = call_getrf(form, &a, pivots);
    if (info != zero + 1)
        client_wrong("%zu getrf form %d %d: info is %d, not %d", sizeof(REAL), form, n, (int)info,
                     zero + 1);
    forget(&a);
    free(pivots);
}

static void all_getrf(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (int round = 0; round < 6; round++) {
            int n = round ? client_size() : client_largest();
            one_getrf(form, n, n);
            one_getrf(form, client_size(), client_size());
            one_singular(form, n);
        }
}

static integer call_geqrf(int form, matrix *a, REAL *tau)
{
    integer m = a->rows, n = a->cols, ld = a->ld, info = -99, count = -1;
    REAL size = 0;
    client_calls++;
    if (form == FORTRAN || form >= FORMS) {
        if (form == FORTRAN)
            P(LAPACK_, geqrf)(&m, &n, a->p, &ld, tau, &size, &count, &info);
        else
            info = P(LAPACKE_, geqrf_work)(layout_of(form), m, n, a->p, ld, tau, &size, -1);
        count = (integer)size;
        REAL *work = malloc((size_t)(count > 0 ? count : 1) * sizeof *work);
        if (info == 0 && form == FORTRAN)
            P(LAPACK_, geqrf)(&m, &n, a->p, &ld, tau, work, &count, &info);
        else if (info == 0)
            info = P(LAPACKE_, geqrf_work)(layout_of(form), m, n, a->p, ld, tau, work, count);
        if (info == 0 && !(work[0] >= 1 && work[0] >= (REAL)(form == FORTRAN ? n : 1)))
            client_wrong("%zu geqrf form %d: the best work space is %g", sizeof(REAL), form,
                         (double)work[0]);
        free(work);
    } else {
        info = P(LAPACKE_, geqrf)(layout_of(form), m, n, a->p, ld, tau);
    }
    return info;
}

/* Q R by the reflectors, from the last to the first, on R. */
static void check_qr(const char *text, const matrix *qr, const matrix *a, const REAL *tau)
{
    int m = a->rows, n = a->cols, least = m < n ? m : n;
    double *r = calloc((size_t)m * (size_t)n, sizeof *r);
    for (int j = 0; j < n; j++)
        for (int i = 0; i <= j && i < m; i++)
            r[j * m + i] = (double)*at(qr, i, j);
    for (int k = least - 1; k >= 0; k--)
        for (int j = 0; j < n; j++) {
            double sum = r[j * m + k];
            for (int i = k + 1; i < m; i++)
                sum += (double)*at(qr, i, k) * r[j * m + i];
            sum *= (double)tau[k];
            r[j * m + k] -= sum;
            for (int i = k + 1; i < m; i++)
                r[j * m + i] -= sum * (double)*at(qr, i, k);
        }
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++)
            if (!near((double)*at(a, i, j), r[j * m + i], m, 4 + m)) {
                client_wrong("%s: (%d, %d) of Q R is %g, not %g", text, i, j, r[j * m + i],
                             (double)*at(a, i, j));
                i = m, j = n;
            }
    check_rest(text, qr, a, 0);
    free(r);
}

static void one_geqrf(int form, int m, int n)
{
    matrix a = make(m, n, form), qr = copy(&a);
    REAL *tau = calloc((size_t)(m + n), sizeof *tau);
    char text[128];
    snprintf(text, sizeof text, "%zu geqrf form %d %d %d", sizeof(REAL), form, m, n);
    integer info = call_geqrf(form, &qr, tau);
    if (info != 0)
        client_wrong("%s: info is %d", text, (int)info);
    check_qr(text, &qr, &a, tau);
    forget(&a), forget(&qr);
    free(tau);
}

static void all_geqrf(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (int round = 0; round < 6; round++)
            one_geqrf(form, client_size(), round ? client_size() : client_largest());
}

#define work_ormqr P(LAPACKE_, ormqr_work)
#define work_gels P(LAPACKE_, gels_work)

static integer call_ormqr(int form, char side, char trans, const matrix *qr, int reflectors,
                          const REAL *tau, matrix *c)
{
    integer m = c->rows, n = c->cols, k = reflectors, lda = qr->ld, ldc = c->ld, info = -99;
    int layout = layout_of(form);
    const char *s = letter(side), *t = letter(trans);
    REAL size = 0, *a = qr->p, *work = &size;
    client_calls++;
    if (form == COLUMNS || form == ROWS)
        return P(LAPACKE_, ormqr)(layout, *s, *t, m, n, k, a, lda, tau, c->p, ldc);
    for (integer count = -1; count != 0; count = count < 0 && info == 0 ? (integer)size : 0) {
        if (count > 0)
            work = malloc((size_t)count * sizeof *work);
        if (form == FORTRAN)
            P(LAPACK_, ormqr)(s, t, &m, &n, &k, a, &lda, tau, c->p, &ldc, work, &count, &info);
        else
            info = work_ormqr(layout, *s, *t, m, n, k, a, lda, tau, c->p, ldc, work, count);
    }
    if (work != &size)
        free(work);
    return info;
}

/* C := H C, for reflector k of those in qr. */
static void reflect(const matrix *qr, const REAL *tau, int k, double *c, int m, int n)
{
    for (int j = 0; j < n; j++) {
        double sum = c[j * m + k];
        for (int i = k + 1; i < m; i++)
            sum += (double)*at(qr, i, k) * c[j * m + i];
        sum *= (double)tau[k];
        c[j * m + k] -= sum;
        for (int i = k + 1; i < m; i++)
            c[j * m + i] -= sum * (double)*at(qr, i, k);
    }
}

/* Q or Q' of the first k reflectors; from the right, on the transposed matrix. */
static void one_ormqr(int form, char side, char trans, int m, int n)
{
    int is_left = side == 'L', rows = is_left ? m : n, others = is_left ? n : m;
    int k = 1 + client_pick(rows);
    matrix qr = make(rows, k, form), c = make(m, n, form), before;
    REAL *tau = calloc((size_t)rows, sizeof *tau);
    double *exact = calloc((size_t)m * (size_t)n, sizeof *exact);
    char text[128];
    snprintf(text, sizeof text, "%zu ormqr form %d %c %c %d %d %d", sizeof(REAL), form, side, trans,
             m, n, k);
    if (call_geqrf(form, &qr, tau) != 0)
        client_wrong("%s: no factors", text);
    for (int j = 0; j < others; j++)
        for (int i = 0; i < rows; i++)
            exact[j * rows + i] = (double)(is_left ? *at(&c, i, j) : *at(&c, j, i));
    for (int l = 0; l < k; l++)
        reflect(&qr, tau, (trans == 'T') == is_left ? l : k - 1 - l, exact, rows, others);
    before = copy(&c);
    matrix kept = copy(&qr);
    integer info = call_ormqr(form, side, trans, &qr, k, tau, &c);
    if (info != 0)
        client_wrong("%s: info is %d", text, (int)info);
    for (int j = 0; j < others; j++)
        for (int i = 0; i < rows; i++) {
            double is = (double)(is_left ? *at(&c, i, j) : *at(&c, j, i));
            if (!near(is, exact[j * rows + i], rows, 4 + rows)) {
                client_wrong("%s: (%d, %d) is %g, not %g", text, i, j, is, exact[j * rows + i]);
                i = rows, j = others;
            }
        }
    check_rest(text, &c, &before, 0);
    check_rest(text, &qr, &kept, '0');
    forget(&qr), forget(&c), forget(&before), forget(&kept);
    free(tau);
    free(exact);
}

static void all_ormqr(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (const char *trans = "NT"; *trans; trans++)
            for (int round = 0; round < 3; round++) {
                one_ormqr(form, 'L', *trans, round ? client_size() : client_largest(),
                          client_size());
                one_ormqr(form, 'R', *trans, client_size(), client_size());
            }
}

static integer call_gels(int form, char trans, matrix *a, matrix *b)
{
    integer m = a->rows, n = a->cols, k = b->cols, lda = a->ld, ldb = b->ld, info = -99;
    int layout = layout_of(form);
    const char *t = letter(trans);
    REAL size = 0, *work = &size;
    client_calls++;
    if (form == COLUMNS || form == ROWS)
        return P(LAPACKE_, gels)(layout, *t, m, n, k, a->p, lda, b->p, ldb);
    for (integer count = -1; count != 0; count = count < 0 && info == 0 ? (integer)size : 0) {
        if (count > 0)
            work = malloc((size_t)count * sizeof *work);
        if (form == FORTRAN)
            P(LAPACK_, gels)(t, &m, &n, &k, a->p, &lda, b->p, &ldb, work, &count, &info);
        else
            info = work_gels(layout, *t, m, n, k, a->p, lda, b->p, ldb, work, count);
    }
    if (work != &size)
        free(work);
    return info;
}

/* op(A) X = B where there are as many equations as unknowns or fewer, and else A' (B - A X) = 0
 * with op(A) for A; the squares of what is left are told in the rows below X. */
static void check_squares(const char *text, const matrix *a, char trans, const matrix *x,
                          const matrix *b)
{
    int rows = trans == 'N' ? a->rows : a->cols, cols = trans == 'N' ? a->cols : a->rows;
    double *rest = calloc((size_t)rows, sizeof *rest);
    for (int j = 0; j < b->cols; j++) {
        double most = 1, square = 0, told = 0;
        for (int i = 0; i < cols; i++)
            most = fmax(most, fabs((double)*at(x, i, j)));
        for (int i = 0; i < rows; i++) {
            rest[i] = (double)*at(b, i, j) - product(a, x, trans, i, j, cols);
            square += rest[i] * rest[i];
            if (rows <= cols && !near(rest[i], 0, cols, 32 * most * (4 + cols)))
                client_wrong("%s: equation %d of side %d is left with %g", text, i, j, rest[i]);
        }
        for (int l = 0; rows > cols && l < cols; l++) {
            double sum = 0;
            for (int i = 0; i < rows; i++)
                sum += op(a, trans, i, l) * rest[i];
            if (!near(sum, 0, rows, 32 * most * (4 + rows)))
                client_wrong("%s: column %d is not orthogonal to what side %d leaves: %g", text, l,
                             j, sum);
        }
        for (int i = cols; i < rows; i++)
            told += (double)*at(x, i, j) * (double)*at(x, i, j);
        if (rows > cols && !near(sqrt(told), sqrt(square), rows, 32 * most * (4 + rows)))
            client_wrong("%s: side %d leaves %g, not %g", text, j, sqrt(told), sqrt(square));
    }
    free(rest);
}

/* Of fewer equations than unknowns the solution is a combination of A's columns. */
static void check_least(const char *text, const matrix *a, char trans, const matrix *x)
{
    int unknowns = trans == 'N' ? a->cols : a->rows, count = trans == 'N' ? a->rows : a->cols;
    matrix span = make(unknowns, count, COLUMNS), rest = make(unknowns, x->cols, COLUMNS);
    double most = 1;
    for (int j = 0; j < count; j++)
        for (int i = 0; i < unknowns; i++)
            *at(&span, i, j) = (REAL)op(a, trans, j, i);
    for (int j = 0; j < x->cols; j++)
        for (int i = 0; i < unknowns; i++) {
            *at(&rest, i, j) = *at(x, i, j);
            most = fmax(most, fabs((double)*at(x, i, j)));
        }
    if (call_gels(COLUMNS, 'N', &span, &rest) != 0)
        client_wrong("%s: no combination", text);
    for (int j = 0; j < x->cols; j++)
        for (int i = count; i < unknowns; i++)
            if (!near((double)*at(&rest, i, j), 0, unknowns, 32 * most * (4 + unknowns))) {
                client_wrong("%s: the solution of side %d is not the least", text, j);
                i = unknowns;
            }
    forget(&span), forget(&rest);
}

static void one_gels(int form, char trans, int m, int n)
{
    int rows = trans == 'N' ? m : n, cols = trans == 'N' ? n : m, most = m > n ? m : n;
    matrix a = make(m, n, form), b = make(most, client_size(), form), factors, x;
    char text[128];
    snprintf(text, sizeof text, "%zu gels form %d %c %d %d", sizeof(REAL), form, trans, m, n);
    make_dominant(&a);
    factors = copy(&a), x = copy(&b);
    integer info = call_gels(form, trans, &factors, &x);
    if (info != 0)
        client_wrong("%s: info is %d", text, (int)info);
    check_squares(text, &a, trans, &x, &b);
    if (rows < cols)
        check_least(text, &a, trans, &x);
    check_rest(text, &x, &b, 0);
    check_rest(text, &factors, &a, 0);
    forget(&a), forget(&b), forget(&factors), forget(&x);
}

/* A column of zeros among others: its number. All zeros: X is zero. All so small that LAPACK scales
 * them: X is finite. */
static void one_bad_gels(int form, int m, int n)
{
    matrix a = make(m, n, form), b = make(m, client_size(), form), x = copy(&b), zeros, tiny, y;
    int zero = client_pick(n);
    char text[128];
    snprintf(text, sizeof text, "%zu gels of bad matrices form %d %d %d", sizeof(REAL), form, m, n);
    make_dominant(&a);
    tiny = copy(&a), zeros = copy(&a), y = copy(&b);
    for (int j = 0; j < n; j++)
        for (int i = 0; i < m; i++) {
            *at(&zeros, i, j) = 0;
            *at(&tiny, i, j) = *at(&a, i, j) * (sizeof(REAL) == 8 ? (REAL)1e-300 : (REAL)1e-36);
            *at(&a, i, j) *= j != zero;
        }
    integer info = call_gels(form, 'N', &a, &x);
    if (info != (n > 1 ? zero + 1 : 0))
        client_wrong("%s: info is %d, not %d", text, (int)info, zero + 1);
    info = call_gels(form, 'N', &zeros, &y);
    for (int j = 0; j < y.cols; j++)
        for (int i = 0; i < n; i++)
            if (info != 0 || *at(&y, i, j) != 0)
                client_wrong("%s: of zeros, info %d, X is %g", text, (int)info,
                             (double)*at(&y, i, j));
    matrix z = copy(&b);
    for (size_t k = 0; k < elements(&z); k++)
        z.p[k] *= sizeof(REAL) == 8 ? (REAL)1e-300 : (REAL)1e-36;
    info = call_gels(form, 'N', &tiny, &z);
    for (int j = 0; j < z.cols; j++)
        for (int i = 0; i < n; i++)
            if (info != 0 || !isfinite((double)*at(&z, i, j)))
                client_wrong("%s: of tiny ones, info %d, X is %g", text, (int)info,
                             (double)*at(&z, i, j));
    forget(&a), forget(&b), forget(&x), forget(&zeros), forget(&tiny), forget(&y), forget(&z);
}

static void all_gels(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (int round = 0; round < 4; round++) {
            int m = round ? client_size() : client_largest(), n = client_size();
            for (const char *trans = "NT"; *trans; trans++)
                one_gels(form, *trans, m, n);
            one_bad_gels(form, m > n ? m : n, m > n ? n : m);
        }
}

static integer call_posv(int form, char uplo, matrix *a, matrix *x)
{
    integer n = a->rows, nrhs = x->cols, lda = a->ld, ldb = x->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, posv)(letter(uplo), &n, &nrhs, a->p, &lda, x->p, &ldb, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, posv)(layout_of(form), uplo, n, nrhs, a->p, lda, x->p, ldb);
    else
        info = P(LAPACKE_, posv_work)(layout_of(form), uplo, n, nrhs, a->p, lda, x->p, ldb);
    return info;
}

/* Of a matrix with `negative` in the diagonal, or of a definite one where that is -1. */
static void one_posv(int form, char uplo, int n, int negative)
{
    matrix full = make_definite(n, form), a, b = make(n, client_size(), form), x = copy(&b);
    char text[128];
    snprintf(text, sizeof text, "%zu posv form %d %c %d", sizeof(REAL), form, uplo, n);
    if (negative >= 0)
        *at(&full, negative, negative) = -1;
    a = copy(&full);
    hide(&a, uplo, 'N');
    integer info = call_posv(form, uplo, &a, &x);
    if (info != negative + 1)
        client_wrong("%s: info is %d, not %d", text, (int)info, negative + 1);
    if (negative < 0)
        check_solution(text, &full, 'N', &x, &b);
    else
        check_rest(text, &x, &b, '0');
    forget(&full), forget(&a), forget(&b), forget(&x);
}

static void all_posv(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (const char *uplo = "LU"; *uplo; uplo++)
            for (int round = 0; round < 3; round++) {
                int n = client_size();
                one_posv(form, *uplo, round ? client_size() : client_largest(), -1);
                one_posv(form, *uplo, n, client_pick(n));
            }
}

static integer call_gesv(int form, matrix *a, integer *pivots, matrix *x)
{
    integer n = a->rows, nrhs = x->cols, lda = a->ld, ldb = x->ld, info = -99;
    client_calls++;
    if (form == FORTRAN)
        P(LAPACK_, gesv)(&n, &nrhs, a->p, &lda, pivots, x->p, &ldb, &info);
    else if (form < FORMS)
        info = P(LAPACKE_, gesv)(layout_of(form), n, nrhs, a->p, lda, pivots, x->p, ldb);
    else
        info = P(LAPACKE_, gesv_work)(layout_of(form), n, nrhs, a->p, lda, pivots, x->p, ldb);
    return info;
}

/* Of a matrix with a column of zeros, or of a regular one where that is -1. */
static void one_gesv(int form, int n, int zero)
{
    matrix a = make(n, n, form), b = make(n, client_size(), form), lu, x = copy(&b);
    integer *pivots = make_pivots(n);
    char text[128];
    snprintf(text, sizeof text, "%zu gesv form %d %d", sizeof(REAL), form, n);
    make_dominant(&a);
    for (int i = 0; i < n && zero >= 0; i++)
        *at(&a, i, zero) = 0;
    lu = copy(&a);
    integer info = call_gesv(form, &lu, pivots, &x);
    if (info != zero + 1)
        client_wrong("%s: info is %d, not %d", text, (int)info, zero + 1);
    if (zero < 0) {
        check_lu(text, &lu, &a, pivots);
        check_solution(text, &a, 'N', &x, &b);
    } else {
        check_rest(text, &x, &b, '0');
    }
    forget(&a), forget(&lu), forget(&b), forget(&x);
    free(pivots);
}

static void all_gesv(void)
{
    for (int form = 0; form < LAPACK_FORMS; form++)
        for (int round = 0; round < 5; round++) {
            int n = client_size();
            one_gesv(form, round ? client_size() : client_largest(), -1);
            one_gesv(form, n, client_pick(n));
        }
}
