"""Golden values of `reticent-math/src/noise_aware_map/scale_of_scores.rs`: the exact posterior of a logistic model given one noisy
linear statistic of its labels, by sums over a grid of its three weights and over the scales of the prior. And of `nearest_weights.rs`: the
weights whose probabilities are nearest to the mean probabilities of that posterior, by Newton's method.

    python3 testdata/golden/scale_of_scores.py > testdata/golden/scale_of_scores.json
"""

import json
import math

import numpy as np

ROWS = 400
NOISE = 6.0
EFFECTS = np.array([0.5, 3.0, -2.0])


def features():
    """Columns that no random generator is needed for: the intercept and two of about unit variance."""
    row = np.arange(ROWS)
    return np.stack([np.ones(ROWS), 1.4 * np.sin(row * 1.7), 1.4 * np.cos(row * 2.9 + 0.3)], axis=1)


def precision(table, tau):
    mean, spread = table.mean(0), table.var(0)
    spread[0] = 2e-6
    return np.outer(mean, mean) / 9 + np.diag(spread) / tau**2


def log_likelihood(table, rows, released, weights):
    """Of the released statistic, at many weights."""
    probability = 1 / (1 + np.exp(-np.clip(weights @ table.T, -40, 40)))
    residual = released - probability @ rows
    products = np.einsum("ni,nj->nij", rows, rows).reshape(ROWS, -1)
    covariance = (probability * (1 - probability)) @ products
    covariance = covariance.reshape(-1, 3, 3) + NOISE**2 * np.eye(3)
    misfit = np.einsum("gi,gi->g", residual, np.linalg.solve(covariance, residual[..., None])[..., 0])
    return -0.5 * misfit - 0.5 * np.linalg.slogdet(covariance)[1]


def log_prior(table, weights):
    """Of the weights, over the eleven scales that are tried."""
    typical = 1.5 / math.sqrt(2)
    parts = []
    for tau in 0.01 * 2.0 ** np.arange(11):
        matrix = precision(table, tau)
        square = np.einsum("gi,ij,gj->g", weights, matrix, weights)
        parts.append(0.5 * np.linalg.slogdet(matrix)[1] - 0.5 * square - 0.5 * math.log(tau / typical) ** 2)
    best = np.max(parts, axis=0)
    return best + np.log(np.sum(np.exp(np.array(parts) - best), axis=0))


def nearest(table, target):
    """Weights that minimise the cross entropy to these probabilities."""
    weights = np.zeros(3)
    for _ in range(100):
        probability = 1 / (1 + np.exp(-table @ weights))
        curvature = (table * (probability * (1 - probability))[:, None]).T @ table
        weights = weights - np.linalg.solve(curvature, table.T @ (probability - target))
    return weights


def main():
    table = features()
    rows = table / np.sqrt((table**2).sum(1)).max()
    released = rows.T @ (1 / (1 + np.exp(-table @ EFFECTS)))
    axes = [np.linspace(-8, 12, 61), np.linspace(-4, 40, 111), np.linspace(-32, 6, 96)]
    total, first, second, predicted, best = 0.0, np.zeros(3), np.zeros((3, 3)), np.zeros(ROWS), None
    for intercept in axes[0]:
        grid = np.stack(np.meshgrid([intercept], axes[1], axes[2], indexing="ij"), axis=-1).reshape(-1, 3)
        log_density = log_likelihood(table, rows, released, grid) + log_prior(table, grid)
        best = log_density.max() if best is None else best
        density = np.exp(log_density - best)
        predicted += density @ (1 / (1 + np.exp(-np.clip(grid @ table.T, -40, 40))))
        total += density.sum()
        first += density @ grid
        second += np.einsum("g,gi,gj->ij", density, grid, grid)
    mean = first / total
    covariance = second / total - np.outer(mean, mean)
    print(json.dumps({"noise": NOISE, "released": list(released), "mean": list(mean), "covariance": covariance.tolist(), "nearest": list(nearest(table, predicted / total))}))


main()
