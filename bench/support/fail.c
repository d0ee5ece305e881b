/* SPDX-License-Identifier: Apache-2.0 */
#include "support/fail.h"

#include <stdarg.h>
#include <stdio.h>

filch_status bench_fail(filch_error *error, filch_status status, const char *label, int64_t line,
                        const char *format, ...)
{
    if (!error)
        return status;
    *error = (filch_error)FILCH_ERROR_INIT;
    error->status = status;
    error->line = line;
    snprintf(error->label, sizeof error->label, "%s", label);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->text, sizeof error->text, format, arguments);
    va_end(arguments);
    return status;
}
