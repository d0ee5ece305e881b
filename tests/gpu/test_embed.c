/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses CUDA before, between and after filch's runtimes finds it as it left it: the
 * current context, device memory, device flags, primary contexts and the threads' affinity. Through
 * the CUDA runtime library where there is one, and through the driver in any case. */
#define _GNU_SOURCE
#include "gpu.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/driver/loader.h"

enum { ITEMS = 100000, BYTES = 1 << 16, DRIVER_DEVICE = 0 };

/* The part of the CUDA runtime library that the program uses; all null where there is none. */
typedef struct cudart {
    int (*cudaSetDevice)(int device);
    int (*cudaGetDevice)(int *device);
    int (*cudaGetDeviceFlags)(unsigned *flags);
    int (*cudaMalloc)(void **block, size_t bytes);
    int (*cudaFree)(void *block);
    int (*cudaMemset)(void *block, int value, size_t bytes);
    int (*cudaMemcpy)(void *to, const void *from, size_t bytes, int kind);
    int (*cudaGetLastError)(void);
} cudart;

enum { DEVICE_TO_HOST = 2 };

/* What filch must not change. */
typedef struct host_state {
    CUcontext current;
    unsigned context_flags;
    unsigned primary_flags;
    int primary_active;
    unsigned device_flags;
    int device;
    cpu_set_t affinity;
} host_state;

typedef struct host {
    fl_cuda_library driver;
    CUresult (*cuCtxGetFlags)(unsigned *flags); /* filch itself does not need these */
    CUresult (*cuDevicePrimaryCtxGetState)(CUdevice device, unsigned *flags, int *active);
    cudart runtime;
    bool has_runtime;
    CUcontext context;
    CUdeviceptr block; /* holds a pattern throughout */
    void *runtime_block;
} host;

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

/* --- The program --- */

static bool find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool load_runtime(cudart *r)
{
    static const char *const names[] = {"libcudart.so.13", "libcudart.so.12",
                                        "/usr/local/cuda/lib64/libcudart.so"};
    void *library = NULL;
    for (size_t k = 0; k < sizeof names / sizeof *names && !library; k++)
        library = dlopen(names[k], RTLD_NOW | RTLD_LOCAL);
    return library && find(library, "cudaSetDevice", &r->cudaSetDevice) &&
           find(library, "cudaGetDevice", &r->cudaGetDevice) &&
           find(library, "cudaGetDeviceFlags", &r->cudaGetDeviceFlags) &&
           find(library, "cudaMalloc", &r->cudaMalloc) && find(library, "cudaFree", &r->cudaFree) &&
           find(library, "cudaMemset", &r->cudaMemset) &&
           find(library, "cudaMemcpy", &r->cudaMemcpy) &&
           find(library, "cudaGetLastError", &r->cudaGetLastError);
}

static void check_bytes(const unsigned char *bytes, unsigned char value)
{
    for (size_t k = 0; k < BYTES; k++)
        CHECK(bytes[k] == value);
}

/* Through the driver, on a stream of its own in the context that is current. */
static void use_driver(const host *h, unsigned char value)
{
    const fl_cuda_api *api = &h->driver.api;
    unsigned char *bytes = gpu_alloc(BYTES, 1);
    CUstream stream;
    CHECK(api->cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING) == FL_CUDA_SUCCESS);
    CHECK(api->cuMemcpyDtoHAsync(bytes, h->block, BYTES, stream) == FL_CUDA_SUCCESS);
    CHECK(api->cuStreamSynchronize(stream) == FL_CUDA_SUCCESS);
    check_bytes(bytes, value); /* as the last use left it */
    CHECK(api->cuMemsetD8Async(h->block, (unsigned char)(value + 1), BYTES, stream) ==
          FL_CUDA_SUCCESS);
    CHECK(api->cuStreamSynchronize(stream) == FL_CUDA_SUCCESS);
    CHECK(api->cuStreamDestroy(stream) == FL_CUDA_SUCCESS);
    free(bytes);
}

static void use_runtime(const host *h, unsigned char value)
{
    const cudart *r = &h->runtime;
    unsigned char *bytes = gpu_alloc(BYTES, 1);
    CHECK(r->cudaGetLastError() == 0);
    CHECK(r->cudaMemcpy(bytes, h->runtime_block, BYTES, DEVICE_TO_HOST) == 0);
    check_bytes(bytes, value);
    CHECK(r->cudaMemset(h->runtime_block, (unsigned char)(value + 1), BYTES) == 0);
    free(bytes);
}

static void use(const host *h, unsigned char value)
{
    use_driver(h, value);
    if (h->has_runtime)
        use_runtime(h, value);
}

/* Its own references to the primary context, and memory in it. */
static void begin(host *h)
{
    const fl_cuda_api *api = &h->driver.api;
    CUstream stream;
    filch_error error = FILCH_ERROR_INIT;
    if (fl_cuda_load(&h->driver, &error) != FILCH_OK || h->driver.count == 0) {
        fprintf(stderr, "skipped: %s\n", error.text);
        exit(GPU_SKIP);
    }
    CHECK(find(h->driver.handle, "cuCtxGetFlags", &h->cuCtxGetFlags));
    CHECK(find(h->driver.handle, "cuDevicePrimaryCtxGetState", &h->cuDevicePrimaryCtxGetState));
    CHECK(api->cuDevicePrimaryCtxRetain(&h->context, DRIVER_DEVICE) == FL_CUDA_SUCCESS);
    CHECK(api->cuCtxPushCurrent(h->context) == FL_CUDA_SUCCESS);
    CHECK(api->cuMemAlloc(&h->block, BYTES) == FL_CUDA_SUCCESS);
    CHECK(api->cuStreamCreate(&stream, FL_CU_STREAM_NON_BLOCKING) == FL_CUDA_SUCCESS);
    CHECK(api->cuMemsetD8Async(h->block, 1, BYTES, stream) == FL_CUDA_SUCCESS);
    CHECK(api->cuStreamSynchronize(stream) == FL_CUDA_SUCCESS);
    CHECK(api->cuStreamDestroy(stream) == FL_CUDA_SUCCESS);
    if (!h->has_runtime)
        return;
    CHECK(h->runtime.cudaSetDevice(0) == 0);
    CHECK(h->runtime.cudaMalloc(&h->runtime_block, BYTES) == 0);
    CHECK(h->runtime.cudaMemset(h->runtime_block, 1, BYTES) == 0);
}

static void end(host *h)
{
    const fl_cuda_api *api = &h->driver.api;
    CUcontext popped;
    if (h->has_runtime)
        CHECK(h->runtime.cudaFree(h->runtime_block) == 0);
    CHECK(api->cuMemFree(h->block) == FL_CUDA_SUCCESS);
    CHECK(api->cuCtxPopCurrent(&popped) == FL_CUDA_SUCCESS && popped == h->context);
    CHECK(api->cuDevicePrimaryCtxRelease(DRIVER_DEVICE) == FL_CUDA_SUCCESS);
    fl_cuda_unload(&h->driver);
}

/* --- What must stay --- */

static void read_state(const host *h, host_state *state)
{
    const fl_cuda_api *api = &h->driver.api;
    memset(state, 0, sizeof *state);
    CHECK(api->cuCtxGetCurrent(&state->current) == FL_CUDA_SUCCESS);
    CHECK(h->cuCtxGetFlags(&state->context_flags) == FL_CUDA_SUCCESS);
    CHECK(h->cuDevicePrimaryCtxGetState(DRIVER_DEVICE, &state->primary_flags,
                                        &state->primary_active) == FL_CUDA_SUCCESS);
    if (h->has_runtime) {
        CHECK(h->runtime.cudaGetDevice(&state->device) == 0);
        CHECK(h->runtime.cudaGetDeviceFlags(&state->device_flags) == 0);
    }
    CHECK(sched_getaffinity(0, sizeof state->affinity, &state->affinity) == 0);
}

static void check_state(const host *h, const host_state *before, const char *when)
{
    host_state now;
    read_state(h, &now);
    if (now.current != before->current || now.context_flags != before->context_flags ||
        now.primary_flags != before->primary_flags ||
        now.primary_active != before->primary_active || now.device != before->device ||
        now.device_flags != before->device_flags || !CPU_EQUAL(&now.affinity, &before->affinity)) {
        fprintf(stderr, "%s the host's context, flags, device or affinity are others\n", when);
        exit(1);
    }
}

/* --- filch --- */

static const char source[] =
    "#include \"filch/kernel.h\"\n"
    "extern \"C\" __global__ void count_up(filch_view x, filch_range range)\n"
    "{\n"
    "    unsigned long long lo = range.lo + blockIdx.x * blockDim.x + threadIdx.x;\n"
    "    for (unsigned long long i = lo; i < range.hi; i += gridDim.x * blockDim.x)\n"
    "        ((unsigned long long *)x.ptr)[i - x.row] += i;\n"
    "}\n";

static int count_up(const filch_call *call)
{
    const filch_view *x = &call->views[0];
    for (uint64_t i = call->lo; i < call->hi; i++)
        ((uint64_t *)x->ptr)[i - x->row] += i;
    return 0;
}

static filch_codelet *make_codelet(filch_runtime *runtime)
{
    filch_codelet *codelet = NULL;
    gpu_twin("count_up", count_up, 1, true, 0);
    CHECK(gpu_codelet(runtime, source, "count_up", count_up, 0, NULL, &codelet) == FILCH_OK);
    return codelet;
}

static bool can_compile(void)
{
    filch_codelet *codelet = NULL;
    filch_runtime *runtime = gpu_runtime(BENCH_POLICY_STEAL);
    gpu_twin("count_up", count_up, 1, true, 0);
    filch_status status = gpu_codelet(runtime, source, "count_up", count_up, 0, NULL, &codelet);
    CHECK(filch_runtime_abort(runtime) == FILCH_OK);
    return status != FILCH_NO_COMPILER;
}

static void run_filch(filch_runtime *runtime, filch_codelet *codelet)
{
    uint64_t *values = gpu_alloc(ITEMS, sizeof *values);
    filch_data *data = NULL;
    filch_job *job = NULL;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = values;
    desc.element = sizeof *values;
    desc.rows = ITEMS;
    CHECK(filch_data_create(runtime, &desc, &data) == FILCH_OK);
    const filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    batch.codelet = codelet;
    batch.n = ITEMS;
    batch.accesses = &access;
    batch.access_count = 1;
    CHECK(filch_batch_submit(runtime, &batch, NULL, &job) == FILCH_OK);
    CHECK(filch_job_wait(job, -1) == FILCH_OK);
    CHECK(filch_job_release(job) == FILCH_OK);
    for (uint64_t k = 0; k < ITEMS; k++)
        CHECK(values[k] == k);
    CHECK(filch_data_destroy(data) == FILCH_OK);
    free(values);
}

/* Two runtimes would cut the same multiprocessors. */
static bool is_sliced(void)
{
    const char *devices = getenv("FILCH_DEVICES");
    return devices && strchr(devices, '/');
}

/* Two runtimes after each other, and two at once on the same devices. */
static void live(host *h)
{
    host_state before;
    unsigned char value = 1;
    read_state(h, &before);
    for (int round = 0; round < 2; round++) {
        filch_runtime *first = gpu_runtime(BENCH_POLICY_STEAL);
        check_state(h, &before, "after a runtime is made");
        filch_codelet *codelet = make_codelet(first);
        check_state(h, &before, "after a codelet is made");
        use(h, value++);
        run_filch(first, codelet);
        check_state(h, &before, "after a job");
        use(h, value++);
        if (round == 1 && !is_sliced()) {
            filch_runtime *second = gpu_runtime(BENCH_POLICY_STATIC);
            run_filch(second, make_codelet(second));
            check_state(h, &before, "beside another runtime");
            CHECK(filch_runtime_destroy(second) == FILCH_OK);
            use(h, value++);
            run_filch(first, codelet);
        }
        CHECK(filch_runtime_destroy(first) == FILCH_OK);
        check_state(h, &before, "after a runtime's end");
        use(h, value++);
    }
}

/* A thread without any context gets none. */
static void live_without_context(host *h)
{
    const fl_cuda_api *api = &h->driver.api;
    CUcontext current = h->context;
    CUcontext popped;
    CHECK(api->cuCtxPopCurrent(&popped) == FL_CUDA_SUCCESS && popped == h->context);
    CHECK(api->cuCtxGetCurrent(&current) == FL_CUDA_SUCCESS);
    CUcontext bottom = current;
    filch_runtime *runtime = gpu_runtime(BENCH_POLICY_STEAL);
    run_filch(runtime, make_codelet(runtime));
    CHECK(api->cuCtxGetCurrent(&current) == FL_CUDA_SUCCESS && current == bottom);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
    CHECK(api->cuCtxGetCurrent(&current) == FL_CUDA_SUCCESS && current == bottom);
    CHECK(api->cuCtxPushCurrent(h->context) == FL_CUDA_SUCCESS);
}

int main(void)
{
    host h = {0};
#ifndef FL_FAKE
    h.has_runtime = load_runtime(&h.runtime);
#else
    (void)load_runtime; /* it would find the real one, which the fake driver is too small for */
#endif
    begin(&h);
    bool has_compiler = can_compile();
    if (has_compiler) {
        live(&h);
        live_without_context(&h);
    }
    end(&h);
    if (!has_compiler) {
        fprintf(stderr, "skipped: there is no CUDA C compiler\n");
        return GPU_SKIP;
    }
    printf("the host is as it was, %s the CUDA runtime library\n",
           h.has_runtime ? "with" : "without");
    return 0;
}
