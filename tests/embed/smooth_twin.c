/* SPDX-License-Identifier: Apache-2.0 */
/* What the kernel of docs/examples/smooth.c is to the fake driver. */
#include <stddef.h>

#include "fakecuda.h"

static int twin(const filch_call *call)
{
    double omega = *(const double *)call->args, *x = call->views[0].ptr;
    const double *r = call->views[1].ptr, *d = call->views[2].ptr;
    for (uint64_t i = 0; i < call->hi - call->lo; i++)
        x[i] += omega * r[i] / d[i];
    return 0;
}

/* Before main, which knows nothing of it. */
__attribute__((constructor)) static void announce(void)
{
    fakecuda_register_filch("smooth", twin, 3, true, sizeof(double));
}
