// SPDX-License-Identifier: Apache-2.0
// The heat equation on a plate of n x n points, by explicit steps in two arrays, in C++; checked
// against plain loops, bit for bit. heat [POINTS [STRIPS [RUNS]]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <filch/filch.hpp>

using in = filch::view<const double>;
using out = filch::view<double>;

// A point after a step. Factors are powers of two: fused operations round as separate ones do.
static double after(double own, double left, double right, double above, double below)
{
    return own + (left + right + above + below - 4 * own) / 8;
}

// The page begins here.
// A step: each strip of the new plate from a strip of the old one and a column on each side.
static void add_step(filch::graph &graph, const filch::data &from, const filch::data &to)
{
    const filch_halo halo = {0, 0, 1, 1}; // columns before and after, but at edges of the plate
    for (std::uint32_t k = 0; k < to.tile_cols(); ++k)
        graph.add("step", [](in u, out next) {
            const std::uint64_t last = u.rows - 1;
            for (std::uint64_t j = 0; j < next.cols; ++j) {
                const std::uint64_t c = j + next.col - u.col; // j or j + 1
                if (c == 0 || c + 1 == u.cols) { // an edge of the plate stays
                    std::copy_n(&u(0, c), u.rows, &next(0, j));
                    continue;
                }
                next(0, j) = u(0, c);
                for (std::uint64_t i = 1; i < last; ++i)
                    next(i, j) = after(u(i, c), u(i, c - 1), u(i, c + 1), u(i - 1, c), u(i + 1, c));
                next(last, j) = u(last, c);
            }
        }, filch::read(from.tile(0, k), halo), filch::write(to.tile(0, k)));
}

static void solve(filch::runtime &runtime, std::vector<double> *plates, std::uint64_t n,
                  std::uint64_t width, long runs)
{
    const filch::buffer even(plates[0].data(), n, n), odd(plates[1].data(), n, n);
    const filch::data a = runtime.data(even.tiles(0, width).label("even steps"));
    const filch::data b = runtime.data(odd.tiles(0, width).label("odd steps"));
    filch::graph graph = runtime.graph(); // ten steps, which end where they began
    for (int k = 0; k < 5; ++k) {
        add_step(graph, a, b);
        add_step(graph, b, a);
    }
    for (long k = 0; k < runs; ++k)
        graph.run();
}
// The page ends here.

static void plain_step(const std::vector<double> &u, std::vector<double> &next, std::size_t n)
{
    for (std::size_t j = 1; j < n - 1; ++j)
        for (std::size_t k = j * n + 1; k < j * n + n - 1; ++k)
            next[k] = after(u[k], u[k - n], u[k + n], u[k - 1], u[k + 1]);
}

// Argument number at of the program; ends the program where the argument is no number or outside.
static long argument(int argc, char **argv, int at, long otherwise, long least, long most)
{
    char *end = nullptr;
    const long value = argc > at ? std::strtol(argv[at], &end, 10) : otherwise;
    if (value < least || value > most || (end && (end == argv[at] || *end != '\0'))) {
        std::fprintf(stderr, "argument %d is '%s', not %ld to %ld\n", at, argv[at], least, most);
        std::exit(2);
    }
    return value;
}

int main(int argc, char **argv)
{
    const auto n = static_cast<std::size_t>(argument(argc, argv, 1, 500, 3, 20000));
    const auto strips = static_cast<std::size_t>(argument(argc, argv, 2, 16, 1, 20000));
    const long runs = argument(argc, argv, 3, 20, 1, 1000000);
    std::vector<double> plate(n * n);
    for (std::size_t k = 0; k < n * n; ++k) // 1 to 101 degrees, uneven everywhere
        plate[k] = static_cast<double>(1 + k * 7919 % 101);
    std::vector<double> plates[] = {plate, std::vector<double>(n * n)}, other = plate;
    filch::runtime runtime("host");
    const auto begin = std::chrono::steady_clock::now();
    solve(runtime, plates, n, (n + strips - 1) / strips, runs);
    const auto middle = std::chrono::steady_clock::now();
    for (long k = 0; k < 10 * runs; ++k)
        k % 2 == 0 ? plain_step(plate, other, n) : plain_step(other, plate, n);
    const auto end = std::chrono::steady_clock::now();
    const std::chrono::duration<double> with = middle - begin, plain = end - middle;
    const bool is_same = std::memcmp(plates[0].data(), plate.data(), n * n * sizeof(double)) == 0 &&
                         std::memcmp(plates[1].data(), other.data(), n * n * sizeof(double)) == 0;
    std::printf("%zu x %zu points, %ld steps: filch %.3f s, plain loops %.3f s, results are %s\n",
                n, n, 10 * runs, with.count(), plain.count(), is_same ? "equal" : "unequal");
    return is_same ? 0 : 1;
}
