/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks: the device memory that tiles are in, who uses it, and who has to leave when there is no
 * more.
 *
 * Admission. What a tile of work uses of a place is reserved all together or not at all, and stays
 * there, pinned by a count of uses in each block, until the work has retired. Where memory has to
 * be taken for that, one worker at a time does it in each place (`admit`), so that no two hold
 * halves. Who does not succeed lets everything go and tries again when something has retired.
 *
 * Progress. Of those who wait for memory in a place, one gets it as soon as nothing is in flight
 * there: nothing is pinned then, everything else can be evicted, and a tile of work that does not
 * fit into an empty place was refused when it was submitted, or is refused now. What is in flight
 * retires by itself, since it has all it needs.
 *
 * Eviction. A victim is the block of which the next use is farthest (Belady, IBM Systems Journal 5,
 * 1966), as far as the tasks that are already known tell; of handles that they do not use, the
 * time since the last use serves for the time to the next. What has no valid contents goes first. A
 * block with the only copy of something is written home before, which costs as much as to bring it
 * back, so that its next use counts half as far. A block whose contents are still being read or
 * written by copies is given back behind them; where that is one copy of the same place's, as when
 * it is written home, who needs such a block has it at once, and puts its own work behind that
 * copy. */
#ifndef FL_MEMORY_TILES_EVICT_H
#define FL_MEMORY_TILES_EVICT_H

#include "base/atomic.h"
#include "base/thread.h"
#include "memory/alloc/node.h"
#include "memory/tiles/data.h"

struct fl_traffic;

/* Copies that may be reading a block at once; a further one waits for one of them. */
#define FL_BLOCK_READERS 8

/* Device memory for tiles [first, end) of a handle. Columns have no gaps between them, but in a
 * buffer of the caller's. */
typedef struct fl_block {
    struct fl_block *next, *prev; /* in the ring of its place, or (next) among those given back */
    struct filch_data *data;      /* null: what a chunk of a batch copies in and out by itself */
    char *ptr;
    size_t bytes, pitch;
    uint32_t place;
    uint32_t first, end;
    uint32_t held;                       /* tiles that are in it; under the handle's lock */
    bool is_leaving;                     /* somebody evicts it; under the lock of residents */
    _Atomic uint32_t uses;               /* rises under the handle's lock only */
    _Atomic uint64_t used;               /* when last; relaxed: a guess */
    fl_marker readers[FL_BLOCK_READERS]; /* copies from it, of a lane each; the handle's lock */
    fl_marker last;                      /* given back: free behind this */
    /* Of the same place: what used the memory before, for somebody else, is over then. What uses it
     * now without having waited for something that did has to wait for this. */
    fl_marker vacant;
} fl_block;

/* What is known of the future. Distances are in tiles of work. */
#define FL_ACCESS_NEVER UINT64_MAX
#define FL_ACCESS_UNKNOWN (UINT64_MAX - 1)
typedef struct fl_foresight {
    /* Called before it is first asked, without locks. */
    void (*prepare)(void *user);
    /* To the next use of a tile in a place, and (where not null) whether that needs the contents,
     * as far as is known. Any handle; under locks, so it takes none. */
    uint64_t (*next_use)(void *user, const struct filch_data *data, uint32_t tile, uint32_t place,
                         bool *is_read);
    void *user;
} fl_foresight;

/* Copies that are under way over one way, oldest first: how many bytes wait for it. */
#define FL_FLOW_COPIES 64
typedef struct fl_flow {
    fl_marker at[FL_FLOW_COPIES]; /* a ring */
    uint64_t bytes[FL_FLOW_COPIES];
    uint32_t first, count;
    uint64_t queued; /* in all; of copies that found no room in the ring, nothing is known */
} fl_flow;

/* The blocks of one place. */
typedef struct fl_residents {
    fl_mutex admit; /* held by who reserves what needs memory */
    fl_mutex lock;  /* all below that is not atomic */
    bool is_ready;
    fl_block *ring; /* where the next search for a victim begins */
    size_t count;
    fl_block *given;          /* back, but not yet free */
    _Atomic uint64_t now;     /* tiles of work admitted so far */
    _Atomic uint32_t inside;  /* admitted or being so, and not retired */
    _Atomic uint64_t entered; /* times that somebody came to be inside */
    _Atomic uint64_t evicted; /* blocks; a statistic */
    fl_mutex flow_lock;
    fl_flow in, peer; /* copies to the place, from the host's and from others, on their lanes */
    fl_flow out;      /* copies from it */
} fl_residents;

/* One a place; null where that fails. */
fl_residents *fl_residents_new(fl_core *core, uint32_t places);
/* No handle is left. */
void fl_residents_free(fl_places *places);

/* A block of memory in a place, in no ring, of no handle; used once. FILCH_NO_DEVICE_MEMORY,
 * FILCH_OUT_OF_MEMORY. Nothing is evicted. */
filch_status fl_block_new(fl_places *places, uint32_t place, size_t bytes, fl_block **block,
                          filch_error *error);
/* Who may have to leave. */
typedef struct fl_victims {
    const fl_foresight *foresight; /* null: nothing is known */
    uint64_t later;                /* those that are wanted later than this; 0: any */
    uint32_t most;                 /* so many at most; 0: any number */
    struct fl_traffic *traffic;    /* of whom they leave for, or null */
    bool is_vacant;                /* the block must be vacant at once */
    bool is_nobody;                /* nobody: there is enough, or not */
} fl_victims;
/* The same, where others are evicted for it; under residents->admit, and no handle's lock.
 * FILCH_NOT_READY: others use the place, and when they do no more, there may be enough; or those
 * who may leave were not enough. */
filch_status fl_block_new_evict(fl_places *places, fl_device *device, size_t bytes,
                                const fl_victims *victims, fl_block **block, filch_error *error);
/* Gives it back; it is in no ring, and free behind the marker. */
void fl_block_give(fl_places *places, fl_block *block, fl_marker last);
/* Puts it among those that may be evicted, and takes it out. False: somebody is evicting it. */
void fl_block_enter(fl_places *places, fl_block *block);
bool fl_block_leave(fl_places *places, fl_block *block);
/* Under the handle's lock: a copy reads from the block. */
filch_status fl_block_read(const fl_places *places, fl_block *block, fl_marker marker,
                           filch_error *error);

/* A copy from one place to another was started. */
void fl_flow_note(const fl_places *places, uint32_t to, uint32_t from, fl_marker marker,
                  uint64_t bytes);
/* Asks which of those that come into a place have arrived. Any thread. */
void fl_flow_look(const fl_places *places, uint32_t place);
/* Bytes that still wait to come into a place, from the host's memory or from others', or to leave
 * it, as far as was seen. Any thread. */
uint64_t fl_flow_in(const fl_places *places, uint32_t place);
uint64_t fl_flow_peer(const fl_places *places, uint32_t place);
uint64_t fl_flow_out(const fl_places *places, uint32_t place);

/* Evicts all that nobody uses. True: there is more room now. */
bool fl_residents_clear(fl_places *places, fl_device *device);

/* Somebody is about to pin blocks of the place, or has let go of them. */
void fl_residents_come(fl_places *places, uint32_t place);
void fl_residents_go(fl_places *places, uint32_t place);

/* How much a block is wanted to leave: the more, the sooner. Pure. */
typedef struct fl_candidate {
    bool is_valid;   /* anything in it is */
    bool is_only;    /* and nowhere else */
    uint64_t next;   /* tiles to its next use, or FL_ACCESS_... */
    uint64_t unused; /* tiles since its last use */
} fl_candidate;
double fl_candidate_score(fl_candidate candidate);

#endif
