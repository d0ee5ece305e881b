/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file broadcast.h
 * One handle on many devices: what is there once is copied to all that will read it, in pieces that
 * each receiver hands on while the next ones arrive, so that no memory sends everything to
 * everybody.
 */
#ifndef FILCH_BROADCAST_H
#define FILCH_BROADCAST_H

#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Who sends to whom. */
typedef enum filch_broadcast_way {
    /** A chain or a tree, whichever should be over sooner. */
    FILCH_BROADCAST_DEFAULT = 0,
    /** Each receiver hands on to one more: the most bandwidth, for large handles. */
    FILCH_BROADCAST_CHAIN = 1,
    /** Each hands on to two: fewer steps, for small ones and many devices. */
    FILCH_BROADCAST_TREE = 2,
    /** Who has it sends to all, one after the other's copy and whole tiles at a time: what the
        others are to be compared with. */
    FILCH_BROADCAST_DIRECT = 3
} filch_broadcast_way;

/** What is broadcast, and where; see ::FILCH_BROADCAST_INIT. */
typedef struct filch_broadcast {
    size_t size;             /**< sizeof(filch_broadcast). */
    const uint32_t *devices; /**< Indices of the devices that are to have it, in any order; a place
                                  shared by several counts once, and a host device means the host's
                                  memory. Null: every device with memory of its own that is
                                  not lost. Copied. */
    uint32_t device_count;   /**< Elements of devices; 0 where that is null. */
    uint32_t one_tile;       /**< 1: the tile (row, col) alone; 0: all of them. */
    uint32_t row;            /**< Tile row, of one; else 0. */
    uint32_t col;            /**< Tile column, likewise. */
    filch_broadcast_way way; /**< Who sends to whom. */
    uint32_t reserved;       /**< 0. */
    uint64_t piece;          /**< Bytes that are handed on at once; 0: chosen from the size of the
                                  whole and the number of steps. At least 4096 else. */
} filch_broadcast;

/** Initializer of a ::filch_broadcast: the whole handle to every device. */
#define FILCH_BROADCAST_INIT                                                               \
    {                                                                                      \
        sizeof(filch_broadcast), NULL, 0, 0, 0, 0, FILCH_BROADCAST_DEFAULT, 0, (uint64_t)0 \
    }

/**
 * Makes the contents of a managed handle valid on many devices, where later tasks find them. A job
 * like any other: it runs behind those submitted before that use the handle, and those submitted
 * after it that use the handle run behind it.
 *
 * Copies go straight from GPU to GPU where the machine lets one reach the other's memory, along the
 * links that the driver ranks best, else through the host's memory. Each device receives each byte
 * once, and none that it has already. filch_job_stats() tells the bytes.
 *
 * A job that fails or is cancelled leaves the handle as it was, but for tiles that have arrived
 * everywhere by then; nothing is valid that is not all there. filch_job_error() tells which device
 * failed.
 *
 * Only managed handles: replicas of others do not outlive a job. Where devices have no room for all
 * of the handle it fails, with FILCH_NO_DEVICE_MEMORY; other handles' tiles make room for it, as
 * they do for tasks.
 *
 * @param data      the handle.
 * @param broadcast what and where; copied. Null: all of it to every device.
 * @param submit    as for filch_graph_submit(); null is fine.
 * @param job       receives the job, to be given to filch_job_release(); may be null.
 * @return FILCH_OK; FILCH_WRONG_STATE (nothing ever wrote a tile of a handle without a buffer);
 *         FILCH_INVALID_ARGUMENT (sizes that are not set, an unknown way, reserved fields
 *         that are not 0, a device count that contradicts the devices, a piece below 4096);
 *         FILCH_BAD_INDEX (no such device or tile); FILCH_UNSUPPORTED (the handle is not managed
 *         or a partition; events in a runtime without a GPU); FILCH_BUSY while the host has
 *         acquired the handle; FILCH_OUT_OF_MEMORY; those of filch_graph_submit() for the events of
 * @p submit; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; where nothing is before the job, also until
 * the first copies are started, for which device memory may have to be taken and which, from
 * pageable memory, take as long as they copy. Since 0.1.
 */
FILCH_API filch_status filch_data_broadcast(filch_data *data, const filch_broadcast *broadcast,
                                            const filch_submit *submit, filch_job **job);

#ifdef __cplusplus
}
#endif

#endif
