/* SPDX-License-Identifier: Apache-2.0 */
/* What filch leaves alone in its host: CPU affinity, signals and their handlers, output streams,
 * locale; and what its workers are: named, deaf to signals, gone with their runtime. Two runtimes
 * side by side. */
#define _GNU_SOURCE
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "behave.h"

enum { MOST_SIGNAL = 64 };

static uint64_t total; /* of items, by one device at a time */

static int add_items(const filch_call *call)
{
    (void)call;
    __atomic_fetch_add(&total, call->hi - call->lo, __ATOMIC_RELAXED);
    return 0;
}

static volatile sig_atomic_t wrong_thread;
static volatile sig_atomic_t caught;
static pid_t main_thread;

static void on_signal(int number)
{
    (void)number;
    ++caught;
    wrong_thread = wrong_thread || gettid() != main_thread;
}

typedef struct host_state {
    cpu_set_t affinity;
    sigset_t mask;
    struct sigaction actions[MOST_SIGNAL];
} host_state;

static void read_state(host_state *state)
{
    memset(state, 0, sizeof *state);
    CHECK(sched_getaffinity(0, sizeof state->affinity, &state->affinity) == 0);
    CHECK(sigprocmask(SIG_BLOCK, NULL, &state->mask) == 0);
    for (int i = 1; i < MOST_SIGNAL; ++i) {
        sigaction(i, NULL, &state->actions[i]);
    }
}

static void check_state(const host_state *before)
{
    host_state now;
    read_state(&now);
    CHECK(CPU_EQUAL(&now.affinity, &before->affinity));
    for (int i = 1; i < MOST_SIGNAL; ++i) {
        CHECK(sigismember(&now.mask, i) == sigismember(&before->mask, i));
        CHECK(now.actions[i].sa_handler == before->actions[i].sa_handler);
    }
}

/* One line of a file in /proc that begins with key; "" where there is none. */
static void proc_line(const char *path, const char *key, char *value, size_t size)
{
    char line[256];
    FILE *file = fopen(path, "r");
    value[0] = '\0';
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, key, strlen(key)) == 0) {
            snprintf(value, size, "%.*s", (int)size - 1, line + strlen(key));
        }
    }
    if (file != NULL) {
        fclose(file);
    }
}

/* Threads besides the calling one; all must be named after a host device and block every signal
 * that can be. */
static int count_workers(void)
{
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    CHECK(folder != NULL);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        char path[300], name[256], mask[256];
        if (entry->d_name[0] == '.' || atoi(entry->d_name) == main_thread) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/self/task/%s/comm", entry->d_name);
        proc_line(path, "", name, sizeof name);
        CHECK(strncmp(name, "host:", 5) == 0);
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        proc_line(path, "SigBlk:", mask, sizeof mask);
        unsigned long long blocked = strtoull(mask, NULL, 16);
        for (int i = 1; i < 32; ++i) {
            /* Faults of the thread's own must still be seen. */
            bool is_fault = i == SIGSEGV || i == SIGBUS || i == SIGFPE || i == SIGILL ||
                            i == SIGTRAP || i == SIGSYS;
            CHECK(i == SIGKILL || i == SIGSTOP || is_fault || (blocked >> (i - 1) & 1) != 0);
        }
        ++count;
    }
    closedir(folder);
    return count;
}

/* A process-wide signal reaches the host's thread, whatever filch runs. */
static void check_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    for (int i = 0; i < 100; ++i) {
        CHECK(kill(getpid(), SIGUSR1) == 0);
    }
    CHECK(caught > 0 && !wrong_thread);
}

static void use(const host_state *before)
{
    filch_runtime *first = behave_create("host:2", FILCH_DRIVE_THREADS);
    filch_runtime *second = behave_create("host:1", FILCH_DRIVE_THREADS);
    check_state(before);
    filch_codelet *codelets[] = {behave_codelet(first, add_items),
                                 behave_codelet(second, add_items)};
    total = 0;
    for (int i = 0; i < 10; ++i) {
        behave_run(first, codelets[0], 1000);
        behave_run(second, codelets[1], 10000);
    }
    CHECK(total == 110000);
    CHECK(count_workers() == 3);
    check_signals();
    signal(SIGUSR1, SIG_DFL);

    /* What belongs to one is refused by the other, and one may end before the other. */
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    batch.codelet = codelets[0];
    batch.n = 1;
    CHECK(filch_batch_submit(second, &batch, NULL, &job) == FILCH_WRONG_RUNTIME);
    CHECK(filch_runtime_destroy(first) == FILCH_OK);
    CHECK(count_workers() == 1);
    behave_run(second, codelets[1], 1000);
    CHECK(filch_runtime_destroy(second) == FILCH_OK);
    CHECK(count_workers() == 0);

    filch_runtime *polled = behave_create("host:4", FILCH_DRIVE_POLL);
    behave_run(polled, behave_codelet(polled, add_items), 1000);
    CHECK(count_workers() == 0); /* no thread at all */
    check_state(before);
    CHECK(filch_runtime_destroy(polled) == FILCH_OK);
    check_state(before);
}

/* Failures too are silent: nothing is written anywhere. */
static void fail_quietly(void)
{
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_runtime *runtime = NULL;
    config.devices = "nonsense";
    CHECK(filch_runtime_create(&config, &error, &runtime) == FILCH_PARSE);
    config.devices = "sim:/nowhere/at/all.json";
    CHECK(filch_runtime_create(&config, &error, &runtime) == FILCH_IO);
    runtime = behave_create("host:1", FILCH_DRIVE_THREADS);
    CHECK(filch_batch_submit(runtime, NULL, NULL, NULL) == FILCH_INVALID_ARGUMENT);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
}

int main(void)
{
    host_state before;
    char path[] = "/tmp/filch-embed-XXXXXX";
    int file = mkstemp(path), out = dup(1), err = dup(2);
    struct stat written;
    unsetenv("FILCH_LOG");
    main_thread = gettid();
    CHECK(file >= 0 && out >= 0 && err >= 0);
    cpu_set_t one;
    CHECK(sched_getaffinity(0, sizeof one, &one) == 0);
    for (size_t cpu = 0, found = 0; cpu < CPU_SETSIZE; ++cpu) {
        if (CPU_ISSET(cpu, &one) && found++ != 0) {
            CPU_CLR(cpu, &one);
        }
    }
    read_state(&before);
    fflush(stdout);
    CHECK(dup2(file, 1) == 1 && dup2(file, 2) == 2);
    use(&before);
    fail_quietly();
    fflush(stdout);
    CHECK(fstat(file, &written) == 0);
    CHECK(dup2(out, 1) == 1 && dup2(err, 2) == 2);
    unlink(path);
    CHECK(written.st_size == 0);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    read_state(&before);
    use(&before); /* on one CPU, which must stay the host's choice */
    printf("the host is as it was\n");
    return 0;
}
