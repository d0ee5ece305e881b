/* SPDX-License-Identifier: Apache-2.0 */
/* State of a worker that brings operands to its device, or home to the host: operands of the next
 * item, load of the lanes, the look-ahead ring and the locality window. */
#ifndef FL_SCHED_WORKER_OPERANDS_H
#define FL_SCHED_WORKER_OPERANDS_H

#include "sched/worker/item.h"

/* Launched tasks whose successors a worker remembers to look at. */
#define FL_LOOKAHEAD 64

/* Ready tasks of the locality window. */
#define FL_LOCALITY_WINDOW 128

typedef struct fl_local_task {
    fl_task *task;    /* known to the owner alone */
    bool is_claimed;  /* claimed before it came here */
    bool is_poisoned; /* valid when is_claimed; the task's word tells otherwise */
    bool is_fetched;  /* its missing operands were fetched ahead */
} fl_local_task;

/* Device time and work of one chunk. */
typedef struct fl_chunk_time {
    double ns, work;
} fl_chunk_time;

typedef struct fl_offload {
    fl_waits waits;
    fl_operand operands[FL_MOST_VIEWS];
    uint32_t operand_count;
    bool is_admitted; /* operands are reserved, and no item in flight has them yet */
    bool is_counted;  /* the item fetched last has accesses: its memory node counts the item */
    bool is_tight;    /* the memory node was cleared for the next item */
    void *params[FL_MOST_VIEWS + 2];
    uint32_t param_bytes[FL_MOST_VIEWS + 2];
    uint64_t range[2];
    fl_block *scratch[FL_LANE_LIMIT];       /* scratch memory of a lane's items, or null */
    uint32_t lane_load[FL_LANE_LIMIT];      /* items in flight */
    uint32_t lane_continued[FL_LANE_LIMIT]; /* continuations among these */
    fl_in_flight *lane_tail[FL_LANE_LIMIT]; /* the lane's newest item, if successors may follow, or
                                               null; it may be over, and its slot another's */
    fl_marker lane_arriving[FL_LANE_LIMIT]; /* copy that the lane's last waiting item awaits; may be
                                               past */
    uint32_t lane_last;                     /* lane of the last launch */
    uint32_t samples;                       /* items in flight that the speed model waits for */
    uint32_t beside;                        /* items to time after the last sample */
    fl_chunk_time chunk_times[FL_LANE_LIMIT]; /* the last chunks, as many as lanes: a ring */
    uint32_t chunk_count;                     /* chunks ever of one job */
    uint64_t chunk_job;                       /* number of that job; 0: no chunk yet */
    /* Items in flight whose tasks' successors are to be looked at, oldest first: a ring. */
    fl_in_flight *ahead[FL_LOOKAHEAD];
    uint32_t ahead_first, ahead_count;
    fl_local_task window[FL_LOCALITY_WINDOW]; /* the locality window, in order of arrival */
    bool window_lacks;                        /* an operand of the window may be missing */
    uint32_t window_count;
    uint32_t passes; /* tasks taken one after another past a task of a higher level */
    /* Newest copies of operands fetched ahead: from the host's memory, and from other devices; 0:
     * past. */
    fl_marker fetched[2];
    uint32_t choosy;      /* items until copies count as rare */
    uint32_t host_copies; /* items until copies from the host's memory count as rare */
    uint32_t pressed;     /* items until memory counts as sufficient */
    uint64_t evicted;     /* evictions in the memory node, when last read */
} fl_offload;

/* An item was put on a lane. */
static inline void fl_offload_put(fl_offload *offload, uint32_t lane)
{
    ++offload->lane_load[lane];
    offload->lane_tail[lane] = NULL;
}

#endif
