// SPDX-License-Identifier: Apache-2.0
// Tasks: parameters and captures, kernels, codelets, modes of access, options.
#include <numeric>

#include "check.hpp"

namespace
{

#ifdef __cpp_lib_span
static_assert(std::is_constructible_v<std::span<double>, filch::span<double>>);
#endif

struct pair_of {
    double a, b;
};

void fill(filch::view<double> x, const pair_of &args)
{
    for (double &each : x.column()) {
        each = args.a + args.b;
    }
}

int zero(filch::view<double> x)
{
    for (double &each : x.column()) {
        each = 0;
    }
    return 0;
}

void plus(filch::view<double> into, filch::view<const double> from) noexcept
{
    for (std::uint64_t i = 0; i < into.rows; ++i) {
        into[i] += from[i];
    }
}

void test_finish(filch::runtime &runtime)
{
    std::vector<double> values(1, 0);
    filch::data x = runtime.data(values);
    filch::graph g = runtime.graph();
    for (int i = 0; i < 10; ++i) {
        g.add(
            "until three",
            [](filch::context context, filch::view<double> v) {
                if (++v[0] == 3) {
                    context.finish();
                }
            },
            filch::readwrite(x));
    }
    filch::job job = g.submit();
    job.wait();
    CHECK(job.status() == FILCH_OK && job.info().skipped == 7);
    CHECK(values[0] == 3);
}

void test_parameters(filch::runtime &runtime)
{
    std::vector<double> values(12);
    std::iota(values.begin(), values.end(), 0.0);
    filch::data x = runtime.data(filch::buffer(values.data(), 4, 3).tiles(2, 2));
    std::vector<float> results(4, 0);
    filch::data y = runtime.data(results);
    const std::vector<int> constants = {1, 2};
    filch::data z = runtime.data(constants);
    filch::graph g = runtime.graph();
    std::uint32_t team = 0;
    /* Everything at once: context, tiles before and behind a block, scratch, captures of each kind.
     */
    const std::string name = "a capture with a destructor, too long for a small string";
    g.add(
        filch::task("all").label("label").work(7),
        [&team, name](filch::context context, const filch::view<float> &out,
                      filch::views<const double> in, filch::view<const int> constant,
                      filch::view<double> scratch) {
            team = context.team();
            CHECK(context.call().view_count == 1 + 4 + 1 + 1 && name.size() == 56);
            CHECK(in.size() == 4 && scratch.rows >= 20 && constant[1] == 2);
            scratch[19] = 0;
            for (std::size_t k = 0; k < in.size(); ++k) {
                for (std::uint64_t j = 0; j < in[k].cols; ++j) {
                    for (double each : in[k].column(j)) {
                        scratch[19] += each;
                    }
                }
            }
            CHECK(in[1].row == 2 && in[1].col == 0 && in[2].row == 0 && in[2].col == 2);
            out[0] = static_cast<float>(scratch[19]);
        },
        filch::write(y), filch::read(x.tiles()), filch::read(z), filch::scratch<double>(20));
    g.run();
    CHECK(team == 1 && results[0] == 66);
    /* Several blocks, one of them empty, around a tile. */
    filch::graph h = runtime.graph();
    h.add(
        "blocks",
        [](filch::views<const double> left, filch::views<const double> none, filch::view<float> out,
           filch::views<const double> right) {
            CHECK(left.size() == 2 && none.size() == 0 && right.size() == 1);
            out[1] = static_cast<float>(left[1](0, 1) + right[0](0, 0));
        },
        filch::read(x.tiles(0, 2, 0, 1)), filch::read(x.tiles(1, 1)), filch::write(y),
        filch::read(x.tiles(1, 2, 1, 2)));
    h.run();
    CHECK(results[1] == 6 + 10);
    /* Blocks that are one view each, of a lambda and of a codelet. */
    filch::graph one = runtime.graph();
    one.add(
        "block",
        [](filch::view<const double> all, filch::view<const double> lower, filch::view<float> out) {
            CHECK(all.rows == 4 && all.cols == 3 && lower.rows == 2 && lower.row == 2);
            out[2] = static_cast<float>(all(3, 2) + lower(0, 0));
        },
        filch::read(x.block()), filch::read(x.block(1, 2, 0, 2)), filch::write(y.block()));
    one.run();
    CHECK(results[2] == 11 + 2);
    const filch::error nothing = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "none", [](filch::view<const double>) {}, filch::read(x.block(1, 1)));
    });
    CHECK(contains(nothing.what(), "access 0: a block without tiles"));
    const filch::error outside = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "out", [](filch::view<const double>) {}, filch::read(x.block(0, 3)));
    });
    CHECK(contains(outside.what(), "block of 3 x 1 tiles"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(
            "many", [](filch::view<double>) {}, filch::readwrite(x)); /* has four tiles */
    });
}

/* What would run over a tile once a piece, or never, is refused. */
void test_ranges(filch::runtime &runtime)
{
    std::vector<double> values(100, 1);
    filch::data x = runtime.data(values);
    filch::graph g = runtime.graph();
    const auto whole = [](filch::view<double> v) { v[0] += 1; };
    const auto piece = [](filch::range, filch::view<double> v) { v[0] += 1; };
    const filch::error without = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add(filch::task("whole").items(100), whole, filch::readwrite(x));
    });
    CHECK(contains(without.what(), "'whole' has items"));
    const filch::error none =
        thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.add("piece", piece, filch::readwrite(x)); });
    CHECK(contains(none.what(), "'piece' takes a filch::range"));
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { g.add(runtime.kernel<zero>("zero").items(100), filch::write(x)); });
    std::atomic<std::uint64_t> items{0};
    g.add(
        filch::task("context").items(100),
        [&items](filch::context context, filch::view<double>) {
            items += context.call().hi - context.call().lo;
        },
        filch::readwrite(x));
    g.run();
    CHECK(items == 100 && values[0] == 1);
    thrown_by(FILCH_INVALID_ARGUMENT, [] { filch::scratch<double>(UINT64_MAX / 8 + 1); });
}

void test_kernels(filch::runtime &runtime)
{
    std::vector<double> values(6, 1);
    filch::data x = runtime.data(filch::buffer(values).tiles(3));
    auto fills = runtime.kernel<fill>("fill");
    auto adds = runtime.kernel<plus>("plus");
    static_assert(std::is_same_v<decltype(fills)::arguments, pair_of>);
    static_assert(std::is_void_v<decltype(adds)::arguments>);
    filch::graph g = runtime.graph();
    g.add(fills.label("first"), {2, 3}, filch::write(x.tile(0)));
    g.add(adds, filch::readwrite(x.tile(1)), filch::read(x.tile(0)));
    g.run();
    CHECK(values[0] == 5 && values[5] == 6);

    /* A built-in kernel: C := 2 A B' + 0 C, of 3 × 1 tiles. */
    std::vector<double> product(9, -1);
    filch::data c = runtime.data(filch::buffer(product.data(), 3, 3));
    const filch::codelet gemm = runtime.builtin("gemm_f64");
    filch::graph h = runtime.graph();
    h.add(gemm, filch_gemm_args{2, 0, false, true}, filch::read(x.tile(0)), filch::read(x.tile(1)),
          filch::write(c));
    h.run();
    CHECK(product[0] == 60 && product[8] == 60);
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { h.add(gemm, 1.0, filch::write(c)); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { h.add(gemm, filch::write(c)); });
}

void test_modes(filch::runtime &runtime)
{
    std::vector<double> sums(2, 1), more(2, 0);
    filch::data total = runtime.data(filch::buffer(sums).ordered()), turns = runtime.data(more);
    auto neutral = runtime.kernel<zero>("zero");
    auto addition = runtime.kernel<plus>("plus");
    total.reduction(neutral, addition);
    filch::graph g = runtime.graph();
    for (int k = 1; k <= 40; ++k) {
        g.add(
            "reduce",
            [k](filch::view<double> x) {
                x[0] += k;
                x[1] -= k;
            },
            filch::reduce(total.tile(0)));
        g.add(
            "commute", [k](filch::view<double> x) { x[0] += k; }, filch::commute(turns.tile(0)));
    }
    g.run();
    CHECK(sums[0] == 821 && sums[1] == -819 && more[0] == 820);
    thrown_by(FILCH_WRONG_STATE, [&] {
        filch::graph h = runtime.graph();
        h.add(
            "reduce", [](filch::view<double>) {}, filch::reduce(turns.tile(0)));
    });
}

void test_temporaries(filch::runtime &runtime)
{
    std::vector<double> sums(3, 0);
    filch::data total = runtime.data(sums);
    filch::data steps = runtime.data(filch::buffer::temporary<double>(12).tiles(3).label("steps"));
    filch::graph g = runtime.graph();
    for (int round = 1; round <= 2; ++round) {
        g.add(
            "begin", [round](filch::view<double> x) { x[0] = x[1] = x[2] = round; },
            filch::write(steps.tile(0)));
        for (std::uint32_t k = 1; k < 4; ++k) {
            g.add(
                "step",
                [](filch::view<const double> x, filch::view<double> y) {
                    for (std::uint64_t i = 0; i < 3; ++i)
                        y[i] = 2 * x[i];
                },
                filch::read(steps.tile(k - 1)), filch::write(steps.tile(k)));
        }
        g.add(
            "end",
            [](filch::view<const double> x, filch::view<double> y) {
                for (std::uint64_t i = 0; i < 3; ++i)
                    y[i] += x[i];
            },
            filch::read(steps.tile(3)), filch::readwrite(total.tile(0)));
        g.discard(steps);
        const auto reads = [&] {
            g.add(
                "late", [](filch::view<const double>) {}, filch::read(steps.tile(3)));
        };
        CHECK(contains(thrown_by(FILCH_WRONG_STATE, reads).what(), "'steps', a temporary"));
    }
    g.run();
    g.run();
    CHECK(sums == std::vector<double>(3, 48));
    thrown_by(FILCH_UNSUPPORTED, [&] { (void)steps.acquire(FILCH_READ); });
    thrown_by(FILCH_WRONG_STATE, [&] { g.discard(steps); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        filch::graph h = runtime.graph();
        h.discard(total);
    });
}

void test_options(filch::runtime &runtime)
{
    std::vector<double> values(1000, 1);
    filch::data x = runtime.data(values);
    filch::data halves = x.partition(500);
    CHECK(halves.tile_rows() == 2);
    filch_graph_desc desc = FILCH_GRAPH_DESC_INIT;
    desc.priorities = FILCH_PRIORITIES_CALLER;
    filch::graph g = runtime.graph(desc);
    std::atomic<std::uint64_t> items{0};
    filch_task first = g.add(
        filch::task("divisible").items(1000, 10).priority(2).affinity(0),
        [&items](filch::range r, filch::view<double> v) {
            items += r.size();
            for (std::uint64_t i = r.lo; i < r.hi; ++i) {
                v[i] += 1;
            }
        },
        filch::readwrite(x));
    g.partition(x, halves);
    for (std::uint32_t i = 0; i < 2; ++i) {
        g.add(
            "half", [](filch::view<double> v) { v[0] = -1; }, filch::readwrite(halves.tile(i)));
    }
    g.unpartition(x, halves);
    filch_task last = g.add("none", [] {});
    g.edge(first, last);
    g.seal();
    thrown_by(FILCH_IO, [&] { g.write_dot("/"); });
    g.run();
    CHECK(items == 1000 && values[0] == -1 && values[500] == -1 && values[999] == 2);
    thrown_by(FILCH_WRONG_STATE, [&] { g.add("late", [] {}); });
    filch::graph circle = runtime.graph();
    first = circle.add("a", [] {});
    last = circle.add("b", [] {});
    circle.edge(first, last);
    circle.edge(last, first);
    thrown_by(FILCH_CYCLE, [&] { circle.run(); });
}

/* An open graph whose tasks add the rest: the sum 1 + … + n by halves. */
void spread(const filch::graph &g, std::atomic<int> &left, std::atomic<std::uint64_t> &sum,
            std::uint64_t lo, std::uint64_t hi)
{
    if (hi - lo == 1) {
        sum += lo;
    } else {
        for (std::uint64_t at : {lo, lo + (hi - lo) / 2}) {
            std::uint64_t end = at == lo ? lo + (hi - lo) / 2 : hi;
            left.fetch_add(1);
            auto kept = std::make_shared<std::uint64_t>(at); /* a capture to be destroyed */
            g.add("spread", [&g, &left, &sum, kept, end] { spread(g, left, sum, *kept, end); });
        }
    }
    if (left.fetch_sub(1) == 1) {
        g.close();
    }
}

void test_open(filch::runtime &runtime)
{
    std::atomic<int> left{1};
    std::atomic<std::uint64_t> sum{0};
    filch::graph g = runtime.open_graph();
    thrown_by(FILCH_WRONG_STATE, [&] { g.add("early", [] {}); });
    filch::job job = g.submit();
    g.add("spread", [&] { spread(g, left, sum, 1, 501); });
    job.wait();
    CHECK(sum == 500 * 501 / 2);
    thrown_by(FILCH_WRONG_STATE, [&] { g.close(); });
}

int add_one(const filch_call *call)
{
    *static_cast<double *>(call->views[0].ptr) += 1;
    return 0;
}

/* An array of tasks of the C interface; one of them is wrong at first. */
void test_many(filch::runtime &runtime)
{
    std::vector<double> values(8, 0);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch_codelet_desc what = FILCH_CODELET_DESC_INIT;
    what.name = "add one";
    what.host = add_one;
    filch_codelet *code = nullptr;
    CHECK(filch_codelet_create(runtime.handle(), &what, &code) == FILCH_OK);
    std::vector<filch_access> accesses(values.size());
    std::vector<filch_task_desc> tasks(values.size(), FILCH_TASK_DESC_INIT);
    for (std::size_t k = 0; k < tasks.size(); ++k) {
        accesses[k].data = x.handle();
        accesses[k].row = static_cast<std::uint32_t>(k);
        accesses[k].mode = FILCH_READWRITE;
        tasks[k].codelet = code;
        tasks[k].accesses = &accesses[k];
        tasks[k].access_count = 1;
    }
    accesses[5].row = 8;
    filch::graph g = runtime.graph();
    std::vector<filch_task> names(tasks.size(), 0);
    std::size_t added = 99;
    filch::error refused = thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g.add_many(tasks.data(), tasks.size(), names.data(), &added);
    });
    CHECK(added == 5 && names[4] == 5 && names[5] == 0);
    CHECK(std::string(refused.what()).find("descs[5]: ") != std::string::npos);
    accesses[5].row = 5;
    g.add_many(tasks.data() + added, tasks.size() - added, names.data() + added);
    CHECK(names[7] == 8);
    g.edge(names[0], names[7]);
    g.run();
    CHECK(values == std::vector<double>(8, 1));
}

void test_limit(filch::runtime &runtime)
{
    filch::graph g = runtime.open_graph(3);
    std::atomic<int> ended{0};
    filch::job job = g.submit();
    for (int added = 1; added <= 1000; ++added) {
        g.add("count", [&ended] { ++ended; });
        CHECK(added - ended <= 3); /* no task has ended later than it says */
    }
    CHECK(g.wait_below(1) && ended == 1000);
    door end;
    g.add("end", [&end] { end.pass(); });
    CHECK(!g.wait_below(1, 0.001));
    g.add("waits", [&g] { CHECK(g.wait_below(2)); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.wait_below(0); });
    thrown_by(FILCH_WRONG_STATE, [&] { runtime.graph().wait_below(1); });
    end.open();
    g.close();
    job.wait();
}

/* Captures of an open graph's tasks are destroyed as the tasks end. */
void test_open_captures(filch::runtime &runtime)
{
    std::atomic<int> live{0};
    std::vector<double> values(1, 0);
    filch::data x = runtime.data(values);
    const counted token(live);
    filch::graph g = runtime.open_graph();
    filch::job job = g.submit();
    for (int k = 0; k < 100; ++k) {
        g.add(
            "count", [token](filch::view<double> v) { v[0] += 1; }, filch::readwrite(x));
    }
    door end;
    g.add(
        "end", [&end](filch::view<double>) { end.pass(); }, filch::readwrite(x));
    end.await(1);
    CHECK(live == 1 && values[0] == 100); /* and the graph still runs */
    end.open();
    g.close();
    job.wait();
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_parameters(runtime);
    test_finish(runtime);
    test_ranges(runtime);
    test_kernels(runtime);
    test_modes(runtime);
    test_temporaries(runtime);
    test_options(runtime);
    test_many(runtime);
    test_open(runtime);
    test_limit(runtime);
    test_open_captures(runtime);
    std::printf("tasks: parameters, kernels, modes, options, open graphs\n");
    return 0;
}
