/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a batch on a GPU that nobody helps: seen on one whose kernels end when they may. On
 * the fake driver. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

enum { ITEMS = 4096, ITEM_NS = 5000 };

static uint64_t items[ITEMS];

/* Items take time: of a kernel that takes as long however many it has, all would go at once. */
static int hold_each(const filch_call *call)
{
    const struct timespec nap = {0, (long)(call->hi - call->lo) * ITEM_NS};
    (void)nanosleep(&nap, NULL);
    return hold(call);
}

static filch_job *start_batch(filch_codelet *codelet, filch_data *data)
{
    const filch_batch_access access = {
        .data = data, .mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_job *job = NULL;
    desc.codelet = codelet;
    desc.n = ITEMS;
    desc.accesses = &access;
    desc.access_count = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &job));
    return job;
}

/* The last chunk does not wait for the one before: there is nobody to leave it to. */
static void last_chunks_overlap_on_a_lone_device(void **state)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    (void)state;
    start("cuda:0", "2", "{\"devices\": [{}]}");
    fakecuda_register_filch("hold", hold_each, 1, true, 0);
    desc.ptr = items;
    desc.element = sizeof *items;
    desc.rows = ITEMS;
    assert_ok(filch_data_create(runtime, &desc, &data));
    filch_codelet *codelet = on_gpu("hold");
    for (int i = 0; i < 8; i++)
        finish(start_batch(codelet, data), FILCH_OK); /* tells how long they take */
    uint64_t before = fakecuda_count("cuLaunchKernel");
    atomic_store(&is_held, 1);
    filch_job *job = start_batch(codelet, data);
    const struct timespec nap = {0, 1000000};
    for (int i = 0; i < 5000 && fakecuda_count("cuLaunchKernel") - before < 2; i++)
        (void)nanosleep(&nap, NULL);
    uint64_t launched = fakecuda_count("cuLaunchKernel") - before;
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    assert_true(launched >= 2); /* the first of them was not over */
    stop();
}

enum { MANY = 25600, BLOCKS_AN_ITEM = 32, BLOCKS_OF_ONE = 8 };
static uint64_t many[MANY];
static _Atomic uint32_t alone; /* calls of the shape for a single item */

/* Of a kernel that goes on in strides: no more threads than the GPU holds. */
static int shape_strides(const filch_call *call, filch_shape *shape)
{
    uint64_t blocks = (call->hi - call->lo) * BLOCKS_AN_ITEM;
    uint64_t most = (uint64_t)BLOCKS_OF_ONE * call->team;
    shape->grid[0] = (uint32_t)(blocks < most ? blocks : most);
    shape->block[0] = 256;
    assert_int_equal(call->views[0].rows, call->hi - call->lo);
    atomic_fetch_add(&alone, call->hi - call->lo == 1);
    return 0;
}

/* Runs a batch of a kernel of that geometry; the codelet lives as long as the runtime. */
static filch_codelet *run_many(filch_shape_fn shape, filch_host_fn twin, filch_device_stats *stats)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc codelet = FILCH_CODELET_DESC_INIT;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_batch_access access = {.mode = FILCH_READ, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    filch_job_info info = {.size = sizeof info};
    filch_job *job = NULL;
    fakecuda_register_filch("hold", twin, 1, true, 0);
    cuda.image = IMAGE;
    cuda.image_bytes = sizeof IMAGE;
    cuda.entry = "hold";
    cuda.shape_of = shape;
    codelet.name = "hold";
    codelet.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &codelet, &batch.codelet));
    desc.ptr = many;
    desc.element = sizeof *many;
    desc.rows = MANY;
    assert_ok(filch_data_create(runtime, &desc, &access.data));
    batch.n = MANY;
    batch.accesses = &access;
    batch.access_count = 1;
    atomic_store(&is_held, 0);
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    assert_int_equal(filch_job_wait(job, SOON), FILCH_OK);
    assert_ok(filch_job_stats(job, &info, stats, 1));
    assert_ok(filch_job_release(job));
    return batch.codelet;
}

/* The geometry of a chunk then is the same however long it is: the first, of which nothing is known
 * and which is the sixty-fourth part of all, does not tell how long the others have to be. */
static void chunks_of_strides_are_not_as_long_as_the_first(void **state)
{
    filch_device_stats stats;
    (void)state;
    start("cuda:0", "1", "{\"devices\": [{}]}");
    atomic_store(&alone, 0);
    (void)run_many(shape_strides, hold_each, &stats);
    assert_true(atomic_load(&alone) >= 1);
    assert_in_range(stats.tiles, 100, MANY); /* of the first one's length: 64 */
    stop();
}

enum { ITEMS_A_BLOCK = 8, BLOCKS_ACROSS = 16 };
static _Atomic uint32_t chunks, ragged;

static int shape_rows(const filch_call *call, filch_shape *shape)
{
    shape->grid[0] = BLOCKS_ACROSS;
    shape->grid[1] = (uint32_t)((call->hi - call->lo + ITEMS_A_BLOCK - 1) / ITEMS_A_BLOCK);
    shape->block[0] = 256;
    return 0;
}

static int note_rows(const filch_call *call)
{
    uint32_t length = (uint32_t)(call->hi - call->lo);
    atomic_fetch_add(&chunks, 1);
    atomic_fetch_add(&ragged, length % ITEMS_A_BLOCK != 0);
    return hold_each(call);
}

/* Blocks take several items each: of one that gets fewer the rest of its threads are idle. All
 * chunks but the first two, before which nothing was asked, and the last have whole blocks. */
static void chunks_are_of_whole_blocks(void **state)
{
    filch_device_stats stats;
    (void)state;
    start("cuda:0", "1", "{\"devices\": [{}]}");
    atomic_store(&chunks, 0);
    atomic_store(&ragged, 0);
    (void)run_many(shape_rows, note_rows, &stats);
    assert_int_equal(atomic_load(&chunks), stats.tiles);
    assert_in_range(stats.tiles, 10, 100);
    assert_in_range(atomic_load(&ragged), 0, 3);
    stop();
}

/* Two chunks at once on two lanes: each lasts as long as it would alone here, and all of it counts
 * for the speed of neither. Where processors are others' for a while kernels take what they take,
 * so one round of some must do. */
static void chunks_that_overlap_share_the_time(void **state)
{
    bool is_shared = false;
    (void)state;
    for (int round = 0; round < 8 && !is_shared; round++) {
        filch_device_stats stats;
        filch_speed speed = {.size = sizeof speed};
        start("cuda:0", "2", "{\"devices\": [{}]}");
        filch_codelet *codelet = run_many(shape_rows, hold_each, &stats);
        assert_ok(filch_codelet_speed(codelet, 0, &speed));
        is_shared = speed.ns_per_unit > 0.3 * ITEM_NS && speed.ns_per_unit < 0.8 * ITEM_NS;
        stop();
    }
    assert_true(is_shared);
}

/* Of a caller who tries block sizes in turn. */
static int shape_in_turn(const filch_call *call, filch_shape *shape)
{
    static const uint32_t sizes[] = {512, 256, 128};
    static _Atomic uint32_t turn;
    uint32_t size = sizes[atomic_fetch_add(&turn, 1) % 3];
    shape->grid[0] = (uint32_t)((call->hi - call->lo + size - 1) / size);
    shape->block[0] = size;
    return 0;
}

/* Such a geometry tells nothing, and does no harm. */
static void a_geometry_that_changes_is_taken_as_it_comes(void **state)
{
    filch_device_stats stats;
    (void)state;
    start("cuda:0", "2", "{\"devices\": [{}]}");
    for (int i = 0; i < 3; i++)
        (void)run_many(shape_in_turn, hold_each, &stats);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(last_chunks_overlap_on_a_lone_device),
        cmocka_unit_test(chunks_of_strides_are_not_as_long_as_the_first),
        cmocka_unit_test(chunks_are_of_whole_blocks),
        cmocka_unit_test(chunks_that_overlap_share_the_time),
        cmocka_unit_test(a_geometry_that_changes_is_taken_as_it_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
