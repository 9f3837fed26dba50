//! How much of a fitted change of the scores the data bear out: from one released 2x2 table of two classes or, for a start that was
//! handed in and with more than two classes, from released excess hits.
//!
//! The table counts rows by class and by the sign of the change of their score. Excess hits are of the class whose score rises most, beyond
//! what the start expects. What either has says how far the change should have gone; it is a number in one dimension, and so far better
//! known than the change itself, which carries the noise of every column.

use reticent_core::largest_place::largest_place;
use reticent_math::normal_mean::{END, over_normal};
use reticent_math::sigmoid;

use super::public_rows::PublicRows;
use crate::softmax::softmax;

/// Prior of the share that should be kept: mean and standard deviation.
const PRIOR: (f64, f64) = (0.5, 0.6);
/// Estimates from this share on keep everything: the check only tells weak signals, it does not tune strong ones.
const WHOLE: f64 = 0.7;
/// Error of what is expected, and the least that a gain is taken to be, as shares of it.
const EXPECTED_ERROR: f64 = 0.5;
const GAIN_LEAST: f64 = 0.1;

/// Share of the change to keep, in `[0, 1]`.
///
/// ```text
///   T = 2 cov(y, [z > 0]) - chance      expected when the change is right: e = cov(sigmoid(a + z), sign z), z normal, E sigmoid(a + z) = pi
///   share = posterior mean of T / e under the normal prior, over 0.7, within [0, 1]
/// ```
/// `cells`: rows of class 0 with `z <= 0` and with `z > 0`, then of class 1, each with noise of standard deviation `noise`.
/// `deviation`: standard deviation of `z` over rows, in public. `chance`: what chance makes of `T`. A change of nothing is kept.
pub(super) fn kept_share(cells: &[f64], noise: f64, rows: f64, rate: f64, deviation: f64, chance: f64) -> f64 {
    let expected = expected_covariance(intercept_of(rate, deviation), deviation);
    if expected <= 0.0 {
        return 1.0;
    }
    let (positive, covariance) = (positive_share(cells, rows), covariance(cells, rows, rate));
    let squares = |share: f64| share * share + (1.0 - share) * (1.0 - share);
    let share = (2.0 * covariance - chance) / expected;
    let error = 2.0 * noise / rows * (squares(rate) * squares(positive)).sqrt() / expected;
    kept(share, error)
}

/// Share of the variance of the classes that the signs of the change leave, by the same cells, where chance alone, if nothing were explained,
/// would make `T` as large as `chance`: what is explained pulls less.
pub(super) fn unexplained(cells: &[f64], rows: f64, rate: f64, chance: f64) -> f64 {
    let positive = positive_share(cells, rows);
    let variances = rate * (1.0 - rate) * positive * (1.0 - positive);
    let found = covariance(cells, rows, rate);
    left_by(|left| (found - left * chance / 2.0).max(0.0).powi(2) / variances)
}

/// The largest share left that is what it leaves itself.
fn left_by(explained: impl Fn(f64) -> f64) -> f64 {
    let mut left = 1.0;
    for _ in 0..FIXED_POINT_STEPS {
        left = (1.0 - explained(left)).clamp(0.0, 1.0);
    }
    left
}

/// `T` that chance makes of signs, of so many degrees of freedom: see [`super::optimism`]. 0 for no change.
pub(super) fn chance_of_signs(freedom: f64, deviation: f64, rows: f64) -> f64 {
    if deviation > 0.0 { freedom * (2.0 / std::f64::consts::PI).sqrt() / deviation / rows } else { 0.0 }
}

fn positive_share(cells: &[f64], rows: f64) -> f64 {
    ((cells[1] + cells[3]) / rows).clamp(0.1, 0.9)
}

/// `cov(y, [z > 0])`.
fn covariance(cells: &[f64], rows: f64, rate: f64) -> f64 {
    let positive = positive_share(cells, rows);
    let of_class = |class: usize| (1.0 - positive) * cells[2 * class + 1] - positive * cells[2 * class];
    ((1.0 - rate) * of_class(1) - rate * of_class(0)) / rows
}

/// Posterior mean of a share that was estimated with this error, over [`WHOLE`], within `[0, 1]`.
fn kept(share: f64, error: f64) -> f64 {
    let (precision, prior) = (error.powi(-2), PRIOR.1.powi(-2));
    ((precision * share + prior * PRIOR.0) / (precision + prior) / WHOLE).clamp(0.0, 1.0)
}

/// Share of the change to keep, in `[0, 1]`, from excess hits ([`Map::ExcessHits`](reticent_core::query::Map)).
///
/// ```text
///   H = sum [y = h] - p_h: 0 where the classes follow the first model       G = sum q_h - p_h: what H should be where they follow the second
///   share = posterior mean of (H - optimism) / G under the normal prior, over 0.7, within [0, 1]
/// ```
/// with `h` the class whose score rises most. `released` are `H` and `G/2`, each with noise of standard deviation `noise`; `G` is pooled
/// with what is expected in public, whose error is taken to be half of it. A change of nothing is kept.
pub(super) fn kept_of_hits(released: &[f64], noise: f64, expected: f64, optimism: f64) -> f64 {
    if expected <= 0.0 {
        return 1.0;
    }
    let (of_release, of_model) = ((2.0 * noise).powi(-2), (EXPECTED_ERROR * expected).powi(-2));
    let pooled = (of_release * 2.0 * released[1] + of_model * expected) / (of_release + of_model);
    let gain = pooled.max(GAIN_LEAST * expected);
    // Where scores are wider than those of public rows, fewer of them lie where a pull changes the side.
    let optimism = optimism * (expected / gain).min(1.0);
    kept((released[0] - optimism) / gain, noise / gain)
}

/// Mean of `q_h - p_h` over public rows, with `p` the probabilities by weights `first`, `q` those after `change`, and `h` the class whose score
/// rises most.
pub(super) fn expected_gain(first: &[f64], change: &[f64], rows: &PublicRows<'_>) -> f64 {
    let drawn = rows.scores(first, change);
    let gain = |(before, rises): &(Vec<f64>, Vec<f64>)| {
        let rising = largest_place(rises);
        let after: Vec<f64> = before.iter().zip(rises).map(|(before, rise)| before + rise).collect();
        softmax(&after)[rising] - softmax(before)[rising]
    };
    drawn.iter().map(gain).sum::<f64>() / drawn.len() as f64
}

/// Share of the misses of a class that rises by chance which excess hits leave, where chance alone would make so many of them, if nothing were
/// explained; `expected_hits` are a row's by the first model alone.
pub(super) fn unexplained_by_hits(excess: f64, rows: f64, expected_hits: f64, chance: f64) -> f64 {
    left_by(|left| (excess - left * chance).max(0.0) / (rows * (1.0 - expected_hits)).max(1.0))
}

/// The intercept with which a right model predicts this mean rate: lower than `logit rate` for a rare class, the more so the more scores
/// vary. With `logit rate` itself right models of rare classes would be taken to claim too much.
pub(super) fn intercept_of(rate: f64, deviation: f64) -> f64 {
    // Every mean is reached within the log-odds of the rate and as many standard deviations as the integral goes.
    let (middle, reach) = ((rate / (1.0 - rate)).ln(), END * deviation);
    let (mut low, mut high) = (middle - reach, middle + reach);
    for _ in 0..BISECTIONS {
        let intercept = f64::midpoint(low, high);
        if over_normal(|z| f64::midpoint(sigmoid(intercept + deviation * z), sigmoid(intercept - deviation * z))) < rate
        {
            low = intercept;
        } else {
            high = intercept;
        }
    }
    f64::midpoint(low, high)
}

/// `cov(sigmoid(intercept + z), sign z)` for a normal `z` of mean 0 and this standard deviation.
fn expected_covariance(intercept: f64, deviation: f64) -> f64 {
    over_normal(|z| f64::midpoint(sigmoid(intercept + deviation * z), -sigmoid(intercept - deviation * z)))
}

/// Steps after which a share that is left is known.
const FIXED_POINT_STEPS: u32 = 50;
/// Halvings after which an intercept is known to the last digits.
const BISECTIONS: u32 = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_that_the_classes_follow_is_kept_and_one_that_they_do_not_is_not() {
        // Of 1,000 rows half have z > 0; deviation 1 and rate 1/2 expect T = 0.17, and here it is 0.2.
        let right = [350.0, 150.0, 150.0, 350.0];
        assert!((kept_share(&right, 1.0, 1000.0, 0.5, 1.0, 0.0) - 1.0).abs() < 1e-12);
        let independent = [250.0, 250.0, 250.0, 250.0];
        assert!(kept_share(&independent, 1.0, 1000.0, 0.5, 1.0, 0.0) < 0.01);
        // Chance explains half of the 0.2: 100 / sqrt(2/pi) degrees of freedom.
        let chance = chance_of_signs(100.0 / (2.0 / std::f64::consts::PI).sqrt(), 1.0, 1000.0);
        let expected = expected_covariance(intercept_of(0.5, 1.0), 1.0);
        let kept = kept_share(&right, 1e-3, 1000.0, 0.5, 1.0, chance);
        assert!((kept - (0.1 / expected / WHOLE).min(1.0)).abs() < 1e-6 && kept < 1.0, "{kept}");
        // cov = 0.1 of at most 0.25: 0.16 of the variance is explained, and less by as much as chance is.
        assert!((unexplained(&right, 1000.0, 0.5, 0.0) - 0.84).abs() < 1e-12);
        let left = unexplained(&right, 1000.0, 0.5, 0.1);
        assert!((1.0 - left - ((0.1 - 0.05 * left) / 0.25).powi(2)).abs() < 1e-9 && left > 0.95, "{left}");
        assert!((unexplained(&right, 1000.0, 0.5, 5.0) - 1.0).abs() < 1e-12, "chance explains it all");
        // For a small deviation of 0.1 the expected T is 0.1 E|t| / 4 = 0.01995, and here it is half of that.
        let half = [25_498.7, 24_501.3, 24_501.3, 25_498.7];
        let kept = kept_share(&half, 1.0, 1e5, 0.5, 0.1, 0.0);
        assert!((kept - 0.5 / WHOLE).abs() < 0.01, "{kept}");
    }

    #[test]
    fn a_gain_is_expected_as_its_integral() {
        // A number decides between the classes 0 and 1; nothing speaks for class 2. By hand: with z = sqrt(3)/2 u, u uniform in [-1, 1], class 0
        // rises most for u > 0, from 0.5 to 0.5 e^z/(0.5 e^z + 0.3 e^-z + 0.2), else class 1, from 0.3 to 0.3 e^-z/(..).
        let rates: [f64; 3] = [0.5, 0.3, 0.2];
        let first: Vec<f64> = rates.iter().flat_map(|rate| [rate.ln(), 0.0, 0.0]).collect();
        let change = [0.0, 1.0, 0.0, 0.0, -1.0, 0.0, 0.0, 0.0, 0.0];
        let mean = |gain: &dyn Fn(f64) -> f64| -> f64 {
            (0..10_000).map(|place| gain(0.75f64.sqrt() * (f64::from(place) + 0.5) / 10_000.0)).sum::<f64>() / 10_000.0
        };
        let total = |z: f64| 0.5 * z.exp() + 0.3 * (-z).exp() + 0.2;
        let zero = mean(&|z| 0.5 * z.exp() / total(z) - 0.5);
        let one = mean(&|z| 0.3 * z.exp() / total(-z) - 0.3);
        let numbers = |deviations: &[f64]| PublicRows {
            deviations: deviations.to_vec(),
            categories: &[],
            centre: &[],
            scale: &[],
        };
        let rows = numbers(&[0.0, 0.5, 2.0]);
        let found = expected_gain(&first, &change, &rows);
        assert!((found - (zero + one) / 2.0).abs() < 0.005, "{found} {zero} {one}");
        // One score of two classes is that of the second.
        let two = expected_gain(&[0.3, 0.0], &[0.0, 1.0], &numbers(&[0.0, 0.5]));
        let both = mean(&|z| (sigmoid(0.3 + z) - sigmoid(0.3 - z)) / 2.0);
        assert!((two - both).abs() < 0.005, "{two} {both}");
        assert!(expected_gain(&first, &[0.0; 9], &rows).abs() < 1e-15);
    }

    #[test]
    fn hits_that_are_expected_keep_the_change_and_those_that_are_not_do_not() {
        // Gains of 100 were expected and 80 released; the release decides where it is exact, the expectation where it is noise.
        let kept = |hits: f64, noise: f64| kept_of_hits(&[hits, 40.0], noise, 100.0, 0.0);
        assert!((kept(80.0, 0.01) - 1.0).abs() < 1e-12 && (kept(28.0, 0.01) - 0.5).abs() < 1e-3);
        assert!(kept(0.0, 0.01) < 1e-3 && kept(-50.0, 0.01) < 1e-12);
        // By hand: pooled to (80/20^2 + 100/50^2)/(1/20^2 + 1/50^2) = 82.76; share 0.2417 with error 0.1208, to 0.2518.
        assert!((kept(20.0, 10.0) - 0.2518 / WHOLE).abs() < 1e-3, "{}", kept(20.0, 10.0));
        assert!((kept(-9e3, 1e7) - PRIOR.0 / WHOLE).abs() < 0.01, "all noise: the prior");
        assert!((kept_of_hits(&[-5.0, 3.0], 1.0, 0.0, 0.0) - 1.0).abs() < 1e-12, "a change of nothing");
        // 20 of 80 hits by chance: three quarters are left, above the .7 still. 52 by chance leave .35.
        assert!((kept_of_hits(&[80.0, 40.0], 0.01, 100.0, 20.0) - 1.0).abs() < 1e-9);
        assert!((kept_of_hits(&[80.0, 40.0], 0.01, 100.0, 52.0) - 0.5).abs() < 1e-3);
        // 300 hits of 500 misses by chance: two fifths are left; 100 of them are chance, as far as it has a part.
        assert!((unexplained_by_hits(300.0, 1000.0, 0.5, 0.0) - 0.4).abs() < 1e-12);
        assert!((unexplained_by_hits(300.0, 1000.0, 0.5, 100.0) - 0.5).abs() < 1e-9);
        assert!((unexplained_by_hits(-3.0, 1000.0, 1.0, 5.0) - 1.0).abs() < 1e-12, "a start that is sure");
        // A gain below the least is noise: 5 of at least 10.
        assert!((kept_of_hits(&[5.0, -1e9], 0.1, 100.0, 0.0) - 0.5 / WHOLE).abs() < 1e-3);
    }

    /// Ten million rows of a right model: whatever the rate and the spread of the scores, all of it is kept.
    #[test]
    fn a_right_model_is_kept_however_rare_the_class() {
        for rate in [0.5, 0.1, 0.01, 0.001, 0.97] {
            for deviation in [0.1, 1.0, 2.0, 5.0] {
                let intercept = intercept_of(rate, deviation);
                let (mut cells, mut weight) = ([0.0; 4], 0.0);
                for step in -8000..=8000 {
                    let at = (f64::from(step) + 0.5) / 1000.0;
                    let (density, probability) = ((-at * at / 2.0).exp(), sigmoid(intercept + deviation * at));
                    let side = usize::from(at > 0.0);
                    cells[side] += density * (1.0 - probability);
                    cells[2 + side] += density * probability;
                    weight += density;
                }
                cells.iter_mut().for_each(|cell| *cell *= 1e7 / weight);
                assert!(((cells[2] + cells[3]) / 1e7 / rate - 1.0).abs() < 1e-3, "the rate is that of the model");
                let kept = kept_share(&cells, 1.0, 1e7, rate, deviation, 0.0);
                assert!((kept - 1.0).abs() < 1e-12, "{rate} {deviation}: {kept}");
                // Mixed with as many rows that it says nothing about, half of it is right.
                let half: Vec<f64> = (0..4).map(|cell| (cells[cell] + 1e7 * independent(rate)[cell]) / 2.0).collect();
                let kept = kept_share(&half, 1.0, 1e7, rate, deviation, 0.0);
                assert!((kept - 0.5 / WHOLE).abs() < 0.01, "{rate} {deviation}: {kept}");
            }
        }
    }

    /// Shares of the cells where the signs say nothing about the classes.
    fn independent(rate: f64) -> [f64; 4] {
        [(1.0 - rate) / 2.0, (1.0 - rate) / 2.0, rate / 2.0, rate / 2.0]
    }

    #[test]
    fn a_table_of_noise_leaves_the_prior() {
        let kept = kept_share(&[9e3, -4e3, 2e3, 1e3], 1e6, 1000.0, 0.3, 1.0, 0.0);
        assert!((kept - PRIOR.0 / WHOLE).abs() < 0.05, "{kept}");
        assert!((kept_share(&[1.0; 4], 1.0, 4.0, 0.5, 0.0, 0.0) - 1.0).abs() < 1e-12, "nothing to shorten");
    }
}
