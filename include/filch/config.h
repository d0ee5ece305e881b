/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file config.h
 * Configuration of a new runtime, and the settings that a runtime reads from the environment.
 *
 * Zero means "default" for every field. A field set by the caller takes precedence over the
 * environment variable of equal meaning; the variable takes precedence over the built-in default.
 */
#ifndef FILCH_CONFIG_H
#define FILCH_CONFIG_H

#include "filch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Severity of a message, most severe first. */
typedef enum filch_log_level {
    FILCH_LOG_DEFAULT = 0, /**< Level named by FILCH_LOG, else warnings. */
    FILCH_LOG_ERROR = 1,   /**< Failure of a call beyond the details in the call's status. */
    FILCH_LOG_WARNING = 2, /**< Something works, but not as requested. */
    FILCH_LOG_INFO = 3,    /**< Discoveries and choices of filch. */
    FILCH_LOG_DEBUG = 4    /**< Messages for the maintainers. */
} filch_log_level;

/**
 * Receives filch's messages: a single line without a newline, valid during the call only.
 *
 * Called from every thread of the runtime, and from host threads inside a filch call, also
 * concurrently. The function must not call filch.
 *
 * @param level severity; never FILCH_LOG_DEFAULT.
 * @param text  the message, at most 511 bytes.
 * @param user  filch_runtime_desc.log_user.
 */
typedef void (*filch_log_fn)(filch_log_level level, const char *text, void *user);

/**
 * Allocator of filch's own structures. filch copies the table; the object behind user must outlive
 * the runtime.
 *
 * filch may call both functions concurrently from every thread, and with filch's locks held; the
 * functions must not call filch. Libraries that filch uses to read the topology and simulator files
 * allocate on their own.
 */
typedef struct filch_allocator {
    /** Returns @p size (> 0) bytes aligned to @p align (a power of two), or null. */
    void *(*alloc)(size_t size, size_t align, void *user);
    /** Frees a block returned by alloc for equal @p size and @p align; never null. */
    void (*free)(void *pointer, size_t size, size_t align, void *user);
    void *user; /**< Handed to alloc and free. */
} filch_allocator;

/** Built-in allocators. */
typedef enum filch_allocator_kind {
    FILCH_ALLOCATOR_DEFAULT = 0,  /**< Allocator named by FILCH_ALLOCATOR, else jemalloc where
                                       the build has jemalloc. */
    FILCH_ALLOCATOR_JEMALLOC = 1, /**< jemalloc; FILCH_UNSUPPORTED at creation where the build
                                       has no jemalloc. */
    FILCH_ALLOCATOR_SYSTEM = 2    /**< malloc and free of the process. */
} filch_allocator_kind;

/**
 * Placement policy: how work finds a device. The default is meant for use; a custom policy replaces
 * the default's rules (policy.h).
 */
typedef enum filch_policy {
    FILCH_POLICY_DEFAULT = 0, /**< Policy named by FILCH_POLICY, else steal. */
    FILCH_POLICY_STEAL = 1,   /**< The static partition seeds the devices; idle workers steal. */
    FILCH_POLICY_STATIC = 2,  /**< No theft: a device runs the work given by the partition or by
                                   a task's affinity. A task placed by neither runs where the
                                   task became ready. Work awaited by a running task may run on
                                   the task's device. Work of a failed device fails. */
    FILCH_POLICY_CUSTOM = 3   /**< Policy of the caller's: filch_runtime_desc.custom_policy. */
} filch_policy;

/** Threads that run the workers. */
typedef enum filch_drive {
    FILCH_DRIVE_DEFAULT = 0, /**< Drive named by FILCH_DRIVE, else threads (a virtual clock for
                                  sim: devices). */
    FILCH_DRIVE_THREADS =
        1, /**< A thread per device, bound as ::filch_bind says. Not for simulated devices. */
    FILCH_DRIVE_POLL = 2 /**< No thread: the host's own threads run the workers, inside
                              filch_runtime_poll and inside waits. Simulated devices keep their
                            virtual clock. */
} filch_drive;

/**
 * Basis of a device's score. Scores weigh the static partition, and predict until speeds have been
 * measured; only the ratios of scores matter. The unit is a core of the present host: a host device
 * scores the size of its team, unless a constant below says otherwise. Simulated devices have the
 * score in their file.
 */
typedef enum filch_score {
    FILCH_SCORE_DEFAULT = 0,     /**< Score named by FILCH_SCORE, else peak. */
    FILCH_SCORE_PEAK = 1,        /**< Peak single-precision arithmetic. */
    FILCH_SCORE_PEAK_DOUBLE = 2, /**< Peak double-precision arithmetic. */
    FILCH_SCORE_BANDWIDTH = 3,   /**< Memory bandwidth; a host core counts as 10 GB/s. */
    FILCH_SCORE_MEMORY = 4,      /**< Free memory of the device's place, shared by the place's
                                      devices; GiB. */
    FILCH_SCORE_BLEND = 5,       /**< Geometric mean of peak and bandwidth. */
    FILCH_SCORE_CAPACITY = 6     /**< Multiprocessors + 4 × free GiB, + 150 from compute capability
                                      8.0 on; cores of a host device. */
} filch_score;

/** CUDA context in which filch works on a GPU. */
typedef enum filch_cuda_context {
    FILCH_CUDA_CONTEXT_DEFAULT = 0, /**< Context named by FILCH_CUDA_CONTEXT, else primary. */
    FILCH_CUDA_CONTEXT_PRIMARY = 1, /**< The process's primary context; filch leaves the
                                         context's flags unchanged. */
    FILCH_CUDA_CONTEXT_PRIVATE = 2  /**< A context of filch's own; not for slices. */
} filch_cuda_context;

/** Allocator of the memory of a device's place. */
typedef enum filch_arena {
    FILCH_ARENA_DEFAULT = 0,  /**< The first of jemalloc, pool, pages, plain that build and
                                   device have. */
    FILCH_ARENA_JEMALLOC = 1, /**< Chunks of memory, cut by filch; jemalloc serves small blocks. */
    FILCH_ARENA_PAGES = 2,    /**< Chunks of memory, cut by filch, without jemalloc. */
    FILCH_ARENA_POOL = 3,     /**< A driver pool, made by filch. */
    FILCH_ARENA_PLAIN = 4     /**< Every block comes from the driver, and is kept for blocks of
                                   equal size. */
} filch_arena;

/** How the driver waits for a GPU, in a private context. */
typedef enum filch_cuda_schedule {
    FILCH_CUDA_SCHEDULE_DEFAULT = 0, /**< Schedule named by FILCH_CUDA_SCHEDULE, else auto. */
    FILCH_CUDA_SCHEDULE_AUTO = 1,    /**< The driver chooses. */
    FILCH_CUDA_SCHEDULE_SPIN = 2,    /**< Spins. */
    FILCH_CUDA_SCHEDULE_YIELD = 3,   /**< Yields the processor in turn. */
    FILCH_CUDA_SCHEDULE_BLOCKING = 4 /**< Sleeps. */
} filch_cuda_schedule;

/** Binding of the workers' threads, with FILCH_DRIVE_THREADS. */
typedef enum filch_bind {
    FILCH_BIND_DEFAULT = 0, /**< Binding named by FILCH_BIND, else cores. */
    FILCH_BIND_CORES = 1,   /**< A host device's thread to the device's cores, a GPU's thread to
                                 the CPUs near the GPU. */
    FILCH_BIND_NONE = 2     /**< No core: a thread may run on every CPU that the device
                                 specification names for the device, else on every CPU that the
                                 process may use. */
} filch_bind;

/** Value of filch_runtime_desc.memory_limit: the lesser of nine tenths of a GPU's memory and the
 * free memory less 512 MiB. */
#define FILCH_MEMORY_FIT UINT64_MAX
/** Value of filch_runtime_desc.memory_limit: half of a GPU's memory, at most the free memory. */
#define FILCH_MEMORY_HALF (UINT64_MAX - 1)

struct filch_device_info; /* device.h */
struct filch_policy_desc; /* policy.h */

/**
 * Rates a device, for ::filch_runtime_desc or filch_device_choose().
 *
 * @param info the device; valid during the call only.
 * @param user the pointer given with the function.
 * @return the rating: higher is better, NaN means "not eligible".
 */
typedef double (*filch_device_rate_fn)(const struct filch_device_info *info, void *user);

/** Configuration of a new runtime; see ::FILCH_RUNTIME_DESC_INIT. */
typedef struct filch_runtime_desc {
    size_t size;               /**< sizeof(filch_runtime_desc). */
    const char *devices;       /**< Device specification (device.h); null: FILCH_DEVICES, else every
                                    usable GPU, else the host's cores. Copied. */
    const double *scores;      /**< One score a device, in specification order, in place of filch's
                                    own scores; copied. Null: rate or score decides. Values that are
                                    negative, NaN or over 1e300 count as 0; with every value 0, all
                                    devices count alike. */
    size_t score_count;        /**< Elements of scores; must equal the device count unless 0. */
    filch_policy policy;       /**< Placement policy. */
    filch_drive drive;         /**< Threads that run the workers. */
    filch_log_fn log;          /**< Receives messages; null: no receiver (stderr where FILCH_LOG is
                                    set). */
    void *log_user;            /**< Handed to log. */
    filch_log_level log_level; /**< Threshold: less severe messages are dropped. */
    filch_allocator_kind allocator_kind; /**< Built-in allocator, when allocator is null. */
    const filch_allocator *allocator;    /**< The caller's allocator, or null; copied. */
    bool trace;                /**< Record a trace from the start (trace.h); false: FILCH_TRACE
                                    decides. */
    uint32_t reserved;         /**< Must be 0. */
    filch_score score;         /**< Basis of filch's own scores. */
    filch_device_rate_fn rate; /**< Gives the scores where scores is null: called once a device,
                                    in order, inside filch_runtime_create(), with the device's
                                    score by peak in the info. Null: score decides. Must not call
                                    filch. */
    void *rate_user;           /**< Handed to rate. */
    filch_cuda_context cuda_context;   /**< CUDA context in which filch works on a GPU. */
    filch_cuda_schedule cuda_schedule; /**< How private contexts wait for a GPU; primary contexts
                                            belong to the host. */
    uint64_t memory_limit; /**< Bytes that filch may take of a GPU's memory, for the GPU's
                                devices together; at most the free memory at the start.
                                ::FILCH_MEMORY_FIT, ::FILCH_MEMORY_HALF; 0:
                                FILCH_MEMORY_LIMIT, else fit. A limit above a GPU's whole
                                memory: FILCH_TOO_LARGE for a GPU that devices names by
                                number; a GPU not named is left out. */
    bool allow_multicast;  /**< Multicast objects may be made (multicast.h); false:
                                FILCH_MULTICAST decides, else multicast is off. */
    const struct filch_policy_desc *custom_policy; /**< Scheduling policy of the caller's
                                                        (policy.h); copied. policy must then be
                                                        FILCH_POLICY_CUSTOM or the default. */
    const char *speeds; /**< File that keeps measured speeds for later runs (speed.h); a relative
                             path starts at the working directory; at most 255 bytes; "off": no
                             file. Null: FILCH_SPEEDS, else no file. Copied. */
    filch_bind bind;    /**< Binding of the workers' threads. */
} filch_runtime_desc;

/** Initializer of a ::filch_runtime_desc: defaults throughout. */
#define FILCH_RUNTIME_DESC_INIT                                                               \
    {                                                                                         \
        sizeof(filch_runtime_desc), NULL, NULL, 0, FILCH_POLICY_DEFAULT, FILCH_DRIVE_DEFAULT, \
            NULL, NULL, FILCH_LOG_DEFAULT, FILCH_ALLOCATOR_DEFAULT, NULL, false, 0,           \
            FILCH_SCORE_DEFAULT, NULL, NULL, FILCH_CUDA_CONTEXT_DEFAULT,                      \
            FILCH_CUDA_SCHEDULE_DEFAULT, 0, false, NULL, NULL, FILCH_BIND_DEFAULT             \
    }

/** Row of the settings table; every text is constant. */
typedef struct filch_setting {
    size_t size;               /**< sizeof(filch_setting). */
    const char *name;          /**< Environment variable, e.g. "FILCH_DEVICES". */
    const char *type;          /**< "text", "integer", "number", "choice: a b c", or "bytes, or:
                                    a b": a count with an optional suffix K, M, G or T. */
    const char *default_value; /**< Text of the default. */
    const char *help;          /**< Description, a single sentence. */
} filch_setting;

/** Initializer of a ::filch_setting. */
#define FILCH_SETTING_INIT                            \
    {                                                 \
        sizeof(filch_setting), NULL, NULL, NULL, NULL \
    }

/**
 * Reads a row of the settings table: a setting that filch_runtime_create() takes from the
 * environment.
 *
 * @param index   row, from 0.
 * @param setting receives the row; the caller sets setting->size. The texts are constant and never
 *                freed.
 * @return FILCH_OK; FILCH_BAD_INDEX past the last row; FILCH_INVALID_ARGUMENT (null @p setting, or
 *         too small a size).
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_setting_at(size_t index, filch_setting *setting);

#ifdef __cplusplus
}
#endif

#endif
