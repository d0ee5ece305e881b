/* SPDX-License-Identifier: Apache-2.0 */
/* Where the tasks of a record had their homes. */
#ifndef BENCH_SIM_HOMES_H
#define BENCH_SIM_HOMES_H

#include "sim/sim_trace.h"

/* Of graphs of traces that do not say: a task that waits for nothing starts out at home, and most
 * are not stolen; another's home is where what it writes was first used by one of those. False: no
 * memory. */
bool bench_sim_homes_find(bench_sim_record *record);

#endif
