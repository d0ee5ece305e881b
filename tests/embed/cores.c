/* SPDX-License-Identifier: Apache-2.0 */
/* Where the workers' threads may run: on the CPUs that a specification names, or, unbound, wherever
 * the process may. A task asks the system on each device's own thread. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>

#include "behave.h"

typedef struct expectation {
    const char *devices;
    filch_bind bind;
    cpu_set_t threads[2]; /* of the first devices */
} expectation;

static cpu_set_t process; /* CPUs that this process may use */

static int ask(const filch_call *call)
{
    cpu_set_t *set = *(cpu_set_t *const *)call->args;
    return sched_getaffinity(0, sizeof *set, set);
}

static void ask_on(filch_runtime *runtime, uint32_t device, cpu_set_t *set)
{
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    codelet.name = "ask";
    codelet.host = ask;
    codelet.arg_size = sizeof set;
    CHECK(filch_codelet_create(runtime, &codelet, &task.codelet) == FILCH_OK);
    task.args = &set;
    task.affinity = device + 1;
    CHECK(filch_graph_create(runtime, &desc, &graph) == FILCH_OK);
    CHECK(filch_graph_add(graph, &task, NULL) == FILCH_OK);
    CHECK(filch_graph_submit(graph, NULL, &job) == FILCH_OK);
    CHECK(filch_job_wait(job, -1) == FILCH_OK);
    CHECK(filch_job_release(job) == FILCH_OK);
    CHECK(filch_graph_destroy(graph) == FILCH_OK);
}

static void check(const expectation *expected)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = expected->devices;
    config.drive = FILCH_DRIVE_THREADS;
    config.policy = FILCH_POLICY_STATIC; /* a task stays on the device that it names */
    config.bind = expected->bind;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK) {
        fprintf(stderr, "%s: %s\n", expected->devices, error.text);
        exit(1);
    }
    for (uint32_t d = 0; d < filch_device_count(runtime); ++d) {
        filch_device_info info = {.size = sizeof info};
        cpu_set_t set;
        ask_on(runtime, d, &set);
        if (!CPU_EQUAL(&set, &expected->threads[d])) {
            fprintf(stderr, "%s, bind %d: device %u runs on %d CPUs in place of %d\n",
                    expected->devices, (int)expected->bind, d, CPU_COUNT(&set),
                    CPU_COUNT(&expected->threads[d]));
            exit(1);
        }
        CHECK(filch_device_at(runtime, d, &info) == FILCH_OK);
        for (size_t cpu = 0; cpu < 1024; ++cpu) {
            CHECK((info.affinity[cpu / 64] >> (cpu % 64) & 1) == (CPU_ISSET(cpu, &set) != 0));
        }
    }
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
}

static cpu_set_t only(size_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    return set;
}

/* As a host whose thread OpenMP has bound: the workers are bound for themselves all the same. */
static void *check_all(void *arg)
{
    size_t first = 0, last = 0;
    char text[64];
    (void)arg;
    for (size_t cpu = CPU_SETSIZE; cpu-- > 0;) {
        first = CPU_ISSET(cpu, &process) ? cpu : first;
    }
    for (size_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
        last = CPU_ISSET(cpu, &process) ? cpu : last;
    }
    cpu_set_t one = only(first), other = only(last), both = one;
    CPU_SET(last, &both);
    CHECK(pthread_setaffinity_np(pthread_self(), sizeof one, &one) == 0);
    check(&(expectation){"host:2@any", FILCH_BIND_DEFAULT, {process, process}});
    check(&(expectation){"host:2", FILCH_BIND_NONE, {process, process}});
    check(&(expectation){"host:1@any", FILCH_BIND_CORES, {process}});
    check(&(expectation){"host:1", FILCH_BIND_DEFAULT, {one}});
    CHECK(setenv("FILCH_BIND", "none", 1) == 0);
    check(&(expectation){"host:2", FILCH_BIND_DEFAULT, {process, process}});
    check(&(expectation){"host:1", FILCH_BIND_CORES, {one}}); /* a field beats its variable */
    CHECK(unsetenv("FILCH_BIND") == 0);
    snprintf(text, sizeof text, "host@%zu", last);
    check(&(expectation){text, FILCH_BIND_DEFAULT, {other}});
    snprintf(text, sizeof text, "host:2@%zu", last);
    check(&(expectation){text, FILCH_BIND_DEFAULT, {other, other}});
    if (first != last) {
        snprintf(text, sizeof text, "host@%zu,%zu", last, first);
        check(&(expectation){text, FILCH_BIND_DEFAULT, {other, one}});
        check(&(expectation){text, FILCH_BIND_NONE, {both, both}});
        snprintf(text, sizeof text, "host:1x2@%zu,%zu", last, first);
        check(&(expectation){text, FILCH_BIND_DEFAULT, {both}});
    }
    cpu_set_t now;
    CHECK(pthread_getaffinity_np(pthread_self(), sizeof now, &now) == 0);
    CHECK(CPU_EQUAL(&now, &one));
    return NULL;
}

int main(void)
{
    pthread_t thread;
    unsetenv("FILCH_BIND");
    CHECK(sched_getaffinity(0, sizeof process, &process) == 0);
    CHECK(pthread_create(&thread, NULL, check_all, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    printf("workers run where they were asked to\n");
    return 0;
}
