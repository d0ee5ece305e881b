/* SPDX-License-Identifier: Apache-2.0 */
/* Reads two members of a device in the simulator's JSON file: "host", the times of the device's
 * worker, and "shares". */
#include <stdio.h>
#include <string.h>

#include "backend/sim/source.h"

#define MOST_US 1e9

static filch_status host_refuse(const fl_sim_source *source, size_t device, const char *what)
{
    return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "host"),
                         "device %zu: \"host\": %s", device, what);
}

/* Reads the codelets whose launches keep the worker: microseconds by codelet name. */
static filch_status keeps_read(const fl_sim_source *source, size_t device, const json_t *value,
                               fl_sim_host *host)
{
    static const char text[] = "\"keeps\" must be an object of numbers from 0 to 1000000000 by "
                               "names of codelets, of 1 to 63 bytes";
    json_t *object = (json_t *)(uintptr_t)value, *us;
    const char *name;
    size_t at = 0;

    if (!json_is_object(value))
        return host_refuse(source, device, text);
    if (json_object_size(value) == 0)
        return FILCH_OK;
    host->keeps =
        fl_alloc_zeroed(source->how->memory, json_object_size(value) * sizeof *host->keeps);
    if (host->keeps == NULL)
        return fl_sim_refuse(source, FILCH_OUT_OF_MEMORY, 0, "no memory for %zu names",
                             json_object_size(value));
    host->keep_count = json_object_size(value);
    json_object_foreach(object, name, us)
    {
        size_t length = strlen(name);

        if (length == 0 || length > FL_SIM_CODELET_LIMIT || !fl_sim_number_in(us, 0.0, MOST_US))
            return host_refuse(source, device, text);
        memcpy(host->keeps[at].name, name, length + 1);
        host->keeps[at++].us = json_number_value(us);
    }
    return FILCH_OK;
}

filch_status fl_sim_host_read(const fl_sim_source *source, size_t device, const json_t *value,
                              fl_sim_host *host)
{
    json_t *object = (json_t *)(uintptr_t)value, *member;
    char shown[FL_SIM_SHOWN], text[80];
    const char *key;

    if (!json_is_object(value))
        return host_refuse(source, device, "must be an object");
    json_object_foreach(object, key, member)
    {
        double *us = strcmp(key, "launch_us") == 0 ? &host->launch_us
                     : strcmp(key, "copy_us") == 0 ? &host->copy_us
                     : strcmp(key, "see_us") == 0  ? &host->see_us
                                                   : NULL;

        if (us != NULL && !fl_sim_number_in(member, 0.0, MOST_US))
            return host_refuse(source, device, "times must be numbers from 0 to 1000000000");
        if (us != NULL) {
            *us = json_number_value(member);
        } else if (strcmp(key, "keeps") == 0) {
            filch_status status = keeps_read(source, device, member, host);

            if (status != FILCH_OK)
                return status;
        } else {
            fl_sim_key_show(key, shown);
            (void)snprintf(text, sizeof text, "unknown key \"%s\"", shown);
            return host_refuse(source, device, text);
        }
    }
    return FILCH_OK;
}

filch_status fl_sim_shares_read(const fl_sim_source *source, size_t device, const json_t *value,
                                fl_sim_model *model)
{
    if (fl_sim_name_read(value, model->shares))
        return FILCH_OK;
    return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "shares"),
                         "device %zu: \"shares\" must be the name of a device before it", device);
}

/* Returns the element owning the memory of the named device, among the elements before `before`;
 * only elements of one device count. Returns `before` when not found. */
static size_t element_of(const fl_sim_description *description, size_t before, const char *name)
{
    for (size_t m = 0; m < before; m++) {
        const fl_sim_model *model = &description->models[m];

        if (model->count == 1 && strcmp(model->name, name) == 0)
            return model->shares[0] != '\0' ? model->home : m;
    }
    return before;
}

filch_status fl_sim_hosts_check(const fl_sim_source *source, fl_sim_description *description)
{
    for (size_t m = 0; m < description->count; m++) {
        fl_sim_model *model = &description->models[m];
        const char *key = model->shares[0] != '\0' ? "shares" : "host";

        model->home = m;
        if (!description->has_links && (model->has_host || model->shares[0] != '\0'))
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, m, key),
                                 "device %zu: \"%s\" is for devices with a \"link\"", m, key);
        if (model->shares[0] == '\0')
            continue;
        model->home = element_of(description, m, model->shares);
        if (model->home == m)
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, m, key),
                                 "device %zu: \"shares\" must be the name of a device before it",
                                 m);
    }
    return FILCH_OK;
}
