/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

typedef struct command {
    const char *name;
    const char *usage;
    const char *help;
    int (*run)(int argc, char **argv);
} command;

static const command commands[] = {
    {"devices", "[--devices SPEC] [--json]", "what filch runs on here, what is missing and why",
     bench_devices_main},
    {"run", "WORKLOAD [options]", "one workload, measured, checked, compared", bench_run_main},
    {"sim", "WORKLOAD|--from TRACE ...", "the same scheduler on a virtual clock", bench_sim_main},
    {"micro", "[NAME...] [--json FILE]", "single mechanisms, measured alone", bench_micro_main},
    {"peers", "[options]", "what other runtimes on this machine cost a task", bench_peers_main},
    {"compare", "OLD.json NEW.json", "exit 1 where a median fell by more than the noise of both",
     bench_compare_main},
    {"table", "ROW.COLUMN.json...", "one figure of many results, in rows and columns",
     bench_table_main},
    {"soak", "[--minutes M]", "many runtimes, random jobs and faults, every result checked",
     bench_soak_main},
    {"cache", "[list|size|check|clear]", "the compiled kernels that are kept on disk",
     bench_cache_main},
    {"config", "[--tuning]",
     "settings read from the environment; --tuning: the scheduler's constants", bench_config_main},
};

#define COMMAND_COUNT (sizeof commands / sizeof *commands)

static void print_usage(FILE *stream)
{
    fputs("usage:\n", stream);
    for (size_t k = 0; k < COMMAND_COUNT; k++)
        fprintf(stream, "  filch-bench %-8s %-28s %s\n", commands[k].name, commands[k].usage,
                commands[k].help);
    fputs("  filch-bench --version\n", stream);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return BENCH_EXIT_ERROR;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        print_usage(stdout);
        return BENCH_EXIT_OK;
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("filch-bench %s\n", bench_cli_version());
        return BENCH_EXIT_OK;
    }
    for (size_t k = 0; k < COMMAND_COUNT; k++)
        if (strcmp(argv[1], commands[k].name) == 0)
            return commands[k].run(argc - 1, argv + 1);
    fprintf(stderr, "filch-bench: there is no command '%s'\n", argv[1]);
    print_usage(stderr);
    return BENCH_EXIT_ERROR;
}
