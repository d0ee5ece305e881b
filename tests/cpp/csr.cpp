// SPDX-License-Identifier: Apache-2.0
// Sparse matrices: blocks, products, changes of values, what is refused.
#include "check.hpp"

namespace
{

using all = filch::view<const double>;
using out = filch::view<double>;

// Rows of 0 to 4 entries: row i has columns i, i + 1, ... modulo cols, with values 1, 2, ...
template <class C, class P> struct matrix {
    std::uint64_t rows, cols;
    std::vector<P> pointers{0};
    std::vector<C> columns;
    std::vector<double> values;
    matrix(std::uint64_t height, std::uint64_t width) : rows(height), cols(width)
    {
        for (std::uint64_t i = 0; i < rows; ++i) {
            for (std::uint64_t k = 0; k < i * 7 % 5; ++k) {
                columns.push_back(static_cast<C>((i + k) % cols));
                values.push_back(static_cast<double>(values.size() + 1));
            }
            pointers.push_back(static_cast<P>(columns.size()));
        }
    }
    std::vector<double> times(const std::vector<double> &x) const
    {
        std::vector<double> y(rows);
        for (std::uint64_t i = 0; i < rows; ++i) {
            for (P k = pointers[i]; k < pointers[i + 1]; ++k) {
                const std::size_t at = static_cast<std::size_t>(k);
                y[i] += values[at] * x[static_cast<std::size_t>(columns[at])];
            }
        }
        return y;
    }
};

template <class C, class P> void multiply(filch::csr_view<const double, C, P> a, all x, out y)
{
    for (std::uint64_t i = 0; i < a.rows; ++i) {
        y[i] = 0;
        for (P k = a.pointers[i]; k < a.pointers[i + 1]; ++k) {
            y[i] += a.values[k] * x[static_cast<std::uint64_t>(a.columns[k])];
        }
    }
}

template <class C, class P> void test_product(filch::runtime &runtime)
{
    matrix<C, P> m(50, 30);
    std::vector<double> x(30), y(50);
    for (std::size_t j = 0; j < x.size(); ++j) {
        x[j] = static_cast<double>(j) - 7;
    }
    filch::csr A = runtime.csr(
        filch::csr_buffer(m.pointers, m.columns, m.values, m.cols).blocks(6).label("A"));
    const std::vector<double> wanted = m.times(x);
    const std::vector<double> values = m.values;
    m = matrix<C, P>(0, 1); // the matrix has a copy
    const filch::tiles some = A.columns_of(1, runtime.data(filch::buffer(y).cuts(A.heights()))).at;
    CHECK(some.row0 == A.info(1).block_lo && some.row1 == A.info(1).block_hi && some.row1 > 0);
    CHECK(A.blocks() == 6 && A.info(5).row + A.info(5).rows == 50);
    filch::data x_data = runtime.data(x);
    filch::data y_data = runtime.data(filch::buffer(y).cuts(A.heights()));
    filch::graph g = runtime.graph();
    for (std::uint32_t b = 0; b < A.blocks(); ++b) {
        g.add("multiply", multiply<C, P>, filch::read(A.block(b)), filch::read(x_data),
              filch::write(y_data.tile(b)));
    }
    g.run();
    CHECK(y == wanted);

    // Values change in tasks, and by the host.
    filch::graph doubling = runtime.graph();
    const auto twice = [](filch::csr_view<double, C, P> a) {
        for (std::uint64_t k = 0; k < a.nnz; ++k) {
            a.values[k] *= 2;
        }
    };
    for (std::uint32_t b = 0; b < A.blocks(); ++b) {
        doubling.add("twice", twice, filch::readwrite(A.block(b)));
        doubling.add("twice", twice, filch::commute(A.block(b)));
    }
    doubling.run();
    g.run();
    for (std::size_t i = 0; i < y.size(); ++i) {
        CHECK(y[i] == 4 * wanted[i]);
    }
    filch::hold held = A.acquire(FILCH_READWRITE);
    for (std::uint32_t b = 0; b < A.blocks(); ++b) {
        const auto block = A.template view<double>(held, b);
        const filch::csr_view<const double, C, P> same = A.view(held, b);
        CHECK(same.values == block.values && same.pointers[0] == 0);
        for (std::uint64_t k = 0; k < block.nnz; ++k) {
            CHECK(block.values[k] == 4 * values[block.entry + k]);
            block.values[k] = values[block.entry + k];
        }
    }
    held.release();
    g.run();
    CHECK(y == wanted);
}

// Arrays that count from 1, as Fortran's, without values at first.
void test_pointers(filch::runtime &runtime)
{
    const int pointers[] = {1, 3, 4}, columns[] = {1, 3, 2};
    const double *none = nullptr;
    filch::csr A =
        runtime.csr(filch::csr_buffer(pointers, columns, none, 2, 3, 3).base(1).tiles(1));
    filch::graph g = runtime.graph();
    for (std::uint32_t b = 0; b < 2; ++b) {
        g.add(
            "fill",
            [](filch::csr_view<double> a) {
                for (int k = a.pointers[0]; k < a.pointers[1]; ++k) {
                    CHECK(a.values[k - 1] == 0);
                    a.values[k - 1] = static_cast<double>(a.row) + a.columns[k - 1];
                }
            },
            filch::readwrite(A.block(b)));
    }
    g.run();
    filch::hold held = A.acquire(FILCH_READ);
    CHECK(A.view(held, 0).pointers[0] == 1 && A.view(held, 1).pointers[0] == 1);
    CHECK(A.view(held, 0).values[1] == 3 && A.view(held, 1).values[0] == 3);
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { A.view<double>(held, 0); });
    std::vector<unsigned char> bytes(7);
    filch::data other = runtime.data(filch::buffer(bytes));
    filch::hold foreign = other.acquire(FILCH_READ);
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { A.view(foreign, 0); });
}

void test_refusals(filch::runtime &runtime)
{
    matrix<int, int> m(10, 10);
    const filch::csr_buffer good(m.pointers, m.columns, m.values, m.cols);
    const std::vector<int> none;
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { filch::csr_buffer(none, m.columns, m.values, m.cols); });
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { filch::csr_buffer(m.pointers, none, m.values, m.cols); });
    CHECK(
        contains(thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)runtime.csr(good.base(1)); }).what(),
                 "pointers[0]"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)runtime.csr(good.tiles(2).blocks(3)); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)runtime.csr(good.cuts({3, 4})); });
    m.columns[4] = 10;
    CHECK(contains(thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)runtime.csr(good); }).what(),
                   "columns[4] is 10"));
    m.columns[4] = 0;
    filch::csr A = runtime.csr(good.cuts({3, 7})), B = std::move(A);
    thrown_by(FILCH_INVALID_HANDLE, [&] { (void)A.info(0); });
    thrown_by(FILCH_BAD_INDEX, [&] { (void)B.info(2); });
    filch::graph g = runtime.graph();
    const auto nothing = [](filch::csr_view<const double>) {};
    thrown_by(FILCH_INVALID_HANDLE, [&] { g.add("a", nothing, filch::read(A.block(0))); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.add("a", nothing, filch::read(B.block(2))); });
    g.add("a", nothing, filch::read(B.block(1)));
    g.run();
}

// Two open graphs share a matrix, and neither writes it.
void test_shared(filch::runtime &runtime)
{
    const matrix<int, int> m(20, 20);
    const std::vector<double> x(20, 1);
    std::vector<double> y[2] = {std::vector<double>(20), std::vector<double>(20)};
    const filch::csr A = runtime.csr(
        filch::csr_buffer(m.pointers, m.columns, m.values, m.cols).tiles(20).label("A"));
    filch::data x_data = runtime.data(x);
    filch::graph graphs[] = {runtime.open_graph(), runtime.open_graph()};
    std::vector<filch::job> jobs;
    for (const filch::graph &g : graphs) {
        jobs.push_back(g.submit());
        g.read_only(A);
        g.read_only(x_data);
    }
    for (std::size_t k = 0; k < 2; ++k) {
        filch::data y_data = runtime.data(y[k]);
        graphs[k].add("multiply", multiply<int, int>, filch::read(A.block(0)), filch::read(x_data),
                      filch::write(y_data));
        const filch::error refused = thrown_by(FILCH_WRONG_STATE, [&] {
            graphs[k].add(
                "twice", [](filch::csr_view<double>) {}, filch::readwrite(A.block(0)));
        });
        CHECK(contains(refused.what(), "only reads 'A'"));
        graphs[k].close();
        jobs[k].wait();
        CHECK(y[k] == m.times(x));
    }
    filch::csr moved = runtime.csr(filch::csr_buffer(m.pointers, m.columns, m.values, m.cols));
    filch::csr now = std::move(moved);
    filch::graph g = runtime.graph();
    thrown_by(FILCH_INVALID_HANDLE, [&] { g.read_only(moved); });
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_product<std::int32_t, std::int32_t>(runtime);
    test_product<std::uint32_t, std::int64_t>(runtime);
    test_product<std::int64_t, std::uint32_t>(runtime);
    test_product<std::uint64_t, std::int64_t>(runtime);
    test_pointers(runtime);
    test_refusals(runtime);
    test_shared(runtime);
    std::printf("csr: products, values, refusals, sharing\n");
    return 0;
}
