//! What objective perturbation costs: the minimiser of a convex loss plus a ridge plus a random linear term.
//!
//! ```text
//!   theta = argmin  sum_i l(theta · x_i, y_i) + (lambda/2) ||theta - w_0||² + b · theta      b ~ N(0, s² I), ||x_i|| <= 1
//!   add-remove, both directions, every epsilon >= 0:   delta <= D_K(r, max(0, epsilon - c))
//!   two classes:  r = 1/s,        c = ln(1 + 1/(4 lambda)),            D_2(r, e) = delta of r-GDP at e
//!   K classes:    r = sqrt(2)/s,  c = (K-1) ln(1 + 1/(K lambda)),      D_K(r, e) = E (1 - e^(e - T))_+,
//!                 T = r²/2 + (r/sqrt 2)(N_0 + max(N_1 .. N_{K-1})),    N_j independent standard normal
//! ```
//! Derived in `docs/methods/objective-perturbation.md`; rows of 1-norm lattices use `lambda` and `s` in units in which the
//! longest row has length 1. Conditions: twice differentiable convex loss, `theta` free in `R^d`, ridge and noise in every
//! coordinate, the slope range of every label an interval of length 1 that holds 0 (its analogue for K classes).
//!
//! The ledger counts in GDP, so the price is a `mu'` whose profile lies above this bound at every epsilon:
//! `equivalent_mu_up`.

use std::sync::OnceLock;

use super::gdp::{delta_up as gaussian_delta_up, log_delta_up};
use super::normal::log_normal_cdf;
use crate::units::Mu;

/// The bound for one choice of classes, ridge and noise.
#[derive(Clone, Debug)]
pub struct ObjectiveProfile {
    classes: u32,
    /// Length of the longest shift of `b` over `s`, rounded up.
    shift: Mu,
    /// Logarithm of the largest ratio of determinants, rounded up.
    log_determinant: f64,
    /// `(e^e, D_K(r, e))` at growing `e` for three classes or more; convex in `e^e`, so chords are upper bounds. A price of labels alone
    /// needs none of them, and they are most of the work.
    knots: OnceLock<Vec<(f64, f64)>>,
}

impl ObjectiveProfile {
    /// The bound for `classes >= 2`, ridge `l2` (a total, not a row's) and standard deviation `noise` of the linear term, in
    /// units in which the longest row has length 1.
    ///
    /// `None` when ridge or noise is not above 0, or so small that there is no price.
    #[must_use]
    pub fn new(classes: u32, l2: f64, noise: f64) -> Option<Self> {
        let usable = classes >= 2 && l2 > 0.0 && noise > 0.0;
        if !usable {
            return None;
        }
        let (others, all) = (f64::from(classes - 1), f64::from(classes));
        // A few roundings each: a part in 1e13 up covers them.
        let log_determinant = if classes == 2 {
            (0.25 / l2).ln_1p() * (1.0 + SLACK)
        } else {
            others * (1.0 / (all * l2)).ln_1p() * (1.0 + SLACK)
        };
        let length = if classes == 2 { 1.0 } else { std::f64::consts::SQRT_2 };
        let shift = Mu::new(length / noise * (1.0 + SLACK)).ok().filter(|shift| shift.get() <= SHIFT_MAX)?;
        log_determinant.is_finite().then_some(Self { classes, shift, log_determinant, knots: OnceLock::new() })
    }

    /// Length of the longest shift over the noise: the `mu` of changing labels alone, which costs no determinant.
    #[must_use]
    pub fn shift_up(&self) -> Mu {
        self.shift
    }

    /// `delta` at `epsilon` under add-remove of one row, rounded up.
    ///
    /// Guarantee: (epsilon, delta)-DP in both directions. Edges: never above 1.
    ///
    /// # Panics
    /// When `epsilon` is negative or NaN.
    #[must_use]
    pub fn delta_up(&self, epsilon: f64) -> f64 {
        assert!(epsilon >= 0.0, "epsilon must be at least 0");
        self.unshifted_up((epsilon - self.log_determinant).max(0.0)).min(1.0)
    }

    /// `D_K(r, e)` for `e >= 0`.
    fn unshifted_up(&self, e: f64) -> f64 {
        if self.classes == 2 {
            return gaussian_delta_up(self.shift, e);
        }
        // The union over the K - 1 vertices; near-exact far out, where the chord is not.
        let union = f64::from(self.classes - 1) * gaussian_delta_up(self.shift, e) * (1.0 + SLACK);
        let at = e.exp();
        let knots = self.knots.get_or_init(|| knots(self.classes, self.shift.get()));
        let after = knots.partition_point(|(knot, _)| *knot <= at);
        if after == 0 || after == knots.len() {
            return union;
        }
        let ((left, high), (right, low)) = (knots[after - 1], knots[after]);
        let chord = high + (low - high) * ((at - left) / (right - left));
        union.min(chord * (1.0 + 1e-10))
    }

    /// Natural logarithm of [`Self::delta_up`].
    fn log_delta_up(&self, epsilon: f64) -> f64 {
        let e = (epsilon - self.log_determinant).max(0.0);
        // The logarithm keeps its digits where delta is too small for a float.
        let union = log_delta_up(self.shift, e) + (f64::from(self.classes - 1)).ln() + SLACK;
        if self.classes == 2 { union } else { union.min(self.unshifted_up(e).ln() + 1e-12).min(0.0) }
    }

    /// A `mu'` for which every mechanism within this bound is `mu'`-GDP, rounded up; `None` when there is none in range.
    ///
    /// ```text
    ///   mu' = (1 + excess) · root of  delta_G(mu', c) = D_K(r, 0)
    /// ```
    /// The root alone is the right answer in every case that was tried, but that is no proof; so the domination is checked
    /// for this `mu'` each time. Both profiles fall with epsilon. On `[0, c]` the bound is constant. From `c` on a grid is
    /// laid such that the Gaussian profile at the *next* point is still above the bound at this one, so that nothing can
    /// happen between two points. Beyond `t` the slope of the Gaussian profile is the steeper one for good:
    ///
    /// ```text
    ///   -d/d eps delta_G(mu', eps) = e^eps Phi(-B),  B = eps/mu' + mu'/2
    ///   -d/d eps bound            <= (K-1) e^(eps - c) Phi(-A),  A = (eps - c)/r + r/2
    ///   A >= B >= 0 and (A² - B²)/2 >= ln(K-1) - c   imply   (K-1) e^-c Phi(-A) <= Phi(-B)
    /// ```
    /// and both go to 0. `excess` starts at 1/1000 and grows until the check passes.
    ///
    /// Guarantee: add-remove of one row costs at most this `mu'`, in both directions and in any adaptive composition; for
    /// replacing a row, or a unit of `m` rows, group privacy multiplies it by the number of rows added and removed
    /// (Dong, Roth, Su 2022, Theorem 2.14).
    /// Source: derived in `docs/methods/objective-perturbation.md`.
    #[must_use]
    pub fn equivalent_mu_up(&self) -> Option<Mu> {
        let root = self.one_point_mu()?;
        (0..40).map(|attempt| 1e-3 * 1.35f64.powi(attempt)).find_map(|excess| {
            let candidate = Mu::new(root * (1.0 + excess)).ok().filter(|mu| mu.get() <= MU_MAX)?;
            self.is_dominated_by(candidate).then_some(candidate)
        })
    }

    /// The root of `delta_G(mu', c) = D_K(r, 0)`, from above.
    fn one_point_mu(&self) -> Option<f64> {
        let target = self.log_delta_up(0.0);
        let below = |mu: f64| Mu::new(mu).is_ok_and(|mu| log_delta_down(mu, self.log_determinant) < target);
        if below(MU_MAX) {
            return None;
        }
        let (mut low, mut high) = (0.5 * self.shift.get(), MU_MAX);
        while high / low > 1.0 + 1e-9 {
            let middle = (low * high).sqrt();
            if below(middle) { low = middle } else { high = middle }
        }
        Some(high.max(self.shift.get()))
    }

    fn is_dominated_by(&self, mu: Mu) -> bool {
        let Some(end) = self.end_of_check(mu.get()) else { return false };
        let mut epsilon = self.log_determinant;
        if log_delta_down(mu, epsilon) < self.log_delta_up(0.0) {
            return false;
        }
        let mut step = 0.25 * mu.get();
        for _ in 0..GRID_MAX {
            if epsilon >= end {
                return true;
            }
            let bound = self.log_delta_up(epsilon);
            step *= 2.0;
            while log_delta_down(mu, epsilon + step) < bound {
                step *= 0.5;
                if step < 1e-9 * mu.get() {
                    return false;
                }
            }
            epsilon += step;
        }
        false
    }

    /// A `t` beyond which the slopes order themselves, see [`Self::equivalent_mu_up`].
    fn end_of_check(&self, mu: f64) -> Option<f64> {
        let (c, r, others) = (self.log_determinant, self.shift.get(), f64::from(self.classes - 1));
        if mu <= r * (1.0 + 1e-6) {
            return None;
        }
        // A grows faster than B, so this ends; a part in 1e6 covers the roundings.
        let mut end = c;
        for _ in 0..1000 {
            let (a, b) = ((end - c) / r + 0.5 * r, end / mu + 0.5 * mu);
            if a >= b * (1.0 + 1e-6) && 0.5 * (a - b) * (a + b) >= others.ln() - c + 1e-6 {
                return Some(end);
            }
            end = end * 1.05 + 1e-3 * r;
        }
        None
    }
}

/// `ln delta` of mu-GDP, rounded down: [`log_delta_up`] lies above the truth by at most `2e-12 + 1e-15 |log delta|`, or,
/// where delta is near 1, by 2e-12 of `1 - delta`.
fn log_delta_down(mu: Mu, epsilon: f64) -> f64 {
    let up = log_delta_up(mu, epsilon);
    up - 1e-11 - 1e-14 * up.abs()
}

/// `D_K(r, e)` from above at [`KNOTS`] values of `e` from 0 to `6 r + r²/2`.
///
/// Given `max(N_1 ..) = m`, `T` is normal with mean `r²/2 + r m/sqrt 2` and variance `tau² = r²/2`, so with `delta_G` the
/// Gaussian profile (continued to negative arguments) the conditional expectation is `delta_G(tau, e - tau²/2 - tau m)`.
/// It grows with `m`, whose distribution function is `Phi^{K-1}`: the sum with the right end of every cell is above the
/// integral.
fn knots(classes: u32, shift: f64) -> Vec<(f64, f64)> {
    let tau = shift * std::f64::consts::FRAC_1_SQRT_2;
    let spread = Mu::new(tau * (1.0 + SLACK)).expect("a finite shift above 0");
    // Cells of the distribution of the maximum: the first from -infinity to -9, the last up to 12. Beyond lies less than
    // (K-1) 1e-32, and the conditional expectation is at most 1.
    let cells: Vec<(f64, f64)> = {
        let distribution = |m: f64| (f64::from(classes - 1) * log_normal_cdf(m)).exp();
        let width = 21.0 / f64::from(CELLS);
        let mut before = 0.0;
        (0..=CELLS)
            .map(|cell| {
                let m = -9.0 + width * f64::from(cell);
                let until = distribution(m);
                let mass = until - before;
                before = until;
                (m, mass.max(0.0))
            })
            .collect()
    };
    (0..KNOTS)
        .map(|knot| {
            let e = (6.0 * shift + 0.5 * shift * shift) * f64::from(knot) / f64::from(KNOTS - 1);
            let inner: f64 =
                cells.iter().map(|(m, mass)| mass * two_sided_delta_up(spread, e - tau * (0.5 * tau + m))).sum();
            // The distribution function is known to 1e-13, and the expectation at m = 12 is below 20 tau.
            (e.exp(), (inner * (1.0 + 1e-11) + 1e-11 * tau.min(1.0)).min(1.0))
        })
        .collect()
}

/// Profile of mu-GDP at any real epsilon: `delta(-x) = 1 - e^-x + e^-x delta(x)`.
fn two_sided_delta_up(mu: Mu, epsilon: f64) -> f64 {
    if epsilon >= 0.0 {
        gaussian_delta_up(mu, epsilon)
    } else {
        -epsilon.exp_m1() + epsilon.exp() * gaussian_delta_up(mu, -epsilon)
    }
}

/// Relative slack for a handful of roundings.
const SLACK: f64 = 1e-13;

/// Cells of the outer integral and knots of the profile for three classes or more.
const CELLS: u32 = 3000;
const KNOTS: u32 = 49;

/// Largest shift over noise, and largest `mu'`, that are priced: beyond, delta is 1 in all but name.
const SHIFT_MAX: f64 = 30.0;
const MU_MAX: f64 = 100.0;

/// Most grid points of a check.
const GRID_MAX: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(classes: u32, l2: f64, noise: f64) -> ObjectiveProfile {
        ObjectiveProfile::new(classes, l2, noise).expect("in range")
    }

    /// `D` is flat up to `e` and twice that of 1-GDP from there on, which no `D_3` is: a `mu'` that is enough at `c` is too small a
    /// little later.
    fn with_a_plateau(e: f64) -> ObjectiveProfile {
        let shift = Mu::new(1.0).expect("legal");
        let height = 2.0 * gaussian_delta_up(shift, e);
        ObjectiveProfile {
            classes: 3,
            shift,
            log_determinant: 0.05,
            knots: vec![(1.0, height), (e.exp(), height)].into(),
        }
    }

    #[test]
    fn a_mu_below_the_profile_at_any_epsilon_is_refused() {
        for profile in [profile(2, 5.0, 10.0), profile(2, 0.1, 1.0), profile(3, 5.0, 10.0), profile(10, 1.0, 3.0)] {
            let root = profile.one_point_mu().expect("in range");
            let of = |factor: f64| profile.is_dominated_by(Mu::new(root * factor).expect("legal"));
            assert!(!of(0.999) && of(1.001), "{profile:?}");
        }
        for e in [0.02, 0.4, 3.0] {
            let plateau = with_a_plateau(e);
            let (root, found) =
                (plateau.one_point_mu().expect("in range"), plateau.equivalent_mu_up().expect("in range"));
            let height = 2.0 * gaussian_delta_up(plateau.shift, e);
            let enough = |mu: f64| gaussian_delta_up(Mu::new(mu).expect("legal"), e + 0.05) >= height;
            assert!(!enough(root * 1.003), "the root does not see the end of the plateau");
            assert!(!plateau.is_dominated_by(Mu::new(root * 1.003).expect("legal")), "{e}");
            // The excess grows until the check passes, by a third each time.
            let excess = found.get() / root - 1.0;
            assert!(enough(found.get()) && !enough(root * (1.0 + excess / 1.5)), "{e}: {found} {root}");
        }
    }

    #[test]
    fn the_check_ends_where_the_slopes_stay_in_order() {
        for (profile, factor) in [
            (profile(2, 5.0, 10.0), 1.3),
            (profile(2, 0.05, 1.0), 2.0),
            (profile(3, 5.0, 10.0), 1.1),
            (profile(3, 50.0, 0.5), 1.01),
            (profile(10, 200.0, 3.0), 1.05),
            (profile(200, 1e5, 20.0), 1.2),
        ] {
            let (c, r, others) = (profile.log_determinant, profile.shift.get(), f64::from(profile.classes - 1));
            let mu = r * factor;
            let in_order = |t: f64| {
                let (a, b) = ((t - c) / r + r / 2.0, t / mu + mu / 2.0);
                a >= b && b >= 0.0 && (a * a - b * b) / 2.0 >= others.ln() - c
            };
            let (mut early, mut late) = (0.0, 1e9);
            while late - early > 1e-9 * late {
                let middle = 0.5 * (early + late);
                if in_order(middle) { late = middle } else { early = middle }
            }
            let found = profile.end_of_check(mu).expect("found");
            assert!(in_order(found), "{profile:?}");
            assert!(found <= late * 1.06 + 2e-3 * r, "{found} is needlessly far, {late} would do");
            assert_eq!(profile.end_of_check(r * (1.0 + 5e-7)), None, "slopes too near each other");
        }
    }

    /// What bounds are made of is below them, by the slack for roundings.
    #[test]
    fn bounds_have_their_slack() {
        let two = profile(2, 5.0, 10.0);
        for (factor, classes) in [(2.0, 3), (4.0, 5)] {
            let union = ObjectiveProfile { classes, knots: Vec::new().into(), ..two.clone() };
            for e in [0.0, 0.01, 0.5] {
                let plain = factor * gaussian_delta_up(two.shift, e);
                let found = union.unshifted_up(e);
                assert!(found > plain && found < plain * (1.0 + 1e-12), "{classes} classes at {e}: {found} {plain}");
                let plain = log_delta_up(two.shift, e) + f64::ln(factor);
                let found = union.log_delta_up(e + union.log_determinant);
                assert!(found > plain && found < plain + 1e-11, "{classes} classes at {e}: {found} {plain}");
            }
            // Where delta itself has no float left.
            let e = 30.0;
            let plain = log_delta_up(two.shift, e) + f64::ln(factor);
            let found = union.log_delta_up(e + union.log_determinant);
            assert!((found - plain).abs() < 1e-9 * plain.abs() && plain < -700.0, "{found} {plain}");
        }
        assert!(two.log_delta_up(0.1 + two.log_determinant) > log_delta_up(two.shift, 0.1 - 1e-15));
        let shift = Mu::new(1.0).expect("legal");
        let chord = ObjectiveProfile { classes: 3, shift, knots: vec![(1.0, 0.02), (2.0, 0.01)].into(), ..two };
        let (found, plain) = (chord.unshifted_up(1.5f64.ln()), 0.015);
        assert!(found > plain * (1.0 + 1e-11) && found < plain * (1.0 + 1e-9), "{found}");
        let log = chord.log_delta_up(1.5f64.ln() + chord.log_determinant);
        assert!(log > found.ln() && log < found.ln() + 1e-11, "{log}");
    }
    #[test]
    fn a_profile_from_below_is_below_the_error_of_the_one_from_above() {
        for (mu, epsilon) in [(1.0, 0.1), (3.0, 2.0), (0.01, 5.0), (1e-3, 50.0)] {
            let mu = Mu::new(mu).expect("legal");
            let (down, up) = (log_delta_down(mu, epsilon), log_delta_up(mu, epsilon));
            let error = 2e-12 + 1e-15 * up.abs();
            assert!(down <= up - 2.0 * error && down >= up - 1e-10 - 1e-13 * up.abs(), "{down} {up}");
        }
    }

    #[test]
    fn knots_lie_evenly_as_far_as_they_are_needed() {
        let shift = 0.7;
        let knots = knots(4, shift);
        assert_eq!(knots.len(), 49);
        let end = 6.0 * shift + shift * shift / 2.0;
        for (place, (knot, _)) in knots.iter().enumerate() {
            assert!((knot.ln() - end * place as f64 / 48.0).abs() < 1e-12, "{place}");
        }
    }
}
