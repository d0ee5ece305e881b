/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include "support/table.h"

#include "filch/config.h"
#include "sched/worker/tuning.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *bench_cli_version(void)
{
    return BENCH_VERSION;
}

bool bench_cli_is_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int bench_cli_fail(const char *command, const filch_error *error)
{
    fprintf(stderr, "filch-bench %s: ", command);
    if (error->label[0])
        fprintf(stderr, "%s:", error->label);
    if (error->label[0] && error->line > 0)
        fprintf(stderr, "%lld:", (long long)error->line);
    fprintf(stderr, "%s%s\n", error->label[0] ? " " : "",
            error->text[0] ? error->text : filch_status_message(error->status));
    return BENCH_EXIT_ERROR;
}

/* The scheduler's constants. */
static int tuning(void)
{
    bench_table table = {0};
    bench_table_column(&table, true, "constant");
    bench_table_column(&table, false, "value");
    bench_table_column(&table, true, "unit");
    bench_table_column(&table, true, "source");
    bench_table_column(&table, true, "meaning");
#define ROW(type, name, value, unit, source, sentence)  \
    bench_table_cell(&table, "%s", #name);              \
    bench_table_cell(&table, "%.12g", (double)(value)); \
    bench_table_cell(&table, "%s", unit);               \
    bench_table_cell(&table, "%s", source);             \
    bench_table_cell(&table, "%s", sentence);
    FL_TUNING(ROW)
#undef ROW
    bool printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return printed ? BENCH_EXIT_OK : BENCH_EXIT_ERROR;
}

int bench_config_main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--tuning") == 0)
        return tuning();
    if (bench_cli_is_help(argc, argv)) {
        puts("usage: filch-bench config [--tuning]\n"
             "  --tuning  the scheduler's constants in place of the settings");
        return BENCH_EXIT_OK;
    }
    if (argc != 1) {
        fprintf(stderr, "filch-bench config: '%s' is one word too many\n", argv[1]);
        return BENCH_EXIT_ERROR;
    }
    bench_table table = {0};
    bench_table_column(&table, true, "setting");
    bench_table_column(&table, true, "value");
    bench_table_column(&table, true, "default");
    bench_table_column(&table, true, "type");
    bench_table_column(&table, true, "meaning");
    filch_setting setting = {.size = sizeof setting};
    for (size_t k = 0; filch_setting_at(k, &setting) == FILCH_OK; k++) {
        /* Shown as the environment has it: whether it is well-formed, the runtime says when it
         * reads it. */
        const char *value = getenv(setting.name);
        bench_table_cell(&table, "%s", setting.name);
        bench_table_cell(&table, "%s", value ? value : "(not set)");
        bench_table_cell(&table, "%s", setting.default_value[0] ? setting.default_value : "-");
        bench_table_cell(&table, "%s", setting.type);
        bench_table_cell(&table, "%s", setting.help);
    }
    bool printed = bench_table_print(&table, stdout);
    bench_table_free(&table);
    return printed ? BENCH_EXIT_OK : BENCH_EXIT_ERROR;
}
