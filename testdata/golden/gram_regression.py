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


def direction_error(g, q, z, v, prior, prior_max, found, deviation):
    # The integral over the coefficient; points even in a hyperbolic sine.
    end = np.arcsinh(4 * (np.sqrt(prior_max) + abs(found)) / deviation)
    u = np.linspace(-end, end, 161)
    w = found + deviation * np.sinh(u)
    sizes = np.geomspace(prior, prior_max, 8)
    density = np.exp(-0.5 * w[:, None] ** 2 / sizes).sum(1)
    density = density * np.exp(-0.5 * (z - g * w) ** 2 / (v + q * w**2)) / np.sqrt(v + q * w**2)
    middle = (g / q + z * w / v) / np.sqrt(1 / q + w**2 / v)
    density = density / (1 + np.exp(-1.702 * middle)) * np.cosh(u)
    return np.average((w - found) ** 2, weights=density)


def posterior(
    gram, cross, square, s, s_t, s_r, rows=None, mean=None, unit=1.0, features_square=1.0, free_intercept=False, target_mean=None, target_variance=None
):
    d = len(cross)
    # All slopes together explain some .03 of a target in [-1, 1], and around a start a tenth of it.
    median = (0.03 if mean is None else 0.003) / features_square
    if target_mean:
        # Uniform targets have a variance of 1/3: precisions 3 and 1/u².
        expected = target_mean[0] / target_mean[1] ** 2 / (3 + 1 / target_mean[1] ** 2)
        # Means of the columns, as far as the matrix shows them; what it does not show is noise of the mean.
        centre = np.broadcast_to(target_mean[2], d - 1)
        skewed = np.sqrt(features_square / (d - 1)) * features_square / (1 + features_square) / 2
        share = centre**2 / (centre**2 + skewed**2 + (s / gram[0, 0]) ** 2)
        of = np.append(1.0, np.clip(share * gram[0, 1:] / gram[0, 0], -3 * centre, 3 * centre))
        unseen = centre**2 * (1 - share)
        left = 0.0 if mean is None else np.sqrt(unseen @ (np.array(mean)[1:] / unit) ** 2)
        if mean is not None and abs(of @ np.array(mean) / unit - target_mean[0]) > 3 * np.hypot(target_mean[1], left):
            # A start whose mean is another is believed for its slopes alone.
            mean, free_intercept = [unit * expected, *mean[1:]], True
        if mean is None or free_intercept:
            target_mean = (expected, *target_mean[1:])
    if target_variance and mean is not None:
        # Least upper bound of the variance of y - p, by Cauchy and Schwarz.
        of_start = np.sqrt(features_square * np.mean((np.array(mean)[1:] / unit) ** 2))
        times = (np.sqrt(target_variance[0]) + of_start) ** 2 / target_variance[0]
        target_variance = (times * target_variance[0], times * target_variance[1])
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
    entries = unknown_entries(values, g, s)
    for _ in range(2):
        v = s_t**2 + s**2 * (1 + 1 / d) * m2 + squares @ entries + sigma2 * g
        c = prior * g**2 + v
        w, pv = prior * g * z / c, prior * v / c
        squares = w**2 + pv
    log_p = -0.5 * (np.log(c) + z**2 / c).sum(-1) - 0.5 * (np.log(grid[:, None] / median) / 3.0) ** 2
    explained = rows * sigma2[..., 0] + (g * (w**2 + pv)).sum(-1)
    spread = r_var + 2 * rows * sigma2[..., 0] ** 2 + (2 * g**2 * pv * (2 * w**2 + pv)).sum(-1)
    spread = spread + np.einsum("ijk,kl,ijl->ij", squares, entries, squares)
    log_p = log_p - 0.5 * ((r - explained) ** 2 / spread + np.log(spread))
    explained_max = max(r, 0) + 2 * np.sqrt(r_var)
    if target_variance:
        scale = rows / (1 + features_square)
        limit, error = scale * target_variance[0], scale * np.hypot(target_variance[1], 0.5 * target_variance[0])
        log_p = log_p - 0.5 * (np.maximum((g * squares).sum(-1) - limit, 0) / error) ** 2
        explained_max = min(explained_max, limit + error)
    p = np.exp(log_p - log_p.max())
    p /= p.sum()
    e_w = np.einsum("ij,ijk->k", p, w)
    cov = np.einsum("ij,ijk,ijl->kl", p, w, w) - np.outer(e_w, e_w) + np.diag(np.einsum("ij,ijk->k", p, np.broadcast_to(pv, w.shape)))
    others = s_t**2 + s**2 * (1 + 1 / d) * m2 + squares @ (entries - np.diag(np.diag(entries))) + sigma2 * g
    others = np.einsum("ij,ijk->k", p, others)
    like = np.exp(np.einsum("ij,ijk->k", p, np.log(np.broadcast_to(prior, w.shape))))
    stands_out = np.maximum(1 - 2 * np.diag(entries) / g**2, 0)
    largest = like + stands_out * (1 - own) * np.maximum(explained_max / g - like, 0)
    doubt = np.zeros(d)
    for k in range(d):
        error = direction_error(
            g[k], entries[k, k], z[k], others[k], like[k], largest[k], e_w[k], np.sqrt(cov[k, k])
        )
        doubt[k] = max(error - cov[k, k], 0)
    weights, covariance = mean + vectors @ e_w, vectors @ cov @ vectors.T
    if target_mean:
        # Weights and the mean, jointly: the mean is the intercept but for the sampling error. Observed with noise, by precisions.
        sampling = (p.sum(0) @ sigma2[0, :, 0]) * unit**2 / rows
        noise = (target_mean[1] * unit) ** 2 + unseen @ (weights[1:] ** 2 + np.diag(covariance)[1:])
        # No line is quite right: a twentieth of the residuals' deviation, whatever the number of rows.
        noise += 0.05**2 * rows * sampling
        with_mean = covariance @ of - sampling * np.eye(d)[0]
        joint = np.block([[covariance, with_mean[:, None]], [with_mean[None, :], np.array([[of @ with_mean]])]])
        assert np.linalg.eigvalsh(joint)[0] > 0
        precision = np.linalg.inv(joint)
        pull = precision @ np.append(weights, of @ weights)
        precision[d, d] += 1 / noise
        pull[d] += target_mean[0] * unit / noise
        weights, covariance = np.linalg.solve(precision, pull)[:d], np.linalg.inv(precision)[:d, :d]
    covariance = covariance + vectors * doubt @ vectors.T
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
        "target mean": posterior(gram, cross, square, 9.0, 6.0, 20.0, **scaled, target_mean=(0.2, 0.4, 0.1)),
        "columns not centred": posterior(
            gram, cross, square, 9.0, 6.0, 20.0, **scaled, target_mean=(0.2, 0.05, [0.1, 0.7, 0.0])
        ),
        "target variance": posterior(gram, cross, square, 9.0, 6.0, 20.0, **scaled, target_variance=(0.02, 0.01)),
        "wrong start": posterior(
            gram, cross, square, 9.0, 6.0, 20.0, unit=2.0, features_square=3.0, mean=[-3.0, 0.4, -0.6, 0.2],
            target_mean=(0.2, 0.1, 0.1), target_variance=(0.02, 0.01),
        ),
    }
    document = {"upper": upper.tolist(), "cross": cross.tolist(), "square": square, "cases": cases}
    pathlib.Path(__file__).with_suffix(".json").write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(document))
