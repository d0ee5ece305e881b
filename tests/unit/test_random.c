/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "random.h"

/* The published reference output for this seed. */
static void splitmix64_gives_its_reference_sequence(void **state)
{
    static const uint64_t expected[] = {6457827717110365317u, 3203168211198807973u,
                                        9817491932198370423u, 4593380528125082431u,
                                        16408922859458223821u};
    uint64_t at = 1234567;

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_true(fl_splitmix64(&at) == expected[i]);
}

/* The upper halves of the published reference output for this state. */
static void xorshift64_star_gives_its_reference_sequence(void **state)
{
    static const uint32_t expected[] = {3540625527u, 2750739987u, 4037983143u, 1993361440u,
                                        3809424708u};
    fl_random random = {1234567};

    (void)state;
    for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++)
        assert_int_equal(fl_random_next(&random) >> 32, expected[i]);
}

static void seeds_and_streams_give_sequences_of_their_own(void **state)
{
    uint64_t first[64];

    (void)state;
    for (uint64_t i = 0; i < 64; i++) {
        fl_random random;
        fl_random again;

        fl_random_init(&random, i / 8, i % 8);
        fl_random_init(&again, i / 8, i % 8);
        assert_true(random.state != 0);
        first[i] = fl_random_next(&random);
        assert_true(first[i] == fl_random_next(&again));
        for (uint64_t j = 0; j < i; j++)
            assert_true(first[i] != first[j]);
    }
}

static void bounded_numbers_fill_their_range_evenly(void **state)
{
    int hits[7] = {0};
    fl_random random;

    (void)state;
    fl_random_init(&random, 5, 0);
    for (int i = 0; i < 70000; i++) {
        uint32_t at = fl_random_below(&random, 7);

        assert_true(at < 7);
        hits[at]++;
    }
    /* Five standard deviations of a binomial count around 10,000. */
    for (int i = 0; i < 7; i++)
        assert_in_range(hits[i], 9540, 10460);
    for (int i = 0; i < 100; i++) {
        assert_int_equal(fl_random_below(&random, 1), 0);
        assert_true(fl_random_below(&random, UINT32_MAX) < UINT32_MAX);
    }
}

static void unit_numbers_stay_below_one(void **state)
{
    double sum = 0.0;
    fl_random random;

    (void)state;
    fl_random_init(&random, 9, 0);
    for (int i = 0; i < 10000; i++) {
        double x = fl_random_unit(&random);

        assert_true(x >= 0.0 && x < 1.0);
        sum += x;
    }
    /* Five standard deviations of the mean. */
    assert_true(sum > 4855.0 && sum < 5145.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitmix64_gives_its_reference_sequence),
        cmocka_unit_test(xorshift64_star_gives_its_reference_sequence),
        cmocka_unit_test(seeds_and_streams_give_sequences_of_their_own),
        cmocka_unit_test(bounded_numbers_fill_their_range_evenly),
        cmocka_unit_test(unit_numbers_stay_below_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
