/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/dense/split.cu, run by emulate.h: parts are where they belong, are short enough for TF32,
 * and add up. */
#include "kernels/emulate.h"

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace device
{
#include "kernels/dense/split.cu"
} // namespace device

static uint64_t seed = 1;

/* Of all magnitudes; some are 0, infinite, tiny or no numbers. */
static float draw()
{
    static const float special[] = {0, -0.0f, 1, INFINITY, -INFINITY, NAN, 1e-44f, FLT_MAX};
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    unsigned bits = unsigned(seed >> 32);
    if (bits % 16 == 0)
        return special[bits / 16 % 8];
    float value = float(int(bits)) / float(1u << 31);
    return std::ldexp(value, int(seed >> 20 & 63) - 32);
}

static bool is_short(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return (bits & 0x1fff) == 0;
}

static bool is_cut(float x, float upper, float lower)
{
    if (std::isnan(x))
        return std::isnan(upper + lower);
    if (std::isinf(x) || std::fabs(x) == FLT_MAX) /* the latter is cut towards 0 */
        return is_short(upper) && upper + lower == x;
    return is_short(upper) && upper + lower == x &&
           std::fabs(lower) <= std::fabs(x) * float(0x1p-11) + FLT_MIN;
}

static bool fails(const char *what, size_t row, size_t order)
{
    std::printf("%s, row %zu, order %zu: wrong\n", what, row, order);
    return false;
}

static device::filch_view view_of(float *at, size_t rows, size_t cols, size_t ld)
{
    return {at, rows, cols, ld, 0, 0, sizeof *at};
}

static bool cuts_left(size_t rows, size_t row, size_t order, unsigned blocks)
{
    size_t ld = rows + 5;
    std::vector<float> from(ld * order), to(rows * 3 * order, 7);
    for (float &x : from)
        x = draw();
    device::split_args args{};
    args.row = row;
    args.order = order;
    dim3 grid, block;
    grid.x = blocks;
    grid.y = unsigned(order);
    block.x = device::THREADS;
    emulate::launch(grid, block, [&] {
        device::fl_split_left(view_of(from.data(), rows, order, ld),
                              view_of(to.data(), rows, 3 * order, rows), args);
    });
    for (size_t j = 0; j < order; j++)
        for (size_t i = 0; i < rows; i++) {
            float upper = to[i + j * rows], lower = to[i + (j + order) * rows];
            float again = to[i + (j + 2 * order) * rows];
            bool is_below = i >= row + order;
            if (is_below ? !is_cut(from[i + j * ld], upper, lower) ||
                               std::memcmp(&upper, &again, sizeof again) != 0
                         : upper != 7 || lower != 7 || again != 7)
                return fails("left", row, order);
        }
    return true;
}

static bool cuts_right(size_t rows, size_t cols, size_t row, size_t order)
{
    size_t ld = rows + 1, height = 3 * order + 2;
    std::vector<float> from(ld * cols), to(height * cols, 7);
    for (float &x : from)
        x = draw();
    device::split_args args{};
    args.row = row;
    args.order = order;
    dim3 grid, block;
    grid.x = unsigned(cols);
    block.x = device::THREADS;
    emulate::launch(grid, block, [&] {
        device::fl_split_right(view_of(from.data(), rows, cols, ld),
                               view_of(to.data(), height, cols, height), args);
    });
    for (size_t j = 0; j < cols; j++) {
        const float *part = &to[j * height];
        for (size_t i = 0; i < order; i++)
            if (!is_cut(from[row + i + j * ld], part[i], part[i + 2 * order]) ||
                std::memcmp(&part[i], &part[i + order], sizeof *part) != 0)
                return fails("right", row, order);
        if (part[3 * order] != 7 || part[3 * order + 1] != 7)
            return fails("right, beyond", row, order);
    }
    return true;
}

int main()
{
    static const size_t shapes[][3] = {{1, 0, 1},     {5, 0, 2},     {40, 8, 16},   {700, 0, 32},
                                       {700, 512, 3}, {700, 696, 4}, {3000, 64, 64}};
    bool good = true;
    for (const auto &s : shapes) {
        good = cuts_left(s[0], s[1], s[2], 1) && cuts_left(s[0], s[1], s[2], 3) && good;
        good = cuts_right(s[0], 7, s[1], s[2]) && good;
    }
    return good ? 0 : 1;
}
