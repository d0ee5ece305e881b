/* SPDX-License-Identifier: Apache-2.0 */
/* The kinds of tasks, and what they do on a core of the host. */
#ifndef TASKS_H
#define TASKS_H

#include <filch/filch.h>

#include "cut.h"
#include "tasks_gpu.h"

/* What all tasks of a graph share. */
typedef struct problem {
    const symbolic *s;
    const cut *c;
    const double *values; /* the matrix's */
} problem;

/* The arguments of a task; 0 where they mean nothing to it. Kernels have the same structure. */
typedef struct step {
    const problem *p;
    double work;    /* operations, or elements that are moved */
    int64_t place;  /* add: of the child's first row below its diagonal block in symbolic.place */
    int64_t offset; /* add: elements of the view before the child's update */
    int node;       /* the supernode, for add the child; for subtrees the bundle */
    int first;      /* fill: the supernode's first column */
    int panel;      /* pivot: which of the supernode's panels it is, from 0 */
    int below;      /* add: rows of the child's update */
    int skip;       /* add: rows of the parent above what is added to */
    int is_whole;   /* add: the view has the child's whole update, not a tile of it */
} step;

/* Views of the tasks, in the order of their accesses:
 *   subtrees  the bundle's columns; its updates, if it has any; workspace
 *   fill      a panel of columns; the matrix's values; symbolic.start, entry, entry_place
 *   add       a panel of columns or of the update; a child's update; symbolic.place
 *   pivot     a panel of columns; the supernode's pivots; workspace on GPUs
 *   subtract  a panel of columns; an earlier, factored one
 *   outer     a panel of the update; all panels of columns
 * Of the supernode's pivots the element of a panel becomes 0, or the number of the panel's column,
 * from 1, whose pivot is not positive. On a GPU the task does not fail then. */
typedef struct codelets {
    filch_codelet *subtrees, *fill, *add, *pivot, *subtract, *outer;
    gpu_space space; /* for pivot */
} codelets;

/* Makes the codelets for panels of at most so many columns. Cores work on subtrees, and on all else
 * where there is no GPU or cores_help is set. The codelets must outlive the runtime. False:
 * filch_runtime_error() has the reason. */
bool tasks_make(filch_runtime *runtime, int width, bool cores_help, codelets *made);

/* Tells that the pivot of a column of the factor, counted from 1, is not positive. Returns the
 * column of the matrix, from 1. */
int tasks_tell_pivot(const symbolic *s, int column, char text[WHY]);

#endif
