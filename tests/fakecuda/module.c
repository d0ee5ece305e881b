/* SPDX-License-Identifier: Apache-2.0 */
/* Modules, their functions, and the host twins that run in place of kernels. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static fake_twin *twin_find(const char *name)
{
    for (fake_twin *twin = fake.twins; twin != NULL; twin = twin->next) {
        if (strcmp(twin->name, name) == 0)
            return twin;
    }
    return NULL;
}

static fake_twin *twin_take(const char *name)
{
    fake_twin *twin = twin_find(name);

    if (twin == NULL) {
        twin = calloc(1, sizeof *twin);
        if (twin == NULL)
            abort();
        (void)snprintf(twin->name, sizeof twin->name, "%s", name);
        twin->next = fake.twins;
        fake.twins = twin;
    }
    return twin;
}

void fakecuda_register(const char *name, fakecuda_twin twin, uint32_t param_count,
                       const size_t *param_bytes)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake_twin *t = twin_take(name);
    t->plain = twin;
    t->filch = NULL;
    t->param_count = param_count < FAKE_PARAMS ? param_count : FAKE_PARAMS;
    for (uint32_t i = 0; i < t->param_count; i++)
        t->param_bytes[i] = param_bytes[i];
    (void)pthread_mutex_unlock(&fake.lock);
}

void fakecuda_register_filch(const char *name, filch_host_fn twin, uint32_t view_count,
                             bool is_batch, size_t arg_bytes)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake_twin *t = twin_take(name);
    t->plain = NULL;
    t->filch = twin;
    t->view_count = view_count < FAKE_PARAMS - 2 ? view_count : FAKE_PARAMS - 2;
    t->is_batch = is_batch;
    t->param_count = 0;
    while (t->param_count < t->view_count)
        t->param_bytes[t->param_count++] = sizeof(filch_view);
    if (is_batch)
        t->param_bytes[t->param_count++] = 2 * sizeof(uint64_t);
    if (arg_bytes > 0)
        t->param_bytes[t->param_count++] = arg_bytes;
    (void)pthread_mutex_unlock(&fake.lock);
}

/* Cubins run on their own generation, from their own revision on; PTX from its target on. */
static CUresult image_check(const fake_image *image, const fake_device *device)
{
    int arch = device->major * 10 + device->minor;

    if (image->is_ptx)
        return image->arch <= arch ? FL_CUDA_SUCCESS : FL_CUDA_ERROR_INVALID_PTX;
    return image->arch / 10 == device->major && image->arch % 10 <= device->minor
               ? FL_CUDA_SUCCESS
               : FL_CUDA_ERROR_NO_BINARY_FOR_GPU;
}

/* Takes the parameters that the twin knows where the image does not tell them. */
static CUresult twins_check(fake_image *image, char *error, size_t bytes)
{
    for (size_t i = 0; i < image->count; i++) {
        fake_kernel_info *info = &image->kernels[i];
        const fake_twin *twin = twin_find(info->name);
        if (twin == NULL || (twin->plain == NULL && twin->filch == NULL)) {
            (void)snprintf(error, bytes, "the kernel %s has no host twin", info->name);
            return FL_CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND;
        }
        if (info->knows_params)
            continue;
        info->knows_params = true;
        for (uint32_t k = 0; k < twin->param_count; k++) {
            size_t before = k == 0 ? 0 : info->offset[k - 1] + info->bytes[k - 1];
            info->offset[k] = (before + 7) / 8 * 8;
            info->bytes[k] = twin->param_bytes[k];
        }
        info->param_count = twin->param_count;
    }
    return FL_CUDA_SUCCESS;
}

static void write_log(const char *error, unsigned count, const CUjit_option *options, void **values)
{
    char *buffer = NULL;
    size_t size = 0;

    for (unsigned i = 0; i < count; i++) {
        if (options[i] == FL_CU_JIT_ERROR_LOG_BUFFER)
            buffer = values[i];
        if (options[i] == FL_CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES)
            size = (size_t)(uintptr_t)values[i] & 0xffffffffu;
    }
    if (buffer != NULL && size > 0)
        (void)snprintf(buffer, size, "%s", error);
}

static CUresult image_read(const void *data, fake_image *image, char *error, size_t bytes)
{
    bool is_elf = fake_is_elf(data);
    CUresult result = FL_CUDA_ERROR_INVALID_IMAGE;

    if (is_elf ? fake_elf_read(data, image, error, bytes)
               : fake_text_read(data, image, error, bytes))
        result = image_check(image, fake_context_device(fake_current()));
    if (result == FL_CUDA_SUCCESS)
        result = twins_check(image, error, bytes);
    else if (error[0] == '\0')
        (void)snprintf(error, bytes, "an image for sm_%d", image->arch);
    return result;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *data, unsigned int count,
                            CUjit_option *options, void **values)
{
    CUresult result = fake_begin("cuModuleLoadDataEx", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);
    char error[512] = "";
    fake_image image = {0};

    if (result == FL_CUDA_SUCCESS && data == NULL)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    result = image_read(data, &image, error, sizeof error);
    if (result != FL_CUDA_SUCCESS) {
        (void)fprintf(stderr, "fakecuda: image refused: %s\n", error);
        write_log(error, count, options, values);
        fake_image_drop(&image);
        return fake_end(result);
    }
    fake_module *made = fake_object_make(FAKE_MODULE, sizeof *made, fake_current());
    made->image = image;
    *module = fake_handle(made);
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuModuleUnload(CUmodule handle)
{
    CUresult result =
        fake_begin("cuModuleUnload", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL | FAKE_ENDING);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_module *module = fake_find_current(FAKE_MODULE, handle);
    if (module == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    /* As the driver: kernels that run end first. */
    fake_context_wait(module->object.context);
    for (uint32_t i = fake_object_count(FAKE_FUNCTION); i-- > 0;) {
        fake_function *function = (fake_function *)fake_object_at(FAKE_FUNCTION, i);
        if (function->module == module)
            fake_object_end(&function->object);
    }
    fake_object_end(&module->object);
    return fake_end(module->object.context->poison);
}

CUresult cuModuleGetFunction(CUfunction *out, CUmodule handle, const char *name)
{
    CUresult result = fake_begin("cuModuleGetFunction", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_module *module = fake_find_current(FAKE_MODULE, handle);
    if (module == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    for (uint32_t i = 0; i < fake_object_count(FAKE_FUNCTION); i++) {
        fake_function *function = (fake_function *)fake_object_at(FAKE_FUNCTION, i);
        if (function->module == module && strcmp(function->info->name, name) == 0) {
            *out = fake_handle(function);
            return fake_end(FL_CUDA_SUCCESS);
        }
    }
    for (size_t i = 0; i < module->image.count; i++) {
        if (strcmp(module->image.kernels[i].name, name) != 0)
            continue;
        fake_function *made = fake_object_make(FAKE_FUNCTION, sizeof *made, module->object.context);
        made->module = module;
        made->info = &module->image.kernels[i];
        made->twin = *twin_find(name);
        made->dynamic_bytes = 49152 - made->info->shared_bytes;
        *out = fake_handle(made);
        return fake_end(FL_CUDA_SUCCESS);
    }
    return fake_end(FL_CUDA_ERROR_NOT_FOUND);
}

CUresult cuFuncGetAttribute(int *value, CUfunction_attribute attribute, CUfunction handle)
{
    CUresult result = fake_begin("cuFuncGetAttribute", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_function *function = fake_find_current(FAKE_FUNCTION, handle);
    if (function == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    switch (attribute) {
    case FL_CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = function->info->max_threads;
        break;
    case FL_CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
        *value = function->info->shared_bytes;
        break;
    case FL_CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case FL_CU_FUNC_ATTRIBUTE_BINARY_VERSION:
        *value = function->module->image.arch;
        break;
    case FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        *value = function->dynamic_bytes;
        break;
    case FL_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        *value = function->allows_wide_clusters;
        break;
    case FL_CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH:
        *value = function->info->cluster;
        break;
    case 4: /* registers a thread */
        *value = function->info->registers;
        break;
    default:
        result = FL_CUDA_ERROR_INVALID_VALUE;
    }
    return fake_end(result);
}

CUresult cuFuncSetAttribute(CUfunction handle, CUfunction_attribute attribute, int value)
{
    CUresult result = fake_begin("cuFuncSetAttribute", FAKE_READY | FAKE_CURRENT);
    int most = 0;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_function *function = fake_find_current(FAKE_FUNCTION, handle);
    if (function == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    (void)fake_device_attribute(fake_context_device(function->object.context),
                                FL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &most);
    switch (attribute) {
    case FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
        if (value < 0 || value > most - function->info->shared_bytes)
            result = FL_CUDA_ERROR_INVALID_VALUE;
        else
            function->dynamic_bytes = value;
        break;
    case FL_CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED:
        function->allows_wide_clusters = value != 0;
        break;
    default:
        result = FL_CUDA_ERROR_INVALID_VALUE;
    }
    return fake_end(result);
}

CUresult cuFuncGetParamInfo(CUfunction handle, size_t index, size_t *offset, size_t *bytes)
{
    CUresult result = fake_begin("cuFuncGetParamInfo", FAKE_READY | FAKE_CURRENT);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    const fake_function *function = fake_find_current(FAKE_FUNCTION, handle);
    if (function == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_HANDLE);
    if (index >= function->info->param_count)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    *offset = function->info->offset[index];
    if (bytes != NULL)
        *bytes = function->info->bytes[index];
    return fake_end(FL_CUDA_SUCCESS);
}
