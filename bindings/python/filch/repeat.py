# SPDX-License-Identifier: Apache-2.0
"""Predicates of repetitions, which filch's threads ask after each run of a graph."""
import ctypes
import itertools
import operator

import numpy

from . import c
from .error import THROWN

_predicates = {}             # by number; dict's operations are atomic
_numbers = itertools.count(1)


def _checked(value):
    """The value that filch copies behind each run: an array in one piece."""
    if not isinstance(value, numpy.ndarray):
        raise TypeError(f"the value of a repetition is an array, not a {type(value).__name__}")
    if value.dtype.hasobject or not 0 < value.nbytes <= c.FILCH_REPEAT_VALUE_BYTES:
        raise ValueError(f"the value of a repetition has {value.nbytes} bytes of {value.dtype}; "
                         f"1 to {c.FILCH_REPEAT_VALUE_BYTES} bytes of numbers are possible")
    if not value.flags.c_contiguous:
        raise ValueError("the value of a repetition is not C-contiguous")
    return value


class Predicate:
    """A predicate with the value that it gets a copy of, and where its exceptions are kept."""

    def __init__(self, function, value, failures):
        if function is not None and not callable(function):
            raise TypeError(f"the predicate is a function, not a {type(function).__name__}")
        if value is not None and function is None:
            raise TypeError("a value, and no predicate that it is for")
        self.function, self.failures = function, failures
        self.value = None if value is None else _checked(value)
        self.number = next(_numbers)
        _predicates[self.number] = self

    def describe(self, lag, max_runs):
        """filch_repeat_desc."""
        desc = c.filch_repeat_desc(lag=operator.index(lag), max_runs=operator.index(max_runs))
        if desc.lag != lag or desc.max_runs != max_runs:
            raise ValueError(f"a lag of {lag}, or {max_runs} runs")
        if self.function is not None:
            desc.predicate, desc.user = _predicate, self.number
        if self.value is not None:
            desc.value = self.value.__array_interface__["data"][0]
            desc.value_bytes = self.value.nbytes
        return desc

    def forget(self):
        """The predicate is not asked any more."""
        _predicates.pop(self.number, None)

    def ask(self, run, address):
        """Whether it is enough."""
        if self.value is None:
            answer = self.function(run)
        else:
            copy = ctypes.string_at(address, self.value.nbytes)
            copy = numpy.frombuffer(copy, self.value.dtype).reshape(self.value.shape)
            answer = self.function(run, copy)
        if answer is None:
            raise TypeError("the predicate returned None, not whether it is enough")
        return bool(answer)


def _ask(run, address, number):
    predicate = None
    try:
        predicate = _predicates[number]
        return c.FILCH_REPEAT_STOP if predicate.ask(run, address) else c.FILCH_REPEAT_AGAIN
    except BaseException as exception:  # the job fails, whatever it is
        try:
            return predicate.failures.note(exception)
        except BaseException:           # no memory
            return THROWN


# Never freed: filch's threads may be inside it until the process ends.
_predicate = c.filch_repeat_fn(_ask)
