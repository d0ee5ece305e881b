# SPDX-License-Identifier: Apache-2.0
"""Kernels: compiled functions, of the host, of GPUs or of both."""
import ctypes

import numpy

from . import c
from .library import lib

_api = ctypes.pythonapi
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]
_capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", _api))


def address_of(function):
    """Address of a compiled function."""
    if isinstance(function, int) and function:
        return function
    if isinstance(function, ctypes._CFuncPtr):
        return ctypes.cast(function, ctypes.c_void_p).value
    if isinstance(getattr(function, "address", None), int):     # Numba
        return function.address
    if type(function).__name__ == "LowLevelCallable":           # SciPy
        return address_of(function.function)
    if type(function).__name__ == "PyCapsule":
        return _capsule_pointer(function, _api.PyCapsule_GetName(function))
    raise TypeError(f"no compiled function: {function!r}; a task of a graph or a batch takes "
                    "Python functions")


def _size_of(args):
    """Bytes of the arguments by value."""
    if isinstance(args, int):
        return args
    if isinstance(args, type) and hasattr(args, "from_buffer_copy"):    # a type of ctypes
        return ctypes.sizeof(args)
    return numpy.dtype(args).itemsize


def cuda_desc(options):
    """filch_cuda_desc of a dict; None without one."""
    if options is None:
        return None
    desc = c.filch_cuda_desc()
    given = dict(options)
    for name in "grid", "block", "cluster":
        value = given.pop(name, ())
        for k, each in enumerate((value,) if isinstance(value, int) else value):
            getattr(desc.shape, name)[k] = each
    desc.shape.shared_bytes = given.pop("shared_bytes", 0)
    image = given.pop("image", None)
    if image is not None:
        desc.kept = ctypes.create_string_buffer(image, len(image))
        desc.image, desc.image_bytes = ctypes.addressof(desc.kept), len(image)
    for name, value in given.items():
        if name not in ("source", "entry", "options", "waits", "shape_of", "enqueue"):
            raise TypeError(f"a CUDA implementation has no '{name}'")
        if isinstance(value, str):
            value = value.encode()
        elif name in ("shape_of", "enqueue"):
            value = dict(c.filch_cuda_desc._fields_)[name](address_of(value))
        setattr(desc, name, value)
    return desc


def kernel_desc(name, host, args, cuda, work, members):
    """filch_codelet_desc, and what must live as long as the codelet."""
    desc = c.filch_codelet_desc(name=name.encode(), arg_size=_size_of(args), **members)
    if host is not None:
        desc.host = c.filch_host_fn(address_of(host))
    if work is not None:
        desc.work = c.filch_work_fn(address_of(work))
    if cuda is not None:
        desc.cuda = ctypes.addressof(cuda)
    return desc, (host, work, cuda)


# Accesses of integers, by kernel and number: see filch/kernels.h.
_INTEGERS = {("potrf", 1): "i4", ("potrf_trtri", 1): "i4", ("mandelbrot", 0): "u2"}


def builtin_dtypes(name, count):
    """Dtypes of the accesses of one of filch's own kernels: that of the name, or an integer."""
    stem, _, suffix = name.rpartition("_")
    of_name = {"f64": "f8", "f32": "f4"}.get(suffix)
    return [_INTEGERS.get((stem or name, k), of_name) for k in range(count)]


class Kernel:
    """A codelet of compiled functions; made by Runtime.kernel() and Runtime.builtin()."""

    def __init__(self, runtime, handle, name, args, arg_size, dtypes):
        self.runtime, self.handle, self.name = runtime, handle, name
        self._args, self._arg_size = args, arg_size
        self._dtypes = None if dtypes is None else [
            each if each is None else numpy.dtype(each) for each in dtypes]

    def speed(self, device):
        """The measured speed of the kernel on a device, by its index: a filch_speed."""
        speed = c.filch_speed()
        self.runtime.check(lib.filch_codelet_speed, self.handle, device, ctypes.byref(speed))
        return speed

    def bytes_of(self, args):
        """Arguments by value, as filch copies them."""
        if args is None:
            made = b""
        elif isinstance(args, (bytes, bytearray, ctypes._SimpleCData, ctypes.Structure,
                               ctypes.Array, numpy.generic)):
            made = bytes(args)
        elif isinstance(self._args, int):
            raise TypeError(f"arguments of '{self.name}' are bytes, or a structure of ctypes")
        elif isinstance(self._args, type) and hasattr(self._args, "from_buffer_copy"):
            made = bytes(self._args(*(args if isinstance(args, tuple) else (args,))))
        else:
            made = numpy.array(args, self._args).tobytes()
        if len(made) != self._arg_size:
            raise ValueError(f"'{self.name}' has arguments of {self._arg_size} bytes, "
                             f"not of {len(made)}")
        return made

    def require(self, dtypes):
        """Compares the elements of accesses with what the kernel is for."""
        if self._dtypes is not None and len(dtypes) != len(self._dtypes):
            raise TypeError(f"'{self.name}' has {len(self._dtypes)} accesses, not {len(dtypes)}")
        for k, dtype in enumerate(dtypes):
            wanted = self._dtypes[k] if self._dtypes else None
            if wanted is not None and dtype is not None and dtype != wanted:
                raise TypeError(f"access {k} of '{self.name}' has elements of {dtype}, "
                                f"not of {wanted}")
