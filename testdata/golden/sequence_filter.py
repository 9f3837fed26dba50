"""Golden values of `reticent-math/src/sequence_filter.rs`, by sums over distances and frequencies as the formulas say; no fast transform.

    python3 testdata/golden/sequence_filter.py > testdata/golden/sequence_filter.json
"""

import json
import math
import random


def transform(values, count):
    """Real part of the discrete transform of a sequence that is even around 0: one number a frequency, 0 to count / 2."""
    return [
        sum(value * math.cos(2 * math.pi * place * frequency / count) for place, value in enumerate(values))
        for frequency in range(count // 2 + 1)
    ]


def filter_of(sequences, noise, floor, least):
    places, scores = len(sequences[0]), len(sequences)
    covariance = [
        sum(x[j] * x[j + distance] for x in sequences for j in range(places - distance)) / (scores * places)
        for distance in range(places // 2 + 1)
    ]
    covariance[0] = max(covariance[0] - noise**2, 0)
    own = covariance[0]
    error = math.sqrt(noise**2 * (noise**2 + 2 * own) / (scores * places) + own**2 / places)
    errors = [error * math.sqrt(1 - distance / places) for distance in range(places // 2 + 1)]
    assert any(abs(r) > 5 * e for r, e in list(zip(covariance, errors))[1:])
    believed = [own] + [r * r**2 / (r**2 + 4 * e**2) for r, e in list(zip(covariance, errors))[1:]]
    nothing = [0] * (2 * places - 2 * len(believed) + 1)
    spectrum = transform(believed + nothing + believed[:0:-1], 2 * places)
    passes = [max(power, 0) / (max(power, 0) + floor) for power in spectrum]
    passes = [least + (1 - least) * share / max(passes) for share in passes]
    # The filter as a sequence: what one place gives to those at each distance.
    both = passes + passes[-2:0:-1]
    kernel = [
        sum(share * math.cos(2 * math.pi * k * distance / (2 * places)) for k, share in enumerate(both)) / (2 * places)
        for distance in range(places)
    ]
    filtered = [
        sum(kernel[abs(place - other)] * value for other, value in enumerate(sequences[0])) for place in range(places)
    ]
    return {"mean_pass": sum(both) / len(both), "filtered": filtered}


def main():
    draw = random.Random(7)
    cases = []
    for places, scores, noise, floor, least in [(64, 1, 0.5, 0.02, 0.25), (75, 3, 1.0, 0.3, 0.0)]:
        sequences = [
            [2 * math.sin(j / 6 + k) + draw.gauss(0, noise) for j in range(places)] for k in range(scores)
        ]
        case = {"sequences": sequences, "noise": noise, "floor": floor, "least": least}
        cases.append(case | filter_of(sequences, noise, floor, least))
    print(json.dumps(cases))


main()
