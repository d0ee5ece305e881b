# SPDX-License-Identifier: Apache-2.0
"""What the tests have in common."""
import contextlib
import unittest

import filch


class Case(unittest.TestCase):
    """A test with a runtime of two devices."""

    def setUp(self):
        self.runtime = filch.Runtime("host:2@any")
        self.addCleanup(self.runtime.close)

    @contextlib.contextmanager
    def refuses(self, status, text=""):
        """The block raises filch.Error with a status, whose text has some words."""
        with self.assertRaises(filch.Error) as caught:
            yield caught
        self.assertEqual(caught.exception.status.name, status)
        self.assertIn(text, str(caught.exception))

    def run_one(self, function, *arguments, **options):
        """Runs a graph of one task."""
        graph = self.runtime.graph()
        graph.add(function, *arguments, **options)
        graph.run()
