"""A file to a private logistic model by polars and diffprivlib. Arguments: file."""
import sys
import warnings

import polars as pl
from diffprivlib.models import LogisticRegression

warnings.simplefilter("ignore")
path = sys.argv[1]
if path.endswith(".csv"):
    with open(path) as lines:
        names = lines.readline().strip().split(",")
    frame = pl.read_csv(path, schema={name: pl.Int8 if name == "y" else pl.Float64 for name in names})
else:
    frame = pl.read_parquet(path)
label = frame["y"].to_numpy()
table = frame.drop("y").to_numpy()
del frame
LogisticRegression(epsilon=1, data_norm=table.shape[1] ** 0.5).fit(table, label)
