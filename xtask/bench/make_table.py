"""Writes a generated table as CSV and as Parquet (zstd), with its schema. Arguments: rows, columns, folder."""
import sys

import numpy as np
import polars as pl

rows, columns, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
random = np.random.default_rng(1)
table = np.round(random.random((rows, columns)) * 2 - 1, 6)
score = table @ (3 * (random.random(columns) - 0.5) / columns**0.5)
names = [f"x{column}" for column in range(columns)]
frame = pl.DataFrame(table, schema=names)
frame = frame.with_columns(pl.Series("y", (random.random(rows) < 1 / (1 + np.exp(-score))).astype(np.int8)))
frame.write_csv(f"{folder}/table.csv", float_precision=6)
frame.write_parquet(f"{folder}/table.parquet", compression="zstd")
with open(f"{folder}/schema.toml", "w") as schema:
    schema.write('[privacy]\nunit = "row"\nadjacency = "add-remove"\n[target]\ncolumn = "y"\nclasses = ["0", "1"]\n')
    schema.write("[features]\n" + "".join(f"{name} = {{ bounds = [-1, 1] }}\n" for name in names))
