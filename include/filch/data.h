/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file data.h
 * Data handles: buffers of the host's or of a GPU's, or contents without a buffer, cut into tiles,
 * whose use orders tasks. Tasks on other devices get copies in their memory; filch keeps track of
 * which are good, and moves them.
 *
 * Storage is column-major, as in LAPACK: element (i, j) is at ptr + (j * ld + i) * element. Tile
 * (r, c) covers rows r * tile_rows … and columns c * tile_cols …; the last ones may be smaller.
 * Tiles of unlike sizes are cut where filch_data_desc.row_cuts and col_cuts say.
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
    FILCH_DATA_MANAGED = 1,
    /**
     * There is no buffer: ptr is null, and the contents are where tasks put them. The handle is
     * managed. Nothing of it is anywhere before a task or the host has written it: to read a tile
     * before is refused at submission (open graphs: when the task is added) or when the host
     * acquires it. filch makes a buffer in the host's memory when the host acquires the handle or a
     * device of the host's runs a task that uses it, and frees it with the handle; where it is:
     * filch_data_view().
     *
     * Submitting a job counts what it writes as written. Of a job that then fails or is cancelled,
     * reading what it did not get to write fails the task that reads; where all devices are the
     * host's it finds undefined contents.
     */
    FILCH_DATA_NO_BUFFER = 2,
    /**
     * The buffer is in the memory of a GPU: ptr is a device pointer, and filch_data_desc.device
     * says which. It is memory of the context that filch uses there: of the primary one, unless
     * filch_config says otherwise. Tasks on that GPU, and on all its slices, use it in place, with
     * its leading dimension; other devices and the host get copies. filch never frees it.
     *
     * All that is said here of the caller's buffer holds for it: without FILCH_DATA_MANAGED the
     * contents are there between jobs, and the caller's own kernels may change them meanwhile. The
     * host acquires the handle to have them in a buffer in its memory, see filch_data_view().
     */
    FILCH_DATA_ON_DEVICE = 4,
    /**
     * The buffer is page-locked for as long as the handle exists: GPUs copy to and from it by
     * themselves, at the full rate and without the host's processors. Without the flag filch never
     * page-locks memory of the caller's; what is page-locked already needs no flag.
     *
     * Page-locking takes the system about 30 us a MiB, more where pages have not been touched,
     * serializes the GPUs, and the memory cannot be swapped out; it is for buffers that many jobs
     * use. Whole pages are locked, so page-aligned buffers are best. Where no device is a GPU the
     * flag means nothing.
     */
    FILCH_DATA_PIN = 8
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
    size_t size;              /**< sizeof(filch_data_desc). */
    void *ptr;                /**< The buffer; stays the caller's and must outlive the handle. */
    uint64_t element;         /**< Bytes an element. */
    uint64_t rows;            /**< Rows, or elements of a 1-D range. */
    uint64_t cols;            /**< Columns; 0 means 1. */
    uint64_t ld;              /**< Elements from one column to the next; 0 means rows. */
    uint64_t tile_rows;       /**< Rows a tile, at most rows; 0 means rows. */
    uint64_t tile_cols;       /**< Columns a tile, at most cols; 0 means cols. */
    const char *label;        /**< Appears in errors; copied, cut at 63 bytes; may be null. */
    uint32_t flags;           /**< filch_data_flags. */
    uint32_t reserved;        /**< 0. */
    const uint64_t *row_cuts; /**< Heights of the rows of tiles, from above, each at least 1, which
                                   add up to rows; copied. Then tile_rows is 0. Null: as tile_rows
                                   says. */
    const uint64_t *col_cuts; /**< Likewise widths, which add up to cols, in place of tile_cols. */
    uint32_t row_cut_count;   /**< Elements of row_cuts; 0 where that is null. */
    uint32_t col_cut_count;   /**< Elements of col_cuts; 0 where that is null. */
    uint32_t device;          /**< FILCH_DATA_ON_DEVICE: index of a device whose memory ptr is in;
                                   else 0. */
    uint32_t reserved2;       /**< 0. */
} filch_data_desc;

/** Initializer of a ::filch_data_desc. */
#define FILCH_DATA_DESC_INIT                                                                \
    {                                                                                       \
        sizeof(filch_data_desc), NULL, 0, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL, 0, 0, 0, 0 \
    }

/**
 * Registers a buffer. The buffer is not touched.
 *
 * @param runtime the runtime.
 * @param desc    how; copied.
 * @param data    receives the handle, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a buffer where flags say that there is none,
 *         zero rows or element, ld < rows, a tile larger than the handle, cuts that do not add up,
 *         unknown flags, a pointer that is not memory of the device's or not all of one allocation,
 *         or that belongs to another context, or a buffer to be page-locked that is not in the
 *         host's memory); FILCH_BAD_INDEX (device); FILCH_UNSUPPORTED (that device is not a GPU);
 *         FILCH_WRONG_STATE (FILCH_DATA_PIN, and some of the buffer is page-locked already);
 *         FILCH_ALIAS (another handle's buffer on the device has elements in common; of two with
 *         unlike leading dimensions, bytes in between count as elements);
 *         FILCH_OVERFLOW (the bytes, or the tile count, which must be below 2^32 - 1);
 *         FILCH_DEVICE_LOST, FILCH_BACKEND (the device cannot be asked, or the buffer not be
 *         page-locked); FILCH_OUT_OF_MEMORY, FILCH_NO_DEVICE_MEMORY;
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
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
 * @return FILCH_OK; FILCH_BUSY while an existing graph or a running job uses it, or a run that
 *         outlasts its job does (::FILCH_CODELET_RESTARTABLE), tiles of it are held, or it has
 *         partitions (nothing changes); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no other call that names the handle in progress. Blocking: a
 * short lock, and copies to its buffer that are on their way; device memory is kept for other
 * handles. Since 0.1.
 */
FILCH_API filch_status filch_data_destroy(filch_data *data);

/**
 * Lets the host touch the buffer of a handle: its contents are brought there. To be followed by
 * filch_data_release(). Unmanaged handles need neither.
 *
 * @param data the handle.
 * @param mode what the host will do. FILCH_WRITE alone overwrites everything, and copies nothing.
 * @return FILCH_OK; FILCH_BUSY while a job that uses the handle is submitted and not complete, or
 *         a run that outlasts its job reads it (::FILCH_CODELET_RESTARTABLE), or some of its tiles
 *         are held; FILCH_WRONG_STATE when the handle is acquired already, or is
 *         to be read and nobody has written some tile; FILCH_INVALID_ARGUMENT (another mode);
 *         FILCH_UNSUPPORTED (a partition);
 *         FILCH_OUT_OF_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST when the contents cannot be
 *         brought home (the handle is not acquired); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: until the contents are there. Since 0.1.
 */
FILCH_API filch_status filch_data_acquire(filch_data *data, filch_access_mode mode);

/**
 * Ends the host's use of a buffer. Until then every submission that names the handle is FILCH_BUSY.
 *
 * @param data the handle.
 * @return FILCH_OK; FILCH_WRONG_STATE when the handle is not acquired; FILCH_NO_DEVICE_MEMORY,
 *         FILCH_BACKEND, FILCH_DEVICE_LOST where what was written cannot be brought to the GPU that
 *         the handle's buffer is on (released all the same); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; a copy where the handle's buffer is on a GPU
 * and the handle is not managed. Since 0.1.
 */
FILCH_API filch_status filch_data_release(filch_data *data);

/**
 * Says how tiles of a handle are reduced to (FILCH_REDUCE).
 *
 * Both codelets have no arguments. @p init makes the neutral element: it overwrites all of view 0.
 * It runs on each device that reduces, so it needs an implementation for every device on which
 * tasks that reduce may run. @p combine adds view 1, which it only reads, to view 0; it may run on
 * any device that has room for the tile and a partial result; filch_graph_add() refuses a task that
 * reduces if there is none. The views are of one tile's shape, but may have different leading
 * dimensions. filch runs them as tasks of the graph: they fail, and are timed and traced, as such,
 * but no count of the job's includes them.
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

/**
 * Makes a handle that cuts the buffer of another one into other tiles: a partition.
 *
 * A partition has no contents of its own. Tasks of graphs use it, between filch_graph_partition()
 * and filch_graph_unpartition(), which tell what moves then; everybody else uses the parent. It may
 * have a way to reduce of its own, filch_data_reduction().
 *
 * @param parent the handle whose buffer it is; its buffer is in the host's memory, and it is no
 *               partition. Stays until its partitions are destroyed.
 * @param tiling how it is cut: size, tile_rows or row_cuts, tile_cols or col_cuts, and a label;
 *               copied. All else is 0: buffer, shape and flags are the parent's.
 * @param child  receives the partition, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a size that is not set, members that are not 0,
 *         a tile larger than the handle, cuts that do not add up); FILCH_UNSUPPORTED (the parent is
 *         a partition, on a device, or without a buffer); FILCH_OVERFLOW (the tile count, which
 * must be below 2^32 - 1); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_partition(filch_data *parent, const filch_data_desc *tiling,
                                            filch_data **child);

/** Tiles that the host has acquired; see filch_data_acquire_tiles(). */
typedef struct filch_hold filch_hold;

/** A block of a handle's tiles; see ::FILCH_TILES_INIT. */
typedef struct filch_tiles {
    size_t size;   /**< sizeof(filch_tiles). */
    uint32_t row0; /**< First row of tiles. */
    uint32_t row1; /**< One past the last; 0 means all from row0 on. */
    uint32_t col0; /**< First column of tiles. */
    uint32_t col1; /**< One past the last; 0 means all from col0 on. */
} filch_tiles;

/** Initializer of a ::filch_tiles. */
#define FILCH_TILES_INIT                \
    {                                   \
        sizeof(filch_tiles), 0, 0, 0, 0 \
    }

/**
 * Lets the host touch some tiles of a handle, waiting for those that use them. To be followed by
 * filch_hold_release().
 *
 * The call takes its place in the order of the jobs that use the handle: it waits for the jobs
 * submitted before that conflict with it, and jobs that are submitted after and conflict with it
 * wait for its release. A job uses the smallest block of tiles that contains those that its tasks
 * or items use (an open graph, or a batch by FILCH_MAP_CALLBACK: all), and writes the smallest that
 * contains those it writes. There is a conflict where blocks have tiles in common and one of the
 * two writes there; so readers go together, be they jobs or the host. Only the tiles named are
 * brought home.
 *
 * Inside a task or a callback the call does not wait, whatever @p seconds says. A thread that holds
 * tiles, and waits for a job that waits for their release, waits for ever.
 *
 * @param data    the handle, managed or not.
 * @param tiles   which; null: all.
 * @param mode    what the host will do. FILCH_WRITE alone overwrites all of each tile, and copies
 *                nothing.
 * @param seconds time limit for the jobs, on a virtual clock in virtual seconds; 0: do not wait;
 *                negative: none.
 * @param hold    receives what is to be released.
 * @return FILCH_OK; FILCH_TIMEOUT (jobs still use the tiles; nothing is acquired);
 *         FILCH_BUSY (filch_data_acquire() has the handle); FILCH_INVALID_ARGUMENT (another mode,
 * no such tiles, @p seconds that is not a number, nowhere to put the result); FILCH_UNSUPPORTED (a
 * partition); FILCH_WRONG_STATE (a tile is to be read that nobody has written);
 * FILCH_OUT_OF_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST when the contents cannot be brought home
 * (nothing is acquired); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: until the tiles are there. Since 0.1.
 */
FILCH_API filch_status filch_data_acquire_tiles(filch_data *data, const filch_tiles *tiles,
                                                filch_access_mode mode, double seconds,
                                                filch_hold **hold);

/**
 * Ends the host's use of tiles. Jobs that waited for it start.
 *
 * @param hold what filch_data_acquire_tiles() gave; gone after the call.
 * @return FILCH_OK; FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST where what was written
 *         cannot be brought to the GPU that the handle's buffer is on (released all the same);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks; a copy where the handle's buffer is on a GPU
 * and the handle is not managed. Since 0.1.
 */
FILCH_API filch_status filch_hold_release(filch_hold *hold);

struct filch_view; /* filch/codelet.h */

/**
 * Tells where a tile lies in the host's memory while the host has it: in the caller's buffer, or in
 * the one that filch made.
 *
 * @param data the handle.
 * @param row  tile row.
 * @param col  tile column.
 * @param view receives the tile's block; what it points to is the host's until the handle is
 *             released.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p view, no such tile); FILCH_WRONG_STATE when the
 *         tile is not acquired; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_view(const filch_data *data, uint32_t row, uint32_t col,
                                       struct filch_view *view);

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
