/* SPDX-License-Identifier: Apache-2.0 */
#include "report/report.h"

#include "support/fail.h"

#include "tracing.h"

#include <stdlib.h>

/* The result as a member of the page's data. "<" could end the element that holds the data, and
 * stands in strings alone. */
static void put_result(FILE *out, const void *user)
{
    fputs(",\n\"bench\":", out);
    for (const char *at = user; *at; at++) {
        if (*at == '<')
            fputs("\\u003c", out);
        else
            putc(*at, out);
    }
}

filch_status bench_report_write(const char *path, filch_runtime *runtime,
                                const bench_result *result, filch_error *error)
{
    json_t *document = bench_result_json(result);
    char *text = document ? json_dumps(document, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
    json_decref(document);
    if (!text)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory for the result");
    filch_status status = fl_tracing_page(runtime, path, put_result, text);
    free(text);
    filch_error inner = FILCH_ERROR_INIT;
    if (status == FILCH_OK)
        return FILCH_OK;
    (void)filch_runtime_error(runtime, &inner);
    return bench_fail(error, status, path, 0, "%s", inner.text);
}
