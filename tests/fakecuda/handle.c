/* SPDX-License-Identifier: Apache-2.0 */
/* Handles are numbers made of kind and index, never addresses: what a program passes is looked up
 * before anything is read through it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>

#include "fake.h"

#define KIND_SHIFT 40
#define INDEX_SHIFT 4

typedef struct table {
    fake_object **objects; /* all, by index */
    fake_object **listed;  /* those of fake_object_at */
    uint32_t count, listed_count, capacity;
} table;

static table tables[FAKE_KINDS];

const char *fake_kind_name(fake_kind kind)
{
    static const char *const names[FAKE_KINDS] = {"",       "context",  "stream", "event",
                                                  "module", "function", "graph",  "node",
                                                  "exec",   "green",    "desc",   "pool"};
    return names[kind];
}

void *fake_object_make(fake_kind kind, size_t bytes, fake_context *context)
{
    table *t = &tables[kind];
    fake_object *object = calloc(1, bytes);

    if (t->count == t->capacity) {
        t->capacity = t->capacity == 0 ? 64 : 2 * t->capacity;
        t->objects = realloc(t->objects, t->capacity * sizeof *t->objects);
        t->listed = realloc(t->listed, t->capacity * sizeof *t->listed);
    }
    if (object == NULL || t->objects == NULL || t->listed == NULL)
        abort();
    object->kind = kind;
    object->is_alive = true;
    object->index = t->count;
    object->context = context;
    t->objects[t->count++] = object;
    object->place = t->listed_count;
    t->listed[t->listed_count++] = object;
    return object;
}

void fake_object_end(fake_object *object)
{
    table *t = &tables[object->kind];

    object->is_alive = false;
    if (object->kind == FAKE_STREAM && !fake_stream_is_idle((const fake_stream *)object))
        return;
    if (object->place >= t->listed_count || t->listed[object->place] != object)
        return;
    fake_object *last = t->listed[--t->listed_count];
    last->place = object->place;
    t->listed[last->place] = last;
}

void *fake_handle(const void *object)
{
    const fake_object *o = object;

    if (o == NULL)
        return NULL;
    /* A number in the shape of a pointer: nobody may read through it. */
    return (void *)((uintptr_t)o->kind << KIND_SHIFT | ((uintptr_t)o->index + 1) << INDEX_SHIFT);
}

fake_object *fake_object_at(fake_kind kind, uint32_t place)
{
    return tables[kind].listed[place];
}

uint32_t fake_object_count(fake_kind kind)
{
    return tables[kind].listed_count;
}

fake_object *fake_object_from(fake_kind kind, uint32_t index)
{
    const table *t = &tables[kind];
    fake_object *first = NULL;

    for (uint32_t i = 0; i < t->listed_count; i++) {
        fake_object *object = t->listed[i];
        if (object->index >= index && (first == NULL || object->index < first->index))
            first = object;
    }
    return first;
}

static fake_object *find(const void *handle)
{
    uintptr_t value = (uintptr_t)handle;
    uintptr_t kind = value >> KIND_SHIFT;
    uintptr_t index = (value & (((uintptr_t)1 << KIND_SHIFT) - 1)) >> INDEX_SHIFT;

    if (kind == 0 || kind >= FAKE_KINDS || index == 0 || index > tables[kind].count ||
        (value & 15) != 0)
        return NULL;
    return tables[kind].objects[index - 1];
}

void *fake_find(fake_kind kind, const void *handle)
{
    fake_object *object = find(handle);

    if (object == NULL) {
        (void)fake_violate(0, "%p is no handle of this driver's (a %s is wanted)", handle,
                           fake_kind_name(kind));
    } else if (object->kind != kind) {
        (void)fake_violate(0, "a %s is given for a %s", fake_kind_name(object->kind),
                           fake_kind_name(kind));
    } else if (!object->is_alive) {
        (void)fake_violate(0, "the %s is destroyed", fake_kind_name(kind));
    } else if (object->context != NULL && !object->context->object.is_alive) {
        (void)fake_violate(0, "the %s's context is destroyed", fake_kind_name(kind));
    } else {
        return object;
    }
    return NULL;
}

void *fake_find_current(fake_kind kind, const void *handle)
{
    fake_object *object = fake_find(kind, handle);

    if (object != NULL && object->context != NULL && object->context != fake_current()) {
        (void)fake_violate(0, "the %s is of another context than the current one",
                           fake_kind_name(kind));
        return NULL;
    }
    return object;
}
