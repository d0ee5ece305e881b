/* SPDX-License-Identifier: Apache-2.0 */
/* Codelets of the kernels in the library. */
#include "filch/kernels.h"

#include "base/core.h"

filch_status filch_codelet_create_builtin(filch_runtime *runtime, const char *name,
                                          filch_codelet **codelet)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK)
        return status;
    const filch_kernel *kernel = filch_kernel_find(name);
    if (kernel == NULL)
        return fl_core_fail(fl_core_of(runtime), FILCH_NOT_FOUND, "filch_codelet_create_builtin",
                            name, "no kernel '%s'", name != NULL ? name : "");
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = kernel->name;
    desc.host = kernel->host;
    desc.cuda = kernel->cuda;
    desc.work = kernel->work;
    desc.arg_size = kernel->arg_size;
    return filch_codelet_create(runtime, &desc, codelet);
}
