"""Golden values of `reticent-math/src/noise_aware_map/collinearity.rs`: what a prior that is wider where columns hardly differ adds to the covariance of a
normal posterior, as the difference of the two posteriors.

    python3 testdata/golden/collinearity.py > testdata/golden/collinearity.json
"""

import json

import numpy as np

ROWS, TAU = 40, 0.3
MEAN = np.array([0.2, 1.0, -0.8, 0.1, 0.05])


def features():
    """The intercept, two columns that are nearly the same, a rare flag, and another column."""
    row = np.arange(ROWS)
    first = (row % 7) / 6
    return np.stack([np.ones(ROWS), first, first + 0.1 * (row * row % 11) / 10, row == 3, (row * 3 % 5) / 4], axis=1)


table = features()
mean, variance = table.mean(0), table.var(0)
spread = np.maximum(variance, 0.02 * np.ptp(table, axis=0) ** 2)
spread[0] = 2e-6
prior = np.outer(mean, mean) / 9 + np.diag(spread) / TAU**2
information = 2 * table.T @ table

# Directions of the columns but for the constant one.
standardised = (table[:, 1:] - mean[1:]) / np.sqrt(variance[1:])
values, vectors = np.linalg.eigh(standardised.T @ standardised / ROWS)
kept = np.where(values < 0.5, np.maximum(2 * values, 1e-4), 1)
wider = np.outer(mean, mean) / 9
wider[0, 0] += spread[0] / TAU**2
root = np.diag(np.sqrt(spread[1:]))
wider[1:, 1:] += root @ vectors @ np.diag(kept) @ vectors.T @ root / TAU**2

pull = (information + prior) @ MEAN
covariance, wide = np.linalg.inv(information + prior), np.linalg.inv(information + wider)
apart = wide @ pull - MEAN
added = wide - covariance + np.outer(apart, apart)
print(json.dumps({"variances": values.tolist(), "added": added.tolist()}))
