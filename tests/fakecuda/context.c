/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts, and each thread's stack of them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fake.h"

static fake_thread *threads;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void thread_check(const fake_thread *thread, const char *when)
{
    for (uint32_t i = 0; i < thread->depth; i++) {
        if (thread->entries[i].was_pushed)
            (void)fake_violate(0, "a context pushed and never popped %s", when);
    }
}

static void thread_end(void *value)
{
    fake_thread *thread = value;

    (void)pthread_mutex_lock(&fake.lock);
    thread_check(thread, "when its thread ended");
    for (fake_thread **link = &threads; *link != NULL; link = &(*link)->next) {
        if (*link == thread) {
            *link = thread->next;
            break;
        }
    }
    (void)pthread_mutex_unlock(&fake.lock);
    free(thread);
}

void fake_threads_check(void)
{
    for (const fake_thread *thread = threads; thread != NULL; thread = thread->next)
        thread_check(thread, "when the process ended");
}

static void key_make(void)
{
    if (pthread_key_create(&key, thread_end) != 0)
        abort();
}

fake_thread *fake_thread_get(void)
{
    (void)pthread_once(&once, key_make);
    fake_thread *thread = pthread_getspecific(key);
    if (thread == NULL) {
        thread = calloc(1, sizeof *thread);
        if (thread == NULL || pthread_setspecific(key, thread) != 0)
            abort();
        thread->next = threads;
        threads = thread;
    }
    return thread;
}

fake_context *fake_current(void)
{
    const fake_thread *thread = fake_thread_get();

    return thread->depth > 0 ? thread->entries[thread->depth - 1].context : NULL;
}

fake_device *fake_context_device(const fake_context *context)
{
    return fake_device_get(context->device);
}

bool fake_context_reaches(const fake_context *context, const fake_context *memory)
{
    bool is_peer = context == memory;

    for (uint32_t i = 0; i < context->peer_count; i++)
        is_peer = is_peer || context->peers[i] == memory;
    return is_peer;
}

static fake_context *context_make(CUdevice device, unsigned flags, bool is_primary)
{
    fake_context *context = fake_object_make(FAKE_CONTEXT, sizeof *context, NULL);

    context->device = device;
    context->flags = flags;
    context->is_primary = is_primary;
    fake_executors_start();
    return context;
}

void fake_context_end(fake_context *context)
{
    static const fake_kind kinds[] = {FAKE_STREAM, FAKE_EVENT,    FAKE_MODULE,
                                      FAKE_GREEN,  FAKE_FUNCTION, FAKE_DESC};

    fake_context_wait(context);
    fake_context_leaks(context, "by their context");
    fake_memory_end(context);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint32_t k = fake_object_count(kinds[i]); k-- > 0;) {
            fake_object *object = fake_object_at(kinds[i], k);
            if (object->context == context)
                fake_object_end(object);
        }
    }
    fake_object_end(&context->object);
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
    CUresult result =
        fake_begin_device("cuDevicePrimaryCtxRetain", FAKE_READY | FAKE_SERIAL, device);

    if (result == FL_CUDA_SUCCESS) {
        fake_device *d = fake_device_get(device);
        if (d->compute_mode == FL_CU_COMPUTEMODE_PROHIBITED)
            return fake_end(FL_CUDA_ERROR_DEVICE_UNAVAILABLE);
        if (d->retained == 0) {
            d->primary = context_make(device, d->primary_flags, true);
            d->primary->poison = d->poison;
        }
        d->retained++;
        *context = fake_handle(d->primary);
    }
    return fake_end(result);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
    CUresult result = fake_begin_device("cuDevicePrimaryCtxRelease",
                                        FAKE_READY | FAKE_SERIAL | FAKE_ENDING, device);

    if (result == FL_CUDA_SUCCESS) {
        fake_device *d = fake_device_get(device);
        if (d->retained == 0) {
            result = fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT,
                                  "the primary context is released more often than retained");
        } else if (d->retained == 1) {
            /* Waiting lets other threads in: the count changes after it, with what it guards. */
            d->poison = d->primary->poison;
            fake_context_end(d->primary);
            d->retained = 0;
            d->primary = NULL;
        } else {
            d->retained--;
        }
    }
    return fake_end(result);
}

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned int *flags, int *active)
{
    CUresult result = fake_begin_device("cuDevicePrimaryCtxGetState", FAKE_READY, device);

    if (result == FL_CUDA_SUCCESS) {
        const fake_device *d = fake_device_get(device);
        *flags = d->primary_flags;
        *active = d->retained > 0;
    }
    return fake_end(result);
}

static CUresult push(fake_context *context, bool was_pushed)
{
    fake_thread *thread = fake_thread_get();

    if (thread->depth == sizeof thread->entries / sizeof thread->entries[0])
        return fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT, "too many contexts pushed");
    thread->entries[thread->depth].context = context;
    thread->entries[thread->depth++].was_pushed = was_pushed;
    return FL_CUDA_SUCCESS;
}

CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
    CUresult result = fake_begin_device("cuCtxCreate", FAKE_READY | FAKE_SERIAL, device);

    if (result == FL_CUDA_SUCCESS && (flags & FL_CU_CTX_SCHED_MASK) > 4)
        result = FL_CUDA_ERROR_INVALID_VALUE;
    if (result == FL_CUDA_SUCCESS &&
        fake_device_get(device)->compute_mode == FL_CU_COMPUTEMODE_PROHIBITED)
        result = FL_CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (result == FL_CUDA_SUCCESS) {
        fake_context *made = context_make(device, flags, false);
        *context = fake_handle(made);
        result = push(made, true);
    }
    return fake_end(result);
}

CUresult cuCtxDestroy_v2(CUcontext context)
{
    CUresult result = fake_begin("cuCtxDestroy", FAKE_READY | FAKE_SERIAL | FAKE_ENDING);
    fake_context *gone = NULL;

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    gone = fake_find(FAKE_CONTEXT, context);
    if (gone == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_CONTEXT);
    if (gone->is_primary) {
        return fake_end(
            fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT, "a primary context is destroyed"));
    }
    fake_context_end(gone);
    if (fake_current() == gone)
        fake_thread_get()->depth--;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuCtxPushCurrent_v2(CUcontext context)
{
    CUresult result = fake_begin("cuCtxPushCurrent", FAKE_READY);

    if (result == FL_CUDA_SUCCESS) {
        fake_context *pushed = fake_find(FAKE_CONTEXT, context);
        result = pushed != NULL ? push(pushed, true) : FL_CUDA_ERROR_INVALID_CONTEXT;
    }
    return fake_end(result);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context)
{
    CUresult result = fake_begin("cuCtxPopCurrent", FAKE_READY | FAKE_ENDING);

    if (result == FL_CUDA_SUCCESS) {
        fake_thread *thread = fake_thread_get();
        if (thread->depth == 0)
            return fake_end(fake_violate(FL_CUDA_ERROR_INVALID_CONTEXT, "nothing to pop"));
        if (!thread->entries[thread->depth - 1].was_pushed)
            (void)fake_violate(0, "pops a context that was set, not pushed");
        if (context != NULL)
            *context = fake_handle(thread->entries[thread->depth - 1].context);
        thread->depth--;
    }
    return fake_end(result);
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    CUresult result = fake_begin("cuCtxGetCurrent", FAKE_READY);

    if (result == FL_CUDA_SUCCESS)
        *context = fake_handle(fake_current());
    return fake_end(result);
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    CUresult result = fake_begin("cuCtxSetCurrent", FAKE_READY);
    fake_thread *thread = fake_thread_get();

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    if (context == NULL) {
        if (thread->depth > 0 && thread->entries[thread->depth - 1].was_pushed)
            (void)fake_violate(0, "unbinds a context that was pushed, which is to be popped");
        thread->depth -= thread->depth > 0;
        return fake_end(FL_CUDA_SUCCESS);
    }
    fake_context *bound = fake_find(FAKE_CONTEXT, context);
    if (bound == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_CONTEXT);
    if (thread->depth == 0)
        return fake_end(push(bound, false));
    thread->entries[thread->depth - 1].context = bound;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuCtxGetFlags(unsigned int *flags)
{
    CUresult result = fake_begin("cuCtxGetFlags", FAKE_READY | FAKE_CURRENT);

    if (result == FL_CUDA_SUCCESS)
        *flags = fake_current()->flags;
    return fake_end(result);
}

CUresult cuCtxSynchronize(void)
{
    CUresult result = fake_begin("cuCtxSynchronize", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result == FL_CUDA_SUCCESS) {
        fake_context *context = fake_current();
        fake_context_wait(context);
        result = context->poison;
    }
    return fake_end(result);
}

CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags)
{
    CUresult result = fake_begin("cuCtxEnablePeerAccess", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_context *context = fake_current();
    fake_context *other = fake_find(FAKE_CONTEXT, peer);
    if (other == NULL)
        return fake_end(FL_CUDA_ERROR_INVALID_CONTEXT);
    if (flags != 0)
        return fake_end(FL_CUDA_ERROR_INVALID_VALUE);
    if (other->device == context->device)
        return fake_end(FL_CUDA_ERROR_INVALID_DEVICE);
    if (!fake_link_get(context->device, other->device)->has_peer)
        return fake_end(FL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED);
    if (fake_context_reaches(context, other))
        return fake_end(FL_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
    if (context->peer_count == FAKE_DEVICES)
        return fake_end(FL_CUDA_ERROR_TOO_MANY_PEERS);
    context->peers[context->peer_count++] = other;
    return fake_end(FL_CUDA_SUCCESS);
}

CUresult cuCtxDisablePeerAccess(CUcontext peer)
{
    CUresult result = fake_begin("cuCtxDisablePeerAccess", FAKE_READY | FAKE_CURRENT | FAKE_SERIAL);

    if (result != FL_CUDA_SUCCESS)
        return fake_end(result);
    fake_context *context = fake_current();
    const fake_context *other = fake_find(FAKE_CONTEXT, peer);
    for (uint32_t i = 0; other != NULL && i < context->peer_count; i++) {
        if (context->peers[i] == other) {
            context->peers[i] = context->peers[--context->peer_count];
            return fake_end(FL_CUDA_SUCCESS);
        }
    }
    return fake_end(other != NULL ? FL_CUDA_ERROR_PEER_ACCESS_NOT_ENABLED
                                  : FL_CUDA_ERROR_INVALID_CONTEXT);
}
