/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/core.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *counted_alloc(size_t size, size_t align, void *user)
{
    fl_core *core = user;
    void *pointer = core->inner.alloc(size, align, core->inner.user);
    if (pointer != NULL) {
        fl_add_relaxed(&core->host_bytes, size);
    }
    return pointer;
}

static void counted_free(void *pointer, size_t size, size_t align, void *user)
{
    fl_core *core = user;
    fl_sub_relaxed(&core->host_bytes, size);
    core->inner.free(pointer, size, align, core->inner.user);
}

/* Maps a page that the kernel zeroes in a forked child. Detecting a fork then costs a single load.
 */
static filch_status map_alive_page(fl_core *core)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    uint32_t *alive = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (alive == MAP_FAILED) {
        return FILCH_SYSTEM;
    }
#ifdef MADV_WIPEONFORK
    if (madvise(alive, page, MADV_WIPEONFORK) != 0) {
        munmap(alive, page);
        return FILCH_SYSTEM;
    }
#endif
    *alive = 1;
    core->alive = alive;
    return FILCH_OK;
}

filch_status fl_core_init(fl_core *core, const fl_memory *inner, filch_error *error)
{
    const char *what = "page that detects fork";
    core->inner = *inner;
    core->memory = (fl_memory){counted_alloc, counted_free, core, inner->name};
    core->object.core = core;
    filch_status status = map_alive_page(core);
    if (status != FILCH_OK) {
        goto fail;
    }
    what = "error log";
    status = fl_error_log_init(&core->errors);
    if (status != FILCH_OK) {
        goto unmap;
    }
    what = "lock";
    status = fl_mutex_init(&core->lock);
    if (status != FILCH_OK) {
        goto errors;
    }
    what = "per-thread value";
    status = fl_tss_init(&core->worker);
    if (status != FILCH_OK) {
        goto lock;
    }
    status = fl_tss_init(&core->callback);
    if (status != FILCH_OK) {
        goto value;
    }
    fl_store_relaxed(&core->object.magic, (uint32_t)FL_MAGIC_RUNTIME);
    return FILCH_OK;
value:
    fl_tss_fini(core->worker);
lock:
    fl_mutex_fini(&core->lock);
errors:
    fl_error_log_fini(&core->errors);
unmap:
    munmap((void *)(uintptr_t)core->alive, (size_t)sysconf(_SC_PAGESIZE));
fail:
    return fl_error_fill(error, (fl_fault){.status = status, .call = "filch_runtime_create"},
                         "the runtime's %s could not be made", what);
}

void fl_core_fini(fl_core *core)
{
    fl_store_relaxed(&core->object.magic, (uint32_t)FL_MAGIC_DEAD);
    fl_object *lists[] = {core->objects, core->graveyard};
    for (size_t i = 0; i < 2; ++i) {
        for (fl_object *object = lists[i]; object != NULL;) {
            fl_object *next = object->next;
            fl_store_relaxed(&object->magic, (uint32_t)FL_MAGIC_DEAD);
            fl_free_aligned(&core->memory, object, object->bytes, object->align);
            object = next;
        }
    }
    fl_tss_fini(core->worker);
    fl_tss_fini(core->callback);
    fl_mutex_fini(&core->lock);
    fl_error_log_fini(&core->errors);
    munmap((void *)(uintptr_t)core->alive, (size_t)sysconf(_SC_PAGESIZE));
}

/* A kind's name, and the words about a handle of the kind in the place of another. */
static const struct {
    fl_magic magic;
    const char *name, *other;
} kinds[] = {
    {FL_MAGIC_RUNTIME, "runtime", "is of another kind: a runtime"},
    {FL_MAGIC_CODELET, "codelet", "is of another kind: a codelet"},
    {FL_MAGIC_DATA, "data handle", "is of another kind: a data handle"},
    {FL_MAGIC_GRAPH, "graph", "is of another kind: a graph"},
    {FL_MAGIC_JOB, "job", "is of another kind: a job"},
    {FL_MAGIC_HOLD, "hold", "is of another kind: a hold of tiles"},
    {FL_MAGIC_MULTICAST, "multicast", "is of another kind: a multicast"},
};

const char *fl_object_wrong(const void *handle, fl_magic wanted)
{
    if (handle == NULL) {
        return "is null";
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        if (kinds[i].magic != wanted && fl_object_lives(handle, kinds[i].magic)) {
            return kinds[i].other;
        }
    }
    return "is destroyed, or no handle";
}

filch_status fl_object_refuse(const void *handle, fl_magic wanted, const char *call)
{
    const char *name = "handle";
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
        name = kinds[i].magic == wanted ? kinds[i].name : name;
    }
    return fl_error_refuse(call, name, fl_object_wrong(handle, wanted));
}

const char *fl_argument_explain(const fl_argument *argument, char text[FL_ARGUMENT_TEXT])
{
    if (fl_object_lives(argument->handle, argument->magic)) {
        snprintf(text, FL_ARGUMENT_TEXT, "%s%s%s%s belongs to another runtime", argument->what,
                 FL_NAME(" ", argument->name, ""));
    } else {
        snprintf(text, FL_ARGUMENT_TEXT, "%s %s", argument->what,
                 fl_object_wrong(argument->handle, argument->magic));
    }
    return text;
}

filch_status fl_argument_check(fl_core *core, const fl_argument *argument, const char *call,
                               const char *label)
{
    filch_status status = fl_object_standing(core, argument->handle, argument->magic);
    char text[FL_ARGUMENT_TEXT];
    return FL_LIKELY(status == FILCH_OK)
               ? status
               : fl_core_fail(core, status, call,
                              status == FILCH_WRONG_RUNTIME ? argument->name : label, "%s",
                              fl_argument_explain(argument, text));
}

void *fl_object_new(fl_core *core, fl_magic magic, size_t bytes, size_t align)
{
    size_t used = align < _Alignof(max_align_t) ? _Alignof(max_align_t) : align;
    fl_object *object = fl_alloc_aligned(&core->memory, bytes, used);
    if (object == NULL) {
        return NULL;
    }
    memset(object, 0, bytes);
    object->bytes = bytes;
    object->align = (uint32_t)used;
    object->core = core;
    fl_mutex_lock(&core->lock);
    object->next = core->objects;
    if (core->objects != NULL) {
        core->objects->prev = object;
    }
    core->objects = object;
    fl_mutex_unlock(&core->lock);
    fl_store_relaxed(&object->magic, (uint32_t)magic);
    return object;
}

void fl_object_delete(void *handle)
{
    fl_object *object = handle;
    fl_core *core = object->core;
    fl_mutex_lock(&core->lock);
    fl_store_relaxed(&object->magic, (uint32_t)FL_MAGIC_DEAD);
    if (object->prev != NULL) {
        object->prev->next = object->next;
    } else {
        core->objects = object->next;
    }
    if (object->next != NULL) {
        object->next->prev = object->prev;
    }
#ifndef NDEBUG
    object->next = core->graveyard;
    core->graveyard = object;
#endif
    fl_mutex_unlock(&core->lock);
#ifdef NDEBUG
    fl_free_aligned(&core->memory, object, object->bytes, object->align);
#endif
}

filch_status fl_size_refuse(fl_core *core, const void *record, size_t least, size_t known,
                            const char *what, const char *call, const char *label)
{
    char text[FL_SIZE_TEXT];
    if (record == NULL) {
        return known != 0
                   ? FILCH_OK
                   : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label, "%s is null", what);
    }
    const char *wrong = fl_size_wrong(record, least, known, what, text);
    return wrong == NULL ? FILCH_OK
                         : fl_core_fail(core, FILCH_INVALID_ARGUMENT, call, label, "%s", wrong);
}
