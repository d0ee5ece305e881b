/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels' CUDA sources, run by emulate.h. */
#include "kernels/emulate.h"

#include "kernels/cases.h"

/* The sources' own types of the same names and layouts. */
namespace device
{
#include "kernels/product.cuh"
namespace gemm
{
#include "kernels/gemm.cu"
}
namespace syrk
{
#include "kernels/syrk.cu"
}
#include "kernels/panel.cuh"
namespace trsm
{
#include "kernels/trsm.cu"
}
namespace potrf
{
#include "kernels/potrf.cu"
}
namespace potrf_trtri
{
#include "kernels/counters.cuh"

#include "kernels/potrf_trtri.cu"
} // namespace potrf_trtri
namespace mandelbrot
{
#include "kernels/mandelbrot.cu"
}
namespace nbody
{
#include "kernels/nbody.cu"
}
namespace jacobi
{
#include "kernels/jacobi.cu"
}
namespace axpy
{
#include "kernels/axpy.cu"
}
namespace sums
{
#include "kernels/sums.cu"
}
} // namespace device

using device::filch_range;
using view = device::filch_view;

static_assert(sizeof(view) == sizeof(filch_view), "the layout is filch's");

template <typename T> static T as(const void *args)
{
    static_assert(sizeof(T) % 8 == 0, "no padding at the end");
    T made;
    std::memcpy(&made, args, sizeof made);
    return made;
}

#define TASKS(suffix)                                                                           \
    {"gemm_" #suffix,                                                                           \
     [](view *v, filch_range, const void *a) {                                                  \
         static_assert(sizeof(device::gemm::gemm_args) == sizeof(filch_gemm_args), "");         \
         device::gemm::filch_gemm_##suffix(v[0], v[1], v[2], as<device::gemm::gemm_args>(a));   \
     }},                                                                                        \
        {"syrk_" #suffix,                                                                       \
         [](view *v, filch_range, const void *a) {                                              \
             static_assert(sizeof(device::syrk::syrk_args) == sizeof(filch_syrk_args), "");     \
             device::syrk::filch_syrk_##suffix(v[0], v[1], as<device::syrk::syrk_args>(a));     \
         }},                                                                                    \
        {"trsm_" #suffix, [](view *v, filch_range,                                              \
                             const void *) { device::trsm::filch_trsm_##suffix(v[0], v[1]); }}, \
        {"potrf_" #suffix, [](view *v, filch_range, const void *) {                             \
             device::potrf::filch_potrf_##suffix(v[0], v[1]);                                   \
         }},                                                                                    \
    {                                                                                           \
        "potrf_trtri_" #suffix, [](view *v, filch_range, const void *a) {                       \
            device::potrf_trtri::filch_potrf_trtri_##suffix(                                    \
                v[0], v[1], v[2], as<device::potrf_trtri::potrf_trtri_args>(a));                \
        }                                                                                       \
    }

#define BATCHES(suffix)                                                                         \
    {"nbody_" #suffix,                                                                          \
     [](view *v, filch_range r, const void *a) {                                                \
         static_assert(sizeof(device::nbody::nbody_args) == sizeof(filch_nbody_args), "");      \
         device::nbody::filch_nbody_##suffix(v[0], v[1], v[2], r,                               \
                                             as<device::nbody::nbody_args>(a));                 \
     }},                                                                                        \
        {"jacobi_" #suffix,                                                                     \
         [](view *v, filch_range r, const void *) {                                             \
             device::jacobi::filch_jacobi_##suffix(v[0], v[1], v[2], r);                        \
         }},                                                                                    \
        {"axpy_" #suffix,                                                                       \
         [](view *v, filch_range r, const void *a) {                                            \
             static_assert(sizeof(device::axpy::axpy_args) == sizeof(filch_axpy_args), "");     \
             device::axpy::filch_axpy_##suffix(v[0], v[1], r, as<device::axpy::axpy_args>(a));  \
         }},                                                                                    \
        {"dot_" #suffix, [](view *v, filch_range r, const void *a) {                            \
             static_assert(sizeof(device::sums::sums_args) == sizeof(filch_sums_args), "");     \
             device::sums::filch_dot_##suffix(v[0], v[1], v[2], r,                              \
                                              as<device::sums::sums_args>(a));                  \
         }},                                                                                    \
    {                                                                                           \
        "reduce_" #suffix, [](view *v, filch_range r, const void *a) {                          \
            device::sums::filch_reduce_##suffix(v[0], v[1], r, as<device::sums::sums_args>(a)); \
        }                                                                                       \
    }

static const struct {
    const char *name;
    void (*run)(view *v, filch_range range, const void *args);
} kernels[] = {
    TASKS(f64),
    TASKS(f32),
    {"mandelbrot",
     [](view *v, filch_range r, const void *a) {
         static_assert(sizeof(device::mandelbrot::mandelbrot_args) == sizeof(filch_mandelbrot_args),
                       "");
         device::mandelbrot::filch_mandelbrot(v[0], r, as<device::mandelbrot::mandelbrot_args>(a));
     }},
    BATCHES(f64),
    BATCHES(f32),
};

static int run_chunk(const kernel_case *c, uint64_t lo, uint64_t hi)
{
    filch_view views[CASE_VIEWS];
    view passed[CASE_VIEWS];
    filch_shape shape = {};
    filch_call call = cases_call(c, lo, hi, views);
    int code = c->kernel->cuda->shape_of(&call, &shape);
    if (code != 0)
        return code;
    std::memcpy(passed, views, sizeof passed);
    auto dim = [](const uint32_t *n) { return dim3{n[0] ? n[0] : 1, n[1] ? n[1] : 1, 1}; };
    for (const auto &kernel : kernels)
        if (std::strcmp(kernel.name, c->kernel->name) == 0) {
            emulate::launch(dim(shape.grid), dim(shape.block), [&] {
                kernel.run(passed, {lo, hi}, c->args);
            });
            return 0;
        }
    std::fprintf(stderr, "no kernel %s\n", c->kernel->name);
    std::abort();
}

/* Batches in two chunks, as two devices would run them. */
static int run(const kernel_case *c, void *)
{
    uint64_t cut = c->items / 3;
    int code = cut > 0 ? run_chunk(c, 0, cut) : 0;
    return code != 0 ? code : run_chunk(c, cut, c->items);
}

int main()
{
    int wrong = cases_run(run, nullptr);
    std::fprintf(stderr, "%d cases wrong\n", wrong);
    return wrong != 0;
}
