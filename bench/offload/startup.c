/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "offload/startup.h"

#include "support/timing.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Fields of /proc/self/stat between the command's closing bracket and the start time. */
#define FIELDS_BEFORE_START 20

/* Seconds since the process began, to a clock tick of the system's; 0 where that is not told. */
static double age_s(void)
{
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "r");
    size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
    struct timespec now;
    if (file)
        (void)fclose(file);
    text[length] = '\0';
    const char *at = strrchr(text, ')');
    for (int k = 0; at && k < FIELDS_BEFORE_START; k++)
        at = strchr(at + 1, ' ');
    if (!at || clock_gettime(CLOCK_BOOTTIME, &now) != 0)
        return 0;
    double start = strtod(at, NULL) / (double)sysconf(_SC_CLK_TCK);
    double age = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec - start;
    return age > 0 ? age : 0;
}

static void open_one(bench_startup *s, uint32_t ordinal)
{
    for (uint32_t k = 0; k < s->count; k++)
        if (s->ordinals[k] == ordinal)
            return;
    if (s->count == BENCH_STARTUP_GPUS ||
        bench_gpu_open(&s->gpus[s->count], ordinal, NULL) != FILCH_OK)
        return;
    s->ordinals[s->count++] = ordinal;
}

void bench_startup_open(bench_startup *s, const char *devices)
{
    double now = bench_now_s();
    *s = (bench_startup){.begin_s = now - age_s()};
    const char *spec = devices ? devices : getenv("FILCH_DEVICES"); /* NOLINT: no other thread */
    spec = spec && *spec ? spec : "cuda";
    for (const char *at = spec; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        uint32_t ordinal = 0;
        bool is_one = sscanf(at, "cuda:%u", &ordinal) == 1;
        uint32_t end = is_one                        ? ordinal + 1
                       : strncmp(at, "cuda", 4) == 0 ? bench_gpu_count(NULL)
                                                     : 0;
        for (; ordinal < end; ordinal++)
            open_one(s, ordinal);
    }
    s->driver_s = bench_now_s() - now;
}

void bench_startup_close(bench_startup *s)
{
    for (uint32_t k = 0; k < s->count; k++)
        bench_gpu_close(&s->gpus[k]);
    s->count = 0;
}
