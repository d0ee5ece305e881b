/* SPDX-License-Identifier: Apache-2.0 */
/* Fails the first, the second and the last call of each driver entry point that a scenario makes,
 * with a result that there is a way to handle: never a crash, a hang, a leak or a wrong answer. The
 * first call fails with each of the results in builds with assertions, any other with one, in each
 * scenario with the next. With FL_TEST_LONG=1 up to 66 calls fail, each with each of the results.
 *
 * test_fault_sweep [SCENARIO [CALL [NTH [RESULT]]]] runs a part of it. Children do the work, so
 * that what crashes or hangs is told from what comes after. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "backend/cuda/driver/api.h"
#include "fakecuda.h"
#include "sweep.h"

/* Seconds without a case ended: a hang. Cases of one child: the fake driver keeps what ended. Calls
 * of one kind, of a long sweep: evenly taken. */
enum { WATCHDOG = 30, SHOWN = 40, CASES = 64, MOST = 64 };

#define GPUS "{\"devices\":[{\"count\":2}],\"threads\":2,\"links\":[{\"from\":0,\"to\":1,"
#define JOINED GPUS "\"peer\":true}]}"
#define APART GPUS "\"peer\":false}]}"
#define ISLANDS                                                                    \
    "{\"devices\":[{\"count\":3}],\"threads\":2,\"links\":[{\"from\":0,\"to\":1}," \
    "{\"from\":1,\"to\":2},{\"from\":0,\"to\":2,\"peer\":false}]}"

typedef struct code {
    int result;
    bool is_sticky;
} code;

static const code codes[] = {
    {FL_CUDA_ERROR_INVALID_VALUE, false},  {FL_CUDA_ERROR_OUT_OF_MEMORY, false},
    {FL_CUDA_ERROR_NOT_SUPPORTED, false},  {FL_CUDA_ERROR_UNKNOWN, false},
    {FL_CUDA_ERROR_ILLEGAL_ADDRESS, true},
};
enum { CODES = sizeof codes / sizeof codes[0] };

#define NAME(member, ...) #member,
static const char *const calls[] = {FL_CUDA_CALLS(NAME) "kernel", "copy"};
enum { CALLS = sizeof calls / sizeof calls[0] };

/* One failure of one call. */
typedef struct fault {
    uint32_t scenario, call;
    uint64_t nth;
    uint32_t code;
} fault;

/* What parent and children know together. */
typedef struct board {
    uint64_t counts[CALLS];          /* of the scenario, undisturbed */
    uint32_t next;                   /* of the scenario's faults: the one running, or to run */
    bool is_wrong, is_done, is_full; /* the child has run enough */
    uint64_t cases, reported, bad;
    sweep_report report; /* of the last one */
} board;

static board *shared;
static fault *faults;
static uint32_t fault_count;

/* Calls that end something or say what is current: where these fail there is no way to give back
 * what they were called for. */
static bool may_leave(const char *call)
{
    static const char *const names[] = {
        "cuDevicePrimaryCtxRelease",
        "cuCtxDestroy",
        "cuCtxPushCurrent",
        "cuCtxPopCurrent",
        "cuCtxGetCurrent",
        "cuMemFree",
        "cuMemFreeHost",
        "cuMemHostUnregister",
        "cuMemUnmap",
        "cuMemRelease",
        "cuMemAddressFree",
        "cuMemFreeAsync",
        "cuMemPoolDestroy",
        "cuStreamDestroy",
        "cuEventDestroy",
        "cuModuleUnload",
        "cuGraphDestroy",
        "cuGraphExecDestroy",
        "cuGreenCtxDestroy",
        "cuCtxSetCurrent",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(call, names[i]) == 0)
            return true;
    }
    return false;
}

static size_t live(void)
{
    static const char *const kinds[] = {"context", "stream",      "event",  "module",   "graph",
                                        "exec",    "green",       "memory", "pinned",   "handle",
                                        "mapping", "reservation", "pool",   "multicast"};
    size_t count = 0;

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        count += fakecuda_live(kinds[i]);
    return count;
}

static void begin(const sweep_scenario *scenario)
{
    fakecuda_reset();
    if (!fakecuda_configure(scenario->has_relay ? ISLANDS : scenario->is_apart ? APART : JOINED)) {
        fprintf(stderr, "sweep: something was left by the case before\n");
        exit(2);
    }
}

static void run_case(const fault *f)
{
    sweep_report *report = &shared->report;

    memset(report, 0, sizeof *report);
    report->call = calls[f->call];
    report->result = codes[f->code].result;
    report->is_sticky = codes[f->code].is_sticky;
    begin(&sweep_scenarios[f->scenario]);
    fakecuda_fail(report->call, f->nth, 1, report->result, -1, report->is_sticky);
    sweep_run(&sweep_scenarios[f->scenario], report);
    if (report->is_wrong)
        return;
    bool is_clean = fakecuda_violations() == 0 && live() == 0;
    if (!is_clean && !may_leave(report->call))
        sweep_wrong(report, "%zu objects are left; %s", live(), fakecuda_last_violation());
}

/* --- Children --- */

static void child_counts(uint32_t scenario)
{
    sweep_report *report = &shared->report;

    memset(report, 0, sizeof *report);
    begin(&sweep_scenarios[scenario]);
    sweep_run(&sweep_scenarios[scenario], report);
    for (uint32_t c = 0; c < CALLS; c++)
        shared->counts[c] = fakecuda_count(calls[c]);
    if (fakecuda_violations() != 0 || live() != 0)
        sweep_wrong(report, "%zu objects are left; %s", live(), fakecuda_last_violation());
    shared->is_wrong = report->is_wrong;
    shared->is_done = true;
}

static void child_faults(void)
{
    for (uint32_t i = 0; shared->next < fault_count; i++) {
        if (i == CASES) {
            shared->is_full = true;
            return;
        }
        alarm(WATCHDOG);
        run_case(&faults[shared->next]);
        shared->cases++;
        shared->reported += shared->report.failures != 0;
        shared->is_wrong = shared->report.is_wrong;
        if (shared->is_wrong || fakecuda_violations() != 0 || live() != 0)
            return; /* the next one begins afresh */
        shared->next++;
    }
    shared->is_done = true;
}

/* Runs body in a child; 0, or what became of it. */
static int in_child(void (*body)(uint32_t), uint32_t argument)
{
    int status = 0;
    fflush(NULL);
    pid_t child = fork();

    if (child == 0) {
        alarm(WATCHDOG);
        sweep_register();
        fakecuda_quiet(true);
        if (body != NULL)
            body(argument);
        else
            child_faults();
        _exit(0); /* without the fake's own last look, which has been taken */
    }
    if (child < 0 || waitpid(child, &status, 0) != child) {
        perror("sweep");
        exit(2);
    }
    return status;
}

/* --- The sweep --- */

static void complain(const fault *f, const char *what)
{
    if (++shared->bad <= SHOWN)
        printf("%s: call %llu of %s giving %d%s: %s\n", sweep_scenarios[f->scenario].name,
               (unsigned long long)f->nth, calls[f->call], codes[f->code].result,
               codes[f->code].is_sticky ? " from then on" : "", what);
}

static void add_fault(fault f, const char *const *wanted, int count)
{
    if ((count > 2 && strcmp(wanted[2], calls[f.call]) != 0) ||
        (count > 3 && strtoull(wanted[3], NULL, 10) != f.nth) ||
        (count > 4 && atoi(wanted[4]) != codes[f.code].result))
        return;
    fault *grown = realloc(faults, (fault_count + 1) * sizeof *faults);
    if (grown == NULL)
        exit(2);
    faults = grown;
    faults[fault_count++] = f;
}

static void list_faults(uint32_t scenario, bool is_long, const char *const *wanted, int count)
{
#ifdef NDEBUG
    const uint64_t thorough = 0;
#else
    const uint64_t thorough = 1;
#endif
    fault_count = 0;
    for (uint32_t c = 0; c < CALLS; c++) {
        uint64_t most = shared->counts[c];
        uint64_t every = most / MOST + 1;
        for (uint64_t nth = 1; nth <= most; nth++) {
            bool is_taken = count > 3 || nth <= 2 || nth == most || (is_long && nth % every == 0);
            if (!is_taken)
                continue;
            bool takes_all = count > 2 || is_long || nth <= thorough;
            for (uint32_t k = 0; k < CODES; k++) {
                if (takes_all || k == (scenario + c + nth) % CODES)
                    add_fault((fault){scenario, c, nth, k}, wanted, count);
            }
        }
    }
}

static void sweep(uint32_t scenario, bool is_long, const char *const *wanted, int count)
{
    shared->is_done = shared->is_wrong = false;
    int status = in_child(child_counts, scenario);
    if (!shared->is_done || shared->is_wrong) {
        printf("%s, with nothing failing: %s (status %d)\n", sweep_scenarios[scenario].name,
               shared->report.text, status);
        shared->bad++;
        return;
    }
    list_faults(scenario, is_long, wanted, count);
    shared->next = 0;
    while (shared->next < fault_count) {
        shared->is_done = shared->is_wrong = shared->is_full = false;
        status = in_child(NULL, 0);
        if (shared->is_done)
            break;
        if (shared->is_full)
            continue;
        const fault *f = &faults[shared->next];
        if (shared->is_wrong)
            complain(f, shared->report.text);
        else if (WIFSIGNALED(status))
            complain(f, WTERMSIG(status) == SIGALRM ? "a hang" : strsignal(WTERMSIG(status)));
        else if (WEXITSTATUS(status) != 0)
            complain(f, "the process ended by itself");
        shared->next++;
    }
}

static double seconds(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    const char *env = getenv("FL_TEST_LONG");
    const char *const *wanted = (const char *const *)argv;
    bool is_long = env != NULL && strcmp(env, "1") == 0;

    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) {
        perror("sweep");
        return 2;
    }
    for (uint32_t s = 0; s < sweep_scenario_count; s++) {
        if (argc > 1 && strcmp(wanted[1], sweep_scenarios[s].name) != 0)
            continue;
        uint64_t cases = shared->cases, reported = shared->reported, bad = shared->bad;
        double start = seconds();
        sweep(s, is_long, wanted, argc);
        printf("%s: %llu cases, %llu with a failure reported, %llu wrong, %.1f s\n",
               sweep_scenarios[s].name, (unsigned long long)(shared->cases - cases),
               (unsigned long long)(shared->reported - reported),
               (unsigned long long)(shared->bad - bad), seconds() - start);
        fflush(stdout);
    }
    free(faults);
    if (shared->cases == 0)
        printf("nothing was swept\n");
    return shared->bad != 0 || shared->cases == 0;
}
