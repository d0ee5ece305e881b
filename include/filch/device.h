/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file device.h
 * The devices of a runtime, and choosing among them.
 *
 * Device specification, the same in the API, in FILCH_DEVICES and on the command line; items are
 * separated by commas:
 *
 *     cuda              every usable GPU
 *     cuda:1            GPU 1
 *     cuda:0/88+24+8    GPU 0 cut into slices of 88, 24 and 8 multiprocessors
 *     host              one single-core device per core this process may use
 *     host:4            four single-core devices
 *     host:2x8          two devices of eight cores each
 *     sim:FILE          the simulated devices described in a JSON file
 *
 * Simulated devices run on a virtual clock and do not mix with others.
 */
#ifndef FILCH_DEVICE_H
#define FILCH_DEVICE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What implements a device. */
typedef enum filch_backend {
    FILCH_BACKEND_HOST = 1,
    FILCH_BACKEND_CUDA = 2,
    FILCH_BACKEND_SIM = 3
} filch_backend;

/** What is known of one device. */
typedef struct filch_device_info {
    size_t size;           /**< sizeof(filch_device_info). */
    char name[64];         /**< E.g. "host:0", "cuda:0/1". Unique in the runtime. */
    char model[64];        /**< Processor or GPU model. */
    filch_backend backend; /**< What implements it. */
    uint32_t index;        /**< Position in the runtime, from 0. */
    uint32_t ordinal;      /**< Number within its backend, from 0. */
    uint32_t place;        /**< Memory it computes in; devices of one place share memory. */
    uint32_t team;         /**< Cores of a host device, multiprocessors of a GPU; else 1. */
    uint32_t reserved;     /**< 0. */
    double score;          /**< Prior weight in the static partition. */
    uint64_t memory_total; /**< Bytes of its place. */
    uint64_t memory_free;  /**< Bytes free now, as the system reports them. */
    uint64_t affinity[16]; /**< Bit set of the CPUs its worker runs on (first 1024 CPUs). */
} filch_device_info;

/** Number of devices. 0 for an invalid handle. Any thread; wait-free. Since 0.1. */
FILCH_API uint32_t filch_device_count(filch_runtime *runtime);

/**
 * Describes the device at @p index (0 to count - 1), in specification order; iterate with it.
 *
 * memory_free is read at the call. Returns FILCH_OK, FILCH_BAD_INDEX, FILCH_INVALID_ARGUMENT,
 * FILCH_INVALID_HANDLE, FILCH_FORKED. Thread safety: any thread. Since 0.1.
 */
FILCH_API filch_status filch_device_at(filch_runtime *runtime, uint32_t index,
                                       filch_device_info *info);

/**
 * Index of the device with the given number within its backend.
 *
 * Returns FILCH_OK, FILCH_UNKNOWN_ORDINAL, FILCH_INVALID_ARGUMENT, FILCH_INVALID_HANDLE,
 * FILCH_FORKED. Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_by_ordinal(filch_runtime *runtime, filch_backend backend,
                                               uint32_t ordinal, uint32_t *index);

/**
 * The next device in round-robin order: 0, 1, …, count - 1, 0, …
 *
 * Concurrent callers together see each device equally often. Returns FILCH_OK,
 * FILCH_INVALID_ARGUMENT, FILCH_INVALID_HANDLE, FILCH_FORKED. Any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_next(filch_runtime *runtime, uint32_t *index);

/**
 * The device whose place has the most free memory now; ties go to the lower index.
 *
 * Returns as filch_device_next. Any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_best_memory(filch_runtime *runtime, uint32_t *index);

/** The device with the highest score; ties go to the lower index. Returns as filch_device_next. */
FILCH_API filch_status filch_device_best_score(filch_runtime *runtime, uint32_t *index);

/** Rates a device for filch_device_choose(): higher is better, NaN means "not this one". */
typedef double (*filch_device_rate_fn)(const filch_device_info *info, void *user);

/**
 * The device that the caller's function rates highest; ties go to the lower index.
 *
 * @p rate is called once a device, in order, on the calling thread. FILCH_NO_DEVICE when every
 * rating is NaN; else as filch_device_next. Since 0.1.
 */
FILCH_API filch_status filch_device_choose(filch_runtime *runtime, filch_device_rate_fn rate,
                                           void *user, uint32_t *index);

#ifdef __cplusplus
}
#endif

#endif
