/* SPDX-License-Identifier: Apache-2.0 */
/* Copies between GPUs and pageable memory: through page-locked slots, whatever their shape, with
 * helpers or without, and whatever fails meanwhile. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "backend/cuda/device.h"
#include "backend/cuda/queue/lane.h"
#include "backend/cuda/queue/stage.h"
#include "base/clock.h"
#include "bench.h"
#include "count.h"
#include "fake.h"
#include "fakecuda.h"
#include "filch/filch.h"
#include "random.h"
#include "runtime.h"

#define KIB ((size_t)1 << 10)
#define MIB ((size_t)1 << 20)
#define PAD 0xa5

static filch_runtime *runtime;
static filch_codelet *codelet;

/* How a runtime copies: the drive, and helpers ("": the default). */
typedef struct way {
    filch_drive drive;
    const char *helpers;
} way;

static const way ways[] = {{FILCH_DRIVE_THREADS, ""},
                           {FILCH_DRIVE_THREADS, "3"},
                           {FILCH_DRIVE_THREADS, "0"},
                           {FILCH_DRIVE_POLL, ""}};
enum { WAYS = sizeof ways / sizeof ways[0] };

/* --- A runtime, and what tasks do --- */

/* The thread sanitizer looks at what these write into memory of the test's own only when it is
 * copied or compared as a whole, which it does a hundred times as fast. */
#define BY_ITSELF __attribute__((no_sanitize("thread")))

static BY_ITSELF void change_bytes(uint8_t *bytes, size_t count, uint32_t times)
{
    for (uint32_t k = 0; k < times; k++)
        for (size_t i = 0; i < count; i++)
            bytes[i] = (uint8_t)(bytes[i] * 5 + 3);
}

/* turn(from, to): each byte changed. */
static int turn(const filch_call *call)
{
    const filch_view *from = &call->views[0], *to = &call->views[1];
    uint8_t part[4096];
    for (uint64_t j = 0; j < to->cols; j++) {
        const uint8_t *a = (const uint8_t *)from->ptr + j * from->ld * from->element;
        uint8_t *b = (uint8_t *)to->ptr + j * to->ld * to->element;
        uint64_t height = to->rows * to->element;
        for (uint64_t i = 0; i < height; i += sizeof part) {
            size_t bytes = height - i < sizeof part ? (size_t)(height - i) : sizeof part;
            memcpy(part, a + i, bytes);
            change_bytes(part, bytes, 1);
            memcpy(b + i, part, bytes);
        }
    }
    return 0;
}

static void start_heard(const char *devices, const char *driver, way how, filch_log_fn log,
                        void *user)
{
    static const char image[] = "FAKECUBIN arch=90 entry=turn";
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_error error = FILCH_ERROR_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;

    (void)setenv("FILCH_STAGE_THREADS", how.helpers, 1);
    fakecuda_reset();
    assert_true(fakecuda_configure(driver));
    fakecuda_register_filch("turn", turn, 2, false, 0);
    config.devices = devices;
    config.drive = how.drive;
    config.log = log;
    config.log_user = user;
    if (filch_runtime_create(&config, &error, &runtime) != FILCH_OK)
        fail_msg("%s", error.text);
    cuda.image = image;
    cuda.image_bytes = sizeof image;
    cuda.entry = desc.name = "turn";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
}

static void start(const char *devices, const char *driver, way how)
{
    start_heard(devices, driver, how, NULL, NULL);
}

static void stop(void)
{
    assert_ok(filch_runtime_destroy(runtime));
    assert_int_equal(fakecuda_live("pinned"), 0);
    assert_int_equal(fakecuda_violations(), 0);
}

static void nap_ms(long ms)
{
    const struct timespec span = {ms / 1000, ms % 1000 * 1000000};
    (void)nanosleep(&span, NULL);
}

/* --- Blocks of any shape --- */

typedef struct matrix {
    uint8_t *at;
    size_t bytes;
    uint64_t element, rows, cols, ld, tile_rows, tile_cols;
    filch_data *data;
} matrix;

static uint64_t between(fl_random *random, uint64_t low, uint64_t high)
{
    return low + fl_random_below(random, (uint32_t)(high - low + 1));
}

/* Its size, and how it is cut: the widths and heights of tiles are all that a copy has. */
static matrix draw(fl_random *random, size_t most)
{
    matrix m = {.element = (uint64_t)1 << fl_random_below(random, 5)};
    uint64_t elements = between(random, 64 * KIB, most) / m.element;
    m.cols = fl_random_below(random, 3) == 0 ? 1 : between(random, 1, 1000);
    m.rows = elements / m.cols + 1;
    m.ld = m.rows;
    m.tile_rows =
        fl_random_below(random, 2) == 0 ? m.rows : between(random, m.rows / 3 + 1, m.rows);
    m.tile_cols =
        fl_random_below(random, 2) == 0 ? m.cols : between(random, m.cols / 2 + 1, m.cols);
    return m;
}

static void make_at(matrix *m, void *at, uint32_t flags)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    m->at = at;
    m->bytes = (size_t)(m->ld * m->cols * m->element);
    memset(m->at, PAD, m->bytes);
    desc.ptr = m->at;
    desc.element = m->element;
    desc.rows = m->rows;
    desc.cols = m->cols;
    desc.ld = m->ld;
    desc.tile_rows = m->tile_rows;
    desc.tile_cols = m->tile_cols;
    desc.flags = flags;
    desc.label = "matrix";
    assert_ok(filch_data_create(runtime, &desc, &m->data));
}

static void make(matrix *m, fl_random *random, uint32_t flags)
{
    m->ld = m->rows + fl_random_below(random, 3) * between(random, 0, m->rows / 4);
    void *at = malloc((size_t)(m->ld * m->cols * m->element));
    assert_non_null(at);
    make_at(m, at, flags);
}

static void drop(matrix *m)
{
    assert_ok(filch_data_destroy(m->data));
    free(m->at);
}

static BY_ITSELF void draw_bytes(uint8_t *bytes, size_t count, uint64_t state)
{
    for (size_t i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        bytes[i] = (uint8_t)(state >> 56);
    }
}

static void scatter(matrix *m, fl_random *random)
{
    size_t height = (size_t)(m->rows * m->element);
    uint8_t *drawn = malloc(height);

    assert_non_null(drawn);
    for (uint64_t j = 0; j < m->cols; j++) {
        draw_bytes(drawn, height, fl_random_next(random));
        memcpy(m->at + j * m->ld * m->element, drawn, height);
    }
    free(drawn);
}

/* b is a, changed; nothing between the columns was touched. */
static void compare(const matrix *a, const matrix *b, uint32_t times)
{
    size_t height = (size_t)(b->rows * b->element), pitch = (size_t)(b->ld * b->element);
    uint8_t *wanted = malloc(pitch);

    assert_non_null(wanted);
    memset(wanted + height, PAD, pitch - height);
    for (uint64_t j = 0; j < b->cols; j++) {
        const uint8_t *to = b->at + j * pitch;
        memcpy(wanted, a->at + j * a->ld * a->element, height);
        change_bytes(wanted, height, times);
        if (memcmp(to, wanted, pitch) == 0)
            continue;
        for (size_t i = 0; i < pitch; i++) {
            if (to[i] != wanted[i])
                fail_msg("byte %zu of column %llu is %02x, not %02x", i, (unsigned long long)j,
                         to[i], wanted[i]);
        }
    }
    free(wanted);
}

static void add_turns(filch_graph *graph, const matrix *from, const matrix *to)
{
    uint64_t down = (from->rows - 1) / from->tile_rows + 1;
    uint64_t across = (from->cols - 1) / from->tile_cols + 1;
    for (uint32_t c = 0; c < across; c++) {
        for (uint32_t r = 0; r < down; r++) {
            const filch_access accesses[] = {
                {.data = from->data, .row = r, .col = c, .mode = FILCH_READ},
                {.data = to->data, .row = r, .col = c, .mode = FILCH_WRITE}};
            filch_task_desc desc = FILCH_TASK_DESC_INIT;
            desc.codelet = codelet;
            desc.accesses = accesses;
            desc.access_count = 2;
            assert_ok(filch_graph_add(graph, &desc, NULL));
        }
    }
}

static filch_graph *new_graph(void)
{
    filch_graph *graph = NULL;
    assert_ok(filch_graph_create(runtime, NULL, &graph));
    return graph;
}

static filch_status run(filch_graph *graph)
{
    filch_job *job = NULL;
    assert_ok(filch_graph_submit(graph, NULL, &job));
    filch_status status = filch_job_wait(job, SOON);
    assert_ok(filch_job_release(job));
    return status;
}

static uint64_t the_seed(void)
{
    const char *given = getenv("FL_TEST_SEED");
    return given != NULL ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);
}

static void blocks_of_any_shape_arrive(void **state)
{
    uint64_t seed = the_seed();
    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (int w = 0; w < WAYS; w++) {
        fl_random random;
        fl_random_init(&random, seed, (uint64_t)w);
        start("cuda:0,cuda:1", "{\"copy_gbps\": 20}", ways[w]);
        for (int round = 0; round < 6; round++) {
            matrix a = draw(&random, (size_t)(round == 0 ? 40 : 3) * MIB), b = a;
            filch_graph *graph = new_graph();
            make(&a, &random, 0);
            make(&b, &random, round % 2 == 0 ? 0 : FILCH_DATA_MANAGED);
            add_turns(graph, &a, &b);
            for (int k = 0; k < 2; k++) {
                scatter(&a, &random);
                assert_ok(run(graph));
                assert_ok(filch_data_acquire(b.data, FILCH_READ));
                compare(&a, &b, 1);
                assert_ok(filch_data_release(b.data));
            }
            assert_ok(filch_graph_destroy(graph));
            drop(&a);
            drop(&b);
        }
        assert_true(fakecuda_count("cuMemHostAlloc") >= 2);
        stop();
    }
}

static matrix column(size_t bytes, size_t tile)
{
    return (matrix){
        .element = 1, .rows = bytes, .cols = 1, .ld = bytes, .tile_rows = tile, .tile_cols = 1};
}

/* What is large enough, or goes out, goes through the slots, whose copies the driver does not stage
 * once more. */
static void only_small_copies_in_are_the_drivers(void **state)
{
    fl_random random;
    (void)state;
    fl_random_init(&random, 1, 1);
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0", NULL, ways[w]);
        matrix a = column(4 * MIB, 512 * KIB), b = a;
        filch_graph *graph = new_graph();
        make(&a, &random, 0);
        make(&b, &random, 0);
        add_turns(graph, &a, &b);
        assert_ok(run(graph));
        assert_int_equal(fakecuda_count("pageable"), 0);
        assert_int_equal(fakecuda_bytes(-1, 0), 4 * MIB);
        assert_int_equal(fakecuda_bytes(0, -1), 4 * MIB);
        assert_ok(filch_graph_destroy(graph));
        drop(&a);
        drop(&b);
        /* Side by side, where each comes by itself. */
        a = (matrix){.element = 1,
                     .rows = 32 * KIB,
                     .cols = 16,
                     .ld = 32 * KIB,
                     .tile_rows = 32 * KIB,
                     .tile_cols = 1};
        b = a;
        graph = new_graph();
        make(&a, &random, 0);
        make(&b, &random, 0);
        add_turns(graph, &a, &b);
        assert_ok(run(graph));
        assert_int_equal(fakecuda_count("pageable"), 16);
        assert_ok(filch_graph_destroy(graph));
        drop(&a);
        drop(&b);
        stop();
    }
}

static void pinned_memory_is_not_staged(void **state)
{
    fl_random random;
    (void)state;
    fl_random_init(&random, 1, 1);
    start("cuda:0", NULL, ways[1]);
    matrix a = column(4 * MIB, MIB), b = a;
    filch_graph *graph = new_graph();
    make(&a, &random, 0);
    make(&b, &random, 0);
    CUcontext context = fl_cuda_of(&runtime->pool.devices[0])->gpu->context;
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostRegister_v2(a.at, a.bytes, 0), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostRegister_v2(b.at, b.bytes, 0), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    add_turns(graph, &a, &b);
    scatter(&a, &random);
    assert_ok(run(graph));
    compare(&a, &b, 1);
    assert_int_equal(fakecuda_count("cuMemHostAlloc"), 0);
    assert_int_equal(fakecuda_count("pageable"), 0);
    assert_int_equal(fakecuda_count("cuMemcpyHtoDAsync"), 4);
    assert_ok(filch_graph_destroy(graph));
    assert_int_equal(cuCtxPushCurrent_v2(context), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostUnregister(a.at), FL_CUDA_SUCCESS);
    assert_int_equal(cuMemHostUnregister(b.at), FL_CUDA_SUCCESS);
    assert_int_equal(cuCtxPopCurrent_v2(NULL), FL_CUDA_SUCCESS);
    drop(&a);
    drop(&b);
    stop();
}

/* --- Page-locked on request --- */

static void refuses_pin(filch_data_desc desc, filch_status wanted, const char *text)
{
    filch_data *data = NULL;
    filch_error error = FILCH_ERROR_INIT;
    desc.flags |= FILCH_DATA_PIN;
    desc.label = "stubborn";
    assert_int_equal(filch_data_create(runtime, &desc, &data), wanted);
    assert_ok(filch_runtime_error(runtime, &error));
    assert_int_equal(error.status, wanted);
    assert_string_equal(error.label, "stubborn");
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" is not in \"%s\"", text, error.text);
}

/* The buffer is, for as long as its handle is there; nothing of it is staged then. */
static void handles_are_page_locked_on_request(void **state)
{
    fl_random random;
    (void)state;
    fl_random_init(&random, 1, 1);
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0,cuda:1", NULL, ways[w]);
        matrix a = column(4 * MIB, MIB), b = a;
        filch_graph *graph = new_graph();
        make(&a, &random, FILCH_DATA_PIN);
        make(&b, &random, FILCH_DATA_PIN | FILCH_DATA_MANAGED);
        assert_int_equal(fakecuda_live("pinned"), 2);
        add_turns(graph, &a, &b);
        scatter(&a, &random);
        assert_ok(run(graph));
        assert_ok(filch_data_acquire(b.data, FILCH_READ));
        compare(&a, &b, 1);
        assert_ok(filch_data_release(b.data));
        assert_int_equal(fakecuda_count("cuMemHostAlloc"), 0);
        assert_int_equal(fakecuda_count("pageable"), 0);
        filch_data_desc again = FILCH_DATA_DESC_INIT;
        again.ptr = a.at + 100;
        again.element = 1;
        again.rows = 1000;
        refuses_pin(again, FILCH_WRONG_STATE, "page-locked already");
        assert_ok(filch_graph_destroy(graph));
        drop(&a);
        assert_int_equal(fakecuda_live("pinned"), 1);
        if (w % 2 == 0)
            assert_ok(filch_data_destroy(b.data));
        stop(); /* with it the handle that is left */
        free(b.at);
    }
}

static void what_cannot_be_page_locked_is_said(void **state)
{
    static char buffer[4096];
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    (void)state;
    start("cuda:0", NULL, ways[0]);
    desc.ptr = buffer;
    desc.element = 1;
    desc.rows = sizeof buffer;
    fakecuda_fail("cuMemHostRegister", 1, 1, FL_CUDA_ERROR_INVALID_VALUE, -1, false);
    refuses_pin(desc, FILCH_BACKEND, "cuMemHostRegister");
    fakecuda_fail("cuMemHostRegister", 1, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, -1, false);
    refuses_pin(desc, FILCH_NO_DEVICE_MEMORY, "cuMemHostRegister");
    desc.flags = FILCH_DATA_NO_BUFFER;
    desc.ptr = NULL;
    refuses_pin(desc, FILCH_INVALID_ARGUMENT, "no buffer on the host");
    stop();
}

/* --- Many at once --- */

typedef struct errand {
    uint64_t seed;
    pthread_t thread;
} errand;

static void *run_errand(void *argument)
{
    const errand *e = argument;
    fl_random random;
    fl_random_init(&random, e->seed, 7);
    for (int round = 0; round < 6; round++) {
        matrix a = draw(&random, MIB), b = a, c = a;
        filch_graph *graph = new_graph();
        make(&a, &random, 0);
        make(&b, &random, 0);
        make(&c, &random, FILCH_DATA_MANAGED);
        scatter(&a, &random);
        add_turns(graph, &a, &b);
        add_turns(graph, &b, &c);
        assert_ok(run(graph));
        assert_ok(filch_data_acquire(c.data, FILCH_READ));
        compare(&a, &b, 1);
        compare(&a, &c, 2);
        assert_ok(filch_data_release(c.data));
        assert_ok(filch_graph_destroy(graph));
        drop(&a);
        drop(&b);
        drop(&c);
    }
    return NULL;
}

static void many_copy_at_once(void **state)
{
    enum { THREADS = 4 };
    static const char *const devices[] = {"cuda:0,cuda:1", "cuda:0/64+64"};
    uint64_t seed = the_seed();
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        errand errands[THREADS];
        start(devices[w % 2], "{\"copy_gbps\": 10, \"kernel_ns\": 20000}", ways[w]);
        for (int t = 0; t < THREADS; t++) {
            errands[t].seed = seed + (uint64_t)(w * THREADS + t);
            assert_int_equal(pthread_create(&errands[t].thread, NULL, run_errand, &errands[t]), 0);
        }
        for (int t = 0; t < THREADS; t++)
            assert_int_equal(pthread_join(errands[t].thread, NULL), 0);
        stop();
    }
}

/* Bytes that one GPU sends to the host's memory are read from there by another. */
static void tiles_travel_through_the_host(void **state)
{
    fl_random random;
    (void)state;
    fl_random_init(&random, the_seed(), 3);
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0,cuda:1",
              "{\"devices\":[{\"count\":2}],\"copy_gbps\":20,"
              "\"links\":[{\"from\":0,\"to\":1,\"peer\":false}]}",
              ways[w]);
        matrix cells[6];
        filch_graph *graph = new_graph();
        for (int k = 0; k < 6; k++) {
            cells[k] = column(600 * KIB, 600 * KIB);
            make(&cells[k], &random, 0);
        }
        for (int k = 0; k < 5; k++) {
            const filch_access accesses[] = {{.data = cells[k].data, .mode = FILCH_READ},
                                             {.data = cells[k + 1].data, .mode = FILCH_WRITE}};
            filch_task_desc desc = FILCH_TASK_DESC_INIT;
            desc.codelet = codelet;
            desc.accesses = accesses;
            desc.access_count = 2;
            desc.affinity = 1 + (uint32_t)k % 2;
            assert_ok(filch_graph_add(graph, &desc, NULL));
        }
        for (int round = 0; round < 4; round++) {
            scatter(&cells[0], &random);
            assert_ok(run(graph));
            for (uint32_t k = 1; k < 6; k++)
                compare(&cells[0], &cells[k], k);
        }
        assert_ok(filch_graph_destroy(graph));
        for (int k = 0; k < 6; k++)
            drop(&cells[k]);
        stop();
    }
}

/* --- Order, by copies of the lane's own --- */

static bench lay_on(uint32_t device, size_t bytes)
{
    return bench_lay(&runtime->pool.devices[device], bytes);
}

static bench lay(size_t bytes)
{
    return lay_on(0, bytes);
}

/* A lane is in order: what comes after pieces is not reached before they have landed. */
static void later_copies_are_reached_later(void **state)
{
    enum { BYTES = 3 * 1024 * 1024 };
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0", NULL, ways[w]);
        bench b = lay(BYTES);
        uint8_t *from = malloc(BYTES), *to = calloc(1, BYTES), small[100] = {0};
        memset(from, 42, BYTES);
        bench_await(&b, bench_put(&b, from, 0, BYTES, true));
        for (int round = 0; round < TEST_ROUNDS(50); round++) {
            memset(to, 0, BYTES);
            fl_marker large = bench_put(&b, to, 0, BYTES, false);
            fl_marker after = bench_put(&b, small, 0, sizeof small, false);
            assert_true(after > large);
            bench_await(&b, after);
            assert_ok(bench_look(&b, large));
            assert_memory_equal(to, from, BYTES);
        }
        bench_clear(&b);
        free(from);
        free(to);
        stop();
    }
}

/* Copies to the same bytes land in the order in which they were put, staged or not. */
static void the_last_copy_to_some_bytes_wins(void **state)
{
    enum { BYTES = 1024 * 1024, COPIES = 40 };
    fl_random random;
    (void)state;
    fl_random_init(&random, the_seed(), 4);
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0", NULL, ways[w]);
        bench b = lay((size_t)2 * BYTES);
        uint8_t *from = malloc((size_t)2 * BYTES), *to = calloc(1, BYTES), *wanted = malloc(BYTES);
        for (size_t i = 0; i < (size_t)2 * BYTES; i++)
            from[i] = (uint8_t)(fl_random_next(&random) >> 40);
        bench_await(&b, bench_put(&b, from, 0, (size_t)2 * BYTES, true));
        memset(wanted, 0, BYTES);
        for (int round = 0; round < TEST_ROUNDS(10); round++) {
            fl_marker last = 0;
            for (int k = 0; k < COPIES; k++) {
                size_t bytes =
                    between(&random, 1, fl_random_below(&random, 2) == 0 ? 60000 : BYTES);
                size_t at = between(&random, 0, BYTES - bytes);
                size_t offset = between(&random, 0, 2 * BYTES - bytes);
                memcpy(wanted + at, from + offset, bytes);
                last = bench_put(&b, to + at, offset, bytes, false);
            }
            bench_await(&b, last);
            assert_memory_equal(to, wanted, BYTES);
        }
        bench_clear(&b);
        free(from);
        free(to);
        free(wanted);
        stop();
    }
}

/* What is read from the host's memory behind a copy to it has landed, whoever reads: the processor,
 * or the other GPU from what is page-locked or small. */
static void copies_in_wait_for_landings(void **state)
{
    enum { BYTES = 2 * 1024 * 1024, SMALL = 1000 };
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0,cuda:1", "{\"copy_gbps\": 5}", ways[w]);
        bench from = lay_on(0, BYTES), to = lay_on(1, BYTES);
        uint8_t *relay = malloc(BYTES), *back = malloc(BYTES);
        for (int round = 0; round < 10; round++) {
            const size_t bytes = round % 2 == 0 ? BYTES : SMALL;
            memset(relay, 50 + round, BYTES);
            bench_await(&from, bench_put(&from, relay, 0, BYTES, true));
            memset(relay, 0, BYTES);
            fl_marker out = bench_put(&from, relay, 0, BYTES, false);
            fl_marker in = bench_put_behind(&to, relay, 0, bytes, true, out);
            bench_await(&to, bench_put_behind(&to, back, 0, bytes, false, in));
            for (size_t i = 0; i < bytes; i++)
                assert_int_equal(back[i], 50 + round);
            bench_await(&from, out);
        }
        bench_clear(&from);
        bench_clear(&to);
        free(relay);
        free(back);
        stop();
    }
}

/* A call that copies in has read the buffer when it returns, though nothing has moved yet. */
static void the_buffer_is_read_at_once(void **state)
{
    enum { BYTES = 1024 * 1024 };
    (void)state;
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0", NULL, ways[w]);
        bench b = lay(BYTES);
        uint8_t *host = malloc(BYTES);
        memset(host, 1, BYTES);
        bench_await(&b, bench_put(&b, host, 0, BYTES, true)); /* with it the slots are made */
        fakecuda_hold();
        memset(host, 2, BYTES);
        fl_marker marker = bench_put(&b, host, 0, BYTES, true);
        memset(host, 3, BYTES);
        assert_int_equal(bench_look(&b, marker), FILCH_NOT_READY);
        fakecuda_release();
        bench_await(&b, marker);
        bench_await(&b, bench_put(&b, host, 0, BYTES, false));
        for (size_t i = 0; i < BYTES; i++)
            assert_int_equal(host[i], 2);
        bench_clear(&b);
        free(host);
        stop();
    }
}

typedef struct parcel {
    const bench *bench;
    void *host;
    size_t bytes;
    fl_marker marker;
} parcel;

static void *send_parcel(void *argument)
{
    parcel *p = argument;
    p->marker = bench_put(p->bench, p->host, 0, p->bytes, true);
    return NULL;
}

/* More than all slots hold, while nothing moves: what is in them stays until it has moved. */
static void slots_wait_for_the_device(void **state)
{
    enum { BYTES = 24 * 1024 * 1024 };
    fl_random random;
    (void)state;
    fl_random_init(&random, the_seed(), 6);
    uint8_t *host = malloc(BYTES), *back = calloc(1, BYTES);
    for (size_t i = 0; i < BYTES; i += sizeof(uint64_t)) {
        const uint64_t word = fl_random_next(&random);
        memcpy(host + i, &word, sizeof word);
    }
    for (int w = 0; w < WAYS; w++) {
        start("cuda:0", "{\"fill\": false}", ways[w]);
        bench b = lay(BYTES);
        parcel p = {.bench = &b, .host = host, .bytes = BYTES};
        pthread_t thread;
        bench_await(&b, bench_put(&b, host, 0, MIB, true));
        fakecuda_hold();
        assert_int_equal(pthread_create(&thread, NULL, send_parcel, &p), 0);
        nap_ms(50);
        fakecuda_release();
        assert_int_equal(pthread_join(thread, NULL), 0);
        bench_await(&b, p.marker);
        memset(back, 0, BYTES);
        bench_await(&b, bench_put(&b, back, 0, BYTES, false));
        assert_memory_equal(host, back, BYTES);
        bench_clear(&b);
        stop();
    }
    free(host);
    free(back);
}

/* --- Quiet --- */

static uint32_t threads(void)
{
    uint32_t count = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (const struct dirent *entry; (entry = readdir(tasks)) != NULL;)
        count += entry->d_name[0] != '.';
    assert_int_equal(closedir(tasks), 0);
    return count;
}

/* No thread where the host's own drive; else those that the setting wants, once there is work. */
static void helpers_come_when_they_are_needed(void **state)
{
    static const uint32_t wanted[WAYS] = {0, 3, 0, 0};
    fl_random random;
    (void)state;
    fl_random_init(&random, 1, 1);
    for (int w = 1; w < WAYS; w++) {
        start("cuda:0", NULL, ways[w]);
        matrix a = column(MIB, MIB), b = a;
        filch_graph *graph = new_graph();
        make(&a, &random, 0);
        make(&b, &random, 0);
        add_turns(graph, &a, &b);
        uint32_t before = threads();
        assert_ok(run(graph));
        assert_int_equal(threads(), before + wanted[w]);
        assert_ok(filch_graph_destroy(graph));
        drop(&a);
        drop(&b);
        stop();
    }
}

/* Nobody looks at anything where nothing is under way, and seldom where the device takes long. */
static void idle_helpers_do_nothing(void **state)
{
    enum { BYTES = 1024 * 1024 };
    (void)state;
    start("cuda:0", NULL, ways[1]);
    bench b = lay(BYTES);
    uint8_t *host = calloc(1, BYTES);
    bench_await(&b, bench_put(&b, host, 0, BYTES, true));
    bench_await(&b, bench_put(&b, host, 0, BYTES, false));
    nap_ms(100);
    uint64_t looks = fakecuda_count("cuEventQuery");
    nap_ms(200);
    assert_int_equal(fakecuda_count("cuEventQuery"), looks);
    fakecuda_hold();
    fl_marker marker = bench_put(&b, host, 0, BYTES, false);
    nap_ms(300);
    looks = fakecuda_count("cuEventQuery") - looks;
    assert_true(looks < 3000); /* the longest nap is 0.5 ms */
    fakecuda_release();
    /* Nobody asks: helpers see to it. Acquire: as lanes do. */
    const fl_cuda_lane *lane = &fl_cuda_of(b.device)->lanes->lane[FL_LANE_OUT];
    for (int k = 0; k < 30000 && fl_load_acquire(&lane->aboard) != 0; k++)
        nap_ms(1);
    assert_int_equal(fl_load_acquire(&lane->aboard), 0);
    assert_ok(bench_look(&b, marker));
    bench_clear(&b);
    free(host);
    stop();
}

/* --- Failures --- */

typedef struct heard {
    int calls;
    char text[512];
} heard;

static void hear(filch_log_level level, const char *text, void *user)
{
    heard *h = user;
    if (level != FILCH_LOG_WARNING || strstr(text, "page-locked") == NULL)
        return;
    h->calls++;
    snprintf(h->text, sizeof h->text, "%s", text);
}

/* Without page-locked memory the driver copies, and that is said once a direction. */
static void the_driver_copies_where_there_are_no_slots(void **state)
{
    fl_random random;
    heard h = {0};
    (void)state;
    fl_random_init(&random, 1, 1);
    start_heard("cuda:0", NULL, ways[1], hear, &h);
    fakecuda_fail("cuMemHostAlloc", 1, 0, FL_CUDA_ERROR_OUT_OF_MEMORY, -1, false);
    matrix a = column(4 * MIB, MIB), b = a;
    filch_graph *graph = new_graph();
    make(&a, &random, 0);
    make(&b, &random, 0);
    add_turns(graph, &a, &b);
    for (int round = 0; round < 2; round++) {
        scatter(&a, &random);
        assert_ok(run(graph));
        compare(&a, &b, 1);
    }
    assert_int_equal(h.calls, 2);
    assert_non_null(strstr(h.text, "cuMemHostAlloc"));
    assert_int_equal(fakecuda_count("cuMemHostAlloc"), 2);
    assert_int_equal(fakecuda_count("pageable"), 16);
    assert_ok(filch_graph_destroy(graph));
    drop(&a);
    drop(&b);
    stop();
}

/* Where there is no page-locked memory for a ring of the size wanted, there may be for a small one.
 */
static void a_small_ring_is_better_than_none(void **state)
{
    fl_random random;
    heard h = {0};
    (void)state;
    fl_random_init(&random, 1, 1);
    start_heard("cuda:0", NULL, (way){FILCH_DRIVE_THREADS, "7"}, hear, &h);
    fakecuda_fail("cuMemHostAlloc", 1, 1, FL_CUDA_ERROR_OUT_OF_MEMORY, -1, false);
    matrix a = column(4 * MIB, MIB), b = a;
    filch_graph *graph = new_graph();
    make(&a, &random, 0);
    make(&b, &random, 0);
    add_turns(graph, &a, &b);
    scatter(&a, &random);
    assert_ok(run(graph));
    compare(&a, &b, 1);
    assert_int_equal(h.calls, 0);
    assert_int_equal(fakecuda_count("cuMemHostAlloc"), 3);
    assert_int_equal(fakecuda_count("pageable"), 0);
    assert_ok(filch_graph_destroy(graph));
    drop(&a);
    drop(&b);
    stop();
}

/* Once a job is told that it is over, its buffers are its owner's: nothing lands there, though the
 * device was lost in the middle. */
static void nothing_lands_after_a_loss(void **state)
{
    enum { BYTES = 8 * 1024 * 1024 };
    fl_random random;
    (void)state;
    fl_random_init(&random, 1, 1);
    for (int w = 0; w < WAYS; w++) {
        for (uint64_t nth = 1; nth <= 31; nth += 3) {
            start("cuda:0", "{\"copy_gbps\": 50}", ways[w]);
            matrix a = column(BYTES, 2 * MIB), b = a;
            filch_graph *graph = new_graph();
            void *pages =
                mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            assert_true(pages != MAP_FAILED);
            make(&a, &random, 0);
            make_at(&b, pages, 0);
            add_turns(graph, &a, &b);
            fakecuda_fail("copy", nth, 1, FL_CUDA_ERROR_ILLEGAL_ADDRESS, -1, true);
            filch_status status = run(graph);
            assert_int_equal(mprotect(pages, BYTES, PROT_NONE), 0);
            assert_int_not_equal(status, FILCH_OK);
            nap_ms(2);
            assert_ok(filch_graph_destroy(graph));
            drop(&a);
            assert_ok(filch_data_destroy(b.data));
            stop();
            assert_int_equal(munmap(pages, BYTES), 0);
        }
    }
}

/* Who is told of the loss may take the buffer away: landings that had begun are over. */
static void landings_are_over_when_the_loss_is_told(void **state)
{
    enum { BYTES = 8 * 1024 * 1024, ROUNDS = TEST_ROUNDS(60) };
    fl_random random;
    int losses = 0;
    (void)state;
    fl_random_init(&random, the_seed(), 5);
    for (int round = 0; round < ROUNDS; round++) {
        uint8_t *host =
            mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        assert_true(host != MAP_FAILED);
        start("cuda:0", "{\"fill\": false}", ways[1]);
        bench b = lay(BYTES);
        fl_cuda_gpu *gpu = fl_cuda_of(b.device)->gpu;
        filch_status status;
        memset(host, 1, BYTES);
        fl_marker marker = bench_put(&b, host, 0, BYTES, false);
        uint64_t until = fl_time_now() + fl_random_below(&random, 1500000);
        while (fl_time_now() < until) {
        }
        (void)fl_cuda_lose(gpu, FL_CUDA_ERROR_ILLEGAL_ADDRESS, "a test", NULL, NULL);
        while ((status = bench_look(&b, marker)) == FILCH_NOT_READY) {
        }
        assert_int_equal(mprotect(host, BYTES, PROT_NONE), 0);
        nap_ms(1);
        losses += status != FILCH_OK;
        (void)b.device->backend->lane->drain(b.device, NULL); /* it was not lost in truth */
        bench_clear(&b);
        stop();
        assert_int_equal(munmap(host, BYTES), 0);
    }
    print_message("%d losses\n", losses);
    assert_true(losses != 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_of_any_shape_arrive),
        cmocka_unit_test(only_small_copies_in_are_the_drivers),
        cmocka_unit_test(pinned_memory_is_not_staged),
        cmocka_unit_test(handles_are_page_locked_on_request),
        cmocka_unit_test(what_cannot_be_page_locked_is_said),
        cmocka_unit_test(many_copy_at_once),
        cmocka_unit_test(tiles_travel_through_the_host),
        cmocka_unit_test(later_copies_are_reached_later),
        cmocka_unit_test(the_last_copy_to_some_bytes_wins),
        cmocka_unit_test(copies_in_wait_for_landings),
        cmocka_unit_test(the_buffer_is_read_at_once),
        cmocka_unit_test(slots_wait_for_the_device),
        cmocka_unit_test(helpers_come_when_they_are_needed),
        cmocka_unit_test(idle_helpers_do_nothing),
        cmocka_unit_test(the_driver_copies_where_there_are_no_slots),
        cmocka_unit_test(a_small_ring_is_better_than_none),
        cmocka_unit_test(nothing_lands_after_a_loss),
        cmocka_unit_test(landings_are_over_when_the_loss_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
