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
from .repeat import Predicate


_NO_TASK = 0                            # tasks are counted from 1


class GraphState(State):
    """The handle, and what the tasks need until the last job has ended."""

    def __init__(self, runtime, kind, label, max_live):
        super().__init__(runtime)
        self.calls = set()              # which may be made still
        self.labels = {}
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


class Described:
    """A task as filch is told of it: the description, what it points to, and its Call or None."""

    def __init__(self, desc, call, kept):
        self.desc, self.call, self._kept = desc, call, kept


class Task:
    """A task to be added; made by task()."""

    def __init__(self, function, arguments, name, label, work, priority, device, items, grain, args,
                 pends):
        self._function, self._arguments, self._name, self._work = function, arguments, name, work
        self._label, self._args, self._pends = label, args, bool(pends)
        self._desc = c.filch_task_desc(priority=priority, items=operator.index(items), grain=grain)
        if device is not None:
            self._desc.affinity = operator.index(device) + 1

    def describe(self, state, is_open):
        """The Described, for the graph of a GraphState."""
        desc = c.filch_task_desc.from_buffer_copy(self._desc)
        call = None
        if self._label is not None:
            text = self._label.encode()
            desc.label = state.labels.setdefault(text, text)    # filch does not copy it
        try:
            if isinstance(self._function, Kernel):
                packed, accesses = self._kernel(self._function, state)
                desc.codelet = self._function.handle
            else:
                name, accesses, call = self._call(state, is_open)
                packed = bytes(Arguments(call.number, 0.0 if self._work is None else self._work))
                desc.codelet = state.runtime.codelet(name, self._work is not None, self._pends)
            buffer = ctypes.create_string_buffer(packed, len(packed)) if packed else None
            desc.args = ctypes.addressof(buffer) if buffer else None
            desc.accesses, desc.access_count = ctypes.addressof(accesses), len(accesses)
            return Described(desc, call, (buffer, accesses))
        except BaseException:
            if call is not None:
                call.forget()
            raise

    def _kernel(self, kernel, state):
        if self._work is not None or self._name is not None or self._pends:
            raise TypeError("a kernel has a name, a work function and pends of its own")
        packed = kernel.bytes_of(self._args)
        for position, each in enumerate(self._arguments):
            if not isinstance(each, (Access, Scratch, Data, Tiles)):
                raise TypeError(f"argument {position} of the kernel '{kernel.name}' is no access")
        accesses, views, data = accesses_of(kernel.name, self._arguments, False)
        dtypes = [None] * len(accesses)
        for _, first, view in views:
            for k in range(len(view.tiles())):
                dtypes[first + k] = view.data.dtype
        kernel.require(dtypes)
        state.data.update(data)
        return packed, accesses

    def _call(self, state, is_open):
        function = self._function
        if not callable(function):
            raise TypeError(f"a task is a function or a Kernel, not {type(function).__name__}")
        if self._args is not None:
            raise TypeError("args are a kernel's; a Python function has its arguments themselves")
        name = self._name or getattr(function, "__name__", type(function).__name__)
        if any(isinstance(each, Scratch) for each in self._arguments):
            raise TypeError("scratch() is for kernels; a Python function uses numpy.empty()")
        accesses, views, data = accesses_of(name, self._arguments, True)
        state.data.update(data)
        items = self._desc.items
        call = Call(function, self._arguments, views, state.run, state.calls,
                    has_range=items > 0, is_once=is_open and items == 0)
        return name, accesses, call


def task(function, *arguments, name=None, label=None, work=None, priority=0, device=None, items=0,
         grain=0, args=None, pends=False):
    """A task for Graph.add_many(): function(*arguments), with a view in the place of every access.

    function is a Python function, or a Kernel, whose arguments are accesses, and args its
    arguments by value. name is the kind of task, whose speed is measured: without one, the
    function's. label appears in errors and reports. work: units of work of the task. device: index
    of the preferred device. items: the task is divisible, and calls function(lo, hi, *arguments)
    for ranges of its items, with views of whole tiles. pends: the function may let its task end
    later, by Context.pend().
    """
    return Task(function, arguments, name, label, work, priority, device, items, grain, args, pends)


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

    def add(self, function, *arguments, **options):
        """Adds a task: function(*arguments), with a view in the place of every access.

        The options are those of task(). Returns the task's name, for edge().
        """
        return self._add([task(function, *arguments, **options)], lib.filch_graph_add)[0]

    def add_many(self, tasks):
        """Adds tasks made by task(), in their order and in one call; returns their names.

        Error.added of a refusal is the list of names of the tasks in front of the refused one,
        which are in the graph.
        """
        tasks = list(tasks)
        for position, each in enumerate(tasks):
            if not isinstance(each, Task):
                raise TypeError(f"tasks[{position}] is no task(), but a {type(each).__name__}")
        if not self._max_live:
            return self._add(tasks, self._add_array)
        names = []                      # waits for room in front of each
        try:
            for each in tasks:
                names += self._add([each], lib.filch_graph_add)
        except Error as error:
            error.added = names
            error.place(f"tasks[{len(names)}]")
            raise
        return names

    @staticmethod
    def _add_array(graph, descs, names):
        return lib.filch_graph_add_many(graph, descs, len(descs), names, None)

    def _add(self, tasks, add):
        """Adds tasks by a function of C's; returns their names."""
        state = self._state
        if self._max_live:              # in slices, unlike the wait of the call below
            self._wait_below(self._max_live, None)
        made, names = [], (ctypes.c_uint64 * len(tasks))()
        descs = (c.filch_task_desc * len(tasks))()
        try:
            for each, desc in zip(tasks, descs):
                made.append(each.describe(state, self._is_open))
                ctypes.memmove(ctypes.byref(desc), ctypes.byref(made[-1].desc),
                               ctypes.sizeof(desc))
            if tasks:
                first = descs if add is self._add_array else ctypes.byref(descs[0])
                state.check(add, state.handle, first, ctypes.addressof(names))
        except BaseException as error:
            for each, name in zip(made, names):
                if name == _NO_TASK and each.call is not None:
                    each.call.forget()
            if isinstance(error, Error):
                error.added = [name for name in names if name != _NO_TASK]
            raise
        return list(names)

    def edge(self, before, after):
        """Makes a task wait for another; closed graphs only."""
        self._state.check(lib.filch_graph_edge, self._state.handle, before, after)

    def read_only(self, of):
        """Promises that the graph only reads a Data or Csr: tasks that write it are refused."""
        if not isinstance(of, (Data, Csr)):
            raise TypeError(f"a graph reads data, not {type(of).__name__}")
        self._state.check(lib.filch_graph_read_only, self._state.handle, of._state.handle)
        self._state.data.add(of._state)

    def partition(self, data, parts):
        """Lets tasks added from now on use data in the tiles of parts, made by Data.partition().

        Until unpartition() tasks that name data itself are refused. The end of the building ends a
        partition, too.
        """
        self._cut(lib.filch_graph_partition, data, parts)

    def unpartition(self, data, parts):
        """Lets tasks added from now on use data in its own tiles again."""
        self._cut(lib.filch_graph_unpartition, data, parts)

    def _cut(self, function, data, parts):
        for each in data, parts:
            if not isinstance(each, Data):
                raise TypeError(f"a partition is of data, not of a {type(each).__name__}")
        self._state.check(function, self._state.handle, data._state.handle, parts._state.handle)
        self._state.data.update((data._state, parts._state))

    def seal(self):
        """Ends the building of a closed graph, as the first run does; names a cycle of tasks."""
        self._state.check(lib.filch_graph_seal, self._state.handle)

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
            Job(made).run("filch_graph_run", lib.filch_graph_submit, self._state.handle,
                          ctypes.byref(desc))
        except Error:
            if made.handle is None:         # refused
                self._state.run.failures = before
            raise

    def repeat(self, until=None, value=None, *, lag=0, max_runs=0, label=None, on_failure="skip"):
        """Runs a closed graph again and again, as one job, which it returns.

        until(run) is asked after each run, from 1, and tells whether it is enough; an exception
        fails the job. With a value, an array of 256 bytes at most, until(run, copy) gets a copy of
        the value at the end of the run. lag=1: the next run begins before until is asked. The job
        ends after max_runs runs, too, and where a task calls context().finish().
        """
        made, desc = self._job(label, on_failure)
        made.predicate = Predicate(until, value, made.failures)
        before = self._state.run.failures
        self._state.run.failures = made.failures
        try:
            repeat = made.predicate.describe(lag, max_runs)
            self._state.check(lib.filch_graph_repeat, self._state.handle, ctypes.byref(repeat),
                              ctypes.byref(desc), ctypes.byref(made.cell))
        except BaseException:
            if made.handle is None:         # refused
                made.predicate.forget()
                self._state.run.failures = before
            raise
        return Job(made)

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
