/* SPDX-License-Identifier: Apache-2.0 */
/* Recording of a runtime. */
#ifndef FL_TRACING_H
#define FL_TRACING_H

#include <stdio.h>

#include "runtime.h"

/* Makes the table of rings, with no ring yet, and the report's absolute path. FILCH_OUT_OF_MEMORY,
 * FILCH_IO (the working directory has no path): *error (may be null) has the reason. */
filch_status fl_tracing_init(filch_runtime *rt, filch_error *error);
/* Frees the rings and the table. No job runs, and recording has stopped. */
void fl_tracing_fini(filch_runtime *rt);
/* Starts recording; the first start makes the rings. The caller holds core->lock, or no second
 * thread knows the runtime. FILCH_OUT_OF_MEMORY, with nothing recording. */
filch_status fl_tracing_start(filch_runtime *rt);
void fl_tracing_stop(filch_runtime *rt);

/* Checks the setting FILCH_REPORT: a path that ends in .html, where a file can be written now, or
 * empty. FILCH_PARSE, FILCH_IO: *error (may be null) has the reason. */
filch_status fl_tracing_check(const fl_settings *settings, filch_error *error);
/* Writes the report asked for by FILCH_REPORT, if any. Failures are logged: the jobs are done. */
void fl_tracing_keep_report(filch_runtime *rt);
/* Writes a report, as filch_report_write. put_more (may be null) adds members to the page's JSON,
 * each after a comma. */
filch_status fl_tracing_page(filch_runtime *rt, const char *path,
                             void (*put_more)(FILE *file, const void *user), const void *user);

#endif
