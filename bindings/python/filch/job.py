# SPDX-License-Identifier: Apache-2.0
"""Jobs: runs of graphs and batches."""
import ctypes

from . import c
from .error import Error, Status, failed
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

    def run(self, call, submit, *arguments):
        """Submits the job and waits; cancels the job where an exception ends that.

        call is the function of C's that does both; errors of the submission name it.
        """
        state = self._state
        try:
            try:
                state.check(submit, *arguments, ctypes.byref(state.cell))
            except Error as error:
                error.call = call
                raise
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
        """Totals: a filch_job_info.

        size, status and device_count are as in report(). total, done, failed, skipped and pending count
        tasks, or items of a batch; runs counts ended runs of a repetition. seconds is the time from
        the start to the completion, or to now; bytes what was copied between memories; evicted and
        moved are sums of devices().
        """
        info = c.filch_job_info()
        self._state.check(lib.filch_job_stats, self._state.handle, ctypes.byref(info), None, 0)
        return info

    def devices(self):
        """Work of every device: a list of filch_device_stats.

        tiles, stolen_in, stolen_out, items, evicted, moved and pending are counts: work items run,
        stolen from and by others, items of a batch, blocks evicted from the device's memory, tasks
        run away from their data, tasks that pended. busy_s and idle_s are seconds. work is in the
        units of the tasks' work, speed in units a second. bytes_in, bytes_out, bytes_peer and
        bytes_evicted are bytes: from and to the host, from other devices, written back for room.
        """
        count = self.info().device_count
        stats, info = (c.filch_device_stats * count)(), c.filch_job_info()
        self._state.check(lib.filch_job_stats, self._state.handle, ctypes.byref(info),
                          stats, count)
        return list(stats)

    def report(self, graph=None):
        """How the devices spent their time, and how far the job was from the bounds.

        graph: the closed graph that the job ran, for path_ns. The answer is a filch_report, of
        ctypes, with the members below. Times are integers in nanoseconds (_ns), of virtual time on
        a virtual clock. While the job runs the numbers are recent; behind its end they are final.

        size            bytes of the structure
        status          of the job, a number: c.FILCH_NOT_READY while it runs; then its result
        device_count    devices of the runtime
        measured_count  devices that did work for the job
        known_count     devices that count in area_ns
        wall_ns         from the job's start to its completion, or to now
        area_ns         shortest time for all work on all devices, each at its best speed
        path_ns         longest path of dependent tasks, each at its best time; 0 without a graph;
                        of a batch the time of a grain on the fastest device
        bound_ns        larger of area_ns and path_ns: the job cannot end sooner
        efficiency      bound_ns / wall_ns, of 1; 0 where nothing is known
        total           filch_losses summed over the devices; see losses()
        """
        report = c.filch_report()
        self._state.check(lib.filch_job_report, self._state.handle, _handle_of(graph),
                          ctypes.byref(report), None, 0)
        return report

    def losses(self):
        """How each device spent its time: a list of filch_losses, in the order of the devices.

        Members that end in _ns are integers in nanoseconds. The eleven parts add up to wall_ns:

        busy_ns       items that ran without failure, at the best speed ever seen on the device
        slow_ns       time of such items beyond that
        dispatch_ns   finding and launching items, releasing successors
        data_ns       waiting for copies of items' inputs and outputs, or for memory
        spoiled_ns    items that failed or did not count
        preempted_ns  without the core, while the system ran other threads there
        other_ns      working on other jobs
        starved_ns    idle: no ready work existed that the device could run
        unshared_ns   idle: ready work lay in queues of other devices; an estimate
        held_ns       idle: by prediction the work's owner would finish it first
        tail_ns       idle from the taking of the job's last item to the job's end

        wall_ns       the job's time; in filch_report.total the sum over the devices
        estimated_ns  part of busy_ns and slow_ns that untimed items have
        unrated_ns    part of busy_ns in items whose best speed is unknown

        The others are counts:

        refused_held, refused_empty, refused_unable, refused_raced, refused_dear
                      thefts that did not take place: the owner finishes first; nothing to take;
                      the device cannot run it; another was faster; copies would take too long
        restarts, restarts_won, restarts_lost, restarts_refused
                      backup runs: begun; first, and counted; second; not possible
        divided       divisible tasks that the device began in pieces
        pieces        pieces of divisible tasks that the device ran
        """
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
