/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of docs/examples/supernodes for the fake driver: their CUDA source, run by emulate.h
 * with fewer threads. Preloaded; takes effect before main. */
#include "kernels/emulate.h"

#include <mutex>

extern "C" {
#include "fakecuda.h"
}

namespace device
{
#include "supernodes.cu"
} // namespace device

static std::mutex one_at_a_time;

static device::filch_view view(const filch_call *call, int at)
{
    device::filch_view v;
    static_assert(sizeof v == sizeof *call->views, "the layout is filch's");
    std::memcpy(&v, &call->views[at], sizeof v);
    return v;
}

static int fill(const filch_call *call)
{
    std::lock_guard<std::mutex> guard(one_at_a_time);
    device::step t;
    std::memcpy(&t, call->args, sizeof t);
    dim3 grid, block;
    grid.x = 2;
    block.x = 5;
    emulate::launch(grid, block, [&] {
        device::fill(view(call, 0), view(call, 1), view(call, 2), view(call, 3), view(call, 4), t);
    });
    return 0;
}

static int add(const filch_call *call)
{
    std::lock_guard<std::mutex> guard(one_at_a_time);
    device::step t;
    std::memcpy(&t, call->args, sizeof t);
    dim3 grid, block;
    grid.x = 2;
    grid.y = 2;
    block.x = 3;
    emulate::launch(grid, block,
                    [&] { device::add(view(call, 0), view(call, 1), view(call, 2), t); });
    return 0;
}

__attribute__((constructor)) static void announce()
{
    fakecuda_register_filch("fill", fill, 5, false, sizeof(device::step));
    fakecuda_register_filch("add", add, 3, false, sizeof(device::step));
}
