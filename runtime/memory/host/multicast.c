/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/host/multicast.h"

#include <inttypes.h>
#include <stdio.h>

#include "backend/multicast.h"
#include "memory/alloc/node.h"

/* Reserved address range, with or without mapped memory. */
typedef struct mapping {
    void *address; /* null: no range */
    uint64_t bytes;
    bool is_mapped;
} mapping;

/* Memory of a device bound to a part of the object. */
typedef struct binding {
    uint32_t member; /* position among the object's devices */
    uint64_t offset, bytes;
    bool is_bound;   /* false: remains of a binding after the driver refused to undo a step */
    bool has_memory; /* `memory` belongs to the object */
    uint64_t memory;
    mapping mapping; /* mapping for the binding's device */
} binding;

typedef struct member {
    fl_device *device;
    bool is_added;
} member;

struct filch_multicast {
    fl_object object;
    const fl_multicast_ops *ops;
    fl_mutex lock; /* guards every member below except members set by create */
    uint64_t handle, bytes, minimum, recommended;
    member *members;
    uint32_t member_count, added;
    binding *bindings;
    size_t binding_count, binding_capacity;
    mapping mapping; /* mapping of the whole object, for every device */
    bool is_ready;   /* the devices may use the mapping */
    char label[64];
};

/* --- Failures --- */

/* Records the error of a backend's step under the object's label. */
static filch_status fail(fl_core *core, const char *label, filch_error *error)
{
    if (error->label[0] == '\0' && label != NULL) {
        snprintf(error->label, sizeof error->label, "%s", label);
    }
    fl_error_store(&core->errors, error);
    return error->status;
}

static filch_status end(filch_multicast *m, filch_status status, filch_error *error)
{
    fl_mutex_unlock(&m->lock);
    return status == FILCH_OK ? FILCH_OK : fail(m->object.core, m->label, error);
}

#define REFUSE(m, error, code, function, ...)                                                   \
    fl_error_fill(error, (fl_fault){.status = (code), .call = (function), .label = (m)->label}, \
                  __VA_ARGS__)

static const fl_device *first_device(const filch_multicast *m)
{
    return m->members[0].device;
}

/* --- Creation --- */

/* Checks the description, without making an object. */
static filch_status check_desc(fl_core *core, const filch_multicast_desc *desc, const char *call)
{
    filch_status status =
        fl_size_check(core, desc, sizeof *desc, sizeof *desc, "the description", call, NULL);
    if (status != FILCH_OK) {
        return status;
    }
    const char *label = desc != NULL ? desc->label : NULL;
    const char *wrong = desc == NULL                ? "the description is null"
                        : desc->reserved != 0       ? "reserved is not 0"
                        : desc->devices == NULL     ? "devices is null"
                        : desc->device_count == 0   ? "there are no devices"
                        : desc->bytes == 0          ? "bytes is 0"
                        : desc->bytes > PTRDIFF_MAX ? "bytes are beyond every memory"
                                                    : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label, "%s", wrong);
    }
    if (core->settings.multicast != 1) {
        return fl_core_fail(
            core, FILCH_UNSUPPORTED, call, label,
            "multicast is off: filch_runtime_desc.allow_multicast or FILCH_MULTICAST=1 "
            "allow it");
    }
    return FILCH_OK;
}

static filch_status check_devices(fl_core *core, const filch_multicast_desc *desc, const char *call)
{
    const fl_places *places = core->places;
    for (uint32_t i = 0; i < desc->device_count; ++i) {
        uint32_t index = desc->devices[i];
        if (index >= places->device_count) {
            return fl_core_fail(core, FILCH_BAD_INDEX, call, desc->label,
                                "there is no device %u of %zu", index, places->device_count);
        }
        const fl_device *device = &places->devices[index];
        if (device->backend->multicast == NULL) {
            return fl_core_fail(core, FILCH_UNSUPPORTED, call, desc->label,
                                "%s has no multicast: it is no GPU", device->info.name);
        }
        for (uint32_t k = 0; k < i; ++k) {
            const fl_device *other = &places->devices[desc->devices[k]];
            if (other->place == device->place || other->backend != device->backend) {
                return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, desc->label, "%s and %s %s",
                                    other->info.name, device->info.name,
                                    other->place == device->place ? "have one memory"
                                                                  : "are of two kinds");
            }
        }
        filch_error error = FILCH_ERROR_INIT;
        if (device->backend->multicast->check(device, &error) != FILCH_OK) {
            return fail(core, desc->label, &error);
        }
    }
    return FILCH_OK;
}

/* Performs every check possible before making an object. */
static filch_status survey(fl_core *core, const filch_multicast_desc *desc, const char *call,
                           uint64_t *minimum, uint64_t *recommended)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = check_desc(core, desc, call);
    status = status == FILCH_OK ? check_devices(core, desc, call) : status;
    if (status != FILCH_OK) {
        return status;
    }
    const fl_device *first = &core->places->devices[desc->devices[0]];
    status = first->backend->multicast->granularity(first, desc->device_count, desc->bytes, minimum,
                                                    recommended, &error);
    return status == FILCH_OK ? FILCH_OK : fail(core, desc->label, &error);
}

filch_status filch_multicast_granularity(filch_runtime *runtime, const filch_multicast_desc *desc,
                                         filch_granularity *granularity)
{
    static const char *const call = "filch_multicast_granularity";
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    status = fl_size_check(core, granularity, sizeof *granularity, 0, "the result", call, NULL);
    if (status != FILCH_OK) {
        return status;
    }
    uint64_t minimum, recommended;
    status = survey(core, desc, call, &minimum, &recommended);
    if (status == FILCH_OK) {
        granularity->minimum = minimum;
        granularity->recommended = recommended;
    }
    return status;
}

static void free_parts(filch_multicast *m)
{
    const fl_memory *memory = &m->object.core->memory;
    fl_free(memory, m->members, m->member_count * sizeof *m->members);
    fl_free(memory, m->bindings, m->binding_capacity * sizeof *m->bindings);
    m->members = NULL;
    m->bindings = NULL;
    fl_mutex_fini(&m->lock);
}

/* Makes the object without the driver's part; null: no memory. */
static filch_multicast *new_multicast(fl_core *core, const filch_multicast_desc *desc)
{
    filch_multicast *m =
        fl_object_new(core, FL_MAGIC_MULTICAST, sizeof *m, _Alignof(filch_multicast));
    if (m == NULL) {
        return NULL;
    }
    m->members = fl_alloc_zeroed(&core->memory, desc->device_count * sizeof *m->members);
    if (m->members == NULL || fl_mutex_init(&m->lock) != FILCH_OK) {
        fl_free(&core->memory, m->members, desc->device_count * sizeof *m->members);
        fl_object_delete(m);
        return NULL;
    }
    m->member_count = desc->device_count;
    for (uint32_t i = 0; i < desc->device_count; ++i) {
        m->members[i].device = &core->places->devices[desc->devices[i]];
    }
    m->ops = first_device(m)->backend->multicast;
    m->bytes = desc->bytes;
    snprintf(m->label, sizeof m->label, "%s", desc->label != NULL ? desc->label : "");
    return m;
}

filch_status filch_multicast_create(filch_runtime *runtime, const filch_multicast_desc *desc,
                                    filch_multicast **multicast)
{
    static const char *const call = "filch_multicast_create";
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    uint64_t minimum, recommended;
    if (multicast == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, NULL,
                            "there is nowhere to put the object");
    }
    status = survey(core, desc, call, &minimum, &recommended);
    if (status != FILCH_OK) {
        return status;
    }
    if (desc->bytes % minimum != 0) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, desc->label,
                            "%" PRIu64 " bytes are no multiple of %" PRIu64 ", and should be one "
                            "of %" PRIu64,
                            desc->bytes, minimum, recommended);
    }
    filch_multicast *m = new_multicast(core, desc);
    if (m == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, call, desc->label,
                            "no memory for a multicast object");
    }
    m->minimum = minimum;
    m->recommended = recommended;
    filch_error error = FILCH_ERROR_INIT;
    status = m->ops->create(first_device(m), &core->settings, m->member_count, m->bytes, &m->handle,
                            &error);
    if (status != FILCH_OK) {
        free_parts(m);
        fl_object_delete(m);
        return fail(core, desc->label, &error);
    }
    *multicast = m;
    return FILCH_OK;
}

/* --- Devices --- */

/* Finds the position of a device in the object. */
static filch_status find_member(const filch_multicast *m, uint32_t device, const char *call,
                                uint32_t *position, filch_error *error)
{
    *position = 0;
    for (uint32_t i = 0; i < m->member_count; ++i) {
        if (m->members[i].device->info.index == device) {
            *position = i;
            return FILCH_OK;
        }
    }
    return REFUSE(m, error, FILCH_BAD_INDEX, call, "device %u is none of the object's %u", device,
                  m->member_count);
}

filch_status filch_multicast_add(filch_multicast *m, uint32_t device)
{
    static const char *const call = "filch_multicast_add";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    uint32_t at;
    fl_mutex_lock(&m->lock);
    status = find_member(m, device, call, &at, &error);
    if (status == FILCH_OK && m->members[at].is_added) {
        status = REFUSE(m, &error, FILCH_WRONG_STATE, call, "%s was added already",
                        m->members[at].device->info.name);
    }
    if (status == FILCH_OK) {
        status = m->ops->add(m->members[at].device, m->handle, &error);
    }
    if (status == FILCH_OK) {
        m->members[at].is_added = true;
        ++m->added;
    }
    return end(m, status, &error);
}

/* Refuses binding and mapping before every device is added: the driver would block, forever if a
 * device is never added. */
static filch_status check_whole(const filch_multicast *m, const char *call, filch_error *error)
{
    return m->added == m->member_count
               ? FILCH_OK
               : REFUSE(m, error, FILCH_WRONG_STATE, call,
                        "%u of %u devices are added: until all are, the driver would block",
                        m->added, m->member_count);
}

/* --- Undoing, as far as the driver permits --- */

static filch_status unmap(const filch_multicast *m, const fl_device *device, mapping *map,
                          filch_error *error)
{
    filch_status status = FILCH_OK;
    if (map->is_mapped) {
        status = m->ops->unmap(device, map->address, map->bytes, error);
        map->is_mapped = status != FILCH_OK;
    }
    if (status == FILCH_OK && map->address != NULL) {
        status = m->ops->give_address(device, map->address, map->bytes, error);
        map->address = status != FILCH_OK ? map->address : NULL;
    }
    return status;
}

static filch_status unbind(const filch_multicast *m, binding *b, filch_error *error)
{
    const fl_device *device = m->members[b->member].device;
    filch_status status = FILCH_OK;
    if (b->is_bound) {
        status = m->ops->unbind(device, m->handle, b->offset, b->bytes, error);
        b->is_bound = status != FILCH_OK;
    }
    status = status == FILCH_OK ? unmap(m, device, &b->mapping, error) : status;
    if (status == FILCH_OK && b->has_memory) {
        status = m->ops->release(device, b->memory, error);
        b->has_memory = status != FILCH_OK;
    }
    return status;
}

static bool is_gone(const binding *b)
{
    return !b->is_bound && !b->has_memory && b->mapping.address == NULL;
}

/* Removes bindings without remaining resources. */
static void sweep(filch_multicast *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->binding_count; ++i) {
        if (!is_gone(&m->bindings[i])) {
            m->bindings[kept++] = m->bindings[i];
        }
    }
    m->binding_count = kept;
}

/* Frees the remains of failures, no longer reachable by the caller. */
static filch_status clear_remains(filch_multicast *m, filch_error *error)
{
    filch_status status = unmap(m, first_device(m), &m->mapping, error);
    for (size_t i = 0; i < m->binding_count && status == FILCH_OK; ++i) {
        status = unbind(m, &m->bindings[i], error);
    }
    sweep(m);
    return status;
}

/* --- Binding --- */

static filch_status check_part(const filch_multicast *m, uint32_t at, uint64_t offset,
                               uint64_t bytes, const char *call, filch_error *error)
{
    if (m->is_ready) {
        return REFUSE(m, error, FILCH_WRONG_STATE, call, "the object is mapped: unmap it first");
    }
    if (bytes == 0 || bytes % m->minimum != 0 || offset % m->minimum != 0) {
        return REFUSE(m, error, FILCH_INVALID_ARGUMENT, call,
                      "offset %" PRIu64 " or length %" PRIu64 " is no multiple of %" PRIu64
                      ", and should be one of %" PRIu64,
                      offset, bytes, m->minimum, m->recommended);
    }
    if (offset > m->bytes || bytes > m->bytes - offset) {
        return REFUSE(m, error, FILCH_INVALID_ARGUMENT, call,
                      "%" PRIu64 " bytes at offset %" PRIu64
                      " are outside of the object's %" PRIu64,
                      bytes, offset, m->bytes);
    }
    for (size_t i = 0; i < m->binding_count; ++i) {
        const binding *b = &m->bindings[i];
        if (b->is_bound && b->member == at && offset < b->offset + b->bytes &&
            b->offset < offset + bytes) {
            return REFUSE(m, error, FILCH_WRONG_STATE, call,
                          "%s has memory bound to offset %" PRIu64 ", of %" PRIu64 " bytes",
                          m->members[at].device->info.name, b->offset, b->bytes);
        }
    }
    return FILCH_OK;
}

/* Makes memory on the member's device, at an address usable by the device. */
static filch_status make_memory(const filch_multicast *m, binding *b, filch_error *error)
{
    const fl_device *device = m->members[b->member].device;
    uint64_t made = 0;
    filch_status status = m->ops->take_memory(device, b->bytes, &b->memory, &made, error);
    b->has_memory = status == FILCH_OK;
    b->mapping.bytes = made;
    if (status == FILCH_OK) {
        status = m->ops->take_address(device, made, m->minimum, &b->mapping.address, error);
        b->mapping.address = status == FILCH_OK ? b->mapping.address : NULL;
    }
    if (status == FILCH_OK) {
        status = m->ops->map(device, b->mapping.address, b->memory, made, error);
        b->mapping.is_mapped = status == FILCH_OK;
    }
    return status == FILCH_OK ? m->ops->allow(device, b->mapping.address, made, error) : status;
}

/* Binds the caller's memory `theirs`, or new memory if `theirs` is null. Requires the lock. */
static filch_status bind_part(filch_multicast *m, uint32_t device, uint64_t offset, uint64_t bytes,
                              void *theirs, void **address, const char *call, filch_error *error)
{
    const fl_memory *memory = &m->object.core->memory;
    uint32_t at;
    filch_status status = find_member(m, device, call, &at, error);
    status = status == FILCH_OK ? check_whole(m, call, error) : status;
    status = status == FILCH_OK ? check_part(m, at, offset, bytes, call, error) : status;
    if (status != FILCH_OK) {
        return status;
    }
    if (fl_array_reserve(memory, &m->bindings, &m->binding_capacity, m->binding_count + 1,
                         sizeof *m->bindings) != FILCH_OK) {
        return REFUSE(m, error, FILCH_OUT_OF_MEMORY, call, "no memory to keep track of a binding");
    }
    binding *b = &m->bindings[m->binding_count++];
    *b = (binding){.member = at, .offset = offset, .bytes = bytes};
    if (theirs == NULL) {
        status = make_memory(m, b, error);
    }
    if (status == FILCH_OK) {
        status = theirs == NULL ? m->ops->bind(m->members[at].device, m->handle, offset, b->memory,
                                               bytes, error)
                                : m->ops->bind_address(m->members[at].device, m->handle, offset,
                                                       theirs, bytes, error);
        b->is_bound = status == FILCH_OK;
    }
    if (status == FILCH_OK && address != NULL) {
        *address = b->mapping.address;
    }
    if (status != FILCH_OK) {
        /* Reports the first failure; sweep keeps resources the unbind cannot free. */
        (void)unbind(m, b, NULL);
        sweep(m);
    }
    return status;
}

filch_status filch_multicast_bind(filch_multicast *m, uint32_t device, uint64_t offset,
                                  uint64_t bytes, void **address)
{
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&m->lock);
    status = bind_part(m, device, offset, bytes, NULL, address, "filch_multicast_bind", &error);
    return end(m, status, &error);
}

filch_status filch_multicast_bind_address(filch_multicast *m, uint32_t device, uint64_t offset,
                                          void *address, uint64_t bytes)
{
    static const char *const call = "filch_multicast_bind_address";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&m->lock);
    if (address == NULL || (uintptr_t)address % m->minimum != 0) {
        status = REFUSE(m, &error, FILCH_INVALID_ARGUMENT, call,
                        "address %p is null or no multiple of %" PRIu64, address, m->minimum);
    } else {
        status = bind_part(m, device, offset, bytes, address, NULL, call, &error);
    }
    return end(m, status, &error);
}

filch_status filch_multicast_unbind(filch_multicast *m, uint32_t device, uint64_t offset,
                                    uint64_t bytes)
{
    static const char *const call = "filch_multicast_unbind";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    binding *found = NULL;
    uint32_t at;
    fl_mutex_lock(&m->lock);
    status = find_member(m, device, call, &at, &error);
    if (status == FILCH_OK && m->is_ready) {
        status = REFUSE(m, &error, FILCH_WRONG_STATE, call, "the object is mapped: unmap it first");
    }
    for (size_t i = 0; i < m->binding_count && status == FILCH_OK; ++i) {
        binding *b = &m->bindings[i];
        bool is_it = b->member == at && b->offset == offset && b->bytes == bytes;
        found = is_it && (found == NULL || b->is_bound) ? b : found;
    }
    if (status == FILCH_OK) {
        status = found != NULL
                     ? unbind(m, found, &error)
                     : REFUSE(m, &error, FILCH_NOT_FOUND, call,
                              "%s has nothing bound to offset %" PRIu64 " of %" PRIu64 " bytes",
                              m->members[at].device->info.name, offset, bytes);
    }
    sweep(m);
    return end(m, status, &error);
}

/* --- Mapping --- */

/* Checks whether every device has memory bound to every part. Parts do not overlap, therefore a
 * sum of bytes suffices. */
static filch_status check_bound(const filch_multicast *m, const char *call, filch_error *error)
{
    for (uint32_t at = 0; at < m->member_count; ++at) {
        uint64_t bound = 0;
        for (size_t i = 0; i < m->binding_count; ++i) {
            const binding *b = &m->bindings[i];
            bound += b->is_bound && b->member == at ? b->bytes : 0;
        }
        if (bound != m->bytes) {
            return REFUSE(m, error, FILCH_WRONG_STATE, call,
                          "of %s %" PRIu64 " bytes are bound, not all %" PRIu64,
                          m->members[at].device->info.name, bound, m->bytes);
        }
    }
    return FILCH_OK;
}

static filch_status map_all(filch_multicast *m, filch_error *error)
{
    const fl_device *first = first_device(m);
    mapping *map = &m->mapping;
    /* Remains of an earlier failure must go first. */
    filch_status status = unmap(m, first, map, error);
    if (status != FILCH_OK) {
        return status;
    }
    uint64_t alignment = m->bytes % m->recommended == 0 ? m->recommended : m->minimum;
    map->bytes = m->bytes;
    status = m->ops->take_address(first, m->bytes, alignment, &map->address, error);
    map->address = status == FILCH_OK ? map->address : NULL;
    if (status == FILCH_OK) {
        status = m->ops->map(first, map->address, m->handle, m->bytes, error);
        map->is_mapped = status == FILCH_OK;
    }
    for (uint32_t at = 0; at < m->member_count && status == FILCH_OK; ++at) {
        status = m->ops->allow(m->members[at].device, map->address, m->bytes, error);
    }
    if (status != FILCH_OK) {
        (void)unmap(m, first, map, NULL); /* as in bind_part */
    }
    return status;
}

filch_status filch_multicast_map(filch_multicast *m, void **address)
{
    static const char *const call = "filch_multicast_map";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&m->lock);
    if (address == NULL) {
        status =
            REFUSE(m, &error, FILCH_INVALID_ARGUMENT, call, "there is nowhere to put the address");
    } else if (m->is_ready) {
        status = REFUSE(m, &error, FILCH_WRONG_STATE, call, "the object is mapped already");
    }
    status = status == FILCH_OK ? check_whole(m, call, &error) : status;
    status = status == FILCH_OK ? check_bound(m, call, &error) : status;
    status = status == FILCH_OK ? map_all(m, &error) : status;
    if (status == FILCH_OK) {
        m->is_ready = true;
        *address = m->mapping.address;
    }
    return end(m, status, &error);
}

filch_status filch_multicast_unmap(filch_multicast *m)
{
    static const char *const call = "filch_multicast_unmap";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    fl_mutex_lock(&m->lock);
    status = m->is_ready ? unmap(m, first_device(m), &m->mapping, &error)
                         : REFUSE(m, &error, FILCH_WRONG_STATE, call, "the object is not mapped");
    m->is_ready = m->is_ready && status != FILCH_OK;
    return end(m, status, &error);
}

/* --- The end --- */

filch_status filch_multicast_destroy(filch_multicast *m)
{
    static const char *const call = "filch_multicast_destroy";
    filch_status status = fl_object_check(m, FL_MAGIC_MULTICAST);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    uint32_t bound = 0;
    fl_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->binding_count; ++i) {
        bound += m->bindings[i].is_bound;
    }
    if (m->is_ready || bound != 0) {
        status = REFUSE(m, &error, FILCH_WRONG_STATE, call,
                        m->is_ready ? "the object is mapped: unmap it first"
                                    : "%u bindings are left: unbind them first",
                        bound);
    }
    status = status == FILCH_OK ? clear_remains(m, &error) : status;
    status = status == FILCH_OK ? m->ops->release(first_device(m), m->handle, &error) : status;
    if (status != FILCH_OK) {
        return end(m, status, &error);
    }
    fl_mutex_unlock(&m->lock);
    free_parts(m);
    fl_object_delete(m);
    return FILCH_OK;
}

void fl_multicast_drop(filch_multicast *m)
{
    (void)unmap(m, first_device(m), &m->mapping, NULL);
    for (size_t i = 0; i < m->binding_count; ++i) {
        (void)unbind(m, &m->bindings[i], NULL);
    }
    (void)m->ops->release(first_device(m), m->handle, NULL);
    free_parts(m);
}
