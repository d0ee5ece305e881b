/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file batch.h
 * Batches: one body over a divisible index range 0..n, cut and re-cut over the devices as it runs.
 */
#ifndef FILCH_BATCH_H
#define FILCH_BATCH_H

#include "filch/codelet.h"
#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a range of items maps to elements (rows of a handle of one column, else columns). */
typedef enum filch_map_kind {
    FILCH_MAP_WHOLE = 0,  /**< Every chunk sees the whole handle; it may only be read. */
    FILCH_MAP_AFFINE = 1, /**< Items [lo, hi) use [offset + scale * lo - before, offset + scale * hi
                               + after), the halo cut to the handle; before and after only when
                               read. A shorter last item needs FILCH_MAP_CALLBACK. */
    FILCH_MAP_CALLBACK = 2 /**< The caller's function says. */
} filch_map_kind;

/**
 * Maps items [lo, hi) to elements [*first, *last) of a handle.
 *
 * Must be pure and must not call filch; called at submission and on worker threads. For written
 * handles disjoint item ranges must map to disjoint elements. filch checks up to 1,024 cuts at
 * submission and the neighbours of every chunk before it runs; a chunk that fails the check is not
 * run and fails with status FILCH_ALIAS. Tiles of the handle do not bind the cuts.
 *
 * @param lo    first item.
 * @param hi    one past the last item.
 * @param first receives the first element.
 * @param last  receives one past the last element.
 * @param user  filch_batch_access.user.
 */
typedef void (*filch_map_fn)(uint64_t lo, uint64_t hi, uint64_t *first, uint64_t *last, void *user);

/** One access of a batch. */
typedef struct filch_batch_access {
    filch_data *data;       /**< The handle. */
    filch_access_mode mode; /**< FILCH_READ, FILCH_WRITE or FILCH_READWRITE. */
    filch_map_kind map;     /**< How items map to its elements. */
    uint64_t offset;        /**< FILCH_MAP_AFFINE: element of item 0; starts a tile if written. */
    uint64_t scale;         /**< FILCH_MAP_AFFINE: elements an item; at least 1. */
    uint64_t before;        /**< FILCH_MAP_AFFINE: elements of halo below; 0 if written. */
    uint64_t after;         /**< FILCH_MAP_AFFINE: elements of halo above; 0 if written. */
    filch_map_fn fn;        /**< FILCH_MAP_CALLBACK: the function. */
    void *user;             /**< Handed to fn; must live as long as the batch runs. */
} filch_batch_access;

/** A batch; see ::FILCH_BATCH_DESC_INIT. */
typedef struct filch_batch_desc {
    size_t size;                        /**< sizeof(filch_batch_desc). */
    filch_codelet *codelet;             /**< The body; its call's lo and hi are the chunk. */
    const void *args;                   /**< codelet's arg_size bytes; copied. Null when 0. */
    uint64_t n;                         /**< Items; 0 completes at once. Below 2^63. */
    uint64_t grain;                     /**< Cuts fall on multiples of it; 0 means 1. Raised so
                                             that cuts fall between written tiles too (a handle of
                                             one tile does not bind them), and so that there are
                                             fewer than 2^32 grains. One grain is one chunk: a scale
                                             and a tile without a small common multiple leave
                                             nothing to divide. Where written tiles are of unlike
                                             sizes, cuts fall on those multiples of grain at which a
                                             tile of each such handle ends. */
    const filch_batch_access *accesses; /**< access_count of them; copied. */
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
 * A chunk whose body returns non-zero fails as a whole, with its items and code; finished items
 * stay finished, and nothing is run again unless filch_batch_resume() is called. Item statuses:
 * filch_job_items(). The other chunks run, or are left out where filch_submit.on_failure says so.
 *
 * @param runtime the runtime.
 * @param desc    the batch; copied.
 * @param submit  how, or null for defaults; copied.
 * @param job     receives the job, to be given back with filch_job_release(); null: nobody waits.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, missing arguments, an unknown mode or map, scale
 *         0, elements outside a handle, a written range that does not start at a tile, or does not
 *         end at one where the handle is managed or its buffer not the host's); FILCH_ALIAS
 *         (chunks would write the same elements: FILCH_MAP_WHOLE or a halo with a write, a handle
 *         named twice with a write, a callback that overlaps); FILCH_OVERFLOW (n, grain, or what
 *         they map to); FILCH_NO_DEVICE (no device can run the codelet); FILCH_NO_DEVICE_MEMORY
 *         (a grain fits on no device that can); FILCH_BUSY (the host has acquired a handle that
 *         items use); FILCH_WRONG_STATE (items read what nobody has written of a handle without a
 *         buffer); FILCH_UNSUPPORTED (a handle is a partition; in a runtime with a GPU, a managed
 *         handle is written whose tiles are not along its items);
 *         FILCH_WRONG_RUNTIME; FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE (runtime, codelet or
 *         data); FILCH_FORKED. On failure nothing runs and no callback is called.
 *
 * Thread safety: any thread. Blocking: short locks. Allocates the batch. Since 0.1.
 */
FILCH_API filch_status filch_batch_submit(filch_runtime *runtime, const filch_batch_desc *desc,
                                          const filch_submit *submit, filch_job **job);

/** Who runs what a batch has left; see ::FILCH_RESUME_DESC_INIT. */
typedef struct filch_resume_desc {
    size_t size;             /**< sizeof(filch_resume_desc). */
    const uint32_t *devices; /**< Indices of those that may; copied. Null: all. */
    uint32_t device_count;   /**< Elements of devices; 0 where that is null. */
    uint32_t reserved;       /**< 0. */
} filch_resume_desc;

/** Initializer of a ::filch_resume_desc. */
#define FILCH_RESUME_DESC_INIT                \
    {                                         \
        sizeof(filch_resume_desc), NULL, 0, 0 \
    }

/**
 * Starts a job for those items of a batch that did not finish: that failed, or were left out
 * because of a failure or a cancellation. All others stay as they are.
 *
 * It has the batch's body, grain and accesses, and a copy of its arguments, so the old job may be
 * released as soon as this returns; data handles, and the user pointers of callback mappings, must
 * still live. It runs on the devices that the descriptor names, if they can run the codelet and
 * were not lost, and takes its turn among jobs as any new one. Items keep their numbers: for the
 * body and its views, in errors, and in filch_job_items(), where those that are not the new job's
 * are FILCH_OK. Of filch_job_stats() all is about the new job's items alone. What it leaves in turn
 * is resumed from it: a job can be resumed once, so that no item runs twice that had finished.
 *
 * An item that was left out has written nothing. What one that failed has written to the host's
 * memory stays there, and is what its body reads again (FILCH_READWRITE) unless the caller restores
 * it first. A chunk that failed on a GPU has written there nothing, or, if the GPU was lost just
 * then, any part of what its items computed. Of a managed handle, what was valid on a lost GPU
 * alone is lost, whoever wrote it: the new job's items fail if they read it.
 *
 * @param job    a batch's job that is complete; or, in its callback, that job.
 * @param desc   on which devices, or null for all; copied.
 * @param submit how, or null for defaults; copied. Nothing is taken over from the old job's.
 * @param rest   receives the new job, to be given back with filch_job_release(); null: nobody
 *               waits. Where nothing is left it is complete at once, with FILCH_OK.
 * @return FILCH_OK; FILCH_WRONG_STATE (the job is not complete, not a batch's, or was resumed);
 *         FILCH_INVALID_ARGUMENT (sizes not set, null devices that are counted, reserved);
 *         FILCH_BAD_INDEX (no such device); FILCH_NO_DEVICE (something is left, and none of the
 *         devices can run it); FILCH_BUSY (the host has acquired a handle that items use);
 *         FILCH_OUT_OF_MEMORY (also where there was none to note a range while the job ran);
 *         FILCH_INVALID_HANDLE (job, or data of the batch); FILCH_FORKED; for events as
 *         filch_batch_submit(). On failure nothing runs, no callback is called, and the job may be
 *         resumed again.
 *
 * Thread safety: any thread. Blocking: short locks. Allocates the batch. Since 0.1.
 */
FILCH_API filch_status filch_batch_resume(filch_job *job, const filch_resume_desc *desc,
                                          const filch_submit *submit, filch_job **rest);

#ifdef __cplusplus
}
#endif

#endif
