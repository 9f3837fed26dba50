"""Reference numbers for `noisy-gd`, by an implementation that shares nothing with the Rust code.

    python3 testdata/golden/noisy_gd.py > testdata/golden/noisy_gd.json

NumPy 2, SciPy 1. Columns: two numbers and a category of four (one of them "other"), as in the test kit's schema.
"""

import json

import numpy as np
from scipy.interpolate import CubicHermiteSpline

rows, noise_sum = 5000.0, 180.0
noise = noise_sum / rows
signal = 700.0


def trust(prior, error):
    return prior**2 / (prior**2 + error**2)


# Released sums, slot by slot: first and second moment of each number, then rows by category.
sums = np.array([-900.0, -1300.0, 2400.0, 2150.0, -60.0, 3300.0, 1500.0, 420.0])
released = sums / rows
mean, variance = [], []
for first, second in released[:4].reshape(2, 2):
    centre = np.clip(0.5 + trust(0.3, noise) * first, 0, 1)
    square = np.clip(trust(0.3, noise) * (second + 0.5) + (1 - trust(0.3, noise)) / 3, 0, 1)
    mean.append(centre)
    deviation = noise * trust(0.3, noise) * np.hypot(0.25, 1 - 2 * centre)
    variance.append(np.clip(square / 4 - (centre - 0.5) ** 2 - deviation, 1e-4, 0.25))
shares = trust(0.1, noise) * released[4:] + (1 - trust(0.1, noise)) / 4
# Nearest point of the simplex by bisection on the shift.
low, high = -2.0, 2.0
for _ in range(200):
    shift = (low + high) / 2
    if np.maximum(shares - shift, 0).sum() > 1:
        low = shift
    else:
        high = shift
shares = np.maximum(shares - shift, 0)
mean, variance = np.array([*mean, *shares]), np.array([*variance, *(shares * (1 - shares))])

kappa = np.clip(14 / signal, 0.003, 0.3)


def scale_of(variance):
    scale = np.array([*(0.5 / np.sqrt(variance[:2] + kappa / 16)), *(1 / np.sqrt(shares + kappa))]) * np.sqrt(0.2 + kappa)
    before = np.sum(scale**2 * variance)
    scale[2:] *= 3 ** (-1 / 8)
    scale *= np.sqrt(before / np.sum(scale**2 * variance))
    # Columns have at least this much of a row's squared norm beside the intercept.
    scale *= np.sqrt(max(1, 3 * signal / (signal + 100) / np.sum(scale**2 * variance)))
    return scale, np.sqrt(1 + np.sum(scale**2 * variance))


scale, row_norm = scale_of(variance)

# The same where both numbers were counted in 32 bins: the first lies in three of them, the second everywhere.
bins, bin_noise = 32, 60.0
counts = np.array([
    [30.0, -45, 80, 1210, 2280, 1390, 40, -70, 55, *([20.0, -25] * 11), 15],
    [150.0 + 10 * (place % 3) for place in range(bins)],
])


def range_of(counts):
    for length in range(1, bins):
        doubt = 2 * bin_noise * np.sqrt(length) / rows
        if doubt > 0.3:
            return None
        held = [counts[first : first + length].sum() for first in range(bins - length + 1)]
        first = int(np.argmax(held))
        if held[first] >= (0.99 - doubt) * rows:
            break
    if 1.25 * length / bins >= 2 / 3:
        return None
    middle, half = (first + length / 2) / bins, length / bins / 2
    ends = [np.clip([middle - times * half, middle + times * half], 0, 1) for times in (1.25, 1.25 + 15 * (0.01 + doubt))]
    low, width = ends[0][0], ends[0][1] - ends[0][0]
    inside = [place for place in range(bins) if (place + 1) / bins > low and place / bins < low + width]
    at = (np.array(inside) + 0.5) / bins
    mean = np.average(at, weights=counts[inside])
    step_variance = (1 / bins) ** 2 / 12
    alike = step_variance * np.sum(counts[inside] ** 2) / np.sum(counts[inside]) ** 2
    square = np.average((at - mean) ** 2, weights=counts[inside]) + step_variance + alike
    return low, width, (mean - low) / width, square / width**2, ends[1]


low, width, mean_there, square_there, ends = range_of(counts[0])
assert range_of(counts[1]) is None
there = np.array([mean_there, *mean[1:]]), np.array([square_there, *variance[1:]])
binned_scale, binned_row_norm = scale_of(there[1])
binned_centre = [low + width * mean_there, *mean[1:]]
binned_scale[0] /= width
ranges = [[round(32767 * end) for end in ends], [0, 32767]]

# Rates of two classes: two releases of the counts, pooled.
first, second = np.array([3700.0, 1250.0]), np.array([3900.0, 1400.0])
pooled = (first / 90**2 + second / 180**2) / (1 / 90**2 + 1 / 180**2)
pooled_noise = (1 / 90**2 + 1 / 180**2) ** -0.5
counted = pooled.sum()
rate_error = pooled_noise / counted / np.sqrt(2)
rate = 0.5 + trust(0.3, rate_error) * (pooled[1] - pooled[0]) / (2 * counted)

# Descent on fixed releases.
start, step, l2 = np.array([-1.0, 0.2, 0.0]), 0.0004, 3.0
gradients = np.array([[300.0, -120.0, 40.0], [180.0, 60.0, -75.0], [-20.0, 10.0, 5.0], [60.0, -90.0, 30.0], [15.0, 5.0, -45.0]])
weights, velocity, points = start.copy(), np.zeros(3), []
for gradient in gradients:
    velocity = 0.9 * velocity - step * (gradient + l2 * weights * [0, 1, 1])
    weights = weights + velocity
    points.append(weights)
averaged = np.mean(points[-2:], axis=0)


def time_of(c, half):
    return c * signal / (signal + half) * signal / row_norm


def stride_of(time, passes):
    """Step and momentum: the least momentum from .9 up at which stable steps take the time, found by bisection."""

    def longest(momentum):
        return 2 * (1 + momentum) / row_norm * passes / (1 - momentum)

    low, high = 0.9, max(0.9, 1 - 6 / passes)
    if longest(low) < time < longest(high):
        for _ in range(100):
            middle = (low + high) / 2
            low, high = (low, middle) if longest(middle) >= time else (middle, high)
    momentum = low if longest(low) >= time else high
    return [min(time, longest(momentum)) * (1 - momentum) / passes, momentum]


times = [time_of(0.75, 4), time_of(1.2, 20)]
# Steps that are not the largest, the largest with more momentum, with the most of it, and where passes are too few for more.
strides = [[*case, *stride_of(*case)] for case in [(times[0], 100), (4000.0, 100), (1e6, 100), (1e6, 12)]]



def times_of(gradients, passes, signal, noise):
    """How many times as long a descent goes on: its `gradients`, one a row, of the second quarter alone."""
    directions = gradients.shape[1]
    odd, even = gradients[0::2].mean(axis=0), gradients[1::2].mean(axis=0)
    found = (odd @ even) / (noise**2 / passes) / directions - 8 / directions**0.5
    return float(np.clip(3 / 8 * np.sqrt(50 * max(found, 0)), 1, max(1, min(8, signal / (20 * directions)))))


# Rows of a wave around different means: the second quarter of forty passes begins with the eleventh, an odd one.
watched = [[3 + np.sin(7 * at), -2 + np.sin(11 * at), 2.5 + np.sin(13 * at)] for at in range(1, 41)]
went_on = [times_of(np.array(watched)[10:20], 40, of_signal, 6.0) for of_signal in (1e4, 130.0)]

grid = (np.arange(-100_000, 100_000) + 0.5) * 1e-4
normal = np.exp(-(grid**2) / 2) / np.sqrt(2 * np.pi) * 1e-4


def searched(loss, l2, passes=20):
    """Where a line search along a descent of wide steps ends, as if the loss of `row_norm`-long rows were logistic or two-sided."""
    begin = np.array([-0.8, 0.1, 0.0, 0.0, 0.0, 0.0, 0.0])
    noise = 300.0
    prior = 8 * (1 + (rows * np.sqrt(passes) / noise / 300) ** 2)
    log_factor, offset, known, known_offset, ends = 0.0, 0.0, prior, 8.0, []
    for at in range(passes):
        way = np.array([0.3, 1.5, -2.0, 0.5, 0.4, -0.3, 0.2]) * (1 - 0.9**at)
        gradient = 200 * np.sin(np.arange(1, 8) * (at + 1)) + np.array([90, -160, 210, -40, 10, 30, -20])
        asked = begin + np.exp(log_factor) * way
        asked[0] = begin[0] + way[0] + offset
        if at >= 0.15 * passes:
            change = np.exp(log_factor) * way[1:]
            z = np.sqrt(np.sum(change**2 * scale**2 * variance)) * grid
            likely = 1 / (1 + np.exp(-(asked[0] + z)))
            curvature = likely * (1 - likely) if loss == "logistic" else np.minimum(likely, 1 - likely)
            of_change, of_offset = (rows / row_norm * np.sum(normal * curvature * part) for part in (z**2, 1.0))
            derivative, length = change @ (gradient[1:] + l2 * asked[1:]), np.linalg.norm(change)
            known += (of_change / (noise * length)) ** 2
            known_offset += (of_offset / noise) ** 2
            log_factor -= np.clip(derivative * of_change / (noise * length) ** 2 / known, -0.3, 0.3)
            log_factor = np.clip(log_factor, np.log(0.5), np.log(16))
            offset -= np.clip(gradient[0] * of_offset / noise**2 / known_offset, -0.5, 0.5)
        ends.append([log_factor, offset])
    log_factor, offset = np.mean(ends[-6:], axis=0)
    return [float(np.exp(log_factor)), float(offset)]


searches = [searched("two-sided", 0.0), searched("logistic", 60.0)]

# Signal check on a fixed table.
cells, cell_noise, deviation, base = np.array([1900.0, 1800.0, 550.0, 720.0]), 90.0, 0.8, 0.26
positive = (cells[1] + cells[3]) / rows
# Covariance of the predicted probability with the sign of a normal score, by the midpoint rule on two million points; the intercept
# is the one that predicts the rate, by Newton's method.
points = (np.arange(-1_000_000, 1_000_000) + 0.5) * 1e-5
density = np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi) * 1e-5
intercept = np.log(base / (1 - base))
for _ in range(20):
    predicted = 1 / (1 + np.exp(-intercept - deviation * points))
    intercept -= (np.sum(density * predicted) - base) / np.sum(density * predicted * (1 - predicted))
expected = np.sum(density * predicted * np.sign(points))
weight = np.array([base * positive, -base * (1 - positive), -(1 - base) * positive, (1 - base) * (1 - positive)])
# By chance: what rows pull their own scores, of which the sign of a normal change sees E|z| / E[z²].
freedom = 0.0
for scaled_variance in scale**2 * variance:
    # How far a hundred steps of .031 with momentum get, without noise, toward 1, under a penalty: the mean of the last thirty.
    at, speed, reached = 0.0, 0.0, []
    for _ in range(100):
        speed = 0.9 * speed - 0.031 * (0.3 * scaled_variance / row_norm * (at - 1) + 0.002 * at)
        at += speed
        reached.append(at)
    freedom += np.mean(reached[-30:])
by_chance = 10 * freedom * np.sum(density * np.abs(points)) / deviation / rows
# What is left of the variance when chance has its part, by bisection.
variances = base * (1 - base) * positive * (1 - positive)
low, high = 0.0, 1.0
for _ in range(100):
    left = (low + high) / 2
    gap = 1 - max(np.sum(weight * cells) / rows - left * by_chance / 2, 0) ** 2 / variances - left
    low, high = (left, high) if gap > 0 else (low, left)
share = (2 * np.sum(weight * cells) / rows - by_chance) / expected
error = 2 * cell_noise / rows * np.sqrt(np.sum(weight**2)) / expected
kept = np.clip((share / error**2 + 0.5 / 0.36) / (1 / error**2 + 1 / 0.36) / 0.7, 0, 1)

# Calibration: hits beyond the confidence at the first factor, and how it grows from factor to factor, an octave each, by SciPy's cubic with
# given slopes.
steps, step_noise = np.array([90.0, 41.0, 33.0, 22.0, -3.0, 12.0]), 14.0
surplus = 6.5 - steps[0] + np.concatenate([[0.0], np.cumsum(steps[1:])])
surplus[1:] = np.maximum.accumulate(surplus[1:])
surplus[0] = min(surplus[0], surplus[1])
at_octaves = CubicHermiteSpline(np.arange(6), surplus, np.gradient(surplus))
octaves = np.arange(41) / 8
logarithms = octaves - 1
variance = 2.5 * step_noise**2 + min(2000 / 100, (surplus[-1] - surplus[0]) / 10) ** 2
weights_of = np.where(logarithms == 0, 6, 1) * np.exp(-(at_octaves(octaves) ** 2) / 2 / variance - np.where(logarithms > 0, logarithms, -0.5 * logarithms))
factor = 2 ** np.average(logarithms, weights=weights_of)

# Calibration of a number: residuals on the side of the change at factors 0, 1/2, 1, 2 and 4, and what they are by chance.
residual_steps, residual_noise, freedom_of_number, clip, spread = np.array([70.0, 22.0, 25.0, 41.0, 60.0]), 6.0, 9.0, 0.3, 0.14
standard = np.linspace(-9, 9, 200001)
normal = np.exp(-(standard**2) / 2)
normal /= normal.sum()
psi = np.clip(0.25 * standard / clip, -1, 1)
within = np.sum(normal * (np.abs(0.25 * standard) < clip)) / clip
# The change of the intercept is .4 of the deviation of scores.
of_rows = np.sum(normal * np.clip((0.4 + standard) / 1.5, -1, 1) * standard) / spread
optimism = freedom_of_number * np.sum(normal * psi**2) / within * of_rows
surplus_of_number = optimism - residual_steps[0] + np.concatenate([[0.0], np.cumsum(residual_steps[1:])])
places = np.arange(33) / 8
cubic_of_number = CubicHermiteSpline(np.arange(5), surplus_of_number, np.gradient(surplus_of_number))
spread_of_places = 2.5 * residual_noise**2 + 2 * optimism**2 / freedom_of_number
weights_of_number = np.where(places == 2, 100, 1) * np.exp(-(cubic_of_number(places) ** 2) / 2 / spread_of_places - np.maximum(places - 2, 0) / 2)
factor_of_number = np.average(np.where(places <= 2, places / 2, 2 ** (places - 2)), weights=weights_of_number)

# Slopes of the bounded softmax for scores (0.5, -1, 2), class by class, before they are truncated.
p = np.exp([0.5, -1.0, 2.0])
p /= p.sum()
differences = p - np.eye(3)
softmax = differences / np.max(np.linalg.norm(differences, axis=1))
# The same, saturated: divided by their own norm where that is above a share of the largest.
saturations = [max(0.5, at / (at + 1000)) for at in (signal, 3 * signal)]
saturations_in_order = [max(0.35, at / (at + 2000)) for at in (signal, 3 * signal)]
norms = np.linalg.norm(differences, axis=1, keepdims=True)
saturated = differences / np.maximum(norms, saturations[0] * norms.max())
# What shares of three classes stand for under saturated slopes: q / d proportional to p.
shares = np.array([0.2, 0.1, 0.7])
lengths = np.array([np.linalg.norm(shares - corner) for corner in np.eye(3)])
stood_for = shares * np.maximum(lengths, 0.6 * lengths.max())
stood_for /= stood_for.sum()

print(
    json.dumps(
        {
            "rows": rows,
            "noise": noise,
            "signal": signal,
            "sums": sums.tolist(),
            "centre": [0.0, *mean.tolist()],
            "scale": [1.0, *scale.tolist()],
            "row_norm": row_norm,
            "bins": bins,
            "bin_noise": bin_noise,
            "binned": counts.ravel().tolist(),
            "binned_centre": [0.0, *binned_centre],
            "binned_scale": [1.0, *binned_scale.tolist()],
            "binned_row_norm": binned_row_norm,
            "ranges": ranges,
            "counts": [first.tolist(), second.tolist()],
            "count_noise": [90.0, 180.0],
            "counted": counted,
            "log_odds": float(np.log(rate / (1 - rate))),
            "start": start.tolist(),
            "step": step,
            "l2": l2,
            "gradients": gradients.tolist(),
            "averaged": averaged.tolist(),
            "times": times,
            "strides": strides,
            "watched": watched,
            "went_on": went_on,
            "searches": searches,
            "cells": cells.tolist(),
            "cell_noise": cell_noise,
            "deviation": deviation,
            "base": base,
            "confidence_steps": steps.tolist(),
            "step_noise": step_noise,
            "factor": float(factor),
            "freedom": float(freedom),
            "unexplained": float(left),
            "residual_steps": residual_steps.tolist(),
            "residual_noise": residual_noise,
            "by_chance": float(optimism),
            "factor_of_number": float(factor_of_number),
            "kept": float(kept),
            "softmax_slopes": (2048 * softmax).tolist(),
            "saturations": saturations,
            "saturations_in_order": saturations_in_order,
            "shares": shares.tolist(),
            "stood_for": stood_for.tolist(),
            "saturated_slopes": (2048 * saturated).tolist(),
        },
        indent=1,
    )
)
