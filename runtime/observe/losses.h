/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a device's time (filch_losses): names, meanings, sums, a table as text. */
#ifndef FL_OBSERVE_LOSSES_H
#define FL_OBSERVE_LOSSES_H

#include <stddef.h>
#include <stdio.h>

#include "filch/report.h"

/* A part of the time, in the order of tables. The parts add up to wall_ns. */
enum {
    FL_LOSS_BUSY,
    FL_LOSS_SLOW,
    FL_LOSS_DISPATCH,
    FL_LOSS_DATA,
    FL_LOSS_SPOILED,
    FL_LOSS_PREEMPTED,
    FL_LOSS_STARVED,
    FL_LOSS_UNSHARED,
    FL_LOSS_HELD,
    FL_LOSS_TAIL,
    FL_LOSS_OTHER,
    FL_LOSS_PARTS
};

/* A member of filch_losses. */
typedef struct fl_loss_field {
    const char *name;    /* the member's name without "_ns" */
    const char *title;   /* of a table's column */
    const char *meaning; /* null in rows of the refusals and of fl_loss_fields */
    size_t offset;
} fl_loss_field;

/* Returns the parts, indexed by FL_LOSS_.... */
const fl_loss_field *fl_loss_parts(void);
/* Returns the reasons for refused thefts. */
const fl_loss_field *fl_loss_refusals(size_t *count);
/* Returns every member of filch_losses, in the order of the header. */
const fl_loss_field *fl_loss_fields(size_t *count);

uint64_t fl_loss_value(const filch_losses *losses, const fl_loss_field *field);
/* Returns the part's share of wall_ns; 0 where wall_ns is 0. */
double fl_loss_share(const filch_losses *losses, const fl_loss_field *part);
/* Adds every member of losses to *sum. */
void fl_losses_add(filch_losses *sum, const filch_losses *losses);

typedef struct fl_loss_row {
    const char *name; /* a device, or "all" */
    filch_losses losses;
} fl_loss_row;

/* Writes a table: the parts of each row in per cent of the row's time; then the refused thefts,
 * divided by runs. */
void fl_losses_print(FILE *file, const fl_loss_row *rows, size_t count, double runs);

#endif
