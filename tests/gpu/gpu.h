/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests on GPUs share: the devices (FILCH_DEVICES, else every GPU), seeds, failures.
 *
 * The same sources are built a second time with FL_FAKE, against the fake driver, where each kernel
 * runs as its host function. */
#ifndef TESTS_GPU_H
#define TESTS_GPU_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/filch.h"
#include "filch/kernels.h"
#include "measure/policies.h"
#include "random.h"

#define GPU_SKIP 77

typedef struct gpu_world {
    filch_runtime *runtime;
    uint32_t devices;
    fl_random random; /* of the present case */
} gpu_world;

/* One part of a test: makes its codelets in a new runtime, and runs a random case. */
typedef struct gpu_test {
    const char *name;
    /* FILCH_NO_COMPILER skips the test; any other failure fails it. */
    filch_status (*open)(gpu_world *world);
    void (*check)(gpu_world *world);
    uint64_t cases; /* as for test_count */
} gpu_test;

/* test [COUNT [SEED]]: COUNT cases with seeds SEED, SEED + 1, ... without COUNT as many as the test
 * and the build have, without SEED from one that the clock gives. Some cases share a runtime.
 * Returns the exit status of main: 77 where there is no GPU or no compiler. */
int gpu_main(const gpu_test *test, int argc, char **argv);

/* Records a failure of the present case. printf-like. */
void gpu_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
void gpu_expect(filch_status got, filch_status wanted, const char *call);
#define gpu_ok(call) gpu_expect((call), FILCH_OK, #call)
bool gpu_has_failed(void);
/* What the runtime says of its last failure. */
void gpu_explain(filch_runtime *runtime);

/* Waits for a job, expects its result, gives it back. */
void gpu_wait(filch_runtime *runtime, filch_job *job, filch_status wanted);
bool gpu_chance(gpu_world *world, uint32_t percent);
/* low to high. */
uint64_t gpu_between(gpu_world *world, uint64_t low, uint64_t high);
/* Zeroed; ends the process when there is none. */
void *gpu_alloc(size_t count, size_t size);

/* Opens a runtime on the test's devices; ends the process with 77 where there is no GPU. */
filch_runtime *gpu_runtime(bench_policy policy);

/* Tells the fake driver what a kernel does; all of one source before the first codelet of it. */
void gpu_twin(const char *entry, filch_host_fn host, uint32_t views, bool is_batch,
              uint32_t arg_size);
/* A codelet of a CUDA source with a host function of the same meaning. */
filch_status gpu_codelet(filch_runtime *runtime, const char *source, const char *entry,
                         filch_host_fn host, uint32_t arg_size, filch_shape_fn shape_of,
                         filch_codelet **codelet);
/* One of filch's own kernels. */
filch_status gpu_builtin(filch_runtime *runtime, const char *name, filch_codelet **codelet);

/* The mixing that tests compute with, and the same for CUDA sources. */
static inline uint64_t gpu_mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b * UINT64_C(0x9e3779b97f4a7c15));
    return fl_splitmix64(&state);
}

#define GPU_MIX                                                                \
    "typedef unsigned long long u64;\n"                                        \
    "static __device__ u64 mix(u64 a, u64 b)\n"                                \
    "{\n"                                                                      \
    "    u64 z = (a ^ (b * 0x9e3779b97f4a7c15ull)) + 0x9e3779b97f4a7c15ull;\n" \
    "    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;\n"                       \
    "    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;\n"                       \
    "    return z ^ (z >> 31);\n"                                              \
    "}\n"

#endif
