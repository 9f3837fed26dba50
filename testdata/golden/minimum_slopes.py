"""Writes minimum_slopes.json: sigmoids and softmax probabilities of exact dot products, in units of 2^-58, by decimals of 60 digits.

Dot products are in units of 2^-72, as text. Shares no code with the library. Run: python3 minimum_slopes.py
"""
import json
import random
from decimal import Decimal, getcontext
from pathlib import Path

getcontext().prec = 60
DOT, SLOPE = Decimal(2) ** 72, Decimal(2) ** 58
# Half a score, in tests of sizes: more than the exponential tells from 0, and more than it can be halved by.
SPREADS = [Decimal("1e-9"), Decimal("0.5"), Decimal(4), Decimal(30), Decimal(90)]


def in_units(probability):
    return int((probability * SLOPE).to_integral_value())


def softmax(dots):
    scores = [Decimal(dot) / DOT for dot in dots]
    powers = [(score - max(scores)).exp() for score in scores]
    return [in_units(power / sum(powers)) for power in powers]


def main():
    draw = random.Random(20261201)

    def dot(spread):
        size = int(spread * DOT)
        return draw.randint(-size, size)

    # Just before another halving, at multiples of ln 2, the exponential's series is longest.
    edges = ["-80", "-70.5", "-63.9999", "-1", "-0.6931", "0", "0.6931", "1", "1.3862", "12.125", "63.9999", "64", "80"]
    edges = [int(Decimal(z) * DOT) for z in edges]
    sigmoids = [{"dot": str(z), "slope": softmax([z, 0])[0]} for z in edges + [dot(s) for s in SPREADS for _ in range(4)]]
    softmaxes = []
    for classes in [3, 4, 8, 40, 150]:
        for spread in SPREADS:
            dots = [dot(spread) for _ in range(classes)]
            softmaxes.append({"dots": [str(z) for z in dots], "slopes": softmax(dots)})
    lines = [f' "{name}": [\n' + ",\n".join(f"  {json.dumps(case)}" for case in cases) + "\n ]"
             for name, cases in [("sigmoids", sigmoids), ("softmaxes", softmaxes)]]
    Path(__file__).with_suffix(".json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    main()
