/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"

#include <math.h>

static bool fits(const filch_call *call, uint64_t element)
{
    if (call->view_count != 3 || !call->args)
        return false;
    const filch_view *at = &call->views[0];
    const filch_view *speed = &call->views[1];
    const filch_view *moved = &call->views[2];
    uint64_t bodies = call->hi - call->lo;
    return at->element == element && speed->element == element && moved->element == element &&
           at->rows == 4 && speed->rows == 3 && moved->rows == 4 && at->cols >= call->hi &&
           speed->cols >= bodies && moved->cols >= bodies;
}

static int shape_of(const filch_call *call, filch_shape *shape, uint64_t element)
{
    if (!fits(call, element))
        return FILCH_KERNEL_MISFIT;
    shape->grid[0] = fl_blocks(call->hi - call->lo, 128, INT32_MAX);
    shape->block[0] = 128;
    return 0;
}

#define NBODY(T, suffix, root)                                                                     \
    static void pull_##suffix(const filch_view *at, const T *here, T softening, fl_##suffix *pull) \
    {                                                                                              \
        pull[0] = pull[1] = pull[2] = 0;                                                           \
        for (uint64_t k = 0; k < at->cols; k++) {                                                  \
            const T *other = (const T *)at->ptr + k * at->ld;                                      \
            T x = other[0] - here[0];                                                              \
            T y = other[1] - here[1];                                                              \
            T z = other[2] - here[2];                                                              \
            T near = 1 / root(x * x + y * y + z * z + softening);                                  \
            T weight = other[3] * near * near * near;                                              \
            pull[0] += weight * x;                                                                 \
            pull[1] += weight * y;                                                                 \
            pull[2] += weight * z;                                                                 \
        }                                                                                          \
    }                                                                                              \
    int fl_nbody_##suffix(const filch_call *call)                                                  \
    {                                                                                              \
        if (!fits(call, sizeof(T)))                                                                \
            return FILCH_KERNEL_MISFIT;                                                            \
        const filch_nbody_args *args = call->args;                                                 \
        const filch_view *at = &call->views[0];                                                    \
        T softening = (T)(args->softening * args->softening);                                      \
        T step = (T)args->step;                                                                    \
        for (uint64_t body = call->lo; body < call->hi; body++) {                                  \
            const T *here = (const T *)at->ptr + body * at->ld;                                    \
            fl_##suffix *speed = (T *)call->views[1].ptr + (body - call->lo) * call->views[1].ld;  \
            fl_##suffix *moved = (T *)call->views[2].ptr + (body - call->lo) * call->views[2].ld;  \
            T pull[3];                                                                             \
            pull_##suffix(at, here, softening, pull);                                              \
            for (int c = 0; c < 3; c++) {                                                          \
                speed[c] += step * pull[c];                                                        \
                moved[c] = here[c] + step * speed[c];                                              \
            }                                                                                      \
            moved[3] = here[3];                                                                    \
        }                                                                                          \
        return 0;                                                                                  \
    }                                                                                              \
    int fl_nbody_shape_##suffix(const filch_call *call, filch_shape *shape)                        \
    {                                                                                              \
        return shape_of(call, shape, sizeof(T));                                                   \
    }

NBODY(double, f64, sqrt)
NBODY(float, f32, sqrtf)
