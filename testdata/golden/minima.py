"""Writes minima.json: tolerance of the search and sensitivities of the answer of minima, from F134, F135 and F189 of docs/formulas.md alone.

Units: gradients 2^-73, ridge 2^-16, answers 2^-36. Exact integers. Run: python3 minima.py
"""
import json
from fractions import Fraction
from itertools import product
from math import ceil, isqrt
from pathlib import Path


def root_up(square):
    root = isqrt(square)
    return root + (root * root < square)


def case(classes, columns, l2, has_linear_term, rows_max, unit_rows):
    coordinates = columns * (1 if classes == 2 else classes)
    ridge = Fraction(l2, 2**16)
    # Slopes are wrong by 2 or 3 K units of 2^-58, rows are shorter than 2^15 units.
    error = rows_max * (2 if classes == 2 else 3 * classes) * 2**15
    # Curvature, N/2 and lambda both rounded up, times half a step of 2^-57 in each coordinate, in units of 2^-73.
    curvature = (rows_max // 2 + 1) * 2**15 + (l2 // 2 + 1)
    unit = error + curvature * root_up(coordinates)
    gradient = 5 * unit + (root_up(coordinates) * 2**32 if has_linear_term else 0)
    slack = ceil(Fraction(2 * gradient, 2**73) / ridge * 2**36)
    rest = slack + root_up(coordinates)
    lipschitz = 2**52 if classes == 2 else root_up(2 * 2**104)
    answers, taxicabs = {}, {}
    for adjacency, times in [("add-remove", 1), ("replace", 2), ("label", 1)]:
        moved = 0 if has_linear_term else ceil(Fraction(unit_rows * times * lipschitz, l2))
        answers[adjacency] = str(moved + rest)
        taxicabs[adjacency] = str((moved + rest) * root_up(coordinates))
    return {
        "classes": classes, "columns": columns, "l2": l2, "has_linear_term": has_linear_term, "rows_max": rows_max,
        "unit_rows": unit_rows, "ridge": float(ridge), "gradient_error": str(error), "tolerance": str(4 * unit), "answer": answers,
        "answer_l1": taxicabs,
    }


def main():
    sizes = product([(2, 9), (2, 10), (3, 9), (5, 7)], [64, 655_360, 655_361, 2**48], [False, True], [(1, 1), (1000, 3), (2**36, 1)])
    cases = [case(*size, l2, term, rows, unit) for size, l2, term, (rows, unit) in sizes]
    Path(__file__).with_suffix(".json").write_text(json.dumps(cases, indent=0) + "\n")


main()
