/* SPDX-License-Identifier: Apache-2.0 */
#include "workloads/workload.h"

#include "support/fail.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const bench_workload *const workloads[] = {
    &bench_cholesky,  &bench_gemm,    &bench_lu,     &bench_qr,         &bench_solve, &bench_syrk,
    &bench_trsm,      &bench_potrs,   &bench_getrs,  &bench_mandelbrot, &bench_nbody, &bench_jacobi,
    &bench_wavefront, &bench_chain,   &bench_empty,  &bench_create,     &bench_open,  &bench_busy,
    &bench_stream,    &bench_layered, &bench_narrow, &bench_heat,       &bench_cg,    NULL,
};

const bench_workload *bench_workload_at(size_t index)
{
    return index < sizeof workloads / sizeof *workloads ? workloads[index] : NULL;
}

const bench_workload *bench_workload_find(const char *name)
{
    for (size_t k = 0; workloads[k]; k++)
        if (strcmp(workloads[k]->name, name) == 0)
            return workloads[k];
    return NULL;
}

bool bench_is_simulated(const bench_options *options)
{
    return options->devices && strncmp(options->devices, "sim:", 4) == 0;
}

int bench_run_nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

filch_status bench_runtime_failed(filch_runtime *runtime, filch_status status, const char *what,
                                  filch_error *error)
{
    filch_error inner = FILCH_ERROR_INIT;
    if (filch_runtime_error(runtime, &inner) != FILCH_OK || inner.status != status)
        return bench_fail(error, status, what, 0, "%s", filch_status_message(status));
    return bench_fail(error, status, what, 0, "%s", inner.text);
}

filch_status bench_steps_check(size_t steps, size_t steps_a_graph, filch_error *error)
{
    if (steps % steps_a_graph != 0)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--steps-a-graph", 0,
                          "%zu steps are no whole number of graphs of %zu", steps, steps_a_graph);
    if (steps / steps_a_graph > BENCH_JOBS)
        return bench_fail(error, FILCH_TOO_LARGE, "--steps-a-graph", 0,
                          "%zu steps make more than %d graphs of %zu", steps, BENCH_JOBS,
                          steps_a_graph);
    return FILCH_OK;
}

size_t bench_steps_share(size_t steps, size_t most)
{
    size_t share = most;
    while (steps % share != 0)
        share--;
    if (steps / share > BENCH_JOBS)
        for (share = most + 1; steps % share != 0 || steps / share > BENCH_JOBS;)
            share++;
    return share;
}

filch_status bench_squares_bytes(size_t n, size_t count, size_t element, const char *option,
                                 filch_error *error, size_t *bytes)
{
    if (__builtin_mul_overflow(n, n, bytes) || __builtin_mul_overflow(*bytes, count, bytes) ||
        __builtin_mul_overflow(*bytes, element, bytes))
        return bench_fail(error, FILCH_OVERFLOW, option, 0,
                          "the bytes of a dense matrix of order %zu do not fit a number", n);
    double physical = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if ((double)*bytes > physical)
        return bench_fail(error, FILCH_TOO_LARGE, option, 0,
                          "%zu dense matrices of order %zu take %.1f GB; this machine has %.1f",
                          count, n, (double)*bytes * 1e-9, physical * 1e-9);
    return FILCH_OK;
}

filch_status bench_squares_alloc(size_t n, size_t count, size_t element, const char *option,
                                 filch_error *error, void **memory)
{
    size_t bytes;
    filch_status status = bench_squares_bytes(n, count, element, option, error, &bytes);
    if (status != FILCH_OK)
        return status;
    void *zeroed = calloc(bytes, 1);
    if (!zeroed)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, option, 0,
                          "no memory for %zu dense matrices of order %zu", count, n);
    *memory = zeroed;
    return FILCH_OK;
}
