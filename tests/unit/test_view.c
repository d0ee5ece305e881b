/* SPDX-License-Identifier: Apache-2.0 */
/* Text of a frame of the live view. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "observe/view.h"

#define GIB ((uint64_t)1 << 30)

static const fl_view_device mixed[] = {
    {.name = "cuda:0",
     .on = 1,
     .rate = 20000,
     .has_memory = true,
     .memory = 3 * GIB / 2,
     .budget = 70 * GIB,
     .in = 3.4e9,
     .out = 25600},
    {.name = "host:0", .on = 0.4, .rate = 512.4, .ready = 12, .stolen = 3},
    {.name = "host:1", .on = 0.25, .off = 0.5, .rate = 0.5, .is_off = true},
    {.name = "host:2", .off = 1, .is_off = true},
};

static const fl_view mixed_view = {
    .seconds = 12.46, .running = 1, .done = 12, .ended = 1204000, .count = 4, .devices = mixed};

static void assert_drawn(const fl_view *view, uint32_t width, uint32_t height, const char *expected)
{
    char text[4096];
    size_t length = fl_view_draw(text, sizeof text, view, width, height);
    assert_string_equal(text, expected);
    assert_int_equal(length, strlen(expected));
}

static void test_widths(void **state)
{
    (void)state;
    assert_drawn(&mixed_view, 79, 24,
                 "filch  12.5 s  jobs: 1 running, 12 done  tasks: 1.20M ended, 20.5k/s\n"
                 "device                   busy tasks/s ready stolen       memory  in B/s out B/s\n"
                 "cuda:0 [###############] 100%   20.0k     0      0  1.50G/70.0G   3.40G   25.6k\n"
                 "host:0 [######.........]  40%     512    12      3\n"
                 "host:1 [####...xxxxxxxx]  25%    0.50     0      0\n"
                 "host:2 [xxxxxxxxxxxxxxx]  off       0     0      0\n");
    /* Bars grow up to 20 columns; from 4 columns on, lines are cut. */
    assert_drawn(
        &mixed_view, 1000, 24,
        "filch  12.5 s  jobs: 1 running, 12 done  tasks: 1.20M ended, 20.5k/s\n"
        "device                        busy tasks/s ready stolen       memory  in B/s out B/s\n"
        "cuda:0 [####################] 100%   20.0k     0      0  1.50G/70.0G   3.40G   25.6k\n"
        "host:0 [########............]  40%     512    12      3\n"
        "host:1 [#####.....xxxxxxxxxx]  25%    0.50     0      0\n"
        "host:2 [xxxxxxxxxxxxxxxxxxxx]  off       0     0      0\n");
    assert_drawn(&mixed_view, 30, 24,
                 "filch  12.5 s  jobs: 1 running\n"
                 "device        busy tasks/s rea\n"
                 "cuda:0 [####] 100%   20.0k\n"
                 "host:0 [##..]  40%     512\n"
                 "host:1 [#.xx]  25%    0.50\n"
                 "host:2 [xxxx]  off       0\n");
}

static void test_heights(void **state)
{
    (void)state;
    static const char head[] =
        "filch  12.5 s  jobs: 1 running, 12 done  tasks: 1.20M ended, 20.5k/s\n";
    char expected[1024];
    assert_drawn(&mixed_view, 79, 1, head);
    assert_drawn(&mixed_view, 79, 2, head);
    snprintf(expected, sizeof expected, "%s%s", head,
             "device                   busy tasks/s ready stolen       memory  in B/s out B/s\n"
             "... and 4 more            41%   20.5k    12      3\n");
    assert_drawn(&mixed_view, 79, 3, expected);
    snprintf(expected, sizeof expected, "%s%s", head,
             "device                   busy tasks/s ready stolen       memory  in B/s out B/s\n"
             "cuda:0 [###############] 100%   20.0k     0      0  1.50G/70.0G   3.40G   25.6k\n"
             "host:0 [######.........]  40%     512    12      3\n"
             "... and 2 more            13%    0.50     0      0\n");
    assert_drawn(&mixed_view, 79, 5, expected);
}

static void test_idle(void **state)
{
    (void)state;
    const fl_view_device devices[] = {{.name = "host:0"}, {.name = "host:10-13"}};
    const fl_view view = {.seconds = 0.04, .is_last = true, .count = 2, .devices = devices};
    assert_drawn(&view, 79, 24,
                 "filch  0.0 s in all  jobs: 0 running, 0 done  tasks: 0 ended, 0/s\n"
                 "device                            busy tasks/s ready stolen\n"
                 "host:0     [....................]   0%       0     0      0\n"
                 "host:10-13 [....................]   0%       0     0      0\n");
}

static void test_numbers(void **state)
{
    (void)state;
    const fl_view_device devices[] = {
        {.name = "a",
         .on = 1e9,
         .off = 7,
         .rate = 1e300,
         .ready = UINT64_MAX,
         .stolen = 999,
         .has_memory = true,
         .memory = UINT64_MAX,
         .budget = 1023,
         .in = 999499,
         .out = 999500},
        {.name = "b",
         .on = NAN,

         .rate = NAN,
         .ready = 1000,
         .stolen = 9995,
         .has_memory = true,
         .memory = 1,
         .budget = 1024,
         .in = -5,
         .out = INFINITY},
        {.name = "a name with blanks that is far too long for its column",
         .on = -1,
         .rate = 9.994,
         .ready = 99949,
         .stolen = 99950},
        {.name = "gr\xc3\xbc\x1b[2Jn", .rate = 0.004, .ready = 999499},
    };
    const fl_view view = {.seconds = 1e6, .count = 4, .devices = devices};
    assert_drawn(
        &view, 120, 24,
        "filch  1000000.0 s  jobs: 0 running, 0 done  tasks: 0 ended, 0/s\n"
        "device                                          busy tasks/s ready stolen       memory"
        "  in B/s out B/s\n"
        "a                        [####################] 100%   >999E 18.4E    999  16.0E/1.00k"
        "    999k   1.00M\n"
        "b                        [....................]   0%       0 1.00k  10.0k   1.00/1.00k"
        "       0   >999E\n"
        "a name with blanks that  [....................]   0%    9.99 99.9k   100k\n"
        "gr???[2Jn                [....................]   0%       0  999k      0\n");
}

/* Bits of a frame that do not fit are left out by lines. */
static void test_sizes(void **state)
{
    (void)state;
    char whole[4096], text[4096];
    size_t length = fl_view_draw(whole, sizeof whole, &mixed_view, 79, 24);
    for (size_t size = 1; size <= length + 1; ++size) {
        memset(text, 'x', sizeof text);
        size_t drawn = fl_view_draw(text, size, &mixed_view, 79, 24);
        assert_true(drawn < size && text[drawn] == '\0' && text[size] == 'x');
        assert_true(drawn == 0 || text[drawn - 1] == '\n');
    }
    assert_memory_equal(text, whole, length + 1);
}

/* A locale may have another decimal separator. */
static void test_locale(void **state)
{
    (void)state;
    char before[4096], after[4096];
    fl_view_draw(before, sizeof before, &mixed_view, 79, 24);
    const char *locale = setlocale(LC_ALL, "de_DE.UTF-8");
    locale = locale != NULL ? locale : setlocale(LC_ALL, "fr_FR.UTF-8");
    fl_view_draw(after, sizeof after, &mixed_view, 79, 24);
    setlocale(LC_ALL, "C");
    assert_string_equal(before, after);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_widths), cmocka_unit_test(test_heights),
        cmocka_unit_test(test_idle),   cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
