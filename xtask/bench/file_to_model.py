"""A file to a private logistic model by polars and diffprivlib. Arguments: file."""
import sys
import warnings

from diffprivlib.models import LogisticRegression
from table import read

warnings.simplefilter("ignore")
label, table = read(sys.argv[1])
LogisticRegression(epsilon=1, data_norm=table.shape[1] ** 0.5).fit(table, label)
