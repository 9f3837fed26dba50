"""Writes generated features with event ids, their labels in another order, and the schema of both sides. Arguments: rows, columns, folder."""
import sys

import numpy as np
import polars as pl

rows, columns, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random = np.random.default_rng(2)
table = np.round(random.random((rows, columns)) * 2 - 1, 6)
score = table @ (12 * (random.random(columns) - 0.5) / columns**0.5)
names = [f"x{column}" for column in range(columns)]
events = pl.Series("event", random.permutation(rows)).cast(pl.String)
labels = pl.Series("y", (random.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int8))
features = pl.DataFrame(table, schema=names).with_columns(("e" + events).alias("event"))
features.write_csv(f"{folder}/features.csv", float_precision=6)
pl.DataFrame([("e" + events).alias("event"), labels]).sample(fraction=1, shuffle=True, seed=1).write_csv(f"{folder}/labels.csv")
target = '[privacy]\nunit = "row"\nadjacency = "label"\n[target]\ncolumn = "y"\nclasses = ["0", "1"]\n[features]\n'
with open(f"{folder}/labels.toml", "w") as schema:
    schema.write(target)
with open(f"{folder}/features.toml", "w") as schema:
    schema.write(target + "".join(f"{name} = {{ bounds = [-1, 1] }}\n" for name in names))
