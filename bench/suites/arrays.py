# SPDX-License-Identifier: Apache-2.0
# arrays.py N REPEAT: a product, a Cholesky factorization and a solve of order N by NumPy, which knows
# nothing of filch; each result checked against a vector. A line for each: its name, the seconds of the
# first call, and the median of REPEAT more.
import statistics
import sys
import time

import numpy as np

n, repeat = int(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(1)
a = rng.standard_normal((n, n))
b = rng.standard_normal((n, n))
x = rng.standard_normal(n)
definite = a + a.T
definite[np.diag_indices(n)] += 4 * np.sqrt(n)  # its norm is about 2 sqrt(2 n)


def off(got, wanted):
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


works = {
    "product": (lambda: a @ b, lambda c: off(c @ x, a @ (b @ x))),
    "cholesky": (lambda: np.linalg.cholesky(definite), lambda f: off(f @ (f.T @ x), definite @ x)),
    "solve": (lambda: np.linalg.solve(a, x), lambda y: off(a @ y, x)),
}
for name, (work, error) in works.items():
    seconds = []
    for _ in range(repeat + 1):
        start = time.perf_counter()
        result = work()
        seconds.append(time.perf_counter() - start)
    if not error(result) < 1e-8:
        sys.exit(f"{name}: the result is {error(result):.3g} off")
    print(name, f"{seconds[0]:.6f}", f"{statistics.median(seconds[1:]):.6f}")
