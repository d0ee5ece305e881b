// SPDX-License-Identifier: Apache-2.0
// A tour of the C++ interface: what docs/cpp.md shows. The tests compile and run it.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <filch/filch.hpp>

static void require(bool is_right, const char *what)
{
    if (!is_right) {
        std::printf("wrong: %s\n", what);
        std::exit(1);
    }
}

static void first(std::vector<double> &x, std::vector<double> &y, double a)
{
    filch::runtime runtime("host"); // as FILCH_DEVICES would have it
    filch::data dx = runtime.data(filch::buffer(x).tiles(250));
    filch::data dy = runtime.data(filch::buffer(y).tiles(250));
    filch::graph graph = runtime.graph();
    for (std::uint32_t i = 0; i < dx.tile_rows(); ++i)
        graph.add("axpy",
                  [a](filch::view<const double> from, filch::view<double> to) {
                      for (std::uint64_t k = 0; k < to.rows; ++k)
                          to[k] += a * from[k];
                  },
                  filch::read(dx.tile(i)), filch::readwrite(dy.tile(i)));
    graph.run(); // as often as wanted
}

static void fail(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.graph();
    graph.add("root", [](filch::view<double> x) {
        for (double &each : x.column()) {
            if (each < 0)
                throw filch::failure(3, "a negative number: " + std::to_string(each));
            each = std::sqrt(each);
        }
    }, filch::readwrite(dx.tile(0)));
    try {
        graph.run();
    } catch (const filch::error &error) { // TASK_FAILED: root on host:0: a negative number: -1.000000
        std::printf("%s (code %d)\n", error.what(), error.code());
        require(error.status() == FILCH_TASK_FAILED && error.code() == 3, "the error");
    }
}

static void blocks(filch::runtime &runtime, filch::data &dx)
{
    double sum = 0;
    filch::graph graph = runtime.graph();
    graph.add(filch::task("sum").label("all of x").work(1000),
              [&sum](filch::views<const double> tiles) {
                  for (std::size_t t = 0; t < tiles.size(); ++t)
                      for (double each : tiles[t].column())
                          sum += each;
              },
              filch::read(dx.tiles()));
    graph.run();
    require(sum == 998, "the sum");
}

static void batches(filch::runtime &runtime, filch::data &dx, filch::data &dy)
{
    filch::batch smooth = runtime.batch(
        filch::items(1000).name("smooth").grain(50),
        [](filch::range r, filch::view<const double> x, filch::view<double> y) {
            for (std::uint64_t i = r.lo; i < r.hi; ++i) {
                const std::uint64_t k = i - x.row; // x begins an element before, but at the edge
                y[i - r.lo] = i == 0 || i == 999 ? x[k] : (x[k - 1] + x[k + 1]) / 2;
            }
        },
        filch::read(dx).halo(1, 1), filch::write(dy));
    smooth.run();
}

static void halos(filch::runtime &runtime, filch::data &dx, filch::data &dy)
{
    filch::graph graph = runtime.graph();
    const filch_halo halo = {1, 1, 0, 0}; // rows before and after, columns before and after
    for (std::uint32_t i = 0; i < dx.tile_rows(); ++i)
        graph.add("smooth",
                  [](filch::view<const double> x, filch::view<double> y) {
                      for (std::uint64_t j = 0; j < y.rows; ++j) {
                          const std::uint64_t k = j + y.row - x.row; // j or j + 1
                          y[j] = k == 0 || k + 1 == x.rows ? x[k] : (x[k - 1] + x[k + 1]) / 2;
                      }
                  },
                  filch::read(dx.tile(i), halo), filch::write(dy.tile(i)));
    graph.run();
}

static void open(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.open_graph();
    filch::job job = graph.submit();
    for (std::uint32_t i = 0; i < dx.tile_rows(); ++i) // tasks may run at once
        graph.add("twice", [](filch::view<double> x) { x[0] *= 2; }, filch::readwrite(dx.tile(i)));
    graph.close();
    job.wait(); // or job.wait_for(seconds), job.cancel(), job.detach()
}

static void look(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.graph();
    graph.add("set", [](filch::view<double> x) { x[0] = 7; }, filch::readwrite(dx.tile(1)));
    filch::job job = graph.submit();
    {
        filch::hold held = dx.acquire(FILCH_READ, dx.tiles(1, 2)); // behind the jobs so far
        require(held.view<const double>(1)[0] == 7, "the tile");
    } // later jobs may use the tile again
    job.wait();
}

// Stands for a library that receives messages, and calls back on a thread of its own.
template <class Done> static void start_receive(filch::view<double> into, Done done)
{
    std::thread([into, done = std::move(done)]() mutable {
        into[0] = 42;
        done(0);
    }).detach();
}

static void pending(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.graph();
    graph.add(filch::task("receive").pends(),
              [](filch::context here, filch::view<double> x) {
                  start_receive(x, [token = here.pend()](int code) mutable {
                      token.end(code, "the message is too long"); // on another thread
                  });
              },
              filch::readwrite(dx.tile(3)));
    graph.run();
}

static void spaces(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.graph();
    auto space = runtime.local([](std::uint32_t) { return std::vector<double>(250); }); // one a device
    for (std::uint32_t i = 0; i < dx.tile_rows(); ++i)
        graph.add("reverse",
                  [space](filch::context here, filch::view<double> x) {
                      std::vector<double> &mine = space.of(here);
                      std::reverse_copy(x.column().begin(), x.column().end(), mine.begin());
                      std::copy(mine.begin(), mine.end(), x.column().begin());
                  },
                  filch::readwrite(dx.tile(i)));
    graph.run();
}

static void report(filch::runtime &runtime, filch::data &dx)
{
    filch::graph graph = runtime.graph();
    graph.add("twice", [](filch::view<double> x) { x[0] *= 2; }, filch::readwrite(dx.tile(0)));
    runtime.trace_start();
    filch::job job = graph.submit();
    job.wait();
    job.print_report(stdout, graph); // where the time went
    runtime.report_write("tour-report.html"); // for a browser: all jobs since trace_start()
}

static const char source[] = R"(
    #include "filch/kernel.h"
    extern "C" __global__ void damp(filch_view x, filch_range rows, double factor)
    {
        for (unsigned long long i = filch_thread(); i < rows.hi - rows.lo; i += filch_threads())
            filch_at<double>(x, i) *= factor;
    })";

static void damp(filch::range, filch::view<double> x, const double &factor) // on a core of the host
{
    for (double &each : x.column())
        each *= factor;
}

static void kernels(filch::runtime &runtime, filch::data &dx)
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = source;
    cuda.entry = "damp";
    cuda.shape.grid[0] = 256;
    cuda.shape.block[0] = 128;
    auto kernel = runtime.kernel<damp>("damp", &cuda); // for GPUs and cores, as they are there
    runtime.batch(1000, kernel, 0.5, filch::readwrite(dx)).run();
}

// Second differences of a vector, by a sparse matrix.
static void sparse(filch::runtime &runtime, std::vector<double> &px, std::vector<double> &py)
{
    const int n = 1000;
    std::vector<int> starts(1), columns;
    std::vector<double> values;
    for (int i = 0; i < n; ++i) {
        for (int j = std::max(i - 1, 0); j < std::min(i + 2, n); ++j) {
            columns.push_back(j);
            values.push_back(i == j ? -2 : 1);
        }
        starts.push_back(static_cast<int>(columns.size()));
    }
    filch::graph graph = runtime.graph();
    const auto multiply = [](filch::csr_view<const double> a, filch::view<const double> x,
                             filch::view<double> y) {
        for (std::uint64_t i = 0; i < a.rows; ++i) {
            y[i] = 0;
            for (int k = a.pointers[i]; k < a.pointers[i + 1]; ++k)
                y[i] += a.values[k] * x[static_cast<std::uint64_t>(a.columns[k]) - x.row];
        }
    };
    filch::csr A = runtime.csr(filch::csr_buffer(starts, columns, values, 1000).blocks(7));
    filch::data x = runtime.data(filch::buffer(px).cuts(A.heights()));
    filch::data y = runtime.data(filch::buffer(py).cuts(A.heights()));
    for (std::uint32_t i = 0; i < A.blocks(); ++i)
        graph.add("multiply", multiply, filch::read(A.block(i)), filch::read(A.columns_of(i, x)),
                  filch::write(y.tile(i)));
    graph.run();
}

int main()
{
    std::vector<double> x(1000, 1), y(1000, 2);
    first(x, y, 3);
    require(y[0] == 5 && y[999] == 5, "axpy");
    filch::runtime runtime("host:2");
    x[5] = -1;
    filch::data dx = runtime.data(filch::buffer(x).tiles(250));
    filch::data dy = runtime.data(filch::buffer(y).tiles(250));
    fail(runtime, dx);
    blocks(runtime, dx);
    batches(runtime, dx, dy);
    require(y[4] == 0 && y[0] == 1 && y[999] == 1, "the batch");
    const std::vector<double> smooth = y;
    std::fill(y.begin(), y.end(), 0);
    halos(runtime, dx, dy);
    require(y == smooth, "the halos");
    open(runtime, dx);
    look(runtime, dx);
    kernels(runtime, dx);
    require(x[0] == 1 && x[250] == 3.5 && x[1] == 0.5, "the kernel");
    pending(runtime, dx);
    require(x[750] == 42, "the message");
    spaces(runtime, dx);
    require(x[249] == 1 && x[499] == 3.5 && x[999] == 42, "the reverse");
    report(runtime, dx);
    std::remove("tour-report.html");
    std::vector<double> squares(1000);
    for (std::size_t i = 0; i < squares.size(); ++i)
        squares[i] = static_cast<double>(i * i);
    sparse(runtime, squares, y);
    require(y[0] == 1 && y[1] == 2 && y[998] == 2, "the product");
    std::printf("as the page says\n");
    return 0;
}
