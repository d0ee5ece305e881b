/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of kernels/dense on the fake driver begin with: a runtime with the vendor's libraries,
 * host functions in place of filch's kernels, matrices and their handles. Included after cmocka.h,
 * math.h, stdlib.h and string.h. */
#ifndef TESTS_FAKE_DENSE_H
#define TESTS_FAKE_DENSE_H

#include <float.h>

#include "fakecuda.h"
#include "kernels/dense/codelets.h"
#include "kernels/dense/narrow.h"
#include "kernels/dense/split.h"
#include "kernels/dense/state.h"

#define TILE 32
#define MORE 3 /* rows between columns */

FL_DENSE_DECLARE
static const fl_dense_host host = FL_DENSE_LINKED;

typedef struct place {
    const char *config;
    const char *devices;
    bool has_compiler;
} place;

typedef struct bed {
    fl_cuda_library driver;
    fl_vendor *vendor;
    filch_runtime *runtime;
    fl_dense *dense;
    size_t element;
} bed;

typedef struct matrix {
    size_t rows, cols, ld, element;
    void *at;
    fl_columns columns; /* of the handle, if there is one */
} matrix;

static inline void must(int result)
{
    assert_int_equal(result, 0);
}

/* What kernels/dense/exchange.cu does. */
static inline int list_exchanges(const filch_call *call)
{
    const filch_view *pivots = &call->views[0];
    const int *pivot = pivots->ptr;
    int *list = call->views[1].ptr, count = (int)pivots->rows;
    assert_int_equal(call->views[1].rows, 2 * pivots->rows);
    for (int i = 0; i < 2 * count; i++) {
        list[i] = i < count ? i : pivot[i - count] - 1;
        for (int k = count - 1; k >= 0; k--)
            if (list[i] == k || list[i] == pivot[k] - 1)
                list[i] = list[i] == k ? pivot[k] - 1 : k;
    }
    return 0;
}

static inline void exchange_column(char *column, size_t element, const int *pivot, const int *list,
                                   size_t count)
{
    char *kept = malloc(2 * count * element);
    assert_non_null(kept);
    for (size_t i = 0; i < 2 * count; i++)
        memcpy(kept + i * element, column + (size_t)list[i] * element, element);
    for (size_t i = 0; i < 2 * count; i++) {
        size_t to = i < count ? i : (size_t)pivot[i - count] - 1;
        memcpy(column + to * element, kept + i * element, element);
    }
    free(kept);
}

static inline int exchange(const filch_call *call)
{
    const filch_view *a = &call->views[0], *pivots = &call->views[1], *list = &call->views[2];
    for (size_t j = 0; j < a->cols; j++)
        exchange_column((char *)a->ptr + (pivots->row + j * a->ld) * a->element, a->element,
                        pivots->ptr, list->ptr, pivots->rows);
    return 0;
}

/* What kernels/dense/lu_panel.cu and qr_panel.cu do. */
static inline int factor_lu_panel(const filch_call *call)
{
    assert_int_equal(call->views[3].rows, FL_LU_PANEL_WORDS);
    return fl_dense_host_lu(call);
}

static inline int factor_qr_panel(const filch_call *call)
{
    assert_int_equal(call->views[4].rows, FL_QR_PANEL_WORDS);
    return fl_dense_host_qr(call);
}

static inline void register_kernels(void)
{
    fakecuda_register_filch("fl_exchange_list", list_exchanges, 2, false, 40);
    fakecuda_register_filch("fl_exchange_f64", exchange, 3, false, 40);
    fakecuda_register_filch("fl_exchange_f32", exchange, 3, false, 40);
    fakecuda_register_filch("fl_lu_panel_f64", factor_lu_panel, 4, false, 40);
    fakecuda_register_filch("fl_lu_panel_f32", factor_lu_panel, 4, false, 40);
    fakecuda_register_filch("fl_qr_panel_f64", factor_qr_panel, 6, false, 40);
    fakecuda_register_filch("fl_qr_panel_f32", factor_qr_panel, 6, false, 40);
    fakecuda_register_filch("fl_split_left", fl_split_left_host, 2, false, sizeof(fl_dense_args));
    fakecuda_register_filch("fl_split_right", fl_split_right_host, 2, false, sizeof(fl_dense_args));
    fakecuda_register_filch("fl_narrow", fl_narrow_host, 3, false, sizeof(fl_narrow_args));
    fakecuda_register_filch("fl_narrow_rows", fl_narrow_rows_host, 5, false,
                            sizeof(fl_narrow_args));
    fakecuda_register_filch("fl_widen", fl_widen_host, 5, false, sizeof(fl_narrow_args));
}

/* panel_rows: of the panels that the vendor is told to expect; 0: of none. */
static inline void begin(bed *b, const place *where, size_t element, size_t panel_rows)
{
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    *b = (bed){.element = element};
    (void)setenv("FILCH_NVRTC", where->has_compiler ? FL_NVRTC_KERNELS : "/nonexistent/libnvrtc.so",
                 1);
    (void)setenv("FILCH_CACHE_DIR", "off", 1);
    register_kernels();
    fakecuda_reset();
    assert_true(fakecuda_configure(where->config));
    must(fl_cuda_load(&b->driver, NULL));
    must(fl_vendor_open(&b->driver, NULL, &b->vendor));
    if (panel_rows)
        fl_vendor_expect_panel(b->vendor, element, panel_rows, TILE);
    desc.devices = where->devices;
    must(filch_runtime_create(&desc, NULL, &b->runtime));
    const fl_dense_desc dense = {
        .runtime = b->runtime, .host = &host, .vendor = b->vendor, .element = element};
    must(fl_dense_open(&dense, &b->dense));
}

static inline void end(bed *b)
{
    fl_dense_close(b->dense);
    must(filch_runtime_destroy(b->runtime));
    fl_vendor_close(b->vendor);
    fl_cuda_unload(&b->driver);
    assert_int_equal(fakecuda_live("memory"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

/* --- Matrices --- */

static inline matrix take(const bed *b, size_t rows, size_t cols)
{
    matrix m = {.rows = rows, .cols = cols, .ld = rows + MORE, .element = b->element};
    m.at = calloc(m.ld * cols, m.element);
    assert_non_null(m.at);
    return m;
}

static inline matrix copy_of(const bed *b, const matrix *from)
{
    matrix m = take(b, from->rows, from->cols);
    memcpy(m.at, from->at, m.ld * m.cols * m.element);
    return m;
}

/* Makes a handle in block columns. */
static inline void join(const bed *b, matrix *m, size_t tile)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    if (tile > m->cols)
        tile = m->cols;
    desc.ptr = m->at;
    desc.element = m->element;
    desc.rows = m->rows;
    desc.cols = m->cols;
    desc.ld = m->ld;
    desc.tile_cols = tile;
    m->columns = (fl_columns){.rows = m->rows, .cols = m->cols, .tile = tile};
    must(filch_data_create(b->runtime, &desc, &m->columns.data));
}

static inline void give(matrix *m)
{
    if (m->columns.data)
        must(filch_data_destroy(m->columns.data));
    free(m->at);
}

/* -1 to 1. */
static inline double draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return (double)(*seed >> 40) / (double)(1 << 23) - 1;
}

#endif
