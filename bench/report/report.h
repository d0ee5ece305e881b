/* SPDX-License-Identifier: Apache-2.0 */
/* A result as one HTML file: the library's page of the jobs that a runtime recorded, with the
 * result as its part "bench". */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include "report/json_out.h"

/* The runtime has recorded the run that the page shows. FILCH_IO where the file cannot be written,
 * FILCH_WRONG_STATE where nothing was recorded, FILCH_OUT_OF_MEMORY. */
filch_status bench_report_write(const char *path, filch_runtime *runtime,
                                const bench_result *result, filch_error *error);

#endif
