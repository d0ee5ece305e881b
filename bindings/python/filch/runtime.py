# SPDX-License-Identifier: Apache-2.0
"""Runtimes and their devices."""
import atexit
import collections
import ctypes
import operator
import os
import threading
import time
import weakref

from . import c, call
from .batch import Batch
from .call import Failures
from .csr import Csr, CsrState
from .data import Contents, Data, DataState
from .error import Error, refused
from .graph import Graph
from .job import Job, JobState
from .kernel import Kernel, builtin_dtypes, cuda_desc, kernel_desc
from .library import lib
from .local import Local, openers_of
from .owner import pointer_to

SLICE = 0.05        # seconds of a wait between looks at signals, and at the runtime's end

_live = weakref.WeakSet()
_orphans = []       # runtimes that were dropped inside a task


_PRESENCES = {value: name[len("FILCH_PRESENCE_"):].lower() for name, value in vars(c).items()
              if name.startswith("FILCH_PRESENCE_")}


def _bytes(value):
    """A number of bytes."""
    if not 0 <= operator.index(value) < 2 ** 64:
        raise ValueError(f"{value} bytes")
    return operator.index(value)


def _index(device):
    """Index of a device, for a function that refuses indices of no device."""
    if not 0 <= operator.index(device) < c.FILCH_LINK_HOST:
        raise Error(c.FILCH_BAD_INDEX, f"{device} is no index of a device")
    return operator.index(device)


class Device:
    """A device of a runtime: the members of filch_device_info."""

    def __init__(self, info):
        for name, _ in info._fields_:
            value = getattr(info, name)
            if isinstance(value, bytes):
                value = value.decode(errors="replace")
            setattr(self, name, list(value) if isinstance(value, ctypes.Array) else value)

    def __repr__(self):
        return f"<filch.Device {self.name}: {self.model}>"


def _constant(prefix, value):
    """A constant of C's, or the rest of its name."""
    if not isinstance(value, str):
        return value
    name = prefix + value.upper().replace("-", "_")
    if not hasattr(c, name):
        raise ValueError(f"no {name} is known")
    return getattr(c, name)


def version():
    """The library's version: major * 10000 + minor * 100 + patch."""
    return lib.filch_version()


class Runtime:
    """Devices and their workers; a context manager.

    devices is a device specification, e.g. "host:2" or "cuda,host"; without one FILCH_DEVICES
    decides, else there are the GPUs, else the cores. Options are members of filch_runtime_desc:
    policy="static", scores=[1, 2], trace=True, drive="poll", speeds="FILE", bind="none" and so on;
    log is called with a level and a text, from any thread, and must not call filch.

    The end of the runtime, close(), cancels the jobs that run, and waits for the functions that
    run just now. Objects made from it then raise Error with INVALID_HANDLE.
    """

    def __init__(self, devices=None, **options):
        self.handle = None
        self._inside = {}               # the thread of each call in progress
        self._closing = threading.Lock()
        self._leftovers = collections.deque()
        self._codelets = {}
        self._kept = []                 # functions that filch may call
        self._process = os.getpid()
        desc, error = self._describe(devices, options), c.filch_error()
        made = ctypes.c_void_p()
        status = lib.filch_runtime_create(ctypes.byref(desc), ctypes.byref(error),
                                          ctypes.byref(made))
        if status != c.FILCH_OK:
            raise refused(status, error)
        self.handle = made.value
        self.is_virtual = self._device(0).backend == c.FILCH_BACKEND_SIM
        _live.add(self)

    def _describe(self, devices, options):
        desc = c.filch_runtime_desc()
        if devices is not None:
            desc.devices = os.fsencode(devices)
        members = {name for name, _ in desc._fields_}
        hidden = {"size", "devices", "score_count", "log_user", "rate", "rate_user", "allocator",
                  "custom_policy", "reserved"}
        for name, value in options.items():
            if name not in members - hidden:
                raise TypeError(f"a runtime has no option '{name}'")
            if name == "scores":
                array = (ctypes.c_double * len(value))(*value)
                self._kept.append(array)
                desc.scores, desc.score_count = ctypes.addressof(array), len(value)
            elif name == "log":
                desc.log = c.filch_log_fn(
                    lambda level, text, _: value(level, text.decode(errors="replace")))
                self._kept.append(desc.log)
            elif name == "speeds":
                desc.speeds = os.fsencode(value)
            else:
                prefix = {"log_level": "LOG", "allocator_kind": "ALLOCATOR"}.get(name, name.upper())
                setattr(desc, name, _constant(f"FILCH_{prefix}_", value))
        return desc

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()

    def __del__(self):
        try:
            self.close()
        except Error:                   # inside a task: later
            _orphans.append(self)

    def close(self):
        """Ends the runtime; see the class. A second call does nothing.

        Raises Error with WRONG_STATE inside a task, and in a signal handler that interrupts a call
        of the same thread, a wait for one.
        """
        handle = self.handle
        if handle is None:
            return
        if os.getpid() == self._process:
            if not self._closing.acquire(blocking=False):
                raise Error(c.FILCH_WRONG_STATE, "another thread ends the runtime")
            try:
                status = lib.filch_runtime_drain(handle, 0.0)
                if status == c.FILCH_WRONG_STATE:
                    raise Error(status, "a task cannot end its runtime")
                if threading.get_ident() in self._inside.values():
                    raise Error(c.FILCH_WRONG_STATE, "a signal handler cannot end the runtime "
                                "while it interrupts a call of this thread")
                self.handle = None      # calls are refused from now on
                while self._inside:
                    time.sleep(0.001)
                lib.filch_runtime_abort(handle)
            finally:
                self._closing.release()
        self.handle = None
        _live.discard(self)
        while self._leftovers:
            self._leftovers.popleft().drop()

    def use(self, function, *arguments):
        """Calls a function of C's, whose runtime does not end meanwhile."""
        key = object()
        try:
            self._inside[key] = threading.get_ident()
            if self.handle is None:
                raise Error(c.FILCH_INVALID_HANDLE, "the runtime has ended")
            return function(*arguments)
        finally:
            self._inside.pop(key, None)

    def check(self, function, *arguments):
        """Calls a function of C's; raises Error unless it succeeds."""
        status = self.use(function, *arguments)
        if status != c.FILCH_OK:
            self.raise_for(status)

    def raise_for(self, status):
        """Raises Error unless the status is OK."""
        if status != c.FILCH_OK:
            record = c.filch_error()
            self.use(lib.filch_runtime_error, self.handle, ctypes.byref(record))
            raise refused(status, record)

    def wait(self, function, seconds):
        """Calls function(seconds) of C's, which waits; in slices, so that signals arrive."""
        if self.is_virtual:
            return self.use(function, -1.0 if seconds is None else seconds)
        end = None if seconds is None else time.monotonic() + seconds
        while True:
            rest = SLICE if end is None else min(SLICE, max(end - time.monotonic(), 0.0))
            status = self.use(function, rest)
            if status != c.FILCH_TIMEOUT or end is not None and time.monotonic() >= end:
                return status

    def leave(self, state):
        """Ends a State whose object is no more, now or later."""
        self._leftovers.append(state)
        self.sweep()

    def sweep(self):
        """Ends States that filch does not use any more; the end of one may set another free."""
        goes_on = True
        while goes_on:
            goes_on = False
            for _ in range(len(self._leftovers)):
                try:
                    state = self._leftovers.popleft()
                except IndexError:      # another thread took it
                    break
                try:
                    ended = self.use(state.end)
                except Error:           # the runtime has ended
                    ended = True
                if ended:
                    state.drop()
                    goes_on = True
                else:
                    self._leftovers.append(state)

    def drain(self, seconds=None):
        """Waits until no job runs; False: the time passed first. Open graphs must be closed."""
        status = self.wait(lambda slice_: lib.filch_runtime_drain(self.handle, slice_), seconds)
        if status == c.FILCH_TIMEOUT and seconds is not None:
            return False
        self.raise_for(status)
        return True

    def poll(self):
        """A round over the workers of a runtime with drive="poll"; whether there may be more."""
        worked = ctypes.c_bool()
        self.check(lib.filch_runtime_poll, self.handle, 0.0, ctypes.addressof(worked))
        return worked.value

    def poll_wait(self, seconds=None, job=None):
        """Waits until some work can be done or the job is complete, and does a round of the work.

        For a runtime with drive="poll". False: the time passed first.
        """
        handle = job.handle if job is not None else None
        if job is not None and handle is None:
            return True                 # the job has ended
        status = self.wait(
            lambda slice_: lib.filch_runtime_poll_wait(self.handle, handle, slice_, None), seconds)
        if status == c.FILCH_TIMEOUT and seconds is not None:
            return False
        self.raise_for(status)
        return True

    def _device(self, index):
        info = c.filch_device_info()
        self.check(lib.filch_device_at, self.handle, index, ctypes.byref(info))
        return Device(info)

    @property
    def devices(self):
        """The devices, in the order of their indices."""
        return [self._device(k) for k in range(self.use(lib.filch_device_count, self.handle))]

    @property
    def refused(self):
        """Devices that were left out as unusable: their names and why, as (name, Error)."""
        found = []
        for k in range(self.use(lib.filch_device_refused_count, self.handle)):
            each = c.filch_device_refusal()
            self.check(lib.filch_device_refused_at, self.handle, k, ctypes.byref(each))
            found.append((each.name.decode(errors="replace"),
                          refused(each.error.status, each.error)))
        return found

    def memory(self, device):
        """What filch holds of the memory of a device, by its index: a filch_memory_stats."""
        stats = c.filch_memory_stats()
        self.check(lib.filch_device_memory, self.handle, _index(device),
                   ctypes.byref(stats))
        return stats

    def trim(self, device, keep=0):
        """Hands unused memory back to a device, but for so many bytes."""
        self.check(lib.filch_device_trim, self.handle, _index(device), _bytes(keep))

    def withdraw(self, device):
        """Asks a device to begin no more work, until readmit()."""
        self.check(lib.filch_device_withdraw, self.handle, _index(device))

    def readmit(self, device):
        """Brings a withdrawn device back."""
        self.check(lib.filch_device_readmit, self.handle, _index(device))

    def presence(self, device):
        """Whether a device takes part: "there", "leaving", "withdrawn" or "lost"."""
        presence = ctypes.c_int()
        self.check(lib.filch_device_presence, self.handle, _index(device),
                   ctypes.addressof(presence))
        return _PRESENCES[presence.value]

    def link(self, source, target):
        """The link from a device's memory to another's: a filch_link. None is the host's memory."""
        link = c.filch_link()
        ends = [c.FILCH_LINK_HOST if each is None else _index(each)
                for each in (source, target)]
        self.check(lib.filch_device_link, self.handle, *ends, ctypes.byref(link))
        return link

    def measure_links(self):
        """Measures the bandwidth between every two memories, by copies."""
        self.check(lib.filch_device_measure_links, self.handle)

    @property
    def speeds(self):
        """The state of the file of speeds: a filch_speeds."""
        speeds = c.filch_speeds()
        self.check(lib.filch_runtime_speeds, self.handle, ctypes.byref(speeds))
        return speeds

    def save_speeds(self):
        """Saves the speeds measured so far in the file of speeds, as the end of the runtime does."""
        self.check(lib.filch_runtime_save_speeds, self.handle)

    @property
    def usage(self):
        """What the runtime holds: the members of filch_usage."""
        usage = c.filch_usage()
        self.check(lib.filch_runtime_usage, self.handle, ctypes.byref(usage))
        return usage

    def data(self, array, tile=None, *, managed=False, pin=False, ordered=False, label=None,
             device=None):
        """Makes a handle of an array, cut into tiles.

        array is one of NumPy's with 1 or 2 axes, contiguous along one of them, or an array on a
        GPU. It is not copied, and kept alive. tile is the size of the tiles, or a tuple with a
        size an axis; a list in place of a size has the sizes one by one. managed: the contents
        stay where they were used last, and acquire() brings them back. ordered: reductions give
        the same bits on every schedule.
        """
        self.sweep()
        flags = ((managed and c.FILCH_DATA_MANAGED) | (pin and c.FILCH_DATA_PIN) |
                 (ordered and c.FILCH_DATA_ORDERED))
        return Data(DataState(self, array, tile, flags, label, device), array)

    def broadcast(self, data, devices=None):
        """Sends managed data to devices, by their indices; None: to every one. Returns the Job."""
        if not isinstance(data, Data):
            raise TypeError(f"a broadcast is of data, not of a {type(data).__name__}")
        self.sweep()
        desc = c.filch_broadcast_desc()
        if devices is not None:
            indices = [_index(each) for each in devices]
            if not indices:
                raise ValueError("a broadcast to no device")
            desc.kept = (ctypes.c_uint32 * len(indices))(*indices)
            desc.devices, desc.device_count = ctypes.addressof(desc.kept), len(indices)
        made = JobState(self, data._state, Failures())
        self.check(lib.filch_data_broadcast, data._state.handle, ctypes.byref(desc), None,
                   ctypes.byref(made.cell))
        return Job(made)

    def csr(self, matrix, tile=None, *, blocks=None, pin=False, label=None):
        """Makes a handle of a sparse matrix in compressed rows, cut into row blocks.

        matrix is one of scipy.sparse, or anything with indptr, indices, data and shape; it is
        checked and copied. tile: rows a block, or a list with the rows of each. blocks: number of
        blocks with about equal numbers of entries. Without either there is one.
        """
        self.sweep()
        return Csr(CsrState(self, matrix, tile, blocks, pin, label))

    def temporary(self, shape, tile=None, *, dtype="f8", ordered=False, label=None):
        """Makes a handle of intermediate results of graphs, without an array.

        A tile has contents and memory from the task that overwrites it, write(), to the last task
        that uses it before Graph.discard() or the end of the graph: FILCH_DATA_TEMPORARY. shape,
        dtype: of the data; tile, ordered: as in data().
        """
        self.sweep()
        source = Contents(shape, dtype)
        flags = c.FILCH_DATA_TEMPORARY | (ordered and c.FILCH_DATA_ORDERED)
        return Data(DataState(self, source, tile, flags, label, None), source)

    def graph(self, *, label=None):
        """Makes a graph that is built first, and then run as often as wanted."""
        self.sweep()
        return Graph(self, c.FILCH_GRAPH_CLOSED, label)

    def open_graph(self, *, label=None, max_live=0):
        """Makes a graph that runs, once submitted, while tasks are added, until it is closed.

        add() waits while max_live tasks are live; 0: no limit.
        """
        self.sweep()
        return Graph(self, c.FILCH_GRAPH_OPEN, label, max_live)

    def batch(self, n, function, *arguments, grain=0, name=None, work=None, args=None):
        """Makes a batch: function(lo, hi, *arguments) for the items 0 to n, cut over the devices.

        Accesses among the arguments become views of the elements of the items. function may be a
        Kernel, whose arguments are accesses, and args its arguments by value. work: units of work
        an item. Cuts fall on multiples of the grain.
        """
        return Batch(self, n, function, arguments, grain, name, work, args)

    def kernel(self, name, host=None, *, args=0, cuda=None, work=None, dtypes=None, pends=False,
               open=None, close=None, user=None):
        """Makes a Kernel of a compiled function.

        host is a function int(const filch_call *) of C's: its address, a function of ctypes, a
        cfunc of Numba, or a LowLevelCallable of SciPy. It runs without the interpreter's lock.
        args is the type of its arguments by value: a structure or type of ctypes, a dtype, or a
        number of bytes. cuda: a dict with members of filch_cuda_desc: source, entry, grid, block
        and so on. work: a compiled function double(const filch_call *). dtypes: of the accesses.
        pends: tasks may end later (FILCH_CODELET_MAY_PEND).

        open and close make and release the state of a device, filch_call.state. They are compiled
        functions as filch_codelet_desc has them; or Python functions, where open(device) gets the
        device's index and returns an object of ctypes, an array or an address, and close(state)
        gets it back as the runtime ends. user is filch_call.user: an object of ctypes, an array or
        an address.
        """
        openers, members, kept = openers_of(open, close, user)
        if pends:
            members["flags"] = c.FILCH_CODELET_MAY_PEND
        desc, own = kernel_desc(name, host, args, cuda_desc(cuda), work, members)
        self.keep((own, kept))
        if openers is not None:
            handle = openers.create(self, desc)
        else:
            handle = pointer_to(self, lib.filch_codelet_create, ctypes.byref(desc))
        return Kernel(self, handle, name, args, desc.arg_size, dtypes)

    def local(self, open, close=None):
        """Makes a Local: a value for each device that runs Python functions, such as a workspace.

        open(device) gets the index of a device and returns its value, at once for every device.
        close(value) is called as the runtime ends, behind the last function. Both must not call
        filch.
        """
        return Local(self, open, close, call.host)

    def keep(self, what):
        """Lets something live as long as the runtime."""
        self._kept.append(what)

    def builtin(self, name):
        """Makes a Kernel of one of filch's own, for GPUs and cores, e.g. "gemm_f64"."""
        handle = pointer_to(self, lib.filch_codelet_create_builtin, name.encode())
        found = lib.filch_kernel_find(name.encode()).contents
        return Kernel(self, handle, name, found.arg_size, found.arg_size,
                      builtin_dtypes(name, found.view_count))

    def codelet(self, name, has_work, pends=False):
        """The codelet of Python functions of a name: speeds are measured for each name."""
        handle = self._codelets.get((name, has_work, pends))
        if handle is None:
            desc = c.filch_codelet_desc(name=name.encode(), host=call.host,
                                        arg_size=ctypes.sizeof(call.Arguments),
                                        flags=pends and c.FILCH_CODELET_MAY_PEND)
            if has_work:
                desc.work = call.work
            handle = pointer_to(self, lib.filch_codelet_create, ctypes.byref(desc))
            self._codelets[name, has_work, pends] = handle
        return handle

    def trace_start(self):
        """Starts recording a trace."""
        self.check(lib.filch_trace_start, self.handle)

    def trace_stop(self):
        """Stops recording; what was recorded stays, and a later start appends."""
        self.check(lib.filch_trace_stop, self.handle)

    def trace_write(self, path):
        """Writes what was recorded, as JSON for Perfetto."""
        self.check(lib.filch_trace_write, self.handle, os.fsencode(path))

    def report_write(self, path):
        """Writes a report of what was recorded, one HTML file for a browser."""
        self.check(lib.filch_report_write, self.handle, os.fsencode(path))


@atexit.register
def _close_all():
    for runtime in list(_live) + _orphans:
        try:
            runtime.close()
        except Error:                   # another thread ends it
            pass
