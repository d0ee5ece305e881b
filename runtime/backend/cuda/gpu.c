/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/gpu.h"

#include <string.h>

#include "backend/cuda/slices.h"

filch_status fl_cuda_status(CUresult result)
{
    switch (result) {
    case FL_CUDA_SUCCESS:
        return FILCH_OK;
    case FL_CUDA_ERROR_NOT_READY:
        return FILCH_NOT_READY;
    case FL_CUDA_ERROR_OUT_OF_MEMORY:
        return FILCH_NO_DEVICE_MEMORY;
    case FL_CUDA_ERROR_INVALID_IMAGE:
    case FL_CUDA_ERROR_NO_BINARY_FOR_GPU:
    case FL_CUDA_ERROR_INVALID_PTX:
    case FL_CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case FL_CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case FL_CUDA_ERROR_JIT_COMPILATION_DISABLED:
    case FL_CUDA_ERROR_INVALID_SOURCE:
        return FILCH_IMAGE;
    /* Fatal codes: the driver's reference says that the context, or the process, cannot go on.
     * Every later call on the context returns the code again. */
    case FL_CUDA_ERROR_DEINITIALIZED:
    case FL_CUDA_ERROR_DEVICE_UNAVAILABLE:
    case FL_CUDA_ERROR_ECC_UNCORRECTABLE:
    case FL_CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case FL_CUDA_ERROR_CONTAINED:
    case FL_CUDA_ERROR_ILLEGAL_ADDRESS:
    case FL_CUDA_ERROR_LAUNCH_TIMEOUT:
    case FL_CUDA_ERROR_CONTEXT_IS_DESTROYED:
    case FL_CUDA_ERROR_ASSERT:
    case FL_CUDA_ERROR_HARDWARE_STACK_ERROR:
    case FL_CUDA_ERROR_ILLEGAL_INSTRUCTION:
    case FL_CUDA_ERROR_MISALIGNED_ADDRESS:
    case FL_CUDA_ERROR_INVALID_ADDRESS_SPACE:
    case FL_CUDA_ERROR_INVALID_PC:
    case FL_CUDA_ERROR_LAUNCH_FAILED:
    case FL_CUDA_ERROR_TENSOR_MEMORY_LEAK:
    case FL_CUDA_ERROR_MPS_CLIENT_TERMINATED:
    case FL_CUDA_ERROR_EXTERNAL_DEVICE:
    case FL_CUDA_ERROR_UNKNOWN:
        return FILCH_DEVICE_LOST;
    default:
        return FILCH_BACKEND;
    }
}

static filch_status fail(const fl_cuda_api *api, filch_status status, CUresult result,
                         const char *call, const char *device, const char *label,
                         filch_error *error)
{
    const char *name = NULL;
    const char *text = NULL;

    if (error == NULL)
        return status;
    if (api->cuGetErrorName(result, &name) != FL_CUDA_SUCCESS || name == NULL)
        name = "an unknown error";
    if (api->cuGetErrorString(result, &text) != FL_CUDA_SUCCESS || text == NULL)
        text = "the driver does not know this code";

    const fl_fault fault = {
        .status = status,
        .native_code = result,
        .native_name = name,
        .call = call,
        .device = device,
        .label = label,
    };

    return fl_error_fill(error, fault, "%s%s%s gave %s (%d): %s", device != NULL ? device : "",
                         device != NULL ? ": " : "", call, name, result, text);
}

/* Values of is_lost. */
enum { LOST_BEING_TOLD = 1, LOST_TOLD = 2 };

/* Records the cause of the loss; only the first report counts. */
static void note_lost(fl_cuda_gpu *gpu, CUresult result, const char *call)
{
    uint32_t lost = 0;

    /* Acquire-release: exactly one thread may write the cause. Release: the cause is visible before
     * LOST_TOLD. */
    if (!fl_cas_acq_rel(&gpu->is_lost, &lost, LOST_BEING_TOLD))
        return;
    gpu->lost_call = call;
    gpu->lost_result = result;
    fl_store_release(&gpu->is_lost, LOST_TOLD);
}

bool fl_cuda_lost(const fl_cuda_gpu *gpu, const char *device, filch_error *error)
{
    uint32_t lost;

    /* Acquire: pairs with the release in note_lost, which stores twice. */
    while ((lost = fl_load_acquire(&gpu->is_lost)) == LOST_BEING_TOLD)
        fl_relax();
    if (lost != 0)
        (void)fail(gpu->api, FILCH_DEVICE_LOST, gpu->lost_result, gpu->lost_call, device, NULL,
                   error);
    return lost != 0;
}

filch_status fl_cuda_fail_api(const fl_cuda_api *api, CUresult result, const char *call,
                              const char *device, const char *label, filch_error *error)
{
    return fail(api, fl_cuda_status(result), result, call, device, label, error);
}

filch_status fl_cuda_fail(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          const char *label, filch_error *error)
{
    filch_status status = fl_cuda_status(result);

    if (status == FILCH_DEVICE_LOST)
        note_lost(gpu, result, call);
    return fail(gpu->api, status, result, call, device != NULL ? device : gpu->name, label, error);
}

filch_status fl_cuda_lose(fl_cuda_gpu *gpu, CUresult result, const char *call, const char *device,
                          filch_error *error)
{
    note_lost(gpu, result, call);
    return fail(gpu->api, FILCH_DEVICE_LOST, result, call, device != NULL ? device : gpu->name,
                NULL, error);
}

filch_status fl_cuda_enter(fl_cuda_gpu *gpu, fl_cuda_scope *scope, filch_error *error)
{
    CUcontext before = NULL;
    CUresult result = gpu->api->cuCtxGetCurrent(&before);

    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuCtxGetCurrent", NULL, NULL, error);
    result = gpu->api->cuCtxPushCurrent(gpu->context);
    /* Try again: the result may concern the context current before, perhaps another GPU's. */
    if (result != FL_CUDA_SUCCESS)
        result = gpu->api->cuCtxPushCurrent(gpu->context);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_lose(gpu, result, "cuCtxPushCurrent", NULL, error);
    *scope = (fl_cuda_scope){gpu, before};
    return FILCH_OK;
}

bool fl_cuda_leave(fl_cuda_scope *scope)
{
    const fl_cuda_api *api = scope->gpu->api;
    CUcontext top = NULL;
    CUcontext now = NULL;

    (void)api->cuCtxGetCurrent(&now);
    if (now != NULL)
        (void)api->cuCtxPopCurrent(&top);
    now = NULL;
    (void)api->cuCtxGetCurrent(&now);
    if (now != scope->before && scope->before != NULL)
        (void)api->cuCtxPushCurrent(scope->before);
    return top == scope->gpu->context && now == scope->before;
}

/* Empties the calling thread's stack of contexts into stack, top first, up to `most` contexts. */
static uint32_t stack_take(const fl_cuda_api *api, CUcontext *stack, uint32_t most)
{
    uint32_t depth = 0;

    for (; depth < most; depth++) {
        CUcontext now = NULL;

        if (api->cuCtxGetCurrent(&now) != FL_CUDA_SUCCESS || now == NULL ||
            api->cuCtxPopCurrent(&stack[depth]) != FL_CUDA_SUCCESS)
            break;
    }
    return depth;
}

/* Restores the stack; a context destroyed meanwhile stays away. */
static void stack_give(const fl_cuda_api *api, const CUcontext *stack, uint32_t depth)
{
    while (depth > 0)
        (void)api->cuCtxPushCurrent(stack[--depth]);
}

filch_status fl_cuda_guard_enter(fl_cuda_gpu *gpu, fl_cuda_guard *guard, filch_error *error)
{
    CUresult result;

    guard->gpu = gpu;
    guard->depth = stack_take(gpu->api, guard->stack, FL_CUDA_GUARDED);
    result = gpu->api->cuCtxPushCurrent(gpu->context);
    if (result == FL_CUDA_SUCCESS)
        return FILCH_OK;
    stack_give(gpu->api, guard->stack, guard->depth);
    return fl_cuda_lose(gpu, result, "cuCtxPushCurrent", NULL, error);
}

void fl_cuda_guard_leave(fl_cuda_guard *guard)
{
    const fl_cuda_api *api = guard->gpu->api;
    CUcontext left[FL_CUDA_GUARDED];

    (void)stack_take(api, left, FL_CUDA_GUARDED);
    stack_give(api, guard->stack, guard->depth);
}

static unsigned int private_flags(const fl_settings *settings)
{
    static const unsigned int schedules[] = {
        FL_CU_CTX_SCHED_AUTO,
        FL_CU_CTX_SCHED_SPIN,
        FL_CU_CTX_SCHED_YIELD,
        FL_CU_CTX_SCHED_BLOCKING_SYNC,
    };

    return schedules[settings->cuda_schedule - FILCH_CUDA_SCHEDULE_AUTO] | FL_CU_CTX_MAP_HOST;
}

/* Creates a private context. The creation pushes the context; pop, so the caller's context comes
 * back. */
static CUresult private_create(fl_cuda_gpu *gpu, unsigned int flags)
{
    CUcontext made = NULL;
    CUcontext top = NULL;
    CUresult result = gpu->api->cuCtxCreate(&made, flags, gpu->device);

    if (result != FL_CUDA_SUCCESS)
        return result;
    (void)gpu->api->cuCtxPopCurrent(&top);
    gpu->context = made;
    return FL_CUDA_SUCCESS;
}

static void context_close(fl_cuda_gpu *gpu)
{
    if (gpu->context == NULL)
        return;
    if (gpu->is_private)
        (void)gpu->api->cuCtxDestroy(gpu->context);
    else
        (void)gpu->api->cuDevicePrimaryCtxRelease(gpu->device);
    gpu->context = NULL;
}

filch_status fl_cuda_gpu_open(fl_cuda_gpu *gpu, const fl_settings *settings, filch_error *error)
{
    fl_settings defaults;
    filch_status status;
    CUresult result;

    if (gpu->opens > 0) {
        gpu->opens++;
        return FILCH_OK;
    }
    if (settings == NULL) {
        fl_settings_defaults(&defaults);
        settings = &defaults;
    }
    gpu->is_private = settings->cuda_context == FILCH_CUDA_CONTEXT_PRIVATE;
    if (gpu->is_private && gpu->slice_count > 0)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_UNSUPPORTED,
                                        .label = "FILCH_CUDA_CONTEXT",
                                        .device = gpu->name},
                             "%s: slices live in the primary context; FILCH_CUDA_CONTEXT must not "
                             "be private",
                             gpu->name);
    result = gpu->is_private ? private_create(gpu, private_flags(settings))
                             : gpu->api->cuDevicePrimaryCtxRetain(&gpu->context, gpu->device);
    if (result != FL_CUDA_SUCCESS) {
        gpu->context = NULL;
        return fl_cuda_fail(gpu, result,
                            gpu->is_private ? "cuCtxCreate" : "cuDevicePrimaryCtxRetain", NULL,
                            NULL, error);
    }
    fl_store_relaxed(&gpu->is_lost, 0); /* relaxed: no other thread has the device yet */
    status = fl_cuda_slices_open(gpu, error);
    if (status != FILCH_OK) {
        context_close(gpu);
        return status;
    }
    gpu->opens = 1;
    return FILCH_OK;
}

void fl_cuda_gpu_close(fl_cuda_gpu *gpu)
{
    if (--gpu->opens > 0)
        return;
    fl_cuda_slices_close(gpu);
    context_close(gpu);
}
