/* SPDX-License-Identifier: Apache-2.0 */
/* Each `run` item that `bench/run --gpu --list` names, in small on the fake driver: its workload,
 * peer and options must be there, and go together. Of `micro` items the name must be there. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "gpu/bench_twins.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define LIST "bench/run --gpu --list"
#define WORDS 48

static char document[] =
    "/tmp/filch-items-XXXXXX"; /* mkstemp names it; there while the test runs */

/* Words of a command, with room for what makes it small. */
typedef struct command {
    char *words[WORDS];
    int count;
    bool is_cut;
} command;

/* Words past the room are left out, which an item with so many does not survive. */
static void add(command *c, const char *word)
{
    if (c->count + 1 < WORDS)
        c->words[c->count++] = (char *)(uintptr_t)word;
    else
        c->is_cut = true;
}

static bool has(const command *c, const char *word)
{
    for (int k = 0; k < c->count; k++)
        if (strcmp(c->words[k], word) == 0)
            return true;
    return false;
}

static void add_option(command *c, const char *option, const char *value)
{
    add(c, option);
    add(c, value);
}

/* Sizes at which a workload takes a moment; the tile where one would be searched for. */
static void make_small(command *c)
{
    static const struct {
        const char *workload, *n, *tile;
    } sizes[] = {
        {"empty", "80", NULL},      {"chain", "80", NULL},  {"wavefront", "9", NULL},
        {"create", "80", NULL},     {"open", "80", NULL},   {"busy", "20", NULL},
        {"mandelbrot", "64", NULL}, {"nbody", "128", NULL}, {"jacobi", "64", NULL},
        {"heat", "64", NULL},       {"cg", "8", NULL},      {"stream", "60", "16"},
    };
    const char *n = "96", *tile = "32";
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++)
        if (strcmp(c->words[1], sizes[k].workload) == 0) {
            n = sizes[k].n;
            tile = sizes[k].tile;
        }
    if (has(c, "--matrix"))
        add_option(c, "--matrix", "tests/data/lund_a.mtx");
    else
        add_option(c, "--n", n);
    if (tile)
        add_option(c, "--tile", tile);
    if (has(c, "--cost"))
        add_option(c, "--cost", "10");
    add_option(c, "--repeat", "1");
    add_option(c, "--json", document);
    add(c, "--no-speeds");
}

/* A measurement of `micro` has no size: only its name is looked up, in front of a plea for help. */
static int run_bench(command *c)
{
    if (strcmp(c->words[0], "run") == 0 && c->count > 1) {
        make_small(c);
        return bench_run_main(c->count, c->words);
    }
    if (strcmp(c->words[0], "micro") == 0) {
        add(c, "--help");
        return bench_micro_main(c->count, c->words);
    }
    return BENCH_EXIT_ERROR;
}

/* Contenders with a runtime of their own have the slices once more: the fake, which knows slices
 * that share nothing, says so. False where it said something else. */
static bool is_forgiven(void)
{
    bool is_right = fakecuda_violations() == 0 ||
                    strstr(fakecuda_last_violation(), "it shares multiprocessors") != NULL;
    if (!is_right)
        fprintf(stderr, "%s\n", fakecuda_last_violation());
    (void)fakecuda_forgive();
    return is_right;
}

/* A line is part, name, program, words; changes the line. */
static bool run_item(char *line)
{
    command c = {.count = 0};
    char *place = NULL;
    char *part = strtok_r(line, " \n", &place), *name = strtok_r(NULL, " \n", &place);
    char *program = strtok_r(NULL, " \n", &place);
    if (!part || !name || !program)
        return false;
    for (char *word; (word = strtok_r(NULL, " \n", &place));)
        add(&c, word);
    int code = BENCH_EXIT_ERROR;
    if (strcmp(program, "blas_time") == 0)
        return true;
    if (strcmp(program, "filch-bench") == 0 && c.count > 0)
        code = run_bench(&c);
    if (!is_forgiven() || c.is_cut)
        code = BENCH_EXIT_FAILED;
    if (code != BENCH_EXIT_OK)
        fprintf(stderr, "part %s, item %s, %s: exit code %d\n", part, name, program, code);
    return code == BENCH_EXIT_OK;
}

int main(int argc, char **argv)
{
    char line[1024];
    int count = 0, failed = 0;
    int file = mkstemp(document);
    snprintf(line, sizeof line, LIST "%s%s", argc > 1 ? " --part " : "", argc > 1 ? argv[1] : "");
    FILE *list = popen(line, "r"); /* NOLINT(cert-env33-c): a script of these sources */
    if (file < 0 || close(file) != 0 || !list || !freopen("/dev/null", "w", stdout)) {
        perror(LIST);
        return 1;
    }
    bench_twins_register(NULL);
    fakecuda_quiet(true);
    while (fgets(line, sizeof line, list)) {
        failed += !run_item(line);
        count++;
    }
    int code = pclose(list);
    (void)unlink(document);
    fprintf(stderr, "%d items, %d failed; the list ended with %d\n", count, failed, code);
    return count == 0 || failed > 0 || code != 0;
}
