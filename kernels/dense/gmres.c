/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dense/gmres.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Steps until the basis is dropped and begun anew from the residual, and how often it is. */
#define STEPS 50
#define CYCLES 4
/* A cycle that leaves more of the residual is one too many. */
#define CYCLE_RATE 0.1
/* What a cycle's own estimate of the residual is good for; and where a cycle from 0 ends, which
 * does not know yet how large the solution is. */
#define ESTIMATE_LEAST 1e-12
#define FIRST_LEAST 1e-6

/* The least squares problem of a cycle: the triangle by columns, rotations, right side. */
typedef struct small {
    double triangle[STEPS][STEPS + 1];
    double cosine[STEPS], sine[STEPS];
    double right[STEPS + 1];
} small;

struct fl_gmres {
    fl_system *system;
    size_t steps;    /* at most */
    filch_data *v;   /* the basis */
    filch_data *z;   /* its columns solved for */
    double *product; /* of FL_PASS_BASIS */
    filch_data *product_data;
    double *factor; /* of Z's columns */
    filch_data *factor_data;
    fl_norms of_v, of_z;
    small small;
};

static filch_status make_handles(fl_gmres *g)
{
    const fl_dense *dense = g->system->mixed->dense;
    size_t rows = g->system->mixed->a.rows, products = fl_pass_products(g->steps + 1);
    const filch_data_desc v = {.element = sizeof(double),
                               .rows = rows,
                               .cols = g->steps + 1,
                               .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc z = {
        .element = sizeof(double), .rows = rows, .cols = g->steps, .flags = FILCH_DATA_NO_BUFFER};
    const filch_data_desc product = {
        .ptr = g->product, .element = sizeof(double), .rows = products};
    const filch_data_desc factor = {.ptr = g->factor, .element = sizeof(double), .rows = g->steps};
    filch_status status = fl_dense_data(dense, v, "basis", &g->v);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, z, "solved basis", &g->z);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, product, "products", &g->product_data);
    if (status == FILCH_OK)
        status = fl_dense_data(dense, factor, "factors", &g->factor_data);
    if (status == FILCH_OK)
        status = fl_norms_open(dense, 1, "norms", &g->of_v);
    return status == FILCH_OK ? fl_norms_open(dense, 1, "norms", &g->of_z) : status;
}

filch_status fl_gmres_open(fl_system *system, fl_gmres **out)
{
    fl_gmres *g = calloc(1, sizeof *g);
    if (!g)
        return FILCH_OUT_OF_MEMORY;
    g->system = system;
    g->steps = fl_least(STEPS, system->mixed->a.rows);
    g->product = calloc(fl_pass_products(g->steps + 1), sizeof *g->product);
    g->factor = calloc(g->steps, sizeof *g->factor);
    filch_status status = g->product && g->factor ? make_handles(g) : FILCH_OUT_OF_MEMORY;
    if (status == FILCH_OK)
        *out = g;
    else
        fl_gmres_close(g);
    return status;
}

void fl_gmres_close(fl_gmres *g)
{
    if (!g)
        return;
    filch_data *const handles[] = {g->v, g->z, g->product_data, g->factor_data};
    for (size_t k = 0; k < sizeof handles / sizeof *handles; k++)
        if (handles[k])
            (void)filch_data_destroy(handles[k]);
    fl_norms_close(&g->of_v);
    fl_norms_close(&g->of_z);
    free(g->product);
    free(g->factor);
    free(g);
}

static filch_status graph_of(const fl_gmres *g, filch_graph **graph)
{
    return filch_graph_create(g->system->mixed->dense->desc.runtime, NULL, graph);
}

static filch_status add_basis(const fl_gmres *g, filch_graph *graph, uint64_t col)
{
    const filch_access accesses[] = {FILCH_RW(g->v, 0, 0), FILCH_W(g->product_data, 0, 0)};
    return fl_pass_add(g->system->mixed->dense, graph, FL_PASS_BASIS, (fl_pass_args){.to = col},
                       accesses, 2, FILCH_ANY_DEVICE);
}

static filch_status add_scale(const fl_gmres *g, filch_graph *graph, filch_data *of, uint64_t col,
                              double factor)
{
    const filch_access accesses[] = {FILCH_RW(of, 0, 0)};
    const fl_pass_args args = {.to = col, .count = 1, .factor = factor};
    return fl_pass_add(g->system->mixed->dense, graph, FL_PASS_SCALE, args, accesses, 1,
                       FILCH_ANY_DEVICE);
}

/* The norm of a basis' new column, before it is scaled. */
static double length_of(const fl_gmres *g)
{
    return sqrt(g->product[2 * (g->steps + 1)]);
}

/* The basis' first column, not scaled: the residual of the column's solution, or of 0. */
static filch_status begin(fl_gmres *g, size_t col, bool is_zero)
{
    const fl_system *s = g->system;
    const filch_access copy[] = {FILCH_R(is_zero ? s->b->data : s->r, 0, 0), FILCH_W(g->v, 0, 0)};
    filch_graph *graph = NULL;
    filch_status status = graph_of(g, &graph);
    if (status != FILCH_OK)
        return status;
    status = fl_pass_add(s->mixed->dense, graph, FL_PASS_COPY,
                         (fl_pass_args){.from = col, .count = 1}, copy, 2, FILCH_ANY_DEVICE);
    if (status == FILCH_OK && is_zero)
        status = add_scale(g, graph, s->y, col, 0);
    if (status == FILCH_OK)
        status = add_basis(g, graph, 0);
    return fl_system_run(s, graph, status);
}

/* Scales column k of the basis, solves for it, and makes column k + 1 of A's product with that. */
static filch_status step(fl_gmres *g, size_t k, double length)
{
    fl_system *s = g->system;
    const fl_pass_args times = {.from = k, .to = k + 1, .count = 1, .factor = 1};
    const filch_access to = {.mode = k == 0 ? FILCH_WRITE : FILCH_READWRITE, .data = g->z};
    filch_graph *graph = NULL;
    filch_status status = graph_of(g, &graph);
    if (status != FILCH_OK)
        return status;
    status = add_scale(g, graph, g->v, k, 1 / length);
    if (status == FILCH_OK)
        status = fl_system_narrow(s, graph, g->v, k, 1, &g->of_v);
    if (status == FILCH_OK)
        status = fl_system_correct(s, graph, &g->of_v, to, (fl_narrow_args){.col = k, .count = 1},
                                   &g->of_z);
    if (status == FILCH_OK)
        status = fl_pass_times(s->mixed->dense, graph, times, &s->mixed->a, g->z, g->v);
    if (status == FILCH_OK)
        status = add_basis(g, graph, k + 1);
    s->result->iterations++;
    return fl_system_run(s, graph, status);
}

static void rotate(double cosine, double sine, double *upper, double *lower)
{
    double kept = *upper;
    *upper = cosine * kept + sine * *lower;
    *lower = cosine * *lower - sine * kept;
}

/* Takes column k of the Hessenberg matrix up; the norm of the residual that is left. */
static double reduce(fl_gmres *g, size_t k, double length)
{
    small *q = &g->small;
    double *column = q->triangle[k];
    for (size_t i = 0; i <= k; i++)
        column[i] = g->product[i] + g->product[g->steps + 1 + i];
    column[k + 1] = length;
    for (size_t i = 0; i < k; i++)
        rotate(q->cosine[i], q->sine[i], &column[i], &column[i + 1]);
    double root = hypot(column[k], column[k + 1]);
    q->cosine[k] = root > 0 ? column[k] / root : 1;
    q->sine[k] = root > 0 ? column[k + 1] / root : 0;
    rotate(q->cosine[k], q->sine[k], &column[k], &column[k + 1]);
    q->right[k + 1] = 0;
    rotate(q->cosine[k], q->sine[k], &q->right[k], &q->right[k + 1]);
    return fabs(q->right[k + 1]);
}

/* Factors of the first so many columns of Z. */
static void solve_small(fl_gmres *g, size_t count)
{
    const small *q = &g->small;
    memset(g->factor, 0, g->steps * sizeof *g->factor);
    for (size_t i = count; i-- > 0;) {
        double sum = q->right[i];
        for (size_t k = i + 1; k < count; k++)
            sum -= q->triangle[k][i] * g->factor[k];
        g->factor[i] = q->triangle[i][i] != 0 ? sum / q->triangle[i][i] : 0;
    }
}

static void take_norms(const fl_norms *from, const fl_norms *to, size_t col)
{
    memcpy(to->values + col * FL_NARROW_NORMS, from->values,
           FL_NARROW_NORMS * sizeof *from->values);
}

/* Adds to the solution, and measures it. */
static filch_status finish(fl_gmres *g, size_t col, size_t count)
{
    fl_system *s = g->system;
    const filch_access accesses[] = {FILCH_RW(s->y, 0, 0), FILCH_R(g->z, 0, 0),
                                     FILCH_R(g->factor_data, 0, 0)};
    filch_graph *graph = NULL;
    solve_small(g, count);
    filch_status status = graph_of(g, &graph);
    if (status != FILCH_OK)
        return status;
    if (count > 0)
        status =
            fl_pass_add(s->mixed->dense, graph, FL_PASS_COMBINE,
                        (fl_pass_args){.to = col, .count = count}, accesses, 3, FILCH_ANY_DEVICE);
    if (status == FILCH_OK)
        status = fl_system_narrow(s, graph, s->y, col, 1, &g->of_z);
    if (status == FILCH_OK)
        status = fl_system_residual(s, graph, col, 1);
    if (status == FILCH_OK)
        status = fl_system_narrow(s, graph, s->r, col, 1, &g->of_v);
    status = fl_system_run(s, graph, status);
    if (status == FILCH_OK) {
        take_norms(&g->of_z, &s->of_y, col);
        take_norms(&g->of_v, &s->of_r, col);
    }
    return status;
}

/* |r| in the 1-norm is at most sqrt(n) times that in the 2-norm. */
static double goal_of(const fl_gmres *g, size_t col, double length, bool is_zero)
{
    const fl_system *s = g->system;
    double goal = fl_system_goal(s, col) / sqrt((double)s->mixed->a.rows);
    return is_zero ? FIRST_LEAST * length : fmax(goal, ESTIMATE_LEAST * length);
}

static filch_status cycle(fl_gmres *g, size_t col)
{
    const fl_system *s = g->system;
    bool is_zero = !(fl_norms_sum(&s->of_r, col) <= fl_norms_sum(&s->of_b, col));
    filch_status status = begin(g, col, is_zero);
    double length = length_of(g), left = length, goal = goal_of(g, col, length, is_zero);
    g->small.right[0] = length;
    size_t k = 0;
    while (status == FILCH_OK && k < g->steps && left > goal && length > 0) {
        status = step(g, k, length);
        length = length_of(g);
        left = reduce(g, k++, length);
    }
    return status == FILCH_OK ? finish(g, col, isfinite(left) ? k : 0) : status;
}

filch_status fl_gmres_solve(fl_gmres *g, size_t col, bool *is_done)
{
    const fl_system *s = g->system;
    double before = INFINITY, now = INFINITY;
    filch_status status = FILCH_OK;
    *is_done = false;
    for (int k = 0;
         k < CYCLES && status == FILCH_OK && (k == 0 || now < CYCLE_RATE * before) && !*is_done;
         k++) {
        before = k == 0 ? fl_norms_sum(&s->of_b, col) : now;
        status = cycle(g, col);
        now = fl_norms_sum(&s->of_r, col);
        *is_done = now <= fl_system_goal(s, col);
    }
    return status;
}
