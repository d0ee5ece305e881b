/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "problems/matrix_market.h"

#include "support/fail.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Longer than any number that strtod needs in full; a longer one is refused, not cut. */
#define NUMBER_CHARS 128
/* Integers up to here are exact in a double. */
#define INTEGER_LIMIT 9007199254740992.0

typedef enum field { FIELD_REAL, FIELD_INTEGER, FIELD_PATTERN } field;

typedef struct view {
    const char *at;
    const char *end;
} view;

typedef struct reader {
    view rest;
    int64_t line; /* number of the line last taken */
    const char *name;
    filch_error *error;
    bool array;
    bool symmetric;
    field field;
    size_t rows;
    size_t cols;
    size_t entries;
    double *values;
} reader;

#define FAIL(r, status, ...) bench_fail((r)->error, (status), (r)->name, (r)->line, __VA_ARGS__)

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* False at the end of the text. The line comes without its newline. */
static bool take_line(reader *r, view *line)
{
    if (r->rest.at == r->rest.end)
        return false;
    size_t left = (size_t)(r->rest.end - r->rest.at);
    const char *newline = memchr(r->rest.at, '\n', left);
    line->at = r->rest.at;
    line->end = newline ? newline : r->rest.end;
    r->rest.at = newline ? newline + 1 : r->rest.end;
    r->line++;
    return true;
}

/* An empty view where the line has no further word. */
static view take_word(view *line)
{
    while (line->at < line->end && is_blank(*line->at))
        line->at++;
    view word = {line->at, line->at};
    while (word.end < line->end && !is_blank(*word.end))
        word.end++;
    line->at = word.end;
    return word;
}

static bool word_is(view word, const char *text)
{
    size_t length = (size_t)(word.end - word.at);
    return length == strlen(text) && strncasecmp(word.at, text, length) == 0;
}

static bool is_empty(view word)
{
    return word.at == word.end;
}

/* The words of messages are cut: a malformed file may hold megabytes without a blank. */
static int shown(view word)
{
    ptrdiff_t length = word.end - word.at;
    return length > 40 ? 40 : (int)length;
}

static bool take_content_line(reader *r, bool comments, view *line)
{
    while (take_line(r, line)) {
        view probe = *line;
        view word = take_word(&probe);
        if (!is_empty(word) && !(comments && line->at[0] == '%'))
            return true;
    }
    return false;
}

static filch_status parse_header(reader *r)
{
    view line;
    if (!take_line(r, &line))
        return FAIL(r, FILCH_PARSE, "the file is empty");
    view word = take_word(&line);
    if (!word_is(word, "%%MatrixMarket"))
        return FAIL(r, FILCH_PARSE, "the first word is not %%%%MatrixMarket");
    word = take_word(&line);
    if (!word_is(word, "matrix"))
        return FAIL(r, FILCH_PARSE, "the object is '%.*s', not 'matrix'", shown(word), word.at);

    word = take_word(&line);
    r->array = word_is(word, "array");
    if (!r->array && !word_is(word, "coordinate"))
        return FAIL(r, FILCH_PARSE, "the format is '%.*s', not 'coordinate' or 'array'",
                    shown(word), word.at);

    word = take_word(&line);
    if (word_is(word, "complex"))
        return FAIL(r, FILCH_UNSUPPORTED, "complex matrices are not read");
    r->field = word_is(word, "integer")   ? FIELD_INTEGER
               : word_is(word, "pattern") ? FIELD_PATTERN
                                          : FIELD_REAL;
    if (r->field == FIELD_REAL && !word_is(word, "real"))
        return FAIL(r, FILCH_PARSE, "the field is '%.*s', not 'real', 'integer' or 'pattern'",
                    shown(word), word.at);
    if (r->field == FIELD_PATTERN && r->array)
        return FAIL(r, FILCH_PARSE, "an array cannot be a pattern");

    word = take_word(&line);
    r->symmetric = word_is(word, "symmetric");
    if (word_is(word, "hermitian") || word_is(word, "skew-symmetric"))
        return FAIL(r, FILCH_UNSUPPORTED, "%.*s matrices are not read", shown(word), word.at);
    if (!r->symmetric && !word_is(word, "general"))
        return FAIL(r, FILCH_PARSE, "the symmetry is '%.*s', not 'general' or 'symmetric'",
                    shown(word), word.at);
    word = take_word(&line);
    if (!is_empty(word))
        return FAIL(r, FILCH_PARSE, "'%.*s' follows the header", shown(word), word.at);
    return FILCH_OK;
}

static filch_status parse_count(reader *r, view *line, const char *what, size_t *count)
{
    view word = take_word(line);
    if (is_empty(word))
        return FAIL(r, FILCH_PARSE, "the %s is missing", what);
    size_t value = 0;
    for (const char *c = word.at; c < word.end; c++) {
        if (*c < '0' || *c > '9')
            return FAIL(r, FILCH_PARSE, "the %s '%.*s' is not a whole number", what, shown(word),
                        word.at);
        size_t digit = (size_t)(*c - '0');
        if (value > (SIZE_MAX - digit) / 10)
            return FAIL(r, FILCH_OVERFLOW, "the %s '%.*s' is too large", what, shown(word),
                        word.at);
        value = value * 10 + digit;
    }
    *count = value;
    return FILCH_OK;
}

static filch_status parse_end_of_line(reader *r, view *line)
{
    view word = take_word(line);
    if (is_empty(word))
        return FILCH_OK;
    return FAIL(r, FILCH_PARSE, "'%.*s' follows the last word of the line", shown(word), word.at);
}

static filch_status parse_sizes(reader *r)
{
    view line;
    if (!take_content_line(r, true, &line))
        return FAIL(r, FILCH_PARSE, "the file ends before the size line");
    filch_status status = parse_count(r, &line, "number of rows", &r->rows);
    if (status == FILCH_OK)
        status = parse_count(r, &line, "number of columns", &r->cols);
    if (status == FILCH_OK && !r->array)
        status = parse_count(r, &line, "number of entries", &r->entries);
    if (status == FILCH_OK)
        status = parse_end_of_line(r, &line);
    return status;
}

static size_t physical_memory(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long page = sysconf(_SC_PAGESIZE);
    if (pages <= 0 || page <= 0 || (size_t)pages > SIZE_MAX / (size_t)page)
        return SIZE_MAX;
    return (size_t)pages * (size_t)page;
}

/* Everything that the size line alone can tell, before memory is taken. */
static filch_status check_sizes(reader *r, bench_matrix_need need, size_t limit)
{
    if (r->rows == 0 || r->cols == 0)
        return FAIL(r, FILCH_DATA, "the matrix is %zu x %zu: a size is 0", r->rows, r->cols);
    if ((r->symmetric || need != BENCH_MATRIX_ANY) && r->rows != r->cols)
        return FAIL(r, FILCH_DATA, "the matrix is %zu x %zu, not square", r->rows, r->cols);
    if (r->rows > SIZE_MAX / sizeof(double) / r->cols)
        return FAIL(r, FILCH_OVERFLOW, "%zu x %zu elements do not fit the address space", r->rows,
                    r->cols);
    size_t all = r->rows * r->cols;
    if (limit == 0)
        limit = physical_memory();
    if (all > limit / sizeof(double))
        return FAIL(r, FILCH_TOO_LARGE, "%zu x %zu dense needs %.3g GB, over the limit of %.3g GB",
                    r->rows, r->cols, (double)all * 8e-9, (double)limit * 1e-9);
    size_t room = r->symmetric ? all - r->rows * (r->cols - 1) / 2 : all;
    if (r->array)
        r->entries = room;
    if (r->entries > room)
        return FAIL(r, FILCH_DATA, "%zu entries are declared, the matrix has room for %zu",
                    r->entries, room);
    /* The shortest entry is "1\n" or "1 1\n", the newline of the last one optional. */
    size_t left = (size_t)(r->rest.end - r->rest.at);
    if (r->entries > left / (r->array ? 2 : 4) + 1)
        return FAIL(r, FILCH_PARSE, "%zu entries are declared, but only %zu bytes follow",
                    r->entries, left);
    return FILCH_OK;
}

static filch_status parse_value(reader *r, view *line, double *value)
{
    view word = take_word(line);
    size_t length = (size_t)(word.end - word.at);
    char text[NUMBER_CHARS];
    if (length == 0)
        return FAIL(r, FILCH_PARSE, "the value is missing");
    if (length >= sizeof text)
        return FAIL(r, FILCH_PARSE, "the value '%.*s...' is too long", shown(word), word.at);
    memcpy(text, word.at, length);
    text[length] = '\0';
    char *end;
    *value = strtod(text, &end);
    if (end == text || (size_t)(end - text) != length || strpbrk(text, "xXpP"))
        return FAIL(r, FILCH_PARSE, "'%.*s' is not a number", shown(word), word.at);
    if (!isfinite(*value))
        return FAIL(r, FILCH_DATA, "the value '%.*s' is not finite", shown(word), word.at);
    if (r->field == FIELD_INTEGER) {
        if (text[strspn(text, "+-0123456789")] != '\0')
            return FAIL(r, FILCH_PARSE, "'%.*s' is not a whole number", shown(word), word.at);
        if (fabs(*value) > INTEGER_LIMIT)
            return FAIL(r, FILCH_OVERFLOW, "the integer '%.*s' is not exact in a double",
                        shown(word), word.at);
    }
    return FILCH_OK;
}

static filch_status parse_index(reader *r, view *line, const char *what, size_t count,
                                size_t *index)
{
    size_t value = 0;
    filch_status status = parse_count(r, line, what, &value);
    if (status != FILCH_OK)
        return status;
    if (value < 1 || value > count)
        return FAIL(r, FILCH_DATA, "the %s %zu is outside 1..%zu", what, value, count);
    *index = value - 1;
    return FILCH_OK;
}

static void store(reader *r, size_t i, size_t j, double value)
{
    r->values[i + j * r->rows] = value;
    if (r->symmetric)
        r->values[j + i * r->rows] = value;
}

static filch_status parse_coordinate(reader *r, view *line)
{
    size_t i = 0;
    size_t j = 0;
    double value = 1.0;
    filch_status status = parse_index(r, line, "row", r->rows, &i);
    if (status == FILCH_OK)
        status = parse_index(r, line, "column", r->cols, &j);
    if (status == FILCH_OK && r->field != FIELD_PATTERN)
        status = parse_value(r, line, &value);
    if (status == FILCH_OK)
        status = parse_end_of_line(r, line);
    if (status != FILCH_OK)
        return status;
    if (r->symmetric && i < j)
        return FAIL(r, FILCH_DATA, "entry (%zu, %zu) of a symmetric file is above the diagonal",
                    i + 1, j + 1);
    if (!isnan(r->values[i + j * r->rows]))
        return FAIL(r, FILCH_DATA, "entry (%zu, %zu) is a duplicate", i + 1, j + 1);
    store(r, i, j, value);
    return FILCH_OK;
}

static filch_status parse_coordinates(reader *r)
{
    /* Not-a-number marks what no entry has set yet: input may not be one, so duplicates show
     * without a second array. */
    size_t all = r->rows * r->cols;
    for (size_t k = 0; k < all; k++)
        r->values[k] = NAN;
    for (size_t k = 0; k < r->entries; k++) {
        view line;
        if (!take_content_line(r, false, &line))
            return FAIL(r, FILCH_PARSE, "the file ends after %zu of %zu entries", k, r->entries);
        filch_status status = parse_coordinate(r, &line);
        if (status != FILCH_OK)
            return status;
    }
    for (size_t k = 0; k < all; k++)
        if (isnan(r->values[k]))
            r->values[k] = 0.0;
    return FILCH_OK;
}

static filch_status parse_array(reader *r)
{
    size_t taken = 0;
    for (size_t j = 0; j < r->cols; j++) {
        for (size_t i = r->symmetric ? j : 0; i < r->rows; i++, taken++) {
            view line;
            double value = 0.0;
            if (!take_content_line(r, false, &line))
                return FAIL(r, FILCH_PARSE, "the file ends after %zu of %zu entries", taken,
                            r->entries);
            filch_status status = parse_value(r, &line, &value);
            if (status == FILCH_OK)
                status = parse_end_of_line(r, &line);
            if (status != FILCH_OK)
                return status;
            store(r, i, j, value);
        }
    }
    return FILCH_OK;
}

static filch_status check_symmetric(reader *r)
{
    for (size_t j = 0; j < r->cols; j++)
        for (size_t i = j + 1; i < r->rows; i++) {
            double lower = r->values[i + j * r->rows];
            double upper = r->values[j + i * r->rows];
            if (lower < upper || lower > upper) {
                r->line = 0;
                return FAIL(r, FILCH_DATA,
                            "the matrix is not symmetric: (%zu, %zu) is %.17g, (%zu, %zu) is %.17g",
                            i + 1, j + 1, lower, j + 1, i + 1, upper);
            }
        }
    return FILCH_OK;
}

static filch_status parse_body(reader *r, bench_matrix_need need)
{
    filch_status status = r->array ? parse_array(r) : parse_coordinates(r);
    if (status != FILCH_OK)
        return status;
    view line;
    if (take_content_line(r, false, &line)) {
        view word = take_word(&line);
        return FAIL(r, FILCH_PARSE, "'%.*s' follows the last of %zu entries", shown(word), word.at,
                    r->entries);
    }
    if (need == BENCH_MATRIX_SYMMETRIC && !r->symmetric)
        return check_symmetric(r);
    return FILCH_OK;
}

filch_status bench_matrix_parse(const char *text, size_t length, const char *name,
                                bench_matrix_need need, size_t limit, filch_error *error,
                                bench_matrix *matrix)
{
    if (length == 0)
        text = ""; /* a fuzzer's empty input may be null */
    reader r = {.rest = {text, text + length}, .name = name, .error = error};
    filch_status status = parse_header(&r);
    if (status == FILCH_OK)
        status = parse_sizes(&r);
    if (status == FILCH_OK)
        status = check_sizes(&r, need, limit);
    if (status != FILCH_OK)
        return status;
    size_t bytes = r.rows * r.cols * sizeof(double);
    r.values = malloc(bytes);
    if (!r.values)
        return FAIL(&r, FILCH_OUT_OF_MEMORY, "no memory for %zu x %zu elements", r.rows, r.cols);
    status = parse_body(&r, need);
    if (status != FILCH_OK) {
        free(r.values);
        return status;
    }
    *matrix = (bench_matrix){r.rows, r.cols, r.values, r.entries};
    return FILCH_OK;
}

/* Reads in growing steps, since a pipe has no size to ask for. */
static filch_status read_all(FILE *file, const char *path, filch_error *error, char **text,
                             size_t *length)
{
    size_t capacity = 0;
    *text = NULL;
    *length = 0;
    do {
        if (*length == capacity) {
            size_t larger = capacity ? capacity * 2 : (size_t)1 << 16;
            char *moved = larger > capacity ? realloc(*text, larger) : NULL;
            if (!moved)
                return bench_fail(error, FILCH_OUT_OF_MEMORY, path, 0, "no memory to read it");
            *text = moved;
            capacity = larger;
        }
        errno = 0;
        *length += fread(*text + *length, 1, capacity - *length, file);
        if (ferror(file))
            return bench_fail(error, FILCH_IO, path, 0, "cannot be read: %s", strerror(errno));
    } while (!feof(file));
    return FILCH_OK;
}

filch_status bench_matrix_read(const char *path, bench_matrix_need need, size_t limit,
                               filch_error *error, bench_matrix *matrix)
{
    FILE *file = fopen(path, "rb");
    if (!file)
        return bench_fail(error, FILCH_IO, path, 0, "cannot be opened: %s", strerror(errno));
    char *text;
    size_t length;
    filch_status status = read_all(file, path, error, &text, &length);
    fclose(file);
    if (status == FILCH_OK)
        status = bench_matrix_parse(text, length, path, need, limit, error, matrix);
    free(text);
    return status;
}

void bench_matrix_free(bench_matrix *matrix)
{
    free(matrix->values);
    *matrix = (bench_matrix){0};
}
