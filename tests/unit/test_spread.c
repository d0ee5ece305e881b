/* SPDX-License-Identifier: Apache-2.0 */
/* Who sends to whom in a broadcast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "memory/route/spread.h"
#include "random.h"

enum { PLACES = 9, MANY = 33 };

/* Of the machine in question, by places. */
static bool is_straight[MANY][MANY];
static int32_t ranks[MANY][MANY];
static double rates[MANY][MANY];
static fl_spread_node nodes[MANY + 1];

static fl_spread_link link(void *user, uint32_t from, uint32_t to)
{
    (void)user;
    assert_true(from != 0 && to != 0 && from != to);
    return (fl_spread_link){is_straight[from][to], ranks[from][to], rates[from][to]};
}

static void join_all(bool joined)
{
    for (uint32_t a = 0; a < MANY; a++) {
        for (uint32_t b = 0; b < MANY; b++) {
            is_straight[a][b] = joined && a != b;
            ranks[a][b] = 0;
            rates[a][b] = 0;
        }
    }
}

static void join(uint32_t a, uint32_t b, int32_t rank)
{
    is_straight[a][b] = is_straight[b][a] = true;
    ranks[a][b] = ranks[b][a] = rank;
}

/* Every wanted place is there once, behind its sender, and no copy goes where it cannot. */
static void check(const fl_spread *spread, uint32_t places, const bool *has, const bool *wants)
{
    uint32_t seen[MANY] = {0}, depth = 0, fanout = 1;
    for (uint32_t i = 0; i < spread->count; i++) {
        const fl_spread_node *node = &spread->nodes[i];
        uint32_t children = 0;
        for (uint32_t k = 0; k < spread->count; k++)
            children += spread->nodes[k].parent == i;
        assert_int_equal(node->children, children);
        fanout = node->place != 0 && children > fanout ? children : fanout;
        depth = node->depth > depth ? node->depth : depth;
        assert_int_equal(seen[node->place]++, 0);
        assert_int_equal(node->parent == FL_SPREAD_ROOT, has[node->place]);
        assert_int_equal(node->is_relay, !has[node->place] && !wants[node->place]);
        if (node->parent == FL_SPREAD_ROOT) {
            assert_int_equal(node->depth, 0);
            continue;
        }
        assert_true(node->parent < i);
        const fl_spread_node *sender = &spread->nodes[node->parent];
        assert_int_equal(node->depth, sender->depth + 1);
        assert_true(node->place == 0 || sender->place == 0 ||
                    is_straight[sender->place][node->place]);
    }
    for (uint32_t place = 0; place < places; place++)
        assert_true(!wants[place] || seen[place] == 1);
    assert_int_equal(spread->depth, depth);
    assert_int_equal(spread->fanout, fanout);
}

static fl_spread plan(uint32_t places, const bool *has, const bool *wants, filch_broadcast_way way)
{
    fl_spread spread = {.nodes = nodes};
    fl_spread_plan(&spread, places, has, wants, way, link, NULL);
    check(&spread, places, has, wants);
    return spread;
}

static uint32_t sender_of(const fl_spread *spread, uint32_t place)
{
    for (uint32_t i = 0; i < spread->count; i++) {
        if (spread->nodes[i].place == place)
            return spread->nodes[i].parent == FL_SPREAD_ROOT
                       ? place
                       : spread->nodes[spread->nodes[i].parent].place;
    }
    fail_msg("place %u is not there", place);
    return 0;
}

static void a_chain_hands_on_once(void **state)
{
    const bool has[PLACES] = {[3] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 1, 1, 1, 1};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(spread.depth, 7);
    assert_int_equal(spread.fanout, 1);
}

static void a_tree_hands_on_twice(void **state)
{
    const bool has[PLACES] = {[1] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 1, 1, 1, 0};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_TREE);
    assert_int_equal(spread.depth, 2);
    assert_int_equal(spread.fanout, 2);
}

static void direct_is_from_who_has_it(void **state)
{
    const bool has[PLACES] = {[2] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_DIRECT);
    assert_int_equal(spread.depth, 1);
    assert_int_equal(spread.fanout, 3);
}

/* The host sends once, also where the devices could all be served by it. */
static void from_the_host_it_goes_on_between_devices(void **state)
{
    const bool has[PLACES] = {true}, wants[PLACES] = {0, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(spread.nodes[0].children, 1);
    assert_int_equal(spread.depth, 4);
}

/* Two owners serve half each. */
static void all_who_have_it_send(void **state)
{
    const bool has[PLACES] = {0, 1, 1}, wants[PLACES] = {0, 1, 1, 1, 1, 1, 1, 0, 0};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(spread.depth, 2);
}

static void better_ranks_come_first(void **state)
{
    const bool has[PLACES] = {[1] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)state;
    join_all(false);
    /* 1-4-2-3 is joined by the best links; the others are there, too. */
    for (uint32_t a = 1; a < 5; a++) {
        for (uint32_t b = a + 1; b < 5; b++)
            join(a, b, 5);
    }
    join(1, 4, 0);
    join(4, 2, 0);
    join(2, 3, 0);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(sender_of(&spread, 4), 1);
    assert_int_equal(sender_of(&spread, 2), 4);
    assert_int_equal(sender_of(&spread, 3), 2);
}

/* What was measured counts more than what the driver ranks; noise does not. */
static void measured_links_come_first(void **state)
{
    const bool has[PLACES] = {[1] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)state;
    join_all(true);
    for (uint32_t a = 1; a < 5; a++) {
        for (uint32_t b = 1; b < 5; b++)
            rates[a][b] = 100e9;
    }
    ranks[1][2] = 0;
    ranks[1][3] = ranks[1][4] = 1;
    rates[1][3] = 300e9;
    rates[3][4] = 110e9;
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(sender_of(&spread, 3), 1);
    assert_int_equal(sender_of(&spread, 2), 3); /* 110 is no more than 100 */
    assert_int_equal(sender_of(&spread, 4), 2);
}

/* Two pairs: across goes through the host's memory, once. */
static void what_is_apart_is_reached_through_the_host(void **state)
{
    const bool has[PLACES] = {[1] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 0, 0, 0, 0};
    (void)state;
    join_all(false);
    join(1, 2, 0);
    join(3, 4, 0);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(spread.count, 5);
    assert_int_equal(sender_of(&spread, 2), 1);
    assert_int_equal(sender_of(&spread, 3), 0);
    assert_int_equal(sender_of(&spread, 4), 3);
    join_all(false);
    spread = plan(PLACES, has, wants, FILCH_BROADCAST_TREE);
    for (uint32_t to = 2; to < 5; to++)
        assert_int_equal(sender_of(&spread, to), 0);
    assert_int_equal(sender_of(&spread, 0), 1);
    spread = plan(PLACES, has, wants, FILCH_BROADCAST_DIRECT);
    assert_int_equal(sender_of(&spread, 0), 1);
}

static void nothing_to_do_is_no_copy(void **state)
{
    const bool has[PLACES] = {0, 1, 1}, wants[PLACES] = {0, 1, 1, 0, 0, 0, 0, 0, 0};
    (void)state;
    join_all(true);
    assert_int_equal(plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN).depth, 0);
}

/* The host as a receiver like any other. */
static void the_host_may_want_it(void **state)
{
    const bool has[PLACES] = {[2] = true}, wants[PLACES] = {1, 0, 0, 1, 0, 0, 0, 0, 0};
    (void)state;
    join_all(true);
    fl_spread spread = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    assert_int_equal(spread.count, 3);
}

/* Large: a chain in many pieces, near the time of one copy; small: fewer steps in one piece. */
static void costs_tell_large_from_small(void **state)
{
    const bool has[PLACES] = {[1] = true}, wants[PLACES] = {0, 1, 1, 1, 1, 1, 1, 1, 1};
    static fl_spread_node others[PLACES + 1];
    const double gigabyte = 1073741824.0;
    (void)state;
    join_all(true);
    fl_spread chain = plan(PLACES, has, wants, FILCH_BROADCAST_CHAIN);
    fl_spread tree = {.nodes = others};
    fl_spread_plan(&tree, PLACES, has, wants, FILCH_BROADCAST_TREE, link, NULL);
    assert_true(fl_spread_pieces(&chain, 1u << 30) > 32);
    assert_true(fl_spread_cost(&chain, 1u << 30) < 1.3 * gigabyte);
    assert_true(fl_spread_cost(&chain, 1u << 30) < fl_spread_cost(&tree, 1u << 30));
    assert_int_equal(fl_spread_pieces(&tree, 1u << 16), 1);
    assert_true(fl_spread_cost(&tree, 1u << 16) < fl_spread_cost(&chain, 1u << 16));
    for (uint64_t bytes = 1; bytes != 0; bytes <<= 3)
        assert_in_range(fl_spread_pieces(&chain, bytes), 1, 64);
}

/* Any machine, whoever has it, whoever wants it. */
static void any_machine_is_served(void **state)
{
    uint64_t seed = 7;
    (void)state;
    for (int round = 0; round < 2000; round++) {
        bool has[MANY] = {false}, wants[MANY] = {false};
        uint32_t places = 2 + (uint32_t)(fl_splitmix64(&seed) % (round < 1000 ? 6 : MANY - 2));
        uint64_t joined = fl_splitmix64(&seed) % 4;
        join_all(false);
        for (uint32_t a = 1; a < places; a++) {
            for (uint32_t b = 1; b < places; b++) {
                is_straight[a][b] = a != b && fl_splitmix64(&seed) % 4 < joined;
                ranks[a][b] = (int32_t)(fl_splitmix64(&seed) % 3);
            }
        }
        for (uint32_t place = 0; place < places; place++) {
            has[place] = fl_splitmix64(&seed) % 4 == 0;
            wants[place] = fl_splitmix64(&seed) % 2 == 0;
        }
        has[fl_splitmix64(&seed) % places] = true;
        for (int way = FILCH_BROADCAST_CHAIN; way <= FILCH_BROADCAST_DIRECT; way++)
            (void)plan(places, has, wants, (filch_broadcast_way)way);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chain_hands_on_once),
        cmocka_unit_test(a_tree_hands_on_twice),
        cmocka_unit_test(direct_is_from_who_has_it),
        cmocka_unit_test(from_the_host_it_goes_on_between_devices),
        cmocka_unit_test(all_who_have_it_send),
        cmocka_unit_test(better_ranks_come_first),
        cmocka_unit_test(measured_links_come_first),
        cmocka_unit_test(what_is_apart_is_reached_through_the_host),
        cmocka_unit_test(nothing_to_do_is_no_copy),
        cmocka_unit_test(the_host_may_want_it),
        cmocka_unit_test(costs_tell_large_from_small),
        cmocka_unit_test(any_machine_is_served),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
