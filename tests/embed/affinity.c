/* SPDX-License-Identifier: Apache-2.0 */
/* No call of filch's sets the affinity of a thread that filch did not make, not even to put it back
 * afterwards. The kernel traps sched_setaffinity here (seccomp), so that each call is seen, whoever
 * makes it; the call is then made as it was meant. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include "behave.h"

#define MOST_CALLS 4096
/* A fourth argument, of which the kernel takes no notice, lets the handler's own call pass. */
#define PASS 0x66696c63u

/* Where the kernel's interface has the number and the result of a call, and its arguments. */
#if defined(__x86_64__)
#define RESULT(c) ((c)->uc_mcontext.gregs[REG_RAX])
#define FIRST(c) ((c)->uc_mcontext.gregs[REG_RDI])
#define SECOND(c) ((c)->uc_mcontext.gregs[REG_RSI])
#define THIRD(c) ((c)->uc_mcontext.gregs[REG_RDX])
#elif defined(__aarch64__)
#define RESULT(c) ((c)->uc_mcontext.regs[0])
#define FIRST(c) ((c)->uc_mcontext.regs[0])
#define SECOND(c) ((c)->uc_mcontext.regs[1])
#define THIRD(c) ((c)->uc_mcontext.regs[2])
#endif

#ifdef RESULT

/* Threads whose affinity was set, in the order of the calls. */
static _Atomic pid_t targets[MOST_CALLS];
static _Atomic unsigned calls;

static void on_trap(int number, siginfo_t *info, void *context)
{
    ucontext_t *at = context;
    int before = errno;
    pid_t target = (pid_t)FIRST(at);
    long result;
    (void)number;
    (void)info;
    unsigned place = atomic_fetch_add(&calls, 1);
    if (place < MOST_CALLS) {
        atomic_store(&targets[place], target != 0 ? target : gettid());
    }
    result = syscall(SYS_sched_setaffinity, target, SECOND(at), THIRD(at), (unsigned long)PASS);
    RESULT(at) = (__typeof__(RESULT(at)))(result < 0 ? -errno : result);
    errno = before;
}

/* Threads that are made later inherit the filter. */
static bool install(void)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, PASS, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof filter[0], filter};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
    return sigaction(SIGSYS, &action, NULL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int nothing(const filch_call *call)
{
    (void)call;
    return 0;
}

static void ask_devices(filch_runtime *runtime)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < filch_device_count(runtime); ++i) {
        filch_device_info info = {.size = sizeof info};
        CHECK(filch_device_at(runtime, i, &info) == FILCH_OK);
        CHECK(filch_device_by_ordinal(runtime, info.backend, info.ordinal, &index) == FILCH_OK);
    }
    CHECK(filch_device_next(runtime, &index) == FILCH_OK);
    CHECK(filch_device_best_memory(runtime, &index) == FILCH_OK);
    CHECK(filch_device_best_score(runtime, &index) == FILCH_OK);
    CHECK(filch_device_measure_links(runtime) == FILCH_OK);
}

/* A graph that is submitted while it grows, and a batch. */
static void work(filch_runtime *runtime)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    desc.kind = FILCH_GRAPH_OPEN;
    task.codelet = behave_codelet(runtime, nothing);
    CHECK(filch_graph_create(runtime, &desc, &graph) == FILCH_OK);
    CHECK(filch_graph_submit(graph, NULL, &job) == FILCH_OK);
    for (int i = 0; i < 100; ++i) {
        CHECK(filch_graph_add(graph, &task, NULL) == FILCH_OK);
    }
    CHECK(filch_graph_close(graph) == FILCH_OK);
    CHECK(filch_job_wait(job, -1) == FILCH_OK);
    CHECK(filch_job_release(job) == FILCH_OK);
    CHECK(filch_graph_destroy(graph) == FILCH_OK);
    behave_run(runtime, task.codelet, 1000);
}

static pid_t hosts[2]; /* the host's threads */

/* Everything that a host does with a runtime, on the calling thread. */
static void *use(void *own)
{
    *(pid_t *)own = gettid();
    filch_runtime *runtime = behave_create(NULL, FILCH_DRIVE_THREADS);
    ask_devices(runtime);
    work(runtime);
    CHECK(filch_device_withdraw(runtime, 0) == FILCH_OK);
    CHECK(filch_device_readmit(runtime, 0) == FILCH_OK);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
    runtime = behave_create("host:2,host:1x2", FILCH_DRIVE_THREADS);
    work(runtime);
    CHECK(filch_runtime_abort(runtime) == FILCH_OK);
    runtime = behave_create("host:3", FILCH_DRIVE_POLL);
    work(runtime);
    CHECK(filch_runtime_destroy(runtime) == FILCH_OK);
    return NULL;
}

int main(void)
{
    pthread_t second;
    if (!install()) {
        printf("seccomp filters are not allowed here (%s): skipped\n", strerror(errno));
        return 77;
    }
    use(&hosts[0]);
    CHECK(pthread_create(&second, NULL, use, &hosts[1]) == 0);
    CHECK(pthread_join(second, NULL) == 0);
    unsigned count = atomic_load(&calls), wrong = 0;
    for (unsigned i = 0; i < count && i < MOST_CALLS; ++i) {
        pid_t target = atomic_load(&targets[i]);
        wrong += target == hosts[0] || target == hosts[1];
    }
    printf("%u affinities set, %u of them of the host's threads\n", count, wrong);
    CHECK(count <= MOST_CALLS && count - wrong >= 8); /* each worker sets its own */
    CHECK(wrong == 0);
    return 0;
}

#else

int main(void)
{
    printf("not known where this processor's calls have their arguments: skipped\n");
    return 77;
}

#endif
