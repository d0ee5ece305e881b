/* SPDX-License-Identifier: Apache-2.0 */
/* Data handles, and the access queue of every handle: the jobs using the handle. */
#ifndef FL_MEMORY_TILES_DATA_H
#define FL_MEMORY_TILES_DATA_H

#include "base/core.h"
#include "filch/codelet.h"
#include "filch/data.h"

typedef struct fl_queued_access fl_queued_access;
struct fl_csr;
struct fl_replicas;

/* A block of a handle's tiles: rows [row0, row1), columns [col0, col1). */
typedef struct fl_tiles {
    uint32_t row0, row1, col0, col1;
} fl_tiles;

/* A block of a handle's tiles by number: `rows` consecutive tiles of each of `cols` consecutive
 * tile columns, which begin `down` tiles apart. A single tile is a block, too. */
typedef struct fl_rect {
    uint32_t first, rows, cols, down;
} fl_rect;

/* Elements at the sides of a block of tiles. */
typedef struct fl_margins {
    uint64_t top, bottom, left, right;
} fl_margins;

/* Elements of a handle: a block of tiles and a halo around the block, up to the edges of the
 * handle. */
typedef struct fl_region {
    fl_rect named;      /* the block */
    fl_rect tiles;      /* every tile with an element of the region */
    fl_margins margins; /* elements of these tiles outside of the region */
} fl_region;

/* Entry of a job, or of the host, in a handle's access queue. Conflicting jobs run in the order
 * of submission. A reader waits for earlier writers, a writer for every earlier entry. The host
 * and a job conflict only on shared tiles. */
struct fl_queued_access {
    struct filch_data *data;
    void *job;                     /* waiting job or hold; opaque for the queue */
    fl_queued_access *next, *prev; /* neighbours in the handle's queue */
    fl_tiles used, wrote;          /* largest set a job may use, and write; row1 0: every tile */
    bool writes;
    bool granted;
    bool queued;
    bool is_hold; /* entry of the host: job is a filch_hold */
    /* Entry of a host that does not wait: unless granted at once, the entry leaves by itself. */
    bool is_trial;
    /* Entry left the queue before being granted; the job keeps the handle alive until the job's
     * end. */
    bool is_forgone;
    /* Members for open graphs (graph/job/order.c): */
    /* Second entry of a job with a first entry for reading; the job is about to write. */
    bool is_upgrade;
    bool begun;                  /* tasks of the job may have used the handle */
    fl_queued_access *upgrade;   /* second entry belonging to a reading entry, or null */
    fl_queued_access *late_next; /* next in the job's list of entries not yet begun */
    void *gate;                  /* task waiting for the entry to begin, or null */
    /* Entry of a waiting host: number of the last walk that visited the entry. */
    uint64_t walk;
};

/* Data handle. A handle's home is the buffer given by the caller: in the host's memory (node 0)
 * or in a device's. The home is laid out by ld. The runtime makes a host buffer with an equal
 * layout if the host needs a buffer and the home is elsewhere or missing. */
struct filch_data {
    fl_object object;
    _Atomic(char *) host; /* buffer in the host's memory; null: not made yet */
    char *home_base;      /* caller's buffer in a device's memory, else null */
    uint32_t home;        /* memory node of the home; 0 also if has_home is false */
    /* Device that page-locked the host's buffer; null: not page-locked. */
    struct fl_device *pinned_by;
    bool has_home;
    uint64_t element, rows, cols, ld;
    uint64_t tile_rows, tile_cols; /* tile sizes, unless the following members override the sizes */
    /* First rows of tiles of different heights: tiles_down + 1 entries; else null. */
    uint64_t *row_starts;
    /* First columns of tiles of different widths: tiles_across + 1 entries; else null. */
    uint64_t *col_starts;
    uint32_t tiles_down, tiles_across;
    struct fl_csr *csr; /* a sparse matrix of row blocks (tiles/csr.h); else null; constant */
    fl_queued_access *first, *last; /* access queue; under core->lock */
    uint32_t holds;                 /* queued entries of the host; under core->lock */
    uint32_t upgrades;              /* queued second entries of open graphs; under core->lock */
    /* Runs that may outlast their jobs (graph/job/job.h) and keep the handle alive; under
     * core->lock. */
    uint32_t kept;
    /* Validity of the tiles per memory node; made on the first use by a device (replica.c). */
    _Atomic(struct fl_replicas *) replicas;
    _Atomic uint32_t version; /* version of the contents, as far as known to the runtime */
    /* Handle without a home: a bit per tile, set once the host or a submitted job has written,
     * or will write, the tile; else null. Under core->lock. */
    uint64_t *written;
    /* Devices as cores of a common memory: index + 1 of the core that used every tile last; 0:
     * never written. Else null. Relaxed: dependencies order the writers. */
    _Atomic uint16_t *holders;
    bool is_managed; /* tiles stay in the node of the last use, also between jobs */
    /* Some task has read a tile with a halo, so that tiles should lie beside each other. Relaxed:
     * set before the tasks run, and otherwise only a better place is missed. */
    _Atomic bool has_halos;
    bool is_ordered; /* reductions give the same bits on every schedule (graph/build/reduction.h) */
    bool is_acquired; /* the host has acquired the handle; under core->lock */
    bool is_written;  /* the host writes the acquired handle; under core->lock */
    /* Number of graphs naming the handle; relaxed: the caller's contract orders the check. */
    _Atomic uint32_t graphs;
    /* Parent of a partition: the handle owning the buffer. The parent owns the contents as well;
     * a partition has contents only within graphs (graph/build/split.h). */
    struct filch_data *parent;
    /* Temporary: the host's memory by tile; null where the tile has none. Tiles have contents and
     * memory only within a job, from the first writer to the last user (graph/build/lifetime.h).
     * Else null. Relaxed: dependencies, or the replicas' lock, order the writers of an entry. */
    _Atomic(char *) *tile_hosts;
    uint32_t children; /* number of existing partitions; under core->lock */
    /* Number of the handle in traces (graph/job/job_trace.h), from 1; 0: not yet in a trace;
     * under core->lock. */
    uint32_t noted;
    /* Codelets for reduction to tiles; null: no reduction. Fixed while a graph names the handle. */
    const struct filch_codelet *reduction_init, *reduction_combine;
    char label[64];
};

/* Number of tiles. */
static inline uint32_t fl_data_tile_count(const struct filch_data *data)
{
    return data->tiles_down * data->tiles_across;
}

static inline uint32_t fl_data_tile(const struct filch_data *data, uint32_t row, uint32_t col)
{
    return col * data->tiles_down + row;
}

/* Block of a single tile. */
static inline fl_rect fl_rect_of_tile(uint32_t tile)
{
    return (fl_rect){tile, 1, 1, 1};
}

/* Block of tiles [first, end): tiles of a single tile column, or whole tile columns. */
static inline fl_rect fl_rect_of_range(const struct filch_data *data, uint32_t first, uint32_t end)
{
    uint32_t down = data->tiles_down, count = end - first;
    return count <= down - first % down ? (fl_rect){first, count, 1, down}
                                        : (fl_rect){first, down, count / down, down};
}

static inline uint32_t fl_rect_count(fl_rect rect)
{
    return rect.rows * rect.cols;
}

/* Returns the i-th tile of a block, in ascending order. */
static inline uint32_t fl_rect_at(fl_rect rect, uint32_t i)
{
    return rect.cols == 1 || rect.rows == rect.down
               ? rect.first + i
               : rect.first + i / rect.rows * rect.down + i % rect.rows;
}

static inline uint32_t fl_rect_last(fl_rect rect)
{
    return rect.first + (rect.cols - 1) * rect.down + rect.rows - 1;
}

static inline bool fl_rect_has(fl_rect rect, uint32_t tile)
{
    uint32_t at = tile - rect.first;
    return tile >= rect.first && at / rect.down < rect.cols && at % rect.down < rect.rows;
}

/* Tells whether some element of the region's tiles is outside of the region. */
static inline bool fl_region_has_margins(const fl_region *region)
{
    const fl_margins *m = &region->margins;
    return (m->top | m->bottom | m->left | m->right) != 0;
}

static inline bool fl_rect_is_same(fl_rect a, fl_rect b)
{
    return a.first == b.first && a.rows == b.rows && a.cols == b.cols;
}

/* Block as rows and columns of tiles of its handle. */
static inline fl_tiles fl_rect_tiles(const struct filch_data *data, fl_rect rect)
{
    uint32_t row = rect.first % data->tiles_down, col = rect.first / data->tiles_down;
    return (fl_tiles){row, row + rect.rows, col, col + rect.cols};
}

/* Tells whether two blocks have a tile in common. */
static inline bool fl_tiles_meet(fl_tiles a, fl_tiles b)
{
    return a.row0 < b.row1 && b.row0 < a.row1 && a.col0 < b.col1 && b.col0 < a.col1;
}

/* Block of every tile of the handle. */
static inline fl_tiles fl_data_all_tiles(const struct filch_data *data)
{
    return (fl_tiles){0, data->tiles_down, 0, data->tiles_across};
}

/* Tells whether a tile has contents, or will have contents of a submitted job. Requires
 * core->lock. */
static inline bool fl_data_is_written(const struct filch_data *data, uint32_t tile)
{
    return data->written == NULL || (data->written[tile / 64] >> tile % 64 & 1) != 0;
}

static inline void fl_data_note_written(struct filch_data *data, uint32_t tile)
{
    if (data->written != NULL) {
        data->written[tile / 64] |= (uint64_t)1 << tile % 64;
    }
}

/* Tells whether tiles of the handle occupy memory only during their lifetimes. */
static inline bool fl_data_is_temporary(const struct filch_data *data)
{
    return data->tile_hosts != NULL;
}

/* Makes a handle for a call, which errors name; a driver's error names the driver's call. The
 * description has a valid size. */
filch_status fl_data_create(fl_core *core, const char *call, const filch_data_desc *desc,
                            struct filch_data **data);

/* Returns FILCH_OK, or records FILCH_UNSUPPORTED for the call: the handle is a partition or a
 * temporary, and has contents within graphs only. */
filch_status fl_data_refuse_inner(const struct filch_data *data, const char *call);

/* Returns FILCH_OK, or records FILCH_UNSUPPORTED for the call: the handle is a sparse matrix. */
filch_status fl_data_refuse_csr(const struct filch_data *data, const char *call);

/* A handle as an argument of a call; what: how the call names it. */
static inline fl_argument fl_data_argument(const struct filch_data *data, const char *what)
{
    return (fl_argument){data, FL_MAGIC_DATA, what, data != NULL ? data->label : ""};
}

/* Reports, with a label of the caller's, that the host holds the handle: FILCH_BUSY. */
filch_status fl_data_fail_acquired(const struct filch_data *data, const char *label,
                                   filch_error *error);
/* Reports a read of a tile without contents. */
filch_status fl_data_fail_unwritten(const struct filch_data *data, uint32_t tile, const char *call,
                                    filch_error *error);

/* Relaxed: see fl_data_begin_version. */
static inline uint32_t fl_data_version(const struct filch_data *data)
{
    return fl_load_relaxed(&data->version);
}

/* First row, or column, of a row or column of tiles. The entry past the last tile equals the
 * handle's extent. */
static inline uint64_t fl_data_row_start(const struct filch_data *data, uint32_t row)
{
    uint64_t start = data->row_starts != NULL ? data->row_starts[row] : row * data->tile_rows;
    return start < data->rows ? start : data->rows;
}

static inline uint64_t fl_data_col_start(const struct filch_data *data, uint32_t col)
{
    uint64_t start = data->col_starts != NULL ? data->col_starts[col] : col * data->tile_cols;
    return start < data->cols ? start : data->cols;
}

/* Rows, or columns, of tiles containing an element. */
uint32_t fl_data_row_of(const struct filch_data *data, uint64_t row);
uint32_t fl_data_col_of(const struct filch_data *data, uint64_t col);

/* Total bytes of the handle, for columns ld apart. */
static inline size_t fl_data_bytes(const struct filch_data *data)
{
    return (size_t)(((data->cols - 1) * data->ld + data->rows) * data->element);
}

/* Returns the buffer in the host's memory; null: not made yet. Acquire: the initial state of a
 * new buffer is visible with the pointer. */
static inline char *fl_data_host(const struct filch_data *data)
{
    return fl_load_acquire(&data->host);
}

/* Makes the host buffer if missing. Not for a temporary. Thread-safe. FILCH_OUT_OF_MEMORY. */
filch_status fl_data_need_host(struct filch_data *data, filch_error *error);
/* Makes the host's memory for a tile if missing: the host buffer, or a temporary's memory for the
 * tile. Thread-safe. FILCH_OUT_OF_MEMORY. */
filch_status fl_data_need_host_tile(struct filch_data *data, uint32_t tile, filch_error *error);
/* Frees a temporary's host memory for a tile, if any. Precondition: no user of the tile remains. */
void fl_data_free_host_tile(struct filch_data *data, uint32_t tile);
/* Sets the address and the leading dimension of a view to the host's memory. The address has no
 * meaning without memory. A view of a temporary lies within a tile. */
void fl_data_put_on_host(const struct filch_data *data, filch_view *view);
/* Tells whether neighbouring tiles of a column lie one below the other in the host's memory. */
static inline bool fl_data_has_columns(const struct filch_data *data)
{
    return data->tiles_down > 1 && !fl_data_is_temporary(data);
}
/* Tells whether chunks of batches are streamed individually between a device and the caller's
 * host buffer. A written chunk of a handle not streamed covers whole tiles. */
static inline bool fl_data_is_streamed(const struct filch_data *data)
{
    return !data->is_managed && data->has_home && data->home == 0;
}

/* View of the block covered by a tile, as on the host. ptr has no meaning without a host buffer. */
filch_view fl_data_tile_view(const struct filch_data *data, uint32_t tile);
/* View of a block of tiles, as on the host. */
filch_view fl_data_rect_view(const struct filch_data *data, fl_rect rect);
/* View of a region, as on the host. */
filch_view fl_data_region_view(const struct filch_data *data, const fl_region *region);
/* Region of a block and a halo; null: no halo. */
fl_region fl_data_region(const struct filch_data *data, fl_rect named, const filch_halo *halo);
/* The part of a view of a handle inside another view. Precondition: they have elements in common.
 */
filch_view fl_data_common_view(const struct filch_data *data, const filch_view *a,
                               const filch_view *b);
/* View of elements [first, last) of a 1-D handle, or columns [first, last) of a 2-D handle. */
filch_view fl_data_range_view(const struct filch_data *data, uint64_t first, uint64_t last);
/* Number of elements along the axis divided by a batch: columns, or rows of a single column. */
uint64_t fl_data_extent(const struct filch_data *data);
/* Number of tiles along the divided axis, and start of a tile on the axis. The start past the
 * last tile is the extent. */
uint32_t fl_data_axis_tiles(const struct filch_data *data);
uint64_t fl_data_axis_start(const struct filch_data *data, uint32_t tile);
/* Width along the divided axis of every tile but the last; 0: widths differ. */
uint64_t fl_data_tile_extent(const struct filch_data *data);
/* Finds tiles [*tile, *end) touched by elements [first, last) along the divided axis, in a
 * handle cut only along the axis. */
void fl_data_tiles_between(const struct filch_data *data, uint64_t first, uint64_t last,
                           uint32_t *tile, uint32_t *end);
/* Finds the tiles holding elements [first, last) along the divided axis, as [*tile, *end) in the
 * handle's column-major numbering. */
void fl_data_tiles_of(const struct filch_data *data, uint64_t first, uint64_t last, uint32_t *tile,
                      uint32_t *end);
/* Frees the parts of the handle except the replicas. Precondition: no users remain. */
void fl_data_free_parts(struct filch_data *data);

static inline bool fl_tiles_have(fl_tiles tiles, uint32_t row, uint32_t col)
{
    return tiles.row0 <= row && row < tiles.row1 && tiles.col0 <= col && col < tiles.col1;
}

/* Grows a block (row1 0: empty) to contain a second block. */
static inline void fl_tiles_grow(fl_tiles *tiles, fl_tiles more)
{
    if (tiles->row1 == 0) {
        *tiles = more;
        return;
    }
    tiles->row0 = more.row0 < tiles->row0 ? more.row0 : tiles->row0;
    tiles->row1 = more.row1 > tiles->row1 ? more.row1 : tiles->row1;
    tiles->col0 = more.col0 < tiles->col0 ? more.col0 : tiles->col0;
    tiles->col1 = more.col1 > tiles->col1 ? more.col1 : tiles->col1;
}

/* Tells whether the host holds the tile. Requires core->lock. */
bool fl_data_is_acquired(const struct filch_data *data, uint32_t row, uint32_t col);
/* Notes a new use of the handle. The host's program may have changed an idle handle, and the
 * buffer under tiles held by the host. Requires core->lock. */
void fl_data_note_host(struct filch_data *data);
/* Finds the first unwritten tile of the given block; false: every tile is written. Requires
 * core->lock. */
bool fl_data_find_unwritten(const struct filch_data *data, fl_tiles tiles, uint32_t *tile);

/* Appends an entry to the handle's access queue. Requires core->lock. True: the entry is granted
 * at once. */
bool fl_access_queue_enqueue(fl_queued_access *use);
/* Inserts an entry before `next` of the queue (null: at the end). Requires core->lock. */
bool fl_access_queue_enqueue_before(fl_queued_access *use, fl_queued_access *next);
/* Moves an entry of the queue before `next`, a second entry of the queue (null: to the end). Grants
 * stay as they are: the entry passes no conflicting entry. Requires core->lock. Writes only the
 * links: threads without the lock may look at `queued`. */
void fl_access_queue_move(fl_queued_access *use, fl_queued_access *next);
/* Tells whether two entries of a handle must wait for each other. Entries of a single job never
 * conflict. */
bool fl_access_queue_conflict(const fl_queued_access *a, const fl_queued_access *b);
/* Removes an entry without granting later entries. Requires core->lock. */
void fl_access_queue_unlink(fl_queued_access *use);
/* Removes an entry, and calls granted for every entry no longer having to wait. Requires
 * core->lock. */
void fl_access_queue_leave(fl_queued_access *use,
                           void (*granted)(fl_queued_access *use, void *user), void *user);

#endif
