"""Golden weights of crates/reticent-math/src/logistic_newton.rs, by scipy 1.x: pip install numpy scipy; python3 logistic_newton.py"""
import numpy as np
from scipy.optimize import minimize

x = np.column_stack([np.ones(8), np.arange(8) / 4 - 1])
y = np.array([0, 0, 1, 0, 1, 0, 1, 1.0])
objective = lambda w: np.logaddexp(0, x @ w).sum() - y @ (x @ w) + 0.05 * w @ w
gradient = lambda w: x.T @ (1 / (1 + np.exp(-x @ w)) - y) + 0.1 * w
print(minimize(objective, np.zeros(2), jac=gradient, method="BFGS", options={"gtol": 1e-12}).x.tolist())
