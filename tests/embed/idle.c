/* SPDX-License-Identifier: Apache-2.0 */
/* An idle runtime uses no CPU: after jobs ran, the process spends under 50 ms of CPU time in 5 s.
 * While a job runs that waits for its host, workers look around now and then, for under 5 % of a
 * core. CPU time, not elapsed time, so a busy machine changes nothing. */
#define _GNU_SOURCE
#include <errno.h>
#include <time.h>

#include "behave.h"

#define SECONDS 5

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static double cpu_seconds(void)
{
    struct timespec t;
    CHECK(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t) == 0);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check_idle(const char *what, double most)
{
    struct timespec left = {0, 300000000}; /* what still settles may do so */
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    double start = cpu_seconds();
    left = (struct timespec){SECONDS, 0};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
    double used = cpu_seconds() - start;
    printf("%s: %.6f s of CPU in %d s\n", what, used, SECONDS);
    CHECK(used < most);
}

int main(void)
{
    filch_runtime *runtime = behave_create("host:2", FILCH_DRIVE_THREADS);
    filch_codelet *codelet = behave_codelet(runtime, nothing);
    for (int i = 0; i < 20; ++i) {
        behave_run(runtime, codelet, 100000);
    }
    check_idle("no job", 0.050);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    task.codelet = codelet;
    CHECK(filch_graph_create(runtime, &desc, &graph) == FILCH_OK);
    CHECK(filch_graph_submit(graph, NULL, &job) == FILCH_OK);
    for (int i = 0; i < 1000; ++i) {
        CHECK(filch_graph_add(graph, &task, NULL) == FILCH_OK);
    }
    check_idle("an open graph", 0.05 * SECONDS);
    CHECK(filch_graph_close(graph) == FILCH_OK);
    CHECK(filch_job_wait(job, 300) == FILCH_OK);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
    return 0;
}
