# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices: what functions and kernels get, changes of values, refusals."""
import ctypes
import sys
import types
import unittest

import numpy as np

import check
import filch

try:
    import scipy.sparse
except ImportError:
    scipy = None

library = ctypes.CDLL(sys.argv.pop(1))


def matrix_of(dense, integers=("i4", "i4"), dtype="f8"):
    """The dense matrix in compressed rows, without SciPy."""
    rows, columns = np.nonzero(dense)
    counts = np.bincount(rows, minlength=dense.shape[0])
    return types.SimpleNamespace(
        indptr=np.concatenate([[0], np.cumsum(counts)]).astype(integers[0]),
        indices=columns.astype(integers[1]), data=dense[rows, columns].astype(dtype),
        shape=dense.shape)


def random_dense(rows, cols):
    dense = np.random.default_rng(18).integers(-5, 6, (rows, cols)).astype(float)
    dense[np.random.default_rng(19).random((rows, cols)) < 0.7] = 0
    dense[3] = 0                        # an empty row
    return dense


def multiply(a, x, y):
    for i in range(len(y)):
        k = slice(a.indptr[i], a.indptr[i + 1])
        y[i] = a.data[k] @ x[a.indices[k]]


class Csr(check.Case):
    def product(self, matrix, dense, **cut):
        a = self.runtime.csr(matrix, **cut)
        x, y = np.arange(dense.shape[1]) - 5.0, np.full(dense.shape[0], np.nan)
        dx, dy = self.runtime.data(x), self.runtime.data(y, a.heights)
        graph = self.runtime.graph()
        for i in range(len(a)):
            graph.add(multiply, filch.read(a[i]), filch.read(dx[0]), filch.write(dy[i]))
        for _ in range(2):
            y[:] = np.nan
            graph.run()
            np.testing.assert_array_equal(y, dense @ x)
        return a

    def test_products(self):
        dense = random_dense(41, 23)
        for integers in ("i4", "i4"), ("i4", "i8"), ("i8", "u4"), ("u8", "i8"):
            matrix = matrix_of(dense, integers)
            self.assertEqual(len(self.product(matrix, dense, blocks=5)), 5)
            self.assertEqual(self.product(matrix, dense, tile=20).heights, [20, 20, 1])
            self.assertEqual(self.product(matrix, dense, tile=[1, 39, 1]).heights, [1, 39, 1])
            self.assertEqual(len(self.product(matrix, dense)), 1)
            self.assertEqual(len(self.product(matrix, dense, blocks=1000)), 41)

    @unittest.skipUnless(scipy, "no SciPy")
    def test_scipy(self):
        matrix = scipy.sparse.random(50, 30, 0.2, "csr", random_state=1)
        a = self.runtime.csr(matrix, blocks=4)
        found = []
        graph = self.runtime.graph()
        for i in range(len(a)):
            graph.add(lambda rows: found.append((rows.row, scipy.sparse.csr_matrix(
                (rows.data, rows.indices, rows.indptr), rows.shape))), filch.read(a[i]))
        graph.run()
        parts = [part for _, part in sorted(found, key=lambda each: each[0])]
        self.assertEqual(abs(scipy.sparse.vstack(parts) - matrix).nnz, 0)
        with self.assertRaisesRegex(TypeError, "format csc"):
            self.runtime.csr(matrix.tocsc())

    def test_copies(self):
        """What a function keeps is good after the end; the caller's arrays are no one's."""
        dense, kept = random_dense(10, 10), []
        matrix = matrix_of(dense)
        a = self.runtime.csr(matrix, 5)
        matrix.data[:] = matrix.indices[:] = matrix.indptr[:] = -1
        self.run_one(kept.append, filch.read(a[1]))
        self.assertFalse(any(each.flags.writeable for each in
                             (kept[0].data, kept[0].indices, kept[0].indptr)))
        del a
        self.runtime.close()
        y = np.empty(5)
        multiply(kept[0], np.arange(10.0), y)
        np.testing.assert_array_equal(y, dense[5:] @ np.arange(10.0))

    def test_values(self):
        dense = random_dense(30, 30)
        matrix = matrix_of(dense)
        a = self.product(matrix, dense, blocks=4)
        seen = []

        def twice(rows):
            rows.data *= 2

        graph = self.runtime.graph()
        for i in range(len(a)):
            graph.add(twice, filch.readwrite(a[i]))
            graph.add(twice, filch.commute(a[i]))
            graph.add(seen.append, filch.read(a[i]))
        graph.run()
        self.assertEqual(sum(rows.data.sum() for rows in seen), 4 * dense.sum())
        with a.acquire() as values:
            np.testing.assert_array_equal(values, 4 * matrix.data)
            values[:] = 0               # a copy
        with a.acquire("rw") as values:
            np.testing.assert_array_equal(values, 4 * matrix.data)
            values += 1
        with a.acquire("r") as values:
            np.testing.assert_array_equal(values, 4 * matrix.data + 1)
        with a.acquire("w") as values:
            values[:] = matrix.data
        graph.run()
        with a.acquire("r") as values:
            np.testing.assert_array_equal(values, 4 * matrix.data)

    def test_host_changes(self):
        """A function sees what the host has changed after an earlier look."""
        dense = random_dense(8, 8)
        a = self.product(matrix_of(dense), dense, tile=8)
        with a.acquire("rw") as values:
            values *= 3
        found = []
        self.run_one(found.append, filch.read(a[0]))
        np.testing.assert_array_equal(found[0].data, 3 * matrix_of(dense).data)

    def test_kernel(self):
        dense = random_dense(20, 20)
        matrix, x, y = matrix_of(dense), np.arange(20.0), np.empty(20)
        a = self.runtime.csr(matrix, 6)
        kernel = self.runtime.kernel("multiply", library.multiply, dtypes=["f8", "f8", "f8"])
        dx, dy = self.runtime.data(x, 6), self.runtime.data(y, 6)
        graph = self.runtime.graph()
        for i in range(len(a)):
            graph.add(kernel, filch.read(a[i]), filch.read(a.columns_of(i, dx)),
                      filch.write(dy[i]))
        graph.run()
        np.testing.assert_array_equal(y, dense @ x)
        with self.assertRaises(TypeError):
            graph.add(kernel, filch.read(self.runtime.csr(matrix_of(dense, dtype="f4"))[0]),
                      filch.read(dx[0]), filch.write(dy[0]))

    def test_info(self):
        dense = np.zeros((6, 6))
        dense[0, 5] = dense[2, 2] = dense[3, 0] = 1
        a = self.runtime.csr(matrix_of(dense), 2)
        told = [(each.row, each.rows, each.nnz, each.entry, each.column_lo, each.column_hi,
                 each.block_lo, each.block_hi) for each in map(a.info, range(3))]
        self.assertEqual(told, [(0, 2, 1, 0, 5, 6, 2, 3), (2, 2, 2, 1, 0, 3, 0, 2),
                                (4, 2, 0, 3, 0, 0, 0, 0)])
        with self.assertRaises(IndexError):
            a.info(3)
        with self.assertRaises(IndexError):
            a.columns_of(2, self.runtime.data(np.zeros(6), 2))

    def test_shared(self):
        """Two open graphs share a matrix and a vector, and neither writes them."""
        dense = random_dense(12, 12)
        a, x = self.runtime.csr(matrix_of(dense), label="A"), np.arange(12.0)
        dx = self.runtime.data(x)
        results = [np.zeros(12), np.zeros(12)]
        for y in results:
            graph = self.runtime.open_graph(label="solver")
            job = graph.submit()
            graph.read_only(a)
            graph.read_only(dx)
            with self.refuses("WRONG_STATE", "graph 'solver' only reads 'A'"):
                graph.add(print, filch.readwrite(a[0]))
            with self.refuses("WRONG_STATE", "only reads the handle"):
                graph.add(print, filch.write(dx[0]))
            graph.add(multiply, filch.read(a[0]), filch.read(dx[0]),
                      filch.write(self.runtime.data(y)[0]))
            graph.close()
            job.wait()
            np.testing.assert_array_equal(y, dense @ x)
        with self.assertRaises(TypeError):
            graph.read_only(x)

    def test_empty(self):
        matrix = types.SimpleNamespace(indptr=np.zeros(1, "i4"), indices=np.zeros(0, "i4"),
                                       data=np.zeros(0), shape=(0, 4))
        a = self.runtime.csr(matrix, blocks=3)
        found = []
        self.run_one(found.append, filch.readwrite(a[0]))
        self.assertEqual((len(a), found[0].shape, len(found[0].data)), (1, (0, 4), 0))

    def test_byte_order(self):
        dense = random_dense(9, 9)
        good = matrix_of(dense)
        swapped = types.SimpleNamespace(**{**vars(good), "indptr": good.indptr.astype(">i4"),
                                           "indices": good.indices.astype(">i4")})
        a, b = self.runtime.csr(good, 3), self.runtime.csr(swapped, 3)
        for at in range(len(a)):
            for name in ("rows", "nnz", "column_lo", "column_hi"):
                self.assertEqual(getattr(a.info(at), name), getattr(b.info(at), name))
        found = []
        self.run_one(found.append, filch.read(b[1]))
        np.testing.assert_array_equal(found[0].indices,
                                      good.indices[good.indptr[3]:good.indptr[6]])

    def test_refusals(self):
        dense = random_dense(9, 9)
        good = matrix_of(dense)
        for name, value, text in (("indices", good.indices + 1, "row"),
                                  ("indptr", good.indptr[::-1], "pointers")):
            wrong = types.SimpleNamespace(**{**vars(good), name: value})
            with self.refuses("INVALID_ARGUMENT", text):
                self.runtime.csr(wrong)
        for name, value in (("indices", good.indices.astype("f8")),
                            ("indptr", good.indptr[:, None]),
                            ("indices", good.indices.astype("i2")),
                            ("data", good.data.astype(object))):
            with self.assertRaises(TypeError):
                self.runtime.csr(types.SimpleNamespace(**{**vars(good), name: value}))
        for name, value in (("indptr", good.indptr[1:]), ("data", good.data[1:]), ("shape", (9,)),
                            ("shape", (8, 9)), ("shape", (9, -1))):
            with self.assertRaises(ValueError):
                self.runtime.csr(types.SimpleNamespace(**{**vars(good), name: value}))
        for cut in ({"tile": 0}, {"tile": []}, {"tile": [3, 0]}, {"blocks": 0}, {"blocks": -1},
                    {"blocks": 2 ** 32}):
            with self.assertRaises(ValueError):
                self.runtime.csr(good, **cut)
        with self.refuses("INVALID_ARGUMENT", "more than one"):
            self.runtime.csr(good, 3, blocks=3)
        a = self.runtime.csr(good, 3)
        graph = self.runtime.graph()
        with self.refuses("INVALID_ARGUMENT", "without being read"):
            graph.add(print, filch.write(a[0]))
        with self.refuses("INVALID_ARGUMENT", "reduced"):
            graph.add(print, filch.reduce(a[0]))
        with self.assertRaises(TypeError):
            filch.read(a)
        with self.assertRaises(TypeError):
            a[0].block()
        with self.assertRaises(TypeError):
            graph.add(print, a[0])
        for index in 3, -4:
            with self.assertRaises(IndexError):
                a[index]
        with self.assertRaises(ValueError):
            a.acquire("x")


if __name__ == "__main__":
    unittest.main()
