/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "base/config.h"

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/error.h"

#define PREFIX "FILCH_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
/* Prefix of settings of the drop-in BLAS, which checks their names. */
#define BLAS_PREFIX PREFIX "BLAS_"
/* Longer names are compared by their beginning; long values are quoted by their beginning. */
#define NAME_LONGEST 63
#define QUOTE_SIZE 72

typedef enum kind { KIND_TEXT, KIND_INTEGER, KIND_NUMBER, KIND_CHOICE, KIND_BYTES } kind;

typedef struct setting_row {
    filch_setting shown;
    const char *words;
    size_t offset; /* within fl_settings */
    int64_t low;
    int64_t high;
    kind kind;
} setting_row;

#define TYPE_TEXT(words) "text"
#define TYPE_INTEGER(words) "integer"
#define TYPE_NUMBER(words) "number"
#define TYPE_CHOICE(words) "choice: " words
#define TYPE_BYTES(words) "bytes, or: " words

static const setting_row table[] = {
#define SETTING_ROW(field, name, kind, initial, low, high, words, help) \
    {{sizeof(filch_setting), name, TYPE_##kind(words), initial, help},  \
     words,                                                             \
     offsetof(fl_settings, field),                                      \
     low,                                                               \
     high,                                                              \
     KIND_##kind},
    FL_SETTINGS_TABLE(SETTING_ROW)
#undef SETTING_ROW
};

#define SETTING_COUNT (sizeof table / sizeof table[0])

filch_status filch_setting_at(size_t index, filch_setting *setting)
{
    size_t size;

    if (setting == NULL || setting->size < sizeof *setting)
        return FILCH_INVALID_ARGUMENT;
    if (index >= SETTING_COUNT)
        return FILCH_BAD_INDEX;
    size = setting->size;
    *setting = table[index].shown;
    setting->size = size;
    return FILCH_OK;
}

/* Writes text as a quote of one line and bounded length. text may hold arbitrary bytes. */
static const char *quote(char out[QUOTE_SIZE], const char *text)
{
    size_t i;

    for (i = 0; i < QUOTE_SIZE - 1 && text[i] != '\0'; i++)
        out[i] = text[i];
    if (text[i] != '\0')
        memcpy(out + i - 3, "...", 3);
    out[i] = '\0';
    for (i = 0; out[i] != '\0'; i++) {
        if ((unsigned char)out[i] < ' ' || out[i] == 0x7f)
            out[i] = '?';
    }
    return out;
}

static filch_status refuse(const setting_row *row, const char *text, filch_error *error)
{
    const char *name = row->shown.name;
    const fl_fault fault = {.status = FILCH_PARSE, .label = name};
    long long low = (long long)row->low;
    long long high = (long long)row->high;
    char value[QUOTE_SIZE];

    (void)quote(value, text);
    switch (row->kind) {
    case KIND_TEXT:
        break;
    case KIND_INTEGER:
        return fl_error_fill(error, fault, "%s is \"%s\"; allowed is an integer from %lld to %lld",
                             name, value, low, high);
    case KIND_NUMBER:
        return fl_error_fill(error, fault,
                             "%s is \"%s\"; allowed is a decimal number from %lld to %lld of at "
                             "most 15 digits, e.g. 2.5",
                             name, value, low, high);
    case KIND_CHOICE:
        return fl_error_fill(error, fault, "%s is \"%s\"; allowed is one of: %s", name, value,
                             row->words);
    case KIND_BYTES:
        return fl_error_fill(error, fault,
                             "%s is \"%s\"; allowed is one of: %s, or bytes from 1 to %lld, which "
                             "may end in K, M, G or T, e.g. 512M",
                             name, value, row->words, high);
    }
    return fl_error_fill(error, fault, "%s is \"%s\"; allowed are at most %d characters", name,
                         value, FL_SETTING_TEXT - 1);
}

/* Parses an optional minus and decimal digits; refuses every further character. */
static bool parse_integer(const char *text, int64_t *value)
{
    bool negative = *text == '-';
    const char *at = text + negative;
    int64_t sum = 0;

    if (*at == '\0')
        return false;
    for (; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        /* The sum runs below zero, because INT64_MIN has no positive counterpart. */
        if (__builtin_mul_overflow(sum, 10, &sum) || __builtin_sub_overflow(sum, *at - '0', &sum))
            return false;
    }
    if (!negative && sum == INT64_MIN)
        return false;
    *value = negative ? sum : -sum;
    return true;
}

/* Parses digits with at most one point. strtod would follow the host's locale. Digits and power of
 * ten are exact up to 15 digits; a single division therefore rounds correctly (W. D. Clinger, "How
 * to read floating point numbers accurately", PLDI 1990). */
static bool parse_number(const char *text, double *value)
{
    const char *at = text + (*text == '-');
    int digits = 0;
    bool point = false;
    double sum = 0.0;
    double scale = 1.0;

    for (; *at != '\0'; at++) {
        if (*at == '.' && !point) {
            point = true;
            continue;
        }
        if (*at < '0' || *at > '9' || ++digits > 15)
            return false;
        sum = sum * 10.0 + (double)(*at - '0');
        if (point)
            scale *= 10.0;
    }
    if (digits == 0)
        return false;
    *value = (*text == '-' ? -sum : sum) / scale;
    return true;
}

static bool parse_choice(const char *words, const char *text, int64_t low, int64_t *value)
{
    size_t length = strlen(text);

    for (int64_t position = low;; position++) {
        size_t word = strcspn(words, " ");

        if (word == length && memcmp(words, text, length) == 0) {
            *value = position;
            return true;
        }
        if (words[word] == '\0')
            return false;
        words += word + 1;
    }
}

static bool parse_bytes(const char *text, int64_t *value)
{
    static const char units[] = "KMGT";
    size_t length = strlen(text);
    const char *unit = length > 0 ? strchr(units, text[length - 1]) : NULL;
    char digits[20]; /* digits of INT64_MAX and the terminator */
    int shift = unit != NULL ? 10 * (int)(unit - units + 1) : 0;

    length -= unit != NULL;
    if (length == 0 || length >= sizeof digits || *text == '-')
        return false;
    memcpy(digits, text, length);
    digits[length] = '\0';
    if (!parse_integer(digits, value) || *value < 1 || *value > INT64_MAX >> shift)
        return false;
    *value <<= shift;
    return true;
}

static filch_status parse(fl_settings *settings, const setting_row *row, const char *text,
                          filch_error *error)
{
    unsigned char *field = (unsigned char *)settings + row->offset;
    int64_t integer;
    double number;

    if (*text == '\0')
        text = row->shown.default_value;
    switch (row->kind) {
    case KIND_TEXT:
        if (strlen(text) >= FL_SETTING_TEXT)
            break;
        memcpy(field, text, strlen(text) + 1);
        return FILCH_OK;
    case KIND_INTEGER:
        if (!parse_integer(text, &integer) || integer < row->low || integer > row->high)
            break;
        memcpy(field, &integer, sizeof integer);
        return FILCH_OK;
    case KIND_NUMBER:
        if (!parse_number(text, &number) || number < (double)row->low || number > (double)row->high)
            break;
        memcpy(field, &number, sizeof number);
        return FILCH_OK;
    case KIND_CHOICE:
        if (!parse_choice(row->words, text, row->low, &integer))
            break;
        memcpy(field, &integer, sizeof integer);
        return FILCH_OK;
    case KIND_BYTES:
        if (!parse_choice(row->words, text, row->low, &integer) &&
            (!parse_bytes(text, &integer) || integer > row->high))
            break;
        memcpy(field, &integer, sizeof integer);
        return FILCH_OK;
    }
    return refuse(row, text, error);
}

static bool name_is(const setting_row *row, const char *name, size_t length)
{
    return strlen(row->shown.name) == length && memcmp(row->shown.name, name, length) == 0;
}

static const setting_row *find(const char *name, size_t length)
{
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        if (name_is(&table[i], name, length))
            return &table[i];
    }
    return NULL;
}

/* Returns the number of insertions, deletions and replacements that turn name a into name b.
 * Computes V. I. Levenshtein's distance row by row (R. A. Wagner, M. J. Fischer, "The
 * string-to-string correction problem", J. ACM 21(1), 1974). */
static size_t edit_distance(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t costs[NAME_LONGEST + 1];

    for (size_t j = 0; j <= b_length; j++)
        costs[j] = j;
    for (size_t i = 0; i < a_length; i++) {
        size_t diagonal = costs[0];

        costs[0] = i + 1;
        for (size_t j = 0; j < b_length; j++) {
            size_t best = diagonal + (a[i] != b[j]);

            diagonal = costs[j + 1];
            if (best > diagonal + 1)
                best = diagonal + 1;
            if (best > costs[j] + 1)
                best = costs[j] + 1;
            costs[j + 1] = best;
        }
    }
    return costs[b_length];
}

static size_t bounded(size_t length)
{
    return length < NAME_LONGEST ? length : NAME_LONGEST;
}

static size_t common_prefix(const char *name, size_t length, const char *known)
{
    size_t i = 0;

    while (i < length && known[i] == name[i])
        i++;
    return i;
}

/* Returns the nearest known name. The longer common beginning decides between names equally far:
 * FILCH_SPIN meant FILCH_SPIN_US. */
static const char *nearest(const char *name, size_t length)
{
    const char *best = NULL;
    size_t least = SIZE_MAX;
    size_t most = 0;

    length = bounded(length);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *known = table[i].shown.name;
        size_t distance = edit_distance(name, length, known, bounded(strlen(known)));
        size_t shared = common_prefix(name, length, known);

        if (distance < least || (distance == least && shared > most)) {
            least = distance;
            most = shared;
            best = known;
        }
    }
    return best;
}

static void warn_unknown(const fl_log *log)
{
    /* Names in the environment are the caller's, too, and must not steer a program with raised
     * privileges. */
    if (environ == NULL || getauxval(AT_SECURE) != 0)
        return;
    for (char **entry = environ; *entry != NULL; entry++) {
        const char *name = *entry;
        size_t length = strcspn(name, "=");

        if (strncmp(name, PREFIX, PREFIX_LENGTH) != 0 ||
            strncmp(name, BLAS_PREFIX, sizeof BLAS_PREFIX - 1) == 0 || find(name, length) != NULL)
            continue;
        fl_log_write(log, FILCH_LOG_WARNING,
                     "the environment sets %.*s, which filch does not know; the nearest is %s",
                     (int)bounded(length), name, nearest(name, length));
    }
}

bool fl_environment_quote(const char *name, char *text, size_t size)
{
    const char *value = secure_getenv(name);
    char quoted[QUOTE_SIZE];
    size_t length;

    if (value == NULL || size == 0)
        return false;
    length = strlen(quote(quoted, value));
    if (length >= size)
        length = size - 1;
    memcpy(text, quoted, length);
    text[length] = '\0';
    return true;
}

const char *fl_environment_value(const char *name)
{
    const char *value = secure_getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

void fl_settings_defaults(fl_settings *settings)
{
    memset(settings, 0, sizeof *settings);
    /* A default refused by its own row would leave a 0; a test reads every default. */
    for (size_t i = 0; i < SETTING_COUNT; i++)
        (void)parse(settings, &table[i], "", NULL);
}

filch_status fl_setting_parse(fl_settings *settings, const char *name, const char *text,
                              filch_error *error)
{
    const setting_row *row = find(name, strlen(name));
    const fl_fault fault = {.status = FILCH_NOT_FOUND};
    char quoted[QUOTE_SIZE];

    if (row == NULL)
        return fl_error_fill(error, fault, "there is no setting \"%s\"; the nearest is %s",
                             quote(quoted, name), nearest(name, strlen(name)));
    return parse(settings, row, text, error);
}

static filch_status join(char *path, size_t size, const char *base, const char *rest)
{
    int length = snprintf(path, size, "%s/%s", base, rest);

    return length < 0 || (size_t)length >= size ? FILCH_OVERFLOW : FILCH_OK;
}

filch_status fl_settings_cache_path(const fl_settings *settings, char *path, size_t size)
{
    const char *wanted = settings->cache_dir;
    const char *base;
    char here[PATH_MAX];

    if (strcmp(wanted, "off") == 0)
        return FILCH_NOT_FOUND;
    if (wanted[0] == '/')
        return join(path, size, "", wanted + 1);
    if (wanted[0] != '\0') {
        if (getcwd(here, sizeof here) == NULL)
            return FILCH_NOT_FOUND;
        return join(path, size, here, wanted);
    }
    base = secure_getenv("XDG_CACHE_HOME");
    if (base != NULL && base[0] == '/')
        return join(path, size, base, "filch");
    base = secure_getenv("HOME");
    if (base != NULL && base[0] == '/')
        return join(path, size, base, ".cache/filch");
    return FILCH_NOT_FOUND;
}

fl_log fl_settings_log(const fl_settings *settings, const fl_log *wanted)
{
    fl_log log = {NULL, NULL, FILCH_LOG_DEFAULT};

    if (wanted != NULL)
        log = *wanted;
    if (log.fn == NULL && settings->log != FILCH_LOG_DEFAULT)
        log.fn = fl_log_stderr;
    if (log.level == FILCH_LOG_DEFAULT)
        log.level =
            settings->log == FILCH_LOG_DEFAULT ? FILCH_LOG_WARNING : (filch_log_level)settings->log;
    return log;
}

filch_status fl_settings_read(fl_settings *settings, const fl_log *log, filch_error *error)
{
    fl_settings made;
    fl_log resolved;

    fl_settings_defaults(&made);
    for (size_t i = 0; i < SETTING_COUNT; i++) {
        const char *text = secure_getenv(table[i].shown.name);
        filch_status status;

        if (text == NULL)
            continue;
        status = parse(&made, &table[i], text, error);
        if (status != FILCH_OK)
            return status;
    }
    resolved = fl_settings_log(&made, log);
    warn_unknown(&resolved);
    *settings = made;
    return FILCH_OK;
}
