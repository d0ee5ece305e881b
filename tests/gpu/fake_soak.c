/* SPDX-License-Identifier: Apache-2.0 */
/* A short soak on two fake GPUs beside a core: several runtimes at once in one process share the
 * driver and its primary contexts, with little memory now and then. The fake NVRTC compiles. The
 * test runs it a second time with a driver that fails: allocations without memory, and kernels that
 * lose their GPU. */
#include "cli/cli.h"
#include "gpu/twins.h"

int main(void)
{
    char *arguments[] = {"soak", "--rounds", "15", "--devices", "cuda,host:1", NULL};

    gpu_twins_register();
    return bench_soak_main(5, arguments);
}
