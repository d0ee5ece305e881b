/* SPDX-License-Identifier: Apache-2.0 */
/* Brief kernels that a lane holds back and puts on its stream together: order, failures, what makes
 * them go out, and graphs that outlive no module. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cuda/queue/pack.h"
#include "base/thread.h"
#include "device/pool.h"
#include "fakecuda.h"

#define MOST 4096
#define WIDE 4000 /* bytes of parameters: four of them fill what a lane has room for */
#define IMAGE "FAKECUBIN arch=90 entry=note(8,8),other(8,8),wide(8,8,4000),pair(8,8)/2"
/* Single launches after which graphs are worth making, and some. */
#define MANY 300u

static fl_memory memory;
static _Atomic int refusals; /* allocations to refuse */
static fl_settings settings;
static fl_pool pool;
static fl_device *device;
static fl_stay stay;
static void *module;
static fl_function note, other, wide, paired;
static uint64_t noted[MOST]; /* by the kernels, in the order in which they ran */
static _Atomic uint32_t notes;
static uint64_t next_tag;
static uint64_t now; /* of launches, ns */

static void *allocate(size_t size, size_t align, void *user)
{
    const fl_memory *from = user;
    if (atomic_load(&refusals) != 0) {
        atomic_fetch_sub(&refusals, 1);
        return NULL;
    }
    return from->alloc(size, align, from->user);
}

static void release(void *pointer, size_t size, size_t align, void *user)
{
    const fl_memory *from = user;
    from->free(pointer, size, align, from->user);
}

static int note_twin(void **params, const fakecuda_geometry *geometry)
{
    (void)geometry;
    noted[atomic_fetch_add(&notes, 1)] = *(uint64_t *)params[1];
    return 0;
}

static void must(filch_status status, const filch_error *error)
{
    if (status != FILCH_OK)
        fail_msg("%s", error->text);
}

static void load(void)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_backend *backend = device->backend;
    must(backend->module->load(device, IMAGE, sizeof IMAGE, "test", &module, &error), &error);
    must(backend->module->function_get(device, module, "note", "test", &note, &error), &error);
    must(backend->module->function_get(device, module, "other", "test", &other, &error), &error);
    must(backend->module->function_get(device, module, "wide", "test", &wide, &error), &error);
    must(backend->module->function_get(device, module, "pair", "test", &paired, &error), &error);
}

static void open_device(const char *spec)
{
    filch_error error = FILCH_ERROR_INIT;
    const fl_discovery how = {.memory = &memory, .error = &error, .settings = &settings};
    static fl_memory from;
    from = fl_memory_default();
    memory = (fl_memory){allocate, release, &from, "caller"};
    fl_settings_defaults(&settings);
    fakecuda_reset();
    assert_true(fakecuda_configure(NULL));
    fakecuda_register("note", note_twin, 0, NULL);
    fakecuda_register("other", note_twin, 0, NULL);
    fakecuda_register("wide", note_twin, 0, NULL);
    fakecuda_register("pair", note_twin, 0, NULL);
    must(fl_pool_open(&pool, spec, &how), &error);
    device = &pool.devices[0];
    must(device->backend->device->enter(device, &stay, &error), &error);
    load();
    atomic_store(&notes, 0);
    next_tag = 0;
    now = 1;
}

static void close_device(void)
{
    static const char *const kinds[] = {"module", "graph", "exec"};
    device->backend->module->unload(device, module);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        assert_int_equal(fakecuda_live(kinds[i]), 0);
    device->backend->device->leave(&stay);
    fl_pool_close(&pool, &memory);
    if (fakecuda_violations() != 0)
        fail_msg("%s", fakecuda_last_violation());
}

/* Launches a kernel that notes the tag. */
static fl_marker put(const fl_function *function, uint32_t lane, bool is_brief,
                     const fl_marker *behind, uint32_t behind_count)
{
    static char bytes[WIDE];
    uint64_t nothing = 0, tag = next_tag++;
    void *params[] = {&nothing, &tag, bytes};
    const uint32_t param_bytes[] = {8, 8, WIDE};
    filch_error error = FILCH_ERROR_INIT;
    fl_launch launch = {.tag = tag,
                        .lane = lane,
                        .function = function,
                        .params = params,
                        .param_bytes = param_bytes,
                        .param_count = function == &wide ? 3 : 2,
                        .shape = {{1, 1, 1}, {32, 1, 1}, {0, 0, 0}, 0},
                        .behind = behind,
                        .behind_count = behind_count,
                        .brief = is_brief};
    must(device->backend->queue->launch(device, &launch, now, &error), &error);
    return launch.marker;
}

static void mark(void)
{
    filch_error error = FILCH_ERROR_INIT;
    must(device->backend->lane->mark(device, &error), &error);
}

/* Takes `count` tiles that are over; returns the tag of one that was refused, or UINT64_MAX. */
static uint64_t take(uint32_t count)
{
    uint64_t refused = UINT64_MAX;
    mark();
    while (count != 0) {
        filch_error error = FILCH_ERROR_INIT;
        uint64_t tag, busy, next;
        filch_status status = device->backend->queue->poll(device, 1, &tag, &busy, &next, &error);
        if (status == FILCH_NOT_READY) {
            fl_relax();
            continue;
        }
        if (status == FILCH_TASK_FAILED) {
            assert_int_equal(refused, UINT64_MAX);
            assert_string_equal(error.call, "cuLaunchKernel");
            refused = tag;
        } else {
            must(status, &error);
        }
        count--;
    }
    return refused;
}

static void put_many_on(uint32_t lane, uint32_t count)
{
    for (uint32_t done = 0; done < count; done += 100) {
        for (uint32_t i = 0; i < 100; i++)
            (void)put(i % 3 == 0 ? &other : &note, lane, true, NULL, 0);
        assert_int_equal(take(100), UINT64_MAX);
    }
}

static void put_many(uint32_t count)
{
    put_many_on(0, count);
}

static void expect_order(uint32_t count)
{
    assert_int_equal(atomic_load(&notes), count);
    for (uint32_t i = 0; i < count; i++)
        assert_int_equal(noted[i], i);
}

static void kernels_go_out_together_and_in_order(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    assert_int_equal(fakecuda_count("cuLaunchKernel") + fakecuda_count("cuGraphLaunch") < MANY,
                     true);
    uint64_t single = fakecuda_count("cuLaunchKernel");
    uint64_t packs = fakecuda_count("cuGraphLaunch");
    put_many(1000);
    expect_order(MANY + 1000);
    /* A full batch and 36 in 32 and 4. */
    assert_int_equal(fakecuda_count("cuLaunchKernel"), single);
    assert_int_equal(fakecuda_count("cuGraphLaunch") - packs, 10 * 3);
    close_device();
}

/* Takes batches of `size` kernels; returns the graphs launched. */
static uint64_t put_batches(uint32_t count, uint32_t size)
{
    uint64_t before = fakecuda_count("cuGraphLaunch");
    atomic_store(&notes, 0);
    next_tag = 0;
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t k = 0; k < size; k++)
            (void)put(k % 2 == 0 ? &other : &note, 0, true, NULL, 0);
        assert_int_equal(take(size), UINT64_MAX);
    }
    expect_order(count * size);
    return fakecuda_count("cuGraphLaunch") - before;
}

static void frequent_sizes_get_a_graph_of_their_own(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    uint64_t single = fakecuda_count("cuLaunchKernel");
    uint64_t live = fakecuda_live("exec");
    assert_int_equal(put_batches(10, 1), 10);
    assert_int_equal(put_batches(45, 13), 45 * 3);
    assert_int_equal(put_batches(20, 13), 20);
    assert_int_equal(put_batches(60, 63), 60 * 6);
    /* What was left of batches of 63 counts for no size. */
    assert_int_equal(put_batches(1, 31), 5);
    assert_int_equal(put_batches(28, 63), 28 * 6);
    assert_int_equal(put_batches(20, 63), 20);
    /* Of 1, 2, 13, 16 and 63 kernels; those of 4, 8 and 32 were there. */
    assert_int_equal(fakecuda_live("exec") - live, 5);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), single);
    device->backend->module->unload(device, module);
    load();
    put_many(MANY);
    assert_int_equal(put_batches(1, 13), 3);
    close_device();
}

/* A graph of a size that cannot be made leaves the other graphs; the size is tried again. */
static void a_graph_of_a_size_may_fail(void **state)
{
    (void)state;
    for (int is_memory = 0; is_memory < 2; is_memory++) {
        open_device("cuda:0");
        put_many(MANY);
        uint64_t single = fakecuda_count("cuLaunchKernel");
        assert_int_equal(put_batches(45, 13), 45 * 3);
        if (is_memory)
            atomic_store(&refusals, 1);
        else
            fakecuda_fail("cuGraphInstantiateWithFlags", 1, 1, 2 /* out of memory */, -1, false);
        assert_int_equal(put_batches(46, 13), 46 * 3);
        assert_int_equal(atomic_load(&refusals), 0);
        assert_int_equal(put_batches(20, 13), 20);
        assert_int_equal(fakecuda_count("cuLaunchKernel"), single);
        close_device();
    }
}

/* A new function for a node, and the graph, cost more than a launch. */
static void a_kernel_alone_keeps_its_graph(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    assert_int_equal(put_batches(1, 1), 1);
    uint64_t single = fakecuda_count("cuLaunchKernel");
    (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(take(1), UINT64_MAX);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), single + 1);
    assert_int_equal(put_batches(1, 1), 1);
    close_device();
    /* Also one with more parameters than a node remembers. */
    open_device("cuda:0");
    put_many(MANY);
    single = fakecuda_count("cuLaunchKernel");
    for (int i = 0; i < 3; i++) {
        (void)put(&wide, 0, true, NULL, 0);
        assert_int_equal(take(1), UINT64_MAX);
    }
    assert_int_equal(fakecuda_count("cuLaunchKernel"), single);
    close_device();
}

/* Launches the first kernels again. */
static void put_again(uint32_t count)
{
    next_tag = 0;
    for (uint32_t i = 0; i < count; i++)
        (void)put(i % 3 == 0 ? &other : &note, 0, true, NULL, 0);
    assert_int_equal(take(count), UINT64_MAX);
}

static void parameters_that_a_node_has_are_not_set_again(void **state)
{
    const char *set = "cuGraphExecKernelNodeSetParams";
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    put_again(FL_CUDA_PACK);
    uint64_t begun = fakecuda_count(set);
    uint32_t first = atomic_load(&notes);
    for (uint32_t round = 0; round < 3; round++)
        put_again(FL_CUDA_PACK);
    assert_int_equal(fakecuda_count(set), begun);
    /* Another function, and another parameter. */
    for (uint64_t i = 0; i < FL_CUDA_PACK; i++) {
        next_tag = i == 7 ? 1000 : i;
        (void)put(i % 3 == 0 && i != 9 ? &other : &note, 0, true, NULL, 0);
    }
    assert_int_equal(take(FL_CUDA_PACK), UINT64_MAX);
    assert_int_equal(fakecuda_count(set), begun + 2);
    for (uint32_t i = 0; i < 4 * FL_CUDA_PACK; i++)
        assert_int_equal(noted[first + i], i == 3 * FL_CUDA_PACK + 7 ? 1000 : i % FL_CUDA_PACK);
    close_device();
}

/* The graph's first kernel follows others in the driver's way whatever it does itself. */
static void kernels_that_wait_by_themselves_have_edges_of_their_own(void **state)
{
    (void)state;
    open_device("cuda:0");
    assert_true(note.can_wait);
    note.waits = true;
    put_many(MANY); /* of both */
    assert_int_equal(fakecuda_count("programmatic"), 0);
    for (uint32_t round = 0; round < 3; round++) {
        (void)put(&other, 0, true, NULL, 0);
        for (uint32_t i = 1; i < FL_CUDA_PACK; i++)
            (void)put(&note, 0, true, NULL, 0);
        assert_int_equal(take(FL_CUDA_PACK), UINT64_MAX);
    }
    assert_int_equal(fakecuda_count("programmatic"), FL_CUDA_PACK - 1);
    put_many(100);
    expect_order(MANY + 3 * FL_CUDA_PACK + 100);
    note.waits = false;
    close_device();
}

static void what_is_held_waits_for_a_mark(void **state)
{
    (void)state;
    open_device("cuda:0");
    for (int i = 0; i < 5; i++)
        (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 0);
    assert_int_equal(take(5), UINT64_MAX);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 5);
    /* One that is not brief goes out at once, behind those before it. */
    (void)put(&note, 0, true, NULL, 0);
    (void)put(&note, 0, false, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 7);
    assert_int_equal(take(2), UINT64_MAX);
    expect_order(7);
    close_device();
}

/* Each lane gathers items of its own. */
static void each_lane_fills_its_batches(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many_on(0, MANY);
    put_many_on(1, MANY);
    uint64_t graphs = fakecuda_count("cuGraphLaunch");
    uint64_t marks = fakecuda_count("cuEventRecord");
    (void)put(&note, 0, true, NULL, 0);
    for (uint32_t i = 0; i < FL_CUDA_PACK - 1; i++)
        (void)put(&note, 1, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuGraphLaunch"), graphs);
    (void)put(&note, 1, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuGraphLaunch"), graphs + 1);
    for (uint32_t i = 0; i < FL_CUDA_PACK - 1; i++)
        (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuGraphLaunch"), graphs + 2);
    assert_int_equal(fakecuda_count("cuEventRecord"), marks + 2);
    assert_int_equal(take(2 * FL_CUDA_PACK), UINT64_MAX);
    close_device();
}

/* A launch on any lane marks every lane whose oldest unmarked item is FL_MARK_NS old, and no other
 * lane. */
static void old_items_are_marked(void **state)
{
    (void)state;
    open_device("cuda:0");
    uint64_t marks = fakecuda_count("cuEventRecord");
    now = 1000;
    (void)put(&note, 0, true, NULL, 0);
    now += FL_MARK_NS / 2;
    (void)put(&note, 1, true, NULL, 0);
    now += FL_MARK_NS / 2 - 1;
    (void)put(&note, 1, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 0);
    now += 1;
    (void)put(&note, 1, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 1);
    assert_int_equal(fakecuda_count("cuEventRecord"), marks + 1);
    (void)put(&note, 0, true, NULL, 0);
    now += FL_MARK_NS / 2;
    (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 4);
    now += FL_MARK_NS / 2;
    (void)put(&note, 1, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 6);
    assert_int_equal(fakecuda_count("cuEventRecord"), marks + 3);
    assert_int_equal(take(7), UINT64_MAX);
    close_device();
}

static void others_wait_for_what_is_held(void **state)
{
    (void)state;
    open_device("cuda:0");
    fl_marker marker = 0;
    for (int i = 0; i < 200; i++) {
        /* Each on another lane than the one before, and behind it. */
        marker = put(&note, (uint32_t)i % device->lanes, i % 5 != 0, &marker, marker != 0);
        if (i % 50 == 49)
            assert_int_equal(take(50), UINT64_MAX);
    }
    expect_order(200);
    close_device();
}

static void a_lane_has_room_for_so_many_parameters(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    for (int i = 0; i < 20; i++)
        (void)put(&wide, 0, true, NULL, 0);
    assert_int_equal(take(20), UINT64_MAX);
    expect_order(MANY + 20);
    close_device();
}

/* A node would keep the clusters of the first kernel that it had. */
static void kernels_of_clusters_go_by_themselves(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY);
    uint64_t single = fakecuda_count("cuLaunchKernel");
    for (int i = 0; i < 20; i++)
        (void)put(&paired, 0, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel") - single, 20);
    assert_int_equal(take(20), UINT64_MAX);
    put_many(100);
    expect_order(MANY + 120);
    close_device();
}

/* A stream of a slice does not keep a graph's kernels on the slice. */
static void slices_hold_nothing(void **state)
{
    (void)state;
    open_device("cuda:0/88+24");
    for (uint32_t i = 0; i < 100; i++)
        (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(fakecuda_count("cuLaunchKernel"), 100);
    assert_int_equal(take(100), UINT64_MAX);
    expect_order(100);
    close_device();
}

/* Whatever a graph's calls answer, the kernels run, in order and once. */
static void kernels_run_where_graphs_fail(void **state)
{
    static const char *const calls[] = {"cuGraphCreate", "cuGraphAddKernelNode",
                                        "cuGraphInstantiateWithFlags",
                                        "cuGraphExecKernelNodeSetParams", "cuGraphLaunch"};
    (void)state;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        for (uint64_t nth = 1; nth < 40; nth += 19) {
            open_device("cuda:0");
            fakecuda_fail(calls[i], nth, 1, 2 /* out of memory */, -1, false);
            put_many(MANY + 200);
            expect_order(MANY + 200);
            (void)put_batches(3, 1);
            (void)put_batches(70, 13);
            close_device();
        }
    }
}

/* It is tried twice: the first time something may have been lacking that was in use. */
static void the_kernel_that_is_refused_is_named(void **state)
{
    (void)state;
    open_device("cuda:0");
    for (int i = 0; i < 6; i++)
        (void)put(&note, 0, true, NULL, 0);
    fakecuda_fail("cuLaunchKernel", 3, 1, 2 /* out of memory */, -1, false);
    assert_int_equal(take(6), UINT64_MAX);
    expect_order(6);
    atomic_store(&notes, 0);
    next_tag = 0;
    for (int i = 0; i < 6; i++)
        (void)put(&note, 0, true, NULL, 0);
    fakecuda_fail("cuLaunchKernel", 3, 2, 701 /* too many resources */, -1, false);
    assert_int_equal(take(6), 2);
    assert_int_equal(atomic_load(&notes), 5);
    (void)put(&note, 0, true, NULL, 0);
    assert_int_equal(take(1), UINT64_MAX);
    close_device();
}

static void what_is_discarded_never_runs(void **state)
{
    (void)state;
    open_device("cuda:0");
    (void)put(&note, 0, false, NULL, 0);
    (void)put(&note, 0, true, NULL, 0);
    device->backend->queue->discard(device);
    mark();
    assert_int_equal(device->backend->lane->drain(device, NULL), FILCH_OK);
    expect_order(1);
    close_device();
}

static void graphs_go_with_the_modules_that_they_name(void **state)
{
    (void)state;
    open_device("cuda:0");
    put_many(MANY + 100);
    assert_true(fakecuda_live("exec") > 0);
    device->backend->module->unload(device, module);
    assert_int_equal(fakecuda_live("exec"), 0);
    assert_int_equal(fakecuda_live("graph"), 0);
    load();
    put_many(MANY + 100);
    assert_true(fakecuda_live("exec") > 0);
    expect_order(2 * (MANY + 100));
    close_device();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kernels_go_out_together_and_in_order),
        cmocka_unit_test(frequent_sizes_get_a_graph_of_their_own),
        cmocka_unit_test(a_graph_of_a_size_may_fail),
        cmocka_unit_test(a_kernel_alone_keeps_its_graph),
        cmocka_unit_test(parameters_that_a_node_has_are_not_set_again),
        cmocka_unit_test(kernels_that_wait_by_themselves_have_edges_of_their_own),
        cmocka_unit_test(what_is_held_waits_for_a_mark),
        cmocka_unit_test(each_lane_fills_its_batches),
        cmocka_unit_test(old_items_are_marked),
        cmocka_unit_test(others_wait_for_what_is_held),
        cmocka_unit_test(a_lane_has_room_for_so_many_parameters),
        cmocka_unit_test(kernels_of_clusters_go_by_themselves),
        cmocka_unit_test(slices_hold_nothing),
        cmocka_unit_test(what_is_discarded_never_runs),
        cmocka_unit_test(kernels_run_where_graphs_fail),
        cmocka_unit_test(the_kernel_that_is_refused_is_named),
        cmocka_unit_test(graphs_go_with_the_modules_that_they_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
