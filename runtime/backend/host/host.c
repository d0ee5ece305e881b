/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "backend/host/host.h"

#include <errno.h>
#include <hwloc.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"

#define WORD_BITS ((unsigned)(sizeof(unsigned long) * CHAR_BIT))
/* Enqueueing and retiring one tile on the worker's own thread; a prior, of the order measured. */
#define OVERHEAD_NS 100

/* A core with at least one hardware thread that this process may use. */
typedef struct host_core {
    unsigned cpu;  /* the hardware thread that stands for it */
    unsigned node; /* its nearest memory */
    uint32_t used; /* devices that run on it */
    bool taken;    /* by the team being formed */
} host_core;

typedef struct host_machine {
    host_core *cores; /* in topology order: near ones are neighbours */
    size_t count;
    size_t capacity;
    unsigned cpu_limit; /* above every cpu */
    uint64_t memory;
    char model[sizeof((filch_device_info *)NULL)->model];
} host_machine;

/* What the kernel wants for an affinity; has room for more processors than filch_device_info. */
typedef struct host_state {
    size_t words;
    unsigned long mask[];
} host_state;

static size_t state_bytes(size_t words)
{
    return sizeof(host_state) + words * sizeof(unsigned long);
}

static bool state_has(const host_state *state, unsigned cpu)
{
    return cpu / WORD_BITS < state->words &&
           (state->mask[cpu / WORD_BITS] >> (cpu % WORD_BITS) & 1) != 0;
}

/* The value of one line of /proc/meminfo in bytes; false where there is none. */
static bool meminfo_read(const char *name, uint64_t *bytes)
{
    FILE *file = fopen("/proc/meminfo", "re");
    size_t length = strlen(name);
    char line[128];
    bool found = false;

    if (file == NULL)
        return false;
    while (!found && fgets(line, sizeof line, file) != NULL) {
        uint64_t kib;

        if (strncmp(line, name, length) == 0 && line[length] == ':' &&
            sscanf(line + length + 1, "%" SCNu64, &kib) == 1 && kib <= UINT64_MAX / 1024) {
            *bytes = kib * 1024;
            found = true;
        }
    }
    (void)fclose(file);
    return found;
}

static bool pages_read(int name, uint64_t *bytes)
{
    long pages = sysconf(name);
    long size = sysconf(_SC_PAGESIZE);

    if (pages <= 0 || size <= 0)
        return false;
    *bytes = (uint64_t)pages * (uint64_t)size;
    return true;
}

static filch_status host_memory_free(const fl_device *device, uint64_t *bytes)
{
    (void)device;
    if (meminfo_read("MemAvailable", bytes) || pages_read(_SC_AVPHYS_PAGES, bytes))
        return FILCH_OK;
    return FILCH_SYSTEM;
}

/* Processors that this process may use: what its control group allows, and of these what any of its
 * threads is bound to (taskset). A thread that is bound for itself does not narrow the set. */
static int usable_read(hwloc_topology_t topology, hwloc_bitmap_t usable)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);

    if (hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_PROCESS) == 0 ||
        hwloc_get_cpubind(topology, usable, HWLOC_CPUBIND_THREAD) == 0) {
        if (hwloc_bitmap_and(usable, usable, allowed) != 0)
            return -1;
        if (!hwloc_bitmap_iszero(usable))
            return 0;
    }
    return hwloc_bitmap_copy(usable, allowed);
}

/* Adds the core that object describes, if the process may use it; scratch is overwritten. */
static filch_status core_add(host_machine *machine, const fl_memory *memory, hwloc_obj_t object,
                             hwloc_const_bitmap_t usable, hwloc_bitmap_t scratch)
{
    int node = hwloc_bitmap_first(object->nodeset);
    int cpu;
    filch_status status;

    if (hwloc_bitmap_and(scratch, object->cpuset, usable) != 0)
        return FILCH_OUT_OF_MEMORY;
    cpu = hwloc_bitmap_first(scratch);
    if (cpu < 0)
        return FILCH_OK;
    status = fl_array_reserve(memory, &machine->cores, &machine->capacity, machine->count + 1,
                              sizeof *machine->cores);
    if (status != FILCH_OK)
        return status;
    machine->cores[machine->count++] =
        (host_core){.cpu = (unsigned)cpu, .node = node < 0 ? 0 : (unsigned)node};
    if ((unsigned)cpu >= machine->cpu_limit)
        machine->cpu_limit = (unsigned)cpu + 1;
    return FILCH_OK;
}

static filch_status cores_read(host_machine *machine, const fl_memory *memory,
                               hwloc_topology_t topology)
{
    /* Some virtual machines and containers tell no cores; a hardware thread is one then. */
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_bitmap_t usable = hwloc_bitmap_alloc();
    hwloc_bitmap_t scratch = hwloc_bitmap_alloc();
    hwloc_obj_t object = NULL;
    filch_status status = FILCH_OK;

    if (usable == NULL || scratch == NULL || usable_read(topology, usable) != 0)
        status = FILCH_OUT_OF_MEMORY;
    while (status == FILCH_OK &&
           (object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL)
        status = core_add(machine, memory, object, usable, scratch);
    hwloc_bitmap_free(scratch);
    hwloc_bitmap_free(usable);
    return status;
}

static void model_read(host_machine *machine, hwloc_topology_t topology)
{
    hwloc_obj_t package = hwloc_get_obj_by_type(topology, HWLOC_OBJ_PACKAGE, 0);
    hwloc_obj_t source = package != NULL ? package : hwloc_get_root_obj(topology);
    const char *model = hwloc_obj_get_info_by_name(source, "CPUModel");

    (void)snprintf(machine->model, sizeof machine->model, "%s",
                   model != NULL ? model : "unknown processor");
}

/* Caches are not asked for. Packages, dies and groups are: without them every memory node would
 * hang on the machine and be near to all cores. */
static int topology_load(hwloc_topology_t topology)
{
    if (hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE) != 0)
        return -1;
    return hwloc_topology_load(topology);
}

static filch_status topology_refuse(const fl_discovery *how, int code)
{
    fl_fault fault = {
        .status = code == ENOMEM ? FILCH_OUT_OF_MEMORY : FILCH_SYSTEM,
        .native_code = code,
        .call = "hwloc_topology_load",
    };

    return fl_error_fill(how->error, fault, "the processor topology could not be read");
}

static filch_status machine_read(host_machine *machine, const fl_discovery *how)
{
    hwloc_topology_t topology;
    filch_status status;

    memset(machine, 0, sizeof *machine);
    if (hwloc_topology_init(&topology) != 0)
        return topology_refuse(how, errno);
    if (topology_load(topology) != 0) {
        status = topology_refuse(how, errno);
        hwloc_topology_destroy(topology);
        return status;
    }
    model_read(machine, topology);
    status = cores_read(machine, how->memory, topology);
    hwloc_topology_destroy(topology);
    if (status != FILCH_OK)
        (void)fl_error_fill(how->error, (fl_fault){.status = status},
                            "no memory for the list of cores");
    else if (machine->count == 0)
        status = fl_error_fill(how->error, (fl_fault){.status = FILCH_NO_DEVICE},
                               "this process may use no core");
    if (!meminfo_read("MemTotal", &machine->memory) &&
        !pages_read(_SC_PHYS_PAGES, &machine->memory))
        machine->memory = 0;
    return status;
}

static void machine_free(host_machine *machine, const fl_memory *memory)
{
    fl_free(memory, machine->cores, machine->capacity * sizeof *machine->cores);
}

/* The first memory node, in topology order, that still has size cores used no more than level
 * times; else that of the first such core. */
static unsigned node_choose(const host_machine *machine, size_t size, uint32_t level)
{
    unsigned fallback = machine->cores[0].node;
    bool has_fallback = false;

    for (size_t first = 0; first < machine->count; first++) {
        size_t here = 0;

        if (machine->cores[first].used > level)
            continue;
        for (size_t i = first; i < machine->count; i++)
            here += machine->cores[i].node == machine->cores[first].node &&
                    machine->cores[i].used <= level;
        if (here >= size)
            return machine->cores[first].node;
        if (!has_fallback)
            fallback = machine->cores[first].node;
        has_fallback = true;
    }
    return fallback;
}

/* Is a the better core for a team on node? The least used first, then near ones; the lower index
 * wins ties because it is asked first. */
static bool core_better(const host_core *a, const host_core *b, unsigned node)
{
    if (a->used != b->used)
        return a->used < b->used;
    return a->node == node && b->node != node;
}

/* Marks the cores of the next device in *state and as used. A team larger than the machine shares
 * its cores: it gets each once. */
static void team_place(host_machine *machine, uint32_t team, host_state *state)
{
    size_t size = team < machine->count ? team : machine->count;
    uint32_t level = UINT32_MAX;
    unsigned node;

    for (size_t i = 0; i < machine->count; i++) {
        machine->cores[i].taken = false;
        if (machine->cores[i].used < level)
            level = machine->cores[i].used;
    }
    node = node_choose(machine, size, level);
    for (size_t picked = 0; picked < size; picked++) {
        host_core *best = NULL;

        for (size_t i = 0; i < machine->count; i++) {
            host_core *candidate = &machine->cores[i];

            if (!candidate->taken && (best == NULL || core_better(candidate, best, node)))
                best = candidate;
        }
        best->taken = true;
        best->used++;
        state->mask[best->cpu / WORD_BITS] |= 1ul << (best->cpu % WORD_BITS);
    }
}

static void device_describe(fl_device *device, const host_machine *machine, const host_state *state,
                            uint32_t ordinal, uint32_t team)
{
    filch_device_info *info = &device->info;

    info->size = sizeof *info;
    (void)snprintf(info->name, sizeof info->name, "host:%" PRIu32, ordinal);
    memcpy(info->model, machine->model, sizeof info->model);
    info->backend = FILCH_BACKEND_HOST;
    info->ordinal = ordinal;
    info->team = team;
    info->memory_total = machine->memory;
    for (unsigned cpu = 0; cpu < sizeof info->affinity * CHAR_BIT; cpu++) {
        if (state_has(state, cpu))
            info->affinity[cpu / 64] |= UINT64_C(1) << (cpu % 64);
    }
    device->backend = &fl_host_backend;
    device->place = 0;
    device->implementations = FL_IMPL_HOST_FN;
    device->is_synchronous = true;
    device->window = 1;
    device->overhead_ns = OVERHEAD_NS;
}

static filch_status device_add(const fl_memory *memory, host_machine *machine, uint32_t ordinal,
                               uint32_t team, fl_device **devices, size_t *count, size_t *capacity)
{
    size_t words = machine->cpu_limit / WORD_BITS + 1;
    filch_status status = fl_array_reserve(memory, devices, capacity, *count + 1, sizeof **devices);
    host_state *state;

    if (status != FILCH_OK)
        return status;
    state = fl_alloc_zeroed(memory, state_bytes(words));
    if (state == NULL)
        return FILCH_OUT_OF_MEMORY;
    state->words = words;
    team_place(machine, team, state);

    fl_device *device = &(*devices)[*count];

    memset(device, 0, sizeof *device);
    device->state = state;
    device_describe(device, machine, state, ordinal, team);
    (*count)++;
    return FILCH_OK;
}

static void host_close(fl_device *device, const fl_memory *memory)
{
    host_state *state = device->state;

    if (state != NULL)
        fl_free(memory, state, state_bytes(state->words));
    device->state = NULL;
}

/* Notes the cores of host devices that earlier items of the specification took; returns how many
 * devices these are. */
static uint32_t earlier_note(host_machine *machine, const fl_device *devices, size_t count)
{
    uint32_t found = 0;

    for (size_t d = 0; d < count; d++) {
        if (devices[d].backend != &fl_host_backend)
            continue;
        found++;
        for (size_t i = 0; i < machine->count; i++)
            machine->cores[i].used += state_has(devices[d].state, machine->cores[i].cpu);
    }
    return found;
}

static filch_status host_enumerate(const fl_discovery *how, const fl_device_spec *spec,
                                   fl_device **devices, size_t *count, size_t *capacity)
{
    size_t before = *count;
    uint32_t team = spec->team > 0 ? spec->team : 1;
    host_machine machine;
    filch_status status = machine_read(&machine, how);
    size_t wanted = spec->has_number ? spec->number : machine.count;

    if (status == FILCH_OK)
        status = fl_backend_check_limit(how, before, wanted, (fl_fault){.line = spec->column});
    if (status == FILCH_OK) {
        uint32_t ordinal = earlier_note(&machine, *devices, before);

        for (size_t i = 0; i < wanted && status == FILCH_OK; i++)
            status = device_add(how->memory, &machine, ordinal++, team, devices, count, capacity);
        if (status != FILCH_OK)
            (void)fl_error_fill(how->error, (fl_fault){.status = status},
                                "no memory for %zu host devices", wanted);
    }
    if (status != FILCH_OK) {
        while (*count > before)
            host_close(&(*devices)[--*count], how->memory);
    }
    machine_free(&machine, how->memory);
    return status;
}

/* Called on threads that filch made only: nobody else's affinity changes. */
static filch_status host_bind(fl_device *device)
{
    const host_state *state = device->state;

    if (sched_setaffinity(0, state->words * sizeof(unsigned long),
                          (const cpu_set_t *)(const void *)state->mask) != 0)
        return FILCH_SYSTEM;
    return FILCH_OK;
}

const fl_backend fl_host_backend = {
    .name = "host",
    .kind = FILCH_BACKEND_HOST,
    .enumerate = host_enumerate,
    .close = host_close,
    .bind = host_bind,
    .memory_free = host_memory_free,
};
