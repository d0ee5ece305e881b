/* SPDX-License-Identifier: Apache-2.0 */
/* Claims on a file of the test's own: other tests that run meanwhile claim the system's. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/cpu_claim.h"
#include "device/pool.h"

static char folder[64], path[96];

static int set_up(void **state)
{
    int file;

    (void)state;
    (void)snprintf(folder, sizeof folder, "/tmp/filch-claim-XXXXXX");
    if (mkdtemp(folder) == NULL)
        return -1;
    (void)snprintf(path, sizeof path, "%s/cpus", folder);
    file = open(path, O_CREAT | O_EXCL | O_WRONLY, 0444);
    return file < 0 ? -1 : close(file);
}

static int tear_down(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(folder);
}

static bool has_rival(const fl_cpu_claim *claim, unsigned cpu, pid_t *process)
{
    *process = -1;
    return fl_cpu_claim_has_rival(claim, cpu, process);
}

/* Another process that claims a CPU and then waits. It ends with its parent's end of `wait`. */
typedef struct claimer {
    pid_t process;
    int ready, wait;
} claimer;

static char byte_read(int file)
{
    char byte = 0;

    while (read(file, &byte, 1) < 0 && errno == EINTR) {
    }
    return byte;
}

/* has_child: the process forks once more, after its claim, and the child outlives it. */
static claimer claimer_start(unsigned cpu, bool has_child)
{
    int ready[2], wait[2];
    claimer made;

    assert_int_equal(pipe(ready), 0);
    assert_int_equal(pipe(wait), 0);
    made.process = fork();
    assert_true(made.process >= 0);
    if (made.process == 0) {
        fl_cpu_claim claim;

        (void)close(wait[1]);
        fl_cpu_claim_open(&claim, path);
        fl_cpu_claim_take(&claim, cpu);
        if (!has_child || fork() == 0)
            (void)!write(ready[1], "r", 1);
        (void)byte_read(wait[0]);
        _exit(0);
    }
    (void)close(ready[1]);
    (void)close(wait[0]);
    made.ready = ready[0];
    made.wait = wait[1];
    assert_int_equal(byte_read(made.ready), 'r');
    return made;
}

static void claimer_kill(const claimer *made)
{
    assert_int_equal(kill(made->process, SIGKILL), 0);
    assert_int_equal(waitpid(made->process, NULL, 0), made->process);
}

static void claimer_end(const claimer *made)
{
    (void)close(made->wait);
    (void)close(made->ready);
}

static void claims_of_one_process_are_told_apart(void **state)
{
    fl_cpu_claim one, two;
    pid_t process;

    (void)state;
    fl_cpu_claim_open(&one, path);
    fl_cpu_claim_open(&two, path);
    assert_true(one.file > STDERR_FILENO);
    fl_cpu_claim_take(&one, 0);
    fl_cpu_claim_take(&one, 1023);
    assert_false(fl_cpu_claim_has_twin(&one, 0));
    assert_true(fl_cpu_claim_has_twin(&two, 0));
    assert_false(has_rival(&two, 0, &process));
    assert_true(fl_cpu_claim_has_twin(&two, 1023));
    assert_false(fl_cpu_claim_has_twin(&two, 1));
    assert_false(fl_cpu_claim_has_twin(&two, 1022));
    fl_cpu_claim_take(&two, 0); /* as many as like */
    assert_true(fl_cpu_claim_has_twin(&one, 0));
    assert_false(fl_cpu_claim_has_twin(&one, 1023));
    fl_cpu_claim_close(&one);
    assert_int_equal(one.file, -1);
    assert_false(fl_cpu_claim_has_twin(&two, 1023));
    assert_false(fl_cpu_claim_has_twin(&two, 0));
    fl_cpu_claim_close(&two);
}

static void other_processes_are_named_until_they_die(void **state)
{
    claimer made = claimer_start(5, false);
    fl_cpu_claim claim;
    pid_t process;

    (void)state;
    fl_cpu_claim_open(&claim, path);
    fl_cpu_claim_take(&claim, 5);
    assert_true(has_rival(&claim, 5, &process));
    assert_int_equal(process, made.process);
    assert_false(has_rival(&claim, 4, &process));
    claimer_kill(&made);
    assert_false(has_rival(&claim, 5, &process));
    claimer_end(&made);
    fl_cpu_claim_close(&claim);
}

/* A child that was forked, and knows nothing of filch, keeps the open file. */
static void what_a_forked_child_keeps_does_not_count(void **state)
{
    claimer dead = claimer_start(5, true), alive;
    fl_cpu_claim claim, other;
    pid_t process, child;
    int ends[2];

    (void)state;
    fl_cpu_claim_open(&claim, path);
    assert_true(has_rival(&claim, 5, &process));
    claimer_kill(&dead);
    assert_false(has_rival(&claim, 5, &process));
    alive = claimer_start(5, false); /* behind the dead one or before */
    assert_true(has_rival(&claim, 5, &process));
    assert_int_equal(process, alive.process);
    claimer_kill(&alive);
    claimer_end(&alive);
    claimer_end(&dead);

    fl_cpu_claim_open(&other, path);
    fl_cpu_claim_take(&other, 7);
    assert_int_equal(pipe(ends), 0);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)close(ends[1]);
        (void)byte_read(ends[0]);
        _exit(0);
    }
    assert_true(fl_cpu_claim_has_twin(&claim, 7));
    fl_cpu_claim_close(&other);
    assert_false(fl_cpu_claim_has_twin(&claim, 7));
    (void)close(ends[0]);
    (void)close(ends[1]);
    assert_int_equal(waitpid(child, NULL, 0), child);
    fl_cpu_claim_close(&claim);
}

/* Locks of the file that are not filch's, as a hostile user sets them: nobody waits, and nobody is
 * kept from claiming for longer. */
static void foreign_locks_do_no_harm(void **state)
{
    struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    fl_cpu_claim claim, other;
    pid_t process;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0); /* all of it */
    fl_cpu_claim_open(&claim, path);
    fl_cpu_claim_take(&claim, 3);
    assert_false(has_rival(&claim, 3, &process));
    lock.l_type = F_UNLCK;
    assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    /* Claims of processes that cannot be. */
    lock.l_type = F_RDLCK;
    lock.l_len = 1;
    for (int64_t i = 0; i < 1000; i++) {
        lock.l_start = (int64_t)3 << 46 | (claim.owner >> 22) << 22 | ((1 << 22) - 1 - 2 * i);
        assert_int_equal(fcntl(file, F_OFD_SETLK, &lock), 0);
    }
    assert_false(has_rival(&claim, 3, &process));
    (void)close(file);
    fl_cpu_claim_open(&other, path);
    assert_true(fl_cpu_claim_has_twin(&other, 3));
    /* Of another name space nobody can say who it is. */
    claim.owner ^= (int64_t)1 << 22;
    fl_cpu_claim_take(&claim, 4);
    assert_true(has_rival(&other, 4, &process));
    assert_int_equal(process, 0);
    fl_cpu_claim_close(&other);
    fl_cpu_claim_close(&claim);
}

static void what_cannot_be_opened_claims_nothing(void **state)
{
    char name[128];
    fl_cpu_claim claim;
    pid_t process;

    (void)state;
    (void)snprintf(name, sizeof name, "%s/other", folder);
    for (int kind = 0; kind < 4; kind++) {
        if (kind == 1)
            assert_int_equal(symlink(path, name), 0);
        if (kind == 2)
            assert_int_equal(mkfifo(name, 0666), 0);
        fl_cpu_claim_open(&claim, kind == 3 ? folder : name);
        assert_int_equal(claim.file, -1);
        fl_cpu_claim_take(&claim, 0);
        assert_false(has_rival(&claim, 0, &process));
        fl_cpu_claim_close(&claim);
        (void)unlink(name);
    }
}

/* The host closed all files, and has opened its own since. */
static void a_file_of_the_hosts_is_left_alone(void **state)
{
    int ends[2];
    fl_cpu_claim claim;

    (void)state;
    fl_cpu_claim_open(&claim, path);
    int number = claim.file;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(dup2(ends[0], number), number);
    fl_cpu_claim_close(&claim);
    assert_true(fcntl(number, F_GETFD) >= 0);
    (void)close(number);
    (void)close(ends[0]);
    (void)close(ends[1]);

    /* Nor does the file take the place of a stream that the host closed. */
    int kept = dup(STDIN_FILENO);

    (void)close(STDIN_FILENO);
    fl_cpu_claim_open(&claim, path);
    assert_true(claim.file > STDERR_FILENO);
    assert_int_equal(fcntl(STDIN_FILENO, F_GETFD), -1);
    fl_cpu_claim_close(&claim);
    if (kept >= 0) {
        assert_int_equal(dup2(kept, STDIN_FILENO), STDIN_FILENO);
        (void)close(kept);
    }
}

typedef struct heard {
    int calls;
    filch_log_level level;
    char text[512];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *all = user;

    all->calls++;
    all->level = level;
    (void)snprintf(all->text, sizeof all->text, "%s", text);
}

static int machine_restore(void **state)
{
    (void)unsetenv("HWLOC_SYNTHETIC");
    return tear_down(state);
}

/* What a pool's claim says beside another's, made by this process. */
static void assert_heard(const char *mine, const char *others, const char *fragment)
{
    fl_memory memory = fl_memory_system();
    fl_discovery how = {.memory = &memory};
    heard all = {0};
    fl_log log = {hear, &all, FILCH_LOG_WARNING};
    fl_cpu_claim first, second;
    fl_pool pool, other;

    assert_int_equal(fl_pool_open(&other, others, &how), FILCH_OK);
    assert_int_equal(fl_pool_open(&pool, mine, &how), FILCH_OK);
    fl_cpu_claim_open(&first, path);
    fl_cpu_claim_open(&second, path);
    fl_cpu_claim_pool(&first, &other, &log);
    assert_int_equal(all.calls, 0);
    fl_cpu_claim_pool(&second, &pool, &log);
    assert_int_equal(all.calls, fragment != NULL);
    if (fragment != NULL) {
        assert_int_equal(all.level, FILCH_LOG_WARNING);
        if (strstr(all.text, fragment) == NULL)
            fail_msg("'%s' is not in '%s'", fragment, all.text);
        assert_non_null(strstr(all.text, "FILCH_BIND=none"));
    }
    fl_cpu_claim_close(&first);
    fl_cpu_claim_close(&second);
    fl_pool_close(&pool, &memory);
    fl_pool_close(&other, &memory);
}

static void the_warning_names_what_is_shared(void **state)
{
    const char *const both = "another runtime of this process are bound to, too, and take turns "
                             "with them: ";
    char text[256], odd[2048] = "host:1x512@0";

    (void)state;
    assert_int_equal(setenv("HWLOC_SYNTHETIC", "numa:1 core:1024 pu:1", 1), 0);
    assert_heard("host:4", "host@4-7", NULL);
    assert_heard("host:4", "host:4@any", NULL);
    assert_heard("host:4@any", "host:4", NULL);
    (void)snprintf(text, sizeof text, "%s0;", both);
    assert_heard("host:2", "host:1", text);
    (void)snprintf(text, sizeof text, "%s2-3,8,1023;", both);
    assert_heard("host:1x8@0-3,8,1000,1022,1023", "host@2-9,1023", text);
    /* Within one runtime cores are shared because it was asked for. */
    assert_heard("host:4@0", "host@1", NULL);
    for (int cpu = 2; cpu < 1024; cpu += 2)
        (void)snprintf(odd + strlen(odd), sizeof odd - strlen(odd), ",%d", cpu);
    assert_heard(odd, "host:1x1024", "...; name other CPUs");
}

static void the_warning_names_the_process(void **state)
{
    fl_memory memory = fl_memory_system();
    fl_discovery how = {.memory = &memory};
    heard all = {0};
    fl_log log = {hear, &all, FILCH_LOG_WARNING};
    fl_cpu_claim claim, twin;
    char text[64];
    fl_pool pool;

    (void)state;
    assert_int_equal(fl_pool_open(&pool, "host:1", &how), FILCH_OK);
    unsigned cpu = 0;

    while ((pool.devices[0].info.affinity[cpu / 64] >> (cpu % 64) & 1) == 0)
        cpu++;
    claimer made = claimer_start(cpu, false);

    fl_cpu_claim_open(&claim, path);
    fl_cpu_claim_pool(&claim, &pool, &log);
    (void)snprintf(text, sizeof text, "workers of process %ld are", (long)made.process);
    assert_int_equal(all.calls, 1);
    assert_non_null(strstr(all.text, text));
    fl_cpu_claim_open(&twin, path); /* which has two reasons */
    fl_cpu_claim_pool(&twin, &pool, &log);
    assert_int_equal(all.calls, 3);
    fl_cpu_claim_close(&twin);
    claimer_kill(&made);
    claimer_end(&made);
    fl_cpu_claim_close(&claim);
    fl_pool_close(&pool, &memory);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(claims_of_one_process_are_told_apart, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_processes_are_named_until_they_die, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(what_a_forked_child_keeps_does_not_count, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(foreign_locks_do_no_harm, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_cannot_be_opened_claims_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_of_the_hosts_is_left_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_warning_names_what_is_shared, set_up, machine_restore),
        cmocka_unit_test_setup_teardown(the_warning_names_the_process, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
