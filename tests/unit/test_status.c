/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "filch/status.h"

/* Numbers are ABI: this list is written by hand, apart from the table, and only ever grows. */
static const struct {
    int number;
    const char *name;
} published[] = {
    {0, "OK"},
    {1, "INVALID_ARGUMENT"},
    {2, "INVALID_HANDLE"},
    {3, "WRONG_RUNTIME"},
    {4, "WRONG_STATE"},
    {5, "BUSY"},
    {6, "OUT_OF_MEMORY"},
    {7, "OVERFLOW"},
    {8, "PARSE"},
    {9, "DATA"},
    {10, "NOT_FOUND"},
    {11, "UNKNOWN_ORDINAL"},
    {12, "BAD_INDEX"},
    {13, "DUPLICATE_DEVICE"},
    {14, "UNSUPPORTED"},
    {15, "NO_DEVICE"},
    {16, "CYCLE"},
    {17, "ALIAS"},
    {18, "TOO_LARGE"},
    {19, "NOT_READY"},
    {20, "TIMEOUT"},
    {21, "CANCELLED"},
    {22, "TASK_FAILED"},
    {23, "SKIPPED"},
    {24, "FORKED"},
    {25, "IO"},
    {26, "SYSTEM"},
    {27, "BACKEND"},
    {28, "DEVICE_LOST"},
    {29, "INTERNAL"},
    {30, "NO_DRIVER"},
    {31, "DRIVER_STUB"},
    {32, "DRIVER_TOO_OLD"},
    {33, "DRIVER_BROKEN"},
    {34, "NO_COMPILER"},
    {35, "COMPILE"},
    {36, "IMAGE"},
    {37, "NO_DEVICE_MEMORY"},
    {38, "COMPILER_BROKEN"},
    {39, "DEADLOCK"},
};

#define PUBLISHED (sizeof published / sizeof published[0])

static void names_and_numbers_are_those_published(void **state)
{
    (void)state;
    for (size_t i = 0; i < PUBLISHED; i++)
        assert_string_equal(filch_status_name((filch_status)published[i].number),
                            published[i].name);
}

static void every_status_has_a_message_of_its_own(void **state)
{
    const char *unknown = filch_status_message((filch_status)INT_MAX);

    (void)state;
    for (size_t i = 0; i < PUBLISHED; i++) {
        const char *message = filch_status_message((filch_status)published[i].number);

        assert_true(strlen(message) >= 4);
        assert_string_not_equal(message, unknown);
        for (size_t j = 0; j < i; j++)
            assert_string_not_equal(message,
                                    filch_status_message((filch_status)published[j].number));
    }
    assert_string_equal(filch_status_message(FILCH_OK), "success");
    assert_string_equal(filch_status_message(FILCH_CYCLE), "the dependencies form a cycle");
}

static void numbers_outside_the_table_are_unknown(void **state)
{
    const int outside[] = {(int)PUBLISHED, -1, INT_MAX, INT_MIN};

    (void)state;
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        assert_string_equal(filch_status_name((filch_status)outside[i]), "UNKNOWN");
        assert_true(strlen(filch_status_message((filch_status)outside[i])) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_numbers_are_those_published),
        cmocka_unit_test(every_status_has_a_message_of_its_own),
        cmocka_unit_test(numbers_outside_the_table_are_unknown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
