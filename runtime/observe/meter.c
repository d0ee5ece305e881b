/* SPDX-License-Identifier: Apache-2.0 */
#include "observe/meter.h"

#include <inttypes.h>
#include <string.h>

#include "observe/trace.h"

/* State of the thread. STOPPING: it ends at its next look, unless started again before. ENDING: the
 * meter ends. */
enum { NONE, RUNNING, STOPPING, ENDED, ENDING };

static void free_all(fl_meter *meter)
{
    const fl_memory *memory = &meter->core->memory;
    for (uint32_t i = 0; i < meter->gpu_count; ++i) {
        fl_free(memory, meter->gpus[i].rows, FL_METER_ROWS * sizeof *meter->gpus[i].rows);
    }
    fl_free(memory, meter->gpu_of, meter->device_count * sizeof *meter->gpu_of);
    fl_free(memory, meter->gpus, meter->device_count * sizeof *meter->gpus);
}

filch_status fl_meter_init(fl_meter *meter, fl_core *core, uint32_t device_count,
                           bool (*is_active)(const fl_core *core))
{
    *meter = (fl_meter){.core = core, .is_active = is_active, .device_count = device_count};
    meter->gpu_of = fl_alloc_zeroed(&core->memory, device_count * sizeof *meter->gpu_of);
    meter->gpus = fl_alloc_zeroed(&core->memory, device_count * sizeof *meter->gpus);
    filch_status status =
        meter->gpu_of != NULL && meter->gpus != NULL ? FILCH_OK : FILCH_OUT_OF_MEMORY;
    status = status == FILCH_OK ? fl_mutex_init(&meter->lock) : status;
    if (status == FILCH_OK && (status = fl_cond_init(&meter->ends)) != FILCH_OK) {
        fl_mutex_fini(&meter->lock);
    }
    if (status != FILCH_OK) {
        free_all(meter);
        return status;
    }
    for (uint32_t i = 0; i < device_count; ++i) {
        meter->gpu_of[i] = FL_METER_NO_GPU;
    }
    return FILCH_OK;
}

void fl_meter_add(fl_meter *meter, uint32_t device, const char *address)
{
    uint32_t at = 0;
    while (at < meter->gpu_count && strcmp(meter->gpus[at].address, address) != 0) {
        ++at;
    }
    if (at == meter->gpu_count) {
        meter->gpus[meter->gpu_count++] = (fl_meter_gpu){.address = address, .stride = 1};
    }
    meter->gpu_of[device] = at;
}

/* --- Samples --- */

static void add(fl_meter_sum *sum, unsigned value)
{
    sum->least = sum->count == 0 || value < sum->least ? value : sum->least;
    sum->most = value > sum->most ? value : sum->most;
    sum->sum += value;
    ++sum->count;
}

void fl_meter_keep(fl_meter_gpu *gpu, fl_meter_row row)
{
    if (++gpu->skipped < gpu->stride) {
        return;
    }
    gpu->skipped = 0;
    if (gpu->row_count == FL_METER_ROWS) {
        for (size_t i = 0; i < FL_METER_ROWS / 2; ++i) {
            gpu->rows[i] = gpu->rows[2 * i];
        }
        gpu->row_count = FL_METER_ROWS / 2;
        gpu->stride *= 2;
    }
    gpu->rows[gpu->row_count++] = row;
}

/* A sample as read, before it counts. */
typedef struct fl_meter_sample {
    unsigned power, clock;
    unsigned long long reasons;
    bool has_power, has_clock, has_reasons;
    char why_power[FL_NVML_WHY], why_clock[FL_NVML_WHY], why_reasons[FL_NVML_WHY];
} fl_meter_sample;

static void note_why(fl_meter_sum *sum, const char *why)
{
    if (sum->why[0] == '\0') {
        snprintf(sum->why, sizeof sum->why, "%s", why);
    }
}

static void count(fl_meter_gpu *gpu, const fl_meter_sample *sample, uint64_t at)
{
    if (sample->has_power) {
        add(&gpu->power, sample->power);
    } else {
        note_why(&gpu->power, sample->why_power);
    }
    if (sample->has_clock) {
        add(&gpu->clock, sample->clock);
    } else {
        note_why(&gpu->clock, sample->why_clock);
    }
    if (sample->has_reasons) {
        ++gpu->reasons.count;
        gpu->by_power += (sample->reasons & FL_NVML_REASON_POWER) != 0;
        gpu->by_heat += (sample->reasons & FL_NVML_REASON_HEAT) != 0;
    } else {
        note_why(&gpu->reasons, sample->why_reasons);
    }
    if (sample->has_power || sample->has_clock) {
        fl_meter_keep(
            gpu, (fl_meter_row){.at = at,
                                .power = sample->has_power ? sample->power : 0,
                                .clock = sample->has_clock ? sample->clock : 0,
                                .held_down = sample->has_reasons
                                                 ? (unsigned)sample->reasons &
                                                       (FL_NVML_REASON_POWER | FL_NVML_REASON_HEAT)
                                                 : 0});
    }
}

/* Reads a GPU without the lock: a call of NVML may take milliseconds. */
static void read_gpu(fl_meter *meter, const fl_nvml *nvml, fl_meter_gpu *gpu)
{
    fl_meter_sample sample = {.power = 0};
    sample.has_power = fl_nvml_is_ok(nvml, nvml->power(gpu->handle, &sample.power),
                                     "nvmlDeviceGetPowerUsage", sample.why_power);
    sample.has_clock =
        fl_nvml_is_ok(nvml, nvml->clock(gpu->handle, FL_NVML_CLOCK_SM, &sample.clock),
                      "nvmlDeviceGetClockInfo", sample.why_clock);
    sample.has_reasons =
        fl_nvml_is_ok(nvml, nvml->reasons(gpu->handle, &sample.reasons),
                      "nvmlDeviceGetCurrentClocksEventReasons", sample.why_reasons);
    uint64_t at = fl_clock_now(&meter->core->clock);
    fl_mutex_lock(&meter->lock);
    count(gpu, &sample, at);
    fl_mutex_unlock(&meter->lock);
}

/* --- The thread --- */

/* Opens NVML and finds the GPUs; writes down why not. */
static void open_all(fl_meter *meter, fl_nvml *nvml)
{
    char why[FL_NVML_WHY] = "";
    bool is_open = fl_nvml_open(nvml, meter->core->settings.nvml, why);
    fl_mutex_lock(&meter->lock);
    memcpy(meter->why, why, sizeof meter->why);
    fl_mutex_unlock(&meter->lock);
    for (uint32_t i = 0; i < meter->gpu_count; ++i) {
        fl_meter_gpu *gpu = &meter->gpus[i];
        void *handle = NULL;
        char missing[FL_NVML_WHY] = "";
        if (!is_open || !fl_nvml_find(nvml, gpu->address, &handle, missing)) {
            handle = NULL;
        }
        gpu->handle = handle;
        fl_mutex_lock(&meter->lock);
        memcpy(gpu->why, missing, sizeof gpu->why);
        fl_mutex_unlock(&meter->lock);
    }
}

/* Sleeps for a period, or until the meter ends. */
static void rest(fl_meter *meter)
{
    fl_mutex_lock(&meter->lock);
    if (fl_load_relaxed(&meter->state) != ENDING) { /* relaxed: set under the lock */
        (void)fl_cond_wait_for(&meter->ends, &meter->lock, FL_METER_PERIOD_NS);
    }
    fl_mutex_unlock(&meter->lock);
}

/* Tells whether the thread goes on. A thread that stops leaves nothing behind but ENDED. */
static bool goes_on(fl_meter *meter)
{
    uint32_t state = STOPPING;
    /* Acquire-release: a start that finds ENDED sees that the thread is over. */
    return !fl_cas_acq_rel(&meter->state, &state, ENDED) && state == RUNNING;
}

static int sample_all(void *arg)
{
    fl_meter *meter = arg;
    fl_nvml nvml;
    fl_thread_name("filch-meter");
    open_all(meter, &nvml);
    while (nvml.library != NULL && goes_on(meter)) {
        bool is_active = meter->is_active(meter->core);
        for (uint32_t i = 0; is_active && i < meter->gpu_count; ++i) {
            if (meter->gpus[i].handle != NULL) {
                read_gpu(meter, &nvml, &meter->gpus[i]);
            }
        }
        rest(meter);
    }
    fl_nvml_close(&nvml);
    return 0;
}

static filch_status make_rows(fl_meter *meter)
{
    for (uint32_t i = 0; i < meter->gpu_count; ++i) {
        fl_meter_gpu *gpu = &meter->gpus[i];
        if (gpu->rows == NULL) {
            gpu->rows = fl_alloc(&meter->core->memory, FL_METER_ROWS * sizeof *gpu->rows);
            if (gpu->rows == NULL) {
                return FILCH_OUT_OF_MEMORY;
            }
        }
    }
    return FILCH_OK;
}

filch_status fl_meter_start(fl_meter *meter)
{
    uint32_t state = STOPPING;
    if (meter->gpu_count == 0 || strcmp(meter->core->settings.nvml, "off") == 0 ||
        fl_cas_acq_rel(&meter->state, &state, RUNNING) || state == RUNNING) {
        return FILCH_OK;
    }
    filch_status status = make_rows(meter);
    if (status != FILCH_OK) {
        return status;
    }
    if (state == ENDED) {
        fl_thread_join(meter->thread);
    }
    fl_store_release(&meter->state, RUNNING);
    status = fl_thread_start(&meter->thread, sample_all, meter);
    if (status != FILCH_OK) {
        fl_store_release(&meter->state, NONE);
    }
    return status;
}

void fl_meter_stop(fl_meter *meter)
{
    uint32_t state = RUNNING;
    (void)fl_cas_acq_rel(&meter->state, &state, STOPPING);
}

void fl_meter_fini(fl_meter *meter)
{
    fl_mutex_lock(&meter->lock);
    /* Acquire: the thread's writes, if it is over. */
    bool has_thread = fl_exchange_acquire(&meter->state, ENDING) != NONE;
    fl_cond_signal(&meter->ends);
    fl_mutex_unlock(&meter->lock);
    if (has_thread) {
        fl_thread_join(meter->thread);
    }
    fl_cond_fini(&meter->ends);
    fl_mutex_fini(&meter->lock);
    free_all(meter);
}

/* --- Writing --- */

static void put_why(FILE *file, const char *why)
{
    fprintf(file, "{\"why\":\"");
    fl_trace_put_text(file, why);
    fprintf(file, "\"}");
}

/* Writes mean, least and most in units of `of` parts, or why there are none. */
static void put_sum(FILE *file, const char *name, const fl_meter_sum *sum, double of)
{
    fprintf(file, ",\"%s\":", name);
    if (sum->count == 0) {
        put_why(file, sum->why[0] != '\0' ? sum->why : "no job was long enough for a sample");
        return;
    }
    fprintf(file, "{\"mean\":%.6g,\"least\":%.6g,\"most\":%.6g}",
            (double)sum->sum / (double)sum->count / of, sum->least / of, sum->most / of);
}

static void put_reasons(FILE *file, const fl_meter_gpu *gpu)
{
    fprintf(file, ",\"held_down\":");
    if (gpu->reasons.count == 0) {
        put_why(file, gpu->reasons.why[0] != '\0' ? gpu->reasons.why
                                                  : "no job was long enough for a sample");
        return;
    }
    fprintf(file, "{\"by_power\":%.6g,\"by_heat\":%.6g}",
            (double)gpu->by_power / (double)gpu->reasons.count,
            (double)gpu->by_heat / (double)gpu->reasons.count);
}

static void put_rows(FILE *file, const fl_meter_gpu *gpu, uint64_t origin)
{
    const char *before = "";
    fprintf(file, ",\"rows\":[");
    for (size_t i = 0; i < gpu->row_count; ++i) {
        const fl_meter_row *row = &gpu->rows[i];
        if (row->at >= origin) {
            fprintf(file, "%s[%" PRIu64 ",%u,%u,%d]", before, row->at - origin, row->power,
                    row->clock, (row->held_down & FL_NVML_REASON_POWER) != 0);
            before = ",";
        }
    }
    fprintf(file, "]");
}

static void put_gpu(FILE *file, const fl_meter *meter, uint32_t number, bool with_rows,
                    uint64_t origin)
{
    const fl_meter_gpu *gpu = &meter->gpus[number];
    const char *before = "";
    fprintf(file, "{\"address\":\"");
    fl_trace_put_text(file, gpu->address);
    fprintf(file, "\",\"devices\":[");
    for (uint32_t i = 0; i < meter->device_count; ++i) {
        if (meter->gpu_of[i] == number) {
            fprintf(file, "%s%" PRIu32, before, i);
            before = ",";
        }
    }
    fprintf(file, "]");
    if (gpu->why[0] != '\0') {
        fprintf(file, ",\"why\":\"");
        fl_trace_put_text(file, gpu->why);
        fprintf(file, "\"}");
        return;
    }
    put_sum(file, "watts", &gpu->power, 1000);
    put_sum(file, "megahertz", &gpu->clock, 1);
    put_reasons(file, gpu);
    if (with_rows) {
        put_rows(file, gpu, origin);
    }
    fprintf(file, "}");
}

void fl_meter_write(FILE *file, fl_meter *meter, bool with_rows, uint64_t origin)
{
    if (meter->gpu_count == 0) {
        return;
    }
    bool is_off = strcmp(meter->core->settings.nvml, "off") == 0;
    fprintf(file, ",\n\"power\":");
    fl_mutex_lock(&meter->lock);
    if (is_off || meter->why[0] != '\0') {
        put_why(file, is_off ? "FILCH_NVML is off" : meter->why);
    } else {
        fprintf(file, "{\"gpus\":[");
        for (uint32_t i = 0; i < meter->gpu_count; ++i) {
            fprintf(file, i != 0 ? ",\n" : "\n");
            put_gpu(file, meter, i, with_rows, origin);
        }
        fprintf(file, "]}");
    }
    fl_mutex_unlock(&meter->lock);
}
