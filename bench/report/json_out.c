/* SPDX-License-Identifier: Apache-2.0 */
#include "report/json_out.h"

#include "report/loss_table.h"
#include "support/fail.h"
#include "support/file_out.h"
#include "support/stats.h"

#include <inttypes.h>
#include <jansson.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool bench_result_init(bench_result *result, size_t devices, size_t repeat, size_t versus)
{
    *result = (bench_result){.device_count = devices,
                             .repeat = repeat,
                             .median_s = NAN,
                             .work = NAN,
                             .rate = NAN,
                             .efficiency = NAN,
                             .imbalance = NAN,
                             .residual = NAN,
                             .versus_count = versus};
    result->devices = calloc(devices ? devices : 1, sizeof *result->devices);
    result->seconds = calloc(repeat ? repeat : 1, sizeof *result->seconds);
    bool is_complete = result->devices && result->seconds;
    for (size_t k = 0; k < versus; k++) {
        bench_versus_result *v = &result->versus[k];
        *v = (bench_versus_result){.median_s = NAN, .ratio = NAN};
        v->seconds = calloc(repeat ? repeat : 1, sizeof *v->seconds);
        is_complete = is_complete && v->seconds;
    }
    if (is_complete)
        return true;
    bench_result_free(result);
    return false;
}

void bench_result_free(bench_result *result)
{
    free(result->devices);
    free(result->seconds);
    for (size_t k = 0; k < result->versus_count; k++)
        free(result->versus[k].seconds);
    *result = (bench_result){0};
}

static void derive_devices(bench_result *result)
{
    double speed = 0;
    double busy = 0;
    double longest = 0;
    for (size_t d = 0; d < result->device_count; d++) {
        speed += result->devices[d].speed;
        busy += result->devices[d].busy_s;
        longest = fmax(longest, result->devices[d].busy_s);
    }
    uint32_t changes = result->withdraw.is_asked ? result->withdraw.device : result->slow.device;
    double its = changes < result->device_count ? result->devices[changes].speed : 0;
    double ideal = result->withdraw.is_asked
                       ? bench_withdraw_ideal_s(result->withdraw, result->work, speed, its)
                       : bench_slow_ideal_s(result->slow, result->work, speed, its);
    result->efficiency = speed > 0 ? ideal / result->median_s : NAN;
    result->imbalance = busy > 0 ? longest * (double)result->device_count / busy : NAN;
}

bool bench_result_derive(bench_result *result)
{
    bench_stats stats;
    if (!bench_stats_of(result->seconds, result->repeat, &stats))
        return false;
    result->median_s = stats.median;
    result->rate = stats.median > 0 ? result->work / stats.median : NAN;
    derive_devices(result);
    for (size_t k = 0; k < result->versus_count; k++) {
        bench_versus_result *v = &result->versus[k];
        if (!bench_stats_of(v->seconds, result->repeat, &stats))
            return false;
        v->median_s = stats.median;
        v->ratio = result->median_s > 0 ? stats.median / result->median_s : NAN;
    }
    return true;
}

/* JSON has no word for what is not finite. */
static json_t *number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static json_t *count_of(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *numbers(const double *values, size_t count)
{
    json_t *array = json_array();
    for (size_t k = 0; array && k < count; k++)
        if (json_array_append_new(array, number(values[k])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

/* A null value, from memory that ran out, makes the set fail: *object is then dropped, so that only
 * the end result needs a look. */
static void put(json_t **object, const char *key, json_t *value)
{
    if (!*object) {
        json_decref(value);
    } else if (json_object_set_new(*object, key, value) != 0) {
        json_decref(*object);
        *object = NULL;
    }
}

static json_t *device_json(const bench_device_result *device)
{
    json_t *object = json_object();
    put(&object, "name", json_string(device->name));
    put(&object, "model", json_string(device->model));
    put(&object, "backend", json_string(device->backend));
    put(&object, "score", number(device->score));
    put(&object, "speed", number(device->speed));
    put(&object, "busy_s", number(device->busy_s));
    put(&object, "idle_s", number(device->idle_s));
    put(&object, "transfer_s", number(device->transfer_s));
    put(&object, "tiles", count_of(device->tiles));
    put(&object, "stolen_in", count_of(device->stolen_in));
    put(&object, "stolen_out", count_of(device->stolen_out));
    put(&object, "bytes_in", count_of(device->bytes_in));
    put(&object, "bytes_out", count_of(device->bytes_out));
    put(&object, "bytes_peer", count_of(device->bytes_peer));
    put(&object, "evicted", count_of(device->evicted));
    put(&object, "bytes_evicted", count_of(device->bytes_evicted));
    if (device->losses.wall_ns != 0)
        put(&object, "losses", bench_losses_json(&device->losses));
    return object;
}

static json_t *devices_json(const bench_result *result)
{
    json_t *array = json_array();
    for (size_t d = 0; array && d < result->device_count; d++)
        if (json_array_append_new(array, device_json(&result->devices[d])) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

static json_t *versus_json(const bench_result *result, size_t index)
{
    const bench_versus_result *versus = &result->versus[index];
    json_t *object = json_object();
    put(&object, "name", json_string(versus->name));
    if (versus->setting[0])
        put(&object, "setting", json_string(versus->setting));
    put(&object, "seconds", numbers(versus->seconds, result->repeat));
    put(&object, "median_s", number(versus->median_s));
    put(&object, "ratio", number(versus->ratio));
    put(&object, "cpu_s", number(versus->cpu_s));
    if (versus->visits > 0)
        put(&object, "moves", number(versus->moves / versus->visits));
    return object;
}

static json_t *contenders_json(const bench_result *result)
{
    json_t *array = json_array();
    for (size_t k = 0; array && k < result->versus_count; k++)
        if (json_array_append_new(array, versus_json(result, k)) != 0) {
            json_decref(array);
            return NULL;
        }
    return array;
}

double bench_bound_s(const bench_bound_result *bound)
{
    return fmax(bound->compute_s, bound->transfer_s);
}

static json_t *bound_json(const bench_result *result)
{
    const bench_bound_result *bound = &result->bound;
    json_t *object = json_object();
    put(&object, "speed", number(bound->speed));
    put(&object, "rate_in", number(bound->rate_in));
    put(&object, "rate_out", number(bound->rate_out));
    put(&object, "compute_s", number(bound->compute_s));
    put(&object, "transfer_s", number(bound->transfer_s));
    put(&object, "time_over_bound", number(result->median_s / bench_bound_s(bound)));
    put(&object, "bytes", number(bound->bytes));
    put(&object, "least_bytes", number(bound->least_bytes));
    put(&object, "bytes_over_least", number(bound->bytes / bound->least_bytes));
    return object;
}

static json_t *startup_json(const bench_startup_result *startup)
{
    json_t *object = json_object();
    put(&object, "driver_s", number(startup->driver_s));
    put(&object, "vendor_s", number(startup->vendor_s));
    put(&object, "rest_s", number(startup->rest_s));
    return object;
}

double bench_overlap_of(const bench_overlap_result *overlap, unsigned all, unsigned some)
{
    double sum = 0;
    for (unsigned set = 1; set < BENCH_OVERLAP_SETS; set++)
        if ((set & all) == all && (some == 0 || (set & some) != 0))
            sum += overlap->part[set];
    return sum;
}

static json_t *overlap_json(const bench_overlap_result *overlap)
{
    static const struct {
        const char *key;
        unsigned all, some;
    } parts[] = {
        {"kernels", 1u << BENCH_KERNELS, 0},
        {"in", 1u << BENCH_IN, 0},
        {"out", 1u << BENCH_OUT, 0},
        {"peer", 1u << BENCH_PEER, 0},
        {"kernels_in", 1u << BENCH_KERNELS | 1u << BENCH_IN, 0},
        {"kernels_out", 1u << BENCH_KERNELS | 1u << BENCH_OUT, 0},
        {"kernels_peer", 1u << BENCH_KERNELS | 1u << BENCH_PEER, 0},
        {"in_out", 1u << BENCH_IN | 1u << BENCH_OUT, 0},
        {"kernels_copies", 1u << BENCH_KERNELS,
         1u << BENCH_IN | 1u << BENCH_OUT | 1u << BENCH_PEER},
        {"kernels_in_out", 1u << BENCH_KERNELS | 1u << BENCH_IN | 1u << BENCH_OUT, 0},
    };
    json_t *object = json_object();
    put(&object, "seconds", number(overlap->seconds));
    put(&object, "devices", count_of(overlap->devices));
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++)
        put(&object, parts[k].key, number(bench_overlap_of(overlap, parts[k].all, parts[k].some)));
    put(&object, "nothing", number(overlap->part[0]));
    put(&object, "events_overwritten", count_of(overlap->overwritten));
    put(&object, "copies_missed", count_of(overlap->missed));
    return object;
}

static json_t *slow_json(const bench_slow *slow)
{
    json_t *object = json_object();
    put(&object, "device", count_of(slow->device));
    put(&object, "factor", count_of(slow->factor));
    put(&object, "after_s", number(slow->after_s));
    return object;
}

static json_t *withdraw_json(const bench_withdraw *withdraw)
{
    json_t *object = json_object();
    put(&object, "device", count_of(withdraw->device));
    put(&object, "from_s", number(withdraw->from_s));
    put(&object, "to_s", number(withdraw->to_s));
    return object;
}

json_t *bench_result_json(const bench_result *result)
{
    json_t *object = json_object();
    put(&object, "workload", json_string(result->workload));
    put(&object, "n", count_of(result->n));
    put(&object, "tile", count_of(result->tile));
    if (result->tile_cols)
        put(&object, "tile_cols", count_of(result->tile_cols));
    if (result->variant[0])
        put(&object, "variant", json_string(result->variant));
    if (result->how[0])
        put(&object, "how", json_string(result->how));
    if (result->slow.factor)
        put(&object, "slow", slow_json(&result->slow));
    if (result->withdraw.is_asked)
        put(&object, "withdraw", withdraw_json(&result->withdraw));
    put(&object, "precision", json_string(result->precision));
    put(&object, "policy", json_string(result->policy));
    put(&object, "devices", devices_json(result));
    put(&object, "seconds", numbers(result->seconds, result->repeat));
    put(&object, "median_s", number(result->median_s));
    put(&object, "work", number(result->work));
    put(&object, "work_unit", json_string(result->work_unit));
    put(&object, "rate", number(result->rate));
    put(&object, "efficiency", number(result->efficiency));
    put(&object, "imbalance", number(result->imbalance));
    put(&object, "residual", number(result->residual));
    put(&object, "cpu_s", number(result->cpu_s));
    if (result->steps != 0) {
        put(&object, "steps", count_of(result->steps));
        put(&object, "step_s", number(result->median_s / (double)result->steps));
    }
    if (result->visits > 0)
        put(&object, "moves", number(result->moves / result->visits));
    put(&object, "checked", json_boolean(result->checked));
    if (result->schedule != 0) {
        char text[17];
        snprintf(text, sizeof text, "%016" PRIx64, result->schedule);
        put(&object, "schedule", json_string(text));
    }
    if (result->losses.runs != 0)
        put(&object, "losses", bench_loss_result_json(result));
    if (result->bound.is_known)
        put(&object, "bound", bound_json(result));
    if (result->startup.is_known)
        put(&object, "startup", startup_json(&result->startup));
    if (result->overlap.is_known)
        put(&object, "overlap", overlap_json(&result->overlap));
    if (result->versus_count != 0)
        put(&object, "versus", versus_json(result, 0));
    if (result->versus_count > 1)
        put(&object, "contenders", contenders_json(result));
    return object;
}

filch_status bench_json_put(const char *path, const json_t *document, filch_error *error)
{
    char *text = json_dumps(document, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    if (!text)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory for the text");
    bench_file file;
    filch_status status = bench_file_begin_or_stdout(&file, path, error);
    if (status == FILCH_OK) {
        (void)fprintf(file.stream, "%s\n", text);
        status = bench_file_end(&file, error);
    }
    free(text);
    return status;
}

filch_status bench_json_write(const char *path, const bench_result *result, filch_error *error)
{
    json_t *document = bench_result_json(result);
    if (!document)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory for the result");
    filch_status status = bench_json_put(path, document, error);
    json_decref(document);
    return status;
}
