# SPDX-License-Identifier: Apache-2.0
"""Many tasks in a call, partitions, states of devices, traces and reports."""
import ctypes
import gc
import json
import pathlib
import sys
import tempfile
import time
import unittest
from unittest import mock

import numpy as np

import check
import filch
from filch.call import _calls as calls

library = ctypes.CDLL(sys.argv.pop(1))


class Many(check.Case):
    def test_order_and_names(self):
        x = np.zeros(4)
        data = self.runtime.data(x, 1)
        graph = self.runtime.graph()
        tasks = [filch.task(lambda x, k: x.fill(10 * x[0] + k), filch.readwrite(data[k % 4]), k,
                            name="digit", label=f"task {k % 3}") for k in range(12)]
        names = graph.add_many(tasks[:1]) + graph.add_many(iter(tasks[1:]))
        self.assertEqual(len(set(names)), 12)
        self.assertEqual(graph.add_many([]), [])
        graph.run()
        np.testing.assert_array_equal(x, [100 * k + 10 * (k + 4) + k + 8 for k in range(4)])

    def test_edges(self):
        seen, graph = [], self.runtime.graph()
        names = graph.add_many(filch.task(seen.append, k) for k in range(3))
        graph.edge(names[2], names[1])
        graph.edge(names[1], names[0])
        graph.seal()
        with self.refuses("WRONG_STATE"):
            graph.add(print)
        graph.run()
        self.assertEqual(seen, [2, 1, 0])

    def test_refused(self):
        before, seen, graph = len(calls), [], self.runtime.graph()
        tasks = [filch.task(seen.append, 1), filch.task(seen.append, 2),
                 filch.task(seen.append, 3, device=99), filch.task(seen.append, 4)]
        with self.refuses("INVALID_ARGUMENT", "INVALID_ARGUMENT: tasks[2]: task #2 'append': "
                          "device=99 is none of the 2 devices") as caught:
            graph.add_many(tasks)
        self.assertEqual(len(caught.exception.added), 2)
        self.assertEqual(len(calls), before + 2)
        graph.add(seen.append, 5)
        graph.run()
        self.assertEqual(sorted(seen), [1, 2, 5])
        for wrong in (print,), (filch.task(3),), (filch.task(print), filch.task(print, args=3)):
            with self.assertRaises(TypeError):
                graph.add_many(wrong)
        self.assertEqual(len(calls), before + 3)
        with self.assertRaisesRegex(TypeError, r"tasks\[1\] is no task\(\), but a int"):
            graph.add_many([filch.task(print), 4])

    def test_calls_named(self):
        graph = self.runtime.graph()
        first, second = graph.add(print), graph.add(print)
        graph.edge(first, second)
        graph.edge(second, first)
        for run, call in (graph.submit, "filch_graph_submit"), (graph.run, "filch_graph_run"):
            with self.refuses("CYCLE") as caught:
                run()
            self.assertEqual(caught.exception.call, call)
        with filch.Runtime("host:1") as other:
            batch = other.batch(4, print, filch.read(self.runtime.data(np.zeros(4), tile=1)))
            for run, call in (batch.submit, "filch_batch_submit"), (batch.run, "filch_batch_run"):
                with self.refuses("WRONG_RUNTIME") as caught:
                    run()
                self.assertEqual(caught.exception.call, call)

    def test_open(self):
        for limit in 0, 3:
            seen, graph = [], self.runtime.open_graph(max_live=limit)
            job = graph.submit()
            names = graph.add_many(filch.task(seen.append, k) for k in range(50))
            self.assertEqual(len(set(names)), 50)
            with self.refuses("INVALID_ARGUMENT", ": tasks[1]: task #51 'print': device=99 is "
                              "none of the 2 devices") as caught:
                graph.add_many([filch.task(seen.append, 50), filch.task(print, device=99)])
            self.assertEqual(str(caught.exception), "INVALID_ARGUMENT: " + caught.exception.text)
            self.assertEqual(len(caught.exception.added), 1)
            graph.close()
            job.wait()
            self.assertEqual(sorted(seen), list(range(51)))

    def test_interrupted(self):
        before, seen, graph = len(calls), [], self.runtime.graph()
        add = filch.lib.filch_graph_add_many

        def interrupted(*arguments):
            add(*arguments)
            raise KeyboardInterrupt

        for wrong, ran in (KeyboardInterrupt, 0), (interrupted, 2):
            with mock.patch.object(filch.lib, "filch_graph_add_many", side_effect=wrong), \
                    self.assertRaises(KeyboardInterrupt):
                graph.add_many([filch.task(seen.append, 1), filch.task(seen.append, 2)])
            self.assertEqual(len(calls), before + ran)
        graph.run()
        self.assertEqual(sorted(seen), [1, 2])

    def test_labels(self):
        graph = self.runtime.graph()
        for k in range(20):                 # equal texts, of which filch keeps the address
            graph.add((lambda: None) if k < 19 else [].pop, label="".join(["é", "tiquette"]))
        kept = [("%d" % k + "x" * 9).encode() for k in range(99)]   # in memory that was given back
        with self.refuses("TASK_FAILED") as caught:
            graph.run()
        self.assertEqual((caught.exception.label, len(kept)), ("étiquette", 99))


class Partitions(check.Case):
    def test_partition(self):
        for order in "CF":
            x = np.zeros((8, 6), order=order)
            data = self.runtime.data(x, (4, 3))
            rows = data.partition((1, 6), label="rows")
            self.assertEqual((rows.tiles, rows.shape, rows.dtype), ((8, 1), (8, 6), x.dtype))
            graph = self.runtime.graph()
            for i in range(2):
                for j in range(2):
                    graph.add(lambda x, k: x.fill(k), filch.write(data[i, j]), 2 * i + j)
            with self.refuses("WRONG_STATE"):
                graph.add(print, filch.read(rows[0, 0]))
            graph.partition(data, rows)
            with self.refuses("WRONG_STATE"):
                graph.add(print, filch.read(data[0, 0]))
            for i in range(8):
                graph.add(lambda x, i: np.add(x, 10 * i, out=x), filch.readwrite(rows[i, 0]), i)
            graph.unpartition(data, rows)
            graph.add(lambda x: np.multiply(x, 2, out=x), filch.readwrite(data[0, 0]))
            graph.run()
            expected = np.repeat(np.repeat([[0, 1], [2, 3]], 4, 0), 3, 1)
            expected = expected + 10.0 * np.arange(8)[:, None]
            expected[:4, :3] *= 2
            np.testing.assert_array_equal(x, expected)

    def test_lives(self):
        x = np.zeros(8)
        references = sys.getrefcount(x)
        data = self.runtime.data(x, 4)
        parts = data.partition([1, 3, 4])
        graph = self.runtime.graph()
        graph.partition(data, parts)
        graph.add(lambda x: x.fill(1), filch.write(parts[1]))
        del data
        gc.collect()
        graph.run()
        np.testing.assert_array_equal(x, [0, 1, 1, 1, 0, 0, 0, 0])
        del graph, parts
        gc.collect()
        self.runtime.sweep()
        self.assertEqual(sys.getrefcount(x), references)

    def test_refusals(self):
        data = self.runtime.data(np.zeros(8), 4)
        parts, graph = data.partition(2), self.runtime.graph()
        for wrong in 9, [1, 2], 0:
            with self.assertRaises(ValueError):
                data.partition(wrong)
        with self.refuses("UNSUPPORTED"):
            parts.partition(1)
        with self.refuses("UNSUPPORTED"):
            self.runtime.temporary(8).partition(4)
        with self.refuses("INVALID_ARGUMENT"):
            graph.partition(self.runtime.data(np.zeros(8)), parts)
        with self.refuses("WRONG_STATE"):
            graph.unpartition(data, parts)
        with self.assertRaisesRegex(TypeError, "of data, not of a Tiles"):
            graph.partition(data[0], parts)
        with self.refuses("UNSUPPORTED"):
            parts.acquire().__enter__()


class Locals(check.Case):
    def test_local(self):
        opened, closed = [], []

        def open_(device):
            opened.append(device)
            return [device]

        workspace = self.runtime.local(open_, closed.append)
        self.assertEqual(opened, [0, 1])
        data, seen = self.runtime.data(np.zeros(40), 1), []

        def use(state, x):
            seen.append((state[0], filch.context().device))
            x[0] = 1

        graph = self.runtime.graph()
        for k in range(40):
            graph.add(use, workspace, filch.write(data[k]))
        graph.run()
        self.runtime.batch(10, lambda lo, hi, state: use(state, [0]), workspace).run()
        self.assertTrue(all(state == device for state, device in seen))
        self.assertEqual(closed, [])
        self.runtime.close()
        self.assertEqual(sorted(closed), [[0], [1]])

    def test_failures(self):
        closed = []

        def open_(device):
            if device == 1:
                raise ValueError("no room")
            return device

        with self.refuses("TASK_FAILED", "ValueError: no room") as caught:
            self.runtime.local(open_, closed.append)
        self.assertIn("the state of 'local' could not be made on host:1: ", str(caught.exception))
        self.assertEqual(caught.exception.code, filch.THROWN)
        self.assertEqual(repr(caught.exception.__cause__), "ValueError('no room')")
        self.assertEqual(closed, [0])
        for wrong in (3,), (print, 3):
            with self.assertRaisesRegex(TypeError, "is a function, not a int"):
                self.runtime.local(*wrong)
        lost, broken = [], self.runtime.local(lambda device: device, lambda state: 1 / 0)
        with mock.patch("sys.unraisablehook", lost.append):
            self.runtime.close()
        self.assertEqual([each.exc_type for each in lost], [ZeroDivisionError] * 2)
        with self.refuses("INVALID_HANDLE", "the runtime has ended"):
            self.runtime.local(print)

    def test_lives(self):
        class State:
            pass

        states = []
        workspace = self.runtime.local(lambda device: states.append(State()) or states[-1])
        references = [sys.getrefcount(each) for each in states]
        self.runtime.close()
        self.assertEqual([sys.getrefcount(each) + 1 for each in states], references)
        del workspace

    def test_kernels(self):
        x = np.zeros(40)
        data = self.runtime.data(x, 1)
        numbers = (ctypes.c_double * 2)(1, 2)

        def run(kernel):
            x[:] = 0
            graph = self.runtime.graph()
            for k in range(40):
                graph.add(kernel, filch.readwrite(data[k]))
            graph.run()
            return set(x)

        compiled = self.runtime.kernel("compiled", library.add_state, open=library.open_state,
                                       close=library.close_state, user=numbers)
        self.assertLessEqual(run(compiled), {2, 3})
        opened, closed = [], []
        states = [ctypes.c_double(100), np.full(1, 200.0)]
        python = self.runtime.kernel("python", library.add_state, close=closed.append,
                                     open=lambda device: opened.append(device) or states[device])
        self.assertLessEqual(run(python), {100, 200})
        self.assertEqual((opened, closed), ([0, 1], []))
        self.runtime.close()
        self.assertEqual([each if isinstance(each, np.ndarray) else each.value for each in closed],
                         [100, 200])
        self.assertEqual(list(numbers), [-1, -1])

    def test_kernels_refused(self):
        bad = (ctypes.c_double * 2)(1, -2)
        with self.refuses("TASK_FAILED", "its open function returned 5"):
            self.runtime.kernel("bad", library.add_state, open=library.open_state,
                                close=library.close_state, user=bad)
        self.assertEqual(list(bad), [-1, -2])
        with self.refuses("TASK_FAILED", "TypeError: the state for a compiled function is"):
            self.runtime.kernel("bad", library.add_state, open=lambda device: "text")
        with self.assertRaisesRegex(TypeError, "close without open"):
            self.runtime.kernel("bad", library.add_state, close=print)
        with self.assertRaisesRegex(TypeError, "user is for compiled functions"):
            self.runtime.kernel("bad", library.add_state, open=print, user=bad)
        with self.assertRaisesRegex(TypeError, "no compiled function"):
            self.runtime.kernel("bad", library.add_state, open=library.open_state, close=print)

    def test_kernels_that_pend(self):
        handle = filch.c.filch_pending()
        kernel = self.runtime.kernel("later", library.later, args=ctypes.c_void_p, pends=True)
        graph = self.runtime.graph()
        graph.add(kernel, args=ctypes.addressof(handle))
        job = graph.submit()
        self.assertFalse(job.wait(0.01))
        while not handle.serial:
            time.sleep(0.001)
        self.assertEqual(filch.lib.filch_pending_end(handle, 4, b"too late"), 0)
        with self.refuses("TASK_FAILED", "too late") as caught:
            job.wait()
        self.assertEqual(caught.exception.code, 4)


class Reports(check.Case):
    def job(self):
        self.graph = self.runtime.graph(label="sums")
        for k in range(20):
            self.graph.add(lambda: sum(range(1000)), name="sum", label=f"sum {k}")
        job = self.graph.submit(label="the sums")
        job.wait()
        return job

    def test_text(self):
        job = self.job()
        for graph in None, self.graph:
            text = job.report_text(graph)
            self.assertIn("host:0", text)
            self.assertIn("OK", text)
        with self.refuses("INVALID_ARGUMENT"):
            job.report_text(self.runtime.graph())
        with self.assertRaisesRegex(TypeError, "the graph of a job, not a str"):
            job.report_text("graph")
        losses = job.losses()
        self.assertEqual(len(losses), 2)
        self.assertEqual(sum(each.wall_ns for each in losses), job.report().total.wall_ns)
        self.runtime.close()
        with self.refuses("INVALID_HANDLE"):
            job.report_text()

    def test_files(self):
        with tempfile.TemporaryDirectory() as folder:
            page, trace = pathlib.Path(folder, "report.html"), pathlib.Path(folder, "trace.json")
            with self.refuses("WRONG_STATE"):
                self.runtime.report_write(page)
            self.runtime.trace_start()
            self.job()
            self.runtime.trace_stop()
            self.job()                      # not recorded
            self.runtime.report_write(page)
            self.runtime.trace_write(trace)
            self.assertIn("the sums", page.read_text())
            events = json.loads(trace.read_text())["traceEvents"]
            self.assertEqual(sum(each.get("args", {}).get("label") == "the sums"
                                 for each in events if isinstance(each.get("args"), dict)), 1)
            with self.refuses("IO", folder):
                self.runtime.report_write(folder)


if __name__ == "__main__":
    unittest.main()
