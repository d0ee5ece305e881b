// SPDX-License-Identifier: Apache-2.0
// Owners: what they hold, moves, and ends in any order.
#include <type_traits>

#include "check.hpp"
#include "elsewhere.hpp"

namespace
{

template <class T> constexpr bool moves_only()
{
    return !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T> &&
           std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
           std::is_nothrow_destructible_v<T>;
}
static_assert(moves_only<filch::runtime>() && moves_only<filch::data>() &&
              moves_only<filch::graph>() && moves_only<filch::job>() &&
              moves_only<filch::batch>() && moves_only<filch::hold>());

const auto add_one = [](filch::view<double> x) {
    for (double &each : x.column()) {
        each += 1;
    }
};

void test_moves()
{
    filch::runtime first("host:2");
    filch::runtime runtime(std::move(first));
    CHECK(first.handle() == nullptr && first.device_count() == 0);
    thrown_by(FILCH_INVALID_HANDLE, [&] { (void)first.graph(); });
    CHECK(runtime.device_count() == 2 && std::string(runtime.device(0).name) == "host:0");
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.device(2); });

    std::vector<double> values(100, 1);
    filch::data a = runtime.data(filch::buffer(values).tiles(10).label("a"));
    filch::data b = std::move(a);
    CHECK(b.tile_rows() == 10 && b.tile_cols() == 1 && b.element() == sizeof(double));

    CHECK(a.handle() == nullptr && a.tile_rows() == 0 && a.element() == 0);
    thrown_by(FILCH_INVALID_HANDLE, [&] { (void)a.acquire(FILCH_READ); });
    filch::graph g = runtime.graph();
    thrown_by(FILCH_INVALID_HANDLE,
              [&] { g.add("add_one", add_one, filch::readwrite(a.tile(0))); });
    for (std::uint32_t i = 0; i < b.tile_rows(); ++i) {
        g.add("add_one", add_one, filch::readwrite(b.tile(i)));
    }
    filch::graph moved = std::move(g);
    CHECK(g.handle() == nullptr);
    thrown_by(FILCH_INVALID_HANDLE, [&] { g.run(); });
    moved.run();
    CHECK(values[0] == 2 && values[99] == 2);

    filch::job job = moved.submit();
    filch::job other = std::move(job);
    CHECK(job.handle() == nullptr && job.status() == FILCH_INVALID_HANDLE);
    thrown_by(FILCH_INVALID_HANDLE, [&] { job.wait(); });
    other.wait();
    CHECK(other.status() == FILCH_OK && other.info().done == 10 && other.devices().size() == 2);
    moved = runtime.graph(); /* the former graph ends */
    moved.run();
    CHECK(values[50] == 3);

    filch::batch step = runtime.batch(
        100,
        [](filch::range r, filch::view<double> x) {
            for (std::uint64_t i = 0; i < r.size(); ++i) {
                x[i] = static_cast<double>(r.lo + i);
            }
        },
        filch::write(b));
    filch::batch again = std::move(step);
    again.run();
    CHECK(values[99] == 99);
    thrown_by(FILCH_INVALID_HANDLE, [&] { step.run(); });
    runtime = filch::runtime("host:1"); /* the former runtime ends before what was made from it */
    thrown_by(FILCH_INVALID_HANDLE, [&] { again.run(); });
    CHECK(other.status() == FILCH_INVALID_HANDLE);
}

void test_ends_in_any_order()
{
    std::atomic<int> live{0};
    std::vector<double> values(8, 0);
    filch::runtime runtime("host:2");
    const counted token(live);
    {
        /* Data ends before the graph that names it; the graph before its job. */
        filch::graph g = runtime.graph();
        auto x = std::make_unique<filch::data>(runtime.data(values));
        g.add(
            "count", [token](filch::view<double> v) { v[0] += 1; }, filch::readwrite(x->tile(0)));
        CHECK(live == 2);
        g.run();
        x.reset();
        g.run();
        CHECK(values[0] == 2);
        filch::job job = g.submit();
        {
            filch::graph gone = std::move(g);
        }
        CHECK(live == 2);
        job.wait();
        CHECK(values[0] == 3);
    }
    CHECK(live == 1);
    {
        /* Children that outlive their runtime. */
        auto owner = std::make_unique<filch::runtime>("host:1");
        filch::data x = owner->data(values);
        filch::graph g = owner->graph();
        g.add(
            "count", [token](filch::view<double> v) { v[0] += 1; }, filch::readwrite(x.tile(0)));
        filch::job job = g.submit();
        job.wait();
        filch::hold held = x.acquire(FILCH_READ);
        CHECK(x.handle() && g.handle() && job.handle());
        owner.reset();
        CHECK(!x.handle() && !g.handle() && !job.handle());
        thrown_by(FILCH_INVALID_HANDLE, [&] { g.run(); });
        thrown_by(FILCH_INVALID_HANDLE, [&] { held.view<const double>(); });
        thrown_by(FILCH_INVALID_HANDLE, [&] { (void)x.acquire(FILCH_READ); });
        thrown_by(FILCH_INVALID_HANDLE, [&] { job.wait(); });
        CHECK(live == 2);
    }
    CHECK(live == 1);
}

void test_holds()
{
    std::vector<double> values(20, 4);
    filch::runtime runtime("host:1");
    const filch::data x = runtime.data(filch::buffer(values.data(), 5, 4).tiles(2, 2).managed());
    CHECK(x.tile_rows() == 3 && x.tile_cols() == 2);
    filch::hold held = x.acquire(FILCH_READWRITE, x.tiles(1, 3, 0, 2));
    filch::view<double> tile = held.view<double>(2, 1);
    CHECK(tile.rows == 1 && tile.cols == 2 && tile.ld == 5 && tile.row == 4 && tile.col == 2);
    tile(0, 1) = 7;
    CHECK(values[19] == 7 && tile.column(1).size() == 1);
    CHECK(contains(thrown_by(FILCH_INVALID_ARGUMENT, [&] { held.view<float>(2, 1); }).what(),
                   "8 bytes"));
    thrown_by(FILCH_WRONG_STATE, [&] { held.view<double>(0, 0); });
    filch::hold moved = std::move(held);
    thrown_by(FILCH_WRONG_STATE, [&] { held.view<double>(2, 1); });
    moved.release();
    moved.release();
    filch::hold reader = x.acquire(FILCH_READ);
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { reader.view<double>(); });
    CHECK(reader.view<const double>(2, 1)(0, 1) == 7);
    thrown_by(FILCH_TIMEOUT, [&] { (void)x.acquire(FILCH_WRITE, 0); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)x.acquire(FILCH_READ, x.tiles(1, 1)); });
}

void test_elsewhere()
{
    filch::runtime runtime("host:2");
    std::vector<double> values(1, 0);
    const filch::data x = runtime.data(values);
    set_elsewhere(runtime, x, 3).wait();
    CHECK(values[0] == 3);
}

void test_refused()
{
    const filch::error error = thrown_by(FILCH_PARSE, [] { filch::runtime runtime("nonsense"); });
    CHECK(std::string(error.name()) == "PARSE" && error.details().line > 0);
    CHECK(contains(error.what(), "PARSE: ") && error.cause() == nullptr);
    filch::runtime runtime("host:1");
    std::vector<double> values(10);
    const filch::error large = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        (void)runtime.data(filch::buffer(values).tiles(11).label("short"));
    });
    CHECK(std::string(large.details().call) == "filch_data_create");
    CHECK(std::string(large.label()) == "short");
    filch::data unlike = runtime.data(filch::buffer(values).cuts({1, 2, 7}));
    CHECK(unlike.tile_rows() == 3);
    thrown_by(FILCH_NOT_FOUND, [&] { runtime.builtin("nothing"); });
}

} // namespace

int main()
{
    test_moves();
    test_ends_in_any_order();
    test_holds();
    test_elsewhere();
    test_refused();
    std::printf("owners: moved, and ended in every order\n");
    return 0;
}
