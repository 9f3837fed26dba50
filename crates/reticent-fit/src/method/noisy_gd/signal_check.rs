//! How much of a fitted change of the scores the data bear out: from one released 2x2 table or, with more than two classes, from
//! one released count.
//!
//! The table counts rows by class and by the sign of the change of their score; the count is of rows whose class is the one whose score
//! rises most. What either has beyond independence says how far the change should have gone; it is a number in one dimension, and so
//! far better known than the change itself, which carries the noise of every column.

use super::saturation::softmax;

/// Prior of the share that should be kept: mean and standard deviation.
const PRIOR: (f64, f64) = (0.5, 0.6);
/// Estimates from this share on keep everything: the check only tells weak signals, it does not tune strong ones.
const WHOLE: f64 = 0.7;
/// Public draws of a row's change, for what to expect of more than two classes.
const DRAWS: u32 = 1000;

/// Share of the change to keep, in `[0, 1]`.
///
/// ```text
///   T = 2 cov(y, [z > 0])      expected when the change is right: e = cov(sigmoid(logit pi + z), sign z), z normal
///   share = posterior mean of T / e under the normal prior, over 0.7, within [0, 1]
/// ```
/// `cells`: rows of class 0 with `z <= 0` and with `z > 0`, then of class 1, each with noise of standard deviation `noise`.
/// `deviation`: standard deviation of `z` over rows, in public. A change of nothing is kept.
pub(super) fn kept_share(cells: &[f64], noise: f64, rows: f64, rate: f64, deviation: f64) -> f64 {
    let expected = expected_covariance((rate / (1.0 - rate)).ln(), deviation);
    if expected <= 0.0 {
        return 1.0;
    }
    let positive = ((cells[1] + cells[3]) / rows).clamp(0.1, 0.9);
    let covariance = (1.0 - rate) * ((1.0 - positive) * cells[3] - positive * cells[2])
        - rate * ((1.0 - positive) * cells[1] - positive * cells[0]);
    let squares = |share: f64| share * share + (1.0 - share) * (1.0 - share);
    let share = 2.0 * covariance / rows / expected;
    let error = 2.0 * noise / rows * (squares(rate) * squares(positive)).sqrt() / expected;
    kept(share, error)
}

/// Posterior mean of a share that was estimated with this error, over [`WHOLE`], within `[0, 1]`.
fn kept(share: f64, error: f64) -> f64 {
    let (precision, prior) = (error.powi(-2), PRIOR.1.powi(-2));
    ((precision * share + prior * PRIOR.0) / (precision + prior) / WHOLE).clamp(0.0, 1.0)
}

/// What a count of rows whose class has the score that rises most should be, as shares of all rows.
pub(super) struct ExpectedHits {
    /// If classes and scores had nothing to do with each other: `sum_k pi_k P(k rises most)`.
    independent: f64,
    /// If the change were right: `E[softmax(ln pi + z)_k]` for the `k` that rises most.
    right: f64,
}

impl ExpectedHits {
    /// `change` has one weight a column and class, class after class; `deviations` are those of the columns over rows, in public, as
    /// if columns were uncorrelated, and uniform; 0 for the intercept. `rates` are the classes'.
    ///
    /// Drawn by a fixed sequence: the same public values give the same expectation.
    pub(super) fn of(change: &[f64], deviations: &[f64], rates: &[f64]) -> Self {
        let mut uniform = FixedSequence(0);
        let (mut most, mut right) = (vec![0.0; rates.len()], 0.0);
        let mut row = vec![0.0; deviations.len()];
        for _ in 0..DRAWS {
            for (value, deviation) in row.iter_mut().zip(deviations) {
                *value = deviation * 3f64.sqrt() * uniform.next();
            }
            let rise =
                |of_class: &[f64]| -> f64 { of_class.iter().zip(&row).map(|(weight, value)| weight * value).sum() };
            let rises: Vec<f64> = change.chunks_exact(row.len()).map(rise).collect();
            let highest = (1..rises.len()).fold(0, |best, place| if rises[place] > rises[best] { place } else { best });
            let scores: Vec<f64> = rises.iter().zip(rates).map(|(rise, rate)| rise + rate.ln()).collect();
            most[highest] += 1.0 / f64::from(DRAWS);
            right += softmax(&scores)[highest] / f64::from(DRAWS);
        }
        Self { independent: most.iter().zip(rates).map(|(share, rate)| share * rate).sum(), right }
    }

    /// Share of the change to keep, in `[0, 1]`: posterior mean of `(hits/n - independent) / (right - independent)`, as in
    /// [`kept_share`]. `hits` were counted with noise of standard deviation `noise`. A change of nothing is kept.
    pub(super) fn kept_share(&self, hits: f64, noise: f64, rows: f64) -> f64 {
        let expected = self.right - self.independent;
        if expected <= 0.0 {
            return 1.0;
        }
        kept((hits / rows - self.independent) / expected, noise / rows / expected)
    }
}

/// Numbers in `[-1, 1)` that look random and are always the same (SplitMix64; Steele, Lea, Flood 2014): for public integrals only.
struct FixedSequence(u64);

impl FixedSequence {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        (mixed >> 11) as f64 * 2f64.powi(-52) - 1.0
    }
}

/// `cov(sigmoid(intercept + z), sign z)` for a normal `z` of mean 0 and this standard deviation: Simpson's rule on `[0, 8]`
/// standard deviations, both sides at once.
fn expected_covariance(intercept: f64, deviation: f64) -> f64 {
    const INTERVALS: u32 = 1280;
    const END: f64 = 8.0;
    let width = END / f64::from(INTERVALS);
    let sigmoid = |score: f64| 1.0 / (1.0 + (-score).exp());
    let total: f64 = (0..=INTERVALS)
        .map(|place| {
            let at = f64::from(place) * width;
            let weight = match place {
                0 | INTERVALS => 1.0,
                odd if odd % 2 == 1 => 4.0,
                _ => 2.0,
            };
            let both = sigmoid(intercept + deviation * at) - sigmoid(intercept - deviation * at);
            weight * both * (-at * at / 2.0).exp()
        })
        .sum();
    total * width / 3.0 / (2.0 * std::f64::consts::PI).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_the_classes_follow_is_kept_and_one_that_they_do_not_is_not() {
        // Of 1,000 rows half have z > 0; deviation 1 and rate 1/2 expect T = 0.17, and here it is 0.2.
        let right = [350.0, 150.0, 150.0, 350.0];
        assert!((kept_share(&right, 1.0, 1000.0, 0.5, 1.0) - 1.0).abs() < 1e-12);
        let independent = [250.0, 250.0, 250.0, 250.0];
        assert!(kept_share(&independent, 1.0, 1000.0, 0.5, 1.0) < 0.01);
        // For a small deviation of 0.1 the expected T is 0.1 E|t| / 4 = 0.01995, and here it is half of that.
        let half = [25_498.7, 24_501.3, 24_501.3, 25_498.7];
        let kept = kept_share(&half, 1.0, 1e5, 0.5, 0.1);
        assert!((kept - 0.5 / WHOLE).abs() < 0.01, "{kept}");
    }

    /// Two columns, the first of which decides between the classes 0 and 1; nothing speaks for class 2.
    fn hits() -> ExpectedHits {
        ExpectedHits::of(&[0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0], &[0.0, 0.5, 2.0], &[0.5, 0.3, 0.2])
    }

    #[test]
    fn hits_are_expected_as_their_integral() {
        // Of u in [-1, 1], by hand: 0 rises most for u > 0, else 1, so (0.5 + 0.3)/2 are hit by chance. With z = sqrt(3)/2 u the mean of
        // 0.5 e^z/(0.5 e^z + 0.3 e^-z + 0.2) over u > 0 and of 0.3 e^-z/(..) over u < 0 is 0.5438 (Simpson's rule).
        assert!((hits().independent - 0.4).abs() < 0.01, "{}", hits().independent);
        let mean = |from: f64, share: &dyn Fn(f64) -> f64| -> f64 {
            (0..10_000).map(|place| share(from * (f64::from(place) + 0.5) / 10_000.0)).sum::<f64>() / 10_000.0
        };
        let total = |z: f64| 0.5 * z.exp() + 0.3 * (-z).exp() + 0.2;
        let zero = mean(0.75f64.sqrt(), &|z| 0.5 * z.exp() / total(z));
        let one = mean(-0.75f64.sqrt(), &|z| 0.3 * (-z).exp() / total(z));
        assert!((hits().right - (zero + one) / 2.0).abs() < 0.01, "{} {zero} {one}", hits().right);
    }

    #[test]
    fn hits_that_are_expected_keep_the_change_and_those_by_chance_do_not() {
        let hits = hits();
        let kept = |share: f64, noise: f64| {
            hits.kept_share(1000.0 * (hits.independent + share * (hits.right - hits.independent)), noise, 1000.0)
        };
        assert!((kept(1.0, 1.0) - 1.0).abs() < 1e-12);
        assert!(kept(0.0, 1.0) < 0.01);
        assert!((kept(0.35, 1.0) - 0.5).abs() < 0.01);
        assert!((kept(-40.0, 1e6) - PRIOR.0 / WHOLE).abs() < 0.01, "all noise: the prior");
        let nothing = ExpectedHits::of(&[0.0; 9], &[0.0, 0.5, 2.0], &[0.5, 0.3, 0.2]);
        assert!((nothing.kept_share(7.0, 1.0, 1000.0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_fixed_sequence_is_that_of_its_source() {
        // The first outputs of SplitMix64 with seed 0: e220a8397b1dcdaf, 6e789e6aa1b965f4.
        let mut sequence = FixedSequence(0);
        for bits in [0xe220_a839_7b1d_cdafu64, 0x6e78_9e6a_a1b9_65f4] {
            let expected = (bits >> 11) as f64 * 2f64.powi(-52) - 1.0;
            assert!((sequence.next() - expected).abs() < 1e-15);
        }
    }

    #[test]
    fn a_table_of_noise_leaves_the_prior() {
        let kept = kept_share(&[9e3, -4e3, 2e3, 1e3], 1e6, 1000.0, 0.3, 1.0);
        assert!((kept - PRIOR.0 / WHOLE).abs() < 0.05, "{kept}");
        assert!((kept_share(&[1.0; 4], 1.0, 4.0, 0.5, 0.0) - 1.0).abs() < 1e-12, "nothing to shorten");
    }
}
