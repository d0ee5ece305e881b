# SPDX-License-Identifier: Apache-2.0
"""Ends of runtimes, jobs and the program: no crash, and nobody waits for ever."""
import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import unittest
from unittest import mock

import numpy as np

import check
import filch
from filch.call import _calls as calls


class Ends(check.Case):
    def blocked(self):
        """A job whose task runs until go is set; and go."""
        started, go = threading.Event(), threading.Event()
        self.addCleanup(go.set)

        def block(x):
            started.set()
            go.wait()
            x[0] = 1

        self.x = np.zeros(1)
        graph = self.runtime.graph()
        graph.add(block, filch.readwrite(self.runtime.data(self.x)[0]))
        job = graph.submit()
        started.wait()
        return job, go

    def test_use_after_the_end(self):
        data = self.runtime.data(np.zeros(4), 1)
        graph, batch = self.runtime.graph(), self.runtime.batch(4, print, filch.read(data))
        graph.add(lambda x: None, filch.read(data[0]))
        job = graph.submit()
        job.wait()
        kernel = self.runtime.builtin("axpy_f64")
        self.runtime.close()
        self.runtime.close()
        for use in (lambda: self.runtime.devices, lambda: self.runtime.data(np.zeros(3)),
                    lambda: graph.add(print), lambda: graph.run(), lambda: job.wait(),
                    lambda: job.status, lambda: batch.run(), lambda: data.acquire().__enter__(),
                    lambda: job.cancel(), lambda: self.runtime.graph(),
                    lambda: self.runtime.drain(), lambda: self.runtime.trace_start(), lambda: self.runtime.builtin("axpy_f64"),
                    lambda: data.reduction(kernel, kernel)):
            with self.refuses("INVALID_HANDLE", "the runtime has ended"):
                use()
        del data, graph, job, batch
        gc.collect()

    def test_end_while_others_wait(self):
        job, go = self.blocked()
        errors = []

        def wait():
            try:
                job.wait()
            except filch.Error as error:
                errors.append(error.status.name)

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for each in threads:
            each.start()
        closer = threading.Thread(target=self.runtime.close)
        closer.start()
        while self.runtime.handle is not None:
            time.sleep(0.001)
        go.set()
        for each in threads + [closer]:
            each.join()
        self.assertLessEqual(set(errors), {"INVALID_HANDLE", "CANCELLED"})
        self.assertEqual(self.x[0], 1)

    def test_end_inside_a_task(self):
        with self.refuses("TASK_FAILED", "a task cannot end its runtime"):
            self.run_one(self.runtime.close)
        self.run_one(lambda: None)

    def test_end_by_a_signal_handler(self):
        job, go = self.blocked()
        errors = []

        def end(*arguments):
            try:
                self.runtime.close()
            except filch.Error as error:
                errors.append((error.status.name, str(error)))

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, end))
        self.runtime.use(signal.raise_signal, signal.SIGUSR1)
        self.assertEqual(errors[0][0], "WRONG_STATE")
        self.assertIn("a signal handler cannot end the runtime", errors[0][1])
        go.set()
        self.assertTrue(job.wait())         # the runtime goes on
        signal.raise_signal(signal.SIGUSR1)
        self.assertEqual(len(errors), 1)    # outside of calls a handler may end it
        with self.refuses("INVALID_HANDLE", "the runtime has ended"):
            self.runtime.drain()

    def test_wait_for_the_own_job(self):
        jobs = []
        ready = threading.Event()

        def wait():
            ready.wait()
            jobs[0].wait()

        graph = self.runtime.graph()
        graph.add(wait)
        jobs.append(graph.submit())
        ready.set()
        with self.refuses("TASK_FAILED", "WRONG_STATE"):
            jobs[0].wait()

    def test_functions_are_forgotten(self):
        before, graph = len(calls), self.runtime.open_graph()
        job, data = graph.submit(), self.runtime.data(np.zeros(1))
        go = threading.Event()

        def fail(x):
            go.wait()
            raise ValueError

        for _ in range(100):                # the first fails, the others are skipped
            graph.add(fail, filch.readwrite(data))
        go.set()
        graph.close()
        with self.refuses("TASK_FAILED"):
            job.wait()
        del graph, job
        gc.collect()
        self.runtime.sweep()
        self.assertEqual(len(calls), before)

    def test_functions_of_refused_tasks_are_forgotten(self):
        before, graph, seen = len(calls), self.runtime.graph(), []
        for error, options in (TypeError, {"work": "much"}), (filch.Error, {"device": 99}):
            with self.assertRaises(error):
                graph.add(print, **options)
        with self.assertRaises(TypeError):
            self.runtime.batch(9, print, work="much").run()
        self.assertEqual(len(calls), before)
        add = filch.lib.filch_graph_add

        def interrupted(*arguments):
            add(*arguments)
            raise KeyboardInterrupt

        for wrong, ran in (KeyboardInterrupt, []), (interrupted, [1]):
            graph = self.runtime.graph()
            with mock.patch.object(filch.lib, "filch_graph_add", side_effect=wrong), \
                    self.assertRaises(KeyboardInterrupt):
                graph.add(seen.append, 1)
            graph.run()
            self.assertEqual((seen, len(calls)), (ran, before + len(ran)))
            del graph
            gc.collect()
            self.runtime.sweep()
            self.assertEqual(len(calls), before)

    def test_dropped_jobs_go_on(self):
        job, go = self.blocked()
        del job
        gc.collect()
        go.set()
        self.runtime.drain()
        self.assertEqual(self.x[0], 1)
        self.runtime.sweep()

    def test_dropped_open_graph(self):
        graph = self.runtime.open_graph()
        job = graph.submit()
        del graph
        gc.collect()
        job.wait()                          # who drops an open graph closes it

    def test_drain(self):
        job, go = self.blocked()
        self.assertFalse(self.runtime.drain(0.01))
        go.set()
        self.assertTrue(self.runtime.drain())
        self.assertTrue(job.wait(0))

    def test_interrupt(self):
        started, ended = threading.Event(), []
        graph = self.runtime.graph()

        def loop():
            started.set()
            time.sleep(0.3)
            ended.append(True)

        graph.add(loop)

        def interrupt():
            started.wait()
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with self.assertRaises(KeyboardInterrupt):
            graph.run()
        thread.join()
        self.assertEqual(ended, [True])     # the job was cancelled, and its function awaited
        self.run_one(lambda: None)

    def test_interrupted_holds(self):
        data = self.runtime.data(np.zeros(4), 1)

        class Stop(BaseException):
            pass

        def stop(*arguments):
            raise Stop

        def stop_after(function):
            def call(*arguments):
                status = function(*arguments)
                signal.raise_signal(signal.SIGUSR1)
                return status
            return call

        self.addCleanup(signal.signal, signal.SIGUSR1, signal.signal(signal.SIGUSR1, stop))
        for place, name, wrong in (
                (filch.lib, "filch_data_acquire_tiles",
                 stop_after(filch.lib.filch_data_acquire_tiles)),
                (filch.lib, "filch_hold_release", stop),
                (self.runtime, "raise_for", stop)):
            hold = data.acquire("rw")
            with mock.patch.object(place, name, wrong), self.assertRaises(Stop), hold:
                pass
            del hold
            gc.collect()
            self.run_one(lambda x: None, filch.readwrite(data))

    def test_hold_interrupted_in_its_making(self):
        data = self.runtime.data(np.zeros(4), 1)
        lost = []
        with mock.patch("sys.unraisablehook", lost.append):
            with mock.patch("filch.data.TileView", side_effect=KeyboardInterrupt), \
                    self.assertRaises(KeyboardInterrupt):
                data.acquire("rw")
            gc.collect()
        self.assertEqual(lost, [])

    def test_hold_without_memory(self):
        data = self.runtime.data(np.zeros(4), 1)
        hold = data.acquire("rw")
        hold._view.ready = None             # as of data on a GPU
        with mock.patch("numpy.empty", side_effect=MemoryError), self.assertRaises(MemoryError):
            hold.__enter__()
        self.run_one(lambda x: None, filch.readwrite(data))
        hold = data.acquire("rw")
        with hold, self.refuses("WRONG_STATE", "held already"), hold:
            pass
        self.run_one(lambda x: None, filch.readwrite(data))

    def test_dropped_runtime(self):
        runtime = filch.Runtime("host:1@any")
        x = np.zeros(1)
        graph = runtime.graph()
        graph.add(lambda x: x.fill(1), filch.write(runtime.data(x)[0]))
        graph.run()
        del graph, runtime
        gc.collect()

    def test_log_and_poll(self):
        lines = []
        with filch.Runtime("host:2@any", log=lambda level, text: lines.append((level, text)),
                           log_level="debug", drive="poll", scores=[1, 2]) as runtime:
            self.assertEqual([each.score for each in runtime.devices], [1, 2])
            x = np.zeros(10)
            data = runtime.data(x, 1)
            graph = runtime.graph()
            for i in range(10):
                graph.add(lambda x: x.fill(1), filch.write(data[i]), name="fill")
            job = graph.submit()
            while job.status == filch.Status.NOT_READY:
                runtime.poll()
            graph.run()
            self.assertFalse(runtime.poll_wait(0.001))
            job = graph.submit()
            while job.status == filch.Status.NOT_READY:
                self.assertTrue(runtime.poll_wait(job=job))
            job.wait()
            self.assertEqual(x.sum(), 10)
        self.assertTrue(all(isinstance(text, str) for _, text in lines))

    def test_simulated(self):
        with filch.Runtime("sim:bench/data/sim/two.json") as runtime:
            x = np.zeros(10)
            data = runtime.data(x, 1)
            graph = runtime.graph()
            for i in range(10):
                graph.add(lambda x: x.fill(1), filch.write(data[i]), name="fill", work=1e6)
            graph.run()
            self.assertEqual(x.sum(), 10)
            opened = runtime.open_graph()
            job = opened.submit()
            with self.refuses("TIMEOUT"):   # nothing can happen
                job.wait()
            opened.close()
            job.wait()


class Programs(unittest.TestCase):
    """Programs that end in the middle of something."""

    def run_program(self, text, code=0):
        made = subprocess.run([sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(text)],
                              capture_output=True, text=True)
        self.assertEqual((made.returncode, made.stderr), (code, ""), made.stdout)
        return made.stdout

    def test_exit_while_tasks_run(self):
        self.run_program("""
            import time, filch, numpy as np
            runtime = filch.Runtime("host:2@any")
            data = runtime.data(np.zeros(100), 1)
            graph = runtime.graph()
            for k in range(10000):
                graph.add(lambda x: time.sleep(0.001), filch.readwrite(data[k % 100]), name="sleep")
            job = graph.submit()
            runtime.open_graph().submit()
            """)

    def test_exit_by_exception(self):
        made = self.run_program("""
            import sys, filch
            with filch.Runtime("host:1@any") as runtime:
                graph = runtime.graph()
                graph.add(lambda: 1 / 0)
                try:
                    graph.run()
                except filch.Error as error:
                    print(error)
                sys.exit(3)
            """, 3)
        self.assertIn("ZeroDivisionError: division by zero", made)

    def test_fork(self):
        made = self.run_program("""
            import os, filch
            runtime = filch.Runtime("host:1@any")
            graph = runtime.graph()
            graph.add(lambda: None)
            child = os.fork()
            if child == 0:
                try:
                    graph.run()
                except filch.Error as error:
                    print(error.status.name, flush=True)
            else:
                assert os.waitpid(child, 0)[1] == 0
                graph.run()
            """)
        self.assertEqual(made, "FORKED\n")

    def test_library(self):
        for library, text in (("/nonexistent/lib.so", "filch's library cannot be loaded"),
                              ("libm.so.6", "is another version of filch")):
            made = subprocess.run([sys.executable, "-c", "import filch"], capture_output=True,
                                  text=True, env=dict(os.environ, LIBFILCH=library))
            self.assertIn("ImportError: ", made.stderr)
            self.assertIn(text, made.stderr)


if __name__ == "__main__":
    unittest.main()
