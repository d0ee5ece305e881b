# SPDX-License-Identifier: Apache-2.0
"""States of devices: what functions of the host's have for each device, such as a workspace."""
import ctypes

from . import c
from .error import THROWN, Error, text_of
from .kernel import address_of
from .library import lib
from .owner import pointer_to


def _address(state):
    """Address of a state, for compiled functions; None: null."""
    if state is None or isinstance(state, int):
        return state
    if isinstance(state, (ctypes._SimpleCData, ctypes.Structure, ctypes.Array)):
        return ctypes.addressof(state)
    if hasattr(state, "__array_interface__"):
        return state.__array_interface__["data"][0]
    raise TypeError(f"the state for a compiled function is an address, an object of ctypes or an "
                    f"array, not a {type(state).__name__}")


class Openers:
    """The functions open(device) and close(state) of Python's, as filch calls them, and the states
    that are open, by device.

    has_addresses: compiled functions get the states, by address.
    """

    def __init__(self, open_, close, has_addresses):
        for name, function in (("open", open_), ("close", close)):
            if not callable(function) and (name == "open" or function is not None):
                raise TypeError(f"{name} is a function, not a {type(function).__name__}")
        self.states, self.failure = {}, None
        self._open, self._close, self._has_addresses = open_, close, has_addresses
        self.open = c.filch_host_open_fn(self._open_one)
        self.close = c.filch_host_close_fn(self._close_one)

    def _open_one(self, runtime, device, user, at):
        try:
            state = self._open(device)
            address = _address(state) if self._has_addresses else None
            ctypes.c_void_p.from_address(at).value = address
            self.states[device] = state
            return 0
        except BaseException as exception:
            self.failure = exception
            return THROWN

    def _close_one(self, device, user, address):
        state = self.states.pop(device)
        if self._close is not None:
            self._close(state)              # an exception goes to sys.unraisablehook

    def create(self, runtime, desc):
        """Makes the codelet; an exception of open becomes the cause of the Error."""
        desc.open, desc.close = self.open, self.close
        runtime.keep(self)
        try:
            return pointer_to(runtime, lib.filch_codelet_create, ctypes.byref(desc))
        except Error as error:
            failure, self.failure = self.failure, None
            if failure is None:
                raise
            what = error.text.partition(": its open function returned")[0]
            raise Error(error.status, f"{what}: {text_of(failure)}", None, THROWN) from failure


def openers_of(open_, close, user):
    """Openers, or the compiled functions and their user pointer as members of a
    filch_codelet_desc, and what must live as long as the codelet.
    """
    if open_ is None:
        if close is not None:
            raise TypeError("close without open")
        return None, {"user": _address(user)}, user
    try:
        members = {"open": c.filch_host_open_fn(address_of(open_))}
    except TypeError:
        if user is not None:
            raise TypeError("user is for compiled functions; a Python function has its own "
                            "variables") from None
        return Openers(open_, close, True), {}, None
    if close is not None:
        members["close"] = c.filch_host_close_fn(address_of(close))
    return None, dict(members, user=_address(user)), (open_, close, user)


class Local:
    """A value for each device that runs Python functions; made by Runtime.local().

    As an argument of a task or a batch it becomes the value of the device that calls the function.
    """

    def __init__(self, runtime, open_, close, host):
        self._openers = Openers(open_, close, False)
        self._openers.create(runtime, c.filch_codelet_desc(name=b"local", host=host))

    def of(self, device):
        """The value of a device, by its index."""
        return self._openers.states[device]
