/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of tasks, and what they do on a core of the host. */
#ifndef TASKS_H
#define TASKS_H

#include <filch/filch.h>

#include "cut.h"

/* What all tasks of a graph share. */
typedef struct problem {
    const symbolic *s;
    const cut *c;
    const double *values; /* the matrix's */
    int *source;          /* of accesses to updates: the supernode, or ~ the bundle */
} problem;

/* The arguments of a task. */
typedef struct step {
    const problem *p;
    double work;    /* operations */
    size_t source;  /* in p->source, of the first access to an update of a child or a bundle */
    int node;       /* the supernode; or the bundle */
    int factored;   /* how many accesses there are to factored columns of the supernode */
    bool is_update; /* the panel is one of the update, not of the columns */
    bool goes_on;   /* another task has written the panel before */
} step;

/* Views of the tasks, in the order of their accesses:
 *   subtrees  the bundle's columns; its updates, if it has any; workspace
 *   gather    a panel of columns or, if it goes on, of the update; updates of children
 *   pivot     a panel of columns
 *   subtract  a panel of columns; an earlier, factored one
 *   outer     a panel of the update; all panels of columns; updates of children */
typedef struct codelets {
    filch_codelet *subtrees, *gather, *pivot, *subtract, *outer;
} codelets;

/* Makes the codelets; false: filch_runtime_error() has the reason. */
bool tasks_make(filch_runtime *runtime, codelets *made);

#endif
