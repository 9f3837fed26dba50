//! How far scores lie apart: one factor on all that the columns change, from released confidence and hits.
//!
//! A descent ends where noise would grow faster than signal, and what it has found by then is often a good direction that is not gone
//! far enough. How far is one number: the factor at which the class that is raised most is right as often as it is predicted to be. Hits are the
//! same at all factors, so that all of them together cost what one does, or little more.
//!
//! Sources: derived in `docs/methods/noisy-gd.md`, "Calibration"; Guo, Pleiss, Sun, Weinberger 2017 (one factor for all scores).

use super::public_rows::PublicScores;
use crate::softmax::softmax;

/// The factors that are compared, an octave from each to the next.
pub(super) const FACTORS: [f64; 6] = [0.5, 1.0, 2.0, 4.0, 8.0, 16.0];
/// The place of the factor 1 among them.
const WHOLE: usize = 1;
/// Places from each factor to the next at which a factor is weighed.
const PLACES: usize = 8;
/// Slope of the prior's logarithm an octave above 1, and below: scores that are too sure cost more than those that are not sure enough.
const DOUBT: (f64, f64) = (1.0, 0.5);
/// Variance of the difference of confidence and hits, in that of a step: the hits' own, and those of one or two steps of the confidence.
pub(super) const SURPLUS_VARIANCE: f64 = 2.5;
/// What the difference may be, as a share of the rows, without saying anything: no model is quite right.
const TOLERANCE: f64 = 0.01;
/// The same as a share of what the confidence grows by from the first factor to the last: where columns go together and the change is of
/// their difference, scores change less than those of public rows, rows weigh little, and so does all that is wrong with them.
const TOLERANCE_OF_GROWTH: f64 = 0.1;
/// Places that the factor 1 counts for: where nothing speaks against it, scores stay as they are.
const STAY: f64 = 6.0;
/// Rows count in proportion to how far a class is raised, up to this many times the usual.
pub(super) const WHOLE_RISE: f64 = 1.5;
/// Most steps toward intercepts that predict the same rates, how far one may go, and when they are near enough.
const STEPS: usize = 100;
const STEP_MAX: f64 = 1.0;
const NEAR: f64 = 1e-6;

/// The factor to scale by, from released [confidence steps](reticent_core::query::Map::ConfidenceSteps) at [`FACTORS`], in rows, each with
/// noise of standard deviation `noise`, over so many `rows`; `optimism` is what hits have beyond others by
/// [chance](super::optimism).
///
/// ```text
///   D(t) = confidence - hits + optimism at the octave t = log2 factor, a cubic between the factors; from the factor 1 on the most up to there, below the least
///   V = 5/2 noise² + min(rows/100, (D(last) - D(first))/10)²        weight(t) = exp(-D(t)²/(2 V) - t),  below 0 exp(.. + t/2),  at 0 six times
///   factor = 2 to the weighted mean of t, at eight places an octave
/// ```
pub(super) fn likely_factor(steps: &[f64], noise: f64, rows: f64, optimism: f64) -> f64 {
    let surplus = Surplus::of(steps, optimism).rising_from(WHOLE);
    let tolerance = (TOLERANCE * rows).min(TOLERANCE_OF_GROWTH * surplus.growth());
    let first = FACTORS[0].log2();
    let doubt = |place: f64| (DOUBT.0 * (first + place)).max(-DOUBT.1 * (first + place));
    let variance = SURPLUS_VARIANCE * noise.powi(2) + tolerance.powi(2);
    let octave = surplus.mean(variance, (-first, STAY), doubt, |place| first + place);
    octave.exp2()
}

/// How far what is released at each factor is from what it would be at the right one, as far as chance does not explain it.
pub(super) struct Surplus(Vec<f64>);

impl Surplus {
    /// From the first release, which falls by the others from factor to factor, and what it is expected to be by chance.
    pub(super) fn of(steps: &[f64], optimism: f64) -> Self {
        let (beyond, grows) = steps.split_first().expect("one step a factor");
        let mut surplus = vec![optimism - beyond];
        for grown in grows {
            surplus.push(surplus[surplus.len() - 1] + grown);
        }
        Self(surplus)
    }

    /// The same where it falls with the factor as if it stayed: upward from this place the most that it was on the way, downward the least.
    ///
    /// Confidence grows with the factor where intercepts keep the rates. Those of public rows may not, of flags that are set in few rows above all: a rare class
    /// is then made ever rarer, and a surplus that falls to 0 a second time says so, and nothing of the factor.
    fn rising_from(mut self, whole: usize) -> Self {
        for place in whole + 1..self.0.len() {
            self.0[place] = self.0[place].max(self.0[place - 1]);
        }
        for place in (0..whole).rev() {
            self.0[place] = self.0[place].min(self.0[place + 1]);
        }
        self
    }

    /// From the first factor to the last.
    fn growth(&self) -> f64 {
        self.0[self.0.len() - 1] - self.0[0]
    }

    /// Mean of a value over places, 0 the first factor and 1 the next, each by how well a surplus of 0 goes with what was found there and how
    /// much it is doubted; `whole` is the place of the factor 1, which counts for `stay` places.
    pub(super) fn mean(
        &self,
        variance: f64,
        (whole, stay): (f64, f64),
        doubt: impl Fn(f64) -> f64,
        value: impl Fn(f64) -> f64,
    ) -> f64 {
        let costs: Vec<(f64, f64)> = (0..=(self.0.len() - 1) * PLACES)
            .map(|place| {
                let place = place as f64 / PLACES as f64;
                (place, cubic(&self.0, place).powi(2) / (2.0 * variance) + doubt(place))
            })
            .collect();
        let least = costs.iter().fold(f64::INFINITY, |least, (_, cost)| least.min(*cost));
        let (mut mean, mut total) = (0.0, 0.0);
        for (place, cost) in costs {
            let stays = if (place - whole).abs() < NEAR { stay } else { 1.0 };
            let weight = stays * (least - cost).exp();
            mean += weight * value(place);
            total += weight;
        }
        mean / total
    }
}

/// What to multiply the change by so that it weighs rows: 1 stands for a rise of [`WHOLE_RISE`] times the usual. 0 for no change.
pub(super) fn weight_scale(scores: &PublicScores) -> f64 {
    let (mut square, mut count) = (0.0, 0.0);
    for (_, rises) in scores {
        let mean = rises.iter().sum::<f64>() / rises.len() as f64;
        square += rises.iter().map(|rise| (rise - mean).powi(2)).sum::<f64>();
        count += rises.len() as f64;
    }
    if square > 0.0 { (count / square).sqrt() / WHOLE_RISE } else { 0.0 }
}

/// The cubic through values at 0, 1, 2 and so on whose slope at each is that of its neighbours (Catmull, Rom 1974).
fn cubic(values: &[f64], at: f64) -> f64 {
    let last = values.len() - 1;
    let place = (at.floor() as usize).min(last - 1);
    let part = at - place as f64;
    let slope = |place: usize| {
        let (low, high) = (place.saturating_sub(1), (place + 1).min(last));
        (values[high] - values[low]) / (high - low) as f64
    };
    let (square, cube) = (part * part, part * part * part);
    values[place] * (2.0 * cube - 3.0 * square + 1.0)
        + slope(place) * (cube - 2.0 * square + part)
        + values[place + 1] * (3.0 * square - 2.0 * cube)
        + slope(place + 1) * (cube - square)
}

/// Intercepts with which scores that change `factor` times as much predict the rates that they did, in public. Two classes have one
/// intercept, that of the second.
pub(super) fn intercepts_of(factor: f64, intercepts: &[f64], scores: &PublicScores) -> Vec<f64> {
    if let [intercept] = *intercepts {
        let both = intercepts_of(factor, &[0.0, intercept], scores);
        return vec![both[1] - both[0]];
    }
    let rates = mean_probabilities(1.0, intercepts, scores);
    let mut found = intercepts.to_vec();
    for _ in 0..STEPS {
        let mut farthest: f64 = 0.0;
        let predicted = mean_probabilities(factor, &found, scores);
        for ((intercept, predicted), rate) in found.iter_mut().zip(predicted).zip(&rates) {
            let step = (rate.max(f64::MIN_POSITIVE) / predicted.max(f64::MIN_POSITIVE)).ln().clamp(-STEP_MAX, STEP_MAX);
            *intercept += step;
            farthest = farthest.max(step.abs());
        }
        if farthest < NEAR {
            break;
        }
    }
    found
}

fn mean_probabilities(factor: f64, intercepts: &[f64], scores: &PublicScores) -> Vec<f64> {
    let mut mean = vec![0.0; intercepts.len()];
    for (before, rises) in scores {
        let score = |((intercept, before), rise): ((&f64, &f64), &f64)| intercept + before + factor * rise;
        let all: Vec<f64> = intercepts.iter().zip(before).zip(rises).map(score).collect();
        for (mean, probability) in mean.iter_mut().zip(softmax(&all)) {
            *mean += probability / scores.len() as f64;
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use reticent_math::sigmoid;

    use super::*;

    /// Confidence that meets the hits at `best` and grows by so many rows an octave.
    fn steps_to(best: f64, rows: f64) -> Vec<f64> {
        let beyond = rows * (best - FACTORS[0].log2());
        [beyond].into_iter().chain(FACTORS[1..].iter().map(|_| rows)).collect()
    }

    #[test]
    fn the_factor_is_the_one_at_which_confidence_meets_the_hits() {
        for best in [-0.5, 0.0, 0.75, 1.25, 2.0, 3.5] {
            let factor = likely_factor(&steps_to(best, 1000.0), 10.0, 1000.0, 0.0);
            assert!((factor.log2() - best).abs() < 0.01, "{best}: {}", factor.log2());
        }
        assert!(
            (likely_factor(&steps_to(9.0, 1000.0), 10.0, 1000.0, 0.0) - 16.0).abs() < 1e-3,
            "no farther than was compared"
        );
        assert!((likely_factor(&steps_to(-9.0, 1000.0), 10.0, 1000.0, 0.0) - 0.5).abs() < 1e-3);
    }

    /// Flags of a table whose positive class is rare, with the intercepts of public rows: the surplus of a right model rises from the factor 1, and falls to 0
    /// once more at seven.
    #[test]
    fn a_surplus_that_falls_again_says_nothing() {
        let released = [171.0, 171.2, 193.8, 14.0, -242.0, -237.0];
        for noise in [0.1, 5.0, 20.0] {
            let factor = likely_factor(&released, noise, 14_707.0, 0.0);
            assert!((0.9..1.1).contains(&factor), "{noise}: {factor}");
        }
        // One that falls all the way, and is 0 at the factor 1 alone, is no better than noise.
        let factor = |steps: &[f64]| likely_factor(steps, 1.0, 10_000.0, 0.0);
        assert!((factor(&[-100.0, -100.0, -100.0, -50.0, -50.0, -50.0]) - factor(&[0.0; 6])).abs() < 1e-12);
    }

    /// By hand, of noise alone: places t = k/8 from -1 to 4 weigh e^-t, below 0 e^(t/2), and 6 at 0.
    #[test]
    fn noise_leaves_the_scores_nearly_as_they_are() {
        let weight = |t: f64| {
            if t > 0.0 {
                (-t).exp()
            } else if t < 0.0 {
                (0.5 * t).exp()
            } else {
                6.0
            }
        };
        let weights = (-8i32..=32).map(|place| f64::from(place) / 8.0).map(|t| (t, weight(t)));
        let (mean, total) = weights.fold((0.0, 0.0), |(mean, total), (t, weight)| (mean + t * weight, total + weight));
        let factor = likely_factor(&steps_to(3.0, 1.0), 1e12, 1000.0, 0.0);
        assert!((factor - (mean / total).exp2()).abs() < 1e-9 && factor < 1.4, "{factor}");
    }

    /// A surplus of a hundredth of the rows at 1 and none a quarter of an octave below: no reason to move far, however small the noise.
    #[test]
    fn a_model_that_is_nearly_right_stays_nearly_as_it_is() {
        let factor = likely_factor(&steps_to(-0.25, 40.0), 0.01, 1000.0, 0.0);
        assert!((0.9..1.0).contains(&factor), "{factor}");
    }

    /// The same surplus where all that the confidence grows by is little more: rows weigh little, and it says as much as a large one.
    #[test]
    fn rows_that_weigh_little_say_as_much() {
        let factor = likely_factor(&steps_to(1.5, 5.0), 0.01, 1000.0, 0.0);
        assert!((2.3..3.0).contains(&factor), "{factor}");
    }

    /// Hits of an octave more than confidence, as many as chance explains: the same as none.
    #[test]
    fn what_chance_explains_is_taken_off() {
        let found = likely_factor(&steps_to(1.0, 1000.0), 10.0, 1000.0, 1000.0);
        assert!((found - 1.0).abs() < 1e-3, "{found}");
    }

    #[test]
    fn a_usual_rise_weighs_two_thirds() {
        // Two classes: half of a change of 3 and of -1 is (3/2, 1/2); the root of the mean square is sqrt(5)/2.
        let scores: PublicScores = vec![(vec![0.0; 2], vec![0.0, 3.0]), (vec![0.0; 2], vec![0.0, -1.0])];
        assert!((weight_scale(&scores) - 2.0 / 5f64.sqrt() / 1.5).abs() < 1e-12);
        assert!(weight_scale(&vec![(vec![0.0; 2], vec![0.0; 2])]).abs() < 1e-12);
    }

    #[test]
    fn a_cubic_meets_its_values_and_follows_a_line() {
        let values = [3.0, -1.0, 4.0, 4.5];
        for (place, value) in values.iter().enumerate() {
            assert!((cubic(&values, place as f64) - value).abs() < 1e-12);
        }
        assert!((cubic(&[1.0, 3.0, 5.0], 1.7) - 4.4).abs() < 1e-12);
        // By hand: slopes 1/2 and 11/4 at the ends of the middle, whose values are -1 and 4.
        assert!((cubic(&values, 1.5) - (1.5 + (0.5 - 2.75) / 8.0)).abs() < 1e-12);
    }

    #[test]
    fn intercepts_keep_the_rates_that_were_predicted() {
        let scores: PublicScores = (-20..=20)
            .map(|place| {
                let z = f64::from(place) / 10.0;
                (vec![0.0, 0.3 * z, 0.0], vec![0.0, z, -0.5 * z])
            })
            .collect();
        let intercepts = [1.0, -2.0, 0.5];
        let rates = mean_probabilities(1.0, &intercepts, &scores);
        for factor in [0.5, 1.0, 4.0] {
            let found = intercepts_of(factor, &intercepts, &scores);
            for (kept, rate) in mean_probabilities(factor, &found, &scores).iter().zip(&rates) {
                assert!((kept - rate).abs() < 1e-5, "{factor}: {kept} {rate}");
            }
        }
        let same = intercepts_of(1.0, &intercepts, &scores);
        assert!(same.iter().zip(&intercepts).all(|(same, one)| (same - one).abs() < 1e-12));
    }

    /// With one score for two classes the intercept is that of a rate: half of the rows change by 2 and half by -1.
    #[test]
    fn one_intercept_stands_for_two_classes() {
        let scores: PublicScores = vec![(vec![0.0; 2], vec![0.0, 2.0]), (vec![0.0; 2], vec![0.0, -1.0])];
        let rate =
            |intercept: f64, factor: f64| f64::midpoint(sigmoid(intercept + 2.0 * factor), sigmoid(intercept - factor));
        let found = intercepts_of(3.0, &[-0.7], &scores);
        assert_eq!(found.len(), 1);
        assert!((rate(found[0], 3.0) - rate(-0.7, 1.0)).abs() < 1e-5, "{found:?}");
    }
}
