/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/driver/pointer.h"

#include "backend/cuda/device.h"

/* Attributes of a pointer, as told by the driver. */
typedef struct fl_pointer {
    unsigned type, is_managed;
    int ordinal;
    CUcontext context; /* null: no context, as for memory of pools and mapped memory */
    CUdeviceptr start;
    size_t bytes;
} fl_pointer;

/* Asks the driver, with the GPU's context current. FL_CUDA_ERROR_INVALID_VALUE: unknown pointer. */
static CUresult ask(const fl_cuda_api *api, CUdeviceptr pointer, fl_pointer *known)
{
    const struct {
        CUpointer_attribute which;
        void *value;
    } asked[] = {
        {FL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, &known->type},
        {FL_CU_POINTER_ATTRIBUTE_IS_MANAGED, &known->is_managed},
        {FL_CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, &known->ordinal},
        {FL_CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, &known->start},
        {FL_CU_POINTER_ATTRIBUTE_RANGE_SIZE, &known->bytes},
    };
    CUresult result = FL_CUDA_SUCCESS;

    for (size_t i = 0; i < sizeof asked / sizeof asked[0] && result == FL_CUDA_SUCCESS; ++i) {
        /* Ask for the rest only for device memory: the host's memory has no meaningful rest. */
        if (i == 0 || known->type == FL_CU_MEMORYTYPE_DEVICE)
            result = api->cuPointerGetAttribute(asked[i].value, asked[i].which, pointer);
    }
    if (result == FL_CUDA_SUCCESS && known->type == FL_CU_MEMORYTYPE_DEVICE) {
        result =
            api->cuPointerGetAttribute(&known->context, FL_CU_POINTER_ATTRIBUTE_CONTEXT, pointer);
        if (result == FL_CUDA_ERROR_INVALID_VALUE) {
            known->context = NULL;
            result = FL_CUDA_SUCCESS;
        }
    }
    return result;
}

filch_status fl_cuda_memory_check(const fl_device *device, const void *pointer, size_t bytes,
                                  const char *label, filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const char *name = device->info.name;
    const fl_fault fault = {.status = FILCH_INVALID_ARGUMENT, .device = name, .label = label};
    fl_pointer known = {.type = 0};
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)pointer;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = ask(gpu->api, address, &known);
    (void)fl_cuda_leave(&scope);
    if (result == FL_CUDA_ERROR_INVALID_VALUE)
        return fl_error_fill(error, fault, "%p is no pointer that the CUDA driver knows", pointer);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuPointerGetAttribute", name, label, error);
    if (known.type != FL_CU_MEMORYTYPE_DEVICE || known.is_managed != 0)
        return fl_error_fill(error, fault, "%p is %s, not a GPU's", pointer,
                             known.is_managed != 0 ? "managed memory" : "the host's memory");
    if (known.ordinal != (int)gpu->ordinal)
        return fl_error_fill(error, fault, "%p is memory of cuda:%d, not of %s", pointer,
                             known.ordinal, name);
    if (known.context != NULL && known.context != gpu->context)
        return fl_error_fill(error, fault, "%p belongs to another context than that of %s", pointer,
                             name);
    if (bytes > known.bytes - (size_t)(address - known.start))
        return fl_error_fill(error, fault,
                             "%zu bytes from %p on reach past the end of the allocation, %zu bytes "
                             "from %p on",
                             bytes, pointer, known.bytes, (void *)(uintptr_t)known.start);
    return FILCH_OK;
}

filch_status fl_cuda_memory_pin(fl_device *device, void *buffer, size_t bytes, const char *label,
                                filch_error *error)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    const char *name = device->info.name;
    fl_cuda_scope scope;
    CUresult result;
    filch_status status = fl_cuda_enter(gpu, &scope, error);

    if (status != FILCH_OK)
        return status;
    result = gpu->api->cuMemHostRegister(buffer, bytes, FL_CU_MEMHOSTREGISTER_PORTABLE);
    (void)fl_cuda_leave(&scope);
    if (result == FL_CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_WRONG_STATE, .device = name, .label = label},
            "%zu bytes from %p on are page-locked already, or some of them", bytes, buffer);
    return result == FL_CUDA_SUCCESS
               ? FILCH_OK
               : fl_cuda_fail(gpu, result, "cuMemHostRegister", name, label, error);
}

void fl_cuda_memory_unpin(fl_device *device, void *buffer)
{
    fl_cuda_gpu *gpu = fl_cuda_of(device)->gpu;
    fl_cuda_scope scope;

    if (fl_cuda_enter(gpu, &scope, NULL) != FILCH_OK)
        return;
    (void)gpu->api->cuMemHostUnregister(buffer);
    (void)fl_cuda_leave(&scope);
}
