"""A file and a model of ours to a CSV file of predictions by polars and scikit-learn. Arguments: file, model, where predictions go."""
import json
import sys

import numpy as np
import polars as pl
from sklearn.linear_model import LogisticRegression
from table import read

path, model, out = sys.argv[1:4]
outputs = json.load(open(model))["outputs"]
_, table = read(path)
fitted = LogisticRegression()
fitted.classes_ = np.array(["0", "1"])
fitted.intercept_ = np.array([outputs[0]["intercept"]])
fitted.coef_ = np.array([[coefficient["coefficient"] for coefficient in outputs[0]["coefficients"]]])
probabilities = fitted.predict_proba(table)
predicted = fitted.classes_[probabilities.argmax(axis=1)]
columns = {"predicted_class": predicted, "probability_0": probabilities[:, 0], "probability_1": probabilities[:, 1]}
pl.DataFrame(columns).write_csv(out)
