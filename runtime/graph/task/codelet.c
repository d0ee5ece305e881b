/* SPDX-License-Identifier: Apache-2.0 */
#include "graph/task/codelet.h"

#include <stdio.h>

#include "base/hash.h"
#include "filch/cuda.h"
#include "graph/scheduler.h"

#define CREATE "filch_codelet_create"
#define FLAGS (FILCH_CODELET_RESTARTABLE | FILCH_CODELET_MAY_PEND)

static const char *check(const filch_codelet_desc *desc)
{
    return desc == NULL                                  ? "the descriptor is null"
           : desc->name == NULL || desc->name[0] == '\0' ? "it has no name"
           : desc->host == NULL && desc->cuda == NULL    ? "it has no implementation"
           : desc->arg_size > UINT16_MAX                 ? "arg_size is over 65,535"
           : (desc->flags & ~(uint32_t)FLAGS) != 0       ? "unknown flags are set"
           : desc->flags == FLAGS                        ? "a task that may pend is not restartable"
           : (desc->flags & FILCH_CODELET_MAY_PEND) != 0 && desc->host == NULL
               ? "a task may pend by its host function, of which there is none"
           : desc->open != NULL && desc->host == NULL
               ? "states are a host function's, of which there is none"
           : desc->close != NULL && desc->open == NULL ? "states are closed that nothing opens"
           : desc->cuda != NULL                        ? fl_kernel_check(desc->cuda)
                                                       : NULL;
}

static filch_status check_sizes(fl_core *core, const filch_codelet_desc *desc)
{
    filch_status status = fl_size_check(core, desc, sizeof *desc, sizeof *desc,
                                        "codelet: the descriptor", CREATE, NULL);
    const filch_cuda_desc *cuda = status == FILCH_OK && desc != NULL ? desc->cuda : NULL;
    return cuda == NULL ? status
                        : fl_size_check(core, cuda, sizeof *cuda, sizeof *cuda,
                                        "codelet: the CUDA descriptor", CREATE, desc->name);
}

/* Hashes the text or image and the options that a kernel is compiled or loaded from. An enqueue
 * function has no known source. */
static uint64_t hash_source(const filch_cuda_desc *desc)
{
    uint64_t hash = FL_HASH_START;
    if (desc == NULL || desc->enqueue != NULL) {
        return hash;
    }
    hash = fl_hash_text(hash, desc->entry);
    hash = fl_hash_text(hash, desc->options != NULL ? desc->options : "");
    return desc->source != NULL ? fl_hash_text(hash, desc->source)
                                : fl_hash_bytes(hash, desc->image, desc->image_bytes);
}

static void store_error(fl_core *core, const filch_codelet *codelet, filch_error *error)
{
    if (error->call[0] == '\0') {
        snprintf(error->call, sizeof error->call, "%s", CREATE);
    }
    snprintf(error->label, sizeof error->label, "%s", codelet->name);
    fl_error_store(&core->errors, error);
}

/* Makes the CUDA implementation ready. If no device of the runtime can then run the codelet, its
 * tasks are refused, as for every codelet without a device. */
static filch_status make_kernel(fl_core *core, const filch_codelet_desc *desc,
                                filch_codelet *codelet)
{
    if (desc->cuda == NULL) {
        return FILCH_OK;
    }
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = fl_kernel_make(core->modules, desc->cuda, codelet->name, codelet->runs_on,
                                         &codelet->kernel, &error);
    if (status != FILCH_OK) {
        store_error(core, codelet, &error);
        return status;
    }
    codelet->device_count = 0;
    for (uint32_t word = 0; word < FL_DEVICE_LIMIT / 64; ++word) {
        codelet->device_count += (uint32_t)__builtin_popcountll(codelet->runs_on[word]);
    }
    return FILCH_OK;
}

static filch_status open_states(fl_core *core, const filch_codelet_desc *desc,
                                filch_codelet *codelet)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = fl_host_states_open(
        core, desc, core->modules->devices, core->modules->device_count, &codelet->states, &error);
    if (status != FILCH_OK) {
        store_error(core, codelet, &error);
    }
    return status;
}

filch_status filch_codelet_create(filch_runtime *runtime, const filch_codelet_desc *desc,
                                  filch_codelet **codelet)
{
    filch_status status = fl_object_check(runtime, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = fl_core_of(runtime);
    status = check_sizes(core, desc);
    if (status != FILCH_OK) {
        return status;
    }
    const char *wrong = codelet == NULL ? "no place for the handle" : check(desc);
    if (wrong != NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, CREATE, desc != NULL ? desc->name : NULL,
                            "codelet: %s", wrong);
    }
    fl_scheduler *scheduler = core->scheduler;
    filch_codelet *made = fl_object_new(
        core, FL_MAGIC_CODELET, sizeof *made + scheduler->speed_bytes, _Alignof(filch_codelet));
    if (made == NULL) {
        return fl_core_fail(core, FILCH_OUT_OF_MEMORY, CREATE, desc->name,
                            "no memory for a codelet");
    }
    made->host = made->host_given = desc->host;
    made->user = desc->user;
    made->work = desc->work;
    made->cost = desc->cost != NULL ? desc->cost : desc->work;
    made->arg_size = desc->arg_size;
    made->flags = desc->flags;
    made->implementations =
        (desc->host != NULL ? FL_IMPL_HOST_FN : 0u) | (desc->cuda != NULL ? FL_IMPL_CUDA : 0u);
    snprintf(made->name, sizeof made->name, "%s", desc->name);
    made->source = scheduler->recalls ? hash_source(desc->cuda) : 0;
    scheduler->codelet_init(scheduler, made);
    status = make_kernel(core, desc, made);
    if (status == FILCH_OK) {
        status = open_states(core, desc, made);
    }
    if (status != FILCH_OK) {
        fl_kernel_free(core->modules, made->kernel);
        fl_object_delete(made);
        return status;
    }
    made->able = scheduler->able(scheduler, made->runs_on);
    *codelet = made;
    return FILCH_OK;
}
