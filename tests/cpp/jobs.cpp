// SPDX-License-Identifier: Apache-2.0
// Jobs: waits, and destructors of everything while functions run.
#include <cmath>
#include <utility>

#include "check.hpp"

namespace
{

void test_wait(filch::runtime &runtime)
{
    door end;
    filch::graph g = runtime.graph();
    g.add("waits", [&end] { end.pass(); });
    filch::job job = g.submit();
    end.await(1);
    CHECK(!job.wait_for(0) && job.status() == FILCH_NOT_READY);
    filch::job behind = g.submit();
    behind.cancel();
    thrown_by(FILCH_CANCELLED, [&] { behind.wait(); });
    end.open();
    CHECK(job.wait_for(-1) && job.status() == FILCH_OK && job.info().total == 1);
    thrown_by(FILCH_WRONG_STATE, [&] { job.items(); });
    thrown_by(FILCH_WRONG_STATE, [&] { (void)job.resume(); });
    int called = 0;
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.on_complete = [](filch_job *, filch_status status, void *user) {
        *static_cast<int *>(user) += status == FILCH_OK ? 1 : 100;
    };
    submit.user = &called;
    g.run(submit);
    CHECK(called == 1);
}

/* The destructor of a job leaves no function running, and starts no more. */
void test_destructor(filch::runtime &runtime)
{
    std::atomic<int> live{0}, started{0}, ended{0};
    std::vector<double> values(1, 0);
    const counted token(live);
    {
        filch::data x = runtime.data(values);
        door end;
        filch::graph g = runtime.graph();
        for (int k = 0; k < 50; ++k) {
            g.add(
                "chain",
                [&, token](filch::view<double> v) {
                    ++started;
                    end.pass();
                    v[0] += 1;
                    ++ended;
                },
                filch::readwrite(x));
        }
        std::thread opener([&end] {
            end.await(1);
            end.open();
        });
        {
            filch::job job = g.submit();
            end.await(1);
            filch::graph gone = std::move(g); /* before its job */
        }
        CHECK(started == ended && ended >= 1);
        opener.join();
    }
    CHECK(live == 1);
}

/* An exception that leaves the scope of a running job. */
void test_unwinding(filch::runtime &runtime)
{
    std::atomic<int> inside{0};
    try {
        std::vector<double> values(100000, 1);
        filch::data x = runtime.data(filch::buffer(values).tiles(10));
        filch::graph g = runtime.graph();
        for (std::uint32_t i = 0; i < x.tile_rows(); ++i) {
            g.add(
                "touch",
                [&inside](filch::view<double> v) {
                    ++inside;
                    for (double &each : v.column()) {
                        each *= 2;
                    }
                    --inside;
                },
                filch::readwrite(x.tile(i)));
        }
        filch::job job = g.submit();
        throw std::runtime_error("left early");
    } catch (const std::runtime_error &) {
        CHECK(inside == 0);
    }
}

/* A detached job outlives job, graph, data and batch. */
void test_detached(filch::runtime &runtime)
{
    std::atomic<int> live{0};
    std::vector<double> values(40, 0);
    const counted token(live);
    door end;
    {
        filch::data x = runtime.data(filch::buffer(values).tiles(1));
        filch::graph g = runtime.graph();
        for (std::uint32_t i = 0; i < x.tile_rows(); ++i) {
            g.add(
                "set",
                [&end, token](filch::view<double> v) {
                    end.pass();
                    v[0] += 1;
                },
                filch::readwrite(x.tile(i)));
        }
        filch::job job = g.submit();
        job.detach();
        CHECK(job.handle() == nullptr);
        job.detach();
        runtime
            .batch(
                40,
                [&end, token](filch::range, filch::view<double> v) {
                    end.pass();
                    for (double &each : v.column()) {
                        each += 1;
                    }
                },
                filch::readwrite(x))
            .submit()
            .detach();
    }
    CHECK(live > 1);
    end.open();
    runtime.drain();
    CHECK(live == 1);
    for (double each : values) {
        CHECK(each == 2);
    }
    /* A complete job may be detached, too. */
    filch::graph g = runtime.graph();
    g.add("none", [] {});
    filch::job job = g.submit();
    job.wait();
    job.detach();
    g.run();
}

/* An open graph that nobody closes: its destructor does, and that of its job cancels. */
void test_open(filch::runtime &runtime)
{
    std::atomic<int> live{0}, count{0};
    const counted token(live);
    {
        filch::graph g = runtime.open_graph();
        filch::job job = g.submit();
        for (int k = 0; k < 20; ++k) {
            g.add("count", [&count, token] { ++count; });
        }
        {
            filch::graph gone = std::move(g);
        }
        job.wait();
        CHECK(count == 20);
    }
    CHECK(live == 1);
    {
        filch::graph g = runtime.open_graph();
        {
            filch::job job = g.submit();
            g.add("count", [&count, token] { ++count; });
        }
        thrown_by(FILCH_WRONG_STATE, [&] { g.add("late", [] {}); });
    }
    CHECK(live == 1);
}

void test_cancel(filch::runtime &runtime)
{
    door end;
    filch_graph_desc named = FILCH_GRAPH_DESC_INIT;
    named.label = "long";
    filch::graph g = runtime.graph(named);
    for (int k = 0; k < 30; ++k) {
        g.add("waits", [&end] { end.pass(); });
    }
    filch::job job = g.submit();
    end.await(2);
    job.cancel();
    end.open();
    const filch::error told = thrown_by(FILCH_CANCELLED, [&] { job.wait(); });
    CHECK(told.cause() == nullptr);
    CHECK(std::string(told.what()) == "CANCELLED: job 'long' was cancelled");
    CHECK(std::string(told.label()) == "long");
    CHECK(job.info().skipped > 0);
}

/* Jobs end inside tasks: of the task's own job, where no wait is possible, and of another. */
void test_inside(filch::runtime &runtime)
{
    std::vector<double> values(1, 0);
    filch::data x = runtime.data(values);
    filch::graph inner = runtime.graph();
    inner.add(
        "inner", [](filch::view<double> v) { v[0] += 1; }, filch::readwrite(x));
    std::unique_ptr<filch::job> own;
    door stored;
    filch::graph outer = runtime.graph();
    outer.add("outer", [&] {
        {
            filch::job job = inner.submit();
        }
        inner.run();
        stored.pass();
        own.reset();
    });
    own = std::make_unique<filch::job>(outer.submit());
    stored.open();
    runtime.drain();
    CHECK(values[0] >= 1 && values[0] <= 2);
}

/* The runtime ends while functions of a detached job and of a job run. */
void test_runtime_ends()
{
    std::atomic<int> live{0}, started{0}, ended{0};
    const counted token(live);
    {
        door end;
        std::unique_ptr<filch::runtime> runtime = std::make_unique<filch::runtime>("host:2");
        filch::graph g = runtime->graph(), h = runtime->graph();
        for (int k = 0; k < 20; ++k) {
            const auto body = [&, token] {
                ++started;
                end.pass();
                ++ended;
            };
            g.add("waits", body);
            h.add("waits", body);
        }
        filch::job job = g.submit();
        h.submit().detach();
        end.await(2);
        std::thread opener([&end] { end.open(); });
        runtime.reset();
        CHECK(started == ended && started >= 2);
        CHECK(job.status() == FILCH_INVALID_HANDLE);
        opener.join();
    }
    CHECK(live == 1);
}

/* The host's thread runs the workers, also in destructors. */
void test_polled()
{
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    desc.devices = "host:2";
    desc.drive = FILCH_DRIVE_POLL;
    filch::runtime runtime(desc);
    std::vector<double> values(10, 0);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch::graph g = runtime.graph();
    for (std::uint32_t i = 0; i < 10; ++i) {
        g.add(
            "one", [](filch::view<double> v) { v[0] = 1; }, filch::write(x.tile(i)));
    }
    filch::job job = g.submit();
    while (job.status() == FILCH_NOT_READY) {
        runtime.poll(0);
    }
    job.wait();
    CHECK(values[9] == 1);
    {
        filch::job unwanted = g.submit();
    }
    g.submit().wait();
    CHECK(!runtime.poll_wait(0.001));
    filch::job again = g.submit();
    while (again.status() == FILCH_NOT_READY) {
        CHECK(runtime.poll_wait(again));
    }
    CHECK(runtime.poll_wait(again));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { runtime.poll_wait(std::nan("")); });
    again.wait();
}

} // namespace

void test_repeat(filch::runtime &runtime)
{
    std::vector<double> values(1, 1);
    filch::data x = runtime.data(values);
    filch::graph g = runtime.graph();
    g.add(
        "half", [](filch::view<double> v) { v[0] /= 2; }, filch::readwrite(x));
    filch::job first = g.repeat([](std::uint64_t run) { return run == 3; });
    first.wait();
    CHECK(values[0] == 0.125 && first.info().runs == 3);
    filch_repeat_desc lagging = FILCH_REPEAT_DESC_INIT;
    lagging.lag = 1;
    filch::job second = g.repeat(
        values[0], [](std::uint64_t, const double &value) { return value < 1e-3; }, lagging);
    second.wait();
    CHECK(second.info().runs == 8 && values[0] == 0.125 / 256);
    filch::job third = g.repeat([](std::uint64_t run) -> bool {
        if (run == 2) {
            throw std::runtime_error("no convergence");
        }
        return false;
    });
    const filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] { third.wait(); });
    CHECK(contains(failed.what(), "the predicate of the job about run 2: no convergence"));
    CHECK(third.info().runs == 2 && failed.cause());
    bool (*none)(std::uint64_t) = nullptr;
    const filch::error refused = thrown_by(FILCH_INVALID_ARGUMENT, [&] { g.repeat(none).wait(); });
    CHECK(contains(refused.what(), "'until': the function is a null pointer"));
    const filch::job endless =
        g.repeat([](std::uint64_t) { return false; }); /* the end cancels it */
}

int main()
{
    filch::runtime runtime("host:2");
    test_wait(runtime);
    test_destructor(runtime);
    test_unwinding(runtime);
    test_detached(runtime);
    test_open(runtime);
    test_cancel(runtime);
    test_inside(runtime);
    test_repeat(runtime);
    test_runtime_ends();
    test_polled();
    std::printf("jobs: waits, and ends while functions run\n");
    return 0;
}
