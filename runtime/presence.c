/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls that withdraw devices and take withdrawn devices back. */
#include "sched/worker/presence.h"
#include "runtime.h"

static filch_status check(filch_runtime *rt, uint32_t index, const char *call)
{
    filch_status status = fl_object_check_for(rt, FL_MAGIC_RUNTIME, call);
    if (status == FILCH_OK && index >= rt->pool.count) {
        status = fl_core_fail(&rt->core, FILCH_BAD_INDEX, call, NULL,
                              "there are %zu devices, no device %u", rt->pool.count, index);
    }
    return status;
}

static filch_status change(filch_runtime *rt, uint32_t index, bool is_away, const char *call)
{
    filch_status status = check(rt, index, call);
    if (status != FILCH_OK) {
        return status;
    }
    const char *name = rt->pool.devices[index].info.name;
    if (fl_presence_of(&rt->sched, index) == FILCH_PRESENCE_LOST) {
        return fl_core_fail(&rt->core, FILCH_DEVICE_LOST, call, NULL, "%s was lost", name);
    }
    if (!fl_presence_set(&rt->sched, index, FL_DUTY_WITHDRAWN, is_away)) {
        return fl_core_fail(&rt->core, FILCH_WRONG_STATE, call, NULL, "%s is %s", name,
                            is_away ? "withdrawn already" : "not withdrawn");
    }
    return FILCH_OK;
}

filch_status filch_device_withdraw(filch_runtime *rt, uint32_t index)
{
    return change(rt, index, true, "filch_device_withdraw");
}

filch_status filch_device_readmit(filch_runtime *rt, uint32_t index)
{
    return change(rt, index, false, "filch_device_readmit");
}

filch_status filch_device_presence(filch_runtime *rt, uint32_t index, filch_presence *presence)
{
    filch_status status = check(rt, index, "filch_device_presence");
    if (status == FILCH_OK && presence == NULL) {
        status = fl_core_fail(&rt->core, FILCH_INVALID_ARGUMENT, "filch_device_presence", NULL,
                              "there is nowhere to put the answer");
    }
    if (status == FILCH_OK) {
        *presence = fl_presence_of(&rt->sched, index);
    }
    return status;
}
