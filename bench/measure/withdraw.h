/* SPDX-License-Identifier: Apache-2.0 */
/* A device that the host withdraws while a run is under way, and maybe takes back. */
#ifndef BENCH_WITHDRAW_H
#define BENCH_WITHDRAW_H

#include "filch/filch.h"

#include <stdbool.h>

typedef struct bench_withdraw {
    bool is_asked;
    uint32_t device;
    double from_s, to_s; /* from the start of each run; infinite: it stays away */
} bench_withdraw;

typedef struct bench_withdrawal bench_withdrawal;

/* DEVICE@SECONDS or DEVICE@SECONDS-SECONDS. FILCH_PARSE. */
filch_status bench_withdraw_parse(const char *text, bench_withdraw *withdraw, filch_error *error);

/* A run begins: a thread withdraws the device when it is time. Null in *made where nothing is asked
 * for. */
filch_status bench_withdraw_begin(bench_withdraw withdraw, filch_runtime *runtime,
                                  bench_withdrawal **made, filch_error *error);
/* The run has ended: the device is there again. Null is fine. */
filch_status bench_withdraw_end(bench_withdrawal *withdrawal, filch_error *error);

/* Seconds that devices of those speeds take for so much work if none is ever idle that is there. */
double bench_withdraw_ideal_s(bench_withdraw withdraw, double work, double all_speeds,
                              double its_speed);

#endif
