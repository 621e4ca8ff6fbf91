# SPDX-License-Identifier: BSD-3-Clause
"""numpy_test.py: NumPy, unmodified, with libheddle_lapack.so in front.

Run with LD_PRELOAD and HEDDLE_LAPACK set. 77: NumPy is not there, or brings a BLAS
of its own under other names (the wheels of PyPI), which nothing can stand in
front of.
"""
import ctypes
import sys

try:
    import numpy as np
except ImportError:
    print("skipped: no NumPy")
    sys.exit(77)

calls = ctypes.CDLL(None).heddle_lapack_calls
calls.restype = ctypes.c_ulong
rng = np.random.default_rng(1)


def close(x, y, what):
    n = len(y)
    error = np.linalg.norm(x - y) / np.linalg.norm(y)
    eps = np.finfo(x.dtype).eps
    assert error < 100 * n * eps, f"{what}: {error:g}"


def check(dtype, n):
    a = rng.standard_normal((n, n)).astype(dtype)
    if np.iscomplexobj(a):
        a += 1j * rng.standard_normal((n, n)).astype(a.real.dtype)
    a += n ** 0.5 * np.eye(n, dtype=dtype)
    s = a @ a.conj().T
    b = a @ np.ones((n, 3), dtype)
    before = calls()
    x = np.linalg.solve(a, b)
    close(a @ x, b, "solve")
    c = np.linalg.cholesky(s)
    close(c @ c.conj().T, s, "cholesky")
    q, r = np.linalg.qr(a)
    close(q @ r, a, "qr")
    close(q.conj().T @ q, np.eye(n, dtype=q.dtype), "q")
    close(np.linalg.inv(a) @ a, np.eye(n, dtype=dtype), "inv")
    return calls() - before


before = calls()
np.linalg.solve(np.eye(3), np.ones(3))
if calls() != before:
    sys.exit("a small call was taken over")
for kind in (np.float32, np.float64, np.complex64, np.complex128):
    taken = check(kind, 1500 if kind == np.float64 else 600)
    print(f"{kind.__name__}: {taken} calls taken over")
    if taken == 0 and kind == np.float32:
        print("skipped: this NumPy has a BLAS of its own")
        sys.exit(77)
    assert taken >= 5
