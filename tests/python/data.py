# SPDX-License-Identifier: Apache-2.0
"""Arrays as data: layouts, tiles, what is refused, and how long arrays live."""
import array
import gc
import os
import tempfile
import unittest
import weakref

import numpy as np

import check
import filch


class Temporaries(check.Case):
    def test_chain(self):
        x = np.zeros((3, 2))
        data = self.runtime.data(x)
        steps = self.runtime.temporary((12, 2), (3, 2), label="steps")
        self.assertIsNone(steps.array)
        self.assertEqual((len(steps), steps.tiles, steps.shape), (4, (4, 1), (12, 2)))
        graph = self.runtime.graph()
        for start in 1, 2:
            graph.add(lambda t, start: t.fill(start), filch.write(steps[0]), start, name="begin")
            for k in range(3):
                graph.add(lambda s, t: np.multiply(s, 2, out=t), filch.read(steps[k]),
                          filch.write(steps[k + 1]), name="double")
            graph.add(lambda s, t: np.add(s, t, out=t), filch.read(steps[3]),
                      filch.readwrite(data), name="add")
            graph.discard(steps)
            with self.refuses("WRONG_STATE"):
                graph.add(lambda t: None, filch.read(steps[3]), name="late")
        for run in 1, 2:
            graph.run()
            np.testing.assert_array_equal(x, np.full((3, 2), 24 * run))

    def test_refused(self):
        data = self.runtime.temporary(6, 2, dtype="i4", ordered=True)
        graph = self.runtime.graph()
        with self.refuses("UNSUPPORTED"):
            graph.add(lambda x: None, filch.write(data))       # a block of tiles
        with self.refuses("UNSUPPORTED"):
            data.acquire().__enter__()
        with self.refuses("INVALID_ARGUMENT"):
            graph.discard(self.runtime.data(np.zeros(2)))
        with self.assertRaises(TypeError):
            graph.discard(np.zeros(2))
        for shape, dtype, error in (((), "f8", ValueError), ((2, 0), "f8", ValueError),
                                    ((1, 2, 3), "f8", ValueError), (3, object, TypeError)):
            with self.assertRaises(error):
                self.runtime.temporary(shape, dtype=dtype)


class Layouts(check.Case):
    def number(self, matrix, tile):
        """Gives each tile its number; returns the numbers as expected."""
        data = self.runtime.data(matrix, tile)
        graph = self.runtime.graph()
        expected = np.empty_like(matrix)
        height, width = tile
        for i in range(data.tiles[0]):
            for j in range(data.tiles[1]):
                graph.add(lambda x, value: x.fill(value), filch.write(data[i, j]), 10 * i + j)
                expected[i * height:(i + 1) * height, j * width:(j + 1) * width] = 10 * i + j
        graph.run()
        np.testing.assert_array_equal(matrix, expected)

    def test_orders(self):
        for order in "CF":
            for dtype in "f8", "f4", "i2", "c16", "?", [("a", "f8"), ("b", "i4")]:
                if isinstance(dtype, str):
                    self.number(np.zeros((7, 5), dtype, order), (3, 2))
                self.runtime.data(np.zeros((7, 5), dtype, order), (3, 2))

    def test_parts_of_matrices(self):
        for order in "CF":
            whole = np.full((9, 8), -1.0, order=order)
            self.number(whole[1:8, 2:7], (3, 2))
            self.assertEqual((whole == -1).sum(), 9 * 8 - 7 * 5)

    def test_thin(self):
        for shape in (1, 5), (5, 1), (1, 1):
            self.number(np.zeros(shape), (1, 1))
            self.number(np.zeros((5, 5))[:shape[0], :shape[1]], (1, 1))
        self.number(np.zeros((2, 7), "f4")[:1, :6].view("c8"), (1, 1))

    def test_blocks(self):
        for order in "CF":
            matrix = np.asarray(np.arange(42.0).reshape(7, 6), order=order)
            data = self.runtime.data(matrix, (2, 4))
            seen = []
            self.run_one(seen.append, filch.read(data[1:3, 0]))
            self.run_one(seen.append, filch.read(data[1:, :]))
            self.run_one(seen.append, filch.read(data[-1]))
            self.run_one(seen.append, filch.read(data))
            for got, expected in zip(seen, (matrix[2:6, :4], matrix[2:], matrix[6:], matrix)):
                np.testing.assert_array_equal(got, expected)

    def test_whole(self):
        """More tiles than a task has accesses, as one access."""
        x = np.arange(300.0)
        data = self.runtime.data(x, 1)
        self.run_one(lambda x: np.multiply(x, 2, out=x), filch.readwrite(data))
        self.assertEqual(x.tolist(), [2.0 * i for i in range(300)])
        with self.assertRaisesRegex(ValueError, "300 accesses"):
            self.run_one(print, filch.commute(data))
        with self.assertRaisesRegex(ValueError, "not as a block"):
            filch.commute(data.block())

    def test_cuts(self):
        x = np.zeros(10)
        data = self.runtime.data(x, [1, 2, 7])
        graph = self.runtime.graph()
        for i in range(3):
            graph.add(lambda x, value: x.fill(value), filch.write(data[i]), i)
        graph.run()
        self.assertEqual(x.tolist(), [0, 1, 1] + 7 * [2])
        matrix = np.zeros((3, 4))
        data = self.runtime.data(matrix, ([1, 2], [3, 1]))
        self.run_one(lambda x: x.fill(1), filch.write(data[1, 0]))
        self.assertEqual(matrix.tolist(), [[0] * 4] + 2 * [[1, 1, 1, 0]])

    def test_file(self):
        with tempfile.TemporaryDirectory() as folder:
            mapped = np.memmap(os.path.join(folder, "x"), "f8", "w+", shape=100)
            self.run_one(lambda x: x.fill(3), filch.write(self.runtime.data(mapped, 30)))
            self.assertTrue((mapped == 3).all())

    def test_managed(self):
        x = np.zeros(100)
        data = self.runtime.data(x, 25, managed=True, label="x")
        self.run_one(lambda x: x.fill(3), filch.write(data[1]))
        with data.acquire("rw", data[1:3]) as part:
            self.assertEqual(part.tolist(), 25 * [3] + 25 * [0])
            part += 1
            with self.assertRaises(filch.Error), data.acquire("rw", data[1], seconds=0):
                pass
        with data.acquire() as whole:
            self.assertEqual(whole.sum(), 25 * 4 + 25)
            self.assertFalse(whole.flags.writeable)


class Refusals(check.Case):
    def refuse(self, kind, text, make):
        with self.assertRaises(kind) as caught:
            make()
        self.assertIn(text, str(caught.exception))

    def test_arrays(self):
        data = self.runtime.data
        for kind, text, wrong in (
                (TypeError, "no array", [1.0, 2.0]),
                (TypeError, "no array", array.array("d", [1, 2])),
                (TypeError, "no array", None),
                (TypeError, "objects", np.array([object(), None])),
                (TypeError, "objects", np.zeros(3, [("a", "O"), ("b", "f8")])),
                (ValueError, "without elements", np.zeros(0)),
                (ValueError, "3 axes", np.zeros((2, 2, 2))),
                (ValueError, "0 axes", np.array(1.0)),
                (ValueError, "not contiguous", np.zeros(10)[::2]),
                (ValueError, "not contiguous", np.zeros(10)[::-1]),
                (ValueError, "not contiguous", np.zeros((6, 6))[::2, ::2]),
                (ValueError, "not contiguous", np.broadcast_to(np.zeros(1), (4,))),
                (ValueError, "a stride of 28 bytes, which is no multiple of its elements' 8",
                 np.zeros((4, 7), "f4")[:, :6].view("c8")),
                (ValueError, "a stride of 28 bytes", np.zeros((4, 7), "f4")[:, :6].view("c8").T),
                (ValueError, "not aligned", np.zeros(81, "u1")[1:].view("f8"))):
            with self.subTest(wrong=wrong):
                self.refuse(kind, text, lambda: data(wrong))
        self.refuse(ValueError, "no device", lambda: data(np.zeros(4), device=0))

    def test_tiles(self):
        x, a = np.zeros(10), np.zeros((4, 6))
        for text, wrong in (
                ("a tile of 0", lambda: self.runtime.data(x, 0)),
                ("a tile of 11 rows of 10", lambda: self.runtime.data(x, 11)),
                ("a tile of -1", lambda: self.runtime.data(x, -1)),
                ("do not make 10", lambda: self.runtime.data(x, [3, 3])),
                ("do not make 10", lambda: self.runtime.data(x, [10, 0])),
                ("tiles (2, 2, 2)", lambda: self.runtime.data(a, (2, 2, 2)))):
            self.refuse(ValueError, text, wrong)
        self.refuse(TypeError, "", lambda: self.runtime.data(x, 2.5))
        data = self.runtime.data(a, (2, 2))
        self.refuse(IndexError, "tile 2 of 2", lambda: data[2])
        self.refuse(IndexError, "tile -3 of 2", lambda: data[-3])
        self.refuse(IndexError, "tile 3 of 3 along axis 1", lambda: data[0, 3])
        self.refuse(IndexError, "3 indices", lambda: data[0, 0, 0])
        self.refuse(IndexError, "none, or with a step", lambda: data[1:1])
        self.refuse(IndexError, "none, or with a step", lambda: data[::2])
        self.refuse(TypeError, "", lambda: data[0.5])

    def test_read_only(self):
        x = np.zeros(10)
        x.flags.writeable = False
        data = self.runtime.data(x, 5)
        for access in filch.write, filch.readwrite, filch.commute, filch.reduce:
            self.refuse(ValueError, "read-only", lambda: access(data[0]))
        self.refuse(ValueError, "read-only", lambda: data.acquire("w"))
        self.refuse(ValueError, "the mode is 'x'", lambda: data.acquire("x"))
        self.run_one(lambda x: None, filch.read(data[0]))
        y = self.runtime.data(np.zeros(10))
        with self.refuses("TASK_FAILED", "read-only") as caught:
            self.run_one(lambda y: y.fill(1), filch.read(y))
        self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_accesses(self):
        x = self.runtime.data(np.zeros(10), 5)
        graph = self.runtime.graph()
        self.refuse(TypeError, "not to ndarray", lambda: filch.read(np.zeros(3)))
        self.refuse(TypeError, "data without an access", lambda: graph.add(print, x))
        self.refuse(TypeError, "data without an access", lambda: graph.add(print, x[0]))
        self.refuse(TypeError, "numpy.empty", lambda: graph.add(print, filch.scratch(3)))
        self.refuse(TypeError, "a function or a Kernel", lambda: graph.add(3))
        self.refuse(TypeError, "data as a whole",
                    lambda: self.runtime.batch(10, print, filch.read(x[0])))
        self.refuse(TypeError, "to tiles", lambda: filch.read(x[0]).scale(2))
        self.refuse(ValueError, "has a halo", lambda: filch.write(x).halo(1, 1))
        self.refuse(ValueError, "before is -1", lambda: filch.read(x).halo(-1, 1))
        self.refuse(ValueError, "no bytes", lambda: filch.scratch(0))
        wide = self.runtime.data(np.zeros(300), 1)
        self.refuse(ValueError, "300 acc", lambda: graph.add(print, filch.commute(wide)))
        with self.refuses("INVALID_ARGUMENT"):  # a tile accessed twice
            graph.add(print, filch.read(x[0]), filch.write(x[0]))

    def test_runtimes(self):
        with filch.Runtime("host:1@any") as other:
            y = other.data(np.zeros(4))
            with self.refuses("WRONG_RUNTIME"):
                self.run_one(lambda y: None, filch.read(y))
        for devices, status in ("hosts", "PARSE"), ("host:0", "PARSE"), ("cuda:99", None):
            with self.assertRaises(filch.Error) as caught:
                filch.Runtime(devices)
            self.assertTrue(status is None or caught.exception.status.name == status)
        with self.assertRaises(TypeError):
            filch.Runtime("host:1@any", colour=3)
        with self.assertRaises(ValueError):
            filch.Runtime("host:1@any", policy="nonsense")


class Lives(check.Case):
    def test_arrays_live_as_long_as_views(self):
        x = np.zeros(1000)
        alive = weakref.ref(x)
        kept = []
        self.run_one(kept.append, filch.readwrite(self.runtime.data(x, 100)[3]))
        del x
        gc.collect()
        self.assertFalse(alive() is None)
        kept[0].fill(1)
        kept.clear()
        self.runtime.sweep()
        gc.collect()
        self.assertTrue(alive() is None)

    def test_graphs_keep_data(self):
        x = np.zeros(1000)
        alive = weakref.ref(x)
        graph = self.runtime.graph()
        graph.add(lambda x: x.fill(1), filch.write(self.runtime.data(x, 1000)))
        del x
        gc.collect()
        graph.run()
        self.assertEqual(alive().sum(), 1000)
        del graph
        gc.collect()
        self.assertTrue(alive() is None)

    def test_handles_end(self):
        before = self.runtime.usage.host_bytes
        for _ in range(300):
            data = self.runtime.data(np.zeros(1000), 10)
            self.run_one(lambda x: None, filch.read(data[0]))
        del data
        self.assertLess(self.runtime.usage.host_bytes - before, 100000)


if __name__ == "__main__":
    unittest.main()
