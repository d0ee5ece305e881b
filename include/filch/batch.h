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
                               + after), cut to the handle; before and after only when read. */
    FILCH_MAP_CALLBACK = 2 /**< The caller's function says. */
} filch_map_kind;

/**
 * Maps items [lo, hi) to elements [*first, *last) of a handle.
 *
 * Must be pure and must not call filch; called at submission and on worker threads. For written
 * handles disjoint item ranges must map to disjoint elements. filch checks up to 1,024 cuts at
 * submission and the neighbours of every chunk before it runs; a chunk that fails the check is not
 * run and fails with code FILCH_ALIAS. Tiles of the handle do not bind the cuts.
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
                                             that cuts fall between written tiles too, and so that
                                             there are fewer than 2^32 grains. */
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
 * stay finished, and nothing is run again. Item statuses: filch_job_items(). The other chunks run,
 * or are left out where filch_submit.on_failure says so.
 *
 * @param runtime the runtime.
 * @param desc    the batch; copied.
 * @param submit  how, or null for defaults; copied.
 * @param job     receives the job, to be given back with filch_job_release(); null: nobody waits.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, missing arguments, an unknown mode or map, scale
 *         0, elements outside a handle, a written range that does not start at a tile); FILCH_ALIAS
 *         (chunks would write the same elements: FILCH_MAP_WHOLE or a halo with a write, a handle
 *         named twice with a write, a callback that overlaps); FILCH_OVERFLOW (n, grain, or what
 *         they map to); FILCH_NO_DEVICE (no device can run the codelet); FILCH_BUSY (the host has
 *         acquired a handle that items use); FILCH_WRONG_RUNTIME;
 *         FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE (runtime, codelet or data); FILCH_FORKED. On
 *         failure nothing runs and no callback is called.
 *
 * Thread safety: any thread. Blocking: short locks. Allocates the batch. Since 0.1.
 */
FILCH_API filch_status filch_batch_submit(filch_runtime *runtime, const filch_batch_desc *desc,
                                          const filch_submit *submit, filch_job **job);

#ifdef __cplusplus
}
#endif

#endif
