/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of what a call overwrites: they bring back every element of the outputs and no other one,
 * and their memory is used again. */
#include "kernels/blas/undo.h"

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <setjmp.h>

#include <cmocka.h>

/* Rows and columns whose copy is a block that is worth keeping, and the gap between columns. */
#define ROWS 600
#define COLS 700
#define GAP 3
#define LD (ROWS + GAP)

static double *make(void)
{
    double *matrix = malloc(sizeof *matrix * LD * COLS);
    assert_non_null(matrix);
    for (int k = 0; k < LD * COLS; k++)
        matrix[k] = k;
    return matrix;
}

static fl_blas_call product(double *c, int64_t cols)
{
    return (fl_blas_call){.routine = FL_BLAS_GEMM,
                          .transa = 'N',
                          .transb = 'N',
                          .m = ROWS,
                          .n = cols,
                          .k = 1,
                          .lda = ROWS,
                          .ldb = 1,
                          .c = c,
                          .ldc = LD,
                          .alpha = 1,
                          .beta = 1};
}

static void *begin(fl_undo *undo, fl_undo_memory *memory, double *matrix, int64_t cols)
{
    const fl_blas_call call = product(matrix, cols);
    assert_true(fl_undo_begin(undo, memory, &call));
    fl_undo_wait(undo);
    assert_true(fl_undo_has_copies(undo));
    return undo->copies[0];
}

/* Also from memory that holds an earlier copy. */
static void copies_bring_back_what_was_there(void **state)
{
    fl_undo_memory memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
    double *matrix = make();
    fl_undo undo;
    (void)state;
    for (int round = 0; round < 3; round++) {
        (void)begin(&undo, &memory, matrix, COLS - round);
        for (int k = 0; k < LD * COLS; k++)
            matrix[k] = -1;
        fl_undo_restore(&undo, 0);
        fl_undo_drop(&undo);
        for (int k = 0; k < LD * COLS; k++) {
            int is_output = k % LD < ROWS && k / LD < COLS - round;
            assert_true(matrix[k] == (is_output ? k : -1));
            matrix[k] = k;
        }
    }
    free(matrix);
    fl_undo_close(&memory);
}

static void memory_is_used_again(void **state)
{
    fl_undo_memory memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
    double *matrix = make();
    fl_undo one, other;
    (void)state;
    void *block = begin(&one, &memory, matrix, COLS);
    fl_undo_drop(&one);
    assert_ptr_equal(memory.block, block);
    /* Fewer columns fit; a second call at the same time has memory of its own. */
    assert_ptr_equal(begin(&one, &memory, matrix, COLS - 100), block);
    assert_null(memory.block);
    assert_ptr_not_equal(begin(&other, &memory, matrix, COLS), block);
    fl_undo_drop(&other);
    fl_undo_drop(&one);
    assert_non_null(memory.block);
    fl_undo_close(&memory);
    assert_null(memory.block);
    free(matrix);
}

/* The larger block stays, whichever comes back first; small ones do not. */
static void the_largest_block_is_kept(void **state)
{
    fl_undo_memory memory = {.lock = PTHREAD_MUTEX_INITIALIZER};
    double *matrix = make();
    fl_undo small, large, tiny;
    (void)state;
    (void)begin(&small, &memory, matrix, COLS / 2 + 100);
    void *block = begin(&large, &memory, matrix, COLS);
    (void)begin(&tiny, &memory, matrix, 1);
    fl_undo_drop(&tiny);
    assert_null(memory.block);
    fl_undo_drop(&large);
    assert_ptr_equal(memory.block, block);
    fl_undo_drop(&small);
    assert_ptr_equal(memory.block, block);
    fl_undo_close(&memory);
    free(matrix);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies_bring_back_what_was_there),
        cmocka_unit_test(memory_is_used_again),
        cmocka_unit_test(the_largest_block_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
