/* SPDX-License-Identifier: Apache-2.0 */
#include "problems/narrow.h"

#include "support/timing.h"

#include <math.h>

#define CALIBRATIONS 40
#define CALIBRATION_ROUNDS 20000

/* Of Task Bench's fft: the distances 1, 2, 4, … below the width in turn. */
static size_t fft_distance(size_t width, size_t step)
{
    size_t sets = 0;
    while ((size_t)1 << sets < width)
        sets++;
    return sets > 0 ? (size_t)1 << (step + sets - 1) % sets : 0;
}

static size_t range(size_t width, size_t point, size_t radius, size_t *points)
{
    size_t count = 0;
    size_t last = point + radius < width ? point + radius : width - 1;
    for (size_t p = point > radius ? point - radius : 0; p <= last; p++)
        points[count++] = p;
    return count;
}

size_t bench_narrow_reads(const bench_narrow_graph *n, size_t step, size_t point, size_t *points)
{
    if (n->pattern == BENCH_PATTERN_ALL_TO_ALL)
        return range(n->width, point, n->width, points);
    if (n->pattern != BENCH_PATTERN_FFT)
        return range(n->width, point, n->pattern == BENCH_PATTERN_NEAREST ? BENCH_NARROW_RADIUS : 1,
                     points);
    size_t distance = fft_distance(n->width, step), count = 0;
    if (distance > 0 && point >= distance)
        points[count++] = point - distance;
    points[count++] = point;
    if (distance > 0 && point + distance < n->width)
        points[count++] = point + distance;
    return count;
}

/* Who reads a point is whom the point reads, in each step: the patterns are symmetric. */
size_t bench_narrow_before(const bench_narrow_graph *n, size_t step, size_t point, size_t *points)
{
    size_t readers[BENCH_NARROW_READS];
    if (step == 0)
        return 0;
    size_t count = bench_narrow_reads(n, step, point, points);
    if (n->pattern == BENCH_PATTERN_ALL_TO_ALL)
        return count;
    size_t reader_count = bench_narrow_reads(n, step - 1, point, readers), read_count = count;
    for (size_t r = 0; r < reader_count; r++) {
        size_t at = 0;
        while (at < read_count && points[at] != readers[r])
            at++;
        if (at == read_count)
            points[count++] = readers[r];
    }
    return count;
}

/* Not to be inlined: where a device is slowed down it is called several times for one result. */
__attribute__((noinline)) uint64_t bench_narrow_work(uint64_t value, uint64_t rounds)
{
    for (uint64_t r = 0; r < rounds; r++)
        value = value * 6364136223846793005u + 1442695040888963407u;
    return value;
}

uint64_t bench_narrow_rounds(double microseconds)
{
    static volatile uint64_t sink;
    double best = INFINITY;
    for (int k = 0; k < CALIBRATIONS; k++) {
        double begin = bench_now_s();
        sink = bench_narrow_work(sink, CALIBRATION_ROUNDS);
        best = fmin(best, bench_now_s() - begin);
    }
    double rounds = microseconds * 1e-6 * CALIBRATION_ROUNDS / fmax(best, 1e-9);
    return rounds > 1 ? (uint64_t)rounds : 1;
}

void bench_narrow_reset(const bench_narrow_graph *n)
{
    for (size_t row = 0; row < 2; row++)
        for (size_t p = 0; p < n->width; p++)
            n->cells[row][p] =
                (bench_cell){.value = row * n->width + p + 1, .device = BENCH_NARROW_NOBODY};
}

void bench_narrow_task(const bench_narrow_graph *n, size_t step, size_t point)
{
    const bench_cell *from = n->cells[1 - step % 2];
    size_t points[BENCH_NARROW_READS];
    bool reads_all = n->pattern == BENCH_PATTERN_ALL_TO_ALL;
    size_t count = reads_all ? n->width : bench_narrow_reads(n, step, point, points);
    uint64_t value = 0;
    for (size_t k = 0; k < count; k++)
        value = bench_narrow_fold(value, from[reads_all ? k : points[k]].value);
    n->cells[step % 2][point].value = bench_narrow_work(value, n->rounds);
}
