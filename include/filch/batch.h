/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file batch.h
 * Batches: a body run over a divisible index range 0..n, cut and re-cut over the devices at run
 * time.
 */
#ifndef FILCH_BATCH_H
#define FILCH_BATCH_H

#include "filch/codelet.h"
#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a range of items maps to elements (rows of a handle with one column, else columns). */
typedef enum filch_map_kind {
    FILCH_MAP_WHOLE = 0,   /**< Every chunk sees the whole handle; read only. */
    FILCH_MAP_AFFINE = 1,  /**< Items [lo, hi) use [offset + scale * lo - before, offset + scale *
                                hi + after), the halo cut to the handle; before and after only when
                                read. A shorter last item needs FILCH_MAP_CALLBACK. */
    FILCH_MAP_CALLBACK = 2 /**< The caller's function maps the items. */
} filch_map_kind;

/**
 * Maps items [lo, hi) to elements [*first, *last) of a handle.
 *
 * Must be pure and must not call filch. Called at submission and on worker threads. For written
 * handles disjoint item ranges must map to disjoint elements. filch checks up to 1,024 cuts at
 * submission, and the neighbours of every chunk before the chunk runs. A chunk failing the check
 * does not run, and fails with status FILCH_ALIAS. Tiles of the handle do not constrain the cuts.
 *
 * @param lo    first item.
 * @param hi    one past the last item.
 * @param first receives the first element.
 * @param last  receives one past the last element.
 * @param user  value of filch_batch_access.user.
 */
typedef void (*filch_map_fn)(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user);

/** Access of a batch to a handle. */
typedef struct filch_batch_access {
    filch_data *data;       /**< The handle. */
    filch_access_mode mode; /**< FILCH_READ, FILCH_WRITE or FILCH_READWRITE. */
    filch_map_kind map;     /**< How items map to the handle's elements. */
    uint64_t offset;        /**< FILCH_MAP_AFFINE: element of item 0; starts a tile if written. */
    uint64_t scale;         /**< FILCH_MAP_AFFINE: elements an item; at least 1. */
    uint64_t before;        /**< FILCH_MAP_AFFINE: elements of halo below; 0 if written. */
    uint64_t after;         /**< FILCH_MAP_AFFINE: elements of halo above; 0 if written. */
    filch_map_fn fn;        /**< FILCH_MAP_CALLBACK: the function. */
    void *user;             /**< Handed to fn; must live as long as the batch runs. */
} filch_batch_access;

/** Description of a batch; see ::FILCH_BATCH_DESC_INIT. */
typedef struct filch_batch_desc {
    size_t size;                        /**< sizeof(filch_batch_desc). */
    filch_codelet *codelet;             /**< The body; lo and hi of a call are the chunk. */
    const void *args;                   /**< Arguments: arg_size bytes of the codelet; copied. Null
                                             when arg_size is 0. */
    uint64_t n;                         /**< Items; 0 completes at once. Below 2^63. */
    uint64_t grain;                     /**< Cuts fall on multiples of the grain; 0 means 1. filch
                                             raises the grain to make cuts fall between written
                                             tiles, too (a handle with a single tile does not
                                             constrain the cuts), and to keep the number of grains
                                             below 2^32. A single grain is a single chunk: a scale
                                             and a tile without a small common multiple leave
                                             nothing to divide. Where written tiles are of unlike
                                             sizes, cuts fall on multiples of grain at which a tile
                                             of every written handle ends. */
    const filch_batch_access *accesses; /**< Array of access_count accesses; copied. */
    uint32_t access_count;              /**< At most 255. */
    uint32_t reserved;                  /**< 0. */
} filch_batch_desc;

/** Initializer of a ::filch_batch_desc. */
#define FILCH_BATCH_DESC_INIT                                  \
    {                                                          \
        sizeof(filch_batch_desc), NULL, NULL, 0, 0, NULL, 0, 0 \
    }

/**
 * Starts a batch.
 *
 * A chunk whose body returns non-zero fails as a whole, with its items and code. Finished items
 * stay finished, and nothing runs again unless filch_job_resume() is called. filch_job_items()
 * tells the statuses of the items. After a failure the other chunks run, or are left out where
 * filch_submit_desc.on_failure says so.
 *
 * @param runtime the runtime.
 * @param desc    the batch; copied.
 * @param submit  submission parameters, or null for defaults; copied.
 * @param job     receives the job, to be given back with filch_job_release(); null: the caller
 *                keeps no handle and does not wait.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, missing or superfluous arguments, more than 255
 *         accesses, an unknown mode or map, scale 0, elements outside a handle, a written range not
 *         starting at a tile, or not ending at a tile where the handle is managed or its buffer not
 *         the host's); FILCH_ALIAS (chunks would write the same elements: FILCH_MAP_WHOLE or a halo
 *         with a write, a handle named twice with a write, an overlapping callback); FILCH_OVERFLOW
 *         (n, grain, or the mapped elements); FILCH_NO_DEVICE (no device can run the codelet);
 *         FILCH_NO_DEVICE_MEMORY (a grain fits on no device able to run the codelet); FILCH_BUSY
 *         (the host has acquired a handle used by items); FILCH_WRONG_STATE (items read an
 *         unwritten part of a handle without a buffer); FILCH_UNSUPPORTED (a handle is a partition
 * or a temporary; in a runtime with a GPU, a managed handle is written whose tiles are not along
 * its items); FILCH_WRONG_RUNTIME; FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE (runtime, codelet or
 * data); FILCH_FORKED; for events of @p submit as filch_graph_submit(). On failure nothing runs and
 * no callback is called.
 *
 * Thread safety: any thread. Blocking: short locks. Allocates the batch. Since 0.1.
 */
FILCH_API filch_status filch_batch_submit(filch_runtime *runtime, const filch_batch_desc *desc,
                                          const filch_submit_desc *submit, filch_job **job);

/**
 * Runs a batch to the end: submits, waits without a time limit, tells what failed, and releases
 * the job.
 *
 * @param runtime the runtime.
 * @param desc    the batch; copied.
 * @param submit  submission parameters, or null for defaults; copied.
 * @param error   receives the details of a failure, or null; the caller sets error->size
 *                (::FILCH_ERROR_INIT). A failed job: the first failure, as from filch_job_error().
 *                A refused call: the refusal, as from filch_runtime_error(). Unchanged on success.
 * @return the job's result: FILCH_OK; FILCH_TASK_FAILED; FILCH_CANCELLED. Or a refusal, and nothing
 *         runs: the statuses of filch_batch_submit(); FILCH_INVALID_ARGUMENT (an @p error with size
 *         0); FILCH_WRONG_STATE (the caller is a callback or a simulated device's task). Or
 *         the wait fails, and the job is cancelled: FILCH_WRONG_STATE (the job waits, through a
 *         handle, for the job of the calling task: nothing ran); FILCH_TIMEOUT (on a virtual clock
 *         nothing can happen before a further call of the host); FILCH_OUT_OF_MEMORY (inside a
 *         task; work items in flight still end).
 *
 * The caller works meanwhile as in filch_job_wait(): inside a task the call runs other ready work,
 * in poll mode the workers, on a virtual clock the simulation.
 *
 * Thread safety: any thread. Blocking. Since 0.1.
 */
FILCH_API filch_status filch_batch_run(filch_runtime *runtime, const filch_batch_desc *desc,
                                       const filch_submit_desc *submit, filch_error *error);

/** Devices allowed to run the rest of a batch; see ::FILCH_RESUME_DESC_INIT. */
typedef struct filch_resume_desc {
    size_t size;             /**< sizeof(filch_resume_desc). */
    const uint32_t *devices; /**< Indices of the allowed devices; copied. Null: every device. */
    uint32_t device_count;   /**< Elements of devices; 0 where devices is null. */
    uint32_t reserved;       /**< 0. */
} filch_resume_desc;

/** Initializer of a ::filch_resume_desc. */
#define FILCH_RESUME_DESC_INIT                \
    {                                         \
        sizeof(filch_resume_desc), NULL, 0, 0 \
    }

/**
 * Starts a job for the unfinished items of a batch: items that failed, or were left out after a
 * failure or a cancellation. Finished items stay as they are.
 *
 * The new job has the body, grain and accesses of the batch, and a copy of the arguments. The
 * caller may release the old job as soon as the call returns; data handles, and the user pointers
 * of callback mappings, must still live. The new job runs on the devices named by the descriptor,
 * except for devices unable to run the codelet and failed devices, and enters the order of jobs as
 * a new submission. Items keep their numbers: for the body and its views, in errors, and in
 * filch_job_items(), where items not belonging to the new job are FILCH_OK. filch_job_stats()
 * covers only the items of the new job. Items left by the new job are resumed from the new job: a
 * job can be resumed once, lest a finished item run twice.
 *
 * A left-out item has written nothing. Host memory written by a failed item keeps the written
 * values; the body reads them again (FILCH_READWRITE) unless the caller restores the memory first.
 * A chunk that failed on a GPU has written nothing there, or, if the GPU failed just then, any part
 * of the results of its items. Contents of a managed handle valid only on a failed GPU are lost,
 * whoever wrote them: items of the new job fail if they read lost contents.
 *
 * @param job    a complete job of a batch; or, in a completion callback, the job of the callback.
 * @param desc   allowed devices, or null for every device; copied.
 * @param submit submission parameters, or null for defaults; copied. The new job takes nothing over
 *               from the old submission.
 * @param rest   receives the new job, to be given back with filch_job_release(); null: the caller
 *               keeps no handle and does not wait. If no item is left, the new job is complete at
 *               once, with FILCH_OK.
 * @return FILCH_OK; FILCH_WRONG_STATE (the job is not complete, not a batch's, or was resumed);
 *         FILCH_INVALID_ARGUMENT (unset sizes, null devices with a count, reserved is not 0);
 *         FILCH_BAD_INDEX (no such device); FILCH_NO_DEVICE (items are left, and no allowed device
 *         can run them); FILCH_BUSY (the host has acquired a handle used by items);
 *         FILCH_OUT_OF_MEMORY (also where memory for noting a range was missing while the job ran);
 *         FILCH_INVALID_HANDLE (job, or data of the batch); FILCH_FORKED; for events as
 *         filch_batch_submit(). On failure nothing runs, no callback is called, and the job may be
 *         resumed again.
 *
 * Thread safety: any thread. Blocking: short locks. Allocates the batch. Since 0.1.
 */
FILCH_API filch_status filch_job_resume(filch_job *job, const filch_resume_desc *desc,
                                        const filch_submit_desc *submit, filch_job **rest);

#ifdef __cplusplus
}
#endif

#endif
