# SPDX-License-Identifier: Apache-2.0
"""Tasks, batches and kernels: what functions get, and what failures become."""
import ctypes
import pathlib
import re
import sys
import tempfile
import threading
import unittest

import numpy as np

import check
import filch

library = ctypes.CDLL(sys.argv.pop(1))
library.scale.restype = ctypes.c_int


class Tasks(check.Case):
    def test_order(self):
        x = np.zeros(4)
        data = self.runtime.data(x, 1)
        graph = self.runtime.graph(label="order")
        for k in range(200):
            graph.add(lambda a, b, k: b.__setitem__(0, a[0] + k), filch.read(data[k % 4]),
                      filch.readwrite(data[(k + 1) % 4]), k)
        expected = np.zeros(4)
        for _ in range(3):
            graph.run()
            for k in range(200):
                expected[(k + 1) % 4] = expected[k % 4] + k
        np.testing.assert_array_equal(x, expected)

    def test_edges_and_options(self):
        seen = []
        graph = self.runtime.graph()
        first = graph.add(lambda: seen.append(1), name="a", label="é", work=3, priority=2,
                          device=1)
        second = graph.add(lambda: seen.append(2), name="b", device=0)
        graph.edge(second, first)
        graph.run()
        self.assertEqual(seen, [2, 1])
        graph = self.runtime.graph()
        with self.refuses("INVALID_ARGUMENT", "task #0 'print': device=99 is none of"):
            graph.add(print, device=99)
        first = graph.add(seen.append, 3)
        second = graph.add(seen.append, 4)
        graph.edge(first, second)
        graph.edge(second, first)
        with self.refuses("CYCLE"):
            graph.run()

    def test_members_are_documented(self):
        job = filch.Job
        for method, record in ((job.report, filch.c.filch_report),
                               (job.losses, filch.c.filch_losses),
                               (job.devices, filch.c.filch_device_stats)):
            words = set(re.findall(r"\w+", method.__doc__))
            self.assertEqual({name for name, _ in record._fields_} - words, set())
        words = set(re.findall(r"\w+", job.info.__doc__ + job.report.__doc__))
        self.assertEqual({name for name, _ in filch.c.filch_job_info._fields_} - words, set())
        page = pathlib.Path(__file__).parents[2] / "docs/python.md"
        words = set(re.findall(r"`(\w+)", page.read_text()))
        named = {name for name, _ in filch.c.filch_report._fields_ + filch.c.filch_losses._fields_
                 if not name.startswith(("refused_", "restarts"))} - {"size"}
        self.assertEqual(named - words, set())

    def test_commute(self):
        x = np.zeros(1)
        data = self.runtime.data(x)
        graph = self.runtime.graph()
        for _ in range(100):
            graph.add(lambda x: np.add(x, 1, out=x), filch.commute(data[0]), name="add")
        graph.run()
        self.assertEqual(x[0], 100)

    def test_reduce(self):
        x = np.arange(30.0)
        data = self.runtime.data(x, 10, ordered=True)
        zero, add = (self.runtime.kernel(name, library[name]) for name in ("zero", "add"))
        with self.refuses("WRONG_STATE"):
            self.run_one(print, filch.reduce(data[1]))
        data.reduction(zero, add)
        graph = self.runtime.graph()
        kept = []

        def increase(part, block):
            part += 1
            block += 2
            kept.append(part)

        for _ in range(50):
            graph.add(increase, filch.reduce(data[1]), filch.reduce(data[2]))
        graph.run()
        np.testing.assert_array_equal(x, np.arange(30) + np.repeat([0, 50, 100], 10))
        del graph
        self.runtime.close()
        for each in kept:       # filch's memory is gone: these are copies
            each += 1

    def test_kernel_blocks(self):
        matrix = np.arange(42.0).reshape(7, 6)
        cut = self.runtime.data(matrix, (2, 4))
        graph = self.runtime.graph()
        double = self.runtime.kernel("scale", library.scale, args=ctypes.c_double, dtypes=["f8"])
        graph.add(double, filch.readwrite(cut.block()), args=2.0)
        graph.add(double, filch.readwrite(cut[1:3, 1].block()), args=10.0)
        with self.assertRaisesRegex(TypeError, "has 1 accesses, not 8"):
            graph.add(double, filch.readwrite(cut), args=2.0)
        graph.run()
        expected = 2 * np.arange(42.0).reshape(7, 6)
        expected[2:6, 4:] *= 10
        np.testing.assert_array_equal(matrix, expected)

    def test_divisible(self):
        x = np.zeros(1000)
        data = self.runtime.data(x)
        pieces = []

        def number(lo, hi, x):
            pieces.append((lo, hi))
            x[lo:hi] = np.arange(lo, hi)

        self.run_one(number, filch.readwrite(data[0]), items=1000, grain=100)
        np.testing.assert_array_equal(x, np.arange(1000))
        self.assertEqual(sum(hi - lo for lo, hi in pieces), 1000)

    def test_open_graph(self):
        x = np.zeros(8)
        data = self.runtime.data(x, 1)
        graph = self.runtime.open_graph()
        with self.refuses("WRONG_STATE"):
            graph.add(print, filch.read(data[0]))
        with self.refuses("WRONG_STATE"):
            graph.run()
        job = graph.submit()

        def grow(depth, x):
            x += 1
            if depth > 0:
                graph.add(grow, depth - 1, filch.readwrite(data[depth]))

        graph.add(grow, 7, filch.readwrite(data[0]))
        self.assertFalse(job.wait(0.01))
        while job.info().done < 8:
            job.wait(0.01)
        graph.close()
        job.wait()
        self.assertEqual(x.tolist(), [1] * 8)
        self.assertEqual(job.status, filch.Status.OK)

    def test_dot(self):
        x = np.zeros(4)
        graph = self.runtime.graph(label="picture")
        graph.add(lambda a: None, filch.read(self.runtime.data(x)))
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "graph.dot")
            graph.write_dot(path)
            text = path.read_text()
            with self.refuses("IO"):
                graph.write_dot(folder)
        self.assertTrue(text.startswith('digraph "picture" {'))
        self.assertIn("reads handle 0(0, 0)", text)

    def test_limit(self):
        ended = []
        graph = self.runtime.open_graph(max_live=3)
        with self.refuses("WRONG_STATE"):
            graph.wait_below(1)
        job = graph.submit()
        for added in range(1, 201):
            graph.add(ended.append, added)
            self.assertLessEqual(added - len(ended), 3)
        self.assertTrue(graph.wait_below(1))
        self.assertEqual(len(ended), 200)
        graph.add(lambda: graph.wait_below(1))
        gate = threading.Event()
        graph.add(gate.wait)
        self.assertFalse(graph.wait_below(1, 0.01))
        gate.set()
        with self.refuses("INVALID_ARGUMENT"):
            graph.wait_below(0)
        graph.close()
        job.wait()

    def test_nested(self):
        x = np.zeros(1)
        data = self.runtime.data(x)
        y = np.zeros(1)
        other = self.runtime.data(y)

        def waits(x):
            self.run_one(lambda y: y.fill(5), filch.write(other[0]))
            x[0] = y[0]

        self.run_one(waits, filch.write(data[0]))
        self.assertEqual(x[0], 5)

    def test_threads(self):
        x = np.zeros(40)
        data = self.runtime.data(x, 1)
        errors = []

        def use(k):
            try:
                for _ in range(20):
                    graph = self.runtime.graph()
                    for j in range(10):
                        graph.add(lambda x: np.add(x, 1, out=x), filch.readwrite(data[10 * k + j]),
                                  name="add")
                    graph.run()
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        self.assertEqual(errors, [])
        self.assertEqual(x.tolist(), [20] * 40)


class Failures(check.Case):
    def test_exceptions(self):
        data = self.runtime.data(np.zeros(4), 1)
        for exception, code, text in (
                (ValueError("the pivot is 0"), filch.THROWN, "ValueError: the pivot is 0"),
                (KeyError(), filch.THROWN, "KeyError"),
                (filch.Failure(17, "row 17"), 17, "row 17"),
                (filch.Failure(-3, "é" * 400), -3, "é" * 400),
                (SystemExit(3), filch.THROWN, "SystemExit: 3"),
                (KeyboardInterrupt(), filch.THROWN, "KeyboardInterrupt"),
                (MemoryError("x"), filch.THROWN, "MemoryError: x")):
            def boom(x, exception=exception):
                raise exception
            with self.refuses("TASK_FAILED", "here on host:") as caught:
                self.run_one(boom, filch.readwrite(data[0]), label="here")
            error = caught.exception
            self.assertIs(error.__cause__, exception)
            self.assertEqual(error.code, code)
            self.assertTrue(str(error).endswith(text))
            self.assertEqual((error.label, error.device[:5]), ("here", "host:"))
        for code in 0, 2 ** 31, -2 ** 31:
            with self.assertRaises(ValueError):
                filch.Failure(code, "")

    def test_text_of_the_c_interface(self):
        def boom(x):
            raise ValueError("é" * 200)
        graph = self.runtime.graph()
        graph.add(boom, filch.readwrite(self.runtime.data(np.zeros(4))[0]), label="here")
        job = graph.submit()
        with self.refuses("TASK_FAILED"):
            job.wait()
        with self.refuses("TASK_FAILED"):
            job.wait()
        record = filch.c.filch_error()
        self.assertEqual(filch.lib.filch_job_error(job._state.handle, ctypes.byref(record)), 0)
        self.assertIn("ValueError: ééé", record.text.decode())

    def test_first_failure_and_rest(self):
        x = np.zeros(3)
        data = self.runtime.data(x, 1)
        graph = self.runtime.graph()

        def boom(x):
            raise ValueError("first")

        graph.add(boom, filch.readwrite(data[0]))
        graph.add(lambda x, y: y.fill(1), filch.read(data[0]), filch.write(data[1]))
        graph.add(lambda x: x.fill(1), filch.write(data[2]))
        job = graph.submit()
        with self.refuses("TASK_FAILED", "first"):
            job.wait()
        self.assertEqual(x.tolist(), [0, 0, 1])
        info = job.info()
        self.assertEqual((info.total, info.done, info.failed, info.skipped), (3, 1, 1, 1))
        self.assertEqual(sum(each.tiles for each in job.devices()), 2)
        self.assertGreater(job.report(graph).wall_ns, 0)
        with self.refuses("TASK_FAILED", "first"):
            graph.run(on_failure="cancel", label="again")
        with self.assertRaises(ValueError):
            graph.run(on_failure="nonsense")

    def test_many_failures(self):
        def boom():
            raise ValueError("one of many")
        graph = self.runtime.graph()
        for _ in range(3000):
            graph.add(boom)
        for _ in range(2):
            with self.refuses("TASK_FAILED", "one of many") as caught:
                graph.run()
            self.assertIsInstance(caught.exception.__cause__, ValueError)

    def test_runs_in_line(self):
        started, go = threading.Event(), threading.Event()
        graph = self.runtime.graph()

        def block():
            started.set()
            go.wait()

        graph.add(block)
        job = graph.submit()
        started.wait()
        behind, after = graph.submit(), graph.submit()
        self.assertFalse(job.wait(0))
        self.assertEqual(job.status, filch.Status.NOT_READY)
        after.cancel()
        self.assertEqual(after.status, filch.Status.CANCELLED)
        self.assertEqual(behind.status, filch.Status.NOT_READY)
        go.set()
        behind.wait()
        job.wait()
        graph.run()


class Batches(check.Case):
    def test_items(self):
        for order in "CF":
            x = np.zeros((50, 4), order=order) if order == "C" else np.zeros((4, 50), order=order)
            data = self.runtime.data(x)

            def number(lo, hi, x, order=order):
                part = x if order == "C" else x.T
                part[:] = np.arange(lo, hi)[:, None]

            batch = self.runtime.batch(50, number, filch.write(data), grain=3, name="number",
                                       work=2)
            batch.run()
            batch.run()
            expected = np.repeat(np.arange(50.0), 4).reshape(50, 4)
            np.testing.assert_array_equal(x, expected if order == "C" else expected.T)

    def test_maps(self):
        x, y, table = np.arange(200.0), np.zeros(100), np.arange(7.0)
        batch = self.runtime.batch(
            100, lambda lo, hi, x, y, t: np.add(x[::2] + x[1::2], t.sum(), out=y),
            filch.read(self.runtime.data(x)).scale(2), filch.write(self.runtime.data(y)),
            filch.read(self.runtime.data(table)).whole(), grain=10)
        batch.run()
        np.testing.assert_array_equal(y, x[::2] + x[1::2] + 21)

    def test_failure_and_rest(self):
        x = np.zeros(100)
        bad = [50]

        def number(lo, hi, x):
            if lo <= bad[0] < hi:
                raise ValueError("item 50")
            x[:] = np.arange(lo, hi)

        batch = self.runtime.batch(100, number, filch.readwrite(self.runtime.data(x)), grain=10)
        job = batch.submit()
        with self.refuses("TASK_FAILED", "item 50") as caught:
            job.wait()
        self.assertEqual(str(caught.exception.__cause__), "item 50")
        fates = job.items()
        self.assertEqual((fates[0][0], fates[-1][1]), (0, 100))
        self.assertIn("TASK_FAILED", {status.name for _, _, status in fates})
        del batch
        bad[0] = -1
        rest = job.resume()
        del job
        rest.wait()
        np.testing.assert_array_equal(x, np.arange(100))

    def test_at_once(self):
        data = [self.runtime.data(np.zeros(100)) for _ in range(4)]
        jobs = [self.runtime.batch(100, lambda lo, hi, x: np.add(x, 1, out=x),
                                   filch.readwrite(each), name="add").submit() for each in data]
        for each in jobs:
            each.wait()
        for each in data:
            self.assertEqual(each.array.sum(), 100)


class Kernels(check.Case):
    def test_arguments(self):
        for args, values in ((ctypes.c_double, (2.0, ctypes.c_double(2.0), (2,))),
                             ("f8", (2.0, np.float64(2), 2)),
                             (8, (bytes(ctypes.c_double(2.0)), np.float64(2)))):
            kernel = self.runtime.kernel("scale", library.scale, args=args, dtypes=["f8"])
            for value in values:
                x = np.ones((6, 6), order="F")
                data = self.runtime.data(x[:5], (2, 3))
                self.run_one(kernel, filch.readwrite(data[1, 1]), args=value)
                self.assertEqual(x.sum(), 36 + 2 * 3)
        x = self.runtime.data(np.zeros(4))
        for kind, wrong in ((ValueError, dict(args=np.float32(2))), (ValueError, {}),
                            (ValueError, dict(args=b"1234")), (TypeError, dict(args=2.0)),
                            (TypeError, dict(args=np.float64(2), name="other"))):
            with self.assertRaises(kind):
                self.run_one(kernel, filch.readwrite(x[0]), **wrong)

    def test_dtypes(self):
        kernel = self.runtime.kernel("scale", library.scale, args=8, dtypes=["f8"])
        single = self.runtime.data(np.zeros(4, "f4"))
        double = self.runtime.data(np.zeros(4))
        with self.assertRaisesRegex(TypeError, "access 0 of 'scale' has elements of float32"):
            self.run_one(kernel, filch.readwrite(single[0]), args=np.float64(2))
        with self.assertRaisesRegex(TypeError, "has 1 accesses, not 2"):
            self.run_one(kernel, filch.readwrite(double[0]), filch.read(single[0]),
                         args=np.float64(2))
        with self.assertRaisesRegex(TypeError, "is no access"):
            self.run_one(kernel, 3.0, args=np.float64(2))
        gemm = self.runtime.builtin("gemm_f64")
        with self.assertRaisesRegex(TypeError, "access 1 of 'gemm_f64'"):
            self.run_one(gemm, filch.read(double[0]), filch.read(single[0]),
                         filch.readwrite(double[0]), args=filch.c.filch_gemm_args())
        with self.refuses("NOT_FOUND"):
            self.runtime.builtin("gemm")

    def test_dtypes_of_builtins(self):
        for k, wrong in enumerate(("i8", "u8", "c8", "i4", ">f8", "f4")):
            x = [self.runtime.data(np.zeros((4, 4), wrong if each == k % 3 else "f8"))
                 for each in range(3)]
            with self.assertRaisesRegex(TypeError, f"access {k % 3} of 'gemm_f64' has elements"):
                self.run_one(self.runtime.builtin("gemm_f64"), filch.read(x[0]), filch.read(x[1]),
                             filch.readwrite(x[2]), args=filch.c.filch_gemm_args())
        for suffix, own, other in ("f64", "f8", "i8"), ("f32", "f4", "i4"):
            factor, info = self.runtime.builtin(f"potrf_{suffix}"), np.zeros(1, "i4")
            matrix = 4 * np.eye(3, dtype=own)
            with self.assertRaisesRegex(TypeError, "access 0 of 'potrf"):
                self.run_one(factor, filch.readwrite(self.runtime.data(matrix.astype(other))),
                             filch.readwrite(self.runtime.data(info)))
            with self.assertRaisesRegex(TypeError, "access 1 of 'potrf"):
                self.run_one(factor, filch.readwrite(self.runtime.data(matrix)),
                             filch.readwrite(self.runtime.data(info.astype("f4"))))
            self.run_one(factor, filch.readwrite(self.runtime.data(matrix)),
                         filch.readwrite(self.runtime.data(info)))
            np.testing.assert_array_equal(matrix, 2 * np.eye(3))
            axpy = self.runtime.builtin(f"axpy_{suffix}")
            x = self.runtime.data(np.zeros(9, other))
            with self.assertRaisesRegex(TypeError, "access 0 of 'axpy"):
                self.runtime.batch(9, axpy, filch.read(x), filch.readwrite(x),
                                   args=filch.c.filch_axpy_args(alpha=2))
        pixels, picture = self.runtime.builtin("mandelbrot"), filch.c.filch_mandelbrot_args()
        with self.assertRaisesRegex(TypeError, "access 0 of 'mandelbrot'"):
            self.runtime.batch(4, pixels, filch.write(self.runtime.data(np.zeros((4, 4)))),
                               args=picture)

    def test_addresses(self):
        class Numba:
            address = ctypes.cast(library.zero, ctypes.c_void_p).value
        make_capsule = ctypes.pythonapi.PyCapsule_New
        make_capsule.restype, make_capsule.argtypes = ctypes.py_object, [
            ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        name = b"int (filch_call *)"
        capsule = make_capsule(Numba.address, name, None)
        LowLevelCallable = type("LowLevelCallable", (), {"function": capsule})
        own = filch.c.filch_host_fn(lambda call: 0)
        for each in library.zero, Numba(), Numba.address, capsule, LowLevelCallable(), own:
            x = np.ones(4)
            self.run_one(self.runtime.kernel("zero", each), filch.write(self.runtime.data(x)[0]))
            self.assertEqual(x.sum(), 4 if each is own else 0)
        for wrong in print, 0, "zero", None:
            with self.assertRaises((TypeError, filch.Error)):
                self.runtime.kernel("zero", wrong)
        with self.assertRaisesRegex(TypeError, "has no 'sauce'"):
            self.runtime.kernel("zero", library.zero, cuda={"sauce": ""})

    def test_scratch_and_work(self):
        library.rows.restype = ctypes.c_double
        kernel = self.runtime.kernel("sums", library.sums, work=library.rows)
        x, total = np.arange(100.0), np.zeros(1)
        self.run_one(kernel, filch.read(self.runtime.data(x)), filch.scratch(100),
                     filch.write(self.runtime.data(total)))
        self.assertEqual(total[0], x.sum())

    def test_batch(self):
        x = np.zeros(1000)
        kernel = self.runtime.kernel("count", library.count, dtypes=["f8"])
        batch = self.runtime.batch(1000, kernel, filch.readwrite(self.runtime.data(x)))
        batch.run()
        np.testing.assert_array_equal(x, np.arange(1000))
        x[500] = -1
        with self.refuses("TASK_FAILED", "count") as caught:
            batch.run()
        self.assertEqual((caught.exception.code, caught.exception.__cause__), (7, None))
        with self.assertRaisesRegex(TypeError, "has elements of float32"):
            self.runtime.batch(9, kernel, filch.readwrite(self.runtime.data(np.zeros(9, "f4"))))


if __name__ == "__main__":
    unittest.main()
