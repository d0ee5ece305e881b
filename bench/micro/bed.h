/* SPDX-License-Identifier: Apache-2.0 */
/* One GPU, cuda:0, with one stream, and the vendor's libraries where asked for: what the
 * measurements of single steps on a GPU begin and end with. One thread. */
#ifndef BENCH_MICRO_BED_H
#define BENCH_MICRO_BED_H

#include "kernels/vendor/vendor.h"
#include "offload/gpu.h"

typedef struct micro_bed {
    bench_gpu gpu;
    CUstream stream;
    fl_vendor *vendor;    /* null: not asked for */
    fl_vendor_lane *lane; /* on the stream; null: not asked for */
} micro_bed;

/* What is done on the GPU, whose context is current. On a failure it says why. */
typedef filch_status (*micro_bed_body)(micro_bed *bed, void *argument, filch_error *error);

/* Opens the GPU, calls body and closes the GPU. Returns 0, MICRO_ABSENT where there is no GPU or
 * no library, or 1; a failure is printed on stderr under the measurement's name. */
int micro_bed_use(const char *name, bool needs_vendor, micro_bed_body body, void *argument);

/* FILCH_OK, or what the driver's call returned, in error. */
filch_status micro_bed_check(const micro_bed *bed, CUresult result, const char *call,
                             filch_error *error);
/* FILCH_OK for 0, or what the vendor's call returned, in error. */
filch_status micro_bed_explain(int code, filch_error *error);
/* Waits for the stream. */
filch_status micro_bed_wait(const micro_bed *bed, filch_error *error);

filch_status micro_bed_alloc(const micro_bed *bed, CUdeviceptr *at, size_t bytes,
                             filch_error *error);
/* Waits for the stream, whose work may use the memory, and frees what is not null. */
void micro_bed_free(const micro_bed *bed, CUdeviceptr *at, size_t count);
/* Brings bytes to the GPU and waits for them. */
filch_status micro_bed_send(const micro_bed *bed, CUdeviceptr to, const void *from, size_t bytes,
                            filch_error *error);

#endif
