/* SPDX-License-Identifier: Apache-2.0 */
/* Algorithms: J. W. H. Liu, "The role of elimination trees in sparse factorization", SIAM J.
 * Matrix Anal. Appl. 11 (1990); C. Ashcraft, R. Grimes, "The influence of relaxed supernode
 * partitions on the multifrontal method", ACM TOMS 15 (1989). */
#include "symbolic.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The reordered lower triangle, by rows or by columns. */
typedef struct pattern {
    int *start, *index, *entry; /* the other coordinate, and which entry of the matrix it is */
} pattern;

/* Columns while supernodes are being formed. */
typedef struct group {
    int first, cols, rows;
    double zeros; /* elements of the block that are zero whatever the matrix's values */
} group;

static void pattern_free(pattern *p)
{
    free(p->start);
    free(p->index);
    free(p->entry);
}

static bool pattern_make(pattern *made, const matrix *a, const int *inverse, bool by_rows)
{
    const size_t n = (size_t)a->n, entries = (size_t)a->start[n];
    pattern p = {calloc(n + 2, sizeof(int)), malloc((entries + 1) * sizeof(int)),
                 malloc((entries + 1) * sizeof(int))};
    *made = p;
    if (!p.start || !p.index || !p.entry)
        return false;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill: start[k + 1] is where k goes on */
        for (int j = 0; j < a->n; j++) {
            for (int e = a->start[j]; e < a->start[j + 1]; e++) {
                const int i = inverse[a->row[e]], k = inverse[j];
                const int low = i > k ? i : k, high = i > k ? k : i;
                const int major = by_rows ? low : high, minor = by_rows ? high : low;
                if (pass == 0) {
                    p.start[major + 2]++;
                } else {
                    p.index[p.start[major + 1]] = minor;
                    p.entry[p.start[major + 1]++] = e;
                }
            }
        }
        for (int k = 2; pass == 0 && k <= a->n; k++)
            p.start[k] += p.start[k - 1];
    }
    return true;
}

/* The elimination tree, with compressed paths to the roots of the part seen so far. */
static void find_parents(const pattern *rows, int n, int *parent, int *ancestor)
{
    for (int i = 0; i < n; i++) {
        parent[i] = ancestor[i] = -1;
        for (int p = rows->start[i]; p < rows->start[i + 1]; p++) {
            for (int j = rows->index[p], next; j >= 0 && j < i; j = next) {
                next = ancestor[j];
                ancestor[j] = i;
                if (next < 0)
                    parent[j] = i;
            }
        }
    }
}

/* Counts the entries of each column of the factor: row i of the factor has the columns on the paths
 * in the tree from the entries of row i of the matrix up to i. */
static void count_rows(const pattern *rows, int n, const int *parent, int *count, int *mark)
{
    for (int i = 0; i < n; i++) {
        count[i] = 1, mark[i] = i;
        for (int p = rows->start[i]; p < rows->start[i + 1]; p++)
            for (int j = rows->index[p]; mark[j] != i; j = parent[j])
                count[j]++, mark[j] = i;
    }
}

/* A postorder of the tree in which the child with the longest column comes last, next to its
 * parent: these two are the likeliest to become one supernode. new[j] is where column j goes. The
 * walk numbers from the end: parents first, the last child next. */
static void find_postorder(int n, const int *parent, const int *count, int *new, int *child,
                           int *sibling)
{
    int at = n;
    memset(child, -1,
           ((size_t)n + 1) * sizeof *child); /* the last child; child[n]: the last root */
    for (int j = 0; j < n; j++) {
        int *link = &child[parent[j] < 0 ? n : parent[j]];
        if (*link >= 0 && count[*link] > count[j])
            link = &sibling[*link];
        sibling[j] = *link;
        *link = j;
    }
    for (int j = child[n]; j >= 0;) {
        new[j] = --at;
        if (child[j] >= 0) {
            j = child[j];
            continue;
        }
        while (j >= 0 && sibling[j] < 0)
            j = parent[j];
        j = j < 0 ? -1 : sibling[j];
    }
}

double supernode_flops(const supernode *node)
{
    double sum = 0;
    for (int k = 0; k < node->cols; k++)
        sum += (double)(node->rows - k) * (node->rows - k);
    return sum;
}

size_t supernode_update(const supernode *node)
{
    return (size_t)(node->rows - node->cols) * (size_t)(node->rows - node->cols);
}

/* Whether a group and the one of its parent become one. Few columns make slow products of matrices,
 * so that some zeros are worth while. The limits were found by trial. */
static bool is_worth_merging(const group *child, const group *parent, group *merged)
{
    static const struct {
        int cols;
        double zeros; /* at most this part of the block */
    } limits[] = {{8, 1}, {16, 0.8}, {48, 0.2}, {INT32_MAX, 0.05}};
    const int cols = child->cols + parent->cols, rows = child->cols + parent->rows;
    const double elements = (double)cols * rows - 0.5 * cols * (cols - 1.0);
    *merged = (group){child->first, cols, rows,
                      child->zeros + parent->zeros + (double)child->cols * (rows - child->rows)};
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        if (cols <= limits[i].cols && merged->zeros <= limits[i].zeros * elements)
            return true;
    return false;
}

/* Forms supernodes: a stack of groups, onto which column after column goes. A group under the top
 * whose parent is the top's first column may join it. Returns their number. */
static int form_groups(int n, const int *parent, const int *count, group *groups)
{
    int top = 0;
    for (int j = 0; j < n; j++) {
        group *last = top ? &groups[top - 1] : NULL, merged;
        if (last && parent[j - 1] == j && count[j - 1] == count[j] + 1) { /* the same rows below */
            last->cols++;
        } else {
            groups[top++] = (group){.first = j, .cols = 1, .rows = count[j]};
        }
        const bool complete = j + 1 == n || parent[j] != j + 1 || count[j] != count[j + 1] + 1;
        while (complete && top > 1) {
            const group *under = &groups[top - 2], *over = &groups[top - 1];
            const int up = parent[over->first - 1];
            if (up < over->first || up >= over->first + over->cols ||
                !is_worth_merging(under, over, &merged))
                break;
            groups[--top - 1] = merged;
        }
    }
    return top;
}

static int ascending(const void *left, const void *right)
{
    const int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* Collects the rows of a supernode: of the matrix's entries in its columns, and of its children,
 * which have their rows already. mark[i] is the last supernode that found row i. */
static void find_rows(symbolic *s, const pattern *columns, int at, int *mark)
{
    supernode *node = &s->node[at];
    int *rows = &s->row[node->index], found = 0;
    for (int j = node->first; j < node->first + node->cols; j++)
        rows[found++] = j, mark[j] = at;
    for (int p = columns->start[node->first]; p < columns->start[node->first + node->cols]; p++) {
        const int i = columns->index[p];
        if (mark[i] != at)
            rows[found++] = i, mark[i] = at;
    }
    for (int c = node->child; c >= 0; c = s->node[c].sibling) {
        const int *below = &s->row[s->node[c].index];
        for (int k = s->node[c].cols; k < s->node[c].rows; k++)
            if (mark[below[k]] != at)
                rows[found++] = below[k], mark[below[k]] = at;
    }
    qsort(rows + node->cols, (size_t)(found - node->cols), sizeof *rows, ascending);
    node->rows = found;
}

/* Finds where rows of a supernode stand among those of its parent, and in which of its rows entries
 * of the matrix stand: entry_place has their rows in the new order until then. */
static void find_places(symbolic *s, int at)
{
    const supernode *node = &s->node[at];
    const int *rows = &s->row[node->index];
    for (int j = node->first; j < node->first + node->cols; j++) {
        for (int p = s->start[j]; p < s->start[j + 1]; p++) {
            const int *found =
                bsearch(&s->entry_place[p], rows, (size_t)node->rows, sizeof *rows, ascending);
            s->entry_place[p] = (int)(found - rows);
        }
    }
    if (node->parent < 0)
        return;
    const int *up = &s->row[s->node[node->parent].index];
    for (int k = node->cols, place = 0; k < node->rows; k++) {
        while (up[place] != rows[k])
            place++;
        s->place[node->index + k] = place;
    }
}

/* Makes the supernodes from the groups, and what lies in them. */
static bool fill_nodes(symbolic *s, const group *groups, const int *parent, const pattern *columns,
                       int *scratch)
{
    int *node_of = scratch, *mark = scratch + s->n;
    int64_t rows = 0;
    for (int at = 0; at < s->count; at++) {
        const group *g = &groups[at];
        s->node[at] = (supernode){.first = g->first,
                                  .cols = g->cols,
                                  .rows = g->rows,
                                  .parent = -1,
                                  .child = -1,
                                  .sibling = -1,
                                  .index = rows,
                                  .value = s->values};
        for (int j = g->first; j < g->first + g->cols; j++)
            node_of[j] = at;
        rows += g->rows;
        s->values += (int64_t)g->rows * g->cols;
        s->flops += supernode_flops(&s->node[at]);
    }
    s->row = malloc((size_t)rows * sizeof(int));
    s->place = malloc((size_t)rows * sizeof(int));
    if (!s->row || !s->place)
        return false;
    for (int at = 0; at < s->count; at++) {
        supernode *node = &s->node[at];
        const int up = parent[node->first + node->cols - 1];
        if (up >= 0) {
            node->parent = node_of[up];
            node->sibling = s->node[node->parent].child;
            s->node[node->parent].child = at;
        }
    }
    for (int at = s->count - 1; at >= 0; at--)
        s->node[at].depth = s->node[at].parent < 0 ? 0 : s->node[s->node[at].parent].depth + 1;
    memset(mark, -1, (size_t)s->n * sizeof *mark);
    for (int at = 0; at < s->count; at++)
        find_rows(s, columns, at, mark);
    for (int at = 0; at < s->count; at++)
        find_places(s, at);
    return true;
}

/* The work arrays of the analysis: seven of n integers and one more for find_postorder(). */
typedef struct arrays {
    int *all, *inverse, *parent, *count, *mark, *moved;
} arrays;

/* Refines the order by a postorder of the tree; parent and count follow. */
static bool order_tree(symbolic *s, const matrix *a, const int *order, arrays *w)
{
    const int n = s->n;
    pattern rows;
    for (int i = 0; i < n; i++)
        w->inverse[order[i]] = i;
    const bool made = pattern_make(&rows, a, w->inverse, true);
    if (made) {
        find_parents(&rows, n, w->parent, w->mark);
        count_rows(&rows, n, w->parent, w->count, w->mark);
        find_postorder(n, w->parent, w->count, w->moved, w->mark, w->mark + n + 1);
        int *parent = w->mark, *count = w->mark + n;
        memcpy(parent, w->parent, (size_t)n * sizeof *parent);
        memcpy(count, w->count, (size_t)n * sizeof *count);
        for (int j = 0; j < n; j++) {
            const int to = w->moved[j];
            w->parent[to] = parent[j] < 0 ? -1 : w->moved[parent[j]];
            w->count[to] = count[j];
            s->order[to] = order[j];
            s->entries += count[j];
        }
        for (int i = 0; i < n; i++)
            w->inverse[s->order[i]] = i;
    }
    pattern_free(&rows);
    return made;
}

static bool analyse(symbolic *s, const matrix *a, const int *order, arrays *w)
{
    pattern columns = {0};
    group *groups = malloc((size_t)a->n * sizeof *groups);
    bool made = groups && s->order && order_tree(s, a, order, w);
    if (made) {
        made = pattern_make(&columns, a, w->inverse, false);
        s->start = columns.start, s->entry = columns.entry, s->entry_place = columns.index;
    }
    if (made) {
        s->count = form_groups(a->n, w->parent, w->count, groups);
        s->node = malloc((size_t)s->count * sizeof *s->node);
        made = s->node && fill_nodes(s, groups, w->parent, &columns, w->mark);
    }
    free(groups);
    return made;
}

bool symbolic_make(symbolic *made, const matrix *a, const int *order, char why[WHY])
{
    const size_t n = (size_t)a->n;
    arrays w = {.all = calloc(7 * n + 1, sizeof(int))};
    *made = (symbolic){.n = a->n, .order = malloc(n * sizeof(int))};
    bool done = w.all != NULL;
    if (done) {
        w.inverse = w.all, w.parent = w.all + n, w.count = w.all + 2 * n, w.moved = w.all + 3 * n;
        w.mark = w.all + 4 * n; /* the rest: scratch memory of three arrays */
        done = analyse(made, a, order, &w);
    }
    free(w.all);
    if (!done) {
        symbolic_free(made);
        snprintf(why, WHY, "no memory for the analysis of %d columns", a->n);
    }
    return done;
}

void symbolic_free(symbolic *s)
{
    free(s->order);
    free(s->node);
    free(s->row);
    free(s->place);
    free(s->start);
    free(s->entry);
    free(s->entry_place);
    *s = (symbolic){0};
}
