/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pool.h"

#include <stddef.h>
#include <string.h>

#include "base/error.h"
#include "base/hash.h"
#include "device/score.h"
#include "device/spec.h"

/* Returns whether two lists of CPUs have a common CPU. */
static bool cpus_overlap(const fl_device_spec *a, const fl_device_spec *b)
{
    uint64_t named[FL_CPU_NUMBERS / 64] = {0};
    bool found = false;

    for (uint32_t i = 0; i < a->cpu_count; i++)
        named[a->cpus[i].cpu / 64] |= UINT64_C(1) << (a->cpus[i].cpu % 64);
    for (uint32_t i = 0; i < b->cpu_count && !found; i++)
        found = (named[b->cpus[i].cpu / 64] >> (b->cpus[i].cpu % 64) & 1) != 0;
    return found;
}

/* Returns whether two items of host devices overlap. Two items of equal team size are distinct only
 * where both items name CPUs, and none in common; an item "host" overlaps every item. */
static bool hosts_overlap(const fl_device_spec *a, const fl_device_spec *b)
{
    if ((!a->has_number && a->cpu_count == 0) || (!b->has_number && b->cpu_count == 0))
        return true;
    if ((a->team > 0 ? a->team : 1) != (b->team > 0 ? b->team : 1))
        return false;
    return a->cpu_count == 0 || b->cpu_count == 0 || cpus_overlap(a, b);
}

/* Returns whether two items of a specification name a common device. An item names devices of a
 * backend, or every device of the backend. */
static bool items_overlap(const fl_device_spec *a, const fl_device_spec *b)
{
    if (a->backend != b->backend)
        return false;
    if (a->backend == FILCH_BACKEND_SIM)
        return strcmp(a->file, b->file) == 0;
    if (a->backend == FILCH_BACKEND_HOST)
        return hosts_overlap(a, b);
    return !a->has_number || !b->has_number || a->number == b->number;
}

/* Checks the items against one another, before the search for devices. */
static filch_status items_check(const fl_device_spec *items, size_t count, filch_error *error)
{
    for (size_t i = 0; i < count; i++) {
        const fl_backend *backend = fl_backend_by_kind(items[i].backend);
        fl_fault fault = {.status = FILCH_UNSUPPORTED, .line = items[i].column};

        if (backend == NULL)
            return fl_error_fill(
                error, fault, "device specification, character %u: this build has no %s backend",
                items[i].column, items[i].backend == FILCH_BACKEND_CUDA ? "CUDA" : "such");
        if (backend->is_virtual != fl_backend_by_kind(items[0].backend)->is_virtual)
            return fl_error_fill(error, fault,
                                 "device specification, character %u: simulated devices do not mix "
                                 "with real ones",
                                 items[i].column);
        fault.status = FILCH_DUPLICATE_DEVICE;
        for (size_t j = 0; j < i; j++) {
            if (items_overlap(&items[i], &items[j]))
                return fl_error_fill(error, fault,
                                     "device specification, character %u: these devices are named "
                                     "already at character %u",
                                     items[i].column, items[j].column);
        }
    }
    return FILCH_OK;
}

static filch_status item_enumerate(fl_pool *pool, const fl_device_spec *item,
                                   const fl_discovery *how)
{
    const fl_backend *backend = fl_backend_by_kind(item->backend);

    return backend->device->enumerate(how, item, &pool->devices, &pool->count, &pool->capacity);
}

/* Checks for unique names, with a hash table, because a thousand devices are possible. file: file
 * that describes the newest devices, or empty. */
static filch_status names_check(const fl_pool *pool, const char *file, const fl_discovery *how)
{
    filch_status status = FILCH_OK;
    size_t slot_count = 16;
    uint32_t *slots; /* index + 1; 0: empty */

    while (slot_count < 2 * pool->count)
        slot_count *= 2;
    slots = fl_alloc_zeroed(how->memory, slot_count * sizeof *slots);
    if (slots == NULL)
        return fl_error_fill(how->error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory to compare device names");
    for (size_t i = 0; i < pool->count && status == FILCH_OK; i++) {
        const char *name = pool->devices[i].info.name;
        size_t at = (size_t)fl_hash_mix(fl_hash_text(FL_HASH_START, name)) & (slot_count - 1);

        for (; slots[at] != 0 && status == FILCH_OK; at = (at + 1) & (slot_count - 1)) {
            if (strcmp(pool->devices[slots[at] - 1].info.name, name) == 0)
                status = fl_error_fill(
                    how->error,
                    (fl_fault){.status = FILCH_DUPLICATE_DEVICE, .device = name, .label = file},
                    "two devices are called '%s'%s%s", name, file[0] != '\0' ? "; in " : "", file);
        }
        slots[at] = (uint32_t)i + 1;
    }
    fl_free(how->memory, slots, slot_count * sizeof *slots);
    return status;
}

static filch_status spec_enumerate(fl_pool *pool, const char *spec, const fl_discovery *how)
{
    const size_t bytes = FL_SPEC_ITEMS * sizeof(fl_device_spec);
    fl_device_spec *items = fl_alloc(how->memory, bytes);
    size_t count = 0;
    filch_status status;

    if (items == NULL)
        return fl_error_fill(how->error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                             "no memory to read the device specification");
    status = fl_spec_parse(spec, items, &count, how->error);
    if (status == FILCH_OK)
        status = items_check(items, count, how->error);
    for (size_t i = 0; i < count && status == FILCH_OK; i++) {
        status = item_enumerate(pool, &items[i], how);
        if (status == FILCH_OK)
            status = names_check(pool, items[i].file, how);
    }
    fl_free(how->memory, items, bytes);
    return status;
}

static void devices_number(fl_pool *pool)
{
    pool->place_count = 1;
    for (size_t i = 0; i < pool->count; i++) {
        fl_device *device = &pool->devices[i];

        device->info.index = (uint32_t)i;
        device->info.place = device->place;
        if (device->place >= pool->place_count)
            pool->place_count = device->place + 1;
    }
    pool->is_virtual = pool->count > 0 && pool->devices[0].backend->is_virtual;
}

/* Takes a closed device out. Removes the device's place, too, if no further device has the
 * place. */
static void device_remove(fl_pool *pool, size_t at)
{
    const uint32_t place = pool->devices[at].place;
    bool is_shared = place == 0;

    pool->count--;
    memmove(&pool->devices[at], &pool->devices[at + 1], (pool->count - at) * sizeof *pool->devices);
    for (size_t i = 0; i < pool->count; i++)
        is_shared = is_shared || pool->devices[i].place == place;
    for (size_t i = 0; i < pool->count && !is_shared; i++)
        pool->devices[i].place -= pool->devices[i].place > place;
}

/* Opens the devices. A device that fails to open makes the call fail only where the specification
 * names the device by itself; otherwise the device is left out. */
static filch_status devices_open(fl_pool *pool, const fl_discovery *how)
{
    for (size_t i = 0; i < pool->count;) {
        fl_device *device = &pool->devices[i];
        filch_error reason = FILCH_ERROR_INIT;
        fl_discovery inner = *how;
        filch_status status;

        inner.error = &reason;
        status = device->backend->device->open == NULL
                     ? FILCH_OK
                     : device->backend->device->open(device, &inner);
        if (status == FILCH_OK) {
            i++;
            continue;
        }
        if (device->is_named || status == FILCH_OUT_OF_MEMORY) {
            if (how->error != NULL)
                fl_error_copy(how->error, &reason);
            return status;
        }
        fl_backend_refuse(&inner, device->backend->kind, device->info.name, device->info.ordinal,
                          &reason);
        device->backend->device->close(device, how->memory);
        device_remove(pool, i);
    }
    return FILCH_OK;
}

/* Links or unlinks every pair of devices of different places, in both directions. */
static void devices_link(fl_pool *pool, bool on)
{
    for (size_t i = 0; i < pool->count; i++) {
        fl_device *device = &pool->devices[i];

        for (size_t j = 0; device->backend->copy != NULL && j < pool->count; j++) {
            if (pool->devices[j].place == device->place)
                continue;
            if (on)
                device->backend->copy->link(device, &pool->devices[j]);
            else
                device->backend->copy->unlink(device, &pool->devices[j]);
        }
    }
}

static filch_status devices_start(fl_pool *pool, const fl_discovery *how)
{
    filch_status status = names_check(pool, "", how);

    if (status != FILCH_OK)
        return status;
    devices_number(pool);
    status = devices_open(pool, how);
    if (status == FILCH_OK) {
        devices_number(pool); /* again: devices may be gone */
        devices_link(pool, true);
    }
    return status;
}

static filch_status spec_start(fl_pool *pool, const char *spec, const fl_discovery *how)
{
    filch_status status = spec_enumerate(pool, spec, how);

    if (status == FILCH_OK && pool->count > 0)
        status = devices_start(pool, how);
    if (status != FILCH_OK || pool->count > 0)
        return status;
    if (pool->refusals.count > 0)
        return fl_error_fill(how->error, (fl_fault){.status = FILCH_NO_DEVICE},
                             "no device can be used; %s: %s", pool->refusals.items[0].name,
                             pool->refusals.items[0].error.text);
    return fl_error_fill(how->error, (fl_fault){.status = FILCH_NO_DEVICE},
                         "the specification gives no device");
}

/* Handles an empty specification: every usable GPU; without a usable GPU, the host's cores. */
static filch_status default_start(fl_pool *pool, const fl_discovery *how)
{
    static const filch_backend preference[] = {FILCH_BACKEND_CUDA, FILCH_BACKEND_HOST};
    filch_status status = FILCH_NO_DEVICE;

    for (size_t i = 0; i < sizeof preference / sizeof preference[0] && pool->count == 0; i++) {
        const fl_device_spec item = {.backend = preference[i]};

        status = item_enumerate(pool, &item, how);
        if (status == FILCH_OK)
            status = devices_start(pool, how);
        if (status != FILCH_OK && status != FILCH_NO_DEVICE)
            return status;
    }
    return status;
}

/* Returns the true speed of a simulated device; 0: a real device. Asks for enough work to make the
 * overhead of an item negligible. */
static double true_speed(const fl_device *device)
{
    const double enough = 1e6 * (double)(device->overhead_ns + 1);
    if (device->backend->device->item_ns == NULL) {
        return 0;
    }
    double ns = 0, cost = 1;
    for (uint32_t i = 0; i < 100 && ns < enough; ++i, cost *= 2) {
        ns = device->backend->device->item_ns(device, cost, 0);
    }
    ns -= (double)device->overhead_ns;
    return ns > 0 ? cost / 2 * 1e9 / ns : 0;
}

filch_status fl_pool_open(fl_pool *pool, const char *spec, const fl_discovery *how)
{
    fl_discovery inner = *how;
    filch_status status;

    memset(pool, 0, sizeof *pool);
    inner.refusals = &pool->refusals;
    status = fl_probes_init(&pool->probes);
    if (status != FILCH_OK)
        return fl_error_fill(how->error, (fl_fault){.status = status}, "the probes have no lock");
    status = fl_bandwidths_init(&pool->bandwidths);
    if (status != FILCH_OK) {
        fl_pool_close(pool, how->memory);
        return fl_error_fill(how->error, (fl_fault){.status = status}, "the links have no lock");
    }
    if (spec == NULL || spec[0] == '\0')
        status = default_start(pool, &inner);
    else
        status = spec_start(pool, spec, &inner);
    if (status != FILCH_OK) {
        fl_pool_close(pool, how->memory);
        return status;
    }
    for (size_t i = 0; i < pool->count; i++)
        pool->devices[i].info.true_speed = true_speed(&pool->devices[i]);
    fl_pool_score(pool, FILCH_SCORE_PEAK, NULL, NULL);
    return FILCH_OK;
}

void fl_pool_close(fl_pool *pool, const fl_memory *memory)
{
    devices_link(pool, false);
    fl_probes_fini(&pool->probes, memory);
    fl_bandwidths_fini(&pool->bandwidths, memory);
    for (size_t i = pool->count; i-- > 0;)
        pool->devices[i].backend->device->close(&pool->devices[i], memory);
    fl_free(memory, pool->devices, pool->capacity * sizeof *pool->devices);
    fl_free(memory, pool->refusals.items, pool->refusals.capacity * sizeof *pool->refusals.items);
    memset(pool, 0, sizeof *pool);
}

filch_status fl_pool_by_ordinal(const fl_pool *pool, filch_backend backend, uint32_t ordinal,
                                uint32_t *index)
{
    if (index == NULL || (backend != FILCH_BACKEND_HOST && backend != FILCH_BACKEND_CUDA &&
                          backend != FILCH_BACKEND_SIM))
        return FILCH_INVALID_ARGUMENT;
    for (size_t i = 0; i < pool->count; i++) {
        const filch_device_info *info = &pool->devices[i].info;

        if (info->backend == backend && info->ordinal == ordinal) {
            *index = (uint32_t)i;
            return FILCH_OK;
        }
    }
    return FILCH_UNKNOWN_ORDINAL;
}

uint32_t fl_pool_next(fl_pool *pool)
{
    /* Relaxed: the modification order of next alone makes tickets unique; tickets publish
     * nothing. */
    return (uint32_t)(fl_add_relaxed(&pool->next, 1) % pool->count);
}

static uint64_t free_bytes(const fl_device *device)
{
    uint64_t bytes = 0;

    if (device->backend->device->memory_free(device, &bytes) != FILCH_OK)
        return 0;
    return bytes;
}

filch_status fl_pool_info(const fl_pool *pool, uint32_t index, filch_device_info *info)
{
    filch_device_info now;
    size_t size;

    if (info == NULL || info->size < FL_POOL_INFO_LEAST)
        return FILCH_INVALID_ARGUMENT;
    if (index >= pool->count)
        return FILCH_BAD_INDEX;
    size = info->size;
    now = pool->devices[index].info;
    now.memory_free = free_bytes(&pool->devices[index]);
    memcpy(info, &now, size < sizeof now ? size : sizeof now);
    info->size = size;
    return FILCH_OK;
}

filch_status fl_pool_refused(const fl_pool *pool, uint32_t index, filch_device_refusal *refusal)
{
    size_t size;

    if (refusal == NULL || refusal->size < sizeof *refusal)
        return FILCH_INVALID_ARGUMENT;
    if (index >= pool->refusals.count)
        return FILCH_BAD_INDEX;
    size = refusal->size;
    *refusal = pool->refusals.items[index];
    refusal->size = size;
    return FILCH_OK;
}

uint32_t fl_pool_best_memory(const fl_pool *pool)
{
    uint64_t most = 0;
    uint64_t here = 0;
    uint32_t best = 0;

    for (size_t i = 0; i < pool->count; i++) {
        /* Caches the answer: asking the system is slow, and neighbours share a place (slices, host
         * cores). */
        if (i == 0 || pool->devices[i].place != pool->devices[i - 1].place)
            here = free_bytes(&pool->devices[i]);
        if (here > most) {
            most = here;
            best = (uint32_t)i;
        }
    }
    return best;
}

uint32_t fl_pool_best_score(const fl_pool *pool)
{
    uint32_t best = 0;

    for (uint32_t i = 1; i < pool->count; i++) {
        if (pool->devices[i].info.score > pool->devices[best].info.score)
            best = i;
    }
    return best;
}

filch_status fl_pool_choose(const fl_pool *pool, filch_device_rate_fn rate, void *user,
                            uint32_t *index)
{
    double highest = 0.0;
    bool found = false;
    uint32_t best = 0;

    if (rate == NULL || index == NULL)
        return FILCH_INVALID_ARGUMENT;
    for (uint32_t i = 0; i < pool->count; i++) {
        filch_device_info info = pool->devices[i].info;
        double rating;

        info.memory_free = free_bytes(&pool->devices[i]);
        rating = rate(&info, user);
        if (rating != rating || (found && !(rating > highest)))
            continue;
        highest = rating;
        best = i;
        found = true;
    }
    if (!found)
        return FILCH_NO_DEVICE;
    *index = best;
    return FILCH_OK;
}
