/* SPDX-License-Identifier: Apache-2.0 */
/* Places over memory that traps whoever touches it: blocks come back with markers,
 * counted, capped, trimmed and zeroed. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "memory/alloc/node.h"
#include "random.h"
#include "untouchable.h"

#define MIB ((size_t)1 << 20)
#define BUDGET (64 * MIB)
#define assert_ok(call) assert_int_equal((call), FILCH_OK)

/* --- A backend of nothing but memory and markers --- */

static struct {
    untouchable memory;
    _Atomic uint64_t reached; /* sequence number of lane 0 that the driver knows to be past … */
    _Atomic uint64_t known;   /* … and that filch has been told of */
    _Atomic uint64_t asked;   /* times that the driver was asked */
    uint64_t clears;
    void *cleared;
    size_t cleared_bytes;
    fl_marker cleared_behind;
    filch_status clear_status;
} fake;

static fl_marker marker(uint64_t sequence)
{
    return fl_marker_make(0, 0, sequence);
}

static filch_status granularity(const fl_device *device, size_t *bytes, filch_error *error)
{
    (void)device;
    (void)error;
    *bytes = GRANULARITY;
    return FILCH_OK;
}

static filch_status take_chunk(fl_device *device, size_t bytes, void **chunk, filch_error *error)
{
    void *made = untouchable_take(&fake.memory, bytes);
    if (made == NULL)
        return fl_error_fill(
            error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY, .device = device->info.name},
            "none");
    *chunk = made;
    return FILCH_OK;
}

static void give_chunk(fl_device *device, void *chunk, size_t bytes)
{
    (void)device;
    untouchable_give(&fake.memory, chunk, bytes);
}

static filch_status take_block(fl_device *device, size_t bytes, void **block, filch_error *error)
{
    (void)bytes;
    return take_chunk(device, 4096, block, error);
}

static void give_block(fl_device *device, void *block)
{
    give_chunk(device, block, 4096);
}

static bool is_past(const fl_device *device, fl_marker asked)
{
    (void)device;
    return fl_marker_sequence(asked) <= atomic_load(&fake.known);
}

static filch_status reached(fl_device *device, fl_marker asked, filch_error *error)
{
    (void)device;
    (void)error;
    atomic_fetch_add(&fake.asked, 1);
    atomic_store(&fake.known, atomic_load(&fake.reached));
    return is_past(device, asked) ? FILCH_OK : FILCH_NOT_READY;
}

static filch_status clear(fl_device *device, void *block, size_t bytes, fl_marker behind,
                          fl_marker *made, filch_error *error)
{
    (void)device;
    (void)error;
    fake.clears++;
    fake.cleared = block;
    fake.cleared_bytes = bytes;
    fake.cleared_behind = behind;
    if (fake.clear_status == FILCH_OK)
        *made = marker(1000 + fake.clears);
    return fake.clear_status;
}

static const fl_lane_ops backend_lane_ops = {
    .reached = reached,
    .is_past = is_past,
};

static const fl_memory_ops backend_memory_ops = {
    .take = take_block,
    .give = give_block,
    .clear = clear,
    .chunk_granularity = granularity,
    .chunk_take = take_chunk,
    .chunk_give = give_chunk,
};

static const fl_backend backend = {
    .name = "test",
    .lane = &backend_lane_ops,
    .memory = &backend_memory_ops,
};

/* Two devices of one place, which is place 1. */
typedef struct world {
    fl_core core;
    fl_device devices[2];
    fl_places places;
    scarce host;
} world;

static void open_world(world *w, filch_arena kind)
{
    filch_error error = FILCH_ERROR_INIT;
    memset(&fake, 0, sizeof fake);
    memset(w, 0, sizeof *w);
    fake.memory.all = UINT64_C(1) << 32;
    w->core.memory = scarce_memory(&w->host);
    w->core.settings.arena = kind;
    assert_ok(fl_tss_init(&w->core.worker));
    for (uint32_t i = 0; i < 2; i++) {
        w->devices[i].backend = &backend;
        w->devices[i].place = 1;
        w->devices[i].info.budget = BUDGET;
        (void)strcpy(w->devices[i].info.name, "test:0");
    }
    assert_ok(fl_places_init(&w->places, &w->core, w->devices, 2, 2, &error));
}

static void close_world(world *w)
{
    fl_places_fini(&w->places);
    fl_tss_fini(w->core.worker);
    assert_int_equal(atomic_load(&fake.memory.out), 0);
    assert_int_equal(atomic_load(&w->host.live), 0);
}

static void *take(world *w, size_t bytes)
{
    filch_error error = FILCH_ERROR_INIT;
    void *block = NULL;
    if (fl_place_take(&w->places, 1, bytes, &block, &error) != FILCH_OK)
        fail_msg("%s", error.text);
    assert_int_equal((uintptr_t)block % 512, 0);
    return block;
}

static void give(world *w, void *block, size_t bytes, fl_marker last)
{
    fl_place_give(&w->places, 1, block, bytes, last);
}

static filch_memory_stats stats_of(world *w)
{
    filch_memory_stats stats = {.size = sizeof stats};
    fl_place_stats(&w->places, 1, &stats);
    return stats;
}

/* Makes a bucket keep blocks of the size: it is asked for twice. */
static void warm(world *w, size_t bytes)
{
    for (int i = 0; i < 3; i++)
        give(w, take(w, bytes), bytes, 0);
}

/* --- Reuse --- */

static void a_size_that_comes_back_is_kept_at_hand(void **state)
{
    world w;
    (void)state;
    open_world(&w, FILCH_ARENA_PAGES);
    warm(&w, MIB);
    uint64_t slow = w.places.at[1].takes;
    for (int i = 0; i < 10; i++)
        give(&w, take(&w, MIB), MIB, 0);
    assert_int_equal(w.places.at[1].takes, slow); /* none went past the bucket */
    /* Sizes that do not come back are not kept. */
    for (size_t i = 1; i < 20; i++)
        give(&w, take(&w, i * 4096), i * 4096, 0);
    assert_int_equal(stats_of(&w).cached, MIB);
    close_world(&w);
}

static void a_block_in_use_is_not_handed_out(void **state)
{
    world w;
    (void)state;
    for (int is_warm = 0; is_warm < 2; is_warm++) {
        open_world(&w, FILCH_ARENA_PAGES);
        if (is_warm)
            warm(&w, MIB);
        void *block = take(&w, MIB);
        give(&w, block, MIB, marker(5));
        void *other = take(&w, MIB);
        assert_ptr_not_equal(other, block);
        assert_int_equal(atomic_load(&fake.asked), 0); /* there was memory: nobody was asked */
        give(&w, other, MIB, marker(6));
        /* Once it is known to be past, it goes first. */
        atomic_store(&fake.known, 5);
        if (is_warm)
            assert_ptr_equal(take(&w, MIB), block);
        else
            give(&w, take(&w, MIB), MIB, 0);
        if (is_warm)
            give(&w, block, MIB, 0);
        atomic_store(&fake.known, 6);
        atomic_store(&fake.reached, 6);
        close_world(&w);
    }
}

static void a_full_place_asks_the_driver(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    world w;
    (void)state;
    open_world(&w, FILCH_ARENA_PAGES);
    void *block = take(&w, 40 * MIB), *none = &w;
    fl_marker behind = 77;
    give(&w, block, 40 * MIB, marker(3));
    assert_int_equal(fl_place_take(&w.places, 1, 40 * MIB, &none, &error), FILCH_NO_DEVICE_MEMORY);
    assert_ptr_equal(none, &w);
    assert_int_equal(stats_of(&w).pending, 40 * MIB);
    assert_true(atomic_load(&fake.asked) > 0);
    /* Who waits on the device can have it … */
    assert_ok(fl_place_take_as(&w.places, 1, 40 * MIB, FL_TAKE_BEHIND, &none, &behind, &error));
    assert_ptr_equal(none, block);
    assert_int_equal(behind, marker(3));
    give(&w, block, 40 * MIB, marker(3));
    /* … and everybody, once the driver says that it is past. */
    atomic_store(&fake.reached, 3);
    block = take(&w, 40 * MIB);
    assert_int_equal(stats_of(&w).pending, 0);
    give(&w, block, 40 * MIB, 0);
    close_world(&w);
}

/* --- Cap and trim --- */

static void a_cap_and_a_trim_hand_back_what_is_unused(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    world w;
    void *none;
    (void)state;
    open_world(&w, FILCH_ARENA_PAGES);
    warm(&w, 4096);
    void *block = take(&w, 20 * MIB);
    give(&w, take(&w, 30 * MIB), 30 * MIB, 0);
    assert_true(stats_of(&w).mapped >= 50 * MIB);
    fl_place_cap(&w.places, 1, 25 * MIB);
    assert_int_equal(fl_place_take(&w.places, 1, 10 * MIB, &none, &error), FILCH_NO_DEVICE_MEMORY);
    give(&w, block, 20 * MIB, 0);
    block = take(&w, 24 * MIB);
    assert_true(stats_of(&w).mapped <= 25 * MIB);
    fl_place_cap(&w.places, 1, UINT64_MAX);
    assert_int_equal(stats_of(&w).budget, BUDGET);
    give(&w, block, 24 * MIB, 0);
    fl_place_trim(&w.places, 1, 0);
    assert_int_equal(stats_of(&w).mapped, 0);
    assert_int_equal(stats_of(&w).cached, 0);
    assert_int_equal(atomic_load(&fake.memory.out), 0);
    close_world(&w);
}

/* --- Zeroes and counts --- */

static void zeroes_are_for_who_asks(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    world w;
    void *block;
    fl_marker behind = 0;
    (void)state;
    open_world(&w, FILCH_ARENA_PAGES);
    warm(&w, 1000);
    assert_int_equal(fake.clears, 0);
    for (uint64_t i = 1; i <= 2; i++) { /* from the bucket each time */
        assert_ok(fl_place_take_as(&w.places, 1, 1000, FL_TAKE_ZEROED | FL_TAKE_BEHIND, &block,
                                   &behind, &error));
        assert_int_equal(fake.clears, i);
        assert_ptr_equal(fake.cleared, block);
        assert_int_equal(fake.cleared_bytes, 1000);
        assert_int_equal(fake.cleared_behind, i == 1 ? 0 : marker(9));
        assert_int_equal(behind, marker(1000 + i));
        give(&w, block, 1000, marker(9));
    }
    fake.clear_status = FILCH_BACKEND;
    void *none = &w;
    assert_int_equal(fl_place_take_as(&w.places, 1, 1000, FL_TAKE_ZEROED, &none, &behind, &error),
                     FILCH_BACKEND);
    assert_ptr_equal(none, &w);
    assert_int_equal(stats_of(&w).requested, 0);
    /* Once the device clears again, the block can be had: from a bucket, and from the heap. */
    for (size_t bytes = 1000; bytes < 3 * MIB; bytes = 2 * MIB + bytes) {
        fake.clear_status = FILCH_BACKEND;
        assert_int_equal(
            fl_place_take_as(&w.places, 1, bytes, FL_TAKE_ZEROED, &none, &behind, &error),
            FILCH_BACKEND);
        assert_int_equal(stats_of(&w).requested, 0);
        fake.clear_status = FILCH_OK;
        assert_ok(fl_place_take_as(&w.places, 1, bytes, FL_TAKE_ZEROED, &block, &behind, &error));
        give(&w, block, bytes, 0);
    }
    close_world(&w);
}

static void everything_is_counted(void **state)
{
    static const filch_arena kinds[] = {FILCH_ARENA_JEMALLOC, FILCH_ARENA_PAGES, FILCH_ARENA_PLAIN};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        world w;
        if (kinds[k] == FILCH_ARENA_JEMALLOC && !fl_slabs_are_there())
            continue;
        open_world(&w, kinds[k]);
        void *a = take(&w, 1000), *b = take(&w, 3 * MIB);
        filch_memory_stats stats = stats_of(&w);
        assert_int_equal(stats.arena, kinds[k]);
        assert_int_equal(stats.budget, BUDGET);
        assert_int_equal(stats.requested, 1000 + 3 * MIB);
        assert_int_equal(stats.takes, 2);
        assert_int_equal(stats.gives, 0);
        assert_true(stats.mapped >= stats.requested && stats.mapped <= BUDGET);
        give(&w, a, 1000, 0);
        give(&w, b, 3 * MIB, 0);
        stats = stats_of(&w);
        assert_int_equal(stats.requested, 0);
        assert_int_equal(stats.requested_peak, 1000 + 3 * MIB);
        assert_int_equal(stats.gives, 2);
        assert_true(stats.mapped_peak >= stats.requested_peak);
        close_world(&w);
    }
}

static void an_arena_that_is_not_there_is_said(void **state)
{
    filch_error error = FILCH_ERROR_INIT;
    world w;
    (void)state;
    open_world(&w, FILCH_ARENA_PAGES);
    close_world(&w);
    assert_ok(fl_tss_init(&w.core.worker));
    w.core.settings.arena = FILCH_ARENA_POOL; /* the backend has none */
    assert_int_equal(fl_places_init(&w.places, &w.core, w.devices, 2, 2, &error),
                     FILCH_UNSUPPORTED);
    assert_string_equal(error.text, "test:0: no arena of kind pool here");
    fl_tss_fini(w.core.worker);
    assert_int_equal(atomic_load(&w.host.live), 0);
}

/* --- Memory of the host's that is out --- */

static void a_block_given_back_is_never_lost(void **state)
{
    (void)state;
    for (int left = 0; left < 10; left++) {
        world w;
        void *blocks[100];
        open_world(&w, FILCH_ARENA_PAGES);
        for (int i = 0; i < 100; i++)
            blocks[i] = take(&w, 4096 * (size_t)(1 + i));
        atomic_store(&w.host.left, left);
        atomic_store(&fake.reached, 50);
        for (int i = 0; i < 100; i++) /* where it cannot be remembered it is waited for */
            give(&w, blocks[i], 4096 * (size_t)(1 + i), marker((uint64_t)(i % 50)));
        atomic_store(&w.host.left, -1);
        assert_int_equal(stats_of(&w).requested, 0);
        fl_place_trim(&w.places, 1, 0);
        assert_int_equal(stats_of(&w).mapped, 0);
        close_world(&w);
    }
    for (int left = 0; left < 12; left++) { /* opening */
        world w;
        open_world(&w, FILCH_ARENA_DEFAULT);
        close_world(&w);
        assert_ok(fl_tss_init(&w.core.worker));
        atomic_store(&w.host.left, left);
        if (fl_places_init(&w.places, &w.core, w.devices, 2, 2, NULL) == FILCH_OK)
            fl_places_fini(&w.places);
        fl_tss_fini(w.core.worker);
        assert_int_equal(atomic_load(&w.host.live), 0);
    }
}

/* --- Several threads --- */

enum { THREADS = 4, ROUNDS = 4000, SIZES = 6, HELD = 6 };

typedef struct worker {
    world *w;
    uint64_t stream;
    _Atomic uint64_t *used; /* by all */
    uint32_t beyond, refused;
} worker;

static int churn(void *arg)
{
    worker *k = arg;
    void *blocks[HELD];
    size_t sizes[HELD], count = 0;
    fl_random r;
    fl_random_init(&r, 11, k->stream);
    (void)fl_tss_set(k->w->core.worker, k->stream < 2 ? k : NULL);
    for (int i = 0; i < ROUNDS; i++) {
        if (count < HELD && fl_random_below(&r, 2) == 0) {
            size_t bytes = MIB << fl_random_below(&r, SIZES);
            fl_marker behind;
            if (fl_place_take_as(&k->w->places, 1, bytes, FL_TAKE_BEHIND, &blocks[count], &behind,
                                 NULL) == FILCH_OK) {
                sizes[count++] = bytes;
                k->beyond += atomic_fetch_add(k->used, bytes) + bytes > BUDGET;
            } else {
                k->refused++;
            }
        } else if (count != 0) {
            atomic_fetch_sub(k->used, sizes[--count]);
            uint64_t now = atomic_fetch_add(&fake.reached, 1);
            give(k->w, blocks[count], sizes[count], marker(now + fl_random_below(&r, 3)));
        }
        if (i % 512 == 0)
            fl_place_trim(&k->w->places, 1, 8 * MIB);
    }
    while (count != 0) {
        atomic_fetch_sub(k->used, sizes[--count]);
        give(k->w, blocks[count], sizes[count], 0);
    }
    return 0;
}

static void threads_together_keep_the_budget(void **state)
{
    world w;
    _Atomic uint64_t used = 0;
    worker workers[THREADS];
    fl_thread threads[THREADS];
    uint32_t refused = 0;
    (void)state;
    open_world(&w, FILCH_ARENA_DEFAULT);
    for (size_t t = 0; t < THREADS; t++) {
        workers[t] = (worker){.w = &w, .stream = t, .used = &used};
        assert_ok(fl_thread_start(&threads[t], churn, &workers[t]));
    }
    for (size_t t = 0; t < THREADS; t++) {
        fl_thread_join(threads[t]);
        assert_int_equal(workers[t].beyond, 0);
        refused += workers[t].refused;
    }
    assert_true(refused > 0);
    filch_memory_stats stats = stats_of(&w);
    assert_int_equal(stats.requested, 0);
    assert_int_equal(stats.takes, stats.gives);
    assert_true(stats.mapped_peak <= BUDGET);
    atomic_fetch_add(&fake.reached, 10);
    fl_place_trim(&w.places, 1, 0);
    assert_int_equal(w.places.at[1].held, 0);
    close_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_size_that_comes_back_is_kept_at_hand),
        cmocka_unit_test(a_block_in_use_is_not_handed_out),
        cmocka_unit_test(a_full_place_asks_the_driver),
        cmocka_unit_test(a_cap_and_a_trim_hand_back_what_is_unused),
        cmocka_unit_test(zeroes_are_for_who_asks),
        cmocka_unit_test(everything_is_counted),
        cmocka_unit_test(an_arena_that_is_not_there_is_said),
        cmocka_unit_test(a_block_given_back_is_never_lost),
        cmocka_unit_test(threads_together_keep_the_budget),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
