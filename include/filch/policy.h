/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file policy.h
 * Scheduling policies of the host's own: where a ready task goes, how much of a batch a device
 * takes at once, and whom an idle device robs.
 *
 * A policy is a record of functions, given to a runtime by filch_config.custom_policy. Each may be
 * null: then filch decides as it does by default (::FILCH_POLICY_STEAL), as it does where a
 * function answers ::FILCH_POLICY_AUTO. Whatever they answer, each task and each item runs exactly
 * once, in the order that its accesses ask for, and on a device that can run it: an answer that
 * makes no sense (no such device, one that cannot run the task or was lost, an amount of 0) is as
 * though it were ::FILCH_POLICY_AUTO, and is counted (filch_policy_stats()).
 *
 * Threading. The functions are called by whoever makes a task ready, submits a batch, or looks for
 * work: any worker, and any thread of the host that is inside a filch call; also concurrently, and
 * with filch's locks held. They must not block, since a device waits meanwhile, and must call
 * nothing of filch but the functions below that take a view. Under a virtual clock they take no
 * time.
 *
 * What the functions do not decide. The order of a device's own tasks is its deque's: by level, the
 * newest first. What filch adds to a graph by itself stays where it became ready. A task that waits
 * for a job runs other tasks meanwhile, and takes what its job needs from wherever it is. What a
 * lost device had, or a withdrawn one has, is taken by the others, by filch's own rules, and what
 * finds no room in a device's memory goes where there is some. With a function for ready tasks,
 * tasks are not put on a GPU behind others that are still running there, nor graphs in one launch.
 */
#ifndef FILCH_POLICY_H
#define FILCH_POLICY_H

#include "filch/config.h"
#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Answer: as filch decides by default. */
#define FILCH_POLICY_AUTO UINT32_MAX
/** Answer of a place function, for a task: the queue that all devices take from when they have
 * nothing else that is ready, in the order in which tasks came. */
#define FILCH_POLICY_ANYONE (UINT32_MAX - 1)
/** Answer of a steal function: nothing is taken now. In records: no device. */
#define FILCH_POLICY_NOBODY (UINT32_MAX - 2)

/** What a function is asked about, as the functions below tell; valid during the call only. */
typedef struct filch_policy_view filch_policy_view;

/** What kind of work a view is about. */
typedef enum filch_policy_kind {
    FILCH_POLICY_THEFT = 0, /**< None: a device is idle. */
    FILCH_POLICY_TASK = 1,  /**< A task that is ready. */
    FILCH_POLICY_CHUNK = 2  /**< Grains of a batch. */
} filch_policy_kind;

/** What a view is about; see filch_policy_item_get(). */
typedef struct filch_policy_item {
    size_t size;            /**< sizeof(filch_policy_item). */
    filch_policy_kind kind; /**< Which of the following means something. */
    uint32_t device;  /**< Whose worker asks: the idle one's, the one that takes a chunk or made
                           the task ready; ::FILCH_POLICY_NOBODY: none, a thread of the host. */
    uint32_t owner;   /**< Tasks: the device of its affinity, or that owns what it writes under
                           the static partition; ::FILCH_POLICY_NOBODY: none. */
    uint32_t level;   /**< Tasks: priority, 0 to 7; higher comes first. */
    const char *name; /**< Tasks: label, else the codelet's name; chunks: the codelet's. */
    double work;      /**< Declared units of work. */
    uint64_t first;   /**< Tasks: number in the graph, from 0; chunks: first item. */
    uint64_t last;    /**< One past the last. */
    uint32_t grains;  /**< Chunks: how many the batch has in all … */
    uint32_t rest;    /**< … and how many from first on are left to be taken. */
} filch_policy_item;

/** How batches reach the devices. */
typedef enum filch_policy_batches {
    FILCH_BATCHES_SHARED_OUT = 0, /**< The static partition gives each device a share, from which it
                                       takes chunks; idle devices steal. */
    FILCH_BATCHES_PLACED = 1, /**< Cut into pieces when the batch starts, each of which the place
                                   function sends to a device. */
    FILCH_BATCHES_COMMON = 2  /**< All devices take chunks from one place, in order. */
} filch_policy_batches;

/**
 * Says where a ready task goes, or with ::FILCH_BATCHES_PLACED a piece of a batch.
 *
 * Asked once for each task and run, when its predecessors are over; for the roots of a closed graph
 * when its job starts, by level, within a level in the order of its roots.
 *
 * @param view what is to be placed, and what is known of the devices.
 * @param user filch_policy_desc.user.
 * @return a device; ::FILCH_POLICY_ANYONE, for tasks; ::FILCH_POLICY_AUTO: the device that made the
 *         task ready keeps it, if no other has reason to have it; of a piece, its owner under the
 *         static partition.
 */
typedef uint32_t (*filch_place_fn)(const filch_policy_view *view, void *user);

/**
 * Says how many grains of a batch to take at once; of pieces, how many each has, asked once.
 *
 * @param view the grains that are left; of pieces, all.
 * @param user filch_policy_desc.user.
 * @return grains; more than there are means all, and fewer may be taken where items are left out or
 *         memory is short; or ::FILCH_POLICY_AUTO.
 */
typedef uint32_t (*filch_chunk_fn)(const filch_policy_view *view, void *user);

/**
 * Says whom an idle device robs, and of how much. What a device has told nobody yet (the tasks in
 * flight on it) cannot be had.
 *
 * @param view   no item, but item.device is the thief.
 * @param amount receives how many tasks, grains or pieces to take at most; 1 before the call.
 * @param user   filch_policy_desc.user.
 * @return the victim; ::FILCH_POLICY_NOBODY; ::FILCH_POLICY_AUTO. A victim that has nothing is as
 *         good as nobody.
 */
typedef uint32_t (*filch_steal_fn)(const filch_policy_view *view, uint32_t *amount, void *user);

/** A policy; see ::FILCH_POLICY_DESC_INIT. */
typedef struct filch_policy_desc {
    size_t size;                  /**< sizeof(filch_policy_desc). */
    const char *name;             /**< For filch_policy_stats(); copied, cut at 31 bytes; null:
                                       "custom". */
    void *user;                   /**< Handed to the functions; must outlive the runtime. */
    filch_place_fn place;         /**< Where ready tasks go; null: as by default. */
    filch_chunk_fn chunk;         /**< How much of a batch is taken; null: as by default. */
    filch_steal_fn steal;         /**< Whom idle devices rob; null: as by default. */
    filch_policy_batches batches; /**< How batches reach the devices. */
    uint32_t reserved;            /**< 0. */
} filch_policy_desc;

/** Initializer of a ::filch_policy_desc: everything as by default. */
#define FILCH_POLICY_DESC_INIT                                                               \
    {                                                                                        \
        sizeof(filch_policy_desc), NULL, NULL, NULL, NULL, NULL, FILCH_BATCHES_SHARED_OUT, 0 \
    }

/**
 * Tells what a view is about.
 *
 * @param view the view.
 * @param item receives the record; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, or a size that is too small).
 *
 * Thread safety: inside the function that was given the view. Wait-free. Since 0.1.
 */
FILCH_API filch_status filch_policy_item_get(const filch_policy_view *view,
                                             filch_policy_item *item);

/**
 * Counts the devices, which are numbered from 0.
 *
 * @param view the view.
 * @return how many; 0 for a null view.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint32_t filch_policy_devices(const filch_policy_view *view);

/**
 * Whether a device is there, neither lost nor withdrawn, and can run the item.
 *
 * @param view   the view.
 * @param device the device.
 * @return 1 or 0; with no item, whether it is there; 0 for a null view and where there is no such
 *         device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint32_t filch_policy_can_run(const filch_policy_view *view, uint32_t device);

/**
 * Counts what waits at a device and could be stolen: tasks, and with no item also grains, or
 * pieces, of batches. About: others go on meanwhile, and what was just sent there may be missing.
 *
 * @param view   the view.
 * @param device the device.
 * @return how many; 0 for a null view and where there is no such device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint64_t filch_policy_queued(const filch_policy_view *view, uint32_t device);

/**
 * Predicts how long a device will be busy with what the policy has sent there: the sum of the
 * predictions at the time, less the time that has passed since; 0 once the device was idle.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 without a place function, for a null view and where there is no such device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_load(const filch_policy_view *view, uint32_t device);

/**
 * Predicts how long the item takes on a device, copies not counted: by the measured speed, or
 * another device's and the scores; where none was measured, by the score, as though one of 1 did a
 * million units of work a second.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 for a null view, with no item and where there is no such device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_seconds(const filch_policy_view *view, uint32_t device);

/**
 * Counts the bytes that the item reads and that are not in a device's memory; of a chunk, all that
 * it uses there. About: others move tiles meanwhile.
 *
 * @param view   the view.
 * @param device the device.
 * @return bytes; 0 for a null view, with no item and where there is no such device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API uint64_t filch_policy_missing(const filch_policy_view *view, uint32_t device);

/**
 * Predicts how long the missing bytes take to come, over the link to the host as it was measured
 * (filch_links_measure()); where it was not, at 16 GB/s.
 *
 * @param view   the view.
 * @param device the device.
 * @return seconds; 0 for a null view, with no item and where there is no such device.
 *
 * Thread safety: as filch_policy_item_get(). Since 0.1.
 */
FILCH_API double filch_policy_transfer(const filch_policy_view *view, uint32_t device);

/** What a runtime's policy was asked, and how often it made no sense. */
typedef struct filch_policy_counts {
    size_t size;             /**< sizeof(filch_policy_counts). */
    char name[32];           /**< "steal", "static" and so on, or the caller's. */
    filch_policy policy;     /**< Never FILCH_POLICY_DEFAULT. */
    uint32_t reserved;       /**< 0. */
    uint64_t places;         /**< Tasks and pieces that the place function was asked about … */
    uint64_t places_refused; /**< … and answers that were not followed. */
    uint64_t chunks;         /**< The same of the chunk function. */
    uint64_t chunks_refused; /**< Its answers that were not followed. */
    uint64_t steals;         /**< The same of the steal function. */
    uint64_t steals_refused; /**< Its answers that were not followed. */
} filch_policy_counts;

/**
 * Names a runtime's policy, and counts what it was asked since the runtime was made. Policies that
 * come with filch count, too.
 *
 * @param runtime the runtime.
 * @param counts  receives the record; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p counts, or its size is too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_policy_stats(filch_runtime *runtime, filch_policy_counts *counts);

#ifdef __cplusplus
}
#endif

#endif
