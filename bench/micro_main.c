/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro`: single mechanisms of the library, measured alone. */
#include "cli.h"
#include "micro.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    const char *help;
    int (*run)(FILE *out, micro_list *list);
} micros[] = {
    {"deque", "push, pop and theft of the work-stealing deque", micro_deque},
    {"span", "take and cut of a batch's share", micro_span},
    {"dispatch", "a task: to build, to hold, to run", micro_dispatch},
};

#define MICROS (sizeof micros / sizeof *micros)

static int print_usage(FILE *stream, int code)
{
    fputs("usage: filch-bench micro [NAME...]   (default: all)\n", stream);
    for (size_t k = 0; k < MICROS; k++)
        fprintf(stream, "  %-10s %s\n", micros[k].name, micros[k].help);
    return code;
}

int bench_micro_main(int argc, char **argv)
{
    bool wanted[MICROS] = {false};
    for (int a = 1; a < argc; a++) {
        size_t k = 0;
        if (strcmp(argv[a], "--help") == 0)
            return print_usage(stdout, BENCH_EXIT_OK);
        while (k < MICROS && strcmp(micros[k].name, argv[a]) != 0)
            k++;
        if (k == MICROS) {
            fprintf(stderr, "filch-bench micro: there is no '%s'\n", argv[a]);
            return print_usage(stderr, BENCH_EXIT_ERROR);
        }
        wanted[k] = true;
    }
    for (size_t k = 0; k < MICROS; k++) {
        micro_list list = {0};
        if (argc > 1 && !wanted[k])
            continue;
        if (micros[k].run(stdout, &list) != 0) {
            fprintf(stderr, "filch-bench micro: %s could not be measured\n", micros[k].name);
            return BENCH_EXIT_ERROR;
        }
    }
    return BENCH_EXIT_OK;
}
