/* SPDX-License-Identifier: Apache-2.0 */
/* The multifrontal method: I. S. Duff, J. K. Reid, "The multifrontal solution of indefinite sparse
 * symmetric linear equations", ACM TOMS 9 (1983). */
#include "front.h"

#include <cblas.h>
#include <lapacke.h>
#include <string.h>

void front_fill(const symbolic *s, int at, const double *values, panel to)
{
    const supernode *node = &s->node[at];
    for (int k = to.first; k < to.first + to.cols; k++) {
        double *column = to.value + (size_t)(k - to.first) * (size_t)to.ld;
        memset(column + k, 0, (size_t)(to.rows - k) * sizeof *column);
        for (int p = s->start[node->first + k]; p < s->start[node->first + k + 1]; p++)
            column[s->entry_place[p]] = values[s->entry[p]];
    }
}

void front_add_child(const symbolic *s, int child, panel from, panel to, bool to_update)
{
    const supernode *node = &s->node[child];
    const int *place = &s->place[node->index + node->cols];
    const int skip = to_update ? s->node[node->parent].cols : 0; /* rows of the parent above */
    const int low = skip + to.first, high = low + to.cols;
    for (int k = from.first; k < from.first + from.cols && place[k] < high; k++) {
        if (place[k] < low)
            continue;
        const double *source = from.value + (size_t)(k - from.first) * (size_t)from.ld;
        double *column = to.value + (size_t)(place[k] - low) * (size_t)to.ld - skip;
        for (int i = k; i < from.rows; i++)
            column[place[i]] += source[i];
    }
}

int front_factor(panel c)
{
    double *diagonal = c.value + c.first;
    const int below = c.rows - c.first - c.cols;
    const int bad = LAPACKE_dpotrf_work(LAPACK_COL_MAJOR, 'L', c.cols, diagonal, c.ld);
    if (bad)
        return c.first + bad;
    if (below > 0)
        cblas_dtrsm(CblasColMajor, CblasRight, CblasLower, CblasTrans, CblasNonUnit, below, c.cols,
                    1, diagonal, c.ld, diagonal + c.cols, c.ld);
    return 0;
}

/* C := beta C - L L^T in the lower part of some columns of a square; l and c are the row of the
 * first column's diagonal. */
static void subtract(const double *l, int depth, int ldl, double beta, double *c, int cols,
                     int rows, int ldc)
{
    cblas_dsyrk(CblasColMajor, CblasLower, CblasNoTrans, cols, depth, -1, l, ldl, beta, c, ldc);
    if (rows > cols)
        cblas_dgemm(CblasColMajor, CblasNoTrans, CblasTrans, rows - cols, cols, depth, -1, l + cols,
                    ldl, l, ldl, beta, c + cols, ldc);
}

void front_subtract(panel factored, panel c)
{
    subtract(factored.value + c.first, factored.cols, factored.ld, 1, c.value + c.first, c.cols,
             c.rows - c.first, c.ld);
}

void front_subtract_update(panel factored, panel update)
{
    const int above = factored.rows - update.rows;
    subtract(factored.value + above + update.first, factored.cols, factored.ld,
             factored.first == 0 ? 0 : 1, update.value + update.first, update.cols,
             update.rows - update.first, update.ld);
}

/* Updates wait for their parents in two stacks at the two ends of the workspace: those of even
 * depth in the tree in one, the others in the other. A supernode's update goes onto one stack while
 * its children's, the last of the other, are still there: nothing has to be moved. */
typedef struct stacks {
    double *memory;
    size_t size, used[2];
} stacks;

static double *stacks_top(const stacks *w, int depth)
{
    return depth % 2 ? w->memory + w->size - w->used[1] : w->memory + w->used[0];
}

/* Makes room for an update; it stands where the stack's last element does. */
static double *stacks_push(stacks *w, const supernode *node)
{
    double *even = stacks_top(w, 0);
    w->used[node->depth % 2] += supernode_update(node);
    return node->depth % 2 ? stacks_top(w, 1) : even;
}

static double *stacks_pop(stacks *w, const supernode *node)
{
    double *odd = stacks_top(w, 1);
    w->used[node->depth % 2] -= supernode_update(node);
    return node->depth % 2 ? odd : stacks_top(w, 0);
}

panel front_update(const supernode *node, double *value)
{
    const int below = node->rows - node->cols;
    return (panel){value, 0, below, below, below};
}

size_t front_workspace(const symbolic *s, int first, int end)
{
    size_t used[2] = {0}, most = 0;
    for (int at = first; at < end; at++) {
        const supernode *node = &s->node[at];
        if (node->parent >= 0 && node->parent < end)
            used[node->depth % 2] += supernode_update(node);
        most = used[0] + used[1] > most ? used[0] + used[1] : most;
        for (int c = node->child; c >= 0; c = s->node[c].sibling)
            used[s->node[c].depth % 2] -= supernode_update(&s->node[c]);
    }
    return most;
}

int front_factor_subtrees(const symbolic *s, int first, int end, const double *values,
                          double *value, double *workspace, size_t size, double *out)
{
    stacks waiting = {workspace, size, {0}};
    for (int at = first; at < end; at++) {
        const supernode *node = &s->node[at];
        const bool is_root = node->parent < 0 || node->parent >= end;
        const panel columns = {value + (node->value - s->node[first].value), 0, node->cols,
                               node->rows, node->rows};
        const panel update = front_update(node, is_root ? out : stacks_push(&waiting, node));
        front_fill(s, at, values, columns);
        stacks children = waiting;
        for (int c = node->child; c >= 0; c = s->node[c].sibling) {
            const panel from = front_update(&s->node[c], stacks_pop(&children, &s->node[c]));
            front_add_child(s, c, from, columns, false);
        }
        const int bad = front_factor(columns);
        if (bad)
            return node->first + bad;
        if (update.rows > 0)
            front_subtract_update(columns, update);
        for (int c = node->child; c >= 0; c = s->node[c].sibling) {
            const panel from = front_update(&s->node[c], stacks_pop(&waiting, &s->node[c]));
            front_add_child(s, c, from, update, true);
        }
        if (is_root && out)
            out += supernode_update(node);
    }
    return 0;
}

void front_solve(const symbolic *s, int at, const double *value, double *y, double *part)
{
    const supernode *node = &s->node[at];
    const int *row = &s->row[node->index + node->cols];
    const double *l = value + node->value;
    const int below = node->rows - node->cols;
    cblas_dtrsv(CblasColMajor, CblasLower, CblasNoTrans, CblasNonUnit, node->cols, l, node->rows,
                y + node->first, 1);
    if (below == 0)
        return;
    cblas_dgemv(CblasColMajor, CblasNoTrans, below, node->cols, 1, l + node->cols, node->rows,
                y + node->first, 1, 0, part, 1);
    for (int i = 0; i < below; i++)
        y[row[i]] -= part[i];
}

void front_solve_transposed(const symbolic *s, int at, const double *value, double *y, double *part)
{
    const supernode *node = &s->node[at];
    const int *row = &s->row[node->index + node->cols];
    const double *l = value + node->value;
    const int below = node->rows - node->cols;
    for (int i = 0; i < below; i++)
        part[i] = y[row[i]];
    if (below > 0)
        cblas_dgemv(CblasColMajor, CblasTrans, below, node->cols, -1, l + node->cols, node->rows,
                    part, 1, 1, y + node->first, 1);
    cblas_dtrsv(CblasColMajor, CblasLower, CblasTrans, CblasNonUnit, node->cols, l, node->rows,
                y + node->first, 1);
}
