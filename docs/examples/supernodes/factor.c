/* SPDX-License-Identifier: Apache-2.0 */
#include "factor.h"

#include <stdio.h>
#include <stdlib.h>

#include "front.h"
#include "tasks.h"

enum { ACCESSES = 255 }; /* of a task */

/* The handles of a supernode, cut into panels; or of a bundle, one tile each. */
typedef struct block {
    filch_data *columns, *update;
} block;

struct factor {
    filch_runtime *runtime;
    filch_graph *graph;
    problem p;
    codelets code;
    double *value;
    block *node, *bundle;
    size_t sources, source_space; /* of p.source */
    int tasks;
    bool is_out_of_memory; /* not filch, which tells itself what failed */
};

/* A task that is being put together. */
typedef struct draft {
    filch_codelet *codelet;
    step step;
    uint32_t count;
    filch_access access[ACCESSES];
} draft;

/* Begins a task of a supernode, or of a bundle, with the tile that it writes. */
static draft begin_task(const factor *f, filch_codelet *codelet, int node, double work,
                        filch_access written)
{
    draft d = {.codelet = codelet, .step = {.p = &f->p, .node = node, .work = work}, .count = 1};
    d.access[0] = written;
    return d;
}

static bool add_task(factor *f, const draft *d)
{
    filch_task_desc task = FILCH_TASK_DESC_INIT;
    task.codelet = d->codelet, task.args = &d->step;
    task.accesses = d->access, task.access_count = d->count;
    f->tasks++;
    return filch_graph_add(f->graph, &task, NULL) == FILCH_OK;
}

/* Lets a task read a tile of updates. A task that is full is added, and another one goes on. */
static bool add_source(factor *f, draft *d, int source, filch_data *data, uint32_t col)
{
    if (d->count == ACCESSES) {
        if (!add_task(f, d))
            return false;
        d->codelet = f->code.gather;
        d->step.goes_on = true, d->step.source = f->sources, d->step.work = 1;
        d->access[0].mode = FILCH_READWRITE, d->count = 1;
    }
    if (f->sources == f->source_space) {
        f->source_space = 2 * f->source_space + 1024;
        int *more = realloc(f->p.source, f->source_space * sizeof *more);
        if (!more)
            return f->is_out_of_memory = true, false;
        f->p.source = more;
    }
    f->p.source[f->sources++] = source;
    d->access[d->count++] = (filch_access)FILCH_R(data, 0, col);
    return true;
}

/* Lets a task read what falls into the rows low to high - 1 of its supernode: the updates of
 * bundles of children, and those panels of other children's. */
static bool add_sources(factor *f, draft *d, int low, int high)
{
    const symbolic *s = f->p.s;
    int last = -1;
    d->step.source = f->sources;
    for (int c = s->node[d->step.node].child; c >= 0; c = s->node[c].sibling) {
        const supernode *child = &s->node[c];
        const int below = child->rows - child->cols, part = f->p.c->part[c];
        const int *place = &s->place[child->index + child->cols];
        if (part >= 0 && part != last && !add_source(f, d, ~part, f->bundle[part].update, 0))
            return false;
        last = part;
        const int width = cut_width(f->p.c, below);
        for (int first = 0; part < 0 && first < below; first += width) {
            const int end = first + width < below ? first + width : below;
            if (place[first] < high && place[end - 1] >= low &&
                !add_source(f, d, c, f->node[c].update, (uint32_t)(first / width)))
                return false;
        }
    }
    return true;
}

/* Adds the tasks that make panel j of a supernode's columns. */
static bool add_columns(factor *f, int at, int j)
{
    const supernode *node = &f->p.s->node[at];
    const int width = cut_width(f->p.c, node->cols), first = j * width;
    const int cols = first + width < node->cols ? width : node->cols - first;
    const double size = (double)(node->rows - first) * cols;
    filch_data *columns = f->node[at].columns;
    const filch_access written = FILCH_W(columns, 0, j), changed = FILCH_RW(columns, 0, j);
    draft d = begin_task(f, f->code.gather, at, size, written);
    if (!add_sources(f, &d, first, first + cols) || !add_task(f, &d))
        return false;
    for (int k = 0; k < j; k++) {
        d = begin_task(f, f->code.subtract, at, 2 * size * width, changed);
        d.access[d.count++] = (filch_access)FILCH_R(columns, 0, k);
        if (!add_task(f, &d))
            return false;
    }
    d = begin_task(f, f->code.pivot, at, size * cols, changed);
    return add_task(f, &d);
}

/* Adds the task that makes panel j of a supernode's update. */
static bool add_update(factor *f, int at, int j)
{
    const supernode *node = &f->p.s->node[at];
    const int below = node->rows - node->cols, width = cut_width(f->p.c, below);
    const int first = j * width, end = first + width < below ? first + width : below;
    const double work = 2.0 * (below - first) * (end - first) * node->cols;
    draft d =
        begin_task(f, f->code.outer, at, work, (filch_access)FILCH_W(f->node[at].update, 0, j));
    for (int k = 0; k * cut_width(f->p.c, node->cols) < node->cols; k++)
        d.access[d.count++] = (filch_access)FILCH_R(f->node[at].columns, 0, k);
    d.step.is_update = true;
    d.step.factored = (int)d.count - 1;
    return add_sources(f, &d, node->cols + first, node->cols + end) && add_task(f, &d);
}

static bool add_supernode(factor *f, int at)
{
    const supernode *node = &f->p.s->node[at];
    const int below = node->rows - node->cols;
    for (int j = 0; j * cut_width(f->p.c, node->cols) < node->cols; j++)
        if (!add_columns(f, at, j))
            return false;
    for (int j = 0; j * cut_width(f->p.c, below) < below; j++)
        if (!add_update(f, at, j))
            return false;
    return true;
}

static bool add_bundle(factor *f, int k)
{
    const bundle *b = &f->p.c->bundle[k];
    const size_t space = front_workspace(f->p.s, b->first, b->end) + 1;
    draft d =
        begin_task(f, f->code.subtrees, k, 0, (filch_access)FILCH_W(f->bundle[k].columns, 0, 0));
    for (int at = b->first; at < b->end; at++)
        d.step.work += 2 * supernode_flops(&f->p.s->node[at]);
    if (b->update)
        d.access[d.count++] = (filch_access)FILCH_W(f->bundle[k].update, 0, 0);
    d.access[d.count++] = (filch_access){.mode = FILCH_SCRATCH, .bytes = space * sizeof(double)};
    return add_task(f, &d);
}

/* Makes the handle of a matrix in the factor or, without a pointer, of one that filch keeps. */
static bool make_handle(factor *f, double *ptr, size_t rows, size_t cols, size_t width,
                        filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = ptr, desc.element = sizeof *ptr, desc.flags = ptr ? 0 : FILCH_DATA_NO_BUFFER;
    desc.rows = desc.ld = desc.tile_rows = rows;
    desc.cols = cols, desc.tile_cols = width;
    return filch_data_create(f->runtime, &desc, data) == FILCH_OK;
}

static bool make_handles(factor *f)
{
    const symbolic *s = f->p.s;
    const cut *c = f->p.c;
    bool ok = true;
    for (int k = 0; ok && k < c->bundles; k++) {
        const bundle *b = &c->bundle[k];
        ok = make_handle(f, f->value + s->node[b->first].value, b->values, 1, 1,
                         &f->bundle[k].columns) &&
             (!b->update || make_handle(f, NULL, b->update, 1, 1, &f->bundle[k].update));
    }
    for (int at = 0; ok && at < s->count; at++) {
        const supernode *node = &s->node[at];
        const int below = node->rows - node->cols;
        ok = c->part[at] >= 0 ||
             (make_handle(f, f->value + node->value, (size_t)node->rows, (size_t)node->cols,
                          (size_t)cut_width(c, node->cols), &f->node[at].columns) &&
              (below == 0 || make_handle(f, NULL, (size_t)below, (size_t)below,
                                         (size_t)cut_width(c, below), &f->node[at].update)));
    }
    return ok;
}

/* Tasks are added in the order of a sequential factorization. */
static bool make_graph(factor *f)
{
    const cut *c = f->p.c;
    bool ok = tasks_make(f->runtime, &f->code) && make_handles(f) &&
              filch_graph_create(f->runtime, NULL, &f->graph) == FILCH_OK;
    for (int at = 0; ok && at < f->p.s->count; at++) {
        if (c->part[at] < 0)
            ok = add_supernode(f, at);
        else if (at == c->bundle[c->part[at]].first)
            ok = add_bundle(f, c->part[at]);
    }
    return ok && filch_graph_seal(f->graph) == FILCH_OK;
}

bool factor_make(factor **made, filch_runtime *runtime, const symbolic *s, const cut *c,
                 const matrix *a, char why[WHY])
{
    filch_error error = FILCH_ERROR_INIT;
    factor *f = calloc(1, sizeof *f);
    bool ok = f != NULL;
    if (ok) {
        *f = (factor){.runtime = runtime,
                      .p = {.s = s, .c = c, .values = a->value},
                      .value = malloc((size_t)s->values * sizeof *f->value),
                      .node = calloc((size_t)s->count, sizeof *f->node),
                      .bundle = calloc((size_t)c->bundles + 1, sizeof *f->bundle)};
        ok = f->value && f->node && f->bundle;
        f->is_out_of_memory = !ok;
        ok = ok && make_graph(f);
    }
    *made = f;
    if (ok)
        return true;
    snprintf(why, WHY, "no memory for a factor of %lld elements", (long long)s->values);
    if (f && !f->is_out_of_memory && filch_runtime_error(runtime, &error) == FILCH_OK)
        snprintf(why, WHY, "the graph cannot be built: %.200s", error.text);
    factor_free(f);
    *made = NULL;
    return false;
}

bool factor_run(factor *f, char why[WHY])
{
    filch_error error = FILCH_ERROR_INIT;
    if (filch_graph_run(f->graph, NULL, &error) == FILCH_OK)
        return true;
    snprintf(why, WHY, "%.255s", error.text);
    return false;
}

bool factor_solve(const factor *f, const double *b, double *x, char why[WHY])
{
    const symbolic *s = f->p.s;
    double *y = malloc((size_t)s->n * sizeof *y), *part = malloc((size_t)s->n * sizeof *part);
    const bool ok = y && part;
    for (int i = 0; ok && i < s->n; i++)
        y[i] = b[s->order[i]];
    for (int at = 0; ok && at < s->count; at++)
        front_solve(s, at, f->value, y, part);
    for (int at = s->count - 1; ok && at >= 0; at--)
        front_solve_transposed(s, at, f->value, y, part);
    for (int i = 0; ok && i < s->n; i++)
        x[s->order[i]] = y[i];
    free(y);
    free(part);
    if (!ok)
        snprintf(why, WHY, "no memory to solve a system of %d rows", s->n);
    return ok;
}

int factor_tasks(const factor *f)
{
    return f->tasks;
}

void factor_free(factor *f)
{
    if (!f)
        return;
    free(f->value);
    free(f->node);
    free(f->bundle);
    free(f->p.source);
    free(f);
}
