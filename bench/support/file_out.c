/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "support/file_out.h"

#include "support/fail.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

static filch_status fail(const bench_file *file, filch_error *error)
{
    char why[FL_OUTPUT_WHY];
    return bench_fail(error, FILCH_IO, file->path, 0, "cannot be written: %s",
                      fl_output_why(&file->output, why));
}

filch_status bench_file_begin(bench_file *file, const char *path, filch_error *error)
{
    file->path = path;
    file->stream = NULL;
    if (fl_output_open(&file->output, AT_FDCWD, path, ".filch-bench-", FL_OUTPUT_SHARED))
        file->stream = fl_output_stream(&file->output);
    if (file->stream)
        return FILCH_OK;
    fl_output_abandon(&file->output);
    return fail(file, error);
}

filch_status bench_file_begin_or_stdout(bench_file *file, const char *path, filch_error *error)
{
    if (strcmp(path, "-") != 0)
        return bench_file_begin(file, path, error);
    file->path = "the standard output";
    file->stream = stdout;
    return FILCH_OK;
}

filch_status bench_file_end(bench_file *file, filch_error *error)
{
    if (file->stream != stdout)
        return fl_output_commit(&file->output) ? FILCH_OK : fail(file, error);
    errno = 0;
    bool failed = ferror(stdout) != 0;
    failed |= fflush(stdout) != 0;
    return failed ? bench_fail(error, FILCH_IO, file->path, 0, "cannot be written: %s",
                               errno != 0 ? strerror(errno) : "an earlier write failed")
                  : FILCH_OK;
}

void bench_file_drop(bench_file *file)
{
    if (file->stream != stdout)
        fl_output_abandon(&file->output);
}

filch_status bench_file_check(const char *option, const char *path, bool may_be_stdout,
                              filch_error *error)
{
    fl_output output;
    char why[FL_OUTPUT_WHY];
    if (!path || (may_be_stdout && strcmp(path, "-") == 0) || fl_output_can(&output, path))
        return FILCH_OK;
    return bench_fail(error, FILCH_IO, option, 0, "%s cannot be written: %s", path,
                      fl_output_why(&output, why));
}
