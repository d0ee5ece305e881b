# SPDX-License-Identifier: Apache-2.0
"""Tile Cholesky, A = L L^T, in Python: tasks are functions of NumPy arrays, added in program order.
Beside the same steps in a plain loop. cholesky.py [N [TILE [REPEATS]]]"""
import statistics
import sys
import time

import numpy as np

import filch


# The page begins here.
def potrf(a):
    """A := L with A = L L^T. An exception fails the task, and is the cause of what run() raises."""
    a[...] = np.linalg.cholesky(a)


def trsm(l, a):
    """A := A L^-T"""
    a[...] = np.linalg.solve(l, a.T).T


def gemm(a, b, c):
    """C := C - A B^T"""
    c -= np.dot(a, b.T)


def factor(runtime, matrix, tile):
    a = runtime.data(matrix, (tile, tile), label="A")
    graph = runtime.graph()
    for k in range(len(a)):
        graph.add(potrf, filch.readwrite(a[k, k]))
        for i in range(k + 1, len(a)):
            graph.add(trsm, filch.read(a[k, k]), filch.readwrite(a[i, k]))
        for i in range(k + 1, len(a)):
            for j in range(k + 1, i + 1):
                graph.add(gemm, filch.read(a[i, k]), filch.read(a[j, k]),
                          filch.readwrite(a[i, j]))
    graph.run()
# The page ends here.


def factor_plain(a, tile):
    """The same in a loop."""
    cuts = [slice(at, at + tile) for at in range(0, len(a), tile)]
    for k, kk in enumerate(cuts):
        potrf(a[kk, kk])
        for ii in cuts[k + 1:]:
            trsm(a[kk, kk], a[ii, kk])
        for i, ii in enumerate(cuts[k + 1:]):
            for jj in cuts[k + 1:k + 2 + i]:
                gemm(a[ii, kk], a[jj, kk], a[ii, jj])


def main():
    n, tile, repeats = [int(each) for each in sys.argv[1:]] + [500, 96, 1][len(sys.argv) - 1:]
    index = np.arange(n)
    matrix = 1 / (1.0 + abs(index[:, None] - index)) + 2 * np.eye(n)
    times = [], []
    with filch.Runtime("host") as runtime:  # the tasks are host functions
        for _ in range(repeats):
            ours, theirs = matrix.copy(), matrix.copy()
            begin = time.perf_counter()
            factor(runtime, ours, tile)
            between = time.perf_counter()
            factor_plain(theirs, tile)
            times[0].append(between - begin)
            times[1].append(time.perf_counter() - between)
        difference = abs(np.tril(ours - theirs)).max()
        a, b = map(statistics.median, times)
        print(f"n = {n}: filch {a * 1e3:.1f} ms, plain loop {b * 1e3:.1f} ms, ratio {a / b:.3f}; "
              f"largest difference {difference:.1e}")
        if not difference < 1e-12:
            return 1
        matrix[n // 2, n // 2] = -1
        try:
            factor(runtime, matrix, tile)
        except filch.Error as error:
            print(error)
            return 0 if isinstance(error.__cause__, np.linalg.LinAlgError) else 1
    return 1  # a matrix that is not definite has no factor


if __name__ == "__main__":
    sys.exit(main())
