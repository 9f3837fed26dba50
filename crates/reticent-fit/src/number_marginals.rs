//! What a fit of a number buys before anything else: how columns are scaled, in what part of its bounds the target lies, how it varies there,
//! and its mean.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::ledger::PlannedRelease;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{BIN_STEP, COUNT_STEP, Map, QueryShape, target_counts};
use reticent_core::target_window::TargetWindow;
use reticent_core::units::MuSquared;
use reticent_math::gram_regression::{TargetMean, TargetVariance};
use reticent_math::range_search::{BinCounts, BoundsPart, RangeRule, find_part, spared, widened};

use crate::method::FitRequest;
use crate::number_bins::{BinnedNumbers, bins_that_tell};
use crate::plan::{PlanError, plan_release};
use crate::prepared_fit::{FitError, Releases};
use crate::released_marginals::{ReleasedMarginals, ScaledColumns, ScalingRule};
use crate::row_number::{expected_rows, weakness};

/// `mu²` is shared out in so many parts: for the marginals, the bins of numbers where they can tell something, and the mean of the target,
/// over its bounds and where it is found in them.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
const MARGINAL_PARTS: f64 = 40.0;
const BINS_PARTS: f64 = 20.0;
const BOUNDS_MEAN_PARTS: f64 = 5.0;
const MEAN_PARTS: f64 = 10.0;
/// Parts on top for the marginals where little signal is expected, and the signal `n mu` at which half of them is given: where the target
/// lies in its bounds is then worth more than what little can be learnt of slopes.
const WEAK_PARTS: f64 = 160.0;
const WEAK_SIGNAL: f64 = 60.0;

/// Parts on top for the marginals, and for each mean of the target, where rows are not declared: there may be far fewer than are expected, and
/// the more signal is expected the less it costs to be ready for that. Half of them at the signal `n mu` that is last.
const UNSURE_PARTS: (f64, f64) = (24.0, 6.0);
const UNSURE_SIGNAL: f64 = 2000.0;

/// Numbers are read in a range that seems to hold nearly all rows, and well within their bounds: rows far out decide a slope, and one that
/// is cut short by mistake costs more than one that is left too long.
const RANGE_RULE: RangeRule = RangeRule { spared: 0.01, doubt_share: 0.25, narrower_than: 0.35 };

/// A range may leave out so many times the rows that the target's window may: it spoils what is learnt of one column, not of all.
const FEATURE_SPARED: f64 = 4.0;

/// The part of its bounds in which the target is found is wrong, and no accident of noise, where its mean there and that over the bounds are
/// so many standard deviations apart.
const MEANS_APART: f64 = 4.0;

/// What a target is expected to vary by in its window before its bins are seen, and how well that is known.
const TARGET_VARIANCE: (f64, f64) = (1.0 / 9.0, 0.05);
/// Least and largest variance of a target in its window.
const TARGET_VARIANCES: (f64, f64) = (1.0 / 256.0, 1.0 / 3.0);

/// Marginals, bins of numbers where they can tell something, and the sums of the target, the last of them; and what is left of `mu²`.
pub(crate) fn plan_marginals(
    method: &'static str,
    request: &FitRequest<'_>,
    coding: &Coding,
) -> Result<(Vec<PlannedRelease>, MuSquared), PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let signal = expected_rows(schema) * claim.mu;
    let weak = weakness(signal, WEAK_SIGNAL);
    let unsure = if schema.privacy().rows.is_some() { 0.0 } else { 1.0 - weakness(signal, UNSURE_SIGNAL) };
    let share_of = |parts: f64| claim.mu_squared.fraction_down(parts.round() as u32, PARTS);
    let bins = bins_that_tell(coding, schema, share_of(BINS_PARTS), &claim.relation);
    let sides = [
        Some(("marginals", Map::marginals(0, coding), MARGINAL_PARTS + weak * WEAK_PARTS + unsure * UNSURE_PARTS.0)),
        bins.map(|map| ("bins of numbers", map, BINS_PARTS)),
        Some(("sum of the target over its bounds", Map::TargetSum, BOUNDS_MEAN_PARTS + unsure * UNSURE_PARTS.1)),
        Some(("sum of the target", Map::TargetSum, MEAN_PARTS + unsure * UNSURE_PARTS.1)),
    ];
    let (mut releases, mut left) = (Vec::new(), claim.mu_squared);
    for (purpose, map, parts) in sides.into_iter().flatten() {
        let share = share_of(parts);
        left = left.checked_sub(share).expect("shares are less than the whole");
        let shape = QueryShape::of_schema(map, schema)?;
        releases.push(plan_release(method, purpose, shape, NonZeroU32::MIN, share, &claim.relation)?);
    }
    Ok((releases, left))
}

/// What released marginals and bins say.
pub(crate) struct NumberMarginals {
    /// Columns centred and scaled, rows divided by their own norm; as coarse as the columns that were asked for marginals.
    pub(crate) encoding: Arc<Encoding>,
    pub(crate) scaled: ScaledColumns,
    /// Where the target lies.
    pub(crate) window: TargetWindow,
    /// Rows with a usable target, as bought: no other row is in the sums. A declared number is round, and one of all rows.
    pub(crate) usable: f64,
    /// `n mu` of what is fitted with the rest.
    pub(crate) signal: f64,
    /// Noise of every sum.
    noise: f64,
    /// Noisy rows by the bin of their target over its bounds, and the noise of each.
    target_bins: Vec<f64>,
    bin_noise: f64,
}

impl NumberMarginals {
    /// Asks for the first releases of [`plan_marginals`], and reads them for a fit whose rest has `mu`. Columns are scaled by the
    /// method's rule.
    pub(crate) fn released(
        releases: &mut Releases<'_, '_>,
        plain: &Arc<Encoding>,
        mu: f64,
        scaling: ScalingRule,
    ) -> Result<Self, FitError> {
        let marginals = releases.sum(0, plain, PassWeights::none())?;
        let binned = BinnedNumbers::released(releases, 1, plain)?;
        let (values, noise) = (marginals.values(), marginals.noise_standard_deviation);
        let (of_target, of_slots) = values.split_at(target_counts(0) as usize);
        let usable = of_target[0].max(noise).max(1.0);
        let (coding, signal) = (plain.coding(), usable * mu);
        let spared = spared(coding.columns().len(), signal);
        // Rows beyond a range are a bias that no budget would take away.
        let rule = RangeRule { spared: (FEATURE_SPARED * spared).min(RANGE_RULE.spared), ..RANGE_RULE };
        let binned = binned.as_ref().map(|binned| (binned, rule));
        let features = ReleasedMarginals::of(coding, of_slots, usable, noise / usable, binned);
        let scaled = features.scaled(coding, signal, scaling);
        let encoding = features.encoding(coding, &scaled).coarse(plain.is_coarse());

        let steps = COUNT_STEP as f64 / BIN_STEP as f64;
        let target_bins: Vec<f64> = of_target[1..].iter().map(|count| count * steps).collect();
        let bin_noise = noise * steps;
        let counts = BinCounts { bins: &target_bins, noise: bin_noise, rows: usable, rows_noise: noise };
        let BoundsPart { centre, half } = find_part(&counts, spared);
        let window = TargetWindow::new(centre, half);
        Ok(Self { encoding: Arc::new(encoding), scaled, window, usable, signal, noise, target_bins, bin_noise })
    }

    /// Makes the window wider where that adds next to nothing to predictions by products of the target with the columns, of this noise each.
    pub(crate) fn widen_window(&mut self, product_noise: f64) {
        let counts =
            BinCounts { bins: &self.target_bins, noise: self.bin_noise, rows: self.usable, rows_noise: self.noise };
        let found = BoundsPart { centre: self.window.centre(), half: self.window.half() };
        let BoundsPart { centre, half } =
            widened(found, &counts, &self.scaled.noise_squares(product_noise / self.usable));
        self.window = TargetWindow::new(centre, half);
    }

    /// Asks for the sums of the target, over its bounds and in its window, the last of which is at `place`: its mean in its window. Where
    /// the two contradict each other, rows lie outside the window that noise has hidden, and all of the bounds are the window from here on.
    pub(crate) fn target_mean(
        &mut self,
        releases: &mut Releases<'_, '_>,
        place: usize,
    ) -> Result<TargetMean, FitError> {
        let over_bounds = self.sum_in(releases, place - 1, TargetWindow::BOUNDS)?;
        let in_window = self.sum_in(releases, place, self.window)?;
        if self.window == TargetWindow::BOUNDS {
            return Ok(self.mean_of(pooled(over_bounds, in_window)));
        }
        let [over_bounds, in_window] = [over_bounds, in_window].map(|sum| self.mean_of(sum));
        let (centre, half) = (self.window.centre(), self.window.half());
        let apart = over_bounds.value - (centre + half * in_window.value);
        if apart.abs() > MEANS_APART * over_bounds.deviation.hypot(half * in_window.deviation) {
            self.window = TargetWindow::BOUNDS;
            return Ok(over_bounds);
        }
        Ok(in_window)
    }

    /// The sum of the target as a window has it, and its noise.
    fn sum_in(
        &self,
        releases: &mut Releases<'_, '_>,
        place: usize,
        window: TargetWindow,
    ) -> Result<[f64; 2], FitError> {
        let sum = releases.sum(place, &self.encoding, PassWeights::of_target(window))?;
        Ok([sum.values()[0], sum.noise_standard_deviation])
    }

    /// The mean that a sum stands for, with the error of both that and the number of rows.
    fn mean_of(&self, sum: [f64; 2]) -> TargetMean {
        let (value, deviation) = quotient(sum, [self.usable, self.noise]);
        TargetMean { value, deviation, centre_deviation: self.scaled.centre_noise() }
    }

    /// Variance of the target in its window around `mean`, from its bins there as far as they stand out of their noise.
    pub(crate) fn target_variance(&self, mean: f64) -> TargetVariance {
        variance_in(self.window, &self.target_bins, self.bin_noise, self.usable, mean)
    }

    /// Its root.
    pub(crate) fn target_deviation(&self, mean: f64) -> f64 {
        self.target_variance(mean).value.sqrt()
    }

    /// Share of the rows that have one and the same target, as of costs and counts 0 often is, as far as its bins tell.
    pub(crate) fn usual_value_share(&self, deviation: f64) -> f64 {
        let deviation = deviation * self.window.half() * self.target_bins.len() as f64 / 2.0;
        usual_value_share(&self.target_bins, self.bin_noise, self.usable, deviation)
    }
}

/// How far the fullest bin stands out of the two beside it, as a share of the rows:
/// ```text
///   (b_k - max(b_(k-1), b_(k+1)) - 3 noise) / n,   0 where the target varies by less than two bins
/// ```
/// A target that varies by more fills a bin so only with a value of its own.
fn usual_value_share(bins: &[f64], noise: f64, rows: f64, deviation_in_bins: f64) -> f64 {
    let beside = |place: usize| {
        let before = place.checked_sub(1).and_then(|place| bins.get(place));
        before.into_iter().chain(bins.get(place + 1)).fold(0.0, |most: f64, count| most.max(*count))
    };
    let largest = bins.iter().enumerate().map(|(place, count)| count - beside(place)).fold(0.0, f64::max);
    if deviation_in_bins < 2.0 { 0.0 } else { ((largest - 3.0 * noise) / rows).max(0.0) }
}

/// Two answers to one question, by their precision.
fn pooled([one, one_noise]: [f64; 2], [other, other_noise]: [f64; 2]) -> [f64; 2] {
    let of_one = other_noise.powi(2) / (one_noise.powi(2) + other_noise.powi(2));
    [of_one * one + (1.0 - of_one) * other, one_noise * of_one.sqrt()]
}

/// A sum `t` over a number of rows `n`, both with noise, and its error:
/// ```text
///   m = t n / (n² + e_n²),   ((e_t² + e_n² m²) / (n² - e_n²))^(1/2),   n² - e_n² at least (n/10)²
/// ```
/// Where the number of rows hardly stands out of its noise a quotient may be anything. This is then drawn to 0, and its error is so large
/// that it tells nothing.
fn quotient([sum, sum_noise]: [f64; 2], [rows, rows_noise]: [f64; 2]) -> (f64, f64) {
    let (square, noise) = (rows.powi(2), rows_noise.powi(2));
    let value = (sum * rows / (square + noise)).clamp(-1.0, 1.0);
    let known = (square - noise).max(square / 100.0).sqrt();
    (value, sum_noise.hypot(rows_noise * value) / known)
}

/// Mean square of what lies in the window, weighed against what is expected of any target, and its error:
/// ```text
///   v = (m/e² + (1/9)/0.05²) / (1/e² + 1/0.05²),   m = sum b_k x_k² / n,   e² = noise² sum x_k⁴ / n²,   x_k of the middle of a bin
/// ```
fn variance_in(window: TargetWindow, bins: &[f64], noise: f64, rows: f64, mean: f64) -> TargetVariance {
    let (mut square, mut fourth) = (0.0, 0.0);
    for (place, count) in bins.iter().enumerate() {
        let middle = (2.0 * place as f64 + 1.0) / bins.len() as f64 - 1.0;
        let at = (middle - window.centre()) / window.half();
        if at.abs() <= 1.0 {
            square += count * (at - mean).powi(2);
            fourth += (at - mean).powi(4);
        }
    }
    let precisions = [(rows / noise).powi(2) / fourth.max(1e-12), TARGET_VARIANCE.1.powi(-2)];
    let variance =
        (precisions[0] * square / rows + precisions[1] * TARGET_VARIANCE.0) / (precisions[0] + precisions[1]);
    TargetVariance {
        value: variance.clamp(TARGET_VARIANCES.0, TARGET_VARIANCES.1),
        deviation: (precisions[0] + precisions[1]).powf(-0.5),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: `-210 · 300 / (90000 + 10000)`, `sqrt((50² + 63²) / 80000)`; then as many rows as noise, and hardly any noise.
    #[test]
    fn a_mean_tells_less_the_less_is_known_of_the_rows() {
        for (sum, rows, value, deviation) in [
            ([-210.0, 50.0], [300.0, 100.0], -0.63, (6469.0f64 / 80_000.0).sqrt()),
            ([100.0, 50.0], [100.0, 100.0], 0.5, 5000.0f64.sqrt() / 10.0),
            ([250.0, 5.0], [1000.0, 0.0], 0.25, 0.005),
        ] {
            let found = quotient(sum, rows);
            assert!((found.0 - value).abs() < 1e-12 && (found.1 - deviation).abs() < 1e-12, "{found:?}");
        }
    }

    /// By hand: precisions 1/9 and 1/16, so 16 of 25 parts of the first; and 1/(1/9 + 1/16) = 5.76.
    #[test]
    fn two_answers_are_better_than_one() {
        let [value, noise] = pooled([10.0, 3.0], [60.0, 4.0]);
        assert!((value - 28.0).abs() < 1e-12 && (noise - 2.4).abs() < 1e-12, "{value} {noise}");
    }

    /// By hand: 600 of 1000 rows are 0 where 40 are a little more, and noise takes 30 of the difference.
    #[test]
    fn a_value_that_many_rows_have_stands_out_of_the_bins_beside_it() {
        let bins = |first: f64| [first, 40.0, 60.0, 100.0, 80.0, 60.0, 40.0, 20.0];
        let found = |first: f64, noise: f64, deviation: f64| usual_value_share(&bins(first), noise, 1000.0, deviation);
        assert!((found(600.0, 10.0, 2.5) - 0.53).abs() < 1e-12);
        assert!(found(600.0, 10.0, 1.9) == 0.0, "one bin may hold a target that varies by so little");
        assert!(found(50.0, 10.0, 2.5) == 0.0 && found(600.0, 200.0, 2.5) == 0.0);
        let last: Vec<f64> = bins(600.0).into_iter().rev().collect();
        assert!((usual_value_share(&last, 10.0, 1000.0, 2.5) - 0.53).abs() < 1e-12);
    }

    #[test]
    fn a_target_varies_as_its_bins_say_where_noise_lets_them() {
        let window = TargetWindow::new(0.5, 0.25);
        // Rows spread evenly over the middle half of the window, and as many far out of it.
        let bins: Vec<f64> =
            (0..256).map(|bin| if (176..208).contains(&bin) || bin < 32 { 100.0 } else { 0.0 }).collect();
        let found = |noise: f64| variance_in(window, &bins, noise, 3200.0, 0.0).value.sqrt();
        assert!((found(0.1) - (1.0f64 / 12.0).sqrt()).abs() < 1e-3, "{}", found(0.1));
        assert!((found(1e6) - 1.0 / 3.0).abs() < 1e-6, "{}", found(1e6));
        assert!(found(0.1) < found(200.0) && found(200.0) < found(1e6));
    }
}
