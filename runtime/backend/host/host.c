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
#include "base/thread.h"

#define WORD_BITS ((unsigned)(sizeof(unsigned long) * CHAR_BIT))
/* Enqueueing and retiring a work item on the worker's own thread; a prior, of the order
 * measured. */
#define OVERHEAD_NS 100

/* A core with at least one hardware thread usable by this process, or a hardware thread named by
 * the specification. */
typedef struct host_core {
    unsigned cpu;  /* hardware thread representing the core */
    unsigned node; /* nearest NUMA node; 0 for a named CPU */
    uint32_t used; /* number of devices running on the core */
    fl_cache caches[FL_CACHE_LEVELS];
    bool taken; /* taken by the team being formed */
} host_core;

typedef struct host_machine {
    host_core *cores; /* topology order: near cores are neighbours; or in the order named */
    size_t count;
    size_t capacity;
    unsigned cpu_limit;    /* above every usable or named CPU */
    hwloc_bitmap_t usable; /* CPUs usable by the process */
    uint64_t memory;
    char model[sizeof((filch_device_info *)NULL)->model];
} host_machine;

/* Affinity mask for the kernel; has room for more processors than filch_device_info. */
typedef struct host_state {
    size_t words;
    unsigned node; /* NUMA node of the first core; the caches are the first core's, too */
    fl_cache caches[FL_CACHE_LEVELS];
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

static void state_add(host_state *state, unsigned cpu)
{
    state->mask[cpu / WORD_BITS] |= 1ul << (cpu % WORD_BITS);
}

/* Reads a line of /proc/meminfo in bytes; returns false for a missing line. */
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

/* Reads the processors usable by this process: the intersection of the control group's processors
 * and those any thread of the process is bound to (taskset). A thread bound individually does not
 * narrow the set. */
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

/* Reads the L2 and the L3 of a hardware thread, as far as known. */
static void caches_read(hwloc_topology_t topology, unsigned cpu, fl_cache *caches)
{
    static const hwloc_obj_type_t types[FL_CACHE_LEVELS] = {HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE};
    hwloc_obj_t thread = hwloc_get_pu_obj_by_os_index(topology, cpu);

    for (size_t i = 0; i < FL_CACHE_LEVELS && thread != NULL; i++) {
        hwloc_obj_t cache = hwloc_get_ancestor_obj_by_type(topology, types[i], thread);

        if (cache != NULL && cache->attr != NULL)
            caches[i] = (fl_cache){cache->logical_index + 1, cache->attr->cache.size};
    }
}

static filch_status core_add(host_machine *machine, const fl_memory *memory,
                             hwloc_topology_t topology, host_core core)
{
    filch_status status = fl_array_reserve(memory, &machine->cores, &machine->capacity,
                                           machine->count + 1, sizeof *machine->cores);

    caches_read(topology, core.cpu, core.caches);
    if (status == FILCH_OK)
        machine->cores[machine->count++] = core;
    return status;
}

/* Adds the core described by object, if the process may use the core; overwrites scratch. */
static filch_status object_add(host_machine *machine, const fl_memory *memory,
                               hwloc_topology_t topology, hwloc_obj_t object,
                               hwloc_bitmap_t scratch)
{
    int node = hwloc_bitmap_first(object->nodeset);
    int cpu;

    if (hwloc_bitmap_and(scratch, object->cpuset, machine->usable) != 0)
        return FILCH_OUT_OF_MEMORY;
    cpu = hwloc_bitmap_first(scratch);
    if (cpu < 0)
        return FILCH_OK;
    return core_add(machine, memory, topology,
                    (host_core){.cpu = (unsigned)cpu, .node = node < 0 ? 0 : (unsigned)node});
}

static filch_status cores_read(host_machine *machine, const fl_memory *memory,
                               hwloc_topology_t topology)
{
    /* Some virtual machines and containers report no cores: count hardware threads as cores. */
    hwloc_obj_type_t type =
        hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_CORE) > 0 ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    hwloc_bitmap_t scratch = hwloc_bitmap_alloc();
    hwloc_obj_t object = NULL;
    filch_status status = scratch == NULL ? FILCH_OUT_OF_MEMORY : FILCH_OK;

    while (status == FILCH_OK &&
           (object = hwloc_get_next_obj_by_type(topology, type, object)) != NULL)
        status = object_add(machine, memory, topology, object, scratch);
    hwloc_bitmap_free(scratch);
    return status;
}

/* Reports a CPU named by the specification but missing in the process's control group. */
static filch_status cpu_refuse(hwloc_topology_t topology, const fl_named_cpu *named,
                               filch_error *error)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    hwloc_const_cpuset_t all = hwloc_topology_get_complete_cpuset(topology);
    bool is_there = hwloc_bitmap_isset(all, named->cpu) != 0;
    fl_fault fault = {.status = is_there ? FILCH_NO_DEVICE : FILCH_UNKNOWN_ORDINAL,
                      .line = named->column};
    char list[80];

    (void)hwloc_bitmap_list_snprintf(list, sizeof list, is_there ? allowed : all);
    return fl_error_fill(error, fault, "device specification, character %u: %s CPU %u, but %s%s",
                         named->column,
                         is_there ? "this process may not use" : "this machine does not have",
                         named->cpu, list, strlen(list) + 1 == sizeof list ? "..." : "");
}

/* Reads the CPUs named by the specification, every CPU as a core of its own. A process mask
 * narrower than the control group's does not count: OpenMP binds a main thread before the program
 * begins, and specifications name CPUs outside OpenMP's cores. */
static filch_status named_read(host_machine *machine, const fl_discovery *how,
                               hwloc_topology_t topology, const fl_device_spec *spec)
{
    hwloc_const_cpuset_t allowed = hwloc_topology_get_allowed_cpuset(topology);
    filch_status status = FILCH_OK;

    for (uint32_t i = 0; i < spec->cpu_count && status == FILCH_OK; i++) {
        const unsigned cpu = spec->cpus[i].cpu;

        if (hwloc_bitmap_isset(allowed, cpu) == 0)
            return cpu_refuse(topology, &spec->cpus[i], how->error);
        if (cpu >= machine->cpu_limit)
            machine->cpu_limit = cpu + 1;
        status = core_add(machine, how->memory, topology, (host_core){.cpu = cpu});
    }
    return status;
}

static filch_status cpus_read(host_machine *machine, const fl_discovery *how,
                              hwloc_topology_t topology, const fl_device_spec *spec)
{
    filch_status status;

    machine->usable = hwloc_bitmap_alloc();
    if (machine->usable == NULL || usable_read(topology, machine->usable) != 0)
        status = FILCH_OUT_OF_MEMORY;
    else if (spec->cpu_count > 0)
        status = named_read(machine, how, topology, spec);
    else
        status = cores_read(machine, how->memory, topology);
    if (status == FILCH_OUT_OF_MEMORY)
        (void)fl_error_fill(how->error, (fl_fault){.status = status},
                            "no memory for the list of cores");
    else if (status == FILCH_OK && machine->count == 0)
        status = fl_error_fill(how->error, (fl_fault){.status = FILCH_NO_DEVICE},
                               "this process may use no core");
    if (status == FILCH_OK && hwloc_bitmap_last(machine->usable) >= (int)machine->cpu_limit)
        machine->cpu_limit = (unsigned)hwloc_bitmap_last(machine->usable) + 1;
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

/* hwloc's x86 component binds the calling thread to every processor in turn. The thread is the
 * host's, and on a busy machine every turn waits. Linux reports everything needed. With a version
 * unable to leave the component out, topology_discover uses a thread of filch. */
static int binding_forbid(hwloc_topology_t topology)
{
#if HWLOC_API_VERSION >= 0x00020500
    if (hwloc_topology_set_flags(topology, HWLOC_TOPOLOGY_FLAG_DONT_CHANGE_BINDING) == 0)
        return 0; /* a library older than the headers refuses the flag */
#endif
#if HWLOC_API_VERSION >= 0x00020100
    return hwloc_topology_set_components(topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, "x86");
#else
    (void)topology;
    return 0;
#endif
}

#if HWLOC_API_VERSION >= 0x00020100

static int topology_discover(hwloc_topology_t topology)
{
    return hwloc_topology_load(topology);
}

#else

typedef struct discovery {
    hwloc_topology_t topology;
    int code; /* errno of a failure */
} discovery;

static int discovery_run(void *arg)
{
    discovery *own = arg;

    own->code = hwloc_topology_load(own->topology) == 0 ? 0 : errno;
    return 0;
}

static int topology_discover(hwloc_topology_t topology)
{
    discovery own = {.topology = topology};
    fl_thread thread;

    if (fl_thread_start(&thread, discovery_run, &own) != FILCH_OK) {
        errno = EAGAIN;
        return -1;
    }
    fl_thread_join(thread);
    errno = own.code;
    return own.code == 0 ? 0 : -1;
}

#endif

/* Keeps packages, dies and groups, too: without their levels every NUMA node would hang on the
 * machine and be near to every core. */
static int topology_load(hwloc_topology_t topology)
{
    if (binding_forbid(topology) != 0 ||
        hwloc_topology_set_cache_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL) != 0)
        return -1;
    return topology_discover(topology);
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

static filch_status machine_read(host_machine *machine, const fl_discovery *how,
                                 const fl_device_spec *spec)
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
    status = cpus_read(machine, how, topology, spec);
    hwloc_topology_destroy(topology);
    if (!meminfo_read("MemTotal", &machine->memory) &&
        !pages_read(_SC_PHYS_PAGES, &machine->memory))
        machine->memory = 0;
    return status;
}

static void machine_free(host_machine *machine, const fl_memory *memory)
{
    hwloc_bitmap_free(machine->usable);
    fl_free(memory, machine->cores, machine->capacity * sizeof *machine->cores);
}

/* Returns the first NUMA node, in topology order, with at least `size` cores used at most `level`
 * times; else the node of the first core used at most `level` times. */
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

/* Returns whether core a suits a team on node better than core b: least used first, then near
 * cores. The caller asks for the lower index first; ties therefore go to the lower index. */
static bool core_better(const host_core *a, const host_core *b, unsigned node)
{
    if (a->used != b->used)
        return a->used < b->used;
    return a->node == node && b->node != node;
}

/* Marks the cores of the next device in *state and as used. A team larger than the machine shares
 * its cores: every core is marked once. */
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
        if (picked == 0) {
            state->node = best->node;
            memcpy(state->caches, best->caches, sizeof state->caches);
        }
        best->taken = true;
        best->used++;
        state_add(state, best->cpu);
    }
}

/* Places a device bound to no core: its thread may run on every CPU named by the specification, or
 * else on every CPU usable by the process. */
static void anywhere_place(const host_machine *machine, const fl_device_spec *spec,
                           host_state *state)
{
    for (uint32_t i = 0; i < spec->cpu_count; i++)
        state_add(state, spec->cpus[i].cpu);
    for (int cpu = -1; spec->cpu_count == 0;) {
        cpu = hwloc_bitmap_next(machine->usable, cpu);
        if (cpu < 0)
            break;
        state_add(state, (unsigned)cpu);
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
    device->node = state->node;
    memcpy(device->caches, state->caches, sizeof device->caches);
    device->implementations = FL_IMPL_HOST_FN;
    device->is_synchronous = true;
    device->window = 1;
    device->overhead_ns = OVERHEAD_NS;
}

static filch_status device_add(const fl_discovery *how, const fl_device_spec *spec,
                               host_machine *machine, uint32_t ordinal, fl_device **devices,
                               size_t *count, size_t *capacity)
{
    const fl_memory *memory = how->memory;
    const uint32_t team = spec->team > 0 ? spec->team : 1;
    const bool is_pinned =
        !spec->is_unbound && (how->settings == NULL || how->settings->bind != FILCH_BIND_NONE);
    size_t words = machine->cpu_limit / WORD_BITS + 1;
    filch_status status = fl_array_reserve(memory, devices, capacity, *count + 1, sizeof **devices);
    host_state *state;

    if (status != FILCH_OK)
        return status;
    state = fl_alloc_zeroed(memory, state_bytes(words));
    if (state == NULL)
        return FILCH_OUT_OF_MEMORY;
    state->words = words;
    if (is_pinned)
        team_place(machine, team, state);
    else
        anywhere_place(machine, spec, state);

    fl_device *device = &(*devices)[*count];

    memset(device, 0, sizeof *device);
    device->state = state;
    device->is_pinned = is_pinned;
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

/* Notes the cores taken by host devices of earlier items of the specification; returns the number
 * of those devices. */
static uint32_t earlier_note(host_machine *machine, const fl_device *devices, size_t count)
{
    uint32_t found = 0;

    for (size_t d = 0; d < count; d++) {
        if (devices[d].backend != &fl_host_backend)
            continue;
        found++;
        for (size_t i = 0; i < machine->count && devices[d].is_pinned; i++)
            machine->cores[i].used += state_has(devices[d].state, machine->cores[i].cpu);
    }
    return found;
}

static filch_status host_enumerate(const fl_discovery *how, const fl_device_spec *spec,
                                   fl_device **devices, size_t *count, size_t *capacity)
{
    size_t before = *count;
    host_machine machine;
    filch_status status = machine_read(&machine, how, spec);
    size_t wanted = spec->has_number ? spec->number : machine.count;

    if (status == FILCH_OK)
        status = fl_backend_check_limit(how, before, wanted, (fl_fault){.line = spec->column});
    if (status == FILCH_OK) {
        uint32_t ordinal = earlier_note(&machine, *devices, before);

        for (size_t i = 0; i < wanted && status == FILCH_OK; i++)
            status = device_add(how, spec, &machine, ordinal++, devices, count, capacity);
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

/* Runs only on threads made by filch: the affinity of foreign threads never changes. */
static filch_status host_bind(fl_device *device)
{
    const host_state *state = device->state;

    if (sched_setaffinity(0, state->words * sizeof(unsigned long),
                          (const cpu_set_t *)(const void *)state->mask) != 0)
        return FILCH_SYSTEM;
    return FILCH_OK;
}

static const fl_device_ops host_device_ops = {
    .enumerate = host_enumerate,
    .close = host_close,
    .bind = host_bind,
    .memory_free = host_memory_free,
};

const fl_backend fl_host_backend = {
    .name = "host",
    .kind = FILCH_BACKEND_HOST,
    .device = &host_device_ops,
};
