/* SPDX-License-Identifier: Apache-2.0 */
/* What tests on the fake driver make, whatever their kernels are. Included after cmocka.h. */
#ifndef TESTS_FAKE_MAKE_H
#define TESTS_FAKE_MAKE_H

#include <string.h>

#include "fakecuda.h"
#include "filch/filch.h"
#include "patience.h"

#define assert_ok(call) assert_int_equal((call), FILCH_OK)
/* Nothing here takes as long. */
#define SOON PATIENCE

/* Where that fails the test does, and says why. */
static inline filch_runtime *runtime_of(const filch_runtime_desc *config)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *made = NULL;
    if (filch_runtime_create(config, &error, &made) != FILCH_OK)
        fail_msg("%s: %s", config->devices, error.text);
    return made;
}

/* A kernel of an image, which is text, and (where not null) the same on the host. */
static inline filch_codelet *codelet_of(filch_runtime *in, const char *image, const char *entry,
                                        filch_host_fn host, uint32_t arg_size)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    cuda.image = image;
    cuda.image_bytes = strlen(image) + 1;
    cuda.entry = entry;
    desc.name = entry;
    desc.cuda = &cuda;
    desc.host = host;
    desc.arg_size = arg_size;
    assert_ok(filch_codelet_create(in, &desc, &made));
    return made;
}

static inline filch_codelet *host_codelet_of(filch_runtime *in, const char *name, filch_host_fn fn)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *made = NULL;
    desc.name = name;
    desc.host = fn;
    assert_ok(filch_codelet_create(in, &desc, &made));
    return made;
}

/* Tiles of `tile` elements, one after the other; 0: filch chooses. */
static inline filch_data *vector_of(filch_runtime *in, uint64_t *at, uint64_t rows, uint64_t tile,
                                    uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *made = NULL;
    desc.ptr = at;
    desc.element = sizeof *at;
    desc.rows = rows;
    desc.tile_rows = tile;
    desc.flags = flags;
    assert_ok(filch_data_create(in, &desc, &made));
    return made;
}

static inline filch_graph *graph_of(filch_runtime *in)
{
    filch_graph *made = NULL;
    assert_ok(filch_graph_create(in, NULL, &made));
    return made;
}

static inline filch_job *submit(filch_graph *from)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(from, NULL, &job));
    return job;
}

/* Waits for the job; where it does not end as it must the test fails, and says why. */
static inline void await_result(filch_job *job, filch_status result)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = filch_job_wait(job, SOON);
    if (status != result) {
        (void)filch_job_error(job, &error);
        fail_msg("%s in the place of %s: %s", filch_status_name(status), filch_status_name(result),
                 error.text);
    }
}

static inline void finish(filch_job *job, filch_status result)
{
    await_result(job, result);
    assert_ok(filch_job_release(job));
}

#endif
