# SPDX-License-Identifier: Apache-2.0
"""Graphs of tasks."""
import ctypes
import operator
import os

from . import c
from .call import Arguments, Call, Failures, Run
from .csr import Csr
from .data import Access, Data, Scratch, Tiles
from .error import Error
from .job import Job, JobState, submit_desc
from .kernel import Kernel
from .library import lib
from .owner import State, pointer_to


_NO_TASK = 0                            # tasks are counted from 1


class GraphState(State):
    """The handle, and what the tasks need until the last job has ended."""

    def __init__(self, runtime, kind, label, max_live):
        super().__init__(runtime)
        self.calls = set()              # which may be made still
        self.labels = set()
        self.data = set()
        self.run = Run()
        desc = c.filch_graph_desc(kind=kind, label=label.encode() if label else None,
                                  max_live=operator.index(max_live))
        self.handle = pointer_to(runtime, lib.filch_graph_create, ctypes.byref(desc))

    def end(self):
        return lib.filch_graph_destroy(self.handle) == c.FILCH_OK

    def drop(self):
        super().drop()
        for call in list(self.calls):
            call.forget()
        self.data = set()


def _access(data, view, row, col):
    rows, cols = (len(view.rows), len(view.cols)) if view.is_block else (1, 1)
    halo = view.halo
    if data.is_transposed:
        row, col, rows, cols, halo = col, row, cols, rows, halo[2:] + halo[:2]
    made = c.filch_access(data=data.handle, row=row, col=col, mode=view.mode, rows=rows, cols=cols)
    if any(halo):
        made.kept = c.filch_halo(*halo)
        made.halo = ctypes.addressof(made.kept)
    return made


def accesses_of(name, arguments, is_block):
    """Accesses for the interface of C, the views, and the DataStates, of a task's arguments.

    is_block: a block of tiles is one access.
    """
    made, views, data = [], [], []
    for position, each in enumerate(arguments):
        if isinstance(each, Access):
            view = each.view(is_block)
            views.append((position, len(made), view))
            data.append(each.data)
            made += [_access(each.data, view, row, col) for row, col in view.tiles()]
        elif isinstance(each, Scratch):
            made.append(c.filch_access(mode=c.FILCH_SCRATCH, bytes=each.bytes))
        elif isinstance(each, (Data, Tiles)):
            raise TypeError(f"argument {position} of '{name}' is data without an access: "
                            "read(), write(), readwrite()")
    if len(made) > 255:
        raise ValueError(f"'{name}' has {len(made)} accesses; 255 are possible")
    accesses = (c.filch_access * len(made))(*made)
    accesses.kept = made                # with their halos
    return accesses, views, data


class Graph:
    """Tasks in program order; made by Runtime.graph() and Runtime.open_graph()."""

    def __init__(self, runtime, kind, label, max_live=0):
        self._is_open = kind == c.FILCH_GRAPH_OPEN
        self._max_live = max_live
        self._state = GraphState(runtime, kind, label, max_live)

    def __del__(self):
        if self._is_open and hasattr(self, "_state"):
            try:
                self.close()
            except Error:               # closed already, not submitted, or the runtime has ended
                pass

    @property
    def handle(self):
        """The handle, for functions of filch.c."""
        return self._state.handle

    def add(self, function, *arguments, name=None, label=None, work=None, priority=0, device=None,
            items=0, grain=0, args=None):
        """Adds a task: function(*arguments), with a view in the place of every access.

        function is a Python function, or a Kernel, whose arguments are accesses, and args its
        arguments by value. name is the kind of task, whose speed is measured: without one, the
        function's. work: units of work of the task. device: index of the preferred device. items:
        the task is divisible, and calls function(lo, hi, *arguments) for ranges of its items, with
        views of whole tiles. Returns the task's name, for edge().
        """
        state = self._state
        call = None
        if self._max_live:              # in slices, unlike the wait of the call below
            self._wait_below(self._max_live, None)
        desc = c.filch_task_desc(priority=priority, items=operator.index(items), grain=grain)
        if device is not None:
            desc.affinity = operator.index(device) + 1
        if label is not None:
            text = label.encode()
            state.labels.add(text)      # filch does not copy it
            desc.label = text
        task = ctypes.c_uint64(_NO_TASK)
        try:
            if isinstance(function, Kernel):
                if work is not None or name is not None:
                    raise TypeError("a kernel has a name and a work function of its own")
                packed = function.bytes_of(args)
                accesses = self._kernel_accesses(function, arguments)
                desc.codelet = function.handle
            else:
                name, accesses, call = self._call(function, arguments, name, args, items)
                packed = bytes(Arguments(call.number, 0.0 if work is None else work))
                desc.codelet = state.runtime.codelet(name, work is not None)
            buffer = ctypes.create_string_buffer(packed, len(packed)) if packed else None
            desc.args = ctypes.addressof(buffer) if buffer else None
            desc.accesses, desc.access_count = ctypes.addressof(accesses), len(accesses)
            state.check(lib.filch_graph_add, state.handle, ctypes.byref(desc),
                        ctypes.addressof(task))
        except BaseException:
            if call is not None and task.value == _NO_TASK:
                call.forget()
            raise
        return task.value

    def _kernel_accesses(self, kernel, arguments):
        for position, each in enumerate(arguments):
            if not isinstance(each, (Access, Scratch, Data, Tiles)):
                raise TypeError(f"argument {position} of the kernel '{kernel.name}' is no access")
        accesses, views, data = accesses_of(kernel.name, arguments, False)
        dtypes = [None] * len(accesses)
        for _, first, view in views:
            for k in range(len(view.tiles())):
                dtypes[first + k] = view.data.dtype
        kernel.require(dtypes)
        self._state.data.update(data)
        return accesses

    def _call(self, function, arguments, name, args, items):
        if not callable(function):
            raise TypeError(f"a task is a function or a Kernel, not {type(function).__name__}")
        if args is not None:
            raise TypeError("args are a kernel's; a Python function has its arguments themselves")
        name = name or getattr(function, "__name__", type(function).__name__)
        if any(isinstance(each, Scratch) for each in arguments):
            raise TypeError("scratch() is for kernels; a Python function uses numpy.empty()")
        accesses, views, data = accesses_of(name, arguments, True)
        state = self._state
        state.data.update(data)
        call = Call(function, arguments, views, state.run, state.calls,
                    has_range=items > 0, is_once=self._is_open and items == 0)
        return name, accesses, call

    def edge(self, before, after):
        """Makes a task wait for another; closed graphs only."""
        self._state.check(lib.filch_graph_edge, self._state.handle, before, after)

    def read_only(self, of):
        """Promises that the graph only reads a Data or Csr: tasks that write it are refused."""
        if not isinstance(of, (Data, Csr)):
            raise TypeError(f"a graph reads data, not {type(of).__name__}")
        self._state.check(lib.filch_graph_read_only, self._state.handle, of._state.handle)
        self._state.data.add(of._state)

    def submit(self, *, label=None, on_failure="skip"):
        """Starts the graph; returns the Job.

        on_failure: "skip" leaves out what depends on a failed task, "cancel" all that has not
        begun.
        """
        made, desc = self._job(label, on_failure)
        before = self._state.run.failures
        self._state.run.failures = made.failures
        try:
            self._state.check(lib.filch_graph_submit, self._state.handle, ctypes.byref(desc),
                              ctypes.byref(made.cell))
        except Error:
            self._state.run.failures = before
            raise
        return Job(made)

    def run(self, *, label=None, on_failure="skip"):
        """Runs a closed graph to its end; see Job.wait().

        Where the wait ends by an exception, KeyboardInterrupt for one, the job is cancelled.
        """
        if self._is_open:
            raise Error(c.FILCH_WRONG_STATE, "an open graph is submitted, not run")
        made, desc = self._job(label, on_failure)
        before = self._state.run.failures
        self._state.run.failures = made.failures
        try:
            Job(made).run(lib.filch_graph_submit, self._state.handle, ctypes.byref(desc))
        except Error:
            if made.handle is None:         # refused
                self._state.run.failures = before
            raise

    def _job(self, label, on_failure):
        self._state.runtime.sweep()
        desc = submit_desc(label, on_failure)
        return JobState(self._state.runtime, self._state, Failures()), desc

    def _wait_below(self, count, seconds):
        state = self._state
        return state.runtime.wait(
            lambda slice_: lib.filch_graph_wait_below(state.handle, count, slice_), seconds)

    def wait_below(self, count, seconds=None):
        """Waits until fewer than count tasks of an open graph are live; False: the time passed.

        Inside a task, which does not count itself, other tasks run meanwhile. Raises Error with
        CANCELLED, or inside a task with DEADLOCK where waiting on may never help.
        """
        status = self._wait_below(operator.index(count), seconds)
        if status == c.FILCH_TIMEOUT and seconds is not None:
            return False
        self._state.runtime.raise_for(status)
        return True

    def discard(self, temporary):
        """Discards the contents of data made by Runtime.temporary(), behind the tasks so far."""
        if not isinstance(temporary, Data):
            raise TypeError(f"data is discarded, not a {type(temporary).__name__}")
        handle = temporary[:].data.handle
        self._state.check(lib.filch_graph_discard, self._state.handle, handle)

    def write_dot(self, path):
        """Writes a closed graph to a file in the language of Graphviz."""
        self._state.check(lib.filch_graph_write_dot, self._state.handle, os.fsencode(path))

    def close(self):
        """No more tasks follow in an open graph."""
        self._state.check(lib.filch_graph_close, self._state.handle)
