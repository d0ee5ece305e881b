/* SPDX-License-Identifier: Apache-2.0 */
/* The fake profiler as a test finds it, and what must be so of everything it was told. Included
 * once, after cmocka. */
#ifndef TESTS_HEARD_H
#define TESTS_HEARD_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "fakenvtx/fakenvtx.h"

#define VARIABLE "NVTX_INJECTION64_PATH"

static const fake_nvtx_event *events;
static size_t event_count;

static inline bool is_loaded(const char *library)
{
    void *found = dlopen(library, RTLD_NOW | RTLD_NOLOAD);
    return found != NULL && dlclose(found) == 0;
}

/* Function of the fake, which a runtime has loaded. */
static inline void *of_fake(const char *name)
{
    void *library = dlopen(FL_NVTX_WHOLE, RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    void *found = dlsym(library, name);
    assert_non_null(found);
    dlclose(library);
    return found;
}

/* Calls a function of the fake: FAKE_CALL(TYPE, NAME)(ARGUMENTS). */
#define FAKE_CALL(type, name) (*(type *)(void *)&(void *){of_fake(name)})

static inline void forget(void)
{
    FAKE_CALL(fake_nvtx_forget_fn, "fake_nvtx_forget")();
}

/* Takes what the fake was told so far. */
static inline void hear(void)
{
    events = FAKE_CALL(fake_nvtx_events_fn, "fake_nvtx_events")(&event_count);
}

/* Events of the kind with the name; null: any name. */
static inline int count_of(fake_nvtx_kind kind, const char *name)
{
    int count = 0;
    for (size_t i = 0; i < event_count; ++i) {
        count += events[i].kind == kind && (name == NULL || strcmp(events[i].name, name) == 0);
    }
    return count;
}

/* Place of the first event of the kind and name. */
static inline size_t first_of(fake_nvtx_kind kind, const char *name)
{
    for (size_t i = 0; i < event_count; ++i) {
        if (events[i].kind == kind && strcmp(events[i].name, name) == 0) {
            return i;
        }
    }
    fail_msg("%s was never told of", name);
    return 0;
}

/* Place of the event that ends the range which event `begin` begins. */
static inline size_t end_of(size_t begin)
{
    const fake_nvtx_event *event = &events[begin];
    for (size_t i = begin + 1; i < event_count; ++i) {
        bool ends = event->kind == FAKE_PUSH
                        ? events[i].kind == FAKE_POP && events[i].thread == event->thread &&
                              events[i].depth == event->depth
                        : events[i].kind == FAKE_END && events[i].range == event->range;
        if (ends) {
            return i;
        }
    }
    fail_msg("range %s never ended", event->name);
    return 0;
}

/* Every range ended once, under its name, and is one of the domain; ranges of a thread nest. */
static inline void assert_balanced(void)
{
    int begun = 0, ended = 0;
    for (size_t i = 0; i < event_count; ++i) {
        bool begins = events[i].kind == FAKE_PUSH || events[i].kind == FAKE_START;
        assert_string_equal(events[i].domain, "filch");
        assert_true(events[i].name[0] != '\0' && events[i].depth >= 0);
        begun += begins;
        ended += !begins;
        if (begins) {
            assert_string_equal(events[end_of(i)].name, events[i].name);
        }
    }
    assert_int_equal(begun, ended);
}

#endif
