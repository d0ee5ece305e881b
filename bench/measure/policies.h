/* SPDX-License-Identifier: Apache-2.0 */
/* Policies by name: filch's own, and policies for comparison, written on filch/policy.h. The tests
 * use the policies, too. */
#ifndef BENCH_POLICIES_H
#define BENCH_POLICIES_H

#include "filch/policy.h"

#include <stdbool.h>

typedef enum bench_policy {
    BENCH_POLICY_DEFAULT,     /* named by FILCH_POLICY, else steal */
    BENCH_POLICY_STEAL,       /* FILCH_POLICY_STEAL */
    BENCH_POLICY_STATIC,      /* FILCH_POLICY_STATIC */
    BENCH_POLICY_PERFECT,     /* static, with true speeds for scores. Simulated devices tell their
                                 true speeds; for real devices the caller gives measured speeds as
                                 scores or rate. */
    BENCH_POLICY_CENTRAL,     /* A single queue: a device takes the oldest task that the device can
                                 run. Batches are taken in order, from a single place, in chunks of
                                 a fixed size. */
    BENCH_POLICY_GUIDED,      /* as central, but the chunk size is the rest of the batch over twice
                                 the number of devices */
    BENCH_POLICY_ROUND_ROBIN, /* Tasks, and pieces of batches of a fixed size, go to the devices in
                                 turn, and stay. A device that cannot run the work is passed
                                 over. */
    BENCH_POLICY_EARLIEST,    /* Every ready task, and every piece of a fixed size, goes to the
                                 device with the earliest predicted finish by load, missing bytes
                                 and speed, and stays. Predictions for simulated devices are
                                 true. */
    BENCH_POLICIES
} bench_policy;

/* Room for a policy: must outlive the runtime. */
typedef struct bench_policy_room {
    filch_policy_desc desc;
    uint64_t turn; /* next position of the round-robin policy; atomic, relaxed */
} bench_policy_room;

/* Sets the policy of a new runtime. BENCH_POLICY_PERFECT also sets the rate, unless the caller
 * gives scores or a rate. */
void bench_policy_choose(bench_policy policy, bench_policy_room *room, filch_runtime_desc *config);
/* "" for BENCH_POLICY_DEFAULT. */
const char *bench_policy_name(bench_policy policy);
/* BENCH_POLICIES: the name is unknown. */
bench_policy bench_policy_find(const char *name);

#endif
