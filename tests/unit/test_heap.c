/* SPDX-License-Identifier: Apache-2.0 */
/* Heaps over memory that traps whoever touches it: blocks are apart, aligned and within the limit,
 * for one thread and for several, and nothing is lost when memory is out anywhere. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "memory/alloc/heap.h"
#include "random.h"
#include "untouchable.h"

#define MIB ((size_t)1 << 20)
#define assert_ok(call) assert_int_equal((call), FILCH_OK)

static const filch_arena kinds[] = {FILCH_ARENA_JEMALLOC, FILCH_ARENA_PAGES, FILCH_ARENA_PLAIN};
enum { KINDS = sizeof kinds / sizeof *kinds };

/* --- A source --- */

static filch_status chunk_take(const fl_source *source, size_t bytes, void **chunk,
                               filch_error *error)
{
    void *made = untouchable_take(source->user, bytes);
    if (made == NULL)
        return fl_error_fill(error, (fl_fault){.status = FILCH_NO_DEVICE_MEMORY}, "none");
    *chunk = made;
    return FILCH_OK;
}

static void chunk_give(const fl_source *source, void *chunk, size_t bytes)
{
    untouchable_give(source->user, chunk, bytes);
}

/* Single blocks of one page each: how large they are is the heap's business. */
static filch_status block_take(const fl_source *source, size_t bytes, void **block,
                               filch_error *error)
{
    (void)bytes;
    return chunk_take(source, 4096, block, error);
}

static void block_give(const fl_source *source, void *block)
{
    untouchable_give(source->user, block, 4096);
}

static bool open_heap(fl_heap *heap, filch_arena kind, const fl_memory *memory, untouchable *u,
                      uint64_t limit)
{
    const fl_source source = {.name = "test",
                              .user = u,
                              .granularity = GRANULARITY,
                              .chunk_take = chunk_take,
                              .chunk_give = chunk_give,
                              .block_take = block_take,
                              .block_give = block_give};
    if (kind == FILCH_ARENA_JEMALLOC && !fl_slabs_are_there())
        return false;
    assert_ok(fl_heap_init(heap, kind, memory, &source, limit));
    return true;
}

static void close_heap(fl_heap *heap, untouchable *u)
{
    fl_heap_fini(heap);
    assert_int_equal(atomic_load(&u->out), 0);
}

/* --- Against a model --- */

typedef struct block {
    char *at;
    size_t bytes;
} block;

enum { MOST = 300 };

/* Log-uniform from 1 B to 4 MiB. */
static size_t some_size(fl_random *r)
{
    return (size_t)exp2(22 * fl_random_unit(r));
}

static void random_blocks_are_apart_and_within(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) { /* those that cut chunks */
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = 128 * MIB};
        block blocks[MOST];
        size_t count = 0;
        uint32_t refused = 0;
        fl_random r;
        fl_heap heap;
        if (!open_heap(&heap, kinds[k], &memory, &u, 40 * MIB + 77))
            continue;
        fl_random_init(&r, 42, k);
        for (int i = 0; i < 30000; i++) {
            if (count < MOST && fl_random_below(&r, 9) < 5) {
                block made = {NULL, fl_block_round(some_size(&r))};
                void *taken;
                filch_status status = fl_heap_take(&heap, made.bytes, &taken, NULL);
                refused += status == FILCH_NO_DEVICE_MEMORY;
                if (status == FILCH_OK) {
                    made.at = taken;
                    assert_int_equal((uintptr_t)taken % FL_BLOCK_STEP, 0);
                    for (size_t b = 0; b < count; b++)
                        assert_true(blocks[b].at + blocks[b].bytes <= made.at ||
                                    made.at + made.bytes <= blocks[b].at);
                    blocks[count++] = made;
                }
            } else if (count != 0) {
                size_t at = fl_random_below(&r, (uint32_t)count);
                fl_heap_give(&heap, blocks[at].at, blocks[at].bytes);
                blocks[at] = blocks[--count];
            }
            assert_true(heap.mapped <= 40 * MIB && heap.mapped == atomic_load(&u.out));
            if (i % 1000 == 0)
                assert_true(fl_extents_is_valid(&heap.extents));
        }
        assert_true(refused > 0);
        while (count-- != 0)
            fl_heap_give(&heap, blocks[count].at, blocks[count].bytes);
        fl_heap_trim(&heap, 0);
        assert_int_equal(atomic_load(&u.out), 0); /* slabs too */
        close_heap(&heap, &u);
    }
}

/* --- Fragmentation --- */

/* Counts, not timings: 1 - peak requested / peak mapped at 1.1 GB live, sizes log-uniform from 256
 * B to 8 MB, a million operations. */
static void little_of_what_is_mapped_is_lost(void **state)
{
    enum { BLOCKS = 200000, OPERATIONS = 1000000 };
    const uint64_t goal = UINT64_C(1100) * 1000 * 1000;
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = UINT64_C(1) << 40};
        block *blocks = calloc(BLOCKS, sizeof *blocks);
        uint64_t live = 0, peak = 0;
        size_t count = 0;
        fl_random r;
        fl_heap heap;
        assert_non_null(blocks);
        fl_random_init(&r, 7, 0);
        if (!open_heap(&heap, kinds[k], &memory, &u, u.all)) {
            free(blocks);
            continue;
        }
        for (int i = 0; i < OPERATIONS; i++) {
            if (live < goal) {
                size_t bytes = (size_t)(256 * exp2(15 * fl_random_unit(&r)));
                void *taken;
                assert_ok(fl_heap_take(&heap, fl_block_round(bytes), &taken, NULL));
                blocks[count++] = (block){taken, bytes};
                live += bytes;
                peak = live > peak ? live : peak;
            } else {
                size_t at = fl_random_below(&r, (uint32_t)count);
                fl_heap_give(&heap, blocks[at].at, fl_block_round(blocks[at].bytes));
                live -= blocks[at].bytes;
                blocks[at] = blocks[--count];
            }
        }
        print_message("%s: %.1f %% lost\n", k == 0 ? "jemalloc" : "pages",
                      100 * (1 - (double)peak / (double)heap.mapped_peak));
        assert_true((double)peak >= 0.75 * (double)heap.mapped_peak);
        while (count-- != 0)
            fl_heap_give(&heap, blocks[count].at, fl_block_round(blocks[count].bytes));
        close_heap(&heap, &u);
        free(blocks);
    }
}

/* Of large blocks few have room in a usual chunk: chunks are made to fit several. */
static void large_blocks_fill_their_chunks(void **state)
{
    static const size_t sizes[] = {11 * MIB, 17 * MIB, 20 * MIB, 35 * MIB, 70 * MIB};
    (void)state;
    for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = UINT64_C(1) << 40};
        void *blocks[20];
        fl_heap heap;
        (void)open_heap(&heap, FILCH_ARENA_PAGES, &memory, &u, u.all);
        for (int i = 0; i < 20; i++)
            assert_ok(fl_heap_take(&heap, sizes[k], &blocks[i], NULL));
        assert_true(heap.mapped <= 20 * sizes[k] / 100 * 115);
        for (int i = 0; i < 20; i++)
            fl_heap_give(&heap, blocks[i], sizes[k]);
        close_heap(&heap, &u);
    }
}

/* --- Memory that is out --- */

static void what_is_unused_goes_back_before_a_refusal(void **state)
{
    (void)state;
    for (size_t k = 0; k < 2; k++) {
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = 100 * MIB};
        filch_error error = FILCH_ERROR_INIT;
        void *small, *large, *none = &error;
        fl_heap heap;
        if (!open_heap(&heap, kinds[k], &memory, &u, 200 * MIB))
            continue;
        assert_ok(fl_heap_take(&heap, 60 * MIB, &large, NULL));
        fl_heap_give(&heap, large, 60 * MIB);
        assert_ok(fl_heap_take(&heap, 90 * MIB, &large, NULL)); /* both is more than there is */
        assert_int_equal(fl_heap_take(&heap, 20 * MIB, &none, &error), FILCH_NO_DEVICE_MEMORY);
        assert_ptr_equal(none, &error);
        assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
        assert_ok(fl_heap_take(&heap, 1024, &small, NULL)); /* what is left of a chunk */
        fl_heap_give(&heap, small, 1024);
        fl_heap_give(&heap, large, 90 * MIB);
        fl_heap_limit(&heap, 0);
        assert_int_equal(atomic_load(&u.out), 0);
        fl_heap_limit(&heap, 200 * MIB);
        assert_ok(fl_heap_take(&heap, 100 * MIB, &large, NULL));
        fl_heap_give(&heap, large, 100 * MIB);
        close_heap(&heap, &u);
    }
}

/* Others take some of the memory, and give it back. */
static void what_the_source_has_is_found_out(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        /* Blocks of a source of single ones are a page each there. */
        size_t step = kinds[k] == FILCH_ARENA_PLAIN ? 4096 : MIB;
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = 20 * step};
        filch_error error = FILCH_ERROR_INIT;
        void *blocks[80], *none = NULL;
        size_t count = 0, more = 0;
        uint64_t calls;
        fl_heap heap;
        if (!open_heap(&heap, kinds[k], &memory, &u, 80 * step))
            continue;
        assert_false(fl_heap_insist(&heap));
        while (fl_heap_take(&heap, step, &blocks[count], &error) == FILCH_OK)
            count++;
        /* All that there is, though less than a chunk of the usual size. */
        assert_int_equal(count, 20);
        assert_int_equal(heap.mapped, 20 * step);
        assert_in_range(heap.lent, 20 * step, 21 * step - 1);
        assert_int_equal(heap.shortages, 1);
        assert_int_equal(error.status, FILCH_NO_DEVICE_MEMORY);
        assert_non_null(strstr(error.text, step == MIB ? "test: 1048576 bytes were asked for"
                                                       : "test: 4096 bytes were asked for"));
        assert_non_null(strstr(error.text, step == MIB ? "no more than 20971520 bytes, and 20971520"
                                                       : "no more than 85504 bytes, and 81920"));
        /* What is known is not asked for, what is given back is there again. */
        calls = atomic_load(&u.calls);
        for (int i = 0; i < 3; i++)
            assert_int_equal(fl_heap_take(&heap, step, &none, &error), FILCH_NO_DEVICE_MEMORY);
        fl_heap_give(&heap, blocks[7], step);
        assert_ok(fl_heap_take(&heap, step, &blocks[7], NULL));
        assert_int_equal(atomic_load(&u.calls), calls);
        /* Refusals ask now and then, in vain ever less often, … */
        for (int i = 0; i < 5000; i++)
            assert_int_equal(fl_heap_take(&heap, step, &none, NULL), FILCH_NO_DEVICE_MEMORY);
        assert_in_range(atomic_load(&u.calls) - calls, 5, 40);
        assert_in_range(heap.lent, 20 * step, 21 * step - 1);
        /* … and find what others gave back. */
        u.all = 100 * step;
        while (fl_heap_take(&heap, step, &blocks[count], NULL) != FILCH_OK)
            assert_true(++more < 10000);
        assert_int_equal(heap.lent, UINT64_MAX);
        while (++count < 80)
            assert_ok(fl_heap_take(&heap, step, &blocks[count], NULL));
        assert_int_equal(fl_heap_take(&heap, step, &none, &error), FILCH_NO_DEVICE_MEMORY);
        assert_non_null(strstr(error.text, "of its budget")); /* the limit's refusal */
        assert_int_equal(heap.lent, UINT64_MAX);
        while (count != 0)
            fl_heap_give(&heap, blocks[--count], step);
        close_heap(&heap, &u);
    }
}

/* Who would fail otherwise has the source asked; a trim and another limit do, too. */
static void the_source_is_asked_again_when_told(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = 10 * MIB};
        void *taken;
        fl_heap heap;
        (void)open_heap(&heap, FILCH_ARENA_PAGES, &memory, &u, 80 * MIB);
        assert_int_equal(fl_heap_take(&heap, 60 * MIB, &taken, NULL), FILCH_NO_DEVICE_MEMORY);
        assert_int_equal(heap.lent, 58 * MIB); /* less may be had */
        assert_int_equal(fl_heap_take(&heap, 12 * MIB, &taken, NULL), FILCH_NO_DEVICE_MEMORY);
        assert_int_equal(heap.lent, 10 * MIB);
        u.all = 100 * MIB;
        assert_int_equal(fl_heap_take(&heap, 60 * MIB, &taken, NULL), FILCH_NO_DEVICE_MEMORY);
        if (how == 0)
            assert_true(fl_heap_insist(&heap));
        else if (how == 1)
            fl_heap_trim(&heap, UINT64_MAX);
        else
            fl_heap_limit(&heap, 70 * MIB);
        assert_false(fl_heap_insist(&heap));
        assert_ok(fl_heap_take(&heap, 60 * MIB, &taken, NULL));
        fl_heap_give(&heap, taken, 60 * MIB);
        close_heap(&heap, &u);
    }
}

/* Every allocation of the host's, and every call of the source's, fails once. */
static void nothing_is_lost_where_a_call_fails(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        for (int left = 0; left < 60; left++) {
            scarce s;
            fl_memory memory = scarce_memory(&s);
            untouchable u = {.all = 64 * MIB};
            void *taken[200];
            size_t count = 0;
            fl_heap heap;
            if (!open_heap(&heap, kinds[k], &memory, &u, 32 * MIB))
                continue;
            if (left < 40)
                atomic_store(&s.left, left);
            else
                atomic_store(&u.fails, left - 39);
            for (size_t i = 0; i < 200; i++) {
                size_t bytes = fl_block_round(1 + i * 1000);
                filch_status status = fl_heap_take(&heap, bytes, &taken[i], NULL);
                if (status != FILCH_OK) {
                    assert_int_equal(status,
                                     left < 40 ? FILCH_OUT_OF_MEMORY : FILCH_NO_DEVICE_MEMORY);
                    taken[i] = NULL;
                    (void)fl_heap_insist(&heap); /* the next one asks */
                }
                count += status == FILCH_OK;
                if (i % 3 == 0 && taken[i] != NULL) {
                    fl_heap_give(&heap, taken[i], bytes);
                    taken[i] = NULL;
                }
            }
            atomic_store(&s.left, -1);
            atomic_store(&u.fails, 0);
            for (size_t i = 0; i < 200; i++)
                if (taken[i] != NULL)
                    fl_heap_give(&heap, taken[i], fl_block_round(1 + i * 1000));
            assert_true(left < 40 || count > 100);
            close_heap(&heap, &u);
            assert_int_equal(atomic_load(&s.live), 0);
        }
    }
}

/* --- Several threads --- */

enum { THREADS = 4, ROUNDS = 3000 };

typedef struct worker {
    fl_heap *heap;
    uint64_t stream;
    _Atomic uint64_t *owners; /* one a 512 bytes of the addresses below */
    uint64_t beyond;
} worker;

static int churn(void *arg)
{
    worker *w = arg;
    block blocks[40];
    size_t count = 0;
    fl_random r;
    fl_random_init(&r, 3, w->stream);
    for (int i = 0; i < ROUNDS; i++) {
        if (count < 40 && fl_random_below(&r, 2) == 0) {
            block made = {NULL, fl_block_round((size_t)exp2(18 * fl_random_unit(&r)))};
            void *taken;
            if (fl_heap_take(w->heap, made.bytes, &taken, NULL) == FILCH_OK) {
                made.at = taken;
                blocks[count++] = made;
                /* Each address is one owner's at a time: hashed, so that most are told apart. */
                uint64_t slot = ((uintptr_t)taken / FL_BLOCK_STEP) & 0xfffff;
                uint64_t before = atomic_exchange(&w->owners[slot], (uintptr_t)taken);
                w->beyond += before == (uintptr_t)taken;
            }
        } else if (count != 0) {
            size_t at = fl_random_below(&r, (uint32_t)count);
            uint64_t slot = ((uintptr_t)blocks[at].at / FL_BLOCK_STEP) & 0xfffff;
            atomic_store(&w->owners[slot], 0);
            fl_heap_give(w->heap, blocks[at].at, blocks[at].bytes);
            blocks[at] = blocks[--count];
        }
    }
    while (count-- != 0) {
        atomic_store(&w->owners[((uintptr_t)blocks[count].at / FL_BLOCK_STEP) & 0xfffff], 0);
        fl_heap_give(w->heap, blocks[count].at, blocks[count].bytes);
    }
    return 0;
}

static void threads_do_not_get_the_same_block(void **state)
{
    (void)state;
    for (size_t k = 0; k < KINDS; k++) {
        fl_memory memory = fl_memory_default();
        untouchable u = {.all = UINT64_C(1) << 32};
        worker workers[THREADS];
        fl_thread threads[THREADS];
        _Atomic uint64_t *owners = calloc(0x100000, sizeof *owners);
        fl_heap heap;
        assert_non_null(owners);
        if (open_heap(&heap, kinds[k], &memory, &u, 64 * MIB)) {
            for (size_t t = 0; t < THREADS; t++) {
                workers[t] = (worker){&heap, t, owners, 0};
                assert_ok(fl_thread_start(&threads[t], churn, &workers[t]));
            }
            for (size_t t = 0; t < THREADS; t++) {
                fl_thread_join(threads[t]);
                assert_int_equal(workers[t].beyond, 0);
            }
            assert_true(heap.mapped_peak <= 64 * MIB);
            close_heap(&heap, &u);
        }
        free((void *)owners);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_blocks_are_apart_and_within),
        cmocka_unit_test(little_of_what_is_mapped_is_lost),
        cmocka_unit_test(large_blocks_fill_their_chunks),
        cmocka_unit_test(what_is_unused_goes_back_before_a_refusal),
        cmocka_unit_test(what_the_source_has_is_found_out),
        cmocka_unit_test(the_source_is_asked_again_when_told),
        cmocka_unit_test(nothing_is_lost_where_a_call_fails),
        cmocka_unit_test(threads_do_not_get_the_same_block),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
