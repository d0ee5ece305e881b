/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel of docs/concepts.md, run by emulate.h with a few threads. */
#include "kernels/emulate.h"

#include <mutex>

extern "C" {
#include "page.h"
}

namespace device
{
#include "filch/kernel.h"

#include "sparse-matrices-3.functions.inc"
} // namespace device

int multiply_by_kernel(const filch_call *call)
{
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> guard(one_at_a_time);
    device::filch_view v[3];
    static_assert(sizeof *v == sizeof *call->views, "the layout is filch's");
    std::memcpy(v, call->views, sizeof v);
    dim3 grid, block;
    grid.x = 2;
    block.x = 32;
    emulate::launch(grid, block, [&] { device::multiply(v[0], v[1], v[2]); });
    return 0;
}
