/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
/* StarPU on CPU workers with its locality-aware work stealing policy, lws. Tasks of a rerun are
 * kept (destroy = 0) and submitted again: their explicit dependencies hold for every submission.
 * Matrices are registered tile by tile, so that dependencies follow from the accesses; with one
 * memory node nothing is ever copied, and the codelets may use the tiles where they lie.
 *
 * StarPU is one per process. Between runs its workers are paused: they would poll otherwise. */
#include "peers/peer.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/timing.h"

#include <starpu.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

typedef struct state state;

/* What a codelet's function gets; one a task, since StarPU keeps only the pointer. */
typedef struct item {
    state *owner;
    size_t i; /* task of an empty kind */
    size_t j;
    size_t k;
} item;

struct state {
    const bench_peer_work *work;
    struct starpu_task **tasks; /* of a rerun, in submission order */
    size_t task_count;
    item *items;
    size_t item_count;
    bench_grid grid;
    starpu_data_handle_t *handles; /* one a tile of c; null above a factor's diagonal */
    struct starpu_codelet empty;
    struct starpu_codelet factor;
    struct starpu_codelet solve;
    struct starpu_codelet update;
    struct starpu_codelet diagonal; /* update of a diagonal tile: one operand less */
    struct starpu_codelet multiply;
    atomic_int info;
};

static void run_empty(void *buffers[], void *argument)
{
    (void)buffers;
    const item *it = argument;
    bench_peer_body(it->owner->work, it->i);
}

static void run_factor(void *buffers[], void *argument)
{
    (void)buffers;
    item *it = argument;
    int info = bench_grid_factor(&it->owner->grid, it->k);
    if (info != 0) /* read after starpu_task_wait_for_all, which orders it */
        atomic_store_explicit(&it->owner->info, info, memory_order_relaxed);
}

static void run_solve(void *buffers[], void *argument)
{
    (void)buffers;
    const item *it = argument;
    bench_grid_solve(&it->owner->grid, it->i, it->k);
}

static void run_update(void *buffers[], void *argument)
{
    (void)buffers;
    const item *it = argument;
    bench_grid_update(&it->owner->grid, it->i, it->j, it->k);
}

static void run_multiply(void *buffers[], void *argument)
{
    (void)buffers;
    const item *it = argument;
    bench_grid_multiply(&it->owner->grid, it->i, it->j);
}

static void fill_codelet(struct starpu_codelet *codelet, starpu_cpu_func_t function, int buffers,
                         const enum starpu_data_access_mode *modes)
{
    starpu_codelet_init(codelet);
    codelet->where = STARPU_CPU;
    codelet->cpu_funcs[0] = function;
    codelet->nbuffers = buffers;
    for (int b = 0; b < buffers; b++)
        codelet->modes[b] = modes[b];
}

static void fill_codelets(state *s)
{
    fill_codelet(&s->empty, run_empty, 0, NULL);
    fill_codelet(&s->factor, run_factor, 1, (enum starpu_data_access_mode[]){STARPU_RW});
    fill_codelet(&s->solve, run_solve, 2, (enum starpu_data_access_mode[]){STARPU_R, STARPU_RW});
    fill_codelet(&s->update, run_update, 3,
                 (enum starpu_data_access_mode[]){STARPU_R, STARPU_R, STARPU_RW});
    fill_codelet(&s->diagonal, run_update, 2,
                 (enum starpu_data_access_mode[]){STARPU_R, STARPU_RW});
    fill_codelet(&s->multiply, run_multiply, 1, (enum starpu_data_access_mode[]){STARPU_W});
}

static bool is_dense(bench_peer_kind kind)
{
    return kind == BENCH_PEER_CHOLESKY || kind == BENCH_PEER_GEMM;
}

static bool supports(bench_peer_kind kind)
{
    return kind < BENCH_PEER_ALONE;
}

static starpu_data_handle_t *handle_at(state *s, size_t i, size_t j)
{
    return &s->handles[i + j * s->grid.count];
}

static bool has_tile(const state *s, size_t i, size_t j)
{
    return s->work->kind == BENCH_PEER_GEMM || i >= j;
}

static void register_tiles(state *s)
{
    for (size_t j = 0; j < s->grid.count; j++)
        for (size_t i = 0; i < s->grid.count; i++)
            if (has_tile(s, i, j))
                starpu_matrix_data_register(
                    handle_at(s, i, j), STARPU_MAIN_RAM, (uintptr_t)bench_grid_at(&s->grid, i, j),
                    (uint32_t)s->grid.n, (uint32_t)bench_grid_extent(&s->grid, i),
                    (uint32_t)bench_grid_extent(&s->grid, j), sizeof(double));
}

static struct starpu_task *new_task(struct starpu_codelet *codelet, item *it)
{
    struct starpu_task *task = starpu_task_create();
    task->cl = codelet;
    task->cl_arg = it;
    task->cl_arg_size = sizeof *it;
    return task;
}

/* Tasks that are kept. What each comes after, by kind. */
static void build_tasks(state *s)
{
    const bench_peer_work *w = s->work;
    for (size_t t = 0; t < s->task_count; t++) {
        struct starpu_task *before[2];
        unsigned count = 0;
        s->tasks[t] = new_task(&s->empty, &s->items[t]);
        s->tasks[t]->destroy = 0;
        if (w->kind == BENCH_PEER_CHAIN && t > 0)
            before[count++] = s->tasks[t - 1];
        if (w->kind == BENCH_PEER_WAVEFRONT && t >= w->n)
            before[count++] = s->tasks[t - w->n];
        if (w->kind == BENCH_PEER_WAVEFRONT && t % w->n > 0)
            before[count++] = s->tasks[t - 1];
        if (count > 0)
            starpu_task_declare_deps_array(s->tasks[t], count, before);
    }
}

static void state_free(state *s)
{
    free(s->tasks);
    free(s->items);
    free(s->handles);
    free(s);
}

static state *state_new(const bench_peer_work *work)
{
    state *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->work = work;
    s->item_count = bench_peer_tasks(work);
    s->items = calloc(s->item_count, sizeof *s->items);
    bool ok = s->items != NULL;
    if (is_dense(work->kind)) {
        s->grid = bench_grid_make(work->n, work->tile, work->a, work->b, work->c);
        s->handles = calloc(s->grid.count * s->grid.count, sizeof(starpu_data_handle_t));
        ok = ok && s->handles;
    } else if (work->kind != BENCH_PEER_EMPTY) {
        s->task_count = s->item_count;
        s->tasks = calloc(s->task_count, sizeof(struct starpu_task *));
        ok = ok && s->tasks;
    }
    if (!ok) {
        state_free(s);
        return NULL;
    }
    for (size_t t = 0; t < s->item_count; t++)
        s->items[t] = (item){s, t, 0, 0};
    fill_codelets(s);
    return s;
}

static filch_status start_starpu(unsigned workers, filch_error *error)
{
    if (starpu_is_initialized())
        return bench_fail(error, FILCH_BUSY, "starpu", 0, "this process already runs StarPU");
    struct starpu_conf conf;
    starpu_conf_init(&conf);
    conf.precedence_over_environment_variables = 1;
    conf.sched_policy_name = "lws";
    conf.ncpus = (int)workers;
    conf.ncuda = 0;
    conf.nopencl = 0;
    conf.catch_signals = 0;
    int code = starpu_init(&conf);
    if (code != 0)
        return bench_fail(error, FILCH_SYSTEM, "starpu", 0, "starpu_init: %s", strerror(-code));
    if (starpu_cpu_worker_get_count() != workers) {
        unsigned got = starpu_cpu_worker_get_count();
        starpu_shutdown();
        return bench_fail(error, FILCH_UNSUPPORTED, "starpu", 0, "%u workers, %u asked", got,
                          workers);
    }
    return FILCH_OK;
}

static filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    state *s = state_new(work);
    if (!s)
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "starpu", 0, "no memory");
    filch_status status = start_starpu(work->workers, error);
    if (status != FILCH_OK) {
        state_free(s);
        return status;
    }
    if (s->handles)
        register_tiles(s);
    if (s->tasks)
        build_tasks(s);
    starpu_pause();
    *out = s;
    return FILCH_OK;
}

static int submit_dense(state *s, struct starpu_codelet *codelet, const item *where, size_t *next,
                        starpu_data_handle_t *const handles[])
{
    item *it = &s->items[(*next)++];
    *it = *where;
    struct starpu_task *task = new_task(codelet, it);
    for (int b = 0; b < codelet->nbuffers; b++)
        task->handles[b] = *handles[b];
    return starpu_task_submit(task);
}

static int submit_cholesky(state *s)
{
    size_t next = 0;
    int code = 0;
    size_t count = s->grid.count;
    for (size_t k = 0; k < count && code == 0; k++) {
        starpu_data_handle_t *kk = handle_at(s, k, k);
        code =
            submit_dense(s, &s->factor, &(item){s, k, k, k}, &next, (starpu_data_handle_t *[]){kk});
        for (size_t i = k + 1; i < count && code == 0; i++)
            code = submit_dense(s, &s->solve, &(item){s, i, k, k}, &next,
                                (starpu_data_handle_t *[]){kk, handle_at(s, i, k)});
        for (size_t j = k + 1; j < count; j++)
            for (size_t i = j; i < count && code == 0; i++) {
                starpu_data_handle_t *ik = handle_at(s, i, k);
                starpu_data_handle_t *ij = handle_at(s, i, j);
                starpu_data_handle_t *jk = handle_at(s, j, k);
                code = i == j ? submit_dense(s, &s->diagonal, &(item){s, i, j, k}, &next,
                                             (starpu_data_handle_t *[]){ik, ij})
                              : submit_dense(s, &s->update, &(item){s, i, j, k}, &next,
                                             (starpu_data_handle_t *[]){ik, jk, ij});
            }
    }
    return code;
}

static int submit_gemm(state *s)
{
    size_t next = 0;
    int code = 0;
    for (size_t j = 0; j < s->grid.count; j++)
        for (size_t i = 0; i < s->grid.count && code == 0; i++)
            code = submit_dense(s, &s->multiply, &(item){s, i, j, 0}, &next,
                                (starpu_data_handle_t *[]){handle_at(s, i, j)});
    return code;
}

static int submit(state *s)
{
    int code = 0;
    if (s->work->kind == BENCH_PEER_CHOLESKY)
        return submit_cholesky(s);
    if (s->work->kind == BENCH_PEER_GEMM)
        return submit_gemm(s);
    if (s->work->kind == BENCH_PEER_EMPTY)
        for (size_t t = 0; t < s->item_count && code == 0; t++)
            code = starpu_task_submit(new_task(&s->empty, &s->items[t]));
    for (size_t t = 0; t < s->task_count && code == 0; t++)
        code = starpu_task_submit(s->tasks[t]);
    return code;
}

static filch_status run(void *opaque, filch_error *error, double *seconds)
{
    state *s = opaque;
    const bench_peer_work *w = s->work;
    if (w->kind == BENCH_PEER_CHOLESKY)
        memcpy(w->c, w->a, w->n * w->n * sizeof(double));
    atomic_store_explicit(&s->info, 0, memory_order_relaxed); /* no task runs yet */
    int before = bench_blas_threads_set(1);
    starpu_resume();
    double start = bench_now_s();
    int code = submit(s);
    starpu_task_wait_for_all();
    double end = bench_now_s();
    starpu_pause();
    bench_blas_threads_set(before);
    int info = atomic_load_explicit(&s->info, memory_order_relaxed);
    if (code != 0)
        return bench_fail(error, FILCH_SYSTEM, "starpu", 0, "starpu_task_submit: %s",
                          strerror(-code));
    if (info != 0)
        return bench_fail(error, FILCH_DATA, "starpu", 0, "minor %d is not positive", info);
    *seconds = end - start;
    return FILCH_OK;
}

static void teardown(void *opaque)
{
    state *s = opaque;
    starpu_resume();
    for (size_t t = 0; t < s->task_count; t++)
        starpu_task_destroy(s->tasks[t]);
    if (s->handles)
        for (size_t j = 0; j < s->grid.count; j++)
            for (size_t i = 0; i < s->grid.count; i++)
                if (has_tile(s, i, j))
                    starpu_data_unregister(*handle_at(s, i, j));
    starpu_shutdown();
    state_free(s);
}

const bench_peer bench_peer_starpu = {
    .name = "starpu",
    .description = "StarPU, policy lws, CPU workers",
    .supports = supports,
    .setup = setup,
    .run = run,
    .teardown = teardown,
};
