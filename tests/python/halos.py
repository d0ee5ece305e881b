# SPDX-License-Identifier: Apache-2.0
"""Halos of tiles that tasks read: what functions and kernels see, and what is refused."""
import ctypes
import itertools
import sys
import types
import unittest

import numpy as np

import check
import filch

library = ctypes.CDLL(sys.argv.pop(1))


def around(cuts, tile, count, before, after):
    """Elements of tiles and of a halo within an axis."""
    return slice(max(cuts[tile] - before, 0), min(cuts[tile + count] + after, cuts[-1]))


class Halos(check.Case):
    def look(self, access):
        """The array of a task, and the part that access.inside names."""
        seen = []
        self.run_one(seen.append, access)
        return seen[0], seen[0][access.inside]

    def test_arrays(self):
        """Every tile, and the block from there to the end, in either order of elements."""
        heights, widths = [0, 1, 4, 6, 10], [0, 2, 7, 8]
        halos = [(0, 0), (1, 0, 0, 0), (0, 1), (0, 0, 1, 0), (0, 0, 0, 1), (3, 9, 5, 2),
                 (2 ** 70, 0, 1, 1), 4 * (2 ** 63,)]
        for order in "CF":
            x = np.asarray(np.arange(80.0).reshape(10, 8), order=order)
            data = self.runtime.data(x, (np.diff(heights), np.diff(widths)))
            for i, j, halo in itertools.product(range(4), range(3), halos):
                above, below, left, right = halo + (0, 0) if len(halo) == 2 else halo
                for rows, cols in (1, 1), (4 - i, 3 - j):
                    tiles = data[i:i + rows, j:j + cols]
                    got, inside = self.look(filch.read(tiles).halo(*halo))
                    np.testing.assert_array_equal(got, x[around(heights, i, rows, above, below),
                                                         around(widths, j, cols, left, right)])
                    np.testing.assert_array_equal(inside, x[heights[i]:heights[i + rows],
                                                            widths[j]:widths[j + cols]])
                    self.assertFalse(got.flags.writeable)
                    self.assertTrue(np.shares_memory(got, x))

    def test_vector(self):
        x = np.arange(10.0)
        data = self.runtime.data(x, 4)
        for access, got, inside in (
                (filch.read(data[0]).halo(2, 1), x[:5], slice(0, 4)),
                (filch.read(data[1]).halo(2, 1), x[2:9], slice(2, 6)),
                (filch.read(data[2]).halo(9, after=1), x, slice(8, 10)),
                (filch.read(data[1:]).halo(1, 1), x[3:], slice(1, 7)),
                (filch.read(data[1]), x[4:8], slice(0, 4)),
                (filch.read(data).halo(1, 1), x, slice(0, 10))):
            self.assertEqual(access.inside, inside)
            np.testing.assert_array_equal(self.look(access)[0], got)
        plain = filch.read(data[1])
        plain.halo(1, 1)                # a copy has it
        np.testing.assert_array_equal(self.look(plain)[0], x[4:8])

    def smooth(self, graph, start):
        """Sweeps of a mean, against a loop. start is called once tasks may run."""
        cuts, reach = [30, 1, 29, 40], 2
        x = np.arange(100.0) ** 2 % 17
        expected, y = x.copy(), np.zeros(100)
        data, into = self.runtime.data(x, cuts), self.runtime.data(y, cuts)

        def mean(u, inside, v):
            for i in range(len(v)):
                at = inside.start + i
                v[i] = u[max(at - reach, 0):at + reach + 1].mean()

        job = start()
        for _ in range(6):
            for k in range(len(cuts)):
                read = filch.read(data[k]).halo(reach, reach)
                graph.add(mean, read, read.inside, filch.write(into[k]))
            data, into = into, data
            expected = np.array([expected[max(i - reach, 0):i + reach + 1].mean()
                                 for i in range(100)])
        if job is None:
            graph.run()
        else:
            graph.close()
            job.wait()
        np.testing.assert_allclose(x, expected, rtol=1e-13)

    def test_smoothing(self):
        graph = self.runtime.graph()
        self.smooth(graph, lambda: None)
        graph = self.runtime.open_graph()
        self.smooth(graph, graph.submit)

    def test_kernel(self):
        """A kernel gets one view, also of several tiles, in the axes of C."""
        seen = []

        def look(address):
            view = filch.c.filch_view.from_address(
                filch.c.filch_call.from_address(address).views)
            seen.append((view.row, view.col, view.rows, view.cols))
            return 0

        kernel = self.runtime.kernel("look", filch.c.filch_host_fn(look), dtypes=["f8"])
        for order, wanted in ("F", (3, 1, 5, 5)), ("C", (1, 3, 5, 5)):
            x = np.zeros((10, 8), order=order)
            self.run_one(kernel, filch.read(self.runtime.data(x, 2)[2:4, 1]).halo(1, 0, 1, 2))
            self.assertEqual(seen.pop(), wanted)
        x, total = np.arange(12.0), np.zeros(3)
        data, totals = self.runtime.data(x, 4), self.runtime.data(total, 1)
        graph = self.runtime.graph()
        sums = self.runtime.kernel("sums", library.sums, dtypes=["f8", None, "f8"])
        for k in range(3):
            graph.add(sums, filch.read(data[k]).halo(1, 2), filch.scratch(12),
                      filch.write(totals[k]))
        graph.run()
        self.assertEqual(total.tolist(), [x[:6].sum(), x[3:10].sum(), x[7:].sum()])

    def test_refusals(self):
        data = self.runtime.data(np.zeros((6, 6)), 3)
        vector = self.runtime.data(np.zeros(6), 3)
        for access in filch.write, filch.readwrite, filch.commute, filch.reduce:
            for of in data[0, 0], vector[0], vector:
                with self.assertRaisesRegex(ValueError, "only a read access has a halo"):
                    access(of).halo(1, 1)
        for halo, text in (((-1, 0), "before is -1"), ((0, -2), "after is -2"),
                           ((0, 0, -3, 0), "cols_before is -3"), ((0, 0, 0, -4), "cols_after is -4")):
            with self.assertRaisesRegex(ValueError, text):
                filch.read(data[0, 0]).halo(*halo)
        with self.assertRaisesRegex(ValueError, "data of one axis"):
            filch.read(vector[0]).halo(1, 1, 0, 1)
        with self.assertRaisesRegex(ValueError, "in a batch"):
            filch.read(data).halo(1, 1, 1, 1)
        with self.assertRaises(TypeError):
            filch.read(data[0, 0]).halo(1.5, 1)
        with self.assertRaisesRegex(TypeError, "to tiles"):
            filch.read(vector[0]).halo(1, 1).scale(2)
        with self.assertRaisesRegex(TypeError, "data as a whole"):
            self.runtime.batch(6, print, filch.read(vector[0]).halo(1, 1))
        with self.refuses("INVALID_ARGUMENT", "one to write it"):
            self.run_one(print, filch.read(vector[0]).halo(0, 1), filch.write(vector[1]))
        with self.refuses("UNSUPPORTED", "a halo of several tiles of 't'"):
            temporary = self.runtime.temporary(6, 3, label="t")
            self.run_one(print, filch.read(temporary[0]).halo(0, 1))
        matrix = types.SimpleNamespace(indptr=np.array([0, 1]), indices=np.array([0]),
                                       data=np.ones(1), shape=(1, 1))
        sparse = filch.read(self.runtime.csr(matrix)[0])
        with self.assertRaisesRegex(TypeError, "has no halo"):
            sparse.halo(1, 1)
        with self.assertRaisesRegex(TypeError, "is no array"):
            sparse.inside


if __name__ == "__main__":
    unittest.main()
