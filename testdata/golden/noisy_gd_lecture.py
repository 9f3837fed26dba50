"""Golden values of crates/reticent-fit/src/method/noisy_gd_lecture.rs and noisy_gd_slides.rs, by numpy:
pip install numpy; python3 noisy_gd_lecture.py"""
import numpy as np

# The theorem: R = 3, gradients of norm at most 2, 6 weights, noise 0.5 a coordinate, T = 100.
radius, gradient, weights, noise, passes = 3.0, 2.0, 6, 0.5, 100
second_moment = gradient**2 + weights * noise**2
print("excess", radius * np.sqrt(second_moment) / np.sqrt(passes))
print("step", radius / np.sqrt(second_moment * passes))

# Five projected steps on (x - 3)^2 + (y + 4)^2 / 4, in a ball of radius 2 around the start.
start = np.array([0.5, -0.25])
at, visited = start.copy(), []
for _ in range(5):
    visited.append(at.copy())
    at = at - 0.4 * np.array([2 * (at[0] - 3), 0.5 * (at[1] + 4)])
    away = at - start
    length = np.linalg.norm(away)
    if length > 2:
        at = start + away * 2 / length
print("mean of five", np.mean(visited, axis=0).tolist())

# The slides: five steps without a ball, the last point.
at = start.copy()
for _ in range(5):
    at = at - 0.4 * np.array([2 * (at[0] - 3), 0.5 * (at[1] + 4)])
print("last of five", at.tolist())
# Their formula for the noise: C = 1, n = 400, epsilon = 1, T = 2500, delta = 1e-5.
print("slides noise", 2 * 1 / (400 * 1) * np.sqrt(2 * 2500 * np.log(1.25 / 1e-5)))
