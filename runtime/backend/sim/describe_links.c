/* SPDX-License-Identifier: Apache-2.0 */
/* Reads two members of the simulator's JSON file: "link", of a device or of the root, and
 * "peers". */
#include <stdio.h>
#include <string.h>

#include "backend/sim/source.h"

#define LEAST_RATE 1.0
#define MOST_RATE 1e18
#define MOST_LATENCY_US 1e9

static filch_status link_refuse(const fl_sim_source *source, size_t device, const char *what)
{
    int64_t line = fl_sim_line_of(source, device, "link");

    if (device == FL_SIM_ROOT)
        return fl_sim_refuse(source, FILCH_DATA, line, "\"link\": %s", what);
    return fl_sim_refuse(source, FILCH_DATA, line, "device %zu: \"link\": %s", device, what);
}

/* Reads a bandwidth or latency; returns the problem, or null for a good value. */
static const char *way_member(const char *key, const json_t *value, const char *suffix,
                              fl_sim_way *way, bool *is_known)
{
    char rate[24], latency[24];

    (void)snprintf(rate, sizeof rate, "bandwidth%s", suffix);
    (void)snprintf(latency, sizeof latency, "latency%s_us", suffix);
    if (strcmp(key, rate) == 0) {
        *is_known = true;
        way->rate = json_number_value(value);
        return fl_sim_number_in(value, LEAST_RATE, MOST_RATE)
                   ? NULL
                   : "a bandwidth must be a number of bytes a second from 1 to 1e+18";
    }
    if (strcmp(key, latency) == 0) {
        *is_known = true;
        way->latency_us = json_number_value(value);
        return fl_sim_number_in(value, 0.0, MOST_LATENCY_US)
                   ? NULL
                   : "a latency must be a number from 0 to 1000000000";
    }
    return NULL;
}

static const char *link_member(const char *key, const json_t *value, fl_sim_link *link,
                               bool *is_known)
{
    const char *wrong = way_member(key, value, "", &link->in, is_known);

    if (wrong == NULL && !*is_known)
        wrong = way_member(key, value, "_out", &link->out, is_known);
    if (*is_known)
        return wrong;
    *is_known = true;
    if (strcmp(key, "column_us") == 0) {
        link->column_us = json_number_value(value);
        return fl_sim_number_in(value, 0.0, MOST_LATENCY_US)
                   ? NULL
                   : "\"column_us\" must be a number from 0 to 1000000000";
    }
    if (strcmp(key, "duplex") == 0) {
        link->is_half = json_is_false(value);
        return json_is_boolean(value) ? NULL : "\"duplex\" must be true or false";
    }
    if (strcmp(key, "bus") == 0)
        return fl_sim_name_read(value, link->bus)
                   ? NULL
                   : "\"bus\" must be a text of 1 to 48 bytes without control characters";
    *is_known = false;
    return NULL;
}

filch_status fl_sim_link_read(const fl_sim_source *source, size_t device, const json_t *value,
                              fl_sim_link *link)
{
    char shown[FL_SIM_SHOWN], text[80];
    const char *key;
    json_t *member, *object = (json_t *)(uintptr_t)value;

    memset(link, 0, sizeof *link);
    link->out.latency_us = -1.0;
    if (!json_is_object(value))
        return link_refuse(source, device, "must be an object");
    json_object_foreach(object, key, member)
    {
        bool is_known = false;
        const char *wrong = link_member(key, member, link, &is_known);

        if (!is_known) {
            fl_sim_key_show(key, shown);
            (void)snprintf(text, sizeof text, "unknown key \"%s\"", shown);
            wrong = text;
        }
        if (wrong != NULL)
            return link_refuse(source, device, wrong);
    }
    if (link->in.rate == 0.0)
        return link_refuse(source, device, "\"bandwidth\" is missing");
    /* The way out defaults to the way in. */
    link->out.rate = link->out.rate == 0.0 ? link->in.rate : link->out.rate;
    if (link->out.latency_us < 0.0)
        link->out.latency_us = link->in.latency_us;
    return FILCH_OK;
}

static filch_status peer_refuse(const fl_sim_source *source, size_t index, const char *key,
                                const char *what)
{
    int64_t line = key != NULL ? fl_sim_line_find(source, FL_SIM_PEERS, index, key) : 0;

    if (line == 0)
        line = fl_sim_line_find(source, FL_SIM_PEERS, index, NULL);
    return fl_sim_refuse(source, FILCH_DATA, line, "peer link %zu: %s", index, what);
}

static filch_status peer_read(const fl_sim_source *source, size_t index, json_t *object,
                              fl_sim_peer *peer)
{
    char shown[FL_SIM_SHOWN], text[80];
    const char *key;
    json_t *value;

    if (!json_is_object(object))
        return peer_refuse(source, index, NULL, "must be an object");
    json_object_foreach(object, key, value)
    {
        bool is_name = strcmp(key, "from") == 0 || strcmp(key, "to") == 0, is_known = is_name;
        const char *wrong = NULL;

        if (is_name && !fl_sim_name_read(value, key[0] == 'f' ? peer->from : peer->to))
            wrong = "\"from\" and \"to\" must be names of devices";
        if (!is_name)
            wrong = way_member(key, value, "", &peer->way, &is_known);
        if (!is_known) {
            fl_sim_key_show(key, shown);
            (void)snprintf(text, sizeof text, "unknown key \"%s\"", shown);
            wrong = text;
        }
        if (wrong != NULL)
            return peer_refuse(source, index, key, wrong);
    }
    if (peer->from[0] == '\0' || peer->to[0] == '\0' || peer->way.rate == 0.0)
        return peer_refuse(source, index, NULL, "needs \"from\", \"to\" and \"bandwidth\"");
    return FILCH_OK;
}

/* Returns whether a device of the file, or an element of several devices, has the name. */
static bool is_there(const fl_sim_description *description, const char *name)
{
    char own[FL_SIM_NAME_LIMIT + 16];
    uint32_t ordinal = 0;

    for (size_t m = 0; m < description->count; m++) {
        const fl_sim_model *model = &description->models[m];

        if (model->name[0] != '\0' && strcmp(model->name, name) == 0)
            return true;
        for (uint32_t member = 0; member < model->count; member++, ordinal++) {
            (void)snprintf(own, sizeof own, "%s:%u", model->name[0] != '\0' ? model->name : "sim",
                           model->name[0] != '\0' ? member : ordinal);
            if (strcmp(own, name) == 0 && (model->name[0] == '\0' || model->count > 1))
                return true;
        }
    }
    return false;
}

static filch_status peers_read(const fl_sim_source *source, const json_t *array,
                               fl_sim_description *description)
{
    size_t count = json_array_size(array);
    filch_status status = FILCH_OK;

    if (!json_is_array(array) || count == 0 || !description->has_links)
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, FL_SIM_ROOT, FL_SIM_PEERS),
                             "\"peers\" must be an array of at least one object, and the devices "
                             "have links");
    description->peers = fl_alloc_zeroed(source->how->memory, count * sizeof *description->peers);
    if (description->peers == NULL)
        return fl_sim_refuse(source, FILCH_OUT_OF_MEMORY, 0, "no memory for %zu links", count);
    description->peer_count = count;
    for (size_t i = 0; i < count && status == FILCH_OK; i++) {
        fl_sim_peer *peer = &description->peers[i];

        status = peer_read(source, i, json_array_get(array, i), peer);
        if (status == FILCH_OK && !is_there(description, peer->from))
            status = peer_refuse(source, i, "from", "\"from\" is no device of this file");
        if (status == FILCH_OK && !is_there(description, peer->to))
            status = peer_refuse(source, i, "to", "\"to\" is no device of this file");
    }
    return status;
}

filch_status fl_sim_links_read(const fl_sim_source *source, const json_t *root,
                               fl_sim_description *description)
{
    const json_t *all = json_object_get(root, "link");
    const json_t *peers = json_object_get(root, FL_SIM_PEERS);
    fl_sim_link usual;

    if (all != NULL) {
        filch_status status = fl_sim_link_read(source, FL_SIM_ROOT, all, &usual);

        if (status != FILCH_OK)
            return status;
    }
    for (size_t m = 0; m < description->count; m++) {
        fl_sim_model *model = &description->models[m];

        if (!model->has_link && all != NULL)
            model->link = usual;
        model->has_link = model->has_link || all != NULL;
        description->has_links = description->has_links || model->has_link;
    }
    for (size_t m = 0; m < description->count && description->has_links; m++) {
        if (!description->models[m].has_link)
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, m, NULL),
                                 "device %zu: \"link\" is missing, which others have", m);
        if (description->models[m].has_window)
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, m, "window"),
                                 "device %zu: \"window\" is measured where there is a \"link\"", m);
    }
    for (size_t m = 0; m < description->count && !description->has_links; m++) {
        if (description->models[m].has_lanes)
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, m, "lanes"),
                                 "device %zu: \"lanes\" are for devices with a \"link\"", m);
    }
    return peers != NULL ? peers_read(source, peers, description) : FILCH_OK;
}
