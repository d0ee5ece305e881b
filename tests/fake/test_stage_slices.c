/* SPDX-License-Identifier: Apache-2.0 */
/* Slices of one GPU share its slots for copies out: a result that waits for a long kernel on one of
 * them keeps none of another's from going home. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"
#include "patience.h"

enum { VECTORS = 200 };

#define DRIVER "{\"threads\": 4, \"devices\": [{}]}"

static uint64_t cells[VECTORS][N];

static void add_for(filch_graph *to, filch_codelet *codelet, filch_data *data, uint32_t affinity)
{
    const filch_access access = {.data = data, .mode = FILCH_READWRITE};
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = &access;
    desc.access_count = 1;
    desc.affinity = affinity;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

/* A job of many small results on one slice is over while another slice's kernel is not, of which
 * the result is behind it. */
static void check_results(const char *helpers)
{
    assert_int_equal(setenv("FILCH_STAGE_THREADS", helpers, 1), 0);
    assert_int_equal(setenv("FILCH_POLICY", "static", 1), 0); /* a task stays where it was put */
    start("cuda:0/88+24", "1", DRIVER);
    assert_int_equal(unsetenv("FILCH_POLICY"), 0);
    assert_int_equal(unsetenv("FILCH_STAGE_THREADS"), 0);
    filch_codelet *holding = on_gpu("hold"), *bumping = on_gpu("bump");
    filch_data *held = handle(x), *data[VECTORS];
    filch_graph *first = graph(), *second = graph();
    add_for(first, holding, held, 1);
    for (int i = 0; i < VECTORS; i++) {
        data[i] = handle(cells[i]);
        set(cells[i], (uint64_t)i);
        add_for(second, bumping, data[i], 2);
    }
    atomic_store(&is_held, 1);
    filch_job *a = submit(first);
    await_holds(1);
    filch_job *b = submit(second);
    filch_status status = filch_job_wait(b, SOON);
    atomic_store(&is_held, 0);
    finish(a, FILCH_OK);
    finish(b, FILCH_OK);
    for (int i = 0; i < VECTORS; i++)
        expect(cells[i], (uint64_t)i + 1);
    assert_int_equal(status, FILCH_OK);
    assert_ok(filch_graph_destroy(first));
    assert_ok(filch_graph_destroy(second));
    assert_ok(filch_data_destroy(held));
    for (int i = 0; i < VECTORS; i++)
        assert_ok(filch_data_destroy(data[i]));
    stop();
}

static void a_long_kernel_keeps_no_slots(void **state)
{
    (void)state;
    check_results("0");
    check_results("2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_kernel_keeps_no_slots),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
