/* SPDX-License-Identifier: Apache-2.0 */
/* Public calls reporting and saving measured speeds. */
#include <stddef.h>

#include "runtime.h"
#include "sched/model/prior.h"
#include "sched/model/speed.h"
#include "sched/model/speed_file.h"
#include "sched/worker/device.h"

/* Sizes of the records in the first version of the interface; later versions only append. */
#define SPEED_SIZE_FIRST (offsetof(filch_speed, prior_refuted) + sizeof(bool))
#define SPEEDS_SIZE_FIRST (offsetof(filch_speeds, saves) + sizeof(uint64_t))

filch_status filch_codelet_speed(filch_codelet *codelet, uint32_t device, filch_speed *speed)
{
    filch_status status = fl_object_check(codelet, FL_MAGIC_CODELET);
    if (status != FILCH_OK) {
        return status;
    }
    fl_core *core = codelet->object.core;
    uint32_t count = core->scheduler->device_count;
    status = fl_size_check(core, speed, SPEED_SIZE_FIRST, 0, "the result", "filch_codelet_speed",
                           codelet->name);
    if (status != FILCH_OK) {
        return status;
    }
    if (device >= count) {
        return fl_core_fail(core, FILCH_BAD_INDEX, "filch_codelet_speed", codelet->name,
                            "index %u is not below the device count, %u", device, count);
    }
    fl_speed_view view = fl_speed_look(fl_codelet_speed(codelet, device));
    bool is_prior = view.prior == FL_PRIOR_HELD && view.samples < FL_SPEED_PRIOR;
    speed->source = !(view.rate > 0) ? FILCH_SPEED_UNKNOWN
                    : is_prior       ? FILCH_SPEED_PRIOR
                                     : FILCH_SPEED_MEASURED;
    speed->samples = view.samples;
    speed->ns_per_unit = view.rate;
    speed->fixed_ns = view.fixed;
    speed->spread = view.spread;
    speed->most_work = view.most_work;
    speed->timed = view.taken;
    speed->changes = view.regimes;
    speed->prior_refuted = view.prior == FL_PRIOR_FORGOTTEN;
    return FILCH_OK;
}

filch_status filch_runtime_speeds(filch_runtime *rt, filch_speeds *speeds)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    status = fl_size_check(&rt->core, speeds, SPEEDS_SIZE_FIRST, 0, "the result",
                           "filch_runtime_speeds", NULL);
    if (status != FILCH_OK) {
        return status;
    }
    const fl_sched *sched = &rt->sched;
    /* Relaxed: statistics. */
    speeds->loaded = sched->speed_file.loaded;
    speeds->saved = (filch_status)fl_load_relaxed(&sched->saved);
    speeds->records = sched->speed_file.count;
    speeds->used = fl_load_relaxed(&sched->recalled);
    speeds->saves = fl_load_relaxed(&sched->saves);
    return FILCH_OK;
}

filch_status fl_speeds_save(filch_runtime *rt, filch_error *error)
{
    fl_sched *sched = &rt->sched;
    const fl_memory *memory = &rt->core.memory;
    size_t count = 0;
    fl_mutex_lock(&rt->core.lock);
    size_t most = fl_prior_most(sched), bytes = (most != 0 ? most : 1) * sizeof(fl_record);
    fl_record *records = fl_alloc(memory, bytes);
    if (records != NULL) {
        count = fl_prior_collect(sched, records);
    }
    fl_mutex_unlock(&rt->core.lock);
    filch_status status = records != NULL
                              ? fl_speed_file_save(&sched->speed_file, records, count, error)
                              : fl_error_fill(error, (fl_fault){.status = FILCH_OUT_OF_MEMORY},
                                              "no memory for what is to be saved");
    fl_free(memory, records, bytes);
    fl_store_relaxed(&sched->saved, (uint32_t)status); /* relaxed: the two publish no other data */
    fl_add_relaxed(&sched->saves, status == FILCH_OK);
    return status;
}

filch_status filch_runtime_save_speeds(filch_runtime *rt)
{
    filch_status status = fl_object_check(rt, FL_MAGIC_RUNTIME);
    if (status != FILCH_OK) {
        return status;
    }
    if (!fl_speed_file_is_on(&rt->sched.speed_file)) {
        return fl_core_fail(&rt->core, FILCH_WRONG_STATE, "filch_runtime_save_speeds", NULL,
                            "neither the configuration nor FILCH_SPEEDS names a file");
    }
    filch_error error = FILCH_ERROR_INIT;
    status = fl_speeds_save(rt, &error);
    if (status != FILCH_OK) {
        fl_error_store(&rt->core.errors, &error);
    }
    return status;
}
