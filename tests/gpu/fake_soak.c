/* SPDX-License-Identifier: Apache-2.0 */
/* A short soak on two fake GPUs beside a core: several runtimes at once in one process share the
 * driver and its primary contexts, with little memory now and then. The test runs it a second time
 * with a driver that fails: allocations without memory, and kernels that lose their GPU. */
#include "cli.h"
#include "gpu/twins.h"

#include "module/nvrtc.h"

#include <stdio.h>

int main(void)
{
    char *arguments[] = {"soak", "--rounds", "15", "--devices", "cuda,host:1", NULL};
    fl_nvrtc nvrtc = {.library = NULL};
    filch_error error = FILCH_ERROR_INIT;

    if (fl_nvrtc_load(&nvrtc, "", 0, &error) != FILCH_OK) {
        fprintf(stderr, "filch's kernels need NVRTC: %s: skipped\n", error.text);
        return 77;
    }
    fl_nvrtc_unload(&nvrtc);
    gpu_twins_register();
    return bench_soak_main(5, arguments);
}
