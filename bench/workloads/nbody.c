/* SPDX-License-Identifier: Apache-2.0 */
/* A time step of the gravitational n-body problem, all pairs, as a batch over bodies: much work on
 * little data, all of which every device needs. A run starts from the initial state. */
#include "offload/offload.h"
#include "problems/dense.h"
#include "support/fail.h"
#include "workloads/workload.h"

#include "filch/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_N 8192
#define N_MAX 10000000
/* Bodies whose step the check computes itself, in long double. */
#define CHECKED_BODIES 128
/* A pull is a sum of n terms of either sign, so its error, in roundoffs of the sum of their
 * magnitudes, grows about with the square root of n; each term takes some ten operations. */
#define AGREEMENT_ROUNDOFFS 16.0

enum handle { AT, SPEED, MOVED, HANDLES };

static const size_t rows[HANDLES] = {[AT] = 4, [SPEED] = 3, [MOVED] = 4};

typedef struct nbody {
    size_t n;
    size_t element;
    const filch_kernel *kernel;
    bool is_idle;
    void *values[HANDLES];
    filch_nbody_args args;
    bench_offload offload;
} nbody;

static double get(const nbody *b, enum handle which, size_t row, size_t body)
{
    size_t at = body * rows[which] + row;
    return b->element == sizeof(double) ? ((const double *)b->values[which])[at]
                                        : (double)((const float *)b->values[which])[at];
}

static void teardown(void *state)
{
    nbody *b = state;
    bench_offload_close(&b->offload);
    for (size_t k = 0; k < HANDLES; k++)
        free(b->values[k]);
    free(b);
}

/* Bodies anywhere in a cube, of masses from 0 to 1 / n, at rest. */
static filch_status make_bodies(nbody *b, uint64_t seed, filch_error *error)
{
    double *drawn = calloc(4 * b->n, sizeof *drawn);
    for (size_t k = 0; k < HANDLES; k++)
        b->values[k] = calloc(b->n * rows[k], b->element);
    if (!drawn || !b->values[AT] || !b->values[SPEED] || !b->values[MOVED]) {
        free(drawn);
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %zu bodies", b->n);
    }
    bench_dense_fill(4, b->n, 4, drawn, seed);
    for (size_t k = 0; k < 4 * b->n; k++) {
        double value = k % 4 == 3 ? fabs(drawn[k]) / (double)b->n : drawn[k];
        if (b->element == sizeof(double))
            ((double *)b->values[AT])[k] = value;
        else
            ((float *)b->values[AT])[k] = (float)value;
    }
    free(drawn);
    return FILCH_OK;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    bool is_single = options->precision == BENCH_SINGLE;
    if (options->matrix || options->tile)
        return bench_fail(error, FILCH_UNSUPPORTED, options->matrix ? "--matrix" : "--tile", 0,
                          "nbody has none");
    if (options->n == 1)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, "--n", 0, "one body has no other");
    if (options->n > N_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu bodies are above %d", options->n,
                          N_MAX);
    nbody *b = calloc(1, sizeof *b);
    if (!b)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "nbody", 0, "no memory");
    b->n = options->n ? options->n : DEFAULT_N;
    b->element = is_single ? sizeof(float) : sizeof(double);
    b->kernel = filch_kernel_find(is_single ? "nbody_f32" : "nbody_f64");
    b->is_idle = bench_is_simulated(options) && !options->check;
    b->args = (filch_nbody_args){.step = 0.01, .softening = 0.01};
    filch_status status = make_bodies(b, options->seed ? options->seed : 1, error);
    if (status != FILCH_OK) {
        teardown(b);
        return status;
    }
    *state = b;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const nbody *b = state;
    problem->n = b->n;
    problem->tile = 0;
    problem->work = (double)b->n * (double)b->n;
    snprintf(problem->text, sizeof problem->text,
             "A time step of %zu bodies that attract each other%s, a batch over bodies", b->n,
             b->element == sizeof(float) ? " in single precision" : "");
}

static filch_status build(void *state, bench_built *built)
{
    static const char *const labels[HANDLES] = {"positions", "speeds", "moved"};
    nbody *b = state;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    bench_offload_meet(&b->offload, built->runtime);
    codelet.name = b->kernel->name;
    codelet.host = b->is_idle ? bench_run_nothing : b->kernel->host;
    codelet.cuda = b->offload.has_gpus ? b->kernel->cuda : NULL;
    codelet.arg_size = b->kernel->arg_size;
    filch_status status = filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
    for (size_t k = 0; k < HANDLES && status == FILCH_OK; k++) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        bench_offload_pin(&b->offload, b->values[k], b->n * rows[k] * b->element);
        desc.ptr = b->values[k];
        desc.element = b->element;
        desc.rows = rows[k];
        desc.cols = b->n;
        desc.tile_cols = k == AT ? 0 : 1;
        desc.label = labels[k];
        status = filch_data_create(built->runtime, &desc, &built->data[k]);
    }
    return status;
}

static void reset(void *state)
{
    nbody *b = state;
    memset(b->values[SPEED], 0, b->n * rows[SPEED] * b->element);
    memset(b->values[MOVED], 0, b->n * rows[MOVED] * b->element);
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    const nbody *b = state;
    const filch_batch_access accesses[HANDLES] = {
        [AT] = {.data = built->data[AT], .mode = FILCH_READ, .map = FILCH_MAP_WHOLE},
        [SPEED] = {.data = built->data[SPEED],
                   .mode = FILCH_READWRITE,
                   .map = FILCH_MAP_AFFINE,
                   .scale = 1},
        [MOVED] = {.data = built->data[MOVED],
                   .mode = FILCH_WRITE,
                   .map = FILCH_MAP_AFFINE,
                   .scale = 1},
    };
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = built->codelets[0];
    desc.args = &b->args;
    desc.n = b->n;
    desc.accesses = accesses;
    desc.access_count = HANDLES;
    return filch_batch_submit(built->runtime, &desc, NULL, job);
}

/* The speed that a body gets from rest, and the sum of the magnitudes that make it up. */
static void pull(const nbody *b, size_t body, long double *speed, double *magnitude)
{
    *magnitude = 0;
    for (size_t d = 0; d < 3; d++)
        speed[d] = 0;
    for (size_t k = 0; k < b->n; k++) {
        long double apart[3];
        long double r2 = (long double)b->args.softening * b->args.softening;
        for (size_t d = 0; d < 3; d++) {
            apart[d] = (long double)get(b, AT, d, k) - get(b, AT, d, body);
            r2 += apart[d] * apart[d];
        }
        long double weight = b->args.step * get(b, AT, 3, k) / (r2 * sqrtl(r2));
        for (size_t d = 0; d < 3; d++)
            speed[d] += weight * apart[d];
        *magnitude += (double)(weight * sqrtl(r2));
    }
}

/* Sampled bodies. The residual is the largest error of a speed over the magnitudes it sums up. */
static filch_status check(void *state, double *residual, filch_error *error)
{
    const nbody *b = state;
    double unit = b->element == sizeof(double) ? 0x1p-53 : 0x1p-24;
    double most = AGREEMENT_ROUNDOFFS * sqrt((double)b->n) * unit;
    double worst = 0;
    for (size_t body = 0; body < b->n; body += b->n / CHECKED_BODIES + 1) {
        long double speed[3];
        double magnitude;
        pull(b, body, speed, &magnitude);
        bool is_moved = get(b, MOVED, 3, body) == get(b, AT, 3, body);
        for (size_t d = 0; d < 3; d++) {
            double got = get(b, SPEED, d, body);
            double to = get(b, AT, d, body) + b->args.step * got;
            double off = fabs(got - (double)speed[d]) / magnitude;
            is_moved = is_moved && fabs(get(b, MOVED, d, body) - to) <= 4 * unit * (1 + fabs(to));
            if (!(off <= worst)) /* written so that not a number is worst */
                worst = off;
        }
        if (!is_moved || !(worst <= most)) {
            *residual = worst;
            return bench_fail(error, FILCH_DATA, "check", 0,
                              "body %zu: its speed is off by %.3g of what it sums up, allowed are "
                              "%.3g%s",
                              body, worst, most, is_moved ? "" : "; it did not move as fast");
        }
    }
    *residual = worst;
    return FILCH_OK;
}

const bench_workload bench_nbody = {
    .name = "nbody",
    .help = "moves bodies that all attract each other by a time step",
    .unit = "interaction",
    .is_even = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .start = start,
    .check = check,
};
