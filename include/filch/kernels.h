/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file kernels.h
 * Built-in kernels of filch: every kernel has a CUDA C source and a host function of equal meaning.
 * A codelet of a built-in kernel therefore runs on GPUs and on the host's cores.
 *
 * Names end in `_f64` for double and `_f32` for single precision. Matrices are column-major tiles
 * of arbitrary shape and leading dimension. Effect of the kernels on the views of the accesses, in
 * the order of the declaration:
 *
 * | task    | views        | does                                                               |
 * | ------- | ------------ | ------------------------------------------------------------------ |
 * | gemm_*  | A, B, C      | C := alpha op(A) op(B) + beta C; ::filch_gemm_args                 |
 * | syrk_*  | A, C         | C := alpha op(A) op(A)' + beta C, lower; ::filch_syrk_args         |
 * | trsm_*  | L, A         | A := A L^-T, L lower triangular                                    |
 * | potrf_* | A, info      | A := L with A = L L', lower; see below                             |
 * | potrf_trtri_* | A, state, W | potrf, and W := L^-1; ::filch_potrf_trtri_args            |
 *
 * Kernels read A and B; kernels read and write C, and the A of trsm and of both potrf. A C with
 * beta 0 may be declared FILCH_WRITE. The unit of work of the tasks is a floating point operation.
 * Elements above the diagonal of syrk's C, trsm's L and potrf's A are neither used nor written.
 *
 * `info` is an int32_t, 0 at first and shared by the potrf tasks of a factorization (declared
 * FILCH_READWRITE). At a pivot that is not positive, potrf stores the pivot's row in the whole
 * matrix in `info`, from 1, and leaves the rest of the tile undefined. With a nonzero `info`, potrf
 * does nothing. On a host device the task also fails, with the pivot's row as code. A kernel cannot
 * fail its task; check `info` when the job is done.
 *
 * The inverse has zeros above the diagonal. `state` is a column of int32_t, 0 at first, with
 * FILCH_POTRF_TRTRI_STATE(n) words for a tile of order n, declared FILCH_READWRITE, and not used by
 * two tasks at once. The first word is potrf's `info`; the others are 0 again after the task. W is
 * declared FILCH_WRITE, may be larger than A, and is undefined after a failure. A thread block
 * needs FILCH_POTRF_TRTRI_SHARED(element) bytes of shared memory: 218 KiB in double precision,
 * 109 KiB in single. The task fails on GPUs whose filch_device_info.block_shared is smaller.
 *
 * | batch      | item    | views (elements an item)    | does                                    |
 * | ---------- | ------- | --------------------------- | --------------------------------------- |
 * | mandelbrot | a row   | pixels (a column, uint16_t) | ::filch_mandelbrot_args                 |
 * | nbody_*    | a body  | at (whole), speed, moved    | a time step; ::filch_nbody_args         |
 * | jacobi_*   | a column| u (halo 1), f, v            | v := (W + E + N + S of u, + f) / 4      |
 * | axpy_*     | element | x, y                        | y := alpha x + y; ::filch_axpy_args     |
 * | dot_*      | a piece | x (piece), y (piece), sums  | sums := x . y; ::filch_sums_args        |
 * | reduce_*   | a piece | x (piece), sums             | sums := the sum of x; ::filch_sums_args |
 *
 * The views of batches map by FILCH_MAP_AFFINE, offset 0, unless marked; the table's elements an
 * item are the scale (1 where the table names no number). Batches write the last view; `speed` and
 * axpy's y are read and written. Batches declare no work: filch measures the devices in items a
 * second.
 *
 * - nbody: `at` has a body a column, x, y, z and mass, and two bodies or more; `moved` has the
 *   layout of `at` after the step, in a separate handle; `speed` has three rows. The gravitational
 *   constant is 1.
 * - jacobi: u and v are grids; f is the right-hand side times the square of the mesh width. The
 *   kernel copies the outermost rows and columns of the grid, and the grid has two columns or more.
 *   Call the kernel with u and v in turns.
 * - dot and reduce: a sum for every piece of the vector, added up in an order that depends on the
 *   piece alone; every device and every cut give equal bits. A shorter last piece needs
 *   FILCH_MAP_CALLBACK, to cut the piece to the handle. Sum the sums with reduce.
 *
 * mandelbrot, jacobi, axpy, dot and reduce give equal bits on every device.
 */
#ifndef FILCH_KERNELS_H
#define FILCH_KERNELS_H

#include "filch/cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Failure code of a task with views that do not fit the kernel: wrong number, shapes or bytes an
 * element. */
#define FILCH_KERNEL_MISFIT (-1)

/** Words of the state of potrf_trtri_f64 and potrf_trtri_f32 for a tile of order @p n. */
#define FILCH_POTRF_TRTRI_STATE(n) (4 + 4 * (((n) + 63) / 64))

/** Bytes of shared memory of a thread block of potrf_trtri, for elements of @p element bytes. */
#define FILCH_POTRF_TRTRI_SHARED(element) (27904 * (element) + 16)

/** Arguments of gemm_f64 and gemm_f32. */
typedef struct filch_gemm_args {
    double alpha;     /**< Factor of the product. */
    double beta;      /**< Factor of C; 0: C is not read. */
    bool transpose_a; /**< op(A) is A', else A. */
    bool transpose_b; /**< op(B) is B', else B. */
} filch_gemm_args;

/** Arguments of syrk_f64 and syrk_f32. */
typedef struct filch_syrk_args {
    double alpha;      /**< Factor of the product. */
    double beta;       /**< Factor of C; 0: C is not read. */
    bool transpose;    /**< op(A) is A', else A. */
    uint32_t reserved; /**< 0. */
} filch_syrk_args;

/** Arguments of potrf_trtri_f64 and potrf_trtri_f32. */
typedef struct filch_potrf_trtri_args {
    bool inverts;      /**< False: no inverse; W is scratch with the rows of A and at least 64
                            columns, or as many as A. */
    uint32_t reserved; /**< 0. */
} filch_potrf_trtri_args;

/**
 * Arguments of mandelbrot. The picture's pixel (column, row) stands for the point
 *
 *     left + (right - left) (column + 0.5) / columns, low + (high - low) (row + 0.5) / rows
 *
 * and becomes the number of iterations of z := z² + c after which |z| > 2, at most `limit`.
 */
typedef struct filch_mandelbrot_args {
    double left;       /**< Left edge. */
    double right;      /**< Right edge. */
    double low;        /**< Edge before row 0. */
    double high;       /**< Edge after the last row. */
    uint64_t rows;     /**< Rows of the picture. */
    uint32_t limit;    /**< Maximum number of iterations; below 65,536. */
    uint32_t reserved; /**< 0. */
} filch_mandelbrot_args;

/** Arguments of nbody_f64 and nbody_f32. */
typedef struct filch_nbody_args {
    double step;      /**< Time step. */
    double softening; /**< Softening length; filch adds the square of the length to the square of
                           every distance; above 0. */
} filch_nbody_args;

/** Arguments of axpy_f64 and axpy_f32. */
typedef struct filch_axpy_args {
    double alpha; /**< Factor of x. */
} filch_axpy_args;

/** Arguments of dot and reduce in both precisions. */
typedef struct filch_sums_args {
    uint64_t piece; /**< Elements of x a sum; the scale of the mappings of x and y. */
} filch_sums_args;

/** Built-in kernel; see filch_kernel_find(). */
typedef struct filch_kernel {
    const char *name;            /**< Name, e.g. "gemm_f64". */
    filch_host_fn host;          /**< Host implementation. */
    filch_work_fn work;          /**< Work of a call; null for batches. */
    const filch_cuda_desc *cuda; /**< CUDA implementation. */
    uint32_t view_count;         /**< Number of accesses. */
    uint32_t arg_size;           /**< Bytes of arguments. */
    bool is_batch;               /**< A batch's body, else a task's. */
} filch_kernel;

/**
 * Returns a kernel by number.
 *
 * @param index number of the kernel, from 0.
 * @return the kernel, constant and valid forever; null past the last kernel.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API const filch_kernel *filch_kernel_at(size_t index);

/**
 * Returns a kernel by name.
 *
 * @param name the name; may be null.
 * @return the kernel, constant and valid forever; null for an unknown name.
 *
 * Thread safety: any thread; wait-free. Since 0.1.
 */
FILCH_API const filch_kernel *filch_kernel_find(const char *name);

/**
 * Makes a codelet of a kernel: calls filch_codelet_create() with the kernel's members.
 *
 * @param runtime the runtime.
 * @param name    the kernel's name, and then the codelet's.
 * @param codelet receives the codelet.
 * @return FILCH_OK; FILCH_NOT_FOUND (unknown kernel); and the statuses of filch_codelet_create().
 *
 * Thread safety: any thread. Blocking: as filch_codelet_create(). Since 0.1.
 */
FILCH_API filch_status filch_codelet_create_builtin(filch_runtime *runtime, const char *name,
                                                    filch_codelet **codelet);

#ifdef __cplusplus
}
#endif

#endif
