//! A line search beside the descent of two classes: how far its scores should lie apart, and where the intercept goes with them.
//!
//! A descent ends where the noise of all its directions would grow faster than what is left to find. How far to go along the one direction that
//! it has found is a single number, and so is the intercept: gradients, which are released, know both far better than any other weight.
//!
//! Sources: derived in `docs/methods/noisy-gd.md`, "Line search"; Kalman 1960 (what a measurement is worth beside those before it).

use reticent_core::query::Loss;
use reticent_math::normal_mean::over_normal_each;

use super::heavy_ball::averaged_passes;
use crate::released_marginals::ScaledColumns;

/// The search begins after this share of the passes: before, a change is mostly noise.
const FROM: f64 = 0.15;
/// What a factor of 1 and no offset are worth beforehand, in inverse variances: errors of a third of an e-fold, and of a third of a log-odd.
const PRIOR_PRECISION: f64 = 8.0;
/// Signal `n mu` at which a factor of 1 is worth twice that: a descent gets there by itself, and calibration sees what is left.
const SIGNAL_HALF: f64 = 300.0;
/// Least and largest factor.
const FACTORS: (f64, f64) = (0.5, 16.0);
/// Most that a pass moves the logarithm of the factor, and the intercept, by.
const STEP_MAX: (f64, f64) = (0.3, 0.5);

/// A number that noisy derivatives of the loss lead to where it is least.
///
/// ```text
///   J = (C / e)²,    x <- x - (D / C) J / (prior + sum of all J)        D: derivative with noise e;  C: what it grows by with x
/// ```
struct Place {
    at: f64,
    precision: f64,
    sum: f64,
}

impl Place {
    fn worth(precision: f64) -> Self {
        Self { at: 0.0, precision, sum: 0.0 }
    }

    fn follow(&mut self, derivative: f64, curvature: f64, noise: f64, step_max: f64) {
        if noise > 0.0 {
            self.precision += (curvature / noise).powi(2);
            let step = derivative * curvature / (noise * noise * self.precision);
            self.at -= step.clamp(-step_max, step_max);
        }
    }
}

/// What a search is along: a descent of two classes, and the gradients that it follows.
pub(super) struct Searched<'a> {
    /// Where the descent began: the intercept and a weight a column.
    pub(super) start: &'a [f64],
    pub(super) scaled: &'a ScaledColumns,
    pub(super) loss: Loss,
    pub(super) rows: f64,
    pub(super) l2: f64,
    /// Standard deviation of a coordinate of a gradient.
    pub(super) noise: f64,
    pub(super) passes: u32,
}

/// The search. It asks for gradients at the start plus a factor times what the descent has changed, and at an intercept of its own; the
/// descent follows them as if they were its own.
pub(super) struct LineSearch<'a> {
    along: Searched<'a>,
    seen: u32,
    log_factor: Place,
    offset: Place,
}

impl<'a> LineSearch<'a> {
    pub(super) fn along(along: Searched<'a>) -> Self {
        let signal = along.rows * f64::from(along.passes).sqrt() / along.noise;
        let precision = PRIOR_PRECISION * (1.0 + (signal / SIGNAL_HALF).powi(2));
        let (log_factor, offset) = (Place::worth(precision), Place::worth(PRIOR_PRECISION));
        Self { along, seen: 0, log_factor, offset }
    }

    /// Where to ask for the next gradient, for a descent that is at these weights.
    pub(super) fn asked(&self, weights: &[f64]) -> Vec<f64> {
        self.moved(weights, self.log_factor.at.exp(), self.offset.at)
    }

    /// Takes in the noisy gradient at what was [asked](Self::asked) for.
    pub(super) fn follow(&mut self, gradient: &[f64], asked: &[f64]) {
        let Searched { start, scaled, l2, noise, passes, .. } = self.along;
        if f64::from(self.seen) >= FROM * f64::from(passes) {
            let mut change: Vec<f64> = asked.iter().zip(start).map(|(asked, start)| asked - start).collect();
            change[0] = 0.0;
            let penalised = gradient.iter().zip(asked).map(|(noisy, asked)| noisy + l2 * asked);
            let derivative = change.iter().zip(penalised).map(|(change, slope)| change * slope).sum();
            let length = change.iter().map(|change| change * change).sum::<f64>().sqrt();
            let [of_change, of_intercept] = self.curvatures(asked[0], scaled.score_deviation(&change));
            self.log_factor.follow(derivative, of_change, noise * length, STEP_MAX.0);
            self.log_factor.at = self.log_factor.at.clamp(FACTORS.0.ln(), FACTORS.1.ln());
            self.offset.follow(gradient[0], of_intercept, noise, STEP_MAX.1);
        }
        self.seen += 1;
        if passes - self.seen < averaged_passes(passes) {
            self.log_factor.sum += self.log_factor.at;
            self.offset.sum += self.offset.at;
        }
    }

    /// The factor and the weights that the search ends with, for the mean of the last points of the descent: means over the same passes.
    pub(super) fn end(&self, mean: &[f64]) -> (f64, Vec<f64>) {
        let averaged = f64::from(averaged_passes(self.along.passes));
        let factor = (self.log_factor.sum / averaged).exp();
        (factor, self.moved(mean, factor, self.offset.sum / averaged))
    }

    fn moved(&self, weights: &[f64], factor: f64, offset: f64) -> Vec<f64> {
        let start = self.along.start;
        let mut moved: Vec<f64> =
            weights.iter().zip(start).map(|(weight, start)| start + factor * (weight - start)).collect();
        moved[0] = weights[0] + offset;
        moved
    }

    /// What the derivatives of the summed loss grow by, with the logarithm of the factor and with the intercept, for rows of typical norm:
    /// `n/A E h z²` and `n/A E h`, with the curvature `h` of the loss at the score `intercept + z` of a right model, `z` normal.
    fn curvatures(&self, intercept: f64, deviation: f64) -> [f64; 2] {
        let curvature = |score: f64| {
            let rarer = 1.0 / (1.0 + score.abs().exp());
            if self.along.loss == Loss::Logistic { rarer * (1.0 - rarer) } else { rarer }
        };
        let unit = self.along.rows / self.along.scaled.row_norm;
        over_normal_each(|place| {
            let z = deviation * place;
            let mean = f64::midpoint(curvature(intercept + z), curvature(intercept - z));
            [unit * mean * z * z, unit * mean]
        })
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::coding::Coding;
    use reticent_core::schema::Schema;

    use super::*;
    use crate::released_marginals::{AS_RELEASED, ReleasedMarginals};

    /// Two numbers that vary by as much as they may.
    fn scaled() -> ScaledColumns {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2]\n\
                      [features]\na = { bounds = [0, 1] }\nb = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        ReleasedMarginals::of(&coding, &[0.5, 0.5, 0.5, 0.5].map(|mean| 1e6 * mean), 1e6, 1e-9, None).scaled(
            &coding,
            1e6,
            AS_RELEASED,
        )
    }

    /// A descent on one row, without a penalty; what a test is about takes the place of it.
    fn searched<'a>(start: &'a [f64], scaled: &'a ScaledColumns) -> Searched<'a> {
        Searched { start, scaled, loss: Loss::TwoSidedExponential, rows: 1.0, l2: 0.0, noise: 1.0, passes: 1 }
    }

    /// By hand: prior 8, two measurements of curvature 4 with noise 2 have the information 4 each: steps of 3/4 · 4/12 and 3/4 · 4/16.
    #[test]
    fn a_measurement_counts_as_much_as_it_knows() {
        let mut place = Place::worth(8.0);
        place.follow(3.0, 4.0, 2.0, 1.0);
        assert!((place.at + 0.25).abs() < 1e-12);
        place.follow(3.0, 4.0, 2.0, 1.0);
        assert!((place.at + 0.4375).abs() < 1e-12 && (place.precision - 16.0).abs() < 1e-12);
        place.follow(1e9, 4.0, 2.0, 0.3);
        assert!((place.at + 0.7375).abs() < 1e-12, "no farther than a step");
        place.follow(1e9, 4.0, 0.0, 0.3);
        assert!((place.at + 0.7375).abs() < 1e-12, "nothing has changed yet: no direction");
    }

    /// By hand: at an intercept of 0 and with scores that hardly vary the two-sided loss has the curvature 1/2, the logistic one 1/4.
    #[test]
    fn curvatures_are_those_of_the_loss() {
        let (start, scaled) = ([0.0; 3], scaled());
        for (loss, curvature) in [(Loss::TwoSidedExponential, 0.5), (Loss::Logistic, 0.25)] {
            let search =
                LineSearch::along(Searched { loss, rows: 1000.0, noise: 1.0, passes: 10, ..searched(&start, &scaled) });
            let [of_change, of_intercept] = search.curvatures(0.0, 1e-3);
            let unit = 1000.0 / scaled.row_norm;
            assert!(
                (of_intercept / unit - curvature).abs() < 1e-3
                    && (of_change / unit / (curvature * 1e-6) - 1.0).abs() < 2e-3
            );
            // A score of ln 3 has the rarer probability 1/4.
            let rarer = search.curvatures(3f64.ln(), 0.0)[1] / unit;
            assert!((rarer - if loss == Loss::Logistic { 0.1875 } else { 0.25 }).abs() < 1e-9);
        }
    }

    /// A descent that is stuck a third of the way on a quadratic loss is taken to its end, and one that has gone twice too far is taken
    /// back; with a penalty nothing is moved from where the penalised loss is least.
    #[test]
    fn the_search_ends_where_the_loss_is_least() {
        let (start, scaled) = ([0.2, 0.0, 0.0], scaled());
        let rows = 1e4;
        let find = |l2: f64, weights: &[f64], least: &[f64]| {
            let mut search =
                LineSearch::along(Searched { rows, l2, noise: 30.0, passes: 200, ..searched(&start, &scaled) });
            // Curvature of the loss at even odds, a row of typical norm.
            let unit = rows / scaled.row_norm / 2.0;
            let curvatures: Vec<f64> = scaled.deviations().iter().map(|deviation| unit * deviation.powi(2)).collect();
            for _ in 0..200 {
                let asked = search.asked(weights);
                let slope = |place: usize| curvatures[place] * (asked[place] - least[place]) - l2 * asked[place];
                search.follow(&[unit * (asked[0] - least[0]), slope(1), slope(2)], &asked);
            }
            search.end(weights)
        };
        for (at, l2) in [(1.0 / 3.0, 0.0), (2.0, 0.0), (1.0, 500.0)] {
            let (factor, weights) = find(l2, &[0.2, 8.0 * at, -8.0 * at], &[-0.3, 8.0, -8.0]);
            assert!((factor * at - 1.0).abs() < 0.05, "{at}: {factor}");
            for (weight, least) in weights.iter().zip([-0.3, 8.0, -8.0]) {
                assert!((weight - least).abs() < 0.05 * least.abs().max(1.0), "{at}: {weights:?}");
            }
        }
        assert!((find(0.0, &[0.2, 8.0, 8.0], &[0.2, 1e3, 1e3]).0 - 16.0).abs() < 0.2, "no farther than sixteen times");
    }

    #[test]
    fn noise_that_hides_everything_leaves_the_descent_where_it_is() {
        let (start, scaled) = ([0.0; 3], scaled());
        let mut search =
            LineSearch::along(Searched { rows: 1e3, noise: 1e6, passes: 100, ..searched(&start, &scaled) });
        for pass in 0..100 {
            let sign = if pass % 2 == 0 { 1.0 } else { -1.0 };
            let asked = search.asked(&[0.1, 0.5, -0.5]);
            search.follow(&[sign * 1e6, sign * 1e6, 1e6], &asked);
        }
        let (factor, weights) = search.end(&[0.1, 0.5, -0.5]);
        assert!((factor - 1.0).abs() < 1e-2 && (weights[0] - 0.1).abs() < 1e-2, "{factor} {weights:?}");
    }
}
