/* SPDX-License-Identifier: Apache-2.0 */
/* Check of the description of a task that is being added. */
#ifndef FL_GRAPH_BUILD_DESCRIPTION_H
#define FL_GRAPH_BUILD_DESCRIPTION_H

#include "graph/build/graph.h"

#define FL_MOST_ACCESSES 255u

/* What kinds of accesses a task has. */
typedef struct fl_kinds {
    uint32_t modes; /* a bit for each mode in use, except scratch */
    uint32_t most;  /* above 1: some access may be to a block */
    uint32_t block_count;
    uintptr_t parents;     /* not 0: some handle is a partition of another */
    uintptr_t temporaries; /* not 0: some handle is a temporary */
} fl_kinds;

static inline bool fl_kinds_have(const fl_kinds *kinds, filch_access_mode mode)
{
    return (kinds->modes >> mode & 1) != 0;
}

/* Tells whether the task needs extras (fl_extra). */
static inline bool fl_kinds_have_extras(const fl_kinds *kinds)
{
    return (kinds->modes & (1u << FILCH_COMMUTE | 1u << FILCH_REDUCE)) != 0;
}

/* Checks all that does not depend on the state of the graph; records an error otherwise. Tells the
 * kinds of the accesses. */
filch_status fl_description_check(const filch_graph *graph, const filch_task_desc *desc,
                                  fl_kinds *kinds);

#endif
