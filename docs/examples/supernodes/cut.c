/* SPDX-License-Identifier: Apache-2.0 */
#include "cut.h"

#include <stdio.h>
#include <stdlib.h>

/* At most so many panels: a task reads all of a supernode's, and some of its children's. */
enum { PANELS = 120 };

/* Where the caller names none: pieces for each core; and columns of a panel, in between one of so
 * many parts of the widest supernode. The numbers were found by trial on two cores. */
enum { PIECES = 8, NARROW = 48, WIDE = 256, SHARE = 6 };

/* The same where panels are factored on GPUs; pieces by trial on 16 cores and one GPU. */
enum { GPU_PIECES = 64, GPU_NARROW = 128, GPU_WIDE = 512, GPU_SHARE = 8 };

/* What a supernode costs, in operations of products of large matrices: those of small matrices are
 * slower, and elements that are only moved cost, too. */
static double cost(const supernode *node)
{
    return supernode_flops(node) * (1 + 16.0 / node->cols) + 8.0 * node->rows * node->rows;
}

/* Sums up the costs of subtrees, and finds the first supernode of each. Returns the whole. */
static double add_costs(const symbolic *s, double *below, int *leaf)
{
    double total = 0;
    for (int at = 0; at < s->count; at++) {
        const supernode *node = &s->node[at];
        const double own = cost(node);
        if (node->child < 0)
            leaf[at] = at;
        below[at] += own;
        total += own;
        if (node->parent >= 0)
            below[node->parent] += below[at];
        if (node->parent >= 0 && node->sibling < 0)
            leaf[node->parent] = leaf[at];
    }
    return total;
}

/* Makes bundles of the largest subtrees whose cost is within the limit; neighbours with a common
 * parent go together while their sum is. */
static void find_bundles(cut *c, const symbolic *s, const double *below, const int *leaf,
                         double limit)
{
    double sum = 0;
    for (int at = 0; at < s->count; at++) {
        const int parent = s->node[at].parent;
        c->part[at] = -1;
        if (below[at] > limit || (parent >= 0 && below[parent] <= limit))
            continue;
        bundle *last = c->bundles ? &c->bundle[c->bundles - 1] : NULL;
        if (!last || last->end != leaf[at] || s->node[last->end - 1].parent != parent ||
            sum + below[at] > limit) {
            last = &c->bundle[c->bundles++];
            *last = (bundle){.first = leaf[at]};
            sum = 0;
        }
        sum += below[at];
        last->end = at + 1;
        last->update += parent < 0 ? 0 : supernode_update(&s->node[at]);
    }
    for (int k = 0; k < c->bundles; k++) {
        bundle *b = &c->bundle[k];
        for (int at = b->first; at < b->end; at++) {
            c->part[at] = k;
            b->values += (size_t)s->node[at].rows * (size_t)s->node[at].cols;
        }
    }
}

static int choose_panel(const symbolic *s, bool gpu)
{
    const int narrow = gpu ? GPU_NARROW : NARROW, wide = gpu ? GPU_WIDE : WIDE;
    int widest = 0;
    for (int at = 0; at < s->count; at++)
        widest = s->node[at].cols > widest ? s->node[at].cols : widest;
    const int panel = (widest / (gpu ? GPU_SHARE : SHARE) + 15) / 16 * 16;
    return panel < narrow ? narrow : panel > wide ? wide : panel;
}

bool cut_make(cut *made, const symbolic *s, int cores, bool gpu, int panel, int pieces,
              char why[WHY])
{
    const size_t count = (size_t)s->count;
    double *below = calloc(count, sizeof *below);
    int *leaf = calloc(count, sizeof *leaf);
    *made = (cut){.bundle = calloc(count, sizeof *made->bundle),
                  .part = calloc(count, sizeof *made->part),
                  .panel = panel ? panel : choose_panel(s, gpu)};
    const bool ok = below && leaf && made->bundle && made->part;
    if (ok) {
        const double total = add_costs(s, below, leaf);
        const int usual = (gpu ? GPU_PIECES : PIECES) * cores;
        find_bundles(made, s, below, leaf, total / (pieces ? pieces : usual));
    } else {
        cut_free(made);
        snprintf(why, WHY, "no memory to cut %d supernodes", s->count);
    }
    free(below);
    free(leaf);
    return ok;
}

void cut_free(cut *c)
{
    free(c->bundle);
    free(c->part);
    *c = (cut){0};
}

int cut_width(const cut *c, int cols)
{
    int panels = (cols + c->panel - 1) / c->panel;
    panels = panels > PANELS ? PANELS : panels < 1 ? 1 : panels;
    return (cols + panels - 1) / panels;
}
