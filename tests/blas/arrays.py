# SPDX-License-Identifier: Apache-2.0
# NumPy and SciPy, unchanged: products, solves and factorizations, checked by their residuals.
import sys

try:
    import numpy as np
    import scipy.linalg as la
except ImportError as error:
    print(f"{error}: skipped (apt-get install python3-numpy python3-scipy)")
    sys.exit(77)

rng = np.random.default_rng(1)
n = int(sys.argv[1]) if len(sys.argv) > 1 else 150
worst = 0.0


def check(name, error, scale, unit):
    global worst
    ratio = float(np.abs(error).max()) / (scale * unit * n)
    worst = max(worst, ratio)
    if not ratio < 10:
        print(f"{name}: {ratio} units")
        sys.exit(1)


for kind in (np.float64, np.float32):
    unit = np.finfo(kind).eps
    a = rng.standard_normal((n, n)).astype(kind)
    b = rng.standard_normal((n, n // 2)).astype(kind)
    exact = np.einsum("ij,jk->ik", a.astype(np.longdouble), b.astype(np.longdouble))
    check("a @ b", a @ b - exact, np.sqrt(n), unit)
    check("a.T @ a", a.T @ a - np.einsum("ji,jk->ik", a.astype(float), a.astype(float)), n, unit)
    s = a @ a.T + n * np.eye(n, dtype=kind)
    lower = np.linalg.cholesky(s)
    check("cholesky", lower @ lower.T - s, n, unit)
    x = np.linalg.solve(a, b)
    check("solve", a @ x - b, np.abs(x).max() * np.sqrt(n), unit)
    f, pivots = la.lu_factor(a)
    check("lu_solve", a @ la.lu_solve((f, pivots), b) - b, np.abs(x).max() * np.sqrt(n), unit)
    q, r = la.qr(a)
    check("qr", q @ r - a, np.sqrt(n), unit)
    y = la.solve(s, b, assume_a="pos")
    check("solve pos", s @ y - b, n, unit)
    z = la.solve_triangular(lower, b, lower=True)
    check("solve_triangular", lower @ z - b, n, unit)
    try:
        np.linalg.cholesky(s - 3 * n * n * np.eye(n, dtype=kind))
        print("a matrix that is not positive definite has a factor")
        sys.exit(1)
    except np.linalg.LinAlgError:
        pass
    try:
        la.cholesky(np.full((n, n), np.nan, dtype=kind), check_finite=False)
    except np.linalg.LinAlgError:
        pass
print(f"numpy {np.__version__}: at most {worst:.3g} units off")
