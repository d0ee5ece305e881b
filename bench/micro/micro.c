/* SPDX-License-Identifier: Apache-2.0 */
#include "micro/micro.h"

#include "report/json_out.h"
#include "support/fail.h"

#include <jansson.h>

#include <math.h>
#include <stdbool.h>

#include <stdlib.h>
#include <string.h>

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double micro_median(double *rounds)
{
    qsort(rounds, MICRO_ROUNDS, sizeof *rounds, compare_doubles);
    return rounds[MICRO_ROUNDS / 2];
}

void micro_report(FILE *out, micro_list *list, const char *name, double value, const char *unit)
{
    if (list->count < MICRO_FIGURES_MAX) {
        micro_figure *figure = &list->figures[list->count++];
        *figure = (micro_figure){.value = value, .unit = unit};
        snprintf(figure->name, sizeof figure->name, "%s", name);
    }
    if (out)
        fprintf(out, "%-52s %10.2f %s\n", name, value, unit);
}

static json_t *figure_json(const micro_figure *figure)
{
    json_t *value = isfinite(figure->value) ? json_real(figure->value) : json_null();
    return json_pack("{s:s, s:o, s:s}", "name", figure->name, "value", value, "unit", figure->unit);
}

/* Null where memory runs out. */
static json_t *result_json(const micro_result *result)
{
    json_t *figures = json_array();
    for (size_t k = 0; figures && k < result->list.count; k++)
        if (json_array_append_new(figures, figure_json(&result->list.figures[k])) != 0) {
            json_decref(figures);
            return NULL;
        }
    return json_pack("{s:s, s:o}", "name", result->name, "figures", figures);
}

static json_t *document_json(const micro_result *results, size_t count)
{
    json_t *micros = json_array();
    for (size_t k = 0; micros && k < count; k++)
        if (json_array_append_new(micros, result_json(&results[k])) != 0) {
            json_decref(micros);
            return NULL;
        }
    return json_pack("{s:o}", "micros", micros);
}

filch_status micro_json_write(const char *path, const micro_result *results, size_t count,
                              filch_error *error)
{
    json_t *document = document_json(results, count);
    if (!document)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory for the result");
    filch_status status = bench_json_put(path, document, error);
    json_decref(document);
    return status;
}
