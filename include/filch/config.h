/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file config.h
 * What a runtime is created with, and the settings it reads from the environment.
 *
 * Every field's zero means "default". A field that is set beats the environment variable of the
 * same meaning, which beats the built-in default.
 */
#ifndef FILCH_CONFIG_H
#define FILCH_CONFIG_H

#include "filch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Severity of a message, most severe first. */
typedef enum filch_log_level {
    FILCH_LOG_DEFAULT = 0, /**< What FILCH_LOG says, else warnings. */
    FILCH_LOG_ERROR = 1,   /**< A call failed in a way that its status cannot tell. */
    FILCH_LOG_WARNING = 2, /**< Something works, but not as asked for. */
    FILCH_LOG_INFO = 3,    /**< What was found and chosen. */
    FILCH_LOG_DEBUG = 4    /**< For the maintainers. */
} filch_log_level;

/**
 * Receives filch's messages: one line without a newline, valid during the call only.
 *
 * May be called from any thread of the runtime or of the host that is inside a filch call, also
 * concurrently; must not call filch.
 *
 * @param level severity; never FILCH_LOG_DEFAULT.
 * @param text  the message, at most 511 bytes.
 * @param user  filch_config.log_user.
 */
typedef void (*filch_log_fn)(filch_log_level level, const char *text, void *user);

/**
 * Where filch's own structures are allocated. The table is copied; what user points to must outlive
 * the runtime.
 *
 * Both functions may be called concurrently from any thread, and with filch's locks held: they must
 * not call filch. Libraries that filch uses to read the topology and simulator files allocate by
 * themselves.
 */
typedef struct filch_allocator {
    /** Returns @p size (> 0) bytes aligned to @p align (a power of two), or null. */
    void *(*alloc)(size_t size, size_t align, void *user);
    /** Frees what alloc returned for the same @p size and @p align; never null. */
    void (*free)(void *pointer, size_t size, size_t align, void *user);
    void *user; /**< Handed to both. */
} filch_allocator;

/** Which built-in allocator to use. */
typedef enum filch_allocator_kind {
    FILCH_ALLOCATOR_DEFAULT = 0,  /**< FILCH_ALLOCATOR, else jemalloc where the build has it. */
    FILCH_ALLOCATOR_JEMALLOC = 1, /**< FILCH_UNSUPPORTED at creation where the build has none. */
    FILCH_ALLOCATOR_SYSTEM = 2    /**< malloc and free of the process. */
} filch_allocator_kind;

/**
 * How work finds a device. The default is for use; the others are to compare it with, or to replace
 * it: under all but static and perfect, what a lost device had goes to others. Chunks and pieces of
 * a fixed size are a 32nd of a device's even part of the batch.
 */
typedef enum filch_policy {
    FILCH_POLICY_DEFAULT = 0, /**< FILCH_POLICY, else steal. */
    FILCH_POLICY_STEAL = 1,   /**< The static partition seeds; idle workers steal. */
    FILCH_POLICY_STATIC = 2,  /**< Nothing is stolen: a device runs what the partition, or a
                                   task's affinity, gave it. A task that neither places runs where
                                   it became ready; what a task waits for may run on its
                                   device. */
    FILCH_POLICY_PERFECT = 3, /**< Static, with true speeds for scores. Simulated devices tell
                                   theirs; of others scores or rate must give what was measured,
                                   in any unit, else FILCH_INVALID_ARGUMENT. Where given, those
                                   count for simulated devices, too. */
    FILCH_POLICY_CENTRAL = 4, /**< One queue, from which any device takes the oldest task that it
                                   can run; batches are taken from one place, in order, in chunks
                                   of a fixed size. */
    FILCH_POLICY_GUIDED = 5,  /**< The same with chunks of what is left over twice the devices. */
    FILCH_POLICY_ROUND_ROBIN = 6, /**< Tasks, and pieces of batches of a fixed size, go to the
                                       devices in turn, and stay there; who cannot run one is
                                       passed over. */
    FILCH_POLICY_EARLIEST = 7,    /**< Each ready task, and each such piece, goes to the device that
                                       would finish it first by its load, the bytes it lacks and its
                                       speed, and stays there. Simulated devices tell their true
                                       speeds, by codelets' cost functions, which are called for
                                       each device that a task could go to; of others it is the
                                       measured speed. */
    FILCH_POLICY_CUSTOM = 8       /**< filch_config.custom_policy. */
} filch_policy;

/** Who runs the workers. */
typedef enum filch_drive {
    FILCH_DRIVE_DEFAULT = 0, /**< FILCH_DRIVE, else threads (a virtual clock for sim: devices). */
    FILCH_DRIVE_THREADS =
        1, /**< One thread a device, bound as ::filch_bind says. Not for simulated devices. */
    FILCH_DRIVE_POLL = 2 /**< No thread: the host's own threads, inside filch_poll and inside
                              waits. Simulated devices keep their virtual clock. */
} filch_drive;

/**
 * What a device's score is reckoned from. Scores weigh the static partition, and predict until
 * speeds have been measured, so only what they are to one another matters. They are in cores of
 * this host: a host device has the size of its team, where nothing else is said. Simulated devices
 * have the score of their file.
 */
typedef enum filch_score {
    FILCH_SCORE_DEFAULT = 0,     /**< FILCH_SCORE, else peak. */
    FILCH_SCORE_PEAK = 1,        /**< Peak single-precision arithmetic. */
    FILCH_SCORE_PEAK_DOUBLE = 2, /**< Peak double-precision arithmetic. */
    FILCH_SCORE_BANDWIDTH = 3,   /**< Memory bandwidth; a host core is taken to move 10 GB/s. */
    FILCH_SCORE_MEMORY = 4,      /**< Free memory of its place, shared by the devices there; GiB. */
    FILCH_SCORE_BLEND = 5,       /**< Geometric mean of peak and bandwidth. */
    FILCH_SCORE_CAPACITY = 6     /**< Multiprocessors + 4 × free GiB, + 150 from compute capability
                                      8.0 on; cores of a host device. */
} filch_score;

/** In which context filch works on a GPU. */
typedef enum filch_cuda_context {
    FILCH_CUDA_CONTEXT_DEFAULT = 0, /**< FILCH_CUDA_CONTEXT, else primary. */
    FILCH_CUDA_CONTEXT_PRIMARY = 1, /**< The process's primary one, whose flags stay as they are. */
    FILCH_CUDA_CONTEXT_PRIVATE = 2  /**< One of filch's own; not for slices. */
} filch_cuda_context;

/** What hands out the memory of a device's place. */
typedef enum filch_arena {
    FILCH_ARENA_DEFAULT = 0,  /**< The first that build and device have of jemalloc,
                                   pool, pages, plain. */
    FILCH_ARENA_JEMALLOC = 1, /**< Chunks of memory, cut by filch; small blocks by jemalloc. */
    FILCH_ARENA_PAGES = 2,    /**< The same without jemalloc. */
    FILCH_ARENA_POOL = 3,     /**< A pool of the driver's, made by filch. */
    FILCH_ARENA_PLAIN = 4     /**< Each block is the driver's, and kept for blocks of its size. */
} filch_arena;

/** How the driver waits for a GPU, in a private context. */
typedef enum filch_cuda_schedule {
    FILCH_CUDA_SCHEDULE_DEFAULT = 0, /**< FILCH_CUDA_SCHEDULE, else auto. */
    FILCH_CUDA_SCHEDULE_AUTO = 1,    /**< As the driver sees fit. */
    FILCH_CUDA_SCHEDULE_SPIN = 2,    /**< Spins. */
    FILCH_CUDA_SCHEDULE_YIELD = 3,   /**< Yields the processor in turn. */
    FILCH_CUDA_SCHEDULE_BLOCKING = 4 /**< Sleeps. */
} filch_cuda_schedule;

/** What the threads of the workers are bound to, with FILCH_DRIVE_THREADS. */
typedef enum filch_bind {
    FILCH_BIND_DEFAULT = 0, /**< FILCH_BIND, else cores. */
    FILCH_BIND_CORES = 1,   /**< A host device's to its cores, a GPU's to the CPUs near it. */
    FILCH_BIND_NONE = 2     /**< To no core: to all CPUs that the device specification names for
                                 the device, else to all that the process may use. */
} filch_bind;

/** For filch_config.memory_limit: the lesser of nine tenths of a GPU's memory and what is free less
 * 512 MiB. */
#define FILCH_MEMORY_FIT UINT64_MAX
/** For filch_config.memory_limit: half of a GPU's memory, at most what is free. */
#define FILCH_MEMORY_HALF (UINT64_MAX - 1)

struct filch_device_info; /* device.h */
struct filch_policy_desc; /* policy.h */

/**
 * Rates a device, for ::filch_config or filch_device_choose().
 *
 * @param info the device; valid during the call only.
 * @param user what was given with the function.
 * @return the rating: higher is better, NaN means "not this one".
 */
typedef double (*filch_device_rate_fn)(const struct filch_device_info *info, void *user);

/** How a runtime is made; see ::FILCH_CONFIG_INIT. */
typedef struct filch_config {
    size_t size;          /**< sizeof(filch_config). */
    const char *devices;  /**< Device specification (device.h); null: FILCH_DEVICES, else every
                               usable GPU, else the host's cores. Copied. */
    const double *scores; /**< One score a device, in specification order, in place of filch's own;
                               copied. Null: by rate or score. Negative, NaN and values over
                               1e300 count as 0; if all do, all devices count alike. */
    size_t score_count;   /**< Elements of scores; must equal the device count when not 0. */
    filch_policy policy;  /**< Placement policy. */
    filch_drive drive;    /**< Who runs the workers. */
    filch_log_fn log;     /**< Receives messages; null: none (stderr where FILCH_LOG is set). */
    void *log_user;       /**< Handed to log. */
    filch_log_level log_level;           /**< Less severe messages are dropped. */
    filch_allocator_kind allocator_kind; /**< Built-in allocator, when allocator is null. */
    const filch_allocator *allocator;    /**< The caller's allocator, or null; copied. */
    uint32_t trace;            /**< 1: record a trace from the start (trace.h); 0: FILCH_TRACE. */
    uint32_t reserved;         /**< Must be 0. */
    filch_score score;         /**< What filch's own scores are reckoned from. */
    filch_device_rate_fn rate; /**< Gives the scores where scores is null: called once a device, in
                                    order, inside filch_runtime_create(), with its score by peak.
                                    Null: score says. Must not call filch. */
    void *rate_user;           /**< Handed to rate. */
    filch_cuda_context cuda_context;   /**< In which context filch works on each GPU. */
    filch_cuda_schedule cuda_schedule; /**< Of private contexts; primary ones are the host's. */
    uint64_t memory_limit;    /**< Bytes that filch may take of each GPU's memory, all its devices
                                   together; at most what is free at the start.
                                   ::FILCH_MEMORY_FIT, ::FILCH_MEMORY_HALF; 0: FILCH_MEMORY_LIMIT,
                                   else fit. Above all of a GPU's memory: FILCH_TOO_LARGE for a GPU
                                   that devices names by its number; others are left out. */
    uint32_t allow_multicast; /**< 1: multicast objects may be made (multicast.h); 0:
                                   FILCH_MULTICAST says, else they may not. */
    const struct filch_policy_desc *custom_policy; /**< A policy of the caller's (policy.h); copied.
                                   policy must then be FILCH_POLICY_CUSTOM or its default. */
    const char *speeds; /**< File that keeps measured speeds for later runs (speed.h), a
                             relative path from the working directory; at most 255 bytes;
                             "off": none. Null: FILCH_SPEEDS, else none. Copied. */
    filch_bind bind;    /**< What the threads of the workers are bound to. */
} filch_config;

/** Initializer of a ::filch_config: all defaults. */
#define FILCH_CONFIG_INIT                                                                          \
    {                                                                                              \
        sizeof(filch_config), NULL, NULL, 0, FILCH_POLICY_DEFAULT, FILCH_DRIVE_DEFAULT, NULL,      \
            NULL, FILCH_LOG_DEFAULT, FILCH_ALLOCATOR_DEFAULT, NULL, 0, 0, FILCH_SCORE_DEFAULT,     \
            NULL, NULL, FILCH_CUDA_CONTEXT_DEFAULT, FILCH_CUDA_SCHEDULE_DEFAULT, 0, 0, NULL, NULL, \
            FILCH_BIND_DEFAULT                                                                     \
    }

/** One row of the settings table; all texts are constant. */
typedef struct filch_setting {
    size_t size;               /**< sizeof(filch_setting). */
    const char *name;          /**< Environment variable, e.g. "FILCH_DEVICES". */
    const char *type;          /**< "text", "integer", "number", "choice: a b c", or
                                    "bytes, or: a b": a count that may end in K, M, G or T. */
    const char *default_value; /**< Text of the default. */
    const char *help;          /**< One sentence. */
} filch_setting;

/**
 * One row of the settings table: what filch_runtime_create() reads from the environment.
 *
 * @param index   row, from 0.
 * @param setting receives the row; its size must be set. The texts are constant and never freed.
 * @return FILCH_OK; FILCH_BAD_INDEX past the last row; FILCH_INVALID_ARGUMENT (null @p setting, or
 *         its size is too small).
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_setting_at(size_t index, filch_setting *setting);

#ifdef __cplusplus
}
#endif

#endif
