/* SPDX-License-Identifier: Apache-2.0 */
/* Slots of a ring: none over another, in memory that is there, and all of it to be had again, in
 * whatever order they are given back. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <time.h>

#include "backend/cuda/queue/lane.h"
#include "backend/cuda/queue/ring.h"
#include "random.h"

#define KIB ((size_t)1 << 10)
#define RING FL_RING_LEAST

static fl_cuda_ring ring;
static fl_cuda_lane lane;
static char memory[RING];
static char host;

static int begin(void **state)
{
    (void)state;
    ring = (fl_cuda_ring){.memory = memory, .bytes = RING};
    fl_store_relaxed(&lane.passed, 0);
    return 0;
}

static fl_cuda_slot *take(size_t bytes)
{
    const fl_copy piece = {.width = bytes, .height = 1};
    return fl_ring_take(&ring, &piece, &host, bytes);
}

static uint64_t seed(void)
{
    const char *given = getenv("FL_TEST_SEED");
    uint64_t value = given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
    print_message("seed %llu\n", (unsigned long long)value);
    return value;
}

static void check_apart(fl_cuda_slot *const *slots, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const size_t begin = (size_t)(slots[i]->bytes - memory);
        assert_true(begin + slots[i]->width * slots[i]->height <= RING);
        for (uint32_t k = 0; k < i; k++) {
            const size_t other = (size_t)(slots[k]->bytes - memory);
            assert_ptr_not_equal(slots[i], slots[k]);
            assert_true(begin + slots[i]->width <= other || other + slots[k]->width <= begin);
        }
    }
}

static void slots_lie_apart(void **state)
{
    fl_cuda_slot *taken[FL_RING_SLOTS];
    fl_random random;
    uint32_t count = 0, most = 0, refused = 0;
    (void)state;
    fl_random_init(&random, seed(), 1);
    for (int round = 0; round < 20000; round++) {
        /* Long runs of small ones, and of large. */
        const size_t largest = round / 500 % 2 == 0 ? 256 * KIB : FL_SLOT_MOST;
        fl_cuda_slot *slot = take(1 + fl_random_below(&random, (uint32_t)largest));
        if (slot != NULL) {
            assert_true(count < FL_RING_SLOTS);
            taken[count++] = slot;
            check_apart(taken, count);
            most = count > most ? count : most;
        }
        refused += slot == NULL;
        /* More come than go for a while, then more go than come. */
        const uint32_t fewest = (uint32_t)round / 250 % 2;
        uint32_t k = slot != NULL ? fewest + fl_random_below(&random, 2) : 3;
        for (; k > 0 && count > 0; k--) {
            const uint32_t at = fl_random_below(&random, count < 4 ? count : 4);
            taken[at]->state = SLOT_FREE;
            taken[at] = taken[--count];
        }
    }
    print_message("most %u refused %u\n", most, refused);
    assert_true(most > 20 && refused > 100);
    while (count > 0)
        taken[--count]->state = SLOT_FREE;
    /* Wherever they begin, less than one is lost. */
    for (size_t bytes = FL_SLOT_MOST; bytes < RING; bytes += FL_SLOT_MOST)
        assert_non_null(take(FL_SLOT_MOST));
    while (take(FL_SLOT_MOST) != NULL) {
    }
    assert_true(ring.used >= RING / FL_SLOT_MOST - 1);
}

/* Though others are free, too. */
static void what_was_used_longest_ago_comes_next(void **state)
{
    (void)state;
    for (size_t k = 0; k < 3 * RING / FL_SLOT_MOST; k++) {
        fl_cuda_slot *slot = take(FL_SLOT_MOST);
        assert_int_equal(slot->at, k * FL_SLOT_MOST % RING);
        slot->state = SLOT_FREE;
    }
    fl_cuda_slot *small = take(64 * KIB);
    small->state = SLOT_FREE;
    for (size_t k = 1; k < RING / FL_SLOT_MOST; k++) {
        fl_cuda_slot *slot = take(FL_SLOT_MOST);
        assert_int_equal(slot->at, 64 * KIB + (k - 1) * FL_SLOT_MOST);
        slot->state = SLOT_FREE;
    }
    assert_int_equal(take(FL_SLOT_MOST)->at, 0);
}

/* What is on a lane is in use until the device is past it. */
static void slots_wait_for_their_lane(void **state)
{
    (void)state;
    for (uint64_t k = 1; k <= RING / FL_SLOT_MOST; k++) {
        fl_cuda_slot *slot = take(FL_SLOT_MOST);
        assert_non_null(slot);
        slot->state = SLOT_FREE;
        slot->lane = &lane;
        slot->sequence = k;
    }
    assert_null(take(64 * KIB));
    fl_store_relaxed(&lane.passed, 1);
    assert_non_null(take(FL_SLOT_MOST));
    assert_null(take(64 * KIB));
    fl_store_relaxed(&lane.passed, 3);
    assert_non_null(take(64 * KIB));
    assert_non_null(take(FL_SLOT_MOST));
    assert_null(take(FL_SLOT_MOST));
}

/* A slot's units are the whole, of 128 KiB each but the last. */
static void units_are_the_whole(void **state)
{
    static const size_t sizes[] = {1, 128 * KIB, 128 * KIB + 1, 1000 * KIB, FL_SLOT_MOST};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const fl_cuda_slot *slot = take(sizes[i]);
        assert_int_equal(slot->units, (sizes[i] + FL_UNIT_BYTES - 1) / FL_UNIT_BYTES);
        for (uint32_t k = 0; k < slot->units; k++)
            assert_int_equal(fl_cuda_slot_begin(slot, k), k * FL_UNIT_BYTES);
        assert_int_equal(fl_cuda_slot_begin(slot, slot->units), sizes[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(slots_lie_apart, begin),
        cmocka_unit_test_setup(what_was_used_longest_ago_comes_next, begin),
        cmocka_unit_test_setup(slots_wait_for_their_lane, begin),
        cmocka_unit_test_setup(units_are_the_whole, begin),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
