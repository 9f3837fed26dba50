"""Writes likely_part.json: where rows are likely when noise hides how wide they lie (G12 of docs/formulas.md), by adding up every run of
bins for every bin, in exact rationals but for the exponential. Run: python3 likely_part.py
"""
import json
import random
from math import exp, log
from pathlib import Path


def likely(bins, noise, rows):
    """Chance of each bin, the run that is taken, and what it holds."""
    count = len(bins)
    harmonic = sum(1 / length for length in range(1, count + 1))
    runs = []
    for first in range(count):
        for end in range(first + 1, count + 1):
            length = end - first
            prior = (0.5 / length / harmonic + (0.5 if length == count else 0)) / (count - length + 1)
            dense = rows / length
            # Logarithm of the density of the bins under the run over that under no rows at all, in the run.
            gain = sum(bins[bin] ** 2 - (bins[bin] - dense) ** 2 for bin in range(first, end)) / (2 * noise**2)
            runs.append((first, end, log(prior) + gain))
    largest = max(weight for _, _, weight in runs)
    chances = [
        sum(exp(weight - largest) / (end - first) for first, end, weight in runs if first <= bin < end)
        for bin in range(count)
    ]
    total = sum(chances)
    for length in range(1, count + 1):
        best = max(range(count - length + 1), key=lambda first: sum(chances[first:first + length]))
        if sum(chances[best:best + length]) >= 0.95 * total:
            return best, length, sum(bins[best:best + length])


def case(shape, rows, noise, seed):
    draw = random.Random(seed)
    bins = [round(rows * share + draw.gauss(0, noise), 3) for share in shape]
    first, length, held = likely(bins, noise, rows)
    doubt = 2 * noise * length**0.5 / rows
    half = 1.25 * length / len(bins)
    believed = held >= (0.98 - doubt) * rows and half < 2 / 3
    part = [(2 * first + length) / len(bins) - 1, half] if believed else [0.0, 1.0]
    return {"bins": bins, "rows": rows, "noise": noise, "spared": 0.02, "part": part}


FEW = [0.0] * 20 + [0.1, 0.4, 0.4, 0.1] + [0.0] * 40
TWO_PLACES = [0.0] * 10 + [0.5] + [0.0] * 40 + [0.5] + [0.0] * 12
EVEN = [1 / 64] * 64
CASES = [case(shape, 1000, noise, seed) for seed, shape in enumerate([FEW, TWO_PLACES, EVEN]) for noise in (160, 220, 400)]
Path(__file__).with_suffix(".json").write_text(json.dumps(CASES, indent=1) + "\n")
for one in CASES:
    print(one["noise"], one["part"])
