/* SPDX-License-Identifier: Apache-2.0 */
/* How blocks are cut into pieces: every byte once, in slots that are large enough, and no more
 * pieces than it takes; what is moved between slots and buffers; and which blocks have bytes in
 * common. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "backend/cuda/queue/piece.h"
#include "random.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define SLOT (4 * MIB)

enum { ARENA = 600 };

static uint64_t seed(void)
{
    const char *given = getenv("FL_TEST_SEED");
    uint64_t value = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)value);
    return value;
}

/* As processors do it, in parts that end anywhere. */
static void move(fl_random *random, char *slot, char *host, size_t pitch, const fl_copy *piece,
                 bool is_in)
{
    size_t bytes = piece->width * piece->height;
    for (size_t begin = 0, end; begin < bytes; begin = end) {
        size_t most = fl_random_below(random, 2) == 0 ? 5000 : bytes;
        end = begin + 1 + fl_random_below(random, (uint32_t)most);
        end = end < bytes ? end : bytes;
        if (is_in)
            fl_slot_fill(slot, host, pitch, piece->width, begin, end, begin % 2 != 0);
        else
            fl_slot_land(slot, host, pitch, piece->width, begin, end);
    }
}

static void copy_columns(char *to, size_t to_pitch, const char *from, size_t from_pitch,
                         size_t width, size_t height)
{
    for (size_t j = 0; j < height; j++)
        memcpy(to + j * to_pitch, from + j * from_pitch, width);
}

/* The device's side is a second buffer here, and its pitch another. */
static void pieces_are_the_whole(void **state)
{
    fl_random random;
    char *slot = malloc(SLOT);
    (void)state;
    fl_random_init(&random, seed(), 1);
    for (int round = 0; round < 100; round++) {
        const size_t width = 1 + fl_random_below(&random, round % 2 == 0 ? 1500000 : 20000);
        const size_t height = 1 + fl_random_below(&random, (uint32_t)(4000000 / width));
        const size_t from_pitch = width + fl_random_below(&random, 3) * 20;
        const size_t to_pitch = width + fl_random_below(&random, 3) * 20;
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
        fl_cut cut = fl_cut_copy(&copy, SLOT, fl_random_below(&random, 2) == 0);
        size_t bytes = 0;
        for (size_t i = 0; i < from_pitch * height; i++)
            from[i] = (uint8_t)(1 + i % 251);
        for (size_t k = 0; k < cut.pieces; k++) {
            char *host;
            fl_copy piece = fl_cut_piece(&copy, &cut, k, &host);
            assert_true(piece.width * piece.height <= SLOT);
            assert_true(piece.width != 0 && piece.height != 0);
            bytes += piece.width * piece.height;
            if (is_in) {
                assert_int_equal(piece.from_pitch, piece.width);
                move(&random, slot, host, from_pitch, &piece, true);
                copy_columns(piece.to, to_pitch, slot, piece.width, piece.width, piece.height);
            } else {
                assert_int_equal(piece.to_pitch, piece.width);
                copy_columns(slot, piece.width, piece.from, from_pitch, piece.width, piece.height);
                move(&random, slot, host, to_pitch, &piece, false);
            }
        }
        assert_int_equal(bytes, width * height);
        for (size_t j = 0; j < height; j++) {
            assert_memory_equal(to + j * to_pitch, from + j * from_pitch, width);
            for (size_t i = width; i < to_pitch; i++)
                assert_true(to[j * to_pitch + i] == 0);
        }
        free(from);
        free(to);
    }
    free(slot);
}

static fl_copy flat(size_t bytes)
{
    return (fl_copy){
        .to_pitch = bytes, .from_pitch = bytes, .width = bytes, .height = 1, .to = NULL};
}

static size_t bytes_of(const fl_copy *copy, const fl_cut *cut, size_t k)
{
    char *host;
    fl_copy piece = fl_cut_piece(copy, cut, k, &host);
    return piece.width * piece.height;
}

/* The link does nothing between two pieces: there are no more than it takes. */
static void pieces_are_few(void **state)
{
    static const struct {
        size_t bytes, out, in;
    } wanted[] = {{64 * KIB, 1, 1},  {512 * KIB, 1, 1}, {MIB, 2, 2},        {4 * MIB, 4, 5},
                  {16 * MIB, 8, 10}, {32 * MIB, 8, 11}, {64 * MIB, 16, 19}, {256 * MIB, 64, 67}};
    (void)state;
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        fl_copy copy = flat(wanted[i].bytes);
        fl_cut out = fl_cut_copy(&copy, SLOT, false), in = fl_cut_copy(&copy, SLOT, true);
        assert_int_equal(out.pieces, wanted[i].out);
        assert_int_equal(in.pieces, wanted[i].in);
        assert_true(bytes_of(&copy, &in, 0) <= 512 * KIB); /* the device begins soon */
    }
    /* Columns are not cut where several fit into a slot. */
    fl_copy copy = {.to_pitch = 50000, .from_pitch = 60000, .width = 30000, .height = 1000};
    fl_cut cut = fl_cut_copy(&copy, SLOT, false);
    assert_int_equal(cut.pieces, (1000 - 1) / (SLOT / 30000) + 1);
}

/* Every byte, and none beside them, wherever columns begin and whatever is written past the caches.
 */
static void ranges_move_their_bytes(void **state)
{
    enum { ROOM = 40000 };
    static char slot[ROOM], host[ROOM], wanted[ROOM], nothing[ROOM];
    fl_random random;
    (void)state;
    fl_random_init(&random, seed(), 3);
    for (int i = 0; i < ROOM; i++)
        slot[i] = (char)(1 + i % 127);
    for (int round = 0; round < 2000; round++) {
        const size_t width = 1 + fl_random_below(&random, round % 2 == 0 ? 9000 : 300);
        const size_t pitch = width + fl_random_below(&random, 3) * fl_random_below(&random, 90);
        const size_t height = 1 + fl_random_below(&random, (uint32_t)((ROOM - 100) / pitch));
        const size_t at = fl_random_below(&random, 100);
        const size_t begin = fl_random_below(&random, (uint32_t)(width * height));
        const size_t end = begin + 1 + fl_random_below(&random, (uint32_t)(width * height - begin));
        memset(host, 0, sizeof host);
        memset(wanted, 0, sizeof wanted);
        for (size_t i = begin; i < end; i++)
            wanted[at + i / width * pitch + i % width] = slot[i];
        fl_slot_land(slot, host + at, pitch, width, begin, end);
        assert_memory_equal(host, wanted, ROOM);
        char back[ROOM] = {0};
        fl_slot_fill(back, host + at, pitch, width, begin, end, begin % 2 != 0);
        assert_memory_equal(back + begin, slot + begin, end - begin);
        memset(back + begin, 0, end - begin);
        assert_memory_equal(back, nothing, ROOM);
    }
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
        cmocka_unit_test(pieces_are_few),
        cmocka_unit_test(ranges_move_their_bytes),
        cmocka_unit_test(overlaps_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
