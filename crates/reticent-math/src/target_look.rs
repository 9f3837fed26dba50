//! The two looks for a number in its bounds: among how many bins each, and how sure each has to be.
//!
//! Few bins have little noise and are wide, many the other way round. So a target is looked for twice: among few bins over its bounds, and among
//! as many as their noise lets tell in the part that those say.

/// Fewest bins.
const BINS_MIN: u32 = 16;
/// Most bins over the bounds, in a part of them, and there where the number of rows is not known: noise of many may hide far fewer rows than
/// were expected.
const BINS_MAX: [u32; 2] = [64, 256];
const UNSURE_BINS_MAX: u32 = 128;
/// Noise of an eighth of the bins as a share of the rows, at most: over the bounds, where the part is only to be found, and in it, where rows in few bins
/// that noise hides make it longer.
const NOISE_MAX: [f64; 2] = [0.15, 0.075];
/// Share of a run's doubt by which it may fall short of the rows: what noise could hide over the bounds may be looked at again, but what the part leaves
/// out is lost, as a long tail would be.
const DOUBT_SHARE: [f64; 2] = [1.0, 0.25];
/// The run that must be found: an eighth of the bounds. Narrower ones are found, too, and wider ones may be missed.
const RUNS: f64 = 8.0;

/// Which of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// Over all of the bounds.
    OverBounds,
    /// In the part of them where the first has found it.
    InPart,
}

impl Look {
    /// One of two values.
    pub fn of<T>(self, [over_bounds, in_part]: [T; 2]) -> T {
        match self {
            Self::OverBounds => over_bounds,
            Self::InPart => in_part,
        }
    }

    /// The bins to look among: the largest power of two, at least 16, whose counts can be told from their noise `e`,
    /// ```text
    ///   2 e sqrt(bins / 8) <= 3/10 rows over the bounds, at most 64 bins;   <= 3/20 rows in a part of them, at most 256, or 128 where rows are not known
    /// ```
    /// `noise`: that of a bin as a share of the rows.
    #[must_use]
    pub fn bins(self, noise: f64, are_rows_known: bool) -> u32 {
        let unsure_max = if are_rows_known { u32::MAX } else { UNSURE_BINS_MAX };
        bins_told(noise, self.of(NOISE_MAX), self.of(BINS_MAX).min(unsure_max)).max(BINS_MIN)
    }

    /// Share of a run's doubt by which it may fall short of the rows: see [`crate::range_search::find_part`].
    #[must_use]
    pub fn doubt_share(self) -> f64 {
        self.of(DOUBT_SHARE)
    }
}

/// The largest power of two, at most `most`, of which an eighth of so many bins has noise of `noise_max` of the rows at most, where one has `noise`.
#[must_use]
pub fn bins_told(noise: f64, noise_max: f64, most: u32) -> u32 {
    let told = (RUNS * (noise_max / noise).powi(2)).clamp(1.0, f64::from(most)) as u32;
    1 << told.ilog2()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `8 (.15 / e)²` by hand: 90 for noise of .0447 of the rows, `8 (.075 / e)²` 22.5.
    #[test]
    fn there_are_as_many_bins_as_can_be_told_from_their_noise() {
        let both =
            |noise: f64, are_rows_known| [Look::OverBounds, Look::InPart].map(|look| look.bins(noise, are_rows_known));
        let bins = |noise: f64| both(noise, true);
        assert_eq!(bins(0.149), [16, 16]);
        assert_eq!(bins(0.0447), [64, 16]);
        assert_eq!(bins(0.02), [64, 64]);
        assert_eq!(bins(0.001), [64, 256]);
        assert_eq!(both(0.001, false), [64, 128]);
        assert_eq!([0.1, 1e9, 0.0].map(|noise| bins_told(noise, 0.1, 32)), [8, 1, 32]);
    }
}
