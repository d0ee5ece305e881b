/* SPDX-License-Identifier: Apache-2.0 */
/* kernels/dense/qr_panel.cu, run by emulate.h with any number of blocks, of which some come late,
 * beside one reflector after the other as LAPACK's geqr2 makes them. */
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

#include "kernels/dense/qr_panel.cu"
} // namespace device

#include "kernels/dense/state.h"

typedef device::filch_view view;

static_assert(FL_QR_PANEL_WORDS == device::WORDS + 4 * device::PACKETS, "the state's size");

static uint64_t seed = 1;

static unsigned draw(unsigned below)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return unsigned(seed >> 33) % below;
}

enum kind { PLAIN, ZEROS, EMPTY, NUMBERLESS, INFINITE, TINY, HUGE_ONES, UNLIKE, UPPER };

struct shape {
    unsigned m, n, row; /* of the panel, and rows above it */
    unsigned blocks, at_first;
    kind what;
};

/* Factors of columns, by which those of UNLIKE differ. */
template <typename T> static T factor_of(const shape &s, unsigned j)
{
    const T steps[] = {1, std::numeric_limits<T>::min() * 4, std::numeric_limits<T>::max() / 4096};
    return s.what == TINY        ? std::numeric_limits<T>::denorm_min() * 4096
           : s.what == HUGE_ONES ? std::numeric_limits<T>::max() / 1024
           : s.what == UNLIKE    ? steps[j % 3]
                                 : T(1);
}

template <typename T> static std::vector<T> fill(const shape &s, unsigned ld)
{
    std::vector<T> a(size_t(ld) * s.n);
    for (T &x : a)
        x = T(draw(1u << 20)) / T(1 << 19) - 1;
    T *top = a.data() + s.row;
    for (unsigned j = 0; j < s.n; j++)
        for (unsigned i = 0; i < s.m; i++) {
            T &x = top[i + j * size_t(ld)];
            x *= factor_of<T>(s, j);
            bool is_zero = s.what == EMPTY || (s.what == ZEROS && (j % 5 == 0 || i > s.m / 2)) ||
                           (s.what == UPPER && i > j);
            x = is_zero ? T(0) : x;
        }
    T odd = s.what == NUMBERLESS ? std::numeric_limits<T>::quiet_NaN()
                                 : std::numeric_limits<T>::infinity();
    if (s.what == NUMBERLESS || s.what == INFINITE)
        for (unsigned k = 0; k < 2; k++)
            top[draw(s.m) + size_t(s.n / 2 + draw(s.n - s.n / 2)) * ld] = odd;
    return a;
}

static bool complain(const shape &s, const char *text, double at)
{
    std::printf("%u x %u from row %u, %u blocks, %u at first, kind %d: %s (%g)\n", s.m, s.n, s.row,
                s.blocks, s.at_first, s.what, text, at);
    return false;
}

/* What the tests compare: with as many digits as the host has. */
typedef std::vector<long double> column;

/* A column that reflectors [from, to) have been applied to, of v and tau; in reverse where they
 * are applied as Q. */
template <typename T>
static void apply(column &x, const std::vector<T> &v, unsigned ldv, const std::vector<T> &tau,
                  unsigned from, unsigned to, bool is_reverse)
{
    for (unsigned e = from; e < to; e++) {
        unsigned k = is_reverse ? from + to - 1 - e : e;
        long double sum = x[k];
        for (size_t i = k + 1; i < x.size(); i++)
            sum += x[i] * v[i + size_t(k) * ldv];
        sum *= tau[k];
        x[k] -= sum;
        for (size_t i = k + 1; i < x.size(); i++)
            x[i] -= sum * v[i + size_t(k) * ldv];
    }
}

template <typename T> struct result {
    std::vector<T> a, tau, v, t;
};

/* Columns of the panel beyond the group lose what its V and T say. */
template <typename T>
static void leave(const shape &s, result<T> &r, unsigned ld, unsigned tile, unsigned first,
                  unsigned count)
{
    for (unsigned j = first + count; j < s.n; j++) {
        std::vector<long double> w(count), u(count);
        T *x = r.a.data() + s.row + size_t(j) * ld;
        for (unsigned k = 0; k < count; k++)
            for (unsigned i = first; i < s.m; i++)
                w[k] += (long double)r.v[s.row + i + size_t(first + k) * ld] * x[i];
        for (unsigned k = 0; k < count; k++)
            for (unsigned i = 0; i < count; i++)
                u[k] += (long double)r.t[first + i + size_t(first + k) * tile] * w[i];
        for (unsigned i = first; i < s.m; i++) {
            long double sum = 0;
            for (unsigned k = 0; k < count; k++)
                sum += (long double)r.v[s.row + i + size_t(first + k) * ld] * u[k];
            x[i] = T(x[i] - sum);
        }
    }
}

/* Group by group, with what is left to other tasks between. */
template <typename T>
static void run(const shape &s, result<T> &r, unsigned ld, std::vector<unsigned> &state)
{
    unsigned order = unsigned(r.tau.size());
    std::vector<T> room(size_t(s.blocks + 1) * device::GROUP * device::W, T(7));
    view a = {r.a.data(), s.row + s.m, s.n, ld, 0, 0, sizeof(T)};
    view tau = {r.tau.data(), order, 1, order, s.row, 0, sizeof(T)};
    view v = {r.v.data(), s.row + s.m, order, ld, 0, 0, sizeof(T)};
    view t = {r.t.data(), order, order, order, 0, 0, sizeof(T)};
    view words = {state.data(), state.size(), 1, state.size(), 0, 0, sizeof(int)};
    view parts = {room.data(), room.size(), 1, room.size(), 0, 0, sizeof(T)};
    for (unsigned first = 0; first < order; first += device::GROUP) {
        unsigned left = order - first, most = unsigned(device::GROUP);
        unsigned count = left < most ? left : most;
        device::panel_args args = {nullptr, s.row + first, count, {}};
        emulate::launch_together(s.blocks, unsigned(device::THREADS), 99 << 10, s.at_first, [&] {
            if constexpr (sizeof(T) == sizeof(double))
                device::fl_qr_panel_f64(a, tau, v, t, words, parts, args);
            else
                device::fl_qr_panel_f32(a, tau, v, t, words, parts, args);
        });
        leave(s, r, ld, order, first, count);
    }
}

template <typename T> static bool is_number(T x)
{
    return std::fabs(x) <= std::numeric_limits<T>::max();
}

/* Q R is A, column by column, and Q's columns are orthogonal. */
template <typename T>
static bool multiplies(const shape &s, const std::vector<T> &input, const result<T> &r, unsigned ld)
{
    unsigned order = unsigned(r.tau.size());
    long double unit = std::numeric_limits<T>::epsilon(), most = 8 * unit * std::sqrt(order + 3.0L);
    std::vector<T> v(r.a.begin() + s.row, r.a.end());
    for (unsigned j = 0; j < s.n; j++) {
        column x(s.m);
        long double norm = 0, off = 0;
        for (unsigned i = 0; i < s.m && i <= j; i++)
            x[i] = v[i + size_t(j) * ld];
        apply(x, v, ld, r.tau, 0, order, true);
        for (unsigned i = 0; i < s.m; i++) {
            long double was = input[s.row + i + size_t(j) * ld];
            norm += was * was;
            off += (x[i] - was) * (x[i] - was);
        }
        long double least = std::numeric_limits<T>::denorm_min() * (long double)s.m;
        if (!(std::sqrt(off) <= most * std::sqrt(norm) + 8 * least))
            return complain(s, "a column of Q R is wrong", double(j));
    }
    for (unsigned j = 0; j < order; j++) {
        long double squares = 1;
        for (unsigned i = j + 1; i < s.m; i++)
            squares += (long double)v[i + size_t(j) * ld] * v[i + size_t(j) * ld];
        if (!(std::fabs(r.tau[j] * (2 - r.tau[j] * squares)) <= 16 * unit))
            return complain(s, "a reflector is not orthogonal", double(j));
    }
    return true;
}

/* V has ones and zeros, and T is I - V T V' of each group. */
template <typename T> static bool blocks_hold(const shape &s, const result<T> &r, unsigned ld)
{
    unsigned order = unsigned(r.tau.size()), most = unsigned(device::GROUP);
    for (unsigned j = 0; j < order; j++)
        for (unsigned i = 0; i < s.m; i++) {
            T wanted = i > j ? r.a[s.row + i + size_t(j) * ld] : T(i == j);
            if (r.v[s.row + i + size_t(j) * ld] != wanted)
                return complain(s, "V is not the reflectors", double(j));
        }
    for (unsigned j = 0; j < order; j++)
        for (unsigned i = j / most * most; i < order && i < (j / most + 1) * most; i++) {
            unsigned first = j / most * most;
            long double wanted = i == j ? r.tau[j] : 0; /* T (i, j) as LAPACK's larft */
            for (unsigned c = i; c < j; c++) {
                long double dot = 0;
                for (unsigned e = j; e < s.m; e++)
                    dot += (long double)r.v[s.row + e + size_t(c) * ld] *
                           r.v[s.row + e + size_t(j) * ld];
                wanted -= r.tau[j] * (long double)r.t[i + size_t(c) * order] * dot;
            }
            long double off = std::fabs(r.t[i + size_t(j) * order] - wanted);
            if (!(off <= 64 * std::numeric_limits<T>::epsilon() * (j - first + 4)))
                return complain(s, "T is wrong", double(j));
        }
    return true;
}

/* R and tau beside LAPACK's: signs, and what is 0. */
template <typename T>
static bool is_as_lapack_s(const shape &s, const std::vector<T> &input, const result<T> &r,
                           unsigned ld)
{
    unsigned order = unsigned(r.tau.size());
    std::vector<T> v(r.a.begin() + s.row, r.a.end());
    for (unsigned j = 0; j < order; j++) {
        column x(s.m);
        for (unsigned i = 0; i < s.m; i++)
            x[i] = input[s.row + i + size_t(j) * ld];
        apply(x, v, ld, r.tau, 0, j, false);
        long double below = 0, size = 0;
        for (unsigned i = j + 1; i < s.m; i++)
            below += x[i] * x[i];
        size = std::sqrt(below + x[j] * x[j]);
        T beta = v[j + size_t(j) * ld];
        bool is_zero = s.what == EMPTY || s.what == UPPER || (s.what == ZEROS && j % 5 == 0);
        if ((is_zero || j + 1 == s.m) && r.tau[j] != 0)
            return complain(s, "a column of zeros has a reflector", double(j));
        bool is_clear = std::fabs(x[j]) > size / 1024;
        if (r.tau[j] != 0 && is_clear && (x[j] > 0) == (beta > 0))
            return complain(s, "an element of R's diagonal has the wrong sign", double(j));
    }
    return true;
}

/* Columns before the first with what is no number have numbers, and that one has none at its end.
 */
template <typename T>
static bool numbers_stay(const shape &s, const std::vector<T> &input, const result<T> &r,
                         unsigned ld)
{
    for (unsigned j = 0; j < s.n; j++) {
        size_t first = s.row + size_t(j) * ld;
        bool was = true, is = true;
        for (size_t i = first; i < first + s.m; i++) {
            was = was && is_number(input[i]);
            is = is && is_number(r.a[i]);
        }
        if (was != is)
            return complain(s, "a number is lost, or what is none", double(j));
        if (!was)
            return true;
    }
    return true;
}

template <typename T> static bool factors(const shape &s, std::vector<unsigned> &state)
{
    unsigned ld = s.row + s.m + 3, order = s.m < s.n ? s.m : s.n;
    std::vector<T> input = fill<T>(s, ld);
    result<T> r = {input, std::vector<T>(order), std::vector<T>(size_t(ld) * order, T(5)),
                   std::vector<T>(size_t(order) * order, T(5))};
    run<T>(s, r, ld, state);
    for (unsigned k = 0; k < device::WORDS; k++)
        if (k != device::EPOCH && state[k] != 0)
            return complain(s, "the state is not ready for the next launch", k);
    for (size_t k = 0; k < input.size(); k++)
        if (k % ld < s.row && r.a[k] != input[k])
            return complain(s, "a row above the panel is written", double(k));
    if (s.what == NUMBERLESS || s.what == INFINITE)
        return numbers_stay(s, input, r, ld);
    return multiplies(s, input, r, ld) && blocks_hold(s, r, ld) && is_as_lapack_s(s, input, r, ld);
}

int main()
{
    static const shape shapes[] = {
        {1, 1, 0, 1, 1, PLAIN},        {1, 1, 2, 3, 3, PLAIN},       {5, 3, 0, 1, 1, PLAIN},
        {3, 9, 1, 2, 2, PLAIN},        {32, 32, 0, 2, 2, PLAIN},     {33, 32, 0, 3, 3, PLAIN},
        {70, 33, 0, 2, 2, PLAIN},      {97, 64, 5, 3, 3, PLAIN},     {200, 140, 0, 3, 3, PLAIN},
        {171, 140, 7, 2, 2, PLAIN},    {40, 170, 0, 2, 2, PLAIN},    {133, 150, 0, 3, 3, PLAIN},
        {280, 257, 0, 1, 1, PLAIN},    {700, 36, 0, 2, 2, PLAIN},    {700, 70, 0, 1, 1, PLAIN},
        {1100, 40, 3, 2, 1, PLAIN},    {300, 270, 4, 3, 2, PLAIN},   {150, 129, 0, 5, 2, PLAIN},
        {90, 40, 0, 9, 9, PLAIN},      {300, 2, 0, 70, 70, PLAIN},   {100, 37, 0, 3, 3, ZEROS},
        {140, 135, 3, 2, 2, ZEROS},    {60, 40, 0, 2, 2, EMPTY},     {60, 40, 0, 2, 2, UPPER},
        {60, 40, 0, 2, 2, NUMBERLESS}, {60, 40, 0, 3, 3, INFINITE},  {700, 40, 0, 1, 1, NUMBERLESS},
        {60, 34, 0, 3, 3, TINY},       {60, 34, 0, 3, 3, HUGE_ONES}, {90, 40, 0, 2, 2, UNLIKE},
        {700, 40, 0, 1, 1, UNLIKE},    {700, 40, 0, 1, 1, ZEROS},
    };
    bool good = true;
    std::vector<unsigned> state(FL_QR_PANEL_WORDS);
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
