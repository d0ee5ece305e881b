/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>

#include "random.h"
#include "sched/account/bound.h"

enum { MOST = 8 };

typedef struct table {
    double ns[MOST][MOST]; /* by kind and device */
} table;

static double look(const void *user, uint32_t kind, uint32_t device)
{
    return ((const table *)user)->ns[kind][device];
}

static void assert_bound(const table *t, uint32_t kinds, uint32_t devices, double expected)
{
    double bound = fl_bound_area(look, t, kinds, devices);

    assert_true(fabs(bound - expected) <= 1e-12 * expected);
}

static void test_one_kind(void **state)
{
    table t = {{{6.0, 3.0, INFINITY}}};

    (void)state;
    assert_bound(&t, 1, 1, 6.0);
    assert_bound(&t, 1, 2, 2.0);
    assert_bound(&t, 1, 3, 2.0);
    assert_bound(&t, 0, 3, 0.0);
    t.ns[0][0] = t.ns[0][1] = INFINITY;
    assert_bound(&t, 1, 3, 0.0);
}

/* One device is twice as fast as the other at everything. */
static void test_related_devices(void **state)
{
    const table t = {{{6.0, 3.0}, {20.0, 10.0}, {1.0, 0.5}}};

    (void)state;
    assert_bound(&t, 3, 2, 9.0);
}

/* Two devices and any kinds: by the ratio of their times the first kinds go to the one device, the
 * last ones to the other, and one is divided so that both end together. */
static double exact_of_two(const table *t, uint32_t kinds)
{
    uint32_t order[MOST];
    double first = 0.0, second = 0.0;

    for (uint32_t k = 0; k < kinds; k++) {
        uint32_t at = k;

        for (; at > 0 &&
               t->ns[order[at - 1]][0] * t->ns[k][1] > t->ns[k][0] * t->ns[order[at - 1]][1];
             at--)
            order[at] = order[at - 1];
        order[at] = k;
        second += t->ns[k][1];
    }
    for (uint32_t i = 0; i < kinds; i++) {
        double a = t->ns[order[i]][0], b = t->ns[order[i]][1];

        if (first + a >= second - b) /* first + x a = second - x b */
            return first + a * (second - first) / (a + b);
        first += a;
        second -= b;
    }
    return first;
}

static void test_unlike_devices(void **state)
{
    fl_random random;
    double worst = 1.0;

    (void)state;
    fl_random_init(&random, 15, 0);
    for (int i = 0; i < 2000; i++) {
        uint32_t kinds = 2 + fl_random_below(&random, MOST - 1);
        table t;

        for (uint32_t k = 0; k < kinds; k++) {
            t.ns[k][0] = exp(6.0 * fl_random_unit(&random));
            t.ns[k][1] = exp(6.0 * fl_random_unit(&random));
        }

        double exact = exact_of_two(&t, kinds), bound = fl_bound_area(look, &t, kinds, 2);

        assert_true(bound <= exact * (1.0 + 1e-9));
        worst = fmin(worst, bound / exact);
    }
    assert_true(worst > 0.9);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_kind),
        cmocka_unit_test(test_related_devices),
        cmocka_unit_test(test_unlike_devices),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
