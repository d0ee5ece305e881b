/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "report/compare.h"

#include "cli/cli.h"
#include "support/fail.h"
#include "support/stats.h"
#include "support/table.h"

#include <jansson.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
    char *key; /* everything that must be equal for times to be comparable */
    bench_stats stats;
    bool checked;
} entry;

typedef struct document {
    const char *path;
    json_t *root;
    entry *entries;
    size_t count;
} document;

static const char *text_of(const json_t *result, const char *key)
{
    const char *text = json_string_value(json_object_get(result, key));
    return text ? text : "";
}

static long long count_of(const json_t *result, const char *key)
{
    return (long long)json_integer_value(json_object_get(result, key));
}

/* Names of devices hold no blank, so that the joined key is unambiguous. */
static char *make_key(const json_t *result)
{
    char *key;
    if (asprintf(&key, "%s%s%s n=%lld tile=%lld,%lld %s %s", text_of(result, "workload"),
                 text_of(result, "variant")[0] ? ", " : "", text_of(result, "variant"),
                 count_of(result, "n"), count_of(result, "tile"), count_of(result, "tile_cols"),
                 text_of(result, "precision"), text_of(result, "policy")) < 0)
        return NULL;
    size_t index;
    json_t *device;
    json_array_foreach(json_object_get(result, "devices"), index, device)
    {
        char *longer;
        int length = asprintf(&longer, "%s %s", key, text_of(device, "name"));
        free(key);
        if (length < 0)
            return NULL;
        key = longer;
    }
    return key;
}

static filch_status read_seconds(const document *d, size_t at, const json_t *array,
                                 bench_stats *stats, filch_error *error)
{
    size_t count = json_array_size(array);
    if (count < BENCH_COMPARE_REPEATS)
        return bench_fail(error, FILCH_DATA, d->path, 0,
                          "result %zu has %zu repeats: noise needs %d or more", at + 1, count,
                          BENCH_COMPARE_REPEATS);
    double *seconds = calloc(count, sizeof *seconds);
    if (!seconds)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, d->path, 0, "no memory");
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < count && status == FILCH_OK; k++) {
        const json_t *value = json_array_get(array, k);
        seconds[k] = json_number_value(value);
        if (!json_is_number(value) || seconds[k] < 0)
            status = bench_fail(error, FILCH_PARSE, d->path, 0,
                                "seconds[%zu] of result %zu is not a time", k, at + 1);
    }
    if (status == FILCH_OK && !bench_stats_of(seconds, count, stats))
        status = bench_fail(error, FILCH_OUT_OF_MEMORY, d->path, 0, "no memory");
    free(seconds);
    return status;
}

static filch_status read_entry(document *d, const json_t *result, filch_error *error)
{
    size_t at = d->count;
    entry *e = &d->entries[at];
    const json_t *seconds = json_object_get(result, "seconds");
    if (!json_is_string(json_object_get(result, "workload")) || !json_is_array(seconds) ||
        !json_is_array(json_object_get(result, "devices")))
        return bench_fail(error, FILCH_PARSE, d->path, 0,
                          "result %zu lacks one of the keys workload, devices, seconds", at + 1);
    filch_status status = read_seconds(d, at, seconds, &e->stats, error);
    if (status != FILCH_OK)
        return status;
    e->checked = json_is_true(json_object_get(result, "checked"));
    e->key = make_key(result);
    if (!e->key)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, d->path, 0, "no memory");
    d->count++;
    for (size_t k = 0; k < at; k++)
        if (strcmp(d->entries[k].key, e->key) == 0)
            return bench_fail(error, FILCH_DATA, d->path, 0, "results %zu and %zu are both '%s'",
                              k + 1, at + 1, e->key);
    return FILCH_OK;
}

static void document_free(document *d)
{
    for (size_t k = 0; k < d->count; k++)
        free(d->entries[k].key);
    free(d->entries);
    json_decref(d->root);
}

static filch_status document_read(document *d, const char *path, filch_error *error)
{
    json_error_t json_error;
    *d =
        (document){.path = path, .root = json_load_file(path, JSON_REJECT_DUPLICATES, &json_error)};
    if (!d->root && json_error_code(&json_error) == json_error_cannot_open_file)
        return bench_fail(error, FILCH_IO, path, 0, "%s", json_error.text);
    if (!d->root)
        return bench_fail(error, FILCH_PARSE, path, json_error.line, "%s", json_error.text);
    bool single = json_is_object(d->root);
    size_t count = single ? 1 : json_array_size(d->root);
    if (count == 0)
        return bench_fail(error, FILCH_PARSE, path, 0, "holds neither a result nor a list of them");
    d->entries = calloc(count, sizeof *d->entries);
    if (!d->entries)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory");
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status = read_entry(d, single ? d->root : json_array_get(d->root, k), error);
    return status;
}

static bool compare_entry(const entry *before, const entry *after, bench_table *table)
{
    double noise = bench_stats_noise(&before->stats) + bench_stats_noise(&after->stats);
    double change = after->stats.median - before->stats.median;
    const char *verdict = change > noise ? "SLOWER" : change < -noise ? "faster" : "same";
    bool fallen = change > noise;
    if (before->checked && !after->checked) {
        verdict = "NOT CHECKED";
        fallen = true;
    }
    const double times[] = {before->stats.median, after->stats.median, noise};
    bench_table_cell(table, "%s", before->key);
    for (size_t k = 0; k < 3; k++) {
        char text[32];
        bench_format_seconds(times[k], text, sizeof text);
        bench_table_cell(table, "%s", text);
    }
    bench_table_cell(table, "%+.1f %%", 100 * change / before->stats.median);
    bench_table_cell(table, "%s", verdict);
    return fallen;
}

static const entry *find(const document *d, const char *key)
{
    for (size_t k = 0; k < d->count; k++)
        if (strcmp(d->entries[k].key, key) == 0)
            return &d->entries[k];
    return NULL;
}

static filch_status compare(const document *before, const document *after, FILE *out,
                            size_t *fallen, filch_error *error)
{
    size_t worse = 0;
    bench_table table = {0};
    bench_table_column(&table, true, "result");
    bench_table_column(&table, false, "old");
    bench_table_column(&table, false, "new");
    bench_table_column(&table, false, "noise");
    bench_table_column(&table, false, "change");
    bench_table_column(&table, true, "verdict");
    filch_status status = FILCH_OK;
    for (size_t k = 0; k < before->count; k++) {
        const entry *counterpart = find(after, before->entries[k].key);
        if (counterpart)
            worse += compare_entry(&before->entries[k], counterpart, &table);
        else
            status = bench_fail(error, FILCH_DATA, after->path, 0, "has no result '%s'",
                                before->entries[k].key);
    }
    if (out && !bench_table_print(&table, out) && status == FILCH_OK)
        status = bench_fail(error, FILCH_IO, "table", 0, "cannot be printed");
    bench_table_free(&table);
    if (status == FILCH_OK)
        *fallen = worse;
    return status;
}

filch_status bench_compare_files(const char *old_path, const char *new_path, FILE *out,
                                 size_t *fallen, filch_error *error)
{
    document before = {0};
    document after = {0};
    filch_status status = document_read(&before, old_path, error);
    if (status == FILCH_OK)
        status = document_read(&after, new_path, error);
    if (status == FILCH_OK)
        status = compare(&before, &after, out, fallen, error);
    document_free(&before);
    document_free(&after);
    return status;
}

int bench_compare_main(int argc, char **argv)
{
    bool is_help = bench_cli_is_help(argc, argv);
    if (argc != 3 || is_help) {
        fputs("usage: filch-bench compare OLD.json NEW.json\n", is_help ? stdout : stderr);
        return is_help ? BENCH_EXIT_OK : BENCH_EXIT_ERROR;
    }
    size_t fallen = 0;
    filch_error error = FILCH_ERROR_INIT;
    if (bench_compare_files(argv[1], argv[2], stdout, &fallen, &error) != FILCH_OK)
        return bench_cli_fail("compare", &error);
    return fallen ? BENCH_EXIT_FAILED : BENCH_EXIT_OK;
}
