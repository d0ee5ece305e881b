/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime on fake GPUs, and jobs of a few small kernels on vectors: for tests of what jobs, runs
 * and devices do to one another. Included once, after cmocka. */
#ifndef TESTS_FAKE_JOBS_H
#define TESTS_FAKE_JOBS_H

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=copy,sum,hold,bump"
#ifndef N
#define N 64
#endif

static filch_runtime *runtime;
static __attribute__((unused)) uint64_t x[N], y[N], z[N];
/* Of the functions below; what they are told and tell. */
static _Atomic int is_held, holds, fails, naps_us;

/* --- What tasks do, on GPUs and on the host --- */

/* copy(from, to) */
static inline int copy(const filch_call *call)
{
    memcpy(call->views[1].ptr, call->views[0].ptr, call->views[0].rows * sizeof(uint64_t));
    return 0;
}

/* sum(a, b, to) */
static inline int sum(const filch_call *call)
{
    const uint64_t *a = call->views[0].ptr, *b = call->views[1].ptr;
    uint64_t *to = call->views[2].ptr;
    for (uint64_t i = 0; i < call->views[2].rows; i++)
        to[i] = a[i] + b[i];
    return 0;
}

/* hold(x): ends when it may. */
static inline int hold(const filch_call *call)
{
    (void)call;
    atomic_fetch_add(&holds, 1);
    while (atomic_load(&is_held) != 0) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
    return 0;
}

static __attribute__((no_sanitize("thread"))) inline void raise_each(uint64_t *cells,
                                                                     uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        cells[i]++;
}

/* bump(to): adds one. The thread sanitizer looks at whole copies many times as fast as at each
 * cell. */
static inline int bump(const filch_call *call)
{
    uint64_t *to = call->views[0].ptr;
    uint64_t part[512], most = sizeof part / sizeof part[0];
    for (uint64_t i = 0; i < call->views[0].rows; i += most) {
        uint64_t count = call->views[0].rows - i < most ? call->views[0].rows - i : most;
        memcpy(part, to + i, count * sizeof *to);
        raise_each(part, count);
        memcpy(to + i, part, count * sizeof *to);
    }
    return 0;
}

/* late(to): adds one, after a while. */
static inline int late(const filch_call *call)
{
    const struct timespec nap = {0, atomic_load(&naps_us) * 1000L};
    (void)nanosleep(&nap, NULL);
    (void)bump(call);
    return atomic_load(&fails);
}

/* --- Making things --- */

static __attribute__((unused)) const filch_policy_desc *custom; /* for start; null: none */
static __attribute__((unused)) const double *scores;            /* the same, score_count of them */
static __attribute__((unused)) size_t score_count;

static inline void start_driven(const char *devices, const char *lanes, const char *driver,
                                filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    (void)setenv("FILCH_LANES", lanes, 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    config.drive = drive;
    fakecuda_register_filch("copy", copy, 2, false, 0);
    fakecuda_register_filch("sum", sum, 3, false, 0);
    fakecuda_register_filch("hold", hold, 1, false, 0);
    fakecuda_register_filch("bump", bump, 1, false, 0);
    config.devices = devices;
    config.custom_policy = custom;
    config.scores = scores;
    config.score_count = scores != NULL ? score_count : 0;
    runtime = runtime_of(&config);
    atomic_store(&holds, 0);
}

static inline void start(const char *devices, const char *lanes, const char *driver)
{
    start_driven(devices, lanes, driver, FILCH_DRIVE_DEFAULT);
}

static inline void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

static inline filch_codelet *on_gpu(const char *entry)
{
    return codelet_of(runtime, IMAGE, entry, NULL, 0);
}

static inline filch_codelet *on_host(const char *name, filch_host_fn fn)
{
    return host_codelet_of(runtime, name, fn);
}

static inline filch_data *handle_with(uint64_t *at, uint32_t flags)
{
    return vector_of(runtime, at, N, 0, flags);
}

static inline filch_data *handle(uint64_t *at)
{
    return handle_with(at, 0);
}

static inline filch_graph *graph(void)
{
    return graph_of(runtime);
}

/* Up to three accesses: those before the last are read, the last is used as `mode` says. */
static inline void add(filch_graph *to, filch_codelet *codelet, filch_access_mode mode,
                       filch_data *a, filch_data *b, filch_data *c)
{
    filch_data *const data[] = {a, b, c};
    filch_access accesses[3];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    desc.codelet = codelet;
    desc.accesses = accesses;
    while (desc.access_count < 3 && data[desc.access_count] != NULL) {
        accesses[desc.access_count] =
            (filch_access){.data = data[desc.access_count], .mode = FILCH_READ};
        desc.access_count++;
    }
    accesses[desc.access_count - 1].mode = mode;
    assert_ok(filch_graph_add(to, &desc, NULL));
}

static inline void set(uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N; i++)
        at[i] = value + (uint64_t)i;
}

static inline void expect(const uint64_t *at, uint64_t value)
{
    for (int i = 0; i < N; i++)
        assert_int_equal(at[i], value + (uint64_t)i);
}

static inline void await_holds(int count)
{
    while (atomic_load(&holds) < count) {
        const struct timespec nap = {0, 100000};
        (void)nanosleep(&nap, NULL);
    }
}

#endif
