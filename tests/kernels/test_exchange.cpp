/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/dense/exchange.cu, run by emulate.h, beside exchanges one after the other. */
#include "kernels/emulate.h"

#include <cstddef>
#include <cstdint>

namespace device
{
#include "kernels/dense/exchange.cu"
} // namespace device

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return unsigned(seed >> 33) % below;
}

/* Pivots of `count` rows from `row` on, of a matrix of so many rows: all kinds, or rows that many
 * pivots name. */
static std::vector<int> pivots_of(unsigned rows, unsigned row, unsigned count, bool is_crowded)
{
    std::vector<int> pivots(count);
    unsigned below = rows - row;
    for (unsigned k = 0; k < count; k++)
        pivots[k] = int(is_crowded && draw(2) ? below : k + 1 + draw(below - k));
    return pivots;
}

template <typename T>
static bool exchanges(unsigned rows, unsigned cols, unsigned row, unsigned count, bool is_crowded)
{
    unsigned ld = rows + 3;
    std::vector<T> a(size_t(ld) * cols), wanted;
    std::vector<int> pivots = pivots_of(rows, row, count, is_crowded);
    for (size_t k = 0; k < a.size(); k++)
        a[k] = T(k);
    wanted = a;
    for (unsigned k = 0; k < count; k++)
        for (unsigned c = 0; c < cols; c++)
            std::swap(wanted[row + k + size_t(c) * ld],
                      wanted[row + unsigned(pivots[k]) - 1 + size_t(c) * ld]);
    std::vector<int> from(size_t(2) * count, -1);
    device::filch_view matrix = {a.data(), rows, cols, ld, 0, 0, sizeof(T)};
    device::filch_view named = {pivots.data(), count, 1, count, row, 0, sizeof(int)};
    device::filch_view list = {from.data(), 2 * count, 1, 2 * count, 2 * row, 0, sizeof(int)};
    dim3 grid, block;
    grid.x = (2 * count + 255) / 256;
    block.x = 256;
    emulate::launch(grid, block,
                    [&] { device::fl_exchange_list(named, list, device::exchange_args{}); });
    grid.x = (cols + 3) / 4;
    emulate::launch(grid, block, [&] {
        if (sizeof(T) == sizeof(double))
            device::fl_exchange_f64(matrix, named, list, device::exchange_args{});
        else
            device::fl_exchange_f32(matrix, named, list, device::exchange_args{});
    });
    if (a == wanted)
        return true;
    std::printf("%u x %u, %u pivots from row %u: rows are not as exchanged one by one\n", rows,
                cols, count, row);
    return false;
}

int main()
{
    static const unsigned shapes[][4] = {{1, 1, 0, 1},       {5, 3, 2, 3},      {40, 9, 0, 17},
                                         {300, 5, 100, 32},  {600, 6, 0, 512},  {700, 2, 188, 512},
                                         {1024, 3, 0, 1024}, {1500, 4, 7, 1024}};
    bool good = true;
    for (const auto &s : shapes)
        for (int k = 0; k < 4; k++)
            good = (k < 2 ? exchanges<double>(s[0], s[1], s[2], s[3], k % 2 != 0)
                          : exchanges<float>(s[0], s[1], s[2], s[3], k % 2 != 0)) &&
                   good;
    return good ? 0 : 1;
}
