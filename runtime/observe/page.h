/* SPDX-License-Identifier: Apache-2.0 */
/* The report of a runtime as one HTML file: a fixed page (page/) and, in the page, the recorded
 * events and figures as JSON. docs/specification.md has the JSON's members. */
#ifndef FL_OBSERVE_PAGE_H
#define FL_OBSERVE_PAGE_H

#include "observe/trace.h"

/* Contents of a page. */
typedef struct fl_page {
    fl_core *core;
    const fl_trace_lane *lanes;
    uint32_t count;
    const fl_trace_ring *jobs; /* null: no jobs recorded */
    /* Writes members of the JSON object, each after a comma; times count from origin. */
    void (*put_figures)(FILE *file, fl_core *core, uint64_t origin);
    /* Further members for the page, each after a comma; null: none. */
    void (*put_more)(FILE *file, const void *user);
    const void *user;
} fl_page;

/* Writes the page. FILCH_IO leaves no file, FILCH_OUT_OF_MEMORY likewise; the failure is recorded
 * under the name of the public call. */
filch_status fl_page_write(const char *path, const fl_page *page, const char *call);
/* Writes the page to a stream, whose failures the caller checks. False: no memory. */
bool fl_page_put(FILE *file, const fl_page *page);

#endif
