"""Golden values of noise_aware_map.rs, public_design/optimal_covariance.rs and released_gradient.rs in crates/reticent-math/src.
pip install numpy scipy; python3 label_regression.py > label_regression.json"""
import json
import numpy as np
from scipy.linalg import sqrtm
from scipy.optimize import fsolve, minimize
from scipy.stats import multivariate_normal

n, noise, tau = 40, 1.5, 0.7
i = np.arange(n)
x = np.column_stack([np.ones(n), (i % 7) / 6, (i * i % 11) / 10])
longest = np.linalg.norm(x, axis=1).max()
d = x / longest
sigmoid = lambda z: 1 / (1 + np.exp(-z))
out = {}

# The least tr(M Sigma) is the square of the largest dual value (strong duality); here over p, by BFGS.
metric = np.linalg.inv(x.T @ x / 4 + np.diag([0.1, 1.0, 2.0]))
root = np.real(sqrtm(metric))
def dual(free):
    p = np.exp(free - free.max()); p /= p.sum()
    return -np.sqrt(np.maximum(np.linalg.eigvalsh(root @ (x.T * p) @ x @ root), 0)).sum()
out["optimal_covariance_trace"] = minimize(dual, np.zeros(n), method="BFGS", options={"gtol": 1e-10, "maxiter": 5000}).fun ** 2

# Prior: standardised effects, plus a wide prior on the mean score.
mean = x.mean(0)
spread = np.maximum(x.var(0), 0.02 * np.ptp(x, axis=0) ** 2)
spread[0] = 2e-6
precision = np.outer(mean, mean) / 9 + np.diag(spread) / tau**2

def logistic(theta, t):
    p = sigmoid(x @ theta); v = p * (1 - p)
    return t - d.T @ p, (d.T * v) @ x, (d.T * v) @ d + noise**2 * np.eye(3)

t = d.T @ (i * 5 % 8 < 4) + np.array([1.0, -0.5, 0.75])
def gradient(theta):
    r, j, c = logistic(theta, t)
    return j.T @ np.linalg.solve(c, r) - precision @ theta
theta = fsolve(gradient, np.zeros(3), xtol=1e-14)
out["logistic_mode"] = theta.tolist()
# Laplace's evidence is the density of the linearised release under the prior predictive distribution.
r, j, c = logistic(theta, t)
predictive = c + j @ np.linalg.solve(precision, j.T)
log_density = multivariate_normal(np.zeros(3), (predictive + predictive.T) / 2).logpdf(r + j @ theta)
out["logistic_log_evidence"] = log_density + 1.5 * np.log(2 * np.pi)

# Three classes, written with one parameter block per contrast.
u = np.array([[1, 1], [-1, 1], [0, -2]]) / np.sqrt([2, 6])
y = np.eye(3)[(i * 3 + i // 5) % 3]
ts = d.T @ y + np.array([[1.0, -0.5, 0.25], [0.5, 0.0, -1.0], [-0.25, 0.75, 1.5]])
big = np.kron(np.eye(2), precision)
def softmax_gradient(theta):
    z = x @ theta.reshape(2, 3).T @ u.T
    p = np.exp(z - z.max(1, keepdims=True)); p /= p.sum(1, keepdims=True)
    r = ((ts - d.T @ p) @ u).T.ravel()
    jac, cov = np.zeros((6, 6)), noise**2 * np.eye(6)
    for row in range(n):
        v = u.T @ (np.diag(p[row]) - np.outer(p[row], p[row])) @ u
        jac += np.kron(v, np.outer(d[row], x[row])); cov += np.kron(v, np.outer(d[row], d[row]))
    return jac.T @ np.linalg.solve(cov, r) - big @ theta
found = fsolve(softmax_gradient, np.zeros(6), xtol=1e-14)
out["multinomial_mode"] = (found.reshape(2, 3).T @ u.T).T.ravel().tolist()

# Gradient descent on the mean loss with the released sum in the place of the labels' part.
weights = np.zeros(3)
for _ in range(50):
    weights -= 0.5 / n * (x.T @ sigmoid(x @ weights) - longest * t + 0.4 * weights * [0, 1, 1])
out["descent"] = weights.tolist()

# A linear release with known variance of the labels and known prior scale.
number = np.sin(i)
tl = d.T @ number + np.array([0.3, -0.2, 0.1])
lp = np.outer(mean, mean) / 1 + np.diag(spread) / 0.16**2
jac, cov = d.T @ x, 0.25 * d.T @ d + noise**2 * np.eye(3)
post = np.linalg.inv(jac.T @ np.linalg.solve(cov, jac) + lp)
out["linear_mean"] = (post @ jac.T @ np.linalg.solve(cov, tl)).tolist()
out["linear_deviation"] = np.sqrt(np.diag(post)).tolist()
pred = cov + jac @ np.linalg.solve(lp, jac.T)
out["linear_log_evidence"] = multivariate_normal(np.zeros(3), (pred + pred.T) / 2).logpdf(tl) + 1.5 * np.log(2 * np.pi)
print(json.dumps(out, indent=1))
