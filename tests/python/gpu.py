# SPDX-License-Identifier: Apache-2.0
"""Arrays on GPUs, by __cuda_array_interface__ and by DLPack: on the fake driver, beside a core."""
import ctypes
import gc
import unittest

import numpy as np

import filch

driver = ctypes.CDLL("libcuda.so.1")
driver.fakecuda_peek.restype = ctypes.c_void_p


def in_context(runtime, device, function):
    """Calls a function with a device's context current."""
    result = []

    def scope(lane, user):
        result.append(function())
        return 0

    runtime.check(filch.lib.filch_device_scope, runtime.handle, device,
                  filch.c.filch_scope_fn(scope), None)
    return result[0]


class Memory:
    """Memory of a GPU with the contents of an array."""

    def __init__(self, case, device, array):
        self.runtime, self.device, self.array = case.runtime, device, array
        self.address = ctypes.c_uint64()
        self.call(driver.cuMemAlloc_v2, ctypes.byref(self.address), ctypes.c_size_t(array.nbytes))
        case.addCleanup(self.call, driver.cuMemFree_v2, self.address)
        case.addCleanup(gc.collect)
        self.contents()[...] = array

    def call(self, function, *arguments):
        assert in_context(self.runtime, self.device, lambda: function(*arguments)) == 0

    def contents(self):
        """The fake's memory, where nothing runs that uses it."""
        there = driver.fakecuda_peek(self.address, ctypes.c_size_t(self.array.nbytes))
        memory = (ctypes.c_char * self.array.nbytes).from_address(there)
        return np.ndarray(self.array.shape, self.array.dtype, memory, 0, self.array.strides)


class CudaArray(Memory):
    @property
    def shape(self):
        return self.array.shape

    @property
    def __cuda_array_interface__(self):
        return {"typestr": self.array.dtype.str, "data": (self.address.value, False), "version": 3,
                "shape": self.array.shape, "strides": self.array.strides}


class DLPackArray(Memory):
    """As CuPy's and PyTorch's tensors export themselves; ended says that the capsule is no more."""
    ended = 0

    @property
    def shape(self):
        return self.array.shape

    def __dlpack_device__(self):
        return (2, self.device)

    def __dlpack__(self, stream=None):
        from filch.device_array import _Device, _Tensor
        item = self.array.itemsize
        self.shapes = (ctypes.c_int64 * self.array.ndim)(*self.array.shape)
        self.strides = (ctypes.c_int64 * self.array.ndim)(*(each // item
                                                            for each in self.array.strides))
        self.tensor = _Tensor(self.address.value - 16, _Device(2, self.device), self.array.ndim, 2,
                              8 * item, 1, self.shapes, self.strides, 16)

        def end(capsule):
            DLPackArray.ended += 1

        self.end = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(end)
        make = ctypes.pythonapi.PyCapsule_New
        make.restype = ctypes.py_object
        make.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return make(ctypes.addressof(self.tensor), b"dltensor",
                    ctypes.cast(self.end, ctypes.c_void_p))


class Gpus(unittest.TestCase):
    def setUp(self):
        self.runtime = filch.Runtime("cuda,host:1@any")
        self.addCleanup(self.runtime.close)

    def test_devices(self):
        self.assertEqual([each.name for each in self.runtime.devices],
                         ["cuda:0", "cuda:1", "host:0"])

    def test_arrays(self):
        for kind in CudaArray, DLPackArray:
            for order in "CF":
                expected = np.asarray(np.arange(30.0).reshape(6, 5), order=order)
                there = kind(self, 1, expected.copy(order))
                data = self.runtime.data(there, (4, 3), device=1 if kind is CudaArray else None)
                self.assertEqual((data.tiles, data.shape), ((2, 2), (6, 5)))
                graph = self.runtime.graph()

                def increase(x, y, z):  # on the core: in copies
                    x += 100
                    y += x.sum()
                    z.append(x)

                kept = []
                graph.add(increase, filch.readwrite(data[:, 0]), filch.readwrite(data[1, 1]), kept)
                graph.run()
                expected[:, :3] += 100
                expected[4:, 3:] += expected[:, :3].sum()
                kept[0][:] = -1         # nobody's
                np.testing.assert_array_equal(there.contents(), expected)
                with data.acquire("r", data[0, 1]) as part:
                    np.testing.assert_array_equal(part, expected[:4, 3:])
                with data.acquire("rw", data[0]) as part:
                    part += 1
                expected[:4] += 1
                np.testing.assert_array_equal(there.contents(), expected)

    def test_halos(self):
        """Of tiles in a GPU's memory a function on the core gets a copy, halo included."""
        for order in "CF":
            array = np.asarray(np.arange(42.0).reshape(7, 6), order=order)
            data = self.runtime.data(CudaArray(self, 1, array), (3, 2), device=1)
            graph = self.runtime.graph()
            seen = []
            for i in range(3):
                for j in range(3):
                    read = filch.read(data[i, j]).halo(1, 2, 3, 1)
                    graph.add(lambda x, at: seen.append((x, x[at])), read, read.inside)
            graph.run()
            found = {part[0, 0]: (x, part) for x, part in seen}
            for i in range(0, 7, 3):
                for j in range(0, 6, 2):
                    x, part = found[array[i, j]]
                    np.testing.assert_array_equal(x, array[max(i - 1, 0):i + 5,
                                                           max(j - 3, 0):j + 3])
                    np.testing.assert_array_equal(part, array[i:i + 3, j:j + 2])

    def test_batches(self):
        x = DLPackArray(self, 0, np.arange(1000.0))
        y = np.ones(1000)
        dx = self.runtime.data(x, 100)
        host = filch.lib.filch_kernel_find(b"axpy_f64").contents.host
        driver.fakecuda_register_filch(b"filch_axpy_f64", host, 2, True, 8)
        axpy = self.runtime.builtin("axpy_f64")
        batch = self.runtime.batch(1000, axpy, filch.read(dx),
                                   filch.readwrite(self.runtime.data(y, 100)),
                                   args=filch.c.filch_axpy_args(alpha=2))
        batch.run()
        np.testing.assert_array_equal(y, 1 + 2 * np.arange(1000))
        total = np.zeros(1000)
        batch = self.runtime.batch(1000, lambda lo, hi, x, total: np.copyto(total, x),
                                   filch.read(dx),
                                   filch.write(self.runtime.data(total, 100)))
        batch.run()
        np.testing.assert_array_equal(total, np.arange(1000))

    def test_memory_is_given_back(self):
        x = DLPackArray(self, 0, np.arange(10.0))
        before = DLPackArray.ended
        data = self.runtime.data(x)
        gc.collect()
        self.assertEqual(DLPackArray.ended, before)
        del data
        gc.collect()
        self.assertEqual(DLPackArray.ended, before + 1)

    def test_refusals(self):
        x = CudaArray(self, 0, np.arange(10.0))
        with self.assertRaisesRegex(ValueError, "cannot be told"):
            self.runtime.data(x)
        for device, status in (1, "INVALID_ARGUMENT"), (2, "UNSUPPORTED"), (9, "BAD_INDEX"):
            with self.assertRaises(filch.Error) as caught:
                self.runtime.data(x, device=device)
            self.assertEqual(caught.exception.status.name, status)
        part = CudaArray(self, 0, np.zeros((4, 7), "f4"))
        part.array = part.array[:, :6].view("c8")
        with self.assertRaisesRegex(ValueError, "a stride of 28 bytes"):
            self.runtime.data(part, device=0)

        class Host:
            def __dlpack__(self):
                raise AssertionError("asked for what it is not")

            def __dlpack_device__(self):
                return (1, 0)

        with self.assertRaisesRegex(TypeError, "numpy.from_dlpack"):
            self.runtime.data(Host())


if __name__ == "__main__":
    unittest.main()
