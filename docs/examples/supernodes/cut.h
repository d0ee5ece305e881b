/* SPDX-License-Identifier: Apache-2.0 */
/* How the work is cut into tasks: small subtrees are one task, large supernodes many. */
#ifndef CUT_H
#define CUT_H

#include "symbolic.h"

/* Small subtrees side by side, with a common parent: the supernodes first to end - 1. */
typedef struct bundle {
    int first, end;
    size_t values; /* elements of their columns, which stand together in the factor */
    size_t update; /* elements of their roots' updates */
} bundle;

typedef struct cut {
    int bundles;
    bundle *bundle;
    int *part; /* of each supernode: its bundle, or -1 where its columns are cut into panels */
    int panel; /* most columns of a panel, unless a task would have too many accesses */
} cut;

/* Cuts for so many cores, and for panels that GPUs factor. A bundle has at most one of pieces parts
 * of the work. 0 for panel and pieces: as fits the matrix and the devices. */
bool cut_make(cut *made, const symbolic *s, int cores, bool gpu, int panel, int pieces,
              char why[WHY]);

void cut_free(cut *c);

/* The width of all panels but the last, where so many columns are cut. */
int cut_width(const cut *c, int cols);

#endif
