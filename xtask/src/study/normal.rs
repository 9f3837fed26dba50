//! Generated rows: normal numbers and points of the unit ball.

use fastrand::Rng;

pub(super) fn normal(random: &mut Rng) -> f64 {
    (-2.0 * (1.0 - random.f64()).ln()).sqrt() * (std::f64::consts::TAU * random.f64()).cos()
}

/// Independent normal numbers, scaled to a norm.
pub(super) fn direction(random: &mut Rng, columns: usize, norm: f64) -> Vec<f64> {
    let drawn: Vec<f64> = (0..columns).map(|_| normal(random)).collect();
    let length = drawn.iter().map(|value| value * value).sum::<f64>().sqrt();
    drawn.into_iter().map(|value| value * norm / length).collect()
}

/// A point that is uniform in the unit ball, rounded to what is written into a table.
pub(super) fn in_ball(random: &mut Rng, columns: usize) -> Vec<f64> {
    let radius = random.f64().powf(1.0 / columns as f64);
    direction(random, columns, radius).into_iter().map(|value| (value * 1e6).round() / 1e6).collect()
}

pub(super) fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

/// Whether an event of this log-odds happened.
pub(super) fn happens(random: &mut Rng, score: f64) -> bool {
    random.f64() < 1.0 / (1.0 + (-score).exp())
}
