"""Golden values of `reticent-math/src/noise_aware_map/effect_sizes.rs`: sizes of effects under a release of three classes that is linear in the parameters.

    python3 testdata/golden/effect_sizes.py > testdata/golden/effect_sizes.json
"""

import json

import numpy as np

ROWS, TAU, NOISE, STEPS = 40, 0.3, 0.5, 10

row = np.arange(ROWS)
table = np.stack([np.ones(ROWS), (row % 7) / 6, row == 3, (row * 3 % 5) / 4], axis=1)
mean, variance = table.mean(0), table.var(0)
spread = np.maximum(variance, 0.02 * np.ptp(table, axis=0) ** 2)
spread[0] = 2e-6

# Two contrasts, the first parameters of all columns before the second; what is released of each is X^T X theta.
design = np.kron(np.eye(2), table.T @ table)
truth = np.array([0.3, 2.0, -0.5, 0.1, -0.2, -1.5, 0.0, 0.05])
observed = design @ truth + NOISE * np.cos(np.arange(8))

sizes = np.ones(4)
for _ in range(STEPS):
    prior = np.outer(mean, mean) / 9 + np.diag(spread / (sizes * TAU**2))
    covariance = np.linalg.inv(design.T @ design / NOISE**2 + np.kron(np.eye(2), prior))
    effects = covariance @ design.T @ observed / NOISE**2
    squares = (effects**2 + np.diag(covariance)).reshape(2, 4).sum(0) * spread / TAU**2
    sizes[1:] = (1 + squares[1:]) / 3

print(json.dumps({"observed": observed.tolist(), "sizes": sizes.tolist()}))
