/* SPDX-License-Identifier: Apache-2.0 */
/* What simulated devices with memories have in common: their lanes and the links between them. All
 * times are known when something is put on a lane, as lanes and links work it off in the order in
 * which it came. Any thread, under the machine's lock. */
#ifndef FL_BACKEND_SIM_MACHINE_H
#define FL_BACKEND_SIM_MACHINE_H

#include "backend/backend.h"
#include "backend/sim/describe.h"
#include "base/thread.h"

/* When each operation on a lane ends; these times never fall. */
typedef struct fl_sim_lane {
    uint64_t *ends;   /* a ring: of sequence n at n % capacity */
    size_t capacity;  /* a power of two, or 0 */
    uint64_t kept;    /* the oldest sequence kept; all before are past */
    uint64_t next;    /* sequence of the next one, from 1 */
    uint64_t idle_at; /* when the last one ends */
    uint64_t marked;  /* the newest sequence that can be waited for, where marks count */
} fl_sim_lane;

/* One copy at a time in each direction: when it is taken. A copy that waits for a tile has its time
 * when it is put on its lane; others come before it where they are over by then. */
typedef struct fl_sim_taken {
    uint64_t from, to;
} fl_sim_taken;

typedef struct fl_sim_turns {
    fl_sim_taken *at; /* apart from each other, in order */
    size_t count, capacity;
} fl_sim_turns;

typedef struct fl_sim_bus {
    char name[FL_SIM_NAME_LIMIT + 1];
    fl_sim_turns turns[2]; /* in, out */
} fl_sim_bus;

/* One device's. */
typedef struct fl_sim_port {
    fl_sim_lane lanes[FL_LANES];
    fl_sim_turns tiles; /* of several compute lanes: when one of them has the device */
    uint64_t lost_at;
    fl_sim_link link;
    fl_sim_bus own, *bus;
    char kind[FL_SIM_NAME_LIMIT + 1]; /* the name of its element, empty: none */
} fl_sim_port;

typedef struct fl_sim_machine {
    fl_mutex lock;
    const fl_memory *memory;
    const fl_clock *clock; /* null: time stands still at 0 */
    uint32_t users;
    fl_sim_port *ports[FL_DEVICE_LIMIT]; /* by the devices' indices, from open on */
    fl_sim_bus *buses;
    size_t bus_count;
    fl_sim_peer *peers;
    size_t peer_count;
    /* Who waits on the host is held up until then: what begins at the same time does no sooner. */
    uint64_t held_at, held_until;
} fl_sim_machine;

/* Null: no memory. The caller uses it. */
fl_sim_machine *fl_sim_machine_new(const fl_discovery *how, const fl_sim_description *description);
/* One user less; the last one frees it. */
void fl_sim_machine_drop(fl_sim_machine *machine);
uint64_t fl_sim_machine_now(const fl_sim_machine *machine);

/* --- Under the lock --- */

/* The bus of a link; own: where it has none. */
fl_sim_bus *fl_sim_machine_bus(fl_sim_machine *machine, const char *name, fl_sim_bus *own);
/* What copies from one device's memory straight to another's go over; rate 0: they cannot. */
fl_sim_way fl_sim_machine_way(const fl_sim_machine *machine, const fl_device *from,
                              const fl_device *to);
/* When the operation is over, or its device lost; 0: long since. */
uint64_t fl_sim_machine_end(const fl_sim_machine *machine, fl_marker marker);
/* When something put on the lane now would begin. */
uint64_t fl_sim_machine_start(const fl_sim_machine *machine, const fl_sim_lane *lane,
                              const fl_marker *behind, uint32_t count);
/* Room for one more; false: no memory. */
bool fl_sim_lane_reserve(fl_sim_machine *machine, fl_sim_lane *lane);
/* Puts an operation there that ends then, no sooner than those before; its sequence. */
uint64_t fl_sim_lane_add(fl_sim_lane *lane, uint64_t end);
/* Takes the first ns from start on in which nobody has a turn; *start: when. False: no memory. */
bool fl_sim_turn_take(fl_sim_machine *machine, fl_sim_turns *turns, uint64_t *start, uint64_t ns);
void fl_sim_bus_free(const fl_memory *memory, fl_sim_bus *bus);
/* The earliest end after now; FL_TIME_NEVER: none. */
uint64_t fl_sim_lane_next(const fl_sim_lane *lane, uint64_t now);
void fl_sim_lane_free(const fl_memory *memory, fl_sim_lane *lane);

#endif
