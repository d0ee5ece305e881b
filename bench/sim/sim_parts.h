/* SPDX-License-Identifier: Apache-2.0 */
/* What a trace says of handles, batches and graphs, beside their tiles' times. */
#ifndef BENCH_SIM_PARTS_H
#define BENCH_SIM_PARTS_H

#include "sim/sim_trace.h"

#include <jansson.h>

/* Reads them from "otherData", where they may be missing. FILCH_DATA: a member is missing, has a
 * wrong type, or names what is not there; FILCH_OUT_OF_MEMORY. */
filch_status bench_sim_parts_read(bench_sim_record *record, const json_t *other, const char *path,
                                  filch_error *error);
void bench_sim_parts_free(bench_sim_record *record);

#endif
