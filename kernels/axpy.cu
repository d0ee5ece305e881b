/* SPDX-License-Identifier: Apache-2.0 */
/* y := alpha x + y; see filch/kernels.h. */
#include "filch/kernel.h"

struct axpy_args {
    double alpha;
};

#define AXPY(T, suffix)                                                                            \
    extern "C" __global__ void __launch_bounds__(256)                                              \
        filch_axpy_##suffix(filch_view x, filch_view y, filch_range range, axpy_args args)         \
    {                                                                                              \
        T alpha = (T)args.alpha;                                                                   \
        for (unsigned long long k = filch_thread(); k < range.hi - range.lo; k += filch_threads()) \
            filch_at<T>(y, k) += alpha * filch_at<T>(x, k);                                        \
    }

AXPY(double, f64)
AXPY(float, f32)
