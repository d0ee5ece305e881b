// SPDX-License-Identifier: Apache-2.0
// Tile Cholesky, A = L L^T, in C++. Tasks are added in program order; the tiles read and written say
// which task waits for which. Checked against a plain loop.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <filch/filch.hpp>

using tile = filch::view<double>;
using const_tile = filch::view<const double>;

// The page begins here.
// A := L with A = L L^T. An exception fails the task, and reaches whoever runs the graph.
static void potrf(tile a)
{
    for (std::uint64_t j = 0; j < a.cols; ++j) {
        for (std::uint64_t k = 0; k < j; ++k)
            for (std::uint64_t i = j; i < a.rows; ++i)
                a(i, j) -= a(i, k) * a(j, k);
        if (!(a(j, j) > 0))
            throw filch::failure(static_cast<int>(a.row + j + 1), "the matrix is not definite");
        const double pivot = std::sqrt(a(j, j));
        for (std::uint64_t i = j; i < a.rows; ++i)
            a(i, j) /= pivot;
    }
}

// A := A L^-T
static void trsm(const_tile l, tile a)
{
    for (std::uint64_t j = 0; j < a.cols; ++j) {
        for (std::uint64_t k = 0; k < j; ++k)
            for (std::uint64_t i = 0; i < a.rows; ++i)
                a(i, j) -= a(i, k) * l(j, k);
        for (double &each : a.column(j))
            each /= l(j, j);
    }
}

// C := C - A B^T
static void gemm(const_tile a, const_tile b, tile c)
{
    for (std::uint64_t j = 0; j < c.cols; ++j)
        for (std::uint64_t k = 0; k < a.cols; ++k)
            for (std::uint64_t i = 0; i < c.rows; ++i)
                c(i, j) -= a(i, k) * b(j, k);
}

static void factor(filch::runtime &runtime, std::vector<double> &matrix, std::uint64_t n)
{
    filch::data a = runtime.data(filch::buffer(matrix.data(), n, n).tiles(96, 96).label("A"));
    filch::graph graph = runtime.graph();
    for (std::uint32_t k = 0; k < a.tile_rows(); ++k) {
        graph.add("potrf", potrf, filch::readwrite(a.tile(k, k)));
        for (std::uint32_t i = k + 1; i < a.tile_rows(); ++i)
            graph.add("trsm", trsm, filch::read(a.tile(k, k)), filch::readwrite(a.tile(i, k)));
        for (std::uint32_t i = k + 1; i < a.tile_rows(); ++i)
            for (std::uint32_t j = k + 1; j <= i; ++j) {
                const auto left = filch::read(a.tile(i, k)), right = filch::read(a.tile(j, k));
                graph.add("gemm", gemm, left, right, filch::readwrite(a.tile(i, j)));
            }
    }
    graph.run(); // throws filch::error where a task failed
}
// The page ends here.

// The same by one loop, column by column.
static void factor_plain(std::vector<double> &a, std::size_t n)
{
    for (std::size_t j = 0; j < n; ++j) {
        for (std::size_t k = 0; k < j; ++k)
            for (std::size_t i = j; i < n; ++i)
                a[j * n + i] -= a[k * n + i] * a[k * n + j];
        const double pivot = std::sqrt(a[j * n + j]);
        for (std::size_t i = j; i < n; ++i)
            a[j * n + i] /= pivot;
    }
}

int main()
{
    constexpr std::size_t n = 500; // the last tiles are smaller
    std::vector<double> a(n * n);
    for (std::size_t j = 0; j < n; ++j)
        for (std::size_t i = 0; i < n; ++i)
            a[j * n + i] = 1.0 / (1.0 + std::fabs(double(i) - double(j))) + (i == j ? 2 : 0);
    std::vector<double> expected = a, wrong = a;
    try {
        filch::runtime runtime("host"); // the tasks are host functions
        factor(runtime, a, n);
        factor_plain(expected, n);
        double worst = 0;
        for (std::size_t j = 0; j < n; ++j)
            for (std::size_t i = j; i < n; ++i) {
                const double d = std::fabs(a[j * n + i] - expected[j * n + i]);
                worst = d > worst || std::isnan(d) ? d : worst; // fmax() would drop a NaN
            }
        std::printf("n = %zu, largest difference from the plain loop = %.1e\n", n, worst);
        if (!(worst < 1e-12))
            return 1;
        wrong[200 * n + 200] = -1;
        factor(runtime, wrong, n);
    } catch (const filch::error &error) {
        std::printf("%s (pivot %d)\n", error.what(), error.code());
        return error.code() == 201 ? 0 : 1;
    }
    return 1; // a matrix that is not definite has no factor
}
