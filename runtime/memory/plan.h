/* SPDX-License-Identifier: Apache-2.0 */
/* From where, and over which ways, a tile comes into a place. Pure: everything that the choice
 * depends on is given, and nothing is changed. */
#ifndef FL_MEMORY_PLAN_H
#define FL_MEMORY_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#define FL_PLAN_NONE UINT32_MAX

/* One place that has the tile, as the receiver sees it. */
typedef struct fl_origin {
    uint32_t place;   /* 0: the host's */
    bool is_straight; /* its memory can be copied from without a stop in the host's */
    double rate;      /* bytes a second of that way, or of the first part of a staged one; 0: not
                         measured */
    uint64_t queued;  /* bytes that wait for that way already */
} fl_origin;

typedef struct fl_plan {
    uint32_t source; /* index among the sources, or FL_PLAN_NONE: there is none */
    bool is_staged;  /* by way of the host's memory */
    double seconds;  /* that it takes, by what is known */
} fl_plan;

/* The receiver: the way from the host's memory to it, which staged copies take, too. */
typedef struct fl_receiver {
    double host_rate;     /* bytes a second; 0: not measured */
    uint64_t host_queued; /* bytes that wait for its copy lane already */
} fl_receiver;

/* The source from which `bytes` arrive first; of equal ones the first. What was not measured is
 * taken to be as fast as such ways commonly are: NVLink, PCI Express. */
fl_plan fl_plan_copy(const fl_origin *sources, uint32_t count, fl_receiver receiver,
                     uint64_t bytes);

#endif
