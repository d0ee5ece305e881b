/* SPDX-License-Identifier: Apache-2.0 */
/* What the programs that watch filch's behaviour share. */
#ifndef TESTS_EMBED_BEHAVE_H
#define TESTS_EMBED_BEHAVE_H

#include <stdio.h>
#include <stdlib.h>

#include "filch/filch.h"

/* Ends the program where a condition does not hold. */
#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
            exit(1);                                                        \
        }                                                                   \
    } while (0)

static inline filch_runtime *behave_create(const char *devices, filch_drive drive)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = devices;
    config.drive = drive;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        fprintf(stderr, "create: %s\n", error.text);
        exit(1);
    }
    return runtime;
}

static inline filch_codelet *behave_codelet(filch_runtime *runtime, filch_host_fn host)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "behave";
    desc.host = host;
    CHECK(filch_codelet_create(runtime, &desc, &codelet) == FILCH_OK);
    return codelet;
}

/* A batch of n items without data, to its end. */
static inline void behave_run(filch_runtime *runtime, filch_codelet *codelet, uint64_t n)
{
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = n;
    CHECK(filch_batch_submit(runtime, &desc, NULL, &job) == FILCH_OK);
    CHECK(filch_job_wait(job, -1) == FILCH_OK);
    CHECK(filch_job_release(job) == FILCH_OK);
}

#endif
