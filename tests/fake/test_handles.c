/* SPDX-License-Identifier: Apache-2.0 */
/* Handles whose buffer is on a GPU, or that have none: where their contents are and how often they
 * are copied, what is refused, and what is left of them when jobs fail. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake.h"
#include "memory/tiles/data.h"

#include "jobs.h"

#define TILE 16 /* elements a tile, where there are several */

static void refuses(filch_status got, filch_status wanted, const char *label, const char *text)
{
    filch_error error = FILCH_ERROR_INIT;
    assert_int_equal(got, wanted);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_int_equal(error.status, wanted);
    assert_string_equal(error.label, label);
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, error.text);
}

static filch_data_desc describe(void *at, uint32_t flags, const char *label)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = at;
    desc.element = sizeof(uint64_t);
    desc.rows = N;
    desc.flags = flags;
    desc.label = label;
    return desc;
}

static filch_data *make(filch_data_desc desc)
{
    filch_data *data = NULL;
    filch_error error = FILCH_ERROR_INIT;
    if (filch_data_create(runtime, &desc, &data) != FILCH_OK) {
        (void)filch_runtime_error(runtime, &error);
        fail_msg("%s", error.text);
    }
    return data;
}

static filch_data *unbacked(const char *label)
{
    return make(describe(NULL, FILCH_DATA_NO_BUFFER, label));
}

static uint64_t copies_in(void)
{
    return fakecuda_count("cuMemcpyHtoDAsync") + fakecuda_count("cuMemcpy2DAsync");
}

static uint64_t copies_out(void)
{
    return fakecuda_count("cuMemcpyDtoHAsync");
}

static uint64_t *at_home(filch_data *data)
{
    filch_view view;
    assert_ok(filch_data_view(data, 0, 0, &view));
    return view.ptr;
}

static void has(filch_data *data, uint64_t value)
{
    assert_ok(filch_data_acquire(data, FILCH_READ));
    expect(at_home(data), value);
    assert_ok(filch_data_release(data));
}

/* --- Memory of the program's own --- */

typedef struct owner {
    CUcontext context;
    CUdevice device;
} owner;

static owner own(CUdevice device)
{
    owner o = {.device = device};
    assert_int_equal(cuInit(0), FL_CUDA_SUCCESS);
    assert_int_equal(cuDevicePrimaryCtxRetain(&o.context, device), FL_CUDA_SUCCESS);
    return o;
}

static void disown(owner *o)
{
    assert_int_equal(cuDevicePrimaryCtxRelease_v2(o->device), FL_CUDA_SUCCESS);
}

static CUdeviceptr take(const owner *o, size_t bytes)
{
    CUdeviceptr made = 0;
    assert_int_equal(cuCtxPushCurrent_v2(o->context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemAlloc_v2(&made, bytes), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    return made;
}

static void give(const owner *o, CUdeviceptr block)
{
    assert_int_equal(cuCtxPushCurrent_v2(o->context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemFree_v2(block), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
}

static uint64_t *peek(CUdeviceptr block)
{
    return fakecuda_peek((const void *)(uintptr_t)block, N * sizeof(uint64_t));
}

static filch_data_desc device_desc(CUdeviceptr block, uint32_t device, uint32_t flags)
{
    filch_data_desc desc =
        describe((void *)(uintptr_t)block, FILCH_DATA_ON_DEVICE | flags, "on a GPU");
    desc.device = device;
    return desc;
}

static filch_data *on_device(CUdeviceptr block, uint32_t device, uint32_t flags)
{
    return make(device_desc(block, device, flags));
}

/* --- No buffer --- */

static void contents_without_a_buffer_stay_where_they_are(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data *from = handle(x), *between = unbacked("between"), *to = handle(y);
    filch_graph *first = graph(), *second = graph();
    set(x, 5);
    add(first, copies, FILCH_WRITE, from, between, NULL);
    add(first, bumps, FILCH_READWRITE, between, NULL, NULL);
    finish(submit(first), FILCH_OK);
    assert_int_equal(copies_in(), 1); /* of x */
    assert_int_equal(copies_out(), 0);
    add(second, bumps, FILCH_READWRITE, between, NULL, NULL);
    add(second, copies, FILCH_WRITE, between, to, NULL);
    finish(submit(second), FILCH_OK);
    assert_int_equal(copies_in(), 1);
    assert_int_equal(copies_out(), 1); /* of y */
    expect(y, 7);
    assert_null(fl_data_host(between)); /* the host never had it */
    has(between, 7);
    assert_non_null(fl_data_host(between));
    /* What the host writes is what the next job reads. */
    assert_ok(filch_data_acquire(between, FILCH_READWRITE));
    set(at_home(between), 100);
    assert_ok(filch_data_release(between));
    finish(submit(second), FILCH_OK);
    expect(y, 101);
    stop();
}

static void a_task_on_the_host_gets_a_buffer(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *here = on_host("here", bump);
    filch_data *from = handle(x), *between = unbacked("between"), *to = handle(z);
    filch_graph *there_and_back = graph();
    set(x, 5);
    add(there_and_back, copies, FILCH_WRITE, from, between, NULL);
    add(there_and_back, here, FILCH_READWRITE, between, NULL, NULL);
    add(there_and_back, copies, FILCH_WRITE, between, to, NULL);
    finish(submit(there_and_back), FILCH_OK);
    expect(z, 6);
    assert_non_null(fl_data_host(between));
    has(between, 6);
    stop();
}

static void what_nobody_wrote_cannot_be_read(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data_desc desc = describe(NULL, FILCH_DATA_NO_BUFFER, "nothing");
    desc.tile_rows = TILE;
    filch_data *nothing = make(desc);
    filch_graph *reads = graph(), *writes = graph();
    filch_access access = {.data = nothing, .row = 2, .mode = FILCH_READWRITE};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = bumps;
    task.accesses = &access;
    task.access_count = 1;
    assert_ok(filch_graph_add(reads, &task, NULL));
    filch_job *job = (filch_job *)(void *)x;
    refuses(filch_graph_submit(reads, NULL, &job), FILCH_WRONG_STATE, "nothing", "tile (2, 0)");
    assert_ptr_equal(job, x);
    refuses(filch_data_acquire(nothing, FILCH_READ), FILCH_WRONG_STATE, "nothing", "tile (0, 0)");
    refuses(filch_data_acquire(nothing, FILCH_READWRITE), FILCH_WRONG_STATE, "nothing",
            "nothing has written it");
    /* Writing needs nothing there; and what a submitted job writes may be read behind it. */
    filch_access pair[2] = {{.data = handle(x), .mode = FILCH_READ},
                            {.data = nothing, .row = 2, .mode = FILCH_WRITE}};
    desc = describe(x, 0, "from");
    desc.tile_rows = TILE;
    pair[0].data = make(desc);
    task.codelet = copies;
    task.accesses = pair;
    task.access_count = 2;
    set(x, 9);
    assert_ok(filch_graph_add(writes, &task, NULL));
    filch_job *wrote = submit(writes), *read = submit(reads);
    finish(wrote, FILCH_OK);
    finish(read, FILCH_OK);
    /* Three tiles have still nothing. */
    refuses(filch_data_acquire(nothing, FILCH_READ), FILCH_WRONG_STATE, "nothing", "tile (0, 0)");
    assert_ok(filch_data_acquire(nothing, FILCH_WRITE));
    set(at_home(nothing), 0);
    assert_ok(filch_data_release(nothing));
    assert_ok(filch_data_acquire(nothing, FILCH_READ));
    assert_ok(filch_data_release(nothing));
    stop();
}

static void open_graphs_and_batches_look_as_well(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump");
    filch_data *nothing = unbacked("nothing"), *from = handle(x);
    filch_graph_desc open = FILCH_GRAPH_DESC_INIT;
    filch_graph *grows = NULL;
    open.kind = FILCH_GRAPH_OPEN;
    assert_ok(filch_graph_create(runtime, &open, &grows));
    filch_job *job = submit(grows);
    filch_access access = {.data = nothing, .mode = FILCH_READ};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = bumps;
    task.accesses = &access;
    task.access_count = 1;
    refuses(filch_graph_add(grows, &task, NULL), FILCH_WRONG_STATE, "nothing", "tile (0, 0)");
    filch_batch_access item = {.data = nothing, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE};
    filch_batch_desc batch = FILCH_BATCH_DESC_INIT;
    item.scale = 1;
    batch.codelet = on_host("here", bump);
    batch.accesses = &item;
    batch.access_count = 1;
    batch.n = N;
    filch_data_desc desc = describe(NULL, FILCH_DATA_NO_BUFFER, "tiled");
    desc.tile_rows = TILE;
    item.data = make(desc);
    refuses(filch_batch_submit(runtime, &batch, NULL, NULL), FILCH_WRONG_STATE, "tiled",
            "tile (0, 0)");
    set(x, 1);
    add(grows, copies, FILCH_WRITE, from, nothing, NULL);
    access.mode = FILCH_READWRITE;
    assert_ok(filch_graph_add(grows, &task, NULL)); /* behind the writer */
    assert_ok(filch_graph_close(grows));
    finish(job, FILCH_OK);
    has(nothing, 2);
    item.mode = FILCH_WRITE;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    finish(job, FILCH_OK);
    item.mode = FILCH_READ;
    assert_ok(filch_batch_submit(runtime, &batch, NULL, &job));
    finish(job, FILCH_OK);
    stop();
}

/* A job that fails before it wrote what it was to write leaves nothing there. */
static void what_a_failed_job_did_not_write_is_not_there(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_codelet *copies = on_gpu("copy"), *bumps = on_gpu("bump"), *lates = on_host("late", late);
    filch_data *from = handle(x), *nothing = unbacked("nothing");
    filch_graph *fails_first = graph(), *reads = graph();
    add(fails_first, lates, FILCH_READWRITE, from, NULL, NULL);
    add(fails_first, copies, FILCH_WRITE, from, nothing, NULL);
    add(reads, bumps, FILCH_READWRITE, nothing, NULL, NULL);
    atomic_store(&fails, 7);
    finish(submit(fails_first), FILCH_TASK_FAILED);
    atomic_store(&fails, 0);
    filch_job *job = submit(reads); /* which could not know */
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.status, FILCH_WRONG_STATE);
    assert_non_null(strstr(error.text, "nothing has written it"));
    assert_ok(filch_job_release(job));
    refuses(filch_data_acquire(nothing, FILCH_READ), FILCH_WRONG_STATE, "nothing",
            "nothing has written it");
    set(x, 3);
    finish(submit(fails_first), FILCH_OK);
    finish(submit(reads), FILCH_OK);
    has(nothing, 5);
    stop();
}

static void views_are_the_holders(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
    filch_view view = {.rows = 77};
    refuses(filch_data_view(data, 0, 0, &view), FILCH_WRONG_STATE, "", "not acquired");
    assert_ok(filch_data_acquire(data, FILCH_READ));
    refuses(filch_data_view(data, 1, 0, &view), FILCH_INVALID_ARGUMENT, "", "(1, 0)");
    refuses(filch_data_view(data, 0, 0, NULL), FILCH_INVALID_ARGUMENT, "", "nowhere");
    assert_int_equal(view.rows, 77);
    assert_ok(filch_data_view(data, 0, 0, &view));
    assert_ptr_equal(view.ptr, x);
    assert_int_equal(view.rows, N);
    assert_ok(filch_data_release(data));
    stop();
}

/* --- On a GPU --- */

static void a_gpus_buffer_is_used_in_place(void **state)
{
    (void)state;
    start("cuda:0/64+64,cuda:1", "2", NULL);
    owner gpu = own(0);
    CUdeviceptr block = take(&gpu, N * sizeof(uint64_t));
    for (uint32_t device = 0; device < 2; device++) { /* two slices of one place */
        filch_data *data = on_device(block, device, 0);
        filch_codelet *bumps = on_gpu("bump");
        filch_graph *once = graph();
        filch_access access = {.data = data, .mode = FILCH_READWRITE};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = bumps;
        task.accesses = &access;
        task.access_count = 1;
        for (uint32_t slice = 0; slice < 2; slice++) {
            task.affinity = slice + 1;
            assert_ok(filch_graph_add(once, &task, NULL));
        }
        set(peek(block), 10 * device);
        uint64_t copied = fakecuda_count("copy");
        filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
        filch_job *job = NULL;
        assert_ok(filch_graph_submit(once, &how, &job));
        finish(job, FILCH_OK);
        assert_true(fakecuda_count("copy") - copied <= 2); /* where the other GPU took one */
        expect(peek(block), 10 * device + 2);
        assert_ok(filch_graph_destroy(once));
        assert_ok(filch_data_destroy(data));
    }
    stop();
    give(&gpu, block); /* which is still there */
    disown(&gpu);
}

static void a_gpus_buffer_alone_needs_no_copies(void **state)
{
    (void)state;
    start("cuda:0", "2", NULL);
    owner gpu = own(0);
    CUdeviceptr from = take(&gpu, N * sizeof(uint64_t)), to = take(&gpu, N * sizeof(uint64_t));
    filch_data *a = on_device(from, 0, 0), *b = on_device(to, 0, 0);
    filch_graph *once = graph();
    add(once, on_gpu("copy"), FILCH_WRITE, a, b, NULL);
    for (uint64_t k = 0; k < 12; k++) { /* by one call, too, for which it is made ready */
        set(peek(from), 100 * k);       /* as the program's own kernels would, between jobs */
        finish(submit(once), FILCH_OK);
        expect(peek(to), 100 * k);
    }
    assert_int_equal(fakecuda_count("copy"), 0);
    assert_null(fl_data_host(a));
    /* The host gets a copy, and gives one back. */
    has(b, 1100);
    assert_ok(filch_data_acquire(a, FILCH_WRITE));
    set(at_home(a), 900);
    assert_ok(filch_data_release(a));
    expect(peek(from), 900);
    finish(submit(once), FILCH_OK);
    expect(peek(to), 900);
    set(peek(to), 1);
    has(b, 1); /* not the copy of before */
    stop();
    give(&gpu, from);
    give(&gpu, to);
    disown(&gpu);
}

static void run_elsewhere(uint32_t flags, const char *driver, const char *word)
{
    start("cuda:0,cuda:1,host:1", "2", driver);
    owner gpu = own(1);
    CUdeviceptr blocks[2] = {take(&gpu, N * sizeof(uint64_t)), take(&gpu, N * sizeof(uint64_t))};
    filch_data *a = on_device(blocks[0], 1, flags), *b = on_device(blocks[1], 1, flags);
    filch_data *out = handle(y);
    filch_codelet *copies = on_gpu("copy"), *here = on_host("here", bump);
    filch_graph *round = graph();
    add(round, copies, FILCH_WRITE, a, b, NULL);
    add(round, here, FILCH_READWRITE, b, NULL, NULL);
    add(round, here, FILCH_READWRITE, a, NULL, NULL);
    add(round, copies, FILCH_WRITE, b, out, NULL);
    set(peek(blocks[0]), 40);
    for (uint64_t k = 0; k < 20; k++) {
        if (flags == 0)
            set(peek(blocks[0]), 40 + 10 * k);
        finish(submit(round), FILCH_OK);
        uint64_t base = flags == 0 ? 40 + 10 * k : 40 + k;
        expect(y, base + 1);
        if (flags == 0) { /* else it is wherever it was last */
            expect(peek(blocks[0]), base + 1);
            expect(peek(blocks[1]), base + 1);
        }
    }
    has(a, flags == 0 ? 231 : 60);
    if (strcmp(word, "peer") != 0)
        assert_int_equal(fakecuda_count("cuMemcpyPeerAsync"), 0);
    stop();
    give(&gpu, blocks[0]);
    give(&gpu, blocks[1]);
    disown(&gpu);
}

static void results_go_back_to_a_gpus_buffer(void **state)
{
    (void)state;
    run_elsewhere(0, NULL, "peer");
    run_elsewhere(0, "{\"links\": [{\"from\": 0, \"to\": 1, \"peer\": false, \"both\": true}]}",
                  "staged");
}

static void or_stay_where_they_are(void **state)
{
    (void)state;
    run_elsewhere(FILCH_DATA_MANAGED, NULL, "peer");
    run_elsewhere(FILCH_DATA_MANAGED,
                  "{\"links\": [{\"from\": 0, \"to\": 1, \"peer\": false, \"both\": true}]}",
                  "staged");
}

/* One task whose results go home to three memories. */
static void a_task_has_many_homes(void **state)
{
    (void)state;
    start("cuda:0,cuda:1,cuda:2,cuda:3,cuda:4,cuda:5,cuda:6", "2",
          "{\"devices\": [{\"count\": 7}]}");
    owner gpus[7];
    CUdeviceptr blocks[7];
    filch_access accesses[7];
    filch_data *all[7];
    for (int i = 0; i < 7; i++) {
        gpus[i] = own(i);
        blocks[i] = take(&gpus[i], N * sizeof(uint64_t));
        set(peek(blocks[i]), (uint64_t)i);
        all[i] = on_device(blocks[i], (uint32_t)i, 0);
        accesses[i] = (filch_access){.data = all[i], .mode = FILCH_READWRITE};
    }
    filch_graph *once = graph();
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    fakecuda_register_filch("bump", bump, 7, false, 0);
    task.codelet = on_gpu("bump");
    task.accesses = accesses;
    task.access_count = 7;
    for (int k = 0; k < 8; k++)
        assert_ok(filch_graph_add(once, &task, NULL));
    finish(submit(once), FILCH_OK);
    expect(peek(blocks[0]), 8);
    for (int i = 1; i < 7; i++)
        expect(peek(blocks[i]), (uint64_t)i);
    stop();
    for (int i = 0; i < 7; i++) {
        give(&gpus[i], blocks[i]);
        disown(&gpus[i]);
    }
}

static void wrong_pointers_are_told(void **state)
{
    (void)state;
    start("cuda:0,cuda:1,host:1", "2", NULL);
    owner gpus[2] = {own(0), own(1)};
    size_t bytes = N * sizeof(uint64_t);
    CUdeviceptr block = take(&gpus[0], bytes);
    filch_data *data = NULL;
    filch_data_desc desc;
    void *pinned;
    CUcontext context;
#define WRONG(status, text)                                                          \
    do {                                                                             \
        refuses(filch_data_create(runtime, &desc, &data), status, "on a GPU", text); \
        assert_null(data);                                                           \
    } while (0)
    desc = device_desc(block, 1, 0);
    WRONG(FILCH_INVALID_ARGUMENT, "memory of cuda:0, not of cuda:1");
    desc = device_desc(block, 2, 0);
    WRONG(FILCH_UNSUPPORTED, "has no memory");
    desc = device_desc(block, 3, 0);
    WRONG(FILCH_BAD_INDEX, "no device 3");
    desc = device_desc(block + 8, 0, 0);
    WRONG(FILCH_INVALID_ARGUMENT, "past the end");
    desc = device_desc(0, 0, 0);
    WRONG(FILCH_INVALID_ARGUMENT, "null");
    desc = describe(x, FILCH_DATA_ON_DEVICE, "on a GPU");
    WRONG(FILCH_INVALID_ARGUMENT, "no pointer that the CUDA driver knows");
    desc = device_desc(block, 0, FILCH_DATA_NO_BUFFER);
    WRONG(FILCH_INVALID_ARGUMENT, "there is no buffer");
    desc = device_desc(block, 0, 0);
    desc.flags = 0;
    desc.device = 1;
    WRONG(FILCH_INVALID_ARGUMENT, "a device is given");
    desc = describe(x, FILCH_DATA_NO_BUFFER, "on a GPU");
    WRONG(FILCH_INVALID_ARGUMENT, "there is a buffer");
    assert_int_equal(cuCtxPushCurrent_v2(gpus[0].context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostAlloc(&pinned, bytes, 0), FL_CUDA_SUCCESS);
    desc = describe(pinned, FILCH_DATA_ON_DEVICE, "on a GPU");
    WRONG(FILCH_INVALID_ARGUMENT, "the host's memory");
    assert_int_equal(cuMemFreeHost(pinned), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    /* Another context of the same GPU. */
    assert_int_equal(cuCtxCreate_v2(&context, 0, 0), FL_CUDA_SUCCESS);
    CUdeviceptr foreign = 0;
    assert_int_equal(cuMemAlloc_v2(&foreign, bytes), FL_CUDA_SUCCESS);
    desc = device_desc(foreign, 0, 0);
    WRONG(FILCH_INVALID_ARGUMENT, "another context");
    assert_int_equal(cuMemFree_v2(foreign), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxDestroy_v2(context), FL_CUDA_SUCCESS);
    give(&gpus[0], block);
    desc = device_desc(block, 0, 0);
    WRONG(FILCH_INVALID_ARGUMENT, "no pointer that the CUDA driver knows");
    fakecuda_fail("cuPointerGetAttribute", 1, 1, FL_CUDA_ERROR_NOT_SUPPORTED, 0, false);
    filch_status status = filch_data_create(runtime, &desc, &data);
    assert_int_equal(status, FILCH_BACKEND);
    disown(&gpus[0]);
    disown(&gpus[1]);
    stop();
#undef WRONG
}

static void overlaps_are_told(void **state)
{
    (void)state;
    start("cuda:0,cuda:1", "2", NULL);
    owner gpu = own(0);
    size_t bytes = N * sizeof(uint64_t);
    CUdeviceptr block = take(&gpu, 4 * bytes);
    filch_data *first = on_device(block + bytes, 0, 0), *data = NULL;
    filch_data_desc desc = device_desc(block + bytes, 0, 0);
    refuses(filch_data_create(runtime, &desc, &data), FILCH_ALIAS, "on a GPU", "in common");
    desc = device_desc(block + 8, 0, 0);
    refuses(filch_data_create(runtime, &desc, &data), FILCH_ALIAS, "on a GPU", "in common");
    desc = device_desc(block + 2 * bytes - 8, 0, 0);
    refuses(filch_data_create(runtime, &desc, &data), FILCH_ALIAS, "on a GPU", "in common");
    assert_ok(filch_data_destroy(on_device(block, 0, 0)));
    assert_ok(filch_data_destroy(on_device(block + 2 * bytes, 0, 0)));
    assert_ok(filch_data_destroy(first));
    /* Blocks of one matrix of 16 rows. */
    static const struct {
        uint64_t row, col, rows, cols, ld;
        bool is_apart;
    } cases[] = {
        {0, 0, 8, 4, 16, true},  {8, 4, 8, 4, 16, false},  {0, 4, 16, 4, 16, false},
        {7, 4, 1, 1, 16, true},  {8, 4, 1, 1, 16, false},  {12, 3, 13, 1, 16, false},
        {12, 1, 4, 2, 16, true}, {12, 6, 4, 9, 16, false}, {0, 8, 16, 1, 16, true},
        {0, 4, 4, 4, 8, false},
    };
    desc = device_desc(block + (4 * 16 + 8) * 8, 0, 0);
    desc.rows = 8;
    desc.cols = 4;
    desc.ld = 16;
    first = make(desc);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        desc = device_desc(block + (cases[i].col * 16 + cases[i].row) * 8, 0, 0);
        desc.rows = cases[i].rows;
        desc.cols = cases[i].cols;
        desc.ld = cases[i].ld;
        filch_status status = filch_data_create(runtime, &desc, &data);
        if (status != (cases[i].is_apart ? FILCH_OK : FILCH_ALIAS))
            fail_msg("case %zu: %s", i, filch_status_name(status));
        if (status == FILCH_OK)
            assert_ok(filch_data_destroy(data));
    }
    stop();
    give(&gpu, block);
    disown(&gpu);
}

/* A device's buffer of a leading dimension: elements in between are nobody's. */
static void gaps_are_left_alone(void **state)
{
    (void)state;
    start("cuda:0,cuda:1,host:1", "2", NULL);
    owner gpu = own(0);
    CUdeviceptr block = take(&gpu, N * sizeof(uint64_t));
    filch_data_desc desc = device_desc(block, 0, 0);
    desc.rows = 6;
    desc.cols = 8;
    desc.ld = 8;
    desc.tile_rows = 3;
    desc.tile_cols = 2;
    filch_data *data = make(desc);
    filch_codelet *here = on_host("here", bump);
    filch_graph *once = graph();
    uint64_t *seen = peek(block);
    set(seen, 100);
    for (uint32_t row = 0; row < 2; row++) {
        for (uint32_t col = 0; col < 4; col++) {
            filch_access access = {.data = data, .row = row, .col = col, .mode = FILCH_READWRITE};
            filch_task_desc task = FILCH_TASK_DESC_INIT;
            task.codelet = here;
            task.accesses = &access;
            task.access_count = 1;
            assert_ok(filch_graph_add(once, &task, NULL));
        }
    }
    finish(submit(once), FILCH_OK);
    for (uint64_t i = 0; i < N; i++) { /* bump adds to the first column of a tile */
        bool is_in = i % 8 < 6 && i / 8 % 2 == 0;
        assert_int_equal(seen[i], 100 + i + is_in);
    }
    stop();
    give(&gpu, block);
    disown(&gpu);
}

/* A result that does not get home fails its task, and the buffer is as it was. */
static void a_copy_home_that_fails_is_told(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    owner gpu = own(0);
    CUdeviceptr block = take(&gpu, N * sizeof(uint64_t));
    filch_data *data = on_device(block, 0, 0);
    filch_graph *once = graph();
    add(once, on_host("here", bump), FILCH_READWRITE, data, NULL, NULL);
    set(peek(block), 5);
    fakecuda_fail("cuMemcpyHtoDAsync", 1, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, 0, false);
    filch_job *job = submit(once);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_string_equal(error.call, "cuMemcpyHtoDAsync");
    assert_ok(filch_job_release(job));
    expect(peek(block), 5);
    has(data, 5);
    finish(submit(once), FILCH_OK);
    expect(peek(block), 6);
    /* The same for what the host itself wrote. */
    assert_ok(filch_data_acquire(data, FILCH_WRITE));
    set(at_home(data), 90);
    fakecuda_fail("cuMemcpyHtoDAsync", 1, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, 0, false);
    refuses(filch_data_release(data), FILCH_NO_DEVICE_MEMORY, "on a GPU", "cuMemcpyHtoDAsync");
    assert_int_equal(filch_data_release(data), FILCH_WRONG_STATE); /* it is released */
    stop();
    give(&gpu, block);
    disown(&gpu);
}

/* What was on a lost GPU is lost; what was not goes on. */
static void a_lost_gpu_takes_its_buffers_along(void **state)
{
    (void)state;
    start("cuda:0,cuda:1", "2", NULL);
    owner gpus[2] = {own(0), own(1)};
    CUdeviceptr blocks[2];
    filch_data *data[2], *nothing = unbacked("nothing");
    filch_codelet *bumps = on_gpu("bump"), *copies = on_gpu("copy");
    for (int i = 0; i < 2; i++) {
        blocks[i] = take(&gpus[i], N * sizeof(uint64_t));
        set(peek(blocks[i]), 10);
        data[i] = on_device(blocks[i], (uint32_t)i, 0);
    }
    filch_graph *breaks = graph(), *goes_on = graph();
    filch_access access = {.data = data[0], .mode = FILCH_READWRITE};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = bumps;
    task.accesses = &access;
    task.access_count = 1;
    task.affinity = 1;
    assert_ok(filch_graph_add(breaks, &task, NULL));
    add(goes_on, bumps, FILCH_READWRITE, data[1], NULL, NULL);
    add(goes_on, copies, FILCH_WRITE, data[1], nothing, NULL);
    fakecuda_fail("kernel", 1, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    filch_job *job = submit(breaks);
    filch_status status = filch_job_wait(job, SOON);
    if (status == FILCH_OK) /* the other GPU took it; then this one breaks later */
        fakecuda_fail("cuMemcpyDtoHAsync", 1, 0, FL_CUDA_ERROR_ILLEGAL_ADDRESS, 0, true);
    assert_ok(filch_job_release(job));
    assert_int_equal(filch_data_acquire(data[0], FILCH_READ), FILCH_DEVICE_LOST);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_runtime_error(runtime, &error));
    assert_string_equal(error.label, "on a GPU");
    finish(submit(goes_on), FILCH_OK);
    expect(peek(blocks[1]), 11);
    has(nothing, 11);
    assert_int_equal(filch_data_acquire(data[0], FILCH_READ), FILCH_DEVICE_LOST);
    assert_ok(filch_graph_destroy(breaks));
    assert_ok(filch_data_destroy(data[0]));
    stop();
    give(&gpus[1], blocks[1]);
    /* A context that is broken can still be emptied. */
    assert_int_equal(cuCtxPushCurrent_v2(gpus[0].context), FL_CUDA_SUCCESS);
    (void)cuMemFree_v2(blocks[0]);
    (void)cuCtxPopCurrent_v2(NULL);
    (void)cuDevicePrimaryCtxRelease_v2(0);
    disown(&gpus[1]);
}

/* --- Holds --- */

static filch_hold *acquire_tiles(filch_data *data, uint32_t first, uint32_t end,
                                 filch_access_mode mode, double seconds, filch_status wanted)
{
    filch_tiles tiles = FILCH_TILES_INIT;
    filch_hold *hold = NULL;
    tiles.row0 = first;
    tiles.row1 = end;
    assert_int_equal(filch_data_acquire_tiles(data, &tiles, mode, seconds, &hold), wanted);
    assert_int_equal(hold != NULL, wanted == FILCH_OK);
    return hold;
}

static void use_one(filch_graph *in, filch_codelet *codelet, filch_data *data, uint32_t row,
                    filch_access_mode mode)
{
    filch_access access = {.data = data, .row = row, .mode = mode};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    task.accesses = &access;
    task.access_count = 1;
    assert_ok(filch_graph_add(in, &task, NULL));
}

static filch_data *tiled(uint64_t *at, uint32_t flags)
{
    filch_data_desc desc = describe(at, flags, "tiled");
    desc.tile_rows = TILE;
    return make(desc);
}

static void holds_wait_for_their_own_tiles_only(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = tiled(x, FILCH_DATA_MANAGED);
    filch_codelet *holder = on_gpu("hold"), *bumps = on_gpu("bump");
    filch_graph *once = graph(), *next = graph();
    filch_view view;
    set(x, 0);
    use_one(once, holder, data, 1, FILCH_READWRITE);
    use_one(next, bumps, data, 0, FILCH_READWRITE);
    atomic_store(&is_held, 1);
    filch_job *job = submit(once);
    await_holds(1);
    /* Tile 1 is being written; the others are not. */
    (void)acquire_tiles(data, 1, 2, FILCH_READ, 0, FILCH_TIMEOUT);
    (void)acquire_tiles(data, 0, 2, FILCH_READ, 0.01, FILCH_TIMEOUT);
    (void)acquire_tiles(data, 0, 0, FILCH_WRITE, 0, FILCH_TIMEOUT);
    filch_hold *low = acquire_tiles(data, 0, 1, FILCH_READWRITE, -1, FILCH_OK);
    filch_hold *high = acquire_tiles(data, 2, 4, FILCH_READ, -1, FILCH_OK);
    filch_hold *same = acquire_tiles(data, 3, 4, FILCH_READ, 0, FILCH_OK); /* readers go together */
    (void)acquire_tiles(data, 3, 4, FILCH_WRITE, 0, FILCH_TIMEOUT);
    refuses(filch_data_view(data, 1, 0, &view), FILCH_WRONG_STATE, "tiled", "not acquired");
    assert_ok(filch_data_view(data, 0, 0, &view));
    assert_ptr_equal(view.ptr, x);
    x[0] = 70;
    assert_int_equal(filch_data_acquire(data, FILCH_READ), FILCH_BUSY);
    assert_int_equal(filch_data_destroy(data), FILCH_BUSY);
    /* A job waits for what the host has of its tiles. */
    filch_job *behind = submit(next);
    atomic_store(&is_held, 0);
    finish(job, FILCH_OK);
    assert_int_equal(filch_job_wait(behind, 0.01), FILCH_TIMEOUT);
    assert_ok(filch_hold_release(high));
    assert_ok(filch_hold_release(same));
    assert_int_equal(filch_job_wait(behind, 0.01), FILCH_TIMEOUT);
    assert_ok(filch_hold_release(low));
    finish(behind, FILCH_OK);
    assert_ok(filch_data_acquire(data, FILCH_READ));
    assert_int_equal(x[0], 71);
    assert_int_equal(x[1], 2);
    assert_int_equal(filch_data_acquire_tiles(data, NULL, FILCH_READ, 0, &low), FILCH_BUSY);
    assert_ok(filch_data_release(data));
    stop();
}

/* Bytes copied are those of the tiles asked for. */
static void holds_bring_home_what_they_name(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = tiled(NULL, FILCH_DATA_NO_BUFFER), *from = tiled(x, 0);
    filch_codelet *copies = on_gpu("copy");
    filch_graph *once = graph();
    filch_view view;
    set(x, 30);
    for (uint32_t row = 0; row < 3; row++) { /* not the last */
        filch_access accesses[] = {{.data = from, .row = row, .mode = FILCH_READ},
                                   {.data = data, .row = row, .mode = FILCH_WRITE}};
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        task.codelet = copies;
        task.accesses = accesses;
        task.access_count = 2;
        assert_ok(filch_graph_add(once, &task, NULL));
    }
    finish(submit(once), FILCH_OK);
    uint64_t copied = copies_out();
    filch_hold *hold = acquire_tiles(data, 1, 3, FILCH_READ, -1, FILCH_OK);
    assert_int_equal(copies_out() - copied, 2);
    assert_ok(filch_data_view(data, 2, 0, &view));
    assert_int_equal(*(uint64_t *)view.ptr, 30 + 2 * TILE);
    assert_ok(filch_hold_release(hold));
    (void)acquire_tiles(data, 2, 4, FILCH_READ, -1, FILCH_WRONG_STATE);
    hold = acquire_tiles(data, 3, 4, FILCH_WRITE, -1, FILCH_OK);
    assert_int_equal(copies_out() - copied, 2);
    assert_ok(filch_data_view(data, 3, 0, &view));
    *(uint64_t *)view.ptr = 5;
    assert_ok(filch_hold_release(hold));
    assert_ok(filch_hold_release(acquire_tiles(data, 0, 0, FILCH_READ, -1, FILCH_OK)));
    stop();
}

static void bad_holds_are_refused(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = tiled(x, 0);
    filch_tiles tiles = FILCH_TILES_INIT;
    filch_hold *hold = NULL;
    const filch_status bad = FILCH_INVALID_ARGUMENT;
    assert_int_equal(filch_data_acquire_tiles(NULL, NULL, FILCH_READ, 0, &hold),
                     FILCH_INVALID_HANDLE);
    refuses(filch_data_acquire_tiles(data, NULL, FILCH_READ, 0, NULL), bad, "tiled", "nowhere");
    refuses(filch_data_acquire_tiles(data, NULL, FILCH_SCRATCH, 0, &hold), bad, "tiled", "mode");
    tiles.size = 8;
    refuses(filch_data_acquire_tiles(data, &tiles, FILCH_READ, 0, &hold), bad, "tiled", "size");
    tiles = (filch_tiles){sizeof tiles, 4, 0, 0, 0};
    refuses(filch_data_acquire_tiles(data, &tiles, FILCH_READ, 0, &hold), bad, "tiled", "[4, 4)");
    tiles = (filch_tiles){sizeof tiles, 0, 5, 0, 0};
    refuses(filch_data_acquire_tiles(data, &tiles, FILCH_READ, 0, &hold), bad, "tiled", "[0, 5)");
    tiles = (filch_tiles){sizeof tiles, 2, 2, 0, 1};
    refuses(filch_data_acquire_tiles(data, &tiles, FILCH_READ, 0, &hold), bad, "tiled", "[2, 2)");
    tiles = (filch_tiles){sizeof tiles, 0, 0, 1, 2};
    refuses(filch_data_acquire_tiles(data, &tiles, FILCH_READ, 0, &hold), bad, "tiled", "none of");
    assert_null(hold);
    assert_int_equal(filch_hold_release(NULL), FILCH_INVALID_HANDLE);
    assert_int_equal(filch_hold_release((filch_hold *)(void *)data), FILCH_INVALID_HANDLE);
    stop();
}

/* What the program's own kernels left in its buffer, between two holds without a job. */
static void holds_see_what_the_program_wrote(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    owner gpu = own(0);
    CUdeviceptr block = take(&gpu, N * sizeof(uint64_t));
    filch_data *data = on_device(block, 0, 0);
    for (uint64_t k = 0; k < 3; k++) {
        set(peek(block), 10 * k);
        has(data, 10 * k);
        set(peek(block), 100 * k);
        filch_hold *hold = acquire_tiles(data, 0, 0, FILCH_READWRITE, -1, FILCH_OK);
        expect(at_home(data), 100 * k);
        set(at_home(data), 7 * k);
        assert_ok(filch_hold_release(hold));
        expect(peek(block), 7 * k);
    }
    stop();
    give(&gpu, block);
    disown(&gpu);
}

static int acquire_inside(const filch_call *call)
{
    filch_data *data;
    filch_hold *hold = NULL;
    memcpy(&data, call->args, sizeof data);
    return (int)filch_data_acquire_tiles(data, NULL, FILCH_READ, -1, &hold);
}

/* A task does not wait, least of all for itself. */
static void tasks_do_not_wait_for_tiles(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = tiled(x, 0);
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *inside = NULL;
    filch_graph *once = graph();
    filch_access access = {.data = data, .mode = FILCH_READWRITE};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    desc.name = "inside";
    desc.host = acquire_inside;
    desc.arg_size = sizeof(void *);
    assert_ok(filch_codelet_create(runtime, &desc, &inside));
    task.codelet = inside;
    task.args = (const void *)&data;
    task.accesses = &access;
    task.access_count = 1;
    assert_ok(filch_graph_add(once, &task, NULL));
    filch_job *job = submit(once);
    assert_int_equal(filch_job_wait(job, SOON), FILCH_TASK_FAILED);
    filch_error error = FILCH_ERROR_INIT;
    assert_ok(filch_job_error(job, &error));
    assert_int_equal(error.native_code, FILCH_TIMEOUT);
    assert_ok(filch_job_release(job));
    stop();
}

/* A polled runtime has no threads of its own: who waits for tiles runs the workers. */
static void waiting_for_tiles_polls(void **state)
{
    (void)state;
    start_driven("cuda:0,host:1", "2", NULL, FILCH_DRIVE_POLL);
    filch_data *data = tiled(x, FILCH_DATA_MANAGED);
    filch_codelet *bumps = on_gpu("bump");
    filch_graph *once = graph();
    set(x, 0);
    for (int k = 0; k < 10; k++)
        use_one(once, bumps, data, 0, FILCH_READWRITE);
    filch_job *job = submit(once);
    filch_hold *hold = acquire_tiles(data, 0, 1, FILCH_READ, -1, FILCH_OK);
    assert_int_equal(x[0], 10);
    assert_ok(filch_hold_release(hold));
    finish(job, FILCH_OK);
    stop();
}

/* Jobs that wait for a hold do not keep the runtime from being aborted. */
static void aborting_ends_holds(void **state)
{
    (void)state;
    start("cuda:0,host:1", "2", NULL);
    filch_data *data = tiled(x, 0);
    filch_codelet *bumps = on_gpu("bump");
    filch_graph *once = graph();
    use_one(once, bumps, data, 0, FILCH_READWRITE);
    (void)acquire_tiles(data, 0, 1, FILCH_READ, -1, FILCH_OK);
    (void)submit(once);
    assert_int_equal(filch_runtime_destroy(runtime), FILCH_BUSY);
    assert_ok(filch_runtime_abort(runtime));
    assert_int_equal(fakecuda_violations(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(contents_without_a_buffer_stay_where_they_are),
        cmocka_unit_test(a_task_on_the_host_gets_a_buffer),
        cmocka_unit_test(what_nobody_wrote_cannot_be_read),
        cmocka_unit_test(open_graphs_and_batches_look_as_well),
        cmocka_unit_test(what_a_failed_job_did_not_write_is_not_there),
        cmocka_unit_test(views_are_the_holders),
        cmocka_unit_test(a_gpus_buffer_is_used_in_place),
        cmocka_unit_test(a_gpus_buffer_alone_needs_no_copies),
        cmocka_unit_test(results_go_back_to_a_gpus_buffer),
        cmocka_unit_test(or_stay_where_they_are),
        cmocka_unit_test(a_task_has_many_homes),
        cmocka_unit_test(wrong_pointers_are_told),
        cmocka_unit_test(overlaps_are_told),
        cmocka_unit_test(gaps_are_left_alone),
        cmocka_unit_test(a_copy_home_that_fails_is_told),
        cmocka_unit_test(a_lost_gpu_takes_its_buffers_along),
        cmocka_unit_test(holds_wait_for_their_own_tiles_only),
        cmocka_unit_test(holds_bring_home_what_they_name),
        cmocka_unit_test(bad_holds_are_refused),
        cmocka_unit_test(holds_see_what_the_program_wrote),
        cmocka_unit_test(tasks_do_not_wait_for_tiles),
        cmocka_unit_test(waiting_for_tiles_polls),
        cmocka_unit_test(aborting_ends_holds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
