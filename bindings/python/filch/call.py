# SPDX-License-Identifier: Apache-2.0
"""Calls of Python functions by filch's threads.

One function of C's, a ctypes callback, stands for all functions of Python's; the arguments of a
task name the Call that it is to make. No exception leaves the callback.
"""
import ctypes
import itertools

from . import c
from .error import NUMBERS, THROWN, cut, text_of
from .library import lib

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
    __slots__ = ("number", "function", "arguments", "views", "run", "calls", "has_range", "is_once")

    def __init__(self, function, arguments, views, run, calls, has_range=False, is_once=False):
        self.number = next(_numbers)
        self.function = function
        self.arguments = arguments
        self.views = views          # [(position among the arguments, first view of C's, View)]
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
        """Calls the function."""
        arguments = list(self.arguments)
        copies = None
        for position, first, view in self.views:
            array, is_copy = view.array(call.views, first)
            arguments[position] = array
            if is_copy:
                copies = copies or []
                copies.append((view, first, array))
        if self.has_range:
            self.function(call.lo, call.hi, *arguments)
        else:
            self.function(*arguments)
        for view, first, array in copies or ():
            view.put_back(call.views, first, array)


def _fail(call, address, exception):
    try:
        lib.filch_call_set_text(ctypes.cast(address, ctypes.POINTER(c.filch_call)),
                                cut(text_of(exception), 191))
        return call.run.failures.note(exception)
    except BaseException:  # no memory: the text is lost
        return THROWN


def _run(address):
    call = None
    try:
        record = c.filch_call.from_address(address)
        call = _calls[ctypes.c_uint64.from_address(record.args).value]
        call.make(record)
        code = 0
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
