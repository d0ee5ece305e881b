/* SPDX-License-Identifier: Apache-2.0 */
#include "peers/tile_kernels.h"

#include "base/thread.h"
#include "filch/kernels.h"
#include "kernels/vendor/vendor.h"
#include "module/image.h"
#include "module/kernel.h"
#include "support/fail.h"

#include <stdlib.h>

#define FACTOR_KERNEL "potrf_trtri_f64"
/* Codes of the driver's and of a kernel's own; the vendor's are above -10000. */
#define CODE_LAUNCH 10000
#define CODE_SHAPE 20000

struct bench_tile_kernels {
    size_t most;
    fl_cuda_library driver;
    fl_memory memory;
    fl_images images;
    bool has_images;
    fl_vendor *vendor;
    const filch_kernel *factor;
    fl_mutex lock; /* lanes are opened one after the other */
    bool has_lock;
};

struct bench_tile_lane {
    bench_tile_kernels *kernels;
    CUcontext context;
    CUstream stream;
    uint32_t multiprocessors;
    fl_vendor_lane *vendor;
    CUmodule module;
    CUfunction function;
    CUdeviceptr state; /* of the diagonal tiles, one after the other */
    CUdeviceptr room;  /* a copy of a tile */
};

static filch_status check(const bench_tile_kernels *k, CUresult result, const char *call,
                          filch_error *error)
{
    const char *name = NULL;
    if (result == FL_CUDA_SUCCESS)
        return FILCH_OK;
    if (k->driver.api.cuGetErrorName(result, &name) != FL_CUDA_SUCCESS || !name)
        name = "an unknown error";
    return bench_fail(error, FILCH_BACKEND, call, 0, "the driver answered %s", name);
}

/* --- Loading --- */

static filch_status open_images(bench_tile_kernels *k, filch_error *error)
{
    fl_settings settings;
    filch_status status = fl_settings_read(&settings, NULL, error);
    k->memory = fl_memory_default();
    if (status == FILCH_OK)
        status = fl_images_init(&k->images, &k->memory, NULL, &settings);
    k->has_images = status == FILCH_OK;
    if (k->has_images)
        fl_images_set_driver(&k->images, k->driver.version);
    return status;
}

filch_status bench_tile_kernels_open(size_t most, filch_error *error, bench_tile_kernels **out)
{
    bench_tile_kernels *k = calloc(1, sizeof *k);
    if (!k)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "kernels", 0, "no memory");
    k->most = most;
    k->factor = filch_kernel_find(FACTOR_KERNEL);
    filch_status status = fl_cuda_load(&k->driver, error);
    if (status == FILCH_OK)
        status = open_images(k, error);
    if (status == FILCH_OK)
        status = fl_mutex_init(&k->lock);
    k->has_lock = status == FILCH_OK;
    if (status == FILCH_OK)
        status = fl_vendor_open(&k->driver, error, &k->vendor);
    if (status == FILCH_OK)
        *out = k;
    else
        bench_tile_kernels_close(k);
    return status;
}

void bench_tile_kernels_close(bench_tile_kernels *k)
{
    if (!k)
        return;
    fl_vendor_close(k->vendor);
    if (k->has_lock)
        fl_mutex_fini(&k->lock);
    if (k->has_images)
        fl_images_fini(&k->images);
    if (k->driver.handle)
        fl_cuda_unload(&k->driver);
    free(k);
}

/* --- Lanes --- */

static filch_status describe(bench_tile_lane *l, unsigned ordinal, uint32_t *arch,
                             filch_error *error)
{
    const fl_cuda_api *api = &l->kernels->driver.api;
    int major = 0, minor = 0, count = 0;
    CUdevice device = 0;
    CUresult result = api->cuDeviceGet(&device, (int)ordinal);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuDeviceGetAttribute(&major, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
                                           device);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuDeviceGetAttribute(&minor, FL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
                                           device);
    if (result == FL_CUDA_SUCCESS)
        result =
            api->cuDeviceGetAttribute(&count, FL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuCtxGetCurrent(&l->context);
    *arch = (uint32_t)(10 * major + minor);
    l->multiprocessors = (uint32_t)count;
    return check(l->kernels, result, "cuDeviceGetAttribute", error);
}

static filch_status load_factor(bench_tile_lane *l, uint32_t arch, filch_error *error)
{
    bench_tile_kernels *k = l->kernels;
    const fl_cuda_api *api = &k->driver.api;
    const filch_cuda_desc *cuda = k->factor->cuda;
    const fl_image_request request = {
        .label = k->factor->name, .source = cuda->source, .options = cuda->options, .arch = arch};
    const fl_image *image = NULL;
    filch_status status = fl_image_get(&k->images, &request, &image, error);
    if (status != FILCH_OK)
        return status;
    CUresult result = api->cuModuleLoadDataEx(&l->module, image->data, 0, NULL, NULL);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuModuleGetFunction(&l->function, l->module, cuda->entry);
    if (result == FL_CUDA_SUCCESS)
        result =
            api->cuFuncSetAttribute(l->function, FL_CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    (int)FILCH_POTRF_TRTRI_SHARED(sizeof(double)));
    return check(k, result, k->factor->name, error);
}

static filch_status take_memory(bench_tile_lane *l, filch_error *error)
{
    const fl_cuda_api *api = &l->kernels->driver.api;
    size_t most = l->kernels->most;
    size_t state_bytes = FILCH_POTRF_TRTRI_STATE(most) * sizeof(int32_t);
    CUresult result = api->cuMemAlloc(&l->state, state_bytes);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuMemAlloc(&l->room, most * most * sizeof(double));
    if (result == FL_CUDA_SUCCESS)
        result = api->cuMemsetD8Async(l->state, 0, state_bytes, l->stream);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuStreamSynchronize(l->stream);
    return check(l->kernels, result, "cuMemAlloc", error);
}

filch_status bench_tile_lane_open(bench_tile_kernels *kernels, unsigned ordinal, void *stream,
                                  filch_error *error, bench_tile_lane **out)
{
    uint32_t arch = 0;
    bench_tile_lane *l = calloc(1, sizeof *l);
    if (!l)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "lane", 0, "no memory");
    l->kernels = kernels;
    l->stream = stream;
    fl_mutex_lock(&kernels->lock);
    filch_status status = describe(l, ordinal, &arch, error);
    if (status == FILCH_OK)
        status = load_factor(l, arch, error);
    if (status == FILCH_OK)
        status = take_memory(l, error);
    if (status == FILCH_OK) {
        l->vendor = fl_vendor_lane_make(kernels->vendor, l->context, stream, l->multiprocessors);
        if (!l->vendor)
            status = bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "no handle can be made");
    }
    fl_mutex_unlock(&kernels->lock);
    if (status == FILCH_OK)
        *out = l;
    else
        bench_tile_lane_close(l);
    return status;
}

void bench_tile_lane_close(bench_tile_lane *l)
{
    if (!l)
        return;
    const fl_cuda_api *api = &l->kernels->driver.api;
    CUcontext popped;
    if (l->context && api->cuCtxPushCurrent(l->context) == FL_CUDA_SUCCESS) {
        if (l->vendor)
            fl_vendor_lane_drop(l->vendor);
        if (l->module)
            (void)api->cuModuleUnload(l->module);
        if (l->state)
            (void)api->cuMemFree(l->state);
        if (l->room)
            (void)api->cuMemFree(l->room);
        (void)api->cuCtxPopCurrent(&popped);
    }
    free(l);
}

filch_status bench_tile_lane_info(const bench_tile_lane *l, int32_t *row, filch_error *error)
{
    const fl_cuda_api *api = &l->kernels->driver.api;
    CUcontext popped;
    CUresult result = api->cuCtxPushCurrent(l->context);
    if (result != FL_CUDA_SUCCESS)
        return check(l->kernels, result, "cuCtxPushCurrent", error);
    result = api->cuMemcpyDtoHAsync(row, l->state, sizeof *row, l->stream);
    if (result == FL_CUDA_SUCCESS)
        result = api->cuStreamSynchronize(l->stream);
    (void)api->cuCtxPopCurrent(&popped);
    return check(l->kernels, result, "cuMemcpyDtoHAsync", error);
}

/* --- Tiles --- */

int bench_tile_factor(const bench_tile_lane *l, const filch_view *a, const filch_view *inverse,
                      bool inverts)
{
    filch_potrf_trtri_args args = {.inverts = inverts};
    filch_view views[] = {*a,
                          {.ptr = (void *)(uintptr_t)l->state,
                           .rows = FILCH_POTRF_TRTRI_STATE(a->rows),
                           .cols = 1,
                           .ld = FILCH_POTRF_TRTRI_STATE(a->rows),
                           .element = sizeof(int32_t)},
                          *inverse};
    const filch_call call = {
        .views = views, .view_count = 3, .team = l->multiprocessors, .args = &args};
    void *params[] = {&views[0], &views[1], &views[2], &args};
    filch_shape shape = {0};
    int code = l->kernels->factor->cuda->shape_of(&call, &shape);
    if (code != 0)
        return -CODE_SHAPE + code;
    fl_kernel_complete_shape(&shape);
    CUresult result = l->kernels->driver.api.cuLaunchKernel(
        l->function, shape.grid[0], shape.grid[1], shape.grid[2], shape.block[0], shape.block[1],
        shape.block[2], shape.shared_bytes, l->stream, params, NULL);
    return result == FL_CUDA_SUCCESS ? 0 : -(CODE_LAUNCH + result);
}

int bench_tile_multiply(const bench_tile_lane *l, const filch_view *inverse, const filch_view *a)
{
    return fl_vendor_multiply(l->vendor, inverse, a, (void *)(uintptr_t)l->room);
}

int bench_tile_syrk(const bench_tile_lane *l, const filch_view *a, const filch_view *c)
{
    return fl_vendor_syrk(l->vendor, a, c);
}

int bench_tile_gemm(const bench_tile_lane *l, const filch_view *a, const filch_view *b,
                    const filch_view *c)
{
    return fl_vendor_gemm_nt(l->vendor, a, b, c);
}

int bench_tile_copy(const bench_tile_lane *l, const filch_view *from, const filch_view *to)
{
    return fl_vendor_copy(l->vendor, from, to);
}

filch_status bench_tile_explain(int code, filch_error *error)
{
    if (code <= -CODE_SHAPE)
        return bench_fail(error, FILCH_BACKEND, FACTOR_KERNEL, 0,
                          "the views do not fit the kernel (code %d)", code + CODE_SHAPE);
    if (code <= -CODE_LAUNCH)
        return bench_fail(error, FILCH_BACKEND, FACTOR_KERNEL, 0,
                          "the launch failed with the driver's error %d", -code - CODE_LAUNCH);
    (void)fl_vendor_explain(code, error);
    return FILCH_BACKEND;
}
