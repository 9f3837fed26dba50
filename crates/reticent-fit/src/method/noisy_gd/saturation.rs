//! Saturated slopes of more than two classes: how far, and what they do to probabilities.
//!
//! With saturation `s` a row's slopes are `(p - e_y) / d_y`, `d_k = max(||p - e_k||, s max_l ||p - e_l||)`. Where the classes have
//! probabilities `q`, their mean is zero when `q_k / d_k` is proportional to `p_k`. So shares `p` stand for
//!
//! ```text
//!   q_k = p_k d_k / sum_l p_l d_l
//! ```
//! which is `p` for `s = 1`, and less sure than `p` below.

use crate::softmax::normalised;

/// Signal `n mu` at which slopes are saturated by half, and the least saturation.
const HALF_SIGNAL: f64 = 1000.0;
const LEAST: f64 = 0.5;
/// The same where columns are in order.
const HALF_SIGNAL_IN_ORDER: f64 = 2000.0;
const LEAST_IN_ORDER: f64 = 0.35;
/// Most steps that [`shares_of`] takes, their damping, and the change at which it stops.
const STEPS: usize = 1000;
const DAMPING: f64 = 0.5;
const CLOSE: f64 = 1e-13;

/// Saturation for a signal `n mu`: `n mu / (n mu + 1000)`, at least 1/2.
///
/// With less of it rows that are right, but not sure, push more against the noise, and scores become too sure where classes overlap:
/// worth it as long as noise is what costs most.
pub(super) fn saturation_of(signal: f64) -> f64 {
    (signal / (signal + HALF_SIGNAL)).max(LEAST)
}

/// The same from the pass on in which columns are found to be in order: `n mu / (n mu + 2000)`, at least .35.
///
/// What noise leaves of many columns that say little each is mostly what they have in common: probabilities are then far from sure, and rows that
/// are right would push least.
pub(super) fn saturation_in_order(signal: f64) -> f64 {
    (signal / (signal + HALF_SIGNAL_IN_ORDER)).max(LEAST_IN_ORDER)
}

/// The divisors `d` at softmax shares `p`, all of them above 0.
pub(super) fn divisors_of(shares: &[f64], saturation: f64) -> Vec<f64> {
    let square: f64 = shares.iter().map(|share| share * share).sum();
    let norms: Vec<f64> = shares.iter().map(|share| (square + 1.0 - 2.0 * share).max(0.0).sqrt()).collect();
    let least = saturation * norms.iter().fold(0.0, |largest: f64, norm| largest.max(*norm));
    norms.into_iter().map(|norm| norm.max(least)).collect()
}

/// Probabilities `q` that softmax shares `p` stand for.
fn rates_of(shares: &[f64], saturation: f64) -> Vec<f64> {
    normalised(shares.iter().zip(divisors_of(shares, saturation)).map(|(share, divisor)| share * divisor).collect())
}

/// Shares that stand for these probabilities, all of them above 0: the inverse of [`rates_of`], by damped steps.
pub(super) fn shares_of(rates: &[f64], saturation: f64) -> Vec<f64> {
    let mut shares = rates.to_vec();
    for _ in 0..STEPS {
        let reached = rates_of(&shares, saturation);
        let far = rates.iter().zip(&reached).map(|(rate, reached)| (rate - reached).abs()).fold(0.0, f64::max);
        if far < CLOSE {
            break;
        }
        let step = shares.iter().zip(rates.iter().zip(reached));
        shares = normalised(step.map(|(share, (rate, reached))| share * (rate / reached).powf(DAMPING)).collect());
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn saturation_grows_with_the_signal() {
        for (signal, expected) in [(1e-3, 0.5), (700.0, 0.5), (3000.0, 0.75), (1e9, 1.0)] {
            assert!((saturation_of(signal) - expected).abs() < 1e-6, "{signal}");
        }
        for (signal, expected) in [(1e-3, 0.35), (1000.0, 0.35), (2000.0, 0.5), (6000.0, 0.75)] {
            assert!((saturation_in_order(signal) - expected).abs() < 1e-6, "{signal}");
        }
    }

    proptest! {
        /// The mean of the slopes is zero at the shares that stand for the rates.
        #[test]
        fn shares_of_rates_are_where_saturated_slopes_vanish(
            weights in prop::collection::vec(1.0f64..100.0, 3..12), saturation in 0.5f64..=1.0,
        ) {
            let rates = normalised(weights);
            let shares = shares_of(&rates, saturation);
            let length = |class: usize| -> f64 {
                let apart = |(place, share): (usize, &f64)| share - if place == class { 1.0 } else { 0.0 };
                shares.iter().enumerate().map(apart).map(|one| one * one).sum::<f64>().sqrt()
            };
            let largest = (0..shares.len()).map(length).fold(0.0, f64::max);
            for place in 0..shares.len() {
                let slope = |class: usize| {
                    let indicator = if place == class { 1.0 } else { 0.0 };
                    (shares[place] - indicator) / length(class).max(saturation * largest)
                };
                let mean: f64 = rates.iter().enumerate().map(|(class, rate)| rate * slope(class)).sum();
                prop_assert!(mean.abs() < 1e-9, "{} {:?}", mean, shares);
            }
            prop_assert!(rates_of(&rates, 1.0).iter().zip(&rates).all(|(one, other)| (one - other).abs() < 1e-12));
        }
    }
}
