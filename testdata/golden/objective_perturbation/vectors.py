"""Reference numbers for objective and output perturbation, by NumPy and SciPy. Shares no code with the library.

`python3 vectors.py` writes vectors.json: profiles (exact formula for two classes, two-dimensional quadrature for more),
one-point equivalents in GDP, log determinants, sensitivities, and minimisers on small tables.
"""

import json
import pathlib

import numpy as np
from scipy import integrate, optimize, special, stats


def gaussian_delta(mu, epsilon):
    """Balle and Wang 2018, Theorem 8; by the integral of the definition where the difference would lose digits."""
    low, high = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
    value = stats.norm.cdf(low) - np.exp(epsilon + stats.norm.logcdf(high))
    if value > 1e-3:
        return value
    return integrate.quad(lambda z: stats.norm.pdf(z) * -np.expm1(epsilon - mu * z - mu * mu / 2), -low, -low + 12,
                          epsabs=0, epsrel=1e-12, limit=200)[0]


def log_determinant(classes, l2):
    return np.log1p(1 / (4 * l2)) if classes == 2 else (classes - 1) * np.log1p(1 / (classes * l2))


def unshifted(classes, noise, e):
    """E (1 - e^(e - T))_+ with T = r^2/2 + (r/sqrt 2)(N_0 + max of K-1 normals), by integrating over the sum's density."""
    if classes == 2:
        return gaussian_delta(1 / noise, e)
    r = np.sqrt(2) / noise
    k = classes - 1
    m = np.linspace(-9, 12, 20001)
    density = k * stats.norm.cdf(m) ** (k - 1) * stats.norm.pdf(m)
    n = np.linspace(-10, 10, 4001)
    normal = stats.norm.pdf(n)
    total = 0.0
    for value, weight in zip(m[::5], density[::5]):
        t = r * r / 2 + r / np.sqrt(2) * (value + n)
        inner = np.where(t > e, -np.expm1(np.minimum(e - t, 0)), 0)
        total += weight * np.trapezoid(inner * normal, n)
    return total * (m[5] - m[0])


def delta(classes, l2, noise, epsilon):
    return min(1.0, unshifted(classes, noise, max(0.0, epsilon - log_determinant(classes, l2))))


def one_point_mu(classes, l2, noise):
    target, c = unshifted(classes, noise, 0.0), log_determinant(classes, l2)
    return optimize.brentq(lambda mu: gaussian_delta(mu, c) - target, 0.2 / noise, 20, xtol=1e-13)


def minimiser(rows, labels, classes, l2, centre, b):
    """argmin of the logistic or softmax loss + ridge to the centre + b · theta, rows after division by 32768."""
    x = np.array(rows) / 32768
    d = x.shape[1]
    outputs = 1 if classes == 2 else classes

    def objective(flat):
        weights = flat.reshape(outputs, d)
        z = x @ weights.T
        if outputs == 1:
            z = z[:, 0]
            loss = np.sum(np.logaddexp(0, z) - labels * z)
        else:
            loss = np.sum(special.logsumexp(z, axis=1) - z[np.arange(len(labels)), labels])
        return loss + l2 / 2 * np.sum((flat - centre) ** 2) + b @ flat

    def gradient(flat):
        weights = flat.reshape(outputs, d)
        z = x @ weights.T
        if outputs == 1:
            slope = (special.expit(z[:, 0]) - labels)[:, None]
        else:
            slope = special.softmax(z, axis=1)
            slope[np.arange(len(labels)), labels] -= 1
        return (slope.T @ x).ravel() + l2 * (flat - centre) + b

    flat = np.array(centre, dtype=float)
    # Newton by finite differences of the gradient is enough for tables this small; polished by root finding.
    flat = optimize.minimize(objective, flat, jac=gradient, method="BFGS", options={"gtol": 1e-9}).x
    flat = optimize.root(gradient, flat, tol=1e-15, method="hybr").x
    assert np.linalg.norm(gradient(flat)) < 1e-11
    return flat


def main():
    rng = np.random.default_rng(20261121)
    profiles, equivalents = [], []
    # The first five: two classes with rows of norm R, in units of R.
    for norm, l2, sigma, epsilon in [(1, 1, 1, 1), (1, 10, 3, 0.5), (1, 100, 5, 1), (1, 0.5, 4, 1), (2, 50, 8, 1)]:
        profiles.append((2, l2 / norm**2, sigma / norm, epsilon))
    profiles += [(2, 5, 10, 0.02), (2, 5, 10, 0.2), (2, 25, 10, 0), (3, 5, 5, 0), (3, 5, 5, 0.3), (3, 5, 5, 1),
                 (10, 50, 20, 0), (10, 50, 20, 0.2), (10, 50, 20, 0.4), (4, 1, 1.5, 1), (4, 1, 1.5, 3)]
    profiles = [dict(classes=k, l2=l, noise=s, epsilon=e, delta=float(delta(k, l, s, e)),
                     log_determinant=float(log_determinant(k, l))) for k, l, s, e in profiles]
    for k, l2, s in [(2, 5, 10), (2, 25, 10), (2, 100, 10), (2, 5, 2), (2, 1, 1), (2, 200, 100), (2, 0.1, 10),
                     (3, 20, 10), (3, 100, 50), (10, 50, 20), (10, 500, 100)]:
        equivalents.append(dict(classes=k, l2=l2, noise=s, one_point_mu=float(one_point_mu(k, l2, s))))
    minimisers = []
    for classes in (2, 3):
        rows = rng.integers(-12000, 12000, size=(12, 3)).tolist()
        for row in rows:
            row[0] = 16384
        labels = rng.integers(0, classes, size=12)
        size = 3 * (1 if classes == 2 else classes)
        centre = rng.integers(-8, 8, size=size) / 8
        b = rng.integers(-2000, 2000, size=size) / 1024
        l2 = 0.75
        theta = minimiser(rows, labels, classes, l2, centre, b)
        minimisers.append(dict(classes=classes, l2=l2, rows=rows, labels=labels.tolist(), centre=centre.tolist(),
                               b=b.tolist(), theta=theta.tolist()))
    out = dict(profiles=profiles, equivalents=equivalents, minimisers=minimisers)
    path = pathlib.Path(__file__).with_name("vectors.json")
    path.write_text(json.dumps(out, indent=1) + "\n")


if __name__ == "__main__":
    main()
