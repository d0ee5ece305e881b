# SPDX-License-Identifier: Apache-2.0
"""Lives of objects.

A State has a handle of filch's. Users of a State refer to it: an object of Python's, a job to its
graph, a graph to its data. A State that nobody refers to ends its handle; where filch still uses
the handle, the State becomes a leftover of its runtime, and ends at a later call. The end of the
runtime ends every handle.
"""
import ctypes



class State:
    """A handle of a runtime's object."""

    handle = None

    def __init__(self, runtime):
        self.runtime = runtime

    def end(self):
        """Ends the handle in filch; False: it is in use."""
        raise NotImplementedError

    def drop(self):
        """The handle has ended."""
        self.handle = None

    def check(self, function, *arguments):
        """Calls a function of C's; raises Error unless it succeeds."""
        self.runtime.check(function, *arguments)

    def __del__(self):
        if self.handle is not None:
            self.runtime.leave(self)


def pointer_to(runtime, create, *arguments):
    """Makes an object of a runtime: calls create(runtime, *arguments, &object)."""
    made = ctypes.c_void_p()
    runtime.check(create, runtime.handle, *arguments, ctypes.byref(made))
    return made.value
