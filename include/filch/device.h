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
 *     host@4-7          one single-core device on each of CPUs 4 to 7
 *     host:2@4,6        two single-core devices, on CPUs 4 and 6
 *     host:2x8@0-15     two devices of eight cores each, on CPUs 0 to 7 and 8 to 15
 *     host:4@any        four devices whose threads are bound to no core
 *     sim:FILE          the simulated devices described in a JSON file
 *
 * Simulated devices run on a virtual clock and do not mix with others. A device must not be named
 * twice: that is FILCH_DUPLICATE_DEVICE, and so are two items of host devices of one team size
 * (write host:4, not host:2,host:2). Where more host devices are asked for than there are cores,
 * they share cores. At most 1,024 devices a runtime, and 1,024 cores a host device.
 *
 * After '@' stand the system's numbers of CPUs, as taskset takes them, up to 65535: numbers and
 * ranges, separated by commas, each CPU once, at most 1,024 an item. A comma before a digit goes on
 * with the list; one before a letter starts the next item. Each CPU counts as a core, also the
 * second hardware thread of one. Devices take the CPUs in the order of the list, and share them in
 * turn where they need more; without a count there is one device a CPU. A CPU that the machine
 * lacks is FILCH_UNKNOWN_ORDINAL, one that the process's control group keeps from it
 * FILCH_NO_DEVICE. A name beats the mask (taskset, OMP_PROC_BIND) that the process has beside that.
 * Two items of one team size may stand together where both name CPUs and none twice.
 *
 * Without '@' the devices take the first cores that the process may use: those that its control
 * group allows, and of these the ones that any of its threads is bound to. What other runtimes do,
 * in this process or others, does not change that. The word "any" leaves the devices' threads free
 * to run on all that the process may use. Where workers' threads of two runtimes, of one process or
 * two, are bound to one CPU, filch_config.log of the later one receives a warning. In
 * FILCH_DRIVE_POLL no thread is bound to anything.
 *
 * GPUs are numbered as the driver does, after CUDA_VISIBLE_DEVICES. A GPU that cannot be used is an
 * error where the specification names it by its number; else it is left out
 * (filch_device_refused_at()). An absent driver is an error where the specification names cuda; by
 * default the host's cores are used then.
 *
 * The slices of one GPU run kernels on multiprocessors of their own, but share its memory, caches,
 * bandwidth and faults. They live in the primary context, whose own kernels, e.g. the host's, still
 * run on all multiprocessors.
 *
 * The devices are fixed when the runtime is made; each can be withdrawn for a while
 * (filch_device_withdraw()).
 */
#ifndef FILCH_DEVICE_H
#define FILCH_DEVICE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What implements a device. */
typedef enum filch_backend {
    FILCH_BACKEND_HOST = 1, /**< Cores of the host. */
    FILCH_BACKEND_CUDA = 2, /**< CUDA GPUs, or slices of one. */
    FILCH_BACKEND_SIM = 3   /**< Simulated devices on a virtual clock. */
} filch_backend;

/** What a GPU is like; bits of filch_device_info::features. */
typedef enum filch_device_feature {
    FILCH_DEVICE_ECC = 1,        /**< Its memory is protected by error correction. */
    FILCH_DEVICE_INTEGRATED = 2, /**< It shares the host's memory. */
    FILCH_DEVICE_MIG = 4,        /**< It is an instance of a partitioned GPU. */
    FILCH_DEVICE_SLICE = 8,      /**< It is some multiprocessors of a GPU. */
    FILCH_DEVICE_CLUSTERS = 16   /**< Kernels may have clusters of blocks. */
} filch_device_feature;

/** What is known of one device. */
typedef struct filch_device_info {
    size_t size;           /**< sizeof(filch_device_info). */
    char name[64];         /**< E.g. "host:0", "cuda:0/1". Unique in the runtime. */
    char model[64];        /**< Processor or GPU model. */
    filch_backend backend; /**< What implements it. */
    uint32_t index;        /**< Position in the runtime, from 0. */
    uint32_t ordinal;      /**< Number within its backend, from 0: the driver's for a GPU, which its
                                slices share. */
    uint32_t place;        /**< Memory it computes in; devices of one place share memory. */
    uint32_t team;         /**< Cores of a host device, multiprocessors of a GPU; else 1. */
    uint32_t reserved;     /**< 0. */
    double score;          /**< Weight in the static partition; see ::filch_score. */
    uint64_t memory_total; /**< Bytes of its place. */
    uint64_t memory_free;  /**< Bytes free now, as the system reports them. */
    uint64_t affinity[16]; /**< Bit set of the CPUs its worker runs on (first 1024 CPUs). */
    char uuid[48];       /**< E.g. "GPU-…" or "MIG-…"; this and all below: GPUs only, else 0. */
    char pci[16];        /**< PCI address, e.g. "0000:1b:00.0"; empty where unknown. */
    uint32_t capability; /**< Compute capability: 90 is 9.0. */
    uint32_t multiprocessors; /**< Of the whole GPU; team is the device's own. */
    uint32_t clock_khz;       /**< Peak clock of the multiprocessors. */
    uint32_t memory_khz;      /**< Peak clock of the memory. */
    uint32_t memory_bits;     /**< Width of the memory's bus. */
    uint32_t single_lanes;    /**< Single-precision multiply-adds a multiprocessor and cycle. */
    uint32_t double_lanes;    /**< The same in double precision. */
    uint32_t features;        /**< Bits of ::filch_device_feature. */
    int32_t numa_node;        /**< The host's memory node near it; -1 where unknown. */
    uint32_t compute_lanes;   /**< Streams that its kernels are spread over. */
    double bandwidth;         /**< Peak bytes a second of its memory; 0 where unknown. */
    uint64_t l2_bytes;        /**< Second-level cache. */
    uint64_t budget;          /**< Bytes of its place that filch may take; see
                                   filch_config.memory_limit. */
} filch_device_info;

/** A device that is there but cannot be used. */
typedef struct filch_device_refusal {
    size_t size;           /**< sizeof(filch_device_refusal). */
    char name[64];         /**< E.g. "cuda:1". */
    filch_backend backend; /**< What would implement it. */
    uint32_t ordinal;      /**< Its number there; 0 where the backend as a whole cannot be used. */
    filch_error error;     /**< Why. */
} filch_device_refusal;

/**
 * Number of devices.
 *
 * @param runtime the runtime.
 * @return how many; 0 for an invalid handle and in a forked child.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_device_count(filch_runtime *runtime);

/**
 * Describes one device, in specification order; iterate with it.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param info    receives the description; its size must be set. memory_free is read at the call,
 *                0 where the system does not say.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p info, or its size is too
 *         small); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_at(filch_runtime *runtime, uint32_t index,
                                       filch_device_info *info);

/**
 * Number of devices that were left out because they cannot be used.
 *
 * @param runtime the runtime.
 * @return how many; 0 for an invalid handle and in a forked child.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_device_refused_count(filch_runtime *runtime);

/**
 * Says which device was left out, and why; iterate with it. A driver that cannot be used is one
 * item.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param refusal receives the record; its size must be set.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p refusal, or its size is too
 *         small); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_refused_at(filch_runtime *runtime, uint32_t index,
                                               filch_device_refusal *refusal);

/**
 * Finds a device by its number within its backend; of slices, the first.
 *
 * @param runtime the runtime.
 * @param backend what implements it.
 * @param ordinal its number there, from 0.
 * @param index   receives its position in the runtime.
 * @return FILCH_OK; FILCH_UNKNOWN_ORDINAL; FILCH_INVALID_ARGUMENT (null @p index, unknown backend);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_by_ordinal(filch_runtime *runtime, filch_backend backend,
                                               uint32_t ordinal, uint32_t *index);

/**
 * The next device in round-robin order: 0, 1, …, count - 1, 0, …
 *
 * Concurrent callers together see each device equally often.
 *
 * @param runtime the runtime.
 * @param index   receives its position in the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p index); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_next(filch_runtime *runtime, uint32_t *index);

/**
 * The device whose place has the most free memory now; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param index   receives its position in the runtime.
 * @return as filch_device_next().
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_best_memory(filch_runtime *runtime, uint32_t *index);

/**
 * The device with the highest score; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param index   receives its position in the runtime.
 * @return as filch_device_next().
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_best_score(filch_runtime *runtime, uint32_t *index);

/**
 * The device that the caller's function rates highest; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param rate    called once a device, in order, on the calling thread.
 * @param user    handed to @p rate.
 * @param index   receives the position of the device in the runtime.
 * @return FILCH_OK; FILCH_NO_DEVICE when every rating is NaN; FILCH_INVALID_ARGUMENT (null @p rate
 *         or @p index); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_choose(filch_runtime *runtime, filch_device_rate_fn rate,
                                           void *user, uint32_t *index);

/** What filch holds of the memory of a place, in bytes; see filch_device_memory(). */
typedef struct filch_memory_stats {
    size_t size;             /**< sizeof(filch_memory_stats). */
    filch_arena arena;       /**< What hands it out; FILCH_ARENA_DEFAULT: nothing does, as on the
                                  host and on simulated devices, and the rest is 0. */
    uint32_t padding;        /**< 0. */
    uint64_t budget;         /**< Most that filch may hold of the device's: that of
                                  filch_device_info, or less while others, such as another process,
                                  use so much of the memory that the device had no more. */
    uint64_t mapped;         /**< Held of the device's: in use, kept for reuse, or between. */
    uint64_t mapped_peak;    /**< The most that was ever mapped. */
    uint64_t requested;      /**< In use, as it was asked for. */
    uint64_t requested_peak; /**< The most that was ever in use, to within what workers keep at
                                  hand. */
    uint64_t cached;         /**< In blocks given back and kept for the next taker. */
    uint64_t pending;        /**< Of these, in blocks that work in flight may still use. */
    uint64_t reserved;       /**< Promised to tasks about to start, and not in use yet. */
    uint64_t takes;          /**< Blocks taken so far. */
    uint64_t gives;          /**< Blocks given back so far. */
    uint64_t shortages;      /**< Times that the device had no more although the budget was not used
                                  up. What is not in use makes room then, as it does at the end of
                                  the budget; the device is asked again now and then, after
                                  filch_device_trim(), and before anything fails for it. */
} filch_memory_stats;

/**
 * Counts what filch holds of the memory that a device computes in; of slices of one GPU, together.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param stats   receives the counts; its size must be set. While others work they are recent, but
 *                not of one moment.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p stats, or its size is too
 *         small); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks. Since 0.1.
 */
FILCH_API filch_status filch_device_memory(filch_runtime *runtime, uint32_t index,
                                           filch_memory_stats *stats);

/**
 * Hands memory that is unused, but kept for reuse, back to the device, e.g. before the host's
 * program wants much of it. What is in use stays where it is.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1; the memory is its place's, which slices share.
 * @param keep    bytes of the device's that filch may go on holding, where that much is unused.
 * @return FILCH_OK (also where there was nothing to hand back); FILCH_BAD_INDEX;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: may wait for the device, and holds up work on it. Since 0.1.
 */
FILCH_API filch_status filch_device_trim(filch_runtime *runtime, uint32_t index, uint64_t keep);

/** Whether a device takes part; see filch_device_presence(). */
typedef enum filch_presence {
    FILCH_PRESENCE_THERE = 0,     /**< It runs what there is for it. */
    FILCH_PRESENCE_LEAVING = 1,   /**< It is withdrawn, but what it had begun may still run. */
    FILCH_PRESENCE_WITHDRAWN = 2, /**< It is withdrawn, and runs nothing. */
    FILCH_PRESENCE_LOST = 3       /**< It does not answer, and never will again. */
} filch_presence;

/**
 * Withdraws a device: from now on it starts nothing, until filch_device_readmit(). For hosts that
 * want a device, or the cores of one, for something else for a while, also while jobs run.
 *
 * What is in flight on the device ends there, as do reductions whose partial results it is in the
 * middle of combining; a task there that waits for other work ends when that work does. What waits
 * for the device, in graphs open or sealed and in batches, goes to the others, whatever the policy;
 * later jobs give it no share, nor does any policy place work there. A graph sealed before or
 * meanwhile keeps its tasks' homes for when the device is back.
 *
 * What no device that is there can run waits, and nothing is refused: a job that only this device,
 * or devices withdrawn alike, can do ends after one of them is readmitted. filch_job_cancel() ends
 * it as ever; filch_runtime_destroy() answers FILCH_BUSY while it waits. On a virtual clock, a wait
 * that only a readmission could end returns FILCH_TIMEOUT.
 *
 * The device's memory stays in use: contents there are read from it, moved home and evicted as
 * ever, broadcasts to it bring it what it is to have, and its memory counts against its budget.
 *
 * The device's thread sleeps, and uses no CPU but for what is in flight or sent to it. A time that
 * a job spends without the device counts as starved in filch_job_report().
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @return FILCH_OK; FILCH_WRONG_STATE (it is withdrawn already); FILCH_DEVICE_LOST;
 *         FILCH_BAD_INDEX; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks; waits for nothing in flight:
 * filch_device_presence() tells when that is over. Since 0.1.
 */
FILCH_API filch_status filch_device_withdraw(filch_runtime *runtime, uint32_t index);

/**
 * Takes a device back that was withdrawn: it looks for work, and robs others, at once; jobs that
 * start later give it its share.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @return FILCH_OK; FILCH_WRONG_STATE (it is not withdrawn); FILCH_DEVICE_LOST (it was lost
 *         meanwhile); FILCH_BAD_INDEX; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_device_readmit(filch_runtime *runtime, uint32_t index);

/**
 * Tells whether a device takes part. Once it is FILCH_PRESENCE_WITHDRAWN, the host sees all that
 * ran there, and filch puts no kernel there until it is readmitted, though maybe copies. In
 * FILCH_DRIVE_POLL that takes a call of filch_poll() or filch_job_wait(), and on a virtual clock a
 * wait. A simulated device is withdrawn by its description, too.
 *
 * @param runtime  the runtime.
 * @param index    0 to count - 1.
 * @param presence receives the answer.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p presence);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_presence(filch_runtime *runtime, uint32_t index,
                                             filch_presence *presence);

/** In place of a device's index: the host's memory. Any host device means the same. */
#define FILCH_LINK_HOST UINT32_MAX

/** What joins two memories, in one direction. */
typedef struct filch_link {
    size_t size;         /**< sizeof(filch_link). */
    uint32_t is_same;    /**< 1: it is one memory, and nothing needs to be copied; the rest is 0. */
    uint32_t has_access; /**< 1: the driver lets the first reach the second's memory straight; else
                              copies go through the host's memory. 1 between a GPU and the host. */
    uint32_t has_atomics; /**< 1: atomic operations work across it, which they do over NVLink and do
                               not over PCIe. Between GPUs only. */
    int32_t rank;     /**< The driver's performance rank among the links between GPUs: smaller is
                           faster. 0 for the host. */
    double bandwidth; /**< Bytes a second of a large copy, as filch_links_measure() found; 0 where
                           it was not measured. */
} filch_link;

/**
 * What joins the memory of one device to that of another. Between simulated devices nothing is
 * known.
 *
 * @param runtime the runtime.
 * @param from    index of a device, or FILCH_LINK_HOST: where copies come from.
 * @param to      the same: where they go.
 * @param link    receives the description; its size must be set.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p link, or its size is too
 *         small); FILCH_BACKEND, FILCH_DEVICE_LOST (the driver did not say);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the driver. Since 0.1.
 */
FILCH_API filch_status filch_device_link(filch_runtime *runtime, uint32_t from, uint32_t to,
                                         filch_link *link);

/**
 * Measures the bandwidth between every two memories of the runtime, in both directions, by copies
 * one after the other: a warm-up and four of 64 MiB each. Of slices the GPU counts once.
 *
 * Takes 64 MiB of each of two GPUs, or 64 MiB of one and as much page-locked memory of the host's,
 * for as long as a pair is measured. The jobs of this runtime and others' work share the links, so
 * that only an idle machine gives good figures; and taking and giving memory back may hold up the
 * GPUs. A pair that cannot be measured keeps what it had, and the others are measured all the same.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also where there is nothing to measure); of the first pair that failed:
 *         FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST; FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: some hundredths of a second a pair, and until other callers
 * have measured. Since 0.1.
 */
FILCH_API filch_status filch_links_measure(filch_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
