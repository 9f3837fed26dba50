//! What repeated runs on two neighbouring tables prove about a privacy parameter: lower bounds with a confidence.
//!
//! ```text
//!   a = P(test says "second" on the first table)     b = P(test says "first" on the second table)
//!   mu-GDP:             mu  >=  Phi^-1(1 - a) + Phi^-1(1 - b)
//!   (epsilon, delta):   e^epsilon a + b >= 1 - delta,   and the same with a and b exchanged
//! ```
//! With upper confidence bounds for `a` and `b` in their places the right sides become lower confidence bounds: if one is
//! above the claim, the claim is false. Source: Dong, Roth, Su 2022 (arXiv:1905.02383), Def. 2.6 and Prop. 2.5; Nasr et al.
//! 2023 (arXiv:2302.07956), section 4.

use statrs::distribution::{Beta, ContinuousCDF, Normal};

/// How often a fixed test erred, on runs that had no part in choosing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TestErrors {
    /// Runs on the first table that the test took for the second.
    pub false_alarms: u64,
    /// Runs on the second table that the test took for the first.
    pub misses: u64,
    /// Runs on each table.
    pub runs: u64,
}

/// Lower bounds that hold together with the confidence asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LowerBounds {
    /// For `mu` of Gaussian differential privacy, at least 0.
    pub mu: f64,
    /// For `epsilon` at the delta asked for, at least 0.
    pub epsilon: f64,
}

impl TestErrors {
    /// Bounds from both error rates, each bounded with half of the allowed failure.
    ///
    /// `confidence` and `delta` are between 0 and 1.
    #[must_use]
    pub fn lower_bounds(&self, confidence: f64, delta: f64) -> LowerBounds {
        let half = (1.0 - confidence) / 2.0;
        let false_alarm = rate_at_most(self.false_alarms, self.runs, half);
        let miss = rate_at_most(self.misses, self.runs, half);
        let normal = Normal::standard();
        let mu = normal.inverse_cdf(1.0 - false_alarm) + normal.inverse_cdf(1.0 - miss);
        let epsilon = |alarm: f64, miss: f64| ((1.0 - delta - miss).max(0.0) / alarm).ln();
        LowerBounds { mu: mu.max(0.0), epsilon: epsilon(false_alarm, miss).max(epsilon(miss, false_alarm)).max(0.0) }
    }
}

/// Clopper-Pearson: the rate is above this with probability at most `failure`.
fn rate_at_most(events: u64, runs: u64, failure: f64) -> f64 {
    if events >= runs {
        return 1.0;
    }
    let beta = Beta::new(events as f64 + 1.0, (runs - events) as f64).expect("both shapes are at least 1");
    beta.inverse_cdf(1.0 - failure)
}

/// The trade-off curve of `mu`-GDP: the least rate of misses of any test with this rate of false alarms.
#[must_use]
pub fn claimed_misses(false_alarms: f64, mu: f64) -> f64 {
    let normal = Normal::standard();
    normal.cdf(normal.inverse_cdf(1.0 - false_alarms) - mu)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_bounded_as_by_clopper_and_pearson() {
        // No event in n runs: 1 - failure^(1/n), by hand.
        assert!((rate_at_most(0, 1000, 0.05) - (1.0 - 0.05f64.powf(1e-3))).abs() < 1e-9);
        // SciPy 1.15: beta.ppf(0.995, 311, 690).
        assert!(
            (rate_at_most(310, 1000, 0.005) - 0.349_022_368_203_731_4).abs() < 1e-6,
            "{}",
            rate_at_most(310, 1000, 0.005)
        );
        assert!(rate_at_most(7, 7, 0.05) >= 1.0);
    }

    #[test]
    fn bounds_approach_the_truth_from_below() {
        // Errors of the best test at mu = 1: Phi(-1/2) each.
        let error = claimed_misses(0.308_537_538_725_986_9, 1.0);
        assert!((error - 0.308_537_538_725_986_9).abs() < 1e-9, "{error}");
        let mut last = 0.0;
        for runs in [100, 10_000, 1_000_000, 100_000_000] {
            let wrong = (error * runs as f64).round() as u64;
            let found = TestErrors { false_alarms: wrong, misses: wrong, runs }.lower_bounds(0.999, 1e-6);
            assert!(found.mu < 1.0 && found.mu > last, "{runs}: {found:?}");
            assert!(found.epsilon < ((1.0 - error) / error).ln());
            last = found.mu;
        }
        assert!(last > 0.999);
        // A test that is always right shows much, one that guesses shows nothing.
        assert!(TestErrors { false_alarms: 0, misses: 0, runs: 10_000 }.lower_bounds(0.999, 1e-6).mu > 6.0);
        let guess = TestErrors { false_alarms: 500, misses: 500, runs: 1000 }.lower_bounds(0.999, 1e-6);
        assert_eq!(guess, LowerBounds { mu: 0.0, epsilon: 0.0 });
    }
}
