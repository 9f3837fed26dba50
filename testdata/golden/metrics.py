"""Golden figures of crates/reticent-fit/src/evaluate/public.rs: pip install numpy scikit-learn; python3 metrics.py"""
import numpy as np
from sklearn.metrics import accuracy_score, log_loss, roc_auc_score

scores = np.array([-2, -1, -0.5, 0.25, 0.25, 0.75, 1.5, 3])
classes = np.array([0, 1, 0, 0, 1, 1, 0, 1])
probability = 1 / (1 + np.exp(-scores))
print(accuracy_score(classes, scores > 0), roc_auc_score(classes, scores), repr(log_loss(classes, probability)))
