/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a recorded run, as the simulator's files describe devices. */
#ifndef BENCH_SIM_MACHINE_H
#define BENCH_SIM_MACHINE_H

#include "sim/sim_trace.h"

/* Writes them to a file of a name that is made of the template path (mkstemp's): a unit of speed is
 * a nanosecond of the first one. With links as fast as the copies were, where there are any.
 * FILCH_IO, FILCH_OUT_OF_MEMORY; no file is left then. */
filch_status bench_sim_machine_write(const bench_sim_record *record, char *path,
                                     filch_error *error);

#endif
