/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests on the virtual clock share: worlds of simulated devices, described in a file that
 * the test writes, and batches and graphs run on them through the public calls. */
#ifndef TESTS_SIM_H
#define TESTS_SIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above. */
#include <cmocka.h>

#include "filch/filch.h"
#include "measure/policies.h"

enum { SIM_MOST_DEVICES = 1024 };

/* `count` devices alike. */
typedef struct sim_kind {
    double speed; /* units of work a second */
    double score; /* 0: speed */
    double overhead_us;
    uint32_t count;  /* 0: 1 */
    uint32_t window; /* 0: the simulator's default */
} sim_kind;

typedef struct sim_world {
    filch_runtime *runtime;
    bench_policy_room policy;
    uint32_t count; /* devices */
    double speed;   /* of all devices together */
    char path[256];
} sim_world;

/* What a job did. */
typedef struct sim_outcome {
    filch_status status;
    filch_job_info info;
    filch_device_stats devices[SIM_MOST_DEVICES];
} sim_outcome;

/* Fails the test when a filch call does not return FILCH_OK. */
#define sim_ok(call) assert_int_equal((call), FILCH_OK)

void sim_open(sim_world *world, const sim_kind *kinds, size_t count, bench_policy policy);
/* The same of devices that are described as the simulator's file has it, and a configuration of
 * which only the devices are set here. world->speed is the caller's to set. */
void sim_open_text(sim_world *world, const char *text, const filch_runtime_desc *config);
void sim_open_machine(sim_world *world, const char *text, bench_policy policy);
void sim_close(sim_world *world);
/* A codelet whose tiles only take time: `work` what they declare, `cost` what they take. */
filch_codelet *sim_codelet(const sim_world *world, filch_host_fn host, filch_work_fn work,
                           filch_work_fn cost);
/* Runs a batch of n items to its end. */
void sim_batch(const sim_world *world, filch_codelet *codelet, uint64_t n, uint64_t grain,
               sim_outcome *outcome);
/* Waits for a job, reads what it did, and gives it back. */
void sim_finish(filch_job *job, sim_outcome *outcome);
/* Elapsed time over what all devices together need for `work`: 1 is perfect. */
double sim_excess(const sim_world *world, double work, const sim_outcome *outcome);
int sim_nothing(const filch_call *call);

#endif
