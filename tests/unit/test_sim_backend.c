/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backend/sim/describe.h"
#include "backend/sim/sim.h"

typedef struct device_list {
    fl_memory memory;
    fl_device *list;
    size_t count;
    size_t capacity;
} device_list;

static char path[64];

/* Puts size bytes into a file of its own, named by path. */
static void file_make(const char *text, size_t size)
{
    int descriptor;

    strcpy(path, "/tmp/filch-sim-XXXXXX");
    descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    assert_true(write(descriptor, text, size) == (ssize_t)size);
    assert_int_equal(close(descriptor), 0);
}

static filch_status enumerate(device_list *devices, filch_error *error)
{
    fl_device_spec spec = {.backend = FILCH_BACKEND_SIM};
    fl_discovery how = {.memory = &devices->memory, .error = error};

    devices->memory = fl_memory_system();
    (void)snprintf(spec.file, sizeof spec.file, "%s", path);
    return fl_sim_backend.device->enumerate(&how, &spec, &devices->list, &devices->count,
                                            &devices->capacity);
}

static void devices_make(device_list *devices, const char *text)
{
    filch_error error = FILCH_ERROR_INIT;

    memset(devices, 0, sizeof *devices);
    file_make(text, strlen(text));
    if (enumerate(devices, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_int_equal(unlink(path), 0);
}

static void devices_end(device_list *devices)
{
    for (size_t i = 0; i < devices->count; i++)
        fl_sim_backend.device->close(&devices->list[i], &devices->memory);
    fl_free(&devices->memory, devices->list, devices->capacity * sizeof *devices->list);
}

static filch_status launch(fl_device *device, double cost, uint64_t tag, uint64_t now)
{
    fl_launch tile = {.cost = cost, .tag = tag};

    return device->backend->queue->launch(device, &tile, now, NULL);
}

/* Nothing has finished by now; the time to ask again is next. */
static void assert_waits(fl_device *device, uint64_t now, uint64_t next)
{
    uint64_t tag = 77, busy = 77, found = 0;

    assert_int_equal(device->backend->queue->poll(device, now, &tag, &busy, &found, NULL),
                     FILCH_NOT_READY);
    assert_true(found == next);
    assert_true(tag == 77 && busy == 77);
}

static void assert_finished(fl_device *device, uint64_t now, uint64_t tag, uint64_t busy,
                            uint64_t next)
{
    uint64_t tag_found = 77, busy_found = 77, next_found = 77;

    assert_int_equal(
        device->backend->queue->poll(device, now, &tag_found, &busy_found, &next_found, NULL),
        FILCH_OK);
    assert_true(tag_found == tag);
    assert_true(busy_found == busy);
    assert_true(next_found == next);
}

static void test_description(void **state)
{
    device_list devices;
    const fl_device *device;
    uint64_t bytes = 0;

    (void)state;
    devices_make(&devices,
                 "{\"devices\": [\n"
                 " {\"name\": \"fast\", \"speed\": 4e9, \"overhead_us\": 5.5, \"memory\": 1048576,"
                 "  \"window\": 3, \"score\": 7.5},\n"
                 " {\"speed\": 1},\n"
                 " {\"name\": \"sl\\u00f6w\", \"speed\": 1000, \"count\": 3, \"memory\": 2e9}\n"
                 "]}");
    assert_int_equal(devices.count, 5);
    for (size_t i = 0; i < 5; i++) {
        device = &devices.list[i];
        assert_int_equal(device->info.ordinal, i);
        assert_int_equal(device->info.backend, FILCH_BACKEND_SIM);
        assert_int_equal(device->info.size, sizeof device->info);
        assert_int_equal(device->info.team, 1);
        assert_int_equal(device->place, i + 1);
        assert_ptr_equal(device->backend, &fl_sim_backend);
        assert_false(device->is_synchronous);
        assert_true(device->calls_host_fn);
        assert_int_equal(device->implementations, FL_IMPL_HOST_FN);
        assert_int_equal(device->backend->device->memory_free(device, &bytes), FILCH_OK);
        assert_true(bytes == device->info.memory_total);
    }
    device = &devices.list[0];
    assert_string_equal(device->info.name, "fast");
    assert_string_equal(device->info.model, "simulated, 4e+09 units/s");
    assert_int_equal(device->overhead_ns, 5500);
    assert_int_equal(device->window, 3);
    assert_int_equal(device->info.memory_total, 1048576);
    assert_true(device->info.score == 7.5);
    device = &devices.list[1];
    assert_string_equal(device->info.name, "sim:1");
    assert_int_equal(device->overhead_ns, 0);
    assert_int_equal(device->window, 2);
    assert_true(device->info.memory_total == UINT64_C(1) << 34);
    assert_true(device->info.score == 1.0);
    assert_string_equal(devices.list[2].info.name, "sl\xc3\xb6w:0");
    assert_string_equal(devices.list[4].info.name, "sl\xc3\xb6w:2");
    assert_true(devices.list[4].info.memory_total == UINT64_C(2000000000));
    devices_end(&devices);
}

static void test_implementations(void **state)
{
    device_list devices;

    (void)state;
    devices_make(&devices, "{\"devices\": [\n"
                           " {\"speed\": 1, \"implements\": [\"cuda\"], \"count\": 2},\n"
                           " {\"speed\": 1, \"implements\": [\"cuda\", \"host\"]},\n"
                           " {\"speed\": 1, \"implements\": [\"host\"]}\n"
                           "]}");
    assert_int_equal(devices.list[0].implementations, FL_IMPL_CUDA);
    assert_int_equal(devices.list[1].implementations, FL_IMPL_CUDA);
    assert_int_equal(devices.list[2].implementations, FL_IMPL_CUDA | FL_IMPL_HOST_FN);
    assert_int_equal(devices.list[3].implementations, FL_IMPL_HOST_FN);
    devices_end(&devices);
}

static void test_virtual_time(void **state)
{
    device_list devices;
    fl_device *device;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 2e9, \"overhead_us\": 1}]}");
    device = &devices.list[0];
    assert_waits(device, 0, FL_TIME_NEVER);
    /* 1 us and 4000 units at 2 a nanosecond. */
    assert_int_equal(launch(device, 4000.0, 11, 500), FILCH_OK);
    assert_waits(device, 500, 3500);
    assert_waits(device, 3499, 3500);
    /* The second starts when the first ends, the third when it is launched. */
    assert_int_equal(launch(device, 0.0, 12, 600), FILCH_OK);
    assert_waits(device, 3499, 3500);
    assert_finished(device, 3500, 11, 3000, 4500);
    assert_waits(device, 4499, 4500);
    assert_int_equal(launch(device, 2000.0, 13, 9000), FILCH_OK);
    /* Asked late, they come in launch order, each at once. */
    assert_finished(device, 20000, 12, 1000, 11000);
    assert_finished(device, 20000, 13, 2000, FL_TIME_NEVER);
    assert_waits(device, 20000, FL_TIME_NEVER);
    /* A launch at an earlier time than the last end waits for that. */
    assert_int_equal(launch(device, 0.0, 14, 10000), FILCH_OK);
    assert_waits(device, 10000, 12000);
    assert_finished(device, 12000, 14, 1000, FL_TIME_NEVER);
    devices_end(&devices);
}

/* A tile goes at the speed of the moment; a change that is past when it is launched is the speed.
 */
static void test_changing_speed(void **state)
{
    device_list devices;
    fl_device *device;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 1e9, \"joins_at\": 1.5, \"count\": 2,"
                           "\"speeds\": [[1e-6, 5e8], [2e-6, 0], [4e-6, 4e9]]}]}");
    device = &devices.list[1];
    assert_true(device->joins_at == 1500000000);
    assert_int_equal(launch(device, 250.0, 1, 500), FILCH_OK);
    assert_int_equal(launch(device, 550.0, 2, 500), FILCH_OK); /* 250 by 1 us, 300 by 1.6 us */
    assert_int_equal(launch(device, 200.0, 3, 500), FILCH_OK); /* ends as the pause begins */
    assert_int_equal(launch(device, 4.0, 4, 500), FILCH_OK);
    assert_finished(device, 9000, 1, 250, 1600);
    assert_finished(device, 9000, 2, 850, 2000);
    assert_finished(device, 9000, 3, 400, 4001);
    assert_finished(device, 9000, 4, 2001, FL_TIME_NEVER);
    assert_int_equal(launch(&devices.list[0], 4.0, 5, 9000), FILCH_OK);
    assert_finished(&devices.list[0], 9001, 5, 1, FL_TIME_NEVER);
    devices_end(&devices);
}

/* From lost_at on nothing ends or begins, though it was launched before. */
static void test_lost(void **state)
{
    device_list devices;
    fl_device *device;
    filch_error error = FILCH_ERROR_INIT;
    uint64_t tag, busy, next;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 1e9, \"lost_at\": 5e-6}]}");
    device = &devices.list[0];
    assert_int_equal(launch(device, 4000.0, 1, 0), FILCH_OK);
    assert_int_equal(launch(device, 1000.0, 2, 0), FILCH_OK);
    assert_finished(device, 4999, 1, 4000, 5000);
    assert_false(fl_device_is_lost(device, &error));
    assert_int_equal(device->backend->queue->poll(device, 5000, &tag, &busy, &next, &error),
                     FILCH_DEVICE_LOST);
    assert_int_equal(error.status, FILCH_DEVICE_LOST);
    assert_string_equal(error.device, "sim:0");
    assert_true(fl_device_is_lost(device, NULL));
    assert_int_equal(launch(device, 1.0, 3, 5000), FILCH_DEVICE_LOST);
    devices_end(&devices);
}

/* Tiles of a third of a nanosecond are no shorter for being many. */
static void test_rounding_does_not_add_up(void **state)
{
    device_list devices;
    fl_device *device;
    uint64_t now = 0, busy_total = 0;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 3e9}]}");
    device = &devices.list[0];
    for (uint64_t i = 0; i < 30000; i++) {
        uint64_t tag, busy, next;

        assert_int_equal(launch(device, 1.0, i, now), FILCH_OK);
        if (device->backend->queue->poll(device, now, &tag, &busy, &next, NULL) ==
            FILCH_NOT_READY) {
            now = next;
            assert_int_equal(device->backend->queue->poll(device, now, &tag, &busy, &next, NULL),
                             FILCH_OK);
        }
        assert_true(tag == i);
        busy_total += busy;
    }
    assert_true(now >= 9999 && now <= 10001);
    assert_true(busy_total == now);
    devices_end(&devices);
}

static void test_refused_launches(void **state)
{
    device_list devices;
    fl_device *device;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 1e9}]}");
    device = &devices.list[0];
    assert_int_equal(launch(device, -1.0, 1, 0), FILCH_INVALID_ARGUMENT);
    assert_int_equal(launch(device, NAN, 1, 0), FILCH_INVALID_ARGUMENT);
    assert_int_equal(launch(device, INFINITY, 1, 0), FILCH_INVALID_ARGUMENT);
    assert_int_equal(launch(device, 1e30, 1, 0), FILCH_OVERFLOW);
    assert_int_equal(launch(device, 1e300, 1, 0), FILCH_OVERFLOW);
    assert_int_equal(launch(device, 100.0, 1, FL_TIME_NEVER - 100), FILCH_OVERFLOW);
    assert_waits(device, 1000, FL_TIME_NEVER);
    /* The ring is not at its start, and holds as many as it says. */
    assert_int_equal(launch(device, 10.0, 1, 0), FILCH_OK);
    assert_finished(device, 10, 1, 10, FL_TIME_NEVER);
    for (uint64_t i = 0; i < FL_SIM_TILES; i++)
        assert_int_equal(launch(device, 10.0, i, 10), FILCH_OK);
    assert_int_equal(launch(device, 10.0, 99, 10), FILCH_BUSY);
    for (uint64_t i = 0; i < FL_SIM_TILES; i++)
        assert_finished(device, 20 + 10 * i, i, 10,
                        i + 1 < FL_SIM_TILES ? 30 + 10 * i : FL_TIME_NEVER);
    devices_end(&devices);
}

/* Devices of a second file go on where those of the first ended. */
static void test_two_files(void **state)
{
    device_list devices;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 1, \"count\": 2}]}");
    file_make("{\"devices\": [{\"speed\": 3}]}", 27);
    assert_int_equal(enumerate(&devices, &error), FILCH_OK);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(devices.count, 3);
    assert_string_equal(devices.list[2].info.name, "sim:2");
    assert_int_equal(devices.list[2].place, 3);
    devices_end(&devices);
}

static void refused_bytes(const char *text, size_t size, filch_status expected, int64_t line,
                          const char *fragment)
{
    filch_error error = FILCH_ERROR_INIT;
    device_list devices = {.list = NULL};
    filch_status status;

    file_make(text, size);
    status = enumerate(&devices, &error);
    assert_int_equal(unlink(path), 0);
    if (status != expected || error.status != expected || error.line != line ||
        strstr(error.text, fragment) == NULL || strcmp(error.label, path) != 0)
        fail_msg("'%.200s': status %d, line %lld, '%s'; expected %d, %lld, '%s'", text, status,
                 (long long)error.line, error.text, expected, (long long)line, fragment);
    assert_int_equal(devices.count, 0);
    fl_free(&devices.memory, devices.list, devices.capacity * sizeof *devices.list);
}

static void refused(const char *text, filch_status expected, int64_t line, const char *fragment)
{
    refused_bytes(text, strlen(text), expected, line, fragment);
}

static void test_not_json(void **state)
{
    (void)state;
    refused("", FILCH_PARSE, 1, "'[' or '{' expected");
    refused("{", FILCH_PARSE, 1, "");
    refused("{\"devices\": [\n{\"speed\": 1},\n{\"speed\" 1}\n]}", FILCH_PARSE, 3, "':' expected");
    refused("{\"devices\": [{\"speed\": 1}]}\n\n}", FILCH_PARSE, 3, "end of file expected");
    refused("{\"devices\": [{\"speed\": 1},\n]}", FILCH_PARSE, 2, "unexpected token");
    refused("{\"devices\": [{\"speed\": 1e999}]}", FILCH_PARSE, 1, "overflow");
    refused("{\"devices\": [{\"speed\":\n99999999999999999999}]}", FILCH_PARSE, 2, "too big");
    refused("{\"devices\": [{\"speed\": NaN}]}", FILCH_PARSE, 1, "invalid token");
    refused("{\"devices\": [{\"speed\": 1,\n\"speed\": 1}]}", FILCH_PARSE, 2, "duplicate");
    refused("{\"devices\": [{\"name\": \"\xff\", \"speed\": 1}]}", FILCH_PARSE, 1, "0xff");
    refused_bytes("{\"devices\":\n[{\"speed\": 1\0}]}", 28, FILCH_PARSE, 2, "a zero byte");
    refused("{\"devices\": [{\"name\": \"a\\u0000b\", \"speed\": 1}]}", FILCH_PARSE, 1, "u0000");
}

static void test_wrong_data(void **state)
{
    (void)state;
    refused("[]", FILCH_DATA, 1, "an object with \"devices\"");
    refused("{}", FILCH_DATA, 1, "\"devices\" is missing");
    refused("{\"devices\": [{\"speed\": 1}],\n\n \"links\": []}", FILCH_DATA, 3,
            "unknown key \"links\"");
    refused("{\n\"devices\": {}}", FILCH_DATA, 2, "must be an array");
    refused("{\n\"devices\": []}", FILCH_DATA, 2, "at least one");
    refused("{\"devices\": null}", FILCH_DATA, 1, "must be an array");
    refused("{\"devices\": [\n1]}", FILCH_DATA, 2, "device 0: must be an object");
    refused("{\"devices\": [{\"speed\": 1},\n\"fast\"]}", FILCH_DATA, 2, "device 1: must be");
    refused("{\"devices\": [{\"speed\": 1},\n\n{\"name\": \"slow\"}]}", FILCH_DATA, 3,
            "device 1: \"speed\" is missing");
    refused("{\"devices\": [{\"speed\": 1},\n{\"speed\": 1,\n\n\"sped\": 2}]}", FILCH_DATA, 4,
            "device 1: unknown key \"sped\"");
    /* The key as a value, escaped braces and deeper keys of the same name do not mislead. */
    refused("{\"devices\": [{\"speed\": 1, \"name\": \"odd \\\"}]{\"},\n"
            "{\"name\": \"odd\", \"speed\": 1,\n\"x\": [{\"odd\": [1, 2]}, 3]}]}",
            FILCH_DATA, 3, "unknown key \"x\"");
    refused("{\"devices\": [{\"speed\": 1},\n{\"name\": \"odd\",\n\"odd\": 1, \"speed\": 1}]}",
            FILCH_DATA, 3, "unknown key \"odd\"");
    /* A key that is not spelt as it reads is shown with its device. */
    refused("{\"devices\": [\n{\n\"sp\\u0065d\": 1}]}", FILCH_DATA, 2, "unknown key \"sped\"");
    refused("{\"devices\": [{\"a\\nb\": 1}]}", FILCH_DATA, 1, "unknown key \"a?b\"");
    refused("{\"devices\": [{\"speed\": 1,\n\"name\": \"\"}]}", FILCH_DATA, 2, "1 to 48 bytes");
    refused("{\"devices\": [{\"speed\": 1,\n\"name\": 7}]}", FILCH_DATA, 2, "1 to 48 bytes");
    refused("{\"devices\": [{\"speed\": 1,\"name\": "
            "\"1234567890123456789012345678901234567890123456789\"}]}",
            FILCH_DATA, 1, "1 to 48 bytes");
    refused("{\"devices\": [{\"speed\": 1,\"name\": \"a\\tb\"}]}", FILCH_DATA, 1, "control");
    static const char *const kinds[] = {"[]", "\"cuda\"", "[\"gpu\"]", "[1]",
                                        "[\"host\", \"host\"]"};
    static const char *const speeds[] = {
        "1",           "[]",           "{}",          "[1, 2]",          "[[1]]",
        "[[1, 2, 3]]", "[[-1, 1]]",    "[[1, -1]]",   "[[1, 2e18]]",     "[[1, 1], [1, 2]]",
        "[[1, 0]]",    "[[1.1e9, 1]]", "[[1, null]]", "[[2, 1], [1, 2]]"};
    for (size_t i = 0; i < sizeof speeds / sizeof *speeds; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"devices\": [{\"speed\": 1,\n\"speeds\": %s}]}", speeds[i]);
        refused(text, FILCH_DATA, 2, "\"speeds\" must be an array of pairs");
    }
    refused("{\"devices\": [{\"speed\": 1,\n\"lost_at\": 0}]}", FILCH_DATA, 2, "must be after 0");
    refused("{\"devices\": [{\"joins_at\": 3, \"speed\": 1,\n\"lost_at\": 3}]}", FILCH_DATA, 2,
            "and after \"joins_at\"");
    refused("{\"devices\": [{\"speed\": 1,\n\"leaves_at\": 0}]}", FILCH_DATA, 2, "must be after 0");
    refused("{\"devices\": [{\"joins_at\": 3, \"speed\": 1,\n\"leaves_at\": 3}]}", FILCH_DATA, 2,
            "and after \"joins_at\"");
    refused("{\"devices\": [{\"leaves_at\": 3, \"speed\": 1,\n\"returns_at\": 3}]}", FILCH_DATA, 2,
            "must be after \"leaves_at\"");
    refused("{\"devices\": [{\"speed\": 1,\n\"returns_at\": 3}]}", FILCH_DATA, 2,
            "must be after \"leaves_at\"");
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        char text[100];
        snprintf(text, sizeof text, "{\"devices\": [{\"speed\": 1,\n\"implements\": %s}]}",
                 kinds[i]);
        refused(text, FILCH_DATA, 2, "\"implements\" must be");
    }
}

static void test_wrong_hosts(void **state)
{
    (void)state;
    static const char *const hosts[][2] = {
        {"1", "must be an object"},
        {"{\"launch_us\": -1}", "times must be numbers"},
        {"{\"see_us\": \"2\"}", "times must be numbers"},
        {"{\"copy_us\": 2e9}", "times must be numbers"},
        {"{\"keeps\": 1}", "\"keeps\" must be an object"},
        {"{\"keeps\": {\"\": 1}}", "\"keeps\" must be an object"},
        {"{\"keeps\": {\"a\": 1, \"b\": -1}}", "\"keeps\" must be an object"},
        {"{\"speed\": 1}", "unknown key \"speed\""},
    };
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"devices\": [{\"speed\": 1,\n\"host\": %s}]}", hosts[i][0]);
        refused(text, FILCH_DATA, 2, hosts[i][1]);
    }
    refused("{\"devices\": [{\"speed\": 1,\n\"host\": {\"keeps\": {\"a\": 1}}}]}", FILCH_DATA, 2,
            "\"host\" is for devices with a \"link\"");
    refused("{\"devices\": [{\"speed\": 1, \"name\": \"a\"}, {\"speed\": 1,\n\"shares\": \"a\"}]}",
            FILCH_DATA, 2, "\"shares\" is for devices with a \"link\"");
    refused("{\"link\": {\"bandwidth\": 1}, \"devices\": [{\"name\": \"a\", \"speed\": 1,\n"
            "\"shares\": \"a\"}]}",
            FILCH_DATA, 2, "a device before it");
    refused("{\"link\": {\"bandwidth\": 1}, \"devices\": [{\"speed\": 1,\n\"shares\": 1}]}",
            FILCH_DATA, 2, "a device before it");
}

static void test_wrong_links(void **state)
{
    (void)state;
    static const char *const links[][2] = {
        {"1", "must be an object"},
        {"{}", "\"bandwidth\" is missing"},
        {"{\"latency_us\": 1}", "\"bandwidth\" is missing"},
        {"{\"bandwidth\": 0}", "a bandwidth must be"},
        {"{\"bandwidth\": 1e9, \"bandwidth_out\": 2e18}", "a bandwidth must be"},
        {"{\"bandwidth\": 1e9, \"latency_us\": -1}", "a latency must be"},
        {"{\"bandwidth\": 1e9, \"latency_out_us\": null}", "a latency must be"},
        {"{\"bandwidth\": 1e9, \"column_us\": -1}", "\"column_us\" must be a number"},
        {"{\"bandwidth\": 1e9, \"duplex\": 1}", "true or false"},
        {"{\"bandwidth\": 1e9, \"bus\": \"\"}", "\"bus\" must be a text"},
        {"{\"bandwidth\": 1e9, \"speed\": 1}", "unknown key \"speed\""},
    };
    for (size_t i = 0; i < sizeof links / sizeof *links; i++) {
        char text[200];
        snprintf(text, sizeof text, "{\"devices\": [{\"speed\": 1,\n\"link\": %s}]}", links[i][0]);
        refused(text, FILCH_DATA, 2, links[i][1]);
        snprintf(text, sizeof text, "{\n\n\"link\": %s, \"devices\": [{\"speed\": 1}]}",
                 links[i][0]);
        refused(text, FILCH_DATA, 3, links[i][1]);
    }
    refused("{\"devices\": [{\"speed\": 1, \"link\": {\"bandwidth\": 1}},\n{\"speed\": 1}]}",
            FILCH_DATA, 2, "device 1: \"link\" is missing");
    refused("{\"link\": {\"bandwidth\": 1}, \"devices\": [{\"speed\": 1,\n\"window\": 2}]}",
            FILCH_DATA, 2, "\"window\" is measured");
    refused("{\"devices\": [{\"speed\": 1},\n{\"speed\": 1, \"lanes\": 2}]}", FILCH_DATA, 2,
            "device 1: \"lanes\" are for devices with a \"link\"");
    refused("{\"devices\": [{\"speed\": 1}],\n\"peers\": []}", FILCH_DATA, 2, "must be an array");
    static const char *const peers[][2] = {
        {"1", "must be an object"},
        {"{\"from\": \"a\", \"to\": \"a\"}", "needs \"from\""},
        {"{\"from\": \"a\", \"bandwidth\": 1}", "needs \"from\""},
        {"{\"from\": 1, \"to\": \"a\", \"bandwidth\": 1}", "must be names"},
        {"{\"from\": \"b\", \"to\": \"a\", \"bandwidth\": 1}", "\"from\" is no device"},
        {"{\"from\": \"a:1\", \"to\": \"a:2\", \"bandwidth\": 1}", "\"to\" is no device"},
        {"{\"from\": \"a\", \"to\": \"a\", \"bandwidth\": -1}", "a bandwidth must be"},
        {"{\"from\": \"a\", \"to\": \"a\", \"bandwidth\": 1, \"bus\": 1}", "unknown key \"bus\""},
    };
    for (size_t i = 0; i < sizeof peers / sizeof *peers; i++) {
        char text[300];
        /* "peers" may come before the devices, and what they are called is no key. */
        snprintf(text, sizeof text,
                 "{\"peers\": [{\"from\": \"a:0\", \"to\": \"a\", \"bandwidth\": 1},\n%s],\n"
                 "\"link\": {\"bandwidth\": 1}, \"devices\": [{\"name\": \"a\", \"count\": 2,"
                 "\"speed\": 1}]}",
                 peers[i][0]);
        refused(text, FILCH_DATA, 2, peers[i][1]);
    }
}

static void test_wrong_numbers(void **state)
{
    static const struct {
        const char *key, *value, *fragment;
    } cases[] = {
        {"speed", "0", "a number from 1e-06 to 1e+18"},
        {"speed", "-1", "a number from 1e-06"},
        {"speed", "1.1e18", "a number from 1e-06"},
        {"speed", "\"1\"", "a number from 1e-06"},
        {"speed", "true", "a number from 1e-06"},
        {"speed", "[[0, 1], [1, 0.25]]", "a number from 1e-06"},
        {"overhead_us", "-0.001", "a number from 0 to 1000000000"},
        {"overhead_us", "1.1e9", "a number from 0 to 1000000000"},
        {"memory", "0", "a whole number from 1 to 1125899906842624"},
        {"memory", "1125899906842625", "a whole number from 1"},
        {"memory", "1.5", "a whole number from 1"},
        {"window", "0", "a whole number from 1 to 64"},
        {"window", "65", "a whole number from 1 to 64"},
        {"window", "null", "a whole number from 1 to 64"},
        {"lanes", "0", "a whole number from 1 to 8"},
        {"lanes", "9", "a whole number from 1 to 8"},
        {"score", "-1", "a number from 0 to 1e+300"},
        {"score", "2e300", "a number from 0 to 1e+300"},
        {"misread_tile", "1.5", "a whole number from 0 to"},
        {"misread_by", "1e-7", "a number from 1e-06 to 1000000"},
        {"count", "0", "a whole number from 1 to 1024"},
        {"count", "1025", "a whole number from 1 to 1024"},
        {"count", "2.5", "a whole number from 1 to 1024"},
        {"joins_at", "-1", "a number from 0 to 1000000000"},
        {"joins_at", "[1]", "a number from 0 to 1000000000"},
        {"lost_at", "1.1e9", "a number from 0 to 1000000000"},
        {"lost_at", "null", "a number from 0 to 1000000000"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bool is_speed = strcmp(cases[i].key, "speed") == 0;
        char text[256], fragment[128];

        (void)snprintf(text, sizeof text, "{\"devices\": [{\"speed\": 1},\n{%s\n\"%s\": %s}]}",
                       is_speed ? "" : "\"speed\": 1,", cases[i].key, cases[i].value);
        (void)snprintf(fragment, sizeof fragment, "device 1: \"%s\" must be %s", cases[i].key,
                       cases[i].fragment);
        refused(text, FILCH_DATA, 3, fragment);
    }
}

static void test_limits(void **state)
{
    device_list devices;
    filch_error error = FILCH_ERROR_INIT;
    const size_t size = FL_SIM_FILE_LIMIT;
    char *text = malloc(size + 2);
    size_t length;

    (void)state;
    assert_non_null(text);
    refused("{\"devices\": [{\"speed\": 1, \"count\": 1000},\n{\"speed\": 1, \"count\": 25}]}",
            FILCH_UNSUPPORTED, 0, "1025 devices are more than the 1024");
    devices_make(&devices, "{\"devices\": [{\"speed\": 1e18, \"count\": 1024, \"score\": 0,"
                           "\"overhead_us\": 1e9, \"memory\": 1125899906842624,"
                           "\"window\": 64}]}");
    assert_int_equal(devices.count, 1024);
    devices_end(&devices);

    /* As long as allowed, then a byte more. */
    memset(text, ' ', size + 1);
    memcpy(text, "{\"devices\":[{\"speed\":1}]}", 25);
    file_make(text, size);
    memset(&devices, 0, sizeof devices);
    assert_int_equal(enumerate(&devices, &error), FILCH_OK);
    assert_int_equal(unlink(path), 0);
    devices_end(&devices);
    text[size + 1] = '\0';
    refused_bytes(text, size + 1, FILCH_IO, 0, "larger than 1048576 bytes");

    /* An element more than a runtime can have, and brackets deeper than sense. */
    strcpy(text, "{\"devices\":[");
    length = strlen(text);
    for (int i = 0; i < FL_DEVICE_LIMIT; i++)
        length += (size_t)sprintf(text + length, "{\"speed\":1},\n");
    strcpy(text + length, "{\"speed\":1}]}");
    refused(text, FILCH_DATA, FL_DEVICE_LIMIT + 1, "more than 1024 devices");
    memset(text, '[', size);
    text[size] = '\0';
    refused(text, FILCH_PARSE, 1, "depth");
    free(text);
}

static void test_files_that_cannot_be_read(void **state)
{
    device_list devices = {.list = NULL};
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    strcpy(path, "/nonexistent/devices.json");
    assert_int_equal(enumerate(&devices, &error), FILCH_IO);
    assert_string_equal(error.call, "open");
    assert_int_equal(error.native_code, 2);
    assert_non_null(strstr(error.text, "No such file"));
    assert_string_equal(error.label, path);
    strcpy(path, "/");
    assert_int_equal(enumerate(&devices, &error), FILCH_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    strcpy(path, "/dev/zero");
    assert_int_equal(enumerate(&devices, &error), FILCH_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    /* A pipe without a writer does not hold the caller up. */
    file_make("", 0);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(enumerate(&devices, &error), FILCH_IO);
    assert_non_null(strstr(error.text, "not a regular file"));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(devices.count, 0);
}

/* Every prefix and every changed byte of a good text is read or refused with a line inside it. */
static void test_mutations(void **state)
{
    const char *const good = "{\"devices\": [\n{\"name\": \"a\", \"speed\": 1e9},\n"
                             "{\"speed\": 2, \"count\": 3, \"window\": 1}\n]}";
    const size_t length = strlen(good);
    fl_memory memory = fl_memory_system();
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};
    char text[128];

    (void)state;
    for (size_t at = 0; at < length; at++) {
        for (int byte = 0; byte <= 256; byte++) {
            size_t size = byte == 256 ? at : length;
            /* A copy of the exact size shows reads past its end to the sanitizers. */
            char *copy = malloc(size > 0 ? size : 1);
            fl_sim_description description;
            filch_status status;

            assert_non_null(copy);
            memcpy(text, good, length);
            text[at] = (char)byte;
            memcpy(copy, text, size);
            status = fl_sim_describe_text(&description, "text", copy, size, &how);
            if (status == FILCH_OK) {
                assert_true(description.count == 2);
                fl_sim_description_free(&description, &memory);
            } else {
                assert_true(status == FILCH_PARSE || status == FILCH_DATA);
                assert_true(error.line >= 1 && error.line <= 5);
            }
            free(copy);
        }
    }
}

/* One wrong time is told; the tile ends when it does, and the others' times are right. */
static void test_misread(void **state)
{
    device_list devices;

    (void)state;
    devices_make(&devices, "{\"devices\": [{\"speed\": 1e9, \"misread_tile\": 2,"
                           " \"misread_by\": 500}, {\"speed\": 1e9, \"misread_tile\": 1,"
                           " \"misread_by\": 0.002}, {\"speed\": 1e9, \"misread_by\": 3}]}");
    for (uint64_t tile = 1; tile <= 4; tile++) {
        uint64_t end = 1000 * tile;

        for (size_t d = 0; d < 3; d++) {
            fl_device *device = &devices.list[d];
            uint64_t told = d == 0 && tile == 2 ? 500000 : d == 1 && tile == 1 ? 2 : 1000;

            assert_int_equal(launch(device, 1000.0, tile, end - 1000), FILCH_OK);
            assert_waits(device, end - 1, end);
            assert_finished(device, end, tile, told, FL_TIME_NEVER);
        }
    }
    devices_end(&devices);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_description),
        cmocka_unit_test(test_implementations),
        cmocka_unit_test(test_virtual_time),
        cmocka_unit_test(test_changing_speed),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_rounding_does_not_add_up),
        cmocka_unit_test(test_refused_launches),
        cmocka_unit_test(test_two_files),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_wrong_data),
        cmocka_unit_test(test_misread),
        cmocka_unit_test(test_wrong_links),
        cmocka_unit_test(test_wrong_hosts),
        cmocka_unit_test(test_wrong_numbers),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_files_that_cannot_be_read),
        cmocka_unit_test(test_mutations),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
