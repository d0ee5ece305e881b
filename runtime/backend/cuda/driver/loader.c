/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "backend/cuda/driver/loader.h"

#include <dlfcn.h>
#include <string.h>

/* The driver's own name; the toolkit's stub is called libcuda.so, a name never asked for. */
#define LIBRARY "libcuda.so.1"

typedef struct call_row {
    const char *symbol;
    int version, since;
    size_t offset; /* offset in fl_cuda_api */
} call_row;

static const call_row calls[] = {
#define CALL_ROW(member, symbol, version, since, parameters) \
    {symbol, version, since, offsetof(fl_cuda_api, member)},
    FL_CUDA_CALLS(CALL_ROW)
#undef CALL_ROW
};

/* ISO C has no conversion between addresses of objects and of functions; POSIX says the addresses
 * are alike. */
_Static_assert(sizeof(void *) == sizeof(void (*)(void)), "a function's address is no object's");

static void *find(void *handle, const char *symbol)
{
    (void)dlerror(); /* NOLINT(concurrency-mt-unsafe): per thread in glibc */
    return dlsym(handle, symbol);
}

/* Reports a failed dlopen. The loader has no codes. An existing file that cannot be used, or lacks
 * a file needed, is a broken installation, not an absent driver. */
static filch_status refuse_file(const char *name, filch_error *error)
{
    const char *reason = dlerror(); /* NOLINT(concurrency-mt-unsafe): see find */
    fl_fault fault = {.status = FILCH_NO_DRIVER, .call = "dlopen"};

    if (reason == NULL)
        reason = name;
    if (strncmp(reason, name, strlen(name)) == 0 && strstr(reason, "No such file") != NULL)
        return fl_error_fill(error, fault, "there is no CUDA driver: %s", reason);
    fault.status = FILCH_DRIVER_BROKEN;
    return fl_error_fill(error, fault, "the CUDA driver cannot be loaded: %s", reason);
}

static filch_status refuse_stub(CUresult result, filch_error *error)
{
    const fl_fault fault = {
        .status = FILCH_DRIVER_STUB,
        .native_code = result,
        .native_name = "CUDA_ERROR_STUB_LIBRARY",
        .call = "cuInit",
    };

    return fl_error_fill(error, fault,
                         "%s is the CUDA toolkit's stub, made for linking only: the driver's own "
                         "library must come before it",
                         LIBRARY);
}

static filch_status refuse_old(int version, filch_error *error)
{
    const fl_fault fault = {.status = FILCH_DRIVER_TOO_OLD, .call = "cuDriverGetVersion"};

    if (version == 0)
        return fl_error_fill(error, fault, "the CUDA driver is older than 12.0");
    return fl_error_fill(error, fault, "the CUDA driver is of version %d.%d, older than 12.0",
                         version / 1000, version % 1000 / 10);
}

/* Reads the version before the entry points are known. A driver before 12.0 has no
 * cuGetProcAddress_v2, but has always exported cuDriverGetVersion by name. A stub has every name
 * and answers each call with the stub error. */
static filch_status version_read(fl_cuda_library *library, fl_cuda_get_proc_fn *get_proc,
                                 filch_error *error)
{
    CUresult (*driver_version)(int *version) = NULL;
    void *address = find(library->handle, "cuDriverGetVersion");
    CUresult result;

    if (address == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_DRIVER_BROKEN, .call = "dlsym"},
                             "%s has no cuDriverGetVersion: it is no CUDA driver", LIBRARY);
    memcpy(&driver_version, &address, sizeof address);
    result = driver_version(&library->version);
    if (result == FL_CUDA_ERROR_STUB_LIBRARY)
        return refuse_stub(result, error);
    if (result != FL_CUDA_SUCCESS)
        return fl_error_fill(error,
                             (fl_fault){.status = FILCH_DRIVER_BROKEN,
                                        .native_code = result,
                                        .call = "cuDriverGetVersion"},
                             "the CUDA driver does not tell its version (error %d)", result);
    if (library->version < FL_CUDA_DRIVER_LEAST)
        return refuse_old(library->version, error);
    address = find(library->handle, "cuGetProcAddress_v2");
    if (address == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_DRIVER_BROKEN, .call = "dlsym"},
                             "the CUDA driver says it is of version %d.%d, but has no "
                             "cuGetProcAddress_v2",
                             library->version / 1000, library->version % 1000 / 10);
    memcpy(get_proc, &address, sizeof address);
    return FILCH_OK;
}

static filch_status entries_take(fl_cuda_library *library, fl_cuda_get_proc_fn get_proc,
                                 filch_error *error)
{
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        CUdriverProcAddressQueryResult found = FL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
        void *address = NULL;
        CUresult result;

        if (calls[i].since > library->version)
            continue;
        result = get_proc(calls[i].symbol, &address, calls[i].version,
                          FL_CU_GET_PROC_ADDRESS_DEFAULT, &found);
        if (result == FL_CUDA_ERROR_STUB_LIBRARY)
            return refuse_stub(result, error);
        if (result != FL_CUDA_SUCCESS || found != FL_CU_GET_PROC_ADDRESS_SUCCESS)
            address = NULL;
        if (address == NULL && calls[i].since == 0) {
            const fl_fault fault = {
                .status = FILCH_DRIVER_BROKEN,
                .native_code = result,
                .call = "cuGetProcAddress",
            };

            return fl_error_fill(error, fault,
                                 "the CUDA driver, version %d.%d, has no %s of version %d",
                                 library->version / 1000, library->version % 1000 / 10,
                                 calls[i].symbol, calls[i].version);
        }
        memcpy((unsigned char *)&library->api + calls[i].offset, &address, sizeof address);
    }
    return FILCH_OK;
}

static const char *error_name(const fl_cuda_api *api, CUresult result)
{
    const char *name = NULL;

    if (api->cuGetErrorName(result, &name) != FL_CUDA_SUCCESS || name == NULL)
        return "unknown error";
    return name;
}

/* Starts the driver. A driver without hardware, or with all GPUs hidden, counts as a driver without
 * GPUs. */
static filch_status driver_start(fl_cuda_library *library, filch_error *error)
{
    CUresult result = library->api.cuInit(0);
    const char *call = "cuInit";
    int count = 0;

    if (result == FL_CUDA_SUCCESS) {
        call = "cuDeviceGetCount";
        result = library->api.cuDeviceGetCount(&count);
    }
    if (result == FL_CUDA_ERROR_NO_DEVICE) {
        library->count = 0;
        return FILCH_OK;
    }
    if (result == FL_CUDA_ERROR_STUB_LIBRARY)
        return refuse_stub(result, error);
    if (result != FL_CUDA_SUCCESS || count < 0) {
        const fl_fault fault = {
            .status = FILCH_DRIVER_BROKEN,
            .native_code = result,
            .native_name = error_name(&library->api, result),
            .call = call,
        };

        return fl_error_fill(error, fault, "the CUDA driver does not start: %s gives %s", call,
                             fault.native_name);
    }
    library->count = (uint32_t)count;
    return FILCH_OK;
}

filch_status fl_cuda_load_named(fl_cuda_library *library, const char *name, filch_error *error)
{
    fl_cuda_get_proc_fn get_proc = NULL;
    filch_status status;

    memset(library, 0, sizeof *library);
    if (name == NULL)
        name = LIBRARY;
    (void)dlerror(); /* NOLINT(concurrency-mt-unsafe): see find */
    library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library->handle == NULL)
        library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library->handle == NULL)
        return refuse_file(name, error);
    status = version_read(library, &get_proc, error);
    if (status == FILCH_OK)
        status = entries_take(library, get_proc, error);
    if (status == FILCH_OK)
        status = driver_start(library, error);
    if (status != FILCH_OK)
        fl_cuda_unload(library);
    return status;
}

filch_status fl_cuda_load(fl_cuda_library *library, filch_error *error)
{
    return fl_cuda_load_named(library, NULL, error);
}

void fl_cuda_unload(fl_cuda_library *library)
{
    if (library->handle != NULL)
        (void)dlclose(library->handle);
    memset(library, 0, sizeof *library);
}
