# SPDX-License-Identifier: Apache-2.0
"""Arrays in the memory of a GPU: of CuPy, PyTorch, Numba, JAX and others.

An object with __cuda_array_interface__ is used by its pointer; another by DLPack. filch does not
wait for the library's own stream: synchronize it before a job reads the array.
"""
import ctypes

import numpy

from . import c

CUDA, CUDA_MANAGED = 2, 13              # kDLCUDA, kDLCUDAManaged


class _Device(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class _Tensor(ctypes.Structure):
    """DLTensor, the first member of DLManagedTensor."""
    _fields_ = [("data", ctypes.c_void_p), ("device", _Device), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


_KINDS = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}

_capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_capsule_pointer.restype = ctypes.c_void_p
_capsule_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def is_transposed(shape, strides, item):
    """Whether the rows of a matrix are contiguous, else its columns are; item: bytes an element."""
    (rows, cols), (down, right) = shape, strides
    for length, stride in zip(shape, strides):
        if length > 1 and stride % item:
            raise ValueError(f"the array has a stride of {stride} bytes, which is no multiple of "
                             f"its elements' {item}")
    if (rows == 1 or down == item) and (cols == 1 or right >= rows * item):
        return False
    if (cols == 1 or right == item) and (rows == 1 or down >= cols * item):
        return True
    raise ValueError(f"the array is not contiguous along an axis: its strides are {strides} "
                     f"bytes, its elements have {item}")


class DeviceArray:
    """Address, shape and strides of an array on a GPU; keeps the memory alive."""

    def __init__(self, source):
        self.keeps = source
        self.device = None                              # the GPU's number, where it is told
        if hasattr(source, "__cuda_array_interface__"):
            self._from_interface(source.__cuda_array_interface__)
            if hasattr(source, "__dlpack_device__"):
                self.device = source.__dlpack_device__()[1]
        elif hasattr(source, "__dlpack__"):
            self._from_dlpack(source)
        else:
            raise TypeError(f"{type(source).__name__} is no array of NumPy's, and has neither "
                            "__cuda_array_interface__ nor __dlpack__; numpy.asarray() makes an "
                            "array of a list")
        self.ndim = len(self.shape)
        if self.ndim not in (1, 2) or 0 in self.shape:
            raise ValueError(f"an array of shape {self.shape}; 1 or 2 axes are possible")

    def _from_interface(self, interface):
        self.dtype = numpy.dtype(interface["typestr"])
        self.address, is_read_only = interface["data"]
        self.is_writable = not is_read_only
        self.shape = tuple(interface["shape"])
        self.strides = interface.get("strides") or self._compact()
        if interface.get("mask") is not None:
            raise TypeError("an array with a mask")

    def _from_dlpack(self, source):
        kind, number = source.__dlpack_device__()
        if kind not in (CUDA, CUDA_MANAGED):
            raise TypeError(f"a DLPack tensor on a device of type {kind}, which is no GPU of "
                            "CUDA's; numpy.from_dlpack() takes a tensor of the host's")
        # The capsule's own destructor frees what it holds, as nobody has consumed it.
        self.keeps = (source, source.__dlpack__())
        tensor = _Tensor.from_address(_capsule_pointer(self.keeps[1], b"dltensor"))
        if tensor.lanes != 1 or tensor.code not in _KINDS or tensor.bits % 8:
            raise TypeError(f"a DLPack tensor of type {tensor.code}, {tensor.bits} bits")
        self.dtype = numpy.dtype(f"{_KINDS[tensor.code]}{tensor.bits // 8}")
        self.address = (tensor.data or 0) + tensor.byte_offset
        self.is_writable = True
        self.device = number
        self.shape = tuple(tensor.shape[k] for k in range(tensor.ndim))
        self.strides = self._compact()
        if tensor.strides:
            self.strides = tuple(tensor.strides[k] * self.dtype.itemsize
                                 for k in range(tensor.ndim))

    def _compact(self):
        strides, step = [], self.dtype.itemsize
        for length in reversed(self.shape):
            strides.insert(0, step)
            step *= length
        return tuple(strides)

    def layout(self):
        """Shape and strides with two axes, and whether rows are contiguous."""
        item = self.dtype.itemsize
        if self.ndim == 1:
            if self.shape[0] > 1 and self.strides[0] != item:
                raise ValueError(f"the array is not contiguous: its stride is {self.strides[0]} "
                                 f"bytes, its elements have {item}")
            return (self.shape[0], 1), (item, item * self.shape[0]), False
        return self.shape, self.strides, is_transposed(self.shape, self.strides, item)

    def device_index(self, runtime, device):
        """Index of the device of the runtime whose memory the array is in."""
        if device is not None:
            return device
        gpus = [each for each in runtime.devices if each.backend == c.FILCH_BACKEND_CUDA]
        if self.device is not None:
            gpus = [each for each in gpus if each.ordinal == self.device]
        if not gpus or self.device is None and len({each.ordinal for each in gpus}) > 1:
            raise ValueError("which device of the runtime the array is on cannot be told: give "
                             "device=, an index of Runtime.devices" if gpus else
                             "the array is on a GPU that the runtime does not have")
        return gpus[0].index
