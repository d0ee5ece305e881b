/* SPDX-License-Identifier: Apache-2.0 */
/* What the live view says of a GPU and its memory, on the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "make.h"

#define IMAGE "FAKECUBIN arch=90 entry=twice"
#define N 100000

static uint64_t x[N], y[N];
static char text[1 << 16];

/* twice(from, to) */
static int twice(const filch_call *call)
{
    const uint64_t *from = call->views[0].ptr;
    uint64_t *to = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[1].rows; i++)
        to[i] = 2 * from[i];
    return 0;
}

static void run(const char *devices)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    config.devices = devices;
    config.policy = FILCH_POLICY_STATIC;
    filch_runtime *runtime = runtime_of(&config);
    filch_codelet *doubles = codelet_of(runtime, IMAGE, "twice", NULL, 0);
    const filch_access accesses[] = {{.data = vector_of(runtime, x, N, 0, 0), .mode = FILCH_READ},
                                     {.data = vector_of(runtime, y, N, 0, 0), .mode = FILCH_WRITE}};
    filch_graph *graph = graph_of(runtime);
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = doubles;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = 1;
    assert_ok(filch_graph_add(graph, &desc, NULL));
    assert_ok(filch_graph_submit(graph, NULL, &job));
    assert_ok(filch_job_wait(job, SOON));
    assert_ok(filch_job_release(job));
    assert_ok(filch_runtime_destroy(runtime));
}

/* Runs with the view on a pipe; the period is longer than the program, so the last frame is the
 * only one. */
static void run_viewed(const char *devices)
{
    int ends[2];
    int kept = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 10);
    assert_true(kept >= 0);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    assert_int_equal(dup2(ends[1], STDERR_FILENO), STDERR_FILENO);
    close(ends[1]);
    setenv("FILCH_LIVE", "600", 1);
    run(devices);
    unsetenv("FILCH_LIVE");
    assert_int_equal(dup2(kept, STDERR_FILENO), STDERR_FILENO);
    close(kept);
    size_t length = 0;
    ssize_t n;
    while ((n = read(ends[0], text + length, sizeof text - 1 - length)) > 0)
        length += (size_t)n;
    text[length] = '\0';
    close(ends[0]);
}

/* The line of a device, behind its bar. */
static const char *line_of(const char *name)
{
    const char *line = strstr(text, name);
    assert_non_null(line);
    line = strchr(line, ']');
    assert_non_null(line);
    return line + 1;
}

static void test_memory(void **state)
{
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 2}]}"));
    fakecuda_register_filch("twice", twice, 2, false, 0);
    run_viewed("cuda:0,cuda:1,host:1");
    char tasks[32], memory[32], budget[32], in[32], out[32];
    assert_int_equal(y[N - 1], 2 * x[N - 1]);
    assert_int_equal(sscanf(line_of("\ncuda:0 ["), "%*s %31s %*s %*s %31[^/]/%31s %31s %31s", tasks,
                            memory, budget, in, out),
                     5);
    assert_string_not_equal(tasks, "0");
    assert_string_not_equal(memory, "0");
    assert_string_not_equal(budget, "0");
    assert_string_not_equal(in, "0");
    assert_string_not_equal(out, "0");
    /* The second GPU has memory, but moved nothing. */
    assert_int_equal(sscanf(line_of("\ncuda:1 ["), "%*s %31s %*s %*s %31[^/]/%31s %31s %31s", tasks,
                            memory, budget, in, out),
                     5);
    assert_string_equal(tasks, "0");
    assert_string_not_equal(budget, "0");
    assert_string_equal(in, "0");
    assert_string_equal(out, "0");
    const char *host = line_of("\nhost:0 [");
    assert_null(memchr(host, '/', strcspn(host, "\n")));
    assert_non_null(strstr(text, "memory  in B/s out B/s\n"));
    assert_non_null(strstr(text, "jobs: 0 running, 1 done  tasks: 1 ended"));
    assert_int_equal(fakecuda_violations(), 0);
}

/* Slices of a GPU share its memory, which stands in the first one's line. */
static void test_slices(void **state)
{
    (void)state;
    fakecuda_reset();
    assert_true(fakecuda_configure("{\"devices\": [{\"count\": 1}]}"));
    fakecuda_register_filch("twice", twice, 2, false, 0);
    run_viewed("cuda:0/88+24");
    const char *first = strstr(text, "\ncuda:0");
    assert_non_null(first);
    const char *second = strstr(first + 1, "\ncuda:0");
    assert_non_null(second);
    first = strchr(first, ']');
    second = strchr(second, ']');
    assert_non_null(memchr(first, '/', strcspn(first, "\n")));
    assert_null(memchr(second, '/', strcspn(second, "\n")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),
        cmocka_unit_test(test_slices),
    };
    for (uint64_t i = 0; i < N; i++)
        x[i] = i + 1;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
