/* SPDX-License-Identifier: Apache-2.0 */
/* Sparse symmetric matrices: the lower triangle by columns. */
#ifndef MATRIX_H
#define MATRIX_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes of the text that tells why a function failed. */
enum { WHY = 256 };

/* Column j has the rows row[start[j]] to row[start[j + 1] - 1], ascending and j or below. */
typedef struct matrix {
    int n;
    int *start, *row;
    double *value;
} matrix;

/* The matrix of the 7-point Laplacian on k x k x k points; k is 1 to 800. */
bool matrix_poisson(matrix *made, int k, char why[WHY]);

/* Reads a Matrix Market file, coordinate, real or integer, symmetric or general. */
bool matrix_read(matrix *made, const char *path, char why[WHY]);

void matrix_free(matrix *a);

/* y := A x. */
void matrix_apply(const matrix *a, const double *x, double *y);

/* ||A x - b|| / (||A|| ||x||) in the maximum norm; a negative number where there is no memory. */
double matrix_residual(const matrix *a, const double *x, const double *b);

#endif
