/* SPDX-License-Identifier: Apache-2.0 */
/* Random machines on the virtual clock: devices that throttle, pause, are lost or come late, with
 * scores right or wrong, and batches and graphs on them. Every tile runs once, tasks run after
 * their predecessors, and a batch ends soon after the area bound over the speeds as they change.
 *
 *     test_sim_random [CASES [SEED]]
 *
 * FL_TEST_SCHEDULES=FILE: a line for each job is appended, which kind, which seed, and a hash of
 * who did what and when (tests/check/schedules.sh).
 * FL_TEST_MAKESPANS=FILE: a line for each job without a failure is appended, which kind, which
 * seed, and its time over the area bound (bench/suites/machines). */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../random.h"
#include "base/hash.h"
#include "sim.h"

#define OVERHEAD_US 5.0
/* An ideal run lasts this many dispatches or more, from where the bound holds. */
#define DISPATCHES 1e4
#define MOST_EXCESS 1.02
/* The bound knows no dispatches: what they cost a device while it is ten times as fast as all are
 * later, or before it is lost, is made up for at the later speed. That takes one machine of a
 * thousand over MOST_EXCESS. A chunk on a device that stands still is waited for until it goes on,
 * unless its codelet lets it be run twice; where it does not the longest pause is left out of
 * account. */
#define EXCESS_SEEN 1.06
#define SHARE_OVER 0.005
/* Of the machines so many have hundreds of devices. */
#define MANY_PERCENT 3
/* The smallest chunk that the scheduler cuts lasts so many dispatches by what it knows. */
#define SMALLEST 20.0

enum {
    MOST_DEVICES = 1024,
    MOST_STEPS = 4,
    MOST_CHUNKS = 1 << 20,
    MOST_TASKS = 600,
    MOST_EDGES = 8
};

typedef struct machine {
    double speed, score, joins_at, lost_at; /* lost_at 0: never */
    uint32_t steps;
    double at[MOST_STEPS], then[MOST_STEPS];
} machine;

static fl_random random_state;
static uint64_t cases, first_seed = 1, seed;
static machine machines[MOST_DEVICES];
static uint32_t machine_count, memory_bytes; /* of each; 0: not said */
static sim_outcome outcome;
static FILE *schedules, *makespans;

#define check(condition)                                                     \
    do {                                                                     \
        if (!(condition)) {                                                  \
            fail_msg("seed %llu: %s", (unsigned long long)seed, #condition); \
        }                                                                    \
    } while (0)

static uint32_t below(uint32_t n)
{
    return fl_random_below(&random_state, n);
}

static double between(double least, double most)
{
    return least + (most - least) * fl_random_unit(&random_state);
}

static bool chance(uint32_t percent)
{
    return below(100) < percent;
}

/* bound: seconds. */
static void note_makespan(const char *kind, double bound)
{
    if (makespans != NULL && outcome.info.failed == 0) {
        fprintf(makespans, "%s %llu %.9g\n", kind, (unsigned long long)seed,
                outcome.info.seconds / bound);
    }
}

static void note_schedule(const char *kind)
{
    const uint64_t totals[] = {outcome.status, outcome.info.done, outcome.info.failed};
    if (schedules == NULL) {
        return;
    }
    uint64_t hash = fl_hash_bytes(FL_HASH_START, &outcome.info.seconds, sizeof(double));
    hash = fl_hash_bytes(hash, totals, sizeof totals);
    for (uint32_t d = 0; d < machine_count; ++d) {
        const filch_device_stats *stats = &outcome.devices[d];
        const uint64_t counts[] = {stats->tiles,      stats->items,    stats->stolen_in,
                                   stats->stolen_out, stats->bytes_in, stats->bytes_out,
                                   stats->bytes_peer, stats->evicted};
        hash = fl_hash_bytes(hash, counts, sizeof counts);
    }
    fprintf(schedules, "%s %llu %016llx\n", kind, (unsigned long long)seed,
            (unsigned long long)hash);
}

/* --- Machines --- */

/* ideal: about how long the job takes. The first device stays, so that there is one. */
static void draw_machines(double ideal)
{
    static const uint32_t mosts[] = {2, 4, 8, 64};
    bool has_wrong_scores = chance(50);
    machine_count = 1 + below(mosts[below(4)]);
    if (chance(MANY_PERCENT)) {
        machine_count = (uint32_t)exp(between(log(64), log(MOST_DEVICES + 0.5)));
    }
    for (uint32_t d = 0; d < machine_count; ++d) {
        machine *m = &machines[d];
        *m = (machine){.speed = 1e8 * exp(between(0, log(40)))};
        m->score = has_wrong_scores ? m->speed * exp(between(-log(10), log(10))) : m->speed;
        double t = 0;
        m->steps = chance(30) ? 1 + below(MOST_STEPS) : 0;
        for (uint32_t i = 0; i < m->steps; ++i) {
            t += between(0.05, 0.5) * ideal;
            m->at[i] = t;
            bool pauses = d != 0 && i + 1 < m->steps && chance(20);
            m->then[i] = pauses ? 0 : m->speed * exp(between(-log(4), log(2)));
        }
        if (d != 0 && chance(15)) {
            m->joins_at = between(0.05, 0.7) * ideal;
        }
        if (d != 0 && chance(15)) {
            m->lost_at = m->joins_at + between(0.05, 0.7) * ideal;
        }
    }
}

static char *describe(const char *links)
{
    enum { ROOM = 1 << 20 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    FILE *file = fmemopen(text, ROOM, "w");
    assert_non_null(file);
    fprintf(file, "{%s\"devices\": [", links);
    for (uint32_t d = 0; d < machine_count; ++d) {
        const machine *m = &machines[d];
        fprintf(file, "%s{\"speed\": %.17g, \"score\": %.17g, \"overhead_us\": %g, ",
                d != 0 ? ",\n" : "", m->speed, m->score, OVERHEAD_US);
        if (memory_bytes != 0) {
            fprintf(file, "\"memory\": %u, ", memory_bytes);
        }
        if (m->lost_at > 0) {
            fprintf(file, "\"lost_at\": %.17g, ", m->lost_at);
        }
        for (uint32_t i = 0; i < m->steps; ++i) {
            fprintf(file, "%s[%.17g, %.17g]", i != 0 ? ", " : "\"speeds\": [", m->at[i],
                    m->then[i]);
        }
        fprintf(file, "%s\"joins_at\": %.17g}", m->steps != 0 ? "], " : "", m->joins_at);
    }
    fprintf(file, "]}");
    assert_int_equal(fclose(file), 0);
    return text;
}

/* By filch's own policy; or by a policy that leaves everything to the default rules, with which
 * ready tasks stay in deques. */
static void open_machines(sim_world *world, const char *links, bool has_deques)
{
    const filch_policy_desc nothing = FILCH_POLICY_DESC_INIT;
    filch_runtime_desc config = FILCH_RUNTIME_DESC_INIT;
    char *text = describe(links);
    config.policy = has_deques ? FILCH_POLICY_DEFAULT : FILCH_POLICY_STEAL;
    config.custom_policy = has_deques ? &nothing : NULL;
    sim_open_text(world, text, &config);
    free(text);
}

static double speed_at(const machine *m, double t)
{
    double speed = m->speed;
    for (uint32_t i = 0; i < m->steps && m->at[i] <= t; ++i) {
        speed = m->then[i];
    }
    return t < m->joins_at || (m->lost_at > 0 && t >= m->lost_at) ? 0 : speed;
}

/* The next time after t at which some speed changes. */
static double next_change(double t)
{
    double next = INFINITY;
    for (uint32_t d = 0; d < machine_count; ++d) {
        const machine *m = &machines[d];
        for (uint32_t i = 0; i < m->steps; ++i) {
            next = m->at[i] > t ? fmin(next, m->at[i]) : next;
        }
        next = m->joins_at > t ? fmin(next, m->joins_at) : next;
        next = m->lost_at > t ? fmin(next, m->lost_at) : next;
    }
    return next;
}

/* When all devices together have done so much, none of them ever idle. */
static double area_bound(double work)
{
    double t = 0;
    for (;;) {
        double speed = 0, next = next_change(t);
        for (uint32_t d = 0; d < machine_count; ++d) {
            speed += speed_at(&machines[d], t);
        }
        if (speed * (next - t) >= work) {
            return t + work / speed;
        }
        work -= speed * (next - t);
        t = next;
    }
}

/* --- Batches --- */

typedef struct chunk {
    uint64_t lo, hi;
} chunk;

static chunk *chunks;
static uint32_t chunk_count;

static int note_chunk(const filch_call *call)
{
    check(chunk_count < MOST_CHUNKS);
    chunks[chunk_count++] = (chunk){call->lo, call->hi};
    return 0;
}

static int compare_chunks(const void *a, const void *b)
{
    const chunk *x = a, *y = b;
    return (x->lo > y->lo) - (x->lo < y->lo);
}

/* Every item once; so many chunks twice. */
static void check_chunks(uint64_t n, uint64_t twice)
{
    uint64_t at = 0;
    qsort(chunks, chunk_count, sizeof *chunks, compare_chunks);
    for (uint32_t i = 0; i < chunk_count; ++i) {
        if (i != 0 && chunks[i].lo == chunks[i - 1].lo && chunks[i].hi == chunks[i - 1].hi) {
            check(twice-- > 0);
            continue;
        }
        check(chunks[i].lo == at);
        check(chunks[i].hi > at);
        at = chunks[i].hi;
    }
    check(at == n);
    check(twice == 0);
}

/* Cases beyond MOST_EXCESS, and the worst. */
static uint64_t over;
static double worst;

/* The longest time that a device stands still, with what it has in flight. */
static double longest_pause(void)
{
    double longest = 0;
    for (uint32_t d = 0; d < machine_count; ++d) {
        const machine *m = &machines[d];
        double begin = -1;
        for (uint32_t i = 0; i < m->steps; ++i) {
            if (m->then[i] > 0) {
                longest = begin >= 0 ? fmax(longest, m->at[i] - begin) : longest;
                begin = -1;
            } else if (begin < 0) {
                begin = m->at[i];
            }
        }
    }
    return longest;
}

/* So many items that even a machine that grows faster works as long as the bound asks for. */
static uint64_t draw_items(double ideal)
{
    double speed = 0;
    for (uint32_t d = 0; d < machine_count; ++d) {
        speed += machines[d].speed;
    }
    uint64_t n = (uint64_t)(speed * ideal);
    while (area_bound((double)n) < OVERHEAD_US * 1e-6 * DISPATCHES) {
        n += n / 4;
    }
    return n;
}

/* What a lost device had in flight is a part of n, so that the bound has it already. Where chunks
 * may be run twice pauses count; not for each machine, as the first chunk of a device, which nobody
 * can predict, is waited for all the same. */
static void check_makespan(double bound, bool is_restartable)
{
    double pause = longest_pause(), seconds = outcome.info.seconds;
    double excess = (seconds - SMALLEST * OVERHEAD_US * 1e-6) / bound;
    if (is_restartable || pause == 0) {
        over += excess > MOST_EXCESS;
        worst = fmax(worst, excess);
        if (excess > MOST_EXCESS) {
            print_message("batch, seed %llu: %u devices, %.4f of the bound\n",
                          (unsigned long long)seed, machine_count, excess);
        }
    }
    check(excess - pause / bound <= EXCESS_SEEN);
}

static filch_codelet *batch_codelet(const sim_world *world, bool is_restartable)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "items";
    desc.host = note_chunk;
    desc.flags = is_restartable ? FILCH_CODELET_RESTARTABLE : 0;
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    return codelet;
}

/* Chunks run twice, and those that counted where they were begun last. */
static uint64_t restarts, restarts_won;

static void check_batch(bool is_restartable)
{
    double ideal = OVERHEAD_US * 1e-6 * DISPATCHES * between(1, 4);
    sim_world world;
    filch_batch_desc desc = FILCH_BATCH_DESC_INIT;
    filch_report report = FILCH_REPORT_INIT;
    filch_job *job = NULL;
    draw_machines(ideal);
    open_machines(&world, "", false);
    chunk_count = 0;
    desc.codelet = batch_codelet(&world, is_restartable);
    desc.n = draw_items(ideal);
    sim_ok(filch_batch_submit(world.runtime, &desc, NULL, &job));
    (void)filch_job_wait(job, -1);
    sim_ok(filch_job_report(job, NULL, &report, NULL, 0));
    sim_finish(job, &outcome);
    note_schedule(is_restartable ? "batch-twice" : "batch");
    sim_close(&world);
    check_chunks(desc.n, report.total.restarts);
    check(report.total.restarts == report.total.restarts_won + report.total.restarts_lost);
    restarts += report.total.restarts;
    restarts_won += report.total.restarts_won;
    check(outcome.info.done + outcome.info.failed == desc.n);
    check(outcome.info.skipped == 0);
    check(outcome.status == (outcome.info.failed != 0 ? FILCH_TASK_FAILED : FILCH_OK));
    /* Rounding to nanoseconds may make a tile end half of one early. */
    check(outcome.info.seconds >= area_bound((double)outcome.info.done) - 1e-9);
    check_makespan(area_bound((double)desc.n), is_restartable);
    note_makespan(is_restartable ? "batch-twice" : "batch", area_bound((double)desc.n));
}

static void check_batches(bool is_restartable)
{
    over = restarts = restarts_won = 0;
    worst = 0;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        fl_random_init(&random_state, seed, 0);
        check_batch(is_restartable);
    }
    print_message("%llu batches from seed %llu: %llu over %.2f of the bound, the worst %.4f; "
                  "%llu chunks run twice, %llu for good\n",
                  (unsigned long long)cases, (unsigned long long)first_seed,
                  (unsigned long long)over, MOST_EXCESS, worst, (unsigned long long)restarts,
                  (unsigned long long)restarts_won);
    assert_true((double)over <= SHARE_OVER * (double)cases + 1);
    assert_true(is_restartable || restarts == 0);
    assert_true(!is_restartable || cases < 100 || restarts_won != 0);
}

static void test_batches(void **state)
{
    (void)state;
    check_batches(false);
}

/* The same machines; now pauses count. */
static void test_batches_twice(void **state)
{
    (void)state;
    check_batches(true);
}

/* --- Graphs --- */

typedef struct node {
    double work;
    uint32_t before[MOST_EDGES], before_count;
    uint32_t runs, position;
} node;

static node nodes[MOST_TASKS];
static uint32_t node_count, node_runs;

typedef struct node_args {
    double work;
    uint64_t number;
} node_args;

static int run_node(const filch_call *call)
{
    node *n = &nodes[((const node_args *)call->args)->number];
    ++n->runs;
    n->position = ++node_runs;
    return 0;
}

static double node_work(const filch_call *call)
{
    return ((const node_args *)call->args)->work;
}

static double draw_nodes(void)
{
    double total = 0;
    uint32_t reach = 1 + below(100);
    node_count = 1 + below(MOST_TASKS);
    node_runs = 0;
    for (uint32_t i = 0; i < node_count; ++i) {
        /* Whole: units of tasks are. */
        nodes[i] = (node){.work = floor(1e4 * exp(between(0, log(1000))))};
        total += nodes[i].work;
        for (uint32_t e = below(MOST_EDGES + 1); i != 0 && e > 0; --e) {
            uint32_t back = 1 + below(reach < i ? reach : i), k = 0;
            while (k < nodes[i].before_count && nodes[i].before[k] != i - back) {
                ++k;
            }
            if (k == nodes[i].before_count) {
                nodes[i].before[nodes[i].before_count++] = i - back;
            }
        }
    }
    return total;
}

static filch_graph *build(const sim_world *world)
{
    static filch_task tasks[MOST_TASKS];
    filch_codelet_desc codelet_desc = FILCH_CODELET_DESC_INIT;
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    filch_codelet *codelet = NULL;
    filch_graph *graph = NULL;
    codelet_desc.name = "node";
    codelet_desc.host = run_node;
    codelet_desc.work = node_work;
    codelet_desc.arg_size = sizeof(node_args);
    graph_desc.priorities = chance(50) ? FILCH_PRIORITIES_RANK : FILCH_PRIORITIES_CALLER;
    sim_ok(filch_codelet_create(world->runtime, &codelet_desc, &codelet));
    sim_ok(filch_graph_create(world->runtime, &graph_desc, &graph));
    for (uint32_t i = 0; i < node_count; ++i) {
        const node_args args = {nodes[i].work, i};
        filch_task_desc desc = FILCH_TASK_DESC_INIT;
        desc.codelet = codelet;
        desc.args = &args;
        desc.affinity = chance(20) ? 1 + below(machine_count) : 0;
        desc.priority = (int32_t)below(10);
        sim_ok(filch_graph_add(graph, &desc, &tasks[i]));
        for (uint32_t e = 0; e < nodes[i].before_count; ++e) {
            sim_ok(filch_graph_edge(graph, tasks[nodes[i].before[e]], tasks[i]));
        }
    }
    return graph;
}

/* Each at most once, all where nothing failed, and after what they wait for. */
static void check_nodes(void)
{
    uint32_t ran = 0;
    for (uint32_t i = 0; i < node_count; ++i) {
        const node *n = &nodes[i];
        check(n->runs <= 1);
        ran += n->runs;
        for (uint32_t e = 0; e < n->before_count && n->runs != 0; ++e) {
            const node *before = &nodes[n->before[e]];
            check(before->runs == 1 && before->position < n->position);
        }
    }
    check(ran == outcome.info.done + outcome.info.failed);
    check(ran + outcome.info.skipped == node_count);
    check(outcome.info.failed != 0 || ran == node_count);
}

/* No longer than one after the other at the slowest speed that any device ever has. */
static double slowest_speed(void)
{
    double slowest = INFINITY;
    for (uint32_t d = 0; d < machine_count; ++d) {
        slowest = fmin(slowest, machines[d].speed);
        for (uint32_t i = 0; i < machines[d].steps; ++i) {
            slowest = machines[d].then[i] > 0 ? fmin(slowest, machines[d].then[i]) : slowest;
        }
    }
    return slowest;
}

static void check_graph(void)
{
    sim_world world;
    filch_job *job = NULL;
    double total = draw_nodes();
    draw_machines(total / 1e9);
    open_machines(&world, "", seed % 2 != 0);
    filch_graph *graph = build(&world);
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    note_schedule("graph");
    check(outcome.status == FILCH_OK || outcome.status == FILCH_TASK_FAILED);
    sim_ok(filch_graph_destroy(graph));
    sim_close(&world);
    check_nodes();
    note_makespan("graph", area_bound(total));
    if (outcome.info.failed == 0) {
        check(outcome.info.seconds >= area_bound(total) - 1e-9);
    }
    double most =
        total / slowest_speed() + node_count * (OVERHEAD_US * 1e-6 + 1e-9) + longest_pause();
    check(outcome.info.seconds <= most);
}

static void test_graphs(void **state)
{
    (void)state;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        fl_random_init(&random_state, seed, 1);
        check_graph();
    }
}

/* --- Memories --- */

enum { MOST_TILES = 40, TILE = 100000 };

static int must_not_run(const filch_call *call)
{
    (void)call;
    return 1;
}

/* Of room for few tiles or for all, over links of any speed, with ways between some. */
static char *draw_links(void)
{
    enum { ROOM = 4096 };
    char *text = malloc(ROOM);
    assert_non_null(text);
    size_t at = (size_t)snprintf(
        text, ROOM, "\"link\": {\"bandwidth\": %.17g, \"latency_us\": %u, \"duplex\": %s%s},",
        1e8 * exp(between(0, log(300))), below(20), chance(70) ? "true" : "false",
        chance(30) ? ", \"bus\": \"one\"" : "");
    for (uint32_t i = 0, n = chance(50) ? below(10) : 0; i < n && machine_count > 1; ++i) {
        uint32_t from = below(machine_count), to = (from + 1 + below(machine_count - 1));
        at += (size_t)snprintf(text + at, ROOM - at,
                               "%s{\"from\": \"sim:%u\", \"to\": \"sim:%u\", "
                               "\"bandwidth\": %.17g}%s",
                               i == 0 ? "\"peers\": [" : ", ", from, to % machine_count,
                               1e9 * exp(between(0, log(30))), i + 1 == n ? "]," : "");
    }
    return text;
}

static void add_users(const sim_world *world, filch_graph *graph, filch_data *data, uint32_t tiles)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_codelet *codelet = NULL;
    desc.name = "user";
    desc.host = must_not_run;
    desc.work = node_work;
    desc.arg_size = sizeof(node_args);
    sim_ok(filch_codelet_create(world->runtime, &desc, &codelet));
    for (uint32_t i = 0; i < node_count; ++i) {
        static const filch_access_mode modes[] = {FILCH_READ, FILCH_READ, FILCH_READWRITE,
                                                  FILCH_WRITE};
        const node_args args = {nodes[i].work, i};
        filch_access accesses[3];
        filch_task_desc task = FILCH_TASK_DESC_INIT;
        uint32_t first = below(tiles);
        memset(accesses, 0, sizeof accesses);
        task.access_count = 1 + below(tiles < 3 ? tiles : 3);
        for (uint32_t a = 0; a < task.access_count; ++a) {
            accesses[a] =
                (filch_access){.data = data, .row = (first + a) % tiles, .mode = modes[below(4)]};
        }
        task.codelet = codelet;
        task.args = &args;
        task.accesses = accesses;
        sim_ok(filch_graph_add(graph, &task, NULL));
    }
}

static void run_memories(void)
{
    static char buffer[MOST_TILES * TILE];
    sim_world world;
    filch_data_desc data_desc = FILCH_DATA_DESC_INIT;
    filch_graph_desc graph_desc = FILCH_GRAPH_DESC_INIT;
    filch_data *data = NULL;
    filch_graph *graph = NULL;
    filch_job *job = NULL;
    double total = draw_nodes();
    uint32_t tiles = 1 + below(MOST_TILES);
    draw_machines(total / 1e9);
    memory_bytes = chance(40) ? 4 * TILE + below(5 * TILE) : MOST_TILES * TILE * 2;
    char *links = draw_links();
    open_machines(&world, links, false);
    free(links);
    memory_bytes = 0;
    data_desc.ptr = buffer;
    data_desc.rows = (uint64_t)tiles * TILE;
    data_desc.tile_rows = TILE;
    data_desc.element = 1;
    data_desc.flags = chance(50) ? FILCH_DATA_MANAGED : 0;
    sim_ok(filch_data_create(world.runtime, &data_desc, &data));
    sim_ok(filch_graph_create(world.runtime, &graph_desc, &graph));
    add_users(&world, graph, data, tiles);
    sim_ok(filch_graph_submit(graph, NULL, &job));
    sim_finish(job, &outcome);
    note_schedule("memory");
    check(outcome.status == FILCH_OK || outcome.status == FILCH_TASK_FAILED);
    check(outcome.info.done + outcome.info.failed + outcome.info.skipped == node_count);
    note_makespan("memory", area_bound(total));
    if (outcome.info.failed == 0) {
        check(outcome.info.seconds >= area_bound(total) - 1e-9);
    }
    bool has_lost = false;
    for (uint32_t d = 0; d < machine_count; ++d) {
        has_lost = has_lost || machines[d].lost_at > 0;
    }
    check(has_lost || outcome.status == FILCH_OK);
    sim_ok(filch_graph_destroy(graph));
    sim_ok(filch_data_destroy(data));
    sim_close(&world);
}

/* Each twice: the same input gives the same schedule. */
static void test_memories(void **state)
{
    (void)state;
    static sim_outcome first;
    for (seed = first_seed; seed < first_seed + cases; ++seed) {
        for (int run = 0; run < 2; ++run) {
            fl_random_init(&random_state, seed, 2);
            memset(&outcome, 0, sizeof outcome);
            run_memories();
            if (run == 0) {
                first = outcome;
            }
        }
        check(memcmp(&first, &outcome, sizeof first) == 0);
    }
}

/* False: the variable names a file that cannot be opened. */
static bool open_notes(const char *variable, FILE **file)
{
    const char *path = getenv(variable);
    *file = path != NULL ? fopen(path, "a") : NULL;
    return path == NULL || *file != NULL;
}

static bool close_notes(FILE *file)
{
    return file == NULL || fclose(file) == 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_batches_twice),
        cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_memories),
    };
    const char *is_long = getenv("FL_TEST_LONG");
    cases = is_long != NULL && is_long[0] == '1' ? 20000 : 1000;
    if (argc > 1) {
        cases = strtoull(argv[1], NULL, 0);
    }
    if (argc > 2) {
        first_seed = strtoull(argv[2], NULL, 0);
    }
    printf("%llu cases from seed %llu\n", (unsigned long long)cases,
           (unsigned long long)first_seed);
    bool is_written =
        open_notes("FL_TEST_SCHEDULES", &schedules) && open_notes("FL_TEST_MAKESPANS", &makespans);
    chunks = malloc(MOST_CHUNKS * sizeof *chunks);
    int failed = chunks != NULL ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
    free(chunks);
    is_written = close_notes(schedules) && close_notes(makespans) && is_written;
    return failed != 0 || !is_written;
}
