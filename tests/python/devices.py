# SPDX-License-Identifier: Apache-2.0
"""Devices: whether they take part, their memory and links; broadcasts, and measured speeds."""
import ctypes
import pathlib
import sys
import tempfile
import time
import unittest

import numpy as np

import check
import filch

library = ctypes.CDLL(sys.argv.pop(1))


class Devices(check.Case):
    def test_presence(self):
        self.assertEqual(self.runtime.presence(1), "there")
        self.runtime.withdraw(1)
        while self.runtime.presence(1) == "leaving":
            time.sleep(0.001)
        self.assertEqual(self.runtime.presence(1), "withdrawn")
        seen = []
        graph = self.runtime.graph()
        for _ in range(40):
            graph.add(lambda: seen.append(filch.context().device))
        graph.run()
        self.assertEqual(set(seen), {0})
        self.runtime.readmit(1)
        self.assertEqual(self.runtime.presence(1), "there")

    def test_memory_and_links(self):
        self.assertEqual(self.runtime.memory(0).size,
                         ctypes.sizeof(filch.c.filch_memory_stats))
        self.runtime.trim(0)
        self.runtime.trim(1, 2 ** 40)
        self.assertTrue(self.runtime.link(0, 1).is_same)
        self.assertTrue(self.runtime.link(None, 1).is_same)
        self.runtime.measure_links()
        self.assertEqual(self.runtime.refused, [])
        self.assertEqual(filch.version() // 10000, 0)
        self.assertGreater(filch.version(), 0)

    def test_refusals(self):
        for call in (self.runtime.withdraw, self.runtime.readmit, self.runtime.presence,
                     self.runtime.memory, self.runtime.trim, lambda k: self.runtime.link(k, 0),
                     lambda k: self.runtime.link(0, k)):
            for wrong in 2, -1, 2 ** 32 - 1, 2 ** 32:
                with self.refuses("BAD_INDEX"):
                    call(wrong)
            with self.assertRaises(TypeError):
                call("host:0")
        for wrong in -1, 2 ** 64:
            with self.assertRaisesRegex(ValueError, "bytes"):
                self.runtime.trim(0, wrong)

    def test_broadcast(self):
        data = self.runtime.data(np.zeros(8), 4, managed=True)
        job = self.runtime.broadcast(data, [0])
        self.assertTrue(job.wait())
        self.runtime.broadcast(data).wait()
        with self.refuses("WRONG_STATE"):
            job.report()
        with self.refuses("BAD_INDEX"):
            self.runtime.broadcast(data, [5])
        with self.assertRaisesRegex(ValueError, "no device"):
            self.runtime.broadcast(data, [])
        with self.assertRaisesRegex(TypeError, "of data, not of a Tiles"):
            self.runtime.broadcast(data[0])

    def test_speeds(self):
        self.assertEqual(self.runtime.speeds.loaded, filch.c.FILCH_NOT_FOUND)
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "speeds")
            with filch.Runtime("host:1@any", speeds=path) as runtime:
                library.rows.restype = ctypes.c_double
                kernel = runtime.kernel("zero", library.zero, work=library.rows)
                self.assertEqual(kernel.speed(0).source, filch.c.FILCH_SPEED_UNKNOWN)
                data = runtime.data(np.zeros(1000), 10)
                for _ in range(3):
                    graph = runtime.graph()
                    for k in range(100):
                        graph.add(kernel, filch.write(data[k]))
                    graph.run()
                self.assertEqual(kernel.speed(0).source, filch.c.FILCH_SPEED_MEASURED)
                self.assertGreater(kernel.speed(0).timed, 0)
                with self.refuses("BAD_INDEX"):
                    kernel.speed(1)
                runtime.save_speeds()
                self.assertEqual((runtime.speeds.saved, runtime.speeds.saves),
                                 (filch.c.FILCH_OK, 1))
                self.assertTrue(path.exists())


if __name__ == "__main__":
    unittest.main()
