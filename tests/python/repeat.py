# SPDX-License-Identifier: Apache-2.0
"""Repetitions of a graph, and predicates that end them."""
import gc
import sys
import unittest

import numpy as np

import check
import filch
from filch.repeat import _predicates as predicates


class Repeat(check.Case):
    def setUp(self):
        super().setUp()
        self.x = np.zeros(1)
        data = self.runtime.data(self.x)
        self.graph = self.runtime.graph(label="steps")
        self.graph.add(lambda x: np.add(x, 1, out=x), filch.readwrite(data[0]), name="add")

    def test_predicate(self):
        runs = []
        job = self.graph.repeat(lambda run: runs.append(run) or self.x[0] == 5, label="to five")
        job.wait()
        self.assertEqual((self.x[0], runs, job.info().runs), (5, [1, 2, 3, 4, 5], 5))
        with self.refuses("WRONG_STATE"):
            job.report()
        self.graph.run()                    # the graph runs as before
        self.assertEqual(self.x[0], 6)

    def test_value(self):
        for lag, last in (0, 4), (1, 5):
            self.x[0], copies = 0, []

            def enough(run, value):
                copies.append(value)
                return value[0] == 4

            self.graph.repeat(enough, self.x, lag=lag).wait()
            self.assertEqual((self.x[0], [each[0] for each in copies]), (last, [1, 2, 3, 4]))
            self.assertEqual((copies[0].dtype, copies[0].shape), (self.x.dtype, (1,)))

    def test_shapes(self):
        seen = []
        square = np.arange(32.0).reshape(4, 8)
        self.graph.repeat(lambda run, value: seen.append(value) or True, square).wait()
        np.testing.assert_array_equal(seen[0], square)
        scalar = np.array(7, "i4")
        self.graph.repeat(lambda run, value: seen.append(value) or True, scalar).wait()
        self.assertEqual((seen[1].shape, seen[1][()]), ((), 7))

    def test_without_predicate(self):
        job = self.graph.repeat(max_runs=7)
        job.wait()
        self.assertEqual((self.x[0], job.info().runs), (7, 7))

    def test_end_by_a_task(self):
        graph = self.runtime.graph()
        seen = []

        def step():
            seen.append(None)
            if len(seen) == 4:
                filch.context().finish()

        graph.add(step)
        graph.repeat().wait()
        self.assertEqual(len(seen), 4)

    def test_failures(self):
        for wrong, text in ((lambda run: 1 / 0, "ZeroDivisionError: division by zero"),
                            (lambda run: None, "the predicate returned None"),
                            (lambda: True, "TypeError"), (lambda run: [].pop(), "IndexError")):
            job = self.graph.repeat(wrong)
            with self.refuses("TASK_FAILED", text) as caught:
                job.wait()
            self.assertIn("the predicate of job 'steps' about run 1: ", str(caught.exception))
            self.assertEqual(caught.exception.code, filch.THROWN)
            self.assertIsInstance(caught.exception.__cause__, Exception)

        def fail(run):
            raise filch.Failure(3, "diverged")

        with self.refuses("TASK_FAILED", "diverged") as caught:
            self.graph.repeat(fail).wait()
        self.assertEqual(caught.exception.code, 3)
        graph = self.runtime.graph()
        graph.add([].pop)
        with self.refuses("TASK_FAILED", "IndexError: pop from empty list"):
            graph.repeat(lambda run: False).wait()

    def test_refusals(self):
        before = len(predicates)
        for kind, wrong, text in (
                (TypeError, dict(until=3), "a function, not a int"),
                (TypeError, dict(value=self.x), "no predicate"),
                (TypeError, dict(until=print, value=3.0), "an array, not a float"),
                (ValueError, dict(until=print, value=np.zeros(33)), "264 bytes"),
                (ValueError, dict(until=print, value=np.zeros(0)), "0 bytes"),
                (ValueError, dict(until=print, value=np.array([None])), "bytes of object"),
                (ValueError, dict(until=print, value=np.zeros(8)[::2]), "not C-contiguous"),
                (ValueError, dict(lag=-1), "a lag of -1"),
                (ValueError, dict(max_runs=-1), "or -1 runs"),
                (TypeError, dict(max_runs=1.5), "integer"),
                (filch.Error, dict(lag=2), "INVALID_ARGUMENT"),
                (ValueError, dict(on_failure="stop"), "on_failure")):
            with self.assertRaisesRegex(kind, text):
                self.graph.repeat(**wrong)
        with self.refuses("INVALID_ARGUMENT"):
            self.runtime.graph().repeat()
        with self.refuses("WRONG_STATE"):
            self.runtime.open_graph().repeat(print)
        gc.collect()
        self.assertEqual(len(predicates), before)
        self.graph.run()
        self.assertEqual(self.x[0], 1)

    def test_nothing_is_kept(self):
        before, value = len(predicates), np.zeros(2)
        references = sys.getrefcount(value)
        for _ in range(10):
            job = self.graph.repeat(lambda run, copy: run == 3, value)
            job.wait()
        self.assertEqual(sys.getrefcount(value), references + 1)
        del job
        gc.collect()
        self.runtime.sweep()
        self.assertEqual((len(predicates), sys.getrefcount(value)), (before, references))

    def test_dropped_and_ended(self):
        before = len(predicates)
        self.graph.repeat(lambda run: False)    # nobody refers to the job
        self.graph.repeat(lambda run: False)    # behind the first
        self.runtime.close()
        self.assertEqual(len(predicates), before)

    def test_cancel(self):
        job = self.graph.repeat(lambda run: False)
        job.cancel()
        with self.refuses("CANCELLED", "CANCELLED: job 'steps' was cancelled"):
            job.wait()
        job = self.graph.repeat(lambda run: False, label="solve")
        job.cancel()
        with self.refuses("CANCELLED", "CANCELLED: job 'solve' was cancelled") as caught:
            job.wait()
        self.assertEqual(caught.exception.label, "solve")


if __name__ == "__main__":
    unittest.main()
