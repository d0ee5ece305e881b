/* SPDX-License-Identifier: Apache-2.0 */
/* The Mandelbrot set as a batch over the rows of a picture, whose rows cost very different times.
 * The scheduler is told only how many rows a chunk has. A row of the picture is a column of the
 * handle, since storage is column-major.
 *
 * Where there are GPUs, filch's own kernel runs everywhere. It does not say who computed a row. */
#include "offload/offload.h"
#include "problems/png_image.h"
#include "support/fail.h"
#include "support/parallel.h"
#include "workloads/workload.h"

#include "base/hash.h"
#include "filch/kernels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_ROWS 1024
#define ITERATIONS 5000
/* Simulated: more rows, since up to 64 devices share them, and a narrow picture. */
#define SIMULATED_ROWS 65536
#define SIMULATED_WIDTH 64
#define SIMULATED_ITERATIONS 200
#define ROWS_MAX 1000000
/* Pixels that are worth a thread's while. */
#define PIXELS_AT_ONCE 4096

/* The part of the plane in the picture. */
#define LEFT (-2.1)
#define RIGHT 0.7
#define LOW (-1.4)
#define HIGH 1.4

enum handle { PIXELS, OWNERS };

typedef struct mandelbrot {
    size_t rows;
    size_t width;
    unsigned limit;
    bool is_idle;       /* simulated and not checked: rows are only assigned */
    uint16_t *pixels;   /* iterations; width of them a row */
    uint16_t *expected; /* the same by one thread; null until it is needed */
    uint16_t *owners;   /* a row: device + 1 that computed it */
    double *prefix;     /* iterations of all rows before, rows + 1 of them */
    bench_offload offload;
} mandelbrot;

/* By value in the batch. */
typedef struct arguments {
    const mandelbrot *m;
} arguments;

/* One row by the escape-time algorithm; returns its iterations. */
static double compute_row(const mandelbrot *m, size_t row, uint16_t *pixels)
{
    double y = LOW + (HIGH - LOW) * ((double)row + 0.5) / (double)m->rows;
    uint64_t sum = 0;
    for (size_t column = 0; column < m->width; column++) {
        double x = LEFT + (RIGHT - LEFT) * ((double)column + 0.5) / (double)m->width;
        double re = 0;
        double im = 0;
        double re2 = 0;
        double im2 = 0;
        unsigned k = 0;
        for (; k < m->limit && re2 + im2 <= 4.0; k++) {
            im = 2 * re * im + y;
            re = re2 - im2 + x;
            re2 = re * re;
            im2 = im * im;
        }
        pixels[column] = (uint16_t)k;
        sum += k;
    }
    return (double)sum;
}

static int run_rows(const filch_call *call)
{
    const mandelbrot *m = ((const arguments *)call->args)->m;
    uint16_t *pixels = call->views[PIXELS].ptr;
    uint16_t *owners = call->views[OWNERS].ptr;
    uint64_t rows = call->hi - call->lo, all = bench_slow_times(call->device) * rows;
    for (uint64_t k = 0; k < all; k++) {
        uint64_t row = call->lo + k % rows;
        owners[row - call->lo] = (uint16_t)(call->device + 1);
        if (!m->is_idle)
            (void)compute_row(m, row, pixels + (row - call->lo) * call->views[PIXELS].ld);
    }
    return 0;
}

/* The kernel built into filch, as often as --slow says. */
static int run_kernel(const filch_call *call)
{
    int code = 0;
    for (uint32_t k = bench_slow_times(call->device); k > 0 && code == 0; k--)
        code = filch_kernel_find("mandelbrot")->host(call);
    return code;
}

static int shape_rows(const filch_call *call, filch_shape *shape)
{
    int code = filch_kernel_find("mandelbrot")->cuda->shape_of(call, shape);
    shape->grid[2] = bench_slow_times(call->device);
    return code;
}

/* What rows really take on a simulated device. */
static double cost_rows(const filch_call *call)
{
    const mandelbrot *m = ((const arguments *)call->args)->m;
    return m->prefix[call->hi] - m->prefix[call->lo];
}

static void teardown(void *state)
{
    mandelbrot *m = state;
    bench_offload_close(&m->offload);
    free(m->pixels);
    free(m->expected);
    free(m->owners);
    free(m->prefix);
    free(m);
}

static void make_rows(void *context, size_t lo, size_t hi)
{
    mandelbrot *m = context;
    for (size_t row = lo; row < hi; row++)
        m->prefix[row + 1] = compute_row(m, row, m->expected + row * m->width);
}

static filch_status make_reference(mandelbrot *m)
{
    if (m->expected)
        return FILCH_OK;
    m->expected = calloc(m->rows * m->width, sizeof *m->expected);
    if (!m->expected)
        return FILCH_OUT_OF_MEMORY;
    bench_parallel(m->rows, 1 + PIXELS_AT_ONCE / (m->width + 1), make_rows, m);
    for (size_t row = 0; row < m->rows; row++)
        m->prefix[row + 1] += m->prefix[row];
    return FILCH_OK;
}

static void count_rows(void *context, size_t lo, size_t hi)
{
    const mandelbrot *m = context;
    for (size_t row = lo; row < hi; row++) {
        uint64_t sum = 0;
        for (size_t column = 0; column < m->width; column++)
            sum += m->pixels[row * m->width + column];
        m->prefix[row + 1] = (double)sum;
    }
}

/* Iterations of all rows, by the picture that the last run drew where there is no reference: it
 * takes processors minutes to draw what is worth a GPU's while. */
static double count_work(const mandelbrot *m)
{
    if (m->expected)
        return m->prefix[m->rows];
    double sum = 0;
    bench_parallel(m->rows, 1 + PIXELS_AT_ONCE / (m->width + 1), count_rows, (void *)m);
    for (size_t row = 0; row < m->rows; row++)
        sum += m->prefix[row + 1];
    return sum;
}

static filch_status setup(const bench_options *options, filch_error *error, void **state)
{
    bool simulated = bench_is_simulated(options);
    if (options->matrix || options->tile)
        return bench_fail(error, FILCH_UNSUPPORTED, options->matrix ? "--matrix" : "--tile", 0,
                          "mandelbrot has none");
    if (options->precision != BENCH_DOUBLE)
        return bench_fail(error, FILCH_UNSUPPORTED, "--precision", 0, "mandelbrot is double only");
    if (options->n > ROWS_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, "--n", 0, "%zu rows are above %d", options->n,
                          ROWS_MAX);
    mandelbrot *m = calloc(1, sizeof *m);
    if (!m)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "mandelbrot", 0, "no memory");
    m->rows = options->n ? options->n : simulated ? SIMULATED_ROWS : DEFAULT_ROWS;
    m->width = simulated ? SIMULATED_WIDTH : m->rows;
    m->limit = simulated ? SIMULATED_ITERATIONS : ITERATIONS;
    m->is_idle = simulated && !options->check;
    m->pixels = calloc(m->rows * m->width, sizeof *m->pixels);
    m->owners = calloc(m->rows, sizeof *m->owners);
    m->prefix = calloc(m->rows + 1, sizeof *m->prefix);
    filch_status status = FILCH_OK;
    if (!m->pixels || !m->owners || !m->prefix)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--n", 0, "no memory for %zu x %zu pixels",
                            m->rows, m->width);
    if (status != FILCH_OK) {
        teardown(m);
        return status;
    }
    *state = m;
    return FILCH_OK;
}

static void describe(const void *state, bench_problem *problem)
{
    const mandelbrot *m = state;
    problem->n = m->rows;
    problem->tile = 0;
    problem->work = count_work(m);
    snprintf(problem->text, sizeof problem->text,
             "Mandelbrot set, %zu x %zu pixels, at most %u iterations, a batch over rows", m->width,
             m->rows, m->limit);
}

static filch_status make_codelet(const mandelbrot *m, bench_built *built)
{
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    codelet.name = "mandelbrot";
    if (m->offload.has_gpus) {
        const filch_kernel *kernel = filch_kernel_find("mandelbrot");
        filch_cuda_desc cuda = *kernel->cuda;
        cuda.shape_of = shape_rows;
        codelet.host = run_kernel;
        codelet.work = kernel->work;
        codelet.cuda = &cuda;
        codelet.arg_size = kernel->arg_size;
        return filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
    }
    codelet.host = run_rows;
    codelet.cost = cost_rows;
    codelet.arg_size = sizeof(arguments);
    return filch_codelet_create(built->runtime, &codelet, &built->codelets[0]);
}

static filch_status build(void *state, bench_built *built)
{
    mandelbrot *m = state;
    bench_offload_meet(&m->offload, built->runtime);
    if (!m->offload.has_gpus) {
        filch_status made = make_reference(m);
        if (made != FILCH_OK)
            return made;
    }
    bench_offload_pin(&m->offload, m->pixels, m->rows * m->width * sizeof *m->pixels);
    filch_data_desc pixels = FILCH_DATA_DESC_INIT;
    pixels.ptr = m->pixels;
    pixels.element = sizeof *m->pixels;
    pixels.rows = m->width;
    pixels.cols = m->rows;
    pixels.label = "pixels";
    filch_data_desc owners = FILCH_DATA_DESC_INIT;
    owners.ptr = m->owners;
    owners.element = sizeof *m->owners;
    owners.rows = m->rows;
    owners.label = "owners";
    filch_status status = make_codelet(m, built);
    if (status == FILCH_OK)
        status = filch_data_create(built->runtime, &pixels, &built->data[PIXELS]);
    if (status == FILCH_OK)
        status = filch_data_create(built->runtime, &owners, &built->data[OWNERS]);
    return status;
}

static void reset(void *state)
{
    mandelbrot *m = state;
    memset(m->pixels, 0, m->rows * m->width * sizeof *m->pixels);
    memset(m->owners, 0, m->rows * sizeof *m->owners);
}

static filch_status start(void *state, bench_built *built, filch_job **job)
{
    mandelbrot *m = state;
    const arguments args = {m};
    const filch_mandelbrot_args kernel_args = {
        .left = LEFT, .right = RIGHT, .low = LOW, .high = HIGH, .rows = m->rows, .limit = m->limit};
    filch_batch_access accesses[] = {
        [PIXELS] = {.data = built->data[PIXELS],
                    .mode = FILCH_WRITE,
                    .map = FILCH_MAP_AFFINE,
                    .scale = 1},
        [OWNERS] = {.data = built->data[OWNERS],
                    .mode = FILCH_WRITE,
                    .map = FILCH_MAP_AFFINE,
                    .scale = 1},
    };
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = built->codelets[0];
    desc.args = m->offload.has_gpus ? (const void *)&kernel_args : &args;
    desc.n = m->rows;
    desc.accesses = accesses;
    desc.access_count = m->offload.has_gpus ? 1 : 2;
    return filch_batch_submit(built->runtime, &desc, NULL, job);
}

static filch_status check(void *state, double *residual, filch_error *error)
{
    (void)residual;
    mandelbrot *m = state;
    if (make_reference(m) != FILCH_OK)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "check", 0, "no memory for a picture");
    for (size_t row = 0; row < m->rows; row++)
        if ((m->owners[row] == 0 && !m->offload.has_gpus) ||
            memcmp(m->pixels + row * m->width, m->expected + row * m->width,
                   m->width * sizeof *m->pixels) != 0)
            return bench_fail(error, FILCH_DATA, "check", 0,
                              "row %zu differs from what one thread computes", row);
    return FILCH_OK;
}

/* Hues spread by the golden angle, so that neighbouring devices differ. */
static void tint(uint32_t device, double *rgb)
{
    double hue = 6.0 * ((double)device * 0.618033988749895 -
                        (double)(uint32_t)((double)device * 0.618033988749895));
    for (int c = 0; c < 3; c++) {
        double distance = hue - 2.0 * c;
        distance = distance < 0 ? -distance : distance;
        distance = distance > 3 ? 6 - distance : distance;
        double full = 2 - distance;
        rgb[c] = full < 0 ? 0 : full > 1 ? 1 : full;
    }
}

static filch_status image(const void *state, const char *path, uint32_t devices, filch_error *error)
{
    const mandelbrot *m = state;
    /* An idle simulated run shows who would have computed which row. */
    const uint16_t *pixels = m->is_idle ? m->expected : m->pixels;
    unsigned char *rgb = calloc(m->rows * m->width, 3);
    if (!rgb)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "--image", 0, "no memory for the picture");
    for (size_t row = 0; row < m->rows; row++) {
        double colour[3] = {1, 1, 1};
        if (devices > 1 && m->owners[row] > 0)
            tint(m->owners[row] - 1u, colour);
        for (size_t column = 0; column < m->width; column++) {
            unsigned k = pixels[row * m->width + column];
            double light = k == m->limit ? 0.12 : 0.3 + 0.7 * (double)(k % 64) / 63;
            for (size_t c = 0; c < 3; c++)
                rgb[(row * m->width + column) * 3 + c] =
                    (unsigned char)(255 * light * (0.35 + 0.65 * colour[c]) + 0.5);
        }
    }
    filch_status status = bench_png_write(path, m->width, m->rows, rgb, error);
    free(rgb);
    return status;
}

static uint64_t schedule(const void *state, uint64_t hash)
{
    const mandelbrot *m = state;
    return fl_hash_bytes(hash, m->owners, m->rows * sizeof *m->owners);
}

const bench_workload bench_mandelbrot = {
    .name = "mandelbrot",
    .help = "draws the Mandelbrot set by rows of very unequal cost",
    .unit = "iteration",
    .takes_slow = true,
    .setup = setup,
    .teardown = teardown,
    .describe = describe,
    .build = build,
    .reset = reset,
    .start = start,
    .check = check,
    .image = image,
    .schedule = schedule,
};
