// SPDX-License-Identifier: Apache-2.0
// Pending tasks: ends on any thread, lost tokens, and functions that fail after they have pended.
#include <mutex>
#include <stdexcept>

#include "check.hpp"

namespace
{

/* Tokens that functions of tasks leave for others. */
class box
{
  public:
    void put(filch::pending token)
    {
        const std::lock_guard<std::mutex> lock(mutex_);
        tokens_.push_back(std::move(token));
    }
    filch::pending take()
    {
        for (;;) {
            {
                const std::lock_guard<std::mutex> lock(mutex_);
                if (!tokens_.empty()) {
                    filch::pending token = std::move(tokens_.back());
                    tokens_.pop_back();
                    return token;
                }
            }
            std::this_thread::yield();
        }
    }

  private:
    std::mutex mutex_;
    std::vector<filch::pending> tokens_;
};

const filch::task pends = filch::task("pends").pends();

void test_end(filch::runtime &runtime)
{
    box tokens;
    double value = 0, seen = 0;
    filch::data x = runtime.data(filch::buffer(&value, 1));
    filch::graph g = runtime.graph();
    g.add(
        pends,
        [&tokens](filch::context here, filch::view<double> v) {
            v[0] = 1;
            tokens.put(here.pend());
        },
        filch::readwrite(x));
    g.add(
        "sees", [&seen](filch::view<const double> v) { seen = v[0]; }, filch::read(x));
    for (bool is_other_thread : {false, true}) {
        seen = 0;
        filch::job job = g.submit();
        filch::pending token = tokens.take();
        CHECK(!job.wait_for(0) && token.status() == FILCH_NOT_READY && seen == 0);
        thrown_by(FILCH_INVALID_ARGUMENT, [&] { token.end(FILCH_PENDING); });
        value = 7;
        if (is_other_thread) {
            std::thread([&token] { token.end(); }).join();
        } else {
            token.end();
        }
        job.wait();
        CHECK(seen == 7 && job.info().pending == 0);
        CHECK(token.status() == FILCH_INVALID_HANDLE);
        thrown_by(FILCH_INVALID_HANDLE, [&] { token.end(); });
    }
}

void test_failure(filch::runtime &runtime)
{
    box tokens;
    filch::graph g = runtime.graph();
    g.add(pends, [&tokens](filch::context here) { tokens.put(here.pend()); });
    filch::job job = g.submit();
    tokens.take().end(5, "the message is too long");
    filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] { job.wait(); });
    CHECK(failed.code() == 5 && contains(failed.what(), "the message is too long"));
    filch::job second = g.submit();
    {
        filch::pending token = tokens.take(), empty;
        CHECK(empty.status() == FILCH_INVALID_HANDLE);
        thrown_by(FILCH_INVALID_HANDLE, [&] { empty.end(); });
        empty = std::move(token);
        CHECK(!second.wait_for(0));
    }
    failed = thrown_by(FILCH_TASK_FAILED, [&] { second.wait(); });
    CHECK(failed.code() == -1 && contains(failed.what(), "dropped without an end"));
    filch::job third = g.submit();
    const filch_pending handle = tokens.take().release();
    CHECK(!third.wait_for(0) && filch_pending_end(handle, 0, nullptr) == FILCH_OK);
    third.wait();
    CHECK(filch::pending().release().opaque == nullptr);
}

/* The first end counts: that of the token, or that of the function that fails. */
void test_function_fails(filch::runtime &runtime)
{
    box tokens;
    filch::graph thrown = runtime.graph();
    thrown.add(pends, [&tokens](filch::context here) {
        tokens.put(here.pend());
        throw std::runtime_error("after all");
    });
    filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] { thrown.run(); });
    CHECK(contains(failed.what(), "after all") && failed.cause());
    filch::pending late = tokens.take();
    CHECK(late.status() == FILCH_INVALID_HANDLE);
    thrown_by(FILCH_INVALID_HANDLE, [&] { late.end(); });
    filch::graph coded = runtime.graph();
    coded.add(pends, [&tokens](filch::context here) -> int {
        tokens.put(here.pend());
        return 3;
    });
    failed = thrown_by(FILCH_TASK_FAILED, [&] { coded.run(); });
    CHECK(failed.code() == 3 && tokens.take().status() == FILCH_INVALID_HANDLE);
    filch::graph early = runtime.graph();
    early.add(pends, [](filch::context here) -> int {
        here.pend().end(4, "the token was first");
        return FILCH_PENDING;
    });
    failed = thrown_by(FILCH_TASK_FAILED, [&] { early.run(); });
    CHECK(failed.code() == 4 && contains(failed.what(), "the token was first"));
    filch::graph fails_late = runtime.graph();
    fails_late.add(pends, [](filch::context here) {
        here.pend().end();
        throw std::runtime_error("too late");
    });
    fails_late.run();
}

/* Tokens that outlive their runtime, of tasks that a function's failure has ended. */
void test_runtime_ends()
{
    box tokens;
    {
        filch::runtime runtime("host:2");
        filch::graph g = runtime.graph();
        g.add(pends, [&tokens](filch::context here) {
            tokens.put(here.pend());
            throw std::runtime_error("fails");
        });
        thrown_by(FILCH_TASK_FAILED, [&] { g.run(); });
    }
    CHECK(tokens.take().status() == FILCH_INVALID_HANDLE);
    std::thread ending;
    {
        filch::runtime runtime("host:2");
        filch::graph g = runtime.graph();
        g.add(pends, [&tokens](filch::context here) { tokens.put(here.pend()); });
        filch::job job = g.submit();
        filch::pending token = tokens.take();
        ending = std::thread([kept = std::move(token)]() mutable {
            while (kept.status() == FILCH_NOT_READY) {
                std::this_thread::yield();
            }
            CHECK(kept.status() == FILCH_CANCELLED);
            kept.end();
        });
    } /* the destructor of the job cancels, and waits for the end */
    ending.join();
}

void test_captures(filch::runtime &runtime)
{
    std::atomic<int> live{0};
    box tokens;
    {
        const counted token(live);
        filch::graph g = runtime.open_graph();
        filch::job job = g.submit();
        for (int k = 0; k < 20; ++k) {
            g.add(pends, [&tokens, token](filch::context here) { tokens.put(here.pend()); });
        }
        for (int k = 0; k < 20; ++k) {
            tokens.take().end();
        }
        g.close();
        job.wait();
    }
    CHECK(live == 0);
}

void test_many_threads(filch::runtime &runtime)
{
    constexpr int count = 400;
    box tokens;
    std::vector<double> values(count, 0);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch::graph g = runtime.graph();
    for (std::uint32_t k = 0; k < count; ++k) {
        g.add(
            pends,
            [&tokens](filch::context here, filch::view<double> v) {
                v[0] += 1;
                tokens.put(here.pend());
            },
            filch::readwrite(x.tile(k)));
    }
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
        threads.emplace_back([&tokens] {
            for (int k = 0; k < 3 * count / 4; ++k) {
                tokens.take().end();
            }
        });
    }
    for (int k = 0; k < 3; ++k) {
        g.run();
    }
    for (std::thread &each : threads) {
        each.join();
    }
    CHECK(values == std::vector<double>(count, 3));
}

box of_kernels;
void pending_kernel(filch::context here, filch::view<double> v)
{
    v[0] += 1;
    of_kernels.put(here.pend());
}
void failing_kernel(filch::view<double> v)
{
    throw std::runtime_error("value " + std::to_string(static_cast<int>(v[0])));
}

void test_kernels(filch::runtime &runtime)
{
    double value = 1;
    filch::data x = runtime.data(filch::buffer(&value, 1));
    auto kernel = runtime.kernel<pending_kernel>("pending", nullptr, FILCH_CODELET_MAY_PEND);
    filch::graph g = runtime.graph();
    g.add(kernel, filch::readwrite(x));
    filch::job job = g.submit();
    of_kernels.take().end();
    job.wait();
    CHECK(value == 2);
    filch::graph failing = runtime.graph();
    failing.add(runtime.kernel<failing_kernel>("failing"), filch::readwrite(x));
    const filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] { failing.run(); });
    CHECK(contains(failed.what(), "value 2") && failed.code() == filch::thrown && !failed.cause());
}

void test_refusals(filch::runtime &runtime)
{
    filch::graph g = runtime.graph();
    g.add("may not pend", [](filch::context here) { (void)here.pend(); });
    filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] { g.run(); });
    CHECK(contains(failed.what(), "WRONG_STATE") &&
          contains(failed.what(), "FILCH_CODELET_MAY_PEND"));
    filch::graph twice = runtime.graph();
    twice.add(pends, [](filch::context here) {
        const filch::pending first = here.pend();
        const filch::pending second = here.pend();
    });
    failed = thrown_by(FILCH_TASK_FAILED, [&] { twice.run(); });
    CHECK(contains(failed.what(), "the task is pending already"));
    filch::graph drops = runtime.graph();
    drops.add(pends, [](filch::context here) { const filch::pending token = here.pend(); });
    failed = thrown_by(FILCH_TASK_FAILED, [&] { drops.run(); });
    CHECK(failed.code() == -1 && contains(failed.what(), "dropped without an end"));
    thrown_by(FILCH_INVALID_ARGUMENT, [&] {
        g = runtime.graph();
        g.add(pends.items(10), [](filch::context here, filch::range) { (void)here.pend(); });
    });
    filch_call call = {};
    call.runtime = runtime.handle();
    failed = thrown_by(FILCH_WRONG_STATE, [&] { (void)filch::context(call).pend(); });
    CHECK(contains(failed.what(), "the context is of no function"));
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_end(runtime);
    test_failure(runtime);
    test_function_fails(runtime);
    test_captures(runtime);
    test_many_threads(runtime);
    test_kernels(runtime);
    test_refusals(runtime);
    test_runtime_ends();
    std::printf("pending: tasks that end later, and tokens that are lost\n");
    return 0;
}
