/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file data.h
 * Data handles. A handle names a buffer of the host or of a GPU, or contents without a buffer, cut
 * into tiles. The use of tiles orders tasks. Tasks on other devices get copies in the device's
 * memory; filch tracks the valid copies, and moves them. A temporary names intermediate results of
 * a graph (::FILCH_DATA_TEMPORARY).
 *
 * Storage is column-major, as in LAPACK: element (i, j) is at ptr + (j * ld + i) * element. Tile
 * (r, c) begins at row r * tile_rows and column c * tile_cols; the last tiles may be smaller.
 * filch_data_desc.row_cuts and col_cuts define tiles of unlike sizes.
 *
 * Two uses conflict when both name the same handle, and within a graph the same tile of the handle.
 * filch does not compare addresses: buffers of two handles must not overlap if either is written.
 */
#ifndef FILCH_DATA_H
#define FILCH_DATA_H

#include "filch/runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A data handle made by filch_data_create(). */
typedef struct filch_data filch_data;

struct filch_codelet; /* filch/codelet.h */

/** Properties of a handle; combine with |. */
typedef enum filch_data_flags {
    /**
     * filch keeps the contents, also between jobs, wherever last used: contents on a GPU stay on
     * the GPU. The host touches the buffer between filch_data_acquire() and filch_data_release()
     * only.
     *
     * Without the flag the buffer holds the contents between jobs. A job copies in the tiles read
     * on a device, and written tiles are back in the buffer when the job is complete. After a
     * failed or cancelled job, and after a job finished early (filch_call_finish()), tiles written
     * by a task of the job hold old, new or intermediate values.
     */
    FILCH_DATA_MANAGED = 1,
    /**
     * The handle has no buffer: ptr is null, and the contents are wherever tasks put them. The
     * handle is managed. A tile has no contents before a task or the host has written it. Reading
     * an unwritten tile is refused at submission (open graphs: when the task is added) or when the
     * host acquires the tile. filch makes a buffer in the host's memory when the host acquires the
     * handle, or when a host device runs a task using the handle, and frees the buffer with the
     * handle. filch_data_view() tells the buffer's address.
     *
     * Submitting a job counts the tiles to be written as written. If the job then fails, is
     * cancelled or finishes early, reading a tile left unwritten fails the reading task; where
     * every device is the host's, the task reads undefined contents.
     */
    FILCH_DATA_NO_BUFFER = 2,
    /**
     * The buffer is in the memory of a GPU: ptr is a device pointer, and filch_data_desc.device
     * names the GPU. The memory belongs to the context used by filch on the GPU: the primary
     * context, unless filch_runtime_desc says otherwise. Tasks on the GPU, and on all of its
     * slices, use the buffer in place, with its leading dimension; other devices and the host get
     * copies. filch never frees the buffer.
     *
     * Every statement about the caller's buffer applies: without FILCH_DATA_MANAGED the buffer
     * holds the contents between jobs, and the caller's own kernels may change the contents
     * meanwhile. Acquiring the handle copies the contents to a buffer in the host's memory, see
     * filch_data_view().
     */
    FILCH_DATA_ON_DEVICE = 4,
    /**
     * The buffer is page-locked as long as the handle exists. GPUs copy directly to and from the
     * buffer, at the full rate and without the host's processors. Without the flag filch never
     * page-locks the caller's memory; memory page-locked already needs no flag.
     *
     * Page-locking takes the system about 30 us a MiB, more for untouched pages, serializes the
     * GPUs, and prevents swapping. The flag is meant for buffers used by many jobs. Whole pages are
     * locked, so page-aligned buffers are best. Without a GPU the flag has no effect.
     */
    FILCH_DATA_PIN = 8,
    /**
     * Reductions to the handle's tiles (FILCH_REDUCE) round alike on every schedule: the result has
     * the same bits whichever devices run the tasks, in whichever order, as long as the graph is
     * the same and the codelets give the same bits on every device. A partial result then belongs
     * to a task instead of a device: see filch_data_reduction(). The flag costs a neutral element
     * and an addition for each task of a group, up to 64 of each, and as many partial results.
     */
    FILCH_DATA_ORDERED = 16,
    /**
     * The handle is a temporary: intermediate results of a graph. ptr is null, as with
     * FILCH_DATA_NO_BUFFER, which the flag implies, and ld is 0. Only tasks of graphs use the
     * handle.
     *
     * A tile has contents and memory during its lifetimes only. A lifetime begins with a task that
     * overwrites the tile (FILCH_WRITE). It ends when every task has ended that was added before
     * the next filch_graph_discard() of the handle, or to the graph at all, and uses the tile.
     * Every run of a graph has lifetimes of its own, and no contents pass from a job to another. At
     * the end the tile's memory is free for other tiles at once, and the contents are lost without
     * a copy; also after a task failed, or the job was cancelled or finished early.
     *
     * Memory is taken where tasks run: in a device's memory, or a buffer a tile in the host's.
     * Contents move between devices as those of other handles do, and leave a device's memory for
     * the host's where a task of the host reads the tile, where devices have no other way to each
     * other, or where memory of the device is short; FILCH_OUT_OF_MEMORY fails the task that the
     * host has no memory for. At most two tasks beginning lifetimes are put behind their
     * predecessors on a GPU before those have ended, so that a chain of temporaries needs the
     * memory of three tiles; a graph with temporaries never goes out as one launch.
     *
     * filch_graph_add() refuses a task that reads, commutes on or reduces to a tile outside of a
     * lifetime (FILCH_WRONG_STATE), and an access to a block of several tiles (FILCH_UNSUPPORTED).
     */
    FILCH_DATA_TEMPORARY = 32
} filch_data_flags;

/** How a task uses a tile. */
typedef enum filch_access_mode {
    FILCH_READ = 1,      /**< Reads; concurrent with other readers. */
    FILCH_WRITE = 2,     /**< Overwrites every element; the old contents need not be present. */
    FILCH_READWRITE = 3, /**< Reads and writes. */
    FILCH_SCRATCH = 4,   /**< Private memory for the duration of the call; orders nothing. */
    /**
     * Reads and writes, in any order of tasks. Tasks commuting on a tile between two other accesses
     * to the tile run one at a time, in any order. A ready task waits for the commute lock off the
     * devices; the devices run other work meanwhile. A task commuting on several tiles takes the
     * locks one after another, in an order common to all tasks, and keeps held locks while waiting
     * for the next. Tasks of graphs only.
     */
    FILCH_COMMUTE = 7,
    /**
     * Adds to the tile; filch_data_reduction() defines the addition. Tasks reducing to a tile
     * between two other accesses to the tile run in any order, concurrently on different devices.
     * Every device adds to a partial result of its own, which begins as the neutral element; on a
     * single device the tasks run one at a time. filch adds the partial results to what the tile
     * had, before the next other access to the tile, or before the end of the job. The assignment
     * of tasks to partial results, and the order of combining, differ from run to run: where the
     * addition rounds, the result differs, too, unless the handle has FILCH_DATA_ORDERED. Tasks of
     * graphs only.
     */
    FILCH_REDUCE = 11
} filch_access_mode;

/** Description of a new handle; see ::FILCH_DATA_DESC_INIT. */
typedef struct filch_data_desc {
    size_t size;              /**< sizeof(filch_data_desc). */
    void *ptr;                /**< The buffer; stays the caller's and must outlive the handle. */
    uint64_t element;         /**< Bytes an element. */
    uint64_t rows;            /**< Rows, or elements of a 1-D range. */
    uint64_t cols;            /**< Columns; 0 means 1. */
    uint64_t ld;              /**< Elements from a column to the next; 0 means rows. */
    uint64_t tile_rows;       /**< Rows a tile, at most rows; 0 means rows. */
    uint64_t tile_cols;       /**< Columns a tile, at most cols; 0 means cols. */
    const char *label;        /**< Appears in errors; copied, cut at 63 bytes; may be null. */
    uint32_t flags;           /**< Combination of filch_data_flags. */
    uint32_t reserved;        /**< 0. */
    const uint64_t *row_cuts; /**< Heights of the tile rows, from top to bottom: every height is at
                                   least 1, and the sum is rows. Copied. Requires tile_rows 0. Null:
                                   tile_rows applies. */
    const uint64_t *col_cuts; /**< Widths of the tile columns, from left to right: every width is at
                                   least 1, and the sum is cols. Copied. Requires tile_cols 0. Null:
                                   tile_cols applies. */
    uint32_t row_cut_count;   /**< Elements of row_cuts; 0 where row_cuts is null. */
    uint32_t col_cut_count;   /**< Elements of col_cuts; 0 where col_cuts is null. */
    uint32_t device;          /**< FILCH_DATA_ON_DEVICE: index of a device whose memory contains
                                   ptr; else 0. */
    uint32_t reserved2;       /**< 0. */
} filch_data_desc;

/** Initializer of a ::filch_data_desc. */
#define FILCH_DATA_DESC_INIT                                                                \
    {                                                                                       \
        sizeof(filch_data_desc), NULL, 0, 0, 0, 0, 0, 0, NULL, 0, 0, NULL, NULL, 0, 0, 0, 0 \
    }

/**
 * Registers a buffer. The call does not touch the contents of the buffer.
 *
 * @param runtime the runtime.
 * @param desc    description; copied.
 * @param data    receives the handle, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, a buffer where flags deny a buffer, zero rows or
 *         element, ld < rows, an ld of a temporary, a tile larger than the handle, cuts with a
 * wrong sum, cuts together with a tile size, unknown flags, a device without FILCH_DATA_ON_DEVICE,
 * reserved is not 0, a pointer not in the device's memory, not within a single allocation, or of
 * another context, or a buffer to be page-locked outside the host's memory); FILCH_BAD_INDEX
 *         (device); FILCH_UNSUPPORTED (the device is not a GPU); FILCH_WRONG_STATE (FILCH_DATA_PIN,
 *         and a part of the buffer is page-locked already); FILCH_ALIAS (another handle's buffer on
 *         the device has elements in common; for two buffers with unlike leading dimensions, bytes
 *         between columns count as elements); FILCH_OVERFLOW (the bytes, or the tile count, which
 *         must be below 2^32 - 1); FILCH_DEVICE_LOST, FILCH_BACKEND (the driver cannot inspect or
 *         page-lock the buffer); FILCH_OUT_OF_MEMORY, FILCH_NO_DEVICE_MEMORY; FILCH_INVALID_HANDLE;
 *         FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; with FILCH_DATA_PIN also the page-locking.
 * Since 0.1.
 */
FILCH_API filch_status filch_data_create(filch_runtime *runtime, const filch_data_desc *desc,
                                         filch_data **data);

/**
 * Destroys a handle; the buffer stays as it is. Contents of a managed handle present only on a
 * device are dropped: acquire the handle first to keep the contents.
 *
 * @param data the handle.
 * @return FILCH_OK; FILCH_BUSY while an existing graph or a running job uses the handle, a backup
 *         run outlasting its job uses the handle (::FILCH_CODELET_RESTARTABLE), the host has
 *         acquired the handle or holds tiles, or partitions of the handle exist (nothing changes);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread, with no concurrent call naming the handle. Blocking: a short lock, and
 * copies in flight to the buffer; device memory is kept for other handles. Since 0.1.
 */
FILCH_API filch_status filch_data_destroy(filch_data *data);

/**
 * Lets the host touch the buffer of a handle: brings the contents to the buffer. To be followed by
 * filch_data_release(). Unmanaged handles need neither call.
 *
 * @param data the handle.
 * @param mode intended use by the host. FILCH_WRITE alone overwrites everything, and copies
 *             nothing.
 * @return FILCH_OK; FILCH_BUSY while a submitted job using the handle is not complete, a backup run
 *         outlasting its job reads the handle (::FILCH_CODELET_RESTARTABLE), or the host holds
 *         tiles; FILCH_WRONG_STATE when the handle is acquired already, or is to be read and has an
 *         unwritten tile; FILCH_INVALID_ARGUMENT (another mode); FILCH_UNSUPPORTED (a partition, a
 *         temporary); FILCH_OUT_OF_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST when the contents
 * cannot be copied to the buffer (the handle is not acquired); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: until the contents are in the buffer. Since 0.1.
 */
FILCH_API filch_status filch_data_acquire(filch_data *data, filch_access_mode mode);

/**
 * Ends the host's use of a buffer. Until the release every submission naming the handle is
 * FILCH_BUSY.
 *
 * @param data the handle.
 * @return FILCH_OK; FILCH_WRONG_STATE when the handle is not acquired; FILCH_NO_DEVICE_MEMORY,
 *         FILCH_BACKEND, FILCH_DEVICE_LOST where written contents cannot be copied to the GPU of
 *         the handle's buffer (released all the same); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock; a copy where the handle's buffer is on a GPU
 * and the handle is not managed. Since 0.1.
 */
FILCH_API filch_status filch_data_release(filch_data *data);

/**
 * Defines the reduction of a handle's tiles (FILCH_REDUCE).
 *
 * Both codelets have no arguments. @p init makes the neutral element: it overwrites the whole of
 * view
 * 0. The codelet runs on every reducing device and needs an implementation for every device where
 *    reducing tasks may run. @p combine adds view 1, read only, to view 0. It may run on any device
 *    with capacity for the tile and a partial result; filch_graph_add() refuses a reducing task if
 *    no device has. The views have the shape of a tile, but leading dimensions may differ. filch
 *    runs the codelets as tasks of the graph: they fail, and are timed and traced, like other
 *    tasks, but no count of the job includes them.
 *
 * Every device reducing to a tile keeps a partial result, in the device's memory and with room for
 * a copy in the host's memory, until the graph is destroyed. With FILCH_DATA_ORDERED, the tasks
 * reducing to a tile between two other accesses to it have the numbers 0, 1, … in the order of
 * their addition to the graph, and task k adds to partial result k modulo 64. Tasks with the same
 * partial result run one at a time, in the order of their numbers; the partial results are added to
 * the tile in the order of theirs.
 *
 * @param data    the handle.
 * @param init    the neutral element; null together with a null @p combine: the handle no longer
 *                supports reduction.
 * @param combine the addition.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (a single codelet is null, or a codelet has arguments);
 *         FILCH_WRONG_RUNTIME (a codelet); FILCH_BUSY while an existing graph or a running job uses
 *         the handle (nothing changes); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_reduction(filch_data *data, struct filch_codelet *init,
                                            struct filch_codelet *combine);

/**
 * Makes a handle cutting the buffer of another handle into different tiles: a partition.
 *
 * A partition has no contents of its own. Tasks of graphs use the partition between
 * filch_graph_partition() and filch_graph_unpartition(), which describe the copies made. Everybody
 * else uses the parent. A partition may have a reduction of its own, filch_data_reduction().
 *
 * @param parent handle of the buffer, which is in the host's memory; not a partition. Stays until
 *               its partitions are destroyed.
 * @param tiling the cuts: size, tile_rows or row_cuts, tile_cols or col_cuts, and a label; copied.
 *               All other members are 0: the partition has the buffer, shape and flags of the
 *               parent.
 * @param child  receives the partition, to be given to filch_data_destroy() or left to the runtime.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (nulls, an unset size, other members not 0, a tile
 *         larger than the handle, cuts with a wrong sum); FILCH_UNSUPPORTED (the parent is a
 *         partition, on a device, or without a buffer); FILCH_OVERFLOW (the tile count, which must
 *         be below 2^32 - 1); FILCH_OUT_OF_MEMORY; FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: a short lock. Since 0.1.
 */
FILCH_API filch_status filch_data_partition(filch_data *parent, const filch_data_desc *tiling,
                                            filch_data **child);

/** Tiles acquired by the host; see filch_data_acquire_tiles(). */
typedef struct filch_hold filch_hold;

/** A block of a handle's tiles; see ::FILCH_TILES_INIT. */
typedef struct filch_tiles {
    size_t size;   /**< sizeof(filch_tiles). */
    uint32_t row0; /**< First row of tiles. */
    uint32_t row1; /**< One past the last row of tiles; 0 means all rows from row0 on. */
    uint32_t col0; /**< First column of tiles. */
    uint32_t col1; /**< One past the last column of tiles; 0 means all columns from col0 on. */
} filch_tiles;

/** Initializer of a ::filch_tiles. */
#define FILCH_TILES_INIT                \
    {                                   \
        sizeof(filch_tiles), 0, 0, 0, 0 \
    }

/**
 * Lets the host touch tiles of a handle, after waiting for jobs using the tiles. To be followed by
 * filch_hold_release().
 *
 * The call takes a position in the order of the jobs using the handle. It waits for conflicting
 * jobs submitted earlier; conflicting jobs submitted later wait for the release. A job uses the
 * smallest block of tiles containing all tiles used by its tasks or items (an open graph, or a
 * batch by FILCH_MAP_CALLBACK: the whole handle), and writes the smallest block containing all
 * tiles written. Two users conflict where their blocks have common tiles and either user writes
 * there; readers go together, whether jobs or the host. Only the tiles named are copied to the
 * host.
 *
 * Inside a task the call does not wait, whatever @p seconds says. Nor does it inside a callback
 * that a worker calls: on a worker's thread, or on a host thread inside filch_runtime_poll() or a
 * wait driving the workers. Inside a callback that another call of the host calls, such as
 * filch_graph_close(), it waits as outside. A thread holding tiles waits for ever if it waits for a
 * job that waits for the release.
 *
 * @param data    the handle, managed or not.
 * @param tiles   the block of tiles; null: the whole handle.
 * @param mode    intended use by the host. FILCH_WRITE alone overwrites the whole of every tile,
 *                and copies nothing.
 * @param seconds time limit for the jobs, on a virtual clock in virtual seconds; 0: do not wait,
 *                but in poll mode do a round over the workers; negative: no limit.
 * @param hold    receives the hold, to be released.
 * @return FILCH_OK; FILCH_TIMEOUT (jobs still use the tiles; nothing is acquired); FILCH_BUSY
 *         (filch_data_acquire() has the handle); FILCH_INVALID_ARGUMENT (another mode, no such
 *         tiles, an unset size, @p seconds is not a number, null @p hold); FILCH_UNSUPPORTED (a
 *         partition, a temporary); FILCH_WRONG_STATE (an unwritten tile is to be read);
 * FILCH_OUT_OF_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST when the contents cannot be copied to the
 * host (nothing is acquired); FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: until the host has the tiles. Since 0.1.
 */
FILCH_API filch_status filch_data_acquire_tiles(filch_data *data, const filch_tiles *tiles,
                                                filch_access_mode mode, double seconds,
                                                filch_hold **hold);

/**
 * Ends the host's use of tiles. Jobs waiting for the release start.
 *
 * @param hold the hold from filch_data_acquire_tiles(); invalid after the call.
 * @return FILCH_OK; FILCH_NO_DEVICE_MEMORY, FILCH_BACKEND, FILCH_DEVICE_LOST where written contents
 *         cannot be copied to the GPU of the handle's buffer (released all the same);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread. Blocking: short locks; a copy where the handle's buffer is on a GPU
 * and the handle is not managed. Since 0.1.
 */
FILCH_API filch_status filch_hold_release(filch_hold *hold);

struct filch_view; /* filch/codelet.h */

/**
 * Tells where an acquired tile lies in the host's memory: in the caller's buffer, or in the buffer
 * made by filch.
 *
 * @param data the handle.
 * @param row  tile row.
 * @param col  tile column.
 * @param view receives the tile's block; the elements belong to the host until the handle is
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

/** Initializer of a ::filch_tiling. */
#define FILCH_TILING_INIT          \
    {                              \
        sizeof(filch_tiling), 0, 0 \
    }

/**
 * Counts the tiles of a handle.
 *
 * @param data   the handle.
 * @param tiling receives the counts; its size must be set.
 * @return FILCH_OK; FILCH_INVALID_ARGUMENT (null @p tiling, or a size too small);
 *         FILCH_INVALID_HANDLE; FILCH_FORKED.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API filch_status filch_data_tiles(const filch_data *data, filch_tiling *tiling);

/** Value of filch_access.rows and filch_access.cols: all tiles from the first one on. */
#define FILCH_TO_END UINT32_MAX

/**
 * Elements around a tile, or around a block of tiles, that a task reads with it: a halo.
 *
 * The halo is cut to the handle: at the edge of the handle there is less, or nothing.
 */
typedef struct filch_halo {
    uint64_t rows_before; /**< Rows above the tile. */
    uint64_t rows_after;  /**< Rows below. */
    uint64_t cols_before; /**< Columns to the left. */
    uint64_t cols_after;  /**< Columns to the right. */
} filch_halo;

/**
 * Access of a task to a tile, or to a block of tiles of one handle.
 *
 * A block is a rectangle of tiles: @p rows tile rows from @p row on, and @p cols tile columns from
 * @p col on. A block of several tiles counts as one access, and is read, written, or both. The task
 * sees the block as one view, as though the block were a single tile: on every device the view has
 * one pointer and one leading dimension. Dependencies are still those of the single tiles.
 * docs/concepts.md, "Blocks of tiles", tells what a block costs.
 *
 * A task that reads a tile or a block may read a halo around it. The view then begins with the
 * halo: filch_view.row and filch_view.col tell where, and filch_view.rows and filch_view.cols count
 * the halo. The task depends on the writers of every tile that the halo touches. A GPU gets the
 * part of those tiles that is within the halo, not the whole tiles. docs/concepts.md, "Halos".
 */
typedef struct filch_access {
    filch_data *data;       /**< The handle; null for FILCH_SCRATCH. */
    uint32_t row;           /**< Tile row; of a block: the first. */
    uint32_t col;           /**< Tile column; of a block: the first. */
    filch_access_mode mode; /**< How the task uses the tile, or every tile of the block. A block of
                                 several tiles can neither commute nor reduce. */
    uint32_t reserved;      /**< 0. */
    uint64_t bytes;         /**< FILCH_SCRATCH: number of bytes, 1 to 64 * (2^32 - 1); else 0. */
    uint32_t rows;          /**< Tile rows of the block; 0 means 1; FILCH_TO_END: all from row on.
                                 0 for FILCH_SCRATCH. */
    uint32_t cols;          /**< Tile columns of the block; 0 means 1; FILCH_TO_END: all from col
                                 on. 0 for FILCH_SCRATCH. */
    const filch_halo *halo; /**< Halo to be read with the tile or block; copied. Null: none. Only
                                 for FILCH_READ. */
} filch_access;

/**
 * Initializer of a ::filch_access to tile (row, col) of a handle; not for FILCH_SCRATCH. In C an
 * array of accesses may be a compound literal, in C++ the array needs a name:
 *
 *     task.accesses = (filch_access[]){FILCH_R(A, i, k), FILCH_RW(A, i, j)};
 *
 *     const filch_access tiles[] = {FILCH_R(A, i, k), FILCH_RW(A, i, j)};
 *     task.accesses = tiles;
 */
#define FILCH_ACCESS(data, row, col, mode)                              \
    {                                                                   \
        (data), (uint32_t)(row), (uint32_t)(col), (mode), 0, 0, 0, 0, 0 \
    }
/** ::FILCH_ACCESS that reads. */
#define FILCH_R(data, row, col) FILCH_ACCESS(data, row, col, FILCH_READ)
/** ::FILCH_ACCESS that overwrites every element. */
#define FILCH_W(data, row, col) FILCH_ACCESS(data, row, col, FILCH_WRITE)
/** ::FILCH_ACCESS that reads and writes. */
#define FILCH_RW(data, row, col) FILCH_ACCESS(data, row, col, FILCH_READWRITE)

/** Initializer of a ::filch_access to a block of rows x cols tiles, beginning at tile (row, col).
 */
#define FILCH_BLOCK(data, row, col, rows, cols, mode)                             \
    {                                                                             \
        (data), (uint32_t)(row), (uint32_t)(col), (mode), 0, 0, (uint32_t)(rows), \
            (uint32_t)(cols), 0                                                   \
    }
/** Initializer of a ::filch_access that reads tile (row, col) with a halo, a pointer to a
 *  ::filch_halo. */
#define FILCH_R_HALO(data, row, col, halo)                                       \
    {                                                                            \
        (data), (uint32_t)(row), (uint32_t)(col), FILCH_READ, 0, 0, 0, 0, (halo) \
    }
/** Initializer of a ::filch_access to all tiles of a handle. */
#define FILCH_WHOLE(data, mode) FILCH_BLOCK(data, 0, 0, FILCH_TO_END, FILCH_TO_END, mode)

#ifdef __cplusplus
}
#endif

#endif
