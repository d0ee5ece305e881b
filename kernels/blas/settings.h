/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of the environment; docs/blas.md describes them. */
#ifndef FILCH_BLAS_SETTINGS_H
#define FILCH_BLAS_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct fl_blas_settings {
    const char *devices; /* FILCH_BLAS_DEVICES */
    double least_flops;  /* FILCH_BLAS_LEAST_FLOPS; calls below go to the next BLAS */
    bool is_fixed;       /* it was given: calls of as many go to filch, whatever the model says */
    double start_s;      /* FILCH_BLAS_START_S: what filch takes to start, for the model */
    uint64_t tile;       /* FILCH_BLAS_TILE; 0: chosen by size */
    int copy_threads;    /* FILCH_BLAS_COPY_THREADS, or what others may use; 0: one a core */
    bool reports;        /* FILCH_BLAS_REPORT */
    bool is_verbose;     /* FILCH_BLAS_VERBOSE */
} fl_blas_settings;

/* Read at the first use. Thread safety: any thread. */
const fl_blas_settings *fl_settings(void);
/* A line on the standard error where the settings ask for that. */
__attribute__((format(printf, 1, 2))) void fl_settings_say(const char *format, ...);

#endif
