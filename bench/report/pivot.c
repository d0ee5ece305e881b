/* SPDX-License-Identifier: Apache-2.0 */
/* One figure of many result documents as a table: ROW.COLUMN.json goes into that row and column. */
#define _POSIX_C_SOURCE 200809L
#include "cli/cli.h"
#include "support/fail.h"
#include "support/table.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MOST (BENCH_TABLE_COLUMNS - 1)

typedef struct pivot {
    const char *figure;
    bool is_tsv;
    char **rows, **columns;
    size_t row_count, column_count;
    const json_t **at; /* by row, COLUMNS_MOST each: numbers of documents */
    json_t **documents;
    size_t document_count;
} pivot;

/* The name's index in a list, to which it is added; SIZE_MAX where memory or room is out. */
static size_t index_of(char **list, size_t *count, size_t most, const char *name, size_t length)
{
    for (size_t k = 0; k < *count; k++)
        if (strlen(list[k]) == length && memcmp(list[k], name, length) == 0)
            return k;
    if (*count == most || !(list[*count] = strndup(name, length)))
        return SIZE_MAX;
    return (*count)++;
}

static filch_status add(pivot *p, const char *path, size_t most, filch_error *error)
{
    json_error_t json_error;
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t length = strlen(name);
    if (length < 6 || strcmp(name + length - 5, ".json") != 0)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, path, 0, "is not ROW.COLUMN.json");
    length -= 5;
    size_t dot = length;
    while (dot > 0 && name[dot - 1] != '.')
        dot--;
    if (dot < 2 || dot == length)
        return bench_fail(error, FILCH_INVALID_ARGUMENT, path, 0, "is not ROW.COLUMN.json");
    json_t *document = json_load_file(path, JSON_REJECT_DUPLICATES, &json_error);
    if (!document)
        return bench_fail(error,
                          json_error_code(&json_error) == json_error_cannot_open_file ? FILCH_IO
                                                                                      : FILCH_PARSE,
                          path, json_error.line, "%s", json_error.text);
    p->documents[p->document_count++] = document;
    const json_t *value = json_object_get(document, p->figure);
    if (!value)
        return bench_fail(error, FILCH_DATA, path, 0, "has no '%s'", p->figure);
    size_t row = index_of(p->rows, &p->row_count, most, name, dot - 1);
    size_t column = index_of(p->columns, &p->column_count, COLUMNS_MOST, name + dot, length - dot);
    if (row == SIZE_MAX || column == SIZE_MAX)
        return bench_fail(error, FILCH_TOO_LARGE, path, 0, "more than %d columns, or no memory",
                          COLUMNS_MOST);
    if (p->at[row * COLUMNS_MOST + column])
        return bench_fail(error, FILCH_DATA, path, 0, "comes twice");
    p->at[row * COLUMNS_MOST + column] = value;
    return FILCH_OK;
}

/* A figure that was not measured, or a document that there is not, is a dash. */
static void put(const pivot *p, size_t row, size_t column, char *text, size_t size)
{
    const json_t *value = p->at[row * COLUMNS_MOST + column];
    if (json_is_number(value))
        snprintf(text, size, p->is_tsv ? "%.6g" : "%.4g", json_number_value(value));
    else
        snprintf(text, size, "%s", p->is_tsv ? "nan" : "-");
}

static bool print_tsv(const pivot *p)
{
    char text[32];
    printf("case");
    for (size_t c = 0; c < p->column_count; c++)
        printf("\t%s", p->columns[c]);
    for (size_t r = 0; r < p->row_count; r++) {
        printf("\n%s", p->rows[r]);
        for (size_t c = 0; c < p->column_count; c++) {
            put(p, r, c, text, sizeof text);
            printf("\t%s", text);
        }
    }
    putchar('\n');
    return fflush(stdout) == 0 && !ferror(stdout);
}

static bool print_table(const pivot *p)
{
    char text[32];
    bench_table table = {0};
    bench_table_column(&table, true, p->figure);
    for (size_t c = 0; c < p->column_count; c++)
        bench_table_column(&table, false, p->columns[c]);
    for (size_t r = 0; r < p->row_count; r++) {
        bench_table_cell(&table, "%s", p->rows[r]);
        for (size_t c = 0; c < p->column_count; c++) {
            put(p, r, c, text, sizeof text);
            bench_table_cell(&table, "%s", text);
        }
    }
    bool is_printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return is_printed;
}

static void pivot_free(pivot *p)
{
    for (size_t k = 0; k < p->row_count; k++)
        free(p->rows[k]);
    for (size_t k = 0; k < p->column_count; k++)
        free(p->columns[k]);
    for (size_t k = 0; k < p->document_count; k++)
        json_decref(p->documents[k]);
    free(p->rows);
    free(p->columns);
    free(p->documents);
    free((void *)p->at);
}

static int tabulate(pivot *p, char **paths, size_t count)
{
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = FILCH_OK;
    p->rows = calloc(count, sizeof *p->rows);
    p->columns = calloc(COLUMNS_MOST, sizeof *p->columns);
    p->documents = calloc(count, sizeof(json_t *));
    p->at = calloc(count * COLUMNS_MOST, sizeof(const json_t *));
    if (!p->rows || !p->columns || !p->documents || !p->at)
        status = bench_fail(&error, FILCH_OUT_OF_MEMORY, "table", 0, "no memory");
    for (size_t k = 0; k < count && status == FILCH_OK; k++)
        status = add(p, paths[k], count, &error);
    if (status == FILCH_OK && !(p->is_tsv ? print_tsv(p) : print_table(p)))
        status = bench_fail(&error, FILCH_IO, "table", 0, "cannot be printed");
    pivot_free(p);
    return status == FILCH_OK ? BENCH_EXIT_OK : bench_cli_fail("table", &error);
}

int bench_table_main(int argc, char **argv)
{
    pivot p = {.figure = "efficiency"};
    bool is_help = bench_cli_is_help(argc, argv);
    int k = 1;
    for (; !is_help && k < argc && strncmp(argv[k], "--", 2) == 0; k++) {
        if (strcmp(argv[k], "--tsv") == 0)
            p.is_tsv = true;
        else if (strncmp(argv[k], "--figure=", 9) == 0 && argv[k][9])
            p.figure = argv[k] + 9;
        else
            break;
    }
    if (is_help || k >= argc || strncmp(argv[k], "--", 2) == 0) {
        fputs("usage: filch-bench table [--tsv] [--figure=KEY] ROW.COLUMN.json...\n"
              "  KEY  of the documents' numbers: efficiency (default), median_s, rate, ...\n",
              is_help ? stdout : stderr);
        return is_help ? BENCH_EXIT_OK : BENCH_EXIT_ERROR;
    }
    return tabulate(&p, argv + k, (size_t)(argc - k));
}
