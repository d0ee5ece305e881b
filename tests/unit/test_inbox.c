/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "sync/inbox.h"
#include "sync/mailbox.h"

static void test_layout(void **state)
{
    (void)state;
    assert_int_equal(sizeof(fl_link), sizeof(void *));
    assert_int_equal(sizeof(fl_inbox), 64);
    assert_int_equal(alignof(fl_inbox), 64);
    /* Putters, takers and the notes are on lines of their own. */
    assert_int_equal(alignof(fl_mailbox), 64);
    assert_int_equal(offsetof(fl_mailbox, head), 0);
    assert_int_equal(offsetof(fl_mailbox, tail), 64);
    assert_int_equal(offsetof(fl_mailbox, cells), 128);
    assert_int_equal(sizeof(fl_mailbox), 128 + 16 * FL_MAILBOX_NOTES);
}

static void test_inbox_keeps_order(void **state)
{
    (void)state;
    fl_inbox inbox;
    fl_link links[5];
    fl_inbox_init(&inbox);
    assert_true(fl_inbox_is_empty(&inbox));
    assert_null(fl_inbox_drain(&inbox));
    for (int lap = 0; lap < 3; lap++) {
        for (int i = 0; i < 5; i++) {
            /* Only the first push finds it empty. */
            assert_int_equal(fl_inbox_push(&inbox, &links[i]), i == 0);
            assert_false(fl_inbox_is_empty(&inbox));
        }
        fl_link *link = fl_inbox_drain(&inbox);
        for (int i = 0; i < 5; i++, link = link->next)
            assert_ptr_equal(link, &links[i]);
        assert_null(link);
        assert_true(fl_inbox_is_empty(&inbox));
        assert_null(fl_inbox_drain(&inbox));
    }
}

static void test_inbox_chains(void **state)
{
    (void)state;
    fl_inbox inbox;
    fl_link links[7];
    fl_inbox_init(&inbox);
    for (int i = 0; i < 6; i++)
        links[i].next = &links[i + 1];
    /* 0 1 2 as a chain, 3 alone, 4 5 6 as a chain; what the last link pointed to does not matter.
     */
    assert_true(fl_inbox_push_chain(&inbox, &links[0], &links[2]));
    assert_false(fl_inbox_push(&inbox, &links[3]));
    links[6].next = &links[0];
    assert_false(fl_inbox_push_chain(&inbox, &links[4], &links[6]));
    fl_link *link = fl_inbox_drain(&inbox);
    for (int i = 0; i < 7; i++, link = link->next)
        assert_ptr_equal(link, &links[i]);
    assert_null(link);
}

static void test_mailbox_is_a_queue(void **state)
{
    (void)state;
    fl_mailbox mailbox;
    uint64_t note = 5;
    fl_mailbox_init(&mailbox);
    assert_true(fl_mailbox_is_empty(&mailbox));
    assert_false(fl_mailbox_take(&mailbox, &note));
    assert_int_equal(note, 5);
    /* Many laps, at every fill. */
    uint64_t put = 0, taken = 0;
    for (uint64_t lap = 0; lap < 1000; lap++) {
        for (uint64_t i = 0; i <= lap % FL_MAILBOX_NOTES; i++)
            assert_true(fl_mailbox_put(&mailbox, ~put++));
        assert_false(fl_mailbox_is_empty(&mailbox));
        while (fl_mailbox_take(&mailbox, &note))
            assert_int_equal(note, ~taken++);
        assert_int_equal(taken, put);
        assert_true(fl_mailbox_is_empty(&mailbox));
    }
}

static void test_full_mailbox_drops(void **state)
{
    (void)state;
    fl_mailbox mailbox;
    uint64_t note;
    fl_mailbox_init(&mailbox);
    for (uint64_t i = 0; i < FL_MAILBOX_NOTES; i++)
        assert_true(fl_mailbox_put(&mailbox, i));
    assert_false(fl_mailbox_put(&mailbox, 999));
    assert_true(fl_mailbox_take(&mailbox, &note));
    assert_int_equal(note, 0);
    assert_true(fl_mailbox_put(&mailbox, FL_MAILBOX_NOTES));
    assert_false(fl_mailbox_put(&mailbox, 999));
    for (uint64_t i = 1; i <= FL_MAILBOX_NOTES; i++) {
        assert_true(fl_mailbox_take(&mailbox, &note));
        assert_int_equal(note, i);
    }
    assert_false(fl_mailbox_take(&mailbox, &note));
}

/* A put that has its cell but has not filled it: later notes wait behind it, and a sleeper that
 * re-checks does not find the mailbox empty. */
static void test_put_in_progress(void **state)
{
    (void)state;
    fl_mailbox mailbox;
    uint64_t note;
    fl_mailbox_init(&mailbox);
    atomic_store(&mailbox.head, 1);
    assert_true(fl_mailbox_put(&mailbox, 2));
    assert_false(fl_mailbox_is_empty(&mailbox));
    assert_false(fl_mailbox_take(&mailbox, &note));
    atomic_store(&mailbox.cells[0].note, 1);
    atomic_store(&mailbox.cells[0].turn, 1);
    assert_true(fl_mailbox_take(&mailbox, &note));
    assert_int_equal(note, 1);
    assert_true(fl_mailbox_take(&mailbox, &note));
    assert_int_equal(note, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_layout),
        cmocka_unit_test(test_inbox_keeps_order),
        cmocka_unit_test(test_inbox_chains),
        cmocka_unit_test(test_mailbox_is_a_queue),
        cmocka_unit_test(test_full_mailbox_drops),
        cmocka_unit_test(test_put_in_progress),
    };
    return cmocka_run_group_tests_name("inbox", tests, NULL, NULL);
}
