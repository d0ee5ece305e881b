/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "device/pool.h"

static void pool_make(fl_pool *pool, const char *spec)
{
    fl_memory memory = fl_memory_system();
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};

    if (fl_pool_open(pool, spec, &how) != FILCH_OK)
        fail_msg("%s: %s", spec, error.text);
}

static void pool_end(fl_pool *pool)
{
    fl_memory memory = fl_memory_system();

    fl_pool_close(pool, &memory);
}

static bool has_cpu(const fl_device *device, unsigned cpu)
{
    return (device->info.affinity[cpu / 64] >> (cpu % 64) & 1) != 0;
}

static unsigned cpu_count(const fl_device *device)
{
    unsigned count = 0;

    for (unsigned i = 0; i < 16; i++)
        count += (unsigned)__builtin_popcountll(device->info.affinity[i]);
    return count;
}

/* The first 64 processors of a device, enough for the invented machines below. */
static uint64_t cpus(const fl_pool *pool, uint32_t device)
{
    for (unsigned i = 1; i < 16; i++)
        assert_int_equal(pool->devices[device].info.affinity[i], 0);
    return pool->devices[device].info.affinity[0];
}

/* Lets hwloc describe an invented machine instead of this one. */
static void machine_invent(const char *description)
{
    assert_int_equal(setenv("HWLOC_SYNTHETIC", description, 1), 0);
}

static int machine_restore(void **state)
{
    (void)state;
    return unsetenv("HWLOC_SYNTHETIC");
}

static void test_description(void **state)
{
    cpu_set_t allowed;
    fl_pool pool;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    pool_make(&pool, "host");
    assert_true(pool.count >= 1 && pool.count <= (size_t)CPU_COUNT(&allowed));
    for (size_t i = 0; i < pool.count; i++) {
        const fl_device *device = &pool.devices[i];
        uint64_t bytes = 0;

        assert_true(device->is_synchronous);
        assert_int_equal(device->window, 1);
        assert_int_equal(device->place, 0);
        assert_int_equal(device->implementations, FL_IMPL_HOST_FN);
        assert_null(device->backend->queue);
        assert_false(device->backend->is_virtual);
        assert_true(strlen(device->info.model) > 0);
        assert_int_equal(device->info.team, 1);
        assert_int_equal(device->backend->device->memory_free(device, &bytes), FILCH_OK);
        assert_true(bytes > 0 && bytes <= device->info.memory_total);
        /* One thread of one core, that this process may use, and no other device has. */
        assert_int_equal(cpu_count(device), 1);
        for (unsigned cpu = 0; cpu < 1024; cpu++) {
            if (!has_cpu(device, cpu))
                continue;
            assert_true(CPU_ISSET(cpu, &allowed));
            for (size_t j = 0; j < i; j++)
                assert_false(has_cpu(&pool.devices[j], cpu));
        }
    }
    pool_end(&pool);
}

/* More devices than cores share them in turn. */
static void test_more_devices_than_cores(void **state)
{
    fl_pool all, pool;
    char spec[32];

    (void)state;
    pool_make(&all, "host");
    (void)snprintf(spec, sizeof spec, "host:%zu", 2 * all.count + 1);
    pool_make(&pool, spec);
    assert_int_equal(pool.count, 2 * all.count + 1);
    for (size_t i = 0; i < pool.count; i++)
        assert_memory_equal(pool.devices[i].info.affinity, all.devices[i % all.count].info.affinity,
                            sizeof pool.devices[i].info.affinity);
    pool_end(&pool);

    /* A team larger than the machine is told the size that was asked for. */
    (void)snprintf(spec, sizeof spec, "host:2x%zu", all.count + 3);
    pool_make(&pool, spec);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(pool.devices[i].info.team, all.count + 3);
        assert_int_equal(cpu_count(&pool.devices[i]), all.count);
    }
    pool_end(&pool);
    pool_end(&all);
}

static void test_hardware_threads_are_no_cores(void **state)
{
    fl_pool pool;

    (void)state;
    machine_invent("numa:2 core:4 pu:2");
    pool_make(&pool, "host");
    assert_int_equal(pool.count, 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_true(cpus(&pool, i) == UINT64_C(1) << (2 * i));
    pool_end(&pool);
}

static void test_machine_without_cores(void **state)
{
    fl_pool pool;

    (void)state;
    machine_invent("numa:1 pu:3");
    pool_make(&pool, "host");
    assert_int_equal(pool.count, 3);
    pool_end(&pool);
}

static void test_teams_stay_on_one_node(void **state)
{
    fl_pool pool;

    (void)state;
    machine_invent("numa:2 core:6 pu:1");
    /* Two teams of four do not fit one node: the second starts on the other. */
    pool_make(&pool, "host:2x4");
    assert_true(cpus(&pool, 0) == 0x00f);
    assert_true(cpus(&pool, 1) == 0x3c0);
    assert_true(pool.devices[0].info.score == 4.0);
    pool_end(&pool);

    /* Single cores fill the gaps that teams left, then cores are shared. */
    pool_make(&pool, "host:2x4,host:5");
    assert_true(cpus(&pool, 2) == 0x010);
    assert_true(cpus(&pool, 3) == 0x020);
    assert_true(cpus(&pool, 4) == 0x400);
    assert_true(cpus(&pool, 5) == 0x800);
    assert_true(cpus(&pool, 6) == 0x001);
    pool_end(&pool);

    /* A team larger than a node takes the near one whole before it crosses. */
    pool_make(&pool, "host:1x8,host:1x4");
    assert_true(cpus(&pool, 0) == 0x0ff);
    assert_true(cpus(&pool, 1) == 0xf00);
    pool_end(&pool);

    /* Where no node has room the rest of each is used before a core twice. */
    pool_make(&pool, "host:3x4");
    assert_true(cpus(&pool, 2) == 0xc30);
    pool_end(&pool);

    /* A team that must share takes unused cores first, then near ones, none twice. */
    pool_make(&pool, "host:1x8,host:1x7");
    assert_true(cpus(&pool, 1) == (0xf00 | 0x0c0 | 0x001));
    assert_int_equal(cpu_count(&pool.devices[1]), 7);
    pool_end(&pool);
}

static void refused(const char *spec, filch_status status, int64_t column, const char *text)
{
    fl_memory memory = fl_memory_system();
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};
    fl_pool pool;

    assert_int_equal(fl_pool_open(&pool, spec, &how), status);
    assert_int_equal(error.line, column);
    assert_string_equal(error.text, text);
}

/* A CPU that is named is a core of its own, and devices take them in the order of their names. */
static void test_named_cpus(void **state)
{
    fl_pool pool;

    (void)state;
    machine_invent("numa:2 core:4 pu:2");
    pool_make(&pool, "host@5,4,12-13");
    assert_int_equal(pool.count, 4);
    assert_true(cpus(&pool, 0) == UINT64_C(1) << 5);
    assert_true(cpus(&pool, 1) == UINT64_C(1) << 4);
    assert_true(cpus(&pool, 2) == UINT64_C(1) << 12);
    assert_true(cpus(&pool, 3) == UINT64_C(1) << 13);
    assert_true(pool.devices[0].is_pinned);
    pool_end(&pool);

    pool_make(&pool, "host:2@4,6,8");
    assert_int_equal(pool.count, 2);
    assert_true(cpus(&pool, 0) == UINT64_C(1) << 4);
    assert_true(cpus(&pool, 1) == UINT64_C(1) << 6);
    pool_end(&pool);

    /* Teams take the next ones, over memory nodes too. */
    pool_make(&pool, "host:2x4@6-13,host:1x2@3,6");
    assert_int_equal(pool.count, 3);
    assert_true(cpus(&pool, 0) == 0x3c0);
    assert_true(cpus(&pool, 1) == 0x3c00);
    assert_true(cpus(&pool, 2) == 0x48);
    assert_int_equal(pool.devices[1].info.team, 4);
    pool_end(&pool);

    /* More devices than CPUs share them in turn; of those of earlier items the least used first. */
    pool_make(&pool, "host:3@4,2");
    assert_true(cpus(&pool, 0) == 0x10 && cpus(&pool, 1) == 0x04 && cpus(&pool, 2) == 0x10);
    pool_end(&pool);
    pool_make(&pool, "host@4,host@2,host:1x2@4-6,host:2x3@2-4");
    assert_true(cpus(&pool, 2) == 0x60);
    assert_true(cpus(&pool, 3) == 0x1c);
    pool_end(&pool);
}

static void test_named_cpus_that_are_not_there(void **state)
{
    (void)state;
    machine_invent("numa:2 core:4 pu:2");
    refused("host:2@14-17", FILCH_UNKNOWN_ORDINAL, 8,
            "device specification, character 8: this machine does not have CPU 16, but 0-15");
    refused("host@0,host:1x2@3,65535", FILCH_UNKNOWN_ORDINAL, 19,
            "device specification, character 19: this machine does not have CPU 65535, but 0-15");
}

/* A machine of four CPUs, of which the control group has the first two. */
static const char confined[] =
    "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
    "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
    "<topology version=\"2.0\">\n"
    "<object type=\"Machine\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\""
    " allowed_cpuset=\"0x3\" nodeset=\"0x1\" complete_nodeset=\"0x1\" allowed_nodeset=\"0x1\""
    " gp_index=\"1\">\n"
    "<object type=\"NUMANode\" os_index=\"0\" cpuset=\"0xf\" complete_cpuset=\"0xf\""
    " nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"2\" local_memory=\"1048576\"/>\n"
    "<object type=\"PU\" os_index=\"0\" cpuset=\"0x1\" complete_cpuset=\"0x1\""
    " nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"3\"/>\n"
    "<object type=\"PU\" os_index=\"1\" cpuset=\"0x2\" complete_cpuset=\"0x2\""
    " nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"4\"/>\n"
    "<object type=\"PU\" os_index=\"2\" cpuset=\"0x4\" complete_cpuset=\"0x4\""
    " nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"5\"/>\n"
    "<object type=\"PU\" os_index=\"3\" cpuset=\"0x8\" complete_cpuset=\"0x8\""
    " nodeset=\"0x1\" complete_nodeset=\"0x1\" gp_index=\"6\"/>\n"
    "</object>\n</topology>\n";

static void test_named_cpus_of_another_control_group(void **state)
{
    char path[] = "/tmp/filch-topology-XXXXXX";
    int file = mkstemp(path);
    fl_pool pool;

    (void)state;
    assert_true(file >= 0);
    assert_int_equal(write(file, confined, sizeof confined - 1), sizeof confined - 1);
    assert_int_equal(close(file), 0);
    assert_int_equal(setenv("HWLOC_XMLFILE", path, 1), 0);
    pool_make(&pool, "host@1,0");
    assert_int_equal(pool.count, 2);
    pool_end(&pool);
    refused("host@0,host:1x2@1-3", FILCH_NO_DEVICE, 17,
            "device specification, character 17: this process may not use CPU 2, but 0-1");
    assert_int_equal(unsetenv("HWLOC_XMLFILE"), 0);
    assert_int_equal(unlink(path), 0);
}

/* Devices that are bound to no core: their thread runs where the process may. */
static void test_unbound_devices(void **state)
{
    cpu_set_t allowed;
    fl_pool pool;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    pool_make(&pool, "host:3@any,host:1x2@any");
    assert_int_equal(pool.count, 4);
    for (size_t i = 0; i < pool.count; i++) {
        assert_false(pool.devices[i].is_pinned);
        for (unsigned cpu = 0; cpu < 1024; cpu++)
            assert_int_equal(has_cpu(&pool.devices[i], cpu), CPU_ISSET(cpu, &allowed) != 0);
    }
    pool_end(&pool);

    /* They take no core from others, and there are as many as else where no count is given. */
    machine_invent("numa:2 core:4 pu:2");
    pool_make(&pool, "host:1x2@any,host:1");
    assert_true(cpus(&pool, 0) == 0xffff);
    assert_true(cpus(&pool, 1) == 0x1);
    pool_end(&pool);
    pool_make(&pool, "host@any");
    assert_int_equal(pool.count, 8);
    pool_end(&pool);
}

static void test_thousands_of_processors(void **state)
{
    fl_memory memory = fl_memory_system();
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};
    fl_pool pool;

    (void)state;
    machine_invent("numa:8 core:256 pu:1");
    assert_int_equal(fl_pool_open(&pool, "host", &how), FILCH_UNSUPPORTED);
    assert_string_equal(error.text, "2048 devices are more than the 1024 that a runtime may have");
    pool_make(&pool, "host:8x256");
    assert_int_equal(pool.count, 8);
    assert_true(has_cpu(&pool.devices[3], 1023));
    assert_int_equal(cpu_count(&pool.devices[3]), 256);
    /* Beyond what the record can show. */
    assert_int_equal(cpu_count(&pool.devices[4]), 0);
    pool_end(&pool);
}

/* What bind leaves as the affinity of a thread that this test makes. */
typedef struct bound_thread {
    fl_device *device;
    filch_status status;
    cpu_set_t set;
} bound_thread;

static int bound_run(void *arg)
{
    bound_thread *bound = arg;

    bound->status = bound->device->backend->device->bind(bound->device);
    return sched_getaffinity(0, sizeof bound->set, &bound->set);
}

static void test_bind(void **state)
{
    cpu_set_t before, after;
    fl_pool pool;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
    pool_make(&pool, "host:3,host:1x64,host:2x3@any");
    for (size_t i = 0; i < pool.count; i++) {
        bound_thread bound = {.device = &pool.devices[i], .status = FILCH_INTERNAL};
        fl_thread thread;

        assert_int_equal(fl_thread_start(&thread, bound_run, &bound), FILCH_OK);
        fl_thread_join(thread);
        assert_int_equal(bound.status, FILCH_OK);
        for (unsigned cpu = 0; cpu < 1024; cpu++)
            assert_int_equal(CPU_ISSET(cpu, &bound.set) != 0, has_cpu(&pool.devices[i], cpu));
    }
    pool_end(&pool);
    assert_int_equal(sched_getaffinity(0, sizeof after, &after), 0);
    assert_true(CPU_EQUAL(&before, &after));
}

static void test_bind_to_what_is_not_there(void **state)
{
    bound_thread bound = {.status = FILCH_OK};
    fl_thread thread;
    fl_pool pool;

    (void)state;
    machine_invent("numa:4 core:250 pu:1");
    pool_make(&pool, "host:1000");
    bound.device = &pool.devices[999];
    assert_int_equal(fl_thread_start(&thread, bound_run, &bound), FILCH_OK);
    fl_thread_join(thread);
    assert_int_equal(bound.status, FILCH_SYSTEM);
    pool_end(&pool);
}

/* In a process bound to one processor only that one is found, and four devices share it. */
static int child_run(unsigned cpu, unsigned other)
{
    char spec[32];
    fl_pool pool;

    pool_make(&pool, "host");
    if (pool.count != 1 || cpu_count(&pool.devices[0]) != 1 || !has_cpu(&pool.devices[0], cpu))
        return 3;
    pool_end(&pool);
    pool_make(&pool, "host:4");
    for (size_t i = 0; i < 4; i++) {
        if (pool.count != 4 || cpu_count(&pool.devices[i]) != 1 || !has_cpu(&pool.devices[i], cpu))
            return 4;
    }
    pool_end(&pool);
    if (other == CPU_SETSIZE) /* the machine has but one */
        return 0;
    /* A name beats the mask. */
    (void)snprintf(spec, sizeof spec, "host@%u,%u", other, cpu);
    pool_make(&pool, spec);
    if (pool.count != 2 || !has_cpu(&pool.devices[0], other) || !has_cpu(&pool.devices[1], cpu))
        return 5;
    pool_end(&pool);
    return 0;
}

static void test_only_cores_this_process_may_use(void **state)
{
    cpu_set_t allowed;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        unsigned other = 0;
        int status;
        pid_t child;

        if (!CPU_ISSET(cpu, &allowed))
            continue;
        child = fork();
        if (child == 0) {
            /* A new program, so that threads which a sanitizer started are bound too. */
            cpu_set_t one;
            char number[16], another[16], self[4096];
            /* Not the link itself, which is valgrind under valgrind. */
            ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);

            CPU_CLR(cpu, &allowed);
            for (other = 0; other < CPU_SETSIZE && !CPU_ISSET(other, &allowed);)
                other++;
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            (void)snprintf(number, sizeof number, "%u", cpu);
            (void)snprintf(another, sizeof another, "%u", other);
            if (length < 0)
                _exit(3);
            self[length] = '\0';
            if (sched_setaffinity(0, sizeof one, &one) == 0)
                (void)execl(self, self, number, another, (char *)NULL);
            _exit(2);
        }
        assert_true(child > 0);
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_more_devices_than_cores),
        cmocka_unit_test_teardown(test_hardware_threads_are_no_cores, machine_restore),
        cmocka_unit_test_teardown(test_machine_without_cores, machine_restore),
        cmocka_unit_test_teardown(test_teams_stay_on_one_node, machine_restore),
        cmocka_unit_test_teardown(test_named_cpus, machine_restore),
        cmocka_unit_test_teardown(test_named_cpus_that_are_not_there, machine_restore),
        cmocka_unit_test(test_named_cpus_of_another_control_group),
        cmocka_unit_test_teardown(test_unbound_devices, machine_restore),
        cmocka_unit_test_teardown(test_thousands_of_processors, machine_restore),
        cmocka_unit_test(test_bind),
        cmocka_unit_test_teardown(test_bind_to_what_is_not_there, machine_restore),
        cmocka_unit_test(test_only_cores_this_process_may_use),
    };

    if (argc == 3)
        return child_run((unsigned)strtoul(argv[1], NULL, 10),
                         (unsigned)strtoul(argv[2], NULL, 10));
    return cmocka_run_group_tests(tests, NULL, NULL);
}
