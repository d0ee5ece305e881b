/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/report.h"

#include "kernels/blas/settings.h"

#include <stdatomic.h>
#include <stdio.h>

enum { TAKEN, PASSED };

typedef struct row {
    atomic_ullong calls[2];
    atomic_ullong ns[2];
} row;

static row rows[FL_BLAS_ROUTINES][2]; /* double, single */

#define NAME_OF(p, real, name, NAME) [FL_BLAS_##NAME] = #name,
static const char *const names[] = {FL_BLAS_PRODUCTS(NAME_OF, , ) FL_BLAS_FACTORS(NAME_OF, , )
                                        FL_BLAS_WORKED(NAME_OF, , )};

static row copies[FL_BLAS_PRECISION_COUNT];
#define LETTER_OF(p, type, P) #p[0],
static const char letters[] = {FL_BLAS_PRECISIONS(LETTER_OF)};

static void note(row *r, int which, double seconds)
{
    atomic_fetch_add_explicit(&r->calls[which], 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&r->ns[which], (unsigned long long)(seconds * 1e9),
                              memory_order_relaxed);
}

void fl_report_taken(const fl_blas_call *call, double seconds)
{
    note(&rows[call->routine][call->is_single], TAKEN, seconds);
}

void fl_report_passed(const fl_blas_call *call, double seconds)
{
    note(&rows[call->routine][call->is_single], PASSED, seconds);
}

void fl_report_copy(fl_blas_precision precision, bool is_shared, double seconds)
{
    note(&copies[precision], is_shared ? TAKEN : PASSED, seconds);
}

static void print_row(const row *r, const char *name, char precision)
{
    unsigned long long taken = r->calls[TAKEN], passed = r->calls[PASSED];
    if (taken + passed > 0)
        (void)fprintf(stderr, "%c%-8s %10llu %10llu %12.3f %10llu %12.3f\n", precision, name,
                      taken + passed, taken, 1e-9 * (double)r->ns[TAKEN], passed,
                      1e-9 * (double)r->ns[PASSED]);
}

__attribute__((destructor)) static void print(void)
{
    if (!fl_settings()->reports)
        return;
    (void)fprintf(stderr, "%-9s %10s %10s %12s %10s %12s\n", "routine", "calls", "to filch", "s",
                  "to next", "s");
    for (int k = 0; k < FL_BLAS_ROUTINES; k++) {
        print_row(&rows[k][0], names[k], 'd');
        print_row(&rows[k][1], names[k], 's');
    }
    for (int k = 0; k < FL_BLAS_PRECISION_COUNT; k++)
        print_row(&copies[k], "copy", letters[k]);
}
