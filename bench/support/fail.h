/* SPDX-License-Identifier: Apache-2.0 */
/* Failures of the bench carry the library's own record, so that one function prints both. */
#ifndef BENCH_FAIL_H
#define BENCH_FAIL_H

#include "filch/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Fills *error (may be null) and returns status. label names the file, option or peer; line is the
 * line of the input, 0 where there is none. A text that does not fit is cut. */
filch_status bench_fail(filch_error *error, filch_status status, const char *label, int64_t line,
                        const char *format, ...) __attribute__((format(printf, 5, 6)));

#ifdef __cplusplus
}
#endif

#endif
