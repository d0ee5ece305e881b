/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define WORDS_MAX 40

/* getopt_long reorders its argument vector, so each parse gets words of its own. */
typedef struct words {
    char text[1024];
    char *argv[WORDS_MAX];
    int argc;
} words;

static void split(words *w, const char *line)
{
    assert_true(strlen(line) < sizeof w->text);
    strcpy(w->text, line);
    w->argc = 0;
    for (char *word = strtok(w->text, " "); word; word = strtok(NULL, " "))
        w->argv[w->argc++] = word;
    w->argv[w->argc] = NULL;
}

static void parse_good(words *w, const char *line, bench_options *options)
{
    filch_error error = FILCH_ERROR_INIT;
    split(w, line);
    if (bench_options_parse(w->argc, w->argv, options, &error) != FILCH_OK)
        fail_msg("%s: %s %s", line, error.label, error.text);
}

static void expect_failure(const char *line, const char *label, const char *fragment)
{
    words w;
    filch_error error = FILCH_ERROR_INIT;
    bench_options options = {.n = 17};
    split(&w, line);
    assert_int_equal(bench_options_parse(w.argc, w.argv, &options, &error), FILCH_PARSE);
    if (strcmp(error.label, label) != 0 || !strstr(error.text, fragment))
        fail_msg("%s: got %s: %s", line, error.label, error.text);
    assert_int_equal(options.n, 17);
}

static void test_defaults(void **state)
{
    (void)state;
    words w;
    bench_options o;
    parse_good(&w, "run gemm", &o);
    assert_string_equal(o.workload, "gemm");
    assert_int_equal(o.repeat, BENCH_REPEAT_DEFAULT);
    assert_int_equal(o.policy, FILCH_POLICY_DEFAULT);
    assert_int_equal(o.precision, BENCH_DOUBLE);
    assert_int_equal(o.score, FILCH_SCORE_PEAK_DOUBLE);
    assert_null(o.devices);
    assert_null(o.scores);
    assert_int_equal(o.n, 0);
    assert_false(o.check);
    assert_false(o.no_speeds);
    bench_options_free(&o);
}

static void test_all(void **state)
{
    (void)state;
    words w;
    bench_options o;
    parse_good(&w,
               "run --devices host:2,cuda:0/88+24 --scores 1,2.5,4e2 --policy static --n 4096 "
               "--tile=256 cholesky --versus openblas --precision single --repeat 9 --seed "
               "18446744073709551615 --check --json - --trace t.json --report r.html --image i.png",
               &o);
    assert_string_equal(o.devices, "host:2,cuda:0/88+24");
    assert_int_equal(o.score_count, 3);
    assert_float_equal(o.scores[1], 2.5, 0);
    assert_float_equal(o.scores[2], 400, 0);
    assert_int_equal(o.policy, BENCH_POLICY_STATIC);
    assert_int_equal(o.n, 4096);
    assert_int_equal(o.tile, 256);
    assert_string_equal(o.workload, "cholesky");
    assert_int_equal(o.versus_count, 1);
    assert_string_equal(o.versus[0], "openblas");
    assert_true(bench_options_have_versus(&o, "openblas"));
    assert_false(bench_options_have_versus(&o, "tbb"));
    assert_int_equal(o.precision, BENCH_SINGLE);
    assert_int_equal(o.repeat, 9);
    assert_true(o.seed == UINT64_MAX);
    assert_true(o.check);
    assert_string_equal(o.json, "-");
    assert_string_equal(o.trace, "t.json");
    assert_string_equal(o.report, "r.html");
    assert_string_equal(o.image, "i.png");
    bench_options_free(&o);
    /* A later option replaces the earlier one; --matrix gives the size. */
    parse_good(&w, "run cholesky --matrix a.mtx --scores 1,2 --scores 3 --policy steal", &o);
    assert_string_equal(o.matrix, "a.mtx");
    assert_int_equal(o.score_count, 1);
    assert_int_equal(o.policy, BENCH_POLICY_STEAL);
    bench_options_free(&o);
    static const char *const policies[] = {"static",      "perfect",  "central", "guided",
                                           "round-robin", "earliest", NULL};
    for (int p = 0; policies[p]; p++) {
        char line[64];
        snprintf(line, sizeof line, "run gemm --policy %s", policies[p]);
        parse_good(&w, line, &o);
        assert_int_equal(o.policy, BENCH_POLICY_STATIC + p);
        assert_non_null(strstr(bench_options_usage(), policies[p]));
    }
    parse_good(&w, "run narrow --pattern nearest --width 4 --task-us 0.5 --steps 9 --open", &o);
    assert_int_equal(o.pattern, BENCH_PATTERN_NEAREST);
    assert_int_equal(o.width, 4);
    assert_float_equal(o.task_us, 0.5, 0);
    assert_int_equal(o.steps, 9);
    assert_true(o.open);
    parse_good(&w, "run heat --strips 6 --steps-a-graph 5", &o);
    assert_int_equal(o.strips, 6);
    assert_int_equal(o.steps_a_graph, 5);
    parse_good(&w, "run gemm --no-speeds", &o);
    assert_true(o.no_speeds);
    parse_good(&w, "run gemm --versus a --versus one,static,tbb", &o);
    assert_int_equal(o.versus_count, 3);
    assert_string_equal(o.versus[0], "one");
    assert_string_equal(o.versus[2], "tbb");
    parse_good(&w, "run gemm --pinned --memory-limit 8G", &o);
    assert_true(o.pinned && !o.pageable);
    assert_true(o.memory_limit == UINT64_C(8) << 30);
    parse_good(&w, "run gemm --pageable --memory-limit half", &o);
    assert_true(o.pageable && !o.pinned);
    assert_true(o.memory_limit == FILCH_MEMORY_HALF);
    parse_good(&w, "run --help", &o);
    assert_true(o.help);
}

static void test_scores_by_a_word(void **state)
{
    (void)state;
    words w;
    bench_options o;
    static const struct {
        const char *line;
        filch_score score;
    } cases[] = {
        {"run gemm --scores peak", FILCH_SCORE_PEAK_DOUBLE},
        {"run gemm --scores peak --precision single", FILCH_SCORE_PEAK},
        {"run gemm --precision single", FILCH_SCORE_PEAK},
        {"run gemm --scores bandwidth", FILCH_SCORE_BANDWIDTH},
        {"run gemm --scores memory", FILCH_SCORE_MEMORY},
        {"run gemm --scores blend", FILCH_SCORE_BLEND},
        {"run gemm --scores 1,2 --scores capacity", FILCH_SCORE_CAPACITY},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        parse_good(&w, cases[k].line, &o);
        assert_int_equal(o.score, cases[k].score);
        assert_null(o.scores);
        bench_options_free(&o);
    }
    /* What the environment says is left to the library. */
    assert_int_equal(setenv("FILCH_SCORE", "memory", 1), 0);
    parse_good(&w, "run gemm", &o);
    assert_int_equal(o.score, FILCH_SCORE_DEFAULT);
    bench_options_free(&o);
    assert_int_equal(unsetenv("FILCH_SCORE"), 0);
    expect_failure("run gemm --scores peaks", "--scores", "nor peak");
}

static void test_every_option_is_documented(void **state)
{
    (void)state;
    const char *usage = bench_options_usage();
    const char *names[] = {
        "devices",   "scores",  "policy", "n",       "tile",  "matrix", "versus", "precision",
        "repeat",    "seed",    "check",  "json",    "trace", "report", "image",  "tile-cols",
        "no-speeds", "pattern", "width",  "task-us", "steps", "open",   "strips", "steps-a-graph"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        char word[32] = "  --";
        strcat(strcat(word, names[k]), " ");
        assert_non_null(strstr(usage, word));
    }
}

static void test_failures(void **state)
{
    (void)state;
    expect_failure("run", "run", "workload is missing");
    expect_failure("run gemm extra", "extra", "one word too many");
    expect_failure("run gemm --n", "--n", "missing");
    expect_failure("run gemm --n 12x", "--n", "'12x' is not a whole number");
    expect_failure("run gemm --n -4", "--n", "'-4' is not a whole number");
    expect_failure("run gemm --n 0", "--n", "'0' is outside 1..");
    expect_failure("run gemm --n 99999999999999999999", "--n", "is outside 1..");
    expect_failure("run gemm --tile 0", "--tile", "outside");
    expect_failure("run gemm --tile-cols 0", "--tile-cols", "outside");
    expect_failure("run gemm --repeat 100001", "--repeat", "outside 1..100000");
    expect_failure("run gemm --scores 1,,2", "--scores", "score 2 of '1,,2'");
    expect_failure("run gemm --scores 1,2,", "--scores", "score 3");
    expect_failure("run gemm --scores 0", "--scores", "score 1 of '0'");
    expect_failure("run gemm --scores nan", "--scores", "score 1");
    expect_failure("run gemm --scores 1;2", "--scores", "score 1");
    expect_failure("run gemm --policy fast", "--policy", "'fast' is not steal, static, perfect, ");
    expect_failure("run gemm --policy custom", "--policy", "'custom' is not");
    expect_failure("run gemm --precision half", "--precision", "'half'");
    expect_failure("run gemm --json=", "--json", "empty");
    expect_failure("run gemm --bogus", "--bogus", "is not an option");
    expect_failure("run gemm --check=1", "--check=1", "takes no value");
    expect_failure("run gemm -x", "-x", "is not an option");
    expect_failure("run gemm --matrix a.mtx --n 5", "--n", "--matrix");
    expect_failure("run narrow --pattern line", "--pattern",
                   "'line' is not stencil, fft, nearest or");
    expect_failure("run narrow --width 0", "--width", "outside 1..");
    expect_failure("run solve --factor double", "--factor", "'double' is not tf32, bf16, fp16");
    expect_failure("run heat --strips 0", "--strips", "outside 1..");
    expect_failure("run heat --steps-a-graph -1", "--steps-a-graph", "whole number");
    expect_failure("run narrow --steps x", "--steps", "whole number");
    expect_failure("run narrow --task-us 0", "--task-us", "'0' is outside 0.01..1e+06");
    expect_failure("run narrow --task-us 1us", "--task-us", "'1us' is not a number");
    expect_failure("run narrow --task-us nan", "--task-us", "not a number");
    expect_failure("run narrow --task-us 1e9", "--task-us", "outside");
    expect_failure("run gemm --versus=", "--versus", "empty");
    expect_failure("run gemm --versus one,,tbb", "--versus", "'one,,tbb' is empty");
    expect_failure("run gemm --versus one,tbb,", "--versus", "empty");
    expect_failure("run gemm --versus one,tbb,one", "--versus", "'one' is named twice");
    expect_failure("run gemm --versus a,b,c,d,e,f,g,h,i", "--versus", "more than 8");
    expect_failure("run gemm --versus abcdefghijklmnopqrstuvwxyzabcdef", "--versus", "too long");
    expect_failure("run gemm --pinned --pageable", "--pageable", "--pinned");
    expect_failure("run gemm --memory-limit 0", "--memory-limit", "'0': allowed is one of");
    expect_failure("run gemm --memory-limit lots", "--memory-limit", "bytes from 1 to");
    expect_failure("run gemm --memory-limit 99999999T", "--memory-limit", "'99999999T'");
    expect_failure("run gemm --memory-limit=", "--memory-limit", "empty");
}

/* Each option that only some workloads heed is found, and not where it is heeded. */
static void test_options_beyond(void **state)
{
    (void)state;
    static const struct {
        const char *line, *option;
        unsigned bit;
    } cases[] = {
        {"run x --pattern fft", "--pattern", BENCH_TAKES_PATTERN},
        {"run x --width 3", "--width", BENCH_TAKES_WIDTH},
        {"run x --task-us 3", "--task-us", BENCH_TAKES_TASK_US},
        {"run x --steps 3", "--steps", BENCH_TAKES_STEPS},
        {"run x --open", "--open", BENCH_TAKES_OPEN},
        {"run x --strips 3", "--strips", BENCH_TAKES_STRIPS},
        {"run x --steps-a-graph 3", "--steps-a-graph", BENCH_TAKES_STEPS_A_GRAPH},
        {"run x --factor bf16", "--factor", BENCH_TAKES_FACTOR},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        words w;
        bench_options o;
        parse_good(&w, cases[k].line, &o);
        assert_string_equal(bench_options_beyond(&o, ~cases[k].bit), cases[k].option);
        assert_null(bench_options_beyond(&o, cases[k].bit));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),         cmocka_unit_test(test_all),
        cmocka_unit_test(test_scores_by_a_word), cmocka_unit_test(test_every_option_is_documented),
        cmocka_unit_test(test_failures),         cmocka_unit_test(test_options_beyond),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
