/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/dense/narrow.cu, run by emulate.h, beside one element after the other. */
#include "kernels/emulate.h"

#include <cstddef>
#include <cstdint>

namespace device
{
#include "kernels/dense/narrow.cu"
} // namespace device

static uint64_t seed = 1;

static double draw()
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return double(seed >> 40) / double(1 << 23) - 1;
}

static device::filch_view view_of(void *at, size_t rows, size_t cols, size_t ld, size_t element)
{
    return {at, rows, cols, ld, 0, 0, element};
}

template <typename F> static void launch(size_t cols, F body)
{
    dim3 grid, block;
    grid.x = unsigned(cols);
    block.x = device::THREADS;
    emulate::launch(grid, block, body);
}

static int power_of(double most)
{
    int power = 0;
    if (most > 0 && std::isfinite(most))
        (void)std::frexp(most, &power);
    return power;
}

static bool is_near(double a, double b)
{
    return std::fabs(a - b) <= 1e-12 * std::fabs(b);
}

static bool fails(const char *what, size_t rows, size_t cols)
{
    std::printf("%s, %zu x %zu: wrong\n", what, rows, cols);
    return false;
}

/* There and back, from column `first` on, with columns of sizes from 1e-300 to 1e300. */
static bool round_trip(size_t rows, size_t cols, size_t first)
{
    size_t ld = rows + 3;
    std::vector<double> a(ld * (first + cols)), norms(2 * cols), scales(2 * rows), sum(2 * cols);
    std::vector<float> low(rows * cols);
    std::vector<int> order(rows);
    for (size_t k = 0; k < a.size(); k++)
        a[k] = draw() * std::pow(10, 300 * std::cos(double(k / ld)));
    for (size_t i = 0; i < rows; i++)
        order[i] = int(rows - 1 - i), scales[2 * i] = std::ldexp(1, int(i % 5)),
        scales[2 * i + 1] = double(1 + i % 3);
    device::narrow_args args = {first, cols, 0, 0};
    device::filch_view from = view_of(a.data(), rows, first + cols, ld, 8);
    device::filch_view to = view_of(low.data(), rows, cols, rows, 4);
    device::filch_view of = view_of(norms.data(), 2, cols, 2, 8);
    device::filch_view rows_of = view_of(order.data(), rows, 1, rows, 4);
    device::filch_view by = view_of(scales.data(), 2, rows, 2, 8);
    for (int turned = 0; turned < 3; turned++) { /* not; so; and weighed by A's columns */
        bool is_turned = turned > 0;
        args.weighs = turned == 2;
        launch(cols, [&] {
            if (is_turned)
                device::fl_narrow_rows(from, to, of, rows_of, by, args);
            else
                device::fl_narrow(from, to, of, args);
        });
        for (size_t j = 0; j < cols; j++) {
            const double *x = &a[(first + j) * ld];
            double most = 0, all = 0;
            for (size_t i = 0; i < rows; i++)
                most = std::fmax(most, std::fabs(x[i])),
                all += std::fabs(x[i]) * (args.weighs ? scales[2 * i + 1] : 1);
            if (norms[2 * j] != most || !is_near(norms[2 * j + 1], all))
                return fails("norms", rows, cols);
            for (size_t i = 0; i < rows; i++)
                if (low[j * rows + i] !=
                    float(std::ldexp(x[is_turned ? rows - 1 - i : i], -power_of(most))))
                    return fails("narrow", rows, cols);
        }
    }
    std::vector<double> before = a;
    device::filch_view out = view_of(sum.data(), 2, cols, 2, 8);
    for (int adds = 0; adds < 2; adds++) {
        args.adds = adds;
        a = before;
        launch(cols, [&] { device::fl_widen(to, from, out, by, of, args); });
        for (size_t j = 0; j < cols; j++) {
            double all = 0;
            for (size_t i = 0; i < rows; i++) {
                size_t at = (first + j) * ld + i;
                double value = std::ldexp(double(low[j * rows + i]),
                                          power_of(norms[2 * j]) - power_of(scales[2 * i]));
                if (a[at] != value + (adds ? before[at] : 0))
                    return fails("widen", rows, cols);
                all += std::fabs(a[at]) * scales[2 * i + 1];
            }
            if (!is_near(sum[2 * j + 1], all))
                return fails("norms of a sum", rows, cols);
        }
    }
    return true;
}

/* A number that is none is told by both norms. */
static bool flaws_are_told()
{
    bool good = true;
    for (double flaw : {double(NAN), double(INFINITY)}) {
        std::vector<double> a(700, 1), norms(2);
        std::vector<float> low(700);
        a[600] = flaw;
        launch(1, [&] {
            device::fl_narrow(view_of(a.data(), 700, 1, 700, 8),
                              view_of(low.data(), 700, 1, 700, 4),
                              view_of(norms.data(), 2, 1, 2, 8), device::narrow_args{0, 1, 0, 0});
        });
        good = good && !std::isfinite(norms[0]) && !std::isfinite(norms[1]);
    }
    return good || fails("flaws", 700, 1);
}

int main()
{
    static const size_t shapes[][3] = {
        {1, 1, 0}, {5, 3, 2}, {511, 2, 0}, {512, 1, 1}, {1300, 4, 3}};
    bool good = flaws_are_told();
    for (const auto &s : shapes)
        good = round_trip(s[0], s[1], s[2]) && good;
    return good ? 0 : 1;
}
