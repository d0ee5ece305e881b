# SPDX-License-Identifier: Apache-2.0
"""The code of docs/python.md, beside the programs of its own."""
import ctypes
import sys
import tempfile
import types

import numpy as np

import filch


def begin(a, x, y):
    with filch.Runtime("host") as runtime:  # as FILCH_DEVICES would have it
        dx, dy = runtime.data(x, tile=250), runtime.data(y, tile=250)
        graph = runtime.graph()

        def axpy(a, x, y):
            y += a * x

        for i in range(len(dx)):
            graph.add(axpy, a, filch.read(dx[i]), filch.readwrite(dy[i]))
        graph.run()  # as often as wanted


def tasks(runtime, x):
    dx = runtime.data(x, tile=250)
    graph = runtime.graph()
    found = []
    graph.add(lambda x: found.append(x.sum()), filch.read(dx), name="sum", label="all of x",
              work=1000)
    graph.run()
    return found[0]


def failures(runtime, x):
    dx = runtime.data(x, tile=250)
    graph = runtime.graph()

    def root(x):
        if x.min() < 0:
            raise filch.Failure(3, f"a negative number: {x.min()}")
        np.sqrt(x, out=x)

    graph.add(root, filch.readwrite(dx[0]))
    try:
        graph.run()
    except filch.Error as error:  # TASK_FAILED: root on host:0: a negative number: -1.0
        print(error, error.code, repr(error.__cause__))
        return error.status == filch.Status.TASK_FAILED and error.code == 3
    return False


def batches(runtime, x, y):
    dx, dy = runtime.data(x, tile=250), runtime.data(y, tile=250)

    def smooth(lo, hi, x, y):  # x begins an element before, but at the edge
        first = lo - 1 if lo > 0 else 0
        for i in range(max(lo, 1), min(hi, 999)):
            y[i - lo] = (x[i - 1 - first] + x[i + 1 - first]) / 2

    batch = runtime.batch(1000, smooth, filch.read(dx).halo(1, 1), filch.readwrite(dy), grain=50)
    batch.run()


def halos(runtime, x, y):
    dx, dy = runtime.data(x, tile=250), runtime.data(y, tile=250)
    graph = runtime.graph()

    def smooth(x, inside, y):  # x[inside] is the tile
        for i in range(len(y)):
            k = inside.start + i
            y[i] = (x[max(k - 1, 0)] + x[min(k + 1, len(x) - 1)]) / 2

    for i in range(len(dx)):
        tile = filch.read(dx[i]).halo(1, 1)  # of matrices also columns: halo(1, 1, 2, 2)
        graph.add(smooth, tile, tile.inside, filch.write(dy[i]))
    graph.run()


def jobs(runtime, x):
    dx = runtime.data(x, tile=250)
    graph = runtime.open_graph()
    job = graph.submit()
    for i in range(len(dx)):  # tasks may run at once
        graph.add(lambda x: np.multiply(x, 2, out=x), filch.readwrite(dx[i]), name="twice")
    graph.close()
    job.wait()  # or job.wait(seconds), job.cancel()
    with dx.acquire("r", dx[1:3]) as held:  # behind the jobs so far
        assert held[0] == x[250]


def repeated(runtime, x):
    dx = runtime.data(x)
    change = np.ones(1)
    dchange = runtime.data(change)
    graph = runtime.graph()

    def halve(x, change):
        x /= 2
        change[0] = x.max()

    graph.add(halve, filch.readwrite(dx[0]), filch.write(dchange[0]))
    job = graph.repeat(lambda run, change: change[0] < 1e-3, change, max_runs=1000)
    job.wait()
    return job.info().runs


def received(runtime, x, start_receive):
    dx = runtime.data(x, tile=250)
    graph = runtime.graph()

    def receive(x):
        pending = filch.context().pend()
        start_receive(x, pending)  # another thread will find the request done

    for i in range(len(dx)):
        graph.add(receive, filch.write(dx[i]), pends=True)
    graph.run()


def done(pending, error=None):  # on the thread that found the request done
    pending.end(error)


def searched(runtime, x, wanted):
    dx = runtime.data(x, tile=250)
    graph, found = runtime.graph(), []

    def search(x, at):
        for k in np.flatnonzero(x == wanted):
            found.append(at + k)
            filch.context().finish()  # the rest of the job is skipped

    graph.add_many(filch.task(search, filch.read(dx[i]), 250 * i) for i in range(len(dx)))
    graph.run()
    return found


def in_other_tiles(runtime, matrix):
    a = runtime.data(matrix, (5, 10))
    columns = a.partition((10, 1))
    graph = runtime.graph()
    for i in range(2):
        graph.add(lambda x: np.multiply(x, 2, out=x), filch.readwrite(a[i, 0]), name="rows")
    graph.partition(a, columns)
    for j in range(10):
        graph.add(lambda x: np.cumsum(x, 0, out=x), filch.readwrite(columns[0, j]), name="columns")
    graph.unpartition(a, columns)
    graph.run()


def with_workspace(runtime, x):
    dx = runtime.data(x, tile=250)
    workspace = runtime.local(lambda device: np.empty(250))  # one a device

    def reverse(space, x):
        space[:] = x
        x[:] = space[::-1]

    graph = runtime.graph()
    for i in range(len(dx)):
        graph.add(reverse, workspace, filch.readwrite(dx[i]))
    graph.run()


def report(runtime, x, path):
    runtime.trace_start()
    graph = runtime.graph(label="one task")
    graph.add(np.sort, filch.read(runtime.data(x)[0]))
    job = graph.submit(label="sort")
    job.wait()
    print(job.report_text(graph))  # where the time went
    runtime.report_write(path)  # report.html: all jobs since trace_start()


def kernels(runtime, x, library):
    dx = runtime.data(x, tile=250)
    scale = runtime.kernel("scale", library.scale, args=ctypes.c_double, dtypes=["f8"])
    graph = runtime.graph()
    for i in range(len(dx)):
        graph.add(scale, filch.readwrite(dx[i]), args=0.5)
    graph.run()


def built_in(runtime):
    a, b, c = (np.asfortranarray(np.ones((100, 100))) for _ in range(3))
    da, db, dc = (runtime.data(each, tile=50) for each in (a, b, c))
    gemm = runtime.builtin("gemm_f64")
    product = filch.c.filch_gemm_args(alpha=1, beta=0)
    graph = runtime.graph()
    for i in range(2):
        for j in range(2):
            for k in range(2):
                product.beta = float(k > 0)
                graph.add(gemm, filch.read(da[i, k]), filch.read(db[k, j]),
                          filch.readwrite(dc[i, j]), args=product)
    graph.run()
    return (c == 100).all()


def sparse(runtime, vector, result):
    """Differences of neighbours, by a matrix such as scipy.sparse has."""
    n = len(vector)
    matrix = types.SimpleNamespace(
        indptr=np.arange(0, 2 * n, 2), indices=np.delete(np.arange(2 * n) // 2, [0, -1]),
        data=np.tile([-1.0, 1.0], n - 1), shape=(n - 1, n))
    graph = runtime.graph()

    def multiply(a, x, y):
        for i in range(len(y)):
            k = slice(a.indptr[i], a.indptr[i + 1])
            y[i] = a.data[k] @ x[a.indices[k]]

    x = runtime.data(vector)
    A = runtime.csr(matrix, blocks=24)
    y = runtime.data(result, A.heights)
    for i in range(len(A)):
        graph.add(multiply, filch.read(A[i]), filch.read(x[0]), filch.write(y[i]))
    graph.run()


def main():
    """tour.py [LIBRARY]"""
    x, y = np.arange(1000.0), np.zeros(1000)
    begin(2.0, x, y)
    assert (y == 2 * x).all()
    with filch.Runtime("host:2") as runtime:
        assert tasks(runtime, x) == 499500
        batches(runtime, x, y)
        assert (y[1:-1] == x[1:-1]).all()
        y[:] = 0
        halos(runtime, x, y)
        assert (y[1:-1] == x[1:-1]).all() and (y[0], y[-1]) == (0.5, 998.5)
        jobs(runtime, x)
        assert (x == 2 * np.arange(1000)).all()
        sparse(runtime, x, y[:-1])
        assert (y[:-1] == 2).all()
        assert built_in(runtime)
        assert repeated(runtime, np.ones(10)) == 10
        received(runtime, y, lambda part, pending: (part.fill(3), done(pending)))
        assert (y == 3).all()
        assert searched(runtime, x, x[700]) == [700]
        matrix = np.ones((10, 10))
        in_other_tiles(runtime, matrix)
        assert (matrix[-1] == 20).all()
        z = np.arange(1000)
        with_workspace(runtime, z)
        assert z[0] == 249 and z[999] == 750
        with tempfile.TemporaryDirectory() as folder:
            report(runtime, x, f"{folder}/report.html")
        if len(sys.argv) > 1:  # a library with the function scale
            kernels(runtime, x, ctypes.CDLL(sys.argv[1]))
            assert (x == np.arange(1000)).all()
        x[7] = -1
        assert failures(runtime, x)


if __name__ == "__main__":
    main()
