// SPDX-License-Identifier: Apache-2.0
// Halos of tiles that tasks read: what a task sees, where it begins, what it waits for, what is
// refused.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "check.hpp"

namespace
{

/* Only read has a halo, and only around a tile or a block. */
constexpr auto read = [](const auto &of) -> decltype(filch::read(of, filch_halo{})) {
    return filch::read(of, filch_halo{});
};
constexpr auto write = [](const auto &of) -> decltype(filch::write(of, filch_halo{})) {
    return filch::write(of, filch_halo{});
};
constexpr auto readwrite = [](const auto &of) -> decltype(filch::readwrite(of, filch_halo{})) {
    return filch::readwrite(of, filch_halo{});
};
constexpr auto commute = [](const auto &of) -> decltype(filch::commute(of, filch_halo{})) {
    return filch::commute(of, filch_halo{});
};
constexpr auto reduce = [](const auto &of) -> decltype(filch::reduce(of, filch_halo{})) {
    return filch::reduce(of, filch_halo{});
};
template <class Call, class Of> constexpr bool has_halo = std::is_invocable_v<Call, Of>;
template <class Of>
constexpr bool is_only_read = has_halo<decltype(read), Of> && !has_halo<decltype(write), Of> &&
                              !has_halo<decltype(readwrite), Of> &&
                              !has_halo<decltype(commute), Of> && !has_halo<decltype(reduce), Of>;
static_assert(is_only_read<filch::tile> && is_only_read<filch::block>);
static_assert(!has_halo<decltype(read), filch::tiles> && !has_halo<decltype(read), filch::data>);
static_assert(!has_halo<decltype(read), filch::csr_block<double, int, int>>);

constexpr std::uint64_t rows = 10, cols = 8, ld = 11;
constexpr std::uint64_t most = UINT64_MAX;

/* Elements [first, end) along an axis. */
struct extent {
    std::uint64_t first, end;
};

/* Tiles [tile, tile + count) along an axis, and elements around them within the handle. */
extent around(const std::vector<std::uint64_t> &cuts, std::uint32_t tile, std::uint32_t count,
              std::uint64_t before, std::uint64_t after)
{
    const auto start = cuts.begin() + tile;
    const std::uint64_t all = std::accumulate(cuts.begin(), cuts.end(), std::uint64_t{0});
    const std::uint64_t first = std::accumulate(cuts.begin(), start, std::uint64_t{0});
    const std::uint64_t end = std::accumulate(start, start + count, first);
    return {first - std::min(first, before), end + std::min(all - end, after)};
}

void require_view(const filch::view<const double> &seen, const double *cells, extent down,
                  extent across)
{
    CHECK(seen.row == down.first && seen.rows == down.end - down.first);
    CHECK(seen.col == across.first && seen.cols == across.end - across.first);
    CHECK(seen.ld == ld && seen.ptr == cells + across.first * ld + down.first);
}

/* Every tile, and the block from there to the end, with halos that end inside and at the edges. */
void test_views(filch::runtime &runtime)
{
    const std::vector<std::uint64_t> down = {1, 3, 2, 4}, across = {2, 5, 1};
    std::vector<double> cells(ld * cols);
    const filch_halo halos[] = {
        {0, 0, 0, 0}, {1, 0, 0, 0}, {0, 1, 0, 0},    {0, 0, 1, 0},
        {0, 0, 0, 1}, {3, 9, 5, 2}, {most, 0, 1, 1}, {most, most, most, most}};
    filch::data x = runtime.data(filch::buffer(cells.data(), rows, cols, ld).cuts(down, across));
    for (std::uint32_t i = 0; i < x.tile_rows(); ++i) {
        for (std::uint32_t j = 0; j < x.tile_cols(); ++j) {
            for (const filch_halo &halo : halos) {
                const std::uint32_t below = x.tile_rows() - i, right = x.tile_cols() - j;
                int calls = 0;
                filch::graph g = runtime.graph();
                g.add(
                    "look",
                    [&](filch::view<const double> tile, filch::view<const double> block) {
                        ++calls;
                        require_view(tile, cells.data(),
                                     around(down, i, 1, halo.rows_before, halo.rows_after),
                                     around(across, j, 1, halo.cols_before, halo.cols_after));
                        require_view(block, cells.data(),
                                     around(down, i, below, halo.rows_before, halo.rows_after),
                                     around(across, j, right, halo.cols_before, halo.cols_after));
                    },
                    filch::read(x.tile(i, j), halo),
                    filch::read(x.block(i, i + below, j, j + right), halo));
                g.run();
                CHECK(calls == 1);
            }
        }
    }
}

/* Sweeps of a smoothing, against a loop: tiles of unlike sizes, one smaller than the halo. */
void test_smoothing(filch::runtime &runtime, bool is_open)
{
    constexpr std::uint64_t count = 100, reach = 2;
    std::vector<double> x(count), y(count), expected(count), next(count);
    for (std::uint64_t i = 0; i < count; ++i) {
        x[i] = expected[i] = static_cast<double>(i * i % 17);
    }
    const std::vector<std::uint64_t> cuts = {30, 1, 29, 40};
    const auto mean = [](const double *of, std::uint64_t at, std::uint64_t end) {
        const std::uint64_t first = at < reach ? 0 : at - reach,
                            last = std::min(end, at + reach + 1);
        return std::accumulate(of + first, of + last, 0.0) / static_cast<double>(last - first);
    };
    filch::data from = runtime.data(filch::buffer(x).cuts(cuts));
    filch::data into = runtime.data(filch::buffer(y).cuts(cuts));
    filch::graph g = is_open ? runtime.open_graph() : runtime.graph();
    std::optional<filch::job> job;
    if (is_open) {
        job.emplace(g.submit());
    }
    const std::string name = "a capture with a destructor, too long for a small string";
    for (int sweep = 0; sweep < 10; ++sweep) {
        for (std::uint32_t k = 0; k < from.tile_rows(); ++k) {
            g.add(
                "smooth",
                [mean, name, reach](filch::view<const double> u, filch::view<double> v) {
                    CHECK(name.size() == 56 && v.row - u.row == std::min(v.row, reach));
                    for (std::uint64_t i = 0; i < v.rows; ++i) {
                        v[i] = mean(u.ptr, v.row - u.row + i, u.rows);
                    }
                },
                filch::read(from.tile(k), {reach, reach, 0, 0}), filch::write(into.tile(k)));
        }
        std::swap(from, into);
        for (std::uint64_t i = 0; i < count; ++i) {
            next[i] = mean(expected.data(), i, count);
        }
        expected.swap(next);
    }
    if (is_open) {
        g.close();
    } else {
        job.emplace(g.submit());
    }
    job->wait();
    for (std::uint64_t i = 0; i < count; ++i) {
        CHECK(std::abs(x[i] - expected[i]) < 1e-12);
    }
}

void sum_up(filch::view<const double> from, filch::view<double> sum, const double &factor)
{
    for (double each : from.column()) {
        sum[0] += factor * each;
    }
}

/* The other ways to add a task; an access that is kept has a copy of its halo. */
void test_ways(filch::runtime &runtime)
{
    std::vector<double> x(9), sum(1, 0);
    std::iota(x.begin(), x.end(), 0.0);
    filch::data from = runtime.data(filch::buffer(x).tiles(3));
    filch::data into = runtime.data(sum);
    const auto kept = [&] {
        filch_halo halo = {1, 2, 0, 0};
        const auto made = filch::read(from.tile(1), halo);
        halo = {3, 3, 0, 0};
        return made;
    }();
    filch::graph g = runtime.graph();
    g.add(runtime.kernel<sum_up>("sum"), 1.0, kept, filch::readwrite(into));
    filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
    desc.name = "count";
    desc.host = [](const filch_call *call) {
        CHECK(call->views[0].row == 1 && call->views[0].rows == 8);
        static_cast<double *>(call->views[1].ptr)[0] += static_cast<double>(call->views[0].rows);
        return 0;
    };
    g.add(runtime.codelet(desc), filch::read(from.block(1, 3), {2, 9, 0, 0}),
          filch::readwrite(into));
    g.run();
    CHECK(sum[0] == 2 + 3 + 4 + 5 + 6 + 7 + 8);
}

void refuse(filch::runtime &runtime, filch_status status, const filch::halo_access &access,
            const char *text)
{
    filch::graph g = runtime.graph();
    const filch::error caught = thrown_by(status, [&] {
        g.add(
            "refused", [](filch::view<const double>) {}, access);
    });
    if (!contains(caught.what(), text)) {
        std::fprintf(stderr, "in place of '%s': %s\n", text, caught.what());
        std::exit(1);
    }
}

void test_refusals(filch::runtime &runtime)
{
    const filch_halo one = {1, 1, 1, 1};
    std::vector<double> values(9);
    std::vector<float> floats(9);
    filch::data x = runtime.data(filch::buffer(values).tiles(3));
    refuse(runtime, FILCH_INVALID_ARGUMENT, filch::read(x.tile(UINT32_MAX), one),
           "tile (4294967295, 0) is outside");
    refuse(runtime, FILCH_INVALID_ARGUMENT, filch::read(x.block(1, 1), one),
           "access 0: a block without tiles");
    refuse(runtime, FILCH_INVALID_ARGUMENT, filch::read(x.block(2, 1), one),
           "access 0: a block without tiles");
    refuse(runtime, FILCH_INVALID_ARGUMENT, filch::read(x.block(1, 4), one),
           "block of 3 x 1 tiles");
    refuse(runtime, FILCH_INVALID_ARGUMENT,
           filch::read(runtime.data(filch::buffer(floats).tiles(3)).tile(0), one),
           "the view has elements of 8 bytes, the handle of 4");
    filch::data t = runtime.data(filch::buffer::temporary<double>(9).tiles(3).label("t"));
    refuse(runtime, FILCH_UNSUPPORTED, filch::read(t.tile(1), one),
           "a halo of several tiles of 't'");
    filch::data gone = std::move(x);
    refuse(runtime, FILCH_INVALID_HANDLE, filch::read(x.tile(0), one), "the data is moved from");
    filch::graph g = runtime.graph();
    const filch::error written = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "in place", [](filch::view<const double>, filch::view<double>) {},
            filch::read(gone.tile(1), one), filch::write(gone.tile(2)));
    });
    CHECK(contains(written.what(), "one to write it"));
    /* Constant elements are read. */
    const std::vector<double> constant(9, 7);
    filch::data c = runtime.data(filch::buffer(constant).tiles(3));
    g.add(
        "constant", [](filch::view<const double> v) { CHECK(v.rows == 4 && v[3] == 7); },
        filch::read(c.tile(0), one));
    g.run();
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_views(runtime);
    test_smoothing(runtime, false);
    test_smoothing(runtime, true);
    test_ways(runtime);
    test_refusals(runtime);
    std::printf("halos: views, a smoothing, ways to add, refusals\n");
    return 0;
}
