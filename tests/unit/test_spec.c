/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/spec.h"

static fl_device_spec items[FL_SPEC_ITEMS];

static size_t parse(const char *text)
{
    filch_error error = FILCH_ERROR_INIT;
    size_t count = 99;

    memset(items, 0xee, sizeof items);
    if (fl_spec_parse(text, items, &count, &error) != FILCH_OK)
        fail_msg("'%s': %s", text, error.text);
    return count;
}

/* The text is refused at position, from 1, with a message that has fragment in it. */
static void refused(const char *text, int64_t position, const char *fragment)
{
    filch_error error = FILCH_ERROR_INIT;
    size_t count = 99;
    filch_status status = fl_spec_parse(text, items, &count, &error);

    if (status != FILCH_PARSE || error.status != FILCH_PARSE || error.line != position ||
        strstr(error.text, fragment) == NULL)
        fail_msg("'%.80s': status %d, position %lld, '%s'; expected %lld, '%s'", text, status,
                 (long long)error.line, error.text, (long long)position, fragment);
    assert_int_equal(count, 99);
    /* Without a record the status is the same. */
    assert_int_equal(fl_spec_parse(text, items, &count, NULL), FILCH_PARSE);
}

static void test_every_form(void **state)
{
    (void)state;
    assert_int_equal(parse("cuda"), 1);
    assert_int_equal(items[0].backend, FILCH_BACKEND_CUDA);
    assert_false(items[0].has_number);
    assert_int_equal(items[0].slice_count, 0);
    assert_int_equal(items[0].column, 1);

    assert_int_equal(parse("cuda:0"), 1);
    assert_true(items[0].has_number);
    assert_int_equal(items[0].number, 0);

    assert_int_equal(parse("cuda:1/88+24+8"), 1);
    assert_int_equal(items[0].number, 1);
    assert_int_equal(items[0].slice_count, 3);
    assert_int_equal(items[0].slices[0], 88);
    assert_int_equal(items[0].slices[1], 24);
    assert_int_equal(items[0].slices[2], 8);

    assert_int_equal(parse("host"), 1);
    assert_int_equal(items[0].backend, FILCH_BACKEND_HOST);
    assert_false(items[0].has_number);
    assert_int_equal(items[0].team, 0);

    assert_int_equal(parse("host:4"), 1);
    assert_true(items[0].has_number);
    assert_int_equal(items[0].number, 4);
    assert_int_equal(items[0].team, 0);

    assert_int_equal(parse("host:2x8"), 1);
    assert_int_equal(items[0].number, 2);
    assert_int_equal(items[0].team, 8);

    assert_int_equal(parse("sim:some dir/four+x:1.json"), 1);
    assert_int_equal(items[0].backend, FILCH_BACKEND_SIM);
    assert_string_equal(items[0].file, "some dir/four+x:1.json");
}

static void test_lists_and_columns(void **state)
{
    (void)state;
    assert_int_equal(parse("cuda:0/4,host:3x2,sim:a,host"), 4);
    assert_int_equal(items[0].column, 1);
    assert_int_equal(items[1].column, 10);
    assert_int_equal(items[1].team, 2);
    assert_int_equal(items[1].slice_count, 0);
    assert_int_equal(items[2].column, 19);
    assert_string_equal(items[2].file, "a");
    assert_int_equal(items[3].column, 25);
    assert_string_equal(items[3].file, "");
    assert_false(items[3].has_number);
}

static void test_limits_accepted(void **state)
{
    char text[FL_SPEC_ITEMS * 8] = "host";
    char file[300] = "sim:";

    (void)state;
    for (int i = 1; i < FL_SPEC_ITEMS; i++)
        strcat(text, ",host");
    assert_int_equal(parse(text), FL_SPEC_ITEMS);
    strcat(text, ",host");
    refused(text, FL_SPEC_ITEMS * 5 + 1, "more than 64 items");

    strcpy(text, "cuda:7/1");
    for (int i = 1; i < 64; i++)
        strcat(text, "+1");
    assert_int_equal(parse(text), 1);
    assert_int_equal(items[0].slice_count, 64);
    strcat(text, "+1");
    refused(text, 8 + 64 * 2, "more than 64 slices");

    memset(file + 4, 'f', 255);
    assert_int_equal(parse(file), 1);
    assert_int_equal(strlen(items[0].file), 255);
    file[4 + 255] = 'f';
    refused(file, 4 + 256, "longer than 255 bytes");

    assert_int_equal(parse("cuda:4294967295,host:00004294967295x01024"), 2);
    assert_int_equal(items[0].number, UINT32_MAX);
    assert_int_equal(items[1].number, UINT32_MAX);
    assert_int_equal(items[1].team, 1024);
}

static const struct {
    const char *text;
    int64_t position;
    const char *fragment;
} bad_inputs[] = {
    /* empty items */
    {"", 1, "empty item"},
    {",", 1, "empty item"},
    {",host", 1, "empty item"},
    {"host,", 6, "empty item"},
    {"host,,host", 6, "empty item"},
    /* unknown words */
    {"gpu", 1, "unknown word 'gpu'"},
    {"gpu:0", 1, "unknown word 'gpu'"},
    {"Host", 1, "unknown word 'Host'"},
    {"hosts", 1, "unknown word 'hosts'"},
    {"hos", 1, "unknown word 'hos'"},
    {"cudahost", 1, "unknown word 'cudahost'"},
    {"host,simulator:f", 6, "unknown word 'simulator'"},
    {"0", 1, "expected cuda, host or sim, found '0'"},
    {":1", 1, "found ':'"},
    {" host", 1, "found ' '"},
    {"host, cuda", 6, "found ' '"},
    {"\xc3\xa9", 1, "found byte 0xc3"},
    /* after the word */
    {"host4", 5, "expected ':', ',' or the end, found '4'"},
    {"host ", 5, "found ' '"},
    {"host\n", 5, "found byte 0x0a"},
    {"cuda/4", 5, "expected ':', ',' or the end, found '/'"},
    {"cuda;host", 5, "found ';'"},
    {"host=4", 5, "found '='"},
    {"sim", 4, "expected ':' and a file name, found the end"},
    {"sim,host", 4, "expected ':' and a file name, found ','"},
    {"sim7", 4, "found '7'"},
    {"sim:", 5, "expected a file name, found the end"},
    {"sim:,host", 5, "expected a file name, found ','"},
    /* numbers */
    {"cuda:", 6, "expected a GPU number, found the end"},
    {"cuda:,host", 6, "found ','"},
    {"cuda:x", 6, "found 'x'"},
    {"cuda:-1", 6, "found '-'"},
    {"cuda:+1", 6, "found '+'"},
    {"cuda: 1", 6, "found ' '"},
    {"cuda:1.5", 7, "found '.'"},
    {"cuda:0x1", 7, "expected '/', ',' or the end, found 'x'"},
    {"cuda:4294967296", 6, "larger than 4294967295"},
    {"cuda:99999999999999999999999999", 6, "larger than 4294967295"},
    {"cuda:1:2", 7, "found ':'"},
    {"host:", 6, "expected a device count, found the end"},
    {"host:0", 6, "a device count must not be zero"},
    {"host:000", 6, "a device count must not be zero"},
    {"host:4294967296", 6, "a device count is larger"},
    {"host:4 ", 7, "expected 'x', ',' or the end, found ' '"},
    {"host:4X2", 7, "found 'X'"},
    {"host:4*2", 7, "found '*'"},
    {"host:x2", 6, "found 'x'"},
    {"host:2x", 8, "expected a core count, found the end"},
    {"host:2x,host", 8, "found ','"},
    {"host:2x0", 8, "a core count must not be zero"},
    {"host:2x4294967296", 8, "a core count is larger"},
    {"host:2x1025", 8, "a device of more than 1024 cores"},
    {"host:2x8x2", 9, "expected ',' or the end, found 'x'"},
    {"host:2x8/4", 9, "found '/'"},
    {"host:2/8", 7, "found '/'"},
    /* slices */
    {"cuda:0/", 8, "expected a multiprocessor count, found the end"},
    {"cuda:0/0", 8, "a multiprocessor count must not be zero"},
    {"cuda:0/8+", 10, "found the end"},
    {"cuda:0/8++8", 10, "found '+'"},
    {"cuda:0/+8", 8, "found '+'"},
    {"cuda:0/8+0", 10, "must not be zero"},
    {"cuda:0/8-8", 9, "expected '+', ',' or the end, found '-'"},
    {"cuda:0/8/8", 9, "found '/'"},
    {"cuda:0/8,8", 10, "found '8'"},
    {"cuda:0/8+5000000000", 10, "larger than"},
};

static void test_bad_inputs(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof bad_inputs / sizeof bad_inputs[0]; i++)
        refused(bad_inputs[i].text, bad_inputs[i].position, bad_inputs[i].fragment);
}

static void test_long_words_and_texts(void **state)
{
    char *text = malloc(100001);

    (void)state;
    assert_non_null(text);
    memset(text, 'q', 1000);
    text[1000] = '\0';
    refused(text, 1, "unknown word 'qqqqqqqqqqqqqqqqqqqqqqqqqqqqqqqq'");
    memset(text, '0', 100000);
    memcpy(text, "cuda:", 5);
    text[65535] = '\0';
    assert_int_equal(parse(text), 1);
    assert_int_equal(items[0].number, 0);
    text[65535] = '0';
    text[65536] = '\0';
    refused(text, 65536, "longer than 65535 characters");
    text[65536] = '0';
    text[100000] = '\0';
    refused(text, 65536, "longer than 65535 characters");
    free(text);
}

static void test_nulls(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    size_t count;

    (void)state;
    assert_int_equal(fl_spec_parse(NULL, items, &count, &error), FILCH_INVALID_ARGUMENT);
    assert_int_equal(error.status, FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_spec_parse("host", NULL, &count, NULL), FILCH_INVALID_ARGUMENT);
    assert_int_equal(fl_spec_parse("host", items, NULL, NULL), FILCH_INVALID_ARGUMENT);
}

/* Every byte of a valid text replaced by every other: accepted, or refused with a position within
 * the text and without output. */
static void test_every_mutation(void **state)
{
    static const char *const texts[] = {"cuda:1/88+24,host", "host:2x8,cuda,cuda:7",
                                        "host:16,sim:f.json"};

    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        size_t length = strlen(texts[t]);

        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 256; byte++) {
                filch_error error = FILCH_ERROR_INIT;
                size_t count = 99;
                char text[64];
                filch_status status;

                strcpy(text, texts[t]);
                text[at] = (char)byte;
                status = fl_spec_parse(text, items, &count, &error);
                if (status == FILCH_OK) {
                    assert_true(count >= 1 && count <= 4);
                    continue;
                }
                assert_int_equal(status, FILCH_PARSE);
                assert_int_equal(count, 99);
                assert_true(error.line >= 1 && (size_t)error.line <= strlen(text) + 1);
                assert_non_null(strstr(error.text, "character"));
            }
        }
    }
}

/* A '!' put anywhere outside words and file names is itself the offending character. */
static void test_foreign_character_is_found(void **state)
{
    const char *const base = "host:2x8,cuda:1/88+24,host:16";

    (void)state;
    for (size_t at = 0; at <= strlen(base); at++) {
        char text[64];
        char *inside = text + at;

        (void)snprintf(text, sizeof text, "%.*s!%s", (int)at, base, base + at);
        /* Inside a word what stands before it is an unknown word, which is where that starts. */
        while (inside > text && inside[-1] >= 'a' && inside[-1] <= 'z' && inside[-1] != 'x')
            inside--;
        if (text + at - inside == 4 || inside == text + at)
            refused(text, (int64_t)at + 1, "found '!'");
        else
            refused(text, inside - text + 1, "unknown word");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_form),
        cmocka_unit_test(test_lists_and_columns),
        cmocka_unit_test(test_limits_accepted),
        cmocka_unit_test(test_bad_inputs),
        cmocka_unit_test(test_long_words_and_texts),
        cmocka_unit_test(test_nulls),
        cmocka_unit_test(test_every_mutation),
        cmocka_unit_test(test_foreign_character_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
