/* SPDX-License-Identifier: Apache-2.0 */
/* Objects and their handles: kinds, the list, the graveyard of debug builds, forked children. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/core.h"

static fixture_memory counted;

static void *piece_alloc(size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    return memory->allocator.alloc(size, align, memory);
}

static void piece_free(void *pointer, size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    memory->allocator.free(pointer, size, align, memory);
}

static const fl_memory table = {piece_alloc, piece_free, &counted, "caller"};

static void objects_are_zeroed_aligned_and_counted(void **state)
{
    (void)state;
    fl_core core;
    memset(&core, 0, sizeof core);
    fixture_memory_init(&counted);
    assert_ok(fl_core_init(&core, &table, NULL));
    assert_ok(fl_object_check(&core, FL_MAGIC_RUNTIME));
    unsigned char *object = fl_object_new(&core, FL_MAGIC_DATA, 500, 128);
    assert_non_null(object);
    assert_int_equal((uintptr_t)object % 128, 0);
    for (size_t i = sizeof(fl_object); i < 500; ++i) {
        assert_int_equal(object[i], 0);
    }
    assert_int_equal(fl_load_relaxed(&core.host_bytes), 500);
    assert_ok(fl_object_check(object, FL_MAGIC_DATA));
    assert_status(fl_object_check(object, FL_MAGIC_GRAPH), FILCH_INVALID_HANDLE);
    assert_status(fl_object_check(NULL, FL_MAGIC_DATA), FILCH_INVALID_HANDLE);
    void *others[3];
    for (int i = 0; i < 3; ++i) {
        others[i] = fl_object_new(&core, FL_MAGIC_GRAPH, sizeof(fl_object) + 8, 1);
    }
    fl_object_delete(others[1]); /* middle, newest, oldest */
    fl_object_delete(others[2]);
    fl_object_delete(object);
    assert_ptr_equal(core.objects, others[0]);
    assert_null(core.objects->next);
    assert_null(core.objects->prev);
#ifndef NDEBUG
    assert_status(fl_object_check(object, FL_MAGIC_DATA), FILCH_INVALID_HANDLE);
#endif
    counted.fail_all = 1;
    assert_null(fl_object_new(&core, FL_MAGIC_DATA, 100, 16));
    counted.fail_all = 0;
    fl_core_fini(&core);
    assert_int_equal(counted.bytes, 0);
    assert_int_equal(fl_load_relaxed(&core.host_bytes), 0);
}

static void a_failure_is_recorded_for_its_thread(void **state)
{
    (void)state;
    fl_core core;
    filch_error error = FILCH_ERROR_INIT;
    memset(&core, 0, sizeof core);
    fixture_memory_init(&counted);
    assert_ok(fl_core_init(&core, &table, NULL));
    assert_status(fl_error_fetch(&core.errors, &error), FILCH_NOT_FOUND);
    assert_status(fl_core_fail(&core, FILCH_BUSY, "call", "label", "text %d", 7), FILCH_BUSY);
    assert_ok(fl_error_fetch(&core.errors, &error));
    assert_string_equal(error.text, "text 7");
    assert_string_equal(error.call, "call");
    assert_string_equal(error.label, "label");
    fl_core_fini(&core);
}

typedef struct handles {
    filch_runtime *runtime;
    filch_codelet *codelet;
    filch_data *data;
    filch_graph *graph, *built;
    filch_job *job;
} handles;

/* Every public call with a handle, in a child of the runtime's process; the number of the first one
 * that does not return FILCH_FORKED, or 0. */
static int calls_that_work(const handles *h)
{
    filch_codelet_desc cd = FILCH_CODELET_DESC_INIT;
    filch_data_desc dd = FILCH_DATA_DESC_INIT;
    filch_task_desc td = FILCH_TASK_DESC_INIT;
    filch_batch_desc bd = FILCH_BATCH_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_usage usage = {.size = sizeof usage};
    filch_tiling tiling = {.size = sizeof tiling};
    filch_job_info info = {.size = sizeof info};
    filch_device_info device = {.size = sizeof device};
    filch_codelet *codelet;
    filch_data *data;
    filch_graph *graph;
    filch_job *job;
    uint32_t index;
    size_t count;
    const filch_status results[] = {
        filch_runtime_drain(h->runtime, 0),
        filch_runtime_destroy(h->runtime),
        filch_runtime_abort(h->runtime),
        filch_runtime_poll(h->runtime, 0, NULL),
        filch_runtime_error(h->runtime, &error),
        filch_runtime_usage(h->runtime, &usage),
        filch_codelet_create(h->runtime, &cd, &codelet),
        filch_data_create(h->runtime, &dd, &data),
        filch_data_tiles(h->data, &tiling),
        filch_data_destroy(h->data),
        filch_graph_create(h->runtime, NULL, &graph),
        filch_graph_add(h->graph, &td, NULL),
        filch_graph_edge(h->graph, 1, 2),
        filch_graph_seal(h->graph),
        filch_graph_submit(h->built, NULL, &job),
        filch_graph_close(h->graph),
        filch_graph_destroy(h->graph),
        filch_batch_submit(h->runtime, &bd, NULL, &job),
        filch_job_wait(h->job, 0),
        filch_job_status(h->job),
        filch_job_cancel(h->job),
        filch_job_stats(h->job, &info, NULL, 0),
        filch_job_error(h->job, &error),
        filch_job_items(h->job, NULL, 0, &count),
        filch_job_release(h->job),
        filch_device_at(h->runtime, 0, &device),
        filch_device_by_ordinal(h->runtime, FILCH_BACKEND_HOST, 0, &index),
        filch_device_next(h->runtime, &index),
        filch_device_best_memory(h->runtime, &index),
        filch_device_best_score(h->runtime, &index),
        filch_device_choose(h->runtime, NULL, NULL, &index),
        filch_device_withdraw(h->runtime, 0),
        filch_device_readmit(h->runtime, 0),
        filch_device_presence(h->runtime, 0, NULL),
        filch_trace_start(h->runtime),
        filch_trace_stop(h->runtime),
        filch_trace_write(h->runtime, "/nowhere/trace.json"),
    };
    for (int i = 0; i < (int)(sizeof results / sizeof results[0]); ++i) {
        if (results[i] != FILCH_FORKED) {
            return i + 1;
        }
    }
    return filch_device_count(h->runtime) == 0 ? 0 : 99;
}

static void a_forked_child_is_told_so_by_every_call(void **state)
{
    (void)state;
    static char buffer[64];
    handles h = {.runtime = fixture_runtime("host:2", FILCH_DRIVE_THREADS, NULL)};
    h.codelet = fixture_codelet(h.runtime, "nothing", fixture_nothing, 0);
    h.data = fixture_vector(h.runtime, buffer, 1, 64, 8);
    h.graph = fixture_graph(h.runtime, FILCH_GRAPH_CLOSED);
    h.built = fixture_graph(h.runtime, FILCH_GRAPH_CLOSED);
    fixture_add(h.built, h.codelet, NULL, NULL, 0);
    assert_ok(filch_graph_submit(h.built, NULL, &h.job));
    assert_ok(filch_job_wait(h.job, -1));
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        _exit(calls_that_work(&h));
    }
    int outcome = 0;
    assert_int_equal(waitpid(child, &outcome, 0), child);
    assert_true(WIFEXITED(outcome));
    assert_int_equal(WEXITSTATUS(outcome), 0);
    /* The parent goes on. */
    assert_ok(filch_job_release(h.job));
    assert_ok(fixture_run(h.built));
    assert_ok(filch_runtime_destroy(h.runtime));
}

static void every_call_refuses_null_and_foreign_handles(void **state)
{
    (void)state;
    filch_runtime *runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    void *wrongs[] = {NULL, codelet};
    for (size_t i = 0; i < 2; ++i) {
        void *x = wrongs[i];
        filch_error error = FILCH_ERROR_INIT;
        filch_usage usage = {.size = sizeof usage};
        filch_job_info info = {.size = sizeof info};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
        filch_graph *graph;
        filch_job *job;
        size_t count;
        assert_status(filch_runtime_drain(x, 0), FILCH_INVALID_HANDLE);
        assert_status(filch_runtime_destroy(x), FILCH_INVALID_HANDLE);
        assert_status(filch_runtime_abort(x), FILCH_INVALID_HANDLE);
        assert_status(filch_runtime_poll(x, 0, NULL), FILCH_INVALID_HANDLE);
        assert_status(filch_runtime_error(x, &error), FILCH_INVALID_HANDLE);
        assert_status(filch_runtime_usage(x, &usage), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_create(x, NULL, &graph), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_add(x, &task, NULL), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_edge(x, 1, 2), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_seal(x), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_submit(x, NULL, &job), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_close(x), FILCH_INVALID_HANDLE);
        assert_status(filch_graph_destroy(x), FILCH_INVALID_HANDLE);
        assert_status(filch_batch_submit(x, &batch, NULL, &job), FILCH_INVALID_HANDLE);
        assert_status(filch_job_wait(x, 0), FILCH_INVALID_HANDLE);
        assert_status(filch_job_status(x), FILCH_INVALID_HANDLE);
        assert_status(filch_job_cancel(x), FILCH_INVALID_HANDLE);
        assert_status(filch_job_stats(x, &info, NULL, 0), FILCH_INVALID_HANDLE);
        assert_status(filch_job_error(x, &error), FILCH_INVALID_HANDLE);
        assert_status(filch_job_items(x, NULL, 0, &count), FILCH_INVALID_HANDLE);
        assert_status(filch_job_release(x), FILCH_INVALID_HANDLE);
        assert_status(filch_trace_start(x), FILCH_INVALID_HANDLE);
        assert_status(filch_trace_stop(x), FILCH_INVALID_HANDLE);
        assert_status(filch_trace_write(x, "t"), FILCH_INVALID_HANDLE);
    }
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(objects_are_zeroed_aligned_and_counted),
        cmocka_unit_test(a_failure_is_recorded_for_its_thread),
        cmocka_unit_test(a_forked_child_is_told_so_by_every_call),
        cmocka_unit_test(every_call_refuses_null_and_foreign_handles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
