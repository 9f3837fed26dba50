#!/usr/bin/env python3
"""Makes the golden files of the noise samplers: exact cell probabilities and value-stability vectors.

    pip install mpmath==1.3.0
    python3 make_vectors.py            # writes the .json files beside this script

Nothing here is shared with the Rust code: ChaCha20, the samplers (on Python's unbounded integers) and the probabilities
(mpmath, 60 digits) are written anew. The samplers read random words in the same order as the Rust ones, so equal draws
from equal seeds check both.
"""

import json
import pathlib

import mpmath
from mpmath import mp, mpf

mp.dps = 60
HERE = pathlib.Path(__file__).parent

# ---- ChaCha20 stream, 64-bit counter from 0, stream 0, key from a 64-bit seed as in rand_core 0.10 ----

MASK32, MASK64 = (1 << 32) - 1, (1 << 64) - 1


def key_from_u64(state):
    words = []
    for _ in range(8):
        state = (state * 0x5851F42D4C957F2D + 0xA17654E46FBE17F3) & MASK64
        mixed = (((state >> 18) ^ state) >> 27) & MASK32
        turn = state >> 59
        words.append(((mixed >> turn) | (mixed << (32 - turn))) & MASK32 if turn else mixed)
    return words


def chacha20_block(key, counter):
    start = [0x61707865, 0x3320646E, 0x79622D32, 0x6B206574] + key + [counter & MASK32, counter >> 32, 0, 0]
    s = start[:]

    def rotate(value, by):
        return ((value << by) | (value >> (32 - by))) & MASK32

    def quarter(a, b, c, d):
        for first, second, third, by in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
            s[first] = (s[first] + s[second]) & MASK32
            s[third] = rotate(s[third] ^ s[first], by)

    for _ in range(10):
        for column in range(4):
            quarter(column, column + 4, column + 8, column + 12)
        for diagonal in range(4):
            quarter(diagonal, 4 + (diagonal + 1) % 4, 8 + (diagonal + 2) % 4, 12 + (diagonal + 3) % 4)
    return [(x + y) & MASK32 for x, y in zip(s, start)]


class Source:
    def __init__(self, seed):
        self.key, self.counter, self.words = key_from_u64(seed), 0, []

    def u32(self):
        if not self.words:
            self.words = chacha20_block(self.key, self.counter)
            self.counter += 1
        return self.words.pop(0)

    def u64(self):
        low = self.u32()
        return low | self.u32() << 32


# ---- the samplers ----


class Uniform:
    """A number in (0, 1) in base 2^64; digits are drawn when asked for."""

    def __init__(self, source):
        self.source, self.digits = source, [source.u64()]

    def digit(self, place):
        while len(self.digits) <= place:
            self.digits.append(self.source.u64())
        return self.digits[place]

    def below(self, other):
        place = 0
        while True:
            mine, theirs = self.digit(place), other.digit(place)
            if mine != theirs:
                return mine < theirs
            place += 1

    def floor(self, scale, halves):
        """floor(scale * self + halves / 2), from an interval in unbounded integers."""
        count = 1
        while True:
            self.digit(count - 1)
            bits = 64 * count
            value = 0
            for digit in self.digits[:count]:
                value = value << 64 | digit
            shift = halves << (bits - 1)
            low = (scale * value + shift) >> bits
            high = (scale * (value + 1) - 1 + shift) >> bits
            if low == high:
                return low
            count += 1


def algorithm_h(source):
    y = Uniform(source)
    if y.digit(0) >= 1 << 63:
        return True
    length = 1
    while True:
        z = Uniform(source)
        if not z.below(y):
            return length % 2 == 0
        y, length = z, length + 1


def integer_below(source, bound):
    while True:
        product = source.u64() * bound
        if product & MASK64 >= (1 << 64) % bound:
            return product >> 64


def algorithm_b(source, k, x):
    length, y = 0, x
    while True:
        choice = integer_below(source, 2 * k + 2)
        if choice == 2 * k + 1:
            break
        z = Uniform(source)
        if not z.below(y):
            break
        if choice == 2 * k and not Uniform(source).below(x):
            break
        y, length = z, length + 1
    return length % 2 == 0


def rounded_gaussian(source, scale):
    while True:
        k = 0
        while algorithm_h(source):
            k += 1
        if not all(algorithm_h(source) for _ in range(k * (k - 1))):
            continue
        x = Uniform(source)
        if all(algorithm_b(source, k, x) for _ in range(k + 1)):
            break
    negative = source.u32() >> 31
    magnitude = scale * k + x.floor(scale, 1)
    return -magnitude if negative else magnitude


def discrete_laplace(source, scale):
    while True:
        k = 0
        while True:
            x = Uniform(source)
            y, length = x, 0
            while True:
                z = Uniform(source)
                if not z.below(y):
                    break
                y, length = z, length + 1
            if length % 2 == 0:
                break
            k += 1
        negative = source.u32() >> 31
        magnitude = scale * k + x.floor(scale, 0)
        if not negative or magnitude:
            return -magnitude if negative else magnitude


def value_stability():
    seed, scales = 20240817, [1, 3, 1000, 1 << 40, (1 << 60) - 1, 1 << 60]
    result = {"seed": seed}
    for name, sampler in (("rounded_gaussian", rounded_gaussian), ("discrete_laplace", discrete_laplace)):
        result[name] = {}
        for scale in scales:
            source = Source(seed)
            result[name][str(scale)] = [str(sampler(source, scale)) for _ in range(32)]
    return result


# ---- exact probabilities ----


def gaussian_between(scale, low, high):
    """P(low <= K <= high); None is an open end. Taken in the upper tail, where nothing cancels."""
    if low is None and high is None:
        return mpf(1)
    if low is None:
        low, high = -high, None
    elif high is not None and high <= 0:
        low, high = -high, -low
    upper = lambda value: mpmath.erfc(value / (scale * mpmath.sqrt(2))) / 2
    return upper(low - mpf(1) / 2) - (0 if high is None else upper(high + mpf(1) / 2))


def laplace_between(scale, low, high):
    def at_least(value):  # P(K >= value), value >= 1
        ratio = mpmath.exp(-mpf(1) / scale)
        return ratio**value / (1 + ratio)

    if low is None and high is None:
        return mpf(1)
    if low is None:
        low, high = -high, None
    if high is None:
        return at_least(low) if low >= 1 else 1 - at_least(1 - low)
    return laplace_between(scale, low, None) - laplace_between(scale, high + 1, None)


def gaussian_moment(scale, power):
    """E K^power: summed over the lattice for a small scale, else from the cumulants of a Gaussian plus a uniform, whose
    error is below e^(-18 scale^2)."""
    if scale <= 7:
        return 2 * mpmath.fsum(mpf(k) ** power * gaussian_between(scale, k, k) for k in range(1, 16 * scale + 1))
    variance = mpf(scale) ** 2 + mpf(1) / 12
    return variance if power == 2 else 3 * variance**2 - mpf(1) / 120


def laplace_moment(scale, power):
    ratio = mpmath.exp(-mpf(1) / scale)
    second = 2 * ratio / (1 - ratio) ** 2
    return second if power == 2 else second * (1 + 10 * ratio + ratio**2) / (1 - ratio) ** 2


def critical_chi_square(degrees, significance):
    tail = lambda value: mpmath.gammainc(mpf(degrees) / 2, value / 2, mpmath.inf, regularized=True) - significance
    low, high = mpf(degrees), degrees + 12 * mpmath.sqrt(2 * degrees) + 60
    assert tail(low) > 0 > tail(high)
    for _ in range(90):
        middle = (low + high) / 2
        low, high = (middle, high) if tail(middle) > 0 else (low, middle)
    return high


def binomial_limits(count, probability, significance):
    """The counts outside which a binomial count falls with probability below `significance` on each side."""
    term = mpmath.exp(count * mpmath.log1p(-probability)) if count * probability < 500 else None
    if term is None:  # start far below the mean; what is left out is below 1e-40 of the total
        start = int(count * probability - 16 * mpmath.sqrt(count * probability * (1 - probability)))
        term = mpmath.binomial(count, start) * probability**start * (1 - probability) ** (count - start)
    else:
        start = 0
    odds, total, low, k = probability / (1 - probability), mpf(0), None, start
    while True:
        total += term
        if low is None and total > significance:
            low = k
        if total > 1 - significance:
            return low, k
        term *= odds * mpf(count - k) / (k + 1)
        k += 1


def cells(scale, between, tail_sigmas):
    """Cells that are whole lattice points near the centre where the scale is small, else 1/10 of the scale wide; the
    outermost are open and every cell expects more than 20 of 2e6 draws. Mirror images of each other around the cell
    of zero."""
    width = 1 if scale <= 7 else 2 * (scale // 20) + 1
    half = width // 2
    highest, edges = tail_sigmas * scale, [half]
    enough = lambda low, high: between(scale, low, high) * COUNTS[0] > 20
    while edges[-1] + width < highest:
        last = edges[-1]
        if not (enough(last + 1, last + width) and enough(last + width + 1, None)):
            break
        edges.append(last + width)
    return [-e - 1 for e in reversed(edges)] + edges


SIGNIFICANCE = mpf(10) ** -6
COUNTS = (2_000_000, 20_000_000)


def probabilities(edges, scale, between):
    lows = [None] + [e + 1 for e in edges]
    highs = edges + [None]
    found = [between(scale, low, high) for low, high in zip(lows, highs)]
    assert abs(mpmath.fsum(found) - 1) < mpf(10) ** -40
    return found


def text(value):
    return float(mpmath.nstr(value, 20))


def table(scale, between, moment, tail_sigmas):
    edges = cells(scale, between, tail_sigmas)
    exact = probabilities(edges, scale, between)
    # Six cells of comparable weight for the dependence of neighbouring draws.
    halfway = max(scale // 2, 1)
    pair_edges = [-2 * halfway - 1, -halfway - 1, -1, halfway, 2 * halfway]
    pair = probabilities(pair_edges, scale, between)
    # The smallest relative error of the scale that the chi-square test meets in 99 % of runs of 2e6 draws.
    moved = probabilities(edges, scale + mpf(scale) / 100, between)
    per_draw = mpmath.fsum((m - p) ** 2 / p for m, p in zip(moved, exact)) * 10_000
    limit = critical_chi_square(len(exact) - 1, SIGNIFICANCE)
    degrees = len(exact) - 1
    excess = mpmath.findroot(
        lambda e: degrees + e - limit - mpf("2.3263478740408411") * mpmath.sqrt(2 * (degrees + 2 * e)),
        limit, tol=1e-20,
    )
    counted = {}
    tails = [(f"beyond_{sigmas}", sigmas * scale + 1) for sigmas in (3, 4, 5)]
    for label, low in [("zero", None)] + tails:
        probability = between(scale, 0, 0) if low is None else 2 * between(scale, low, None)
        if label == "zero" and probability * COUNTS[0] < 20:
            continue
        counted[label] = {
            "beyond": None if low is None else low - 1,
            "probability": text(probability),
            "limits": {str(n): binomial_limits(n, probability, SIGNIFICANCE) for n in COUNTS},
        }
    return {
        "scale": scale,
        "highest_in_cell": edges,
        "probabilities": [text(p) for p in exact],
        "chi_square_limit": text(limit),
        "mirror_limit": text(critical_chi_square(len(exact) // 2, SIGNIFICANCE)),
        "pair_highest_in_cell": pair_edges,
        "pair_probabilities": [text(p) for p in pair],
        "pair_limit": text(critical_chi_square(len(pair) ** 2 - 1, SIGNIFICANCE)),
        "second_moment": text(moment(scale, 2)),
        "fourth_moment": text(moment(scale, 4)),
        "counted": counted,
        "scale_error_met": text(mpmath.sqrt(excess / (per_draw * COUNTS[0]))),
    }


def cell_tables():
    result = {"significance": text(SIGNIFICANCE), "rounded_gaussian": [], "discrete_laplace": []}
    for scale in (1, 2, 7, 1000, 1 << 40):
        result["rounded_gaussian"].append(table(scale, gaussian_between, gaussian_moment, 5))
        result["discrete_laplace"].append(table(scale, laplace_between, laplace_moment, 14))
    # The low bits of a draw with a large scale are uniform to within e^(-2 pi^2 (scale/256)^2).
    result["low_bits_limit"] = text(critical_chi_square(255, SIGNIFICANCE))
    return result


def check():
    # RFC 8439, A.1, test vector 1: key, nonce and counter are zero.
    zero = chacha20_block([0] * 8, 0)
    assert zero[:4] == [0xADE0B876, 0x903DF1A0, 0xE56A5D40, 0x28BD8653], "ChaCha20 of the zero key"
    for scale in (1, 2, 7):
        error = abs(gaussian_moment(scale, 2) - scale**2 - mpf(1) / 12)
        assert error < mpmath.exp(-18 * scale**2) + mpf(10) ** -45, "variance of the rounded Gaussian"
    for scale in (1, 3):
        for power in (2, 4):
            direct = 2 * mpmath.fsum(mpf(k) ** power * laplace_between(scale, k, k) for k in range(1, 600))
            assert abs(direct / laplace_moment(scale, power) - 1) < mpf(10) ** -40, "moments of the discrete Laplace"
    variance = mpf(7) ** 2 + mpf(1) / 12
    assert abs(gaussian_moment(7, 4) - 3 * variance**2 + mpf(1) / 120) < mpf(10) ** -30, "fourth moment"


if __name__ == "__main__":
    check()
    for name, made in (("value_stability", value_stability()), ("cells", cell_tables())):
        (HERE / f"{name}.json").write_text(json.dumps(made, indent=1) + "\n")
