/* SPDX-License-Identifier: Apache-2.0 */
/* Orderings that keep the factor sparse, by SuiteSparse. */
#ifndef ORDER_H
#define ORDER_H

#include "matrix.h"

typedef enum ordering {
    ORDER_METIS, /* nested dissection */
    ORDER_AMD    /* approximate minimum degree */
} ordering;

/* Fills in the n elements of order: row order[i] of the matrix becomes row i. */
bool order_find(const matrix *a, ordering by, int *order, char why[WHY]);

#endif
