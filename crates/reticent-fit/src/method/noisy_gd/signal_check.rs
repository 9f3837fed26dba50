//! How much of a fitted change of the score the data bear out: from one released 2x2 table.
//!
//! The table counts rows by class and by the sign of the change of their score. The covariance of both says how far the change
//! should have gone; it is a number in one dimension, and so far better known than the change itself, which carries the noise
//! of every column.

/// Prior of the share that should be kept: mean and standard deviation.
const PRIOR: (f64, f64) = (0.5, 0.6);
/// Estimates from this share on keep everything: the table only tells weak signals, it does not tune strong ones.
const WHOLE: f64 = 0.7;

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
    let (precision, prior) = (error.powi(-2), PRIOR.1.powi(-2));
    ((precision * share + prior * PRIOR.0) / (precision + prior) / WHOLE).clamp(0.0, 1.0)
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

    #[test]
    fn a_table_of_noise_leaves_the_prior() {
        let kept = kept_share(&[9e3, -4e3, 2e3, 1e3], 1e6, 1000.0, 0.3, 1.0);
        assert!((kept - PRIOR.0 / WHOLE).abs() < 0.05, "{kept}");
        assert!((kept_share(&[1.0; 4], 1.0, 4.0, 0.5, 0.0) - 1.0).abs() < 1e-12, "nothing to shorten");
    }
}
