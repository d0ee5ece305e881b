/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/hash.h"

static uint64_t hash_of(const char *text)
{
    return fl_hash_bytes(FL_HASH_START, text, strlen(text));
}

/* Test values of the FNV draft. */
static void fnv1a_gives_its_reference_values(void **state)
{
    (void)state;
    assert_true(hash_of("") == 0xcbf29ce484222325u);
    assert_true(hash_of("a") == 0xaf63dc4c8601ec8cu);
    assert_true(hash_of("b") == 0xaf63df4c8601f1a5u);
    assert_true(hash_of("foobar") == 0x85944171f73967e8u);
}

static void pieces_hash_like_the_whole(void **state)
{
    uint64_t hash = fl_hash_bytes(FL_HASH_START, "foo", 3);

    (void)state;
    assert_true(fl_hash_bytes(hash, "bar", 3) == hash_of("foobar"));
    assert_true(fl_hash_bytes(hash, NULL, 0) == hash);
}

static void texts_keep_their_borders(void **state)
{
    uint64_t first = fl_hash_text(fl_hash_text(FL_HASH_START, "ab"), "c");
    uint64_t second = fl_hash_text(fl_hash_text(FL_HASH_START, "a"), "bc");

    (void)state;
    assert_true(first != second);
    assert_true(fl_hash_text(FL_HASH_START, "ab") == fl_hash_bytes(FL_HASH_START, "ab", 3));
    assert_true(fl_hash_text(FL_HASH_START, "") != FL_HASH_START);
}

/* Addresses and counters differ in few bits; the low bits of their hashes must not. */
static void mixing_spreads_every_input_bit(void **state)
{
    (void)state;
    for (int bit = 0; bit < 64; bit++) {
        int flips = 0;

        for (uint64_t key = 1; key <= 256; key++)
            flips += __builtin_popcountll(fl_hash_mix(key * 64) ^
                                          fl_hash_mix((key * 64) ^ (1ull << bit)));
        /* 32 of 64 on average; the bounds are ten standard deviations of the sum. */
        assert_in_range(flips, 256 * 32 - 640, 256 * 32 + 640);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fnv1a_gives_its_reference_values),
        cmocka_unit_test(pieces_hash_like_the_whole),
        cmocka_unit_test(texts_keep_their_borders),
        cmocka_unit_test(mixing_spreads_every_input_bit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
