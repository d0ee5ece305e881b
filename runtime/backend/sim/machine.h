/* SPDX-License-Identifier: Apache-2.0 */
/* Lanes of simulated devices with memories, and the links between the devices. All times are known
 * when an operation is put on a lane, as lanes and links work in order of arrival. Any thread,
 * under the machine's lock. */
#ifndef FL_BACKEND_SIM_MACHINE_H
#define FL_BACKEND_SIM_MACHINE_H

#include "backend/backend.h"
#include "backend/sim/describe.h"
#include "base/thread.h"

/* Ends of a lane's operations; the times never fall. */
typedef struct fl_sim_lane {
    uint64_t *ends;   /* ring: the end of sequence n stands at n % capacity */
    size_t capacity;  /* a power of two, or 0 */
    uint64_t kept;    /* oldest sequence kept; all earlier sequences are past */
    uint64_t next;    /* sequence of the next operation, from 1 */
    uint64_t idle_at; /* end of the last operation */
    uint64_t marked;  /* newest sequence available for waits, where marks count */
} fl_sim_lane;

/* Interval in which copies take one direction of a link. A link carries one copy at a time in each
 * direction. A copy waiting for a tile gets its interval when put on its lane; later copies may go
 * first where they end before the interval. */
typedef struct fl_sim_taken {
    uint64_t from, to;
} fl_sim_taken;

typedef struct fl_sim_turns {
    fl_sim_taken *at; /* disjoint intervals, in order */
    size_t count, capacity;
} fl_sim_turns;

typedef struct fl_sim_bus {
    char name[FL_SIM_NAME_LIMIT + 1];
    fl_sim_turns turns[2]; /* in, out */
} fl_sim_bus;

/* Lanes and links of a device. */
typedef struct fl_sim_port {
    fl_sim_lane lanes[FL_LANES];
    fl_sim_turns tiles; /* intervals in which one of several compute lanes has the device */
    uint64_t lost_at;
    fl_sim_link link;
    fl_sim_bus own, *bus;
    char kind[FL_SIM_NAME_LIMIT + 1]; /* name of the device's element; empty: none */
} fl_sim_port;

typedef struct fl_sim_machine {
    fl_mutex lock;
    const fl_memory *memory;
    const fl_clock *clock; /* null: time stands still at 0 */
    uint32_t users;
    fl_sim_port *ports[FL_DEVICE_LIMIT]; /* indexed by the devices' indices, from open on */
    fl_sim_bus *buses;
    size_t bus_count;
    fl_sim_peer *peers;
    size_t peer_count;
    /* End of a wait on the host that began at held_at. Operations begun at held_at start no sooner
     * than held_until. */
    uint64_t held_at, held_until;
} fl_sim_machine;

/* Returns a new machine with the caller as its user; null: no memory. */
fl_sim_machine *fl_sim_machine_new(const fl_discovery *how, const fl_sim_description *description);
/* Removes a user; the last user frees the machine. */
void fl_sim_machine_drop(fl_sim_machine *machine);
uint64_t fl_sim_machine_now(const fl_sim_machine *machine);

/* --- Under the lock --- */

/* Returns the bus named by a link, or `own` for a link without a bus. */
fl_sim_bus *fl_sim_machine_bus(fl_sim_machine *machine, const char *name, fl_sim_bus *own);
/* Returns the way of direct copies between two devices' memories; rate 0: no way. */
fl_sim_way fl_sim_machine_way(const fl_sim_machine *machine, const fl_device *from,
                              const fl_device *to);
/* Returns the time of the operation's end, or of its device's loss; 0: ended long ago. */
uint64_t fl_sim_machine_end(const fl_sim_machine *machine, fl_marker marker);
/* Returns the start of an operation put on the lane now. */
uint64_t fl_sim_machine_start(const fl_sim_machine *machine, const fl_sim_lane *lane,
                              const fl_marker *behind, uint32_t count);
/* Makes room for another operation; false: no memory. */
bool fl_sim_lane_reserve(fl_sim_machine *machine, fl_sim_lane *lane);
/* Adds an operation with the given end, no sooner than all earlier ends; returns its sequence. */
uint64_t fl_sim_lane_add(fl_sim_lane *lane, uint64_t end);
/* Takes the first free interval of ns from *start on, and stores its beginning in *start. False: no
 * memory. */
bool fl_sim_turn_take(fl_sim_machine *machine, fl_sim_turns *turns, uint64_t *start, uint64_t ns);
void fl_sim_bus_free(const fl_memory *memory, fl_sim_bus *bus);
/* Returns the earliest end after now; FL_TIME_NEVER: none. */
uint64_t fl_sim_lane_next(const fl_sim_lane *lane, uint64_t now);
void fl_sim_lane_free(const fl_memory *memory, fl_sim_lane *lane);

#endif
