/* SPDX-License-Identifier: Apache-2.0 */
/* The fault sweep: small jobs on the fake driver, each run once to count the calls that it makes of
 * every entry point, and then again and again with one of them failing. */
#ifndef TESTS_FAULT_SWEEP_H
#define TESTS_FAULT_SWEEP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "filch/filch.h"

/* What failed, and how often: of one case. */
typedef struct sweep_report {
    const char *call; /* that is made to fail; null: none is */
    int result;
    bool is_sticky;
    uint32_t failures; /* that the runtime reported */
    bool is_wrong;
    char text[512]; /* what is wrong */
} sweep_report;

typedef struct sweep_world {
    filch_runtime *runtime;
    filch_codelet *mix;   /* tasks */
    filch_codelet *scale; /* chunks */
    bool has_host;        /* codelets have a host function, and there is a host device */
    sweep_report *report;
} sweep_world;

typedef struct sweep_scenario {
    const char *name;
    const char *devices;
    bool has_host;
    bool has_codelets;
    bool is_alone;  /* one GPU, or each has its own: when one is lost, so is everything */
    uint64_t limit; /* bytes of each GPU's memory; 0: enough */
    bool may_cast;  /* multicast objects are allowed */
    bool is_apart;  /* the GPUs cannot reach each other's memory */
    bool has_relay; /* three GPUs, of which 0 and 2 reach each other over 1, the fastest way */
    /* One job, right or failed with an error that tells everything. Null: the runtime alone. */
    void (*run)(sweep_world *world);
    uint32_t rounds; /* jobs, one after the other */
} sweep_scenario;

extern const sweep_scenario sweep_scenarios[];
extern const size_t sweep_scenario_count;

/* What the codelets' kernels are to the fake driver; once a process. */
void sweep_register(void);
/* Makes a runtime, runs the scenario's jobs, ends it. */
void sweep_run(const sweep_scenario *scenario, sweep_report *report);

/* Records what is wrong; the first is kept. printf-like. */
void sweep_wrong(sweep_report *report, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
