"""Golden posterior for `gram_regression.rs`: an independent NumPy version of the formulas in its header, on a fixed release.

Run with NumPy 2; prints the release and the posterior as Rust constants and writes gram_regression.json.
"""
import json
import pathlib

import numpy as np

D, ROWS = 4, 300


def release():
    i = np.arange(ROWS)[:, None]
    x = np.cos(0.7 * i * (1 + np.arange(D)) + np.arange(D) ** 2) * np.array([1.0, 0.8, 0.5, 0.2])
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1))[:, None]
    y = np.clip(x @ np.array([0.5, -0.4, 0.2, 0.0]) + 0.1 * np.sin(1.3 * i[:, 0] ** 1.5), -1, 1)
    # Not random: the noise of a release is any number.
    e = np.sin(3.0 * np.arange(D * D).reshape(D, D))
    gram = x.T @ x + 6.0 * (e + e.T)
    return gram, x.T @ y + 5.0 * np.cos(2.0 * np.arange(D)), float(y @ y) + 3.0


def isotonic(values):
    out = np.array(values)
    # Min-max formula instead of pooling.
    return np.array([
        max(min(out[a : b + 1].mean() for b in range(k, len(out))) for a in range(k + 1)) for k in range(len(out))
    ])


def known_trace(noisy, deviation):
    if noisy > 20 * deviation:
        return max(noisy, 1.0)
    last = np.log(max(max(noisy, 0) + 10 * deviation, 1.0))
    t = np.exp(np.linspace(0, last, int(np.ceil(50 * last)) + 1))
    # A prior 1/T is a uniform one of ln T.
    return np.average(t, weights=np.exp(-0.5 * ((t - noisy) / deviation) ** 2))


def unknown_entries(values, g, s):
    d = len(values)
    # Stieltjes transform at l_k - i s; a direction meets itself.
    transform = (1 / (values[:, None] - values[None, :] - 1j * s)).mean(1)
    known = np.clip((1 - d * s**2 * abs(transform) ** 2 - 0.25) / (0.75 - 1 / d), 0, 1)
    pairs = np.maximum(known[:, None], known[None, :])
    entries = s**2 * pairs
    np.fill_diagonal(entries, 1 / (1 / (2 * s**2) + 1 / g**2))
    return entries


def posterior(
    gram, cross, square, s, s_t, s_r, rows=None, mean=None, unit=1.0, features_square=1.0, free_intercept=False, target_mean=None
):
    d = len(cross)
    # All slopes together explain some .03 of a target in [-1, 1], and around a start a tenth of it.
    median = (0.03 if mean is None else 0.003) / features_square
    if target_mean:
        # Uniform targets have a variance of 1/3: precisions 3 and 1/u².
        target_mean = (target_mean[0] / target_mean[1] ** 2 / (3 + 1 / target_mean[1] ** 2), target_mean[1])
    if mean is None:
        mean = np.eye(d)[0] * unit * (target_mean[0] if target_mean else 0.0)
    mean = np.array(mean)
    values, vectors = np.linalg.eigh(gram)
    trace = known_trace(np.trace(gram), np.sqrt(2 * d) * s)
    gap = values[:, None] - values[None, :]
    xi = values - 2 * s * s * (gap / (gap**2 + s * s)).sum(1)
    g = isotonic(np.maximum(xi, 0))
    g = g * trace / g.sum() if g.sum() > 0 else np.full(d, trace / d)
    rows = trace if rows is None else rows
    z = vectors.T @ (cross - gram @ mean)
    m2 = mean @ mean
    r = square - 2 * mean @ cross + mean @ gram @ mean
    r_var = s_r**2 + 4 * s_t**2 * m2 + 2 * s**2 * m2**2
    grid = np.geomspace(1e-7, 1e3, 49)
    tau2 = unit**2 * grid[:, None, None]
    sigma2 = np.geomspace(1e-6, 1.0, 49)[None, :, None]
    own = vectors[0] ** 4 if free_intercept else np.zeros(d)
    prior = tau2 * (1 - own) + own * unit**2 / 3
    squares = prior * np.ones_like(sigma2)
    for _ in range(2):
        v = s_t**2 + s**2 * (1 + 1 / d) * m2 + squares @ unknown_entries(values, g, s) + sigma2 * g
        c = prior * g**2 + v
        w, pv = prior * g * z / c, prior * v / c
        squares = w**2 + pv
    log_p = -0.5 * (np.log(c) + z**2 / c).sum(-1) - 0.5 * (np.log(grid[:, None] / median) / 3.0) ** 2
    explained = rows * sigma2[..., 0] + (g * (w**2 + pv)).sum(-1)
    spread = r_var + 2 * rows * sigma2[..., 0] ** 2 + (2 * g**2 * pv * (2 * w**2 + pv)).sum(-1)
    spread = spread + 2 * s**2 * (w**2 + pv).sum(-1) ** 2
    log_p = log_p - 0.5 * ((r - explained) ** 2 / spread + np.log(spread))
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    e_w = np.einsum("ij,ijk->k", p, w)
    cov = np.einsum("ij,ijk,ijl->kl", p, w, w) - np.outer(e_w, e_w) + np.diag(np.einsum("ij,ijk->k", p, np.broadcast_to(pv, w.shape)))
    weights, covariance = mean + vectors @ e_w, vectors @ cov @ vectors.T
    if target_mean:
        # Weights and the mean, jointly: the mean is the intercept but for the sampling error. Observed with noise, by precisions.
        sampling = (p.sum(0) @ sigma2[0, :, 0]) * unit**2 / rows
        with_mean = covariance[:, 0] - sampling * np.eye(d)[0]
        joint = np.block([[covariance, with_mean[:, None]], [with_mean[None, :], with_mean[:1, None]]])
        assert np.linalg.eigvalsh(joint)[0] > 0
        precision = np.linalg.inv(joint)
        pull = precision @ np.append(weights, weights[0])
        precision[d, d] += 1 / (target_mean[1] * unit) ** 2
        pull[d] += target_mean[0] / target_mean[1] ** 2 / unit
        weights, covariance = np.linalg.solve(precision, pull)[:d], np.linalg.inv(precision)[:d, :d]
    return {
        "weights": weights.tolist(),
        "covariance": covariance.ravel().tolist(),
        "prior_variance": float(p.sum(1) @ tau2[:, 0, 0]),
        "residual_variance": float(p.sum(0) @ sigma2[0, :, 0]),
        "spectrum": g.tolist(),
    }


if __name__ == "__main__":
    gram, cross, square = release()
    upper = gram[np.triu_indices(D)]
    scaled = {"unit": 2.0, "features_square": 3.0, "free_intercept": True}
    cases = {
        "quiet": posterior(gram, cross, square, 0.05, 0.05, 0.05),
        "noisy": posterior(gram, cross, square, 9.0, 6.0, 20.0),
        "centred": posterior(gram, cross, square, 9.0, 6.0, 20.0, rows=280.0, mean=[0.4, -0.3, 0.0, 0.1]),
        "intercept": posterior(gram, cross, square, 9.0, 6.0, 20.0, **scaled),
        "target mean": posterior(gram, cross, square, 9.0, 6.0, 20.0, **scaled, target_mean=(0.2, 0.4)),
    }
    document = {"upper": upper.tolist(), "cross": cross.tolist(), "square": square, "cases": cases}
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document))
