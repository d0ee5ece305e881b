/* SPDX-License-Identifier: Apache-2.0 */
/* Compiled functions for the tests of the Python package. */
#include "filch/filch.h"

int scale(const filch_call *call);
int zero(const filch_call *call);
int add(const filch_call *call);
int count(const filch_call *call);
int sums(const filch_call *call);
int multiply(const filch_call *call);
int add_state(const filch_call *call);
int open_state(filch_runtime *runtime, uint32_t device, void *user, void **state);
void close_state(uint32_t device, void *user, void *state);
int later(const filch_call *call);
double rows(const filch_call *call);

/* View 0 times the argument. */
int scale(const filch_call *call)
{
    double *x = call->views[0].ptr;
    for (uint64_t j = 0; j < call->views[0].cols; j++)
        for (uint64_t i = 0; i < call->views[0].rows; i++)
            x[j * call->views[0].ld + i] *= *(const double *)call->args;
    return 0;
}

int zero(const filch_call *call)
{
    double *x = call->views[0].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        x[i] = 0;
    return 0;
}

/* View 1 added to view 0. */
int add(const filch_call *call)
{
    double *x = call->views[0].ptr;
    const double *y = call->views[1].ptr;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        x[i] += y[i];
    return 0;
}

/* Items of a batch: each element of view 0 becomes its number. Fails for an element below 0. */
int count(const filch_call *call)
{
    double *x = call->views[0].ptr;
    for (uint64_t i = call->lo; i < call->hi; i++) {
        if (x[i - call->lo] < 0)
            return 7;
        x[i - call->lo] = (double)i;
    }
    return 0;
}

/* Sum of view 0 by way of the scratch memory in view 1, into view 2. */
int sums(const filch_call *call)
{
    const double *x = call->views[0].ptr;
    double *copy = call->views[1].ptr, *sum = call->views[2].ptr;
    if (call->views[1].rows * call->views[1].element < call->views[0].rows * sizeof *copy)
        return 1;
    *sum = 0;
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        copy[i] = x[i];
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        *sum += copy[i];
    return 0;
}

double rows(const filch_call *call)
{
    return (double)call->views[0].rows;
}

/* y := A x for a row block of int and double; tiles of x. */
int multiply(const filch_call *call)
{
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &a) != FILCH_OK) {
        return 1;
    }
    const int *pointers = a.pointers, *columns = a.columns;
    const double *values = a.values, *x = call->views[1].ptr;
    double *y = call->views[2].ptr;
    for (uint64_t i = 0; i < a.rows; ++i) {
        y[i] = 0;
        for (int k = pointers[i]; k < pointers[i + 1]; ++k) {
            y[i] += values[k] * x[(uint64_t)columns[k] - call->views[1].row];
        }
    }
    return 0;
}

/* Adds the device's state and the user's number to view 0. */
int add_state(const filch_call *call)
{
    double *x = call->views[0].ptr;
    *x += *(const double *)call->state + (call->user != NULL ? *(const double *)call->user : 0);
    return 0;
}

/* The state of a device is one of the user's numbers; a number below 0 is refused. */
int open_state(filch_runtime *runtime, uint32_t device, void *user, void **state)
{
    (void)runtime;
    *state = (double *)user + device;
    return *(double *)*state < 0 ? 5 : 0;
}

void close_state(uint32_t device, void *user, void *state)
{
    (void)device;
    (void)user;
    *(double *)state = -1;
}

/* Leaves its handle where the argument points, and ends later. */
int later(const filch_call *call)
{
    if (filch_call_pend(call, *(filch_pending *const *)call->args) != FILCH_OK)
        return 1;
    return FILCH_PENDING;
}
