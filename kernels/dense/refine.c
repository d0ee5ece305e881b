/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/refine.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Refinement goes on while a step shrinks the residual to that, and while the goal is so many steps
 * away: a step of GMRES costs as much and never shrinks it less. */
#define SLOW_RATE 0.5
#define MOST_STEPS 8

filch_status fl_norms_open(const fl_dense *dense, size_t cols, const char *label, fl_norms *norms)
{
    norms->values = calloc(cols * FL_NARROW_NORMS, sizeof *norms->values);
    if (!norms->values)
        return FILCH_OUT_OF_MEMORY;
    const filch_data_desc desc = {.ptr = norms->values,
                                  .element = sizeof *norms->values,
                                  .rows = FL_NARROW_NORMS,
                                  .cols = cols};
    return fl_dense_data(dense, desc, label, &norms->data);
}

void fl_norms_close(fl_norms *norms)
{
    if (norms->data)
        (void)filch_data_destroy(norms->data);
    free(norms->values);
}

filch_status fl_system_run(const fl_system *s, filch_graph *graph, filch_status status)
{
    if (status == FILCH_OK)
        status = filch_graph_run(graph, NULL, s->error);
    (void)filch_graph_destroy(graph);
    return status;
}

filch_status fl_system_residual(const fl_system *s, filch_graph *graph, uint64_t col,
                                uint64_t count)
{
    const fl_dense *dense = s->mixed->dense;
    bool is_part = count < s->b->cols;
    const filch_access copy[] = {FILCH_R(s->b->data, 0, 0),
                                 {.mode = is_part ? FILCH_READWRITE : FILCH_WRITE, .data = s->r}};
    const fl_pass_args args = {.from = col, .to = col, .count = count, .factor = -1, .adds = 1};
    filch_status status = fl_pass_add(dense, graph, FL_PASS_COPY, args, copy, 2, FILCH_ANY_DEVICE);
    return status == FILCH_OK ? fl_pass_times(dense, graph, args, &s->mixed->a, s->y, s->r)
                              : status;
}

filch_status fl_system_narrow(const fl_system *s, filch_graph *graph, filch_data *from,
                              uint64_t col, uint64_t count, const fl_norms *norms)
{
    const filch_access accesses[] = {FILCH_R(from, 0, 0), FILCH_W(s->d, 0, 0),
                                     FILCH_W(norms->data, 0, 0), FILCH_R(s->mixed->rows_data, 0, 0),
                                     FILCH_R(s->mixed->scales_data, 0, 0)};
    return fl_narrow_add(s->mixed->dense, graph, FL_NARROW_ROWS,
                         (fl_narrow_args){.col = col, .count = count, .weighs = from == s->y},
                         accesses, FILCH_ANY_DEVICE);
}

filch_status fl_system_correct(const fl_system *s, filch_graph *graph, const fl_norms *narrowed,
                               filch_access to, fl_narrow_args args, const fl_norms *norms)
{
    const fl_mixed *m = s->mixed;
    const filch_access accesses[] = {FILCH_R(s->d, 0, 0), to, FILCH_W(norms->data, 0, 0),
                                     FILCH_R(m->scales_data, 0, 0), FILCH_R(narrowed->data, 0, 0)};
    filch_status status =
        fl_pass_solve(m->dense, graph, (fl_pass_args){.count = args.count}, m->lu, &m->low, s->d);
    return status == FILCH_OK
               ? fl_narrow_add(m->dense, graph, FL_WIDEN, args, accesses, FILCH_ANY_DEVICE)
               : status;
}

static double size_of(const fl_system *s, size_t col)
{
    return fl_norms_sum(&s->of_y, col) + fl_norms_sum(&s->of_b, col);
}

double fl_system_goal(const fl_system *s, size_t col)
{
    return sqrt((double)s->mixed->a.rows) * (DBL_EPSILON / 2) * size_of(s, col);
}

double fl_system_error(const fl_system *s, size_t col)
{
    double residual = fl_norms_sum(&s->of_r, col);
    return residual == 0 ? 0 : residual / size_of(s, col);
}

/* The largest residual in goals, or what is not a number. */
static double worst_of(const fl_system *s, const fl_norms *residuals)
{
    double worst = 0;
    for (size_t j = 0; j < s->b->cols; j++) {
        double residual = fl_norms_sum(residuals, j);
        double goals = residual == 0 ? 0 : residual / fl_system_goal(s, j);
        worst = isnan(worst) || goals <= worst ? worst : goals;
    }
    return worst;
}

static bool is_slow(double before, double now)
{
    double rate = now / before;
    return !(rate < SLOW_RATE) || log(now) > -log(rate) * MOST_STEPS;
}

static filch_status refine_once(fl_system *s, bool is_first)
{
    const fl_dense *dense = s->mixed->dense;
    uint64_t count = s->b->cols;
    const fl_narrow_args args = {.count = count, .adds = !is_first};
    const filch_access to = {.mode = is_first ? FILCH_WRITE : FILCH_READWRITE, .data = s->y};
    filch_graph *graph = NULL;
    filch_status status = filch_graph_create(dense->desc.runtime, NULL, &graph);
    if (status != FILCH_OK)
        return status;
    if (is_first)
        status = fl_system_narrow(s, graph, s->b->data, 0, count, &s->of_b);
    if (status == FILCH_OK)
        status = fl_system_correct(s, graph, is_first ? &s->of_b : &s->of_r, to, args, &s->of_y);
    if (status == FILCH_OK)
        status = fl_system_residual(s, graph, 0, count);
    if (status == FILCH_OK)
        status = fl_system_narrow(s, graph, s->r, 0, count, &s->of_r);
    s->result->refinements++;
    return fl_system_run(s, graph, status);
}

bool fl_system_is_finite(const fl_system *s)
{
    for (size_t j = 0; j < s->b->cols; j++)
        if (!isfinite(fl_norms_sum(&s->of_b, j)))
            return false;
    return true;
}

filch_status fl_refine(fl_system *s, bool *is_done)
{
    filch_status status = refine_once(s, true);
    if (status == FILCH_OK && !fl_system_is_finite(s))
        status = FILCH_DATA;
    if (status != FILCH_OK)
        return status;
    double before = worst_of(s, &s->of_b), now = worst_of(s, &s->of_r);
    while (status == FILCH_OK && !(now <= 1) && !is_slow(before, now)) {
        before = now;
        status = refine_once(s, false);
        now = worst_of(s, &s->of_r);
    }
    *is_done = now <= 1;
    return status;
}
