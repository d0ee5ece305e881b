/* SPDX-License-Identifier: Apache-2.0 */
/* What streams hold: works, and the records that order them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <time.h>

#include "fake.h"

uint64_t fake_now(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void fake_work_init(fake_work *work, const char *call, fake_context *context)
{
    work->references = 1;
    work->call = call;
    work->context = context;
}

void fake_work_use(fake_work *work, const fake_allocation *allocation)
{
    if (allocation != NULL && work->use_count < FAKE_PARAMS)
        work->uses[work->use_count++] = allocation->address;
}

void fake_work_use_pinned(fake_work *work, const void *address)
{
    if (work->use_count < FAKE_PARAMS)
        work->uses[work->use_count++] = (uintptr_t)address;
}

void fake_work_hold(fake_work *work)
{
    work->references++;
}

void fake_work_drop(fake_work *work)
{
    if (--work->references > 0)
        return;
    if (work->drop != NULL)
        work->drop(work);
    free(work);
}

static void use(const fake_work *work, int change)
{
    for (uint32_t i = 0; i < work->use_count; i++) {
        bool was_freed;
        fake_allocation *block = fake_allocation_find(work->uses[i], &was_freed);
        if (block != NULL)
            block->pending += (uint32_t)change;
        else
            fake_pinned_use(work->uses[i], change);
    }
}

static fake_op *op_make(fake_stream *stream)
{
    fake_op *op = calloc(1, sizeof *op);

    if (op == NULL)
        abort();
    *stream->last = op;
    stream->last = &op->next;
    stream->queued++;
    (void)pthread_cond_signal(&fake.runnable);
    return op;
}

void fake_submit_many(fake_stream *stream, fake_work **works, size_t count)
{
    fake_op *op = op_make(stream);

    op->works = calloc(count + 1, sizeof(fake_work *));
    if (op->works == NULL)
        abort();
    for (size_t i = 0; i < count; i++) {
        op->works[i] = works[i];
        use(works[i], 1);
    }
    op->work_count = count;
}

void fake_submit(fake_stream *stream, fake_work *work)
{
    fake_submit_many(stream, &work, 1);
}

void fake_submit_record(fake_stream *stream, fake_record *record)
{
    record->references++;
    op_make(stream)->records = record;
}

void fake_submit_wait(fake_stream *stream, fake_record *record)
{
    record->references++;
    op_make(stream)->waits = record;
}

void fake_record_drop(fake_record *record)
{
    if (record != NULL && --record->references == 0)
        free(record);
}

/* Called by the executor once the op is done; here because it undoes what submission did. */
void fake_op_end(fake_op *op)
{
    for (size_t i = 0; i < op->work_count; i++) {
        use(op->works[i], -1);
        fake_work_drop(op->works[i]);
    }
    if (op->records != NULL) {
        op->records->time_ns = fake_now();
        op->records->is_done = true;
    }
    fake_record_drop(op->records);
    fake_record_drop(op->waits);
    free(op->works);
    free(op);
}
