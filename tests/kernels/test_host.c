/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' host functions, called directly and as tasks and batches of a runtime. */
#include "count.h"
#include "kernels/cases.h"

#include "filch/filch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Batches in two chunks, of which the second is larger. */
static int run_directly(const kernel_case *c, void *user)
{
    (void)user;
    filch_view views[CASE_VIEWS];
    uint64_t cut = c->items / 3;
    filch_call call = cases_call(c, 0, cut, views);
    int code = cut > 0 ? c->kernel->host(&call) : 0;
    call = cases_call(c, cut, c->items, views);
    return code != 0 ? code : c->kernel->host(&call);
}

static void test_directly(void **state)
{
    (void)state;
    if (TEST_SEEKS_RACES)
        skip();
    assert_int_equal(cases_run(run_directly, NULL), 0);
}

/* The handles of a case's views; a handle has no place in another. */
static void make_data(filch_runtime *runtime, const kernel_case *c, filch_data **data)
{
    for (uint32_t v = 0; v < c->kernel->view_count; v++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        desc.ptr = c->views[v].ptr;
        desc.element = c->views[v].element;
        desc.rows = c->views[v].rows;
        desc.cols = c->views[v].cols;
        desc.ld = c->views[v].ld;
        /* A batch is cut between the tiles that it writes. */
        if (c->kernel->is_batch)
            *(desc.cols == 1 ? &desc.tile_rows : &desc.tile_cols) = 1;
        filch_status status = filch_data_create(runtime, &desc, &data[v]);
        if (status != FILCH_OK) {
            filch_error error = FILCH_ERROR_INIT;
            (void)filch_runtime_error(runtime, &error);
            fail_msg("%s, view %u: %s", c->kernel->name, v, error.text);
        }
    }
}

/* What a short last piece needs: an affine map has no piece shorter than the others. */
typedef struct pieces {
    uint64_t scale, extent;
} pieces;

static void map_pieces(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user)
{
    const pieces *p = user;
    *first = lo * p->scale;
    *last = hi * p->scale < p->extent ? hi * p->scale : p->extent;
}

static filch_job *submit_batch(filch_runtime *runtime, const kernel_case *c, filch_data **data,
                               filch_codelet *codelet, pieces *maps)
{
    filch_batch_access accesses[CASE_VIEWS] = {0};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    for (uint32_t v = 0; v < c->kernel->view_count; v++) {
        maps[v] = (pieces){c->scale[v], c->views[v].rows};
        accesses[v] = (filch_batch_access){.data = data[v],
                                           .mode = c->modes[v],
                                           .map = c->scale[v] ? FILCH_MAP_AFFINE : FILCH_MAP_WHOLE,
                                           .scale = c->scale[v],
                                           .before = c->halo[v],
                                           .after = c->halo[v]};
        if (c->scale[v] > 1 && c->views[v].rows % c->scale[v] != 0) {
            accesses[v].map = FILCH_MAP_CALLBACK;
            accesses[v].fn = map_pieces;
            accesses[v].user = &maps[v];
        }
    }
    desc.codelet = codelet;
    desc.args = c->args;
    desc.n = c->items;
    desc.accesses = accesses;
    desc.access_count = c->kernel->view_count;
    assert_int_equal(filch_batch_submit(runtime, &desc, NULL, &job), FILCH_OK);
    return job;
}

static filch_job *submit_task(filch_runtime *runtime, const kernel_case *c, filch_data **data,
                              filch_codelet *codelet, filch_graph **graph)
{
    filch_access accesses[CASE_VIEWS] = {0};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_job *job = NULL;
    for (uint32_t v = 0; v < c->kernel->view_count; v++)
        accesses[v] = (filch_access){.data = data[v], .mode = c->modes[v]};
    desc.codelet = codelet;
    desc.args = c->args;
    desc.accesses = accesses;
    desc.access_count = c->kernel->view_count;
    assert_int_equal(filch_graph_create(runtime, NULL, graph), FILCH_OK);
    assert_int_equal(filch_graph_add(*graph, &desc, NULL), FILCH_OK);
    assert_int_equal(filch_graph_submit(*graph, NULL, &job), FILCH_OK);
    return job;
}

static int run_in_runtime(const kernel_case *c, void *user)
{
    filch_runtime *runtime = user;
    filch_codelet *codelet = NULL;
    filch_data *data[CASE_VIEWS] = {NULL};
    pieces maps[CASE_VIEWS];
    filch_graph *graph = NULL;
    filch_error error = FILCH_ERROR_INIT;
    int code = 0;
    assert_int_equal(filch_codelet_create_builtin(runtime, c->kernel->name, &codelet), FILCH_OK);
    make_data(runtime, c, data);
    filch_job *job = c->kernel->is_batch ? submit_batch(runtime, c, data, codelet, maps)
                                         : submit_task(runtime, c, data, codelet, &graph);
    if (filch_job_wait(job, -1) == FILCH_TASK_FAILED) {
        assert_int_equal(filch_job_error(job, &error), FILCH_OK);
        if (error.native_code == 0)
            fail_msg("%s: %s", c->kernel->name, error.text);
        code = error.native_code;
    }
    assert_int_equal(filch_job_release(job), FILCH_OK);
    if (graph)
        assert_int_equal(filch_graph_destroy(graph), FILCH_OK);
    for (uint32_t v = 0; v < c->kernel->view_count; v++)
        assert_int_equal(filch_data_destroy(data[v]), FILCH_OK);
    return code;
}

static void test_in_runtime(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    const char *devices = getenv("FL_TEST_DEVICES");
    config.devices = devices ? devices : "host:2";
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_OK);
    assert_int_equal(cases_run(run_in_runtime, runtime), 0);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
}

static void test_table(void **state)
{
    (void)state;
    size_t count = 0;
    for (const filch_kernel *k; (k = filch_kernel_at(count)); count++) {
        assert_ptr_equal(filch_kernel_find(k->name), k);
        assert_non_null(k->host);
        assert_non_null(k->cuda->shape_of);
        assert_true(k->view_count >= 1 && k->view_count <= CASE_VIEWS);
        /* Its source has the entry. */
        assert_non_null(strstr(k->cuda->entry, "filch_"));
        assert_non_null(strstr(k->cuda->source, "#include \"filch/kernel.h\""));
    }
    assert_int_equal(count, 21);
    assert_null(filch_kernel_find("gemm"));
    assert_null(filch_kernel_find(NULL));
}

static double work_of(const char *name, const filch_view *views, const void *args)
{
    const filch_kernel *k = filch_kernel_find(name);
    const filch_call call = {.views = views, .view_count = k->view_count, .args = args};
    return k->work(&call);
}

static void test_work(void **state)
{
    (void)state;
    const filch_gemm_args gemm = {1, 1, 1, 0};
    const filch_syrk_args syrk = {1, 1, 0, 0};
    const filch_view views[] = {
        {.rows = 10, .cols = 20}, {.rows = 10, .cols = 30}, {.rows = 20, .cols = 30}};
    const filch_view square[] = {{.rows = 20, .cols = 7}, {.rows = 20, .cols = 20}};
    assert_true(work_of("gemm_f32", views, &gemm) == 2.0 * 20 * 30 * 10);
    assert_true(work_of("syrk_f64", square, &syrk) == 7.0 * 20 * 21);
    assert_true(work_of("trsm_f64", square, NULL) == 20.0 * 20 * 20);
    assert_true(work_of("potrf_f64", &square[1], NULL) > 20.0 * 20 * 20 / 3);
}

static void test_unknown_name(void **state)
{
    (void)state;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_runtime *runtime = NULL;
    filch_codelet *codelet = NULL;
    filch_error error = FILCH_ERROR_INIT;
    config.devices = "host:1";
    assert_int_equal(filch_runtime_create(&config, NULL, &runtime), FILCH_OK);
    assert_int_equal(filch_codelet_create_builtin(runtime, "gemm_f16", &codelet), FILCH_NOT_FOUND);
    assert_int_equal(filch_runtime_error(runtime, &error), FILCH_OK);
    assert_non_null(strstr(error.text, "gemm_f16"));
    assert_int_equal(filch_codelet_create_builtin(runtime, NULL, &codelet), FILCH_NOT_FOUND);
    assert_null(codelet);
    assert_int_equal(filch_codelet_create_builtin(NULL, "gemm_f64", &codelet),
                     FILCH_INVALID_HANDLE);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),        cmocka_unit_test(test_work),
        cmocka_unit_test(test_directly),     cmocka_unit_test(test_in_runtime),
        cmocka_unit_test(test_unknown_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
