/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: device memory holding tiles, users of blocks, and the choice of victims for eviction once
 * memory is short.
 *
 * Admission. The memory used by a work item in a memory node is reserved completely or not at all.
 * Reserved blocks stay in place, pinned by a count of uses per block, until the item retires. A
 * single worker at a time takes new memory for items in a node (`admit`), thus two workers never
 * hold half of their needs. A worker without success lets every block go, and tries again after a
 * retirement.
 *
 * Progress. Of the workers waiting for memory in a node, a worker succeeds at the latest once the
 * node has no item in flight. No block is pinned then, and every block can be evicted. An item not
 * fitting into an empty node is refused at submission, or at the reservation. An item in flight
 * retires without further memory.
 *
 * Eviction. The victim is the block with the farthest next use (Belady, IBM Systems Journal 5,
 * 1966), as far as the known tasks tell. For handles unused by known tasks, the time since the
 * last use estimates the time to the next use. Blocks without valid contents leave first. A
 * block holding the only copy of a tile is written back first; the write-back costs as much as
 * the later copy in, thus the distance to the block's next use counts half. A block still read
 * or written by copies is given back behind the copies. If the only pending work is a copy on a
 * lane of the node itself, such as a write-back, a taker receives the block at once and orders
 * its own work behind the copy. */
#ifndef FL_MEMORY_TILES_EVICT_H
#define FL_MEMORY_TILES_EVICT_H

#include "base/atomic.h"
#include "base/thread.h"
#include "memory/alloc/node.h"
#include "memory/tiles/data.h"

struct fl_traffic;

/* Concurrent copies from a block; a further copy waits for the end of an earlier copy. */
#define FL_BLOCK_READERS 8

/* Device memory for a block of a handle's tiles. Columns lie without gaps, except in a caller's
 * buffer. */
typedef struct fl_block {
    /* Neighbours in the ring of the node; next also links blocks given back. */
    struct fl_block *next, *prev;
    struct filch_data *data; /* null: memory for a chunk of a batch with copies of its own */
    char *ptr;
    size_t bytes, pitch;
    uint32_t place;
    fl_rect tiles;
    uint32_t held;         /* tiles stored in the block; under the handle's lock */
    bool is_leaving;       /* being evicted; under the lock of residents */
    _Atomic uint32_t uses; /* pin count; rises only under the handle's lock */
    _Atomic uint64_t used; /* time of the last use; relaxed: an estimate */
    /* Copies from the block, a marker per lane; under the handle's lock. */
    fl_marker readers[FL_BLOCK_READERS];
    fl_marker last; /* block given back: free once the marker is past */
    /* Marker on a lane of the block's own node: the former owner's use of the memory ends with
     * the marker. New work must wait for the marker, unless ordered behind work that has waited. */
    fl_marker vacant;
} fl_block;

/* Next-use oracle (Belady). Distances are in work items. */
#define FL_ACCESS_NEVER UINT64_MAX
#define FL_ACCESS_UNKNOWN (UINT64_MAX - 1)
typedef struct fl_foresight {
    /* Prepares the oracle before the first query; called without locks. */
    void (*prepare)(void *user);
    /* Distance to the next use of a tile in a node. is_read, if not null, tells whether the use
     * needs the contents, as far as known. Accepts every handle. Called under locks, therefore
     * takes no lock. */
    uint64_t (*next_use)(void *user, const struct filch_data *data, uint32_t tile, uint32_t place,
                         bool *is_read);
    void *user;
} fl_foresight;

/* Copies under way on a route, oldest first: a count of the bytes queued on the route. */
#define FL_FLOW_COPIES 64
typedef struct fl_flow {
    fl_marker at[FL_FLOW_COPIES]; /* ring */
    uint64_t bytes[FL_FLOW_COPIES];
    uint32_t first, count;
    /* Bytes of every copy in the ring; a full ring drops the oldest copy and its bytes. */
    uint64_t queued;
} fl_flow;

/* Blocks of a memory node. */
typedef struct fl_residents {
    fl_mutex admit; /* held while reserving new memory */
    fl_mutex lock;  /* guards the non-atomic members below, except the flows */
    bool is_ready;
    fl_block *ring; /* start of the next search for a victim */
    size_t count;
    fl_block *given; /* blocks given back, but not yet free */
    /* number of fl_residents_come: work items with accesses, scratch blocks, relays, broadcasts */
    _Atomic uint64_t now;
    _Atomic uint32_t inside;  /* users of the node: came, and have not gone (fl_residents_go) */
    _Atomic uint64_t entered; /* number of admissions begun */
    _Atomic uint64_t evicted; /* number of blocks evicted; a statistic */
    fl_mutex flow_lock;
    fl_flow in, peer; /* copies to the node from the host, and from peers; under flow_lock */
    fl_flow out;      /* copies from the node; under flow_lock */
} fl_residents;

/* Makes residents for every node; null: failure. */
fl_residents *fl_residents_new(fl_core *core, uint32_t places);
/* Frees the residents. Precondition: no handle remains. */
void fl_residents_free(fl_places *places);

/* Makes a block of memory in a node, outside the ring, unused, and without a handle. Evicts
 * nothing. FILCH_NO_DEVICE_MEMORY, FILCH_OUT_OF_MEMORY. */
filch_status fl_block_new(fl_places *places, uint32_t place, size_t bytes, fl_block **block,
                          filch_error *error);
/* Blocks eligible for eviction. */
typedef struct fl_victims {
    const fl_foresight *foresight; /* null: next uses are unknown */
    /* Only blocks with a next use later than the distance; 0: every block. */
    uint64_t later;
    uint32_t most;              /* maximum number of victims; 0: no limit */
    struct fl_traffic *traffic; /* traffic counters of the job needing the room, or null */
    bool is_vacant;             /* the new block must be vacant at once */
    bool is_nobody;             /* no eviction: free memory suffices, or the call fails */
} fl_victims;
/* Makes a block, and evicts victims if necessary. Requires residents->admit, and no handle's
 * lock. FILCH_NOT_READY: active users of the node may release enough memory later, or the
 * eligible victims do not suffice. */
filch_status fl_block_new_evict(fl_places *places, fl_device *device, size_t bytes,
                                const fl_victims *victims, fl_block **block, filch_error *error);
/* Gives back a block outside the ring. The memory is free once the marker is past. */
void fl_block_give(fl_places *places, fl_block *block, fl_marker last);
/* Adds a block to the ring of eviction candidates, and removes a block. False: the block is
 * being evicted. */
void fl_block_enter(fl_places *places, fl_block *block);
bool fl_block_leave(fl_places *places, fl_block *block);
/* Notes a copy reading the block. Requires the handle's lock. */
filch_status fl_block_read(const fl_places *places, fl_block *block, fl_marker marker,
                           filch_error *error);

/* Notes a copy started from a node to a second node. */
void fl_flow_note(const fl_places *places, uint32_t to, uint32_t from, fl_marker marker,
                  uint64_t bytes);
/* Polls the copies into a node for arrivals. Thread-safe. */
void fl_flow_look(const fl_places *places, uint32_t place);
/* Notes the copies into and out of a node that are past, as of the last poll. Thread-safe. */
void fl_flow_note_past(const fl_places *places, uint32_t place);
/* Bytes queued into a node from the host's memory, from peers' memories, and out of the node, as
 * of the last poll. Thread-safe. */
uint64_t fl_flow_in(const fl_places *places, uint32_t place);
uint64_t fl_flow_peer(const fl_places *places, uint32_t place);
uint64_t fl_flow_out(const fl_places *places, uint32_t place);

/* Evicts every unused block. True: free memory has grown. */
bool fl_residents_clear(fl_places *places, fl_device *device);

/* Notes a caller about to pin blocks of the node, or done with the blocks. */
void fl_residents_come(fl_places *places, uint32_t place);
void fl_residents_go(fl_places *places, uint32_t place);

/* Candidate for eviction. The score grows with the preference for eviction. Pure. */
typedef struct fl_candidate {
    bool is_valid;   /* a tile of the block is valid */
    bool is_only;    /* a valid tile exists in no second node */
    uint64_t next;   /* work items until the next use, or FL_ACCESS_... */
    uint64_t unused; /* work items since the last use */
} fl_candidate;
double fl_candidate_score(fl_candidate candidate);

#endif
