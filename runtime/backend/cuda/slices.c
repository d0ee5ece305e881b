/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/cuda/slices.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Largest number of groups of a split; GPUs have fewer than 256 multiprocessors, and a group has at
 * least two. */
#define GROUPS_MOST 160

typedef struct sm_split {
    CUdevResource groups[GROUPS_MOST];
    uint32_t count;
} sm_split;

/* Writes "88+24+8", cut off at size. */
static void sizes_write(const fl_cuda_gpu *gpu, char *text, size_t size)
{
    size_t at = 0;

    for (uint32_t i = 0; i < gpu->slice_count && at < size; i++) {
        int written = snprintf(text + at, size - at, "%s%u", i > 0 ? "+" : "", gpu->slice_sms[i]);

        at += written > 0 ? (size_t)written : 0;
    }
}

static uint64_t sizes_sum(const fl_cuda_gpu *gpu)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < gpu->slice_count; i++)
        sum += gpu->slice_sms[i];
    return sum;
}

static bool cut_fits(const fl_cuda_gpu *gpu, const fl_cuda_cut *cut)
{
    if (cut->granularity == 0 || sizes_sum(gpu) > cut->sms)
        return false;
    for (uint32_t i = 0; i < gpu->slice_count; i++) {
        if (gpu->slice_sms[i] % cut->granularity != 0)
            return false;
    }
    return true;
}

static bool driver_can(const fl_cuda_api *api)
{
    return api->cuDeviceGetDevResource != NULL && api->cuDevSmResourceSplitByCount != NULL &&
           api->cuDevResourceGenerateDesc != NULL && api->cuGreenCtxCreate != NULL &&
           api->cuGreenCtxDestroy != NULL && api->cuGreenCtxStreamCreate != NULL;
}

/* Splits the whole GPU into the smallest equal groups the driver makes, in one split: neither a
 * remainder nor a group can be split again. */
static filch_status split(fl_cuda_gpu *gpu, bool ignores_coscheduling, sm_split *made,
                          fl_cuda_cut *cut, filch_error *error)
{
    const unsigned int flags =
        ignores_coscheduling ? FL_CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING : 0;
    CUdevResource all;
    CUdevResource rest;
    unsigned int count = 0;
    CUresult result;

    memset(&all, 0, sizeof all);
    memset(&rest, 0, sizeof rest);
    memset(made, 0, sizeof *made);
    result = gpu->api->cuDeviceGetDevResource(gpu->device, &all, FL_CU_DEV_RESOURCE_TYPE_SM);
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDeviceGetDevResource", NULL, NULL, error);
    /* The driver rounds the minimum of 1 up to the GPU's minimum. */
    result = gpu->api->cuDevSmResourceSplitByCount(NULL, &count, &all, NULL, flags, 1);
    if (result == FL_CUDA_SUCCESS && count > 0) {
        if (count > GROUPS_MOST)
            count = GROUPS_MOST;
        result = gpu->api->cuDevSmResourceSplitByCount(made->groups, &count, &all, &rest, flags, 1);
    }
    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDevSmResourceSplitByCount", NULL, NULL, error);
    made->count = count;
    *cut = (fl_cuda_cut){
        .granularity = count > 0 ? made->groups[0].sm.smCount : 0,
        .groups = count,
        .ignores_coscheduling = ignores_coscheduling,
    };
    cut->sms = cut->granularity * count;
    return FILCH_OK;
}

static filch_status refuse(const fl_cuda_gpu *gpu, const fl_cuda_cut *coarse,
                           const fl_cuda_cut *fine, filch_error *error)
{
    const fl_fault fault = {.status = FILCH_INVALID_ARGUMENT, .device = gpu->name};
    char sizes[64];

    sizes_write(gpu, sizes, sizeof sizes);
    if (coarse->granularity == 0 || fine->granularity == 0)
        return fl_error_fill(error, fault,
                             "%s cannot be cut: the driver splits none of its %u "
                             "multiprocessors off",
                             gpu->name, gpu->sms);
    return fl_error_fill(error, fault,
                         "%s cannot be cut into %s: possible are multiples of %u, together at most "
                         "%u, or multiples of %u without large clusters, together at most %u",
                         gpu->name, sizes, coarse->granularity, coarse->sms, fine->granularity,
                         fine->sms);
}

/* Finds a cut, trying groups that schedule clusters of any size together first. */
static filch_status cut_find(fl_cuda_gpu *gpu, sm_split *made, fl_cuda_cut *cut, filch_error *error)
{
    fl_cuda_cut coarse;
    filch_status status;

    if (!driver_can(gpu->api)) {
        const int version = gpu->library->version;

        return fl_error_fill(
            error, (fl_fault){.status = FILCH_UNSUPPORTED, .device = gpu->name},
            "%s cannot be cut into slices: that needs a driver of version 12.5, this is %d.%d",
            gpu->name, version / 1000, version % 1000 / 10);
    }
    status = split(gpu, false, made, &coarse, error);
    if (status != FILCH_OK)
        return status;
    *cut = coarse;
    if (cut_fits(gpu, cut))
        return FILCH_OK;
    status = split(gpu, true, made, cut, error);
    if (status != FILCH_OK)
        return status;
    return cut_fits(gpu, cut) ? FILCH_OK : refuse(gpu, &coarse, cut, error);
}

filch_status fl_cuda_slices_check(fl_cuda_gpu *gpu, fl_cuda_cut *cut, filch_error *error)
{
    sm_split made;

    return cut_find(gpu, &made, cut, error);
}

static filch_status slice_make(fl_cuda_gpu *gpu, CUdevResource *groups, uint32_t count,
                               CUgreenCtx *slice, filch_error *error)
{
    CUdevResourceDesc desc = NULL;
    CUresult result = gpu->api->cuDevResourceGenerateDesc(&desc, groups, count);

    if (result != FL_CUDA_SUCCESS)
        return fl_cuda_fail(gpu, result, "cuDevResourceGenerateDesc", NULL, NULL, error);
    result = gpu->api->cuGreenCtxCreate(slice, desc, gpu->device, FL_CU_GREEN_CTX_DEFAULT_STREAM);
    if (result != FL_CUDA_SUCCESS) {
        *slice = NULL;
        return fl_cuda_fail(gpu, result, "cuGreenCtxCreate", NULL, NULL, error);
    }
    return FILCH_OK;
}

filch_status fl_cuda_slices_open(fl_cuda_gpu *gpu, filch_error *error)
{
    sm_split made;
    fl_cuda_cut cut;
    uint32_t first = 0;
    filch_status status;

    if (gpu->slice_count == 0)
        return FILCH_OK;
    status = cut_find(gpu, &made, &cut, error);
    for (uint32_t i = 0; i < gpu->slice_count && status == FILCH_OK; i++) {
        /* A fitting cut has a granularity. NOLINTNEXTLINE(clang-analyzer-core.DivideZero) */
        const uint32_t count = gpu->slice_sms[i] / cut.granularity;

        status = slice_make(gpu, made.groups + first, count, &gpu->slices[i], error);
        first += count;
    }
    if (status != FILCH_OK)
        fl_cuda_slices_close(gpu);
    return status;
}

void fl_cuda_slices_close(fl_cuda_gpu *gpu)
{
    for (uint32_t i = gpu->slice_count; i-- > 0;) {
        if (gpu->slices[i] != NULL)
            (void)gpu->api->cuGreenCtxDestroy(gpu->slices[i]);
        gpu->slices[i] = NULL;
    }
}
