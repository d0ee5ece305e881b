/* SPDX-License-Identifier: Apache-2.0 */
/* Copies and fills. Every copy is rows of bytes; addresses are checked and translated when the call
 * is made, which is also when work that may not wait for the host is refused. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fake.h"

typedef struct side {
    char *bytes;
    size_t pitch;
    fake_allocation *block; /* null: host memory */
    bool is_pageable;
} side;

typedef struct copy {
    fake_work work;
    char *to;
    const char *from;
    size_t to_pitch, from_pitch, width, height;
    char *staged; /* a pageable source, as it was when the call was made */
} copy;

typedef struct fill {
    fake_work work;
    char *to;
    size_t bytes;
    unsigned char value;
} fill;

#ifdef __SANITIZE_THREAD__

/* The thread sanitizer takes a hundred times as long as a copy. Of rows as long as those of the
 * measurements of links it looks at the ends only. */
enum { LONG_ROW = 8 << 20, LOOKED_AT = 1 << 20 };

__attribute__((no_sanitize("thread"))) static void fill_unseen(char *to, char value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        to[i] = value;
}

__attribute__((no_sanitize("thread"))) static void move_unseen(char *to, const char *from,
                                                               size_t bytes)
{
    size_t i = 0;

    for (; i + 8 <= bytes; i += 8)
        __builtin_memcpy(to + i, from + i, 8);
    for (; i < bytes; i++)
        to[i] = from[i];
}

static void fill_row(char *to, unsigned char value, size_t bytes)
{
    size_t end = bytes > LONG_ROW ? LOOKED_AT : bytes;

    memset(to, value, end);
    if (end == bytes)
        return;
    fill_unseen(to + end, (char)value, bytes - 2 * end);
    memset(to + bytes - end, value, end);
}

static void move_row(char *to, const char *from, size_t bytes)
{
    bool is_apart = to + bytes <= from || from + bytes <= to;
    size_t end = bytes > LONG_ROW && is_apart ? LOOKED_AT : bytes;

    memmove(to, from, end);
    if (end == bytes)
        return;
    move_unseen(to + end, from + end, bytes - 2 * end);
    memmove(to + bytes - end, from + bytes - end, end);
}

#else

static void fill_row(char *to, unsigned char value, size_t bytes)
{
    memset(to, value, bytes);
}

/* Rows seldom overlap. The address sanitizer of GCC 12 moves byte by byte, and copies with libc. */
static void move_row(char *to, const char *from, size_t bytes)
{
    if (to + bytes <= from || from + bytes <= to) {
        memcpy(to, from, bytes);
    } else {
        memmove(to, from, bytes);
    }
}

#endif

static CUresult copy_run(fake_work *work, const fake_stream *stream)
{
    const copy *c = (const copy *)work;

    (void)stream;
    for (size_t row = 0; row < c->height; row++)
        move_row(c->to + row * c->to_pitch, c->from + row * c->from_pitch, c->width);
    return FL_CUDA_SUCCESS;
}

static void copy_drop(fake_work *work)
{
    free(((copy *)work)->staged);
}

static uint64_t copy_duration(const side *to, const side *from, size_t bytes)
{
    double gbps = fake.config.copy_gbps;

    if (to->block != NULL && from->block != NULL && to->block->device != from->block->device) {
        double link = fake_link_get(from->block->device, to->block->device)->gbps;
        gbps = link > 0 ? link : gbps;
    }
    return fake.config.copy_ns + (gbps > 0 ? (uint64_t)((double)bytes / gbps) : 0);
}

static size_t span(size_t pitch, size_t width, size_t height)
{
    return (height - 1) * pitch + width;
}

/* Copies between checked sides, on a stream whose context is current. */
static CUresult copy_submit(fake_stream *stream, const side *to, const side *from, size_t width,
                            size_t height)
{
    copy *c = calloc(1, sizeof *c);

    if (c == NULL)
        abort();
    fake_work_init(&c->work, "copy", stream->object.context);
    c->work.run = copy_run;
    c->work.drop = copy_drop;
    c->work.duration_ns = copy_duration(to, from, width * height);
    fake_work_use(&c->work, to->block);
    fake_work_use(&c->work, from->block);
    if (to->block == NULL && !to->is_pageable)
        fake_work_use_pinned(&c->work, to->bytes);
    if (from->block == NULL && !from->is_pageable)
        fake_work_use_pinned(&c->work, from->bytes);
    *c = (copy){c->work, to->bytes, from->bytes, to->pitch, from->pitch, width, height, NULL};
    if (from->is_pageable) {
        c->staged = malloc(width * height);
        if (c->staged == NULL)
            abort();
        for (size_t row = 0; row < height; row++)
            move_row(c->staged + row * width, from->bytes + row * from->pitch, width);
        c->from = c->staged;
        c->from_pitch = width;
    }
    if (to->is_pageable || from->is_pageable)
        fake_count("pageable");
    fake_count_bytes(from->block, to->block, width * height);
    fake_submit(stream, &c->work);
    /* As the driver, which returns from a copy to pageable memory when it has arrived. */
    if (to->is_pageable)
        fake_stream_wait(stream);
    return stream->object.context->poison;
}

static bool host_side(side *out, const void *address, size_t pitch, size_t bytes)
{
    if (address == NULL || fake_is_device_pointer((uintptr_t)address)) {
        (void)fake_violate(0, "%p is no host memory", address);
        return false;
    }
    if (fake_is_split((uintptr_t)address, bytes)) {
        (void)fake_violate(0, "%zu bytes at %p are pinned in part", bytes, address);
        return false;
    }
    *out =
        (side){(char *)(uintptr_t)address, pitch, NULL, !fake_is_pinned((uintptr_t)address, bytes)};
    return true;
}

static bool device_side(side *out, const fake_context *context, CUdeviceptr address, size_t pitch,
                        size_t bytes)
{
    *out = (side){NULL, pitch, NULL, false};
    out->bytes = fake_memory_reach(context, address, bytes, &out->block);
    return out->bytes != NULL;
}

/* Begins a call on a stream; null: *result says why not. */
static fake_stream *begin(const char *call, CUstream handle, CUresult *result)
{
    fake_stream *stream = NULL;

    *result = fake_begin(call, FAKE_READY | FAKE_CURRENT);
    if (*result == FL_CUDA_SUCCESS) {
        stream = fake_stream_get(handle);
        if (stream == NULL)
            *result = FL_CUDA_ERROR_INVALID_HANDLE;
    }
    return stream;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemcpyHtoDAsync", handle, &result);
    side target, source;

    if (stream == NULL || bytes == 0)
        return fake_end(result);
    if (!device_side(&target, stream->object.context, to, bytes, bytes) ||
        !host_side(&source, from, bytes, bytes))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(copy_submit(stream, &target, &source, bytes, 1));
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemcpyDtoHAsync", handle, &result);
    side target, source;

    if (stream == NULL || bytes == 0)
        return fake_end(result);
    if (!device_side(&source, stream->object.context, from, bytes, bytes) ||
        !host_side(&target, to, bytes, bytes))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(copy_submit(stream, &target, &source, bytes, 1));
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemcpyDtoDAsync", handle, &result);
    side target, source;

    if (stream == NULL || bytes == 0)
        return fake_end(result);
    if (!device_side(&target, stream->object.context, to, bytes, bytes) ||
        !device_side(&source, stream->object.context, from, bytes, bytes))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(copy_submit(stream, &target, &source, bytes, 1));
}

/* Mappings and pools' blocks have no context of their own: theirs is any of the device's. */
static bool is_of(const fake_allocation *block, const fake_context *context)
{
    return block->context == NULL ? block->device == context->device : block->context == context;
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                           CUcontext from_context, size_t bytes, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemcpyPeerAsync", handle, &result);
    side target, source;

    if (stream == NULL)
        return fake_end(result);
    const fake_context *there = fake_find(FAKE_CONTEXT, to_context);
    const fake_context *here = fake_find(FAKE_CONTEXT, from_context);
    if (there == NULL || here == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_CONTEXT);
    if (stream->object.context != there && stream->object.context != here)
        (void)fake_violate(0, "the stream belongs to neither end of the copy");
    if (bytes == 0)
        return fake_end(FL_CUDA_SUCCESS);
    /* Peers that cannot reach each other are copied through the host: no access is needed. */
    if (!device_side(&target, NULL, to, bytes, bytes) ||
        !device_side(&source, NULL, from, bytes, bytes))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (!is_of(target.block, there) || !is_of(source.block, here)) {
        return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_VALUE,
                                     "memory of another context than the one named for it"));
    }
    return fake_end(copy_submit(stream, &target, &source, bytes, 1));
}

/* One side of a 2-D copy; a zero pitch is the width. */
static bool plane_side(side *out, const fake_context *context, CUmemorytype type, const void *host,
                       CUdeviceptr device, size_t pitch, const size_t at[2], const size_t size[2])
{
    size_t step = pitch != 0 ? pitch : at[0] + size[0];
    size_t offset = at[1] * step + at[0];
    size_t bytes = span(step, size[0], size[1]);

    if (step < at[0] + size[0]) {
        (void)fake_violate(0, "a pitch of %zu for rows of %zu bytes", step, at[0] + size[0]);
        return false;
    }
    if (type == FL_CU_MEMORYTYPE_UNIFIED) {
        bool is_device = fake_is_device_pointer(device);
        host = (const void *)device;
        type = is_device ? FL_CU_MEMORYTYPE_DEVICE : FL_CU_MEMORYTYPE_HOST;
    }
    switch (type) {
    case FL_CU_MEMORYTYPE_HOST:
        return host_side(out, host == NULL ? NULL : (const char *)host + offset, step, bytes);
    case FL_CU_MEMORYTYPE_DEVICE:
        return device_side(out, context, device + offset, step, bytes);
    default:
        return false;
    }
}

CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D *copy_of, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemcpy2DAsync", handle, &result);
    const CUDA_MEMCPY2D *c = copy_of;
    side to, from;

    if (stream == NULL)
        return fake_end(result);
    if (c->WidthInBytes == 0 || c->Height == 0)
        return fake_end(FL_CUDA_SUCCESS);
    const fake_context *context = stream->object.context;
    const size_t size[2] = {c->WidthInBytes, c->Height};
    if (!plane_side(&to, context, c->dstMemoryType, c->dstHost, c->dstDevice, c->dstPitch,
                    (const size_t[2]){c->dstXInBytes, c->dstY}, size) ||
        !plane_side(&from, context, c->srcMemoryType, c->srcHost, c->srcDevice, c->srcPitch,
                    (const size_t[2]){c->srcXInBytes, c->srcY}, size))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    return fake_end(copy_submit(stream, &to, &from, size[0], size[1]));
}

static CUresult fill_run(fake_work *work, const fake_stream *stream)
{
    const fill *f = (const fill *)work;

    (void)stream;
    fill_row(f->to, f->value, f->bytes);
    return FL_CUDA_SUCCESS;
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t bytes, CUstream handle)
{
    CUresult result;
    fake_stream *stream = begin("cuMemsetD8Async", handle, &result);
    side target;

    if (stream == NULL || bytes == 0)
        return fake_end(result);
    if (!device_side(&target, stream->object.context, to, bytes, bytes))
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    fill *f = calloc(1, sizeof *f);
    if (f == NULL)
        abort();
    fake_work_init(&f->work, "fill", stream->object.context);
    f->work.run = fill_run;
    f->work.duration_ns = copy_duration(&target, &target, bytes);
    fake_work_use(&f->work, target.block);
    f->to = target.bytes;
    f->bytes = bytes;
    f->value = value;
    fake_submit(stream, &f->work);
    return fake_end(FL_CUDA_SUCCESS);
}
