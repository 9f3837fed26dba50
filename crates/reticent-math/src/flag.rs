//! Whether a number is a flag, one of its two bounds in nearly every row: told by released moments and counts.

use std::f64::consts::SQRT_2;

use crate::range_search::BinCounts;

/// Standard deviations by which both kinds of rows stand out where nothing else speaks for a flag.
const SEEN: f64 = 3.0;
/// Standard deviations of noise that may look like rows between the bounds: of a flag that is seen, and of one that is expected.
const BETWEEN: (f64, f64) = (2.0, 1.0);

/// Released moments of a number: `u` is its share of the way from its low bound to its high one.
#[derive(Clone, Copy, Debug)]
pub struct NumberMoments {
    /// Mean of `u`.
    pub mean: f64,
    /// Mean of `(2u - 1)²`.
    pub square: f64,
    /// Noise of each of the two.
    pub noise: f64,
}

/// How often a flag is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FlagShare {
    /// Share of the rows at the high bound, 0 to 1, and of missing values as much as they are worth.
    pub share: f64,
    /// Its error.
    pub noise: f64,
}

/// How often a number is its high bound, if it is a flag; none where it does not seem to be one.
/// ```text
///   between = 4 E u(1 - u) = 1 - E (2u - 1)²  with noise e,  and  1 - first bin - last bin  with noise sqrt(2) e_b:    both 0 of a flag
///   p: the mean of  E u² = (E (2u - 1)² - 1)/4 + E u  and of the last bin, by their precisions;  e_p its error
///   flag:  each < twice its noise + p(1 - p),  with p and 1 - p above 3 e_p;  or, where one is expected,  each < its noise + p(1 - p)
/// ```
/// A flag that is hardly ever set cannot be told from values that are all near one bound: there what is expected decides.
///
/// Missing values are all in the bin `missing`. Where that is none of the two ends and stands out of those beside it by three deviations, its rows are taken off
/// all of these first.
#[must_use]
pub fn flag_share(
    moments: &NumberMoments,
    counts: &BinCounts<'_>,
    missing: usize,
    is_expected: bool,
) -> Option<FlagShare> {
    let NumberMoments { mean, square, noise } = *moments;
    let is_between = 0 < missing && missing + 1 < counts.bins.len();
    let there = if is_between { counts.spike(missing, SEEN).unwrap_or(0.0) / counts.rows } else { 0.0 };
    let worth = (missing as f64 + 0.5) / counts.bins.len() as f64;
    let [first_bin, last_bin] = [0, counts.bins.len() - 1].map(|bin| counts.bins[bin] / counts.rows);
    let bin_noise = counts.noise / counts.rows;
    let of_moments = (square - 1.0) / 4.0 + mean - there * worth * worth;
    // E u² has a quarter of the square's noise and all of the mean's. Without noise either estimate is right.
    let variances =
        [17.0 / 16.0 * noise * noise, bin_noise * bin_noise].map(|variance| variance.max(f64::MIN_POSITIVE));
    let found = (of_moments * variances[1] + last_bin * variances[0]) / (variances[0] + variances[1]);
    let error = (variances[0].recip() + variances[1].recip()).powf(-0.5);
    let share = found.clamp(0.0, 1.0);
    let doubts = if found.min(1.0 - found) > SEEN * error {
        BETWEEN.0
    } else if is_expected {
        BETWEEN.1
    } else {
        return None;
    };
    let is_little = |between: f64, noise: f64| between < doubts * noise + share * (1.0 - share);
    let is_flag = is_little(1.0 - square - 4.0 * there * worth * (1.0 - worth), noise)
        && is_little(1.0 - first_bin - last_bin - there, SQRT_2 * bin_noise);
    is_flag.then_some(FlagShare { share: (share + there * worth).min(1.0), noise: error })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What moments and bins without what noise does to them say of rows at the places; noise of a bin is half that of a moment.
    fn found(rows: &[f64], noise: f64, is_expected: bool) -> Option<FlagShare> {
        let count = rows.len() as f64;
        let mean = |of: &dyn Fn(f64) -> f64| rows.iter().map(|at| of(*at)).sum::<f64>() / count;
        let mut bins = [0.0; 256];
        rows.iter().for_each(|at| bins[((at * 256.0) as usize).min(255)] += 1.0);
        let moments = NumberMoments { mean: mean(&|at| at), square: mean(&|at| (2.0 * at - 1.0).powi(2)), noise };
        let counts = BinCounts { bins: &bins, noise: noise / 2.0 * count, rows: count, rows_noise: 0.0 };
        flag_share(&moments, &counts, 128, is_expected)
    }

    fn rows(shares: &[(usize, f64)]) -> Vec<f64> {
        shares.iter().flat_map(|(count, at)| std::iter::repeat_n(*at, *count)).collect()
    }

    #[test]
    fn a_flag_is_seen_where_both_kinds_of_rows_stand_out() {
        let flags = rows(&[(950, 0.0), (50, 1.0)]);
        // 1/e_p² = 16/(17 e²) + 4/e².
        let error = |noise: f64| noise / (16.0f64 / 17.0 + 4.0).sqrt();
        let seen = found(&flags, 0.01, false).expect("seen");
        assert!((seen.share - 0.05).abs() < 1e-12 && (seen.noise - error(0.01)).abs() < 1e-12, "{seen:?}");
        let hidden = 0.05 / 3.0 * (16.0f64 / 17.0 + 4.0).sqrt();
        assert!(found(&flags, 0.99 * hidden, false).is_some());
        assert_eq!(found(&flags, 1.01 * hidden, false), None);
        assert!(found(&flags, 1.01 * hidden, true).is_some());
        let without_noise = found(&flags, 0.0, false).expect("seen");
        assert!((without_noise.share - 0.05).abs() < 1e-12);
        // Hardly ever low is the same as hardly ever high.
        assert!(found(&rows(&[(50, 0.0), (950, 1.0)]), 0.01, false).is_some());
    }

    /// `between` is `4 · 1/10 · 1/2 · 1/2 = 1/10` with a tenth in the middle, as of missing values, and `p(1 - p)` more than that.
    #[test]
    fn some_rows_between_the_bounds_do_not_matter_and_most_do() {
        assert!(found(&rows(&[(600, 0.0), (100, 0.4), (300, 1.0)]), 0.001, false).is_some());
        // Most rows 0, a tail, and half a percent at the high bound.
        let tail = rows(&[(915, 0.0), (50, 0.05), (30, 0.1), (5, 1.0)]);
        assert_eq!(found(&tail, 0.001, true), None);
        assert_eq!(found(&rows(&[(500, 0.25), (500, 0.75)]), 0.05, true), None);
    }

    /// Four in ten are missing, and count as the middle: more than the doubt that any flag has.
    #[test]
    fn missing_values_make_a_flag_no_other_number() {
        let with_missing = rows(&[(500, 0.0), (400, 0.501), (100, 1.0)]);
        let FlagShare { share, .. } = found(&with_missing, 0.001, false).expect("a flag");
        assert!((share - (0.1 + 0.4 * 0.5)).abs() < 0.01, "{share}");
        let elsewhere = rows(&[(500, 0.0), (400, 0.4), (100, 1.0)]);
        assert_eq!(found(&elsewhere, 0.001, false), None);
    }

    #[test]
    fn values_near_one_bound_are_a_flag_where_that_is_expected_and_noise_hides_where_they_are() {
        let narrow = rows(&[(900, 0.002), (50, 0.1), (50, 0.2)]);
        // 4 E u(1 - u) is .057, and a tenth of the rows is in no end bin; what is taken for a share, under .002.
        assert_eq!(found(&narrow, 0.2, false), None);
        assert!(found(&narrow, 0.2, true).is_some());
        assert_eq!(found(&narrow, 0.13, true), None, "noise of two bins of half of that is less than .1");
        let near = rows(&[(1000, 0.0035)]);
        assert!(found(&near, 0.02, true).is_some());
        assert_eq!(found(&near, 0.01, true), None, "4 · .0035 lie between");
        let below = NumberMoments { mean: -0.1, square: 1.0, noise: 0.1 };
        let counts = BinCounts { bins: &[1000.0, 0.0], noise: 50.0, rows: 1000.0, rows_noise: 0.0 };
        assert!(flag_share(&below, &counts, 1, true).expect("all rows low").share.abs() < 1e-12);
    }
}
