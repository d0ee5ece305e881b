/* SPDX-License-Identifier: Apache-2.0 */
#include "sim/sim_times.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a dispatch costs is the mean of those gaps between tiles that are no longer than so many
 * times the longest of the shortest quarter: the others are waits. */
#define CLOSE_PART 4
#define CLOSE_TIMES 4.0

/* Copies of at least so many of the bytes of the largest one tell the rate of their way. */
#define LARGE_PART 4
/* Copies of fewer bytes take little more than their latency: at 25 GB/s 0.7 us of several. Where
 * all are, and much alike, they tell no rate. */
#define TINY_BYTES 16384

/* Chunks whose sizes differ as much tell what a chunk takes beside its items, where there are so
 * many such pairs; no more than so much of the shortest one. */
#define UNLIKE_TIMES 1.5
#define LEAST_PAIRS 3
#define MOST_OF_CHUNK 0.999
/* They are believed if there is one for so many chunks, and the middle half of them agrees to
 * within this part. */
#define PAIRS_PART 8
#define MOST_SPREAD 0.25

/* --- Devices --- */

static int by_device(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    if ((*x)->device != (*y)->device)
        return (*x)->device < (*y)->device ? -1 : 1;
    return ((*x)->start_us > (*y)->start_us) - ((*x)->start_us < (*y)->start_us);
}

static int by_value(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* Orders what it is given. */
static double median(double *values, size_t count)
{
    qsort(values, count, sizeof *values, by_value);
    return count % 2 != 0 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

static double close_mean(const double *gaps, size_t count)
{
    double sum = 0;
    size_t close = 0;
    for (; close < count && gaps[close] <= CLOSE_TIMES * gaps[count / CLOSE_PART]; close++)
        sum += gaps[close];
    return close != 0 ? sum / (double)close : 0;
}

/* Something for which a device waits. */
typedef struct span {
    double start_us, end_us;
} span;

static int by_beginning(const void *a, const void *b)
{
    const span *x = a, *y = b;
    return (x->start_us > y->start_us) - (x->start_us < y->start_us);
}

/* What a device may wait for: copies to it, and work, when there is none; by their beginnings. */
static size_t waits_of(const bench_sim_record *record, uint32_t device, span *spans)
{
    size_t count = 0;
    for (size_t k = 0; k < record->copy_count; k++) {
        const bench_sim_copy *copy = &record->copies[k];
        if (copy->device == device && copy->way != BENCH_SIM_OUT)
            spans[count++] = (span){copy->start_us, copy->end_us};
    }
    for (size_t k = 0; k < record->wait_count; k++)
        if (record->waits[k].device == device)
            spans[count++] = (span){record->waits[k].start_us, record->waits[k].end_us};
    qsort(spans, count, sizeof *spans, by_beginning);
    return count;
}

/* Of [from, to) what is in none of the spans from *next on; *next is moved past those that end
 * before. */
static double uncovered(const span *spans, size_t count, size_t *next, double from, double to)
{
    double us = 0;
    while (*next < count && spans[*next].end_us <= from)
        ++*next;
    for (size_t k = *next; k < count && spans[k].start_us < to; k++) {
        us += fmax(spans[k].start_us - from, 0);
        from = fmax(from, spans[k].end_us);
    }
    return us + fmax(to - from, 0);
}

/* Of one device's tiles, by their beginnings: what lies before each of them, and is no wait. By the
 * ends of all before it, as tiles of several lanes overlap. */
static void gaps_between(const bench_sim_tile *const *tiles, size_t count, const span *spans,
                         size_t span_count, double *gaps)
{
    double end = tiles[0]->end_us;
    size_t next = 0;
    for (size_t k = 1; k < count; k++) {
        gaps[k - 1] = tiles[k]->start_us > end
                          ? uncovered(spans, span_count, &next, end, tiles[k]->start_us)
                          : 0;
        end = fmax(end, tiles[k]->end_us);
    }
}

/* A chunk waits for nothing but its copies: what else lies before it is what it takes until the
 * device has it, and as much a part of its time as its kernel's. */
static void add_delays(bench_sim_tile *const *tiles, size_t count, const double *gaps,
                       double gap_us)
{
    for (size_t k = 1; k < count; k++)
        if (tiles[k]->is_chunk)
            tiles[k]->delay_us = fmax(gaps[k - 1] - gap_us, 0);
}

static bool gaps_find(bench_sim_record *record)
{
    bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    double *gaps = calloc(record->tile_count, sizeof *gaps);
    double *sorted = calloc(record->tile_count, sizeof *sorted);
    span *spans = calloc(record->copy_count + record->wait_count + 1, sizeof *spans);
    record->gap_us = calloc(record->device_count, sizeof *record->gap_us);
    bool fits = order && gaps && sorted && spans && record->gap_us;
    for (size_t k = 0; fits && k < record->tile_count; k++)
        order[k] = &record->tiles[k];
    if (fits)
        qsort(order, record->tile_count, sizeof *order, by_device);
    for (size_t from = 0, to; fits && from < record->tile_count; from = to) {
        uint32_t device = order[from]->device;
        for (to = from + 1; to < record->tile_count && order[to]->device == device;)
            to++;
        gaps_between((const bench_sim_tile *const *)(order + from), to - from, spans,
                     waits_of(record, device, spans), gaps);
        memcpy(sorted, gaps, (to - from - 1) * sizeof *sorted);
        qsort(sorted, to - from - 1, sizeof *sorted, by_value);
        record->gap_us[device] = close_mean(sorted, to - from - 1);
        add_delays(order + from, to - from, gaps, record->gap_us[device]);
    }
    free(order);
    free(gaps);
    free(sorted);
    free(spans);
    return fits;
}

/* Tiles that are under way at once share their device, and are each as long as all of them together
 * let them be. What counts of each is its part of the device's time, in equal shares: their sum is
 * the time in which the device did something. tiles: of one device, by their beginnings. */
static void share_time(bench_sim_tile **tiles, size_t count, bench_sim_tile **active)
{
    size_t next = 0, running = 0;
    double now = 0;
    for (size_t k = 0; k < count; k++)
        tiles[k]->us = tiles[k]->delay_us;
    while (next < count || running != 0) {
        double until = next < count ? tiles[next]->start_us : INFINITY;
        for (size_t k = 0; k < running; k++)
            until = fmin(until, active[k]->end_us);
        for (size_t k = 0; k < running; k++)
            active[k]->us += fmax(until - now, 0) / (double)running;
        now = fmax(until, now);
        for (size_t k = running; k > 0; k--)
            if (active[k - 1]->end_us <= now)
                active[k - 1] = active[--running];
        for (; next < count && tiles[next]->start_us <= now; next++)
            if (tiles[next]->end_us > now)
                active[running++] = tiles[next];
    }
}

static bool shares_find(bench_sim_record *record)
{
    bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    bench_sim_tile **active = calloc(record->tile_count, sizeof *active);
    bool fits = order && active;
    for (size_t k = 0; fits && k < record->tile_count; k++)
        order[k] = &record->tiles[k];
    if (fits)
        qsort(order, record->tile_count, sizeof *order, by_device);
    for (size_t from = 0, to; fits && from < record->tile_count; from = to) {
        for (to = from + 1; to < record->tile_count && order[to]->device == order[from]->device;)
            to++;
        share_time(order + from, to - from, active);
    }
    free(order);
    free(active);
    return fits;
}

static int by_place(const void *a, const void *b)
{
    const bench_sim_tile *const *x = a, *const *y = b;
    if ((*x)->job != (*y)->job)
        return (*x)->job < (*y)->job ? -1 : 1;
    return ((*x)->first > (*y)->first) - ((*x)->first < (*y)->first);
}

static double units_of(const bench_sim_tile *tile)
{
    return tile->is_chunk ? (double)(tile->end - tile->first) : 1;
}

/* Items that lie side by side take about the same, so that two chunks of theirs, of sizes that are
 * not alike, are two points of a line: where it begins is what a chunk takes without any. The
 * median of all such pairs on a device, if half of them agree; order: its tiles by their places. */
static double chunk_time(const bench_sim_tile *const *order, size_t count, double *values)
{
    size_t pairs = 0;
    double least = INFINITY;
    for (size_t k = 0; k < count; k++) {
        const bench_sim_tile *x = order[k], *y = k + 1 < count ? order[k + 1] : x;
        double m = units_of(x), n = units_of(y), a = x->us - x->delay_us, b = y->us - y->delay_us;
        least = x->is_chunk ? fmin(least, a) : least;
        if (x->is_chunk && y->is_chunk && x->job == y->job && x->end == y->first &&
            fmax(m, n) >= UNLIKE_TIMES * fmin(m, n))
            values[pairs++] = (a * n - b * m) / (n - m);
    }
    if (pairs < LEAST_PAIRS || pairs < count / PAIRS_PART)
        return 0;
    double middle = median(values, pairs);
    bool agrees = values[pairs - 1 - pairs / 4] - values[pairs / 4] <= MOST_SPREAD * fabs(middle);
    return agrees ? fmin(fmax(middle, 0), least * MOST_OF_CHUNK) : 0;
}

static bool chunks_find(bench_sim_record *record)
{
    const bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    double *values = calloc(record->tile_count, sizeof *values);
    record->chunk_us = calloc(record->device_count, sizeof *record->chunk_us);
    bool fits = order && values && record->chunk_us;
    for (uint32_t device = 0; fits && device < record->device_count; device++) {
        size_t count = 0;
        for (size_t k = 0; k < record->tile_count; k++)
            if (record->tiles[k].device == device)
                order[count++] = &record->tiles[k];
        qsort(order, count, sizeof *order, by_place);
        record->chunk_us[device] = chunk_time(order, count, values);
    }
    for (size_t k = 0; fits && k < record->tile_count; k++)
        if (record->tiles[k].is_chunk)
            record->tiles[k].us -= record->chunk_us[record->tiles[k].device];
    free(order);
    free(values);
    return fits;
}

static double *ratio_at(const bench_sim_record *record, uint32_t codelet, uint32_t device)
{
    return &record->ratios[(size_t)codelet * record->device_count + device];
}

double bench_sim_ratio(const bench_sim_record *record, uint32_t codelet, uint32_t device)
{
    return *ratio_at(record, codelet, device);
}

/* By the mean of all that each device ran: right where tiles of a codelet are alike. */
static bool ratios_by_means(bench_sim_record *record)
{
    size_t cells = record->codelet_count * record->device_count;
    double *us = calloc(cells, sizeof *us), *units = calloc(cells, sizeof *units);
    record->ratios = calloc(cells, sizeof *record->ratios);
    bool fits = us && units && record->ratios;
    for (size_t k = 0; fits && k < record->tile_count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];
        size_t cell = (size_t)tile->codelet * record->device_count + tile->device;
        us[cell] += tile->us;
        units[cell] += units_of(tile);
    }
    for (size_t cell = 0; fits && cell < cells; cell++) {
        size_t first = cell / record->device_count * record->device_count;
        bool is_known = us[first] > 0 && us[cell] > 0;
        record->ratios[cell] = is_known ? us[cell] / units[cell] / (us[first] / units[first]) : 1;
    }
    free(us);
    free(units);
    return fits;
}

/* Items that lie side by side take about the same: chunks that follow each other, one of them on
 * the first device, tell more of another than the means, where items are not alike. Logarithms add
 * up, so that a slope counts once for and once against it. */
static bool ratios_by_neighbours(bench_sim_record *record)
{
    size_t cells = record->codelet_count * record->device_count;
    const bench_sim_tile **order = calloc(record->tile_count, sizeof *order);
    double *sums = calloc(cells, sizeof *sums);
    size_t *pairs = calloc(cells, sizeof *pairs);
    bool fits = order && sums && pairs;
    for (size_t k = 0; fits && k < record->tile_count; k++)
        order[k] = &record->tiles[k];
    if (fits)
        qsort(order, record->tile_count, sizeof *order, by_place);
    for (size_t k = 1; fits && k < record->tile_count; k++) {
        const bench_sim_tile *x = order[k - 1], *y = order[k];
        if (!x->is_chunk || x->job != y->job || (x->device == 0) == (y->device == 0) ||
            !(x->us > 0 && y->us > 0))
            continue;
        const bench_sim_tile *own = x->device == 0 ? x : y, *other = x->device == 0 ? y : x;
        size_t cell = (size_t)other->codelet * record->device_count + other->device;
        sums[cell] += log(other->us / units_of(other) / (own->us / units_of(own)));
        pairs[cell]++;
    }
    for (size_t cell = 0; fits && cell < cells; cell++)
        if (pairs[cell] != 0)
            record->ratios[cell] = exp(sums[cell] / (double)pairs[cell]);
    free(order);
    free(sums);
    free(pairs);
    return fits;
}

/* Of codelets that a device never ran, or the first one did not: as the others are there, weighted
 * by what the device spent on them. */
static void ratios_by_others(bench_sim_record *record, const double *us)
{
    for (uint32_t device = 1; device < record->device_count; device++) {
        double sum = 0, weight = 0;
        for (uint32_t codelet = 0; codelet < record->codelet_count; codelet++) {
            const double *here = &us[(size_t)codelet * record->device_count];
            if (here[0] > 0 && here[device] > 0) {
                sum += here[device] * log(*ratio_at(record, codelet, device));
                weight += here[device];
            }
        }
        for (uint32_t codelet = 0; codelet < record->codelet_count && weight > 0; codelet++) {
            const double *here = &us[(size_t)codelet * record->device_count];
            if (!(here[0] > 0 && here[device] > 0))
                *ratio_at(record, codelet, device) = exp(sum / weight);
        }
    }
}

static bool ratios_find(bench_sim_record *record)
{
    double *us = calloc(record->codelet_count * record->device_count + 1, sizeof *us);
    bool fits = us && ratios_by_means(record) && ratios_by_neighbours(record);
    for (size_t k = 0; fits && k < record->tile_count; k++) {
        const bench_sim_tile *tile = &record->tiles[k];
        us[(size_t)tile->codelet * record->device_count + tile->device] += tile->us;
    }
    if (fits)
        ratios_by_others(record, us);
    free(us);
    return fits;
}

bool bench_sim_times_find(bench_sim_record *record)
{
    return gaps_find(record) && shares_find(record) && chunks_find(record) && ratios_find(record);
}

/* --- Links --- */

typedef struct sample {
    double bytes, us;
} sample;

static int by_bytes(const void *a, const void *b)
{
    const sample *x = a, *y = b;
    return (x->bytes > y->bytes) - (x->bytes < y->bytes);
}

/* The medians of the smaller and of the larger half are two points of a line, which cuts the axis
 * at the latency; where sizes are much alike, there is none to be told from the rate. */
static double latency_of(const sample *samples, size_t count, double *values)
{
    size_t half = count / 2;
    double bytes[2], us[2];
    if (count < 4)
        return 0;
    for (int part = 0; part < 2; part++) {
        const sample *at = samples + (part == 0 ? 0 : count - half);
        for (size_t k = 0; k < half; k++)
            values[k] = at[k].bytes;
        bytes[part] = median(values, half);
        for (size_t k = 0; k < half; k++)
            values[k] = at[k].us;
        us[part] = median(values, half);
    }
    if (bytes[1] < 2 * bytes[0])
        return 0;
    double slope = (us[1] - us[0]) / (bytes[1] - bytes[0]);
    return fmin(fmax(us[0] - slope * bytes[0], 0), us[0] * 0.99);
}

bool bench_sim_link_find(const bench_sim_record *record, bench_sim_way way, uint32_t device,
                         uint32_t from, bench_sim_link *link)
{
    sample *samples = calloc(record->copy_count + 1, sizeof *samples);
    double *values = calloc(record->copy_count + 1, sizeof *values);
    bool fits = samples && values;
    size_t count = 0, large = 0;
    *link = (bench_sim_link){0};
    for (size_t k = 0; fits && k < record->copy_count; k++) {
        const bench_sim_copy *copy = &record->copies[k];
        if (copy->way == way && (device == record->device_count || copy->device == device) &&
            (way != BENCH_SIM_PEER || from == record->device_count || copy->from == from) &&
            copy->end_us > copy->start_us && copy->bytes > 0)
            samples[count++] = (sample){copy->bytes, copy->end_us - copy->start_us};
    }
    if (fits && count != 0) {
        qsort(samples, count, sizeof *samples, by_bytes);
        double most = samples[count - 1].bytes;
        link->latency_us = latency_of(samples, count, values);
        bool is_tiny = most < TINY_BYTES && link->latency_us == 0;
        for (size_t k = 0; k < count; k++)
            if (is_tiny)
                values[large++] = samples[k].us;
            else if (samples[k].bytes >= most / LARGE_PART)
                values[large++] = samples[k].bytes / fmax(samples[k].us - link->latency_us, 1e-3);
        if (is_tiny)
            link->latency_us = median(values, large);
        else
            link->rate = median(values, large) * 1e6;
    }
    free(samples);
    free(values);
    return fits;
}
