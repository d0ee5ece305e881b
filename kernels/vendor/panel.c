/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/vendor/panel.h"

#include "kernels/vendor/lane.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATIONS(p, real)                                                                        \
    static int p##_room(fl_vendor_lane *lane, int status, int elements)                            \
    {                                                                                              \
        int code = fl_vendor_solver_code(status);                                                  \
        return code ? code                                                                         \
                    : fl_vendor_room_grow(lane, &lane->work, (size_t)elements * sizeof(real));     \
    }                                                                                              \
    static int p##_getrf(fl_vendor_lane *lane, const filch_view *a, int *pivots, int *info)        \
    {                                                                                              \
        const fl_vendor_calls *call = &lane->vendor->call;                                         \
        int m = (int)a->rows, n = (int)a->cols, ld = (int)a->ld, elements = 0;                     \
        int status = call->p##getrf_size(lane->solver, m, n, a->ptr, ld, &elements);               \
        int code = p##_room(lane, status, elements);                                               \
        return code ? code                                                                         \
                    : fl_vendor_solver_code(call->p##getrf(lane->solver, m, n, a->ptr, ld,         \
                                                           fl_vendor_pointer(lane->work.block),    \
                                                           pivots, info));                         \
    }                                                                                              \
    static int p##_geqrf(fl_vendor_lane *lane, const filch_view *a, void *tau, int *info)          \
    {                                                                                              \
        const fl_vendor_calls *call = &lane->vendor->call;                                         \
        int m = (int)a->rows, n = (int)a->cols, ld = (int)a->ld, elements = 0;                     \
        int status = call->p##geqrf_size(lane->solver, m, n, a->ptr, ld, &elements);               \
        int code = p##_room(lane, status, elements);                                               \
        return code ? code                                                                         \
                    : fl_vendor_solver_code(call->p##geqrf(lane->solver, m, n, a->ptr, ld, tau,    \
                                                           fl_vendor_pointer(lane->work.block),    \
                                                           elements, info));                       \
    }                                                                                              \
    static int p##_ormqr(fl_vendor_lane *lane, int side, int op, const filch_view *a,              \
                         const void *tau, const filch_view *c, int *info)                          \
    {                                                                                              \
        const fl_vendor_calls *call = &lane->vendor->call;                                         \
        int m = (int)c->rows, n = (int)c->cols, k = (int)a->cols, elements = 0;                    \
        int status = call->p##ormqr_size(lane->solver, side, op, m, n, k, a->ptr, (int)a->ld, tau, \
                                         c->ptr, (int)c->ld, &elements);                           \
        int code = p##_room(lane, status, elements);                                               \
        return code ? code                                                                         \
                    : fl_vendor_solver_code(call->p##ormqr(                                        \
                          lane->solver, side, op, m, n, k, a->ptr, (int)a->ld, tau, c->ptr,        \
                          (int)c->ld, fl_vendor_pointer(lane->work.block), elements, info));       \
    }                                                                                              \
    static int p##_laswp(const fl_vendor_lane *lane, const filch_view *a, const int *pivots,       \
                         int count, int step)                                                      \
    {                                                                                              \
        return fl_vendor_solver_code(lane->vendor->call.p##laswp(                                  \
            lane->solver, (int)a->cols, a->ptr, (int)a->ld, 1, count, pivots, step));              \
    }                                                                                              \
    static int p##_panel_reserve(fl_vendor_lane *lane, int m, int n)                               \
    {                                                                                              \
        const fl_vendor_calls *call = &lane->vendor->call;                                         \
        int elements = 0;                                                                          \
        int status = call->p##getrf_size(lane->solver, m, n, NULL, m, &elements);                  \
        int code = p##_room(lane, status, elements);                                               \
        if (code)                                                                                  \
            return code;                                                                           \
        status = call->p##geqrf_size(lane->solver, m, n, NULL, m, &elements);                      \
        return p##_room(lane, status, elements);                                                   \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATIONS(d, double)
OPERATIONS(s, float)

static bool is_double(const filch_view *view)
{
    return view->element == sizeof(double);
}

int fl_vendor_panel_reserve(fl_vendor_lane *lane)
{
    const fl_vendor *vendor = lane->vendor;
    int m = (int)vendor->panel_rows, n = (int)vendor->panel_cols;
    int code = vendor->panel_element == sizeof(double) ? d_panel_reserve(lane, m, n)
                                                       : s_panel_reserve(lane, m, n);
    return code ? code : fl_vendor_inverse_reserve(lane, vendor->panel_element, vendor->panel_cols);
}

int fl_vendor_getrf(fl_vendor_lane *lane, const filch_view *a, int32_t *pivots, int32_t *info)
{
    return is_double(a) ? d_getrf(lane, a, pivots, info) : s_getrf(lane, a, pivots, info);
}

int fl_vendor_laswp(fl_vendor_lane *lane, const filch_view *a, const int32_t *pivots, size_t count,
                    bool is_back)
{
    int step = is_back ? -1 : 1;
    return is_double(a) ? d_laswp(lane, a, pivots, (int)count, step)
                        : s_laswp(lane, a, pivots, (int)count, step);
}

int fl_vendor_geqrf(fl_vendor_lane *lane, const filch_view *a, void *tau, int32_t *info)
{
    return is_double(a) ? d_geqrf(lane, a, tau, info) : s_geqrf(lane, a, tau, info);
}

int fl_vendor_ormqr(fl_vendor_lane *lane, int side, int op, const filch_view *a, const void *tau,
                    const filch_view *c, int32_t *info)
{
    return is_double(a) ? d_ormqr(lane, side, op, a, tau, c, info)
                        : s_ormqr(lane, side, op, a, tau, c, info);
}
