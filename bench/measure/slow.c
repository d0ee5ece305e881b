/* SPDX-License-Identifier: Apache-2.0 */
#include "measure/slow.h"

#include "support/fail.h"
#include "support/timing.h"

#include <math.h>
#include <stdlib.h>

/* Written between runs: what starts a run orders it before the tiles. */
static bench_slow present;
static double begin_s;

filch_status bench_slow_parse(const char *text, bench_slow *slow, filch_error *error)
{
    char *end;
    unsigned long device = strtoul(text, &end, 10), factor = 0;
    double after = NAN;
    bool is_read = end != text && *text >= '0' && *text <= '9' && *end == ':';
    if (is_read) {
        const char *from = end + 1;
        factor = strtoul(from, &end, 10);
        is_read = end != from && *from >= '0' && *from <= '9' && *end == '@';
    }
    if (is_read) {
        const char *from = end + 1;
        after = strtod(from, &end);
        is_read = end != from && *end == '\0';
    }
    if (!is_read || device >= UINT32_MAX || factor < 2 || factor > BENCH_SLOW_MOST ||
        !(after >= 0) || isinf(after))
        return bench_fail(error, FILCH_PARSE, "--slow", 0,
                          "'%s' is not DEVICE:FACTOR@SECONDS with a factor from 2 to %d", text,
                          BENCH_SLOW_MOST);
    *slow = (bench_slow){(uint32_t)device, (uint32_t)factor, after};
    return FILCH_OK;
}

void bench_slow_begin(bench_slow slow)
{
    present = slow;
    begin_s = bench_now_s();
}

uint32_t bench_slow_times(uint32_t device)
{
    if (present.factor == 0 || device != present.device ||
        bench_now_s() - begin_s < present.after_s)
        return 1;
    return present.factor;
}

double bench_slow_ideal_s(bench_slow slow, double work, double all_speeds, double its_speed)
{
    double before = all_speeds * slow.after_s;
    if (slow.factor == 0 || work <= before)
        return work / all_speeds;
    double lost = its_speed - its_speed / (double)slow.factor;
    return slow.after_s + (work - before) / (all_speeds - lost);
}
