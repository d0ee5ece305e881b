/* SPDX-License-Identifier: Apache-2.0 */
/* Variants by definition: FAKE_MUTE lacks the entry point, FAKE_REFUSES returns 0 from it. The
 * declarations of NVTX are written out once more, not shared with the runtime. */
#define _GNU_SOURCE
#include "fakenvtx.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#if defined(FAKE_REFUSES)

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t));

int InitializeInjectionNvtx2(const void *(*get_table)(uint32_t))
{
    return get_table(1) == NULL; /* the tables are there, but not wanted */
}

#elif !defined(FAKE_MUTE)

enum { EVENTS = 1 << 16, DOMAINS = 8, DEPTH = 64, TABLES = 6 };

typedef void (*function)(void);

typedef struct callbacks {
    size_t size;
    int (*get)(int module, function ***table, unsigned *count);
} callbacks;

typedef struct version {
    size_t size;
    uint32_t version, reserved;
    void (*set)(uint32_t version);
} version;

typedef struct attributes {
    uint16_t version, size;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, reserved;
    uint64_t payload;
    int32_t message_type;
    const char *message;
} attributes;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static fake_nvtx_event events[EVENTS];
static size_t event_count;
static char domains[DOMAINS][32];
static int domain_count, entry_count;
static uint64_t last_range;
static function **core2[DOMAINS]; /* of each program that asked it in */

/* Open ranges of a thread, by the place of their events. */
static _Thread_local size_t stack[DEPTH];
static _Thread_local int depth;

static fake_nvtx_event *add(fake_nvtx_kind kind, const char *domain)
{
    fake_nvtx_event *event = &events[event_count < EVENTS - 1 ? event_count++ : event_count];
    *event = (fake_nvtx_event){.kind = kind, .thread = (uint64_t)gettid()};
    snprintf(event->domain, sizeof event->domain, "%s", domain != NULL ? domain : "");
    return event;
}

static const char *text_of(const attributes *given)
{
    int is_text = given->version == 3 && given->size == sizeof *given && given->message_type == 1;
    return is_text ? given->message : "(no text)";
}

static void *create(const char *name)
{
    pthread_mutex_lock(&lock);
    char *domain = domains[domain_count++ % DOMAINS];
    snprintf(domain, sizeof domains[0], "%s", name);
    pthread_mutex_unlock(&lock);
    return domain;
}

static int push(void *domain, const attributes *given)
{
    pthread_mutex_lock(&lock);
    fake_nvtx_event *event = add(FAKE_PUSH, domain);
    snprintf(event->name, sizeof event->name, "%s", text_of(given));
    event->depth = depth;
    stack[depth % DEPTH] = (size_t)(event - events);
    pthread_mutex_unlock(&lock);
    return depth++;
}

static int pop(void *domain)
{
    pthread_mutex_lock(&lock);
    fake_nvtx_event *event = add(FAKE_POP, domain);
    event->depth = --depth;
    if (depth >= 0) {
        memcpy(event->name, events[stack[depth % DEPTH]].name, sizeof event->name);
    }
    pthread_mutex_unlock(&lock);
    return depth;
}

static uint64_t start(void *domain, const attributes *given)
{
    pthread_mutex_lock(&lock);
    fake_nvtx_event *event = add(FAKE_START, domain);
    snprintf(event->name, sizeof event->name, "%s", text_of(given));
    uint64_t range = event->range = ++last_range;
    pthread_mutex_unlock(&lock);
    return range;
}

static void end(void *domain, uint64_t range)
{
    pthread_mutex_lock(&lock);
    fake_nvtx_event *event = add(FAKE_END, domain);
    event->range = range;
    for (size_t i = 0; i < event_count; ++i) {
        if (events[i].kind == FAKE_START && events[i].range == range) {
            memcpy(event->name, events[i].name, sizeof event->name);
        }
    }
    pthread_mutex_unlock(&lock);
}

static void fill(function **table, int listens)
{
    *table[2] = listens ? (function)start : NULL;
    *table[3] = listens ? (function)end : NULL;
    *table[4] = listens ? (function)push : NULL;
    *table[5] = listens ? (function)pop : NULL;
    *table[12] = listens ? (function)create : NULL;
}

/* Asks for all that profilers ask for: a program that lacks a part is refused. */
int InitializeInjectionNvtx2(const void *(*get_record)(uint32_t));

int InitializeInjectionNvtx2(const void *(*get_record)(uint32_t))
{
    static const unsigned least[TABLES] = {16, 9, 15, 7, 16, 7};
    const callbacks *records = get_record(1);
    const version *of = get_record(3);
    function **table = NULL;
    unsigned count = 0;
    if (records == NULL || records->size < sizeof *records || of == NULL || of->size < sizeof *of ||
        of->version != 3 || get_record(0) != NULL) {
        return 0;
    }
    of->set(3);
    for (int module = 1; module <= TABLES; ++module) {
        if (!records->get(module, &table, &count) || count < least[module - 1] ||
            table[0] != NULL || !records->get(module, NULL, NULL)) {
            return 0;
        }
        for (unsigned i = 1; i < count; ++i) {
            if (table[i] == NULL) {
                return 0;
            }
        }
        core2[entry_count % DOMAINS] = module == 5 ? table : core2[entry_count % DOMAINS];
    }
    if (records->get(0, &table, &count) || records->get(TABLES + 1, &table, &count)) {
        return 0;
    }
    fill(core2[entry_count++ % DOMAINS], 1);
    return 1;
}

const fake_nvtx_event *fake_nvtx_events(size_t *count);
void fake_nvtx_forget(void);
void fake_nvtx_counts(int *entries, int *made);
void fake_nvtx_listen(int listens);

const fake_nvtx_event *fake_nvtx_events(size_t *count)
{
    pthread_mutex_lock(&lock);
    *count = event_count;
    pthread_mutex_unlock(&lock);
    return events;
}

void fake_nvtx_forget(void)
{
    pthread_mutex_lock(&lock);
    event_count = 0;
    pthread_mutex_unlock(&lock);
}

void fake_nvtx_counts(int *entries, int *made)
{
    *entries = entry_count;
    *made = domain_count;
}

void fake_nvtx_listen(int listens)
{
    for (int i = 0; i < entry_count && i < DOMAINS; ++i) {
        fill(core2[i], listens);
    }
}

#endif
