/* SPDX-License-Identifier: Apache-2.0 */
#include "device/spec.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"

/* Limit of the text: enough for FL_SPEC_ITEMS items, and columns fit in 32 bits. */
#define TEXT_LIMIT 65535

typedef struct spec_reader {
    const char *text;
    size_t at;
    filch_error *error;
} spec_reader;

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Records an error at the character at position at. */
static filch_status refuse(const spec_reader *reader, size_t at, const char *problem)
{
    fl_fault fault = {.status = FILCH_PARSE, .line = (int64_t)at + 1};

    return fl_error_fill(reader->error, fault, "device specification, character %zu: %s", at + 1,
                         problem);
}

/* Records an unexpected next character. */
static filch_status refuse_next(const spec_reader *reader, const char *expected)
{
    unsigned char c = (unsigned char)reader->text[reader->at];
    char found[16];
    char problem[96];

    if (c == '\0')
        (void)snprintf(found, sizeof found, "the end");
    else if (c < ' ' || c > '~')
        (void)snprintf(found, sizeof found, "byte 0x%02x", c);
    else
        (void)snprintf(found, sizeof found, "'%c'", c);
    (void)snprintf(problem, sizeof problem, "expected %s, found %s", expected, found);
    return refuse(reader, reader->at, problem);
}

static bool take(spec_reader *reader, char c)
{
    if (reader->text[reader->at] != c)
        return false;
    reader->at++;
    return true;
}

/* Reads a decimal number; `what` is the number's name in messages. Refuses zero unless allowed. */
static filch_status read_number(spec_reader *reader, const char *what, bool zero_allowed,
                                uint32_t *number)
{
    size_t start = reader->at;
    uint64_t value = 0;
    char problem[96];

    if (!is_digit(reader->text[start]))
        return refuse_next(reader, what);
    for (; is_digit(reader->text[reader->at]); reader->at++) {
        value = value * 10 + (uint64_t)(reader->text[reader->at] - '0');
        if (value > UINT32_MAX) {
            (void)snprintf(problem, sizeof problem, "%s is larger than 4294967295", what);
            return refuse(reader, start, problem);
        }
    }
    if (value == 0 && !zero_allowed) {
        (void)snprintf(problem, sizeof problem, "%s must not be zero", what);
        return refuse(reader, start, problem);
    }
    *number = (uint32_t)value;
    return FILCH_OK;
}

static filch_status read_slices(spec_reader *reader, fl_device_spec *item)
{
    do {
        uint32_t width;
        filch_status status;

        if (item->slice_count == sizeof item->slices / sizeof item->slices[0])
            return refuse(reader, reader->at, "more than 64 slices of one GPU");
        status = read_number(reader, "a multiprocessor count", false, &width);
        if (status != FILCH_OK)
            return status;
        item->slices[item->slice_count++] = width;
    } while (take(reader, '+'));
    return FILCH_OK;
}

/* Reads the rest after the word "cuda". *expected receives the text allowed next besides the
 * end. */
static filch_status read_cuda(spec_reader *reader, fl_device_spec *item, const char **expected)
{
    filch_status status;

    *expected = "':', ',' or the end";
    if (!take(reader, ':'))
        return FILCH_OK;
    status = read_number(reader, "a GPU number", true, &item->number);
    if (status != FILCH_OK)
        return status;
    item->has_number = true;
    *expected = "'/', ',' or the end";
    if (!take(reader, '/'))
        return FILCH_OK;
    *expected = "'+', ',' or the end";
    return read_slices(reader, item);
}

/* Reads the count and team after "host". *expected: as in read_cuda. */
static filch_status read_counts(spec_reader *reader, fl_device_spec *item, const char **expected)
{
    filch_status status;
    size_t start;

    *expected = "':', '@', ',' or the end";
    if (!take(reader, ':'))
        return FILCH_OK;
    status = read_number(reader, "a device count", false, &item->number);
    if (status != FILCH_OK)
        return status;
    item->has_number = true;
    *expected = "'x', '@', ',' or the end";
    if (!take(reader, 'x'))
        return FILCH_OK;
    *expected = "'@', ',' or the end";
    start = reader->at;
    status = read_number(reader, "a core count", false, &item->team);
    if (status == FILCH_OK && item->team > FL_TEAM_LIMIT)
        return refuse(reader, start, "a device of more than 1024 cores");
    return status;
}

static filch_status read_cpu(spec_reader *reader, const char *what, uint32_t *cpu)
{
    size_t start = reader->at;
    filch_status status = read_number(reader, what, true, cpu);
    char problem[96];

    if (status != FILCH_OK || *cpu < FL_CPU_NUMBERS)
        return status;
    (void)snprintf(problem, sizeof problem, "%s is larger than %d", what, FL_CPU_NUMBERS - 1);
    return refuse(reader, start, problem);
}

/* Reads a CPU or a range of CPUs. named: a bit for every CPU named earlier in the list. */
static filch_status read_range(spec_reader *reader, fl_device_spec *item, uint64_t *named,
                               const char **expected)
{
    size_t start = reader->at;
    uint32_t first, last;
    char problem[96];
    filch_status status = read_cpu(reader, "a CPU number or 'any'", &first);

    last = first;
    *expected = "'-', ',' or the end";
    if (status == FILCH_OK && take(reader, '-')) {
        *expected = "',' or the end";
        status = read_cpu(reader, "the last CPU of a range", &last);
    }
    if (status != FILCH_OK)
        return status;
    if (last < first)
        return refuse(reader, start, "a range of CPUs that ends before it starts");
    for (uint32_t cpu = first; cpu <= last; cpu++) {
        if ((named[cpu / 64] >> (cpu % 64) & 1) != 0) {
            (void)snprintf(problem, sizeof problem, "CPU %u is named twice", cpu);
            return refuse(reader, start, problem);
        }
        if (item->cpu_count == FL_SPEC_CPUS)
            return refuse(reader, start, "more than 1024 CPUs in one list");
        named[cpu / 64] |= UINT64_C(1) << (cpu % 64);
        item->cpus[item->cpu_count++] =
            (fl_named_cpu){.cpu = (uint16_t)cpu, .column = (uint16_t)(start + 1)};
    }
    return FILCH_OK;
}

/* Reads the list after '@'. Items start with letters: a comma before a digit continues the list. */
static filch_status read_cpus(spec_reader *reader, fl_device_spec *item, const char **expected)
{
    uint64_t named[FL_CPU_NUMBERS / 64] = {0};
    const char *word = reader->text + reader->at;
    size_t length = 0;
    char problem[96];

    while (is_letter(word[length]))
        length++;
    if (length == 3 && memcmp(word, "any", 3) == 0) {
        reader->at += length;
        item->is_unbound = true;
        *expected = "',' or the end";
        return FILCH_OK;
    }
    if (length > 0) {
        (void)snprintf(problem, sizeof problem,
                       "unknown word '%.*s'; expected a CPU number or 'any'",
                       length > 32 ? 32 : (int)length, word);
        return refuse(reader, reader->at, problem);
    }
    for (;;) {
        filch_status status = read_range(reader, item, named, expected);

        if (status != FILCH_OK || reader->text[reader->at] != ',' ||
            !is_digit(reader->text[reader->at + 1]))
            return status;
        reader->at++;
    }
}

static filch_status read_host(spec_reader *reader, fl_device_spec *item, const char **expected)
{
    filch_status status = read_counts(reader, item, expected);

    if (status != FILCH_OK || !take(reader, '@'))
        return status;
    return read_cpus(reader, item, expected);
}

static filch_status read_sim(spec_reader *reader, fl_device_spec *item, const char **expected)
{
    const char *name;
    size_t length;

    *expected = "',' or the end";
    if (!take(reader, ':'))
        return refuse_next(reader, "':' and a file name");
    name = reader->text + reader->at;
    length = strcspn(name, ",");
    if (length == 0)
        return refuse_next(reader, "a file name");
    if (length >= sizeof item->file)
        return refuse(reader, reader->at + sizeof item->file - 1,
                      "the file name is longer than 255 bytes");
    memcpy(item->file, name, length);
    reader->at += length;
    return FILCH_OK;
}

static filch_status read_item(spec_reader *reader, fl_device_spec *item)
{
    const char *word = reader->text + reader->at;
    const char *expected = NULL;
    char problem[96];
    size_t length = 0;
    filch_status status;

    memset(item, 0, sizeof *item);
    item->column = (uint32_t)reader->at + 1;
    while (is_letter(word[length]))
        length++;
    if (length == 0) {
        if (word[0] == ',' || word[0] == '\0')
            return refuse(reader, reader->at, "empty item; expected cuda, host or sim");
        return refuse_next(reader, "cuda, host or sim");
    }
    reader->at += length;
    if (length == 4 && memcmp(word, "cuda", 4) == 0) {
        item->backend = FILCH_BACKEND_CUDA;
        status = read_cuda(reader, item, &expected);
    } else if (length == 4 && memcmp(word, "host", 4) == 0) {
        item->backend = FILCH_BACKEND_HOST;
        status = read_host(reader, item, &expected);
    } else if (length == 3 && memcmp(word, "sim", 3) == 0) {
        item->backend = FILCH_BACKEND_SIM;
        status = read_sim(reader, item, &expected);
    } else {
        (void)snprintf(problem, sizeof problem, "unknown word '%.*s'; expected cuda, host or sim",
                       length > 32 ? 32 : (int)length, word);
        return refuse(reader, item->column - 1, problem);
    }
    if (status != FILCH_OK)
        return status;
    if (reader->text[reader->at] != ',' && reader->text[reader->at] != '\0')
        return refuse_next(reader, expected);
    return FILCH_OK;
}

filch_status fl_spec_parse(const char *text, fl_device_spec items[FL_SPEC_ITEMS], size_t *count,
                           filch_error *error)
{
    spec_reader reader = {.text = text, .error = error};
    size_t found = 0;

    if (text == NULL || items == NULL || count == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_INVALID_ARGUMENT},
                             "device specification: a pointer is null");
    if (strlen(text) > TEXT_LIMIT)
        return refuse(&reader, TEXT_LIMIT, "longer than 65535 characters");
    do {
        filch_status status;

        if (found == FL_SPEC_ITEMS)
            return refuse(&reader, reader.at, "more than 64 items");
        status = read_item(&reader, &items[found]);
        if (status != FILCH_OK)
            return status;
        found++;
    } while (take(&reader, ','));
    *count = found;
    return FILCH_OK;
}
