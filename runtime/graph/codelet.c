/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/codelet.h"

#include <stdio.h>

#include "graph/scheduler.h"

#define CREATE "filch_codelet_create"

filch_status filch_codelet_create(filch_runtime *runtime, const filch_codelet_desc *desc,
                                  filch_codelet **codelet)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    const char *wrong = desc == NULL                ? "the descriptor is null"
                        : desc->size < sizeof *desc ? "the descriptor's size is not set"
                        : codelet == NULL           ? "no place for the handle"
                        : desc->name == NULL || desc->name[0] == '\0' ? "it has no name"
                        : desc->host == NULL                          ? "it has no implementation"
                        : desc->arg_size > UINT16_MAX                 ? "arg_size is over 65,535"
                        : (desc->flags & ~(uint32_t)FILCH_CODELET_RESTARTABLE) != 0
                            ? "unknown flags are set"
                            : NULL;
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE,
                            desc != NULL && desc->size >= sizeof *desc ? desc->name : NULL,
                            "codelet: %s", wrong);
    }
    fl_scheduler *scheduler = core->scheduler;
    filch_codelet *made = fl_object_new(
        core, FL_MAGIC_CODELET, sizeof *made + scheduler->speed_bytes, _Alignof(filch_codelet));
    if (made == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, CREATE, desc->name,
                            "no memory for a codelet");
    }
    made->host = desc->host;
    made->work = desc->work;
    made->cost = desc->cost != NULL ? desc->cost : desc->work;
    made->arg_size = desc->arg_size;
    made->flags = desc->flags;
    made->implementations = FL_IMPL_HOST_FN;
    snprintf(made->name, sizeof made->name, "%s", desc->name);
    scheduler->speeds_init(scheduler, made);
    *codelet = made;
    return FILCH_OK;
}
