/* SPDX-License-Identifier: Apache-2.0 */
/* A step of the gravitational n-body problem, all pairs; see filch/kernels.h. The positions go
 * through shared memory a block's worth at a time (L. Nyland, M. Harris, J. Prins, "Fast N-Body
 * Simulation with CUDA", GPU Gems 3, chapter 31, 2007). */
#include "filch/kernel.h"

constexpr int BODIES = 128;

struct nbody_args {
    double step, softening;
};

__device__ inline double reciprocal_root(double x)
{
    return rsqrt(x);
}

__device__ inline float reciprocal_root(float x)
{
    return rsqrtf(x);
}

template <typename T>
__device__ void nbody_step(const filch_view &at, const filch_view &speed, const filch_view &moved,
                           const filch_range &range, const nbody_args &args, T (&shared)[BODIES][4])
{
    unsigned long long own = (unsigned long long)blockIdx.x * BODIES + threadIdx.x;
    unsigned long long body = range.lo + own;
    bool is_inside = body < range.hi;
    T here[3], pull[3] = {T(0), T(0), T(0)};
    T softening = (T)(args.softening * args.softening);
    for (int c = 0; c < 3; c++)
        here[c] = is_inside ? filch_at<T>(at, c, body) : T(0);
    for (unsigned long long first = 0; first < at.cols; first += BODIES) {
        bool is_other = first + threadIdx.x < at.cols;
        __syncthreads();
        for (int c = 0; c < 4; c++) /* beyond the last one: no mass */
            shared[threadIdx.x][c] = is_other ? filch_at<T>(at, c, first + threadIdx.x) : T(0);
        __syncthreads();
#pragma unroll 8
        for (int k = 0; k < BODIES; k++) {
            T x = shared[k][0] - here[0];
            T y = shared[k][1] - here[1];
            T z = shared[k][2] - here[2];
            T near = reciprocal_root(x * x + y * y + z * z + softening);
            T weight = shared[k][3] * near * near * near;
            pull[0] += weight * x;
            pull[1] += weight * y;
            pull[2] += weight * z;
        }
    }
    if (!is_inside)
        return;
    for (int c = 0; c < 3; c++) {
        T now = filch_at<T>(speed, c, own) + (T)args.step * pull[c];
        filch_at<T>(speed, c, own) = now;
        filch_at<T>(moved, c, own) = here[c] + (T)args.step * now;
    }
    filch_at<T>(moved, 3, own) = filch_at<T>(at, 3, body);
}

#define NBODY(T, suffix)                                                                           \
    extern "C" __global__ void __launch_bounds__(BODIES)                                           \
        filch_nbody_##suffix(filch_view at, filch_view speed, filch_view moved, filch_range range, \
                             nbody_args args)                                                      \
    {                                                                                              \
        __shared__ T shared[BODIES][4];                                                            \
        nbody_step<T>(at, speed, moved, range, args, shared);                                      \
    }

NBODY(double, f64)
NBODY(float, f32)
