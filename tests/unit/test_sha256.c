/* SPDX-License-Identifier: Apache-2.0 */
/* Against the examples that NIST publishes with FIPS 180-4, and every split of the input. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/sha256.h"

static void assert_digest(fl_sha256 *sha, const char *expected)
{
    fl_digest digest = fl_sha256_finish(sha);
    char text[FL_DIGEST_TEXT];

    fl_digest_format(&digest, text);
    assert_string_equal(text, expected);
}

static void published_examples(void **state)
{
    static const struct {
        const char *text;
        const char *digest;
    } cases[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqr"
         "lmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    fl_sha256 sha;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fl_sha256_init(&sha);
        fl_sha256_add(&sha, cases[i].text, strlen(cases[i].text));
        assert_digest(&sha, cases[i].digest);
    }
    fl_sha256_init(&sha);
    for (int i = 0; i < 1000000; i++)
        fl_sha256_add(&sha, "a", 1);
    assert_digest(&sha, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

static void pieces_equal_the_whole(void **state)
{
    unsigned char data[300];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 37);
    for (size_t size = 0; size <= sizeof data; size++) {
        fl_sha256 whole;
        fl_digest expected;

        fl_sha256_init(&whole);
        fl_sha256_add(&whole, data, size);
        expected = fl_sha256_finish(&whole);
        for (size_t first = 0; first <= size; first += 1 + size / 40) {
            fl_sha256 pieces;
            fl_digest digest;

            fl_sha256_init(&pieces);
            fl_sha256_add(&pieces, data, first);
            fl_sha256_add(&pieces, data, 0);
            fl_sha256_add(&pieces, data + first, size - first);
            digest = fl_sha256_finish(&pieces);
            assert_memory_equal(&digest, &expected, sizeof digest);
        }
    }
}

static void fields_do_not_run_together(void **state)
{
    static const struct {
        const char *first, *second;
    } cases[] = {{"ab", "c"}, {"a", "bc"}, {"", "abc"}, {"abc", ""}};
    fl_digest digests[4];

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        fl_sha256 sha;

        fl_sha256_init(&sha);
        fl_sha256_add_field(&sha, cases[i].first, strlen(cases[i].first));
        fl_sha256_add_field(&sha, cases[i].second, strlen(cases[i].second));
        digests[i] = fl_sha256_finish(&sha);
        for (size_t j = 0; j < i; j++)
            assert_memory_not_equal(&digests[i], &digests[j], sizeof digests[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_examples),
        cmocka_unit_test(pieces_equal_the_whole),
        cmocka_unit_test(fields_do_not_run_together),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
