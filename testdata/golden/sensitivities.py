"""Writes sensitivities.json: sensitivities of every kind of question, from the formulas of docs/formulas.md (F1, D3) and nothing else.

Squares of the L2 sensitivity, then the L1 sensitivity where there is one, under add-remove, replace and label adjacency, for one
row a unit. Exact integers. Run: python3 sensitivities.py
"""
import json
from fractions import Fraction
from math import ceil, floor, isqrt
from pathlib import Path

COUNT = 2**20
ROW = 32767
SLOPE = 2048


def root_up(square):
    root = isqrt(square)
    return root if root * root == square else root + 1


def gram(diagonal, off_diagonal, cross, square):
    a2 = max(Fraction(diagonal) ** 2, Fraction(off_diagonal) ** 2 / 2)
    b2, c2 = cross**2, square**2
    leaves = a2 + b2 + c2
    moved = 4 * b2 if b2 >= 2 * a2 else 2 * a2 + 2 * b2 + Fraction(ceil(Fraction(b2**2) / a2), 2)
    replace, label = max(moved + c2, leaves), max(4 * b2 + c2, leaves)
    return [ceil(one) * ROW**4 for one in (leaves, replace, label)]


def gram_l1(columns, diagonal, off_diagonal, cross, square):
    products = ceil(ROW**2 * (diagonal + Fraction(off_diagonal * (columns - 1), 2)))
    with_label = cross * ROW * root_up(columns * ROW**2)
    leaves = products + with_label + square * ROW**2
    return [leaves, 2 * leaves, max(leaves, 2 * with_label + square * ROW**2)]


def marginals(classes, categorical, numeric):
    cell = COUNT**2 if classes else 0
    leaves = COUNT**2 + COUNT**2 * categorical + COUNT**2 * numeric // 2
    moved = 2 * (cell + COUNT**2 * categorical) + floor(Fraction(13, 10) * COUNT**2) * numeric
    return [leaves, max(leaves, moved), max(leaves, 2 * cell)]


S = (SLOPE * ROW) ** 2
CELL = ([COUNT**2, 2 * COUNT**2, 2 * COUNT**2], [COUNT, 2 * COUNT, 2 * COUNT])
CASES = {
    "class count": CELL,
    "score histogram": CELL,
    "correct count": ([2 * COUNT**2] * 3, None),
    "excess hits": ([COUNT**2 * 5 // 4, COUNT**2 * 17 // 4, COUNT**2 * 5 // 4], None),
    "confidence steps": ([COUNT**2, 4 * COUNT**2, COUNT**2], None),
    "residual steps": ([COUNT**2, 4 * COUNT**2, 4 * COUNT**2], None),
    "log loss": ([(5 * COUNT) ** 2] * 3, None),
    "squared error": ([4 * COUNT**2, 7 * COUNT**2, 7 * COUNT**2], None),
    "marginals, 2 classes": (marginals(1, 2, 3), None),
    "marginals, a number": (marginals(0, 0, 1), None),
    "marginals, numbers and categories": (marginals(0, 3, 4), None),
    # One of five numbers' bins each: all five leave, or all five change.
    "bins of numbers": ([5 * COUNT**2, 10 * COUNT**2, 5 * COUNT**2], None),
    "bins of the target": CELL,
    "target sum": ([ROW**2, 4 * ROW**2, 4 * ROW**2], [ROW, 2 * ROW, 2 * ROW]),
    "logistic gradient": ([S, 4 * S, S], None),
    "two-sided gradient": ([S, 4 * S, 4 * S], None),
    "gradient of Huber's loss": ([S, 4 * S, 4 * S], None),
    "clipped gradient, 1000": ([10**6, 4 * 10**6, 4 * 10**6], None),
    "clipped gradient, 60000000": ([36 * 10**14, 144 * 10**14, S], None),
    "softmax gradient": ([2 * S, 8 * S, 2 * S], None),
    "bounded softmax gradient": ([S, 4 * S, 4 * S], None),
}
for multipliers in [(29, 41, 20, 3), (1, 2, 3, 0), (7, 1, 0, 0), (0, 1, 5, 1), (3, 5, 4, 0), (9, 4, 12, 2)]:
    name = "gram " + " ".join(map(str, multipliers))
    CASES[name] = (gram(*multipliers), gram_l1(8, *multipliers))

cases = [{"query": name, "l2_square": [str(one) for one in l2], "l1": l1 and [str(one) for one in l1]} for name, (l2, l1) in CASES.items()]
Path(__file__).with_suffix(".json").write_text(json.dumps(cases, indent=1) + "\n")
