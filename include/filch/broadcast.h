/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file broadcast.h
 * Broadcast of a handle to many devices. The contents, present once, are copied to all devices
 * about to read them, in pieces. Every receiver hands a piece on while the next pieces arrive, so
 * no memory sends everything to everybody.
 */
#ifndef FILCH_BROADCAST_H
#define FILCH_BROADCAST_H

#include "filch/data.h"
#include "filch/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Pattern of senders and receivers. */
typedef enum filch_broadcast_way {
    /** Chain or tree, whichever is predicted to finish sooner. */
    FILCH_BROADCAST_DEFAULT = 0,
    /** Every receiver hands on to one more: the most bandwidth, for large handles. */
    FILCH_BROADCAST_CHAIN = 1,
    /** Every receiver hands on to two: fewer steps, for small handles and many devices. */
    FILCH_BROADCAST_TREE = 2,
    /**
     * A memory with the contents sends to every receiver, one copy after another and a whole tile
     * at a time: a baseline for comparison with the other patterns.
     */
    FILCH_BROADCAST_DIRECT = 3
} filch_broadcast_way;

/** Contents and receivers of a broadcast; see ::FILCH_BROADCAST_DESC_INIT. */
typedef struct filch_broadcast_desc {
    size_t size;             /**< sizeof(filch_broadcast_desc). */
    const uint32_t *devices; /**< Indices of the receiving devices, in any order; a memory node
                                  shared by several devices counts once, and a host device means the
                                  host's memory. Null: every device with memory of its own, except
                                  for failed devices. Copied. */
    uint32_t device_count;   /**< Elements of devices; 0 where devices is null. */
    bool one_tile;           /**< The tile (row, col) alone; false: all tiles. */
    uint32_t row;            /**< Tile row where one_tile is true; else 0. */
    uint32_t col;            /**< Tile column where one_tile is true; else 0. */
    filch_broadcast_way way; /**< Pattern of senders and receivers. */
    uint32_t reserved;       /**< 0. */
    uint64_t piece;          /**< Bytes handed on at once, at least 4096; 0: chosen from the total
                                  size and the number of steps. */
} filch_broadcast_desc;

/** Initializer of a ::filch_broadcast_desc: the whole handle to every device. */
#define FILCH_BROADCAST_DESC_INIT                                                       \
    {                                                                                   \
        sizeof(filch_broadcast_desc), NULL, 0, false, 0, 0, FILCH_BROADCAST_DEFAULT, 0, \
            (uint64_t)0                                                                 \
    }

/**
 * Makes the contents of a managed handle valid on many devices, for use by later tasks. The
 * broadcast is a job like any other: it runs after jobs using the handle submitted earlier, and
 * before jobs using the handle submitted later.
 *
 * Copies go directly from GPU to GPU where the machine gives a GPU access to the memory of the
 * other, along the links ranked best by the driver, else through the host's memory. Every device
 * receives every byte once, and no byte already present. filch_job_stats() tells the bytes.
 *
 * A failed or cancelled job leaves the handle as it was, except for tiles arrived on every receiver
 * by then; a tile not fully present is not valid. filch_job_error() tells the failed device.
 *
 * Managed handles only: replicas of other handles do not outlive a job. The job fails with
 * FILCH_NO_DEVICE_MEMORY where devices have no capacity for the whole contents; tiles of other
 * handles are evicted to make room, as for tasks.
 *
 * @param data      the handle.
 * @param broadcast contents and receivers; copied. Null: the whole handle to every device.
 * @param submit    as for filch_graph_submit(); may be null.
 * @param job       receives the job, to be given to filch_job_release(); may be null.
 * @return FILCH_OK; FILCH_WRONG_STATE (a handle without a buffer has a tile never written);
 *         FILCH_INVALID_ARGUMENT (unset sizes, an unknown way, reserved fields not 0, a row or
 *         column while one_tile is false, a device count in contradiction to the devices, a
 *         piece below 4096); FILCH_BAD_INDEX (no such device or tile); FILCH_UNSUPPORTED (the
 *         handle is not managed, is a partition or a temporary; events in a runtime without a GPU);
 * FILCH_BUSY while the host has acquired the handle; FILCH_OUT_OF_MEMORY; for events of @p submit
 * as filch_graph_submit(); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. If no earlier job is in the way, the call also
 * blocks until the first copies are started. Starting may include taking device memory, and copies
 * from pageable memory block for their whole duration. Since 0.1.
 */
FILCH_API filch_status filch_data_broadcast(filch_data *data, const filch_broadcast_desc *broadcast,
                                            const filch_submit_desc *submit, filch_job **job);

#ifdef __cplusplus
}
#endif

#endif
