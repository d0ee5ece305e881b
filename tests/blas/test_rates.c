/* SPDX-License-Identifier: Apache-2.0 */
/* Predictions of the drop-in: guesses, then what was measured; routines and precisions apart. */
#include "kernels/blas/rates.h"

#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

static fl_blas_call product(int64_t n)
{
    return (fl_blas_call){.routine = FL_BLAS_GEMM,
                          .transa = 'N',
                          .transb = 'N',
                          .m = n,
                          .n = n,
                          .k = n,
                          .lda = n,
                          .ldb = n,
                          .ldc = n,
                          .alpha = 1};
}

/* A large call is better off on a GPU than on a few cores, and a small one is not. */
static void guesses_favour_large_calls(void **state)
{
    fl_blas_call large = product(16384), small = product(128);
    (void)state;
    assert_true(fl_rates_filch(&small) > fl_rates_next(&small));
    fl_rates_note_next(&large, fl_call_flops(&large) / 200e9);
    assert_true(fl_rates_filch(&large) < fl_rates_next(&large));
}

static void times_replace_guesses(void **state)
{
    fl_blas_call call = product(4000), other = product(2000);
    (void)state;
    call.is_single = other.is_single = true;
    fl_rates_note_next(&call, 2);
    assert_true(fabs(fl_rates_next(&call) - 2) < 1e-9);
    assert_true(fabs(fl_rates_next(&other) - 0.25) < 1e-9);
    double guess = fl_rates_filch(&other);
    fl_rates_note_filch(&call, 100 * fl_rates_filch(&call));
    assert_true(fl_rates_filch(&other) == guess); /* the first is not counted */
    fl_rates_note_filch(&call, 8 * fl_rates_filch(&call));
    double slow = fl_rates_filch(&other);
    assert_true(fabs(slow / guess - 8) < 1e-9);
    fl_rates_note_filch(&call, 0.125 * fl_rates_filch(&call));
    /* A new time counts a quarter. */
    assert_true(fabs(fl_rates_filch(&other) / slow - (0.75 + 0.25 * 0.125)) < 1e-9);
}

/* A call that was slow once, for whatever reason, is tried again. */
static void factors_fade(void **state)
{
    fl_blas_call call = product(6000);
    int refused = 0;
    (void)state;
    call.routine = FL_BLAS_SYMM;
    call.side = 'L';
    fl_rates_note_next(&call, 1);
    fl_rates_note_filch(&call, 1);
    fl_rates_note_filch(&call, 20);
    for (; fl_rates_filch(&call) > fl_rates_next(&call) && refused < 1000; refused++)
        fl_rates_fade(&call);
    assert_in_range(refused, 250, 350);
}

static void routines_and_precisions_are_apart(void **state)
{
    fl_blas_call call = product(1000), solve = call;
    (void)state;
    solve.routine = FL_BLAS_TRSM;
    solve.side = 'L';
    double before = fl_rates_next(&solve);
    fl_rates_note_next(&call, 100);
    assert_true(fl_rates_next(&solve) == before);
}

/* The same extents give the flops of LAPACK Working Note 41 and the bytes of the operands. */
static void calls_have_flops_and_bytes(void **state)
{
    fl_blas_call call = product(100);
    (void)state;
    assert_true(fl_call_flops(&call) == 2e6);
    assert_true(fl_call_bytes(&call) == 3 * 8e4);
    call.beta = 1;
    assert_true(fl_call_bytes(&call) == 4 * 8e4);
    call.routine = FL_BLAS_POTRF;
    assert_true(fabs(fl_call_flops(&call) - 1e6 / 3) < 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guesses_favour_large_calls), cmocka_unit_test(times_replace_guesses),
        cmocka_unit_test(factors_fade), cmocka_unit_test(routines_and_precisions_are_apart),
        cmocka_unit_test(calls_have_flops_and_bytes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
