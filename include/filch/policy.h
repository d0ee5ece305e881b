/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file policy.h
 * Scheduling policies written by the host: the device of a ready task, the amount of a batch that a
 * device takes at once, and the victim of an idle device.
 *
 * A policy is a record of functions, given to a runtime by filch_runtime_desc.custom_policy. A
 * function may be null: filch then decides by default (::FILCH_POLICY_STEAL), as after the answer
 * ::FILCH_POLICY_AUTO. Whatever the answers, every task and every item runs exactly once, in the
 * order that the accesses require, and on a capable device. An invalid answer counts as
 * ::FILCH_POLICY_AUTO and is counted (filch_runtime_policy()): a nonexistent device, a device that
 * failed or cannot run the task, or an amount of 0.
 *
 * Threading. The thread that makes a task ready, submits a batch, or looks for work calls the
 * functions: any worker, and any host thread inside a filch call; also concurrently, and with
 * filch's locks held. The functions must not block, since a device waits meanwhile. The only filch
 * functions allowed inside are the functions below that take a view. Under a virtual clock the
 * functions take no time.
 *
 * Decisions outside a policy. A device's deque orders the device's own tasks: by level, the newest
 * first. Tasks that filch adds to a graph stay where the tasks became ready. A task waiting for a
 * job runs other tasks meanwhile, and takes work of the awaited job from any device. Remaining
 * devices take the work of a failed or withdrawn device by filch's own rules. Work without room in
 * a device's memory goes to a device with room. A place function for ready tasks turns off two
 * optimisations: queueing tasks on a GPU behind predecessors that still run, and launching graphs
 * as a whole.
 */
#ifndef FILCH_POLICY_H
#define FILCH_POLICY_H

#include "filch/config.h"
#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Answer: filch decides by default. */
#define FILCH_POLICY_AUTO UINT32_MAX
/** Answer of a place function, for a task: the shared ready queue, in order of arrival. Devices
 * without ready work of their own take tasks from the shared ready queue. */
#define FILCH_POLICY_ANYONE (UINT32_MAX - 1)
/** Answer of a steal function: no theft now. In records: no device. */
#define FILCH_POLICY_NOBODY (UINT32_MAX - 2)

/** Subject of a call to a policy function, read with the functions below; valid during the call
 * only. */
typedef struct filch_policy_view filch_policy_view;

/** Kind of work that a view is about. */
typedef enum filch_policy_kind {
    FILCH_POLICY_THEFT = 0, /**< No work: a device is idle. */
    FILCH_POLICY_TASK = 1,  /**< A ready task. */
    FILCH_POLICY_CHUNK = 2  /**< Grains of a batch. */
} filch_policy_kind;

/** Subject of a view; see filch_policy_item_get(). */
typedef struct filch_policy_item {
    size_t size;            /**< sizeof(filch_policy_item). */
    filch_policy_kind kind; /**< Kind of work; selects the meaningful members. */
    uint32_t device;  /**< Device whose worker asks: the idle device, the device taking a chunk,
                           or the device that made the task ready; ::FILCH_POLICY_NOBODY: no
                           device, a thread of the host. */
    uint32_t owner;   /**< Tasks: the device of the task's affinity, or the owner of the task's
                           output under the static partition; ::FILCH_POLICY_NOBODY: no device. */
    uint32_t level;   /**< Tasks: priority, 0 to 7; higher comes first. */
    const char *name; /**< Tasks: label, else the codelet's name; chunks: the codelet's. */
    double work;      /**< Declared units of work. */
    uint64_t first;   /**< Tasks: number in the graph, from 0; chunks: first item. */
    uint64_t last;    /**< One past the last: the number in the graph + 1, or the last item + 1. */
    uint32_t grains;  /**< Chunks: total number of grains in the batch. */
    uint32_t rest;    /**< Chunks: number of grains from first on that are left to be taken. */
} filch_policy_item;

/** Initializer of a ::filch_policy_item. */
#define FILCH_POLICY_ITEM_INIT                                                        \
    {                                                                                 \
        sizeof(filch_policy_item), FILCH_POLICY_THEFT, 0, 0, 0, NULL, 0.0, 0, 0, 0, 0 \
    }

/** Distribution of batches to the devices. */
typedef enum filch_policy_batches {
    FILCH_POLICY_BATCHES_SHARED_OUT =
        0,                           /**< The static partition gives every device a share; a device
                                   takes chunks from its share, and idle devices steal. */
    FILCH_POLICY_BATCHES_PLACED = 1, /**< filch cuts the batch into pieces when the batch starts;
                                   the place function sends every piece to a device. */
    FILCH_POLICY_BATCHES_COMMON = 2 /**< Every device takes chunks from a common place, in order. */
} filch_policy_batches;

/**
 * Chooses the device of a ready task, or with ::FILCH_POLICY_BATCHES_PLACED of a piece of a batch.
 *
 * Called once for every task and run, when the task's predecessors are over. For the roots of a
 * closed graph, called when the job starts, by level, and within a level in the order of the
 * graph's roots.
 *
 * @param view the work to place, and the state of the devices.
 * @param user filch_policy_desc.user.
 * @return a device; ::FILCH_POLICY_ANYONE, for tasks; ::FILCH_POLICY_AUTO: for a task, the device
 *         that made the task ready keeps the task, unless a second device has reason to take the
 *         task; for a piece, the owner under the static partition.
 */
typedef uint32_t (*filch_place_fn)(const filch_policy_view *view, void *user);

/**
 * Chooses how many grains of a batch to take at once; for pieces, the grains per piece, asked once.
 *
 * @param view the grains that are left; for pieces, every grain.
 * @param user filch_policy_desc.user.
 * @return grains, or ::FILCH_POLICY_AUTO. More than the rest means the whole rest; filch may take
 *         fewer grains where items are left out or memory is short.
 */
typedef uint32_t (*filch_chunk_fn)(const filch_policy_view *view, void *user);

/**
 * Chooses the victim of an idle device, and the amount to steal. Tasks in flight on a device cannot
 * be stolen.
 *
 * @param view   no item; item.device is the thief.
 * @param amount receives how many tasks, grains or pieces to take at most; 1 before the call.
 * @param user   filch_policy_desc.user.
 * @return the victim; ::FILCH_POLICY_NOBODY; ::FILCH_POLICY_AUTO. A victim without work equals
 *         ::FILCH_POLICY_NOBODY.
 */
typedef uint32_t (*filch_steal_fn)(const filch_policy_view *view, uint32_t *amount, void *user);

/** Properties of a policy; combine with |. */
typedef enum filch_policy_flags {
    /**
     * Predictions for simulated devices are true: filch_policy_seconds() and filch_policy_load()
     * count with the device's true speed and the true work of the item. filch calls the codelets'
     * cost functions for every device that can run an item. For comparison with a policy that knows
     * the machine. Predictions for real devices rest on measured speeds as ever.
     */
    FILCH_POLICY_TRUE_TIMES = 1
} filch_policy_flags;

/** Scheduling policy; see ::FILCH_POLICY_DESC_INIT. */
typedef struct filch_policy_desc {
    size_t size;                  /**< sizeof(filch_policy_desc). */
    const char *name;             /**< Name in filch_runtime_policy(); copied, cut at 31 bytes;
                                       null: "custom". */
    void *user;                   /**< Handed to the functions; must outlive the runtime. */
    filch_place_fn place;         /**< Device of a ready task; null: the default rule. */
    filch_chunk_fn chunk;         /**< Amount of a batch taken at once; null: the default rule. */
    filch_steal_fn steal;         /**< Victim of an idle device; null: the default rule. */
    filch_policy_batches batches; /**< Distribution of batches to the devices. */
    uint32_t flags;               /**< Combination of filch_policy_flags. */
} filch_policy_desc;

/** Initializer of a ::filch_policy_desc: default rules throughout. */
#define FILCH_POLICY_DESC_INIT                                                                    \
    {                                                                                             \
        sizeof(filch_policy_desc), NULL, NULL, NULL, NULL, NULL, FILCH_POLICY_BATCHES_SHARED_OUT, \
            0                                                                                     \
    }

/**
 * Reads the subject of a view.
 *
 * @param view the view.
 * @param item receives the record; the caller sets item->size.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, or too small a size).
 *
 * Thread safety: only inside the function that received the view. Wait-free. Since 0.1.
 */
FILCH_API filch_status filch_policy_item_get(const filch_policy_view *view,
                                             filch_policy_item *item);

/**
 * Returns the number of devices; devices are numbered from 0.
 *
 * @param view the view.
 * @return number of devices; 0 for a null view.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint32_t filch_policy_devices(const filch_policy_view *view);

/**
 * Tells whether a device is present, neither failed nor withdrawn, and can run the item.
 *
 * @param view   the view.
 * @param device the device.
 * @return true or false; with no item, true if the device is present; false for a null view and for
 *         a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API bool filch_policy_can_run(const filch_policy_view *view, uint32_t device);

/**
 * Counts the work queued at a device that a thief could take: tasks, and with no item also grains,
 * or pieces, of batches. The count is approximate: devices go on meanwhile, and work sent to the
 * device just now may be missing.
 *
 * @param view   the view.
 * @param device the device.
 * @return number of tasks, grains and pieces; 0 for a null view and for a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint64_t filch_policy_queued(const filch_policy_view *view, uint32_t device);

/**
 * Predicts how long a device stays busy with the work that the policy sent to the device: the sum
 * of the predictions made at placement, less the time passed since; 0 once the device was idle.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 without a place function, for a null view and for a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_load(const filch_policy_view *view, uint32_t device);

/**
 * Predicts the item's run time on a device, without copies. Based on the measured speed, or on a
 * second device's measured speed and the scores. Without a measured speed, based on the score: a
 * score of 1 counts as a million units of work a second.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 for a null view, with no item and for a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_seconds(const filch_policy_view *view, uint32_t device);

/**
 * Counts the bytes that the item reads and that are missing in a device's memory. The count is
 * approximate: devices move tiles meanwhile.
 *
 * @param view   the view.
 * @param device the device.
 * @return bytes; 0 for a null view, with no item and for a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint64_t filch_policy_missing(const filch_policy_view *view, uint32_t device);

/**
 * Predicts the transfer time of the missing bytes, over the link to the host as measured by
 * filch_device_measure_links(); without a measurement, at 16 GB/s.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 for a null view, with no item and for a nonexistent device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_transfer(const filch_policy_view *view, uint32_t device);

/** Counts of questions to a runtime's policy, and of invalid answers. */
typedef struct filch_policy_counts {
    size_t size;             /**< sizeof(filch_policy_counts). */
    char name[32];           /**< Name: "steal", "static" and so on, or the caller's. */
    filch_policy policy;     /**< Policy in effect; never FILCH_POLICY_DEFAULT. */
    uint32_t reserved;       /**< 0. */
    uint64_t places;         /**< Tasks and pieces submitted to the place function. */
    uint64_t places_refused; /**< Answers of the place function that filch did not follow. */
    uint64_t chunks;         /**< Calls of the chunk function. */
    uint64_t chunks_refused; /**< Answers of the chunk function that filch did not follow. */
    uint64_t steals;         /**< Calls of the steal function. */
    uint64_t steals_refused; /**< Answers of the steal function that filch did not follow. */
} filch_policy_counts;

/** Initializer of a ::filch_policy_counts. */
#define FILCH_POLICY_COUNTS_INIT                                                   \
    {                                                                              \
        sizeof(filch_policy_counts), "", FILCH_POLICY_DEFAULT, 0, 0, 0, 0, 0, 0, 0 \
    }

/**
 * Names a runtime's policy, and counts the questions to the policy since the runtime was made.
 * Built-in policies count, too.
 *
 * @param runtime the runtime.
 * @param counts  receives the record; the caller sets counts->size.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p counts, or too small a size);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_runtime_policy(filch_runtime *runtime, filch_policy_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
