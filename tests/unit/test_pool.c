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
#include <unistd.h>

#include "base/thread.h"
#include "device/pool.h"

/* System memory that counts what is live and fails at a given call; -1: never. */
typedef struct counted_memory {
    long live_bytes;
    int countdown;
} counted_memory;

static void *counted_alloc(size_t size, size_t align, void *user)
{
    counted_memory *counted = user;
    void *pointer = NULL;

    if (counted->countdown == 0)
        return NULL;
    if (counted->countdown > 0)
        counted->countdown--;
    if (posix_memalign(&pointer, align < sizeof(void *) ? sizeof(void *) : align, size) != 0)
        return NULL;
    counted->live_bytes += (long)size;
    return pointer;
}

static void counted_free(void *pointer, size_t size, size_t align, void *user)
{
    (void)align;
    ((counted_memory *)user)->live_bytes -= (long)size;
    free(pointer);
}

static fl_memory counted_table(counted_memory *counted)
{
    return (fl_memory){counted_alloc, counted_free, counted, "caller"};
}

/* A simulator file with the text given; its path is valid until the next call. */
static const char *file_make(const char *text)
{
    static char path[] = "/tmp/filch-pool-XXXXXX";
    FILE *file;
    int descriptor;

    strcpy(path + sizeof path - 7, "XXXXXX");
    descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    file = fdopen(descriptor, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    return path;
}

static counted_memory opened = {0, -1};

static void pool_make(fl_pool *pool, const char *spec)
{
    fl_memory memory = counted_table(&opened);
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};

    if (fl_pool_open(pool, spec, &how) != FILCH_OK)
        fail_msg("%s: %s", spec == NULL ? "default" : spec, error.text);
}

static void pool_end(fl_pool *pool)
{
    fl_memory memory = counted_table(&opened);

    fl_pool_close(pool, &memory);
    assert_int_equal(pool->count, 0);
    assert_null(pool->devices);
    assert_int_equal(opened.live_bytes, 0);
}

/* A pool of simulated devices described by text, the elements of "devices". */
static void sim_make(fl_pool *pool, const char *elements)
{
    char text[1024];
    char spec[64];
    const char *path;

    (void)snprintf(text, sizeof text, "{\"devices\":[%s]}", elements);
    path = file_make(text);
    (void)snprintf(spec, sizeof spec, "sim:%s", path);
    pool_make(pool, spec);
    assert_int_equal(unlink(path), 0);
}

/* Opening fails with the status, a text that has fragment in it, and leaves nothing. */
static void refused(const char *spec, filch_status expected, int64_t position, const char *fragment)
{
    counted_memory counted = {0, -1};
    fl_memory memory = counted_table(&counted);
    filch_error error = FILCH_ERROR_INIT;
    fl_discovery how = {.memory = &memory, .error = &error};
    fl_pool pool;
    filch_status status = fl_pool_open(&pool, spec, &how);

    if (status != expected || error.status != expected || strstr(error.text, fragment) == NULL ||
        error.line != position)
        fail_msg("%s: status %d, position %lld, '%s'", spec, status, (long long)error.line,
                 error.text);
    assert_int_equal(pool.count, 0);
    assert_null(pool.devices);
    assert_int_equal(counted.live_bytes, 0);
    how.error = NULL;
    assert_int_equal(fl_pool_open(&pool, spec, &how), expected);
    assert_int_equal(counted.live_bytes, 0);
}

static void test_default_is_the_hosts_cores(void **state)
{
    fl_pool pool, all;

    (void)state;
    /* On a machine with GPUs: hidden ones are as good as none. */
    (void)setenv("CUDA_VISIBLE_DEVICES", "", 1);
    pool_make(&all, "host");
    assert_true(all.count >= 1);
    for (int i = 0; i < 2; i++) {
        pool_make(&pool, i == 0 ? NULL : "");
        assert_int_equal(pool.count, all.count);
        assert_false(pool.is_virtual);
        assert_int_equal(pool.place_count, 1);
        for (uint32_t d = 0; d < pool.count; d++) {
            assert_int_equal(pool.devices[d].info.backend, FILCH_BACKEND_HOST);
            assert_int_equal(pool.devices[d].info.team, 1);
        }
        fl_memory memory = counted_table(&opened);
        fl_pool_close(&pool, &memory);
    }
    pool_end(&all);
}

static void test_numbering(void **state)
{
    fl_pool pool;

    (void)state;
    pool_make(&pool, "host:2,host:1x3");
    assert_int_equal(pool.count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        filch_device_info info = {.size = sizeof info};
        char name[32];

        assert_int_equal(fl_pool_info(&pool, i, &info), FILCH_OK);
        (void)snprintf(name, sizeof name, "host:%u", i);
        assert_string_equal(info.name, name);
        assert_int_equal(info.index, i);
        assert_int_equal(info.ordinal, i);
        assert_int_equal(info.place, 0);
        assert_int_equal(info.team, i == 2 ? 3 : 1);
        assert_true(info.score == (i == 2 ? 3.0 : 1.0));
        assert_int_equal(info.size, sizeof info);
        assert_true(info.memory_free > 0 && info.memory_free <= info.memory_total);
    }
    pool_end(&pool);

    sim_make(&pool, "{\"speed\":1,\"count\":2},{\"name\":\"b\",\"speed\":1}");
    assert_true(pool.is_virtual);
    assert_int_equal(pool.place_count, 4);
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(pool.devices[i].info.place, i + 1);
    pool_end(&pool);
}

static void test_refusals(void **state)
{
    char same[64], twice[160];
    const char *path;

    (void)state;
    refused("host:1,sim:nosuch", FILCH_UNSUPPORTED, 8, "do not mix");
    refused("sim:nosuch,host", FILCH_UNSUPPORTED, 12, "do not mix");
    refused("host,host", FILCH_DUPLICATE_DEVICE, 6, "already at character 1");
    refused("host:1,host", FILCH_DUPLICATE_DEVICE, 8, "already at character 1");
    refused("host,host:1x4", FILCH_DUPLICATE_DEVICE, 6, "already at character 1");
    refused("host:1x2,host:2,host:3", FILCH_DUPLICATE_DEVICE, 17, "already at character 10");
    refused("host:1,host:1x1", FILCH_DUPLICATE_DEVICE, 8, "already at character 1");
    refused("host:1@0,host:2", FILCH_DUPLICATE_DEVICE, 10, "already at character 1");
    refused("host@0,host", FILCH_DUPLICATE_DEVICE, 8, "already at character 1");
    refused("host@any,host:1x2@0", FILCH_DUPLICATE_DEVICE, 10, "already at character 1");
    refused("host@0-3,host@4-7,host:1@7,0", FILCH_DUPLICATE_DEVICE, 19, "already at character 1");
    refused("host:1x2@0-3,host@2,host:2x2@4,3", FILCH_DUPLICATE_DEVICE, 21,
            "already at character 1");
    refused("sim:f,sim:f", FILCH_DUPLICATE_DEVICE, 7, "already at character 1");
    refused("host:0", FILCH_PARSE, 6, "must not be zero");
    refused("nvidia", FILCH_PARSE, 1, "unknown word");
    refused("host:1025", FILCH_UNSUPPORTED, 1, "1025 devices are more than the 1024");
    refused("host:1000,host:25x2", FILCH_UNSUPPORTED, 11, "1025 devices are more than the 1024");
    refused("host:4294967295x1024", FILCH_UNSUPPORTED, 1, "more than the 1024");
    refused("sim:/nonexistent/file", FILCH_IO, 0, "cannot open /nonexistent/file: No such");

    path = file_make("{\"devices\":[{\"name\":\"a\",\"speed\":1},{\"name\":\"a\",\"speed\":1}]}");
    (void)snprintf(same, sizeof same, "sim:%s", path);
    refused(same, FILCH_DUPLICATE_DEVICE, 0, "two devices are called 'a'");
    assert_int_equal(unlink(path), 0);

    /* The same names under two names of one file. */
    path = file_make("{\"devices\":[{\"name\":\"a\",\"speed\":1}]}");
    (void)snprintf(twice, sizeof twice, "sim:%s,sim:/tmp/../%s", path, path);
    refused(twice, FILCH_DUPLICATE_DEVICE, 0, "two devices are called 'a'");
    assert_int_equal(unlink(path), 0);
}

static void test_by_ordinal(void **state)
{
    fl_pool pool;
    uint32_t index = 77;

    (void)state;
    pool_make(&pool, "host:3");
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(fl_pool_by_ordinal(&pool, FILCH_BACKEND_HOST, i, &index), FILCH_OK);
        assert_int_equal(index, i);
    }
    index = 77;
    assert_int_equal(fl_pool_by_ordinal(&pool, FILCH_BACKEND_HOST, 3, &index),
                     FILCH_UNKNOWN_ORDINAL);
    assert_int_equal(fl_pool_by_ordinal(&pool, FILCH_BACKEND_CUDA, 0, &index),
                     FILCH_UNKNOWN_ORDINAL);
    assert_int_equal(fl_pool_by_ordinal(&pool, FILCH_BACKEND_SIM, 0, &index),
                     FILCH_UNKNOWN_ORDINAL);
    assert_int_equal(fl_pool_by_ordinal(&pool, (filch_backend)0, 0, &index),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_pool_by_ordinal(&pool, (filch_backend)4, 0, &index),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_pool_by_ordinal(&pool, FILCH_BACKEND_HOST, 0, NULL),
                     FILCH_INVALID_ARGUMENT);
    assert_int_equal(index, 77);
    pool_end(&pool);
}

static void test_info_sizes(void **state)
{
    struct {
        filch_device_info info;
        unsigned char guard[64];
    } larger;
    filch_device_info info = {.size = sizeof info};
    fl_pool pool;

    (void)state;
    pool_make(&pool, "host:1");
    info.index = 77;
    assert_int_equal(fl_pool_info(&pool, 1, &info), FILCH_BAD_INDEX);
    assert_int_equal(fl_pool_info(&pool, UINT32_MAX, &info), FILCH_BAD_INDEX);
    info.size = offsetof(filch_device_info, uuid) - 1;
    assert_int_equal(fl_pool_info(&pool, 0, &info), FILCH_INVALID_ARGUMENT);
    info.size = 0;
    assert_int_equal(fl_pool_info(&pool, 0, &info), FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_pool_info(&pool, 0, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(info.index, 77);
    /* A caller of the first version: what came later lies outside its record. */
    memset(&larger, 0x5a, sizeof larger);
    larger.info.size = offsetof(filch_device_info, uuid);
    assert_int_equal(fl_pool_info(&pool, 0, &larger.info), FILCH_OK);
    assert_int_equal(larger.info.size, offsetof(filch_device_info, uuid));
    assert_string_equal(larger.info.name, "host:0");
    for (const unsigned char *c = (const unsigned char *)larger.info.uuid;
         c < larger.guard + sizeof larger.guard; c++)
        assert_int_equal(*c, 0x5a);
    /* A caller of a later version. */
    memset(&larger, 0x5a, sizeof larger);
    larger.info.size = sizeof larger;
    assert_int_equal(fl_pool_info(&pool, 0, &larger.info), FILCH_OK);
    assert_int_equal(larger.info.size, sizeof larger);
    assert_string_equal(larger.info.name, "host:0");
    for (size_t i = 0; i < sizeof larger.guard; i++)
        assert_int_equal(larger.guard[i], 0x5a);
    pool_end(&pool);
}

static void test_best(void **state)
{
    fl_pool pool;

    (void)state;
    sim_make(&pool, "{\"name\":\"a\",\"speed\":5,\"memory\":100},"
                    "{\"name\":\"b\",\"speed\":9,\"memory\":300,\"score\":1},"
                    "{\"name\":\"c\",\"speed\":7,\"memory\":300},"
                    "{\"name\":\"d\",\"speed\":7,\"memory\":200}");
    assert_int_equal(fl_pool_best_memory(&pool), 1);
    assert_int_equal(fl_pool_best_score(&pool), 2);
    pool_end(&pool);

    /* All host devices share one place. */
    pool_make(&pool, "host:4");
    assert_int_equal(fl_pool_best_memory(&pool), 0);
    assert_int_equal(fl_pool_best_score(&pool), 0);
    pool_end(&pool);
}

typedef struct ratings_given {
    double ratings[3];
    uint32_t calls;
} ratings_given;

static double rate(const filch_device_info *info, void *user)
{
    ratings_given *rater = user;

    assert_int_equal(info->index, rater->calls);
    assert_int_equal(info->memory_free, 1000 + info->index);
    rater->calls++;
    return rater->ratings[info->index];
}

static void test_choose(void **state)
{
    static const struct {
        double ratings[3];
        filch_status status;
        uint32_t index;
    } cases[] = {
        {{1, 3, 2}, FILCH_OK, 1},
        {{2, 1, 2}, FILCH_OK, 0},
        {{NAN, -5, -6}, FILCH_OK, 1},
        {{NAN, NAN, -INFINITY}, FILCH_OK, 2},
        {{INFINITY, NAN, INFINITY}, FILCH_OK, 0},
        {{0, NAN, 1}, FILCH_OK, 2},
        {{NAN, NAN, NAN}, FILCH_NO_DEVICE, 77},
    };
    fl_pool pool;

    (void)state;
    sim_make(&pool, "{\"speed\":1,\"memory\":1000},{\"speed\":1,\"memory\":1001},"
                    "{\"speed\":1,\"memory\":1002}");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ratings_given rater = {.calls = 0};
        uint32_t index = 77;

        memcpy(rater.ratings, cases[i].ratings, sizeof rater.ratings);
        assert_int_equal(fl_pool_choose(&pool, rate, &rater, &index), cases[i].status);
        assert_int_equal(index, cases[i].index);
        assert_int_equal(rater.calls, 3);
    }
    uint32_t index = 77;
    assert_int_equal(fl_pool_choose(&pool, NULL, NULL, &index), FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_pool_choose(&pool, rate, NULL, NULL), FILCH_INVALID_ARGUMENT);
    pool_end(&pool);
}

static void test_next_in_order(void **state)
{
    fl_pool pool;

    (void)state;
    pool_make(&pool, "host:3");
    for (uint32_t i = 0; i < 30; i++)
        assert_int_equal(fl_pool_next(&pool), i % 3);
    pool_end(&pool);
}

#define CALLERS 4
#define CALLS 30000

typedef struct pool_caller {
    fl_pool *pool;
    uint32_t seen[5];
} pool_caller;

static int caller_run(void *arg)
{
    pool_caller *caller = arg;

    for (int i = 0; i < CALLS; i++)
        caller->seen[fl_pool_next(caller->pool)]++;
    return 0;
}

static void test_next_from_many_threads(void **state)
{
    pool_caller callers[CALLERS] = {{0}};
    fl_thread threads[CALLERS];
    fl_pool pool;

    (void)state;
    pool_make(&pool, "host:5");
    for (int i = 0; i < CALLERS; i++) {
        callers[i].pool = &pool;
        assert_int_equal(fl_thread_start(&threads[i], caller_run, &callers[i]), FILCH_OK);
    }
    for (int i = 0; i < CALLERS; i++)
        fl_thread_join(threads[i]);
    for (int d = 0; d < 5; d++) {
        uint32_t seen = 0;

        for (int i = 0; i < CALLERS; i++)
            seen += callers[i].seen[d];
        assert_int_equal(seen, CALLERS * CALLS / 5);
    }
    pool_end(&pool);
}

static void test_out_of_memory(void **state)
{
    char sim[64];
    const char *path = file_make("{\"devices\":[{\"speed\":1,\"count\":20},{\"speed\":2}]}");
    const char *const specs[] = {NULL, "host:20,host:2x2", sim};

    (void)state;
    (void)snprintf(sim, sizeof sim, "sim:%s", path);
    for (size_t s = 0; s < sizeof specs / sizeof specs[0]; s++) {
        filch_status status = FILCH_OUT_OF_MEMORY;

        for (int n = 0; status != FILCH_OK; n++) {
            counted_memory counted = {0, n};
            fl_memory memory = counted_table(&counted);
            filch_error error = FILCH_ERROR_INIT;
            fl_discovery how = {.memory = &memory, .error = &error};
            fl_pool pool;

            status = fl_pool_open(&pool, specs[s], &how);
            if (status == FILCH_OK) {
                assert_true(n > 2);
                fl_pool_close(&pool, &memory);
            } else {
                assert_int_equal(status, FILCH_OUT_OF_MEMORY);
                assert_int_equal(error.status, FILCH_OUT_OF_MEMORY);
                assert_true(error.text[0] != '\0');
                assert_int_equal(pool.count, 0);
            }
            assert_int_equal(counted.live_bytes, 0);
        }
    }
    assert_int_equal(unlink(path), 0);
}

static void test_the_table_of_backends(void **state)
{
    size_t count = 0;

    (void)state;
    for (const fl_backend *const *backend = fl_backends(); *backend != NULL; backend++) {
        count++;
        assert_ptr_equal(fl_backend_by_kind((*backend)->kind), *backend);
        assert_non_null((*backend)->name);
        assert_non_null((*backend)->device->enumerate);
        assert_non_null((*backend)->device->close);
        assert_non_null((*backend)->device->memory_free);
    }
    assert_true(count >= 2);
    assert_string_equal(fl_backend_by_kind(FILCH_BACKEND_HOST)->name, "host");
    assert_string_equal(fl_backend_by_kind(FILCH_BACKEND_SIM)->name, "sim");
    assert_null(fl_backend_by_kind((filch_backend)0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_default_is_the_hosts_cores),
        cmocka_unit_test(test_numbering),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_by_ordinal),
        cmocka_unit_test(test_info_sizes),
        cmocka_unit_test(test_best),
        cmocka_unit_test(test_choose),
        cmocka_unit_test(test_next_in_order),
        cmocka_unit_test(test_next_from_many_threads),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_the_table_of_backends),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
