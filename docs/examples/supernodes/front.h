/* SPDX-License-Identifier: Apache-2.0 */
/* The dense work on a supernode: its columns of the factor, and its update, which is what they
 * subtract from the columns to the right. An update is the lower triangle of a square matrix over
 * the supernode's rows below its diagonal block. */
#ifndef FRONT_H
#define FRONT_H

#include <stddef.h>

#include "symbolic.h"

/* Part of a supernode or of its update: whole columns from column first on. */
typedef struct panel {
    double *value;
    int first, cols, rows;
    int ld; /* elements from a column to the next */
} panel;

/* Overwrites columns of a supernode with the matrix's entries. */
void front_fill(const symbolic *s, int at, const double *values, panel to);

/* Adds columns of a child's update to columns of its parent, or of its parent's update: what falls
 * into those columns, and nothing else. */
void front_add_child(const symbolic *s, int child, panel from, panel to, bool to_update);

/* Factors columns of a supernode: the diagonal block, then what is below. Returns 0, or the number
 * of the column, from 1, whose pivot is not positive. */
int front_factor(panel columns);

/* Subtracts the product of factored columns of a supernode from later ones. */
void front_subtract(panel factored, panel columns);

/* Subtracts the product of factored columns from columns of the update, which the supernode's first
 * columns overwrite. */
void front_subtract_update(panel factored, panel update);

/* The whole update of a supernode, which stands at value. */
panel front_update(const supernode *node, double *value);

/* Doubles of workspace for front_factor_subtrees(). */
size_t front_workspace(const symbolic *s, int first, int end);

/* Factors the whole subtrees that are the supernodes first to end - 1, whose columns begin at
 * value, with size doubles of workspace. The updates of their roots go to out, one behind the
 * other. Returns 0, or the column of the factor, from 1, whose pivot is not positive. */
int front_factor_subtrees(const symbolic *s, int first, int end, const double *values,
                          double *value, double *workspace, size_t size, double *out);

/* y := L^-1 y and y := L^-T y, as far as a supernode goes; value is the whole factor. part has room
 * for the supernode's rows. */
void front_solve(const symbolic *s, int at, const double *value, double *y, double *part);
void front_solve_transposed(const symbolic *s, int at, const double *value, double *y,
                            double *part);

#endif
