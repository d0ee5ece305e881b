/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/dense/lu_panel.cu, run by emulate.h with any number of blocks, of which some come late,
 * beside one column after the other as LAPACK's getf2 does it. */
#include "kernels/emulate.h"

#include <cfloat>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace device
{
#include "kernels/product.cuh"

#include "kernels/counters.cuh"

#include "kernels/dense/meeting.cuh"

#include "kernels/dense/strip.cuh"

#include "kernels/dense/lu_panel.cu"
} // namespace device

#include "kernels/dense/state.h"

typedef device::filch_view view;

static_assert(FL_LU_PANEL_WORDS == device::WORDS + 4 * device::PACKETS, "the state's size");

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return unsigned(seed >> 33) % below;
}

enum kind { PLAIN, TIES, ZEROS, EMPTY, NUMBERLESS, INFINITE, TINY, LAST, KINDS };

struct shape {
    unsigned m, n, row; /* of the panel, and rows above it */
    unsigned blocks, at_first;
    bool fits; /* in shared memory */
    kind what;
};

template <typename T> static std::vector<T> fill(const shape &s, unsigned ld)
{
    std::vector<T> a(size_t(ld) * s.n);
    for (T &x : a)
        x = s.what == TIES ? T(draw(2)) * 2 - 1 : T(draw(1u << 20)) / T(1 << 19) - 1;
    T *top = a.data() + s.row;
    for (unsigned i = 0; i < s.m; i++) {
        if (s.what == ZEROS) /* the first, and one that depends on two others */
            top[i] = 0;
        if (s.what == ZEROS && s.n > 5)
            top[i + 5 * size_t(ld)] = top[i + 3 * size_t(ld)];
        for (unsigned j = 0; j < s.n && s.what == EMPTY; j++)
            top[i + j * size_t(ld)] = 0;
        for (unsigned j = 0; j < s.n && s.what == TINY; j++)
            top[i + j * size_t(ld)] *= std::numeric_limits<T>::denorm_min() * 1024;
        /* The largest element of a column in its last row: all rows move. */
        for (unsigned j = 0; j < s.n && s.what == LAST; j++)
            top[i + j * size_t(ld)] += i + 1 + j == s.m ? T(4 * s.n) : 0;
    }
    T odd = s.what == NUMBERLESS ? std::numeric_limits<T>::quiet_NaN()
                                 : std::numeric_limits<T>::infinity();
    if (s.what == NUMBERLESS || s.what == INFINITE)
        for (unsigned k = 0; k < 3; k++)
            top[(k == 2 ? 0 : draw(s.m)) + size_t(draw(s.n)) * ld] = odd;
    return a;
}

/* LAPACK's getf2. */
template <typename T>
static int factor(T *a, unsigned ld, unsigned m, unsigned n, std::vector<int> &pivots)
{
    int info = 0;
    for (unsigned k = 0; k < m && k < n; k++) {
        T *x = a + size_t(k) * ld, most = std::fabs(x[k]);
        unsigned at = k;
        for (unsigned i = k + 1; i < m; i++)
            if (std::fabs(x[i]) > most) {
                most = std::fabs(x[i]);
                at = i;
            }
        pivots[k] = int(at) + 1;
        if (x[at] == 0) {
            info = info ? info : int(k) + 1;
        } else {
            for (unsigned j = 0; j < n && at != k; j++)
                std::swap(a[k + size_t(j) * ld], a[at + size_t(j) * ld]);
            T inverse = 1 / x[k];
            for (unsigned i = k + 1; i < m; i++)
                x[i] =
                    std::fabs(x[k]) < std::numeric_limits<T>::min() ? x[i] / x[k] : x[i] * inverse;
        }
        for (unsigned j = k + 1; j < n; j++)
            for (unsigned i = k + 1; i < m; i++)
                a[i + size_t(j) * ld] -= x[i] * a[k + size_t(j) * ld];
    }
    return info;
}

/* Elements whose products are added up in another order, beside those of one precision more. */
template <typename T> static bool is_near(T got, T wanted, T most)
{
    if (!(std::fabs(wanted) <= std::numeric_limits<T>::max()))
        return true; /* what NaNs and infinities come to depends on the order */
    return std::fabs(got - wanted) <= most;
}

static bool complain(const shape &s, const char *text, long long at)
{
    std::printf("%u x %u from row %u, %u blocks, %u at first, kind %d, %s: %s (%lld)\n", s.m, s.n,
                s.row, s.blocks, s.at_first, s.what, s.fits ? "in shared memory" : "in place", text,
                at);
    return false;
}

/* What the columns from `first` on leave of those on their right. */
template <typename T>
static void leave(T *a, unsigned ld, const shape &s, unsigned first, unsigned count)
{
    for (unsigned j = first + count; j < s.n; j++)
        for (unsigned k = first; k < first + count; k++)
            for (unsigned i = first + count; i < s.m; i++)
                a[i + size_t(j) * ld] -= a[i + size_t(k) * ld] * a[k + size_t(j) * ld];
}

/* Group by group, with the products between. */
template <typename T>
static void run(const shape &s, const view &matrix, const view &list, const view &result,
                const view &words)
{
    T *top = (T *)matrix.ptr + s.row;
    for (unsigned first = 0; first < list.rows; first += device::GROUP) {
        unsigned left = unsigned(list.rows) - first;
        unsigned count = left < unsigned(device::GROUP) ? left : unsigned(device::GROUP);
        device::panel_args args = {nullptr, s.row + first, count, {}};
        emulate::launch_together(s.blocks, unsigned(device::THREADS), s.fits ? 1 << 20 : 80 << 10,
                                 s.at_first, [&] {
                                     if constexpr (sizeof(T) == sizeof(double))
                                         device::fl_lu_panel_f64(matrix, list, result, words, args);
                                     else
                                         device::fl_lu_panel_f32(matrix, list, result, words, args);
                                 });
        leave(top, unsigned(matrix.ld), s, first, count);
    }
}

template <typename T> static bool factors(const shape &s, std::vector<unsigned> &state)
{
    unsigned ld = s.row + s.m + 3, order = s.m < s.n ? s.m : s.n;
    std::vector<T> a = fill<T>(s, ld), wanted = a;
    std::vector<int> pivots(order), expected(order);
    int info = -1;
    int wanted_info = factor(wanted.data() + s.row, ld, s.m, s.n, expected);
    view matrix = {a.data(), s.row + s.m, s.n, ld, 0, 0, sizeof(T)};
    view list = {pivots.data(), order, 1, order, s.row, 0, sizeof(int)};
    view result = {&info, 1, 1, 1, 0, 0, sizeof(int)};
    view words = {state.data(), state.size(), 1, state.size(), 0, 0, sizeof(int)};
    run<T>(s, matrix, list, result, words);
    for (unsigned k = 0; k < device::WORDS; k++)
        if (k != device::EPOCH && state[k] != 0)
            return complain(s, "the state is not ready for the next launch", k);
    if (info != wanted_info)
        return complain(s, "info is wrong", info);
    for (unsigned k = 0; k < order; k++)
        if (pivots[k] != expected[k])
            return complain(s, "a pivot is wrong", k);
    T largest = 0;
    for (T x : wanted)
        largest = std::fabs(x) <= std::numeric_limits<T>::max() && std::fabs(x) > largest
                      ? std::fabs(x)
                      : largest;
    T most = 64 * std::numeric_limits<T>::epsilon() * T(order) * largest +
             std::numeric_limits<T>::denorm_min() * T(order);
    for (size_t k = 0; k < a.size(); k++)
        if (!is_near(a[k], wanted[k], most))
            return complain(s, "an element is wrong", (long long)k);
    return true;
}

int main()
{
    static const shape shapes[] = {
        {1, 1, 0, 1, 1, true, PLAIN},        {1, 1, 2, 3, 3, true, PLAIN},
        {5, 3, 0, 1, 1, true, PLAIN},        {3, 9, 1, 2, 2, true, PLAIN},
        {32, 32, 0, 2, 2, true, PLAIN},      {33, 32, 0, 3, 3, true, PLAIN},
        {70, 33, 0, 2, 2, true, PLAIN},      {97, 64, 5, 3, 3, true, PLAIN},
        {200, 140, 0, 3, 3, true, PLAIN},    {171, 140, 7, 2, 2, false, PLAIN},
        {40, 170, 0, 2, 2, true, PLAIN},     {133, 150, 0, 3, 3, true, PLAIN},
        {280, 257, 0, 1, 1, true, PLAIN},    {150, 150, 0, 4, 4, true, LAST},
        {700, 36, 0, 2, 2, true, PLAIN},     {300, 270, 4, 3, 2, true, ZEROS},
        {150, 129, 0, 5, 2, true, PLAIN},    {150, 129, 0, 5, 1, false, PLAIN},
        {90, 40, 0, 9, 9, true, PLAIN},      {100, 37, 0, 2, 2, true, TIES},
        {64, 64, 0, 3, 3, true, TIES},       {100, 37, 0, 3, 3, true, ZEROS},
        {140, 135, 3, 2, 2, true, ZEROS},    {60, 40, 0, 2, 2, true, EMPTY},
        {60, 40, 0, 2, 2, true, NUMBERLESS}, {60, 40, 0, 3, 3, true, NUMBERLESS},
        {60, 40, 0, 3, 3, true, INFINITE},   {60, 34, 0, 3, 3, true, TINY},
        {100, 100, 0, 3, 3, false, LAST},
    };
    bool good = true;
    std::vector<unsigned> state(FL_LU_PANEL_WORDS);
    for (const shape &s : shapes) {
        good = factors<double>(s, state) && good;
        good = factors<float>(s, state) && good;
    }
    /* Step numbers begin anew. */
    state[device::EPOCH] = device::STEPS_MOST + 1;
    good = factors<double>(shapes[7], state) && state[device::EPOCH] == 0 && good;
    good = factors<double>(shapes[7], state) && state[device::EPOCH] == 64 && good;
    return good ? 0 : 1;
}
