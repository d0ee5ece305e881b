/* SPDX-License-Identifier: Apache-2.0 */
/* What the factor will look like: elimination tree, supernodes, and the rows of each. */
#ifndef SYMBOLIC_H
#define SYMBOLIC_H

#include <stddef.h>

#include "matrix.h"

/* Columns of the factor that are stored as one dense block of rows x cols, by columns. The first
 * cols rows are those of the diagonal block. */
typedef struct supernode {
    int first, cols; /* its columns, in the new order */
    int rows;
    int parent;    /* the supernode of the first row below the diagonal block; -1: there is none */
    int child;     /* its last child; -1 where it has none */
    int sibling;   /* the child of its parent before it; -1 where it is the first */
    int depth;     /* steps to the root of the tree */
    int64_t index; /* of its first row in symbolic.row and symbolic.place */
    int64_t value; /* of its first element in the factor */
} supernode;

typedef struct symbolic {
    int n, count;     /* columns and supernodes */
    int *order;       /* row order[i] of the matrix is row i of the factor */
    supernode *node;  /* in postorder: children before parents, subtrees without gaps */
    int *row;         /* the rows of each supernode, ascending, in the new order */
    int *place;       /* where each row below the diagonal block stands among the parent's rows */
    int *start;       /* the matrix in the new order: column j has the entries start[j] ... */
    int *entry;       /* ... which are these of the matrix ... */
    int *entry_place; /* ... in these rows of the column's supernode */
    int64_t values;   /* elements of the factor, zeros included */
    double entries;   /* elements of the factor, without those zeros */
    double flops;     /* of the factorization, the zeros' included */
} symbolic;

/* Analyses a matrix in an order, which is refined by a postorder of the elimination tree. */
bool symbolic_make(symbolic *made, const matrix *a, const int *order, char why[WHY]);

void symbolic_free(symbolic *s);

/* Operations to eliminate the columns of a supernode. */
double supernode_flops(const supernode *node);

/* Elements of the square that holds a supernode's update. */
size_t supernode_update(const supernode *node);

#endif
