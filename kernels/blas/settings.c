/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/blas/settings.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Two cores take 10 ms for as many in double precision: nothing is won below. */
#define LEAST_FLOPS 1e9
/* What a driver, a context and cuBLAS's handles take to be ready, roughly. */
#define START_S 1.0

static fl_blas_settings settings;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Null where it is not set, or empty. */
static const char *text(const char *name)
{
    const char *value = getenv(name); /* NOLINT: read once */
    return value && *value ? value : NULL;
}

static bool flag(const char *name)
{
    const char *value = text(name);
    return value && strcmp(value, "0") != 0;
}

/* Not below 0; true where it is one. */
static bool number(const char *name, double *value)
{
    const char *given = text(name);
    char *end = NULL;
    double is = given ? strtod(given, &end) : -1;
    if (!given || *end || !(is >= 0))
        return false;
    *value = is;
    return true;
}

static void read_all(void)
{
    double tile = 0;
    const char *devices = text("FILCH_BLAS_DEVICES");
    settings = (fl_blas_settings){.devices = devices ? devices : "cuda",
                                  .least_flops = LEAST_FLOPS,
                                  .start_s = START_S,
                                  .reports = flag("FILCH_BLAS_REPORT"),
                                  .is_verbose = flag("FILCH_BLAS_VERBOSE")};
    settings.is_fixed = number("FILCH_BLAS_LEAST_FLOPS", &settings.least_flops);
    (void)number("FILCH_BLAS_START_S", &settings.start_s);
    if (number("FILCH_BLAS_TILE", &tile) && tile < 1e6)
        settings.tile = (uint64_t)tile;
}

const fl_blas_settings *fl_settings(void)
{
    (void)pthread_once(&once, read_all);
    return &settings;
}

void fl_settings_say(const char *format, ...)
{
    va_list arguments;
    if (!fl_settings()->is_verbose)
        return;
    va_start(arguments, format);
    (void)fputs("filch-blas: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
    va_end(arguments);
}
