/* SPDX-License-Identifier: Apache-2.0 */
/* Which copy of a tile is copied, and which block leaves. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory/route/plan.h"
#include "memory/tiles/evict.h"

#define MB ((uint64_t)1000000)
#define HOST                                          \
    {                                                 \
        .place = 0, .is_straight = true, .rate = 50e9 \
    }
#define PEER(p)                                          \
    {                                                    \
        .place = (p), .is_straight = true, .rate = 400e9 \
    }

static const fl_receiver idle = {.host_rate = 50e9};

static void a_peer_goes_before_the_host(void **state)
{
    const fl_origin sources[] = {HOST, PEER(2)};
    (void)state;
    fl_plan plan = fl_plan_copy(sources, 2, idle, 100 * MB);
    assert_int_equal(plan.source, 1);
    assert_false(plan.is_staged);
    assert_true(plan.seconds > 0.0002 && plan.seconds < 0.0003);
    const fl_origin unmeasured[] = {{.place = 0, .is_straight = true},
                                    {.place = 2, .is_straight = true}};
    assert_int_equal(fl_plan_copy(unmeasured, 2, (fl_receiver){0}, MB).source, 1);
}

static void a_busy_peer_does_not(void **state)
{
    fl_origin sources[] = {HOST, PEER(2), PEER(3)};
    (void)state;
    sources[1].queued = 100 * MB;
    assert_int_equal(fl_plan_copy(sources, 3, idle, 100 * MB).source, 2);
    sources[2].queued = 200 * MB;
    assert_int_equal(fl_plan_copy(sources, 3, idle, 100 * MB).source, 1);
    sources[1].queued = sources[2].queued = 2000 * MB; /* 5 ms, against 2: the host is spared */
    assert_int_not_equal(fl_plan_copy(sources, 3, idle, 100 * MB).source, 0);
    sources[1].queued = sources[2].queued = 4000 * MB;
    assert_int_equal(fl_plan_copy(sources, 3, idle, 100 * MB).source, 0);
    sources[1].rate = sources[2].rate = 40e9; /* slower than the host's way: it is not */
    sources[1].queued = sources[2].queued = 20 * MB;
    assert_int_equal(fl_plan_copy(sources, 3, idle, 100 * MB).source, 0);
}

/* The receiver's own lane is in the way of all. */
static void the_receivers_queue_decides_nothing(void **state)
{
    const fl_origin sources[] = {HOST, PEER(2)};
    const fl_receiver busy = {.host_rate = 50e9, .host_queued = 1000 * MB};
    (void)state;
    fl_plan plan = fl_plan_copy(sources, 2, busy, 100 * MB);
    assert_int_equal(plan.source, 1);
    assert_true(plan.seconds > 0.02);
}

static void a_stop_in_the_hosts_memory_is_the_last_resort(void **state)
{
    const fl_origin far = {.place = 2, .rate = 50e9};
    const fl_origin sources[] = {far, HOST},
                    slow[] = {far, {.place = 3, .is_straight = true, .rate = 1e9}};
    (void)state;
    fl_plan plan = fl_plan_copy(&far, 1, idle, 100 * MB);
    assert_int_equal(plan.source, 0);
    assert_true(plan.is_staged);
    assert_int_equal(fl_plan_copy(sources, 2, idle, 100 * MB).source, 1);
    plan = fl_plan_copy(slow, 2, idle, 100 * MB); /* unless the straight way is worse than two */
    assert_int_equal(plan.source, 0);
    assert_true(plan.is_staged);
    assert_int_equal(fl_plan_copy(sources, 0, idle, MB).source, FL_PLAN_NONE);
}

/* The second copy begins when the first piece has come: two ways of 2 ms take little longer than
 * one. */
static void two_copies_overlap(void **state)
{
    const fl_origin far = {.place = 2, .rate = 50e9};
    const fl_origin slow = {.place = 2, .rate = 10e9};
    fl_receiver busy = idle;
    (void)state;
    fl_plan plan = fl_plan_copy(&far, 1, idle, 100 * MB);
    assert_true(plan.pieces > 4);
    assert_true(plan.seconds > 0.002 && plan.seconds < 0.0025);
    plan = fl_plan_copy(&slow, 1, idle, 100 * MB); /* as long as the slower one */
    assert_true(plan.seconds > 0.01 && plan.seconds < 0.0105);
    busy.host_queued = 200 * MB; /* the first copy is done before the second may begin */
    plan = fl_plan_copy(&far, 1, busy, 100 * MB);
    assert_true(plan.seconds > 0.0059 && plan.seconds < 0.0061);
    assert_int_equal(fl_plan_copy(&far, 1, idle, 1000).pieces, 1);
}

/* From a place that the receiver cannot reach, over one of two that it can. */
static void a_relay_goes_before_the_host(void **state)
{
    fl_relay relays[] = {{.place = 3, .in_rate = 100e9, .out_rate = 400e9},
                         {.place = 4, .in_rate = 400e9, .out_rate = 400e9}};
    const fl_origin sources[] = {HOST,
                                 {.place = 2, .rate = 50e9, .relays = relays, .relay_count = 2}};
    (void)state;
    fl_plan plan = fl_plan_copy(sources, 2, idle, 100 * MB);
    assert_int_equal(plan.source, 1);
    assert_int_equal(plan.relay, 4);
    assert_false(plan.is_staged);
    assert_true(plan.pieces > 4);
    assert_true(plan.seconds > 0.00025 && plan.seconds < 0.0003); /* and one piece */
    relays[1].out_queued = 400 * MB;                              /* 1 ms */
    plan = fl_plan_copy(sources, 2, idle, 100 * MB);
    assert_int_equal(plan.relay, 3);
    relays[0].in_queued = 300 * MB; /* 3 ms */
    relays[1].in_queued = 1600 * MB;
    plan = fl_plan_copy(sources, 2, idle, 100 * MB);
    assert_int_equal(plan.source, 0);
    assert_int_equal(plan.relay, 0);
    assert_int_equal(plan.pieces, 1);
    plan = fl_plan_copy(&sources[1], 1, idle, 100 * MB); /* by two copies over the host */
    assert_int_equal(plan.relay, 0);
    assert_true(plan.is_staged);
}

/* A straight way that is slow, or as good but for what measurements differ by. */
static void a_relay_must_be_better_than_a_straight_way(void **state)
{
    const fl_relay relay = {.place = 3, .in_rate = 440e9, .out_rate = 440e9};
    fl_origin near = PEER(2);
    (void)state;
    near.relays = &relay;
    near.relay_count = 1;
    assert_int_equal(fl_plan_copy(&near, 1, idle, 1000 * MB).relay, 0);
    near.rate = 100e9;
    assert_int_equal(fl_plan_copy(&near, 1, idle, 1000 * MB).relay, 3);
    /* Where the time goes into waiting, what it takes to copy decides nothing. */
    const fl_receiver busy = {.host_rate = 50e9, .host_queued = 10000 * MB};
    assert_int_equal(fl_plan_copy(&near, 1, busy, 1000 * MB).relay, 0);
}

static void the_farthest_next_use_leaves_first(void **state)
{
    const fl_candidate empty = {.is_valid = false, .next = 1};
    const fl_candidate never = {.is_valid = true, .next = FL_ACCESS_NEVER};
    const fl_candidate never_only = {.is_valid = true, .is_only = true, .next = FL_ACCESS_NEVER};
    const fl_candidate far = {.is_valid = true, .next = 100}, near = {.is_valid = true, .next = 40};
    const fl_candidate far_only = {.is_valid = true, .is_only = true, .next = 100};
    const fl_candidate old = {.is_valid = true, .next = FL_ACCESS_UNKNOWN, .unused = 70};
    const fl_candidate *order[] = {&empty, &never, &never_only, &far, &old, &far_only, &near};
    (void)state;
    for (size_t i = 0; i + 1 < sizeof order / sizeof *order; i++)
        assert_true(fl_candidate_score(*order[i]) > fl_candidate_score(*order[i + 1]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_peer_goes_before_the_host),
        cmocka_unit_test(a_busy_peer_does_not),
        cmocka_unit_test(the_receivers_queue_decides_nothing),
        cmocka_unit_test(a_stop_in_the_hosts_memory_is_the_last_resort),
        cmocka_unit_test(two_copies_overlap),
        cmocka_unit_test(a_relay_goes_before_the_host),
        cmocka_unit_test(a_relay_must_be_better_than_a_straight_way),
        cmocka_unit_test(the_farthest_next_use_leaves_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
