//! How much of a number's change to keep, or how much farther to go: one factor on all that the columns change, from released residuals.
//!
//! A descent ends where noise would grow faster than signal. What it has found by then may be noise and chance alone, or a good direction that is
//! not gone far enough. Which of them is one number: the factor at which residuals lie on neither side of the change. Residuals at all factors
//! are asked together, as each falls from the one before.
//!
//! Source: derived in `docs/methods/noisy-gd.md`, "Calibration of a number".

use super::calibration::{SURPLUS_VARIANCE, Surplus, WHOLE_RISE};
use super::heavy_ball::Flow;
use super::optimism::degrees_of_freedom;
use reticent_math::normal_mean::over_normal;

use crate::released_marginals::ScaledColumns;

/// The factors that are compared.
pub(super) const FACTORS: [f64; 5] = [0.0, 0.5, 1.0, 2.0, 4.0];
/// The place of the factor 1 among them; up to there factors grow evenly, and by octaves from there.
const WHOLE_PLACE: f64 = 2.0;
/// Signal `n mu` up to which rows weigh alike from [`WHOLE_RISE`] on: see [`whole_rise`].
const WHOLE_SIGNAL: f64 = 1000.0;
/// Slope of the prior's logarithm above the factor 1, a place.
const DOUBT: f64 = 0.5;
/// Places that the factor 1 counts for: a descent of a number goes about as far as it should, so that only what stands well out of its noise
/// moves it from there.
const STAY: f64 = 100.0;

/// What a descent has changed of the weights that it started from.
pub(super) struct NumberChange<'a> {
    pub(super) start: Vec<f64>,
    pub(super) change: Vec<f64>,
    pub(super) scaled: &'a ScaledColumns,
    /// Signal `n mu` of the descent.
    pub(super) signal: f64,
}

/// What chance makes of released residuals: how many rows, and of how many degrees of freedom.
#[derive(Clone, Copy)]
pub(super) struct Chance {
    pub(super) rows: f64,
    pub(super) freedom: f64,
}

impl NumberChange<'_> {
    /// The start and so many times the change.
    pub(super) fn scaled_by(&self, factor: f64) -> Vec<f64> {
        self.start.iter().zip(&self.change).map(|(start, change)| start + factor * change).collect()
    }

    /// Weights of [residual steps](reticent_core::query::Map::ResidualSteps): the change in what weighs rows, and the models at [`FACTORS`].
    pub(super) fn compared(&self) -> Vec<f64> {
        let deviation = self.deviation();
        let weight = if deviation > 0.0 { 1.0 / (whole_rise(self.signal) * deviation) } else { 0.0 };
        let of_rows = self.change.iter().map(|change| weight * change);
        of_rows.chain(FACTORS.iter().flat_map(|factor| self.scaled_by(*factor))).collect()
    }

    /// Whether no column changes a score: there is no side then that residuals could lie on.
    pub(super) fn is_flat(&self) -> bool {
        self.deviation() <= 0.0
    }

    /// Of a descent with residuals clipped at `clip`, on a target of standard deviation `residual`.
    pub(super) fn chance(&self, clip: f64, residual: f64, flow: Flow, rows: f64) -> Chance {
        let freedom = degrees_of_freedom(&[curvature(clip, residual)], self.scaled, flow, rows);
        let deviation = self.deviation();
        // Of a list the intercept makes up for a mean that is not known.
        let mean_score = self.scaled.mean_score(&self.change);
        let of_rows = if self.scaled.has_list() { 0.0 } else { self.change[0] + mean_score };
        let by_chance = by_chance(freedom, clip, residual, of_rows / deviation, whole_rise(self.signal));
        Chance { rows: by_chance / deviation, freedom }
    }

    fn deviation(&self) -> f64 {
        self.scaled.score_deviation(&self.change)
    }
}

/// The change of a score, in standard deviations, from which on all rows weigh alike: `3/2 max(1, sqrt(n mu / 1000))`.
///
/// With a larger budget it grows toward the weights of least squares, as the clip of residuals does: a model that is wrong in the few rows that
/// change most is then no better than its squared error.
fn whole_rise(signal: f64) -> f64 {
    WHOLE_RISE * growth(signal, WHOLE_SIGNAL)
}

/// How many times as large a bound is as with little budget, from this signal on: so that the noise of what it bounds still falls with more.
pub(super) fn growth(signal: f64, from: f64) -> f64 {
    (signal / from).max(1.0).sqrt()
}

/// The factor to multiply by, from released [residual steps](reticent_core::query::Map::ResidualSteps) at [`FACTORS`], in rows, each with
/// noise of standard deviation `noise`.
///
/// ```text
///   D(u) = chance - residuals at the place u, a cubic between the factors          V = 5/2 noise² + 2 chance² / freedom
///   weight(u) = exp(-D(u)²/(2 V) - max(u - 2, 0)/2),  at u = 2 a hundred times        factor = weighted mean of u/2 up to u = 2, of 2^(u - 2) above
/// ```
pub(super) fn likely_factor(steps: &[f64], noise: f64, chance: Chance) -> f64 {
    let of_chance = 2.0 * chance.rows.powi(2) / chance.freedom.max(1.0);
    let surplus = Surplus::of(steps, chance.rows);
    let doubt = |place: f64| (DOUBT * (place - WHOLE_PLACE)).max(0.0);
    surplus.mean(SURPLUS_VARIANCE * noise.powi(2) + of_chance, (WHOLE_PLACE, STAY), doubt, factor_at)
}

fn factor_at(place: f64) -> f64 {
    if place <= WHOLE_PLACE { place / WHOLE_PLACE } else { (place - WHOLE_PLACE).exp2() }
}

/// What the residuals of a number on the side of a change that is all chance are expected to be, in rows:
///
/// ```text
///   freedom · E[psi²]/E[psi'] · E[f(b + z) z] / E[z²],     psi(r) = clamp(r/c, -1, 1),  f(z) = clamp(z / whole, -1, 1)
/// ```
/// with normal residuals of the target's deviation `residual`, `c = clip`, [`whole`](whole_rise), and normal scores `z` of standard deviation 1 beside the change `b` of
/// the intercept: to be divided by their standard deviation.
pub(super) fn by_chance(freedom: f64, clip: f64, residual: f64, intercept: f64, whole: f64) -> f64 {
    let slope = |z: f64| (residual * z / clip).min(1.0);
    let weighed = |z: f64| (z / whole).clamp(-1.0, 1.0);
    let of_rows = over_normal(|z| 0.5 * z * (weighed(intercept + z) - weighed(intercept - z)));
    freedom * over_normal(|z| slope(z).powi(2)) / curvature(clip, residual) * of_rows
}

/// Curvature of Huber's loss with this clip, for normal residuals of standard deviation `residual`: `E[psi'] = E[psi r] / E[r²]`.
pub(super) fn curvature(clip: f64, residual: f64) -> f64 {
    over_normal(|z| (residual * z / clip).min(1.0) * z) / residual
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Residuals that vanish at this place and fall by so many rows a place.
    fn steps_to(place: f64, rows: f64) -> Vec<f64> {
        [rows * place].into_iter().chain(FACTORS[1..].iter().map(|_| rows)).collect()
    }

    #[test]
    fn the_factor_is_the_one_at_which_residuals_are_on_neither_side() {
        for (place, factor) in [(0.5, 0.25), (1.5, 0.75), (2.0, 1.0), (3.0, 2.0), (3.5, 8f64.sqrt())] {
            let found = likely_factor(&steps_to(place, 1000.0), 10.0, Chance { rows: 0.0, freedom: 5.0 });
            assert!((found - factor).abs() < 0.02, "{place}: {found}");
        }
        assert!(
            likely_factor(&steps_to(-3.0, 1000.0), 10.0, Chance { rows: 0.0, freedom: 5.0 }) < 1e-3,
            "no less than nothing"
        );
        assert!(
            (likely_factor(&steps_to(9.0, 1000.0), 10.0, Chance { rows: 0.0, freedom: 5.0 }) - 4.0).abs() < 1e-2,
            "no farther than compared"
        );
    }

    /// Of 30 degrees of freedom chance alone is as large as 300 rows: they say nothing, and four times as many three quarters of it.
    #[test]
    fn what_chance_explains_is_taken_off() {
        let found = likely_factor(&steps_to(2.0, 150.0), 1.0, Chance { rows: 300.0, freedom: 30.0 });
        assert!(found < 0.25, "{found}");
        let found = likely_factor(&steps_to(2.0, 600.0), 1.0, Chance { rows: 300.0, freedom: 300.0 });
        assert!((found - 0.75).abs() < 0.03, "{found}");
    }

    /// By hand: places u = k/8 from 0 to 4 weigh 1, from 2 on e^((2 - u)/2), and 100 at 2.
    #[test]
    fn noise_leaves_the_prior() {
        let places = (0..=32).map(|place| f64::from(place) / 8.0);
        let weigh = |u: f64| (-0.5 * (u - 2.0).max(0.0)).exp() * if (u - 2.0).abs() < 1e-9 { 100.0 } else { 1.0 };
        let (mean, total) =
            places.fold((0.0, 0.0), |(mean, total), u| (mean + weigh(u) * factor_at(u), total + weigh(u)));
        let found = likely_factor(&steps_to(1.0, 1.0), 1e12, Chance { rows: 0.0, freedom: 5.0 });
        assert!((found - mean / total).abs() < 1e-9 && (0.95..1.05).contains(&found), "{found}");
    }

    #[test]
    fn rows_weigh_by_more_of_their_change_with_more_signal() {
        for (signal, expected) in [(1.0, 1.5), (1000.0, 1.5), (4000.0, 3.0)] {
            assert!((whole_rise(signal) - expected).abs() < 1e-12, "{signal}");
        }
    }

    /// With a clip far out Huber's loss is the square: `psi = r/c`, `E[psi²]/E[psi'] = residual²/c`; `E[min(|z|/1.5, 1) |z|]` of a standard
    /// normal is .5776.
    #[test]
    fn chance_is_what_the_squared_loss_makes_of_it() {
        let found = by_chance(7.0, 100.0, 0.5, 0.0, 1.5);
        assert!((found - 7.0 * 0.25 / 100.0 * 0.5776).abs() < 1e-4 * found, "{found}");
        assert!(by_chance(7.0, 100.0, 0.5, 9.0, 1.5) < 1e-6 * found, "an intercept decides the side of every row");
        assert!((curvature(100.0, 0.5) - 0.01).abs() < 1e-6);
        // E[z²] = 1: rows that weigh by their whole change.
        let whole = by_chance(7.0, 100.0, 0.5, 0.0, 50.0);
        assert!((whole - 7.0 * 0.25 / 100.0 / 50.0).abs() < 1e-4 * whole, "{whole}");
        // A clip of .8 deviations: P(|z| < .8) = .57629.
        assert!((curvature(0.4, 0.5) - 0.57629 / 0.4).abs() < 1e-3);
    }
}
