/* SPDX-License-Identifier: Apache-2.0 */
/* How blocks are cut into pieces: every byte once, in slots that are large enough; and which blocks
 * have bytes in common. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/piece.h"
#include "random.h"

enum { SLOT = 192 * 1024, ARENA = 600 };

static uint64_t seed(void)
{
    const char *given = getenv("FL_TEST_SEED");
    uint64_t value = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)value);
    return value;
}

/* The device's side is a second buffer here, and its pitch another. */
static void pieces_are_the_whole(void **state)
{
    fl_random random;
    char *slot = malloc(SLOT);
    (void)state;
    fl_random_init(&random, seed(), 1);
    for (int round = 0; round < 400; round++) {
        const size_t width = 1 + fl_random_below(&random, round % 2 == 0 ? 300000 : 2000);
        const size_t height = 1 + fl_random_below(&random, (uint32_t)(900000 / width));
        const size_t from_pitch = width + fl_random_below(&random, 50);
        const size_t to_pitch = width + fl_random_below(&random, 50);
        const bool is_in = round % 3 != 0;
        uint8_t *from = malloc(from_pitch * height), *to = calloc(height, to_pitch);
        fl_device device = {.place = 1};
        fl_copy copy = {.to = to,
                        .from = from,
                        .to_device = is_in ? &device : NULL,
                        .from_device = is_in ? NULL : &device,
                        .to_pitch = to_pitch,
                        .from_pitch = from_pitch,
                        .width = width,
                        .height = height};
        fl_cut cut = fl_cut_copy(&copy, 1 + fl_random_below(&random, 6), SLOT);
        size_t bytes = 0;
        for (size_t i = 0; i < from_pitch * height; i++)
            from[i] = (uint8_t)(1 + i % 251);
        for (size_t k = 0; k < cut.pieces; k++) {
            char *host;
            fl_copy piece = fl_cut_piece(&copy, &cut, k, slot, &host);
            assert_true(piece.width * piece.height <= SLOT);
            bytes += piece.width * piece.height;
            if (is_in) {
                assert_ptr_equal(piece.from, slot);
                fl_copy_columns(slot, piece.width, host, from_pitch, piece.width, piece.height);
                fl_copy_columns(piece.to, to_pitch, slot, piece.from_pitch, piece.width,
                                piece.height);
            } else {
                assert_ptr_equal(piece.to, slot);
                fl_copy_columns(slot, piece.to_pitch, piece.from, from_pitch, piece.width,
                                piece.height);
                fl_copy_columns(host, to_pitch, slot, piece.width, piece.width, piece.height);
            }
        }
        assert_int_equal(bytes, width * height);
        for (size_t j = 0; j < height; j++) {
            assert_memory_equal(to + j * to_pitch, from + j * from_pitch, width);
            for (size_t i = width; i < to_pitch; i++)
                assert_int_equal(to[j * to_pitch + i], 0);
        }
        free(from);
        free(to);
    }
    free(slot);
}

typedef struct block {
    size_t at, pitch, width, height;
} block;

static block draw(fl_random *random, size_t pitch)
{
    block b = {.width = 1 + fl_random_below(random, (uint32_t)pitch), .pitch = pitch};
    b.at = fl_random_below(random, 200);
    b.height = 1 + fl_random_below(random, (uint32_t)((ARENA - b.at - b.width) / pitch));
    return b;
}

static bool share(const block *a, const block *b)
{
    bool taken[ARENA] = {false};
    for (size_t j = 0; j < a->height; j++) {
        for (size_t i = 0; i < a->width; i++)
            taken[a->at + j * a->pitch + i] = true;
    }
    for (size_t j = 0; j < b->height; j++) {
        for (size_t i = 0; i < b->width; i++) {
            if (taken[b->at + j * b->pitch + i])
                return true;
        }
    }
    return false;
}

/* No overlap is missed; and of equal pitches none is seen where columns lie beside each other. */
static void overlaps_are_found(void **state)
{
    static char arena[ARENA];
    fl_random random;
    int apart = 0;
    (void)state;
    fl_random_init(&random, seed(), 2);
    for (int round = 0; round < 100000; round++) {
        size_t pitch = 1 + fl_random_below(&random, 60);
        block a = draw(&random, pitch);
        block b = draw(&random, round % 2 == 0 ? pitch : 1 + fl_random_below(&random, 60));
        bool told = fl_columns_overlap(arena + a.at, a.pitch, a.width, a.height, arena + b.at,
                                       b.pitch, b.width, b.height);
        bool told_back = fl_columns_overlap(arena + b.at, b.pitch, b.width, b.height, arena + a.at,
                                            a.pitch, a.width, a.height);
        assert_true(told || !share(&a, &b));
        assert_true(told_back || !share(&a, &b));
        /* Rows of both lie apart within one pitch. */
        if (a.pitch == b.pitch && a.at % pitch + a.width <= b.at % pitch &&
            b.at % pitch + b.width <= pitch) {
            assert_false(told);
            apart++;
        }
    }
    assert_true(apart > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pieces_are_the_whole),
        cmocka_unit_test(overlaps_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
