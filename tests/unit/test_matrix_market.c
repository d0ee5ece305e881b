/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "problems/matrix_market.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COORDINATE "%%MatrixMarket matrix coordinate real general\n"
#define SYMMETRIC "%%MatrixMarket matrix coordinate real symmetric\n"
#define ARRAY "%%MatrixMarket matrix array real general\n"

static void read_sized(const char *text, size_t length, bench_matrix_need need,
                       bench_matrix *matrix)
{
    filch_error error = FILCH_ERROR_INIT;
    /* An exact copy, so that a sanitizer sees a read past the end. */
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    filch_status status = bench_matrix_parse(copy, length, "good.mtx", need, 0, &error, matrix);
    free(copy);
    if (status != FILCH_OK)
        fail_msg("line %ld: %s", (long)error.line, error.text);
}

static void read_good(const char *text, bench_matrix_need need, bench_matrix *matrix)
{
    read_sized(text, strlen(text), need, matrix);
}

static void expect_values(const bench_matrix *matrix, size_t rows, size_t cols,
                          const double *values)
{
    assert_int_equal(matrix->rows, rows);
    assert_int_equal(matrix->cols, cols);
    assert_memory_equal(matrix->values, values, rows * cols * sizeof(double));
}

/* The failure must name the file, the line and say fragment; the output must stay untouched. */
static void expect_failure(const char *text, size_t length, bench_matrix_need need, size_t limit,
                           filch_status expected, int64_t line, const char *fragment)
{
    filch_error error = FILCH_ERROR_INIT;
    bench_matrix matrix = {11, 12, NULL, 13};
    char *copy = malloc(length ? length : 1);
    assert_non_null(copy);
    memcpy(copy, text, length);
    filch_status status = bench_matrix_parse(copy, length, "bad.mtx", need, limit, &error, &matrix);
    assert_int_equal(bench_matrix_parse(copy, length, "bad.mtx", need, limit, NULL, &matrix),
                     status);
    free(copy);
    if (status != expected || error.line != line || !strstr(error.text, fragment))
        fail_msg("status %d, line %ld, \"%s\" instead of %d, %ld, \"...%s...\" for\n%.*s",
                 (int)status, (long)error.line, error.text, (int)expected, (long)line, fragment,
                 (int)length, text);
    assert_int_equal(error.status, expected);
    assert_string_equal(error.label, "bad.mtx");
    assert_int_equal(matrix.rows, 11);
    assert_int_equal(matrix.cols, 12);
    assert_null(matrix.values);
    assert_int_equal(matrix.stored, 13);
}

static void expect(const char *text, filch_status status, int64_t line, const char *fragment)
{
    expect_failure(text, strlen(text), BENCH_MATRIX_ANY, 0, status, line, fragment);
}

static void test_coordinate_general(void **state)
{
    (void)state;
    bench_matrix m;
    read_good(COORDINATE "% comment\n\n% another\n2 3 3\n2 1 -1.5\n\n1 3 2e2\n1 1 +.5\n\n",
              BENCH_MATRIX_ANY, &m);
    expect_values(&m, 2, 3, (const double[]){.5, -1.5, 0, 0, 200, 0});
    assert_int_equal(m.stored, 3);
    bench_matrix_free(&m);
    assert_null(m.values);
}

static void test_coordinate_symmetric(void **state)
{
    (void)state;
    bench_matrix m;
    read_good(SYMMETRIC "3 3 4\n1 1 1\n2 1 2\n3 2 3\n3 3 4\n", BENCH_MATRIX_SYMMETRIC, &m);
    expect_values(&m, 3, 3, (const double[]){1, 2, 0, 2, 0, 3, 0, 3, 4});
    assert_int_equal(m.stored, 4);
    bench_matrix_free(&m);
}

static void test_fields(void **state)
{
    (void)state;
    bench_matrix m;
    read_good("%%matrixmarket MATRIX Coordinate Pattern General\r\n2 2 2\r\n1 2\r\n2 1\r\n",
              BENCH_MATRIX_ANY, &m);
    expect_values(&m, 2, 2, (const double[]){0, 1, 1, 0});
    bench_matrix_free(&m);
    read_good("%%MatrixMarket matrix coordinate integer general\n1 2 2\n1 2 -7\n1 1 "
              "9007199254740992\n",
              BENCH_MATRIX_ANY, &m);
    expect_values(&m, 1, 2, (const double[]){9007199254740992.0, -7});
    bench_matrix_free(&m);
    read_good("%%MatrixMarket matrix coordinate real general\n2 2 0\n", BENCH_MATRIX_SQUARE, &m);
    expect_values(&m, 2, 2, (const double[]){0, 0, 0, 0});
    bench_matrix_free(&m);
}

static void test_array(void **state)
{
    (void)state;
    bench_matrix m;
    read_good(ARRAY "2 3\n1\n2\n3\n4\n5\n6", BENCH_MATRIX_ANY, &m);
    expect_values(&m, 2, 3, (const double[]){1, 2, 3, 4, 5, 6});
    bench_matrix_free(&m);
    read_good("%%MatrixMarket matrix array integer symmetric\n3 3\n1\n2\n3\n4\n5\n6\n",
              BENCH_MATRIX_SYMMETRIC, &m);
    expect_values(&m, 3, 3, (const double[]){1, 2, 3, 2, 4, 5, 3, 5, 6});
    assert_int_equal(m.stored, 6);
    bench_matrix_free(&m);
}

static void test_general_but_symmetric(void **state)
{
    (void)state;
    bench_matrix m;
    read_good(ARRAY "2 2\n1\n2\n2\n4\n", BENCH_MATRIX_SYMMETRIC, &m);
    bench_matrix_free(&m);
    const char *text = ARRAY "2 2\n1\n2\n3\n4\n";
    expect_failure(text, strlen(text), BENCH_MATRIX_SYMMETRIC, 0, FILCH_DATA, 0,
                   "not symmetric: (2, 1) is 2, (1, 2) is 3");
    /* The same text is fine where only a square matrix is asked. */
    read_good(text, BENCH_MATRIX_SQUARE, &m);
    bench_matrix_free(&m);
}

static void test_header_malformed(void **state)
{
    (void)state;
    expect("", FILCH_PARSE, 0, "empty");
    expect("\n", FILCH_PARSE, 1, "%%MatrixMarket");
    expect("%MatrixMarket matrix array real general\n1 1\n1\n", FILCH_PARSE, 1, "%%MatrixMarket");
    expect("%%MatrixMarketX matrix array real general\n", FILCH_PARSE, 1, "%%MatrixMarket");
    expect("%%MatrixMarket vector array real general\n", FILCH_PARSE, 1, "'vector'");
    expect("%%MatrixMarket matrix sparse real general\n", FILCH_PARSE, 1, "'sparse'");
    expect("%%MatrixMarket matrix array double general\n", FILCH_PARSE, 1, "'double'");
    expect("%%MatrixMarket matrix array real lower\n", FILCH_PARSE, 1, "'lower'");
    expect("%%MatrixMarket matrix array real\n", FILCH_PARSE, 1, "symmetry is ''");
    expect("%%MatrixMarket matrix array pattern general\n", FILCH_PARSE, 1, "pattern");
    expect("%%MatrixMarket matrix array real general 3\n", FILCH_PARSE, 1, "'3' follows");
    expect("%%MatrixMarket matrix array complex general\n", FILCH_UNSUPPORTED, 1, "complex");
    expect("%%MatrixMarket matrix array real hermitian\n", FILCH_UNSUPPORTED, 1, "hermitian");
    expect("%%MatrixMarket matrix array real skew-symmetric\n", FILCH_UNSUPPORTED, 1, "skew");
}

static void test_sizes_malformed(void **state)
{
    (void)state;
    expect(COORDINATE, FILCH_PARSE, 1, "before the size line");
    expect(COORDINATE "% only\n% comments\n", FILCH_PARSE, 3, "before the size line");
    expect(COORDINATE "2\n", FILCH_PARSE, 2, "columns is missing");
    expect(COORDINATE "2 2\n1 1 1\n", FILCH_PARSE, 2, "entries is missing");
    expect(COORDINATE "2 2 1 1\n1 1 1\n", FILCH_PARSE, 2, "'1' follows");
    expect(COORDINATE "-2 2 1\n", FILCH_PARSE, 2, "'-2' is not a whole number");
    expect(COORDINATE "2.0 2 1\n", FILCH_PARSE, 2, "'2.0' is not a whole number");
    expect(COORDINATE "0 2 0\n", FILCH_DATA, 2, "0 x 2: a size is 0");
    expect(COORDINATE "2 0 0\n", FILCH_DATA, 2, "2 x 0: a size is 0");
    expect(ARRAY "0 0\n", FILCH_DATA, 2, "a size is 0");
    expect(COORDINATE "2 2 5\n1 1 1\n", FILCH_DATA, 2, "room for 4");
    expect(SYMMETRIC "2 2 4\n1 1 1\n", FILCH_DATA, 2, "room for 3");
}

static void test_huge(void **state)
{
    (void)state;
    expect(COORDINATE "99999999999999999999 1 1\n1 1 1\n", FILCH_OVERFLOW, 2, "too large");
    expect(COORDINATE "18446744073709551615 2 1\n1 1 1\n", FILCH_OVERFLOW, 2, "address space");
    expect(COORDINATE "4294967296 4294967296 1\n1 1 1\n", FILCH_OVERFLOW, 2, "address space");
    expect(COORDINATE "100000000 10000000 1\n1 1 1\n", FILCH_TOO_LARGE, 2, "over the limit");
    const char *text = COORDINATE "4 4 1\n1 1 1\n";
    expect_failure(text, strlen(text), BENCH_MATRIX_ANY, 127, FILCH_TOO_LARGE, 2, "over the limit");
    filch_error error = FILCH_ERROR_INIT;
    bench_matrix m;
    assert_int_equal(bench_matrix_parse(text, strlen(text), "x", BENCH_MATRIX_ANY, 128, &error, &m),
                     FILCH_OK);
    bench_matrix_free(&m);
    /* Declared entries that the file cannot hold are refused before memory is taken for them. */
    expect(ARRAY "1000 1000\n1\n", FILCH_PARSE, 2, "only 2 bytes follow");
    expect(COORDINATE "1000 1000 500000\n1 1 1\n", FILCH_PARSE, 2, "only 6 bytes follow");
}

static void test_shape_needed(void **state)
{
    (void)state;
    const char *text = COORDINATE "2 3 1\n1 1 1\n";
    expect_failure(text, strlen(text), BENCH_MATRIX_SQUARE, 0, FILCH_DATA, 2, "2 x 3, not square");
    expect_failure(text, strlen(text), BENCH_MATRIX_SYMMETRIC, 0, FILCH_DATA, 2, "not square");
    expect(SYMMETRIC "2 3 1\n1 1 1\n", FILCH_DATA, 2, "not square");
}

static void test_entries_malformed(void **state)
{
    (void)state;
    expect(COORDINATE "2 2 1\n0 1 1\n", FILCH_DATA, 3, "row 0 is outside 1..2");
    expect(COORDINATE "2 2 1\n3 1 1\n", FILCH_DATA, 3, "row 3 is outside 1..2");
    expect(COORDINATE "2 2 1\n1 3 1\n", FILCH_DATA, 3, "column 3 is outside 1..2");
    expect(COORDINATE "2 2 1\n1 0 1\n", FILCH_DATA, 3, "column 0 is outside 1..2");
    expect(COORDINATE "2 2 1\nx 1 1\n", FILCH_PARSE, 3, "row 'x' is not a whole number");
    expect(COORDINATE "2 2 1\n1\n1\n1\n", FILCH_PARSE, 3, "column is missing");
    expect(COORDINATE "2 2 1\n1 1\n 1\n", FILCH_PARSE, 3, "value is missing");
    expect(COORDINATE "2 2 1\n1 1 1 1\n", FILCH_PARSE, 3, "'1' follows");
    expect(COORDINATE "2 2 2\n1 1 1\n1 1 2\n", FILCH_DATA, 4, "(1, 1) is a duplicate");
    expect(COORDINATE "2 2 2\n1 1 0\n1 1 0\n", FILCH_DATA, 4, "(1, 1) is a duplicate");
    expect(SYMMETRIC "2 2 1\n1 2 1\n", FILCH_DATA, 3, "above the diagonal");
    expect("%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 1 1\n", FILCH_PARSE, 3,
           "'1' follows");
}

static void test_values_malformed(void **state)
{
    (void)state;
    expect(ARRAY "1 1\nnan\n", FILCH_DATA, 3, "not finite");
    expect(ARRAY "1 1\n-inf\n", FILCH_DATA, 3, "not finite");
    expect(ARRAY "1 1\n1e999\n", FILCH_DATA, 3, "not finite");
    expect(ARRAY "1 1\n1.0z\n", FILCH_PARSE, 3, "'1.0z' is not a number");
    expect(ARRAY "1 1\n0x1p3\n", FILCH_PARSE, 3, "'0x1p3' is not a number");
    expect(ARRAY "1 1\n1 2\n", FILCH_PARSE, 3, "'2' follows");
    expect("%%MatrixMarket matrix array integer general\n1 1\n1.5\n", FILCH_PARSE, 3,
           "'1.5' is not a whole number");
    expect("%%MatrixMarket matrix array integer general\n1 1\n9007199254740994\n", FILCH_OVERFLOW,
           3, "not exact");
    expect(ARRAY "2 1\n1\n% no comments here\n", FILCH_PARSE, 4, "'%' is not a number");

    char text[4096] = ARRAY "1 1\n";
    memset(text + strlen(text), '1', 3000);
    expect(text, FILCH_PARSE, 3, "too long");
    static const char nul[] = ARRAY "1 1\n1\0002\n";
    expect_failure(nul, sizeof nul - 1, BENCH_MATRIX_ANY, 0, FILCH_PARSE, 3, "is not a number");
}

static void test_truncated_and_trailing(void **state)
{
    (void)state;
    expect(COORDINATE "2 2 2\n1 1 1.5\n", FILCH_PARSE, 3, "after 1 of 2 entries");
    expect(ARRAY "2 2\n1.25\n2.25\n3.25\n", FILCH_PARSE, 5, "after 3 of 4 entries");
    expect(COORDINATE "2 2 1\n1 1 1\n\nextra\n", FILCH_PARSE, 5, "'extra' follows the last of 1");
    expect(ARRAY "1 1\n1\n2\n", FILCH_PARSE, 4, "follows the last of 1");
}

/* Every prefix of a good file parses or fails, and never reads past its end. */
static void test_every_prefix(void **state)
{
    (void)state;
    static const char text[] = SYMMETRIC "% c\n3 3 3\n1 1 10\n2 1 -2.5e-1\n3 3 4\n";
    size_t good = 0;
    for (size_t length = 0; length < sizeof text; length++) {
        char *copy = malloc(length ? length : 1);
        assert_non_null(copy);
        memcpy(copy, text, length);
        filch_error error = FILCH_ERROR_INIT;
        bench_matrix m;
        filch_status status =
            bench_matrix_parse(copy, length, "prefix", BENCH_MATRIX_ANY, 0, &error, &m);
        free(copy);
        if (status == FILCH_OK) {
            good++;
            bench_matrix_free(&m);
        } else {
            assert_string_not_equal(error.text, "");
        }
    }
    /* Only with the last value's digit, its newline, and the terminator as trailing text not. */
    assert_int_equal(good, 2);
}

static void test_file(void **state)
{
    (void)state;
    char path[] = "/tmp/filch_matrix_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    assert_non_null(file);
    /* More than one step of the reader's buffer. */
    fputs(ARRAY "200 200\n", file);
    for (int k = 0; k < 200 * 200; k++)
        fprintf(file, "%d\n", k);
    assert_int_equal(fclose(file), 0);

    filch_error error = FILCH_ERROR_INIT;
    bench_matrix m;
    assert_int_equal(bench_matrix_read(path, BENCH_MATRIX_SQUARE, 0, &error, &m), FILCH_OK);
    for (int k = 0; k < 200 * 200; k++)
        assert_true(m.values[k] >= k && m.values[k] <= k);
    bench_matrix_free(&m);
    unlink(path);

    assert_int_equal(bench_matrix_read(path, BENCH_MATRIX_ANY, 0, &error, &m), FILCH_IO);
    assert_string_equal(error.label, path);
    assert_non_null(strstr(error.text, "cannot be opened"));
    assert_int_equal(bench_matrix_read("/tmp", BENCH_MATRIX_ANY, 0, &error, &m), FILCH_IO);
    assert_non_null(strstr(error.text, "cannot be read"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_coordinate_general),
        cmocka_unit_test(test_coordinate_symmetric),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_array),
        cmocka_unit_test(test_general_but_symmetric),
        cmocka_unit_test(test_header_malformed),
        cmocka_unit_test(test_sizes_malformed),
        cmocka_unit_test(test_huge),
        cmocka_unit_test(test_shape_needed),
        cmocka_unit_test(test_entries_malformed),
        cmocka_unit_test(test_values_malformed),
        cmocka_unit_test(test_truncated_and_trailing),
        cmocka_unit_test(test_every_prefix),
        cmocka_unit_test(test_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
