/* SPDX-License-Identifier: Apache-2.0 */
/* What to change first in a program, in words, from the breakdown of a job's time. */
#ifndef FL_OBSERVE_ADVICE_H
#define FL_OBSERVE_ADVICE_H

#include <stdbool.h>

#include "filch/report.h"

/* FL_ADVICE_ITEMS: number of work items for each device of the runtime before a running job's
 * losses tell more than how the job began. A complete job needs one item in all. */
enum { FL_ADVICE_MOST = 4, FL_ADVICE_TEXT = 512, FL_ADVICE_ITEMS = 4 };

typedef struct fl_advice {
    const char *about; /* name of the part of the time (losses.h), "path", or "none" */
    double share;      /* of the devices' time; "path": of the job's time; "none": 0 */
    char text[FL_ADVICE_TEXT];
} fl_advice;

/* Tells whether a job has run enough work items for advice. */
bool fl_advice_is_grounded(const filch_report *report, uint64_t items);
/* Fills advice, the largest gain first; returns the number of pieces, at least 1.
 *
 * report: of a job; or sums over several jobs, with path_ns the sum over the jobs' paths.
 * items: number of work items run; 0 when unknown. */
uint32_t fl_advise(const filch_report *report, uint64_t items, fl_advice advice[FL_ADVICE_MOST]);

#endif
