/* SPDX-License-Identifier: Apache-2.0 */
/* Thieves look at what tasks of others need, while those run, end, and make room for other graphs
 * in the same memory. What they read must be there still; a thread or address sanitizer tells. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "jobs.h"

enum { TILES = 16, TASKS = 48, ROUNDS = 20 };

static filch_task add_copy(filch_graph *to, filch_codelet *copies, const filch_access *accesses)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    filch_task made;
    desc.codelet = copies;
    desc.accesses = accesses;
    desc.access_count = 2;
    desc.affinity = 1;
    assert_ok(filch_graph_add(to, &desc, &made));
    return made;
}

static filch_data *tiled(uint64_t *at, uint32_t tiles)
{
    return vector_of(runtime, at, (uint64_t)N * tiles, N, 0);
}

typedef struct copying {
    uint64_t from[TILES * N], to[TASKS * N];
    filch_data *in, *out;
    filch_graph *graph;
    filch_job *job;
} copying;

/* One task on the first GPU, and many after it that become ready there; of an open graph, many. */
static void begin(copying *c, filch_codelet *copies, filch_graph_kind kind, uint64_t round)
{
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    filch_task first = 0;
    desc.kind = kind;
    for (uint32_t i = 0; i < TILES * N; i++)
        c->from[i] = round * 1000000 + i;
    memset(c->to, 0, sizeof c->to);
    c->in = tiled(c->from, TILES);
    c->out = tiled(c->to, TASKS);
    assert_ok(filch_graph_create(runtime, &desc, &c->graph));
    if (kind == FILCH_GRAPH_OPEN)
        c->job = submit(c->graph);
    for (uint32_t i = 0; i < TASKS; i++) {
        const filch_access accesses[2] = {
            {.data = c->in, .row = (i * 7) % TILES, .mode = FILCH_READ},
            {.data = c->out, .row = i, .mode = FILCH_WRITE}};
        filch_task task = add_copy(c->graph, copies, accesses);
        if (i == 0)
            first = task;
        else if (kind == FILCH_GRAPH_CLOSED)
            assert_ok(filch_graph_edge(c->graph, first, task));
    }
    if (kind == FILCH_GRAPH_OPEN)
        assert_ok(filch_graph_close(c->graph));
    else
        c->job = submit(c->graph);
}

static void end(copying *c)
{
    finish(c->job, FILCH_OK);
    assert_ok(filch_graph_destroy(c->graph));
    assert_ok(filch_data_destroy(c->in));
    assert_ok(filch_data_destroy(c->out));
    for (uint32_t i = 0; i < TASKS * N; i++)
        assert_int_equal(c->to[i], c->from[(i / N * 7) % TILES * N + i % N]);
}

static void thieves_look_at_what_goes(void **state)
{
    (void)state;
    static copying closed[2], open;
    start("cuda", "2", "{\"kernel_ns\": 20000, \"devices\": [{\"count\": 4}]}");
    filch_codelet *copies = on_gpu("copy");
    assert_ok(filch_device_measure_links(runtime));
    for (uint64_t round = 0; round < ROUNDS; round++) {
        begin(&closed[0], copies, FILCH_GRAPH_CLOSED, round);
        begin(&closed[1], copies, FILCH_GRAPH_CLOSED, 3 * round);
        begin(&open, copies, FILCH_GRAPH_OPEN, 5 * round);
        end(&closed[0]);
        end(&open);
        end(&closed[1]);
    }
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(thieves_look_at_what_goes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
