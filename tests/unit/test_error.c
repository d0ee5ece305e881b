/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

static const fl_fault whole = {
    .status = FILCH_BACKEND,
    .native_code = 719,
    .line = 12,
    .native_name = "CUDA_ERROR_LAUNCH_FAILED",
    .call = "cuLaunchKernel",
    .device = "cuda:1",
    .label = "potrf(3)",
};

static void fill_copies_all_that_is_known(void **state)
{
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    assert_int_equal(fl_error_fill(&error, whole, "tile %d of %s", 3, "A"), FILCH_BACKEND);
    assert_int_equal(error.size, sizeof error);
    assert_int_equal(error.status, FILCH_BACKEND);
    assert_int_equal(error.native_code, 719);
    assert_int_equal(error.line, 12);
    assert_string_equal(error.native_name, "CUDA_ERROR_LAUNCH_FAILED");
    assert_string_equal(error.call, "cuLaunchKernel");
    assert_string_equal(error.device, "cuda:1");
    assert_string_equal(error.label, "potrf(3)");
    assert_string_equal(error.text, "tile 3 of A");
}

static void what_does_not_apply_is_empty(void **state)
{
    filch_error error;

    (void)state;
    memset(&error, 'x', sizeof error);
    error.size = sizeof error;
    assert_int_equal(fl_error_fill(&error, (fl_fault){.status = FILCH_CYCLE}, "a"), FILCH_CYCLE);
    assert_int_equal(error.native_code, 0);
    assert_int_equal(error.line, 0);
    assert_string_equal(error.native_name, "");
    assert_string_equal(error.call, "");
    assert_string_equal(error.device, "");
    assert_string_equal(error.label, "");
}

static void null_records_still_return_the_status(void **state)
{
    (void)state;
    assert_int_equal(fl_error_fill(NULL, whole, "%s", "x"), FILCH_BACKEND);
    assert_int_equal(fl_error_record(NULL, whole, "%s", "x"), FILCH_BACKEND);
    fl_error_store(NULL, &(filch_error)FILCH_ERROR_INIT);
}

static void long_texts_are_cut_and_terminated(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    char text[1000];
    fl_fault fault = whole;

    (void)state;
    memset(text, 'y', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    fault.native_name = fault.call = fault.device = fault.label = text;
    (void)fl_error_fill(&error, fault, "%s", text);
    assert_int_equal(strlen(error.native_name), sizeof error.native_name - 1);
    assert_int_equal(strlen(error.call), sizeof error.call - 1);
    assert_int_equal(strlen(error.device), sizeof error.device - 1);
    assert_int_equal(strlen(error.label), sizeof error.label - 1);
    assert_int_equal(strlen(error.text), sizeof error.text - 1);
}

/* A caller built with a shorter (or nonsensical) record gets nothing written past its size. */
static void every_smaller_record_is_honoured(void **state)
{
    (void)state;
    for (size_t size = 0; size <= sizeof(filch_error); size++) {
        unsigned char *bytes = malloc(sizeof(filch_error));
        filch_error *error = (filch_error *)bytes;

        memset(bytes, 0xee, sizeof *error);
        error->size = size;
        (void)fl_error_fill(error, whole, "text");
        assert_int_equal(error->size, size);
        for (size_t i = size > sizeof size ? size : sizeof size; i < sizeof *error; i++)
            assert_int_equal(bytes[i], 0xee);
        if (size >= offsetof(filch_error, native_code))
            assert_int_equal(error->status, FILCH_BACKEND);
        if (size >= offsetof(filch_error, text))
            assert_string_equal(error->label, "potrf(3)");
        if (size == sizeof *error)
            assert_string_equal(error->text, "text");
        free(bytes);
    }
}

static void copies_between_versions_keep_to_both_sizes(void **state)
{
    struct {
        filch_error error;
        unsigned char newer[16];
    } large;
    filch_error from = FILCH_ERROR_INIT;
    filch_error to = FILCH_ERROR_INIT;

    (void)state;
    (void)fl_error_fill(&from, whole, "text");
    memset(&large, 0xee, sizeof large);
    large.error.size = sizeof large;
    fl_error_copy(&large.error, &from);
    assert_string_equal(large.error.text, "text");
    assert_int_equal(large.newer[0], 0xee);
    /* An older source has no text to give. */
    from.size = offsetof(filch_error, text);
    fl_error_copy(&to, &from);
    assert_string_equal(to.label, "potrf(3)");
    assert_string_equal(to.text, "");
}

static void each_thread_fetches_its_own_newest_record(void **state)
{
    fl_error_log log;
    filch_error error = FILCH_ERROR_INIT;

    (void)state;
    assert_int_equal(fl_error_log_init(&log), FILCH_OK);
    assert_int_equal(fl_error_fetch(&log, &error), FILCH_NOT_FOUND);
    assert_int_equal(error.status, FILCH_OK);
    for (int i = 0; i < 3 * FL_ERROR_LOG_SLOTS; i++)
        assert_int_equal(fl_error_record(&log, whole, "number %d", i), FILCH_BACKEND);
    assert_int_equal(fl_error_fetch(&log, &error), FILCH_OK);
    assert_string_equal(error.text, "number 191");
    assert_string_equal(error.call, "cuLaunchKernel");
    /* Fetching takes nothing away. */
    error = (filch_error)FILCH_ERROR_INIT;
    assert_int_equal(fl_error_fetch(&log, &error), FILCH_OK);
    assert_string_equal(error.text, "number 191");
    /* A shorter record stored later leaves nothing of the earlier one behind. */
    error = (filch_error)FILCH_ERROR_INIT;
    error.status = FILCH_DATA;
    error.size = offsetof(filch_error, native_code);
    fl_error_store(&log, &error);
    error = (filch_error)FILCH_ERROR_INIT;
    assert_int_equal(fl_error_fetch(&log, &error), FILCH_OK);
    assert_int_equal(error.status, FILCH_DATA);
    assert_string_equal(error.text, "");
    fl_error_log_fini(&log);
}

typedef struct crowd {
    fl_error_log log;
    fl_mutex mutex;
    fl_cond cond;
    int turn;
    bool look;
} crowd;

typedef struct member {
    crowd *all;
    int number;
    filch_status fetched;
    filch_error error;
} member;

/* Records in the order of the members' numbers, then waits until all have. */
static int record_and_fetch(void *arg)
{
    member *me = arg;
    crowd *all = me->all;

    fl_mutex_lock(&all->mutex);
    while (all->turn != me->number)
        fl_cond_wait(&all->cond, &all->mutex);
    (void)fl_error_record(&all->log, whole, "first of %d", me->number);
    (void)fl_error_record(&all->log, whole, "member %d", me->number);
    all->turn++;
    fl_cond_broadcast(&all->cond);
    while (!all->look)
        fl_cond_wait(&all->cond, &all->mutex);
    fl_mutex_unlock(&all->mutex);
    me->error = (filch_error)FILCH_ERROR_INIT;
    me->fetched = fl_error_fetch(&all->log, &me->error);
    return 0;
}

/* More failing threads than slots: only those that failed longest ago have lost their record. */
static void the_oldest_threads_records_give_way(void **state)
{
    enum { MEMBERS = FL_ERROR_LOG_SLOTS + 3 };
    static crowd all;
    static member members[MEMBERS];
    static fl_thread threads[MEMBERS];

    (void)state;
    assert_int_equal(fl_error_log_init(&all.log), FILCH_OK);
    assert_int_equal(fl_mutex_init(&all.mutex), FILCH_OK);
    assert_int_equal(fl_cond_init(&all.cond), FILCH_OK);
    for (int i = 0; i < MEMBERS; i++) {
        members[i] = (member){.all = &all, .number = i};
        assert_int_equal(fl_thread_start(&threads[i], record_and_fetch, &members[i]), FILCH_OK);
    }
    fl_mutex_lock(&all.mutex);
    while (all.turn < MEMBERS)
        fl_cond_wait(&all.cond, &all.mutex);
    all.look = true;
    fl_cond_broadcast(&all.cond);
    fl_mutex_unlock(&all.mutex);
    for (int i = 0; i < MEMBERS; i++)
        fl_thread_join(threads[i]);
    for (int i = 0; i < MEMBERS; i++) {
        char text[32];

        if (i < MEMBERS - FL_ERROR_LOG_SLOTS) {
            assert_int_equal(members[i].fetched, FILCH_NOT_FOUND);
            continue;
        }
        (void)snprintf(text, sizeof text, "member %d", i);
        assert_int_equal(members[i].fetched, FILCH_OK);
        assert_string_equal(members[i].error.text, text);
    }
    fl_cond_fini(&all.cond);
    fl_mutex_fini(&all.mutex);
    fl_error_log_fini(&all.log);
}

static int record_often(void *arg)
{
    member *me = arg;

    me->fetched = FILCH_OK;
    for (int i = 0; i < 2000 && me->fetched == FILCH_OK; i++) {
        const fl_fault fault = {.status = FILCH_DATA, .line = me->number * 10000 + i};

        (void)fl_error_record(&me->all->log, fault, "%d", me->number);
        me->error = (filch_error)FILCH_ERROR_INIT;
        me->fetched = fl_error_fetch(&me->all->log, &me->error);
        if (me->error.line != fault.line)
            me->fetched = FILCH_INTERNAL;
    }
    return 0;
}

static void concurrent_threads_never_see_each_others_records(void **state)
{
    static crowd all;
    member members[4];
    fl_thread threads[4];

    (void)state;
    assert_int_equal(fl_error_log_init(&all.log), FILCH_OK);
    for (int i = 0; i < 4; i++) {
        members[i] = (member){.all = &all, .number = i};
        assert_int_equal(fl_thread_start(&threads[i], record_often, &members[i]), FILCH_OK);
    }
    for (int i = 0; i < 4; i++) {
        fl_thread_join(threads[i]);
        assert_int_equal(members[i].fetched, FILCH_OK);
    }
    fl_error_log_fini(&all.log);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fill_copies_all_that_is_known),
        cmocka_unit_test(what_does_not_apply_is_empty),
        cmocka_unit_test(null_records_still_return_the_status),
        cmocka_unit_test(long_texts_are_cut_and_terminated),
        cmocka_unit_test(every_smaller_record_is_honoured),
        cmocka_unit_test(copies_between_versions_keep_to_both_sizes),
        cmocka_unit_test(each_thread_fetches_its_own_newest_record),
        cmocka_unit_test(the_oldest_threads_records_give_way),
        cmocka_unit_test(concurrent_threads_never_see_each_others_records),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
