/* SPDX-License-Identifier: Apache-2.0 */
/* Copies of a device's own, without tasks: for tests of what lanes and slots do. After cmocka.h. */
#ifndef TESTS_FAKE_BENCH_H
#define TESTS_FAKE_BENCH_H

#include "backend/backend.h"
#include "base/clock.h"
#include "patience.h"

#define SOON PATIENCE

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

/* Memory of a device's. */
typedef struct bench {
    fl_device *device;
    char *block;
    size_t bytes;
} bench;

static inline bench bench_lay(fl_device *device, size_t bytes)
{
    bench b = {.device = device, .bytes = bytes};
    void *block = NULL;
    assert_ok(b.device->backend->memory->take(b.device, bytes, &block, NULL));
    b.block = block;
    return b;
}

static inline void bench_clear(const bench *b)
{
    b->device->backend->memory->give(b->device, b->block);
}

static inline fl_marker bench_put_behind(const bench *b, void *host, size_t offset, size_t bytes,
                                         bool is_in, fl_marker behind)
{
    fl_copy copy = {.to = is_in ? (void *)(b->block + offset) : host,
                    .from = is_in ? host : (void *)(b->block + offset),
                    .to_device = is_in ? b->device : NULL,
                    .from_device = is_in ? NULL : b->device,
                    .to_pitch = bytes,
                    .from_pitch = bytes,
                    .width = bytes,
                    .height = 1,
                    .behind = &behind,
                    .behind_count = behind != 0};
    assert_ok(b->device->backend->copy->start(b->device, &copy, NULL));
    return copy.marker;
}

static inline fl_marker bench_put(const bench *b, void *host, size_t offset, size_t bytes,
                                  bool is_in)
{
    return bench_put_behind(b, host, offset, bytes, is_in, 0);
}

static inline filch_status bench_look(const bench *b, fl_marker marker)
{
    return b->device->backend->lane->reached(b->device, marker, NULL);
}

static inline void bench_await(const bench *b, fl_marker marker)
{
    filch_status status;
    uint64_t end = fl_time_now() + (uint64_t)(SOON * 1e9);
    while ((status = bench_look(b, marker)) == FILCH_NOT_READY && fl_time_now() < end) {
    }
    assert_ok(status);
}

#endif
