/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/vendor/definite.h"

#include "kernels/vendor/lane.h"

/* NOLINTBEGIN(bugprone-macro-parentheses): a declaration's parts take none */
#define OPERATION(p, real)                                                                      \
    static int p##_potrf(fl_vendor_lane *lane, int fill, const filch_view *a, int32_t *info)    \
    {                                                                                           \
        const fl_vendor_calls *call = &lane->vendor->call;                                      \
        int elements = 0, n = (int)a->rows, ld = (int)a->ld;                                    \
        int code = fl_vendor_solver_code(                                                       \
            call->p##potrf_size(lane->solver, fill, n, a->ptr, ld, &elements));                 \
        if (code == 0)                                                                          \
            code = fl_vendor_room_grow(lane, &lane->work, (size_t)elements * sizeof(real));     \
        return code ? code                                                                      \
                    : fl_vendor_solver_code(call->p##potrf(lane->solver, fill, n, a->ptr, ld,   \
                                                           fl_vendor_pointer(lane->work.block), \
                                                           elements, info));                    \
    }
/* NOLINTEND(bugprone-macro-parentheses) */

OPERATION(d, double)
OPERATION(s, float)

int fl_vendor_potrf_fill(fl_vendor_lane *lane, int fill, const filch_view *a, int32_t *info)
{
    return a->element == sizeof(double) ? d_potrf(lane, fill, a, info)
                                        : s_potrf(lane, fill, a, info);
}
