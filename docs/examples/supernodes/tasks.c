/* SPDX-License-Identifier: Apache-2.0 */
#include "tasks.h"

#include <stdio.h>

#include "front.h"

static double work(const filch_call *call)
{
    return ((const step *)call->args)->work;
}

static panel panel_of(const filch_view *v)
{
    return (panel){v->ptr, (int)v->col, (int)v->cols, (int)v->rows, (int)v->ld};
}

/* Fails the task because of the pivot of a column of the factor, counted from 1. */
static int refuse(const filch_call *call, const symbolic *s, int column)
{
    char text[96];
    const int of_matrix = s->order[column - 1] + 1;
    snprintf(text, sizeof text, "not positive definite: the pivot of column %d is not positive",
             of_matrix);
    filch_call_set_text(call, text);
    return of_matrix;
}

static int subtrees(const filch_call *call)
{
    const step *t = call->args;
    const problem *p = t->p;
    const bundle *b = &p->c->bundle[t->node];
    const filch_view *space = &call->views[call->view_count - 1];
    const int bad = front_factor_subtrees(p->s, b->first, b->end, p->values, call->views[0].ptr,
                                          space->ptr, (size_t)space->rows / sizeof(double),
                                          b->update ? call->views[1].ptr : NULL);
    return bad ? refuse(call, p->s, bad) : 0;
}

/* Adds the updates of a bundle's roots, which stand one behind the other, to their parent. */
static void add_bundle(const step *t, const bundle *b, const double *updates, panel to)
{
    const symbolic *s = t->p->s;
    const double *end = updates + b->update;
    for (int c = s->node[t->node].child; c >= b->first; c = s->node[c].sibling) {
        if (c >= b->end)
            continue;
        end -= supernode_update(&s->node[c]);
        front_add_child(s, c, front_update(&s->node[c], (double *)end), to, t->is_update);
    }
}

/* Adds the updates of children, which are the views from at on, to a panel of their parent. */
static void add_children(const filch_call *call, uint32_t at, panel to)
{
    const step *t = call->args;
    const int *source = &t->p->source[t->source];
    for (; at < call->view_count; at++, source++) {
        if (*source < 0)
            add_bundle(t, &t->p->c->bundle[~*source], call->views[at].ptr, to);
        else
            front_add_child(t->p->s, *source, panel_of(&call->views[at]), to, t->is_update);
    }
}

/* Fills a panel with the matrix's entries, and adds what children subtract. */
static int gather(const filch_call *call)
{
    const step *t = call->args;
    const panel to = panel_of(&call->views[0]);
    if (!t->goes_on)
        front_fill(t->p->s, t->node, t->p->values, to);
    add_children(call, 1, to);
    return 0;
}

static int pivot(const filch_call *call)
{
    const step *t = call->args;
    const int bad = front_factor(panel_of(&call->views[0]));
    return bad ? refuse(call, t->p->s, t->p->s->node[t->node].first + bad) : 0;
}

static int subtract(const filch_call *call)
{
    front_subtract(panel_of(&call->views[1]), panel_of(&call->views[0]));
    return 0;
}

/* Makes a panel of a supernode's update: what the supernode and what its children subtract. */
static int outer(const filch_call *call)
{
    const step *t = call->args;
    const uint32_t factored = (uint32_t)t->factored;
    const panel to = panel_of(&call->views[0]);
    for (uint32_t k = 1; k <= factored; k++)
        front_subtract_update(panel_of(&call->views[k]), to);
    add_children(call, 1 + factored, to);
    return 0;
}

bool tasks_make(filch_runtime *runtime, codelets *made)
{
    const struct {
        const char *name;
        filch_host_fn host;
        filch_codelet **made;
    } kinds[] = {{"subtrees", subtrees, &made->subtrees},
                 {"gather", gather, &made->gather},
                 {"pivot", pivot, &made->pivot},
                 {"subtract", subtract, &made->subtract},
                 {"outer", outer, &made->outer}};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        desc.name = kinds[i].name, desc.host = kinds[i].host;
        desc.work = work, desc.arg_size = sizeof(step);
        if (filch_codelet_create(runtime, &desc, kinds[i].made) != FILCH_OK)
            return false;
    }
    return true;
}
