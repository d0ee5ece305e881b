/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/undo.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A core copies some 8 GB/s, a socket several times as much. */
#define BYTES_A_THREAD (8 << 20)
/* Large pages take the system less time to hand out. */
#define LARGE_PAGE ((size_t)2 << 20)

static void copy_column(const fl_undo *undo, int which, int64_t j, bool restores)
{
    const fl_blas_output *out = &undo->outputs[which];
    size_t bytes = (size_t)out->rows * undo->element;
    char *at = (char *)out->ptr + (size_t)(j * out->ld) * undo->element;
    char *kept = (char *)undo->copies[which] + (size_t)j * bytes;
    memcpy(restores ? at : kept, restores ? kept : at, bytes);
}

static void *copy_share(void *user)
{
    const fl_undo_share *share = user;
    for (int64_t j = share->first; j < share->last; j++)
        copy_column(share->undo, share->which, j, false);
    return NULL;
}

static int64_t threads_for(size_t bytes)
{
    cpu_set_t cores;
    int64_t most = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    int64_t wanted = (int64_t)(bytes / BYTES_A_THREAD) + 1;
    most = most < FL_UNDO_THREADS ? most : FL_UNDO_THREADS;
    return wanted < most ? wanted : most;
}

/* A small copy is the caller's, in fl_undo_wait(), as is one for which there is no thread. */
static void begin(fl_undo *undo, int which, size_t bytes)
{
    int64_t count = threads_for(bytes), cols = undo->outputs[which].cols;
    for (int64_t t = 0; t < count; t++) {
        fl_undo_share *share = &undo->shares[undo->share_count++];
        *share = (fl_undo_share){.undo = undo,
                                 .which = which,
                                 .first = cols * t / count,
                                 .last = cols * (t + 1) / count};
        share->is_begun = count > 1 && pthread_create(&share->thread, NULL, copy_share, share) == 0;
    }
}

/* *bytes becomes what the block has. */
static void *take(fl_undo_memory *memory, size_t *bytes)
{
    void *block = NULL, *small = NULL;
    if (*bytes < LARGE_PAGE)
        return malloc(*bytes);
    (void)pthread_mutex_lock(&memory->lock);
    if (memory->bytes >= *bytes) {
        block = memory->block;
        *bytes = memory->bytes;
    } else {
        small = memory->block; /* makes room for the larger one */
    }
    memory->block = NULL;
    memory->bytes = 0;
    (void)pthread_mutex_unlock(&memory->lock);
    free(small);
    if (block)
        return block;
    *bytes = (*bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
    if (posix_memalign(&block, LARGE_PAGE, *bytes) != 0)
        return NULL;
    (void)madvise(block, *bytes, MADV_HUGEPAGE);
    return block;
}

/* The larger one of two blocks is kept. Only the bytes used have pages to take. */
static void give(fl_undo_memory *memory, void *block, size_t bytes, size_t used)
{
    if (block && bytes >= LARGE_PAGE) {
        (void)madvise(block, used, MADV_FREE);
        (void)pthread_mutex_lock(&memory->lock);
        if (bytes > memory->bytes) {
            void *kept = memory->block;
            memory->block = block;
            memory->bytes = bytes;
            block = kept;
        }
        (void)pthread_mutex_unlock(&memory->lock);
    }
    free(block);
}

bool fl_undo_begin(fl_undo *undo, fl_undo_memory *memory, const fl_blas_call *call)
{
    *undo = (fl_undo){.element = fl_call_element(call), .memory = memory};
    undo->count = fl_call_outputs(call, undo->outputs);
    for (int k = 0; k < undo->count; k++) {
        const fl_blas_output *out = &undo->outputs[k];
        size_t bytes = (size_t)out->rows * (size_t)out->cols * undo->element;
        if (!out->is_read)
            continue;
        undo->bytes[k] = undo->used[k] = bytes;
        undo->copies[k] = take(memory, &undo->bytes[k]);
        if (!undo->copies[k]) {
            fl_undo_wait(undo);
            fl_undo_drop(undo);
            return false;
        }
        begin(undo, k, bytes);
    }
    return true;
}

void fl_undo_wait(fl_undo *undo)
{
    for (int k = 0; k < undo->share_count; k++)
        if (!undo->shares[k].is_begun)
            (void)copy_share(&undo->shares[k]);
    for (int k = 0; k < undo->share_count; k++)
        if (undo->shares[k].is_begun)
            (void)pthread_join(undo->shares[k].thread, NULL);
    undo->share_count = 0;
}

void fl_undo_restore(const fl_undo *undo, int first)
{
    for (int k = first; k < undo->count; k++)
        for (int64_t j = 0; j < undo->outputs[k].cols && undo->copies[k]; j++)
            copy_column(undo, k, j, true);
}

void fl_undo_drop(fl_undo *undo)
{
    for (int k = 0; k < undo->count; k++)
        give(undo->memory, undo->copies[k], undo->bytes[k], undo->used[k]);
    undo->count = 0;
}

void fl_undo_close(fl_undo_memory *memory)
{
    free(memory->block);
    memory->block = NULL;
    memory->bytes = 0;
}
