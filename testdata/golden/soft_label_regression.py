"""Golden minimisers for crates/reticent-math/src/soft_label_regression.rs (NumPy and SciPy; numbers are pasted into its tests)."""
import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

X = np.array([[0.5, r / 8 - 0.4] for r in range(8)])
soft = np.array([0.1, 0.3, 0.2, 0.55, 0.4, 0.7, 0.95, 0.8])

def objective(w, labels, ridge, outputs):
    z = X @ w.reshape(outputs, 2).T
    full = np.column_stack([np.zeros(len(X)), z]) if outputs == 1 else z
    return np.mean(logsumexp(full, axis=1) - (labels * z).sum(1)) + ridge / 2 * w @ w

def solve(labels, ridge, outputs):
    w = np.zeros(2 * outputs)
    for method in ("BFGS", "Nelder-Mead"):
        w = minimize(objective, w, (labels, ridge, outputs), method, options=dict(gtol=1e-12, xatol=1e-12, fatol=1e-16, maxiter=200000)).x
    return w

print("GOLDEN_BINARY", [float(f"{v:.9f}") for v in solve(soft[:, None], 0.01, 1)])
print("GOLDEN_SOFTMAX", [float(f"{v:.9f}") for v in solve(np.column_stack([soft / 2, 1 - soft, soft / 2]), 0.05, 3)])

# GOLDEN_MINIMUM of crates/reticent-curator/tests/it/party_votes.rs: four rows, three parties, penalty 2^14 / 2^20.
X = np.array([[0.5, 0.5], [0.5, -0.5], [0.5, 0.0], [0.5, 0.25]])
soft = np.array([[4096, 0, 2048, 1024], [4096, 1024, 0, 4096], [0, 0, 0, 0]]).mean(0) / 4096
print("GOLDEN_MINIMUM", [float(f"{v:.9f}") for v in solve(soft[:, None], 2.0**-6, 1)])
