# SPDX-License-Identifier: Apache-2.0
"""Batches: a function over the items 0 to n, cut over the devices while it runs."""
import ctypes
import operator

from . import c
from .call import Arguments, Call, Run
from .data import Access, Data, Scratch, Tiles
from .job import Job, JobState, submit_desc
from .kernel import Kernel
from .library import lib


class _Held:
    """What a job of a batch needs until its end."""

    calls = ()

    def __init__(self, data):
        self.calls, self._data = set(), data

    def __del__(self):
        for call in list(self.calls):
            call.forget()


class Batch:
    """A batch, which can be run any number of times, also at once; made by Runtime.batch()."""

    def __init__(self, runtime, n, function, arguments, grain, name, work, args):
        self._runtime, self._function, self._arguments = runtime, function, arguments
        self._work = work
        self._views, items = [], []
        self._name = function.name if isinstance(function, Kernel) else (
            name or getattr(function, "__name__", type(function).__name__))
        for position, each in enumerate(arguments):
            if isinstance(each, Access) and each.items is not None:
                self._views.append((position, len(items), each.item_view()))
                items.append(each.items)
            elif isinstance(each, (Access, Data, Tiles, Scratch)):
                raise TypeError(f"argument {position} of '{self._name}': a batch accesses data as "
                                "a whole, by read(x), write(x) or readwrite(x)")
            elif isinstance(function, Kernel):
                raise TypeError(f"argument {position} of the kernel '{self._name}' is no access")
        self._accesses = (c.filch_batch_access * len(items))(*items)
        self._desc = c.filch_batch_desc(
            n=operator.index(n), grain=operator.index(grain), access_count=len(items),
            accesses=ctypes.addressof(self._accesses))
        if isinstance(function, Kernel):
            if work is not None or name is not None:
                raise TypeError("a kernel has a name and a work function of its own")
            function.require([view.data.dtype for _, _, view in self._views])
            self._desc.codelet = function.handle
            self._packed = function.bytes_of(args)
        elif not callable(function):
            raise TypeError(f"a batch is a function or a Kernel, not {type(function).__name__}")
        elif args is not None:
            raise TypeError("args are a kernel's; a Python function has its arguments themselves")
        else:
            self._desc.codelet = runtime.codelet(self._name, work is not None)

    def submit(self, *, label=None, on_failure="skip"):
        """Starts the batch; returns the Job."""
        made, desc, submit, _ = self._job(label, on_failure)
        made.check(lib.filch_batch_submit, self._runtime.handle, ctypes.byref(desc),
                   ctypes.byref(submit), ctypes.byref(made.cell))
        return Job(made)

    def run(self, *, label=None, on_failure="skip"):
        """Runs the batch to its end; see Job.wait() and Graph.run()."""
        made, desc, submit, _ = self._job(label, on_failure)
        Job(made).run("filch_batch_run", lib.filch_batch_submit, self._runtime.handle,
                      ctypes.byref(desc), ctypes.byref(submit))

    def _job(self, label, on_failure):
        """A job to be submitted, its descriptors, and the arguments in them."""
        self._runtime.sweep()
        run = Run()
        held = _Held([view.data for _, _, view in self._views])
        if not isinstance(self._function, Kernel):
            call = Call(self._function, self._arguments, self._views, run, held.calls,
                        has_range=True)
            packed = bytes(Arguments(call.number, self._work or 0.0))
        else:
            packed = self._packed
        buffer = ctypes.create_string_buffer(packed, len(packed)) if packed else None
        desc = c.filch_batch_desc.from_buffer_copy(self._desc)
        desc.args = ctypes.addressof(buffer) if buffer else None
        submit = submit_desc(label, on_failure)
        return JobState(self._runtime, held, run.failures), desc, submit, buffer
