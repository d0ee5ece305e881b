/* SPDX-License-Identifier: Apache-2.0 */
/* The driver alone: a loop of cuLaunchKernel of an empty kernel on one stream of each GPU, each
 * from a thread of its own. A stream keeps the order of its launches, which is stronger than what a
 * wavefront needs; that and the chain run on the first GPU. */
#include "offload/gpu.h"
#include "peers/peer.h"
#include "support/fail.h"
#include "support/timing.h"

#include "base/thread.h"

#include <stdlib.h>

/* nothing() and mark(own, first, second), which writes *own + 1 + max(*first, *second) where null
 * stands for 0. Every driver since 12.0 compiles this for every GPU since Turing. */
static const char kernels[] = ".version 6.3\n"
                              ".target sm_75\n"
                              ".address_size 64\n"
                              ".visible .entry nothing()\n"
                              "{\n"
                              "    ret;\n"
                              "}\n"
                              ".visible .entry mark(.param .u64 own, .param .u64 first,\n"
                              "                     .param .u64 second)\n"
                              "{\n"
                              "    .reg .u64 %a<3>;\n"
                              "    .reg .u32 %v<3>;\n"
                              "    .reg .pred %p<2>;\n"
                              "    ld.param.u64 %a0, [own];\n"
                              "    ld.param.u64 %a1, [first];\n"
                              "    ld.param.u64 %a2, [second];\n"
                              "    mov.u32 %v1, 0;\n"
                              "    mov.u32 %v2, 0;\n"
                              "    setp.ne.u64 %p0, %a1, 0;\n"
                              "    setp.ne.u64 %p1, %a2, 0;\n"
                              "    @%p0 ld.volatile.u32 %v1, [%a1];\n"
                              "    @%p1 ld.volatile.u32 %v2, [%a2];\n"
                              "    ld.volatile.u32 %v0, [%a0];\n"
                              "    max.u32 %v1, %v1, %v2;\n"
                              "    add.u32 %v0, %v0, %v1;\n"
                              "    add.u32 %v0, %v0, 1;\n"
                              "    st.volatile.u32 [%a0], %v0;\n"
                              "    ret;\n"
                              "}\n";

typedef struct loop {
    const bench_peer_work *work;
    bench_gpu gpu;
    CUmodule module;
    CUfunction nothing;
    CUfunction mark;
    CUstream stream;
    CUdeviceptr marks; /* of all tasks; taken when first wanted */
    size_t first;      /* tasks first … end - 1 */
    size_t end;
    fl_thread thread;
    filch_status status;
    filch_error error;
} loop;

typedef struct state {
    unsigned count;
    loop loops[BENCH_PEER_GPUS];
} state;

static bool supports(bench_peer_kind kind)
{
    return kind == BENCH_PEER_EMPTY || kind == BENCH_PEER_RERUN || kind == BENCH_PEER_CHAIN ||
           kind == BENCH_PEER_WAVEFRONT;
}

/* --- One GPU --- */

static filch_status load(loop *l, filch_error *error)
{
    const fl_cuda_api *api = bench_gpu_api(&l->gpu);
    filch_status status =
        bench_gpu_check(&l->gpu, api->cuModuleLoadDataEx(&l->module, kernels, 0, NULL, NULL),
                        "cuModuleLoadDataEx", error);
    if (status == FILCH_OK)
        status =
            bench_gpu_check(&l->gpu, api->cuModuleGetFunction(&l->nothing, l->module, "nothing"),
                            "cuModuleGetFunction", error);
    if (status == FILCH_OK)
        status = bench_gpu_check(&l->gpu, api->cuModuleGetFunction(&l->mark, l->module, "mark"),
                                 "cuModuleGetFunction", error);
    if (status == FILCH_OK)
        status = bench_gpu_stream(&l->gpu, &l->stream, error);
    return status;
}

static void loop_close(loop *l)
{
    const fl_cuda_api *api = bench_gpu_api(&l->gpu);
    if (l->gpu.context && bench_gpu_enter(&l->gpu, NULL) == FILCH_OK) {
        bench_gpu_free(&l->gpu, &l->marks);
        bench_gpu_stream_free(&l->gpu, &l->stream);
        if (l->module)
            (void)api->cuModuleUnload(l->module);
        bench_gpu_leave(&l->gpu);
    }
    bench_gpu_close(&l->gpu);
}

static filch_status loop_open(loop *l, uint32_t ordinal, filch_error *error)
{
    filch_status status = bench_gpu_open(&l->gpu, ordinal, error);
    if (status == FILCH_OK)
        status = bench_gpu_enter(&l->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = load(l, error);
    bench_gpu_leave(&l->gpu);
    return status;
}

static CUresult launch(const loop *l, CUfunction function, void **params)
{
    return bench_gpu_api(&l->gpu)->cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, l->stream, params,
                                                  NULL);
}

static filch_status launch_all(loop *l)
{
    CUresult result = FL_CUDA_SUCCESS;
    for (size_t k = l->first; k < l->end && result == FL_CUDA_SUCCESS; k++)
        result = launch(l, l->nothing, NULL);
    if (result == FL_CUDA_SUCCESS)
        result = bench_gpu_api(&l->gpu)->cuStreamSynchronize(l->stream);
    return bench_gpu_check(&l->gpu, result, "cuLaunchKernel", &l->error);
}

/* The same with marks, which are made on the GPU and then fetched. */
static CUresult mark_all(loop *l)
{
    const bench_peer_work *w = l->work;
    const fl_cuda_api *api = bench_gpu_api(&l->gpu);
    size_t bytes = bench_peer_tasks(w) * sizeof *w->marks;
    CUresult result = l->marks ? FL_CUDA_SUCCESS : api->cuMemAlloc(&l->marks, bytes);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuMemsetD8Async(l->marks, 0, bytes, l->stream);
    for (size_t k = l->first; k < l->end && result == FL_CUDA_SUCCESS; k++) {
        size_t before[2];
        bench_peer_predecessors(w, k, before);
        CUdeviceptr own = l->marks + k * sizeof *w->marks;
        CUdeviceptr first = before[0] == k ? 0 : l->marks + before[0] * sizeof *w->marks;
        CUdeviceptr second = before[1] == k ? 0 : l->marks + before[1] * sizeof *w->marks;
        result = launch(l, l->mark, (void *[]){&own, &first, &second});
    }
    if (result == FL_CUDA_SUCCESS && l->end > l->first)
        result = api->cuMemcpyDtoHAsync(w->marks + l->first, l->marks + l->first * sizeof *w->marks,
                                        (l->end - l->first) * sizeof *w->marks, l->stream);
    CUresult waited = api->cuStreamSynchronize(l->stream);
    return result == FL_CUDA_SUCCESS ? waited : result;
}

static int run_loop(void *opaque)
{
    loop *l = opaque;
    l->status = bench_gpu_enter(&l->gpu, &l->error);
    if (l->status != FILCH_OK)
        return 1;
    if (l->work->marks)
        l->status = bench_gpu_check(&l->gpu, mark_all(l), "cuLaunchKernel", &l->error);
    else
        l->status = launch_all(l);
    bench_gpu_leave(&l->gpu);
    return 0;
}

/* --- All --- */

static void teardown(void *opaque)
{
    state *s = opaque;
    for (unsigned k = 0; k < s->count; k++)
        loop_close(&s->loops[k]);
    free(s);
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    bool is_ordered = work->kind == BENCH_PEER_CHAIN || work->kind == BENCH_PEER_WAVEFRONT;
    unsigned gpus = is_ordered ? 1 : work->gpu_count;
    size_t tasks = bench_peer_tasks(work);
    state *s = calloc(1, sizeof *s);
    filch_status status = FILCH_OK;
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "bare", 0, "no memory");
    for (unsigned k = 0; k < gpus && status == FILCH_OK; k++) {
        loop *l = &s->loops[s->count++];
        l->work = work;
        l->first = tasks * k / gpus;
        l->end = tasks * (k + 1) / gpus;
        status = loop_open(l, work->gpus[k], error);
    }
    if (status == FILCH_OK)
        *out = s;
    else
        teardown(s);
    return status;
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    unsigned started = 1;
    filch_status status = FILCH_OK;
    double start = bench_now_s();
    while (started < s->count && status == FILCH_OK) {
        status = fl_thread_start(&s->loops[started].thread, run_loop, &s->loops[started]);
        started += status == FILCH_OK;
    }
    (void)run_loop(&s->loops[0]);
    for (unsigned k = 1; k < started; k++)
        fl_thread_join(s->loops[k].thread);
    *seconds = bench_now_s() - start;
    if (status != FILCH_OK)
        return bench_fail(error, status, "bare", 0, "a thread cannot be started");
    for (unsigned k = 0; k < s->count && status == FILCH_OK; k++)
        if ((status = s->loops[k].status) != FILCH_OK && error)
            *error = s->loops[k].error;
    return status;
}

const bench_peer bench_peer_bare = {
    .name = "bare",
    .description = "a loop of cuLaunchKernel of an empty kernel, a stream and thread a GPU",
    .supports = supports,
    .setup = setup,
    .run = run,
    .teardown = teardown,
    .needs_gpu = true,
};
