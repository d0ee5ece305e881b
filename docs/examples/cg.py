# SPDX-License-Identifier: Apache-2.0
"""Conjugate gradients for the Poisson equation on a grid of g^3 points, the matrix in CSR, in
Python with compiled kernels, beside a plain loop of NumPy's and SciPy's, which is compiled code as
well. Needs a C compiler, and filch's headers. cg.py [G [ITERATIONS [REPEATS]]]"""
import ctypes
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np
import scipy.sparse

import filch

# The page begins here.
SOURCE = """
#include <filch/filch.h>

static double sum(const filch_view *parts)
{
    double total = 0;
    for (uint64_t k = 0; k < parts->rows; k++)
        total += ((const double *)parts->ptr)[k];
    return total;
}
int multiply(const filch_call *call) /* rows of A, p near by; q, part of p . q */
{
    filch_csr_block a = FILCH_CSR_BLOCK_INIT;
    if (filch_csr_view(NULL, &call->views[0], &a) != FILCH_OK)
        return 1;
    const int *starts = a.pointers, *columns = a.columns;
    const double *values = a.values, *p = call->views[1].ptr;
    const int64_t first = (int64_t)call->views[1].row, row = (int64_t)a.row - first;
    double *q = call->views[2].ptr, total = 0;
    for (int64_t i = 0; i < (int64_t)a.rows; i++) {
        double value = 0;
        for (int k = starts[i]; k < starts[i + 1]; k++)
            value += values[k] * p[columns[k] - first];
        q[i] = value;
        total += value * p[row + i];
    }
    *(double *)call->views[3].ptr = total;
    return 0;
}
int update(const filch_call *call) /* x, r, p, q, part of r . r; p . q; r . r before */
{
    double *x = call->views[0].ptr, *r = call->views[1].ptr, *part = call->views[4].ptr, total = 0;
    const double *p = call->views[2].ptr, *q = call->views[3].ptr;
    const double alpha = sum(&call->views[6]) / sum(&call->views[5]);
    for (uint64_t i = 0; i < call->views[0].rows; i++) {
        x[i] += alpha * p[i];
        r[i] -= alpha * q[i];
        total += r[i] * r[i];
    }
    *part = total;
    return 0;
}
int direct(const filch_call *call) /* p, r; all of r . r now; all of r . r before */
{
    double *p = call->views[0].ptr;
    const double *r = call->views[1].ptr;
    const double beta = sum(&call->views[2]) / sum(&call->views[3]);
    for (uint64_t i = 0; i < call->views[0].rows; i++)
        p[i] = r[i] + beta * p[i];
    return 0;
}
"""


def add_iteration(graph, kernels, a, x, r, p, q, pq, old, new):
    """An iteration. Each block of rows has a part of p . q, and of r . r before and after."""
    for b in range(len(a)):
        graph.add(kernels["multiply"], filch.read(a[b]), filch.read(a.columns_of(b, p)),
                  filch.write(q[b]), filch.write(pq[b]))
    for b in range(len(x)):
        graph.add(kernels["update"], filch.readwrite(x[b]), filch.readwrite(r[b]),
                  filch.read(p[b]), filch.read(q[b]), filch.write(new[b]),
                  filch.read(pq.block()), filch.read(old.block()))
    for b in range(len(x)):
        graph.add(kernels["direct"], filch.readwrite(p[b]), filch.read(r[b]),
                  filch.read(new.block()), filch.read(old.block()))
# The page ends here.


def plain(a, x, r, p, most):
    """The iterations on whole vectors."""
    rr, work = float(len(x)), np.empty(len(x))
    for k in range(most):
        if k % 10 == 0 and rr <= 1e-20 * len(x):
            break
        q = a @ p
        alpha = rr / np.dot(p, q)
        x += np.multiply(p, alpha, out=work)
        r -= np.multiply(q, alpha, out=work)
        before, rr = rr, np.dot(r, r)
        p *= rr / before
        p += r


def main():
    g, most, repeats = [int(each) for each in sys.argv[1:]] + [40, 50, 1][len(sys.argv) - 1:]
    line = scipy.sparse.diags([-1.0, 2.0, -1.0], [-1, 0, 1], (g, g))
    a = scipy.sparse.kronsum(scipy.sparse.kronsum(line, line), line).tocsr()
    rows = g ** 3
    x, r, p, q = (np.empty(rows) for _ in range(4))
    with tempfile.TemporaryDirectory() as folder, filch.Runtime("host") as runtime:
        path = pathlib.Path(folder, "cg.so")
        # Rows have few entries: the loop over them should not straddle two lines of the cache.
        flags = ["-O2", "-falign-loops=64", "-shared", "-fPIC"]
        subprocess.run(["cc", *flags, "-xc", "-", "-o", path], check=True, input=SOURCE.encode())
        library = ctypes.CDLL(path)
        kernels = {name: runtime.kernel(name, library[name])
                   for name in ("multiply", "update", "direct")}
        # A plane or more: at most 16 blocks a core, of some 4000 rows.
        height = (rows - 1) // min(16 * len(runtime.devices), g, rows // 4000 + 1) + 1
        matrix = runtime.csr(a, height)
        vectors = [runtime.data(each, height) for each in (x, r, p, q)]
        sums = [np.empty(len(vectors[0])) for _ in range(3)]
        pq, *rr = (runtime.data(each, 1) for each in sums)
        graph = runtime.graph()  # ten iterations, repeated until r . r is small
        for k in range(10):
            add_iteration(graph, kernels, matrix, *vectors, pq, rr[k % 2], rr[1 - k % 2])
        times, results = ([], []), [None, None]
        for k in range(2 * repeats):
            x[:], r[:], p[:] = 0, 1, 1
            time.sleep(0.05)  # threads of the other side spin on after their work
            begin = time.perf_counter()
            if k % 2 == 0:
                sums[1][:] = rows / len(sums[1])
                graph.repeat(lambda run: 10 * run >= most or sums[1].sum() <= 1e-20 * rows).wait()
            else:
                plain(a, x, r, p, -(-most // 10) * 10)
            times[k % 2].append(time.perf_counter() - begin)
            results[k % 2] = x.copy()
    difference = abs(results[0] - results[1]).max() / abs(results[1]).max()
    ours, theirs = (statistics.median(each) / most * 1e6 for each in times)
    print(f"{rows} unknowns, {most} iterations: filch {ours:.0f} us, NumPy {theirs:.0f} us, "
          f"ratio {ours / theirs:.3f}; largest difference {difference:.1e}")
    return 0 if difference < 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
