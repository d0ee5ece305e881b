/* SPDX-License-Identifier: Apache-2.0 */
/* The commands of filch-bench. Each gets the words from its own name on and returns the exit code
 * of the process. */
#ifndef BENCH_CLI_H
#define BENCH_CLI_H

#include <stdbool.h>

#include "filch/status.h"

enum bench_exit {
    BENCH_EXIT_OK = 0,
    BENCH_EXIT_FAILED = 1, /* a check failed, a median fell */
    BENCH_EXIT_ERROR = 2   /* usage, input, or the work could not be done */
};

int bench_run_main(int argc, char **argv);
int bench_sim_main(int argc, char **argv);
int bench_compare_main(int argc, char **argv);
int bench_config_main(int argc, char **argv);
int bench_cache_main(int argc, char **argv);
int bench_devices_main(int argc, char **argv);
int bench_micro_main(int argc, char **argv);
int bench_peers_main(int argc, char **argv);
int bench_table_main(int argc, char **argv);
int bench_soak_main(int argc, char **argv);

const char *bench_cli_version(void);

/* Whether the first argument of a command asks for its usage. */
bool bench_cli_is_help(int argc, char **argv);
/* Prints "filch-bench COMMAND: LABEL:LINE: TEXT" on standard error; returns BENCH_EXIT_ERROR. */
int bench_cli_fail(const char *command, const filch_error *error);

#endif
