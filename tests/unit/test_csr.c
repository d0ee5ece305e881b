/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse matrices as handles: cuts, blocks, products, changes of values, refusals. */
#include "fixture.h"

#include "count.h"
#include "csr_cases.h"

/* Checks a block with its arrays, in the host's memory, against the matrix. */
static void csr_check_block(const csr_case *of, const filch_csr_block *a)
{
    int64_t low = INT64_MAX, high = -1;
    assert_int_equal(a->cols, of->cols);
    assert_int_equal(a->entry, of->pointers[a->row]);
    assert_int_equal(a->nnz, of->pointers[a->row + a->rows] - of->pointers[a->row]);
    for (uint64_t i = 0; i <= a->rows; i++)
        assert_int_equal(csr_integer(a->pointers, a->pointer_bytes, i),
                         of->pointers[a->row + i] - (int64_t)a->entry + (int64_t)a->base);
    for (uint64_t k = 0; k < a->nnz; k++) {
        int64_t column = of->columns[a->entry + k];
        assert_int_equal(csr_integer(a->columns, a->column_bytes, k), column + (int64_t)a->base);
        low = column < low ? column : low;
        high = column > high ? column : high;
    }
    assert_int_equal(a->column_lo, a->nnz != 0 ? low : 0);
    assert_int_equal(a->column_hi, high + 1);
}

/* Number of blocks. */
static uint32_t csr_count(const filch_data *matrix)
{
    filch_tiling tiling = FILCH_TILING_INIT;
    assert_int_equal(filch_data_tiles(matrix, &tiling), FILCH_OK);
    assert_int_equal(tiling.cols, 1);
    return (uint32_t)tiling.rows;
}

static filch_csr_block csr_at(const filch_data *matrix, uint32_t at)
{
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    assert_int_equal(filch_csr_at(matrix, at, &block), FILCH_OK);
    assert_null(block.pointers);
    assert_null(block.columns);
    assert_null(block.values);
    return block;
}

static fixture_memory memory;
static filch_runtime *runtime;
static filch_codelet *multiplies, *scales;

/* multiply(block of A, x, y of the block) */
static int multiply(const filch_call *call)
{
    filch_csr_block block = FILCH_CSR_BLOCK_INIT;
    filch_status status = filch_csr_view(NULL, &call->views[0], &block);
    if (status != FILCH_OK || block.rows != call->views[2].rows) {
        return 1;
    }
    csr_multiply(&block, call->views[1].ptr, call->views[2].ptr);
    return 0;
}

/* scale(block of A): values times the number of their row, from 1. */
static int scale(const filch_call *call)
{
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &a) != FILCH_OK) {
        return 1;
    }
    for (uint64_t i = 0; i < a.rows; ++i) {
        int64_t first = csr_integer(a.pointers, a.pointer_bytes, i) - a.base;
        int64_t last = csr_integer(a.pointers, a.pointer_bytes, i + 1) - a.base;
        for (int64_t k = first; k < last; ++k) {
            ((double *)a.values)[k] *= (double)(a.row + i + 1);
        }
    }
    return 0;
}

static void start(const char *devices, filch_drive drive)
{
    fixture_memory_init(&memory);
    runtime = fixture_runtime(devices, drive, &memory);
    multiplies = fixture_codelet(runtime, "multiply", multiply, 0);
    scales = fixture_codelet(runtime, "scale", scale, 0);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(memory.bytes, 0);
}

static filch_data *make(const filch_csr_desc *desc)
{
    filch_data *made = NULL;
    assert_ok(filch_csr_create(runtime, desc, &made));
    return made;
}

/* Looks at a block in the matrix's memory. */
static filch_csr_block look(filch_data *matrix, uint32_t at, filch_view *view)
{
    filch_csr_block block = FILCH_CSR_BLOCK_INIT, named = FILCH_CSR_BLOCK_INIT;
    assert_ok(filch_data_view(matrix, at, 0, view));
    assert_ok(filch_csr_view(NULL, view, &block));
    assert_ok(filch_csr_view(matrix, view, &named));
    assert_memory_equal(&block, &named, sizeof block);
    return block;
}

/* Checks the blocks of rows with the numbers of a block's columns. */
static void check_neighbours(const csr_case *of, filch_data *matrix, const filch_csr_block *block)
{
    for (uint32_t i = 0; i < csr_count(matrix); ++i) {
        filch_csr_block other = csr_at(matrix, i);
        bool is_named = false;
        for (uint64_t row = other.row; row < other.row + other.rows; ++row) {
            is_named = is_named || (row >= block->column_lo && row < block->column_hi);
        }
        assert_int_equal(is_named, i >= block->block_lo && i < block->block_hi);
    }
    assert_true(block->block_lo <= block->block_hi);
    assert_true(block->nnz != 0 || block->block_hi == 0);
    assert_true(block->column_lo < of->rows || block->block_lo == block->block_hi);
}

/* Checks that the blocks together are the matrix, and the answers about them. */
static void check_blocks(const csr_case *of, const filch_csr_desc *desc, filch_data *matrix)
{
    uint64_t row = 0;
    filch_view view;
    assert_ok(filch_data_acquire(matrix, FILCH_READ));
    for (uint32_t i = 0; i < csr_count(matrix); ++i) {
        filch_csr_block block = look(matrix, i, &view), told = csr_at(matrix, i);
        assert_int_equal(block.row, row);
        assert_true(block.rows != 0 || of->rows == 0);
        assert_int_equal(block.pointer_bytes, desc->pointer_bytes);
        assert_int_equal(block.column_bytes, desc->column_bytes);
        assert_int_equal(block.base, desc->base);
        csr_check_block(of, &block);
        check_neighbours(of, matrix, &block);
        if (desc->values != NULL && block.nnz != 0) {
            assert_memory_equal(block.values, of->values + block.entry, block.nnz * sizeof(double));
        }
        block.pointers = block.columns = block.values = NULL;
        assert_memory_equal(&block, &told, sizeof block);
        row += block.rows;
    }
    assert_int_equal(row, of->rows);
    assert_ok(filch_data_release(matrix));
}

/* --- Products --- */

/* Multiplies by a graph, a task a block, and compares. */
static void check_product(const csr_case *of, filch_data *matrix)
{
    double *x = csr_memory(of->cols, sizeof *x), *y = csr_memory(of->rows, sizeof *y);
    double *expected = csr_memory(of->rows, sizeof *y);
    uint32_t count = csr_count(matrix);
    uint64_t *heights = csr_memory(count, sizeof *heights);
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *result = NULL;
    for (uint64_t j = 0; j < of->cols; ++j) {
        x[j] = (double)(j % 17) - 8;
    }
    for (uint32_t i = 0; i < count; ++i) {
        heights[i] = csr_at(matrix, i).rows;
    }
    desc.ptr = y;
    desc.element = sizeof *y;
    desc.rows = of->rows;
    desc.row_cuts = heights;
    desc.row_cut_count = count;
    assert_ok(filch_data_create(runtime, &desc, &result));
    filch_data *vector = fixture_vector(runtime, x, sizeof *x, of->cols, of->cols);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    for (uint32_t i = 0; i < count; ++i) {
        const filch_access accesses[] = {FILCH_R(matrix, i, 0), FILCH_R(vector, 0, 0),
                                         FILCH_W(result, i, 0)};
        fixture_add(graph, multiplies, NULL, accesses, 3);
    }
    assert_ok(fixture_run(graph));
    csr_product(of, x, expected);
    assert_memory_equal(y, expected, of->rows * sizeof *y);
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(result));
    assert_ok(filch_data_destroy(vector));
    free(x);
    free(y);
    free(expected);
    free(heights);
}

/* Heights of random blocks. */
static uint32_t cut_randomly(fl_random *random, uint64_t rows, uint64_t *cuts)
{
    uint32_t count = 0;
    while (rows != 0) {
        cuts[count] = 1 + fl_random_below(random, (uint32_t)rows);
        rows -= cuts[count++];
    }
    return count;
}

static void random_case(fl_random *random)
{
    uint64_t rows = 1 + fl_random_below(random, 60), cuts[60];
    csr_case a = csr_random(random, rows, 1 + fl_random_below(random, 60),
                            fl_random_below(random, 8), fl_random_below(random, 2) != 0);
    csr_arrays arrays;
    filch_csr_desc desc =
        csr_describe(&a, 4 + 4 * fl_random_below(random, 2), 4 + 4 * fl_random_below(random, 2),
                     fl_random_below(random, 2), &arrays);
    switch (fl_random_below(random, 4)) {
    case 0:
        desc.tile_rows = 1 + fl_random_below(random, (uint32_t)rows);
        break;
    case 1:
        desc.row_cuts = cuts;
        desc.row_cut_count = cut_randomly(random, rows, cuts);
        break;
    case 2:
        desc.blocks = 1 + fl_random_below(random, 80);
        break;
    default: /* one block */
        break;
    }
    filch_data *matrix = make(&desc);
    csr_drop(&arrays);
    check_blocks(&a, &desc, matrix);
    check_product(&a, matrix);
    assert_ok(filch_data_destroy(matrix));
    csr_free(&a);
}

static void test_random(void **state)
{
    (void)state;
    const uint64_t cases = test_count(300);
    fl_random random;
    start("host:2@any", FILCH_DRIVE_THREADS);
    fl_random_init(&random, 18, 0);
    for (uint64_t i = 0; i < cases; ++i) {
        random_case(&random);
    }
    stop();
}

/* --- Cuts --- */

/* Cuts a matrix given by the lengths of its rows by entries; returns the matrix. */
static filch_data *cut_by_entries(const uint32_t *lengths, uint64_t rows, uint32_t blocks)
{
    csr_case a = {.rows = rows, .cols = 1, .pointers = csr_memory(rows + 1, 8)};
    for (uint64_t i = 0; i < rows; ++i) {
        a.nnz += lengths[i];
        a.pointers[i + 1] = (int64_t)a.nnz;
    }
    a.columns = csr_memory(a.nnz, sizeof *a.columns);
    a.values = csr_memory(a.nnz, sizeof *a.values);
    csr_arrays arrays;
    filch_csr_desc desc = csr_describe(&a, 8, 4, 0, &arrays);
    desc.blocks = blocks;
    filch_data *matrix = make(&desc);
    check_blocks(&a, &desc, matrix);
    csr_drop(&arrays);
    csr_free(&a);
    return matrix;
}

static void check_heights(const uint32_t *lengths, uint64_t rows, uint32_t blocks,
                          const uint64_t *heights, uint32_t count)
{
    filch_data *matrix = cut_by_entries(lengths, rows, blocks);
    assert_int_equal(csr_count(matrix), count);
    for (uint32_t i = 0; i < count; ++i) {
        assert_int_equal(csr_at(matrix, i).rows, heights[i]);
    }
    assert_ok(filch_data_destroy(matrix));
}

static void test_cuts(void **state)
{
    (void)state;
    start("host:1@any", FILCH_DRIVE_POLL);
    /* Equal rows; half as many blocks. */
    check_heights((uint32_t[]){3, 3, 3, 3, 3, 3}, 6, 3, (uint64_t[]){2, 2, 2}, 3);
    /* No entries: equal rows. */
    check_heights((uint32_t[]){0, 0, 0, 0, 0, 0}, 6, 3, (uint64_t[]){2, 2, 2}, 3);
    /* Empty rows around the entries. */
    check_heights((uint32_t[]){0, 0, 0, 4, 4, 0, 0, 0}, 8, 2, (uint64_t[]){4, 4}, 2);
    check_heights((uint32_t[]){4, 0, 0, 0, 0, 0, 0, 4}, 8, 2, (uint64_t[]){4, 4}, 2);
    /* A long row. */
    check_heights((uint32_t[]){1, 1, 90, 1, 1, 1}, 6, 3, (uint64_t[]){2, 1, 3}, 3);
    check_heights((uint32_t[]){90, 1, 1, 1}, 4, 2, (uint64_t[]){1, 3}, 2);
    check_heights((uint32_t[]){1, 1, 1, 90}, 4, 2, (uint64_t[]){3, 1}, 2);
    /* As many blocks as rows, and more. */
    check_heights((uint32_t[]){5, 0, 70, 0}, 4, 4, (uint64_t[]){1, 1, 1, 1}, 4);
    check_heights((uint32_t[]){5, 0, 70, 0}, 4, 1000, (uint64_t[]){1, 1, 1, 1}, 4);
    check_heights((uint32_t[]){5, 0, 70, 0}, 4, UINT32_MAX, (uint64_t[]){1, 1, 1, 1}, 4);
    /* No rows. */
    check_heights((uint32_t[]){0}, 0, 1, (uint64_t[]){0}, 1);
    check_heights((uint32_t[]){0}, 0, 7, (uint64_t[]){0}, 1);
    stop();
}

/* No block has more entries than its share and the longest row; there are as many as asked for. */
static void test_balance(void **state)
{
    (void)state;
    const uint64_t cases = test_count(500);
    fl_random random;
    start("host:1@any", FILCH_DRIVE_POLL);
    fl_random_init(&random, 19, 0);
    for (uint64_t c = 0; c < cases; ++c) {
        uint32_t lengths[64], rows = 1 + fl_random_below(&random, 64), longest = 0;
        uint32_t blocks = 1 + fl_random_below(&random, 70), most = 1 + fl_random_below(&random, 40);
        uint64_t nnz = 0;
        for (uint32_t i = 0; i < rows; ++i) {
            lengths[i] = fl_random_below(&random, 3) == 0 ? fl_random_below(&random, most) : 0;
            longest = lengths[i] > longest ? lengths[i] : longest;
            nnz += lengths[i];
        }
        filch_data *matrix = cut_by_entries(lengths, rows, blocks);
        uint32_t count = csr_count(matrix);
        assert_int_equal(count, blocks < rows ? blocks : rows);
        for (uint32_t i = 0; i < count; ++i) {
            assert_true(csr_at(matrix, i).nnz <= (nnz + blocks - 1) / blocks + longest);
        }
        assert_ok(filch_data_destroy(matrix));
    }
    stop();
}

/* --- Values --- */

static void add_scale(filch_graph *graph, filch_data *matrix, filch_access_mode mode)
{
    for (uint32_t i = 0; i < csr_count(matrix); ++i) {
        const filch_access access = FILCH_ACCESS(matrix, i, 0, mode);
        fixture_add(graph, scales, NULL, &access, 1);
    }
}

/* Tasks and the host change values; the structure stays, and the caller's arrays do, too. */
static void test_values(void **state)
{
    (void)state;
    fl_random random;
    csr_arrays arrays;
    start("host:2@any", FILCH_DRIVE_THREADS);
    fl_random_init(&random, 20, 0);
    csr_case a = csr_random(&random, 40, 30, 6, true);
    filch_csr_desc desc = csr_describe(&a, 4, 4, 1, &arrays);
    desc.blocks = 7;
    filch_data *matrix = make(&desc);
    double *before = csr_memory(a.nnz, sizeof *before);
    memcpy(before, a.values, a.nnz * sizeof *before);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    add_scale(graph, matrix, FILCH_READWRITE);
    add_scale(graph, matrix, FILCH_COMMUTE);
    assert_ok(fixture_run(graph));
    assert_ok(filch_graph_destroy(graph));
    assert_memory_equal(before, a.values, a.nnz * sizeof *before);
    for (uint64_t i = 0; i < a.rows; ++i) {
        for (int64_t k = a.pointers[i]; k < a.pointers[i + 1]; ++k) {
            a.values[k] *= (double)((i + 1) * (i + 1));
        }
    }
    check_blocks(&a, &desc, matrix);
    check_product(&a, matrix);
    /* The host overwrites the values. */
    filch_view view;
    assert_ok(filch_data_acquire(matrix, FILCH_WRITE));
    for (uint32_t i = 0; i < csr_count(matrix); ++i) {
        filch_csr_block block = look(matrix, i, &view);
        memcpy(block.values, before + block.entry, block.nnz * sizeof *before);
    }
    assert_ok(filch_data_release(matrix));
    memcpy(a.values, before, a.nnz * sizeof *before);
    check_blocks(&a, &desc, matrix);
    check_product(&a, matrix);
    free(before);
    csr_drop(&arrays);
    csr_free(&a);
    stop();
}

/* A pattern has no values; a matrix without values has zeros. */
static void test_no_values(void **state)
{
    (void)state;
    fl_random random;
    csr_arrays arrays;
    filch_view view;
    start("host:1@any", FILCH_DRIVE_POLL);
    fl_random_init(&random, 21, 0);
    csr_case a = csr_random(&random, 20, 20, 5, false);
    filch_csr_desc desc = csr_describe(&a, 4, 8, 0, &arrays);
    const uint64_t elements[] = {0, 1, 12};
    desc.values = NULL;
    desc.tile_rows = 3;
    for (size_t e = 0; e < sizeof elements / sizeof *elements; ++e) {
        desc.element = elements[e];
        filch_data *matrix = make(&desc);
        check_blocks(&a, &desc, matrix);
        assert_ok(filch_data_acquire(matrix, FILCH_READ));
        filch_csr_block block = look(matrix, 1, &view);
        assert_int_equal(block.element, elements[e]);
        assert_int_equal(block.values != NULL, elements[e] != 0);
        for (uint64_t i = 0; i < block.nnz * block.element; ++i) {
            assert_int_equal(((const char *)block.values)[i], 0);
        }
        assert_ok(filch_data_release(matrix));
        assert_ok(filch_data_destroy(matrix));
    }
    csr_drop(&arrays);
    csr_free(&a);
    stop();
}

/* --- Refusals --- */

/* A matrix of 4 x 5, 6 entries, with integers of 4 bytes: the desc of most refusals. */
static int32_t small_pointers[5], small_columns[6];
static double small_values[6];

static filch_csr_desc small(void)
{
    filch_csr_desc desc = FILCH_CSR_DESC_INIT;
    memcpy(small_pointers, (int32_t[]){0, 2, 2, 5, 6}, sizeof small_pointers);
    memcpy(small_columns, (int32_t[]){0, 4, 1, 2, 3, 0}, sizeof small_columns);
    desc.rows = 4;
    desc.cols = 5;
    desc.nnz = 6;
    desc.pointers = small_pointers;
    desc.columns = small_columns;
    desc.values = small_values;
    desc.element = sizeof *small_values;
    desc.label = "A";
    return desc;
}

static void refuse(const filch_csr_desc *desc, filch_status expected, const char *text)
{
    filch_data *untouched = (filch_data *)(void *)small_values, *matrix = untouched;
    int64_t bytes = memory.bytes;
    assert_status(filch_csr_create(runtime, desc, &matrix), expected);
    assert_ptr_equal(matrix, untouched);
    assert_int_equal(memory.bytes, bytes);
    filch_error error = fixture_error(runtime);
    assert_string_equal(error.call, "filch_csr_create");
    if (error.status != expected || strstr(error.text, text) == NULL) {
        fail_msg("'%s' in the place of '%s'", error.text, text);
    }
}

/* Refuses the small matrix with one member changed. */
#define REFUSE(member, value, status, text) \
    do {                                    \
        filch_csr_desc desc_ = small();     \
        desc_.member = (value);             \
        refuse(&desc_, (status), (text));   \
    } while (0)

static void test_members(void **state)
{
    (void)state;
    start("host:1@any", FILCH_DRIVE_POLL);
    filch_csr_desc desc = small();
    assert_status(filch_csr_create(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_create(NULL, &desc, NULL), FILCH_INVALID_HANDLE);
    refuse(NULL, FILCH_INVALID_ARGUMENT, "the descriptor is null");
    REFUSE(size, 8, FILCH_INVALID_ARGUMENT, "8");
    REFUSE(rows, UINT64_C(1) << 60, FILCH_OVERFLOW, "2^60");
    REFUSE(cols, UINT64_MAX, FILCH_OVERFLOW, "2^60");
    REFUSE(nnz, UINT64_MAX, FILCH_OVERFLOW, "2^60");
    REFUSE(element, UINT64_MAX / 2, FILCH_OVERFLOW, "overflow");
    REFUSE(pointers, NULL, FILCH_INVALID_ARGUMENT, "pointers are null");
    REFUSE(columns, NULL, FILCH_INVALID_ARGUMENT, "columns are null");
    REFUSE(element, 0, FILCH_INVALID_ARGUMENT, "element");
    REFUSE(pointer_bytes, 0, FILCH_INVALID_ARGUMENT, "pointer_bytes");
    REFUSE(column_bytes, 5, FILCH_INVALID_ARGUMENT, "column_bytes");
    REFUSE(pointers, (char *)small_pointers + 1, FILCH_INVALID_ARGUMENT, "pointers are not al");
    REFUSE(columns, (char *)small_columns + 2, FILCH_INVALID_ARGUMENT, "columns are not al");
    REFUSE(base, 2, FILCH_INVALID_ARGUMENT, "base is not");
    REFUSE(flags, FILCH_DATA_ORDERED, FILCH_INVALID_ARGUMENT, "flags");
    REFUSE(tile_rows, 5, FILCH_INVALID_ARGUMENT, "tile_rows is more than rows");
    REFUSE(row_cut_count, 2, FILCH_INVALID_ARGUMENT, "row cuts are null");
    desc = small();
    desc.tile_rows = 1;
    desc.blocks = 2;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "more than one");
    desc = small();
    desc.row_cuts = (const uint64_t[]){1, 0, 3};
    desc.row_cut_count = 3;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row cut 1 is 0");
    desc.row_cuts = (const uint64_t[]){1, 1, 3};
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row cut 2 is 3, where 2 of 4");
    desc.row_cut_count = 2;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "add up to 2, not to the 4 rows");
    stop();
}

/* Refuses the small matrix with an array's element changed. */
#define SPOIL(array, at, value, text)                   \
    do {                                                \
        filch_csr_desc desc_ = small();                 \
        (array)[at] = (value);                          \
        refuse(&desc_, FILCH_INVALID_ARGUMENT, (text)); \
    } while (0)

static void test_arrays(void **state)
{
    (void)state;
    start("host:1@any", FILCH_DRIVE_POLL);
    SPOIL(small_pointers, 0, 1, "pointers[0] is 1, and the base 0");
    SPOIL(small_pointers, 0, -1, "pointers[0] is -1");
    SPOIL(small_pointers, 2, 1, "row 1 begins at 2 and ends at 1 (pointers[2])");
    SPOIL(small_pointers, 3, INT32_MIN, "row 2 begins at 2 and ends at -2147483648");
    SPOIL(small_pointers, 1, INT32_MAX, "row 1 begins at 2147483647 and ends at 2");
    SPOIL(small_pointers, 4, 7, "pointers[4], the last, is 7, not 6");
    SPOIL(small_pointers, 4, 5, "pointers[4], the last, is 5, not 6");
    SPOIL(small_columns, 0, -1, "row 0: columns[0] is -1");
    SPOIL(small_columns, 1, 5, "row 0: columns[1] is 5, the matrix has columns 0 to 4");
    SPOIL(small_columns, 2, INT32_MAX, "row 2: columns[2] is 2147483647");
    SPOIL(small_columns, 5, INT32_MIN, "row 3: columns[5] is -2147483648");
    filch_csr_desc desc = small();
    desc.base = 1;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "pointers[0] is 0, and the base 1");
    for (int i = 0; i < 5; ++i) {
        ++small_pointers[i];
    }
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row 0: columns[0] is 0, the matrix has columns 1 to 5");
    desc = small();
    desc.cols = 0;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row 0: columns[0] is 0");
    /* The wrong column is in the last of several blocks. */
    desc = small();
    desc.tile_rows = 1;
    small_columns[5] = 5;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row 3: columns[5] is 5");
    /* Integers of 8 bytes beyond 32 bits. */
    int64_t pointers[] = {0, 2, 2, 5, 6}, columns[] = {0, 4, 1, INT64_C(1) << 32, 3, 0};
    desc = small();
    desc.pointers = pointers;
    desc.columns = columns;
    desc.pointer_bytes = desc.column_bytes = 8;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "row 2: columns[3] is 4294967296");
    pointers[4] = INT64_MAX;
    refuse(&desc, FILCH_INVALID_ARGUMENT, "pointers[4], the last, is 9223372036854775807, not 6");
    stop();
}

static void refuse_access(filch_graph *graph, filch_access access, const char *text)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = scales;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_status(filch_graph_add(graph, &desc, NULL), FILCH_INVALID_ARGUMENT);
    filch_error error = fixture_error(runtime);
    assert_non_null(strstr(error.text, text));
}

static void test_accesses(void **state)
{
    (void)state;
    start("host:1@any", FILCH_DRIVE_POLL);
    filch_csr_desc desc = small();
    desc.tile_rows = 2;
    filch_data *matrix = make(&desc), *child = NULL;
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    refuse_access(graph, (filch_access)FILCH_W(matrix, 1, 0), "row block 1 of 'A' is written");
    refuse_access(graph, (filch_access)FILCH_ACCESS(matrix, 0, 0, FILCH_REDUCE), "reduced to");
    refuse_access(graph, (filch_access)FILCH_WHOLE(matrix, FILCH_READ), "not the only one");
    refuse_access(graph, (filch_access)FILCH_R(matrix, 2, 0), "outside the 2 x 1 tiles");
    refuse_access(graph, (filch_access)FILCH_R(matrix, 0, 1), "outside the 2 x 1 tiles");
    assert_ok(filch_graph_destroy(graph));

    filch_data_desc tiling = FILCH_DATA_DESC_INIT;
    tiling.tile_rows = 1;
    assert_status(filch_data_partition(matrix, &tiling, &child), FILCH_UNSUPPORTED);
    assert_null(child);
    assert_status(filch_data_reduction(matrix, scales, scales), FILCH_UNSUPPORTED);
    const filch_batch_access access = {.data = matrix, .mode = FILCH_READ, .map = FILCH_MAP_WHOLE};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = scales;
    batch.n = 2;
    batch.accesses = &access;
    batch.access_count = 1;
    assert_status(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_UNSUPPORTED);
    assert_non_null(strstr(fixture_error(runtime).text, "'A' is a sparse matrix"));
    stop();
}

static void test_views(void **state)
{
    (void)state;
    start("host:1@any", FILCH_DRIVE_POLL);
    filch_csr_desc desc = small();
    desc.tile_rows = 2;
    filch_data *matrix = make(&desc);
    filch_data *vector = fixture_vector(runtime, small_values, sizeof *small_values, 6, 6);
    filch_csr_block block = FILCH_CSR_BLOCK_INIT, short_block = {.size = 8};
    filch_view view, dense, other;
    assert_status(filch_csr_at(matrix, 2, &block), FILCH_BAD_INDEX);
    assert_status(filch_csr_at(vector, 0, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_at(NULL, 0, &block), FILCH_INVALID_HANDLE);
    assert_status(filch_csr_at(matrix, 0, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_at(matrix, 0, &short_block), FILCH_INVALID_ARGUMENT);
    assert_ok(filch_data_acquire(matrix, FILCH_READ));
    assert_ok(filch_data_acquire(vector, FILCH_READ));
    assert_ok(filch_data_view(matrix, 1, 0, &view));
    assert_ok(filch_data_view(vector, 0, 0, &dense));
    assert_status(filch_csr_view(NULL, NULL, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(NULL, &view, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(NULL, &view, &short_block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(NULL, &dense, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(matrix, NULL, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(matrix, &view, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(matrix, &dense, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(vector, &view, &block), FILCH_INVALID_ARGUMENT);
    other = view;
    other.row += 1;
    assert_status(filch_csr_view(matrix, &other, &block), FILCH_INVALID_ARGUMENT);
    other = view;
    other.rows -= 1;
    assert_status(filch_csr_view(matrix, &other, &block), FILCH_INVALID_ARGUMENT);
    assert_status(filch_csr_view(NULL, &other, &block), FILCH_INVALID_ARGUMENT);
    other = view;
    other.element = 8;
    assert_status(filch_csr_view(NULL, &other, &block), FILCH_INVALID_ARGUMENT);
    char zeros[4096] = {0};
    other = view;
    other.ptr = zeros;
    assert_status(filch_csr_view(NULL, &other, &block), FILCH_INVALID_ARGUMENT);
    /* By name the block is not looked at: it may be on a GPU. */
    assert_ok(filch_csr_view(matrix, &other, &block));
    assert_in_range((uintptr_t)block.values, (uintptr_t)zeros, (uintptr_t)zeros + view.rows);
    assert_ok(filch_data_release(matrix));
    assert_ok(filch_data_release(vector));
    stop();
}

/* Each allocation fails in turn; the end of the runtime finds what is left. */
static void test_memory(void **state)
{
    (void)state;
    start("host:2@any", FILCH_DRIVE_POLL);
    filch_csr_desc desc = small();
    desc.tile_rows = 1;
    filch_data *matrix = NULL;
    int failures = 0;
    for (int64_t n = 1; matrix == NULL; ++n) {
        fixture_memory_fail_after(&memory, n);
        filch_status status = filch_csr_create(runtime, &desc, &matrix);
        if (status != FILCH_OK) {
            assert_int_equal(status, FILCH_OUT_OF_MEMORY);
            assert_null(matrix);
            filch_error error = fixture_error(runtime);
            assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
            assert_string_equal(error.call, "filch_csr_create");
            assert_string_equal(error.label, "A");
            ++failures;
        }
    }
    fixture_memory_fail_after(&memory, 0);
    assert_true(failures >= 4); /* table, sizes, buffer, handle */
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),    cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_balance),   cmocka_unit_test(test_values),
        cmocka_unit_test(test_no_values), cmocka_unit_test(test_members),
        cmocka_unit_test(test_arrays),    cmocka_unit_test(test_accesses),
        cmocka_unit_test(test_views),     cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
