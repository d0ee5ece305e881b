# SPDX-License-Identifier: Apache-2.0
"""Pending tasks: tasks that end after their function has returned."""
import ctypes
import threading

from . import c
from .error import THROWN, Error, Failure, Status, refused
from .library import lib

_FIRST, _SECOND = "first", "second"


class Pending:
    """A task that ends later; made by Context.pend().

    Any thread ends the task, by end(). A Pending that nobody refers to any more ends its task as
    failed: no task waits for ever because its Pending was lost.

    The end and the return of the function come in any order: whichever comes second ends the task,
    as copies of data are put back behind both. No lock is held meanwhile, so that a signal handler
    and a finalizer may call end(), too.
    """

    def __init__(self, handle, record, call):
        self._handle, self._record, self._call = handle, record, call
        self._copies, self._failure, self._raised = (), None, None
        self._unclaimed = [None]            # taken by the one who ends; pop() is atomic
        self._arrivals = [_SECOND, _FIRST]
        self._has_ended = False
        self._asking = threading.RLock()    # no question is asked while the task ends

    def end(self, failure=None):
        """Ends the task, also before the function has returned. What was written is visible.

        failure: an exception, which fails the task; a filch.Failure has a code of its own. Raises
        Error with INVALID_HANDLE where the task has ended already.
        """
        if failure is not None and not isinstance(failure, BaseException):
            raise TypeError(f"a pending task fails with an exception, not with a "
                            f"{type(failure).__name__}")
        try:
            self._unclaimed.pop()
        except IndexError:
            raise Error(c.FILCH_INVALID_HANDLE, "the task has ended already") from None
        self._failure = failure
        if self._arrivals.pop() is _SECOND:
            code, text = self._settle()
            with self._asking:
                self._has_ended = True
                status = lib.filch_pending_end(self._handle, code, text)
            self._forget()
            if status != c.FILCH_OK:
                raise refused(status)

    def leave(self, copies, exception):
        """The function has returned copies, or raised an exception; returns the task's code."""
        self._copies, self._raised = copies or (), exception
        is_ours = False
        if exception is not None:
            try:
                self._unclaimed.pop()
                is_ours = True
            except IndexError:              # an end came before, or is coming
                pass
        if not is_ours and self._arrivals.pop() is _FIRST:
            return c.FILCH_PENDING
        code, text = self._settle()
        if code:
            lib.filch_call_set_text(ctypes.byref(self._record), text)
        self._has_ended = True
        self._forget()
        return code

    def _settle(self):
        """Puts copies back; returns code and text of the task."""
        failure = self._raised if self._failure is None else self._failure
        try:
            if failure is None:
                self._call.put_back(self._record, self._copies)
                return 0, None
        except BaseException as exception:
            failure = exception
        try:
            return self._call.note(failure)
        except BaseException:               # no memory: the text is lost
            return THROWN, None

    def _forget(self):
        self._record = self._call = self._failure = self._raised = None
        self._copies = ()

    @property
    def status(self):
        """NOT_READY; CANCELLED where the job was cancelled or finished early, and waits for the end
        of the task; INVALID_HANDLE behind the end.
        """
        with self._asking:
            if self._has_ended:
                return Status.INVALID_HANDLE
            return Status(lib.filch_pending_status(self._handle))

    def __del__(self):
        if getattr(self, "_unclaimed", None):
            try:
                self.end(Failure(-1, "the pending task was dropped without an end"))
            except Error:                   # a child of the process
                pass
