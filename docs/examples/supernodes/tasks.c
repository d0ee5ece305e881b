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

int tasks_tell_pivot(const symbolic *s, int column, char text[WHY])
{
    const int of_matrix = s->order[column - 1] + 1;
    snprintf(text, WHY, "not positive definite: the pivot of column %d is not positive", of_matrix);
    return of_matrix;
}

/* Fails the task because of the pivot of a column of the factor, counted from 1. */
static int refuse(const filch_call *call, const symbolic *s, int column)
{
    char text[WHY];
    const int of_matrix = tasks_tell_pivot(s, column, text);
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

/* Fills a panel with the matrix's entries. */
static int fill(const filch_call *call)
{
    const step *t = call->args;
    front_fill(t->p->s, t->node, t->p->values, panel_of(&call->views[0]));
    return 0;
}

/* Adds to a panel what a child subtracts. */
static int add(const filch_call *call)
{
    const step *t = call->args;
    const symbolic *s = t->p->s;
    const filch_view *v = &call->views[1];
    const panel from =
        t->is_whole ? front_update(&s->node[t->node], (double *)v->ptr + t->offset) : panel_of(v);
    front_add_child(s, t->node, from, panel_of(&call->views[0]), t->skip > 0);
    return 0;
}

static int pivot(const filch_call *call)
{
    const step *t = call->args;
    const panel columns = panel_of(&call->views[0]);
    const int bad = front_factor(columns);
    ((int *)call->views[1].ptr)[t->panel] = bad ? bad - columns.first : 0;
    return bad ? refuse(call, t->p->s, t->p->s->node[t->node].first + bad) : 0;
}

static int subtract(const filch_call *call)
{
    front_subtract(panel_of(&call->views[1]), panel_of(&call->views[0]));
    return 0;
}

/* Makes a panel of a supernode's update: what the supernode subtracts, without its children. */
static int outer(const filch_call *call)
{
    for (uint32_t k = 1; k < call->view_count; k++)
        front_subtract_update(panel_of(&call->views[k]), panel_of(&call->views[0]));
    return 0;
}

static bool has_gpu(filch_runtime *runtime)
{
    for (uint32_t d = 0; d < filch_device_count(runtime); d++) {
        filch_device_info info = FILCH_DEVICE_INFO_INIT;
        if (filch_device_at(runtime, d, &info) == FILCH_OK && info.backend == FILCH_BACKEND_CUDA)
            return true;
    }
    return false;
}

bool tasks_make(filch_runtime *runtime, int width, bool cores_help, codelets *made)
{
    const struct {
        const char *name;
        filch_host_fn host;
        filch_codelet **made;
    } kinds[] = {{"subtrees", subtrees, &made->subtrees},
                 {"fill", fill, &made->fill},
                 {"add", add, &made->add},
                 {"pivot", pivot, &made->pivot},
                 {"subtract", subtract, &made->subtract},
                 {"outer", outer, &made->outer}};
    const bool gpu = has_gpu(runtime);
    made->space = (gpu_space){.order = width};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        filch_codelet_desc desc = FILCH_CODELET_DESC_INIT;
        filch_cuda_desc cuda;
        desc.name = kinds[i].name, desc.host = kinds[i].host;
        desc.work = work, desc.arg_size = sizeof(step);
        if (gpu_describe(desc.name, &made->space, &cuda)) {
            desc.cuda = &cuda;
            desc.host = gpu && !cores_help ? NULL : desc.host;
        }
        if (filch_codelet_create(runtime, &desc, kinds[i].made) != FILCH_OK)
            return false;
    }
    return true;
}
