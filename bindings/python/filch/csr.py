# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices in compressed rows as one handle, cut into row blocks."""
import ctypes
import operator

import numpy

from . import c
from .data import MODES, Hold, Tiles
from .library import lib
from .owner import State, pointer_to
from .view import NO_HALO, SIZE, View


def _integers(matrix, name):
    """An array of integers of 4 or 8 bytes."""
    array = numpy.require(getattr(matrix, name), requirements="CA")
    if array.ndim != 1 or array.dtype.kind not in "iu" or array.itemsize not in (4, 8):
        raise TypeError(f"{name} is an array of {array.dtype} with {array.ndim} axes, not of "
                        "integers of 4 or 8 bytes with one")
    return array.astype(array.dtype.newbyteorder("="), copy=False)


def _memory(address, dtype, count):
    """An array of memory of filch's, valid during the call."""
    if count == 0:
        return numpy.empty(0, dtype)
    whole = (ctypes.c_char * (count * dtype.itemsize)).from_address(address)
    return numpy.frombuffer(whole, dtype, count)


class Rows:
    """A row block: indptr begins with 0, indices are columns of the matrix, data the values.

    shape is (rows of the block, columns of the matrix), row the block's first row in the matrix.
    scipy.sparse.csr_matrix((a.data, a.indices, a.indptr), a.shape) is the block a for SciPy.
    """

    def __init__(self, indptr, indices, data, shape, row):
        self.indptr, self.indices, self.data, self.shape, self.row = (
            indptr, indices, data, shape, row)


class CsrState(State):
    """The handle, and the copies of blocks that Python's functions have seen."""

    is_transposed, is_writable = False, True

    def __init__(self, runtime, matrix, tile, blocks, pin, label):
        super().__init__(runtime)
        if getattr(matrix, "format", "csr") != "csr":
            raise TypeError(f"a sparse matrix of format {matrix.format}; tocsr() makes one in "
                            "compressed rows")
        indptr, indices = _integers(matrix, "indptr"), _integers(matrix, "indices")
        values = numpy.require(matrix.data, requirements="CA")
        if values.dtype.hasobject or values.dtype.itemsize == 0:
            raise TypeError(f"values of {values.dtype} are no data for a task")
        self.shape, self.nnz = tuple(map(operator.index, matrix.shape)), len(indices)
        if len(self.shape) != 2 or min(self.shape) < 0 or len(indptr) != self.shape[0] + 1 or values.shape != (self.nnz,):
            raise ValueError(f"a matrix of shape {self.shape} with {len(indptr)} pointers, "
                             f"{self.nnz} indices and values of shape {values.shape}")
        self.dtype, self.dtypes = values.dtype, (indptr.dtype, indices.dtype)
        desc = c.filch_csr_desc(
            rows=self.shape[0], cols=self.shape[1], nnz=self.nnz, pointers=indptr.ctypes.data,
            columns=indices.ctypes.data, values=values.ctypes.data, element=values.itemsize,
            pointer_bytes=indptr.itemsize, column_bytes=indices.itemsize,
            flags=pin and c.FILCH_DATA_PIN, label=label.encode() if label else None)
        self._cut(desc, tile, blocks)
        self.handle = pointer_to(runtime, lib.filch_csr_create, ctypes.byref(desc))
        self.blocks = [self._block(at) for at in range(self._count())]
        self.seen = {}                  # Rows by block
        self.is_changed = False         # a task or the host may have changed values

    @staticmethod
    def _cut(desc, tile, blocks):
        if blocks is not None:
            desc.blocks = operator.index(blocks)
            if not 1 <= operator.index(blocks) < 2 ** 32:
                raise ValueError(f"{blocks} blocks")
        if tile is not None and not numpy.iterable(tile):
            if operator.index(tile) < 1:
                raise ValueError(f"a block of {tile} rows")
            desc.tile_rows = operator.index(tile)
        elif tile is not None:
            sizes = [operator.index(each) for each in tile]
            if min(sizes, default=0) < 1:
                raise ValueError(f"blocks of {sizes} rows")
            desc.kept = (ctypes.c_uint64 * len(sizes))(*sizes)
            desc.row_cuts, desc.row_cut_count = ctypes.addressof(desc.kept), len(sizes)

    def _count(self):
        tiling = c.filch_tiling()
        self.check(lib.filch_data_tiles, self.handle, ctypes.byref(tiling))
        return tiling.rows

    def _block(self, at):
        block = c.filch_csr_block()
        self.check(lib.filch_csr_at, self.handle, at, ctypes.byref(block))
        return block

    def end(self):
        return lib.filch_data_destroy(self.handle) == c.FILCH_OK

    def rows_at(self, at, address):
        """Copies of a block's arrays, made once, from where the block is in the host's memory."""
        rows = self.seen.get(at)
        if rows is None:
            block = self.found(at, address)
            parts = [_memory(block.pointers, self.dtypes[0], block.rows + 1),
                     _memory(block.columns, self.dtypes[1], block.nnz),
                     _memory(block.values, self.dtype, block.nnz)]
            parts = [each.copy() for each in parts]
            for each in parts:
                each.flags.writeable = False
            rows = self.seen[at] = Rows(*parts, (block.rows, self.shape[1]), block.row)
        return rows

    def found(self, at, address):
        """The block with the addresses of its arrays."""
        view = c.filch_view.from_address(address)
        block = c.filch_csr_block()
        status = lib.filch_csr_view(None, ctypes.byref(view), ctypes.byref(block))
        if status != c.FILCH_OK or block.row != self.blocks[at].row:
            raise RuntimeError(f"no row block {at} at the view: status {status}")
        return block

    def values_at(self, at, address):
        """The values of a block in filch's memory, valid during the call."""
        return _memory(self.found(at, address).values, self.dtype, self.blocks[at].nnz)


class CsrView(View):
    """View of row blocks: of one in a task, of all for the host."""

    is_block, halo, ready = False, NO_HALO, None

    def __init__(self, data, mode, rows):
        super().__init__(data, mode)
        self.rows, self.cols = rows, range(1)

    def tiles(self):
        """Rows and columns of the tiles, in the order of the accesses."""
        return [(row, 0) for row in self.rows]

    def array(self, views, first):
        """The block for a call, and whether it is a copy to be put back.

        Memory of filch's may be gone when somebody still keeps the block: a function gets copies.
        """
        at, address = self.rows.start, views + first * SIZE
        rows = self.data.rows_at(at, address)
        values = rows.data
        if self.is_written or self.data.is_changed:
            values = self.data.values_at(at, address).copy()
            values.flags.writeable = self.is_written
        return Rows(rows.indptr, rows.indices, values, rows.shape, rows.row), self.is_written

    def put_back(self, views, first, rows):
        """Copies the values that the function has written."""
        self.data.values_at(self.rows.start, views + first * SIZE)[...] = rows.data


class RowBlocks(Tiles):
    """Row blocks of a matrix: one, for an access, or all."""

    def view(self, mode, is_block):
        """The view of a task, or of the host."""
        self.data.is_changed = self.data.is_changed or mode != c.FILCH_READ
        return CsrView(self.data, mode, self.rows)

    def block(self):
        raise TypeError("a task reads or changes single row blocks of a sparse matrix")

    def with_halo(self, before, after, cols_before, cols_after):
        raise TypeError("a row block of a sparse matrix has no halo")

    def inside(self):
        raise TypeError("a row block of a sparse matrix is no array")


class CsrHold(Hold):
    """The host's use of a matrix; see Csr.acquire()."""

    def _contents(self):
        self._array = numpy.empty(self._view.data.nnz, self._view.data.dtype)
        if self._view.is_read:
            self._each_tile(lambda ours, theirs: numpy.copyto(ours, theirs))
        return self._array

    def _each_tile(self, copy):
        data = self._view.data
        for at, col in self._view.tiles():
            record, block = c.filch_view(), data.blocks[at]
            data.check(lib.filch_data_view, data.handle, at, col, ctypes.byref(record))
            copy(self._array[block.entry:block.entry + block.nnz],
                 data.values_at(at, ctypes.addressof(record)))


class Csr:
    """A sparse matrix, made by Runtime.csr(). A[i] is row block i, for read() and readwrite().

    The handle ends with its last user, as that of Data.
    """

    def __init__(self, state):
        self._state = state
        self.shape, self.dtype = state.shape, state.dtype

    def __len__(self):
        return len(self._state.blocks)

    def __getitem__(self, at):
        at = operator.index(at)
        if not -len(self) <= at < len(self):
            raise IndexError(f"row block {at} of {len(self)}")
        at %= len(self)
        return RowBlocks(self._state, range(at, at + 1), range(1))

    def info(self, at):
        """The members of filch_csr_block of row block at; the arrays are None."""
        if not 0 <= operator.index(at) < len(self):
            raise IndexError(f"row block {at} of {len(self)}")
        return c.filch_csr_block.from_buffer_copy(self._state.blocks[at])

    @property
    def heights(self):
        """Rows of each block: the tile of Runtime.data() for vectors cut as the rows."""
        return [block.rows for block in self._state.blocks]

    def columns_of(self, at, vector):
        """The tiles of a vector, cut as the rows, with all that a product with a block needs.

        They are one access and one view of a Kernel. Raises IndexError for a block without entries.
        """
        info = self.info(at)
        return vector[info.block_lo:info.block_hi].block()

    def acquire(self, mode="r", seconds=None):
        """Lets the host use the values, behind the jobs so far; a context manager.

        What the with statement gives is an array of all values, in the order of the matrix: a
        copy, which is written back at the end unless the mode is "r".
        """
        if mode not in MODES:
            raise ValueError(f"the mode is '{mode}', not 'r', 'w' or 'rw'")
        return CsrHold(RowBlocks(self._state, range(len(self)), range(1)), MODES[mode], seconds)
