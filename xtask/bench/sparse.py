"""One logistic gradient pass over a SciPy CSR matrix. Arguments: rows, columns, non-zeros a row, repeats."""
import sys

import numpy as np
import scipy.sparse as sparse
from clock import repeat

rows, columns, count, repeats = map(int, sys.argv[1:5])
random = np.random.default_rng(1)
place = random.integers(0, columns, rows * count, dtype=np.int32)
start = np.arange(0, rows * count + 1, count, dtype=np.int32)
label = random.random(rows) < 0.5
for name, kind in (("f32", np.float32), ("f64", np.float64)):
    table = sparse.csr_matrix((random.random(rows * count).astype(kind), place, start), (rows, columns))
    weight, of_kind = random.random(columns).astype(kind), label.astype(kind)
    back = table.T  # a view in the other order, made once

    def gradient():
        return back @ (1 / (1 + np.exp(-(table @ weight))) - of_kind)

    repeat(f"SciPy CSR {name}", gradient, repeats, bytes=rows * count * (table.data.itemsize + 4))
