# SPDX-License-Identifier: Apache-2.0
"""Data handles: arrays cut into tiles, and accesses to them."""
import ctypes
import operator

import numpy

from . import c
from .device_array import DeviceArray, is_transposed
from .error import Error
from .library import lib
from .owner import State, pointer_to
from .view import NO_HALO, ItemView, TileView, memory, tiles_box

MODES = {"r": c.FILCH_READ, "w": c.FILCH_WRITE, "rw": c.FILCH_READWRITE}


def _axis(length, tile, name):
    """Size of the tiles along an axis, or their sizes; and where they begin and end."""
    if tile is None:
        return 0, None, [0, length]
    if numpy.iterable(tile):
        sizes = [operator.index(each) for each in tile]
        if min(sizes, default=0) < 1 or sum(sizes) != length:
            raise ValueError(f"tiles of {sizes} {name} do not make {length}")
        cuts = numpy.cumsum([0] + sizes).tolist()
        return 0, (ctypes.c_uint64 * len(sizes))(*sizes), cuts
    tile = operator.index(tile)
    if not 1 <= tile <= length:
        raise ValueError(f"a tile of {tile} {name} of {length}")
    return tile, None, list(range(0, length, tile)) + [length]


def _host_array(array):
    """Checks an array of NumPy's; returns it with two axes, and whether rows are contiguous."""
    if array.dtype.hasobject:
        raise TypeError(f"an array of {array.dtype}: Python's objects are no data for a task")
    if array.dtype.itemsize == 0 or array.size == 0:
        raise ValueError("an array without elements")
    if array.ndim not in (1, 2):
        raise ValueError(f"an array of {array.ndim} axes; reshape it to 1 or 2")
    if not array.flags.aligned:
        raise ValueError("the array's elements are not aligned")
    array = numpy.asarray(array)
    if array.ndim == 1:
        if array.strides[0] != array.itemsize and len(array) > 1:
            raise ValueError(f"the array is not contiguous: its stride is {array.strides[0]} "
                             f"bytes, its elements have {array.itemsize}")
        array = array[:, None]
    return array, is_transposed(array.shape, array.strides, array.itemsize)


class Contents:
    """What a temporary has in the place of an array."""

    def __init__(self, shape, dtype):
        shape = shape if numpy.iterable(shape) else (shape,)
        self.shape, self.dtype = tuple(operator.index(n) for n in shape), numpy.dtype(dtype)
        if self.dtype.hasobject or self.dtype.itemsize == 0:
            raise TypeError(f"a temporary of {self.dtype}: no data for a task")
        if len(self.shape) not in (1, 2) or min(self.shape) < 1:
            raise ValueError(f"a temporary of shape {self.shape}")


class DataState(State):
    """The handle, the array behind it, and the tiling, in NumPy's axes."""

    def __init__(self, runtime, source, tile, flags, label, device):
        super().__init__(runtime)
        self.source = source            # keeps the memory alive
        self.device_index = 0
        if isinstance(source, numpy.ndarray):
            if device is not None:
                raise ValueError("an array in the host's memory has no device")
            self.array, self.is_transposed = _host_array(source)
            shape, strides = self.array.shape, self.array.strides
            self.dtype, self.ndim = self.array.dtype, source.ndim
            self.address = self.array.__array_interface__["data"][0]
            self.is_writable = self.array.flags.writeable
        elif isinstance(source, Contents):
            self.array = self.address = None
            self.is_transposed, self.is_writable = False, True
            self.dtype, self.ndim = source.dtype, len(source.shape)
            shape = source.shape + (1,) * (2 - self.ndim)
            strides = (self.dtype.itemsize, shape[0] * self.dtype.itemsize)
        else:
            array = DeviceArray(source)
            self.source, self.array = array, None
            shape, strides, self.is_transposed = array.layout()
            self.dtype, self.ndim, self.address = array.dtype, array.ndim, array.address
            self.is_writable = array.is_writable
            self.device_index = array.device_index(runtime, device)
            flags |= c.FILCH_DATA_ON_DEVICE
        self.shape = shape
        self._create(shape, strides, tile, flags, label)
        if self.array is None:
            self.address = None         # not the host's

    def _create(self, shape, strides, tile, flags, label):
        desc = self._tiling(tile, label)
        across = int(self.is_transposed)                # NumPy's axis along C's rows
        self.ld = strides[1 - across] // self.dtype.itemsize if shape[1 - across] > 1 else 0
        self.ld = self.ld or shape[across]
        desc.ptr, desc.element, desc.ld = self.address, self.dtype.itemsize, self.ld
        desc.rows, desc.cols = shape[across], shape[1 - across]
        desc.flags, desc.device = flags, self.device_index
        self.handle = pointer_to(self.runtime, lib.filch_data_create, ctypes.byref(desc))

    def _tiling(self, tile, label):
        """A filch_data_desc with the cuts and the label."""
        tiles = tile if isinstance(tile, tuple) else (tile, None if self.ndim == 1 else tile)
        if len(tiles) != 2:
            raise ValueError(f"tiles {tile} for an array of {self.ndim} axes")
        rows = _axis(self.shape[0], tiles[0], "rows")
        cols = _axis(self.shape[1], tiles[1], "columns")
        self.cuts = (rows[2], cols[2])
        height, width = (cols, rows) if self.is_transposed else (rows, cols)
        desc = c.filch_data_desc(tile_rows=height[0], tile_cols=width[0],
                                 label=label.encode() if label else None)
        desc.kept = height[1], width[1]
        for sizes, name in (height[1], "row"), (width[1], "col"):
            if sizes is not None:
                setattr(desc, f"{name}_cuts", ctypes.addressof(sizes))
                setattr(desc, f"{name}_cut_count", len(sizes))
        return desc

    def end(self):
        return lib.filch_data_destroy(self.handle) == c.FILCH_OK


class PartitionState(DataState):
    """A handle that cuts the array of another into other tiles."""

    def __init__(self, parent, tile, label):
        State.__init__(self, parent.runtime)
        self.parent = parent            # its handle stays as long
        for name in ("source", "array", "is_transposed", "shape", "dtype", "ndim", "address", "ld",
                     "is_writable", "device_index"):
            setattr(self, name, getattr(parent, name))
        desc, made = self._tiling(tile, label), ctypes.c_void_p()
        self.check(lib.filch_data_partition, parent.handle, ctypes.byref(desc), ctypes.byref(made))
        self.handle = made.value


class Data:
    """A handle made by Runtime.data() or temporary(). x[i], x[i, j], x[i0:i1, j] are its tiles.

    array is None for a temporary. The handle ends with its last user: graphs, batches and jobs keep
    it, and the array.
    """

    def __init__(self, state, source):
        self._state = state
        self.array = None if isinstance(source, Contents) else source
        self.shape, self.dtype = source.shape, state.dtype

    @property
    def tiles(self):
        """Number of tiles along each axis."""
        return tuple(len(cuts) - 1 for cuts in self._state.cuts)[:self._state.ndim]

    def __len__(self):
        return len(self._state.cuts[0]) - 1

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        if len(key) > self._state.ndim:
            raise IndexError(f"{len(key)} indices for data of {self._state.ndim} axes")
        ranges = []
        for axis in range(2):
            count = len(self._state.cuts[axis]) - 1
            index = key[axis] if axis < len(key) else slice(None)
            if isinstance(index, slice):
                chosen = range(*index.indices(count))
                if chosen.step != 1 or not chosen:
                    raise IndexError(f"tiles {index} of {count}: none, or with a step")
            else:
                index = operator.index(index)
                if not -count <= index < count:
                    raise IndexError(f"tile {index} of {count} along axis {axis}")
                index %= count
                chosen = range(index, index + 1)
            ranges.append(chosen)
        return Tiles(self._state, *ranges)

    def block(self):
        """All tiles as one access and one view of a Kernel, in the place of one a tile."""
        return self[:].block()

    def acquire(self, mode="r", tiles=None, seconds=None):
        """Lets the host touch the tiles, behind the jobs so far; a context manager.

        Needed for managed data, for data on a device, and among running jobs. What the with
        statement gives is the array of the tiles: a part of the array, or of data on a device a
        copy, which is written back at the end unless the mode is "r".
        """
        tiles = tiles if tiles is not None else self[:]
        if mode not in MODES:
            raise ValueError(f"the mode is '{mode}', not 'r', 'w' or 'rw'")
        if not isinstance(tiles, Tiles) or tiles.data is not self._state:
            raise TypeError("tiles are x[i], x[i, j] or x[i0:i1] of the data x")
        return Hold(tiles, MODES[mode], seconds)

    def partition(self, tile=None, *, label=None):
        """Makes a handle of the same array in other tiles, for Graph.partition()."""
        self._state.runtime.sweep()
        return Data(PartitionState(self._state, tile, label), self._state.source)

    def reduction(self, init, combine):
        """Defines reduce() accesses, by two Kernels without arguments: filch_data_reduction()."""
        self._state.codelets = (init, combine)
        self._state.check(lib.filch_data_reduction, self._state.handle, init.handle, combine.handle)


class Tiles:
    """A block of tiles of a handle."""

    def __init__(self, data, rows, cols, is_block=False):
        self.data, self.rows, self.cols, self.is_block = data, rows, cols, is_block
        self.halo = NO_HALO

    def block(self):
        """The tiles as one access and one view of a Kernel, in the place of one a tile."""
        return Tiles(self.data, self.rows, self.cols, True)

    def with_halo(self, before, after, cols_before, cols_after):
        """The tiles and so many rows and columns around them, cut to the data, as a block."""
        given = {"before": before, "after": after, "cols_before": cols_before,
                 "cols_after": cols_after}
        for name, value in given.items():
            given[name] = operator.index(value)
            if given[name] < 0:
                raise ValueError(f"{name} is {value}")
        if self.data.ndim == 1 and (given["cols_before"] or given["cols_after"]):
            raise ValueError("a halo with columns, around data of one axis")
        made = self.block()
        row0, row1, col0, col1 = tiles_box(self.data, self.rows, self.cols)
        height, width = self.data.shape
        made.halo = tuple(map(min, given.values(), (row0, height - row1, col0, width - col1)))
        return made

    def inside(self):
        """Where the tiles are in an array with the halo: a slice an axis."""
        row0, row1, col0, col1 = tiles_box(self.data, self.rows, self.cols)
        above, left = self.halo[0], self.halo[2]
        rows, cols = slice(above, above + row1 - row0), slice(left, left + col1 - col0)
        return rows if self.data.ndim == 1 else (rows, cols)

    def view(self, mode, is_block):
        """The view of a task, or of the host. is_block: the tiles are one access."""
        return TileView(self.data, mode, self.rows, self.cols, is_block,
                        self.halo if is_block else NO_HALO)


class Access:
    """How a task or a batch uses data; made by read(), write() and so on."""

    def __init__(self, of, mode):
        if not isinstance(of, (Data, Tiles)):
            raise TypeError(f"an access is to data or tiles, not to {type(of).__name__}")
        self.tiles = of if isinstance(of, Tiles) else of[:]
        self.data = self.tiles.data
        self.mode = mode
        self.items = None
        if isinstance(of, Data):        # in a batch: an element an item
            self.items = c.filch_batch_access(data=self.data.handle, mode=mode,
                                              map=c.FILCH_MAP_AFFINE, scale=1)
        if mode != c.FILCH_READ and not self.data.is_writable:
            raise ValueError("the array is read-only, and can only be read")
        if self.tiles.is_block and mode not in MODES.values():
            raise ValueError("tiles commute and are reduced to one by one, not as a block")

    def _mapped(self, **members):
        if self.items is None:
            raise TypeError("an access to tiles; an access of a batch is to the data as a whole")
        if self.mode != c.FILCH_READ and "scale" not in members:
            raise ValueError("only a read access sees the whole data")
        made = self._copy()
        made.items = c.filch_batch_access.from_buffer_copy(self.items)
        for name, value in members.items():
            value = operator.index(value)
            if value < 0:
                raise ValueError(f"{name} is {value}")
            setattr(made.items, name, value)
        return made

    def _copy(self):
        made = Access.__new__(Access)
        made.__dict__.update(self.__dict__)
        return made

    def scale(self, elements, offset=0):
        """In a batch: elements an item, and the element of item 0."""
        return self._mapped(scale=elements, offset=offset)

    def halo(self, before, after, cols_before=0, cols_after=0):
        """Elements around what is read, cut to the data.

        Of tiles: rows before and after, and columns before and after. The tiles and the halo are
        one access and one array, also of a Kernel; inside tells where the tiles are in the array.
        In a batch, where an access is to the data as a whole: neighbours of the items.
        """
        if self.mode != c.FILCH_READ:
            raise ValueError("only a read access has a halo")
        if self.items is None:
            made = self._copy()
            made.tiles = self.tiles.with_halo(before, after, cols_before, cols_after)
            return made
        if cols_before or cols_after:
            raise ValueError("a halo in a batch is of elements before and after, without columns")
        return self._mapped(before=before, after=after)

    @property
    def inside(self):
        """Where the tiles are in the array that a function gets: array[access.inside] is the tiles.

        A slice; of data with two axes, a slice an axis. Without a halo the tiles are all of it.
        """
        return self.tiles.inside()

    def whole(self):
        """In a batch: every chunk sees the whole."""
        return self._mapped(map=c.FILCH_MAP_WHOLE, offset=0, **{"before": 0, "after": 0})

    def view(self, is_block):
        """The view of a task. is_block: the tiles are one access where their mode allows it."""
        is_block = self.tiles.is_block or (is_block and self.mode in MODES.values())
        return self.tiles.view(self.mode, is_block)

    def item_view(self):
        """The view of a batch."""
        return ItemView(self.data, self.mode)


def read(of):
    """Reads tiles (in a batch: data)."""
    return Access(of, c.FILCH_READ)


def write(of):
    """Overwrites every element; the old contents need not be present."""
    return Access(of, c.FILCH_WRITE)


def readwrite(of):
    """Reads and writes."""
    return Access(of, c.FILCH_READWRITE)


def commute(of):
    """Reads and writes, in any order of tasks."""
    return Access(of, c.FILCH_COMMUTE)


def reduce(of):
    """Adds to the tiles; Data.reduction() defines the addition."""
    return Access(of, c.FILCH_REDUCE)


class Scratch:
    """Private memory of a call."""

    def __init__(self, count, dtype="f8"):
        self.bytes = operator.index(count) * numpy.dtype(dtype).itemsize
        if self.bytes < 1:
            raise ValueError("scratch memory of no bytes")


def scratch(count, dtype="f8"):
    """Private memory of a call, for a Kernel; a Python function uses numpy.empty()."""
    return Scratch(count, dtype)


class Hold:
    """The host's use of tiles; see Data.acquire()."""

    _cell, _released = ctypes.c_void_p(), ()    # until __enter__, which makes its own

    def __init__(self, tiles, mode, seconds):
        self._view = tiles.view(mode, False)
        if self._view.is_written and not tiles.data.is_writable:
            raise ValueError("the array is read-only, and can only be read")
        self._seconds = seconds
        self._array = None

    def __enter__(self):
        if self._is_held():
            raise Error(c.FILCH_WRONG_STATE, "the tiles are held already")
        self._cell, self._released = ctypes.c_void_p(), []
        try:
            return self._acquire()
        except BaseException:
            self._release()
            raise

    def __exit__(self, kind, value, trace):
        try:
            if self._array is not None and self._view.is_written and kind is None:
                self._each_tile(lambda ours, theirs: numpy.copyto(theirs, ours))
        finally:
            self._release()

    def __del__(self):                  # a signal came before or in __exit__
        try:
            self._release()
        except Error:                   # the runtime has ended, or a GPU is lost
            pass

    def _is_held(self):
        return self._cell.value is not None and not self._released

    def _release(self):
        if self._is_held():
            # extend() releases and notes that in one step: no signal comes between.
            self._view.data.runtime.use(self._released.extend,
                                        map(lib.filch_hold_release, [self._cell]))
            self._view.data.runtime.raise_for(self._released[0])

    def _acquire(self):
        data, view = self._view.data, self._view
        rows, cols = (view.cols, view.rows) if data.is_transposed else (view.rows, view.cols)
        block = c.filch_tiles(row0=rows.start, row1=rows.stop, col0=cols.start, col1=cols.stop)
        status = data.runtime.wait(
            lambda seconds: lib.filch_data_acquire_tiles(
                data.handle, ctypes.byref(block), view.mode, seconds, ctypes.byref(self._cell)),
            self._seconds)
        if status == c.FILCH_TIMEOUT:
            raise Error(status, "jobs use the tiles still")
        data.runtime.raise_for(status)
        return self._contents()

    def _contents(self):
        data, view = self._view.data, self._view
        if view.ready is not None:
            return view.ready
        self._array = numpy.empty((view.box[1] - view.box[0], view.box[3] - view.box[2]),
                                  data.dtype, "F")
        if view.is_read:
            self._each_tile(lambda ours, theirs: numpy.copyto(ours, theirs))
        return self._array[:, 0] if data.ndim == 1 else self._array

    def _each_tile(self, copy):
        data, view = self._view.data, self._view
        row_cuts, col_cuts = data.cuts
        for row, col in view.tiles():
            record = c.filch_view()
            at = (col, row) if data.is_transposed else (row, col)
            data.check(lib.filch_data_view, data.handle, *at, ctypes.byref(record))
            theirs = memory(record, data.dtype, data.is_transposed)
            row0, col0 = row_cuts[row] - view.box[0], col_cuts[col] - view.box[2]
            copy(self._array[row0:row0 + theirs.shape[0], col0:col0 + theirs.shape[1]], theirs)
