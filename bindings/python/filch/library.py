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
