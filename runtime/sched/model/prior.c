/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the speeds of earlier runs for a codelet on a device, and saves speeds for later runs. */
#include "sched/model/prior.h"

#include <string.h>
#include <time.h>

#include "sched/model/speed.h"
#include "sched/model/speed_file.h"
#include "sched/worker/device.h"
#include "sched/worker/sched.h"

/* Least number of samples behind an estimate that replaces the file's record. */
#define SAMPLES_LEAST FL_SPEED_PRIOR

static void add_text(fl_sha256 *sha, const char *text)
{
    fl_sha256_add_field(sha, text, strlen(text));
}

/* Computes the key of a device and a codelet. A GPU stands for itself, as two GPUs need not run
 * alike; a host's core stands for its model. The key includes the backend and the team size of the
 * device. The codelet's part is its name and, if the device runs CUDA, its CUDA source. */
static fl_digest key_of(const fl_device *device, const filch_codelet *codelet)
{
    const filch_device_info *info = &device->info;
    const uint32_t numbers[] = {(uint32_t)info->backend, info->team};
    uint64_t source = (device->implementations & FL_IMPL_CUDA) != 0 ? codelet->source : 0;
    fl_sha256 sha;
    fl_sha256_init(&sha);
    fl_sha256_add_field(&sha, numbers, sizeof numbers);
    add_text(&sha, info->uuid[0] != '\0' ? info->uuid : info->model);
    add_text(&sha, codelet->name);
    fl_sha256_add_field(&sha, &source, sizeof source);
    return fl_sha256_finish(&sha);
}

void fl_prior_set(fl_sched *sched, filch_codelet *codelet)
{
    if (sched->speed_file.count == 0) {
        return;
    }
    for (uint32_t device = 0; device < sched->count; ++device) {
        fl_digest key = key_of(&sched->pool->devices[device], codelet);
        const fl_record *record = fl_speed_file_find(&sched->speed_file, &key);
        if (record != NULL) {
            const fl_prior prior = {record->rate, record->fixed, record->most_work, record->taken};
            fl_speed_set_prior(fl_codelet_speed(codelet, device), &prior);
            fl_add_relaxed(&sched->recalled, 1); /* relaxed: a statistic */
        }
    }
}

static bool is_codelet(const fl_object *object)
{
    return fl_load_relaxed(&object->magic) == (uint32_t)FL_MAGIC_CODELET;
}

size_t fl_prior_most(const fl_sched *sched)
{
    size_t most = 0;
    for (const fl_object *object = sched->core->objects; object != NULL; object = object->next) {
        most += is_codelet(object) ? sched->count : 0;
    }
    return most;
}

size_t fl_prior_collect(const fl_sched *sched, fl_record *records)
{
    struct timespec now = {0, 0};
    (void)timespec_get(&now, TIME_UTC);
    size_t count = 0;
    for (const fl_object *object = sched->core->objects; object != NULL; object = object->next) {
        const filch_codelet *codelet = (const filch_codelet *)(const void *)object;
        for (uint32_t device = 0; is_codelet(object) && device < sched->count; ++device) {
            fl_speed_view view = fl_speed_look(fl_codelet_speed(codelet, device));
            if (view.samples >= SAMPLES_LEAST) {
                records[count++] =
                    (fl_record){.key = key_of(&sched->pool->devices[device], codelet),
                                .rate = view.rate,
                                .fixed = view.fixed,
                                .most_work = view.most_work,
                                .saved = (int64_t)now.tv_sec,
                                .taken = view.taken};
            }
        }
    }
    return count;
}
