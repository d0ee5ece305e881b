# SPDX-License-Identifier: Apache-2.0
"""Pending tasks, the context of a function, and early ends of jobs."""
import gc
import sys
import threading
import time
import unittest
import weakref
from unittest import mock

import numpy as np

import check
import filch
from filch.call import _calls as calls


class PendingTasks(check.Case):
    def begin(self, *arguments, function=None, **options):
        """Submits a graph with a pending task and a task behind it; returns job and Pending."""
        self.kept, self.seen, taken = [], [], threading.Event()
        x = self.runtime.data(np.zeros(2), label="x")

        def pend(x):
            self.kept.append(filch.context().pend())
            if function is not None:
                function(x)
            taken.set()

        graph = self.runtime.graph()
        graph.add(pend, filch.readwrite(x[0]), *arguments, pends=True, **options)
        graph.add(lambda x: self.seen.append(x[0]), filch.read(x[0]))
        job = graph.submit()
        taken.wait()
        self.x = x.array
        return job, self.kept.pop()

    def test_end(self):
        for end_thread in False, True:
            job, pending = self.begin()
            self.assertFalse(job.wait(0.001))
            self.assertEqual((pending.status.name, self.seen), ("NOT_READY", []))
            self.x[0] = 3
            if end_thread:
                thread = threading.Thread(target=pending.end)
                thread.start()
                thread.join()
            else:
                pending.end()
            job.wait()
            self.assertEqual(self.seen, [3])
            self.assertEqual(pending.status.name, "INVALID_HANDLE")
            with self.refuses("INVALID_HANDLE", "ended already"):
                pending.end()
            self.assertEqual(job.info().pending, 0)

    def test_failures(self):
        for failure, code, text in ((filch.Failure(7, "too long"), 7, "pend on host:"),
                                    (ValueError("bad"), filch.THROWN, "ValueError: bad")):
            job, pending = self.begin()
            pending.end(failure)
            with self.refuses("TASK_FAILED", text) as caught:
                job.wait()
            self.assertEqual((caught.exception.code, caught.exception.__cause__), (code, failure))
            self.assertIn(str(failure), str(caught.exception))
            self.assertEqual(self.seen, [])
        job, pending = self.begin()
        with self.assertRaisesRegex(TypeError, "fails with an exception, not with a str"):
            pending.end("text")
        pending.end()
        job.wait()

    def test_end_before_the_return(self):
        job, pending = self.begin(function=lambda x: (self.kept[0].end(), x.fill(5)))
        job.wait()
        self.assertEqual(self.seen, [5])    # what was written behind the end is seen
        job, pending = self.begin(function=lambda x: self.kept[0].end(ValueError("bad")))
        with self.refuses("TASK_FAILED", "ValueError: bad"):
            job.wait()

    def raising(self, body):
        """Runs a task that pends, calls body(pending) and raises; returns the Pending."""
        kept = []

        def pend():
            kept.append(filch.context().pend())
            body(kept[0])
            raise KeyError("raised")

        with self.refuses("TASK_FAILED", "KeyError: 'raised'"):
            self.run_one(pend, pends=True)
        return kept[0]

    def test_exception_behind_pend(self):
        pending = self.raising(lambda pending: None)
        with self.refuses("INVALID_HANDLE"):
            pending.end()
        self.assertEqual(pending.status.name, "INVALID_HANDLE")
        self.raising(lambda pending: pending.end())

    def test_exception_while_another_thread_ends(self):
        at, go = threading.Event(), threading.Event()

        class Stopped(list):
            def pop(self):
                first = super().pop()
                at.set()
                go.wait()
                return first

        def end(pending):
            pending._unclaimed = Stopped(pending._unclaimed)
            thread.append(threading.Thread(target=pending.end))
            thread[0].start()
            at.wait()

        thread = []
        timer = threading.Timer(0.05, go.set)
        timer.start()
        pending = self.raising(end)         # the one who ends is told what the function raised
        thread[0].join()
        timer.join()
        self.assertEqual(pending.status.name, "INVALID_HANDLE")

    def test_dropped(self):
        def pend():
            filch.context().pend()

        with self.refuses("TASK_FAILED", "dropped without an end") as caught:
            self.run_one(pend, pends=True)
        self.assertEqual(caught.exception.code, -1)
        job, pending = self.begin()
        gone = weakref.ref(pending)
        del pending
        gc.collect()
        self.assertIsNone(gone())
        with self.refuses("TASK_FAILED", "dropped without an end"):
            job.wait()

    def test_nothing_is_kept(self):
        before = len(calls)
        job, pending = self.begin()
        gone = weakref.ref(pending)
        references = sys.getrefcount(self.x)
        pending.end()
        job.wait()
        del pending, job
        gc.collect()
        self.runtime.sweep()
        self.assertIsNone(gone())
        self.assertEqual(len(calls), before)
        self.assertLess(sys.getrefcount(self.x), references)
        opened = self.runtime.open_graph()
        job = opened.submit()
        for _ in range(50):
            opened.add(lambda: self.kept.append(filch.context().pend()), pends=True)
        while len(self.kept) < 50:
            time.sleep(0.001)
        for each in self.kept:
            each.end()
        opened.close()
        job.wait()
        self.assertEqual(len(calls), before)

    def test_many_threads(self):
        graph, lock, kept = self.runtime.graph(), threading.Lock(), []
        x = np.zeros(100)
        data = self.runtime.data(x, 1)

        def pend(x):
            with lock:
                kept.append((filch.context().pend(), x))

        for k in range(100):
            graph.add(pend, filch.readwrite(data[k]), pends=True)

        def work():
            for _ in range(25):
                each = None
                while each is None:
                    with lock:
                        each = kept.pop() if kept else None
                each[1][0] += 1
                each[0].end()

        for run in range(3):
            threads = [threading.Thread(target=work) for _ in range(4)]
            for each in threads:
                each.start()
            graph.run()
            for each in threads:
                each.join()
            self.assertTrue((x == run + 1).all())

    def test_copies(self):
        data = self.runtime.temporary(4)
        graph, kept, seen = self.runtime.graph(), [], []

        def pend(x):
            kept.append((filch.context().pend(), x))

        graph.add(pend, filch.write(data[0]), pends=True)
        graph.add(lambda x: seen.extend(x), filch.read(data[0]))
        for is_broken in False, True:
            job = graph.submit()
            while not kept:
                time.sleep(0.001)
            pending, x = kept.pop()
            x[:] = 8
            if is_broken:
                with mock.patch("filch.view.TileView.put_back", side_effect=MemoryError("full")):
                    pending.end()
                with self.refuses("TASK_FAILED", "MemoryError: full"):
                    job.wait()
            else:
                pending.end()
                job.wait()
                self.assertEqual(seen, [8] * 4)

    def test_cancelled(self):
        job, pending = self.begin()
        job.cancel()
        self.assertEqual((pending.status.name, job.status.name), ("CANCELLED", "NOT_READY"))
        pending.end()
        with self.refuses("CANCELLED"):
            job.wait()

    def test_end_of_the_runtime(self):
        job, pending = self.begin()

        def close():
            self.runtime.close()
            closed.set()

        closed = threading.Event()
        thread = threading.Thread(target=close)
        thread.start()
        while pending.status.name == "NOT_READY":
            time.sleep(0.001)
        self.assertFalse(closed.is_set())   # the end waits for the task
        pending.end()
        thread.join()
        self.assertEqual(pending.status.name, "INVALID_HANDLE")

    def test_refusals(self):
        with self.refuses("TASK_FAILED", "FILCH_CODELET_MAY_PEND"):
            self.run_one(lambda: filch.context().pend())
        with self.refuses("INVALID_ARGUMENT"):
            self.run_one(lambda lo, hi: None, items=5, pends=True)
        with self.refuses("WRONG_STATE", "no function of a task runs on this thread"):
            filch.context()
        kernel = self.runtime.builtin("axpy_f64")
        with self.assertRaisesRegex(TypeError, "pends of its own"):
            self.run_one(kernel, pends=True)

    def test_a_second_pend_is_the_first(self):
        kept = []

        def pend():
            kept.append((filch.context().pend(), filch.context().pend()))
            kept[0][0].end()

        self.run_one(pend, pends=True)
        self.assertIs(*kept[0])


class Contexts(check.Case):
    def test_context(self):
        seen = []

        def look():
            seen.append((filch.context().device, filch.context().team, filch.context()))

        self.run_one(look)
        device, team, context = seen[0]
        self.assertIn(device, (0, 1))
        self.assertEqual(team, 1)
        with self.refuses("WRONG_STATE", "the function has returned"):
            context.finish()

    def test_nested(self):
        seen = []

        def outer():
            before = filch.context()
            self.run_one(lambda: seen.append(filch.context()))
            seen.append(filch.context() is before)

        self.run_one(outer)
        self.assertIs(seen[1], True)
        self.assertIsNot(seen[0], seen[1])

    def test_another_thread(self):
        errors = []

        def use(context):
            try:
                context.finish()
            except filch.Error as error:
                errors.append(error.status.name)

        def run():
            thread = threading.Thread(target=use, args=(filch.context(),))
            thread.start()
            thread.join()

        self.run_one(run)
        self.assertEqual(errors, ["WRONG_STATE"])

    def test_finish(self):
        x, seen = self.runtime.data(np.zeros(1)), []

        def find(k):
            seen.append(k)
            if k == 3:
                filch.context().finish()

        graph = self.runtime.graph()
        for k in range(10):
            graph.add(lambda x, k: find(k), filch.readwrite(x), k)
        job = graph.submit()
        job.wait()
        self.assertEqual((seen, job.info().skipped), ([0, 1, 2, 3], 6))
        batch = self.runtime.batch(1000, lambda lo, hi: filch.context().finish())
        batch.run()


if __name__ == "__main__":
    unittest.main()
