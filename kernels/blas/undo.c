/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/undo.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

/* A core copies some 8 GB/s, a socket several times as much. */
#define THREADS_MOST 8
#define BYTES_A_THREAD (8 << 20)

/* Columns [first, last) from or to the copy. */
typedef struct share {
    const fl_blas_output *output;
    char *copy;
    size_t element;
    int64_t first, last;
    bool restores;
} share;

static void *copy_share(void *user)
{
    const share *s = user;
    size_t column = (size_t)s->output->rows * s->element;
    for (int64_t j = s->first; j < s->last; j++) {
        char *at = (char *)s->output->ptr + (size_t)(j * s->output->ld) * s->element;
        char *kept = s->copy + (size_t)j * column;
        memcpy(s->restores ? at : kept, s->restores ? kept : at, column);
    }
    return NULL;
}

static int64_t threads_for(size_t bytes)
{
    cpu_set_t cores;
    int64_t most = sched_getaffinity(0, sizeof cores, &cores) == 0 ? CPU_COUNT(&cores) : 1;
    int64_t wanted = (int64_t)(bytes / BYTES_A_THREAD) + 1;
    most = most < THREADS_MOST ? most : THREADS_MOST;
    return wanted < most ? wanted : most;
}

/* Where a thread cannot be had, the caller copies its part, too. */
static void copy(const fl_undo *undo, int which, bool restores)
{
    const fl_blas_output *out = &undo->outputs[which];
    size_t column = (size_t)out->rows * undo->element;
    int64_t count = threads_for(column * (size_t)out->cols), own = 0;
    share shares[THREADS_MOST];
    pthread_t threads[THREADS_MOST];
    bool runs[THREADS_MOST] = {false};
    for (int64_t t = 0; t < count; t++) {
        shares[t] = (share){out,
                            undo->copies[which],
                            undo->element,
                            out->cols * t / count,
                            out->cols * (t + 1) / count,
                            restores};
        runs[t] = t != own && pthread_create(&threads[t], NULL, copy_share, &shares[t]) == 0;
    }
    for (int64_t t = 0; t < count; t++)
        if (!runs[t])
            (void)copy_share(&shares[t]);
    for (int64_t t = 0; t < count; t++)
        if (runs[t])
            (void)pthread_join(threads[t], NULL);
}

bool fl_undo_keep(fl_undo *undo, const fl_blas_call *call)
{
    *undo = (fl_undo){.element = fl_call_element(call)};
    undo->count = fl_call_outputs(call, undo->outputs);
    for (int k = 0; k < undo->count; k++) {
        const fl_blas_output *out = &undo->outputs[k];
        if (!out->is_read)
            continue;
        undo->copies[k] = malloc((size_t)out->rows * (size_t)out->cols * undo->element);
        if (!undo->copies[k]) {
            fl_undo_drop(undo);
            return false;
        }
        copy(undo, k, false);
    }
    return true;
}

void fl_undo_restore(const fl_undo *undo, int first)
{
    for (int k = first; k < undo->count; k++)
        if (undo->copies[k])
            copy(undo, k, true);
}

void fl_undo_drop(fl_undo *undo)
{
    for (int k = 0; k < undo->count; k++)
        free(undo->copies[k]);
    undo->count = 0;
}
