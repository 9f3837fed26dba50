//! What released marginals and bins say: a range, a centre and a scale for every column.
//!
//! Every estimate is drawn toward a prior by `W(a) = a² / (a² + e²)`, with `a` the prior's standard deviation and `e` that of
//! the noise: a released value that is all noise says nothing.

use reticent_core::coding::{Coding, SlotKind, SlotMap};
use reticent_core::compact_row::WIDE_BLOCK_CATEGORIES;
use reticent_core::encoding::{CodeRange, Encoding, NormRule};
use reticent_math::flag::NumberMoments;
use reticent_math::range_search::{BinCounts, RangeRule};

use crate::number_bins::BinnedNumbers;
use crate::number_reading::{MissingNumbers, NumberReading, VARIANCE_MIN, WHOLE};
use crate::trust::trust;

/// Mean and variance of every column but the intercept, as far as the releases tell them.
pub(crate) struct ReleasedMarginals {
    /// What each column is measured in: lowest value and width of the part of its bounds where it lies.
    parts: Vec<[f64; 2]>,
    mean: Vec<f64>,
    variance: Vec<f64>,
    /// Standard deviation of the noise of a mean.
    noise: Vec<f64>,
    /// One a slot, where bins were asked for.
    ranges: Option<Vec<CodeRange>>,
    /// Squared norm of the listed columns of a typical row, where rows list some.
    list_square: Option<f64>,
}

/// Centre and scale of every column in its bounds, and what follows from them.
pub(crate) struct ScaledColumns {
    /// What is subtracted: one a column, the intercept first.
    pub(crate) centre: Vec<f64>,
    /// What the difference is multiplied by.
    pub(crate) scale: Vec<f64>,
    /// Root of the mean square of a row's norm: `A`.
    pub(crate) row_norm: f64,
    /// What the error of its centre, or of the mean that is known of it, is in every scaled column: a standard deviation, 0 for the intercept. Of
    /// the mean of a listed column nothing is known but how long it may be.
    centre_error: Vec<f64>,
    /// Mean of every scaled column that is not centred, as released: of the categories of wide blocks. 0 of all others.
    mean: Vec<f64>,
    /// The categories of every feature that has some.
    pub(crate) categories: Vec<CategoryShares>,
    variance: Vec<f64>,
    /// How long each column is from one end to the other of the part where it lies.
    reach: Vec<f64>,
    /// The last columns, which rows list: what each of them varies by is not released.
    listed: usize,
}

/// How many of the rows have each category of a feature.
pub(crate) struct CategoryShares {
    /// Column of the first.
    pub(crate) first: usize,
    /// Released shares, which add up to 1.
    pub(crate) shares: Vec<f64>,
    /// Standard deviation of their noise.
    pub(crate) noise: f64,
}

/// What a method asks of the scales of its columns.
#[derive(Clone, Copy)]
pub(crate) struct ScalingRule {
    /// Noise of numeric centres may lengthen a typical row by this share of its squared norm.
    pub(crate) lengthened_max: f64,
    /// Squared norm that the columns of a typical row have together, beside the 1 of its intercept, at least: with much signal.
    pub(crate) features_square_min: f64,
    /// How fast that falls with little signal: with this power of it.
    pub(crate) share_power: i32,
}

/// A rule by which columns are as long as their marginals make them.
#[cfg(test)]
pub(crate) const AS_RELEASED: ScalingRule =
    ScalingRule { lengthened_max: 0.1, features_square_min: 0.0, share_power: 1 };

/// Numeric columns up to which a variance is taken one standard deviation of its noise lower; with more of them, less.
const CAUTIOUS_COLUMNS: f64 = 10.0;
/// `kappa` is this over `n mu`, within [`RARE`].
const RARE_SIGNAL: f64 = 14.0;
/// Least and largest `kappa`.
const RARE: (f64, f64) = (0.003, 0.3);
/// `kappa` of a numeric column is this much smaller than that of a category: with up to [`NUMERIC_COLUMNS`] of them. With more,
/// each says less, and those narrower than the mean are scaled up less.
const NUMERIC_RARE: f64 = 1.0 / 16.0;
const NUMERIC_COLUMNS: f64 = 10.0;
/// Signal `n mu` at which columns have half of [`ScalingRule::features_square_min`]: with less what they say is mostly noise.
const SHARE_SIGNAL: f64 = 100.0;
/// Blocks of many categories are scaled down by this root of their number.
const BLOCK_ROOT: f64 = 1.0 / 8.0;
/// Noise of what columns add to predictions, beside that of columns that are not correlated: how they are is not released.
const CORRELATED: f64 = 1.5;
/// Squared norm that the listed columns of a typical row are brought to: measured in `docs/methods/noisy-gd.md`.
const LIST_SQUARE: f64 = 16.0;

impl ReleasedMarginals {
    /// From the released sums slot by slot (those of [`reticent_core::query::Map::Marginals`] without the class counts), the
    /// number of rows, the noise of a sum over the number of rows, and the bins of numbers where they were asked for.
    ///
    /// With bins, a flag is measured by how often it is set, and a number that lies in a part of its bounds, as far as bins read by a rule can
    /// tell, there; all others by their moments.
    pub(crate) fn of(
        coding: &Coding,
        sums: &[f64],
        rows: f64,
        noise: f64,
        binned: Option<(&BinnedNumbers, RangeRule)>,
    ) -> Self {
        let (mut parts, mut ranges) = (Vec::new(), Vec::new());
        let (mut mean, mut variance, mut noises) = (Vec::new(), Vec::new(), Vec::new());
        let mut numbers = binned.into_iter().flat_map(|(BinnedNumbers { counts, bins, noise }, rule)| {
            let of_number = move |bins| (BinCounts { bins, noise: *noise, rows, rows_noise: 0.0 }, rule);
            counts.chunks_exact(*bins).map(of_number)
        });
        let mut sums = sums.iter().map(|sum| sum / rows);
        let mut next = || sums.next().expect("one sum a category, two a number");
        let numeric = coding.slot_kinds().filter(|slot| matches!(slot, SlotKind::Numeric)).count();
        // The feature whose missing values the slot before was told to set aside: its logarithm follows it.
        let mut apart = None;
        let caution = (CAUTIOUS_COLUMNS / numeric.max(1) as f64).min(1.0);
        for (slot, map) in coding.slot_kinds().zip(coding.slot_maps()) {
            match slot {
                SlotKind::Numeric => {
                    let moments = NumberMoments { mean: next() + 0.5, square: next() + 0.5, noise };
                    let missing = MissingNumbers::of(map, apart == Some(map.feature()));
                    let by_bins = numbers.next().and_then(|(counts, rule)| {
                        NumberReading::by_bins(&moments, &counts, missing, rule, is_between_0_and_1(map), caution)
                    });
                    let read = by_bins.unwrap_or_else(|| NumberReading::by_moments(&moments, caution));
                    apart = read.range.sets_aside().then_some(map.feature());
                    parts.push(read.part);
                    mean.push(read.mean);
                    variance.push(read.variance);
                    noises.push(read.noise);
                    ranges.push(read.range);
                }
                SlotKind::Categories(categories) => {
                    let equal = 1.0 / categories as f64;
                    let trust = trust(0.1, noise);
                    let shares: Vec<f64> = (0..categories).map(|_| trust * next() + (1.0 - trust) * equal).collect();
                    for share in onto_simplex(&shares) {
                        mean.push(share);
                        variance.push(share * (1.0 - share));
                    }
                    parts.resize(mean.len(), WHOLE);
                    noises.resize(mean.len(), noise * trust);
                    ranges.push(CodeRange::BOUNDS);
                }
            }
        }
        let list_square =
            coding.listed().map(|listed| listed.typical_square((0.5 + trust(0.3, noise) * next()).clamp(0.0, 1.0)));
        Self { parts, mean, variance, noise: noises, ranges: binned.map(|_| ranges), list_square }
    }

    /// Rows read within the ranges, scaled, and divided by their own norm.
    pub(crate) fn encoding(&self, coding: &Coding, scaled: &ScaledColumns) -> Encoding {
        let encoding = Encoding::new(coding.clone(), scaled.centre.clone(), scaled.scale.clone(), NormRule::OwnNorm);
        match &self.ranges {
            Some(ranges) => encoding.within(ranges.clone()),
            None => encoding,
        }
    }

    /// Centre and scale for a signal `n mu`: in the part of its bounds that a number is measured in, then in its bounds.
    ///
    /// ```text
    ///   a = (share + kappa)^(-1/2)  or  1/2 (variance + kappa/16 + floor)^(-1/2),   all times (0.2 + kappa)^(1/2)
    ///   kappa = 14 / (n mu), within [0.003, 0.3];   with P > 10 numbers plus kappa/16 (P/10 - 1), at most their mean variance
    ///   a block of k + 1 categories times k^(-1/8)
    ///   one common factor so that sum a² variance is as before the last step;   A² = 1 + sum a² variance
    /// ```
    /// A category rarer than `kappa` cannot be learnt at this signal, so it is not scaled up further. The floor is 0 unless
    /// the noise of numeric centres would lengthen a typical row by more than `lengthened_max` of its squared norm: then the least that
    /// prevents it.
    ///
    /// Blocks of at least [`WIDE_BLOCK_CATEGORIES`] are not centred, so that a row is written and read without their zeros; in
    /// `A²` their variance is then the mean square. Nor are listed columns, which have one scale, `4 / sqrt(s)`, with the squared
    /// norm `s` of the list of a typical row.
    ///
    /// Last, all columns but the intercept times `max(1, F / ((1 + (100 / (n mu))^p) sum a² variance))^(1/2)`, with `F` and `p` as the rule has them: a row is
    /// divided by its norm, of which the intercept would have nearly all where columns are few or noise hides what they vary by.
    pub(crate) fn scaled(&self, coding: &Coding, signal: f64, rule: ScalingRule) -> ScaledColumns {
        let ScalingRule { lengthened_max, features_square_min, share_power } = rule;
        let mut floor = 0.0;
        loop {
            let mut scaled = self.scaled_above(coding, signal, floor);
            let errors = scaled.scale[1..].iter().zip(&self.noise).map(|(scale, noise)| scale * noise);
            scaled.centre_error.extend(errors);
            let first_listed = scaled.centre_error.len();
            let of_lists: Vec<f64> = scaled.deviations().split_off(first_listed);
            scaled.centre_error.extend(of_lists);
            let of_columns = coding.columns().iter().zip(&scaled.centre_error[..first_listed]);
            let lengthened: f64 =
                of_columns.filter(|(column, _)| column.is_number()).map(|(_, error)| error.powi(2)).sum();
            if lengthened <= lengthened_max * scaled.row_norm.powi(2) || floor > 0.25 {
                let least = features_square_min / (1.0 + (SHARE_SIGNAL / signal).powi(share_power));
                return scaled.enlarged(least).in_bounds(&self.parts);
            }
            floor = (2.0 * floor).max(VARIANCE_MIN);
        }
    }

    fn scaled_above(&self, coding: &Coding, signal: f64, floor: f64) -> ScaledColumns {
        let rare = (RARE_SIGNAL / signal).clamp(RARE.0, RARE.1);
        let numeric = NumericColumns::of(coding, &self.variance);
        let many = (numeric.count / NUMERIC_COLUMNS - 1.0).max(0.0);
        let floor = floor + rare * NUMERIC_RARE + (rare * NUMERIC_RARE * many).min(numeric.mean_variance);
        let whole = (0.2 + rare).sqrt();
        let (mut centre, mut scale, mut variance, mut square) = (vec![0.0], vec![1.0], vec![0.0], vec![0.0]);
        let (mut before, mut categories, mut means) = (0.0, Vec::new(), vec![0.0]);
        let mut columns = self.mean.iter().zip(&self.variance);
        for slot in coding.slot_kinds() {
            let (count, block) = match slot {
                SlotKind::Numeric => (1, 1.0),
                SlotKind::Categories(categories) => (categories, (categories as f64 - 1.0).max(1.0).powf(-BLOCK_ROOT)),
            };
            let is_centred = count < WIDE_BLOCK_CATEGORIES;
            if let SlotKind::Categories(_) = slot {
                let (first, place) = (centre.len(), centre.len() - 1);
                let shares = self.mean[place..place + count].to_vec();
                categories.push(CategoryShares { first, shares, noise: self.noise[place] });
            }
            for (mean, spread) in columns.by_ref().take(count) {
                let unscaled = match slot {
                    SlotKind::Numeric => 0.5 * whole / (spread + floor).sqrt(),
                    SlotKind::Categories(_) => whole / (mean + rare).sqrt(),
                };
                before += unscaled * unscaled * spread;
                let at = if is_centred { *mean } else { 0.0 };
                centre.push(at);
                means.push(mean - at);
                scale.push(unscaled * block);
                variance.push(*spread);
                square.push(spread + (mean - at).powi(2));
            }
        }
        let total = |scale: &[f64], of: &[f64]| -> f64 { scale.iter().zip(of).map(|(a, v)| a * a * v).sum() };
        let after = total(&scale, &variance);
        let factor = if after > 0.0 { (before / after).sqrt() } else { 1.0 };
        scale.iter_mut().skip(1).for_each(|scale| *scale *= factor);
        if let (Some(listed), Some(list_square)) = (coding.listed(), self.list_square) {
            let columns = listed.features().len();
            centre.extend(std::iter::repeat_n(0.0, columns));
            means.extend(std::iter::repeat_n(0.0, columns));
            scale.extend(std::iter::repeat_n((LIST_SQUARE / list_square).sqrt(), columns));
            for of_column in [&mut variance, &mut square] {
                of_column.extend(std::iter::repeat_n(list_square / columns as f64, columns));
            }
        }
        let row_norm = (1.0 + total(&scale, &square)).sqrt();
        let listed = coding.listed().map_or(0, |listed| listed.features().len());
        let reach = scale.clone();
        let mean = means.iter().zip(&scale).map(|(mean, scale)| mean * scale).collect();
        ScaledColumns { centre, scale, row_norm, centre_error: vec![0.0], mean, categories, variance, reach, listed }
    }
}

/// Bounds that nearly every number which has them has because it is a flag.
fn is_between_0_and_1(slot: SlotMap) -> bool {
    matches!(slot, SlotMap::Linear { low: 0.0, span: 1.0, .. })
}

/// How many numbers there are, and what they vary by.
struct NumericColumns {
    count: f64,
    mean_variance: f64,
}

impl NumericColumns {
    fn of(coding: &Coding, variance: &[f64]) -> Self {
        let (mut count, mut total, mut variances) = (0.0, 0.0, variance.iter());
        for slot in coding.slot_kinds() {
            match slot {
                SlotKind::Numeric => {
                    count += 1.0;
                    total += variances.next().expect("one a number");
                }
                SlotKind::Categories(categories) => variances = variances.as_slice()[categories..].iter(),
            }
        }
        Self { count, mean_variance: total / f64::max(count, 1.0) }
    }
}

impl ScaledColumns {
    /// The same columns with at least this much of a row's squared norm beside the intercept, which has 1 of it. Columns that vary by nothing
    /// stay as they are.
    fn enlarged(mut self, features_square_min: f64) -> Self {
        let features_square = self.row_norm.powi(2) - 1.0;
        let times = features_square_min / features_square;
        if features_square > 0.0 && times > 1.0 {
            self.scale[1..].iter_mut().for_each(|scale| *scale *= times.sqrt());
            self.reach[1..].iter_mut().for_each(|reach| *reach *= times.sqrt());
            self.centre_error[1..].iter_mut().for_each(|error| *error *= times.sqrt());
            self.mean[1..].iter_mut().for_each(|mean| *mean *= times.sqrt());
            self.row_norm = (1.0 + features_square_min).sqrt();
        }
        self
    }

    /// The same columns with centre and scale in shares of their bounds instead of parts of them.
    fn in_bounds(mut self, parts: &[[f64; 2]]) -> Self {
        let columns = self.centre[1..].iter_mut().zip(&mut self.scale[1..]).zip(&mut self.variance[1..]);
        for (((centre, scale), variance), [low, width]) in columns.zip(parts) {
            *centre = low + width * *centre;
            *scale /= width;
            *variance *= width * width;
        }
        self
    }

    /// Standard deviation of every scaled column, 0 for the intercept.
    pub(crate) fn deviations(&self) -> Vec<f64> {
        self.scale.iter().zip(&self.variance).map(|(scale, variance)| scale * variance.sqrt()).collect()
    }

    /// The same of the columns that released it, without the intercept.
    pub(crate) fn released_deviations(&self) -> Vec<f64> {
        let mut deviations = self.deviations();
        deviations.truncate(deviations.len() - self.listed);
        deviations.split_off(1)
    }

    /// The mean square of what each column adds to predictions, for a target of at most 1, where its product with the target over all rows has
    /// noise of this share of them. Rows are divided by their norms.
    /// ```text
    ///   3/2 (noise A²)²  of the intercept;   min(3/2 (noise (A² + a²))² / u, u / a²)  of others,   u: variance, a: reach
    /// ```
    /// As if columns were hardly correlated, and each were of two values: the few rows in which a rare category is set are longer than others, and
    /// weigh the less. No slope is taken to be found larger than a target of 1 from one end of its column to the other.
    pub(crate) fn noise_squares(&self, noise: f64) -> Vec<f64> {
        let typical = self.row_norm.powi(2);
        let of_column = |(reach, deviation): (&f64, &f64)| {
            let (longest, variance) = (reach.powi(2), deviation.powi(2));
            (CORRELATED * (noise * (typical + longest)).powi(2) / variance).min(variance / longest)
        };
        let of_intercept = CORRELATED * (noise * typical).powi(2);
        let deviations = self.deviations();
        std::iter::once(of_intercept).chain(self.reach.iter().zip(&deviations).skip(1).map(of_column)).collect()
    }

    /// What the mean of every scaled column is from 0, a standard deviation: what is known of it, and the error of that. A value that rows list may be
    /// there in all of them.
    pub(crate) fn mean_deviations(&self) -> Vec<f64> {
        let of_lists = self.centre_error.len() - self.listed;
        let released = self.centre_error[..of_lists].iter().zip(&self.mean).map(|(error, mean)| error.hypot(*mean));
        released.chain(self.reach[of_lists..].iter().copied()).collect()
    }

    /// Whether rows list columns, whose means are not known.
    pub(crate) fn has_list(&self) -> bool {
        self.listed > 0
    }

    /// The mean score of all rows under these weights without that of an intercept, as far as it is known.
    pub(crate) fn mean_score(&self, weights: &[f64]) -> f64 {
        weights.iter().zip(&self.mean).map(|(weight, mean)| weight * mean).sum()
    }

    /// Standard deviation of the score of a row under these weights, as if columns were uncorrelated.
    pub(crate) fn score_deviation(&self, weights: &[f64]) -> f64 {
        deviation_of_sum(weights, &self.deviations())
    }

    /// What is not known of the mean score, a standard deviation: errors of centres and of known means, and of listed columns all that they may add
    /// together, as those of a long list do that go one way.
    pub(crate) fn mean_score_error(&self, weights: &[f64]) -> f64 {
        let of_lists = self.centre_error.len() - self.listed;
        let (released, listed) = weights.split_at(of_lists);
        let together = listed.iter().zip(&self.centre_error[of_lists..]).map(|(weight, error)| (weight * error).abs());
        deviation_of_sum(released, &self.centre_error[..of_lists]).hypot(together.sum())
    }
}

/// Of numbers with these deviations that have nothing to do with each other, each times its weight.
fn deviation_of_sum(weights: &[f64], deviations: &[f64]) -> f64 {
    let squares = weights.iter().zip(deviations).map(|(weight, deviation)| (weight * deviation).powi(2));
    squares.sum::<f64>().sqrt()
}

/// The nearest point with entries of at least 0 that sum to 1 (Duchi, Shalev-Shwartz, Singer, Chandra 2008, Fig. 1).
fn onto_simplex(point: &[f64]) -> Vec<f64> {
    let mut sorted = point.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut total, mut shift) = (0.0, 0.0);
    for (place, value) in sorted.iter().enumerate() {
        total += value;
        let candidate = (total - 1.0) / (place as f64 + 1.0);
        if value - candidate > 0.0 {
            shift = candidate;
        }
    }
    point.iter().map(|value| (value - shift).max(0.0)).collect()
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::CODE_MAX;
    use reticent_core::contribution::number_bin;
    use reticent_core::record::Cell;
    use reticent_core::schema::Schema;

    use super::*;

    /// With many numbers narrow ones are scaled up less: by the root of both variances, each plus `kappa/16 · P/10`, within the mean.
    #[test]
    fn narrow_numbers_are_scaled_up_less_the_more_there_are() {
        for (count, floor) in [(2, 0.01 / 16.0), (10, 0.01 / 16.0), (40, 0.04 / 16.0), (4000, 0.01 / 16.0 + 0.1255)] {
            let columns: String = (0..count).map(|place| format!("x{place} = {{ bounds = [0, 1] }}\n")).collect();
            let schema = format!(
                "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
                 [features]\n{columns}"
            );
            let coding = Coding::of(&Schema::from_text(&schema).expect("legal"));
            // Means of 1/2; variances of 1/4 and, for every other column, 1/1000.
            let sums: Vec<f64> =
                (0..count).flat_map(|place| [0.0, if place % 2 == 0 { 0.5 } else { -0.496 }]).collect();
            let scaled = ReleasedMarginals::of(&coding, &sums, 1.0, 0.0, None).scaled(&coding, 1400.0, AS_RELEASED);
            let expected = f64::sqrt((0.25 + floor) / (0.001 + floor));
            assert!((scaled.scale[2] / scaled.scale[1] - expected).abs() < 1e-9, "{count}");
        }
    }

    #[test]
    fn missing_values_have_the_code_of_what_the_schema_makes_of_them() {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                    [features]\na = { bounds = [0, 100], missing = 30 }\nb = { bounds = [0, 1000], log = true }\n";
        let coding = Coding::of(&Schema::from_text(text).expect("legal"));
        let found = coding.slot_maps().map(|slot| MissingNumbers::of(slot, false));
        let found: Vec<(usize, bool)> = found.map(|missing| (number_bin(missing.code, 64), missing.is_open)).collect();
        // ln 501 / ln 1001 of the bounds is .8998.
        assert_eq!(found, [(19, false), (32, true), (57, false)], "a logarithm follows its number");
    }

    /// Bins of a number from 0 to 1000 without noise: 800 rows are from 10 to 50, and 200 are missing. Their number, 500, is apart from the
    /// others'; its logarithm, nine tenths of the way, follows it, though others might be as far.
    #[test]
    fn missing_values_are_read_as_the_mean_by_number_and_logarithm() {
        let text = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                    [features]\na = { bounds = [0, 1000], log = true }\n";
        let coding = Coding::of(&Schema::from_text(text).expect("legal"));
        let (mut counts, mut sums) = (vec![0.0; 2 * 256], [0.0; 4]);
        for row in 0..1000 {
            let value = if row < 800 { 10.0 + f64::from(row) / 20.0 } else { 500.0 };
            let mut codes = [0; 2];
            coding.encode_cells(&[Cell::Number(value)], &mut codes);
            for (slot, code) in codes.into_iter().enumerate() {
                counts[256 * slot + number_bin(code, 256)] += 1.0;
                let share = f64::from(code) / f64::from(CODE_MAX);
                sums[2 * slot] += share - 0.5;
                sums[2 * slot + 1] += (2.0 * share - 1.0).powi(2) - 0.5;
            }
        }
        let binned = BinnedNumbers { counts, bins: 256, noise: 1e-3 };
        let rule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
        let read = ReleasedMarginals::of(&coding, &sums, 1000.0, 1e-6, Some((&binned, rule)));
        let ranges = read.ranges.as_ref().expect("bins were asked for");
        for ((slot, range), mean) in coding.slot_maps().zip(ranges).zip([30.0 / 1000.0, 0.49]) {
            let found = f64::from(range.of(MissingNumbers::of(slot, false).code)) / f64::from(CODE_MAX);
            assert!(range.sets_aside() && (found - mean).abs() < 0.01, "{found} instead of {mean}");
        }
    }

    /// Two numbers that hardly vary beside their noise: all scales grow alike until both have their share of a row's squared norm, and none
    /// shrinks.
    #[test]
    fn columns_have_their_share_of_a_row() {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"no\", \"yes\"]\n\
                      [features]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let released = || ReleasedMarginals::of(&coding, &[0.0, -0.48, 0.0, -0.46], 1.0, 0.05, None);
        let plain = released().scaled(&coding, 60.0, AS_RELEASED);
        let square = |scaled: &ScaledColumns| -> f64 { scaled.released_deviations().iter().map(|one| one * one).sum() };
        assert!(square(&plain) < 0.3, "{}", square(&plain));
        // At this signal 60/160 of what the rule asks for, or 36/136.
        for (least, share_power, expected) in [(3.0, 1, 1.125), (6.8, 2, 1.8), (0.001, 1, square(&plain))] {
            let rule = ScalingRule { features_square_min: least, share_power, ..AS_RELEASED };
            let found = released().scaled(&coding, 60.0, rule);
            assert!((square(&found) - expected).abs() < 1e-9, "{} instead of {expected}", square(&found));
            assert!((found.row_norm - (1.0 + expected).sqrt()).abs() < 1e-12);
            let times = (expected / square(&plain)).sqrt();
            for (weights, place) in [([7.0, 1.0, 0.0], 1), ([7.0, 0.0, 1.0], 2)] {
                let error = times * plain.mean_deviations()[place];
                assert!((found.mean_score_error(&weights) - error).abs() < 1e-12 && error > 0.0, "not the intercept");
            }
            for (found, plain) in found.scale[1..].iter().zip(&plain.scale[1..]) {
                assert!((found - times * plain).abs() < 1e-9 * found);
            }
        }
    }

    /// By hand: rows of squared norm 2 and noise of 1/100; a column from 0 to 1 that varies by 1/4; a flag of reach 4 in one row of 100; and one
    /// that is never set, or so rarely that noise could be as large as a slope is taken to be.
    #[test]
    fn noise_of_a_column_is_that_of_the_rows_that_tell_of_it() {
        let reach: [f64; 5] = [1.0, 1.0, 4.0, 4.0, 4.0];
        let of = |variance: [f64; 5]| ScaledColumns {
            centre: vec![0.0; 5],
            scale: reach.to_vec(),
            row_norm: 2.0f64.sqrt(),
            centre_error: vec![0.0; 5],
            mean: vec![0.0; 5],
            categories: Vec::new(),
            variance: variance.to_vec(),
            reach: reach.to_vec(),
            listed: 0,
        };
        let found = of([0.0, 0.25, 0.01, 1e-5, 0.0]).noise_squares(0.01);
        for (found, expected) in found.iter().zip([6e-4, 1.5 * 9e-4 / 0.25, 0.01, 1e-5, 0.0]) {
            assert!((found - expected).abs() < 1e-12, "{found} {expected}");
        }
        // Measured in a part of its bounds a column is what it would be if these were its bounds.
        let parts = [[0.0, 1.0], [0.2, 0.1], [0.0, 1.0], [0.0, 1.0]];
        let in_part = of([0.0, 0.25, 0.01, 1e-5, 0.0]).in_bounds(&parts).noise_squares(0.01);
        assert!(in_part.iter().zip(&found).all(|(one, other)| (one - other).abs() < 1e-12), "{in_part:?}");
        // And three times as long in rows that are.
        let enlarged = of([0.0, 0.25, 0.0, 0.0, 0.0]);
        let enlarged = ScaledColumns { row_norm: 1.25f64.sqrt(), ..enlarged }.enlarged(2.25).noise_squares(0.01);
        assert!((enlarged[1] - 1.5 * (0.01 * (3.25 + 9.0f64)).powi(2) / 2.25).abs() < 1e-12, "{enlarged:?}");
    }

    /// By hand: the second column has a known mean, 3 · 2; errors of the first two add in squares, and those of two listed columns as they are.
    #[test]
    fn the_mean_score_is_known_as_far_as_the_means_of_its_columns_are() {
        let scaled = ScaledColumns {
            centre: vec![0.0; 5],
            scale: vec![1.0; 5],
            row_norm: 2.0,
            centre_error: vec![0.0, 0.3, 0.4, 0.5, 0.6],
            mean: vec![0.0, 0.0, 2.0, 0.0, 0.0],
            categories: Vec::new(),
            variance: vec![0.0; 5],
            reach: vec![7.0; 5],
            listed: 2,
        };
        let weights = [9.0, 1.0, 3.0, 1.0, -1.0];
        assert!((scaled.mean_score(&weights) - 6.0).abs() < 1e-12);
        assert!((scaled.mean_score_error(&weights).powi(2) - (0.09 + 1.44 + 1.21)).abs() < 1e-12);
        let expected = [0.0, 0.3, 0.4f64.hypot(2.0), 7.0, 7.0];
        let close = |(found, expected): (f64, f64)| (found - expected).abs() < 1e-12;
        assert!(scaled.mean_deviations().into_iter().zip(expected).all(close));
    }

    #[test]
    fn the_simplex_keeps_its_points_and_takes_the_rest_to_its_nearest() {
        assert_eq!(onto_simplex(&[0.25, 0.75]), [0.25, 0.75]);
        let near = onto_simplex(&[1.5, -0.5, 0.0]);
        assert!((near[0] - 1.0).abs() < 1e-12 && near[1].abs() < 1e-12 && near[2].abs() < 1e-12, "{near:?}");
    }
}
