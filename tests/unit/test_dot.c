/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs written in DOT: what the file says, and what is refused. */
#define _GNU_SOURCE
#include "fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static filch_runtime *runtime;
static filch_codelet *work, *zero, *plus;
static filch_data *matrix, *sum;
static double cells[16], total;
static char folder[32], path[64], text[8192];

static filch_data *data_of(double *ptr, uint64_t side, uint64_t tile, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    desc.ptr = ptr;
    desc.element = sizeof *ptr;
    desc.rows = desc.cols = desc.ld = side;
    desc.tile_rows = desc.tile_cols = tile;
    desc.label = label;
    assert_ok(filch_data_create(runtime, &desc, &data));
    return data;
}

static int set_up(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/filch-dot-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/graph.dot", folder);
    runtime = fixture_runtime("host:2", FILCH_DRIVE_POLL, NULL);
    work = fixture_codelet(runtime, "work", fixture_nothing, 0);
    zero = fixture_codelet(runtime, "zero", fixture_nothing, 0);
    plus = fixture_codelet(runtime, "plus", fixture_nothing, 0);
    matrix = data_of(cells, 4, 2, "A \"1\"");
    sum = data_of(&total, 1, 1, NULL);
    assert_ok(filch_data_reduction(sum, zero, plus));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left there */
    return 0;
}

static filch_graph *graph_named(const char *label, filch_graph_kind kind)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_graph *graph = NULL;
    desc.label = label;
    desc.kind = kind;
    assert_ok(filch_graph_create(runtime, &desc, &graph));
    return graph;
}

static filch_task add(filch_graph *graph, const char *label, const filch_access *accesses,
                      uint32_t count)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task task;
    desc.codelet = work;
    desc.label = label;
    desc.accesses = accesses;
    desc.access_count = count;
    assert_ok(filch_graph_add(graph, &desc, &task));
    return task;
}

static void read_file(void)
{
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    size_t length = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[length] = '\0';
}

static uint32_t count_of(const char *part)
{
    uint32_t count = 0;
    for (const char *at = text; (at = strstr(at, part)) != NULL; at += strlen(part))
        count++;
    return count;
}

static void the_file_says_tasks_accesses_and_edges(void **state)
{
    (void)state;
    const filch_access first[] = {FILCH_W(matrix, 1, 0)};
    const filch_access block[] = {FILCH_WHOLE(matrix, FILCH_READ),
                                  {.mode = FILCH_SCRATCH, .bytes = 100}};
    const filch_access last[] = {FILCH_BLOCK(matrix, 0, 0, 2, 1, FILCH_READWRITE)};
    filch_graph *graph = graph_named("a\nline <T>", FILCH_GRAPH_CLOSED);
    (void)add(graph, NULL, first, 1);
    (void)add(graph, "all of it", block, 2);
    (void)add(graph, NULL, last, 1);
    assert_ok(filch_graph_write_dot(graph, path));
    read_file();
    assert_non_null(strstr(text, "digraph \"a\\nline <T>\" {\n"));
    assert_non_null(strstr(text, "  0 [label=\"work #0\", fillcolor="));
    assert_non_null(strstr(text, ", tooltip=\"writes A \\\"1\\\"(1, 0)\"];\n"));
    assert_non_null(strstr(text, "  1 [label=\"all of it #1\", fillcolor="));
    assert_non_null(
        strstr(text, "tooltip=\"reads A \\\"1\\\"(0..1, 0..1); 128 bytes of scratch memory"));
    assert_non_null(strstr(text, "updates A \\\"1\\\"(0..1, 0)"));
    assert_int_equal(count_of(" -> "), 2);
    assert_non_null(strstr(text, "  0 -> 1;\n"));
    assert_non_null(strstr(text, "  1 -> 2;\n}\n"));
    /* A sealed graph, and one that has run, too. */
    assert_ok(filch_graph_run(graph, NULL, NULL));
    assert_ok(filch_graph_write_dot(graph, path));
    char *before = strdup(text);
    read_file();
    assert_string_equal(text, before);
    free(before);
    assert_ok(filch_graph_destroy(graph));
}

static void groups_and_gates_are_seen(void **state)
{
    (void)state;
    const filch_access adds[] = {FILCH_ACCESS(sum, 0, 0, FILCH_REDUCE)};
    const filch_access reads[] = {FILCH_R(sum, 0, 0)};
    filch_graph *graph = graph_named(NULL, FILCH_GRAPH_CLOSED);
    for (int i = 0; i < 3; i++)
        (void)add(graph, NULL, adds, 1);
    (void)add(graph, NULL, reads, 1);
    assert_ok(filch_graph_write_dot(graph, path));
    read_file();
    assert_non_null(strstr(text, "digraph \"graph "));
    assert_true(count_of("reduces to handle 0(0, 0)") >= 3); /* the combining task, too */
    assert_true(count_of("shape=ellipse") >= 1);
    /* Every task but the last has a successor. */
    assert_true(count_of(" -> ") >= 4);
    assert_ok(filch_graph_destroy(graph));
}

static void an_empty_graph_has_no_nodes(void **state)
{
    (void)state;
    filch_graph *graph = graph_named("empty", FILCH_GRAPH_CLOSED);
    assert_ok(filch_graph_write_dot(graph, path));
    read_file();
    assert_string_equal(text, "digraph \"empty\" {\n"
                              "  node [shape=box, style=filled, colorscheme=set312];\n}\n");
    assert_ok(filch_graph_destroy(graph));
}

static void mistakes_leave_the_file_alone(void **state)
{
    (void)state;
    filch_graph *closed = graph_named("closed", FILCH_GRAPH_CLOSED);
    filch_graph *open = graph_named("open", FILCH_GRAPH_OPEN);
    filch_graph *round = graph_named("round", FILCH_GRAPH_CLOSED);
    filch_task a = add(round, NULL, NULL, 0), b = add(round, NULL, NULL, 0);
    assert_ok(filch_graph_edge(round, a, b));
    assert_ok(filch_graph_edge(round, b, a));
    assert_ok(filch_graph_write_dot(closed, path));
    read_file();
    assert_status(filch_graph_write_dot(closed, NULL), FILCH_INVALID_ARGUMENT);
    assert_status(filch_graph_write_dot(NULL, path), FILCH_INVALID_HANDLE);
    assert_status(filch_graph_write_dot(open, path), FILCH_WRONG_STATE);
    assert_string_equal(fixture_error(runtime).label, "open");
    assert_status(filch_graph_write_dot(round, path), FILCH_CYCLE);
    assert_status(filch_graph_write_dot(closed, folder), FILCH_IO);
    assert_string_equal(fixture_error(runtime).call, "filch_graph_write_dot");
    assert_non_null(strstr(fixture_error(runtime).text, folder));
    assert_status(filch_graph_write_dot(closed, "/nowhere/graph.dot"), FILCH_IO);
    assert_int_not_equal(fixture_error(runtime).native_code, 0);
    char *before = strdup(text);
    read_file();
    assert_string_equal(text, before);
    free(before);
    assert_ok(filch_graph_destroy(closed));
    assert_ok(filch_graph_destroy(open));
    assert_ok(filch_graph_destroy(round));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_file_says_tasks_accesses_and_edges),
        cmocka_unit_test(groups_and_gates_are_seen),
        cmocka_unit_test(an_empty_graph_has_no_nodes),
        cmocka_unit_test(mistakes_leave_the_file_alone),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
