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
#include "random.h"

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

static void assert_cpus(const fl_device_spec *item, const uint16_t *cpus, uint32_t count)
{
    assert_int_equal(item->cpu_count, count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(item->cpus[i].cpu, cpus[i]);
}

static void test_cpus(void **state)
{
    (void)state;
    assert_int_equal(parse("host@6,4"), 1);
    assert_false(items[0].has_number);
    assert_int_equal(items[0].team, 0);
    assert_false(items[0].is_unbound);
    assert_cpus(&items[0], (const uint16_t[]){6, 4}, 2);

    /* A comma before a digit goes on with the list; one before a letter ends it. */
    assert_int_equal(parse("cuda:1,host:2@4,6-7,host:1x2@0-1,9,host:7@any,host:3x5@any,cuda"), 6);
    assert_int_equal(items[0].cpu_count, 0);
    assert_int_equal(items[1].number, 2);
    assert_int_equal(items[1].team, 0);
    assert_cpus(&items[1], (const uint16_t[]){4, 6, 7}, 3);
    assert_int_equal(items[1].cpus[0].column, 15);
    assert_int_equal(items[1].cpus[1].column, 17);
    assert_int_equal(items[1].cpus[2].column, 17);
    assert_int_equal(items[2].number, 1);
    assert_int_equal(items[2].team, 2);
    assert_cpus(&items[2], (const uint16_t[]){0, 1, 9}, 3);
    assert_true(items[3].is_unbound);
    assert_int_equal(items[3].number, 7);
    assert_int_equal(items[3].cpu_count, 0);
    assert_true(items[4].is_unbound);
    assert_int_equal(items[4].team, 5);
    assert_int_equal(items[5].backend, FILCH_BACKEND_CUDA);

    assert_int_equal(parse("host@0-1023"), 1);
    assert_int_equal(items[0].cpu_count, 1024);
    assert_int_equal(parse("host@65535,00064512-065534"), 1);
    assert_int_equal(items[0].cpu_count, 1024);
    assert_int_equal(items[0].cpus[0].cpu, 65535);
    assert_int_equal(items[0].cpus[1023].cpu, 65534);
}

/* What an item of a random text must become. */
typedef struct expected_item {
    bool is_host;
    uint32_t number, team;
    uint32_t cpu_count;
    uint16_t cpus[64];
} expected_item;

/* Appends a list of CPUs, each named once, as numbers and ranges in any order. */
static void list_write(fl_random *random, char *text, expected_item *item)
{
    uint32_t order[16], pieces = 1 + fl_random_below(random, 6);

    for (uint32_t i = 0; i < 16; i++) {
        uint32_t other = fl_random_below(random, i + 1);

        order[i] = order[other];
        order[other] = i;
    }
    for (uint32_t i = 0; i < pieces; i++) {
        /* A piece lies within its own hundred. */
        uint32_t first = 100 * order[i] + fl_random_below(random, 90);
        uint32_t last = first + fl_random_below(random, 8);
        bool is_number = fl_random_below(random, 2) == 0;

        text += sprintf(text, is_number ? "%c%u" : "%c%u-%u", i == 0 ? '@' : ',', first, last);
        for (uint32_t cpu = first; cpu <= (is_number ? first : last); cpu++)
            item->cpus[item->cpu_count++] = (uint16_t)cpu;
    }
}

static void item_write(fl_random *random, char *text, expected_item *item)
{
    memset(item, 0, sizeof *item);
    item->is_host = fl_random_below(random, 3) > 0;
    item->number = fl_random_below(random, 3) * 5;
    if (!item->is_host) {
        (void)sprintf(text, item->number > 0 ? "cuda:%u" : "cuda", item->number);
        return;
    }
    text += sprintf(text, item->number > 0 ? "host:%u" : "host", item->number);
    if (item->number > 0 && fl_random_below(random, 2) == 0) {
        item->team = 1 + fl_random_below(random, 20);
        text += sprintf(text, "x%u", item->team);
    }
    if (fl_random_below(random, 3) > 0)
        list_write(random, text, item);
}

/* Random items, joined by commas, come back as they were written: no comma is taken for another
 * kind than it is. */
static void test_random_lists(void **state)
{
    fl_random random;

    (void)state;
    fl_random_init(&random, 15, 0);
    for (int round = 0; round < 20000; round++) {
        expected_item wanted[5];
        char text[1024] = "";
        uint32_t count = 1 + fl_random_below(&random, 5);

        for (uint32_t i = 0; i < count; i++) {
            if (i > 0)
                strcat(text, ",");
            item_write(&random, text + strlen(text), &wanted[i]);
        }
        if (parse(text) != count)
            fail_msg("'%s' has %u items", text, count);
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(items[i].backend,
                             wanted[i].is_host ? FILCH_BACKEND_HOST : FILCH_BACKEND_CUDA);
            assert_int_equal(items[i].number, wanted[i].number);
            assert_int_equal(items[i].team, wanted[i].team);
            assert_cpus(&items[i], wanted[i].cpus, wanted[i].cpu_count);
        }
    }
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
    {"host4", 5, "expected ':', '@', ',' or the end, found '4'"},
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
    {"host:4 ", 7, "expected 'x', '@', ',' or the end, found ' '"},
    {"host:4X2", 7, "found 'X'"},
    {"host:4*2", 7, "found '*'"},
    {"host:x2", 6, "found 'x'"},
    {"host:2x", 8, "expected a core count, found the end"},
    {"host:2x,host", 8, "found ','"},
    {"host:2x0", 8, "a core count must not be zero"},
    {"host:2x4294967296", 8, "a core count is larger"},
    {"host:2x1025", 8, "a device of more than 1024 cores"},
    {"host:2x8x2", 9, "expected '@', ',' or the end, found 'x'"},
    {"host:2x8/4", 9, "found '/'"},
    {"host:2/8", 7, "found '/'"},
    /* CPUs */
    {"host@", 6, "expected a CPU number or 'any', found the end"},
    {"host@,host", 6, "expected a CPU number or 'any', found ','"},
    {"host@-4", 6, "found '-'"},
    {"host@ 4", 6, "found ' '"},
    {"host@any4", 9, "expected ',' or the end, found '4'"},
    {"host@any,4", 10, "expected cuda, host or sim, found '4'"},
    {"host@all", 6, "unknown word 'all'; expected a CPU number or 'any'"},
    {"host@anything", 6, "unknown word 'anything'"},
    {"host@4,", 8, "empty item"},
    {"host@4,,5", 8, "empty item"},
    {"host@4, 5", 8, "expected cuda, host or sim, found ' '"},
    {"host@4,-5", 8, "found '-'"},
    {"host@4,any", 8, "unknown word 'any'"},
    {"host@4;5", 7, "expected '-', ',' or the end, found ';'"},
    {"host@4@5", 7, "found '@'"},
    {"host@4x2", 7, "found 'x'"},
    {"host@4-", 8, "expected the last CPU of a range, found the end"},
    {"host@4-,5", 8, "found ','"},
    {"host@4-7-9", 9, "expected ',' or the end, found '-'"},
    {"host@7-4", 6, "ends before it starts"},
    {"host@1,4,2,4", 12, "CPU 4 is named twice"},
    {"host@1,4-9,8-12", 12, "CPU 8 is named twice"},
    {"host@65536", 6, "a CPU number or 'any' is larger than 65535"},
    {"host@1-65536", 8, "the last CPU of a range is larger than 65535"},
    {"host@4294967296", 6, "larger than"},
    {"host@0-1024", 6, "more than 1024 CPUs"},
    {"host@0-1000,2000-2022,5000", 23, "more than 1024 CPUs"},
    {"host:@4", 6, "expected a device count, found '@'"},
    {"host:2x@4", 8, "expected a core count, found '@'"},
    {"cuda@4", 5, "expected ':', ',' or the end, found '@'"},
    {"cuda:0@4", 7, "expected '/', ',' or the end, found '@'"},
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
                                        "host:16,sim:f.json", "host:2@4-7,9,host:1x2@0,cuda",
                                        "host@any,host:1x2@12"};

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
    const char *const base = "host:2x8,cuda:1/88+24,host:2x8@4-7,12,host:16";

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
        cmocka_unit_test(test_cpus),
        cmocka_unit_test(test_random_lists),
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
