/* SPDX-License-Identifier: Apache-2.0 */
#include "soak/jobs.h"

#include <string.h>

const char *soak_kind_name(soak_kind kind)
{
    static const char *const names[] = {"closed graph", "open graph", "batch"};
    return names[kind];
}

static bool was_run(const _Atomic bool *flag)
{
    return atomic_load_explicit(flag, memory_order_relaxed);
}

static void mark(_Atomic bool *flag, bool value)
{
    atomic_store_explicit(flag, value, memory_order_relaxed);
}

/* --- What tasks and items do --- */

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t state = a ^ (b * 0xd6e8feb86659fd93u);
    return soak_random(&state);
}

static void compute(const soak_task *task, uint64_t *to, const uint64_t *const *from)
{
    uint64_t own = mix(task->job->seed, (uint64_t)(task - task->job->tasks));
    for (uint32_t i = 0; i < SOAK_TILE; i++) {
        uint64_t value = mix(to[i], own);
        for (uint32_t r = 0; r < task->reads; r++)
            value = mix(value, from[r][i]);
        to[i] = value;
    }
}

/* A task that fails has done its work, and says so. */
static int run_task(const filch_call *call)
{
    soak_task *task;
    memcpy(&task, call->args, sizeof task);
    const uint64_t *from[2] = {NULL, NULL};
    for (uint32_t r = 0; r < task->reads; r++)
        from[r] = call->views[1 + r].ptr;
    compute(task, call->views[0].ptr, from);
    mark(&task->has_run, true);
    return task->fails ? SOAK_CODE : 0;
}

/* A chunk ends at the item that fails. */
static int run_items(const filch_call *call)
{
    soak_job *job;
    memcpy(&job, call->args, sizeof job);
    uint64_t *at = call->views[0].ptr;
    for (uint64_t i = call->lo; i < call->hi; i++) {
        if (i == job->failing)
            return SOAK_CODE;
        at[i - call->lo] = mix(at[i - call->lo], job->seed);
        mark(&job->has_run[i], true);
    }
    return 0;
}

/* --- Making --- */

filch_status soak_field_make(soak_field *field, filch_runtime *runtime, uint64_t *random)
{
    filch_codelet_desc task = FILCH_CODELET_DESC_INIT, batch = FILCH_CODELET_DESC_INIT;
    task.name = "soak task";
    task.host = run_task;
    task.arg_size = sizeof(soak_task *);
    batch.name = "soak batch";
    batch.host = run_items;
    batch.arg_size = sizeof(soak_job *);
    filch_status status = filch_codelet_create(runtime, &task, &field->task);
    if (status == FILCH_OK)
        status = filch_codelet_create(runtime, &batch, &field->batch);
    for (uint32_t v = 0; v < SOAK_VECTORS && status == FILCH_OK; v++) {
        filch_data_desc data = FILCH_DATA_DESC_INIT;
        for (uint32_t i = 0; i < SOAK_LENGTH; i++)
            field->real[v][i] = field->expected[v][i] = soak_random(random);
        data.ptr = field->real[v];
        data.element = sizeof(uint64_t);
        data.rows = SOAK_LENGTH;
        data.tile_rows = SOAK_TILE;
        status = filch_data_create(runtime, &data, &field->data[v]);
    }
    return status;
}

static void task_make(soak_job *job, soak_task *task, uint64_t *random)
{
    task->job = job;
    task->reads = soak_below(random, 3);
    task->fails = soak_chance(random, job->may_fail ? 4 : 0);
    for (uint32_t u = 0; u < 3; u++) {
        bool is_same = true;
        while (is_same) { /* one tile twice with a write is refused */
            task->vector[u] = soak_below(random, SOAK_VECTORS);
            task->tile[u] = soak_below(random, SOAK_TILES);
            is_same = false;
            for (uint32_t b = 0; b < u; b++)
                is_same |= task->vector[b] == task->vector[u] && task->tile[b] == task->tile[u];
        }
    }
}

static filch_status task_add(const soak_field *field, filch_graph *graph, soak_task *task)
{
    filch_access accesses[3];
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    for (uint32_t u = 0; u <= task->reads; u++)
        accesses[u] = (filch_access){.data = field->data[task->vector[u]],
                                     .row = task->tile[u],
                                     .mode = u == 0 ? FILCH_READWRITE : FILCH_READ};
    desc.codelet = field->task;
    desc.args = &task;
    desc.accesses = accesses;
    desc.access_count = 1 + task->reads;
    return filch_graph_add(graph, &desc, NULL);
}

static filch_status tasks_add(const soak_field *field, soak_job *job)
{
    filch_status status = FILCH_OK;
    for (uint32_t t = 0; t < job->count && status == FILCH_OK; t++)
        status = task_add(field, job->graph, &job->tasks[t]);
    return status;
}

filch_status soak_job_make(soak_field *field, filch_runtime *runtime, uint32_t k, uint64_t *random)
{
    soak_job *job = &field->jobs[k];
    job->kind = (soak_kind)soak_below(random, 3);
    job->seed = soak_random(random);
    job->may_fail = soak_chance(random, 25);
    job->vector = soak_below(random, SOAK_VECTORS);
    job->failing = job->may_fail ? soak_below(random, SOAK_LENGTH) : SOAK_LENGTH;
    job->count = job->kind == SOAK_BATCH ? 0 : soak_below(random, SOAK_TASKS + 1);
    for (uint32_t t = 0; t < job->count; t++)
        task_make(job, &job->tasks[t], random);
    job->graph = NULL;
    if (job->kind != SOAK_CLOSED)
        return FILCH_OK;
    filch_status status = filch_graph_create(runtime, NULL, &job->graph);
    return status == FILCH_OK ? tasks_add(field, job) : status;
}

/* --- Running --- */

static void ended(filch_job *handle, filch_status status, void *user)
{
    soak_job *job = user;
    (void)handle;
    (void)status;
    atomic_fetch_add_explicit(&job->completions, 1, memory_order_relaxed);
}

static filch_status batch_start(soak_field *field, filch_runtime *runtime, soak_job *job,
                                const filch_submit_desc *submit)
{
    filch_batch_access access = {.data = field->data[job->vector],
                                 .mode = FILCH_READWRITE,
                                 .map = FILCH_MAP_AFFINE,
                                 .scale = 1};
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    desc.codelet = field->batch;
    desc.args = &job;
    desc.n = SOAK_LENGTH;
    desc.accesses = &access;
    desc.access_count = 1;
    return filch_batch_submit(runtime, &desc, submit, &job->job);
}

/* Tasks are added while it runs. */
static filch_status open_start(soak_field *field, filch_runtime *runtime, soak_job *job,
                               const filch_submit_desc *submit)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.kind = FILCH_GRAPH_OPEN;
    filch_status status = filch_graph_create(runtime, &desc, &job->graph);
    if (status == FILCH_OK)
        status = filch_graph_submit(job->graph, submit, &job->job);
    if (status == FILCH_OK)
        status = tasks_add(field, job);
    /* A failed task of a job with FILCH_FAILURE_CANCEL ends the adding. */
    if (status == FILCH_WRONG_STATE && submit->on_failure == FILCH_FAILURE_CANCEL && job->may_fail)
        status = FILCH_OK;
    return status == FILCH_OK ? filch_graph_close(job->graph) : status;
}

filch_status soak_job_start(soak_field *field, filch_runtime *runtime, uint32_t k,
                            filch_on_failure on_failure)
{
    soak_job *job = &field->jobs[k];
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = ended;
    submit.user = job;
    submit.on_failure = on_failure;
    job->is_cancelled = false;
    atomic_store_explicit(&job->completions, 0, memory_order_relaxed);
    for (uint32_t t = 0; t < job->count; t++)
        mark(&job->tasks[t].has_run, false);
    for (uint32_t i = 0; i < SOAK_LENGTH; i++)
        mark(&job->has_run[i], false);
    if (job->kind == SOAK_BATCH)
        return batch_start(field, runtime, job, &submit);
    if (job->kind == SOAK_OPEN)
        return open_start(field, runtime, job, &submit);
    return filch_graph_submit(job->graph, &submit, &job->job);
}

/* --- Checking --- */

uint64_t soak_job_total(const soak_job *job)
{
    return job->kind == SOAK_BATCH ? SOAK_LENGTH : job->count;
}

static uint64_t *tile_of(soak_field *field, const soak_task *task, uint32_t use)
{
    return field->expected[task->vector[use]] + (size_t)task->tile[use] * SOAK_TILE;
}

uint64_t soak_job_repeat(soak_field *field, uint32_t k)
{
    soak_job *job = &field->jobs[k];
    uint64_t ran = 0;
    for (uint32_t t = 0; t < job->count; t++) {
        const soak_task *task = &job->tasks[t];
        const uint64_t *from[2] = {tile_of(field, task, 1), tile_of(field, task, 2)};
        if (was_run(&task->has_run)) {
            compute(task, tile_of(field, task, 0), from);
            ran++;
        }
    }
    for (uint32_t i = 0; job->kind == SOAK_BATCH && i < SOAK_LENGTH; i++)
        if (was_run(&job->has_run[i])) {
            field->expected[job->vector][i] = mix(field->expected[job->vector][i], job->seed);
            ran++;
        }
    return ran;
}
