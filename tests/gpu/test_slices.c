/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels of a slice run on the slice's multiprocessors, however they are launched: one by one,
 * many together, or as a whole graph that is submitted again and again. */
#include "gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef FL_FAKE
#include "fakecuda/fakecuda.h"
#endif

enum { SLICE = 8, TASKS = 400, BLOCKS = 256, RUNS = 6, MOST_IDS = 1024 };

static const char source[] = "#include \"filch/kernel.h\"\n"
                             "extern \"C\" __global__ void where(filch_view ids)\n"
                             "{\n"
                             "    unsigned id;\n"
                             "    asm volatile(\"mov.u32 %0, %%smid;\" : \"=r\"(id));\n"
                             "    if (threadIdx.x == 0)\n"
                             "        ((unsigned *)ids.ptr)[blockIdx.x] = id;\n"
                             "}\n";

/* What the fake driver runs: it has no multiprocessors to tell. */
static int where(const filch_call *call)
{
    memset(call->views[0].ptr, 0, BLOCKS * sizeof(uint32_t));
    return 0;
}

static int shape_of(const filch_call *call, filch_shape *shape)
{
    (void)call;
    shape->grid[0] = BLOCKS;
    shape->block[0] = 32;
    return 0;
}

static uint32_t count_ids(const uint32_t *ids, size_t count)
{
    bool seen[MOST_IDS] = {false};
    uint32_t found = 0;
    for (size_t i = 0; i < count; i++) {
        if (ids[i] >= MOST_IDS) {
            gpu_fail("block %zu ran on multiprocessor %u", i, ids[i]);
            return 0;
        }
        found += !seen[ids[i]];
        seen[ids[i]] = true;
    }
    return found;
}

static filch_runtime *open_slice(void)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    char devices[32];
    snprintf(devices, sizeof devices, "cuda:0/%d", SLICE);
    config.devices = devices;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        printf("skipped: no slice of %d multiprocessors: %s\n", SLICE, error.text);
        exit(GPU_SKIP);
    }
    return runtime;
}

static void check_runs(filch_runtime *runtime, filch_codelet *codelet, uint32_t *ids)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    filch_graph *graph = NULL;
    desc.ptr = ids;
    desc.element = sizeof *ids;
    desc.rows = BLOCKS;
    desc.cols = TASKS;
    desc.tile_cols = 1;
    desc.flags = FILCH_DATA_MANAGED;
    gpu_ok(filch_data_create(runtime, &desc, &data));
    gpu_ok(filch_graph_create(runtime, NULL, &graph));
    for (uint32_t t = 0; t < TASKS; t++) {
        const filch_access access = {.data = data, .col = t, .mode = FILCH_WRITE};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = codelet;
        task.accesses = &access;
        task.access_count = 1;
        gpu_ok(filch_graph_add(graph, &task, NULL));
    }
    for (int run = 0; run < RUNS && !gpu_has_failed(); run++) {
        filch_job *job = NULL;
        gpu_ok(filch_graph_submit(graph, NULL, &job));
        gpu_wait(runtime, job, FILCH_OK);
        gpu_ok(filch_data_acquire(data, FILCH_READ));
        uint32_t used = count_ids(ids, (size_t)TASKS * BLOCKS);
        if (used > SLICE)
            gpu_fail("run %d used %u multiprocessors of %d", run, used, SLICE);
        printf("run %d: %u multiprocessors\n", run, used);
        gpu_ok(filch_data_release(data));
    }
    gpu_ok(filch_graph_destroy(graph));
    gpu_ok(filch_data_destroy(data));
}

int main(void)
{
    filch_runtime *runtime = open_slice();
    filch_codelet *codelet = NULL;
    gpu_twin("where", where, 1, false, 0);
    if (gpu_codelet(runtime, source, "where", where, 0, shape_of, &codelet) == FILCH_NO_COMPILER) {
        printf("skipped: there is no CUDA C compiler\n");
        gpu_ok(filch_runtime_destroy(runtime));
        return gpu_has_failed() ? 1 : GPU_SKIP;
    }
    uint32_t *ids = gpu_alloc((size_t)TASKS * BLOCKS, sizeof *ids);
    check_runs(runtime, codelet, ids);
    gpu_ok(filch_runtime_destroy(runtime));
#ifdef FL_FAKE
    /* Graphs' kernels run on all multiprocessors. */
    if (fakecuda_count("cuGraphLaunch") != 0)
        gpu_fail("a graph was launched on a slice");
#endif
    free(ids);
    return gpu_has_failed() ? 1 : 0;
}
