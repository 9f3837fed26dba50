"""Logistic regression from an array in memory. Arguments: rows, columns, repeats, names of the fits."""
import sys
import warnings

import numpy as np
from clock import repeat
from diffprivlib.models import LogisticRegression as Private
from sklearn.linear_model import LogisticRegression

warnings.simplefilter("ignore")
rows, columns, repeats = map(int, sys.argv[1:4])
random = np.random.default_rng(1)
table = random.random((rows, columns)) * 2 - 1
score = table @ (3 * (random.random(columns) - 0.5) / columns**0.5)
label = (random.random(rows) < 1 / (1 + np.exp(-score))).astype(int)
fits = {
    "lbfgs": ("scikit-learn lbfgs", lambda: LogisticRegression(solver="lbfgs").fit(table, label)),
    "newton": ("scikit-learn newton-cholesky", lambda: LogisticRegression(solver="newton-cholesky").fit(table, label)),
    "private": (
        "diffprivlib LogisticRegression",
        lambda: Private(epsilon=1, data_norm=columns**0.5).fit(table, label),
    ),
}
for name in sys.argv[4].split(","):
    repeat(*fits[name], repeats)
