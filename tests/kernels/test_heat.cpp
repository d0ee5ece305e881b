/* SPDX-License-Identifier: Apache-2.0 */
/* bench/workloads/heat.cu, run by emulate.h: steps by strips, each strip with a view of its own
 * that has a halo, bit for bit beside problems/heat.c. */
#include "kernels/emulate.h"

#include <algorithm>
#include <cstddef>

extern "C" {
#include "problems/heat.h"
}

namespace device
{
#include "bench/workloads/heat.cu"
} // namespace device

using device::filch_view;

/* Columns [lo, hi) of a grid, in memory with `gap` elements between two columns. */
struct strip {
    std::vector<double> memory;
    filch_view view;

    strip(size_t n, size_t lo, size_t hi, size_t gap)
        : memory((hi - lo) * (n + gap), NAN), view{memory.data(), n, hi - lo, n + gap, 0, lo,
                                                   sizeof(double)}
    {
    }

    void copy(std::vector<double> &grid, bool is_back)
    {
        for (size_t j = 0; j < view.cols; j++) {
            double *own = &memory[j * view.ld], *all = &grid[(view.col + j) * view.rows];
            std::copy_n(is_back ? own : all, view.rows, is_back ? all : own);
        }
    }
};

template <typename F> static void launch(const dim3 &grid, F body)
{
    dim3 block;
    block.x = device::THREADS;
    emulate::launch(grid, block, body);
}

/* Whether all strips are made, and stepped, as on the host. across: of a launch's blocks, along a
 * column and across columns. */
static bool steps(const bench_heat_grid &h, size_t gap, const dim3 &grid)
{
    std::vector<double> expected[2], got[2];
    bool good = true;
    for (size_t k = 0; k < 2; k++) {
        expected[k].assign(h.n * h.n, NAN);
        got[k].assign(h.n * h.n, NAN);
    }
    for (size_t s = 0; s < h.strips; s++) {
        size_t lo = bench_heat_column(&h, s);
        strip to(h.n, lo, bench_heat_column(&h, s + 1), gap);
        launch(grid, [&] { device::heat_init(to.view, device::heat_arguments{}); });
        to.copy(got[0], true);
        bench_heat_init(&h, s, &expected[0][lo * h.n]);
    }
    good = got[0] == expected[0];
    for (size_t step = 0; step < h.steps; step++) {
        for (size_t s = 0; s < h.strips; s++) {
            size_t lo = bench_heat_column(&h, s), hi = bench_heat_column(&h, s + 1);
            strip from(h.n, lo > 0 ? lo - 1 : 0, hi < h.n ? hi + 1 : h.n, gap);
            strip to(h.n, lo, hi, 0);
            from.copy(got[step % 2], false);
            launch(grid, [&] { device::heat_step(from.view, to.view, device::heat_arguments{}); });
            to.copy(got[1 - step % 2], true);
            bench_heat_step_whole(&h, s, expected[step % 2].data(), expected[1 - step % 2].data());
        }
        good = good && got[1 - step % 2] == expected[1 - step % 2];
    }
    if (!good)
        std::printf("a grid of %zu^2 in %zu strips, %u x %u thread blocks: wrong\n", h.n, h.strips,
                    grid.x, grid.y);
    return good;
}

int main()
{
    /* Points a side, strips, blocks along a column and across: also fewer than there is to do. */
    static const unsigned cases[][4] = {{3, 1, 1, 1},   {3, 3, 1, 1},   {9, 1, 1, 2},
                                        {17, 2, 1, 1},  {40, 5, 1, 1},  {40, 1, 2, 2},
                                        {40, 40, 1, 1}, {260, 7, 1, 3}, {300, 1, 2, 9}};
    bool good = true;
    for (const auto &c : cases) {
        dim3 grid;
        grid.x = c[2];
        grid.y = c[3];
        good = steps(bench_heat_grid{c[0], c[1], 4}, c[0] % 5, grid) && good;
    }
    return good ? 0 : 1;
}
