/* SPDX-License-Identifier: Apache-2.0 */
/* A task waits for a batch of which its device has had a span before: what it takes of other
 * devices' then is in chunks as large as anywhere. */
#define _GNU_SOURCE
#include "fixture.h"
#include "patience.h"

#include <time.h>

enum { ITEMS = 40000, ITEM_NS = 200, LARGE = 16 };

static filch_runtime *runtime;
static filch_graph *waiting;
static filch_job *batch, *inner;
static _Atomic int submitted, waits;
static _Atomic uint64_t items_done, largest, chunks;

static uint64_t now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static int wait_for_batch(const filch_call *call)
{
    (void)call;
    atomic_store(&waits, 1);
    return filch_job_wait(batch, PATIENCE) == FILCH_OK ? 0 : 1;
}

/* Device 1 stands still in its first chunk until all else is done. The last of what device 0 steals
 * first is one item, and makes the task ready there. */
static int item(const filch_call *call)
{
    uint64_t count = call->hi - call->lo, begun = now(), end = begun + 20000000000u;
    if (call->device == 1) {
        while (atomic_load(&items_done) + count < ITEMS && now() < end) {
        }
    } else if (atomic_load(&waits) != 0) {
        atomic_fetch_add(&chunks, 1);
        if (count > atomic_load(&largest)) {
            atomic_store(&largest, count);
        }
    } else if (count == 1 && atomic_exchange(&submitted, 1) == 0 &&
               filch_graph_submit(waiting, NULL, &inner) != FILCH_OK) {
        return 1;
    }
    while (now() - begun < count * ITEM_NS) {
    }
    atomic_fetch_add(&items_done, count);
    return 0;
}

static uint32_t chunk(const filch_policy_view *view, void *user)
{
    filch_policy_item about = {.size = sizeof about};
    (void)user;
    assert_ok(filch_policy_item_get(view, &about));
    if (about.device == 1) {
        return 1;
    }
    return atomic_load(&waits) != 0 ? FILCH_POLICY_AUTO : about.rest > 1 ? about.rest - 1 : 1;
}

static void a_wait_takes_large_chunks(void **state)
{
    static const double scores[] = {1e-9, 1};
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    filch_policy_desc policy = FILCH_POLICY_DESC_INIT;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    (void)state;
    policy.name = "chunks";
    policy.chunk = chunk;
    config.devices = "host:2";
    config.scores = scores;
    config.score_count = 2;
    config.custom_policy = &policy;
    assert_ok(filch_runtime_create(&config, NULL, &runtime));
    waiting = fixture_graph(runtime, FILCH_GRAPH_CLOSED);
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = fixture_codelet(runtime, "wait", wait_for_batch, 0);
    task.affinity = 1;
    assert_ok(filch_graph_add(waiting, &task, NULL));
    desc.codelet = fixture_codelet(runtime, "item", item, 0);
    desc.n = ITEMS;
    desc.grain = 1;
    assert_ok(filch_batch_submit(runtime, &desc, NULL, &batch));
    assert_ok(filch_job_wait(batch, PATIENCE));
    assert_true(fixture_await(&submitted, 1));
    assert_ok(filch_job_wait(inner, PATIENCE));
    print_message("%llu chunks, at most %llu items\n", (unsigned long long)chunks,
                  (unsigned long long)largest);
    assert_true(chunks != 0);
    assert_true(largest >= LARGE);
    assert_ok(filch_job_release(inner));
    assert_ok(filch_job_release(batch));
    assert_ok(filch_graph_destroy(waiting));
    assert_ok(filch_runtime_destroy(runtime));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_takes_large_chunks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
