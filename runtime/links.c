/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls describing the links between a runtime's memory nodes. */
#include "runtime.h"

filch_status filch_device_link(filch_runtime *rt, uint32_t from, uint32_t to, filch_link *link)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    status = fl_pool_link(&rt->pool, from, to, link, &error);
    if (status != FILCH_OK) {
        fl_error_store(&rt->core.errors, &error);
    }
    return status;
}

filch_status filch_device_measure_links(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    filch_error error = FILCH_ERROR_INIT;
    status = fl_pool_measure_links(&rt->pool, &rt->core.memory, &error);
    if (status != FILCH_OK) {
        fl_error_store(&rt->core.errors, &error);
    }
    return status;
}
