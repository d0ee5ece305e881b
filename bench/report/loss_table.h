/* SPDX-License-Identifier: Apache-2.0 */
/* The loss report of filch's runs: where the devices' time went, and how far a run was from its
 * bound. */
#ifndef BENCH_LOSS_TABLE_H
#define BENCH_LOSS_TABLE_H

#include "report/json_out.h"

#include <jansson.h>
#include <stdio.h>

/* All devices together. */
filch_losses bench_losses_total(const bench_result *result);

/* Means of a run. */
double bench_loss_bound_s(const bench_loss_result *losses);
double bench_loss_efficiency(const bench_loss_result *losses);

/* Nothing where they are not known; false when the stream failed. */
bool bench_losses_show(FILE *out, const bench_result *result);
/* Null: no memory. */
json_t *bench_losses_json(const filch_losses *losses);
json_t *bench_loss_result_json(const bench_result *result);

#endif
