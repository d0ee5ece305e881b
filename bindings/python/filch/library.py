# SPDX-License-Identifier: Apache-2.0
"""The shared library. Every call releases the interpreter's lock (GIL) while it runs."""
import ctypes
import os

from . import c

NAME = "libfilch_system.so.0"


def find():
    """Returns the path that LIBFILCH names, else that of the library installed together with the
    package, else the name for the system's loader."""
    path = os.environ.get("LIBFILCH")
    if path:
        return path
    try:
        from .installed import FOLDER
    except ImportError:
        return NAME
    return os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), FOLDER, NAME))


def load():
    """Loads the library.

    libfilch_system.so uses the process's malloc: jemalloc in libfilch.so cannot always be loaded
    late.
    """
    path = find()
    try:
        # Global: compiled tasks call filch_csr_view() and other functions of the one library.
        library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    except OSError as error:
        raise ImportError(f"filch's library cannot be loaded: {error}; the variable LIBFILCH may "
                          f"name the path of {NAME}") from None
    try:
        c.declare(library)
    except AttributeError as error:
        raise ImportError(f"{path} is another version of filch: {error}") from None
    return library


lib = load()


class TextStream:
    """A stream of C's that collects text in memory; a context manager."""

    def __init__(self):
        self._text, self._bytes = ctypes.c_void_p(), ctypes.c_size_t()
        self._libc = libc = ctypes.CDLL(None, use_errno=True)
        libc.open_memstream.restype = ctypes.c_void_p
        libc.open_memstream.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        libc.fflush.argtypes = libc.fclose.argtypes = libc.free.argtypes = [ctypes.c_void_p]
        self.file = None

    def __enter__(self):
        self.file = self._libc.open_memstream(ctypes.addressof(self._text),
                                              ctypes.addressof(self._bytes))
        if self.file is None:
            raise OSError(ctypes.get_errno(), "open_memstream")
        return self

    def __exit__(self, kind, value, trace):
        file, self.file = self.file, None
        self._libc.fclose(file)
        self._libc.free(self._text)

    def text(self):
        """What was written so far."""
        if self._libc.fflush(self.file) != 0:
            raise OSError(ctypes.get_errno(), "fflush")
        return ctypes.string_at(self._text, self._bytes.value).decode(errors="replace")
