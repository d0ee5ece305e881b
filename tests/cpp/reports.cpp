// SPDX-License-Identifier: Apache-2.0
// Reports and traces, and values of devices.
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "check.hpp"

namespace
{

std::string contents(const std::string &path)
{
    std::ifstream file(path);
    CHECK(file.good());
    std::ostringstream text;
    text << file.rdbuf();
    CHECK(std::remove(path.c_str()) == 0);
    return text.str();
}

void test_report(filch::runtime &runtime)
{
    filch::graph g = runtime.graph(), other = runtime.graph();
    std::atomic<int> count{0};
    for (int k = 0; k < 20; ++k) {
        g.add("count", [&count] { ++count; });
    }
    filch::job job = g.submit();
    job.wait();
    const filch_report report = job.report();
    CHECK(report.status == FILCH_OK && report.device_count == 2 && report.path_ns == 0);
    CHECK(job.report(g).wall_ns == report.wall_ns);
    std::uint64_t sum = 0;
    for (const filch_losses &each : job.losses()) {
        sum += each.wall_ns;
    }
    CHECK(sum == report.total.wall_ns);
    for (bool has_path : {false, true}) {
        std::FILE *file = std::tmpfile();
        CHECK(file);
        if (has_path) {
            job.print_report(file, g);
        } else {
            job.print_report(file);
        }
        CHECK(std::ftell(file) > 100);
        std::rewind(file);
        char line[200] = "";
        CHECK(std::fgets(line, sizeof line, file) && std::strstr(line, "OK"));
        thrown_by(FILCH_INVALID_ARGUMENT, [&] { job.print_report(file, other); });
        std::fclose(file);
    }
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { job.print_report(nullptr); });
    thrown_by(FILCH_INVALID_ARGUMENT, [&] { (void)job.report(other); });
    filch::job repeated = g.repeat([](std::uint64_t run) { return run == 2; });
    repeated.wait();
    thrown_by(FILCH_WRONG_STATE, [&] { (void)repeated.report(); });
    job.detach();
    thrown_by(FILCH_INVALID_HANDLE, [&] { (void)job.losses(); });
}

void test_trace()
{
    filch::runtime runtime("host:2");
    filch::graph g = runtime.graph();
    g.add(filch::task("named").label("a label"), [] {});
    g.add("other", [] {});
    thrown_by(FILCH_WRONG_STATE, [&] { runtime.trace_write("reports-trace.json"); });
    thrown_by(FILCH_WRONG_STATE, [&] { runtime.report_write("reports-report.html"); });
    runtime.trace_start();
    filch_submit_desc submit = FILCH_SUBMIT_DESC_INIT;
    submit.label = "recorded";
    g.run(submit);
    runtime.trace_stop();
    submit.label = "lost";
    g.run(submit);
    runtime.trace_write("reports-trace.json");
    runtime.report_write("reports-report.html");
    const std::string trace = contents("reports-trace.json");
    CHECK(contains(trace, "a label") && contains(trace, "recorded") && !contains(trace, "lost\""));
    CHECK(contains(contents("reports-report.html"), "recorded"));
    const filch::error failed =
        thrown_by(FILCH_IO, [&] { runtime.report_write("nowhere/report.html"); });
    CHECK(contains(failed.what(), "nowhere/report.html"));
    thrown_by(FILCH_IO, [&] { runtime.trace_write("nowhere/trace.json"); });
}

/* Neither moves nor copies. */
class workspace
{
  public:
    workspace(std::atomic<int> &live, std::uint32_t device) : of(device), live_(live)
    {
        ++live_;
    }
    workspace(const workspace &) = delete;
    workspace &operator=(const workspace &) = delete;
    ~workspace()
    {
        --live_;
    }

    const std::uint32_t of;
    std::atomic<int> uses{0};

  private:
    std::atomic<int> &live_;
};

std::atomic<int> kernel_uses{0};
struct arguments {
    filch::local<workspace> space;
};
void use_space(filch::context here, const arguments &args)
{
    ++args.space.of(here).uses;
    ++kernel_uses;
}

void test_local()
{
    std::atomic<int> live{0}, wrong{0};
    {
        filch::runtime runtime("host:2");
        std::vector<std::uint32_t> devices;
        const auto space = runtime.local([&](std::uint32_t device) {
            devices.push_back(device);
            return workspace(live, device);
        });
        CHECK(live == 2 && devices == (std::vector<std::uint32_t>{0, 1}));
        filch::graph g = runtime.graph();
        for (int k = 0; k < 50; ++k) {
            g.add("uses", [space, &wrong](filch::context here) {
                workspace &mine = space.of(here);
                wrong += mine.of != here.device();
                ++mine.uses;
            });
        }
        g.run();
        runtime
            .batch(filch::items(100).grain(1),
                   [space, &wrong](filch::context here, filch::range) {
                       wrong += space.of(here).of != here.device();
                   })
            .run();
        filch::graph kernels = runtime.graph();
        kernels.add(runtime.kernel<use_space>("use_space"), arguments{space});
        kernels.run();
        CHECK(live == 2 && wrong == 0 && kernel_uses == 1);
    }
    CHECK(live == 0);
}

void test_local_fails()
{
    std::atomic<int> live{0};
    {
        filch::runtime runtime("host:2");
        const filch::error failed = thrown_by(FILCH_TASK_FAILED, [&] {
            (void)runtime.local([&](std::uint32_t device) {
                if (device == 1) {
                    throw filch::failure(9, "no room");
                }
                return workspace(live, device);
            });
        });
        CHECK(live == 0 && failed.code() == 9 && contains(failed.what(), "host:1: no room"));
        CHECK(failed.cause());
        const auto numbers = runtime.local([](std::uint32_t device) { return device; });
        filch::graph g = runtime.graph();
        std::atomic<int> wrong{0};
        g.add("number", [numbers, &wrong](filch::context here) {
            wrong += numbers.of(here) != here.device();
        });
        g.run();
        CHECK(wrong == 0);
    }
    filch::runtime gone("host:1");
    const filch::runtime moved = std::move(gone);
    thrown_by(FILCH_INVALID_HANDLE, [&] { (void)gone.local([](std::uint32_t) { return 0; }); });
    thrown_by(FILCH_INVALID_HANDLE, [&] { gone.trace_start(); });
}

} // namespace

int main()
{
    filch::runtime runtime("host:2");
    test_report(runtime);
    test_trace();
    test_local();
    test_local_fails();
    std::printf("reports: reports, traces, and values of devices\n");
    return 0;
}
