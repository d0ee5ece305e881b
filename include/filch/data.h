/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file data.h
 * Data handles: buffers of the host's, cut into tiles, whose use orders tasks. Tasks on GPUs get
 * copies in the GPU's memory; filch keeps track of which are good, and moves them.
 *
 * Storage is column-major, as in LAPACK: element (i, j) is at ptr + (j * ld + i) * element. Tile
 * (r, c) covers rows r * tile_rows … and columns c * tile_cols …; the last ones may be smaller.
 *
 * Two uses conflict when they name the same handle, and within a graph the same tile of it. filch
 * does not compare addresses: buffers of two handles must not overlap where one of them is written.
 */
#ifndef FILCH_DATA_H
#define FILCH_DATA_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A data handle; made by filch_data_create(). */
typedef struct filch_data filch_data;

struct filch_codelet; /* filch/codelet.h */

/** Properties of a handle; combine with |. */
typedef enum filch_data_flags {
    /**
     * filch keeps the contents, also between jobs, wherever they were last used: on a GPU they stay
     * there. The host touches the buffer between filch_data_acquire() and filch_data_release()
     * only.
     *
     * Without the flag the buffer holds the contents between jobs: a job copies in what it reads on
     * a device, and what it writes is back in the buffer when the job is complete. Of a job that
     * fails or is cancelled, tiles that some task of it wrote hold old, new or intermediate values.
     */
    FILCH_DATA_MANAGED = 1
} filch_data_flags;

/** How a task uses a tile. */
typedef enum filch_access_mode {
    FILCH_READ = 1,      /**< Reads; concurrent with other readers. */
    FILCH_WRITE = 2,     /**< Overwrites every element; the old contents need not be there. */
    FILCH_READWRITE = 3, /**< Reads and writes. */
    FILCH_SCRATCH = 4,   /**< Private memory for the duration of the call; orders nothing. */
    /**
     * Reads and writes, and the order of the tasks that do so does not matter: those that commute
     * on a tile between two other accesses to it run in any order, one at a time. A task that is
     * ready waits for its turn off the devices, which run others meanwhile. One that commutes on
     * several tiles takes them one after the other, in an order that is the same for all tasks, and
     * keeps those it has while it waits for the next. Tasks of graphs only.
     */
    FILCH_COMMUTE = 7,
    /**
     * Adds to the tile, whatever adding means there: filch_data_reduction() says. The tasks that
     * reduce to a tile between two other accesses to it run in any order and at the same time on
     * different devices, each device adding to a partial result of its own, which begins as the
     * neutral element; on one device they run one at a time. Before the next other access to the
     * tile, or the end of the job, the partial results are combined into it. Which tasks share a
     * partial result, and the order in which these are combined, differ from run to run: where
     * adding rounds, so does the result. Tasks of graphs only.
     */
    FILCH_REDUCE = 11
} filch_access_mode;

/** How a handle is made; see ::FILCH_DATA_DESC_INIT. */
typedef struct filch_data_desc {
    size_t size;        /**< sizeof(filch_data_desc). */
    void *ptr;          /**< The buffer; stays the caller's and must outlive the handle. */
    uint64_t element;   /**< Bytes an element. */
    uint64_t rows;      /**< Rows, or elements of a 1-D range. */
    uint64_t cols;      /**< Columns; 0 means 1. */
    uint64_t ld;        /**< Elements from one column to the next; 0 means rows. */
    uint64_t tile_rows; /**< Rows a tile, at most rows; 0 means rows. */
    uint64_t tile_cols; /**< Columns a tile, at most cols; 0 means cols. */
    const char *label;  /**< Appears in errors; copied, cut at 63 bytes; may be null. */
    uint32_t flags;     /**< filch_data_flags. */
    uint32_t reserved;  /**< 0. */
} filch_data_desc;

/** Initializer of a ::filch_data_desc. */
#define FILCH_DATA_DESC_INIT                                        \
    {                                                               \
        sizeof(filch_data_desc), NULL, 0, 0, 0, 0, 0, 0, NULL, 0, 0 \
    }

/**
 * Registers a buffer. The buffer is not touched.
 *
 * @param runtime the runtime.
 * @param desc    how; copied.
 * @param data    receives the handle, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, zero rows or element, ld < rows, a tile larger
 *         than the handle, unknown flags); FILCH_OVERFLOW (the bytes, or the tile count, which must
 *         be below 2^32 - 1); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_create(filch_runtime *runtime, const filch_data_desc *desc,
                                         filch_data **data);

/**
 * Forgets a handle; the buffer stays as it is. Contents of a managed handle that are on a device
 * only are dropped: acquire it first to have them.
 *
 * @param data the handle.
 * @return FILCH_OK; FILCH_BUSY while an existing graph or a running job uses it (nothing changes);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no other call that names the handle in progress. Blocking: a
 * short lock; device memory is kept for other handles. Since 0.1.
 */
FILCH_API filch_status filch_data_destroy(filch_data *data);

/**
 * Lets the host touch the buffer of a handle: its contents are brought there. To be followed by
 * filch_data_release(). Unmanaged handles need neither.
 *
 * @param data the handle.
 * @param mode what the host will do. FILCH_WRITE alone overwrites everything, and copies nothing.
 * @return FILCH_OK; FILCH_BUSY while a job that uses the handle is submitted and not complete;
 *         FILCH_WRONG_STATE when the handle is acquired already; FILCH_INVALID_ARGUMENT (unknown
 *         mode); FILCH_OUT_OF_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST when the contents cannot be
 *         brought home (the handle is not acquired); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: until the contents are there. Since 0.1.
 */
FILCH_API filch_status filch_data_acquire(filch_data *data, filch_access_mode mode);

/**
 * Ends the host's use of a buffer. Until then every submission that names the handle is FILCH_BUSY.
 *
 * @param data the handle.
 * @return FILCH_OK; FILCH_WRONG_STATE when the handle is not acquired; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_release(filch_data *data);

/**
 * Says how tiles of a handle are reduced to (FILCH_REDUCE).
 *
 * Both codelets have no arguments. @p init makes the neutral element: it overwrites all of view 0.
 * It runs on each device that reduces, so it needs an implementation for every device on which
 * tasks that reduce may run. @p combine adds view 1, which it only reads, to view 0; it may run on
 * any device. The views are of one tile's shape, but may have different leading dimensions. filch
 * runs them as tasks of the graph: they fail, and are timed and traced, as such, but no count of
 * the job's includes them.
 *
 * Each device that reduces to a tile keeps a partial result, in its own memory and room for one in
 * the host's, until the graph is destroyed.
 *
 * @param data    the handle.
 * @param init    the neutral element; null with a null @p combine: tiles can no longer be reduced
 *                to.
 * @param combine the addition.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (one of the codelets is null, or has arguments);
 *         FILCH_WRONG_RUNTIME (a codelet); FILCH_BUSY while an existing graph or a running job uses
 *         the handle (nothing changes); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_reduction(filch_data *data, struct filch_codelet *init,
                                            struct filch_codelet *combine);

/** Shape of a handle in tiles; see filch_data_tiles(). */
typedef struct filch_tiling {
    size_t size;   /**< sizeof(filch_tiling). */
    uint64_t rows; /**< Tile rows. */
    uint64_t cols; /**< Tile columns. */
} filch_tiling;

/**
 * Counts the tiles of a handle.
 *
 * @param data   the handle.
 * @param tiling receives the counts; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p tiling, or its size is too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_data_tiles(const filch_data *data, filch_tiling *tiling);

/** One access of a task. */
typedef struct filch_access {
    filch_data *data;       /**< The handle; null for FILCH_SCRATCH. */
    uint32_t row;           /**< Tile row. */
    uint32_t col;           /**< Tile column. */
    filch_access_mode mode; /**< How it is used. */
    uint32_t reserved;      /**< 0. */
    uint64_t bytes;         /**< FILCH_SCRATCH: how many, 1 to 64 * (2^32 - 1); else 0. */
} filch_access;

#ifdef __cplusplus
}
#endif

#endif
