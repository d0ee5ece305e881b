/* SPDX-License-Identifier: Apache-2.0 */
/* oneTBB: a task group for tasks that are created and run, a flow graph of continue nodes, built
 * once and rerun, for the rest; in each run where the work says so. A continue node fires when all
 * its predecessors have sent, and then counts anew, so a finished graph is ready to run again. The
 * lightweight policy is not used: it calls every body inside its predecessor, on one thread. */
#include "peers/peer.h"
#include "problems/narrow.h"
#include "problems/tiles.h"
#include "support/fail.h"
#include "support/timing.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/task_arena.h>
#include <oneapi/tbb/task_group.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <exception>
#include <memory>
#include <vector>

namespace flow = tbb::flow;

namespace
{

using Node = flow::continue_node<flow::continue_msg>;

struct State {
    const bench_peer_work *work;
    tbb::global_control threads;
    tbb::task_arena arena;
    bench_grid grid;
    std::unique_ptr<flow::graph> graph;
    std::deque<Node> nodes;
    std::vector<Node *> roots;
    std::atomic<int> info{0};

    explicit State(const bench_peer_work *w)
        : work(w), threads(tbb::global_control::max_allowed_parallelism, w->workers),
          arena(static_cast<int>(w->workers), 1),
          grid(bench_grid_make(w->n, w->tile ? w->tile : 1, static_cast<const double *>(w->a),
                               static_cast<const double *>(w->b), static_cast<double *>(w->c)))
    {
    }

    template <typename Body> Node &add(Body body)
    {
        return nodes.emplace_back(*graph, [body](const flow::continue_msg &) {
            body();
            return flow::continue_msg();
        });
    }
};

void build_empty(State &s)
{
    const bench_peer_work *w = s.work;
    for (size_t k = 0; k < w->n; k++)
        s.roots.push_back(&s.add([w, k] { bench_peer_body(w, k); }));
}

void build_chain(State &s)
{
    const bench_peer_work *w = s.work;
    for (size_t k = 0; k < w->n; k++) {
        Node &node = s.add([w, k] { bench_peer_body(w, k); });
        if (k > 0)
            flow::make_edge(s.nodes[k - 1], node);
    }
    s.roots.push_back(&s.nodes.front());
}

void build_wavefront(State &s)
{
    const bench_peer_work *w = s.work;
    size_t n = w->n;
    for (size_t task = 0; task < n * n; task++) {
        Node &node = s.add([w, task] { bench_peer_body(w, task); });
        if (task >= n)
            flow::make_edge(s.nodes[task - n], node);
        if (task % n > 0)
            flow::make_edge(s.nodes[task - 1], node);
    }
    s.roots.push_back(&s.nodes.front());
}

void build_cholesky(State &s)
{
    const bench_grid *g = &s.grid;
    size_t count = g->count;
    /* What last wrote each tile, and therefore what whoever touches it next comes after. Nothing
     * reads a tile before its last write of a step, so that is all there is to wait for. */
    std::vector<Node *> writer(count * count, nullptr);
    auto after = [&](Node &node, size_t i, size_t j) {
        if (writer[i + j * count])
            flow::make_edge(*writer[i + j * count], node);
    };
    for (size_t k = 0; k < count; k++) {
        Node &factor = s.add([&s, g, k] {
            int info = bench_grid_factor(g, k);
            if (info != 0)
                s.info.store(info, std::memory_order_relaxed);
        });
        after(factor, k, k);
        writer[k + k * count] = &factor;
        for (size_t i = k + 1; i < count; i++) {
            Node &solve = s.add([g, i, k] { bench_grid_solve(g, i, k); });
            after(solve, k, k);
            after(solve, i, k);
            writer[i + k * count] = &solve;
        }
        for (size_t j = k + 1; j < count; j++)
            for (size_t i = j; i < count; i++) {
                Node &update = s.add([g, i, j, k] { bench_grid_update(g, i, j, k); });
                after(update, i, k);
                if (i != j)
                    after(update, j, k);
                after(update, i, j);
                writer[i + j * count] = &update;
            }
    }
    s.roots.push_back(&s.nodes.front());
}

void build_gemm(State &s)
{
    const bench_grid *g = &s.grid;
    for (size_t j = 0; j < g->count; j++)
        for (size_t i = 0; i < g->count; i++)
            s.roots.push_back(&s.add([g, i, j] { bench_grid_multiply(g, i, j); }));
}

void build_narrow(State &s)
{
    const auto *g = static_cast<const bench_narrow_graph *>(s.work->problem);
    std::vector<size_t> points(bench_narrow_most(g));
    for (size_t step = 0; step < g->steps; step++)
        for (size_t point = 0; point < g->width; point++) {
            Node &node = s.add([g, step, point] { bench_narrow_task(g, step, point); });
            size_t count = bench_narrow_before(g, step, point, points.data());
            for (size_t k = 0; k < count; k++)
                flow::make_edge(s.nodes[(step - 1) * g->width + points[k]], node);
            if (step == 0)
                s.roots.push_back(&node);
        }
}

void build(State &s)
{
    s.graph = std::make_unique<flow::graph>();
    switch (s.work->kind) {
    case BENCH_PEER_RERUN:
        return build_empty(s);
    case BENCH_PEER_CHAIN:
        return build_chain(s);
    case BENCH_PEER_WAVEFRONT:
        return build_wavefront(s);
    case BENCH_PEER_CHOLESKY:
        return build_cholesky(s);
    case BENCH_PEER_GEMM:
        return build_gemm(s);
    case BENCH_PEER_NARROW:
        return build_narrow(s);
    default:
        return; /* nothing is created beforehand */
    }
}

void execute(State &s)
{
    if (s.work->kind == BENCH_PEER_EMPTY) {
        const bench_peer_work *w = s.work;
        tbb::task_group group;
        for (size_t k = 0; k < w->n; k++)
            group.run([w, k] { bench_peer_body(w, k); });
        group.wait();
        return;
    }
    if (s.work->kind == BENCH_PEER_NARROW_OPEN)
        build_narrow(s);
    for (Node *root : s.roots)
        root->try_put(flow::continue_msg());
    s.graph->wait_for_all();
    if (s.work->kind == BENCH_PEER_NARROW_OPEN) {
        s.roots.clear();
        s.nodes.clear();
    }
}

bool supports(bench_peer_kind kind)
{
    return kind <= BENCH_PEER_NARROW_OPEN;
}

filch_status setup(const bench_peer_work *work, filch_error *error, void **out)
{
    try {
        auto s = std::make_unique<State>(work);
        /* A graph belongs to the arena it is built in. */
        s->arena.execute([&] { build(*s); });
        *out = s.release();
        return FILCH_OK;
    } catch (const std::exception &e) {
        return bench_fail(error, FILCH_OUT_OF_MEMORY, "tbb", 0, "%s", e.what());
    }
}

filch_status run(void *opaque, filch_error *error, double *seconds)
{
    State &s = *static_cast<State *>(opaque);
    const bench_peer_work *w = s.work;
    if (w->kind == BENCH_PEER_CHOLESKY)
        std::memcpy(w->c, w->a, w->n * w->n * sizeof(double));
    if (w->kind == BENCH_PEER_NARROW || w->kind == BENCH_PEER_NARROW_OPEN)
        bench_narrow_reset(static_cast<const bench_narrow_graph *>(w->problem));
    s.info = 0;
    int before = bench_blas_threads_set(1);
    filch_status status = FILCH_OK;
    double elapsed = 0;
    try {
        s.arena.execute([&] {
            double start = bench_now_s();
            execute(s);
            elapsed = bench_now_s() - start;
        });
    } catch (const std::exception &e) {
        status = bench_fail(error, FILCH_SYSTEM, "tbb", 0, "%s", e.what());
    }
    bench_blas_threads_set(before);
    if (status == FILCH_OK && s.info != 0)
        status = bench_fail(error, FILCH_DATA, "tbb", 0, "minor %d is not positive", s.info.load());
    if (status == FILCH_OK)
        *seconds = elapsed;
    return status;
}

void teardown(void *opaque)
{
    std::unique_ptr<State> s(static_cast<State *>(opaque));
    s->arena.execute([&] {
        s->nodes.clear();
        s->graph.reset();
    });
}

} // namespace

const bench_peer bench_peer_tbb = {
    "tbb",    "oneTBB: task group, or a flow graph built once and rerun",
    supports, setup,
    run,      teardown,
    false,    false,
    nullptr,  nullptr,
};
