/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls letting the host's own code work on a runtime's GPUs. */
#include <stddef.h>

#include "runtime.h"

/* Sizes of the records in the first version of the interface; later versions only append. */
#define PROBE_SIZE_FIRST (offsetof(filch_probe, reserved) + sizeof(uint32_t))
#define DESC_SIZE_FIRST (offsetof(filch_probe_desc, is_retry) + sizeof(bool))

filch_status filch_device_probe(filch_runtime *rt, const char *label, const filch_probe_desc *desc,
                                filch_probe *probe)
{
    static const filch_probe_desc defaults = FILCH_PROBE_DESC_INIT;
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = &rt->core;
    if (desc == NULL) {
        desc = &defaults;
    }
    status = fl_size_check(core, desc, DESC_SIZE_FIRST, sizeof *desc, "the description",
                           "filch_device_probe", label);
    if (status == FILCH_OK && probe != NULL) {
        status = fl_size_check(core, probe, PROBE_SIZE_FIRST, 0, "the result", "filch_device_probe",
                               label);
    }
    if (status != FILCH_OK) {
        return status;
    }
    if (label == NULL) {
        return fl_core_fail(core, FILCH_INVALID_ARGUMENT, "filch_device_probe", NULL,
                            "the label is null");
    }
    filch_error error = FILCH_ERROR_INIT;
    const fl_discovery how = {
        .memory = &core->memory,
        .log = &core->log,
        .error = &error,
        .settings = &core->settings,
    };
    status = fl_pool_probe(&rt->pool, rt, label, desc, &how, probe);
    if (status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
    }
    return status;
}

filch_status filch_device_scope(filch_runtime *rt, uint32_t index, filch_scope_fn fn, void *user)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = &rt->core;
    if (fn == NULL || index >= rt->pool.count) {
        return fl_core_fail(core, fn == NULL ? FILCH_INVALID_ARGUMENT : FILCH_BAD_INDEX,
                            "filch_device_scope", NULL,
                            fn == NULL ? "the function is null (device %u of %zu)"
                                       : "index %u is not below the device count, %zu",
                            index, rt->pool.count);
    }
    fl_device *device = &rt->pool.devices[index];
    fl_fault fault = {.call = "filch_device_scope", .device = device->info.name};
    if (device->backend->interop == NULL) {
        fault.status = FILCH_UNSUPPORTED;
        return fl_error_record(&core->errors, fault, "%s has no context", device->info.name);
    }
    filch_error error = FILCH_ERROR_INIT;
    int code = 0;
    status = device->backend->interop->within(device, fn, user, &code, &error);
    if (status != FILCH_OK) {
        fl_error_store(&core->errors, &error);
        return status;
    }
    if (code == 0) {
        return FILCH_OK;
    }
    fault.status = FILCH_TASK_FAILED;
    fault.native_code = code;
    return fl_error_record(&core->errors, fault, "%s: the function returned %d", device->info.name,
                           code);
}
