/* SPDX-License-Identifier: Apache-2.0 */
/* What no run can be faster than: the devices' kernels, or their links to the host, whichever takes
 * longer, each measured alone in the same process. */
#ifndef BENCH_BOUND_H
#define BENCH_BOUND_H

#include "measure/session.h"
#include "report/json_out.h"

/* Fills result->bound for a workload that knows what it moves, where GPUs took part; to be called
 * after the measured runs. Otherwise the bound stays unknown. */
filch_status bench_bound_measure(const bench_session *session, const bench_session_config *config,
                                 bench_result *result, filch_error *error);

#endif
