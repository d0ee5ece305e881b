# SPDX-License-Identifier: Apache-2.0
"""Exceptions for statuses, and for tasks that fail."""
import enum
import re

from . import c
from .library import lib

Status = enum.IntEnum("Status", {
    lib.filch_status_name(value).decode(): value for name, value in vars(c).items()
    if name.startswith("FILCH_") and lib.filch_status_name(value) == name[6:].encode()})
Status.__doc__ = "Result of a call or a job, as filch_status."

THROWN = -2 ** 31
"""Code of a task that an exception failed, where the exception is no Failure. Tasks return codes
from THROWN to THROWN + 2**23 for exceptions: a compiled function must not use them."""
NUMBERS = 2 ** 23 - 1


class Failure(Exception):
    """Raised by a task's function: fails the task with a code of its own and a text."""

    def __init__(self, code, text):
        super().__init__(text)
        if not -2 ** 31 < code < 2 ** 31 or code == 0:
            raise ValueError(f"{code} is no code of a failure")
        self.code = code


class Error(Exception):
    """A call that filch refused, or a job that failed.

    status is the status of the call or the job; code the own code of the task, the driver or the
    system; call, device and label name what is concerned; line is a position in the input. The
    exception of a failed task is __cause__. added: of Graph.add_many(), the names of the tasks that
    were added before.
    """

    def __init__(self, status, text, record=None, code=None):
        super().__init__(f"{lib.filch_status_name(status).decode()}: {text}")
        self.status = Status(status)
        self.text = text
        self.code = code if code is not None else record.native_code if record else 0
        self.call = record.call.decode(errors="replace") if record else ""
        self.device = record.device.decode(errors="replace") if record else ""
        self.label = record.label.decode(errors="replace") if record else ""
        self.line = record.line if record else 0
        self.added = []

    def place(self, where):
        """Says where in the arguments of the call the mistake is, in front of the text."""
        self.text = f"{where}: {self.text}"
        self.args = (f"{self.status.name}: {self.text}",)


def text_of(exception):
    """What is told of an exception that fails a task."""
    text = str(exception)
    if isinstance(exception, Failure):
        return text
    return f"{type(exception).__name__}: {text}" if text else type(exception).__name__


def cut(text, limit):
    """At most limit bytes of a text, without half a character."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore").encode()


_WORDS = (
    (re.compile(r"^descs\[(\d+)\]"), r"tasks[\1]"),
    (re.compile(r"affinity (\d+) is above the device count, (\d+)"),
     lambda found: f"device={int(found[1]) - 1 - (int(found[1]) > 1 << 31 and 1 << 32)} is none of the {found[2]} devices"),
    (re.compile(r" \(filch_data_reduction\)"), " (Data.reduction())"),
    (re.compile(r" \(filch_graph_read_only\)"), " (Graph.read_only())"),
)


def in_python(text):
    """A text of C's, with the names that callers in Python use."""
    for pattern, words in _WORDS:
        text = pattern.sub(words, text)
    return text


def refused(status, record=None):
    """The exception for a status without a job."""
    text = record.text.decode(errors="replace") if record and record.status == status else ""
    text = in_python(text)
    if not text:
        record, text = None, lib.filch_status_message(status).decode()
    return Error(status, text, record)


def failed(status, record, failures):
    """The exception for a job: what the task raised, where it raised something."""
    text = record.text.decode(errors="replace") or lib.filch_status_message(status).decode()
    code = record.native_code
    cause = None
    if record.status == c.FILCH_TASK_FAILED and code <= THROWN + NUMBERS:
        cause = failures.get(code)
        code = getattr(cause, "code", THROWN) if isinstance(cause, Failure) else THROWN
        if cause is not None:
            label, device = record.label.decode(errors="replace"), record.device.decode()
            what = f"{label} on {device}"
            if not device:              # a predicate, which runs on no device
                what = text.replace(f" returned {record.native_code}", "")
            text = f"{what}: {text_of(cause)}"
    error = Error(status, text, record, code)
    error.__cause__ = cause
    return error
