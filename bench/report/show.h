/* SPDX-License-Identifier: Apache-2.0 */
/* A result as the tables that end a run. */
#ifndef BENCH_SHOW_H
#define BENCH_SHOW_H

#include "report/json_out.h"

#include <stdio.h>

/* False when the stream failed or memory was out. */
bool bench_show(FILE *out, const bench_result *result);

#endif
