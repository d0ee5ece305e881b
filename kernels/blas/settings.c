/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "kernels/blas/settings.h"

#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "FILCH_BLAS_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)
/* Two cores take 10 ms for as many in double precision: nothing is won below. */
#define LEAST_FLOPS 1e9
/* What a driver, a context and cuBLAS's handles take to be ready, roughly. */
#define START_S 1.0
#define TILE_MOST 999999
#define COPY_THREADS_MOST 999

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

__attribute__((format(printf, 1, 0))) static void write_line(const char *format, va_list arguments)
{
    (void)fputs("filch-blas: ", stderr);
    (void)vfprintf(stderr, format, arguments);
    (void)fputc('\n', stderr);
}

/* As fl_settings_say(), while the settings are being read. */
__attribute__((format(printf, 1, 2))) static void warn(const char *format, ...)
{
    va_list arguments;
    if (!settings.is_verbose)
        return;
    va_start(arguments, format);
    write_line(format, arguments);
    va_end(arguments);
}

/* From 0 to most; true where it is one. */
static bool number(const char *name, double most, double *value)
{
    const char *given = text(name);
    char *rest = NULL;
    double is = given ? strtod(given, &rest) : -1;
    if (!given)
        return false;
    if (*rest || !(is >= 0 && is <= most)) {
        warn("%s is \"%s\"; allowed is a number from 0 to %g; it is left out", name, given, most);
        return false;
    }
    *value = is;
    return true;
}

/* What the user lets other libraries use; 0: nothing is said. */
static int threads_of_others(void)
{
    static const char *const names[] = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++) {
        const char *value = text(names[k]);
        long count = value ? strtol(value, NULL, 10) : 0;
        if (count > 0)
            return count < COPY_THREADS_MOST ? (int)count : COPY_THREADS_MOST;
    }
    return 0;
}

static bool is_known(const char *name, size_t length)
{
    static const char *const names[] = {"DEVICES", "LEAST_FLOPS", "START_S", "NEXT",
                                        "TILE",    "REPORT",      "VERBOSE", "COPY_THREADS"};
    for (size_t k = 0; k < sizeof names / sizeof names[0]; k++)
        if (strlen(names[k]) == length && memcmp(names[k], name, length) == 0)
            return true;
    return false;
}

static void warn_unknown(void)
{
    for (char **entry = environ; entry && *entry; entry++) {
        const char *name = *entry;
        size_t length = strcspn(name, "=");
        if (strncmp(name, PREFIX, PREFIX_LENGTH) == 0 &&
            !is_known(name + PREFIX_LENGTH, length - PREFIX_LENGTH))
            warn("the environment sets %.*s, which the drop-in does not know", (int)length, name);
    }
}

static void read_all(void)
{
    double tile = 0, threads = 0;
    const char *devices = text("FILCH_BLAS_DEVICES");
    settings = (fl_blas_settings){.devices = devices ? devices : "cuda",
                                  .least_flops = LEAST_FLOPS,
                                  .start_s = START_S,
                                  .reports = flag("FILCH_BLAS_REPORT"),
                                  .is_verbose = flag("FILCH_BLAS_VERBOSE")};
    if (settings.is_verbose)
        warn_unknown();
    settings.is_fixed = number("FILCH_BLAS_LEAST_FLOPS", INFINITY, &settings.least_flops);
    (void)number("FILCH_BLAS_START_S", INFINITY, &settings.start_s);
    if (number("FILCH_BLAS_TILE", TILE_MOST, &tile))
        settings.tile = (uint64_t)tile;
    if (number("FILCH_BLAS_COPY_THREADS", COPY_THREADS_MOST, &threads) && threads >= 1)
        settings.copy_threads = (int)threads;
    if (settings.copy_threads == 0)
        settings.copy_threads = threads_of_others();
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
    write_line(format, arguments);
    va_end(arguments);
}
