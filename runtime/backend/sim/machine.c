/* SPDX-License-Identifier: Apache-2.0 */
#include "backend/sim/machine.h"

#include <stdio.h>
#include <string.h>

#define FEWEST_ENDS 64

/* --- Beginning and end --- */

static void machine_free(fl_sim_machine *machine)
{
    const fl_memory *memory = machine->memory;

    for (size_t i = 0; machine->buses != NULL && i < machine->bus_count; i++)
        fl_sim_bus_free(memory, &machine->buses[i]);
    fl_free(memory, machine->buses, machine->bus_count * sizeof *machine->buses);
    fl_free(memory, machine->peers, machine->peer_count * sizeof *machine->peers);
    fl_free(memory, machine, sizeof *machine);
}

static void buses_fill(fl_sim_machine *machine, const fl_sim_description *description)
{
    size_t count = 0;

    for (size_t m = 0; m < description->count; m++) {
        const char *name = description->models[m].link.bus;
        size_t at = 0;

        while (at < count && strcmp(machine->buses[at].name, name) != 0)
            at++;
        if (name[0] != '\0' && at == count)
            memcpy(machine->buses[count++].name, name, sizeof machine->buses->name);
    }
}

fl_sim_machine *fl_sim_machine_new(const fl_discovery *how, const fl_sim_description *description)
{
    fl_sim_machine *machine = fl_alloc_zeroed(how->memory, sizeof *machine);

    if (machine == NULL)
        return NULL;
    machine->memory = how->memory;
    machine->clock = how->clock;
    machine->users = 1;
    machine->bus_count = description->count;
    machine->peer_count = description->peer_count;
    machine->buses = fl_alloc_zeroed(how->memory, machine->bus_count * sizeof *machine->buses);
    if (machine->peer_count != 0)
        machine->peers = fl_alloc(how->memory, machine->peer_count * sizeof *machine->peers);
    if (machine->buses == NULL || (machine->peers == NULL && machine->peer_count != 0) ||
        fl_mutex_init(&machine->lock) != FILCH_OK) {
        machine_free(machine);
        return NULL;
    }
    buses_fill(machine, description);
    if (machine->peer_count != 0)
        memcpy(machine->peers, description->peers, machine->peer_count * sizeof *machine->peers);
    return machine;
}

void fl_sim_machine_drop(fl_sim_machine *machine)
{
    if (--machine->users != 0) /* no lock needed: one thread at a time opens and closes devices */
        return;
    fl_mutex_fini(&machine->lock);
    machine_free(machine);
}

uint64_t fl_sim_machine_now(const fl_sim_machine *machine)
{
    return machine->clock != NULL ? fl_clock_now(machine->clock) : 0;
}

/* --- Links --- */

fl_sim_bus *fl_sim_machine_bus(fl_sim_machine *machine, const char *name, fl_sim_bus *own)
{
    for (size_t i = 0; i < machine->bus_count && name[0] != '\0'; i++) {
        if (strcmp(machine->buses[i].name, name) == 0)
            return &machine->buses[i];
    }
    return own;
}

void fl_sim_bus_free(const fl_memory *memory, fl_sim_bus *bus)
{
    for (int side = 0; side < 2; side++)
        fl_free(memory, bus->turns[side].at,
                bus->turns[side].capacity * sizeof *bus->turns[side].at);
}

bool fl_sim_turn_take(fl_sim_machine *machine, fl_sim_turns *turns, uint64_t *start, uint64_t ns)
{
    uint64_t now = fl_sim_machine_now(machine);
    size_t past = 0, at = 0;

    if (fl_array_reserve(machine->memory, &turns->at, &turns->capacity, turns->count + 1,
                         sizeof *turns->at) != FILCH_OK)
        return false;
    while (past < turns->count && turns->at[past].to <= now)
        past++;
    turns->count -= past;
    memmove(turns->at, turns->at + past, turns->count * sizeof *turns->at);
    for (; at < turns->count && turns->at[at].from < *start + ns; at++)
        *start = *start > turns->at[at].to ? *start : turns->at[at].to;
    if (at > 0 && turns->at[at - 1].to == *start) {
        turns->at[at - 1].to += ns;
        return true;
    }
    memmove(turns->at + at + 1, turns->at + at, (turns->count - at) * sizeof *turns->at);
    turns->at[at] = (fl_sim_taken){*start, *start + ns};
    turns->count++;
    return true;
}

static bool is_called(const fl_sim_machine *machine, const fl_device *device, const char *name)
{
    return strcmp(device->info.name, name) == 0 ||
           strcmp(machine->ports[device->info.index]->kind, name) == 0;
}

fl_sim_way fl_sim_machine_way(const fl_sim_machine *machine, const fl_device *from,
                              const fl_device *to)
{
    for (size_t i = 0; i < machine->peer_count; i++) {
        const fl_sim_peer *peer = &machine->peers[i];

        if (is_called(machine, from, peer->from) && is_called(machine, to, peer->to))
            return peer->way;
    }
    return (fl_sim_way){0};
}

/* --- Times --- */

uint64_t fl_sim_machine_end(const fl_sim_machine *machine, fl_marker marker)
{
    const fl_sim_port *port = machine->ports[fl_marker_device(marker)];
    const fl_sim_lane *lane = &port->lanes[fl_marker_lane(marker)];
    uint64_t sequence = fl_marker_sequence(marker), end;

    if (marker == 0 || sequence < lane->kept)
        return 0;
    end = lane->ends[sequence & (lane->capacity - 1)];
    return end < port->lost_at ? end : port->lost_at;
}

uint64_t fl_sim_machine_start(const fl_sim_machine *machine, const fl_sim_lane *lane,
                              const fl_marker *behind, uint32_t count)
{
    uint64_t now = fl_sim_machine_now(machine);
    uint64_t start =
        now == machine->held_at && machine->held_until > now ? machine->held_until : now;

    start = start > lane->idle_at ? start : lane->idle_at;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t end = fl_sim_machine_end(machine, behind[i]);

        start = start > end ? start : end;
    }
    return start;
}

/* Forgets past operations, and makes room for one more. */
bool fl_sim_lane_reserve(fl_sim_machine *machine, fl_sim_lane *lane)
{
    uint64_t now = fl_sim_machine_now(machine);
    size_t capacity = lane->capacity != 0 ? 2 * lane->capacity : FEWEST_ENDS;
    uint64_t *ends;

    if (lane->next == 0)
        lane->next = lane->kept = 1;
    while (lane->kept < lane->next && lane->ends[lane->kept & (lane->capacity - 1)] <= now)
        lane->kept++;
    if (lane->next - lane->kept < lane->capacity)
        return true;
    ends = fl_alloc(machine->memory, capacity * sizeof *ends);
    if (ends == NULL)
        return false;
    for (uint64_t n = lane->kept; n < lane->next; n++)
        ends[n & (capacity - 1)] = lane->ends[n & (lane->capacity - 1)];
    fl_sim_lane_free(machine->memory, lane);
    lane->ends = ends;
    lane->capacity = capacity;
    return true;
}

uint64_t fl_sim_lane_add(fl_sim_lane *lane, uint64_t end)
{
    lane->ends[lane->next & (lane->capacity - 1)] = end;
    lane->idle_at = end;
    return lane->next++;
}

uint64_t fl_sim_lane_next(const fl_sim_lane *lane, uint64_t now)
{
    for (uint64_t n = lane->kept; n < lane->next; n++) {
        uint64_t end = lane->ends[n & (lane->capacity - 1)];

        if (end > now)
            return end;
    }
    return FL_TIME_NEVER;
}

void fl_sim_lane_free(const fl_memory *memory, fl_sim_lane *lane)
{
    fl_free(memory, lane->ends, lane->capacity * sizeof *lane->ends);
    lane->ends = NULL;
    lane->capacity = 0;
}
