/* SPDX-License-Identifier: Apache-2.0 */
/* What every kernel of filch/kernels.h must do, whoever runs it: its host function, its CUDA source
 * in the emulator, or a runtime with any devices. */
#ifndef TESTS_KERNELS_CASES_H
#define TESTS_KERNELS_CASES_H

#include "filch/batch.h"
#include "filch/kernels.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CASE_VIEWS 3

/* One use of a kernel: of whole handles, by a task or by a batch of `items`. */
typedef struct kernel_case {
    const filch_kernel *kernel;
    filch_view views[CASE_VIEWS];
    filch_access_mode modes[CASE_VIEWS];
    uint64_t scale[CASE_VIEWS]; /* of batches: elements an item; 0: the handle is read whole */
    uint64_t halo[CASE_VIEWS];
    uint64_t items;
    const void *args;
} kernel_case;

/* Runs a case to its end. The result is the kernel's code. */
typedef int (*kernel_runner)(const kernel_case *c, void *user);

/* Runs all cases and reports what was wrong on standard error; the number of wrong cases. */
int cases_run(kernel_runner run, void *user);

/* The call that a device makes for items lo .. hi of a case; views has room for its views. */
filch_call cases_call(const kernel_case *c, uint64_t lo, uint64_t hi, filch_view *views);

#ifdef __cplusplus
}
#endif

#endif
