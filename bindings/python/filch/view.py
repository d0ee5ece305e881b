# SPDX-License-Identifier: Apache-2.0
"""Views: what a task's function sees of the data, as NumPy arrays.

On the host a tile lies in the array of its handle, and a view is a part of that array, which it
keeps alive. Where filch gives memory of its own (partial results of a reduction, the host's copy
of memory on a GPU) the function gets a copy, whose contents are put back behind the function: an
array that somebody keeps never points to memory that filch has freed.
"""
import ctypes

import numpy

from . import c

SIZE = ctypes.sizeof(c.filch_view)
NO_HALO = (0, 0, 0, 0)      # rows before and after, columns before and after, of NumPy's axes


def tiles_box(data, rows, cols):
    """First row, end of the rows, first column and end of the columns of ranges of tiles."""
    row_cuts, col_cuts = data.cuts
    return row_cuts[rows.start], row_cuts[rows.stop], col_cuts[cols.start], col_cuts[cols.stop]


def memory(view, dtype, is_transposed):
    """The memory of a view of C's, as a two-dimensional array; valid during the call."""
    bytes_ = ((view.cols - 1) * view.ld + view.rows) * dtype.itemsize
    whole = (ctypes.c_char * bytes_).from_address(view.ptr)
    array = numpy.ndarray((view.rows, view.cols), dtype, whole, 0,
                          (dtype.itemsize, view.ld * dtype.itemsize))
    return array.T if is_transposed else array


class View:
    """What a view of a task and of a batch have in common."""

    def __init__(self, data, mode):
        self.data = data            # a DataState
        self.is_read = mode != c.FILCH_WRITE
        self.is_written = mode != c.FILCH_READ
        self.mode = mode

    def _shaped(self, array):
        return array[:, 0] if self.data.ndim == 1 else array


class TileView(View):
    """View of a block of tiles: the same array in every call.

    is_block: the block is one access, and not one a tile. halo: of a block, within the data.
    """

    def __init__(self, data, mode, rows, cols, is_block=False, halo=NO_HALO):
        super().__init__(data, mode)
        self.is_block, self.halo = is_block, halo
        self.rows, self.cols = rows, cols          # ranges of tiles, of NumPy's axes
        row0, row1, col0, col1 = tiles_box(data, rows, cols)
        self.box = (row0 - halo[0], row1 + halo[1], col0 - halo[2], col1 + halo[3])
        self.address = self.ready = None
        if data.array is not None:
            row0, row1, col0, col1 = self.box
            part = data.array[row0:row1, col0:col1]
            self.address = part.__array_interface__["data"][0]
            self.ready = self._shaped(part)
            if not self.is_written:
                self.ready.flags.writeable = False

    def tiles(self):
        """Rows and columns of the tiles, of NumPy's axes, in the order of the accesses.

        Of a block the first, as it is one access.
        """
        if self.is_block:
            return [(self.rows.start, self.cols.start)]
        return [(row, col) for col in self.cols for row in self.rows]

    def array(self, views, first):
        """The array for a call, and whether it is a copy."""
        if ctypes.c_void_p.from_address(views + first * SIZE).value == self.address:
            return self.ready[...], False
        row0, row1, col0, col1 = self.box
        made = numpy.empty((row1 - row0, col1 - col0), self.data.dtype, "F")
        if self.is_read:
            self._copy(views, first, made, is_back=False)
        shaped = self._shaped(made)
        shaped.flags.writeable = self.is_written
        return shaped, self.is_written

    def put_back(self, views, first, array):
        """Copies what the function has written to a copy."""
        self._copy(views, first, array.reshape(array.shape[0], -1), is_back=True)

    def _copy(self, views, first, array, is_back):
        row_cuts, col_cuts = self.data.cuts
        for k, (row, col) in enumerate(self.tiles()):
            view = c.filch_view.from_address(views + (first + k) * SIZE)
            theirs = memory(view, self.data.dtype, self.data.is_transposed)
            row0, col0 = row_cuts[row] - self.box[0], col_cuts[col] - self.box[2]
            if self.is_block:
                row0 = col0 = 0
            ours = array[row0:row0 + theirs.shape[0], col0:col0 + theirs.shape[1]]
            if is_back:
                theirs[...] = ours
            else:
                ours[...] = theirs


class ItemView(View):
    """View of the elements that a chunk of a batch uses: another one in every call."""

    def array(self, views, first):
        """The array for a call, and whether it is a copy."""
        view = c.filch_view.from_address(views + first * SIZE)
        data = self.data
        if data.address is not None and view.ptr == data.address + (
                view.col * data.ld + view.row) * data.dtype.itemsize:
            rows = slice(view.row, view.row + view.rows)
            cols = slice(view.col, view.col + view.cols)
            part = data.array[cols, rows] if data.is_transposed else data.array[rows, cols]
            part = self._shaped(part)
            if not self.is_written:
                part.flags.writeable = False
            return part, False
        theirs = memory(view, data.dtype, data.is_transposed)
        made = theirs.copy() if self.is_read else numpy.empty_like(theirs)
        made = self._shaped(made)
        made.flags.writeable = self.is_written
        return made, self.is_written

    def put_back(self, views, first, array):
        """Copies what the function has written to a copy."""
        view = c.filch_view.from_address(views + first * SIZE)
        theirs = memory(view, self.data.dtype, self.data.is_transposed)
        theirs[...] = array.reshape(theirs.shape)
