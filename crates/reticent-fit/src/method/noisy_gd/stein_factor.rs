//! How much of what a descent has changed is to be kept, as far as the change itself tells: its length against that of the noise in it.
//!
//! ```text
//!   Q = sum_j v_j c_j²      N = sum_j v_j s_j²      d = N² / sum_j (v_j s_j²)²      c: change;  s: deviation of its noise;  v: variances of columns
//!   factor = max(0, 1 - (1 - 2/d) N/Q)   from d = 16 on, else 1
//! ```
//! The noise of released gradients is public, and so is what a descent makes of it. A change that is no longer than that noise is noise. The
//! factor is a function of released numbers and costs nothing. With few directions the length of noise is chance, and columns that vary more than
//! their noisy marginals say make a descent take in less noise than is expected here: a strong signal would be lost.
//!
//! Source: James, Stein 1961 (positive part: Baranchik 1964), with the effective number of directions `d` in place of that of equal variances.

use super::heavy_ball::Flow;
use crate::released_marginals::ScaledColumns;

/// Effective number of directions from which on lengths are compared.
const DIRECTIONS_MIN: f64 = 16.0;

/// The factor for `change`, one a column with the intercept first, by gradients over so many rows, each with `noise` in every coordinate, of a loss
/// that has this curvature along a score. How much columns vary that rows list is not released: with those it is 1.
pub(super) fn stein_factor(
    change: &[f64],
    scaled: &ScaledColumns,
    curvature: f64,
    flow: Flow,
    rows: f64,
    noise: f64,
) -> f64 {
    let variances: Vec<f64> = scaled.released_deviations().iter().map(|deviation| deviation.powi(2)).collect();
    let length = scaled.score_deviation(change).powi(2);
    if variances.len() + 1 < change.len() || length <= 0.0 {
        return 1.0;
    }
    let curvatures: Vec<f64> = variances.iter().map(|variance| curvature * variance / scaled.row_norm).collect();
    let of_one = flow.noise(&curvatures);
    let parts: Vec<f64> = variances.iter().zip(of_one).map(|(v, one)| v * (one * noise / rows).powi(2)).collect();
    let total: f64 = parts.iter().sum();
    let directions = total.powi(2) / parts.iter().map(|part| part * part).sum::<f64>();
    // Without noise there is no number of directions.
    if directions.is_nan() || directions < DIRECTIONS_MIN {
        return 1.0;
    }
    (1.0 - (1.0 - 2.0 / directions) * total / length).max(0.0)
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::Coding;
    use reticent_core::schema::Schema;
    use reticent_math::fixed_sequence::FixedSequence;

    use super::super::heavy_ball::Stride;
    use super::*;
    use crate::released_marginals::{AS_RELEASED, ReleasedMarginals};

    /// So many numbers that vary by as much as they may.
    fn scaled(numbers: usize) -> ScaledColumns {
        let columns: String = (0..numbers).map(|place| format!("x{place} = {{ bounds = [0, 1] }}\n")).collect();
        let schema = format!(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nbounds = [0, 1]\n[features]\n{columns}"
        );
        let coding = Coding::of(&Schema::from_text(&schema).expect("legal"));
        ReleasedMarginals::of(&coding, &[0.0, 0.5].repeat(numbers), 1.0, 0.0, None).scaled(&coding, 1000.0, AS_RELEASED)
    }

    const FLOW: Flow = Flow { stride: Stride { step: 0.01, momentum: 0.9 }, passes: 100, ridge: 0.0 };

    /// A change of so many times the expected length.
    fn change(numbers: usize, times: f64) -> Vec<f64> {
        let scaled = scaled(numbers);
        let curvature = scaled.released_deviations()[0].powi(2) / scaled.row_norm;
        let weight = times * 3.0 / 50.0 * FLOW.noise(&[curvature])[0];
        std::iter::once(7.0).chain((0..numbers).map(|_| weight)).collect()
    }

    fn factor(numbers: usize, times: f64) -> f64 {
        stein_factor(&change(numbers, times), &scaled(numbers), 1.0, FLOW, 50.0, 3.0)
    }

    /// By hand, with equal variances: `1 - (38/40) / times²`.
    #[test]
    fn a_change_that_is_no_longer_than_its_noise_goes() {
        for (times, expected) in [(0.5, 0.0), (1.0, 0.05), (2.0, 1.0 - 0.95 / 4.0), (100.0, 1.0)] {
            let found = factor(40, times);
            assert!((found - expected).abs() < 1e-3, "{times}: {found} {expected}");
        }
    }

    #[test]
    fn what_lengths_cannot_tell_is_left() {
        assert!((factor(15, 0.5) - 1.0).abs() < 1e-12, "few directions");
        assert!((factor(40, 0.0) - 1.0).abs() < 1e-12, "no change");
        let of = |change: &[f64], noise: f64| stein_factor(change, &scaled(40), 1.0, FLOW, 50.0, noise);
        assert!((of(&[1e-3; 41], 0.0) - 1.0).abs() < 1e-12, "no noise");
        assert!(
            of(&[1e-3; 41], 3.0) < 1e-12 && (of(&[1e-3; 90], 3.0) - 1.0).abs() < 1e-12,
            "columns after those that tell how they vary"
        );
    }

    /// Weights that are noise about a signal: the factor makes the error less than that of all and of nothing.
    #[test]
    fn a_signal_in_noise_is_met_better_by_part_of_the_change() {
        let (mut sequence, numbers) = (FixedSequence::new(9), 60);
        let scaled = scaled(numbers);
        let noise = change(numbers, 1.0)[1];
        let (mut kept, mut whole, mut nothing) = (0.0, 0.0, 0.0);
        for _ in 0..200 {
            let signal: Vec<f64> = (0..numbers).map(|_| noise * sequence.next_normal()).collect();
            let found: Vec<f64> = signal.iter().map(|one| one + noise * sequence.next_normal()).collect();
            let change: Vec<f64> = std::iter::once(0.0).chain(found.iter().copied()).collect();
            let factor = stein_factor(&change, &scaled, 1.0, FLOW, 50.0, 3.0);
            for (signal, found) in signal.iter().zip(&found) {
                kept += (factor * found - signal).powi(2);
                whole += (found - signal).powi(2);
                nothing += signal.powi(2);
            }
        }
        // Half of each is expected; a factor's own error adds 2/60 of it.
        assert!(kept < 0.56 * whole && kept < 0.56 * nothing, "{kept} {whole} {nothing}");
    }
}
