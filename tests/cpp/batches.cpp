// SPDX-License-Identifier: Apache-2.0
// Batches from lambdas and kernels: mappings, runs at once, failures, resumption.
#include <algorithm>

#include "check.hpp"

namespace
{

constexpr std::uint64_t count = 10000;

struct scale_args {
    double factor;
    std::atomic<std::uint64_t> *items;
};

void scale(filch::range r, filch::view<double> x, const scale_args &args)
{
    for (double &each : x.column()) {
        each *= args.factor;
    }
    args.items->fetch_add(r.size(), std::memory_order_relaxed);
}

void clear(filch::range, filch::view<double> x)
{
    std::fill(x.column().begin(), x.column().end(), 0.0);
}

void test_mappings(filch::runtime &runtime)
{
    std::vector<double> from(count), to(count, 0), halves(count / 2, 0), weights(3);
    for (std::uint64_t i = 0; i < count; ++i) {
        from[i] = static_cast<double>(i % 100);
    }
    weights = {1, 2, 1};
    filch::data x = runtime.data(from), y = runtime.data(to), z = runtime.data(halves);
    filch::data w = runtime.data(weights);
    const auto smooth = [](filch::context context, filch::range r, filch::view<const double> in,
                           filch::view<const double> weight, filch::view<double> out) {
        CHECK(context.call().lo == r.lo && out.rows == r.size() && out.row == r.lo);
        CHECK(weight.rows == 3 && in.row + (r.lo > 0 ? 1 : 0) == r.lo);
        for (std::uint64_t i = r.lo; i < r.hi; ++i) {
            double left = i > 0 ? in[i - 1 - in.row] : 0,
                   right = i + 1 < count ? in[i + 1 - in.row] : 0;
            out[i - r.lo] = weight[0] * left + weight[1] * in[i - in.row] + weight[2] * right;
        }
    };
    runtime
        .batch(filch::items(count).name("smooth").grain(16).work(4), smooth,
               filch::read(x).halo(1, 1), filch::read(w).whole(), filch::write(y))
        .run();
    CHECK(to[1] == 0 + 2 * 1 + 2 && to[count - 1] == 98 + 2 * 99);

    /* Two elements an item, and a mapping of the caller's. */
    const auto pairs = [](filch::range r, filch::view<const double> in, filch::view<double> out) {
        CHECK(in.rows == 2 * r.size());
        for (std::uint64_t i = 0; i < r.size(); ++i) {
            out[i] = in[2 * i] + in[2 * i + 1];
        }
    };
    runtime.batch(count / 2, pairs, filch::read(x).scale(2), filch::write(z)).run();
    CHECK(halves[1] == 5 && halves[count / 2 - 1] == 98 + 99);
    std::fill(halves.begin(), halves.end(), 0.0);
    std::uint64_t twice = 2;
    const filch_map_fn map = [](std::uint64_t lo, std::uint64_t hi, std::uint64_t *first,
                                std::uint64_t *last, void *user) {
        *first = lo * *static_cast<std::uint64_t *>(user);
        *last = hi * *static_cast<std::uint64_t *>(user);
    };
    runtime.batch(count / 2, pairs, filch::read(x).map(map, &twice), filch::write(z)).run();
    CHECK(halves[1] == 5);
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { runtime.batch(count, pairs, filch::read(x).scale(2), filch::write(z)).run(); });
}

void test_kernels(filch::runtime &runtime)
{
    std::vector<double> values(count, 2);
    filch::data x = runtime.data(values);
    std::atomic<std::uint64_t> items{0};
    filch::batch scales =
        runtime.batch(count, runtime.kernel<scale>("scale"), {1.5, &items}, filch::readwrite(x));
    scales.run();
    scales.run();
    CHECK(items == 2 * count && values[0] == 4.5 && values[count - 1] == 4.5);
    runtime.batch(count, runtime.kernel<clear>("clear"), filch::write(x)).run();
    CHECK(values[count - 1] == 0);
    runtime.batch(0, [](filch::range) {}).run();
    /* A built-in kernel, whose arguments are known by their size alone. */
    std::vector<double> ones(count, 1);
    filch::data y = runtime.data(ones);
    const filch::codelet axpy = runtime.builtin("axpy_f64");
    runtime.batch(count, axpy, filch_axpy_args{3}, filch::read(y), filch::readwrite(x)).run();
    CHECK(values[0] == 3 && values[count - 1] == 3);
    thrown_by(FILCH_INVALID_ARGUMENT,
              [&] { (void)runtime.batch(count, axpy, filch::read(y), filch::readwrite(x)); });
}

static_assert(
    !std::is_reference_v<decltype(filch::items(1).grain(2))> &&
    !std::is_reference_v<decltype(filch::read(std::declval<const filch::data &>()).halo(1, 1))>);

/* A batch and its jobs keep the handle. */
void test_handles(filch::runtime &runtime)
{
    std::vector<double> values(100, 1);
    std::atomic<bool> is_bad{true};
    const auto make = [&] {
        const filch::data x = runtime.data(filch::buffer(values).label("gone"));
        return runtime.batch(
            filch::items(100).name("keeps"),
            [&is_bad](filch::range, filch::view<double> v) {
                if (is_bad) {
                    throw filch::failure(8, "not yet");
                }
                for (double &each : v.column()) {
                    each += 1;
                }
            },
            filch::readwrite(x));
    };
    auto batch = std::make_unique<filch::batch>(make());
    const filch::job failed = batch->submit();
    CHECK(thrown_by(FILCH_TASK_FAILED, [&] { failed.wait(); }).code() == 8);
    batch.reset();
    is_bad = false;
    failed.resume().wait();
    CHECK(std::count(values.begin(), values.end(), 2.0) == 100);
    make().run();
    CHECK(std::count(values.begin(), values.end(), 3.0) == 100);
}

/* Several jobs of one batch; the batch ends before them. */
void test_at_once(filch::runtime &runtime)
{
    std::atomic<std::uint64_t> items{0};
    std::atomic<int> live{0};
    std::vector<filch::job> jobs;
    {
        const counted token(live);
        filch::batch counts =
            runtime.batch(count, [&items, token](filch::range r) { items += r.size(); });
        for (int k = 0; k < 10; ++k) {
            jobs.push_back(counts.submit());
        }
    }
    CHECK(live >= 1);
    for (const filch::job &job : jobs) {
        job.wait();
    }
    CHECK(items == 10 * count);
    jobs.clear();
    CHECK(live == 0);
}

void test_failure(filch::runtime &runtime)
{
    std::vector<double> values(100, 1);
    filch::data x = runtime.data(values);
    std::atomic<bool> is_bad{true};
    filch::batch step = runtime.batch(
        filch::items(100).grain(10).name("step"),
        [&is_bad](filch::range r, filch::view<double> v) {
            if (is_bad && r.lo <= 50 && 50 < r.hi) {
                throw filch::failure(7, "item 50 is bad");
            }
            for (double &each : v.column()) {
                each = 2;
            }
        },
        filch::write(x));
    const filch::error refused = thrown_by(FILCH_TASK_FAILED, [&] { step.run(); });
    CHECK(refused.code() == 7 && contains(refused.what(), "item 50 is bad"));
    filch::job job = step.submit();
    const filch::error error = thrown_by(FILCH_TASK_FAILED, [&] { job.wait(); });
    CHECK(error.code() == 7 && contains(error.what(), "step on host"));
    bool is_found = false;
    for (const filch_item_range &each : job.items()) {
        bool is_failed = each.status == FILCH_TASK_FAILED;
        CHECK(is_failed == (each.lo <= 50 && 50 < each.hi));
        CHECK(!is_failed || each.code == 7);
        is_found = is_found || is_failed;
    }
    CHECK(is_found && values[50] == 1);
    filch::job still = job.resume({0});
    CHECK(contains(thrown_by(FILCH_TASK_FAILED, [&] { still.wait(); }).what(), "item 50"));
    is_bad = false;
    filch::job rest = still.resume();
    rest.wait();
    CHECK(std::count(values.begin(), values.end(), 2.0) == 100);
}

} // namespace

int main()
{
    filch::runtime runtime("host:3");
    test_mappings(runtime);
    test_kernels(runtime);
    test_handles(runtime);
    test_at_once(runtime);
    test_failure(runtime);
    std::printf("batches: mapped, at once, failed and resumed\n");
    return 0;
}
