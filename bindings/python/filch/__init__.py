# SPDX-License-Identifier: Apache-2.0
"""filch for Python: task graphs and divisible loops over cores and GPUs, on NumPy arrays.

    with filch.Runtime("host") as runtime:
        x = runtime.data(array, tile=250)
        graph = runtime.graph()
        for i in range(len(x)):
            graph.add(function, filch.readwrite(x[i]))
        graph.run()

filch.c is the C interface, for ctypes, and filch.lib the library.
"""
from . import c
from .batch import Batch
from .call import Context, context
from .csr import Csr, Rows
from .data import Access, Data, Hold, Tiles, commute, read, readwrite, reduce, scratch, write
from .error import THROWN, Error, Failure, Status
from .graph import Graph, Task, task
from .job import Job
from .kernel import Kernel
from .library import lib
from .local import Local
from .pending import Pending
from .runtime import Device, Runtime, version

__all__ = [
    "Access", "Batch", "Context", "Csr", "Data", "Device", "Error", "Failure", "Graph", "Hold",
    "Job", "Kernel", "Local", "Pending", "Rows", "Runtime", "Status", "THROWN", "Task", "Tiles",
    "c", "commute", "context", "lib", "read", "readwrite", "reduce", "scratch", "task", "version", "write",
]
