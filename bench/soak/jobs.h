/* SPDX-License-Identifier: Apache-2.0 */
/* Random jobs over shared vectors, and the same one after another, for what ran of them: the bytes
 * must agree. */
#ifndef BENCH_SOAK_JOBS_H
#define BENCH_SOAK_JOBS_H

#include "soak/soak.h"

#include "filch/filch.h"

#define SOAK_VECTORS 3
#define SOAK_TILES 6
#define SOAK_TILE 96 /* elements */
#define SOAK_LENGTH (SOAK_TILES * SOAK_TILE)
#define SOAK_TASKS 64
#define SOAK_JOBS 3
/* The code of tasks that fail. */
#define SOAK_CODE 77

typedef struct soak_task {
    struct soak_job *job;
    uint32_t vector[3], tile[3]; /* that it writes, and those that it reads */
    uint32_t reads;
    bool fails;
    _Atomic bool has_run; /* relaxed: the job's end orders it */
} soak_task;

typedef enum soak_kind { SOAK_CLOSED, SOAK_OPEN, SOAK_BATCH } soak_kind;

/* A graph or a batch, which may run several times. */
typedef struct soak_job {
    soak_kind kind;
    uint64_t seed;
    uint32_t count; /* tasks */
    soak_task tasks[SOAK_TASKS];
    uint32_t vector;                   /* of a batch … */
    uint32_t failing;                  /* … the item that fails, or SOAK_LENGTH … */
    _Atomic bool has_run[SOAK_LENGTH]; /* … and those that ran; relaxed, likewise */
    filch_graph *graph;
    filch_job *job;
    bool may_fail, is_cancelled;
    _Atomic uint32_t completions;
} soak_job;

/* What the jobs of a runtime work on. */
typedef struct soak_field {
    uint64_t real[SOAK_VECTORS][SOAK_LENGTH], expected[SOAK_VECTORS][SOAK_LENGTH];
    filch_data *data[SOAK_VECTORS];
    filch_codelet *task, *batch;
    soak_job jobs[SOAK_JOBS];
} soak_field;

/* Makes vectors and codelets. */
filch_status soak_field_make(soak_field *field, filch_runtime *runtime, uint64_t *random);
/* Makes job number k anew, and its graph; an open graph and a batch are made by soak_job_start. */
filch_status soak_job_make(soak_field *field, filch_runtime *runtime, uint32_t k, uint64_t *random);
/* Submits it; not while it runs. */
filch_status soak_job_start(soak_field *field, filch_runtime *runtime, uint32_t k,
                            filch_on_failure on_failure);
/* Does to the expected vectors what ran of a job that is over; tasks and items that did. */
uint64_t soak_job_repeat(soak_field *field, uint32_t k);
/* How many should run without failures and cancellations. */
uint64_t soak_job_total(const soak_job *job);
const char *soak_kind_name(soak_kind kind);

#endif
