/* SPDX-License-Identifier: Apache-2.0 */
/* Data handles, and the queue of the jobs that use each. */
#ifndef FL_MEMORY_TILES_DATA_H
#define FL_MEMORY_TILES_DATA_H

#include "base/core.h"
#include "filch/codelet.h"
#include "filch/data.h"

typedef struct fl_queued_access fl_queued_access;
struct fl_replicas;

/* A block of a handle's tiles: rows [row0, row1), columns [col0, col1). */
typedef struct fl_tiles {
    uint32_t row0, row1, col0, col1;
} fl_tiles;

/* One job's place in a handle's queue, or the host's. Jobs that conflict run in the order of
 * submission: a reader waits for the writers before it, a writer for everything before it. The host
 * and a job conflict where they use the same tiles. */
struct fl_queued_access {
    struct filch_data *data;
    void *job;                     /* who waits; opaque here */
    fl_queued_access *next, *prev; /* in the data's queue */
    fl_tiles used, wrote;          /* of a job, at most; row1 0: all */
    bool writes;
    bool granted;
    bool queued;
    bool is_hold;    /* the host's: job is a filch_hold */
    bool is_forgone; /* left before its turn: the job has the handle kept until it is over */
    /* Of open graphs (graph/job/order.c): */
    bool is_upgrade;           /* a second one of its job, which began by reading and is to write */
    bool begun;                /* tasks of its job may have used the handle */
    fl_queued_access *upgrade; /* of one that reads: the second one, or null */
    fl_queued_access *late_next; /* in its job's list of those that have not begun */
    void *gate;                  /* the task that waits for it to begin, or null */
    uint64_t walk;               /* of one that the host waits for: the last walk that came by */
};

/* A handle's home is the buffer that its caller gave: in the host's memory (place 0) or a device's.
 * It is laid out by ld, and so is filch's own buffer on the host, which is made when the host first
 * needs one and the home is not there, or there is no home at all. */
struct filch_data {
    fl_object object;
    _Atomic(char *) host;        /* the buffer in the host's memory, or null: not made yet */
    char *home_base;             /* the caller's in a device's memory, else null */
    uint32_t home;               /* its place; 0 where has_home is false, too */
    struct fl_device *pinned_by; /* which has page-locked the host's buffer; null: none has */
    bool has_home;
    uint64_t element, rows, cols, ld;
    uint64_t tile_rows, tile_cols; /* unless the following say otherwise */
    uint64_t *row_starts;          /* of tiles of different heights: tiles_down + 1; else null */
    uint64_t *col_starts;          /* likewise, of their widths */
    uint32_t tiles_down, tiles_across;
    fl_queued_access *first, *last; /* under core->lock */
    uint32_t holds;                 /* of them, the host's; likewise */
    uint32_t upgrades;              /* of them, second ones of an open graph's; likewise */
    uint32_t kept; /* by runs that may outlast their jobs (graph/job/job.h); likewise */
    /* Where its tiles are valid, made when a device first uses it (replica.c). */
    _Atomic(struct fl_replicas *) replicas;
    _Atomic uint32_t version; /* of the contents, as far as filch keeps track */
    /* Of a handle without a home, one bit a tile: the host or a submitted job has written it, or
     * will; else null. Under core->lock. */
    uint64_t *written;
    /* Where devices are cores of one memory: the core that used each tile last, its index + 1; 0:
     * nobody wrote it. Else null. Relaxed: dependencies order who writes it. */
    _Atomic uint16_t *holders;
    bool is_managed;         /* between jobs too the tiles are where they were last used */
    bool is_held;            /* the host has acquired it; under core->lock */
    bool is_written;         /* and writes to it; likewise */
    _Atomic uint32_t graphs; /* graphs that name it; relaxed, checked under the caller's contract */
    /* Of a partition: the handle in whose buffer it is. What is in it is the parent's, so that it
     * has contents within graphs alone (graph/build/split.h). */
    struct filch_data *parent;
    uint32_t children; /* partitions that exist; under core->lock */
    uint32_t noted; /* number among the handles that traces tell of (graph/job/job_trace.h), from 1;
                       0: none; under core->lock */
    /* How tiles are reduced to; null: not. Fixed while a graph names the handle. */
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

/* All of them. */
static inline fl_tiles fl_data_all_tiles(const struct filch_data *data)
{
    return (fl_tiles){0, data->tiles_down, 0, data->tiles_across};
}

/* Under core->lock: whether a tile has contents, or will have those of a job that was submitted. */
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

/* FILCH_OK, or FILCH_UNSUPPORTED recorded for the call: the handle is a partition. */
filch_status fl_data_refuse_part(const struct filch_data *data, const char *call);

/* What is said of a tile that is read before. */
filch_status fl_data_fail_unwritten(const struct filch_data *data, uint32_t tile, const char *call,
                                    filch_error *error);

/* Relaxed: see fl_data_begin_version. */
static inline uint32_t fl_data_version(const struct filch_data *data)
{
    return fl_load_relaxed(&data->version);
}

/* Where tiles of a row or column of tiles begin; the one past the last is where the handle ends. */
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

/* Bytes from the first element to the view's, and of all, where columns are ld apart. */
static inline size_t fl_data_offset(const struct filch_data *data, const filch_view *view)
{
    return (size_t)((view->col * data->ld + view->row) * data->element);
}

static inline size_t fl_data_bytes(const struct filch_data *data)
{
    return (size_t)(((data->cols - 1) * data->ld + data->rows) * data->element);
}

/* The buffer in the host's memory; null while there is none. Acquire: with it comes that nobody
 * has touched it before. */
static inline char *fl_data_host(const struct filch_data *data)
{
    return fl_load_acquire(&data->host);
}

/* Makes sure that there is one; any thread. FILCH_OUT_OF_MEMORY. */
filch_status fl_data_need_host(struct filch_data *data, filch_error *error);
/* Whether chunks of batches come from a buffer of the caller's on the host, and go there, by
 * themselves. Where they do not, a chunk that is written is one of whole tiles. */
static inline bool fl_data_is_streamed(const struct filch_data *data)
{
    return !data->is_managed && data->has_home && data->home == 0;
}

/* The block that a tile covers, as it is on the host; ptr means nothing while nothing is there. */
filch_view fl_data_tile_view(const struct filch_data *data, uint32_t tile);
/* Elements [first, last) of a 1-D handle, or those columns of a 2-D one. */
filch_view fl_data_range_view(const struct filch_data *data, uint64_t first, uint64_t last);
/* Elements along the axis that a batch divides: columns, or rows where there is one column. */
uint64_t fl_data_extent(const struct filch_data *data);
/* Tiles along that axis, and where they begin; the one past the last is the extent. */
uint32_t fl_data_axis_tiles(const struct filch_data *data);
uint64_t fl_data_axis_start(const struct filch_data *data, uint32_t tile);
/* Width of all but the last of them, or 0 where they differ. */
uint64_t fl_data_tile_extent(const struct filch_data *data);
/* Those that elements [first, last) along that axis touch, as tiles [*tile, *end) of a handle that
 * is cut along it alone. */
void fl_data_tiles_between(const struct filch_data *data, uint64_t first, uint64_t last,
                           uint32_t *tile, uint32_t *end);
/* The tiles that hold such a range, [tile, end) of all tiles, which are counted down each column.
 */
void fl_data_tiles_of(const struct filch_data *data, uint64_t first, uint64_t last, uint32_t *tile,
                      uint32_t *end);
/* Frees what belongs to the handle besides its replicas; nobody uses it any more. */
void fl_data_free_parts(struct filch_data *data);

static inline bool fl_tiles_have(fl_tiles tiles, uint32_t row, uint32_t col)
{
    return tiles.row0 <= row && row < tiles.row1 && tiles.col0 <= col && col < tiles.col1;
}

/* Grows a block, empty where row1 is 0, to contain another. */
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

/* Under core->lock: whether the host has the tile. */
bool fl_data_is_acquired(const struct filch_data *data, uint32_t row, uint32_t col);
/* Under core->lock: somebody is about to use the handle. What nobody used might have been changed
 * by the host's program, and so might its buffer under tiles that it holds. */
void fl_data_note_host(struct filch_data *data);
/* Under core->lock: the first of those tiles that nobody has written; false: none. */
bool fl_data_find_unwritten(const struct filch_data *data, fl_tiles tiles, uint32_t *tile);

/* Puts a use at the end of its data's queue; under core->lock. True when it need not wait. */
bool fl_access_queue_enqueue(fl_queued_access *use);
/* The same, in front of another use of the data (null: at the end). */
bool fl_access_queue_enqueue_before(fl_queued_access *use, fl_queued_access *next);
/* Whether one of two uses of a handle must wait for the other. Those of one job need not. */
bool fl_access_queue_conflict(const fl_queued_access *a, const fl_queued_access *b);
/* Takes a use out that nobody was told of; under core->lock. */
void fl_access_queue_unlink(fl_queued_access *use);
/* Takes a use out and calls granted for each that thereby need wait no more; under core->lock. */
void fl_access_queue_leave(fl_queued_access *use,
                           void (*granted)(fl_queued_access *use, void *user), void *user);

#endif
