/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "backend/sim/memory.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/sim/sim.h"
#include "base/config.h"
#include "base/error.h"
#include "observe/trace.h"

/* Largest number of items in flight, equal to the number a worker holds for a computing device. */
#define TILES 256u
#define PAGE 4096u

typedef struct memory_tile {
    uint64_t tag;
    uint64_t start, end, told; /* duration reported by poll, ns */
    /* time at which the worker sees the end; FL_TIME_NEVER: not marked */
    uint64_t seen;
    uint32_t lane;
} memory_tile;

typedef struct memory_state {
    fl_sim_port port;
    fl_sim_machine *machine;
    fl_pace pace;
    fl_sim_host host;
    uint64_t unmarked_at[FL_LANE_LIMIT]; /* launch time of a lane's oldest unmarked item */
    uint64_t looked_at;                  /* time at which the worker last saw an item's end */
    /* end of the current part of a step in which the worker has looked; 0: none */
    uint64_t goes_on_at;
    uint64_t kept_until;       /* end of the last launch that kept the worker */
    struct memory_state *home; /* state of the device owning the memory */
    /* bytes of the memory; bytes taken, under the machine's lock */
    uint64_t memory, taken;
    uint64_t began; /* start of the item last reported by poll */
    /* number of tiles[], in the order of their ends; the worker's own */
    uint32_t in_flight;
    fl_trace_ring *rings[FL_COPY_LANES]; /* null: no trace records */
    memory_tile tiles[TILES];
} memory_state;

static memory_state *state_of(const fl_device *device)
{
    return device->state;
}

/* --- Loss --- */

static bool memory_lost(const fl_device *device, filch_error *error)
{
    const memory_state *state = state_of(device);

    if (fl_sim_machine_now(state->machine) < state->port.lost_at)
        return false;
    (void)fl_sim_tell_lost(device, state->port.lost_at, error);
    return true;
}

/* --- Markers --- */

static uint64_t ns_of(double us)
{
    return (uint64_t)(us * 1e3 + 0.5);
}

/* Returns the number of a lane's items launched since its last mark; owner only. */
static uint64_t count_unmarked(const fl_sim_lane *lane)
{
    return lane->next == 0 ? 0 : lane->next - 1 - lane->marked;
}

/* Records an event after all operations of the lane; seeing the event shows the ends of all of
 * them. Under the lock; owner only. */
static void mark_lane(memory_state *state, uint32_t index)
{
    fl_sim_lane *lane = &state->port.lanes[index];
    uint64_t now = fl_sim_machine_now(state->machine);
    uint64_t seen = lane->idle_at > state->kept_until ? lane->idle_at : state->kept_until;

    if (count_unmarked(lane) == 0)
        return;
    seen = (seen > now ? seen : now) + (uint64_t)state->pace.overhead_ns;
    for (uint32_t i = 0; i < state->in_flight; i++) {
        memory_tile *tile = &state->tiles[i];

        if (tile->lane == index && tile->seen == FL_TIME_NEVER)
            tile->seen = seen;
    }
    lane->marked = lane->next - 1;
}

/* Marks the device's own lanes another lane waits for. Under the lock. */
static void mark_behind(const fl_device *device, const fl_marker *behind, uint32_t count,
                        uint32_t waiting)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t lane = fl_marker_lane(behind[i]);

        if (behind[i] != 0 && fl_marker_device(behind[i]) == device->info.index &&
            lane < device->lanes && lane != waiting)
            mark_lane(state_of(device), lane);
    }
}

static filch_status memory_mark(fl_device *device, filch_error *error)
{
    memory_state *state = state_of(device);

    if (memory_lost(device, error))
        return FILCH_DEVICE_LOST;
    state->goes_on_at = 0; /* a step ends with its mark */
    fl_mutex_lock(&state->machine->lock);
    for (uint32_t lane = 0; device->is_looked_at && lane < device->lanes; lane++)
        mark_lane(state, lane);
    fl_mutex_unlock(&state->machine->lock);
    return FILCH_OK;
}

static bool memory_is_marked(const fl_device *device, fl_marker marker)
{
    memory_state *state = state_of(device);
    uint32_t lane = fl_marker_lane(marker);
    bool is_marked;

    fl_mutex_lock(&state->machine->lock);
    is_marked = !device->is_looked_at || lane >= device->lanes ||
                state->port.lanes[lane].marked >= fl_marker_sequence(marker);
    fl_mutex_unlock(&state->machine->lock);
    return is_marked;
}

static uint64_t end_of(const fl_device *device, fl_marker marker)
{
    memory_state *state = state_of(device);
    uint64_t end;

    fl_mutex_lock(&state->machine->lock);
    end = fl_sim_machine_end(state->machine, marker);
    fl_mutex_unlock(&state->machine->lock);
    return end;
}

static filch_status memory_reached(fl_device *device, fl_marker marker, filch_error *error)
{
    const memory_state *state = state_of(device);
    uint64_t end = end_of(device, marker);

    if (end >= state->port.lost_at && memory_lost(device, error))
        return FILCH_DEVICE_LOST;
    return end <= fl_sim_machine_now(state->machine) ? FILCH_OK : FILCH_NOT_READY;
}

static bool memory_is_past(const fl_device *device, fl_marker marker)
{
    const memory_state *state = state_of(device);
    uint64_t end = end_of(device, marker);

    return end < state->port.lost_at && end <= fl_sim_machine_now(state->machine);
}

/* Passes a wait on to the operations started next. No thread can wait for a clock that the waiting
 * thread would have to move. */
static void hold(fl_sim_machine *machine, uint64_t until)
{
    uint64_t now = fl_sim_machine_now(machine);

    fl_mutex_lock(&machine->lock);
    if (machine->held_at != now || machine->held_until < until)
        machine->held_until = until;
    machine->held_at = now;
    fl_mutex_unlock(&machine->lock);
}

static filch_status memory_await(fl_device *device, fl_marker marker, filch_error *error)
{
    memory_state *state = state_of(device);
    uint64_t end = end_of(device, marker);

    if (end >= state->port.lost_at) {
        (void)fl_sim_tell_lost(device, state->port.lost_at, error);
        return FILCH_DEVICE_LOST;
    }
    if (end > fl_sim_machine_now(state->machine))
        hold(state->machine, end);
    return FILCH_OK;
}

static filch_status memory_drain(fl_device *device, filch_error *error)
{
    memory_state *state = state_of(device);
    uint64_t end = 0;

    fl_mutex_lock(&state->machine->lock);
    for (uint32_t lane = 0; lane < FL_LANES; lane++) {
        uint64_t idle_at = state->port.lanes[lane].idle_at;

        end = idle_at > end ? idle_at : end;
    }
    fl_mutex_unlock(&state->machine->lock);
    end = end < state->port.lost_at ? end : state->port.lost_at;
    if (end > fl_sim_machine_now(state->machine))
        hold(state->machine, end);
    return memory_lost(device, error) ? FILCH_DEVICE_LOST : FILCH_OK;
}

static uint64_t memory_next_event(const fl_device *device, uint64_t now)
{
    memory_state *state = state_of(device);
    uint64_t next = FL_TIME_NEVER;

    fl_mutex_lock(&state->machine->lock);
    for (uint32_t lane = 0; lane < FL_LANES; lane++) {
        uint64_t end = fl_sim_lane_next(&state->port.lanes[lane], now);

        next = end < next ? end : next;
    }
    fl_mutex_unlock(&state->machine->lock);
    return next < state->port.lost_at || state->port.lost_at <= now ? next : state->port.lost_at;
}

/* --- Work items --- */

static filch_status no_memory(const fl_device *device, filch_error *error)
{
    return fl_error_fill(error,
                         (fl_fault){.status = FILCH_OUT_OF_MEMORY, .device = device->info.name},
                         "%s: no memory for what is in flight", device->info.name);
}

/* Finds the start and the duration of an item that could start at *start. Under the lock. Each lane
 * works in its own order. One item at a time has the device; an item waiting for a copy lets items
 * of other lanes go first. */
static filch_status tile_take(memory_state *state, uint32_t lanes, double cost, uint64_t *start,
                              uint64_t *ns)
{
    double expected;

    if (lanes == 1)
        return fl_pace_take(&state->pace, *start, cost, ns);
    if (!(cost >= 0.0) || isinf(cost))
        return FILCH_INVALID_ARGUMENT;
    /* Use the speed at the item's earliest start. */
    expected = floor(fl_pace_foretell(&state->pace, *start, cost) + 0.5);
    if (expected >= 0x1p62)
        return FILCH_OVERFLOW;
    *ns = (uint64_t)expected;
    return fl_sim_turn_take(state->machine, &state->port.tiles, start, *ns) ? FILCH_OK
                                                                            : FILCH_OUT_OF_MEMORY;
}

/* Inserts an item in the order of ends; items with equal ends stay in order of arrival. */
static void tile_add(memory_state *state, memory_tile tile)
{
    uint32_t at = state->in_flight++;

    for (; at > 0 && state->tiles[at - 1].end > tile.end; at--)
        state->tiles[at] = state->tiles[at - 1];
    state->tiles[at] = tile;
}

/* Marks lanes after a launch: a lane with FL_MARK_TILES unmarked items, and every lane whose oldest
 * unmarked item is FL_MARK_NS old. */
static void mark_due(fl_device *device, uint32_t launched, uint64_t now)
{
    memory_state *state = state_of(device);

    fl_mutex_lock(&state->machine->lock);
    for (uint32_t lane = 0; lane < device->lanes; lane++) {
        uint64_t unmarked = count_unmarked(&state->port.lanes[lane]);

        if (lane == launched && unmarked == 1)
            state->unmarked_at[lane] = now;
        if (unmarked >= FL_MARK_TILES ||
            (unmarked != 0 && now - state->unmarked_at[lane] >= FL_MARK_NS)) {
            mark_lane(state, lane);
            state->goes_on_at = 0; /* as in memory_mark */
        }
    }
    fl_mutex_unlock(&state->machine->lock);
}

/* Charges a launch to the worker's time. */
static void worker_take(fl_device *device, const fl_launch *launch, uint64_t end)
{
    memory_state *state = state_of(device);
    uint64_t now = fl_sim_machine_now(state->machine);

    device->held_until = state->goes_on_at = now + ns_of(state->host.launch_us);
    for (size_t i = 0; i < state->host.keep_count; i++) {
        if (strcmp(state->host.keeps[i].name, launch->name) == 0) {
            device->held_until = state->kept_until = end + ns_of(state->host.keeps[i].us);
            state->goes_on_at = 0;
        }
    }
    mark_due(device, launch->lane, now);
}

/* Returns the earliest start of an operation put on the lane. Under the lock. */
static uint64_t start_on(const fl_device *device, uint32_t lane, const fl_marker *behind,
                         uint32_t count, double us)
{
    memory_state *state = state_of(device);
    uint64_t start = fl_sim_machine_start(state->machine, &state->port.lanes[lane], behind, count);
    uint64_t least = fl_sim_machine_now(state->machine) + ns_of(us);

    if (device->is_looked_at)
        mark_behind(device, behind, count, lane);
    return start > least ? start : least;
}

static filch_status memory_launch(fl_device *device, fl_launch *launch, uint64_t now,
                                  filch_error *error)
{
    memory_state *state = state_of(device);
    fl_sim_machine *machine = state->machine;
    fl_sim_lane *lane = &state->port.lanes[launch->lane];
    uint64_t start, ns = 0, sequence = 0;
    filch_status status;

    (void)now;
    if (memory_lost(device, error))
        return FILCH_DEVICE_LOST;
    if (state->in_flight == TILES)
        return FILCH_BUSY;
    fl_mutex_lock(&machine->lock);
    start =
        start_on(device, launch->lane, launch->behind, launch->behind_count, state->host.launch_us);
    status = fl_sim_lane_reserve(machine, lane)
                 ? tile_take(state, device->lanes, launch->cost, &start, &ns)
                 : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        sequence = fl_sim_lane_add(lane, start + ns);
    fl_mutex_unlock(&machine->lock);
    if (status == FILCH_OUT_OF_MEMORY)
        return no_memory(device, error);
    if (status != FILCH_OK)
        return fl_error_fill(error, (fl_fault){.status = status, .device = device->info.name},
                             "%s: a tile costs %g units", device->info.name, launch->cost);
    launch->marker = fl_marker_make(device->info.index, launch->lane, sequence);
    tile_add(state, (memory_tile){.tag = launch->tag,
                                  .start = start,
                                  .end = start + ns,
                                  .told = fl_pace_told(&state->pace, ns),
                                  .seen = device->is_looked_at ? FL_TIME_NEVER : start + ns,
                                  .lane = launch->lane});
    if (device->is_looked_at)
        worker_take(device, launch, start + ns);
    return FILCH_OK;
}

static filch_status memory_poll(fl_device *device, uint64_t now, uint64_t *tag, uint64_t *busy_ns,
                                uint64_t *next, filch_error *error)
{
    memory_state *state = state_of(device);
    const memory_tile oldest = state->tiles[0];
    uint32_t at = 0;

    *next = FL_TIME_NEVER;
    if (state->in_flight == 0)
        return FILCH_NOT_READY;
    if (memory_lost(device, error))
        return FILCH_DEVICE_LOST;
    /* All ends visible at once are seen in one look. The worker does not look again before
     * launching. */
    if (state->looked_at == now || (device->held_until <= now && state->goes_on_at != now))
        while (at < state->in_flight && state->tiles[at].seen > now)
            at++;
    else
        at = state->in_flight;
    if (at == state->in_flight) {
        *next = oldest.end < state->port.lost_at ? oldest.end : state->port.lost_at;
        return FILCH_NOT_READY;
    }
    *tag = state->tiles[at].tag;
    *busy_ns = state->tiles[at].told;
    state->began = state->tiles[at].start;
    if (device->is_looked_at) {
        state->looked_at = now;
        device->held_until = state->goes_on_at = now + ns_of(state->host.see_us);
    }
    state->in_flight--;
    memmove(state->tiles + at, state->tiles + at + 1,
            (state->in_flight - at) * sizeof *state->tiles);
    return FILCH_OK;
}

static double memory_tile_ns(const fl_device *device, double cost, uint64_t from)
{
    return fl_pace_foretell(&state_of(device)->pace, from, cost);
}

static uint64_t memory_began(const fl_device *device)
{
    return state_of(device)->began;
}

/* --- Copies --- */

static void copy_trace(const memory_state *state, const fl_copy *copy, uint32_t lane,
                       uint64_t start, uint64_t end)
{
    fl_trace_ring *ring = state->rings[lane - FL_LANE_IN];
    const fl_device *from = copy->from_device, *to = copy->to_device;

    if (ring == NULL)
        return;
    fl_trace_add(ring, (fl_trace_event){
                           .start = start,
                           .end = end,
                           .first = copy->width * copy->height,
                           .other = from == NULL || to == NULL ? FL_TRACE_HOST : from->info.index,
                           .kind = from == NULL               ? FL_TRACE_IN
                                   : to == NULL               ? FL_TRACE_OUT
                                   : from->place == to->place ? FL_TRACE_INNER
                                                              : FL_TRACE_PEER,
                       });
}

/* Returns the time of a copy of `bytes` over a way, in ns. apart_us: time of all columns beside
 * that of the bytes. */
static uint64_t way_ns(fl_sim_way way, double bytes, double apart_us)
{
    double ns = (way.latency_us + apart_us) * 1e3 + bytes / way.rate * (double)FL_NS_PER_S;

    return ns < 0x1p62 ? (uint64_t)(ns + 0.5) : UINT64_C(1) << 62;
}

/* Returns the number of columns taken one by one; 0: the copy is of one piece. */
static double columns_apart(const fl_copy *copy)
{
    bool is_whole =
        copy->height == 1 || (copy->from_pitch == copy->width && copy->to_pitch == copy->width);

    return is_whole ? 0.0 : (double)copy->height;
}

/* Returns the end of a copy that could begin at *start, and updates *start; 0: no memory. Under the
 * lock. */
static uint64_t copy_end(memory_state *state, const fl_copy *copy, bool is_inward, uint64_t *start)
{
    fl_sim_port *port = &state->port;
    double bytes = (double)copy->width * (double)copy->height;
    uint64_t ns;

    if (copy->to_device != NULL && copy->from_device != NULL) {
        if (copy->to_device->place == copy->from_device->place)
            return *start; /* within one memory: no link takes part */
        return *start +
               way_ns(fl_sim_machine_way(state->machine, copy->from_device, copy->to_device), bytes,
                      0.0);
    }
    fl_sim_turns *turns = &port->bus->turns[is_inward || port->link.is_half ? 0 : 1];

    ns = way_ns(is_inward ? port->link.in : port->link.out, bytes,
                columns_apart(copy) * port->link.column_us);
    return fl_sim_turn_take(state->machine, turns, start, ns) ? *start + ns : 0;
}

static filch_status memory_copy(fl_device *device, fl_copy *copy, filch_error *error)
{
    memory_state *state = state_of(device);
    fl_sim_machine *machine = state->machine;
    uint32_t lane = fl_lane_of_copy(device, copy);
    uint64_t start, end, sequence = 0;
    bool fits;

    copy->marker = 0;
    if (memory_lost(device, error))
        return FILCH_DEVICE_LOST;
    fl_mutex_lock(&machine->lock);
    start = start_on(device, lane, copy->behind, copy->behind_count, state->host.copy_us);
    end = fl_sim_machine_end(machine, copy->vacant);
    start = start > end ? start : end;
    fits = fl_sim_lane_reserve(machine, &state->port.lanes[lane]);
    end = fits ? copy_end(state, copy, lane != FL_LANE_OUT, &start) : 0;
    if (fits && end >= start)
        sequence = fl_sim_lane_add(&state->port.lanes[lane], end);
    if (sequence != 0)
        copy_trace(state, copy, lane, start, end);
    fl_mutex_unlock(&machine->lock);
    if (sequence == 0)
        return no_memory(device, error);
    copy->marker = fl_marker_make(device->info.index, lane, sequence);
    return FILCH_OK;
}

static filch_status memory_clear(fl_device *device, void *block, size_t bytes, fl_marker behind,
                                 fl_marker *marker, filch_error *error)
{
    fl_copy copy = {.to = block,
                    .from = block,
                    .to_device = device,
                    .from_device = device,
                    .width = bytes,
                    .height = 1,
                    .behind = &behind,
                    .behind_count = 1};
    filch_status status = memory_copy(device, &copy, error);

    *marker = copy.marker;
    return status;
}

/* --- Links --- */

static bool is_ours(const fl_device *device)
{
    return device->backend == &fl_sim_memory_backend;
}

static fl_sim_way way_between(const fl_device *from, const fl_device *to)
{
    if (from == NULL)
        return state_of(to)->port.link.in;
    if (to == NULL)
        return state_of(from)->port.link.out;
    return fl_sim_machine_way(state_of(from)->machine, from, to);
}

static void memory_link(fl_device *device, const fl_device *other)
{
    /* Reachability goes both ways. The receiver makes a copy, except a tile's final write-back,
     * made by the sender: both ends must have a way. */
    if (is_ours(other) && other->place < 64 && way_between(other, device).rate > 0.0 &&
        way_between(device, other).rate > 0.0)
        device->peers |= UINT64_C(1) << other->place;
}

static void memory_unlink(fl_device *device, const fl_device *other)
{
    if (other->place < 64)
        device->peers &= ~(UINT64_C(1) << other->place);
}

static filch_status memory_link_describe(const fl_device *device, const fl_device *other,
                                         filch_link *link, filch_error *error)
{
    (void)error;
    link->has_access = other == NULL || way_between(device, other).rate > 0.0;
    link->has_atomics = 0;
    link->rank = 0;
    return FILCH_OK;
}

/* Returns the rate of a large copy, as measured on real links. */
static filch_status memory_link_measure(const fl_device *from, const fl_device *to, double *rate,
                                        filch_error *error)
{
    (void)error;
    *rate = way_between(from, to).rate;
    return FILCH_OK;
}

/* --- Memory --- */

static filch_status memory_free_bytes(const fl_device *device, uint64_t *bytes)
{
    memory_state *state = state_of(device);

    fl_mutex_lock(&state->machine->lock);
    *bytes = state->home->memory - state->home->taken;
    fl_mutex_unlock(&state->machine->lock);
    return FILCH_OK;
}

static filch_status refuse_bytes(const fl_device *device, size_t bytes, filch_error *error)
{
    return fl_error_fill(
        error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY, .device = device->info.name},
        "%s: %zu bytes were asked for, which its memory has no more", device->info.name, bytes);
}

/* Takes addresses of this process with nothing behind: no other memory has equal addresses. */
static filch_status chunk_take(fl_device *device, size_t bytes, void **chunk, filch_error *error)
{
    memory_state *state = state_of(device);
    bool fits;
    void *pages;

    fl_mutex_lock(&state->machine->lock);
    fits = bytes <= state->home->memory - state->home->taken;
    state->home->taken += fits ? bytes : 0;
    fl_mutex_unlock(&state->machine->lock);
    if (!fits)
        return refuse_bytes(device, bytes, error);
    pages = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (pages == MAP_FAILED) {
        fl_mutex_lock(&state->machine->lock);
        state->home->taken -= bytes;
        fl_mutex_unlock(&state->machine->lock);
        return refuse_bytes(device, bytes, error);
    }
    *chunk = pages;
    return FILCH_OK;
}

static void chunk_give(fl_device *device, void *chunk, size_t bytes)
{
    memory_state *state = state_of(device);

    (void)munmap(chunk, bytes);
    fl_mutex_lock(&state->machine->lock);
    state->home->taken -= bytes;
    fl_mutex_unlock(&state->machine->lock);
}

static filch_status chunk_granularity(const fl_device *device, size_t *bytes, filch_error *error)
{
    (void)device;
    (void)error;
    *bytes = PAGE;
    return FILCH_OK;
}

/* Keeps the block's size in a page in front of the block. */
static filch_status memory_take(fl_device *device, size_t bytes, void **block, filch_error *error)
{
    size_t whole = (bytes + PAGE - 1) / PAGE * PAGE;
    char *pages =
        mmap(NULL, whole + PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory_state *state = state_of(device);
    bool fits = pages != MAP_FAILED && mprotect(pages, PAGE, PROT_READ | PROT_WRITE) == 0;

    if (fits) {
        fl_mutex_lock(&state->machine->lock);
        fits = whole <= state->home->memory - state->home->taken;
        state->home->taken += fits ? whole : 0;
        fl_mutex_unlock(&state->machine->lock);
    }
    if (!fits) {
        if (pages != MAP_FAILED)
            (void)munmap(pages, whole + PAGE);
        return refuse_bytes(device, bytes, error);
    }
    memcpy(pages, &whole, sizeof whole);
    *block = pages + PAGE;
    return FILCH_OK;
}

static void memory_give(fl_device *device, void *block)
{
    memory_state *state = state_of(device);
    char *pages = (char *)block - PAGE;
    size_t whole;

    memcpy(&whole, pages, sizeof whole);
    (void)munmap(pages, whole + PAGE);
    fl_mutex_lock(&state->machine->lock);
    state->home->taken -= whole;
    fl_mutex_unlock(&state->machine->lock);
}

/* --- Traces --- */

static filch_status memory_trace_start(fl_device *device, const fl_memory *memory,
                                       fl_trace_ring *const rings[FL_COPY_LANES])
{
    memory_state *state = state_of(device);

    (void)memory;
    fl_mutex_lock(&state->machine->lock);
    memcpy(state->rings, rings, sizeof state->rings);
    fl_mutex_unlock(&state->machine->lock);
    return FILCH_OK;
}

static void memory_trace_stop(fl_device *device)
{
    static fl_trace_ring *const none[FL_COPY_LANES];

    (void)memory_trace_start(device, NULL, none);
}

/* --- Beginning and end --- */

static uint64_t budget_of(uint64_t memory, const fl_settings *settings)
{
    int64_t limit = settings != NULL ? settings->memory_limit : (int64_t)FILCH_MEMORY_FIT;

    if (limit == (int64_t)FILCH_MEMORY_FIT)
        return memory; /* no other process has a part of the memory */
    if (limit == (int64_t)FILCH_MEMORY_HALF)
        return memory / 2;
    return (uint64_t)limit < memory ? (uint64_t)limit : memory;
}

static void host_free(memory_state *state, const fl_memory *memory)
{
    fl_free(memory, state->host.keeps, state->host.keep_count * sizeof *state->host.keeps);
}

/* Copies the description's host times: the description is gone when the device is used. */
static bool host_copy(memory_state *state, const fl_memory *memory, const fl_sim_host *host)
{
    size_t bytes = host->keep_count * sizeof *host->keeps;

    state->host = *host;
    if (bytes == 0)
        return true;
    state->host.keeps = fl_alloc(memory, bytes);
    if (state->host.keeps != NULL)
        memcpy(state->host.keeps, host->keeps, bytes);
    return state->host.keeps != NULL;
}

filch_status fl_sim_memory_add(fl_device *device, const fl_discovery *how,
                               const fl_sim_model *model, fl_sim_machine *machine,
                               const fl_device *home)
{
    memory_state *state = fl_alloc_zeroed(how->memory, sizeof *state);

    if (state == NULL || !host_copy(state, how->memory, &model->host)) {
        fl_free(how->memory, state, sizeof *state);
        return FILCH_OUT_OF_MEMORY;
    }
    if (fl_pace_open(&state->pace, how->memory, model->speed, model->steps, model->step_count,
                     model->overhead_us) != FILCH_OK) {
        host_free(state, how->memory);
        fl_free(how->memory, state, sizeof *state);
        return FILCH_OUT_OF_MEMORY;
    }
    state->machine = machine;
    machine->users++;
    state->pace.until_misread = model->misread_tile;
    state->pace.misread_by = model->misread_by;
    state->memory = model->memory;
    state->home = home != device ? state_of(home) : state;
    state->port.lost_at = fl_time_from_seconds(model->lost_at);
    state->port.link = home != device ? state->home->port.link : model->link;
    state->port.bus = home != device
                          ? state->home->port.bus
                          : fl_sim_machine_bus(machine, model->link.bus, &state->port.own);
    memcpy(state->port.kind, model->name, sizeof state->port.kind);
    device->state = state;
    device->backend = &fl_sim_memory_backend;
    device->calls_host_fn = false;
    device->is_looked_at = model->has_host;
    device->window = 0;
    device->lanes = device->info.compute_lanes = model->lanes;
    device->info.memory_total = state->home->memory;
    device->info.budget = budget_of(state->home->memory, how->settings);
    return FILCH_OK;
}

static filch_status memory_open(fl_device *device, const fl_discovery *how)
{
    memory_state *state = state_of(device);

    (void)how;
    state->machine->ports[device->info.index] = &state->port;
    return FILCH_OK;
}

static void memory_close(fl_device *device, const fl_memory *memory)
{
    memory_state *state = state_of(device);

    for (uint32_t lane = 0; lane < FL_LANES; lane++)
        fl_sim_lane_free(memory, &state->port.lanes[lane]);
    fl_free(memory, state->port.tiles.at,
            state->port.tiles.capacity * sizeof *state->port.tiles.at);
    fl_sim_bus_free(memory, &state->port.own);
    fl_pace_close(&state->pace, memory);
    host_free(state, memory);
    fl_sim_machine_drop(state->machine);
    fl_free(memory, state, sizeof *state);
    device->state = NULL;
}

static const fl_device_ops memory_device_ops = {
    .open = memory_open,
    .close = memory_close,
    .memory_free = memory_free_bytes,
    .lost = memory_lost,
    .item_ns = memory_tile_ns,
};

static const fl_queue_ops memory_queue_ops = {
    .launch = memory_launch,
    .poll = memory_poll,
    .began = memory_began,
};

static const fl_lane_ops memory_lane_ops = {
    .mark = memory_mark,
    .is_marked = memory_is_marked,
    .reached = memory_reached,
    .is_past = memory_is_past,
    .await = memory_await,
    .next_event = memory_next_event,
    .drain = memory_drain,
};

static const fl_copy_ops memory_copy_ops = {
    .start = memory_copy,
    .link = memory_link,
    .unlink = memory_unlink,
    .link_describe = memory_link_describe,
    .link_measure = memory_link_measure,
};

static const fl_memory_ops memory_memory_ops = {
    .take = memory_take,
    .give = memory_give,
    .clear = memory_clear,
    .chunk_granularity = chunk_granularity,
    .chunk_take = chunk_take,
    .chunk_give = chunk_give,
};

static const fl_trace_ops memory_trace_ops = {
    .start = memory_trace_start,
    .stop = memory_trace_stop,
};

const fl_backend fl_sim_memory_backend = {
    .name = "sim",
    .kind = FILCH_BACKEND_SIM,
    .is_virtual = true,
    .device = &memory_device_ops,
    .queue = &memory_queue_ops,
    .lane = &memory_lane_ops,
    .copy = &memory_copy_ops,
    .memory = &memory_memory_ops,
    .trace = &memory_trace_ops,
};
