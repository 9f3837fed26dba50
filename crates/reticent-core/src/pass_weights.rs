//! The public weights that score a row in one pass, as integers, how far bounded slopes are driven, and what part of its bounds a
//! numeric target is read in.

use crate::encoding::LATTICE_NORM_MAX;
use crate::target_window::TargetWindow;

/// Weights of the linear scores of one pass, score after score: 16-bit integers and one power of two, from public weights alone.
///
/// `||weights||_2 <= 65535`, so that by Cauchy-Schwarz every partial sum of `weights · row` stays below `2^31` for a row of
/// norm at most 32767: a 32-bit dot product is exact in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct PassWeights {
    weights: Vec<i16>,
    /// A power of two: `weight ≈ step · weights[j]`.
    step: f32,
    /// Within [`SATURATION_MIN`] and 1.
    saturation: f32,
    target_window: TargetWindow,
}

/// Smallest [`PassWeights::saturation`].
const SATURATION_MIN: f32 = 1.0 / 16.0;

/// Bound on the norm of [`PassWeights`] in their own steps.
const PASS_WEIGHTS_NORM_MAX: f64 = 65_535.0;

const _: () =
    assert!(PASS_WEIGHTS_NORM_MAX as i64 * LATTICE_NORM_MAX as i64 <= i32::MAX as i64, "a dot product fits 32 bits");

impl PassWeights {
    /// For a query without a score.
    #[must_use]
    pub fn none() -> Self {
        Self { weights: Vec::new(), step: 1.0, saturation: 1.0, target_window: TargetWindow::BOUNDS }
    }

    /// For products with a numeric target that is read in a part of its bounds.
    #[must_use]
    pub fn of_target(target_window: TargetWindow) -> Self {
        Self { target_window, ..Self::none() }
    }

    /// Rounds public weights to the finest power-of-two grid that fits. NaN counts as zero.
    #[must_use]
    pub fn quantise(weights: &[f64]) -> Self {
        let finite = |weight: f64| if weight.is_nan() { 0.0 } else { weight.clamp(-1e15, 1e15) };
        let norm = weights.iter().map(|weight| finite(*weight).powi(2)).sum::<f64>().sqrt();
        let largest = weights.iter().map(|weight| finite(*weight).abs()).fold(0.0, f64::max);
        // Rounding adds at most half a step a coordinate.
        let rounding = 0.5 * (weights.len() as f64).sqrt() + 1.0;
        let needed = (norm / (PASS_WEIGHTS_NORM_MAX - rounding)).max(largest / (f64::from(LATTICE_NORM_MAX) - 0.5));
        let exponent = needed.max(2f64.powi(-100)).log2().ceil() as i32;
        let step = 2f64.powi(exponent);
        let weights: Vec<i16> = weights.iter().map(|weight| (finite(*weight) / step).round() as i16).collect();
        let square: u64 = weights.iter().map(|weight| u64::from(weight.unsigned_abs()).pow(2)).sum();
        assert!(
            square as f64 <= PASS_WEIGHTS_NORM_MAX * PASS_WEIGHTS_NORM_MAX,
            "the step was chosen so that this holds"
        );
        Self { weights, step: step as f32, ..Self::none() }
    }

    /// The same weights with another [`saturation`](Self::saturation), brought into `[1/16, 1]`; NaN counts as 1.
    #[must_use]
    pub fn with_saturation(self, saturation: f64) -> Self {
        let saturation = if saturation.is_nan() { 1.0 } else { saturation as f32 };
        Self { saturation: saturation.clamp(SATURATION_MIN, 1.0), ..self }
    }

    /// The same weights for a numeric target that is read in a part of its bounds.
    #[must_use]
    pub fn with_target_window(self, target_window: TargetWindow) -> Self {
        Self { target_window, ..self }
    }

    /// The integers.
    #[must_use]
    pub fn weights(&self) -> &[i16] {
        &self.weights
    }

    /// What one integer step is worth; a power of two.
    #[must_use]
    pub fn step(&self) -> f32 {
        self.step
    }

    /// Softmax slopes at least this long, as a share of the longest that the same scores have with any class, are scaled to
    /// length 1; shorter ones in proportion. So are the residuals of a number at least this long, as a share of half its window. 1 unless
    /// set. [Bounded slopes](crate::slope::bounded_softmax_slopes), those of [`Loss::Huber`](crate::query::Loss::Huber) and
    /// [residual steps](crate::query::Map::ResidualSteps) look at it.
    #[must_use]
    pub fn saturation(&self) -> f32 {
        self.saturation
    }

    /// The part of its bounds that a numeric target is read in: all of them unless set. Gram queries, gradients of
    /// [`Loss::Huber`](crate::query::Loss::Huber), [residual steps](crate::query::Map::ResidualSteps), sums of the target, products of labels
    /// with a public matrix and their squares alone look at it.
    #[must_use]
    pub fn target_window(&self) -> TargetWindow {
        self.target_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// 65,536 like weights, all of them rounded up by half a step: the grid is as fine as it may be, and no finer.
    #[test]
    fn the_grid_is_the_finest_that_holds_the_norm_after_rounding() {
        let step = |weights: &[f64]| PassWeights::quantise(weights).step();
        for (weight, expected) in
            [(255.2, 1.0), (255.4925, 2.0), (255.5, 2.0), (255.9, 2.0), (510.4, 2.0), (511.0, 4.0)]
        {
            assert!((step(&vec![weight; 1 << 16]) - expected).abs() < 1e-9, "{weight}");
        }
        for (weight, expected) in [(32_766.4, 1.0), (32_766.9, 2.0), (-65_532.9, 2.0)] {
            assert!((step(&[weight]) - expected).abs() < 1e-9, "{weight}");
        }
    }

    #[test]
    fn slopes_are_saturated_as_asked_and_within_the_range() {
        assert!((PassWeights::none().saturation() - 1.0).abs() < 1e-9);
        for (asked, kept) in [(0.5, 0.5), (0.0, 0.0625), (-3.0, 0.0625), (7.0, 1.0), (f64::NAN, 1.0)] {
            let weights = PassWeights::quantise(&[2.0]);
            let saturated = weights.clone().with_saturation(asked);
            assert!((saturated.saturation() - kept).abs() < 1e-9, "{asked}");
            assert_eq!((saturated.weights(), saturated.step()), (weights.weights(), weights.step()));
        }
    }

    proptest! {
        #[test]
        fn pass_weights_fit_an_exact_dot_product(weights in prop::collection::vec(-1e3f64..1e3, 1..200), power in -20i32..20) {
            let weights: Vec<f64> = weights.iter().map(|weight| weight * 2f64.powi(power)).collect();
            let pass = PassWeights::quantise(&weights);
            let square: u64 = pass.weights().iter().map(|weight| u64::from(weight.unsigned_abs()).pow(2)).sum();
            prop_assert!(square <= 65_535 * 65_535);
            for (weight, integer) in weights.iter().zip(pass.weights()) {
                prop_assert!((weight - f64::from(*integer) * f64::from(pass.step())).abs() <= 0.5 * f64::from(pass.step()));
            }
        }

        #[test]
        fn pass_weights_survive_any_number(weights in prop::collection::vec(any::<f64>(), 1..20), saturation: f64) {
            let pass = PassWeights::quantise(&weights).with_saturation(saturation);
            prop_assert!(pass.step() > 0.0 && pass.step().is_finite());
            prop_assert!((SATURATION_MIN..=1.0).contains(&pass.saturation()));
        }
    }
}
