/* SPDX-License-Identifier: Apache-2.0 */
#include "peers/one_call.h"

#include "support/fail.h"
#include "support/timing.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* A block that takes this much longer than the best so far is not tried again. */
#define HOPELESS 4.0

static void pin(bench_one_call *one, size_t which, const void *memory)
{
    const bench_peer_work *w = one->work;
    /* Locking pages changes nothing of what is const. */
    void *block = (void *)(uintptr_t)memory;
    if (block && bench_gpu_pin(&one->gpu, block, w->n * w->n * w->kernels->element))
        one->pinned[which] = block;
}

/* The right side and the solution of a system are vectors, too short to matter. */
static void pin_matrices(bench_one_call *one)
{
    const bench_peer_work *w = one->work;
    if (w->keeps_memory)
        return;
    pin(one, 0, w->a);
    if (w->kind == BENCH_PEER_SOLVE)
        return;
    pin(one, 1, w->b);
    pin(one, 2, w->c);
}

filch_status bench_one_call_setup(const bench_one_call_steps *steps, const bench_peer_work *work,
                                  filch_error *error, void **state)
{
    bench_one_call *one = calloc(1, steps->size);
    if (!one)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--versus", 0, "no memory");
    one->steps = steps;
    one->work = work;
    filch_status status = bench_gpu_open(&one->gpu, work->gpus[0], error);
    if (status == FILCH_OK)
        status = steps->load(one, error);
    if (status == FILCH_OK) {
        pin_matrices(one);
        status = bench_gpu_enter(&one->gpu, error);
    }
    if (status == FILCH_OK) {
        status = steps->start(one, error);
        bench_gpu_leave(&one->gpu);
    }
    if (status == FILCH_OK)
        *state = one;
    else
        bench_one_call_teardown(one);
    return status;
}

filch_status bench_one_call_run(void *state, filch_error *error, double *seconds)
{
    bench_one_call *one = state;
    filch_status status = bench_gpu_enter(&one->gpu, error);
    if (status != FILCH_OK)
        return status;
    status = one->steps->run(one, error, seconds);
    bench_gpu_leave(&one->gpu);
    return status;
}

void bench_one_call_teardown(void *state)
{
    bench_one_call *one = state;
    if (one->gpu.context && bench_gpu_enter(&one->gpu, NULL) == FILCH_OK) {
        one->steps->stop(one);
        for (size_t k = 0; k < BENCH_ONE_CALL_BLOCKS; k++)
            bench_gpu_free(&one->gpu, &one->blocks[k]);
        bench_gpu_stream_free(&one->gpu, &one->stream);
        bench_gpu_leave(&one->gpu);
    }
    for (size_t k = 0; k < sizeof one->pinned / sizeof *one->pinned; k++)
        if (one->pinned[k])
            bench_gpu_unpin(&one->gpu, one->pinned[k]);
    if (one->steps->unload)
        one->steps->unload(one);
    bench_gpu_close(&one->gpu);
    free(one);
}

filch_status bench_one_call_check(const char *library, int code, const char *call,
                                  filch_error *error)
{
    return code == 0
               ? FILCH_OK
               : bench_fail(error, FILCH_BACKEND, library, 0, "%s returned status %d", call, code);
}

filch_status bench_one_call_time(bench_one_call *one, bench_one_call_step bring,
                                 bench_one_call_step call, bench_one_call_step fetch,
                                 filch_error *error, double *seconds)
{
    bool is_resident = one->work->is_resident;
    filch_status status = is_resident ? bring(one, error) : FILCH_OK;
    if (status == FILCH_OK && is_resident)
        status = bench_gpu_wait(&one->gpu, one->stream, error);
    double start = bench_now_s();
    if (status == FILCH_OK && !is_resident)
        status = bring(one, error);
    if (status == FILCH_OK)
        status = call(one, error);
    if (status == FILCH_OK && !is_resident)
        status = fetch(one, error);
    if (status == FILCH_OK)
        status = bench_gpu_wait(&one->gpu, one->stream, error);
    *seconds = bench_now_s() - start;
    if (status == FILCH_OK && is_resident)
        status = fetch(one, error);
    return status == FILCH_OK ? bench_gpu_wait(&one->gpu, one->stream, error) : status;
}

/* Twice with this block, the first of which may still make room for it. */
static filch_status try_block(bench_one_call *one, const bench_one_call_tuning *tuning,
                              size_t block, double least, double *seconds, filch_error *error)
{
    double second = INFINITY;
    filch_status status = tuning->set(one, block, error);
    if (status == FILCH_OK)
        status = tuning->once(one, error, seconds);
    if (status == FILCH_OK && *seconds < HOPELESS * least)
        status = tuning->once(one, error, &second);
    *seconds = fmin(*seconds, second);
    return status;
}

filch_status bench_one_call_tune(bench_one_call *one, const bench_one_call_tuning *tuning,
                                 char setting[BENCH_ONE_CALL_SETTING], filch_error *error)
{
    size_t n = one->work->n, best = 0;
    double least = INFINITY;
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < BENCH_ONE_CALL_TRIES && tuning->blocks[k] != 0; k++) {
        double seconds = INFINITY;
        if (k > 0 && tuning->blocks[k] > n)
            break;
        size_t block = tuning->blocks[k] < n ? tuning->blocks[k] : n;
        status = try_block(one, tuning, block, least, &seconds, error);
        if (status != FILCH_OK || seconds >= least)
            continue;
        least = seconds;
        best = block;
    }
    if (best == 0)
        return status;
    snprintf(setting, BENCH_ONE_CALL_SETTING, "block %zu", best);
    return tuning->set(one, best, error);
}
