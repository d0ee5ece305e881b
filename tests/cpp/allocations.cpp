// SPDX-License-Identifier: Apache-2.0
// Allocations of the C++ interface, counted where operator new is: filch's own go elsewhere.
#include <new>

#include "check.hpp"

namespace
{

std::atomic<std::uint64_t> allocations{0}, ended{0};

/* How many allocations a call makes. */
template <class Call> std::uint64_t count(const Call &call)
{
    const std::uint64_t before = allocations;
    call();
    return allocations - before;
}

/* How many allocations are alive. */
std::uint64_t alive()
{
    return allocations - ended;
}

/* A handle ends with its last user, also where that is a hold or a partition. */
void test_ends(filch::runtime &runtime)
{
    std::vector<double> values(8, 0);
    const auto make = [&] { return std::make_unique<filch::data>(runtime.data(values)); };
    const std::uint64_t before = alive();
    {
        std::unique_ptr<filch::data> x = make();
        filch::hold held = x->acquire(FILCH_READ);
        x.reset();
        CHECK(alive() > before);
        held.release();
        CHECK(alive() == before);
    }
    {
        std::unique_ptr<filch::data> x = make();
        const filch::hold held = x->acquire(FILCH_READ);
        x.reset();
    }
    CHECK(alive() == before);
    {
        std::unique_ptr<filch::data> x = make();
        const filch::data halves = x->partition(4);
        x.reset();
    }
    CHECK(alive() == before);
}

} // namespace

/* Not inlined: GCC would take new and free, or malloc and delete, for a pair of their own. */
[[gnu::noinline]] void *operator new(std::size_t size)
{
    ++allocations;
    if (void *made = std::malloc(size)) {
        return made;
    }
    throw std::bad_alloc();
}

[[gnu::noinline]] void operator delete(void *pointer) noexcept
{
    ended += pointer != nullptr;
    std::free(pointer);
}

[[gnu::noinline]] void operator delete(void *pointer, std::size_t) noexcept
{
    ended += pointer != nullptr;
    std::free(pointer);
}

int main()
{
    constexpr std::uint32_t tasks = 1000;
    std::vector<double> values(tasks, 0);
    filch::runtime runtime("host:2");
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch::graph plain = runtime.graph(), kept = runtime.graph();
    const double factor = 2;
    const auto add_plain = [&](std::uint32_t i) {
        plain.add(
            "plain",
            [factor, i, &values](filch::view<double> v) { v[0] += factor * i + values[i]; },
            filch::readwrite(x.tile(i)));
    };
    const auto shared = std::make_shared<double>(factor);
    const auto add_kept = [&](std::uint32_t i) {
        kept.add(
            "kept", [shared](filch::view<double> v) { v[0] += *shared; },
            filch::readwrite(x.tile(i)));
    };
    add_plain(0); /* the kind's first task makes a codelet */
    add_kept(0);
    CHECK(count([&] {
              for (std::uint32_t i = 1; i < tasks; ++i) {
                  add_plain(i);
              }
          }) == 0);
    CHECK(count([&] {
              for (std::uint32_t i = 1; i < tasks; ++i) {
                  add_kept(i);
              }
          }) == tasks - 1);
    filch::batch batch = runtime.batch(
        tasks, [](filch::range, filch::view<double> v) { v[0] = 0; }, filch::write(x));
    CHECK(count([&] {
              for (int k = 0; k < 10; ++k) {
                  plain.run();
                  kept.run();
                  batch.run();
              }
          }) == 0);
    CHECK(count([&] { plain.submit().wait(); }) == 1); /* the job, whatever the tasks */
    test_ends(runtime);
    std::printf("allocations: none a task, one with a capture that needs a destructor\n");
    return 0;
}
