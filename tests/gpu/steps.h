/* SPDX-License-Identifier: Apache-2.0 */
/* What tasks of random graphs do: each element of the handle written is mixed from those read. */
#ifndef TESTS_GPU_STEPS_H
#define TESTS_GPU_STEPS_H

#include "gpu.h"

enum { STEP_MOST_READS = 2, STEP_FAIL_CODE = 7 };

typedef struct step_args {
    uint64_t seed;
    uint64_t keeps; /* the old contents count */
    uint64_t fails; /* in rounds where tasks fail */
} step_args;

/* Of the runtime that is open: with none, one and two views that are read, before the one that is
 * written. Their arguments are step_args. */
extern filch_codelet *step_codelets[STEP_MOST_READS + 1];
/* Tasks whose arguments say so fail in this round, with STEP_FAIL_CODE. Written while no job runs.
 */
extern bool step_fails_now;

/* Makes the codelets; as gpu_test.open. */
filch_status step_open(gpu_world *world);
/* What the codelet with so many reads does. */
void step_do(const filch_view *views, uint32_t reads, const step_args *args);

#endif
