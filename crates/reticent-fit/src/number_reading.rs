//! How one number is read, as far as what was released of it tells: within which part of its bounds, around what centre, how widely spread.

use reticent_core::coding::{CODE_MAX, SlotMap};
use reticent_core::contribution::number_bin;
use reticent_core::encoding::CodeRange;
use reticent_math::flag::{FlagShare, NumberMoments, flag_share};
use reticent_math::range_search::{BinCounts, FoundRange, LEFT_OUT, RangeRule, find_range, find_range_of_others};

use crate::trust::trust;

/// All of the bounds.
pub(crate) const WHOLE: [f64; 2] = [0.0, 1.0];
/// Smallest variance of a numeric column in the part of its bounds that it is measured in.
pub(crate) const VARIANCE_MIN: f64 = 1e-4;
/// Largest variance of a number between 0 and 1.
const VARIANCE_MAX: f64 = 0.25;

/// Centre and spread of a number, and where it is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NumberReading {
    /// What it is measured in: lowest value and width of a part of its bounds.
    pub(crate) part: [f64; 2],
    /// Its mean there.
    pub(crate) mean: f64,
    /// Its variance there.
    pub(crate) variance: f64,
    /// Standard deviation of the noise of the mean.
    pub(crate) noise: f64,
    /// Values beyond it are read as its border.
    pub(crate) range: CodeRange,
}

/// Missing values of a number.
#[derive(Clone, Copy)]
pub(crate) struct MissingNumbers {
    /// What they are coded as.
    pub(crate) code: u16,
    /// Whether the schema leaves open what they become, and the column may tell that they are apart: a logarithm follows its number.
    pub(crate) is_open: bool,
    /// Whether they are known to be apart from all others, by another column of the same number.
    pub(crate) are_apart: bool,
}

impl MissingNumbers {
    /// Those of a slot of numbers.
    pub(crate) fn of(slot: SlotMap, are_apart: bool) -> Self {
        match slot {
            SlotMap::Linear { missing, is_missing_open, .. } => {
                Self { code: missing, is_open: is_missing_open, are_apart }
            }
            SlotMap::SymLog { missing, .. } => Self { code: missing, is_open: false, are_apart },
            SlotMap::Category { .. } => unreachable!("no number"),
        }
    }
}

impl NumberReading {
    /// Of a flag, by how often it is set, and of a number that lies in a part of its bounds, as far as bins read by a rule can tell, there.
    /// `is_flag_expected`: what decides where neither does. `caution`: that of [`Self::by_moments`], which reads what is left of a number that is apart
    /// from its missing values.
    ///
    /// Missing values for which the schema names no number are read as the mean of the others, where they are told from all others.
    pub(crate) fn by_bins(
        moments: &NumberMoments,
        counts: &BinCounts<'_>,
        missing: MissingNumbers,
        rule: RangeRule,
        is_flag_expected: bool,
        caution: f64,
    ) -> Option<Self> {
        let bin = number_bin(missing.code, counts.bins.len() as u32);
        if let Some(flag) = flag_share(moments, counts, bin, is_flag_expected) {
            return Some(Self::of_flag(flag));
        }
        if missing.are_apart {
            let others = moments_of_others(moments, counts, bin)?;
            let found = find_range_of_others(counts, bin, rule).map(Self::in_range);
            return Some(found.unwrap_or_else(|| Self::by_moments(&others, caution)).reading_as_mean(missing));
        }
        let found = find_range(counts, bin, rule)?;
        let is_apart = missing.is_open && found.is_missing_apart;
        let found = Self::in_range(found);
        Some(if is_apart { found.reading_as_mean(missing) } else { found })
    }

    /// The same with missing values read as its mean.
    fn reading_as_mean(self, missing: MissingNumbers) -> Self {
        let [low, width] = self.part;
        let mean = ((low + width * self.mean) * f64::from(CODE_MAX)).round() as u16;
        let mean = mean.clamp(self.range.low(), self.range.high());
        Self { range: self.range.with_missing(missing.code, mean), ..self }
    }

    fn of_flag(FlagShare { share, noise }: FlagShare) -> Self {
        // A flag that noise hides may be set that often, and is not scaled up as if it never were.
        let variance = (share * (1.0 - share) + noise).clamp(VARIANCE_MIN, VARIANCE_MAX);
        Self { part: WHOLE, mean: share, variance, noise, range: CodeRange::BOUNDS }
    }

    fn in_range(found: FoundRange) -> Self {
        let [low, high] = found.range.map(|end| (end * f64::from(CODE_MAX)).round() as u16);
        Self {
            part: found.part,
            mean: found.mean,
            variance: found.variance.clamp(VARIANCE_MIN, VARIANCE_MAX),
            noise: found.mean_noise,
            range: CodeRange::new(low, high),
        }
    }

    /// Within all of the bounds. Its variance is taken so many standard deviations of its noise lower.
    pub(crate) fn by_moments(moments: &NumberMoments, caution: f64) -> Self {
        let NumberMoments { mean, square, noise } = *moments;
        let trust = trust(0.3, noise);
        let centre = (0.5 + trust * (mean - 0.5)).clamp(0.0, 1.0);
        // E (2u - 1)²; 1/3 for a uniform column.
        let square = (trust * square + (1.0 - trust) / 3.0).clamp(0.0, 1.0);
        // The variance of a narrow column drowns in the noise, and chance would decide whether it is scaled up. Taken
        // low it always is; kappa says how far.
        let error = noise * trust * (1.0 / 16.0 + (1.0 - 2.0 * centre).powi(2)).sqrt();
        let found = square / 4.0 - (centre - 0.5).powi(2);
        let variance = (found - caution * error).clamp(VARIANCE_MIN, VARIANCE_MAX);
        Self { part: WHOLE, mean: centre, variance, noise: noise * trust, range: CodeRange::BOUNDS }
    }
}

/// Moments of the rows that are not in the bin of missing values; none where that does not stand out.
fn moments_of_others(moments: &NumberMoments, counts: &BinCounts<'_>, missing: usize) -> Option<NumberMoments> {
    let share = counts.spike(missing, LEFT_OUT)? / counts.rows;
    let left = (1.0 - share).max(0.01);
    let worth = (missing as f64 + 0.5) / counts.bins.len() as f64;
    let mean = (moments.mean - share * worth) / left;
    let square = (moments.square - share * (2.0 * worth - 1.0).powi(2)) / left;
    Some(NumberMoments { mean, square, noise: moments.noise / left })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of numbers with nearly all rows in the first bin: flags that are seen and that are expected, and a small part of the bounds.
    #[test]
    fn a_flag_is_read_within_its_bounds() {
        let rule = RangeRule { spared: 0.01, doubt_share: 1.0, narrower_than: 2.0 / 3.0 };
        let read = |share: f64, is_flag_expected: bool| {
            let mut bins = [0.0; 16];
            (bins[0], bins[15]) = (1000.0 * (1.0 - share), 1000.0 * share);
            let counts = BinCounts { bins: &bins, noise: 30.0, rows: 1000.0, rows_noise: 0.0 };
            let moments = NumberMoments { mean: share, square: 1.0, noise: 0.02 };
            let missing = MissingNumbers { code: CODE_MAX / 2, is_open: false, are_apart: false };
            NumberReading::by_bins(&moments, &counts, missing, rule, is_flag_expected, 1.0).expect("a flag or a part")
        };
        let noise = (16.0 / 17.0 / 0.02f64.powi(2) + 0.03f64.powi(-2)).powf(-0.5);
        for (share, is_expected) in [(0.09, false), (0.005, true)] {
            let found = read(share, is_expected);
            assert_eq!((found.part, found.range), (WHOLE, CodeRange::BOUNDS));
            assert!((found.mean - share).abs() < 1e-12 && (found.noise - noise).abs() < 1e-12, "{found:?}");
            assert!((found.variance - share * (1.0 - share) - noise).abs() < 1e-12, "{found:?}");
        }
        assert!(read(0.005, false).range.high() < CODE_MAX / 2);
    }
}
