# SPDX-License-Identifier: Apache-2.0
"""Calls of Python functions by filch's threads.

One function of C's, a ctypes callback, stands for all functions of Python's; the arguments of a
task name the Call that it is to make. No exception leaves the callback.
"""
import ctypes
import itertools
import threading

from . import c
from .error import NUMBERS, THROWN, Error, cut, refused, text_of
from .library import lib
from .local import Local
from .pending import Pending

_calls = {}                  # by number; dict's operations are atomic
_numbers = itertools.count(1)
_failures = itertools.count()
MOST_FAILURES = 1024         # devices of a runtime: the first failure is among so many


class Arguments(ctypes.Structure):
    """Arguments of a task that calls a Python function."""
    _fields_ = [("number", ctypes.c_uint64), ("work", ctypes.c_double)]


class Failures(dict):
    """Exceptions of a job's tasks, by the code that the tasks returned."""

    def note(self, exception):
        """Returns the code that stands for an exception."""
        code = THROWN + 1 + next(_failures) % NUMBERS
        if len(self) < MOST_FAILURES:
            self[code] = exception
        return code


class Run:
    """The present job of a graph or a batch."""

    def __init__(self):
        self.failures = Failures()


class Call:
    """A Python function with what it is called with.

    arguments are values, and accesses in the places of the views. run is the Run of the graph or
    the batch, and calls its set of Calls. A Call that is made once forgets itself afterwards.
    """
    __slots__ = ("number", "function", "arguments", "views", "locals", "run", "calls",
                 "has_range", "is_once")

    def __init__(self, function, arguments, views, run, calls, has_range=False, is_once=False):
        self.number = next(_numbers)
        self.function = function
        self.arguments = arguments
        self.views = views          # [(position among the arguments, first view of C's, View)]
        self.locals = [k for k, each in enumerate(arguments) if isinstance(each, Local)]
        self.run = run
        self.has_range = has_range
        self.is_once = is_once
        self.calls = calls
        calls.add(self)             # first: an interrupted Call is forgotten with the others
        _calls[self.number] = self

    def forget(self):
        """The function is not called any more."""
        _calls.pop(self.number, None)
        self.calls.discard(self)

    def make(self, call):
        """Calls the function; returns the copies of data, for put_back()."""
        arguments = list(self.arguments)
        for position in self.locals:
            arguments[position] = arguments[position].of(call.device)
        copies = []
        for position, first, view in self.views:
            array, is_copy = view.array(call.views, first)
            arguments[position] = array
            if is_copy:
                copies.append((view, first, array))
        if self.has_range:
            self.function(call.lo, call.hi, *arguments)
        else:
            self.function(*arguments)
        return copies

    @staticmethod
    def put_back(call, copies):
        """Puts what the function has written to copies where it belongs."""
        for view, first, array in copies:
            view.put_back(call.views, first, array)

    def note(self, exception):
        """Code and text for filch of an exception that fails the task."""
        return self.run.failures.note(exception), cut(text_of(exception), 191)


class _Thread(threading.local):
    """The calls of Python functions that run on a thread, the innermost last."""

    def __init__(self):
        self.running = []


_thread = _Thread()


class Context:
    """The call of the running function; made by context(). Of use until the function has returned,
    on the function's thread.

    device is the index of the device, team the number of cores for the function.
    """
    __slots__ = ("device", "team", "_record", "_call", "_ident", "_pending")

    def __init__(self, record, call):
        self.device, self.team = record.device, record.team
        self._record, self._call, self._ident = record, call, threading.get_ident()
        self._pending = None

    def _use(self, function, *arguments):
        record = self._record
        if record is None or threading.get_ident() != self._ident:
            raise Error(c.FILCH_WRONG_STATE, "the function has returned, or runs on another thread")
        status = function(ctypes.byref(record), *arguments)
        if status != c.FILCH_OK:
            details = c.filch_error()
            lib.filch_runtime_error(record.runtime, ctypes.byref(details))
            raise refused(status, details)

    def finish(self):
        """Ends the rest of the function's job as success: what has not begun is skipped."""
        self._use(lib.filch_call_finish)

    def pend(self):
        """Lets the task go on when the function has returned; returns the Pending, which ends it.

        For tasks added with pends=True. A second call returns the same Pending.
        """
        if self._pending is None:
            handle = c.filch_pending()
            self._use(lib.filch_call_pend, ctypes.byref(handle))
            self._pending = Pending(handle, self._record, self._call)
        return self._pending

    def leave(self, copies, exception):
        """The function has returned copies, or raised an exception. Returns the task's code."""
        record, pending, self._record, self._pending = self._record, self._pending, None, None
        if pending is not None:
            return pending.leave(copies, exception)
        if exception is not None:
            raise exception
        self._call.put_back(record, copies)
        return 0


def context():
    """The Context of the function that calls it, a task's or a batch's.

    Raises Error with WRONG_STATE where no function of a task runs on the thread.
    """
    if not _thread.running:
        raise Error(c.FILCH_WRONG_STATE, "no function of a task runs on this thread")
    return _thread.running[-1]


def _fail(call, address, exception):
    try:
        code, text = call.note(exception)
        lib.filch_call_set_text(ctypes.cast(address, ctypes.POINTER(c.filch_call)), text)
        return code
    except BaseException:  # no memory: the text is lost
        return THROWN


def _make(call, record):
    """Calls the function as the innermost of the thread; returns the task's code."""
    running, copies, raised = _thread.running, None, None
    here = Context(record, call)
    running.append(here)
    try:
        copies = call.make(record)
    except BaseException as exception:
        raised = exception
    finally:
        running.pop()
    try:
        return here.leave(copies, raised)
    finally:
        raised = None       # no circle with the exception's traceback


def _run(address):
    call = None
    try:
        record = c.filch_call.from_address(address)
        call = _calls[ctypes.c_uint64.from_address(record.args).value]
        code = _make(call, record)
    except BaseException as exception:  # the task fails, whatever it is
        code = _fail(call, address, exception)
    if call is not None and call.is_once:
        call.forget()
    return code


def _work(address):
    try:
        record = c.filch_call.from_address(address)
        units = Arguments.from_address(record.args).work
        return units * (record.hi - record.lo) if record.hi > record.lo else units
    except BaseException:
        return 0.0


# Never freed: filch's threads may be inside them until the process ends.
host = c.filch_host_fn(_run)
work = c.filch_work_fn(_work)
