//! Rows counted by the bin of their target: where in its bounds it lies, and how it varies there.

use std::num::NonZeroU32;
use std::sync::Arc;

use reticent_core::adjacency::Relation;
use reticent_core::encoding::Encoding;
use reticent_core::ledger::PlannedRelease;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::{COUNT_STEP, Map, NUMBER_BINS, QueryShape};
use reticent_core::schema::Schema;
use reticent_core::target_window::TargetWindow;
use reticent_core::units::MuSquared;
use reticent_math::gram_regression::TargetVariance;
use reticent_math::look_checks::{Finding, check};
use reticent_math::range_search::{BinCounts, BoundsPart, find_part, seen_part, variance_at_least};
use reticent_math::target_look::Look;

use crate::plan::{PlanError, plan_release};
use crate::prepared_fit::{FitError, Releases};
use crate::row_number::{declared_rows, expected_rows};

/// What a target is expected to vary by in its window before its bins are seen, and how well that is known.
const TARGET_VARIANCE: (f64, f64) = (1.0 / 9.0, 0.05);
/// Least and largest variance of a target in its window.
const TARGET_VARIANCES: (f64, f64) = (1.0 / 256.0, 1.0 / 3.0);

/// Rows by the bin of their target, with this share of the budget, among as many bins as [`Look::bins`] says.
pub(crate) fn plan_target_bins(
    method: &'static str,
    look: Look,
    schema: &Schema,
    share: MuSquared,
    relation: &Relation,
) -> Result<PlannedRelease, PlanError> {
    let shape = |bins| QueryShape::of_schema(Map::TargetBins { bins }, schema);
    // What one row moves is the same with few bins and with many.
    let sensitivity =
        shape(NUMBER_BINS.0)?.sensitivity(relation).map_or(f64::INFINITY, |square| (square.get() as f64).sqrt());
    let noise = sensitivity / COUNT_STEP as f64 / share.mu_up() / expected_rows(schema);
    let bins = look.bins(noise, declared_rows(schema).is_some());
    let purpose = look.of(["bins of the target over its bounds", "bins of the target"]);
    plan_release(method, purpose, shape(bins)?, NonZeroU32::MIN, share, relation)
}

/// Rows by the bin of their target, as released.
pub(crate) struct TargetBins {
    look: Look,
    /// What the bins are of: rows beyond are in the first and the last.
    window: TargetWindow,
    /// Rows in each of the bins, with noise.
    counts: Vec<f64>,
    /// Standard deviation of the noise of one.
    noise: f64,
    /// All rows, and their noise.
    rows: f64,
    rows_noise: f64,
    /// Share of the rows that may lie beyond the part in which the target is found.
    spared: f64,
}

impl TargetBins {
    /// What was planned at a place, of `rows` rows that are known but for `rows_noise` and of which a share may be beyond what is found.
    pub(crate) fn released(
        releases: &mut Releases<'_, '_>,
        place: usize,
        encoding: &Arc<Encoding>,
        (look, window): (Look, TargetWindow),
        ([rows, rows_noise], spared): ([f64; 2], f64),
    ) -> Result<Self, FitError> {
        let counted = releases.sum(place, encoding, PassWeights::of_target(window))?;
        let (counts, noise) = (counted.values(), counted.noise_standard_deviation);
        Ok(Self { look, window, counts, noise, rows, rows_noise, spared })
    }

    /// The part of the bounds in which the target is found, all of the bins' window where it is not.
    pub(crate) fn find_window(&self) -> TargetWindow {
        self.window_by(self.look)
    }

    /// What two looks find together, and which of them says most of it.
    ///
    /// Each checks the other, whose noise is its own. A part that seems to cut many rows off is given up for what the counts over the bounds say with as
    /// little given up to noise; and what is found in a part, for the part, where those say that rows are beyond.
    pub(crate) fn checked_window(over_bounds: &Self, in_part: &Self) -> (TargetWindow, Look) {
        let found = in_part.find_window();
        let counts = [&over_bounds.bin_counts(), &in_part.bin_counts()];
        match check(part_of(in_part.window), part_of(found), counts, over_bounds.spared) {
            Finding::PartCutsOff => {
                let wider = over_bounds.window_by(Look::InPart);
                let window = if wider.half() > in_part.window.half() { wider } else { TargetWindow::BOUNDS };
                (window, Look::OverBounds)
            }
            Finding::LeavesOut => (in_part.window, Look::InPart),
            Finding::Holds => (found, Look::InPart),
        }
    }

    /// The part of the bounds in which the target is found with as much given up to noise as a look gives.
    fn window_by(&self, look: Look) -> TargetWindow {
        let found = find_part(&self.bin_counts(), self.spared, look.doubt_share());
        if found == BoundsPart::BOUNDS {
            return self.window;
        }
        let (centre, half) = (self.window.centre(), self.window.half());
        TargetWindow::new(centre + half * found.centre, half * found.half)
    }

    /// What the target varies by in a part of its bounds at least, with these as -1 and 1.
    pub(crate) fn variance_at_least(&self, part: BoundsPart) -> f64 {
        let (centre, half) = (self.window.centre(), self.window.half());
        let in_window = BoundsPart { centre: (part.centre - centre) / half, half: part.half / half };
        variance_at_least(in_window, &self.bin_counts()) * half.powi(2)
    }

    /// Variance of the target in a part of its bounds, around its `mean` there, from its bins as far as they stand out of their noise.
    pub(crate) fn variance_in(&self, part: TargetWindow, mean: f64) -> TargetVariance {
        let bins = self.counts.len() as f64;
        // Bins without rows are noise, and those far from the mean most of all. Over the bounds a run is given up to noise too soon to tell them.
        let seen = match self.look {
            Look::OverBounds => BoundsPart::BOUNDS,
            Look::InPart => seen_part(&self.bin_counts(), self.spared, self.look.doubt_share()),
        };
        let middle = |place: usize| (2.0 * place as f64 + 1.0) / bins - 1.0;
        let in_part = |middle: f64| (self.window.centre() + self.window.half() * middle - part.centre()) / part.half();
        let with_rows = self.counts.iter().enumerate().map(|(place, count)| (middle(place), *count));
        let with_rows = with_rows.filter(|(middle, _)| (middle - seen.centre).abs() <= seen.half);
        let counts: Vec<(f64, f64)> = with_rows.map(|(middle, count)| (in_part(middle), count)).collect();
        let step = 2.0 / bins * self.window.half() / part.half();
        variance_of(&counts, (self.noise, step), self.rows, mean)
    }

    /// Share of the rows that have one and the same target, as of costs and counts 0 often is, as far as the bins tell: of a target with this
    /// standard deviation in a part of its bounds.
    pub(crate) fn usual_value_share(&self, part: TargetWindow, deviation: f64) -> f64 {
        let in_bins = deviation * part.half() / self.window.half() * self.counts.len() as f64 / 2.0;
        usual_value_share(&self.counts, self.noise, self.rows, in_bins)
    }

    /// Whether they are of less than the bounds.
    pub(crate) fn is_of_part(&self) -> bool {
        self.window != TargetWindow::BOUNDS
    }

    fn bin_counts(&self) -> BinCounts<'_> {
        BinCounts { bins: &self.counts, noise: self.noise, rows: self.rows, rows_noise: self.rows_noise }
    }
}

fn part_of(window: TargetWindow) -> BoundsPart {
    BoundsPart { centre: window.centre(), half: window.half() }
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

/// Mean square distance from `mean` of the counts at `x_k` in [-1, 1], weighed against what is expected of any target, and its error:
/// ```text
///   v = (m/e² + (1/9)/0.05²) / (1/e² + 1/0.05²),   m = sum b_k x_k² / n,   e² = noise² sum x_k⁴ / n² + (step²/12)²
/// ```
fn variance_of(counts: &[(f64, f64)], (noise, step): (f64, f64), rows: f64, mean: f64) -> TargetVariance {
    let (mut square, mut fourth) = (0.0, 0.0);
    for (at, count) in counts.iter().filter(|(at, _)| at.abs() <= 1.0) {
        square += count * (at - mean).powi(2);
        fourth += (at - mean).powi(4);
    }
    let within_bins = step * step / 12.0;
    let error_square = (noise / rows).powi(2) * fourth + within_bins * within_bins;
    let precisions = [error_square.recip(), TARGET_VARIANCE.1.powi(-2)];
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

    fn target_bins(look: Look, window: TargetWindow, counts: Vec<f64>, noise: f64) -> TargetBins {
        TargetBins { look, window, counts, noise, rows: 3200.0, rows_noise: 0.0, spared: 0.02 }
    }

    #[test]
    fn a_target_varies_as_its_bins_say_where_noise_lets_them() {
        // Rows spread evenly over the middle half of a part of the bounds.
        let part = TargetWindow::new(0.5, 0.25);
        let spread = |first: usize, bins: usize| -> Vec<f64> {
            let count = 3200.0 / bins as f64;
            (0..256).map(|bin| if (first..first + bins).contains(&bin) { count } else { 0.0 }).collect()
        };
        let over_bounds = |noise: f64| {
            target_bins(Look::OverBounds, TargetWindow::BOUNDS, spread(176, 32), noise).variance_in(part, 0.0)
        };
        let found = |noise: f64| over_bounds(noise).value.sqrt();
        assert!((found(0.1) - (1.0f64 / 12.0).sqrt()).abs() < 1e-3, "{}", found(0.1));
        assert!((found(1e6) - 1.0 / 3.0).abs() < 1e-6, "{}", found(1e6));
        assert!(found(0.1) < found(200.0) && found(200.0) < found(1e6));
        // The same bins in that part of the bounds, and in a part of which it is a half.
        let in_part = |window, first, bins, noise| {
            target_bins(Look::InPart, window, spread(first, bins), noise).variance_in(part, 0.0)
        };
        let whole = in_part(part, 64, 128, 0.1).value;
        let half = in_part(TargetWindow::new(0.5, 0.5), 96, 64, 0.1).value;
        assert!((whole - 1.0 / 12.0).abs() < 1e-3 && (half - 1.0 / 12.0).abs() < 1e-3, "{whole} {half}");
        // Over the bounds every bin counts, also where a fifth of the rows was hidden.
        let mut hidden = spread(0, 32);
        hidden.iter_mut().for_each(|count| *count *= 0.8);
        hidden[255] = 640.0;
        let bins = target_bins(Look::OverBounds, TargetWindow::BOUNDS, hidden, 20.0);
        assert!(bins.variance_in(TargetWindow::BOUNDS, -0.5).value > 0.2);
        // Bins without rows are left out, and their noise with them, which far from the mean counts most.
        let deviation = |first, bins| in_part(part, first, bins, 15.0).deviation;
        assert!(deviation(64, 128) < 0.4 * deviation(0, 256), "{} {}", deviation(64, 128), deviation(0, 256));
    }

    /// By hand: rows in bins 8 and 9 of 16, then in 16 to 19 of 64 in what is found.
    #[test]
    fn a_target_is_found_in_a_part_of_a_part() {
        let counts = |bins: usize, filled: &[usize]| -> Vec<f64> {
            (0..bins).map(|bin| if filled.contains(&bin) { 3200.0 / filled.len() as f64 } else { 0.0 }).collect()
        };
        let part = |window: TargetWindow| [window.centre(), window.half()];
        let first = target_bins(Look::OverBounds, TargetWindow::BOUNDS, counts(16, &[8, 9]), 0.0).find_window();
        let margin = 1.25 + 15.0 * 0.02;
        let expected = [0.125, margin * 0.125];
        assert!(part(first).iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4), "{first:?}");
        let second = target_bins(Look::InPart, first, counts(64, &[16, 17, 18, 19]), 0.0).find_window();
        let expected = [expected[0] + (36.0 / 64.0 - 1.0) * expected[1], expected[1] * margin * 4.0 / 64.0];
        assert!(
            part(second).iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-4),
            "{second:?}"
        );
        // Where it is everywhere, the part stays.
        let everywhere: Vec<usize> = (0..64).collect();
        assert_eq!(target_bins(Look::InPart, first, counts(64, &everywhere), 0.1).find_window(), first);
        // What a part leaves out is lost, so that less of what noise may hide is given up there: here 3 of 100 rows in one bin of 64.
        let mut with_tail = counts(64, &[10, 11]);
        with_tail[10] -= 96.0;
        with_tail[40] += 96.0;
        let half = |look| target_bins(look, TargetWindow::BOUNDS, with_tail.clone(), 20.0).find_window().half();
        assert!(half(Look::OverBounds) < 0.1 && half(Look::InPart) > 0.25);
    }

    /// Of 3,200 rows half are in the first of 16 bins and noise seems to make it nearly all, so that the others are at the end of what is looked at next; then the same
    /// rows where the second look misses a part of them which the first has seen.
    #[test]
    fn two_looks_for_a_target_check_each_other() {
        let over_bounds = |noise| {
            let mut counts = vec![100.0; 16];
            (counts[0], counts[1]) = (1700.0, 100.0);
            target_bins(Look::OverBounds, TargetWindow::BOUNDS, counts, noise)
        };
        let part = TargetWindow::new(-0.875, 0.125);
        let in_part = |filled: &[(usize, f64)]| {
            let mut counts = vec![0.0; 64];
            filled.iter().for_each(|(bin, rows)| counts[*bin] = *rows);
            target_bins(Look::InPart, part, counts, 10.0)
        };
        let cut_off = in_part(&[(0, 1700.0), (63, 1500.0)]);
        let (window, told_by) = TargetBins::checked_window(&over_bounds(10.0), &cut_off);
        assert_eq!((window, told_by), (TargetWindow::BOUNDS, Look::OverBounds));
        // All rows in the first eighth of that part, of which the first look sees 1,400 beyond it, or has too much noise to tell.
        let found = |noise| {
            let narrow = in_part(&[(0, 1600.0), (7, 1600.0)]);
            TargetBins::checked_window(&over_bounds(noise), &narrow)
        };
        assert_eq!(found(10.0), (part, Look::InPart));
        let (window, told_by) = found(700.0);
        assert!(window.half() < 0.2 * part.half() && told_by == Look::InPart, "{window:?}");
    }

    /// `e = 2^20 / (mu sqrt(share)) / rows` by hand: 1/20 of `mu²` at mu 1 and 100 declared rows is .0447 of the rows, and `8 (.15/e)²` is 90.
    #[test]
    fn there_are_as_many_bins_as_can_be_told_from_their_noise() {
        let bins = |look: Look, rows: u64, declared: bool| {
            let rows = if declared { format!("rows = {rows}\n") } else { String::new() };
            let schema = format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n{rows}[target]\ncolumn = \"y\"\nbounds = [0, 1]\n[features]\nx = {{ bounds = [0, 1] }}\n"
            );
            let schema = Schema::from_text(&schema).expect("legal");
            let mu = reticent_core::units::Mu::new(1.0).expect("positive");
            let share = MuSquared::budget_down(mu).fraction_down(1, NonZeroU32::new(20).expect("not zero"));
            let planned = plan_target_bins("a test", look, &schema, share, &schema.relation()).expect("a budget");
            let Map::TargetBins { bins } = *planned.shape.map() else { panic!("bins of the target") };
            bins
        };
        let declared = |rows| [bins(Look::OverBounds, rows, true), bins(Look::InPart, rows, true)];
        assert_eq!(declared(30), [16, 16]);
        assert_eq!(declared(100), [64, 16]);
        assert_eq!(declared(200), [64, 64]);
        assert_eq!(declared(1000), [64, 256]);
        assert_eq!(bins(Look::InPart, 0, false), 128);
    }
}
