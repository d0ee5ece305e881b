/* SPDX-License-Identifier: Apache-2.0 */
#include "micro/bed.h"

#include "micro/micro.h"
#include "support/fail.h"

filch_status micro_bed_check(const micro_bed *bed, CUresult result, const char *call,
                             filch_error *error)
{
    return bench_gpu_check(&bed->gpu, result, call, error);
}

filch_status micro_bed_explain(int code, filch_error *error)
{
    if (code == 0)
        return FILCH_OK;
    (void)fl_vendor_explain(code, error);
    return FILCH_BACKEND;
}

filch_status micro_bed_wait(const micro_bed *bed, filch_error *error)
{
    return bench_gpu_wait(&bed->gpu, bed->stream, error);
}

filch_status micro_bed_alloc(const micro_bed *bed, CUdeviceptr *at, size_t bytes,
                             filch_error *error)
{
    return bench_gpu_alloc(&bed->gpu, at, bytes, error);
}

void micro_bed_free(const micro_bed *bed, CUdeviceptr *at, size_t count)
{
    (void)bench_gpu_wait(&bed->gpu, bed->stream, NULL);
    for (size_t k = 0; k < count; k++)
        bench_gpu_free(&bed->gpu, &at[k]);
}

filch_status micro_bed_send(const micro_bed *bed, CUdeviceptr to, const void *from, size_t bytes,
                            filch_error *error)
{
    filch_status status = bench_gpu_send(&bed->gpu, to, from, bytes, bed->stream, error);
    return status == FILCH_OK ? micro_bed_wait(bed, error) : status;
}

static filch_status open_vendor(micro_bed *bed, filch_error *error)
{
    filch_status status = fl_vendor_open(&bed->gpu.library, error, &bed->vendor);
    if (status != FILCH_OK)
        return status;
    bed->lane = fl_vendor_lane_make(bed->vendor, bed->gpu.context, bed->stream, 0);
    return bed->lane ? FILCH_OK
                     : bench_fail(error, FILCH_BACKEND, "cuBLAS", 0, "a handle cannot be made");
}

static void leave(micro_bed *bed)
{
    if (bed->lane)
        fl_vendor_lane_drop(bed->lane);
    bench_gpu_stream_free(&bed->gpu, &bed->stream);
    fl_vendor_close(bed->vendor);
    bench_gpu_leave(&bed->gpu);
}

static filch_status use(micro_bed *bed, bool needs_vendor, micro_bed_body body, void *argument,
                        filch_error *error)
{
    filch_status status = bench_gpu_enter(&bed->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = bench_gpu_stream(&bed->gpu, &bed->stream, error);
    if (status == FILCH_OK && needs_vendor)
        status = open_vendor(bed, error);
    if (status == FILCH_OK)
        status = body(bed, argument, error);
    leave(bed);
    return status;
}

int micro_bed_use(const char *name, bool needs_vendor, micro_bed_body body, void *argument)
{
    filch_error error = FILCH_ERROR_INIT;
    micro_bed bed = {.stream = NULL};
    filch_status status = FILCH_NOT_FOUND;
    if (bench_gpu_count(&error) != 0) {
        status = bench_gpu_open(&bed.gpu, 0, &error);
        if (status == FILCH_OK)
            status = use(&bed, needs_vendor, body, argument, &error);
        bench_gpu_close(&bed.gpu);
    }
    if (status == FILCH_OK)
        return 0;
    fprintf(stderr, "filch-bench micro: %s: %s\n", name, error.text);
    return status == FILCH_NOT_FOUND ? MICRO_ABSENT : 1;
}
