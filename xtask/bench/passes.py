"""One gradient pass, logistic or of ten classes, and one matrix of products in NumPy. Arguments: rows, columns, repeats, parts."""
import sys

import numpy as np
from clock import repeat

rows, columns, repeats = map(int, sys.argv[1:4])
parts = sys.argv[4].split(",")
random = np.random.default_rng(1)
single = random.random((rows, columns), dtype=np.float32) * 2 - 1
label = (random.random(rows) < 0.5).astype(np.float32)
weight = (random.random(columns, dtype=np.float32) - 0.5) / np.float32(columns**0.5)


def gradient(table, label, weight, bound=None):
    slope = 1 / (1 + np.exp(-(table @ weight))) - label
    if bound is not None:  # each row's gradient is shortened to the bound, its norm computed beforehand
        slope *= np.minimum(1, bound / np.maximum(np.abs(slope) * norm, 1e-12))
    return slope @ table


def softmax_gradient(table, label, weights):
    score = table @ weights
    share = np.exp(score - score.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    share[np.arange(rows), label] -= 1
    return share.T @ table


for name, kind in (("f32", np.float32), ("f64", np.float64)):
    table, of_kind, w = single.astype(kind, copy=False), label.astype(kind), weight.astype(kind)
    size = table.itemsize * rows * columns
    if "gradient" in parts:
        norm = np.sqrt(np.einsum("ij,ij->i", table, table))
        repeat(f"NumPy {name}", lambda: gradient(table, of_kind, w), repeats, bytes=size)
        repeat(f"NumPy {name}, each row clipped", lambda: gradient(table, of_kind, w, 0.1), repeats, bytes=size)
    if "classes" in parts:
        classes = random.integers(10, size=rows)
        weights = (random.random((columns, 10)).astype(kind) - kind(0.5)) / kind(columns**0.5)
        repeat(f"NumPy {name}", lambda: softmax_gradient(table, classes, weights), repeats, bytes=size)
    if "products" in parts:
        repeat(f"NumPy {name}", lambda: (table.T @ table, of_kind @ table), max(3, repeats // 4), bytes=size)
    del table
