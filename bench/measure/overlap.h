/* SPDX-License-Identifier: Apache-2.0 */
/* How much of a run kernels and copies were under way, and at the same time, by its trace. */
#ifndef BENCH_OVERLAP_H
#define BENCH_OVERLAP_H

#include "report/json_out.h"

/* Of the trace in that file. Unknown where it shows no copies, and where the file is none that can
 * be read back, such as a pipe. FILCH_IO, FILCH_PARSE,
 * FILCH_OUT_OF_MEMORY. */
filch_status bench_overlap_read(const char *path, bench_overlap_result *overlap,
                                filch_error *error);

#endif
