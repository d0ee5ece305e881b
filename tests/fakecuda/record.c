/* SPDX-License-Identifier: Apache-2.0 */
/* Violations, counts, failures asked for, and what the process left behind. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"

typedef struct counter {
    char call[48];
    uint64_t count;
} counter;

static counter counters[256];
static uint64_t copied[FAKE_DEVICES + 1][FAKE_DEVICES + 1]; /* from, to: ordinals + 1, 0 the host */
static uint64_t violations;
enum { SIZES = 4096 };
static uint64_t sizes[SIZES]; /* launches of graphs, by their nodes */
static uint64_t steps[SIZES]; /* of the last of them */
static char last[512];
static bool is_quiet;
static bool is_steady;
static _Thread_local const char *call_name = "";

const char *fake_call_name(void)
{
    return call_name;
}

void fake_call_set(const char *call)
{
    call_name = call;
}

bool fake_is_steady(void)
{
    return is_steady;
}

CUresult fake_violate(CUresult result, const char *format, ...)
{
    char text[400];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)snprintf(last, sizeof last, "%s: %s", call_name[0] != '\0' ? call_name : "end", text);
    violations++;
    if (!is_quiet)
        (void)fprintf(stderr, "fakecuda: violation: %s\n", last);
    const char *aborts = getenv("FAKECUDA_ABORT");
    if (aborts != NULL && strcmp(aborts, "1") == 0)
        abort();
    return result;
}

static uint8_t place_of(const char *call)
{
    size_t i = 0;

    while (counters[i].call[0] != '\0' && strcmp(counters[i].call, call) != 0) {
        if (++i == sizeof counters / sizeof counters[0])
            abort();
    }
    (void)snprintf(counters[i].call, sizeof counters[i].call, "%s", call);
    return (uint8_t)i;
}

void fake_count(const char *call)
{
    /* Where the name at such an address was counted last: mostly it is the same one. */
    static uint8_t places[1024];
    uint8_t *place = &places[(uintptr_t)call % (sizeof places / sizeof places[0])];

    if (strcmp(counters[*place].call, call) != 0)
        *place = place_of(call);
    counters[*place].count++;
}

void fake_count_graph(size_t nodes, uint64_t longest)
{
    if (nodes < SIZES) {
        sizes[nodes]++;
        steps[nodes] = longest;
    }
}

static size_t row_of(const fake_allocation *block)
{
    return block != NULL ? (size_t)block->device + 1 : 0;
}

void fake_count_bytes(const fake_allocation *from, const fake_allocation *to, uint64_t bytes)
{
    copied[row_of(from)][row_of(to)] += bytes;
}

CUresult fake_failure_check(const char *call, int device, bool *sticky)
{
    CUresult result = FL_CUDA_SUCCESS;

    for (fake_failure *f = fake.config.failures; f != NULL; f = f->next) {
        if (strcmp(f->call, call) != 0 || (f->device >= 0 && f->device != device))
            continue;
        f->seen++;
        bool is_due = f->seen >= f->nth && (f->count == 0 || f->seen - f->nth < f->count);
        if (is_due && result == FL_CUDA_SUCCESS) {
            result = f->result;
            *sticky = f->is_sticky;
        }
    }
    return result;
}

static CUresult context_check(fake_context *context, unsigned needs)
{
    if (context == NULL)
        return fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT, "no current context");
    if (!context->object.is_alive) {
        return fake_violate(FL_CUDA_ERROR_CONTEXT_IS_DESTROYED, "the current context is destroyed");
    }
    return (needs & FAKE_ENDING) != 0 ? FL_CUDA_SUCCESS : context->poison;
}

/* By the call that is in progress, where it fails for good: under the lock. */
static fake_context *struck;
static CUresult poison_before;

static CUresult begin(const char *call, unsigned needs, int device)
{
    CUresult result = FL_CUDA_SUCCESS;
    bool sticky = false;

    (void)pthread_mutex_lock(&fake.lock);
    call_name = call;
    (void)fake_configure_once();
    fake_count(call);
    if ((needs & ~FAKE_SERIAL) != 0 && !fake.is_initialised)
        return fake_violate(FL_CUDA_ERROR_NOT_INITIALIZED, "called before cuInit");
    if (is_steady && (needs & FAKE_SERIAL) != 0)
        (void)fake_violate(0, "serializes a device in the steady state");
    fake_context *current = fake.is_initialised ? fake_current() : NULL;
    if ((needs & FAKE_CURRENT) != 0)
        result = context_check(current, needs);
    if (result != FL_CUDA_SUCCESS)
        return result;
    result = fake_failure_check(call,
                                device >= 0       ? device
                                : current != NULL ? current->device
                                                  : -1,
                                &sticky);
    struck = NULL;
    if (result != FL_CUDA_SUCCESS && sticky && current != NULL) {
        struck = current;
        poison_before = current->poison;
        current->poison = result;
    }
    return result;
}

void fake_blame(fake_context *context)
{
    if (struck == NULL || context == NULL || context == struck)
        return;
    context->poison = struck->poison;
    struck->poison = poison_before;
    struck = NULL;
}

CUresult fake_begin(const char *call, unsigned needs)
{
    return begin(call, needs, -1);
}

CUresult fake_begin_device(const char *call, unsigned needs, CUdevice device)
{
    CUresult result = begin(call, needs, device);

    if (result == FL_CUDA_SUCCESS && fake_device_get(device) == NULL)
        result = FL_CUDA_ERROR_INVALID_DEVICE;
    return result;
}

CUresult fake_end(CUresult result)
{
    uint64_t ns = result == FL_CUDA_ERROR_OUT_OF_MEMORY ? fake.config.refusal_ns : 0;

    call_name = "";
    (void)pthread_mutex_unlock(&fake.lock);
    if (ns != 0) {
        struct timespec span = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
        (void)nanosleep(&span, NULL);
    }
    return result;
}

/* --- What is left behind --- */

static size_t live_count(fake_kind kind, const fake_context *context)
{
    size_t count = 0;

    for (uint32_t i = 0; i < fake_object_count(kind); i++) {
        const fake_object *object = fake_object_at(kind, i);
        if (object->is_alive && (context == NULL || object->context == context))
            count++;
    }
    return count;
}

void fake_context_leaks(const fake_context *context, const char *when)
{
    static const fake_kind kinds[] = {FAKE_STREAM, FAKE_EVENT, FAKE_MODULE, FAKE_GREEN};
    size_t count = fake_memory_live(context);

    if (count > 0)
        (void)fake_violate(0, "%zu memory blocks left behind %s", count, when);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        count = live_count(kinds[i], context);
        if (count > 0) {
            (void)fake_violate(0, "%zu objects (%s) left behind %s", count,
                               fake_kind_name(kinds[i]), when);
        }
    }
}

void fake_leaks_check(void)
{
    static const fake_kind kinds[] = {FAKE_CONTEXT, FAKE_GRAPH, FAKE_EXEC, FAKE_POOL};
    static const char *const parts[] = {"handle", "multicast", "mapping", "reservation"};
    size_t count;

    call_name = "";
    fake_context_leaks(NULL, "at the process's end");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        count = live_count(kinds[i], NULL);
        if (count > 0) {
            (void)fake_violate(0, "%zu objects (%s) left behind at the process's end", count,
                               fake_kind_name(kinds[i]));
        }
    }
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        count = fake_virtual_live(parts[i]);
        if (count > 0)
            (void)fake_violate(0, "%zu objects (%s) left behind at the process's end", count,
                               parts[i]);
    }
    count = fake_pinned_live(NULL);
    if (count > 0)
        (void)fake_violate(0, "%zu pinned host blocks left behind at the process's end", count);
    fake_threads_check();
}

/* The library is linked with -z nodelete: this runs when the process exits, whoever loaded it. */
__attribute__((destructor)) static void finish(void)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake_leaks_check();
    (void)pthread_mutex_unlock(&fake.lock);
    fake_executors_end();
    if (violations > 0) {
        (void)fprintf(stderr, "fakecuda: %llu violations; the last: %s\n",
                      (unsigned long long)violations, last);
        (void)fflush(NULL);
        _exit(FAKECUDA_EXIT);
    }
}

/* --- Control --- */

static void lock(void)
{
    (void)pthread_mutex_lock(&fake.lock);
}

static void unlock(void)
{
    (void)pthread_mutex_unlock(&fake.lock);
}

int fakecuda_visit(const char *call, bool serializes)
{
    return fake_end(fake_begin(call, FAKE_READY | FAKE_CURRENT | (serializes ? FAKE_SERIAL : 0)));
}

void fakecuda_report(const char *text)
{
    lock();
    (void)fake_violate(0, "%s", text);
    unlock();
}

uint64_t fakecuda_count(const char *call)
{
    uint64_t count = 0;

    lock();
    for (size_t i = 0; i < sizeof counters / sizeof counters[0]; i++) {
        if (strcmp(counters[i].call, call) == 0)
            count = counters[i].count;
    }
    unlock();
    return count;
}

uint64_t fakecuda_graphs(size_t nodes)
{
    lock();
    uint64_t count = nodes < SIZES ? sizes[nodes] : 0;
    unlock();
    return count;
}

uint64_t fakecuda_graph_steps(size_t nodes)
{
    lock();
    uint64_t count = nodes < SIZES ? steps[nodes] : 0;
    unlock();
    return count;
}

uint64_t fakecuda_bytes(int from, int to)
{
    lock();
    uint64_t bytes = copied[from + 1][to + 1];
    unlock();
    return bytes;
}

void fakecuda_reset(void)
{
    lock();
    memset(counters, 0, sizeof counters);
    memset(copied, 0, sizeof copied);
    memset(sizes, 0, sizeof sizes);
    memset(steps, 0, sizeof steps);
    while (fake.config.failures != NULL) {
        fake_failure *gone = fake.config.failures;
        fake.config.failures = gone->next;
        free(gone);
    }
    unlock();
}

void fakecuda_fail(const char *call, uint64_t nth, uint64_t count, int result, int device,
                   bool sticky)
{
    fake_failure *failure = calloc(1, sizeof *failure);

    if (failure == NULL)
        abort();
    lock();
    (void)fake_configure_once();
    (void)snprintf(failure->call, sizeof failure->call, "%s", call);
    failure->nth = nth;
    failure->count = count;
    failure->result = result;
    failure->device = device;
    failure->is_sticky = sticky;
    failure->next = fake.config.failures;
    fake.config.failures = failure;
    unlock();
}

void fakecuda_fail_memory(int device)
{
    static const char *const calls[] = {"cuMemAlloc", "cuMemCreate", "cuMemAllocFromPoolAsync"};

    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
        fakecuda_fail(calls[i], 1, 0, FL_CUDA_ERROR_OUT_OF_MEMORY, device, false);
}

void fakecuda_steady_begin(void)
{
    lock();
    is_steady = true;
    unlock();
}

void fakecuda_steady_end(void)
{
    lock();
    is_steady = false;
    unlock();
}

uint64_t fakecuda_violations(void)
{
    lock();
    uint64_t count = violations;
    unlock();
    return count;
}

const char *fakecuda_last_violation(void)
{
    return last;
}

uint64_t fakecuda_forgive(void)
{
    lock();
    uint64_t count = violations;
    violations = 0;
    last[0] = '\0';
    unlock();
    return count;
}

void fakecuda_quiet(bool quiet)
{
    lock();
    is_quiet = quiet;
    unlock();
}

size_t fakecuda_live(const char *kind)
{
    size_t count = 0;

    lock();
    if (strcmp(kind, "memory") == 0) {
        count = fake_memory_live(NULL);
    } else if (strcmp(kind, "pinned") == 0) {
        count = fake_pinned_live(NULL);
    } else if (strcmp(kind, "handle") == 0 || strcmp(kind, "multicast") == 0 ||
               strcmp(kind, "reservation") == 0 || strcmp(kind, "mapping") == 0) {
        count = fake_virtual_live(kind);
    } else {
        for (fake_kind k = FAKE_CONTEXT; k < FAKE_KINDS; k++) {
            if (strcmp(kind, fake_kind_name(k)) == 0)
                count = live_count(k, NULL);
        }
    }
    unlock();
    return count;
}
