// SPDX-License-Identifier: Apache-2.0
// Devices: whether they take part, their memory and links, and measured speeds.
#include "check.hpp"

namespace
{

void test_presence(filch::runtime &runtime)
{
    CHECK(runtime.presence(1) == FILCH_PRESENCE_THERE);
    runtime.withdraw(1);
    while (runtime.presence(1) == FILCH_PRESENCE_LEAVING) {
        std::this_thread::yield();
    }
    CHECK(runtime.presence(1) == FILCH_PRESENCE_WITHDRAWN);
    std::atomic<int> elsewhere{0};
    filch::graph g = runtime.graph();
    for (int k = 0; k < 40; ++k) {
        g.add("here", [&elsewhere](filch::context here) { elsewhere += here.device() != 0; });
    }
    g.run();
    CHECK(elsewhere == 0);
    runtime.readmit(1);
    CHECK(runtime.presence(1) == FILCH_PRESENCE_THERE);
}

void test_memory(filch::runtime &runtime)
{
    CHECK(runtime.memory(0).size == sizeof(filch_memory_stats));
    runtime.trim(0);
    runtime.trim(1, 1U << 20);
    CHECK(runtime.link(0, 1).is_same && runtime.link(FILCH_LINK_HOST, 1).is_same);
    runtime.measure_links();
    CHECK(runtime.refused().empty() && runtime.usage().size == sizeof(filch_usage));
    CHECK(filch::version() == filch_version());
}

void test_refusals(filch::runtime &runtime)
{
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.withdraw(2); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.readmit(2); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.presence(2); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.memory(2); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.trim(2); });
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.link(0, 2); });
    filch::runtime moved = std::move(runtime);
    thrown_by(FILCH_INVALID_HANDLE, [&] { runtime.measure_links(); });
    thrown_by(FILCH_INVALID_HANDLE, [&] { runtime.refused(); });
    runtime = std::move(moved);
}

void one(filch::view<double> v)
{
    v[0] = 1;
}

void test_speeds(filch::runtime &runtime)
{
    const auto kernel = runtime.kernel<one>("one");
    CHECK(runtime.speed(kernel, 0).source == FILCH_SPEED_UNKNOWN);
    std::vector<double> values(200);
    filch::data x = runtime.data(filch::buffer(values).tiles(1));
    filch::graph g = runtime.graph();
    for (std::uint32_t k = 0; k < x.tile_rows(); ++k) {
        g.add(kernel, filch::write(x.tile(k)));
    }
    g.run();
    CHECK(runtime.speed(kernel, 0).timed + runtime.speed(kernel, 1).timed > 0);
    thrown_by(FILCH_BAD_INDEX, [&] { runtime.speed(kernel, 2); });
    CHECK(runtime.speeds().loaded == FILCH_NOT_FOUND);
    filch_runtime_desc desc = FILCH_RUNTIME_DESC_INIT;
    desc.devices = "host:1";
    desc.speeds = "devices-speeds";
    filch::runtime saving(desc);
    saving.save_speeds();
    CHECK(saving.speeds().saved == FILCH_OK && saving.speeds().saves == 1);
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_presence(runtime);
    test_memory(runtime);
    test_speeds(runtime);
    test_refusals(runtime);
    CHECK(std::remove("devices-speeds") == 0);
    std::printf("devices: presence, memory, links and speeds\n");
    return 0;
}
