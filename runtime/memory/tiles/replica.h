/* SPDX-License-Identifier: Apache-2.0 */
/* Replicas: where the tiles of a handle are valid, and how they get where they are needed.
 *
 * A tile is invalid, shared (valid here, perhaps elsewhere too) or modified (valid here alone) in
 * each place. The order of a graph's tasks keeps conflicting uses of a tile apart; what is kept
 * here is which copies are good, and the markers behind which they are. Places other than the
 * host's get memory when a tile is first needed there, and keep it until the handle goes or the
 * memory is needed for others (evict.h).
 *
 * Storage. Tiles lie in blocks: each block holds a run of tiles of one handle, and each tile is in
 * at most one block of a place. A task makes blocks of one tile, or few. A chunk of a batch wants
 * all its tiles in one view, so it takes, in this order,
 *  1. a block that holds them all, whoever made it;
 *  2. a new block for the whole handle, where nothing has to be evicted for that;
 *  3. if it writes them, or they are the whole handle: a new block for them, into which moves what
 *     is there;
 *  4. if it only reads them: a block of its own, filled from wherever its elements are, and given
 *     back when it is over. Chunks of a buffer that is the host's between jobs are always copied so
 *     (`is_streamed`), and copied out again where they are written.
 * Thus handles that fit are in one block, which no chunk has to copy from, and those that do not
 * are there by tiles or chunks. A tile in a larger block is used where it is; the block is evicted
 * as one, after which its tiles come back as they are needed. Columns lie one behind the other in
 * all blocks but the caller's own (a handle whose home is a device).
 *
 * Versions. Between jobs the host may write to its buffer, unless the handle is managed. A job that
 * starts on an unmanaged handle therefore begins a new version, in which the host's copy alone is
 * valid. */
#ifndef FL_MEMORY_TILES_REPLICA_H
#define FL_MEMORY_TILES_REPLICA_H

#include "memory/alloc/node.h"
#include "memory/tiles/data.h"
#include "memory/tiles/evict.h"

/* Bytes that the copies of one job moved to one device, and from it to the host. Any worker adds to
 * them. */
typedef struct fl_traffic {
    _Alignas(64) _Atomic uint64_t in; /* from the host's memory */
    _Atomic uint64_t out;             /* to the host's memory */
    _Atomic uint64_t peer;            /* from another device's memory */
    _Atomic uint64_t evicted;         /* blocks that had to leave for it … */
    _Atomic uint64_t written_back;    /* … and bytes, counted in out too, written home for that */
} fl_traffic;

/* What a tile of work uses of a handle. */
typedef struct fl_operand {
    struct filch_data *data;
    filch_view *view; /* in: as on the host; out: as in the place */
    uint32_t mode;    /* FILCH_READ, FILCH_WRITE or both */
    bool is_final;    /* no later task of the job writes it: bring it home */
    bool is_chunk;    /* of a batch: elements [first, last) along the divided axis; else a tile */
    bool is_whole;    /* of a batch: every chunk uses all of it */
    uint32_t tile, tile_end; /* of a chunk, set by resolve */
    uint64_t first, last;
    /* Set by resolve: the host is the home of an unmanaged handle's chunks, which are copied in and
     * out by themselves, whatever tiles they are part of. */
    bool is_streamed;
    /* Of a chunk that writes it, and reads nothing of it: fetch gives it memory of its own,
     * whatever tiles it covers, which nobody finds before fl_operand_publish; nobody leaves for it.
     * On the host it gives none. */
    bool is_shadowed;
    /* Set by fetch: a chunk's own memory, until commit or release; of a shadowed one, until it is
     * published or given back. */
    fl_block *staging;
    bool is_reserved;    /* fetch's own */
    fl_traffic *traffic; /* where its copies are counted, one a device; null: nowhere */
} fl_operand;

/* Markers that an operation has to wait for. */
#define FL_MOST_WAITS 1024
typedef struct fl_waits {
    fl_marker at[FL_MOST_WAITS];
    uint32_t count;
} fl_waits;

/* Adds a marker; 0 is none. */
filch_status fl_waits_add(fl_waits *waits, fl_marker marker, filch_error *error);
/* FILCH_OK when all are past, FILCH_NOT_READY, or what a lost device says. Forgets past ones. */
filch_status fl_waits_check(fl_places *places, fl_waits *waits, filch_error *error);
/* Blocks until a marker (0: none) is past, or its device has failed. */
filch_status fl_marker_await(const fl_places *places, fl_marker marker, filch_error *error);
/* Of what will not be waited for after all: blocks until its copies touch nothing any more. */
void fl_waits_abandon(fl_places *places, fl_waits *waits);

/* Finds the tiles of a chunk's operand, and whether it is streamed. */
void fl_operand_resolve(fl_operand *operand);
/* How much memory may be taken for operands, and from whom. */
typedef struct fl_admission {
    const fl_foresight *foresight; /* null: nothing is known */
    bool is_tight;   /* nothing is in the place: take no more than the operands need */
    bool is_pressed; /* others have to leave for them */
    bool is_spare;   /* nobody may leave for them */
} fl_admission;

/* Which operands of a tile of work are staged, by bits: no tile has more. */
#define FL_MOST_STAGED 256
typedef struct fl_staged {
    uint64_t bits[FL_MOST_STAGED / 64];
} fl_staged;

/* Makes all operands of a tile of work available to a device (null: a device of the host's memory),
 * or none: memory is reserved and pinned, copies are started, waits gets what must be past before
 * they may be touched, and the views are set. FILCH_NOT_READY, and *error says nothing: there is
 * no room for them now, but there may be when something has retired. FILCH_NO_DEVICE_MEMORY: there
 * is none although nothing else is in flight in the place. Any worker. */
filch_status fl_operands_fetch(fl_places *places, fl_device *device, fl_operand *operands,
                               uint32_t count, const fl_admission *admission, fl_waits *waits,
                               filch_error *error);
/* Once for each success of that: the work has retired, or was not put on a lane and what it waited
 * for is abandoned. staged: the operands that had memory of their own, which commit gave back;
 * null: none. */
void fl_operands_release(fl_places *places, fl_device *device, fl_operand *operands, uint32_t count,
                         const fl_staged *staged);
/* The operands that have. */
fl_staged fl_operands_staged(const fl_operand *operands, uint32_t count);
/* What a device that is to read a tile has to wait for; a guess, without locks. Any thread. */
typedef struct fl_tile_hint {
    uint64_t missing; /* bytes to be brought */
    bool is_coming;   /* they are on their way, as far as was seen */
} fl_tile_hint;
fl_tile_hint fl_tile_next_use(const fl_places *places, const fl_device *device,
                              const struct filch_data *data, uint32_t tile);
/* The work that uses the operand was put on a lane behind those waits, and marker is its own (0: it
 * ran on the host). What it writes becomes valid here alone. Starts the way home where that is
 * wanted; *home is then that copy's marker, else 0. Of a shadowed one nothing changes. */
filch_status fl_operand_commit(fl_places *places, fl_device *device, fl_operand *operand,
                               fl_marker marker, fl_marker *home, filch_error *error);

/* The work on a shadowed operand, which has memory of its own, is past, and its result is the one
 * that counts: it is sent home as of any chunk where it is streamed; else that memory becomes the
 * tiles' own in the place, where they are valid alone. Takes no memory. On failure, too, the
 * operand's is no longer the caller's. */
filch_status fl_operand_publish(fl_places *places, fl_device *device, fl_operand *operand,
                                fl_marker *home, filch_error *error);

/* --- For who brings a tile to several places at once (broadcast.c), while no other job uses the
 * handle --- */

/* Where a tile is, or is to be. */
typedef struct fl_replica_spot {
    char *ptr;           /* its first element */
    size_t pitch;        /* bytes from one column to the next */
    bool is_good;        /* it is valid here … */
    fl_marker behind[2]; /* … once these are past; 0: none */
} fl_replica_spot;

/* Makes every place that is wanted (one flag a place) ready to receive the tile, and tells of all
 * places what there is; ptr is null where there is no memory. The handle is pinned. Fails, and has
 * perhaps taken memory, where some cannot be had or no place has the tile. FILCH_NOT_READY: there
 * may be memory when others have let go of theirs. */
filch_status fl_replica_open(fl_places *places, struct filch_data *data, uint32_t tile,
                             const bool *wanted, fl_replica_spot *spots, filch_error *error);
/* The tile has arrived in those places: it is shared there, and where it was. */
void fl_replica_settle(struct filch_data *data, uint32_t tile, const bool *arrived);
/* From the first of several such calls to the last: what places hold of the handle stays there, and
 * the caller counts as one who will let go of it. */
filch_status fl_replica_pin(fl_places *places, struct filch_data *data, filch_error *error);
void fl_replica_unpin(fl_places *places, struct filch_data *data);

/* A job that uses the handle starts, or ends; alone: no other one runs. Under core->lock. */
void fl_data_begin_version(struct filch_data *data);
/* After that, where a job did not end well: blocks until nothing that was evicted for others is on
 * its way to the host's buffer any more. */
void fl_data_quiesce(fl_places *places, struct filch_data *data);
/* Makes those tiles the host's to use in that mode, with their contents where it reads them;
 * blocks. On failure *error names the handle. */
filch_status fl_data_fetch_host(fl_places *places, struct filch_data *data, fl_tiles tiles,
                                filch_access_mode mode, filch_error *error);
/* The host wrote to those tiles: only its copy is valid. Where the caller's buffer is a device's
 * and is to have them, they are copied there; blocks then. */
filch_status fl_data_host_wrote(fl_places *places, struct filch_data *data, fl_tiles tiles,
                                filch_error *error);
/* Frees what places hold of the handle; no job uses it. */
void fl_data_drop_replicas(fl_places *places, struct filch_data *data);

#endif
