/* SPDX-License-Identifier: Apache-2.0 */
/* `filch-bench micro`: single mechanisms of the library, measured alone. */
#include "cli/cli.h"
#include "micro/micro.h"
#include "support/file_out.h"

#include <stdbool.h>
#include <string.h>

static const struct {
    const char *name;
    const char *help;
    int (*run)(FILE *out, micro_list *list);
} micros[] = {
    {"deque", "push, pop and theft of the work-stealing deque", micro_deque},
    {"range", "take and cut of a batch's share", micro_range},
    {"dispatch", "a task: to build, to hold, to run", micro_dispatch},
    {"launch", "empty kernels by the driver alone: launches, graphs, parameters", micro_launch},
    {"idle", "a device's work beside an idle one that may not have it", micro_idle},
    {"arena", "blocks of a GPU's memory, beside the driver's allocations", micro_arena},
    {"copy", "tiles between the host and GPUs, beside the driver's copies", micro_copy},
    {"broadcast", "from one GPU to all, beside the driver's copies", micro_broadcast},
    {"panels", "tiles of a factorization's panel by cuBLAS, in two ways each", micro_panels},
    {"blocks", "steps of LU and QR by block columns, by cuBLAS and cuSOLVER", micro_blocks},
    {"lu", "LU of a tall panel, by cuSOLVER and by filch's kernel", micro_lu},
    {"qr", "QR of a tall panel, by cuSOLVER and by filch's kernel", micro_qr},
};

#define MICROS (sizeof micros / sizeof *micros)

static int print_usage(FILE *stream, int code)
{
    fputs("usage: filch-bench micro [NAME...] [--json FILE]   (default: all)\n", stream);
    for (size_t k = 0; k < MICROS; k++)
        fprintf(stream, "  %-10s %s\n", micros[k].name, micros[k].help);
    return code;
}

/* What to run, and where the document goes; a status of the program, or -1 to go on. */
static int parse(int argc, char **argv, bool *wanted, bool *all, const char **json)
{
    *all = true;
    for (int a = 1; a < argc; a++) {
        size_t k = 0;
        if (strcmp(argv[a], "--help") == 0)
            return print_usage(stdout, BENCH_EXIT_OK);
        if (strncmp(argv[a], "--json=", 7) == 0 && argv[a][7] != '\0') {
            *json = argv[a] + 7;
            continue;
        }
        if (strcmp(argv[a], "--json") == 0 && a + 1 < argc) {
            *json = argv[++a];
            continue;
        }
        while (k < MICROS && strcmp(micros[k].name, argv[a]) != 0)
            k++;
        if (k == MICROS) {
            fprintf(stderr, "filch-bench micro: there is no '%s'\n", argv[a]);
            return print_usage(stderr, BENCH_EXIT_ERROR);
        }
        wanted[k] = true;
        *all = false;
    }
    return -1;
}

int bench_micro_main(int argc, char **argv)
{
    bool wanted[MICROS] = {false}, all;
    micro_result results[MICROS];
    size_t count = 0;
    const char *json = NULL;
    int code = parse(argc, argv, wanted, &all, &json);
    if (code >= 0)
        return code;
    filch_error refused = FILCH_ERROR_INIT;
    if (bench_file_check("--json", json, true, &refused) != FILCH_OK)
        return bench_cli_fail("micro", &refused);
    FILE *out = json && strcmp(json, "-") == 0 ? stderr : stdout;
    for (size_t k = 0; k < MICROS; k++) {
        micro_result *result = &results[count];
        if (!all && !wanted[k])
            continue;
        *result = (micro_result){.name = micros[k].name};
        int failed = micros[k].run(out, &result->list);
        if (failed && !(all && failed == MICRO_ABSENT)) {
            fprintf(stderr, "filch-bench micro: %s could not be measured\n", micros[k].name);
            return BENCH_EXIT_ERROR;
        }
        count += failed == 0;
    }
    filch_error error = FILCH_ERROR_INIT;
    if (json && micro_json_write(json, results, count, &error) != FILCH_OK)
        return bench_cli_fail("micro", &error);
    return BENCH_EXIT_OK;
}
