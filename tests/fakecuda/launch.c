/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel launches: limits checked and parameters copied when the call is made, the host twin run
 * when the stream comes to it. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fake.h"

typedef struct kernel {
    fake_work work;
    fakecuda_twin plain;
    filch_host_fn filch;
    uint32_t view_count;
    bool is_batch, has_arguments;
    fakecuda_geometry geometry;
    uint32_t param_count;
    void *params[FAKE_PARAMS];
    char *blob;
} kernel;

static bool is_within(const unsigned size[3], const int most[3], uint64_t all)
{
    uint64_t product = 1;

    for (int i = 0; i < 3; i++) {
        if (size[i] == 0 || size[i] > (unsigned)most[i])
            return false;
        product *= size[i];
    }
    return all == 0 || product <= all;
}

static CUresult clusters_check(const fake_device *device, const fake_function *function,
                               const fake_kernel_call *call)
{
    uint64_t blocks = 1;

    if (call->cluster[0] == 0)
        return FL_CUDA_SUCCESS;
    for (int i = 0; i < 3; i++) {
        blocks *= call->cluster[i];
        if (call->cluster[i] == 0 || call->grid[i] % call->cluster[i] != 0) {
            return fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                "a grid that is no multiple of its clusters");
        }
    }
    if (device->major < 9)
        return fake_violate(FL_CUDA_ERROR_INVALID_CLUSTER_SIZE, "no clusters on this device");
    if (blocks > (function->allows_wide_clusters ? 16u : 8u)) {
        return fake_violate(FL_CUDA_ERROR_INVALID_CLUSTER_SIZE, "clusters of %llu blocks",
                            (unsigned long long)blocks);
    }
    return FL_CUDA_SUCCESS;
}

static CUresult limits_check(const fake_function *function, const fake_kernel_call *call)
{
    const fake_device *device = fake_context_device(function->object.context);
    int grid[3], block[3], threads = 0;

    for (int i = 0; i < 3; i++) {
        (void)fake_device_attribute(device, FL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X + i, &grid[i]);
        (void)fake_device_attribute(device, FL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X + i, &block[i]);
    }
    (void)fake_device_attribute(device, FL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads);
    if (!is_within(call->grid, grid, 0)) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a grid of %u x %u x %u blocks",
                            call->grid[0], call->grid[1], call->grid[2]);
    }
    if (!is_within(call->block, block, (uint64_t)threads)) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "a block of %u x %u x %u threads",
                            call->block[0], call->block[1], call->block[2]);
    }
    if (!is_within(call->block, block, (uint64_t)function->info->max_threads)) {
        return fake_violate(FL_CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES,
                            "a block of more threads than the kernel's %d",
                            function->info->max_threads);
    }
    if (call->shared_bytes > (unsigned)function->dynamic_bytes) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                            "%u bytes of dynamic shared memory of at most %d", call->shared_bytes,
                            function->dynamic_bytes);
    }
    return clusters_check(device, function, call);
}

/* --- filch's own kernels --- */

static size_t view_bytes(const filch_view *view)
{
    if (view->rows == 0 || view->cols == 0)
        return 0;
    return (size_t)(((view->cols - 1) * view->ld + view->rows) * view->element);
}

/* Where the host reaches a view; pinned host memory is reached as it is. */
static void *view_reach(const fake_context *context, const filch_view *view,
                        fake_allocation **block)
{
    size_t bytes = view_bytes(view);

    *block = NULL;
    if (bytes == 0)
        return view->ptr;
    if (fake_is_pinned((uintptr_t)view->ptr, bytes))
        return view->ptr;
    return fake_memory_reach(context, (CUdeviceptr)(uintptr_t)view->ptr, bytes, block);
}

static CUresult views_check(kernel *k)
{
    for (uint32_t i = 0; i < k->view_count; i++) {
        const filch_view *view = k->params[i];
        fake_allocation *block;
        if (view_reach(k->work.context, view, &block) == NULL && view_bytes(view) > 0)
            return FL_CUDA_ERROR_INVALID_VALUE;
        fake_work_use(&k->work, block);
    }
    return FL_CUDA_SUCCESS;
}

static int run_filch(const kernel *k)
{
    filch_view views[FAKE_PARAMS];
    filch_call call = {.views = views, .view_count = k->view_count, .team = 1};
    uint32_t next = k->view_count;

    (void)pthread_mutex_lock(&fake.lock);
    for (uint32_t i = 0; i < k->view_count; i++) {
        fake_allocation *block;
        memcpy(&views[i], k->params[i], sizeof views[i]);
        void *found = view_reach(k->work.context, &views[i], &block);
        if (found == NULL && view_bytes(&views[i]) > 0) {
            (void)pthread_mutex_unlock(&fake.lock);
            return 1;
        }
        views[i].ptr = found;
    }
    (void)pthread_mutex_unlock(&fake.lock);
    call.device = k->geometry.device;
    if (k->is_batch) {
        const uint64_t *range = k->params[next++];
        call.lo = range[0];
        call.hi = range[1];
    }
    if (k->has_arguments)
        call.args = k->params[next];
    return k->filch(&call);
}

/* --- Launch and run --- */

static CUresult kernel_run(fake_work *work, const fake_stream *stream)
{
    kernel *k = (kernel *)work;
    fakecuda_geometry geometry = k->geometry;

    if (stream->green != NULL)
        geometry.multiprocessors = stream->green->count;
    int code = k->filch != NULL ? run_filch(k) : k->plain(k->params, &geometry);
    return code == 0 ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_LAUNCH_FAILED;
}

static void kernel_drop(fake_work *work)
{
    free(((kernel *)work)->blob);
}

/* Copies the parameters, each to a multiple of 16 bytes; their sizes are the image's. */
static CUresult params_copy(kernel *k, const fake_kernel_info *info, void **params)
{
    size_t at = 0;

    if (info->param_count > 0 && params == NULL)
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "no parameters for %s", info->name);
    for (uint32_t i = 0; i < info->param_count; i++)
        at += (info->bytes[i] + 15) / 16 * 16;
    k->blob = calloc(1, at + 16);
    if (k->blob == NULL)
        abort();
    at = 0;
    for (uint32_t i = 0; i < info->param_count; i++) {
        k->params[i] = k->blob + at;
        memcpy(k->params[i], params[i], info->bytes[i]);
        at += (info->bytes[i] + 15) / 16 * 16;
    }
    k->param_count = info->param_count;
    return FL_CUDA_SUCCESS;
}

static CUresult twin_check(const fake_function *function)
{
    const fake_twin *twin = &function->twin;
    const fake_kernel_info *info = function->info;

    for (uint32_t i = 0; i < twin->param_count && i < info->param_count; i++) {
        if (twin->param_bytes[i] != info->bytes[i]) {
            return fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                "parameter %u of %s has %zu bytes, its twin's %zu", i, info->name,
                                info->bytes[i], twin->param_bytes[i]);
        }
    }
    if (twin->filch != NULL && twin->param_count != info->param_count) {
        return fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "%s has %u parameters, its twin %u",
                            info->name, info->param_count, twin->param_count);
    }
    return FL_CUDA_SUCCESS;
}

fake_work *fake_kernel_make(const fake_context *context, const fake_kernel_call *call,
                            CUresult *result)
{
    const fake_function *function = fake_find(FAKE_FUNCTION, call->function);

    *result = FL_CUDA_ERROR_INVALID_HANDLE;
    if (function == NULL)
        return NULL;
    if (function->object.context != context) {
        (void)fake_violate(0, "a kernel of another context than its stream's");
        return NULL;
    }
    if (call->extra != NULL) {
        *result = fake_violate(FL_CUDA_ERROR_NOT_SUPPORTED, "extra launch parameters");
        return NULL;
    }
    *result = limits_check(function, call);
    if (*result == FL_CUDA_SUCCESS)
        *result = twin_check(function);
    if (*result != FL_CUDA_SUCCESS)
        return NULL;
    kernel *k = calloc(1, sizeof *k);
    if (k == NULL)
        abort();
    fake_work_init(&k->work, "kernel", function->object.context);
    k->work.run = kernel_run;
    k->work.drop = kernel_drop;
    k->work.duration_ns = fake.config.kernel_ns;
    k->work.function = &function->object;
    k->plain = function->twin.plain;
    k->filch = function->twin.filch;
    k->view_count = k->filch != NULL ? function->twin.view_count : 0;
    k->is_batch = function->twin.is_batch;
    memcpy(k->geometry.grid, call->grid, sizeof call->grid);
    memcpy(k->geometry.block, call->block, sizeof call->block);
    memcpy(k->geometry.cluster, call->cluster, sizeof call->cluster);
    k->geometry.shared_bytes = call->shared_bytes;
    k->geometry.device = (uint32_t)context->device;
    k->geometry.multiprocessors = (uint32_t)fake_context_device(context)->sms;
    *result = params_copy(k, function->info, call->params);
    if (*result == FL_CUDA_SUCCESS)
        *result = views_check(k);
    k->has_arguments = k->param_count > k->view_count + k->is_batch;
    if (*result == FL_CUDA_SUCCESS)
        return &k->work;
    fake_work_drop(&k->work);
    return NULL;
}

static CUresult launch(const fake_kernel_call *call, CUstream handle)
{
    CUresult result = FL_CUDA_ERROR_INVALID_HANDLE;
    fake_stream *stream = fake_stream_get(handle);

    if (stream == NULL)
        return result;
    fake_work *work = fake_kernel_make(stream->object.context, call, &result);
    if (work != NULL)
        fake_submit(stream, work);
    return result;
}

CUresult cuLaunchKernel(CUfunction function, unsigned int grid_x, unsigned int grid_y,
                        unsigned int grid_z, unsigned int block_x, unsigned int block_y,
                        unsigned int block_z, unsigned int shared_bytes, CUstream stream,
                        void **params, void **extra)
{
    CUresult result = fake_begin("cuLaunchKernel", FAKE_READY | FAKE_CURRENT);
    fake_kernel_call call = {
        function, {grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, {0}, shared_bytes, params,
        extra};

    return fake_end(result != FL_CUDA_SUCCESS ? result : launch(&call, stream));
}

CUresult fake_programmatic(const fake_context *context)
{
    if (fake_context_device(context)->major < 9)
        return fake_violate(FL_CUDA_ERROR_NOT_SUPPORTED, "no programmatic launch on this device");
    fake_count("programmatic");
    return FL_CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function, void **params,
                          void **extra)
{
    CUresult result = fake_begin("cuLaunchKernelEx", FAKE_READY | FAKE_CURRENT);
    const CUlaunchConfig *c = config;
    fake_kernel_call call = {function,
                             {c->gridDimX, c->gridDimY, c->gridDimZ},
                             {c->blockDimX, c->blockDimY, c->blockDimZ},
                             {0},
                             c->sharedMemBytes,
                             params,
                             extra};

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    for (unsigned i = 0; i < c->numAttrs; i++) {
        const CUlaunchAttribute *attribute = &c->attrs[i];
        switch (attribute->id) {
        case FL_CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
            call.cluster[0] = attribute->value.clusterDim.x;
            call.cluster[1] = attribute->value.clusterDim.y;
            call.cluster[2] = attribute->value.clusterDim.z;
            break;
        case FL_CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
            if (attribute->value.programmaticStreamSerializationAllowed != 0)
                result = fake_programmatic(fake_current());
            if (result != FL_CUDA_SUCCESS)
                return fake_end(result);
            break;
        case FL_CU_LAUNCH_ATTRIBUTE_IGNORE:
        case FL_CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        case FL_CU_LAUNCH_ATTRIBUTE_PRIORITY:
            break;
        default:
            return fake_end(
                fake_violate(FL_CUDA_ERROR_INVALID_VALUE, "launch attribute %d", attribute->id));
        }
    }
    return fake_end(launch(&call, c->hStream));
}

/* --- Host functions in a stream's order --- */

typedef struct host_work {
    fake_work work;
    int (*fn)(void *data);
    void *data;
    void *copy; /* data, where it is the work's own */
} host_work;

static CUresult host_run(fake_work *work, const fake_stream *stream)
{
    const host_work *h = (const host_work *)work;

    (void)stream;
    return h->fn(h->data) == 0 ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_LAUNCH_FAILED;
}

static void host_drop(fake_work *work)
{
    free(((host_work *)work)->copy);
}

/* Where bytes is 0, data is handed over as it is. */
static int enqueue(void *handle, int (*fn)(void *data), const void *data, size_t bytes)
{
    CUresult result = fake_begin("fakecuda_enqueue", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_stream *stream = fake_stream_get(handle);
    if (stream == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    host_work *h = calloc(1, sizeof *h);
    if (h == NULL)
        abort();
    fake_work_init(&h->work, "host", stream->object.context);
    h->work.run = host_run;
    h->work.drop = host_drop;
    h->work.duration_ns = fake.config.kernel_ns;
    h->fn = fn;
    h->data = (void *)(uintptr_t)data;
    if (bytes > 0) {
        h->data = h->copy = malloc(bytes);
        if (h->copy == NULL)
            abort();
        memcpy(h->copy, data, bytes);
    }
    fake_submit(stream, &h->work);
    return fake_end(FL_CUDA_SUCCESS);
}

int fakecuda_enqueue(void *stream, int (*fn)(void *data), void *data)
{
    return enqueue(stream, fn, data, 0);
}

int fakecuda_enqueue_copy(void *stream, int (*fn)(void *data), const void *data, size_t bytes)
{
    return enqueue(stream, fn, data, bytes);
}
