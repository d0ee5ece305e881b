/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static void *counted_alloc(size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    int64_t call = atomic_fetch_add(&memory->calls, 1) + 1;
    void *pointer = NULL;
    if (atomic_load(&memory->fail_all) != 0 || call == atomic_load(&memory->fail_at) ||
        posix_memalign(&pointer, align < sizeof(void *) ? sizeof(void *) : align, size) != 0) {
        return NULL;
    }
    atomic_fetch_add(&memory->bytes, (int64_t)size);
    atomic_fetch_add(&memory->pieces, 1);
    return pointer;
}

static void counted_free(void *pointer, size_t size, size_t align, void *user)
{
    fixture_memory *memory = user;
    (void)align;
    atomic_fetch_sub(&memory->bytes, (int64_t)size);
    atomic_fetch_sub(&memory->pieces, 1);
    free(pointer);
}

void fixture_memory_init(fixture_memory *memory)
{
    *memory = (fixture_memory){.allocator = {counted_alloc, counted_free, memory}};
}

void fixture_memory_fail_after(fixture_memory *memory, int64_t n)
{
    atomic_store(&memory->fail_at, n == 0 ? 0 : atomic_load(&memory->calls) + n);
}

filch_runtime *fixture_runtime(const char *devices, filch_drive drive, fixture_memory *memory)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    config.allocator = memory != NULL ? &memory->allocator : NULL;
    filch_status status = filch_runtime_create(&config, &error, &runtime);
    if (status != FILCH_OK) {
        fail_msg("%s: %s: %s", devices, filch_status_name(status), error.text);
    }
    return runtime;
}

filch_codelet *fixture_codelet(filch_runtime *runtime, const char *name, filch_host_fn host,
                               uint32_t arg_size)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = name;
    desc.host = host;
    desc.arg_size = arg_size;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    return codelet;
}

filch_data *fixture_vector(filch_runtime *runtime, void *ptr, uint64_t element, uint64_t n,
                           uint64_t tile)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = ptr;
    desc.element = element;
    desc.rows = n;
    desc.tile_rows = tile;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

filch_task fixture_add(filch_graph *graph, filch_codelet *codelet, const void *args,
                       const filch_access *accesses, uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task = 0;
    desc.codelet = codelet;
    desc.args = args;
    desc.accesses = accesses;
    desc.access_count = count;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

filch_graph *fixture_graph(filch_runtime *runtime, filch_graph_kind kind)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.kind = kind;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

filch_status fixture_run(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    filch_status status = filch_job_wait(job, -1);
    assert_ok(filch_job_release(job));
    return status;
}

filch_error fixture_error(filch_runtime *runtime)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    return error;
}

bool fixture_await(_Atomic int *flag, int value)
{
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    while (atomic_load(flag) < value) {
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
        if (now.tv_sec - start.tv_sec > PATIENCE_S) {
            return false;
        }
    }
    return true;
}

int fixture_threads(const char *prefix)
{
    int count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], name[32] = "";
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = entry->d_name[0] != '.' ? fopen(path, "r") : NULL;
        if (file != NULL) { /* else the thread has ended meanwhile */
            count += fgets(name, sizeof name, file) != NULL &&
                     strncmp(name, prefix, strlen(prefix)) == 0;
            fclose(file);
        }
    }
    closedir(tasks);
    return count;
}

int fixture_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}
