// SPDX-License-Identifier: Apache-2.0
// Kernels, codelets and handles on GPUs: on the fake driver, beside a core of the host.
#include <cmath>

#include "check.hpp"
extern "C" {
#include "fakecuda.h"
}

namespace
{

/* What the CUDA kernel "smooth" is to the fake driver. */
int twin(const filch_call *call)
{
    double omega = *static_cast<const double *>(call->args);
    double *x = static_cast<double *>(call->views[0].ptr);
    const double *r = static_cast<const double *>(call->views[1].ptr);
    for (std::uint64_t i = 0; i < call->hi - call->lo; ++i) {
        x[i] += omega * r[i];
    }
    return 0;
}

void smooth(filch::range items, filch::view<double> x, filch::view<const double> r,
            const double &omega)
{
    for (std::uint64_t i = 0; i < items.size(); ++i) {
        x[i] += omega * r[i];
    }
}

const char source[] = "#include \"filch/kernel.h\"\n"
                      "extern \"C\" __global__ void smooth(filch_view x, filch_view r,\n"
                      "                                  filch_range items, double omega) {}\n";

filch_cuda_desc describe()
{
    filch_cuda_desc cuda = FILCH_CUDA_DESC_INIT;
    cuda.source = source;
    cuda.entry = "smooth";
    cuda.shape.grid[0] = 64;
    cuda.shape.block[0] = 128;
    return cuda;
}

void test_batches(const char *devices)
{
    constexpr std::uint64_t count = 200000;
    filch::runtime runtime(devices);
    std::vector<double> x(count, 1), r(count, 2);
    filch::data dx = runtime.data(filch::buffer(x).tiles(4096).managed());
    filch::data dr = runtime.data(filch::buffer(r).tiles(4096).managed());
    filch_cuda_desc cuda = describe();
    auto kernel = runtime.kernel<smooth>("smooth", &cuda);
    filch::batch step = runtime.batch(count, kernel, 0.5, filch::readwrite(dx), filch::read(dr));
    for (int k = 0; k < 5; ++k) {
        step.run();
    }
    runtime.broadcast(dr).wait();
    filch::hold held = dx.acquire(FILCH_READ, dx.tiles(0, 2));
    CHECK(held.view<const double>(1)[7] == 6);
    held.release();
    dx.acquire(FILCH_READ).release();
    for (double each : x) {
        CHECK(each == 6);
    }
    /* A job that runs on GPUs when its owner ends. */
    {
        filch::job job = step.submit();
    }
    step.run();
}

/* A lambda runs beside kernels, on the host's core, on tiles that GPUs wrote. */
void test_graph()
{
    filch::runtime runtime("cuda,host:1");
    std::vector<double> x(4000, 1), r(4000, 2);
    filch::data dx = runtime.data(filch::buffer(x).tiles(1000));
    filch::data dr = runtime.data(filch::buffer(r).tiles(1000));
    filch::data sums = runtime.data(filch::buffer::without<double>(1).label("sums"));
    filch_cuda_desc cuda = describe();
    auto kernel = runtime.kernel<smooth>("smooth", &cuda);
    filch::graph g = runtime.graph();
    for (std::uint32_t i = 0; i < 4; ++i) {
        g.add(kernel.items(1000), 0.5, filch::readwrite(dx.tile(i)), filch::read(dr.tile(i)));
    }
    g.add(
        "sum",
        [](filch::view<double> sum, filch::views<const double> all) {
            sum[0] = 0;
            for (std::size_t k = 0; k < all.size(); ++k) {
                for (double each : all[k].column()) {
                    sum[0] += each;
                }
            }
        },
        filch::write(sums), filch::read(dx.tiles()));
    g.run();
    filch::hold held = sums.acquire(FILCH_READ);
    CHECK(held.view<const double>()[0] == 8000);
}

/* GPUs alone run no lambda; a source that does not compile says so. */
void test_refused()
{
    filch::runtime runtime("cuda");
    CHECK(runtime.device_count() == 2 && runtime.device(0).backend == FILCH_BACKEND_CUDA);
    std::vector<double> x(10, 1);
    filch::data dx = runtime.data(x);
    filch::graph g = runtime.graph();
    const filch::error none = thrown_by(FILCH_NO_DEVICE, [&] {
        g.add(
            "lambda", [](filch::view<double>) {}, filch::readwrite(dx));
    });
    CHECK(contains(none.what(), "lambda"));
    filch_cuda_desc cuda = describe();
    cuda.entry = "another";
    bool is_refused = false;
    try {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = "another";
        desc.cuda = &cuda;
        runtime.codelet(desc);
    } catch (const filch::error &caught) {
        is_refused = caught.details().text[0] != '\0';
    }
    CHECK(is_refused);
}

} // namespace

int main()
{
    fakecuda_register_filch("smooth", twin, 2, true, sizeof(double));
    test_batches("cuda");
    test_batches("cuda,host:1");
    test_graph();
    test_refused();
    std::printf("gpu: kernels, codelets and handles on two fake GPUs\n");
    return 0;
}
