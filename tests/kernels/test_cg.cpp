/* SPDX-License-Identifier: Apache-2.0 */
/* bench/workloads/cg.cu, run by emulate.h: iterations of conjugate gradients by blocks, each with
 * memory of its own, beside bench_cg_solve(). */
#include "kernels/emulate.h"

#include <cstddef>
#include <cstdint>

extern "C" {
#include "problems/cg.h"
}

namespace device
{
#include "kernels/counters.cuh"

#include "bench/workloads/cg.cu"
} // namespace device

using device::filch_view;

struct block {
    std::vector<double> x, r, p, q, first, last, work;
    double part[2][8];
    filch_view vx, vr, vp, vq, vfirst, vlast, vwork, vpart[2], starts, columns, values;
};

static filch_view view_of(void *at, size_t rows, size_t row, size_t element)
{
    return {at, rows, 1, rows, row, 0, element};
}

static filch_view view_of(std::vector<double> &v, size_t row)
{
    return view_of(v.data(), v.size(), row, sizeof(double));
}

/* What is not written yet is no number. */
static block make_block(const bench_cg_system &s, size_t b)
{
    block m;
    size_t lo = bench_cg_row(&s, b), hi = bench_cg_row(&s, b + 1), plane = s.g * s.g;
    size_t at = s.starts[lo], elements = s.starts[hi] - at;
    for (std::vector<double> *v : {&m.x, &m.r, &m.p, &m.q})
        v->assign(hi - lo, NAN);
    m.first.assign(plane, NAN);
    m.last.assign(plane, NAN);
    m.work.assign(device::HEAD + 64, NAN);
    m.work[0] = 0;
    m.starts = view_of(s.starts + lo, hi - lo, lo, sizeof *s.starts);
    m.columns = view_of(s.columns + at, elements, at, sizeof *s.columns);
    m.values = view_of(s.values + at, elements, at, sizeof *s.values);
    return m;
}

static void find_views(const bench_cg_system &s, block &m, size_t b)
{
    size_t lo = bench_cg_row(&s, b);
    m.vx = view_of(m.x, lo);
    m.vr = view_of(m.r, lo);
    m.vp = view_of(m.p, lo);
    m.vq = view_of(m.q, lo);
    m.vfirst = view_of(m.first, 0);
    m.vlast = view_of(m.last, 0);
    m.vwork = view_of(m.work, 0);
    for (int k = 0; k < 2; k++)
        m.vpart[k] = view_of(m.part[k], 1, 0, sizeof m.part[k]);
}

template <typename F> static void launch(unsigned blocks, unsigned threads, F body)
{
    dim3 grid, block;
    grid.x = blocks;
    block.x = threads;
    emulate::launch(grid, block, body);
}

static void add_up(std::vector<block> &all, int which, unsigned meaning, filch_view scalars)
{
    filch_view v[device::PARTS];
    for (size_t k = 0; k < device::PARTS; k++)
        v[k] = all[k < all.size() ? k : 0].vpart[which];
    device::cg_arguments args = {nullptr, nullptr, 0, meaning, unsigned(all.size())};
    launch(1, 32, [&] {
        device::cg_sum(scalars, v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7], v[8], v[9], v[10],
                       v[11], v[12], v[13], v[14], v[15], args);
    });
}

static void iterate(std::vector<block> &all, filch_view scalars, unsigned blocks)
{
    size_t last = all.size() - 1;
    for (size_t b = 0; b <= last; b++) {
        block &m = all[b];
        filch_view before = b > 0 ? all[b - 1].vlast : m.vfirst;
        filch_view after = b < last ? all[b + 1].vfirst : m.vlast;
        launch(blocks, device::THREADS, [&] {
            device::cg_multiply(m.vq, m.vpart[0], m.values, m.columns, m.vp, m.starts, before,
                                after, m.vwork, device::cg_arguments{});
        });
    }
    add_up(all, 0, 1, scalars);
    for (block &m : all)
        launch(blocks, device::THREADS, [&] {
            device::cg_update(m.vx, m.vr, m.vp, m.vq, m.vpart[1], scalars, m.vwork,
                              device::cg_arguments{});
        });
    add_up(all, 1, 2, scalars);
    for (block &m : all)
        launch(blocks, device::THREADS, [&] {
            device::cg_direction(m.vp, m.vr, scalars, m.vfirst, m.vlast, device::cg_arguments{});
        });
}

/* thread_blocks: of each launch; fewer than rows ask for, so that they take several turns. */
static bool solves(size_t g, size_t blocks, unsigned thread_blocks)
{
    bench_cg_system s{};
    s.g = g;
    s.blocks = blocks;
    s.iterations = 12;
    if (bench_cg_assemble(&s, nullptr) != FILCH_OK)
        std::abort();
    std::vector<block> all(blocks);
    double memory[8];
    filch_view scalars = view_of(memory, 1, 0, sizeof memory);
    for (size_t b = 0; b < blocks; b++) {
        all[b] = make_block(s, b);
        block &m = all[b];
        find_views(s, m, b);
        launch(thread_blocks, device::THREADS, [&] {
            device::cg_init(m.vx, m.vr, m.vp, m.vpart[1], m.vfirst, m.vlast, m.vwork,
                            device::cg_arguments{});
        });
    }
    add_up(all, 1, 0, scalars);
    for (size_t k = 0; k < s.iterations; k++)
        iterate(all, scalars, thread_blocks);
    std::vector<double> expected(s.rows);
    if (bench_cg_solve(&s, expected.data(), nullptr) != FILCH_OK)
        std::abort();
    bool good = true;
    for (size_t b = 0; b < blocks; b++)
        for (size_t k = 0; k < all[b].x.size(); k++) {
            double want = expected[bench_cg_row(&s, b) + k];
            good = good && std::fabs(all[b].x[k] - want) <= 1e-12 * std::fabs(want);
        }
    if (!good)
        std::printf("a grid of %zu^3 in %zu blocks, %u thread blocks: wrong\n", g, blocks,
                    thread_blocks);
    bench_cg_free(&s);
    return good;
}

int main()
{
    static const size_t cases[][3] = {{3, 1, 1},  {3, 3, 2},   {11, 1, 6}, {11, 2, 2},
                                      {11, 4, 1}, {11, 11, 1}, {13, 3, 64}};
    bool good = true;
    for (const auto &c : cases)
        good = solves(c[0], c[1], unsigned(c[2])) && good;
    return good ? 0 : 1;
}
