/* SPDX-License-Identifier: Apache-2.0 */
/* The fake's configuration: JSON of FAKECUDA_CONFIG over built-in defaults. */
#define _GNU_SOURCE
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"

fake_state fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
                   .finished = PTHREAD_COND_INITIALIZER,
                   .runnable = PTHREAD_COND_INITIALIZER};

static void device_default(fake_device *device, uint32_t index)
{
    memset(device, 0, sizeof *device);
    (void)snprintf(device->name, sizeof device->name, "Fake H%u", 200u + index);
    device->sms = 132;
    device->major = 9;
    device->clock_khz = 1980000;
    device->granularity = 8;
    device->has_ecc = true;
    device->memory = (uint64_t)1 << 30;
    device->speed = 1.0;
    (void)snprintf(device->pci, sizeof device->pci, "0000:%02x:00.0", 0x1bu + index);
    for (uint32_t i = 0; i < 16; i++)
        device->uuid[i] = (unsigned char)(0xf0u + index * 17u + i * 29u);
}

void fake_config_default(fake_config *config)
{
    memset(config, 0, sizeof *config);
    config->driver = 13000;
    config->threads = 4;
    config->fills = true;
    config->seed = 1;
    config->device_count = 2;
    for (uint32_t i = 0; i < FAKE_DEVICES; i++) {
        device_default(&config->devices[i], i);
        for (uint32_t k = 0; k < FAKE_DEVICES; k++)
            config->links[i][k].has_peer = i != k;
    }
}

/* Readers of one member each: absent is fine, another type is an error. */
typedef struct reader {
    char *error;
    size_t bytes;
    bool is_good;
} reader;

static void complain(reader *r, const char *what, const char *name)
{
    if (r->is_good)
        (void)snprintf(r->error, r->bytes, "%s: \"%s\"", what, name);
    r->is_good = false;
}

static double read_number(reader *r, const json_t *from, const char *name, double otherwise)
{
    const json_t *value = json_object_get(from, name);

    if (value == NULL)
        return otherwise;
    if (!json_is_number(value)) {
        complain(r, "not a number", name);
        return otherwise;
    }
    return json_number_value(value);
}

static int read_int(reader *r, const json_t *from, const char *name, int otherwise)
{
    return (int)read_number(r, from, name, otherwise);
}

static bool read_bool(reader *r, const json_t *from, const char *name, bool otherwise)
{
    const json_t *value = json_object_get(from, name);

    if (value == NULL)
        return otherwise;
    if (!json_is_boolean(value))
        complain(r, "not true or false", name);
    return json_is_true(value);
}

static void read_text(reader *r, const json_t *from, const char *name, char *out, size_t bytes)
{
    const json_t *value = json_object_get(from, name);

    if (value == NULL)
        return;
    if (!json_is_string(value))
        complain(r, "not a string", name);
    else
        (void)snprintf(out, bytes, "%s", json_string_value(value));
}

static void check_names(reader *r, const json_t *from, const char *const *names)
{
    const char *name;
    json_t *value;

    json_object_foreach((json_t *)from, name, value)
    {
        size_t i = 0;
        while (names[i] != NULL && strcmp(names[i], name) != 0)
            i++;
        if (names[i] == NULL)
            complain(r, "unknown member", name);
    }
}

static void read_attributes(reader *r, const json_t *from, fake_device *device)
{
    const char *name;
    json_t *value;

    json_object_foreach(json_object_get(from, "attributes"), name, value)
    {
        if (device->override_count == 32 || !json_is_integer(value)) {
            complain(r, "bad attribute", name);
            return;
        }
        device->overrides[device->override_count].attribute = (int)strtol(name, NULL, 10);
        device->overrides[device->override_count++].value = (int)json_integer_value(value);
    }
}

static void read_device(reader *r, const json_t *from, fake_device *device)
{
    static const char *const names[] = {
        "count", "name",  "sms",          "memory",        "arch",        "clock",  "mig",
        "pci",   "speed", "ecc",          "primary_flags", "granularity", "groups", "integrated",
        "numa",  "link",  "compute_mode", "attributes",    NULL};
    char arch[16] = "";

    check_names(r, from, names);
    read_text(r, from, "name", device->name, sizeof device->name);
    read_text(r, from, "pci", device->pci, sizeof device->pci);
    read_text(r, from, "arch", arch, sizeof arch);
    if (arch[0] != '\0' && sscanf(arch, "%d.%d", &device->major, &device->minor) != 2)
        complain(r, "not like \"9.0\"", "arch");
    device->sms = read_int(r, from, "sms", device->sms);
    device->memory = (uint64_t)read_number(r, from, "memory", (double)device->memory);
    device->clock_khz = read_int(r, from, "clock", device->clock_khz);
    device->numa = read_int(r, from, "numa", device->numa);
    device->compute_mode = read_int(r, from, "compute_mode", 0);
    device->primary_flags = (unsigned)read_int(r, from, "primary_flags", 0);
    device->granularity = read_int(r, from, "granularity", device->granularity);
    device->groups = read_int(r, from, "groups", 0);
    device->speed = read_number(r, from, "speed", device->speed);
    device->is_mig = read_bool(r, from, "mig", false);
    device->is_integrated = read_bool(r, from, "integrated", false);
    device->has_ecc = read_bool(r, from, "ecc", true);
    read_attributes(r, from, device);
    if (device->sms < 1 || device->sms > FAKE_MULTIPROCESSORS || device->speed <= 0 ||
        device->granularity < 1)
        complain(r, "out of range", "sms, speed or granularity");
}

static void read_devices(reader *r, const json_t *from, fake_config *config)
{
    size_t i;
    json_t *item;

    if (from == NULL)
        return;
    if (!json_is_array(from))
        complain(r, "not an array", "devices");
    config->device_count = 0;
    json_array_foreach((json_t *)from, i, item)
    {
        int count = read_int(r, item, "count", 1);
        for (int k = 0; k < count && r->is_good; k++) {
            if (config->device_count == FAKE_DEVICES) {
                complain(r, "too many", "devices");
                return;
            }
            read_device(r, item, &config->devices[config->device_count++]);
        }
    }
}

static void read_links(reader *r, const json_t *from, fake_config *config)
{
    static const char *const names[] = {"from", "to",   "peer", "atomics",
                                        "rank", "gbps", "both", NULL};
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)from, i, item)
    {
        int a = read_int(r, item, "from", -1);
        int b = read_int(r, item, "to", -1);
        fake_link link;
        check_names(r, item, names);
        if (a < 0 || b < 0 || a >= FAKE_DEVICES || b >= FAKE_DEVICES || a == b) {
            complain(r, "no such pair of devices", "links");
            return;
        }
        link.has_peer = read_bool(r, item, "peer", true);
        link.has_atomics = read_bool(r, item, "atomics", false);
        link.rank = read_int(r, item, "rank", 0);
        link.gbps = read_number(r, item, "gbps", 0);
        config->links[a][b] = link;
        if (read_bool(r, item, "both", true))
            config->links[b][a] = link;
    }
}

static void read_failures(reader *r, const json_t *from, fake_config *config)
{
    static const char *const names[] = {"call", "nth", "count", "result", "device", "sticky", NULL};
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)from, i, item)
    {
        fake_failure *failure = calloc(1, sizeof *failure);
        if (failure == NULL)
            abort();
        failure->next = config->failures;
        config->failures = failure;
        check_names(r, item, names);
        read_text(r, item, "call", failure->call, sizeof failure->call);
        failure->nth = (uint64_t)read_number(r, item, "nth", 1);
        failure->count = (uint64_t)read_number(r, item, "count", 1);
        failure->result = read_int(r, item, "result", FL_CUDA_ERROR_UNKNOWN);
        failure->device = read_int(r, item, "device", -1);
        failure->is_sticky = read_bool(r, item, "sticky", false);
    }
}

static void read_missing(reader *r, const json_t *from, fake_config *config)
{
    size_t i;
    json_t *item;

    json_array_foreach((json_t *)from, i, item)
    {
        if (config->missing_count == 32 || !json_is_string(item)) {
            complain(r, "bad list", "missing");
            return;
        }
        (void)snprintf(config->missing[config->missing_count], sizeof config->missing[0], "%s",
                       json_string_value(item));
        config->missing_count++;
    }
}

bool fake_config_parse(fake_config *config, const char *text_or_file, char *error, size_t bytes)
{
    static const char *const names[] = {
        "driver", "stub", "missing", "threads", "kernel_ns", "copy_ns",    "copy_gbps",
        "fill",   "seed", "devices", "links",   "failures",  "refusal_ns", NULL};
    json_error_t where;
    reader r = {error, bytes, true};
    json_t *root = strchr(text_or_file, '{') != NULL
                       ? json_loads(text_or_file, JSON_REJECT_DUPLICATES, &where)
                       : json_load_file(text_or_file, JSON_REJECT_DUPLICATES, &where);

    if (!json_is_object(root)) {
        (void)snprintf(error, bytes, "line %d: %s", where.line,
                       root == NULL ? where.text : "not an object");
        json_decref(root);
        return false;
    }
    check_names(&r, root, names);
    config->driver = read_int(&r, root, "driver", config->driver);
    config->is_stub = read_bool(&r, root, "stub", false);
    config->threads = (uint32_t)read_int(&r, root, "threads", (int)config->threads);
    config->kernel_ns = (uint64_t)read_number(&r, root, "kernel_ns", 0);
    config->copy_ns = (uint64_t)read_number(&r, root, "copy_ns", 0);
    config->refusal_ns = (uint64_t)read_number(&r, root, "refusal_ns", 0);
    config->copy_gbps = read_number(&r, root, "copy_gbps", 0);
    config->fills = read_bool(&r, root, "fill", true);
    config->seed = (uint64_t)read_number(&r, root, "seed", 1);
    read_missing(&r, json_object_get(root, "missing"), config);
    read_devices(&r, json_object_get(root, "devices"), config);
    read_links(&r, json_object_get(root, "links"), config);
    read_failures(&r, json_object_get(root, "failures"), config);
    if (config->threads < 1 || config->threads > 64)
        complain(&r, "out of range", "threads");
    json_decref(root);
    return r.is_good;
}

void fake_config_drop(fake_config *config)
{
    while (config->failures != NULL) {
        fake_failure *gone = config->failures;
        config->failures = gone->next;
        free(gone);
    }
}

static bool configure(const char *text)
{
    char error[512] = "";

    fake_config_drop(&fake.config);
    fake_config_default(&fake.config);
    fake.is_configured = true;
    fake.is_bad = text != NULL && text[0] != '\0' &&
                  !fake_config_parse(&fake.config, text, error, sizeof error);
    if (fake.is_bad)
        (void)fake_violate(0, "FAKECUDA_CONFIG: %s", error);
    return !fake.is_bad;
}

bool fake_configure_once(void)
{
    return fake.is_configured ? !fake.is_bad : configure(getenv("FAKECUDA_CONFIG"));
}

bool fakecuda_configure(const char *text_or_file)
{
    static const fake_kind kinds[] = {FAKE_CONTEXT, FAKE_STREAM, FAKE_EVENT, FAKE_MODULE,
                                      FAKE_GRAPH,   FAKE_EXEC,   FAKE_GREEN, FAKE_POOL};
    bool is_free = true;

    (void)pthread_mutex_lock(&fake.lock);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        for (uint32_t k = 0; k < fake_object_count(kinds[i]); k++)
            is_free = is_free && !fake_object_at(kinds[i], k)->is_alive;
    }
    is_free = is_free && fake_memory_live(NULL) == 0 && fake_pinned_live(NULL) == 0 &&
              fake_virtual_live("handle") == 0 && fake_virtual_live("multicast") == 0 &&
              fake_virtual_live("mapping") == 0 && fake_virtual_live("reservation") == 0;
    if (is_free) {
        fake.is_initialised = false;
        is_free = configure(text_or_file);
    }
    (void)pthread_mutex_unlock(&fake.lock);
    return is_free;
}
