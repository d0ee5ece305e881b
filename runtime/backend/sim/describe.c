/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "backend/sim/describe.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sim/sim.h"
#include "backend/sim/source.h"
#include "base/error.h"

#define DEVICES "devices"
/* Largest time in the file, in seconds: some thirty years. */
#define MOST_SECONDS 1e9
#define MOST_SPEED 1e18

static bool is_text(const char *text, size_t length, const char *wanted)
{
    return strlen(wanted) == length && memcmp(text, wanted, length) == 0;
}

/* Returns the line of a key in an element of one of the root's arrays. A null key means the element
 * itself, FL_SIM_ROOT a key of the root. Returns 0 when not found. The text is valid JSON: jansson
 * has parsed the text, but keeps no positions. */
int64_t fl_sim_line_find(const fl_sim_source *source, const char *array, size_t element,
                         const char *key)
{
    int key_depth = element == FL_SIM_ROOT ? 1 : 3;
    int depth = 0;
    int64_t line = 1;
    size_t at = 0;
    bool is_key = false;    /* a string at this position would be an object's key */
    bool is_inside = false; /* the position is inside the array */

    for (size_t i = 0; i < source->size; i++) {
        char c = source->text[i];
        bool is_here = element == FL_SIM_ROOT || (is_inside && at == element && depth >= 2);

        if (c == '\n')
            line++;
        if (c == ' ' || c == '\t' || c == '\r' || c == '\n')
            continue;
        if (key == NULL && depth == 2 && is_here && c != ',')
            return line;
        if (c == '"') {
            size_t start = ++i;

            for (; source->text[i] != '"'; i++)
                i += source->text[i] == '\\';
            if (key != NULL && is_key && is_here && depth == key_depth &&
                is_text(source->text + start, i - start, key))
                return line;
            if (is_key && depth == 1) {
                is_inside = is_text(source->text + start, i - start, array);
                at = 0;
            }
            is_key = false;
        } else if (c == '{' || c == '[') {
            depth++;
            is_key = c == '{';
        } else if (c == '}' || c == ']') {
            depth--;
        } else if (c == ',') {
            at += depth == 2;
            is_key = depth != 2;
        }
    }
    return 0;
}

static int64_t line_count(const fl_sim_source *source)
{
    int64_t lines = 1;

    for (size_t i = 0; i < source->size; i++)
        lines += source->text[i] == '\n';
    return lines;
}

filch_status fl_sim_refuse(const fl_sim_source *source, filch_status status, int64_t line,
                           const char *format, ...)
{
    fl_fault fault = {.status = status, .line = line, .label = source->path};
    char problem[256];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(problem, sizeof problem, format, args);
    va_end(args);
    /* Put the problem first: a long path may be cut off. */
    if (line > 0)
        return fl_error_fill(source->how->error, fault, "%s; line %lld of %s", problem,
                             (long long)line, source->path);
    return fl_error_fill(source->how->error, fault, "%s; in %s", problem, source->path);
}

/* Returns the line of a key in a device's description, or else the line of the description. */
int64_t fl_sim_line_of(const fl_sim_source *source, size_t device, const char *key)
{
    int64_t line = fl_sim_line_find(source, DEVICES, device, key);

    return line > 0 || device == FL_SIM_ROOT ? line
                                             : fl_sim_line_find(source, DEVICES, device, NULL);
}

/* Copies the start of a key, with control characters replaced, for use in a message. */
void fl_sim_key_show(const char *key, char shown[FL_SIM_SHOWN])
{
    size_t length = 0;

    for (; key[length] != '\0' && length < 40; length++)
        shown[length] = (unsigned char)key[length] < ' ' || key[length] == 0x7f ? '?' : key[length];
    shown[length] = '\0';
}

typedef enum number_key {
    SPEED,
    COUNT,
    OVERHEAD,
    MEMORY,
    WINDOW,
    LANES,
    SCORE,
    MISREAD_TILE,
    MISREAD_BY,
    JOINS,
    LOST,
    LEAVES,
    RETURNS,
    NUMBER_KEYS
} number_key;

static const struct {
    const char *name;
    bool is_whole;
    double least, most, usual;
} numbers[NUMBER_KEYS] = {
    [SPEED] = {"speed", false, 1e-6, MOST_SPEED, 0.0},
    [COUNT] = {"count", true, 1.0, FL_DEVICE_LIMIT, 1.0},
    [OVERHEAD] = {"overhead_us", false, 0.0, 1e9, 0.0},
    [MEMORY] = {"memory", true, 1.0, 0x1p50, 0x1p34},
    [WINDOW] = {"window", true, 1.0, FL_SIM_TILES, 2.0},
    [LANES] = {"lanes", true, 1.0, FL_LANE_LIMIT, 1.0},
    [SCORE] = {"score", false, 0.0, 1e300, 0.0},
    [MISREAD_TILE] = {"misread_tile", true, 0.0, 0x1p50, 0.0},
    [MISREAD_BY] = {"misread_by", false, 1e-6, 1e6, 1.0},
    [JOINS] = {"joins_at", false, 0.0, MOST_SECONDS, 0.0},
    [LOST] = {"lost_at", false, 0.0, MOST_SECONDS, INFINITY},
    [LEAVES] = {"leaves_at", false, 0.0, MOST_SECONDS, INFINITY},
    [RETURNS] = {"returns_at", false, 0.0, MOST_SECONDS, INFINITY},
};

bool fl_sim_name_read(const json_t *value, char name[FL_SIM_NAME_LIMIT + 1])
{
    const char *text = json_string_value(value);
    size_t length = text != NULL ? strlen(text) : 0;
    bool is_good = length > 0 && length <= FL_SIM_NAME_LIMIT;

    for (size_t i = 0; i < length; i++)
        is_good = is_good && (unsigned char)text[i] >= ' ' && text[i] != 0x7f;
    if (is_good)
        memcpy(name, text, length + 1);
    return is_good;
}

static filch_status name_read(const fl_sim_source *source, size_t device, const json_t *value,
                              fl_sim_model *model)
{
    if (!fl_sim_name_read(value, model->name))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "name"),
                             "device %zu: \"name\" must be a text of 1 to %d bytes without control "
                             "characters",
                             device, FL_SIM_NAME_LIMIT);
    return FILCH_OK;
}

static filch_status kinds_read(const fl_sim_source *source, size_t device, const json_t *value,
                               fl_sim_model *model)
{
    uint32_t kinds = 0;
    bool is_good = json_is_array(value) && json_array_size(value) > 0;

    for (size_t i = 0; is_good && i < json_array_size(value); i++) {
        const char *word = json_string_value(json_array_get(value, i));
        uint32_t kind = word == NULL                ? 0
                        : strcmp(word, "host") == 0 ? FL_IMPL_HOST_FN
                        : strcmp(word, "cuda") == 0 ? FL_IMPL_CUDA
                                                    : 0;

        is_good = kind != 0 && (kinds & kind) == 0;
        kinds |= kind;
    }
    if (!is_good)
        return fl_sim_refuse(
            source, FILCH_DATA, fl_sim_line_of(source, device, "implements"),
            "device %zu: \"implements\" must be an array of \"host\", \"cuda\" or both", device);
    model->implementations = kinds;
    return FILCH_OK;
}

bool fl_sim_number_in(const json_t *value, double least, double most)
{
    double read = json_number_value(value);

    return json_is_number(value) && read >= least && read <= most;
}

/* Reads [[seconds, units a second], ...]. */
static filch_status speeds_read(const fl_sim_source *source, size_t device, const json_t *value,
                                fl_sim_model *model)
{
    size_t count = json_array_size(value); /* 0 unless the value is an array */
    bool is_good = count > 0;
    double before = -1.0;

    for (size_t i = 0; is_good && i < count; i++) {
        const json_t *pair = json_array_get(value, i);
        const json_t *at = json_array_get(pair, 0), *speed = json_array_get(pair, 1);
        double least = i + 1 < count ? 0.0 : numbers[SPEED].least;

        is_good = json_array_size(pair) == 2 && fl_sim_number_in(at, 0.0, MOST_SECONDS) &&
                  fl_sim_number_in(speed, least, MOST_SPEED) && json_number_value(at) > before;
        before = is_good ? json_number_value(at) : before;
    }
    if (!is_good)
        return fl_sim_refuse(
            source, FILCH_DATA, fl_sim_line_of(source, device, "speeds"),
            "device %zu: \"speeds\" must be an array of pairs: seconds, which rise, from 0 "
            "to %g, and units a second from 0 to %g, the last above 0",
            device, MOST_SECONDS, MOST_SPEED);
    model->steps = fl_alloc(source->how->memory, count * sizeof *model->steps);
    if (model->steps == NULL)
        return fl_sim_refuse(source, FILCH_OUT_OF_MEMORY, 0, "no memory for %zu speeds", count);
    model->step_count = count;
    for (size_t i = 0; i < count; i++) {
        const json_t *pair = json_array_get(value, i);

        model->steps[i] = (fl_pace_step){
            .at_ns = fl_time_from_seconds(json_number_value(json_array_get(pair, 0))),
            .speed = json_number_value(json_array_get(pair, 1)),
        };
    }
    return FILCH_OK;
}

static filch_status number_read(const fl_sim_source *source, size_t device, number_key key,
                                const json_t *value, double *number)
{
    double read = json_number_value(value);

    if (!json_is_number(value) || !(read >= numbers[key].least && read <= numbers[key].most) ||
        (numbers[key].is_whole && floor(read) != read))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, numbers[key].name),
                             "device %zu: \"%s\" must be a %snumber from %.16g to %.16g", device,
                             numbers[key].name, numbers[key].is_whole ? "whole " : "",
                             numbers[key].least, numbers[key].most);
    *number = read;
    return FILCH_OK;
}

static filch_status member_read(const fl_sim_source *source, size_t device, const char *key,
                                const json_t *value, fl_sim_model *model,
                                double values[NUMBER_KEYS])
{
    char shown[FL_SIM_SHOWN];

    if (strcmp(key, "name") == 0)
        return name_read(source, device, value, model);
    if (strcmp(key, "implements") == 0)
        return kinds_read(source, device, value, model);
    if (strcmp(key, "speeds") == 0)
        return speeds_read(source, device, value, model);
    if (strcmp(key, "link") == 0) {
        model->has_link = true;
        return fl_sim_link_read(source, device, value, &model->link);
    }
    if (strcmp(key, "host") == 0) {
        model->has_host = true;
        return fl_sim_host_read(source, device, value, &model->host);
    }
    if (strcmp(key, "shares") == 0)
        return fl_sim_shares_read(source, device, value, model);
    for (number_key k = 0; k < NUMBER_KEYS; k++) {
        if (strcmp(key, numbers[k].name) == 0)
            return number_read(source, device, k, value, &values[k]);
    }
    fl_sim_key_show(key, shown);
    return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, key),
                         "device %zu: unknown key \"%s\"", device, shown);
}

static filch_status model_read(const fl_sim_source *source, size_t device, json_t *object,
                               fl_sim_model *model)
{
    double values[NUMBER_KEYS];
    const char *key;
    json_t *value;

    model->implementations = FL_IMPL_HOST_FN;
    if (!json_is_object(object))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, NULL),
                             "device %zu: must be an object", device);
    for (number_key k = 0; k < NUMBER_KEYS; k++)
        values[k] = numbers[k].usual;
    json_object_foreach(object, key, value)
    {
        filch_status status = member_read(source, device, key, value, model, values);

        if (status != FILCH_OK)
            return status;
    }
    if (json_object_get(object, "speed") == NULL)
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, NULL),
                             "device %zu: \"speed\" is missing", device);
    if (!(values[LOST] > values[JOINS]))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "lost_at"),
                             "device %zu: \"lost_at\" must be after 0 and after \"joins_at\"",
                             device);
    if (!(values[LEAVES] > values[JOINS]))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "leaves_at"),
                             "device %zu: \"leaves_at\" must be after 0 and after \"joins_at\"",
                             device);
    if (!(values[RETURNS] > values[LEAVES]) && isfinite(values[RETURNS]))
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, device, "returns_at"),
                             "device %zu: \"returns_at\" must be after \"leaves_at\"", device);
    model->leaves_at = values[LEAVES];
    model->returns_at = values[RETURNS];
    model->joins_at = values[JOINS];
    model->lost_at = values[LOST];
    model->speed = values[SPEED];
    model->overhead_us = values[OVERHEAD];
    model->score = json_object_get(object, "score") != NULL ? values[SCORE] : values[SPEED];
    model->memory = (uint64_t)values[MEMORY];
    model->window = (uint32_t)values[WINDOW];
    model->misread_tile = (uint64_t)values[MISREAD_TILE];
    model->misread_by = values[MISREAD_BY];
    model->lanes = (uint32_t)values[LANES];
    model->has_lanes = json_object_get(object, "lanes") != NULL;
    model->has_window = json_object_get(object, "window") != NULL;
    model->count = (uint32_t)values[COUNT];
    return FILCH_OK;
}

/* Finds the "devices" array; refuses unknown keys at the root. */
static filch_status root_read(const fl_sim_source *source, json_t *root, json_t **devices)
{
    char shown[FL_SIM_SHOWN];
    const char *key;
    json_t *value;

    *devices = json_object_get(root, "devices");
    if (!json_is_object(root))
        return fl_sim_refuse(source, FILCH_DATA, 1,
                             "the file must hold an object with \"devices\"");
    json_object_foreach(root, key, value)
    {
        if (strcmp(key, DEVICES) != 0 && strcmp(key, "link") != 0 &&
            strcmp(key, FL_SIM_PEERS) != 0) {
            fl_sim_key_show(key, shown);
            return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, FL_SIM_ROOT, key),
                                 "unknown key \"%s\"", shown);
        }
    }
    if (*devices == NULL)
        return fl_sim_refuse(source, FILCH_DATA, 1, "\"devices\" is missing");
    if (!json_is_array(*devices) || json_array_size(*devices) == 0)
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, FL_SIM_ROOT, "devices"),
                             "\"devices\" must be an array of at least one object");
    if (json_array_size(*devices) > FL_DEVICE_LIMIT)
        return fl_sim_refuse(source, FILCH_DATA, fl_sim_line_of(source, FL_DEVICE_LIMIT, NULL),
                             "more than %d devices", FL_DEVICE_LIMIT);
    return FILCH_OK;
}

static filch_status models_read(const fl_sim_source *source, json_t *root,
                                fl_sim_description *description)
{
    fl_sim_description made = {.models = NULL};
    json_t *devices;
    filch_status status = root_read(source, root, &devices);

    if (status != FILCH_OK)
        return status;
    made.count = json_array_size(devices);
    made.models = fl_alloc_zeroed(source->how->memory, made.count * sizeof *made.models);
    if (made.models == NULL)
        return fl_sim_refuse(source, FILCH_OUT_OF_MEMORY, 0, "no memory for %zu devices",
                             made.count);
    for (size_t i = 0; i < made.count && status == FILCH_OK; i++)
        status = model_read(source, i, json_array_get(devices, i), &made.models[i]);
    if (status == FILCH_OK)
        status = fl_sim_links_read(source, root, &made);
    if (status == FILCH_OK)
        status = fl_sim_hosts_check(source, &made);
    if (status == FILCH_OK)
        *description = made;
    else
        fl_sim_description_free(&made, source->how->memory);
    return status;
}

void fl_sim_description_free(fl_sim_description *description, const fl_memory *memory)
{
    for (size_t i = 0; i < description->count; i++) {
        const fl_sim_model *model = &description->models[i];

        fl_free(memory, model->steps, model->step_count * sizeof *model->steps);
        fl_free(memory, model->host.keeps, model->host.keep_count * sizeof *model->host.keeps);
    }
    fl_free(memory, description->models, description->count * sizeof *description->models);
    fl_free(memory, description->peers, description->peer_count * sizeof *description->peers);
    *description = (fl_sim_description){.models = NULL};
}

filch_status fl_sim_describe_text(fl_sim_description *description, const char *path,
                                  const char *text, size_t size, const fl_discovery *how)
{
    fl_sim_source source = {.how = how, .path = path, .text = text, .size = size};
    json_error_t problem;
    const char *zero = memchr(text, '\0', size);
    json_t *root;
    filch_status status;

    /* jansson skips a zero byte after a number. */
    if (zero != NULL) {
        source.size = (size_t)(zero - text);
        return fl_sim_refuse(&source, FILCH_PARSE, line_count(&source), "a zero byte is not JSON");
    }
    root = json_loadb(text, size, JSON_REJECT_DUPLICATES, &problem);
    if (root == NULL && json_error_code(&problem) == json_error_out_of_memory)
        return fl_sim_refuse(&source, FILCH_OUT_OF_MEMORY, 0, "no memory to parse the file");
    if (root == NULL)
        return fl_sim_refuse(&source, FILCH_PARSE, problem.line > 0 ? problem.line : 0, "%s",
                             problem.text);
    status = models_read(&source, root, description);
    json_decref(root);
    return status;
}

static filch_status system_refuse(const fl_sim_source *source, const char *call, int code)
{
    fl_fault fault = {.status = FILCH_IO, .native_code = code, .call = call, .label = source->path};
    char reason[96];

    if (strerror_r(code, reason, sizeof reason) != 0)
        (void)snprintf(reason, sizeof reason, "error %d", code);
    return fl_error_fill(source->how->error, fault, "cannot %s %s: %s", call, source->path, reason);
}

/* Reads to the end of the file or of the buffer; returns -1 on failure. */
static ssize_t read_all(int file, char *text, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t got = read(file, text + done, size - done);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

static filch_status file_read(fl_sim_description *description, fl_sim_source *source, int file)
{
    const size_t room = FL_SIM_FILE_LIMIT + 1;
    struct stat about;
    filch_status status;
    ssize_t size;
    char *text;

    if (fstat(file, &about) != 0)
        return system_refuse(source, "fstat", errno);
    if (!S_ISREG(about.st_mode))
        return fl_sim_refuse(source, FILCH_IO, 0, "not a regular file");
    text = fl_alloc(source->how->memory, room);
    if (text == NULL)
        return fl_sim_refuse(source, FILCH_OUT_OF_MEMORY, 0, "no memory to read the file");
    size = read_all(file, text, room);
    if (size < 0)
        status = system_refuse(source, "read", errno);
    else if (size > FL_SIM_FILE_LIMIT)
        status = fl_sim_refuse(source, FILCH_IO, 0, "larger than %d bytes", FL_SIM_FILE_LIMIT);
    else
        status = fl_sim_describe_text(description, source->path, text, (size_t)size, source->how);
    fl_free(source->how->memory, text, room);
    return status;
}

filch_status fl_sim_describe(fl_sim_description *description, const char *path,
                             const fl_discovery *how)
{
    fl_sim_source source = {.how = how, .path = path};
    /* Open without blocking: a pipe without a writer must not hold up the caller. file_read refuses
     * a pipe. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    filch_status status;

    if (file < 0)
        return system_refuse(&source, "open", errno);
    status = file_read(description, &source, file);
    (void)close(file);
    return status;
}
