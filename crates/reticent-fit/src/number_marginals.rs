//! What a fit of a number buys before anything else: how columns are scaled, in what part of its bounds the target lies, how it varies there,
//! and its mean.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::coding::Coding;
use reticent_core::encoding::Encoding;
use reticent_core::ledger::PlannedRelease;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{Map, QueryShape, target_counts};
use reticent_core::target_window::TargetWindow;
use reticent_core::units::MuSquared;
use reticent_math::gram_regression::{TargetMean, TargetVariance};
use reticent_math::range_search::{BoundsPart, NEGLIGIBLE, RangeRule, affordable_half, spared, widened};
use reticent_math::target_look::Look;

use crate::method::FitRequest;
use crate::number_bins::{BinnedNumbers, bins_that_tell};
use crate::plan::{PlanError, plan_release};
use crate::prepared_fit::{FitError, Releases};
use crate::released_marginals::{ReleasedMarginals, ScaledColumns, ScalingRule};
use crate::row_number::{expected_rows, weakness};
use crate::target_bins::{TargetBins, plan_target_bins};

/// `mu²` is shared out in so many parts.
const PARTS: NonZeroU32 = NonZeroU32::new(400).expect("not zero");
/// The signal `n mu` at which half of the parts for little signal are given: where the target lies in its bounds is then worth more than what little can
/// be learnt of slopes.
const WEAK_SIGNAL: f64 = 60.0;
/// The signal at which half of the parts for rows that are not declared are given: there may be far fewer than are expected, and the more signal is
/// expected the less it costs to be ready for that.
const UNSURE_SIGNAL: f64 = 2000.0;

/// Parts for one of the releases.
struct Parts {
    always: f64,
    /// On top where little signal is expected.
    weak: f64,
    /// On top where rows are not declared.
    unsure: f64,
}

const MARGINALS: Parts = Parts { always: 24.0, weak: 40.0, unsure: 12.0 };
/// Of features, where they can tell something.
const BINS: Parts = Parts { always: 20.0, weak: 0.0, unsure: 0.0 };
const TARGET_OVER_BOUNDS: Parts = Parts { always: 10.0, weak: 50.0, unsure: 8.0 };
const TARGET_IN_PART: Parts = Parts { always: 10.0, weak: 40.0, unsure: 4.0 };
const MEAN_OVER_BOUNDS: Parts = Parts { always: 5.0, weak: 0.0, unsure: 6.0 };
const MEAN_IN_PART: Parts = Parts { always: 10.0, weak: 50.0, unsure: 6.0 };

/// Numbers are read in a range that seems to hold nearly all rows, and well within their bounds: rows far out decide a slope, and one that
/// is cut short by mistake costs more than one that is left too long.
const RANGE_RULE: RangeRule = RangeRule { spared: 0.01, doubt_share: 0.25, narrower_than: 0.35 };

/// A range may leave out so many times the rows that the target's window may: it spoils what is learnt of one column, not of all.
const FEATURE_SPARED: f64 = 4.0;

/// What a declared number of rows is taken to be wrong by at least, as a share of it.
const DECLARED_ERROR: f64 = 0.03;

/// The part of its bounds in which the target is found is wrong, and no accident of noise, where its mean there and that over the bounds are
/// so many standard deviations apart.
const MEANS_APART: f64 = 4.0;

/// Marginals, bins of numbers where they can tell something, bins of the target and its sums, the last of them; and what is left of `mu²`.
pub(crate) fn plan_marginals(
    method: &'static str,
    request: &FitRequest<'_>,
    coding: &Coding,
) -> Result<(Vec<PlannedRelease>, MuSquared), PlanError> {
    let (schema, claim) = (request.schema, request.claim);
    let signal = expected_rows(schema) * claim.mu;
    let weak = weakness(signal, WEAK_SIGNAL);
    let unsure = if schema.privacy().rows.is_some() { 0.0 } else { 1.0 - weakness(signal, UNSURE_SIGNAL) };
    let share_of = |parts: &Parts| {
        let parts = (parts.always + weak * parts.weak + unsure * parts.unsure).round() as u32;
        claim.mu_squared.fraction_down(parts, PARTS)
    };
    let mut left = claim.mu_squared;
    let mut take = |parts: &Parts| {
        let share = share_of(parts);
        left = left.checked_sub(share).expect("shares are less than the whole");
        share
    };
    let of_map = |purpose, map, share| {
        let shape = QueryShape::of_schema(map, schema)?;
        plan_release(method, purpose, shape, NonZeroU32::MIN, share, &claim.relation)
    };
    let target_bins = |look, share| plan_target_bins(method, look, schema, share, &claim.relation);
    let mut releases = vec![of_map("marginals", Map::marginals(0, coding), take(&MARGINALS))?];
    if let Some(map) = bins_that_tell(coding, schema, share_of(&BINS), &claim.relation) {
        releases.push(of_map("bins of numbers", map, take(&BINS))?);
    }
    releases.push(target_bins(Look::OverBounds, take(&TARGET_OVER_BOUNDS))?);
    releases.push(target_bins(Look::InPart, take(&TARGET_IN_PART))?);
    releases.push(of_map("sum of the target over its bounds", Map::TargetSum, take(&MEAN_OVER_BOUNDS))?);
    releases.push(of_map("sum of the target", Map::TargetSum, take(&MEAN_IN_PART))?);
    Ok((releases, left))
}

/// What released marginals and bins say.
pub(crate) struct NumberMarginals {
    /// Columns centred and scaled, rows divided by their own norm; as coarse as the columns that were asked for marginals.
    pub(crate) encoding: Arc<Encoding>,
    pub(crate) scaled: ScaledColumns,
    /// Where the target lies.
    pub(crate) window: TargetWindow,
    /// Rows with a usable target, by what was bought and what is declared: no other row is in the sums.
    pub(crate) usable: f64,
    /// What their number is known to.
    rows_noise: f64,
    /// `n mu` of what is fitted with the rest.
    pub(crate) signal: f64,
    /// Rows by the bin of their target over its bounds, and in the part of them where it was found.
    target_bins: [TargetBins; 2],
    /// Those that say most of the target in its window.
    told_by: Look,
}

impl NumberMarginals {
    /// Asks for the first releases of [`plan_marginals`], and reads them for a fit whose rest has `mu`, of a table for which so many rows may be
    /// declared. Columns are scaled by the method's rule.
    pub(crate) fn released(
        releases: &mut Releases<'_, '_>,
        plain: &Arc<Encoding>,
        (mu, declared): (f64, Option<f64>),
        scaling: ScalingRule,
    ) -> Result<Self, FitError> {
        let marginals = releases.sum(0, plain, PassWeights::none())?;
        let binned = BinnedNumbers::released(releases, 1, plain)?;
        let (values, noise) = (marginals.values(), marginals.noise_standard_deviation);
        let (of_target, of_slots) = values.split_at(target_counts(0) as usize);
        let [usable, rows_noise] = known_rows([of_target[0].max(noise).max(1.0), noise], declared);
        let (coding, signal) = (plain.coding(), usable * mu);
        let spared = spared(coding.columns().len(), signal);
        // Rows beyond a range are a bias that no budget would take away.
        let rule = RangeRule { spared: (FEATURE_SPARED * spared).min(RANGE_RULE.spared), ..RANGE_RULE };
        let binned = binned.as_ref().map(|binned| (binned, rule));
        let has_bins = binned.is_some();
        let features = ReleasedMarginals::of(coding, of_slots, usable, noise / usable, binned);
        let scaled = features.scaled(coding, signal, scaling);
        let encoding = features.encoding(coding, &scaled).coarse(plain.is_coarse());

        let place = 1 + usize::from(has_bins);
        let rows = ([usable, rows_noise], spared);
        let mut look = |place, look, window| TargetBins::released(releases, place, plain, (look, window), rows);
        let over_bounds = look(place, Look::OverBounds, TargetWindow::BOUNDS)?;
        let in_part = look(place + 1, Look::InPart, over_bounds.find_window())?;
        let (window, told_by) = TargetBins::checked_window(&over_bounds, &in_part);
        let target_bins = [over_bounds, in_part];
        Ok(Self { encoding: Arc::new(encoding), scaled, window, usable, rows_noise, signal, target_bins, told_by })
    }

    /// Makes the window wider where that adds next to nothing to predictions by products of the target with the columns, of this noise each.
    pub(crate) fn widen_window(&mut self, product_noise: f64) {
        let found = BoundsPart { centre: self.window.centre(), half: self.window.half() };
        let variance = self.bins_of_window().variance_at_least(found);
        let noise_squares = self.scaled.noise_squares(product_noise / self.usable);
        let BoundsPart { centre, half } = widened(found, affordable_half(NEGLIGIBLE, variance, &noise_squares));
        self.window = TargetWindow::new(centre, half);
        // Bins of a part count what is beyond it at its ends.
        if self.window == TargetWindow::BOUNDS && self.target_bins[1].is_of_part() {
            self.told_by = Look::OverBounds;
        }
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
            (self.window, self.told_by) = (TargetWindow::BOUNDS, Look::OverBounds);
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
        let (value, deviation) = quotient(sum, [self.usable, self.rows_noise]);
        TargetMean { value, deviation }
    }

    /// Variance of the target in its window around `mean`, from its bins there as far as they stand out of their noise.
    pub(crate) fn target_variance(&self, mean: f64) -> TargetVariance {
        self.bins_of_window().variance_in(self.window, mean)
    }

    /// Its root.
    pub(crate) fn target_deviation(&self, mean: f64) -> f64 {
        self.target_variance(mean).value.sqrt()
    }

    /// Share of the rows that have one and the same target, as of costs and counts 0 often is, as far as its bins tell.
    pub(crate) fn usual_value_share(&self, deviation: f64) -> f64 {
        self.bins_of_window().usual_value_share(self.window, deviation)
    }

    fn bins_of_window(&self) -> &TargetBins {
        let [over_bounds, in_part] = &self.target_bins;
        self.told_by.of([over_bounds, in_part])
    }
}

/// Rows with a usable target, from their noisy count and, where it is declared, the number of all rows: that is round, and some may have no usable
/// target, which it is taken to be wrong by at least, or by what the two are apart beyond twice their errors.
fn known_rows([counted, noise]: [f64; 2], declared: Option<f64>) -> [f64; 2] {
    let Some(declared) = declared else { return [counted, noise] };
    let error = DECLARED_ERROR * declared;
    let apart = (counted - declared).abs() - 2.0 * noise.hypot(error);
    pooled([counted, noise], [declared, error.max(apart)])
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

    /// By hand: a count of `1100 ± 400` beside `1000 ± 30`, and one of `700 ± 10`, which is `300 - 2 sqrt(1000)` beyond twice the errors.
    #[test]
    fn a_declared_number_of_rows_is_believed_until_the_count_contradicts_it() {
        for (counted, declared, expected) in [
            ([1100.0, 400.0], Some(1000.0), [1000.559, 29.916]),
            ([700.0, 10.0], Some(1000.0), [700.534, 9.991]),
            ([700.0, 10.0], None, [700.0, 10.0]),
        ] {
            let found = known_rows(counted, declared);
            assert!(found.iter().zip(expected).all(|(one, other)| (one - other).abs() < 1e-3), "{found:?}");
        }
    }

    /// By hand: precisions 1/9 and 1/16, so 16 of 25 parts of the first; and 1/(1/9 + 1/16) = 5.76.
    #[test]
    fn two_answers_are_better_than_one() {
        let [value, noise] = pooled([10.0, 3.0], [60.0, 4.0]);
        assert!((value - 28.0).abs() < 1e-12 && (noise - 2.4).abs() < 1e-12, "{value} {noise}");
    }
}
