// SPDX-License-Identifier: Apache-2.0
// Conjugate gradients by plain loops, with OpenMP where the compiler has it, and what cg.cpp is
// checked and measured with. Part of cg.cpp, which defines the problem.
#ifndef PLAIN_CG_HPP
#define PLAIN_CG_HPP

#include <chrono>
#include <cmath>
#include <cstdio>
#include <thread>

#ifdef _OPENMP
#define LOOP(clauses) LOOP_(omp parallel for schedule(static) clauses)
#define LOOP_(words) _Pragma(#words)
#else
#define LOOP(clauses)
#endif

// The iterations of solve in cg.cpp, a loop for each of its steps.
inline void plain_cg(problem &s, int most)
{
    const std::int64_t rows = s.rows;
    double *x = s.x.data(), *r = s.r.data(), *p = s.p.data(), *q = s.q.data(), rr = s.rows;
    const std::uint32_t *starts = s.starts.data(), *columns = s.columns.data();
    const double *values = s.values.data();
    for (int k = 0; k < most && (k % 10 != 0 || rr > 1e-20 * s.rows); ++k) {
        double pq = 0, next = 0;
        LOOP(reduction(+ : pq))
        for (std::int64_t i = 0; i < rows; ++i) {
            double value = 0;
            for (std::uint32_t e = starts[i]; e < starts[i + 1]; ++e)
                value += values[e] * p[columns[e]];
            q[i] = value;
            pq += value * p[i];
        }
        const double alpha = rr / pq;
        LOOP(reduction(+ : next))
        for (std::int64_t i = 0; i < rows; ++i) {
            x[i] += alpha * p[i];
            r[i] -= alpha * q[i];
            next += r[i] * r[i];
        }
        const double beta = next / rr;
        rr = next;
        LOOP()
        for (std::int64_t i = 0; i < rows; ++i)
            p[i] = r[i] + beta * p[i];
    }
}

// Argument number at of the program, 1 to most; ends the program where the argument is anything
// else.
inline int argument(int argc, char **argv, int at, int otherwise, long most)
{
    char *end = nullptr;
    const long value = argc > at ? std::strtol(argv[at], &end, 10) : otherwise;
    if (value < 1 || value > most || (end && *end != '\0')) {
        std::fprintf(stderr, "argument %d is '%s', and must be 1 to %ld\n", at, argv[at], most);
        std::exit(2);
    }
    return static_cast<int>(value);
}

inline double median(std::vector<double> times)
{
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

// Runs both in turn, and compares the solutions; 0 where they agree.
template <class Solve> int measure(int argc, char **argv, problem &s, const Solve &solve)
{
    const int most = argument(argc, argv, 2, 200, 1000000);
    const int repeats = argument(argc, argv, 3, 1, 1000);
    problem plain = s;
    std::vector<double> times[2];
    const auto seconds = [](const auto &run) {
        // Threads of the other side spin on after their work: they are to fall asleep.
        std::this_thread::sleep_for(std::chrono::milliseconds(50));
        const auto begin = std::chrono::steady_clock::now();
        run();
        return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    double worst = 0, largest = 0;
    for (int k = 0; k < repeats; ++k) {
        s.begin();
        times[0].push_back(seconds([&] { solve(static_cast<std::uint64_t>(most)); }));
        plain.begin();
        times[1].push_back(seconds([&] { plain_cg(plain, most); }));
        for (std::size_t i = 0; i < s.rows; ++i) {
            const double d = std::fabs(s.x[i] - plain.x[i]);
            worst = d > worst || std::isnan(d) ? d : worst; // fmax() would drop a NaN
            largest = std::fmax(largest, std::fabs(plain.x[i]));
        }
    }
    const double a = median(times[0]) / most * 1e6, b = median(times[1]) / most * 1e6;
    std::printf("%u unknowns, %d iterations: filch %.0f us, plain loops %.0f us, ratio %.3f; "
                "largest difference %.1e\n",
                s.rows, most, a, b, a / b, worst / largest);
    return worst < 1e-9 * largest ? 0 : 1;
}

#endif
