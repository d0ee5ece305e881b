/* SPDX-License-Identifier: Apache-2.0 */
#include "fixture.h"

#include <string.h>

#include "memory/tiles/data.h"

static filch_runtime *runtime;
static double buffer[64];

static int set_up(void **state)
{
    (void)state;
    runtime = fixture_runtime("host:1", FILCH_DRIVE_POLL, NULL);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    assert_ok(filch_runtime_destroy(runtime));
    return 0;
}

static filch_data_desc matrix(void)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = buffer;
    desc.element = sizeof(double);
    desc.rows = 7;
    desc.cols = 5;
    desc.ld = 8;
    desc.tile_rows = 3;
    desc.tile_cols = 2;
    desc.label = "A";
    return desc;
}

static void refused(filch_data_desc desc, filch_status expected)
{
    filch_data *data = (filch_data *)(void *)buffer;
    assert_status(filch_data_create(runtime, &desc, &data), expected);
    assert_ptr_equal(data, buffer); /* untouched */
    filch_error error = fixture_error(runtime);
    assert_int_equal(error.status, expected);
    assert_string_equal(error.call, "filch_data_create");
    assert_true(error.text[0] != '\0');
}

static void bad_arguments_are_named(void **state)
{
    (void)state;
    filch_data_desc desc = matrix();
    filch_data *data = NULL;
    assert_status(filch_data_create(NULL, &desc, &data), FILCH_INVALID_HANDLE);
    assert_status(filch_data_create((filch_runtime *)(void *)buffer, &desc, &data),
                  FILCH_INVALID_HANDLE);
    assert_status(filch_data_create(runtime, NULL, &data), FILCH_INVALID_ARGUMENT);
    assert_status(filch_data_create(runtime, &desc, NULL), FILCH_INVALID_ARGUMENT);
#define REFUSE(member, value, status) \
    do {                              \
        desc = matrix();              \
        desc.member = (value);        \
        refused(desc, status);        \
    } while (0)
    REFUSE(size, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(size, offsetof(filch_data_desc, row_cuts) - 1, FILCH_INVALID_ARGUMENT);
    REFUSE(ptr, NULL, FILCH_INVALID_ARGUMENT);
    REFUSE(element, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(rows, 0, FILCH_INVALID_ARGUMENT);
    REFUSE(ld, 6, FILCH_INVALID_ARGUMENT);
    REFUSE(tile_rows, 8, FILCH_INVALID_ARGUMENT);
    REFUSE(tile_cols, 6, FILCH_INVALID_ARGUMENT);
    REFUSE(tile_rows, UINT64_MAX, FILCH_INVALID_ARGUMENT);
    REFUSE(element, UINT64_MAX, FILCH_OVERFLOW);
    REFUSE(ld, UINT64_MAX, FILCH_OVERFLOW);
    REFUSE(cols, UINT64_MAX, FILCH_OVERFLOW);
    REFUSE(element, (uint64_t)1 << 58, FILCH_OVERFLOW); /* 40 of them: over 2^63 */
    REFUSE(flags, 64, FILCH_INVALID_ARGUMENT);
    REFUSE(reserved, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(reserved2, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(device, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(flags, FILCH_DATA_NO_BUFFER, FILCH_INVALID_ARGUMENT); /* there is one */
    REFUSE(flags, FILCH_DATA_NO_BUFFER | FILCH_DATA_ON_DEVICE, FILCH_INVALID_ARGUMENT);
    REFUSE(flags, FILCH_DATA_ON_DEVICE, FILCH_UNSUPPORTED); /* device 0 is the host's */
    REFUSE(row_cut_count, 1, FILCH_INVALID_ARGUMENT);
    REFUSE(col_cut_count, 1, FILCH_INVALID_ARGUMENT);
}

static void cuts_have_to_add_up(void **state)
{
    (void)state;
    static const uint64_t good[] = {1, 4, 2}, zero[] = {5, 0, 2}, less[] = {1, 4, 1},
                          more[] = {1, 4, 3}, huge[] = {UINT64_MAX, 1, 7};
    filch_data_desc desc = matrix();
    desc.row_cuts = good;
    desc.row_cut_count = 3;
    refused(desc, FILCH_INVALID_ARGUMENT); /* tile_rows is set, too */
    desc.tile_rows = 0;
    const uint64_t *const bad[] = {zero, less, more, huge};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; ++i) {
        desc.row_cuts = bad[i];
        refused(desc, FILCH_INVALID_ARGUMENT);
        assert_non_null(strstr(fixture_error(runtime).text, "rows"));
        assert_string_equal(fixture_error(runtime).label, "A");
    }
    desc.row_cuts = good;
    desc.row_cut_count = 2;
    refused(desc, FILCH_INVALID_ARGUMENT);
    desc.row_cut_count = 0;
    refused(desc, FILCH_INVALID_ARGUMENT);
    desc = matrix();
    desc.tile_cols = 0;
    desc.col_cuts = less; /* 6 of 5 */
    desc.col_cut_count = 3;
    refused(desc, FILCH_INVALID_ARGUMENT);
    assert_non_null(strstr(fixture_error(runtime).text, "columns"));
}

/* A program that was built with the first version has a shorter structure. */
static void the_first_descriptor_still_does(void **state)
{
    (void)state;
    assert_int_equal(offsetof(filch_data_desc, row_cuts), 80);
    assert_int_equal(sizeof(filch_data_desc), 112);
    struct {
        unsigned char bytes[offsetof(filch_data_desc, row_cuts)];
        unsigned char behind[64];
    } old;
    filch_data_desc desc = matrix();
    filch_data *data = NULL;
    desc.size = sizeof old.bytes;
    memset(&old, 0xff, sizeof old);
    memcpy(old.bytes, &desc, sizeof old.bytes);
    assert_ok(filch_data_create(runtime, (const filch_data_desc *)(const void *)&old, &data));
    assert_ok(filch_data_destroy(data));
}

static void tile_counts_end_below_two_to_32(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_tiling tiling = {.size = sizeof tiling};
    filch_data *data = NULL;
    desc.ptr = buffer;
    desc.element = 1;
    desc.tile_rows = desc.tile_cols = 1;
    static const struct {
        uint64_t rows, cols;
        filch_status status;
    } cases[] = {
        {UINT32_MAX - 1, 1, FILCH_OK},
        {UINT32_MAX, 1, FILCH_OVERFLOW},
        {(uint64_t)1 << 32, 1, FILCH_OVERFLOW},
        {((uint64_t)1 << 32) + 1, 1, FILCH_OVERFLOW}, /* 1 in 32 bits */
        {1, UINT32_MAX, FILCH_OVERFLOW},
        {65536, 65535, FILCH_OK},
        {65536, 65536, FILCH_OVERFLOW}, /* 0 in 32 bits */
        {65537, 65535, FILCH_OVERFLOW}, /* 2^32 - 1 exactly */
        {(uint64_t)1 << 31, (uint64_t)1 << 31, FILCH_OVERFLOW},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; ++i) {
        desc.rows = cases[i].rows;
        desc.cols = cases[i].cols;
        assert_status(filch_data_create(runtime, &desc, &data), cases[i].status);
        if (cases[i].status == FILCH_OK) {
            assert_ok(filch_data_tiles(data, &tiling));
            assert_int_equal(tiling.rows, cases[i].rows);
            assert_int_equal(tiling.cols, cases[i].cols);
            assert_ok(filch_data_destroy(data));
        }
    }
    /* Larger tiles make the same handle fit. */
    desc.rows = desc.cols = 65536;
    desc.tile_cols = 2;
    assert_ok(filch_data_create(runtime, &desc, &data));
    assert_ok(filch_data_destroy(data));
}

static void defaults_are_one_tile(void **state)
{
    (void)state;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data = NULL;
    filch_tiling tiling = {.size = sizeof tiling};
    desc.ptr = buffer;
    desc.element = 8;
    desc.rows = 64;
    assert_ok(filch_data_create(runtime, &desc, &data));
    assert_ok(filch_data_tiles(data, &tiling));
    assert_int_equal(tiling.rows, 1);
    assert_int_equal(tiling.cols, 1);
    filch_view view = fl_data_tile_view(data, 0);
    assert_ptr_equal(view.ptr, buffer);
    assert_int_equal(view.rows, 64);
    assert_int_equal(view.cols, 1);
    assert_int_equal(view.ld, 64);
    assert_status(filch_data_tiles(data, NULL), FILCH_INVALID_ARGUMENT);
    tiling.size = 0;
    assert_status(filch_data_tiles(data, &tiling), FILCH_INVALID_ARGUMENT);
    assert_status(filch_data_tiles(NULL, &tiling), FILCH_INVALID_HANDLE);
    assert_ok(filch_data_destroy(data));
}

/* Each element is in the view of one tile, and where the caller's layout has it. */
static void covers_each_once(filch_data *data, uint64_t ld)
{
    int seen[7][5] = {{0}};
    for (uint32_t tile = 0; tile < fl_data_tile_count(data); ++tile) {
        filch_view view = fl_data_tile_view(data, tile);
        assert_ptr_equal(view.ptr, &buffer[view.col * ld + view.row]);
        for (uint64_t r = 0; r < view.rows; ++r) {
            for (uint64_t c = 0; c < view.cols; ++c) {
                ++seen[view.row + r][view.col + c];
            }
        }
    }
    for (int r = 0; r < 7; ++r) {
        for (int c = 0; c < 5; ++c) {
            assert_int_equal(seen[r][c], 1);
        }
    }
}

static void tiles_of_unlike_sizes_are_where_the_cuts_say(void **state)
{
    (void)state;
    uint64_t rows[] = {1, 4, 2}, cols[] = {3, 2};
    filch_data_desc desc = matrix();
    filch_data *data = NULL;
    filch_tiling tiling = {.size = sizeof tiling};
    desc.tile_rows = 0;
    desc.row_cuts = rows;
    desc.row_cut_count = 3;
    assert_ok(filch_data_create(runtime, &desc, &data)); /* with columns of equal widths */
    covers_each_once(data, 8);
    assert_ok(filch_data_tiles(data, &tiling));
    assert_int_equal(tiling.rows, 3);
    assert_int_equal(tiling.cols, 3);
    assert_ok(filch_data_destroy(data));
    desc.tile_cols = 0;
    desc.col_cuts = cols;
    desc.col_cut_count = 2;
    assert_ok(filch_data_create(runtime, &desc, &data));
    memset(rows, 0, sizeof rows); /* they were copied */
    memset(cols, 0, sizeof cols);
    covers_each_once(data, 8);
    filch_view view = fl_data_tile_view(data, fl_data_tile(data, 1, 1));
    assert_int_equal(view.row, 1);
    assert_int_equal(view.rows, 4);
    assert_int_equal(view.col, 3);
    assert_int_equal(view.cols, 2);
    assert_ok(filch_data_destroy(data));
}

static void tiles_between_elements_are_those_that_they_touch(void **state)
{
    (void)state;
    static const uint64_t cuts[] = {3, 1, 8, 2, 2};
    static const uint32_t owner[] = {0, 0, 0, 1, 2, 2, 2, 2, 2, 2, 2, 2, 3, 3, 4, 4};
    for (int is_wide = 0; is_wide < 2; ++is_wide) {
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        filch_data *data = NULL;
        desc.ptr = buffer;
        desc.element = 1;
        desc.rows = is_wide ? 4 : 16;
        desc.cols = is_wide ? 16 : 1;
        *(is_wide ? &desc.col_cuts : &desc.row_cuts) = cuts;
        *(is_wide ? &desc.col_cut_count : &desc.row_cut_count) = 5;
        assert_ok(filch_data_create(runtime, &desc, &data));
        assert_int_equal(fl_data_axis_tiles(data), 5);
        for (uint64_t first = 0; first <= 16; ++first) {
            for (uint64_t last = first; last <= 16; ++last) {
                uint32_t tile, end;
                fl_data_tiles_between(data, first, last, &tile, &end);
                assert_int_equal(tile, first < 16 ? owner[first] : 5);
                assert_int_equal(end, last > first ? owner[last - 1] + 1 : tile);
            }
        }
        assert_ok(filch_data_destroy(data));
    }
}

static void views_of_ragged_tiles_cover_each_element_once(void **state)
{
    (void)state;
    for (uint64_t ld = 7; ld <= 9; ++ld) {
        for (uint64_t tr = 1; tr <= 7; ++tr) {
            for (uint64_t tc = 1; tc <= 5; ++tc) {
                filch_data_desc desc = matrix();
                filch_data *data = NULL;
                filch_tiling tiling = {.size = sizeof tiling};
                int seen[64] = {0};
                desc.ld = ld;
                desc.tile_rows = tr;
                desc.tile_cols = tc;
                assert_ok(filch_data_create(runtime, &desc, &data));
                assert_ok(filch_data_tiles(data, &tiling));
                assert_int_equal(tiling.rows, (7 + tr - 1) / tr);
                assert_int_equal(tiling.cols, (5 + tc - 1) / tc);
                for (uint32_t t = 0; t < tiling.rows * tiling.cols; ++t) {
                    filch_view view = fl_data_tile_view(data, t);
                    assert_int_equal(view.ld, ld);
                    assert_int_equal(view.element, 8);
                    assert_int_equal(view.row, t % tiling.rows * tr);
                    assert_int_equal(view.col, t / tiling.rows * tc);
                    assert_ptr_equal(view.ptr, buffer + view.col * ld + view.row);
                    for (uint64_t j = 0; j < view.cols; ++j) {
                        for (uint64_t i = 0; i < view.rows; ++i) {
                            ++seen[(view.col + j) * ld + view.row + i];
                        }
                    }
                }
                for (uint64_t at = 0; at < 64; ++at) {
                    assert_int_equal(seen[at], at / ld < 5 && at % ld < 7);
                }
                assert_ok(filch_data_destroy(data));
            }
        }
    }
}

static void labels_are_copied_and_cut(void **state)
{
    (void)state;
    char label[100];
    memset(label, 'x', sizeof label);
    label[99] = '\0';
    filch_data_desc desc = matrix();
    filch_data *data = NULL;
    desc.label = label;
    assert_ok(filch_data_create(runtime, &desc, &data));
    memset(label, 'y', sizeof label - 1);
    assert_int_equal(strlen(data->label), 63);
    assert_int_equal(data->label[62], 'x');
    assert_ok(filch_data_destroy(data));
}

static void destroy_waits_for_graphs(void **state)
{
    (void)state;
    filch_codelet *nothing = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_access access = fixture_access(data, 7, FILCH_READ);
    fixture_add(graph, nothing, NULL, &access, 1);
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    assert_string_equal(fixture_error(runtime).call, "filch_data_destroy");
    assert_ok(fixture_run(graph));
    assert_status(filch_data_destroy(data), FILCH_BUSY); /* the graph may run again */
    assert_ok(filch_graph_destroy(graph));
    assert_ok(filch_data_destroy(data));
    assert_status(filch_data_destroy(NULL), FILCH_INVALID_HANDLE);
    assert_status(filch_data_destroy((filch_data *)(void *)runtime), FILCH_INVALID_HANDLE);
#ifndef NDEBUG
    filch_tiling tiling = {.size = sizeof tiling};
    assert_status(filch_data_destroy(data), FILCH_INVALID_HANDLE);
    assert_status(filch_data_tiles(data, &tiling), FILCH_INVALID_HANDLE);
#endif
}

/* The queue of jobs (data.h), without jobs. */
static fl_queued_access *order[16];
static size_t order_count;

static void granted(fl_queued_access *use, void *user)
{
    (void)user;
    order[order_count++] = use;
}

static void uses_are_granted_in_order(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    fl_queued_access uses[6];
    static const bool writes[6] = {false, false, true, false, false, true}; /* r r W r r W */
    for (size_t i = 0; i < 6; ++i) {
        uses[i] = (fl_queued_access){.data = data, .writes = writes[i]};
        assert_int_equal(fl_access_queue_enqueue(&uses[i]), i < 2);
    }
    assert_status(filch_data_destroy(data), FILCH_BUSY);
    fl_access_queue_leave(&uses[1], granted, NULL);
    assert_int_equal(order_count, 0); /* the first reader still reads */
    fl_access_queue_leave(&uses[0], granted, NULL);
    assert_int_equal(order_count, 1);
    assert_ptr_equal(order[0], &uses[2]);
    fl_access_queue_leave(&uses[2], granted, NULL);
    assert_int_equal(order_count, 3); /* both readers at once */
    assert_ptr_equal(order[1], &uses[3]);
    assert_ptr_equal(order[2], &uses[4]);
    fl_access_queue_leave(&uses[3], granted, NULL);
    fl_access_queue_leave(&uses[4], granted, NULL);
    assert_int_equal(order_count, 4);
    assert_ptr_equal(order[3], &uses[5]);
    fl_access_queue_leave(&uses[5], granted, NULL);
    assert_null(data->first);
    assert_null(data->last);
    assert_ok(filch_data_destroy(data));
}

static void one_that_leaves_ungranted_lets_the_next_in(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    fl_queued_access reader = {.data = data}, writer = {.data = data, .writes = true},
                     late = {.data = data};
    order_count = 0;
    assert_true(fl_access_queue_enqueue(&reader));
    assert_false(fl_access_queue_enqueue(&writer));
    assert_false(fl_access_queue_enqueue(&late));
    fl_access_queue_leave(&writer, granted, NULL);
    /* A search through waiting jobs may still visit it, and its neighbours may be gone by then. */
    assert_null(writer.prev);
    assert_null(writer.next);
    assert_int_equal(order_count, 1);
    assert_ptr_equal(order[0], &late);
    fl_access_queue_leave(&reader, granted, NULL);
    fl_access_queue_leave(&late, granted, NULL);
    assert_ok(filch_data_destroy(data));
}

static void a_use_is_moved_within_its_queue(void **state)
{
    (void)state;
    filch_data *data = fixture_vector(runtime, buffer, 8, 64, 8);
    fl_queued_access uses[3];
    order_count = 0;
    for (size_t i = 0; i < 3; ++i) {
        uses[i] = (fl_queued_access){.data = data, .is_hold = i == 2};
        assert_true(fl_access_queue_enqueue(&uses[i]));
    }
    fl_access_queue_move(&uses[2], &uses[0]);
    fl_access_queue_move(&uses[0], NULL);
    fl_access_queue_move(&uses[1], &uses[0]); /* where it is */
    assert_ptr_equal(data->first, &uses[2]);
    assert_ptr_equal(data->last, &uses[0]);
    for (size_t i = 0; i < 3; ++i) {
        assert_true(uses[i].granted && uses[i].queued);
        assert_ptr_equal(uses[i].next, i == 2 ? &uses[1] : i == 1 ? &uses[0] : NULL);
        assert_ptr_equal(uses[i].prev, i == 0 ? &uses[1] : i == 1 ? &uses[2] : NULL);
    }
    assert_int_equal(data->holds, 1);
    for (size_t i = 0; i < 3; ++i) {
        fl_access_queue_leave(&uses[i], granted, NULL);
    }
    assert_int_equal(order_count, 0);
    assert_int_equal(data->holds, 0);
    assert_ok(filch_data_destroy(data));
}

/* --- Handles that the host has acquired --- */

static filch_status submit_batch(filch_codelet *codelet, filch_data *data, filch_job **job)
{
    filch_batch_access access = {
        .data = data, .mode = FILCH_READWRITE, .map = FILCH_MAP_AFFINE, .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = codelet;
    desc.n = 64;
    desc.accesses = &access;
    desc.access_count = 1;
    return filch_batch_submit(runtime, &desc, NULL, job);
}

/* No submission that names the handle gets in until it is released, and each does then. */
static void held_handles_refuse_submissions(void **state)
{
    (void)state;
    filch_codelet *codelet = fixture_codelet(runtime, "nothing", fixture_nothing, 0);
    filch_data *held = fixture_vector(runtime, buffer, sizeof *buffer, 64, 16);
    filch_data *other = fixture_vector(runtime, buffer, sizeof *buffer, 64, 16);
    filch_graph *closed = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_access accesses[] = {fixture_access(other, 0, FILCH_WRITE),
                               fixture_access(held, 1, FILCH_READ)};
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = codelet;
    task.accesses = accesses;
    task.access_count = 2;
    fixture_add(closed, codelet, NULL, accesses, 2);
    filch_job *job = (filch_job *)(void *)buffer;
    for (int mode = FILCH_READ; mode <= FILCH_READWRITE; ++mode) {
        assert_ok(filch_data_acquire(held, (filch_access_mode)mode));
        assert_status(filch_graph_submit(closed, NULL, &job), FILCH_BUSY);
        assert_non_null(strstr(fixture_error(runtime).text, held->label));
        assert_status(submit_batch(codelet, held, &job), FILCH_BUSY);
        assert_ptr_equal(job, buffer); /* untouched */
        assert_ok(filch_data_release(held));
        assert_int_equal(fixture_run(closed), FILCH_OK);
        filch_job *batch = NULL;
        assert_ok(submit_batch(codelet, held, &batch));
        assert_status(filch_data_acquire(held, (filch_access_mode)mode), FILCH_BUSY);
        assert_ok(filch_job_wait(batch, -1));
        assert_ok(filch_job_release(batch));
    }
    /* An open graph takes the handle when its first task names it, and keeps it. */
    filch_job *running = NULL;
    assert_ok(filch_graph_submit(open, NULL, &running));
    assert_ok(filch_data_acquire(held, FILCH_READ));
    assert_status(filch_graph_add(open, &task, NULL), FILCH_BUSY);
    assert_status(filch_graph_add(open, &task, NULL), FILCH_BUSY);
    assert_ok(filch_data_release(held));
    assert_ok(filch_graph_add(open, &task, NULL));
    assert_status(filch_data_acquire(held, FILCH_READ), FILCH_BUSY);
    assert_ok(filch_graph_close(open));
    assert_ok(filch_job_wait(running, -1));
    assert_ok(filch_job_release(running));
    assert_ok(filch_data_acquire(held, FILCH_WRITE));
    assert_ok(filch_data_release(held));
}

typedef struct acquirer {
    filch_data *data;
    filch_status status; /* of the acquisition */
    filch_hold *hold;
} acquirer;

static void acquire_in_callback(filch_job *job, filch_status status, void *user)
{
    acquirer *a = user;
    (void)job;
    assert_ok(status);
    a->status = filch_data_acquire_tiles(a->data, NULL, FILCH_READ, -1, &a->hold);
}

/* A callback that a worker calls does not wait for tiles, though it asks to. A callback that
 * filch_graph_close calls does. */
static void callbacks_of_workers_do_not_wait_for_tiles(void **state)
{
    (void)state;
    filch_codelet *codelet = fixture_codelet(runtime, "user", fixture_nothing, 0);
    acquirer acquires = {.data = fixture_vector(runtime, buffer, sizeof *buffer, 64, 16)};
    filch_graph *user = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_graph *free_of_data = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *writer = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_graph *open = fixture_graph(runtime, FILCH_GRAPH_OPEN);
    filch_access access = fixture_access(acquires.data, 0, FILCH_READWRITE);
    filch_submit_desc how = FILCH_SUBMIT_DESC_INIT;
    filch_job *job = NULL;
    how.on_complete = acquire_in_callback;
    how.user = &acquires;
    assert_ok(filch_graph_submit(user, NULL, NULL));
    fixture_add(user, codelet, NULL, &access, 1);
    fixture_add(free_of_data, codelet, NULL, NULL, 0);
    assert_ok(filch_graph_submit(free_of_data, &how, &job));
    assert_ok(filch_job_wait(job, -1));
    assert_status(acquires.status, FILCH_TIMEOUT);
    assert_ok(filch_job_release(job));
    assert_ok(filch_graph_close(user));
    assert_ok(filch_runtime_drain(runtime, -1));
    fixture_add(writer, codelet, NULL, &access, 1);
    assert_ok(filch_graph_submit(writer, NULL, &job));
    assert_status(filch_job_status(job), FILCH_NOT_READY);
    assert_ok(filch_graph_submit(open, &how, NULL));
    assert_ok(filch_graph_close(open));
    assert_ok(acquires.status);
    assert_ok(filch_job_status(job)); /* the callback waited for it */
    assert_ok(filch_hold_release(acquires.hold));
    assert_ok(filch_job_release(job));
}

static int put_row(const filch_call *call)
{
    const filch_view *view = &call->views[0];
    for (uint64_t i = 0; i < view->rows; ++i) {
        ((int64_t *)view->ptr)[i] = (int64_t)(view->row + i);
    }
    return 0;
}

/* What tasks wrote into a handle without a buffer is the host's to read, on the host's devices. */
static void results_without_a_buffer_are_found(void **state)
{
    enum { ROWS = 10, TILE = 4 };
    filch_codelet *put = fixture_codelet(runtime, "put", put_row, 0);
    (void)state;
    for (int by_tiles = 0; by_tiles < 2; ++by_tiles) {
        filch_graph *graph = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
        filch_data_desc desc = FILCH_DATA_DESC_INIT;
        filch_data *data;
        filch_hold *hold = NULL;
        filch_view view;
        desc.element = sizeof(int64_t);
        desc.rows = ROWS;
        desc.tile_rows = TILE;
        desc.flags = FILCH_DATA_NO_BUFFER;
        assert_ok(filch_data_create(runtime, &desc, &data));
        assert_status(filch_data_acquire(data, FILCH_READ), FILCH_WRONG_STATE);
        for (uint32_t tile = 0; tile * TILE < ROWS; ++tile) {
            filch_access access = fixture_access(data, tile, FILCH_WRITE);
            (void)fixture_add(graph, put, NULL, &access, 1);
        }
        assert_ok(fixture_run(graph));
        assert_ok(by_tiles ? filch_data_acquire_tiles(data, NULL, FILCH_READ, 1, &hold)
                           : filch_data_acquire(data, FILCH_READ));
        for (uint32_t tile = 0; tile * TILE < ROWS; ++tile) {
            assert_ok(filch_data_view(data, tile, 0, &view));
            for (uint64_t i = 0; i < view.rows; ++i) {
                assert_int_equal(((int64_t *)view.ptr)[i], view.row + i);
            }
        }
        assert_ok(by_tiles ? filch_hold_release(hold) : filch_data_release(data));
        assert_ok(filch_graph_destroy(graph));
        assert_ok(filch_data_destroy(data));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_arguments_are_named),
        cmocka_unit_test(tile_counts_end_below_two_to_32),
        cmocka_unit_test(defaults_are_one_tile),
        cmocka_unit_test(cuts_have_to_add_up),
        cmocka_unit_test(the_first_descriptor_still_does),
        cmocka_unit_test(tiles_of_unlike_sizes_are_where_the_cuts_say),
        cmocka_unit_test(tiles_between_elements_are_those_that_they_touch),
        cmocka_unit_test(views_of_ragged_tiles_cover_each_element_once),
        cmocka_unit_test(labels_are_copied_and_cut),
        cmocka_unit_test(destroy_waits_for_graphs),
        cmocka_unit_test(uses_are_granted_in_order),
        cmocka_unit_test(one_that_leaves_ungranted_lets_the_next_in),
        cmocka_unit_test(a_use_is_moved_within_its_queue),
        cmocka_unit_test(callbacks_of_workers_do_not_wait_for_tiles),
        cmocka_unit_test(held_handles_refuse_submissions),
        cmocka_unit_test(results_without_a_buffer_are_found),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
