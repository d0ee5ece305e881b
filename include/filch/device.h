/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file device.h
 * Devices of a runtime, and functions that choose among the devices.
 *
 * Device specification, identical in the API, in FILCH_DEVICES and on the command line; commas
 * separate the items:
 *
 *     cuda              every usable GPU
 *     cuda:1            GPU 1
 *     cuda:0/88+24+8    GPU 0 cut into slices of 88, 24 and 8 multiprocessors
 *     host              a single-core device per core that the process may use
 *     host:4            four single-core devices
 *     host:2x8          two devices of eight cores each
 *     host@4-7          a single-core device on each of CPUs 4 to 7
 *     host:2@4,6        two single-core devices, on CPUs 4 and 6
 *     host:2x8@0-15     two devices of eight cores each, on CPUs 0 to 7 and 8 to 15
 *     host:4@any        four devices with threads bound to no core
 *     sim:FILE          the simulated devices described in a JSON file
 *
 * Simulated devices run on a virtual clock and do not mix with real devices. A specification must
 * not name a device twice: the status is then FILCH_DUPLICATE_DEVICE. Two items of host devices of
 * equal team size are a duplicate, too (write host:4, not host:2,host:2). Host devices share cores
 * where the specification asks for more devices than the process has cores. A runtime has at most
 * 1,024 devices, and a host device at most 1,024 cores.
 *
 * The list after '@' holds the system's numbers of CPUs, as taskset takes them, up to 65535. The
 * list consists of numbers and ranges, separated by commas; a CPU appears once, and an item names
 * at most 1,024 CPUs. A comma before a digit continues the list; a comma before a letter starts the
 * next item. Every CPU counts as a core, also the second hardware thread of a core. Devices take
 * the CPUs in the order of the list, and share CPUs in turn where the list is too short; an item
 * without a count makes a device per CPU. A CPU missing on the machine is FILCH_UNKNOWN_ORDINAL; a
 * CPU denied by the process's control group is FILCH_NO_DEVICE. A named CPU takes precedence over
 * the process's affinity mask (taskset, OMP_PROC_BIND). Two items of equal team size may stand
 * together where both name CPUs and share no CPU.
 *
 * An item without '@' takes the first cores that the process may use. Usable cores are the cores
 * that the control group allows and to which at least a single thread of the process is bound.
 * Actions of other runtimes, in the process or outside, do not change the set of usable cores. The
 * word "any" leaves the devices' threads free to run on every CPU that the process may use. Where
 * worker threads of two runtimes, in one process or in two, are bound to a common CPU,
 * filch_runtime_desc.log of the later runtime receives a warning. FILCH_DRIVE_POLL binds no thread.
 *
 * GPUs are numbered as the driver numbers them, after CUDA_VISIBLE_DEVICES. An unusable GPU is an
 * error where the specification names the GPU by number; otherwise the runtime leaves the GPU out
 * (filch_device_refused_at()). An absent driver is an error where the specification names cuda; the
 * default specification then uses the host's cores.
 *
 * Slices of a GPU run kernels on separate multiprocessors, but share the GPU's memory, caches,
 * bandwidth and faults. Slices live in the primary context; kernels launched in the primary context
 * itself, e.g. by the host, still run on every multiprocessor.
 *
 * The set of devices is fixed when the runtime is made; a device can be withdrawn for a while
 * (filch_device_withdraw()).
 */
#ifndef FILCH_DEVICE_H
#define FILCH_DEVICE_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Implementation behind a device. */
typedef enum filch_backend {
    FILCH_BACKEND_HOST = 1, /**< Cores of the host. */
    FILCH_BACKEND_CUDA = 2, /**< CUDA GPUs, or slices of a GPU. */
    FILCH_BACKEND_SIM = 3   /**< Simulated devices on a virtual clock. */
} filch_backend;

/** Properties of a GPU; bits of filch_device_info::features. */
typedef enum filch_device_feature {
    FILCH_DEVICE_ECC = 1,        /**< Error correction protects the GPU's memory. */
    FILCH_DEVICE_INTEGRATED = 2, /**< The GPU shares the host's memory. */
    FILCH_DEVICE_MIG = 4,        /**< The device is an instance of a partitioned GPU (MIG). */
    FILCH_DEVICE_SLICE = 8,      /**< The device is a subset of a GPU's multiprocessors. */
    FILCH_DEVICE_CLUSTERS = 16   /**< Kernels may have clusters of blocks. */
} filch_device_feature;

/** Description of a device. */
typedef struct filch_device_info {
    size_t size;           /**< sizeof(filch_device_info). */
    char name[64];         /**< Name, e.g. "host:0", "cuda:0/1". Unique in the runtime. */
    char model[64];        /**< Processor or GPU model. */
    filch_backend backend; /**< Backend of the device. */
    uint32_t index;        /**< Position in the runtime, from 0. */
    uint32_t ordinal;      /**< Number within the backend, from 0: the driver's number for a GPU,
                                shared by the GPU's slices. */
    uint32_t place;        /**< Memory (place) in which the device computes; devices of a place
                                share memory. */
    uint32_t team;         /**< Cores of a host device, multiprocessors of a GPU or slice; else
                                1. */
    uint32_t reserved;     /**< 0. */
    double score;          /**< Weight in the static partition; see ::filch_score. */
    uint64_t memory_total; /**< Bytes of the device's place. */
    uint64_t memory_free;  /**< Bytes free now, as the system reports them. */
    uint64_t affinity[16]; /**< Bit set of the CPUs on which the device's worker runs (first 1024
                                CPUs). */
    char uuid[48];         /**< Unique identifier, e.g. "GPU-…" or "MIG-…". Members from uuid on
                                are for GPUs only, else 0; simulated devices with a link also have
                                compute_lanes and budget. */
    char pci[16];          /**< PCI address, e.g. "0000:1b:00.0"; empty where unknown. */
    uint32_t capability;   /**< Compute capability: 90 is 9.0. */
    uint32_t multiprocessors; /**< Multiprocessors of the whole GPU; team counts the device's
                                   own. */
    uint32_t clock_khz;       /**< Peak clock of the multiprocessors. */
    uint32_t memory_khz;      /**< Peak clock of the memory. */
    uint32_t memory_bits;     /**< Width of the memory's bus. */
    uint32_t single_lanes;    /**< Single-precision multiply-adds a multiprocessor and cycle. */
    uint32_t double_lanes;    /**< Double-precision multiply-adds a multiprocessor and cycle. */
    uint32_t features;        /**< Bits of ::filch_device_feature. */
    int32_t numa_node;        /**< The host's memory node near the GPU; -1 where unknown. */
    uint32_t compute_lanes;   /**< Number of streams over which the device's kernels are spread. */
    double bandwidth;         /**< Peak bytes a second of the GPU's memory; 0 where unknown. */
    uint64_t l2_bytes;        /**< Bytes of the second-level cache. */
    uint64_t budget;          /**< Bytes of the place that filch may take; see
                                   filch_runtime_desc.memory_limit. */
    double true_speed;        /**< Simulated devices: units of work a second at the begin of the
                                   clock, whatever the score; else 0. */
    uint64_t block_shared;    /**< Largest shared memory of a thread block, bytes. */
} filch_device_info;

/** Initializer of a ::filch_device_info. */
#define FILCH_DEVICE_INFO_INIT                                                                    \
    {                                                                                             \
        sizeof(filch_device_info), "", "", FILCH_BACKEND_HOST, 0, 0, 0, 0, 0, 0.0, 0, 0, {0}, "", \
            "", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0, 0, 0.0, 0                                   \
    }

/** Record of a device that is present but unusable. */
typedef struct filch_device_refusal {
    size_t size;           /**< sizeof(filch_device_refusal). */
    char name[64];         /**< Name, e.g. "cuda:1". */
    filch_backend backend; /**< Backend that would implement the device. */
    uint32_t ordinal;      /**< Number of the device within the backend; 0 where the whole
                                backend is unusable. */
    filch_error error;     /**< Reason of the refusal. */
} filch_device_refusal;

/** Initializer of a ::filch_device_refusal. */
#define FILCH_DEVICE_REFUSAL_INIT                                                 \
    {                                                                             \
        sizeof(filch_device_refusal), "", FILCH_BACKEND_HOST, 0, FILCH_ERROR_INIT \
    }

/**
 * Returns the number of devices.
 *
 * @param runtime the runtime.
 * @return number of devices; 0 for an invalid handle and in a forked child.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_device_count(filch_runtime *runtime);

/**
 * Describes a device; indices follow the specification's order, for iteration.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param info    receives the description; the caller sets info->size. memory_free is read at the
 *                call, 0 where the system does not tell.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p info, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_at(filch_runtime *runtime, uint32_t index,
                                       filch_device_info *info);

/**
 * Returns the number of devices left out as unusable.
 *
 * @param runtime the runtime.
 * @return number of refusals; 0 for an invalid handle and in a forked child.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API uint32_t filch_device_refused_count(filch_runtime *runtime);

/**
 * Describes a device left out, with the reason; indices serve iteration. An unusable driver counts
 * as a single item.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param refusal receives the record; the caller sets refusal->size.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p refusal, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_refused_at(filch_runtime *runtime, uint32_t index,
                                               filch_device_refusal *refusal);

/**
 * Finds a device by number within a backend; for the slices of a GPU, finds the first slice.
 *
 * @param runtime the runtime.
 * @param backend the backend.
 * @param ordinal the device's number within @p backend, from 0.
 * @param index   receives the device's position in the runtime.
 * @return FILCH_OK; FILCH_UNKNOWN_ORDINAL; FILCH_INVALID_ARGUMENT (null @p index, unknown backend);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_by_ordinal(filch_runtime *runtime, filch_backend backend,
                                               uint32_t ordinal, uint32_t *index);

/**
 * Returns the next device in round-robin order: 0, 1, …, count - 1, 0, …
 *
 * Concurrent callers together see every device equally often.
 *
 * @param runtime the runtime.
 * @param index   receives the device's position in the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p index); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_next(filch_runtime *runtime, uint32_t *index);

/**
 * Finds the device with the most free memory in its place now; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param index   receives the device's position in the runtime.
 * @return as filch_device_next().
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_best_memory(filch_runtime *runtime, uint32_t *index);

/**
 * Finds the device with the highest score; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param index   receives the device's position in the runtime.
 * @return as filch_device_next().
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_device_best_score(filch_runtime *runtime, uint32_t *index);

/**
 * Finds the device with the highest rating by the caller's function; ties go to the lower index.
 *
 * @param runtime the runtime.
 * @param rate    called once a device, in order, on the calling thread.
 * @param user    handed to @p rate.
 * @param index   receives the device's position in the runtime.
 * @return FILCH_OK; FILCH_NO_DEVICE when every rating is NaN; FILCH_INVALID_ARGUMENT (null @p rate
 *         or @p index); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; asks the system. Since 0.1.
 */
FILCH_API filch_status filch_device_choose(filch_runtime *runtime, filch_device_rate_fn rate,
                                           void *user, uint32_t *index);

/** Memory of a place held by filch, in bytes; see filch_device_memory(). */
typedef struct filch_memory_stats {
    size_t size;             /**< sizeof(filch_memory_stats). */
    filch_arena arena;       /**< Allocator of the place's memory. FILCH_ARENA_DEFAULT: the place
                                  has no allocator, as on the host and on simulated devices
                                  without a link, and every later member is 0. */
    uint32_t padding;        /**< 0. */
    uint64_t budget;         /**< Most bytes of the device's memory that filch may hold: the
                                  budget of filch_device_info. The value is less while others,
                                  e.g. a second process, use so much memory that the device ran
                                  out. */
    uint64_t mapped;         /**< Bytes of the device's memory held by filch: in use, kept for
                                  reuse, or in transition. */
    uint64_t mapped_peak;    /**< Maximum of mapped so far. */
    uint64_t requested;      /**< Bytes in use, by the sizes requested. */
    uint64_t requested_peak; /**< Maximum of bytes in use so far, accurate to within the blocks
                                  that workers keep at hand. */
    uint64_t cached;         /**< Bytes in blocks given back and kept for reuse. */
    uint64_t pending;        /**< Part of cached, in blocks that work in flight may still use. */
    uint64_t takes;          /**< Blocks taken so far. */
    uint64_t gives;          /**< Blocks given back so far. */
    uint64_t shortages;      /**< Number of times when the device had no more memory although the
                                  budget was not used up. Unused memory makes room then, as at
                                  the end of the budget. filch asks the device again from time to
                                  time, after filch_device_trim(), and before a request fails for
                                  lack of memory. */
} filch_memory_stats;

/** Initializer of a ::filch_memory_stats. */
#define FILCH_MEMORY_STATS_INIT                                                          \
    {                                                                                    \
        sizeof(filch_memory_stats), FILCH_ARENA_DEFAULT, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * Counts filch's holdings of the memory in which a device computes; slices of a GPU count together.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @param stats   receives the counts; the caller sets stats->size. While work goes on the counts
 *                are recent, but not of a single moment.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p stats, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks. Since 0.1.
 */
FILCH_API filch_status filch_device_memory(filch_runtime *runtime, uint32_t index,
                                           filch_memory_stats *stats);

/**
 * Hands unused memory kept for reuse back to the device, e.g. before the host's program wants much
 * memory. Memory in use stays in place.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1; selects the memory of the device's place, shared by slices.
 * @param keep    bytes of the device's memory that filch may go on holding, if as many are unused.
 * @return FILCH_OK (also where filch had nothing to hand back); FILCH_BAD_INDEX;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: may wait for the device, and holds up work on the device.
 * Since 0.1.
 */
FILCH_API filch_status filch_device_trim(filch_runtime *runtime, uint32_t index, uint64_t keep);

/** Participation of a device; see filch_device_presence(). */
typedef enum filch_presence {
    FILCH_PRESENCE_THERE = 0,     /**< The device runs the work available for it. */
    FILCH_PRESENCE_LEAVING = 1,   /**< The device is withdrawn, but work begun earlier may still
                                       run. */
    FILCH_PRESENCE_WITHDRAWN = 2, /**< The device is withdrawn, and runs nothing. */
    FILCH_PRESENCE_LOST = 3       /**< The device has failed: no answer, now or later. */
} filch_presence;

/**
 * Takes a device offline: the device starts no new work until filch_device_readmit(). Meant for
 * hosts that need a device, or a device's cores, for a different purpose for a while, also while
 * jobs run.
 *
 * Work in flight on the device ends on the device, and so do reductions whose partial results the
 * device is combining. A task waiting for further work on the device ends when the further work
 * ends. Work queued for the device, in open graphs, in sealed graphs and in batches, goes to the
 * remaining devices, whatever the policy. Later jobs give the device no share, and no policy places
 * work on the device. A graph sealed earlier or meanwhile keeps its tasks' homes for the device's
 * return.
 *
 * Work that no present device can run waits, and no call refuses the work. A job that only
 * withdrawn devices can run ends after a capable device is readmitted. filch_job_cancel() ends a
 * waiting job as ever; filch_runtime_destroy() returns FILCH_BUSY while the job waits. On a virtual
 * clock, a wait that only a readmission could end returns FILCH_TIMEOUT.
 *
 * The device's memory stays in use: filch reads contents from the memory, writes contents back and
 * evicts tiles as ever. Broadcasts still deliver to the device, and the memory counts against the
 * device's budget.
 *
 * The device's thread sleeps, and uses CPU time only for work in flight or sent to the device. Time
 * that a job spends without the device counts as starved in filch_job_report().
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @return FILCH_OK; FILCH_WRONG_STATE (the device is withdrawn already); FILCH_DEVICE_LOST;
 *         FILCH_BAD_INDEX; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks. Does not wait for work in flight:
 * filch_device_presence() tells when the work is over. Since 0.1.
 */
FILCH_API filch_status filch_device_withdraw(filch_runtime *runtime, uint32_t index);

/**
 * Brings a withdrawn device back online: the device at once looks for work and steals; jobs that
 * start later give the device a share.
 *
 * @param runtime the runtime.
 * @param index   0 to count - 1.
 * @return FILCH_OK; FILCH_WRONG_STATE (the device is not withdrawn); FILCH_DEVICE_LOST (the device
 *         failed meanwhile); FILCH_BAD_INDEX; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, also from tasks and callbacks. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_device_readmit(filch_runtime *runtime, uint32_t index);

/**
 * Reports whether a device takes part. Once the state is FILCH_PRESENCE_WITHDRAWN, the host sees
 * every effect of work run on the device. From then until readmission filch puts no kernel on the
 * device, though maybe copies. In FILCH_DRIVE_POLL the state advances in calls of
 * filch_runtime_poll() or filch_job_wait(), and on a virtual clock in a wait. A simulated device's
 * description can withdraw the device, too.
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

/** Stands for the host's memory in place of a device's index. Every host device means the host's
 * memory, too. */
#define FILCH_LINK_HOST UINT32_MAX

/** Link between two memories, in a single direction. */
typedef struct filch_link {
    size_t size;      /**< sizeof(filch_link). */
    bool is_same;     /**< Both ends are the same memory, and nothing needs to be copied; the
                           remaining members are 0. */
    bool has_access;  /**< The driver gives the first device direct access to the second device's
                           memory; else copies go through the host's memory. True between a GPU
                           and the host. */
    bool has_atomics; /**< Atomic operations work across the link, true over NVLink and false
                           over PCIe. Between GPUs only. */
    int32_t rank;     /**< The driver's performance rank among the links between GPUs: smaller is
                           faster. 0 for the host. */
    double bandwidth; /**< Bytes a second of a large copy, as measured by
                         filch_device_measure_links(); 0 where not measured. */
} filch_link;

/** Initializer of a ::filch_link. */
#define FILCH_LINK_INIT                                 \
    {                                                   \
        sizeof(filch_link), false, false, false, 0, 0.0 \
    }

/**
 * Describes the link from the memory of a device to the memory of a second device. Simulated
 * devices have a link only where the JSON file describes a link.
 *
 * @param runtime the runtime.
 * @param from    source of copies: index of a device, or FILCH_LINK_HOST.
 * @param to      destination of copies: index of a device, or FILCH_LINK_HOST.
 * @param link    receives the description; the caller sets link->size.
 * @return FILCH_OK; FILCH_BAD_INDEX; FILCH_INVALID_ARGUMENT (null @p link, or too small a size);
 *         FILCH_BACKEND, FILCH_DEVICE_LOST (the driver gave no answer); FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread; asks the driver. Since 0.1.
 */
FILCH_API filch_status filch_device_link(filch_runtime *runtime, uint32_t from, uint32_t to,
                                         filch_link *link);

/**
 * Measures the bandwidth between every two memories of the runtime, in both directions, by
 * successive copies: a warm-up and four of 64 MiB each. A GPU cut into slices counts once.
 *
 * Takes 64 MiB on either of two GPUs, or 64 MiB on a GPU and 64 MiB of page-locked host memory,
 * while a pair is measured. The runtime's jobs and foreign work share the links, and therefore only
 * an idle machine gives good figures. Taking and giving back memory may hold up the GPUs. A pair
 * that cannot be measured keeps its earlier figure, and the measurement goes on with the remaining
 * pairs.
 *
 * @param runtime the runtime.
 * @return FILCH_OK (also with nothing to measure); the status of the first pair that failed:
 *         FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST; FILCH_OUT_OF_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: some hundredths of a second a pair, and until concurrent
 * callers have measured. Since 0.1.
 */
FILCH_API filch_status filch_device_measure_links(filch_runtime *runtime);

#ifdef __cplusplus
}
#endif

#endif
