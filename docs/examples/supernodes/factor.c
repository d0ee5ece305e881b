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
    int number;     /* of a supernode: which of those that are cut into panels it is */
    int64_t offset; /* of a bundle's root: of its update in the bundle's */
} block;

/* What tasks read beside columns and updates. */
typedef struct inputs {
    filch_data *values, *start, *entry, *entry_place, *place;
} inputs;

struct factor {
    filch_runtime *runtime;
    filch_graph *graph;
    problem p;
    codelets code;
    double *value, *updates; /* of bundles */
    block *node, *bundle;
    inputs in;
    filch_data *pivots; /* a column for each supernode that is cut into panels */
    int *pivot;
    int numbers, panels; /* supernodes that are cut into panels, and the most panels of one */
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

/* Adds the task that adds a tile of a child's update to a panel, or to a panel of the update. The
 * panel has the rows low to high - 1 of its supernode. */
static bool add_child(factor *f, int child, filch_access to, filch_access from, int low, int high,
                      int skip)
{
    const symbolic *s = f->p.s;
    const supernode *node = &s->node[child];
    const int part = f->p.c->part[child], below = node->rows - node->cols;
    const int64_t place = node->index + node->cols;
    const int width = part >= 0 ? below : cut_width(f->p.c, below);
    const int first = part >= 0 ? 0 : width * (int)from.col;
    double work = 1;
    draft d = begin_task(f, f->code.add, child, 0, to);
    for (int k = first; k < first + width && k < below; k++)
        work += s->place[place + k] >= low && s->place[place + k] < high ? below - k : 0;
    d.step.work = work, d.step.place = place, d.step.below = below, d.step.skip = skip;
    d.step.is_whole = part >= 0, d.step.offset = part >= 0 ? f->node[child].offset : 0;
    d.access[d.count++] = from;
    d.access[d.count++] = (filch_access)FILCH_R(f->in.place, 0, 0);
    return add_task(f, &d);
}

/* Adds the tasks that add to a panel what children subtract from its columns. */
static bool add_children(factor *f, int at, filch_access to, int low, int high, int skip)
{
    const symbolic *s = f->p.s;
    for (int c = s->node[at].child; c >= 0; c = s->node[c].sibling) {
        const supernode *child = &s->node[c];
        const int below = child->rows - child->cols, part = f->p.c->part[c];
        const int *place = &s->place[child->index + child->cols];
        const int width = part >= 0 ? below : cut_width(f->p.c, below);
        for (int first = 0; first < below; first += width) {
            const int end = first + width < below ? first + width : below;
            const filch_access from =
                FILCH_R(part >= 0 ? f->bundle[part].update : f->node[c].update, 0, first / width);
            if (place[first] < high && place[end - 1] >= low &&
                !add_child(f, c, to, from, low, high, skip))
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
    draft d = begin_task(f, f->code.fill, at, size, written);
    d.step.first = node->first;
    d.access[d.count++] = (filch_access)FILCH_R(f->in.values, 0, 0);
    d.access[d.count++] = (filch_access)FILCH_R(f->in.start, 0, 0);
    d.access[d.count++] = (filch_access)FILCH_R(f->in.entry, 0, 0);
    d.access[d.count++] = (filch_access)FILCH_R(f->in.entry_place, 0, 0);
    if (!add_task(f, &d) || !add_children(f, at, changed, first, first + cols, 0))
        return false;
    for (int k = 0; k < j; k++) {
        d = begin_task(f, f->code.subtract, at, 2 * size * width, changed);
        d.access[d.count++] = (filch_access)FILCH_R(columns, 0, k);
        if (!add_task(f, &d))
            return false;
    }
    const size_t space = (size_t)f->code.space.elements * sizeof(double);
    d = begin_task(f, f->code.pivot, at, size * cols, changed);
    d.step.panel = j;
    d.access[d.count++] = (filch_access)FILCH_ACCESS(f->pivots, 0, f->node[at].number,
                                                     j == 0 ? FILCH_WRITE : FILCH_READWRITE);
    if (space > 0)
        d.access[d.count++] = (filch_access){.mode = FILCH_SCRATCH, .bytes = space};
    return add_task(f, &d);
}

/* Adds the tasks that make panel j of a supernode's update. */
static bool add_update(factor *f, int at, int j)
{
    const supernode *node = &f->p.s->node[at];
    const int below = node->rows - node->cols, width = cut_width(f->p.c, below);
    const int first = j * width, end = first + width < below ? first + width : below;
    const double work = 2.0 * (below - first) * (end - first) * node->cols;
    filch_data *update = f->node[at].update;
    draft d = begin_task(f, f->code.outer, at, work, (filch_access)FILCH_W(update, 0, j));
    for (int k = 0; k * cut_width(f->p.c, node->cols) < node->cols; k++)
        d.access[d.count++] = (filch_access)FILCH_R(f->node[at].columns, 0, k);
    return add_task(f, &d) && add_children(f, at, (filch_access)FILCH_RW(update, 0, j),
                                           node->cols + first, node->cols + end, node->cols);
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

/* Makes a handle of doubles cut into panels or, without a pointer, one that filch keeps. */
static bool make_handle(factor *f, double *ptr, size_t rows, size_t cols, size_t width,
                        filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = ptr, desc.element = sizeof *ptr, desc.flags = ptr ? 0 : FILCH_DATA_NO_BUFFER;
    desc.rows = desc.ld = desc.tile_rows = rows;
    desc.cols = cols, desc.tile_cols = width;
    return filch_data_create(f->runtime, &desc, data) == FILCH_OK;
}

/* Makes the handle of integers that stay as they are: a GPU keeps its copy. */
static bool make_index(factor *f, int *ptr, int64_t count, filch_data **data)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = ptr, desc.element = sizeof *ptr, desc.flags = FILCH_DATA_MANAGED;
    desc.rows = (uint64_t)(count > 0 ? count : 1);
    return filch_data_create(f->runtime, &desc, data) == FILCH_OK;
}

/* Copies to and from GPUs are faster from page-locked memory, which a handle holds that no task
 * uses. */
static bool lock_pages(factor *f, double *ptr, size_t values)
{
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    filch_data *data;
    desc.ptr = ptr, desc.element = sizeof *ptr, desc.rows = values;
    desc.flags = FILCH_DATA_PIN;
    return filch_data_create(f->runtime, &desc, &data) == FILCH_OK;
}

static bool make_inputs(factor *f, const matrix *a)
{
    const symbolic *s = f->p.s;
    const supernode *last = &s->node[s->count - 1];
    const int64_t entries = a->start[a->n];
    inputs *in = &f->in;
    filch_data_desc desc = FILCH_DATA_DESC_INIT;
    desc.ptr = f->pivot, desc.element = sizeof *f->pivot;
    desc.rows = (uint64_t)f->panels, desc.cols = (uint64_t)f->numbers, desc.tile_cols = 1;
    return make_handle(f, a->value, entries > 0 ? (size_t)entries : 1, 1, 1, &in->values) &&
           make_index(f, s->start, s->n + 1, &in->start) &&
           make_index(f, s->entry, entries, &in->entry) &&
           make_index(f, s->entry_place, entries, &in->entry_place) &&
           make_index(f, s->place, last->index + last->rows, &in->place) &&
           (f->numbers == 0 || filch_data_create(f->runtime, &desc, &f->pivots) == FILCH_OK);
}

static bool make_handles(factor *f)
{
    const symbolic *s = f->p.s;
    const cut *c = f->p.c;
    double *update = f->updates;
    bool ok = true;
    for (int k = 0; ok && k < c->bundles; k++) {
        const bundle *b = &c->bundle[k];
        ok = make_handle(f, f->value + s->node[b->first].value, b->values, 1, 1,
                         &f->bundle[k].columns) &&
             (!b->update || make_handle(f, update, b->update, 1, 1, &f->bundle[k].update));
        update += b->update;
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

/* Numbers the supernodes that are cut into panels, and places the updates of bundles' roots.
 * Returns the elements of these. */
static size_t number_nodes(factor *f)
{
    const symbolic *s = f->p.s;
    const cut *c = f->p.c;
    size_t updates = 0;
    for (int k = 0; k < c->bundles; k++) {
        int64_t offset = 0;
        for (int at = c->bundle[k].first; at < c->bundle[k].end; at++) {
            f->node[at].offset = offset;
            if (s->node[at].parent >= c->bundle[k].end)
                offset += (int64_t)supernode_update(&s->node[at]);
        }
        updates += c->bundle[k].update;
    }
    for (int at = 0; at < s->count; at++) {
        const int cols = s->node[at].cols, width = cut_width(c, cols);
        if (c->part[at] >= 0)
            continue;
        f->node[at].number = f->numbers++;
        f->panels = (cols + width - 1) / width > f->panels ? (cols + width - 1) / width : f->panels;
    }
    return updates;
}

/* The most columns of a panel that is factored. */
static int find_width(const symbolic *s, const cut *c)
{
    int most = 1;
    for (int at = 0; at < s->count; at++) {
        const int width = c->part[at] >= 0 ? 0 : cut_width(c, s->node[at].cols);
        most = width > most ? width : most;
    }
    return most;
}

/* Tasks are added in the order of a sequential factorization. */
static bool make_graph(factor *f, const matrix *a, bool cores_help)
{
    const cut *c = f->p.c;
    bool ok = tasks_make(f->runtime, find_width(f->p.s, c), cores_help, &f->code) &&
              make_inputs(f, a) && make_handles(f) &&
              filch_graph_create(f->runtime, NULL, &f->graph) == FILCH_OK;
    for (int at = 0; ok && at < f->p.s->count; at++) {
        if (c->part[at] < 0)
            ok = add_supernode(f, at);
        else if (at == c->bundle[c->part[at]].first)
            ok = add_bundle(f, c->part[at]);
    }
    return ok && filch_graph_seal(f->graph) == FILCH_OK;
}

/* Memory whose pages belong to nobody else. */
static double *allocate(size_t values)
{
    const size_t page = 4096;
    return aligned_alloc(page, (values * sizeof(double) / page + 1) * page);
}

static bool make_memory(factor *f)
{
    const size_t values = (size_t)f->p.s->values;
    f->node = calloc((size_t)f->p.s->count, sizeof *f->node);
    f->bundle = calloc((size_t)f->p.c->bundles + 1, sizeof *f->bundle);
    if (!f->node || !f->bundle)
        return false;
    const size_t updates = number_nodes(f);
    f->value = allocate(values);
    f->updates = allocate(updates);
    f->pivot = calloc((size_t)f->numbers * (size_t)f->panels + 1, sizeof *f->pivot);
    if (!f->value || !f->updates || !f->pivot)
        return false;
    lock_pages(f, f->value, values); /* where the system refuses, copies are slower */
    lock_pages(f, f->updates, updates + 1);
    return true;
}

bool factor_make(factor **made, filch_runtime *runtime, const symbolic *s, const cut *c,
                 const matrix *a, bool cores_help, char why[WHY])
{
    filch_error error = FILCH_ERROR_INIT;
    factor *f = calloc(1, sizeof *f);
    bool ok = f != NULL;
    if (ok) {
        *f = (factor){.runtime = runtime, .p = {.s = s, .c = c, .values = a->value}};
        f->is_out_of_memory = !make_memory(f);
        ok = !f->is_out_of_memory && make_graph(f, a, cores_help);
    }
    *made = f;
    if (ok)
        return true;
    snprintf(why, WHY, "no memory for a factor of %lld elements", (long long)s->values);
    if (f && !f->is_out_of_memory && filch_runtime_error(runtime, &error) == FILCH_OK)
        snprintf(why, WHY, "the graph cannot be built: %.200s", error.text);
    return false;
}

/* Looks where GPUs factored for a pivot that is not positive, and for refused arguments. */
static bool has_pivots(const factor *f, char why[WHY])
{
    const symbolic *s = f->p.s;
    for (int at = 0; at < s->count; at++) {
        const int cols = s->node[at].cols, width = cut_width(f->p.c, cols);
        const int *pivot = &f->pivot[(size_t)f->node[at].number * (size_t)f->panels];
        for (int j = 0; f->p.c->part[at] < 0 && j * width < cols; j++)
            if (pivot[j] > 0)
                return tasks_tell_pivot(s, s->node[at].first + j * width + pivot[j], why), false;
            else if (pivot[j] < 0)
                return snprintf(why, WHY, "cuSOLVER refused argument %d", -pivot[j]), false;
    }
    return true;
}

bool factor_run(factor *f, char why[WHY])
{
    filch_error error = FILCH_ERROR_INIT;
    if (filch_graph_run(f->graph, NULL, &error) == FILCH_OK)
        return has_pivots(f, why);
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
    free(f->updates);
    free(f->pivot);
    free(f->node);
    free(f->bundle);
    free(f);
}
