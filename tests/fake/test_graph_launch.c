/* SPDX-License-Identifier: Apache-2.0 */
/* Which of two ways a resubmitted graph goes to a lone GPU: the faster, where the choice is left to
 * filch. A replay is one launch of a CUDA graph with all tasks; otherwise there are launches of
 * single kernels and of graphs of at most 64. A kernel finds out by the driver's launches so far
 * which way its run goes, and sleeps in one of them. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "count.h"
#include "jobs.h"

#define OWN_IMAGE "FAKECUBIN arch=90 entry=pass,pause"
#define TASKS TEST_ROUNDS(2048) /* of one kind, in a chain */
#define SHORT 40
#define SIDE 48  /* of a square of tasks */
#define SPARE 32 /* rows that need no row's end to begin */
/* How long a run of the slower way sleeps at least. */
#define PAUSE_NS UINT64_C(20000000)
#define LONGER 4
#define TRIES 6
/* The tenth may be a replay; the trial takes four. */
#define FIRST 10
#define TRIAL 4
#define AFTER 16 /* runs watched after the trial */
#define MOST 300 /* runs; on a busy machine tasks seem too long for a replay for a while */

static _Atomic uint64_t replays; /* when the run was submitted */
static _Atomic int is_slow_replayed;
static _Atomic uint64_t pause_ns;
static uint64_t longest_plain, shortest_replayed; /* ns, from submission to the end */

static int pass(const filch_call *call)
{
    (void)call;
    return 0;
}

/* In the middle of a chain: half the tasks were launched before, or one replay of all. */
static int pause_one_way(const filch_call *call)
{
    uint64_t ns = atomic_load(&pause_ns);
    const struct timespec nap = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    bool is_replayed = fakecuda_graphs(TASKS) != atomic_load(&replays);
    (void)call;
    if (is_replayed == (atomic_load(&is_slow_replayed) != 0))
        (void)nanosleep(&nap, NULL);
    return 0;
}

static uint64_t now_ns(void)
{
    struct timespec at;
    (void)clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000000000 + (uint64_t)at.tv_nsec;
}

/* A replay that is to be slow sleeps longer than any other run took as a whole. */
static void note_run(bool is_replayed, uint64_t ns)
{
    if (is_replayed && ns < shortest_replayed)
        shortest_replayed = ns;
    if (!is_replayed && ns > longest_plain)
        longest_plain = ns;
    if (atomic_load(&is_slow_replayed) && 2 * longest_plain > atomic_load(&pause_ns))
        atomic_store(&pause_ns, 2 * longest_plain);
}

/* Runs of one graph by the way each went. */
typedef struct ways {
    int before;   /* plain runs before the first replay */
    int replayed; /* runs that were one launch */
    int after;    /* plain runs behind the last replay */
} ways;

static void count_run(ways *runs, bool is_replayed)
{
    if (is_replayed) {
        runs->replayed++;
        runs->after = 0;
    } else if (runs->replayed == 0) {
        runs->before++;
    } else {
        runs->after++;
    }
}

static bool is_watched_enough(const ways *runs)
{
    return runs->replayed >= TRIAL && runs->replayed + runs->after >= TRIAL + AFTER;
}

static ways runs_replayed(const char *setting, bool is_slow, uint64_t pause, int most)
{
    ways runs = {0};
    longest_plain = 0;
    shortest_replayed = UINT64_MAX;
    atomic_store(&pause_ns, pause);
    if (setting != NULL)
        (void)setenv("FILCH_REPLAY", setting, 1);
    start("cuda:0", "2", NULL);
    fakecuda_register_filch("pass", pass, 1, false, 0);
    fakecuda_register_filch("pause", pause_one_way, 1, false, 0);
    atomic_store(&is_slow_replayed, is_slow);
    filch_codelet *skips = codelet_of(runtime, OWN_IMAGE, "pass", NULL, 0);
    filch_codelet *pauses = codelet_of(runtime, OWN_IMAGE, "pause", NULL, 0);
    filch_data *data = handle_with(x, FILCH_DATA_MANAGED);
    filch_graph *chain = graph();
    for (int k = 0; k < TASKS; k++)
        add(chain, k == TASKS / 2 ? pauses : skips, FILCH_READWRITE, data, NULL, NULL);
    for (int r = 0; r < most && !is_watched_enough(&runs); r++) {
        uint64_t before = fakecuda_graphs(TASKS);
        uint64_t begin = now_ns();
        atomic_store(&replays, before);
        finish(submit(chain), FILCH_OK);
        bool is_replayed = fakecuda_graphs(TASKS) != before;
        note_run(is_replayed, now_ns() - begin);
        count_run(&runs, is_replayed);
    }
    assert_ok(filch_graph_destroy(chain));
    assert_ok(filch_data_destroy(data));
    stop();
    (void)unsetenv("FILCH_REPLAY");
    print_message("plain %d, replayed %d, plain %d\n", runs.before, runs.replayed, runs.after);
    return runs;
}

static void a_slower_replay_is_dropped(void **state)
{
    (void)state;
    ways runs = runs_replayed(NULL, true, PAUSE_NS, MOST);
    assert_true(runs.before >= FIRST - 1);
    if (runs.replayed < TRIAL)
        skip(); /* so busy a machine that no trial came to its end */
    assert_int_equal(runs.replayed, TRIAL);
}

static void a_faster_replay_stays(void **state)
{
    (void)state;
    ways runs = {0};
    uint64_t pause = PAUSE_NS;
    /* A machine so busy that a replay took longer than the others slept says nothing. */
    shortest_replayed = UINT64_MAX;
    for (int i = 0; i < TRIES && shortest_replayed >= pause; i++) {
        pause = i == 0 ? pause : pause * LONGER;
        runs = runs_replayed(NULL, false, pause, MOST);
        assert_true(runs.before >= FIRST - 1);
    }
    if (runs.replayed < TRIAL)
        skip(); /* so busy a machine that no trial came to its end */
    assert_true(runs.replayed > TRIAL);
}

/* Whoever names a run has it replayed, also where that is slower. */
static void a_run_that_is_named_is_replayed(void **state)
{
    (void)state;
    ways runs = runs_replayed("3", true, PAUSE_NS, MOST);
    assert_int_equal(runs.before, 2);
    assert_int_equal(runs.replayed, TRIAL + AFTER);
    assert_int_equal(runs_replayed("0", true, PAUSE_NS, 2 * FIRST).replayed, 0);
}

/* Programmatic edges of a chain that is launched whole, by what the descriptor says. */
static uint64_t early_edges(const char *driver, const char *image, bool waits)
{
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    filch_codelet *codelet;
    (void)setenv("FILCH_REPLAY", "2", 1);
    start("cuda:0", "2", driver);
    cuda.image = image;
    cuda.image_bytes = strlen(image) + 1;
    cuda.entry = "bump";
    cuda.waits = waits;
    desc.name = "bump";
    desc.cuda = &cuda;
    assert_ok(filch_codelet_create(runtime, &desc, &codelet));
    memset(x, 0, sizeof x);
    filch_data *data = handle(x);
    filch_graph *chain = graph();
    for (int k = 0; k < SHORT; k++)
        add(chain, codelet, FILCH_READWRITE, data, NULL, NULL);
    finish(submit(chain), FILCH_OK);
    uint64_t edges = fakecuda_count("programmatic"); /* of graphs of a few tasks */
    for (int r = 1; r < 3; r++)
        finish(submit(chain), FILCH_OK);
    edges = fakecuda_count("programmatic") - edges;
    assert_int_equal(fakecuda_graphs(SHORT), 2);
    assert_ok(filch_graph_destroy(chain));
    assert_ok(filch_data_destroy(data));
    for (int i = 0; i < N; i++)
        assert_int_equal(x[i], 3 * SHORT);
    stop();
    (void)unsetenv("FILCH_REPLAY");
    return edges;
}

static void kernels_that_wait_by_themselves_have_edges_of_their_own(void **state)
{
    static const char *const older = "{\"driver\": 12020, \"devices\": [{}]}";
    static const char *const ampere = "{\"devices\": [{\"arch\": \"8.0\"}]}";
    static const char ptx[] =
        ".version 7.0\n.target sm_80\n.visible .entry bump(.param .align 8 .b8 a[56])";
    static const char cubin[] = "FAKECUBIN arch=90 entry=bump";
    (void)state;
    assert_int_equal(early_edges(NULL, cubin, true), SHORT - 1);
    assert_int_equal(early_edges(NULL, cubin, false), 0);
    /* Where nothing would wait, the edges stay full. */
    assert_int_equal(early_edges(older, cubin, true), 0);
    assert_int_equal(early_edges(ampere, "FAKECUBIN arch=80 entry=bump", true), 0);
    assert_int_equal(early_edges(NULL, ptx, true), 0);
}

/* A graph launch adds no steps to a wavefront of SPARE rows. In a larger one a row begins after the
 * end of the row SPARE above it. */
static void a_wavefront_stays_wide(void **state)
{
    filch_task_desc desc = FILCH_TASK_DESC_INIT;
    static filch_task names[SIDE * SIDE];
    (void)state;
    (void)setenv("FILCH_REPLAY", "2", 1);
    start("cuda:0", "2", NULL);
    fakecuda_register_filch("pass", pass, 0, false, 0);
    desc.codelet = codelet_of(runtime, OWN_IMAGE, "pass", NULL, 0);
    filch_graph *square = graph();
    for (int k = 0; k < SIDE * SIDE; k++) {
        assert_ok(filch_graph_add(square, &desc, &names[k]));
        if (k >= SIDE)
            assert_ok(filch_graph_edge(square, names[k - SIDE], names[k]));
        if (k % SIDE != 0)
            assert_ok(filch_graph_edge(square, names[k - 1], names[k]));
    }
    for (int r = 0; r < 2; r++)
        finish(submit(square), FILCH_OK);
    assert_int_equal(fakecuda_graphs(SIDE * SIDE), 1);
    assert_true(fakecuda_graph_steps(SIDE * SIDE) <= 2 * SIDE - 1 + SIDE - SPARE);
    assert_ok(filch_graph_destroy(square));
    stop();
    (void)unsetenv("FILCH_REPLAY");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slower_replay_is_dropped),
        cmocka_unit_test(a_faster_replay_stays),
        cmocka_unit_test(a_run_that_is_named_is_replayed),
        cmocka_unit_test(kernels_that_wait_by_themselves_have_edges_of_their_own),
        cmocka_unit_test(a_wavefront_stays_wide),
    };
    (void)y, (void)z;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
