/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench cache`: the compiled kernels that are kept on disk. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "support/fail.h"
#include "support/table.h"

#include "base/config.h"
#include "module/disk.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct opened {
    char path[PATH_MAX];
    fl_memory memory;
    fl_disk disk;
    uint64_t limit;
    fl_disk_item *items;
    size_t count, capacity;
} opened;

static void print_size(const opened *o)
{
    uint64_t sum = 0;
    char used[32], limit[32];
    for (size_t k = 0; k < o->count; k++)
        sum += o->items[k].bytes;
    bench_format_si((double)sum, used, sizeof used);
    bench_format_si((double)o->limit, limit, sizeof limit);
    printf("%s: %zu compiled kernels, %sB of at most %sB\n", o->path, o->count, used, limit);
}

static void print_time(bench_table *table, int64_t ns)
{
    time_t seconds = (time_t)(ns / 1000000000);
    struct tm parts;
    char text[32];
    if (gmtime_r(&seconds, &parts) == NULL ||
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
        text[0] = '\0';
    bench_table_cell(table, "%s", text);
}

static int list(opened *o)
{
    bench_table table = {0};
    bench_table_column(&table, true, "kernel");
    bench_table_column(&table, true, "target");
    bench_table_column(&table, false, "bytes");
    bench_table_column(&table, true, "last used (UTC)");
    bench_table_column(&table, true, "key");
    for (size_t k = o->count; k-- > 0;) {
        fl_disk_info info = {0};
        char key[FL_DIGEST_TEXT];
        bool sound = fl_disk_check(&o->disk, &o->items[k].key, &info) == FILCH_OK;
        fl_digest_format(&o->items[k].key, key);
        bench_table_cell(&table, "%s", !sound ? "(damaged)" : info.label[0] ? info.label : "-");
        if (sound)
            bench_table_cell(&table, "%s_%u", info.is_ptx ? "compute" : "sm", info.arch);
        else
            bench_table_cell(&table, "-");
        bench_table_cell(&table, "%llu", (unsigned long long)o->items[k].bytes);
        print_time(&table, o->items[k].used_ns);
        bench_table_cell(&table, "%.12s", key);
    }
    bool printed = o->count == 0 || bench_table_print(&table, stdout);
    bench_table_free(&table);
    print_size(o);
    return printed ? BENCH_EXIT_OK : BENCH_EXIT_ERROR;
}

static int size(opened *o)
{
    print_size(o);
    return BENCH_EXIT_OK;
}

static int clear(opened *o)
{
    filch_error error = FILCH_ERROR_INIT;
    uint64_t files = 0, bytes = 0;
    char text[32];
    if (fl_disk_clear(&o->disk, &files, &bytes, &error) != FILCH_OK)
        return bench_cli_fail("cache", &error);
    bench_format_si((double)bytes, text, sizeof text);
    printf("%s: %llu files, %sB removed\n", o->path, (unsigned long long)files, text);
    return BENCH_EXIT_OK;
}

static int check(opened *o)
{
    size_t bad = 0;
    for (size_t k = 0; k < o->count; k++) {
        fl_disk_info info;
        char key[FL_DIGEST_TEXT];
        filch_status status = fl_disk_check(&o->disk, &o->items[k].key, &info);
        if (status == FILCH_OK || status == FILCH_NOT_FOUND) /* removed meanwhile */
            continue;
        fl_digest_format(&o->items[k].key, key);
        printf("%s: %s\n", key,
               status == FILCH_DATA ? "damaged, or not this user's" : filch_status_message(status));
        bad++;
    }
    printf("%s: %zu compiled kernels, %zu of them unfit (they are compiled anew when needed)\n",
           o->path, o->count, bad);
    return bad == 0 ? BENCH_EXIT_OK : BENCH_EXIT_FAILED;
}

static const struct {
    const char *name;
    const char *help;
    int (*run)(opened *o);
} actions[] = {
    {"list", "the kernels, those used last first (the default)", list},
    {"size", "their number and bytes", size},
    {"check", "reads all of them; exit 1 where one is unfit", check},
    {"clear", "removes them", clear},
};

#define ACTIONS (sizeof actions / sizeof *actions)

static int print_usage(FILE *stream, int code)
{
    fputs("usage: filch-bench cache [ACTION] (in FILCH_CACHE_DIR)\n", stream);
    for (size_t k = 0; k < ACTIONS; k++)
        fprintf(stream, "  %-6s %s\n", actions[k].name, actions[k].help);
    return code;
}

/* FILCH_NOT_FOUND, with path empty or not, where nothing is kept. */
static filch_status open_cache(opened *o, filch_error *error)
{
    fl_settings settings;
    filch_status status = fl_settings_read(&settings, NULL, error);
    if (status != FILCH_OK)
        return status;
    status = fl_settings_cache_path(&settings, o->path, sizeof o->path);
    if (status == FILCH_OVERFLOW)
        return bench_fail(error, status, "FILCH_CACHE_DIR", 0, "the path is too long");
    if (status != FILCH_OK)
        return status;
    o->memory = fl_memory_default();
    o->limit = (uint64_t)settings.cache_limit;
    status = fl_disk_open(&o->disk, &o->memory, NULL, o->path, o->limit, FL_DISK_EXISTING, error);
    if (status != FILCH_OK)
        return status;
    status = fl_disk_list(&o->disk, &o->items, &o->count, &o->capacity);
    if (status != FILCH_OK) {
        fl_disk_close(&o->disk);
        return bench_fail(error, status == FILCH_NOT_FOUND ? FILCH_IO : status, o->path, 0,
                          "cannot be read");
    }
    return FILCH_OK;
}

int bench_cache_main(int argc, char **argv)
{
    size_t k = 0;
    if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0))
        return print_usage(stdout, BENCH_EXIT_OK);
    while (argc > 1 && k < ACTIONS && strcmp(actions[k].name, argv[1]) != 0)
        k++;
    if (k == ACTIONS || argc > 2) {
        fprintf(stderr, "filch-bench cache: '%s' is not an action\n", argv[k == ACTIONS ? 1 : 2]);
        return print_usage(stderr, BENCH_EXIT_ERROR);
    }
    opened o = {.path = ""};
    filch_error error = FILCH_ERROR_INIT;
    filch_status status = open_cache(&o, &error);
    if (status == FILCH_NOT_FOUND) {
        if (o.path[0])
            printf("%s: no compiled kernels: there is no such folder\n", o.path);
        else
            printf("no compiled kernels are kept: FILCH_CACHE_DIR is off, or there is no HOME\n");
        return BENCH_EXIT_OK;
    }
    if (status != FILCH_OK)
        return bench_cli_fail("cache", &error);
    int code = actions[k].run(&o);
    fl_free(&o.memory, o.items, o.capacity * sizeof *o.items);
    fl_disk_close(&o.disk);
    return code;
}
