/* SPDX-License-Identifier: Apache-2.0 */
/* A result as one HTML file: inline SVG, nothing fetched from elsewhere. */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "report/json_out.h"

#include <stdio.h>

/* FILCH_IO where the file cannot be written. */
filch_status bench_report_write(const char *path, const bench_result *result, filch_error *error);
/* The same to an open stream, whose errors are the caller's to ask for. */
void bench_report_print(FILE *out, const bench_result *result);

#endif
