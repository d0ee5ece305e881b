/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the bench writes, by the library's rules (base/output.h): a regular file is replaced
 * when the new one is whole; a link, a device or a directory is refused and stays. */
#ifndef BENCH_FILE_OUT_H
#define BENCH_FILE_OUT_H

#include "filch/status.h"

#include "base/output.h"

#include <stdio.h>

/* Used by one thread. */
typedef struct bench_file {
    const char *path;
    FILE *stream; /* to write to; its failures are told at the end */
    fl_output output;
} bench_file;

/* Begins a file. bench_file_end must follow unless it fails. FILCH_IO names path and reason. */
filch_status bench_file_begin(bench_file *file, const char *path, filch_error *error);
/* The same; the path "-" is the standard output. */
filch_status bench_file_begin_or_stdout(bench_file *file, const char *path, filch_error *error);
/* Ends a file that is complete. FILCH_IO: what was there before is there still. */
filch_status bench_file_end(bench_file *file, filch_error *error);
/* Ends a file that is not to be. */
void bench_file_drop(bench_file *file);
/* Whether the file that an option names could be written, before a long run. Null, and "-" where
 * it may be the standard output, pass. FILCH_IO names option, path and reason. */
filch_status bench_file_check(const char *option, const char *path, bool may_be_stdout,
                              filch_error *error);

#endif
