// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients for the Poisson equation on a grid of g^3 points, the matrix in CSR, in C++,
// beside the plain loops of plain_cg.hpp. cg [G [ITERATIONS [REPEATS]]]
#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <vector>
#include <filch/filch.hpp>

using in = filch::view<const double>;
using out = filch::view<double>;
using in_rows = filch::csr_view<const double, std::uint32_t>;
using matrix = filch::csr<double, std::uint32_t, std::uint32_t>;

struct problem { // A x = b with b = 1
    std::uint32_t rows, plane;
    std::vector<std::uint32_t> starts{0}, columns;
    std::vector<double> values, x, r, p, q;
    explicit problem(std::uint32_t g)
        : rows(g * g * g), plane(g * g), x(rows), r(rows), p(rows), q(rows)
    {
        const std::uint32_t step[] = {plane, g, 1};
        for (std::uint32_t i = 0; i < rows; ++i) {
            for (int d = -3; d <= 3; ++d) { // in the order of the columns
                const std::uint32_t s = d == 0 ? 0 : step[3 - std::abs(d)];
                const std::uint32_t at = d == 0 ? 0 : i / s % g;
                if (d < 0 ? at == 0 : d > 0 && at + 1 == g)
                    continue;
                columns.push_back(d < 0 ? i - s : i + s);
                values.push_back(d == 0 ? 6 : -1);
            }
            starts.push_back(static_cast<std::uint32_t>(columns.size()));
        }
    }
    void begin()
    {
        x.assign(rows, 0);
        r.assign(rows, 1);
        p = r;
    }
};

#include "plain_cg.hpp" // argument(), measure()

static double sum(const in &parts)
{
    return std::accumulate(parts.ptr, parts.ptr + parts.rows, 0.0);
}

// The page begins here.
// An iteration. Each block of rows has a part of p . q, and of r . r before and after.
static void add_iteration(filch::graph &graph, const matrix &a, const filch::data *v,
                          const filch::data &pq, const filch::data &old, const filch::data &next)
{
    const filch::data &x = v[0], &r = v[1], &p = v[2], &q = v[3];
    const std::uint32_t blocks = a.blocks();
    for (std::uint32_t b = 0; b < blocks; ++b)
        graph.add("multiply", [](in_rows a_b, in p_b, out q_b, out part) {
            double sum = 0;
            for (std::size_t i = 0; i < a_b.rows; ++i) {
                double value = 0;
                for (std::uint32_t k = a_b.pointers[i]; k < a_b.pointers[i + 1]; ++k)
                    value += a_b.values[k] * p_b[a_b.columns[k] - p_b.row];
                q_b[i] = value;
                sum += value * p_b[a_b.row + i - p_b.row];
            }
            part[0] = sum;
        }, filch::read(a.block(b)), filch::read(a.columns_of(b, p)), filch::write(q.tile(b)),
           filch::write(pq.tile(b)));
    for (std::uint32_t b = 0; b < blocks; ++b)
        graph.add("update", [](out x_b, out r_b, in p_b, in q_b, out part, in pq_b, in rr) {
            const double alpha = sum(rr) / sum(pq_b);
            double total = 0;
            for (std::size_t i = 0; i < x_b.rows; ++i) {
                x_b[i] += alpha * p_b[i];
                r_b[i] -= alpha * q_b[i];
                total += r_b[i] * r_b[i];
            }
            part[0] = total;
        }, filch::readwrite(x.tile(b)), filch::readwrite(r.tile(b)), filch::read(p.tile(b)),
           filch::read(q.tile(b)), filch::write(next.tile(b)), filch::read(pq.block()),
           filch::read(old.block()));
    for (std::uint32_t b = 0; b < blocks; ++b)
        graph.add("direct", [](out p_b, in r_b, in rr_next, in rr_old) {
            const double beta = sum(rr_next) / sum(rr_old);
            for (std::size_t i = 0; i < p_b.rows; ++i)
                p_b[i] = r_b[i] + beta * p_b[i];
        }, filch::readwrite(p.tile(b)), filch::read(r.tile(b)), filch::read(next.block()),
           filch::read(old.block()));
}
// The page ends here.

int main(int argc, char **argv)
{
    problem s(static_cast<std::uint32_t>(argument(argc, argv, 1, 40, 800)));
    filch::runtime runtime("host");
    // At most 16 blocks a core, each of a plane or more and of some 4000 rows or more.
    const std::uint32_t wanted = std::min(
        {16 * runtime.device_count(), s.rows / s.plane, s.rows / 4000 + 1, 100U});
    const std::uint64_t height = (s.rows + wanted - 1) / wanted;
    std::vector<filch::data> v, parts;
    for (std::vector<double> *each : {&s.x, &s.r, &s.p, &s.q})
        v.push_back(runtime.data(filch::buffer(*each).tiles(height)));
    const filch::csr_buffer arrays(s.starts, s.columns, s.values, s.rows);
    const matrix a = runtime.csr(arrays.tiles(height));
    const std::uint32_t blocks = a.blocks();
    std::vector<double> sums(3 * blocks);
    for (std::uint32_t k = 0; k < 3; ++k)
        parts.push_back(runtime.data(filch::buffer(&sums[k * blocks], blocks).tiles(1)));
    filch::graph graph = runtime.graph(); // ten iterations, run again and again
    for (std::size_t k = 0; k < 10; ++k)
        add_iteration(graph, a, v.data(), parts[0], parts[1 + k % 2], parts[2 - k % 2]);
    return measure(argc, argv, s, [&](std::uint64_t most) {
        double *rr = &sums[blocks];
        std::fill(rr, rr + blocks, s.rows / double(blocks));
        graph.repeat([&](std::uint64_t run) { // asked after each run; true ends the job
            return 10 * run >= most || std::accumulate(rr, rr + blocks, 0.0) <= 1e-20 * s.rows;
        }).wait();
    });
}
