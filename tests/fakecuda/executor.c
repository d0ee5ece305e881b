/* SPDX-License-Identifier: Apache-2.0 */
/* A few threads that run whatever is first in some stream's queue and may run. Nothing but work in
 * progress occupies a thread: a wait or a duration that is not over leaves its stream queued. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "fake.h"

/* Of the drop-in BLAS, where the process has it: the fake libraries compute by the host's BLAS. */
extern void filch_blas_suspend(void) __attribute__((weak));

static _Thread_local const fake_stream *running;

const fake_stream *fake_running_stream(void)
{
    return running;
}

bool fake_stream_is_idle(const fake_stream *stream)
{
    return stream->finished == stream->queued;
}

static uint64_t work_duration(const fake_stream *stream, const fake_work *work)
{
    const fake_device *device = fake_context_device(work->context);
    double ns = (double)work->duration_ns;

    if (work->call[0] == 'k') {
        ns /= device->speed;
        if (stream->green != NULL)
            ns *= (double)device->sms / (double)stream->green->count;
    }
    return (uint64_t)ns;
}

/* Whether the stream's first op may go on now; *next is brought down to when to look again. */
static bool may_run(fake_stream *stream, uint64_t now, uint64_t *next)
{
    fake_op *op = stream->first;

    if (op == NULL || stream->is_busy)
        return false;
    if (op->waits != NULL)
        return op->waits->is_done;
    if (op->work_next < op->work_count) {
        if (op->end_ns == 0)
            op->end_ns = now + work_duration(stream, op->works[op->work_next]);
        if (op->end_ns > now) {
            *next = op->end_ns < *next ? op->end_ns : *next;
            return false;
        }
    }
    return true;
}

/* Streams are looked at in turn, each executor from where another one begins. */
static fake_stream *find_work(uint32_t *turn, uint64_t *next)
{
    uint32_t count = fake_object_count(FAKE_STREAM);
    uint64_t now = fake_now();

    *next = UINT64_MAX;
    if (fake.is_held)
        return NULL;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t at = (*turn + i) % count;
        fake_stream *stream = (fake_stream *)fake_object_at(FAKE_STREAM, at);
        if (may_run(stream, now, next)) {
            *turn = at + 1;
            return stream;
        }
    }
    return NULL;
}

static void run_work(fake_stream *stream, fake_work *work)
{
    fake_context *context = work->context;
    bool sticky;

    fake_count(work->call);
    CUresult result = fake_failure_check(work->call, context->device, &sticky);
    if (result == FL_CUDA_SUCCESS && context->poison == FL_CUDA_SUCCESS) {
        (void)pthread_mutex_unlock(&fake.lock);
        fake_call_set(work->call);
        running = stream;
        result = work->run(work, stream);
        running = NULL;
        fake_call_set("");
        (void)pthread_mutex_lock(&fake.lock);
    }
    if (result != FL_CUDA_SUCCESS && context->poison == FL_CUDA_SUCCESS)
        context->poison = result;
}

/* Of a stream that is marked as busy. */
static void step(fake_stream *stream)
{
    fake_op *op = stream->first;

    if (op->work_next < op->work_count) {
        run_work(stream, op->works[op->work_next++]);
        op->end_ns = 0;
    }
    if (op->work_next == op->work_count) {
        stream->first = op->next;
        if (stream->first == NULL)
            stream->last = &stream->first;
        fake_op_end(op);
        stream->finished++;
        if (!stream->object.is_alive)
            fake_object_end(&stream->object);
        (void)pthread_cond_broadcast(&fake.finished);
    }
    stream->is_busy = false;
}

static void sleep_until(uint64_t when)
{
    if (when == UINT64_MAX) {
        (void)pthread_cond_wait(&fake.runnable, &fake.lock);
        return;
    }
    /* The condition variable's clock is the wall clock. */
    struct timespec until;
    uint64_t now = fake_now();
    uint64_t left = when > now ? when - now : 0;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    uint64_t end = (uint64_t)until.tv_nsec + left;
    until.tv_sec += (time_t)(end / 1000000000u);
    until.tv_nsec = (long)(end % 1000000000u);
    (void)pthread_cond_timedwait(&fake.runnable, &fake.lock, &until);
}

/* Of those that sleep, if there is more to run now or to wait for. */
static void wake_another(uint32_t turn)
{
    uint64_t next;

    if (find_work(&turn, &next) != NULL || next != UINT64_MAX)
        (void)pthread_cond_signal(&fake.runnable);
}

static void *executor(void *argument)
{
    uint32_t turn = (uint32_t)(uintptr_t)argument;
    uint64_t next;

    (void)pthread_setname_np(pthread_self(), "fakecuda");
    if (filch_blas_suspend != NULL)
        filch_blas_suspend();
    (void)pthread_mutex_lock(&fake.lock);
    while (!fake.is_ending) {
        fake_stream *stream = find_work(&turn, &next);
        if (stream != NULL) {
            stream->is_busy = true;
            wake_another(turn);
            step(stream);
        } else {
            sleep_until(next);
        }
    }
    (void)pthread_mutex_unlock(&fake.lock);
    return NULL;
}

void fake_executors_start(void)
{
    sigset_t all, old;

    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &old);
    while (fake.executor_count < fake.config.threads) {
        if (pthread_create(&fake.executors[fake.executor_count], NULL, executor,
                           (void *)(uintptr_t)fake.executor_count) != 0)
            abort();
        fake.executor_count++;
    }
    (void)pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void fake_executors_end(void)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake.is_ending = true;
    (void)pthread_cond_broadcast(&fake.runnable);
    uint32_t count = fake.executor_count;
    fake.executor_count = 0;
    (void)pthread_mutex_unlock(&fake.lock);
    for (uint32_t i = 0; i < count; i++)
        (void)pthread_join(fake.executors[i], NULL);
}

void fake_stream_wait(fake_stream *stream)
{
    uint64_t goal = stream->queued;

    while (stream->finished < goal)
        (void)pthread_cond_wait(&fake.finished, &fake.lock);
}

void fake_context_wait(const fake_context *context)
{
    fake_object *object = NULL;

    for (uint32_t i = 0; (object = fake_object_from(FAKE_STREAM, i)) != NULL;) {
        i = object->index + 1;
        if (context == NULL || object->context == context)
            fake_stream_wait((fake_stream *)object);
    }
}

void fake_poisoned_settle(void)
{
    fake_object *object = NULL;

    for (uint32_t i = 0; !fake.is_held && (object = fake_object_from(FAKE_STREAM, i)) != NULL;) {
        i = object->index + 1;
        if (object->context->poison != FL_CUDA_SUCCESS)
            fake_stream_wait((fake_stream *)object);
    }
}

void fakecuda_hold(void)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake.is_held = true;
    (void)pthread_mutex_unlock(&fake.lock);
}

void fakecuda_release(void)
{
    (void)pthread_mutex_lock(&fake.lock);
    fake.is_held = false;
    (void)pthread_cond_broadcast(&fake.runnable);
    (void)pthread_mutex_unlock(&fake.lock);
}
