/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/rates.h"

#include "support/fail.h"
#include "support/table.h"

#include <stdlib.h>
#include <string.h>

/* Tiles of each of the two sizes on each device: as many as the estimate rests on together, after
 * the first one, which is not counted. */
#define TILES 9
#define BATCHES 4
#define VECTOR ((uint64_t)1 << 22)
#define PICTURE 384
#define LIMIT 256

static const struct {
    const char *name, *unit;
} kernels[] = {
    {"gemm_f64", "flop"}, {"gemm_f32", "flop"}, {"axpy_f64", "element"}, {"mandelbrot", "row"}};

#define KERNELS (sizeof kernels / sizeof *kernels)
enum { GEMM_F64, GEMM_F32, AXPY, MANDELBROT };

/* What belongs to a measurement; handles go with the runtime, before the buffers. */
typedef struct bench {
    filch_runtime *runtime;
    filch_codelet *codelets[KERNELS]; /* null: no device can run it */
    void **buffers;
    size_t buffer_count;
    filch_error *error;
} bench;

static filch_status seen(const bench *b, filch_status status)
{
    if (status != FILCH_OK && b->error != NULL &&
        filch_runtime_error(b->runtime, b->error) != FILCH_OK)
        return bench_fail(b->error, status, "--speeds", 0, "%s", filch_status_message(status));
    return status;
}

/* A handle of one tile over zeroes, which is what kernels that multiply are timed with well. */
static filch_status make_data(bench *b, uint64_t element, uint64_t rows, uint64_t cols,
                              filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    void **more = realloc(b->buffers, (b->buffer_count + 1) * sizeof *more);
    if (!more)
        return bench_fail(b->error, FILCH_OUT_OF_MEMORY, "--speeds", 0, "no memory");
    b->buffers = more;
    desc.ptr = calloc(rows * cols, element);
    if (!desc.ptr)
        return bench_fail(b->error, FILCH_OUT_OF_MEMORY, "--speeds", 0, "no memory");
    b->buffers[b->buffer_count++] = desc.ptr;
    desc.element = element;
    desc.rows = desc.ld = desc.tile_rows = rows;
    desc.cols = desc.tile_cols = cols;
    return seen(b, filch_data_create(b->runtime, &desc, data));
}

static filch_status finish(const bench *b, filch_job *job)
{
    filch_status status = seen(b, filch_job_wait(job, -1));
    filch_status released = filch_job_release(job);
    return status != FILCH_OK ? status : seen(b, released);
}

/* --- Products --- */

/* Orders of the small and the large matrices: the small ones show what a tile costs by itself. */
static void orders_of(const filch_device_info *info, uint64_t orders[2])
{
    bool is_gpu = info->backend == FILCH_BACKEND_CUDA, is_sim = info->backend == FILCH_BACKEND_SIM;
    orders[0] = is_gpu ? 256 : is_sim ? 16 : 48;
    orders[1] = is_gpu ? 1024 : is_sim ? 48 : 192;
}

static filch_status add_products(bench *b, filch_graph *graph, filch_codelet *codelet,
                                 uint64_t element, uint32_t device)
{
    const filch_gemm_args args = {.alpha = 1, .beta = 0};
    filch_device_info info = {.size = sizeof info};
    filch_data *in[2], *out[2];
    uint64_t orders[2];
    filch_status status = seen(b, filch_device_at(b->runtime, device, &info));
    orders_of(&info, orders);
    for (int k = 0; k < 2 && status == FILCH_OK; k++) {
        status = make_data(b, element, orders[k], orders[k], &in[k]);
        if (status == FILCH_OK)
            status = make_data(b, element, orders[k], orders[k], &out[k]);
    }
    for (int tile = 0; tile < 2 * TILES && status == FILCH_OK; tile++) {
        const filch_access accesses[] = {{.data = in[tile % 2], .mode = FILCH_READ},
                                         {.data = in[tile % 2], .mode = FILCH_READ},
                                         {.data = out[tile % 2], .mode = FILCH_WRITE}};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.args = &args;
        desc.accesses = accesses;
        desc.access_count = 3;
        desc.affinity = device + 1;
        status = seen(b, filch_graph_add(graph, &desc, NULL));
    }
    return status;
}

static filch_status run_products(bench *b, filch_codelet *codelet, uint64_t element)
{
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    filch_status status = seen(b, filch_graph_create(b->runtime, NULL, &graph));
    if (status != FILCH_OK)
        return status;
    for (uint32_t d = 0; d < filch_device_count(b->runtime) && status == FILCH_OK; d++)
        status = add_products(b, graph, codelet, element, d);
    if (status == FILCH_OK)
        status = seen(b, filch_graph_submit(graph, NULL, &job));
    if (status == FILCH_OK)
        status = finish(b, job);
    (void)filch_graph_destroy(graph);
    return status;
}

/* --- Batches --- */

static filch_status run_batches(bench *b, const filch_batch_desc *desc)
{
    filch_status status = FILCH_OK;
    for (int run = 0; run < BATCHES && status == FILCH_OK; run++) {
        filch_job *job = NULL;
        status = seen(b, filch_batch_submit(b->runtime, desc, NULL, &job));
        if (status == FILCH_OK)
            status = finish(b, job);
    }
    return status;
}

static filch_status run_axpy(bench *b)
{
    const filch_axpy_args args = {.alpha = 0.5};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_data *x = NULL, *y = NULL;
    filch_status status = make_data(b, sizeof(double), VECTOR, 1, &x);
    if (status == FILCH_OK)
        status = make_data(b, sizeof(double), VECTOR, 1, &y);
    const filch_batch_access accesses[] = {
        {.data = x, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1},
        {.data = y, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1}};
    desc.codelet = b->codelets[AXPY];
    desc.args = &args;
    desc.n = VECTOR;
    desc.accesses = accesses;
    desc.access_count = 2;
    return status == FILCH_OK ? run_batches(b, &desc) : status;
}

/* The part of the plane is one in which all rows cost the same, nearly. */
static filch_status run_mandelbrot(bench *b)
{
    const filch_mandelbrot_args args = {
        .left = -0.2, .right = 0.0, .low = -0.1, .high = 0.1, .rows = PICTURE, .limit = LIMIT};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_data *pixels = NULL;
    filch_status status = make_data(b, sizeof(uint16_t), PICTURE, PICTURE, &pixels);
    const filch_batch_access access = {
        .data = pixels, .mode = FILCH_WRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    desc.codelet = b->codelets[MANDELBROT];
    desc.args = &args;
    desc.n = PICTURE;
    desc.accesses = &access;
    desc.access_count = 1;
    return status == FILCH_OK ? run_batches(b, &desc) : status;
}

/* --- All of them --- */

static filch_status make_codelets(bench *b)
{
    for (size_t k = 0; k < KERNELS; k++) {
        filch_status status =
            filch_codelet_create_builtin(b->runtime, kernels[k].name, &b->codelets[k]);
        if (status == FILCH_OUT_OF_MEMORY)
            return seen(b, status);
    }
    return FILCH_OK;
}

static filch_status read_rates(const bench *b, bench_rates *rates, bool is_before)
{
    uint32_t devices = filch_device_count(b->runtime);
    filch_status status = FILCH_OK;
    for (uint32_t d = 0; d < devices && status == FILCH_OK; d++) {
        filch_device_info info = {.size = sizeof info};
        status = seen(b, filch_device_at(b->runtime, d, &info));
        for (size_t k = 0; k < KERNELS && status == FILCH_OK; k++) {
            bench_rate *rate = &rates->rates[d * KERNELS + k];
            filch_speed *speed = is_before ? &rate->before : &rate->speed;
            snprintf(rate->device, sizeof rate->device, "%s", info.name);
            rate->codelet = kernels[k].name;
            rate->unit = kernels[k].unit;
            speed->size = sizeof *speed;
            if (b->codelets[k])
                status = seen(b, filch_codelet_speed(b->codelets[k], d, speed));
        }
    }
    return status;
}

static filch_status run_all(bench *b)
{
    filch_status status = FILCH_OK;
    if (b->codelets[GEMM_F64])
        status = run_products(b, b->codelets[GEMM_F64], sizeof(double));
    if (status == FILCH_OK && b->codelets[GEMM_F32])
        status = run_products(b, b->codelets[GEMM_F32], sizeof(float));
    if (status == FILCH_OK && b->codelets[AXPY])
        status = run_axpy(b);
    if (status == FILCH_OK && b->codelets[MANDELBROT])
        status = run_mandelbrot(b);
    return status;
}

filch_status bench_rates_measure(bench_rates *rates, const char *devices, filch_error *error)
{
    bench b = {.error = error};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = devices;
    config.policy = FILCH_POLICY_STATIC; /* each device runs what is meant for it */
    filch_status status = filch_runtime_create(&config, error, &b.runtime);
    if (status != FILCH_OK)
        return status;
    rates->count = filch_device_count(b.runtime) * KERNELS;
    rates->rates = calloc(rates->count, sizeof *rates->rates);
    if (!rates->rates)
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, "--speeds", 0, "no memory");
    if (status == FILCH_OK)
        status = make_codelets(&b);
    if (status == FILCH_OK)
        status = read_rates(&b, rates, true);
    if (status == FILCH_OK)
        status = run_all(&b);
    if (status == FILCH_OK)
        status = read_rates(&b, rates, false);
    (void)filch_runtime_abort(b.runtime);
    while (b.buffer_count > 0)
        free(b.buffers[--b.buffer_count]);
    free(b.buffers);
    return status;
}

void bench_rates_free(bench_rates *rates)
{
    free(rates->rates);
    *rates = (bench_rates){0};
}

/* --- What is shown --- */

static const char *source_name(filch_speed_source source)
{
    return source == FILCH_SPEED_MEASURED ? "measured"
           : source == FILCH_SPEED_PRIOR  ? "prior"
                                          : "unknown";
}

static void cell_rate(bench_table *table, const filch_speed *speed)
{
    char text[32];
    if (speed->source == FILCH_SPEED_UNKNOWN) {
        bench_table_cell(table, "-");
        return;
    }
    bench_format_si(1e9 / speed->ns_per_unit, text, sizeof text);
    bench_table_cell(table, "%s/s", text);
}

bool bench_rates_print(const bench_rates *rates, FILE *stream)
{
    static const char *const titles[] = {"rate", "a tile", "spread", "samples"};
    bench_table table = {0};
    bench_table_column(&table, true, "device");
    bench_table_column(&table, true, "codelet");
    bench_table_column(&table, true, "unit");
    for (size_t k = 0; k < sizeof titles / sizeof *titles; k++)
        bench_table_column(&table, false, titles[k]);
    bench_table_column(&table, true, "from");
    bench_table_column(&table, false, "earlier");
    for (size_t r = 0; r < rates->count; r++) {
        const bench_rate *rate = &rates->rates[r];
        char text[32];
        bench_format_seconds(rate->speed.fixed_ns * 1e-9, text, sizeof text);
        bench_table_cell(&table, "%s", rate->device);
        bench_table_cell(&table, "%s", rate->codelet);
        bench_table_cell(&table, "%s", rate->unit);
        cell_rate(&table, &rate->speed);
        bench_table_cell(&table, "%s", rate->speed.fixed_ns > 0 ? text : "-");
        bench_table_cell(&table, "%.1f %%", 100 * rate->speed.spread);
        bench_table_cell(&table, "%u", rate->speed.samples);
        bench_table_cell(&table, "%s", source_name(rate->speed.source));
        cell_rate(&table, &rate->before);
    }
    bool printed = bench_table_print(&table, stream);
    bench_table_free(&table);
    return printed;
}

static double units_per_s(const filch_speed *speed)
{
    return speed->ns_per_unit > 0 ? 1e9 / speed->ns_per_unit : 0;
}

json_t *bench_rates_json(const bench_rates *rates)
{
    json_t *array = json_array();
    bool failed = array == NULL;
    for (size_t r = 0; r < rates->count && !failed; r++) {
        const bench_rate *rate = &rates->rates[r];
        const filch_speed *speed = &rate->speed;
        failed = json_array_append_new(
                     array, json_pack("{s:s, s:s, s:s, s:f, s:f, s:f, s:I, s:I, s:s, s:f}",
                                      "device", rate->device, "codelet", rate->codelet, "unit",
                                      rate->unit, "units_per_s", units_per_s(speed), "fixed_ns",
                                      speed->fixed_ns, "spread", speed->spread, "samples",
                                      (json_int_t)speed->samples, "timed", (json_int_t)speed->timed,
                                      "source", source_name(speed->source), "prior_units_per_s",
                                      units_per_s(&rate->before))) != 0;
    }
    if (failed) {
        json_decref(array);
        return NULL;
    }
    return array;
}
