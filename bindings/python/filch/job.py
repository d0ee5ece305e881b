# SPDX-License-Identifier: Apache-2.0
"""Jobs: runs of graphs and batches."""
import ctypes

from . import c
from .error import Status, failed
from .library import TextStream, lib
from .owner import State


class JobState(State):
    """The handle, and what the job runs. It is made before the job, whose handle filch writes into
    cell: a signal that arrives meanwhile loses no job.
    """

    def __init__(self, runtime, of, failures):
        super().__init__(runtime)
        self.cell = ctypes.c_void_p()
        self.of = of                    # keeps the graph, or the function of the batch
        self.failures = failures
        self.predicate = None           # of a repetition

    @property
    def handle(self):
        """The handle; None before the submission, and behind the end."""
        return self.cell.value

    def end(self):
        if lib.filch_job_status(self.handle) == c.FILCH_NOT_READY:
            return False
        lib.filch_job_release(self.handle)
        return True

    def drop(self):
        self.cell.value = None
        self.of = None
        if self.predicate is not None:
            self.predicate.forget()


class Job:
    """A run of a graph or a batch. A job that nobody refers to goes on to its end."""

    def __init__(self, state):
        self._state = state

    @property
    def handle(self):
        """The handle, for functions of filch.c; None behind the end."""
        return self._state.handle

    def wait(self, seconds=None):
        """Waits for the job; False: the time passed first.

        Raises Error with TASK_FAILED, whose __cause__ is the exception of the first task that
        failed, or with CANCELLED. The interpreter's lock is released meanwhile.
        """
        state = self._state
        status = state.runtime.wait(
            lambda slice_: lib.filch_job_wait(state.handle, slice_), seconds)
        if status == c.FILCH_TIMEOUT and seconds is not None:
            return False
        if status in (c.FILCH_TASK_FAILED, c.FILCH_CANCELLED):
            record = c.filch_error()
            state.runtime.use(lib.filch_job_error, state.handle, ctypes.byref(record))
            raise failed(status, record, state.failures)
        state.runtime.raise_for(status)
        return True

    def run(self, submit, *arguments):
        """Submits the job and waits; cancels the job where an exception ends that."""
        state = self._state
        try:
            state.check(submit, *arguments, ctypes.byref(state.cell))
            self.wait()
        except BaseException:
            if state.handle is not None and self.status == c.FILCH_NOT_READY:
                self.cancel()
                state.runtime.wait(lambda slice_: lib.filch_job_wait(state.handle, slice_), None)
            raise

    @property
    def status(self):
        """NOT_READY while the job runs; then OK, TASK_FAILED or CANCELLED."""
        return Status(self._state.runtime.use(lib.filch_job_status, self._state.handle))

    def cancel(self):
        """Asks the job to start nothing more. An open graph must still be closed."""
        self._state.check(lib.filch_job_cancel, self._state.handle)

    def info(self):
        """Totals: a filch_job_info."""
        info = c.filch_job_info()
        self._state.check(lib.filch_job_stats, self._state.handle, ctypes.byref(info), None, 0)
        return info

    def devices(self):
        """Work of every device: filch_device_stats."""
        count = self.info().device_count
        stats, info = (c.filch_device_stats * count)(), c.filch_job_info()
        self._state.check(lib.filch_job_stats, self._state.handle, ctypes.byref(info),
                          stats, count)
        return list(stats)

    def report(self, graph=None):
        """How the devices spent their time: a filch_report; with the graph also its path."""
        report = c.filch_report()
        self._state.check(lib.filch_job_report, self._state.handle, _handle_of(graph),
                          ctypes.byref(report), None, 0)
        return report

    def losses(self):
        """How each device spent its time: filch_losses."""
        report = c.filch_report()
        losses = (c.filch_losses * self.report().device_count)()
        self._state.check(lib.filch_job_report, self._state.handle, None, ctypes.byref(report),
                          losses, len(losses))
        return list(losses)

    def report_text(self, graph=None):
        """The report as a text: where the time went, and what to change first."""
        with TextStream() as stream:
            self._state.check(lib.filch_report_print, self._state.handle, _handle_of(graph),
                              stream.file)
            return stream.text()

    def items(self):
        """Fate of a complete batch's items: a list of (lo, hi, status)."""
        count = ctypes.c_size_t()
        self._state.check(lib.filch_job_items, self._state.handle, None, 0,
                          ctypes.addressof(count))
        ranges = (c.filch_item_range * count.value)()
        self._state.check(lib.filch_job_items, self._state.handle, ranges, count,
                          ctypes.addressof(count))
        return [(each.lo, each.hi, Status(each.status)) for each in ranges]

    def resume(self):
        """Runs the unfinished items of a complete batch; returns the new job."""
        state = self._state
        rest = JobState(state.runtime, state.of, state.failures)
        state.check(lib.filch_job_resume, state.handle, None, None, ctypes.byref(rest.cell))
        return Job(rest)


def _handle_of(graph):
    """Handle of a Graph; None: no graph."""
    if graph is not None and not hasattr(graph, "add_many"):
        raise TypeError(f"the graph of a job, not a {type(graph).__name__}")
    return graph.handle if graph is not None else None


def submit_desc(label, on_failure):
    """filch_submit_desc."""
    if on_failure not in ("skip", "cancel"):
        raise ValueError(f"on_failure is '{on_failure}', not 'skip' or 'cancel'")
    return c.filch_submit_desc(
        label=label.encode() if label else None,
        on_failure=c.FILCH_FAILURE_CANCEL if on_failure == "cancel" else c.FILCH_FAILURE_SKIP)
