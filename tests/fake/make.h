/* SPDX-License-Identifier: Apache-2.0 */
/* What tests on the fake driver make, whatever their kernels are. Included after cmocka.h. */
#ifndef TESTS_FAKE_MAKE_H
#define TESTS_FAKE_MAKE_H

#include <string.h>

#include "fakecuda.h"
#include "filch/filch.h"

#define assert_ok(call) assert_int_equal((call), FILCH_OK)

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

#endif
