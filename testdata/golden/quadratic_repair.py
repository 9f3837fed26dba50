"""Golden minimisers of repaired quadratics (Zhang et al. 2012, section 6), by NumPy."""
import numpy as np

A = np.array([[4.0, 1.0, 0.5], [1.0, -1.0, 0.25], [0.5, 0.25, 2.0]])
b = np.array([1.0, 2.0, -0.5])


def minimise(ridge):
    values, vectors = np.linalg.eigh(A + ridge * np.eye(3))
    kept = values > 0
    basis = vectors[:, kept]
    return np.linalg.lstsq(basis.T @ (A + ridge * np.eye(3)) @ basis, basis.T @ b, rcond=None)[0] @ basis.T, int((~kept).sum())


for ridge in (0.0, 0.5, 3.0):
    weights, trimmed = minimise(ridge)
    print(ridge, trimmed, [repr(float(w)) for w in weights])
