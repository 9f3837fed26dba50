//! What is made of a descent: as much is kept as a release bears out, drawn toward the base rates, and its scores are spread as far as
//! another does.

use std::sync::Arc;

use reticent_core::encoding::Encoding;
use reticent_core::pass_weights::PassWeights;
use reticent_core::query::Loss;

use super::calibration::{FACTORS, intercepts_of, likely_factor, weight_scale};
use super::class_counts::{ClassCounts, centred_logs};
use super::heavy_ball::{Flow, TIME};
use super::optimism::{degrees_of_freedom, expected_hits, share_of_hits};
use super::public_rows::PublicRows;
use super::rare_categories;
use super::saturation::divisors_of;
use super::score_spread::ReleasedSteps;
use super::signal_check::{
    chance_of_signs, expected_gain, intercept_of, kept_of_hits, kept_share, unexplained, unexplained_by_hits,
};
use crate::prepared_fit::{FitError, Fitted, Releases};
use crate::released_marginals::ScaledColumns;
use crate::softmax::softmax;

/// How far intercepts of more than two classes move to what their shares stand for under saturated slopes. The whole way is right
/// without features; with them early stopping, which makes scores less sure, cancels some of it.
const LINK_SHARE: f64 = 0.5;
/// How far a right intercept may be from that of normal scores, in their deviations: scores may be skewed.
const SKEWNESS: f64 = 0.3;

/// Where a descent has led, and all that the check of its signal needs.
pub(super) struct Descended {
    pub(super) encoding: Arc<Encoding>,
    pub(super) scaled: ScaledColumns,
    pub(super) counts: ClassCounts,
    pub(super) rows: f64,
    pub(super) loss: Loss,
    /// Whether it started from a model that was handed in.
    pub(super) is_started: bool,
    pub(super) start: Vec<f64>,
    pub(super) weights: Vec<f64>,
    pub(super) saturation: f64,
    pub(super) flow: Flow,
    /// How many times as far as the descent went the [line search](super::line_search) is.
    pub(super) factor: f64,
    /// Share of the change that the check keeps, and share of the classes' variance that it leaves: rows whose class
    /// a model knows pull their scores little.
    pub(super) kept: f64,
    pub(super) unexplained: f64,
    /// What the intercept [makes up](Self::made_up_for_centres) for columns, and so goes with what they change.
    pub(super) of_centres: f64,
    /// The part of it that makes up for means that are known.
    pub(super) of_known_means: f64,
}

impl Descended {
    /// Draws categories that hardly any row has to their feature, for a signal `n mu`: log-odds of a usual effect are of the size of 1.
    pub(super) fn without_noise_of_rare_categories(mut self, signal: f64) -> Self {
        let (columns, curvatures) = (self.scaled.scale.len(), self.curvatures());
        let scores = self.weights.chunks_exact_mut(columns).zip(self.start.chunks_exact(columns));
        for ((weights, start), curvature) in scores.zip(curvatures) {
            let descent = rare_categories::Descent { time: self.flow.time(), signal, curvature, effect: 1.0 };
            rare_categories::draw_to_their_feature(weights, start, &self.scaled, descent);
        }
        self
    }

    /// Keeps what a table of two classes and signs bears out, for a start at their rates.
    pub(super) fn check_table(mut self, releases: &mut Releases<'_, '_>) -> Result<Self, FitError> {
        let (mut change, rows) = (self.change(), self.rows);
        let of_centres = self.made_up_for_centres(&change);
        // Signs are of scores around their mean.
        let intercept_change = std::mem::replace(&mut change[0], of_centres) - of_centres;
        let released = releases.sum(releases.count() - 2, &self.encoding, PassWeights::quantise(&change))?;
        let (cells, cell_noise) = (released.values(), released.noise_standard_deviation);
        let rate = self.counts.rate(rows);
        let deviation = self.scaled.score_deviation(&change);
        let chance = chance_of_signs(self.freedom(), deviation, rows);
        self.unexplained = unexplained(&cells, rows, rate, chance);
        let kept = kept_share(&cells, cell_noise, rows, rate, deviation, self.unexplained * chance);
        self.shorten(&change, kept);
        self.counts.add(&[cells[0] + cells[1], cells[2] + cells[3]], std::f64::consts::SQRT_2 * cell_noise);
        let base = self.counts.log_odds(rows)[0];
        // The check counts rows once more. As far as the descent has not moved away from its start, a better start moves
        // the end along.
        let left = left_of_start(self.curvatures()[0], self.scaled.row_norm, self.flow.time());
        let end = self.start[0] + intercept_change + left * (base - self.start[0]);
        // What the descent knows of the intercept beyond the counts is kept as far as the counts are noise.
        let (of_counts, of_descent) = (self.counts.log_odds_error(rows), TIME / self.scaled.row_norm);
        let kept = kept + (1.0 - kept) * of_counts.powi(2) / (of_counts.powi(2) + of_descent.powi(2));
        self.of_centres = self.kept * of_centres;
        self.of_known_means = -self.scaled.mean_score(&self.change());
        self.weights[0] = base + kept * (end - base) + self.of_centres;
        Ok(self)
    }

    /// Keeps what excess hits bear out of all that the descent has changed, intercepts included: where classes are ordered, a change of the
    /// columns alone raises the first and the last of them in nearly all rows. With more than two classes intercepts move to what their
    /// shares stand for: the whole way as far as they still are where the counts put them, and half of it else.
    pub(super) fn check_hits(mut self, releases: &mut Releases<'_, '_>) -> Result<Self, FitError> {
        let public = PublicRows::of(&self.scaled);
        let columns = public.deviations.len();
        let bases = if self.is_started { intercepts(&self.start, columns) } else { self.counts.log_odds(self.rows) };
        let mut first = self.start.clone();
        set_intercepts(&mut first, &bases, columns);
        let ends = intercepts(&self.weights, columns);
        let links = self.links(&ends);
        let ends: Vec<f64> = ends.into_iter().zip(links).map(|(end, link)| end + link).collect();
        set_intercepts(&mut self.weights, &ends, columns);
        let change: Vec<f64> = self.weights.iter().zip(&first).map(|(weight, first)| weight - first).collect();
        let both: Vec<f64> = first.iter().chain(&self.weights).copied().collect();
        let released = releases.sum(releases.count() - 2, &self.encoding, PassWeights::quantise(&both))?;
        let expected = self.rows * expected_gain(&first, &change, &public);
        let mut of_columns = change.clone();
        set_intercepts(&mut of_columns, &vec![0.0; bases.len()], columns);
        let drawn = public.scores(&first, &of_columns);
        let rises = one_a_class(intercepts(&change, columns));
        let values = released.values();
        let chance = self.freedom() * share_of_hits(&drawn, &rises, |_| 1.0);
        self.unexplained = unexplained_by_hits(values[0], self.rows, expected_hits(&drawn, &rises), chance);
        let kept = kept_of_hits(&values, released.noise_standard_deviation, expected, self.unexplained * chance);
        self.shorten(&change, kept);
        Ok(self)
    }

    /// Spreads the scores by the factor that the last release calls for.
    pub(super) fn calibrated(self, releases: &mut Releases<'_, '_>) -> Result<Fitted, FitError> {
        let columns = self.scaled.scale.len();
        let (mut first, mut change) = (self.start.clone(), self.change());
        for of_intercept in [&mut first, &mut change] {
            of_intercept.iter_mut().step_by(columns).for_each(|weight| *weight = 0.0);
        }
        // Drawn rows have the means that are known, as those of the table do.
        change[0] = self.of_known_means;
        let drawn = PublicRows::of(&self.scaled).scores(&first, &change);
        let ends: Vec<f64> = self.weights.iter().step_by(columns).map(|weight| weight - self.of_centres).collect();
        change.iter_mut().step_by(columns).for_each(|of_intercept| *of_intercept = self.of_centres);
        let scaled_by = |factor: f64, intercepts: &[f64]| -> Vec<f64> {
            let mut weights: Vec<f64> =
                first.iter().zip(&change).map(|(first, change)| first + factor * change).collect();
            weights.iter_mut().step_by(columns).zip(intercepts).for_each(|(weight, intercept)| *weight += intercept);
            weights
        };
        let models = FACTORS.map(|factor| (factor, intercepts_of(factor, &ends, &drawn)));
        let weight = weight_scale(&drawn);
        let of_rows = change.iter().map(|change| weight * change);
        let compared = of_rows.chain(models.iter().flat_map(|(factor, intercepts)| scaled_by(*factor, intercepts)));
        let compared = PassWeights::quantise(&compared.collect::<Vec<_>>());
        let released = releases.sum(releases.count() - 1, &self.encoding, compared)?;
        let (steps, noise) = (released.values(), released.noise_standard_deviation);
        let released = ReleasedSteps { scores: &drawn, models: &models, weight, steps: &steps, noise, rows: self.rows };
        let of_table = released.of_table(|factor, scores| intercepts_of(factor, &ends, scores));
        let (drawn, steps) = of_table.unwrap_or((drawn, steps));
        // What the rows say of the change that was shortened, they say of the whole.
        let of_hits = share_of_hits(&drawn, &vec![0.0; ends.len().max(2)], |rise| (weight * rise).min(1.0));
        let optimism = self.kept * self.unexplained * self.freedom() * of_hits;
        let factor = likely_factor(&steps, noise, self.rows, optimism);
        let weights = scaled_by(factor, &intercepts_of(factor, &ends, &drawn));
        Ok(Fitted { encoding: self.encoding, weights, covariance: None })
    }

    /// What intercepts at the end of a descent move by. With more than two classes what shares stand for is the shares times their
    /// divisors, normalised.
    fn links(&self, ends: &[f64]) -> Vec<f64> {
        if ends.len() == 1 {
            return vec![0.0];
        }
        let moved = self.curvatures().into_iter().map(|curvature| {
            let left = left_of_start(curvature, self.scaled.row_norm, self.flow.time());
            // A start that was handed in stands for itself.
            let of_start = if self.is_started { 0.0 } else { left };
            of_start + (1.0 - left) * LINK_SHARE
        });
        let factors = centred_logs(&divisors_of(&softmax(ends), self.saturation));
        moved.zip(factors).map(|(moved, factor)| moved * factor).collect()
    }

    /// Curvature of the mean loss in each score, for rows of norm 1: `min(p, 1 - p)` of the two-sided loss and `p (1 - p)` of the logistic one at
    /// the rate that was counted, `p_k (1 - p_k) / d_k` where the descent starts of more classes, with divisors `d` of bounded slopes.
    fn curvatures(&self) -> Vec<f64> {
        let starts = intercepts(&self.start, self.scaled.deviations().len());
        if starts.len() > 1 {
            let shares = softmax(&starts);
            let divisors = match self.loss {
                Loss::Logistic => vec![1.0; shares.len()],
                Loss::TwoSidedExponential | Loss::Huber => divisors_of(&shares, self.saturation),
            };
            let curvature = |(share, divisor): (&f64, f64)| share * (1.0 - share) / divisor;
            return shares.iter().zip(divisors).map(curvature).collect();
        }
        let rate = self.counts.rate(self.rows);
        vec![if self.loss == Loss::Logistic { rate * (1.0 - rate) } else { rate.min(1.0 - rate) }]
    }

    /// What an intercept of two classes makes up, with its part of a change, for columns that are not centred: the mean score of those whose means are
    /// known, and [`share_of_centres`] of what it changes by beyond that and what it does with columns that are centred. A number that lies within one
    /// bin of its bounds adds nearly the same to all scores, and so may the listed columns of a row.
    fn made_up_for_centres(&self, change: &[f64]) -> f64 {
        let deviation = self.scaled.score_deviation(change);
        let expected = intercept_of(self.counts.rate(self.rows), deviation) - self.counts.log_odds(self.rows)[0];
        let noise = TIME / self.scaled.row_norm;
        let of_known = -self.scaled.mean_score(change);
        let share = share_of_centres(self.scaled.mean_score_error(change), deviation, noise);
        of_known + share * (change[0] - expected - of_known)
    }

    fn freedom(&self) -> f64 {
        self.factor * degrees_of_freedom(&self.curvatures(), &self.scaled, self.flow, self.rows)
    }

    fn change(&self) -> Vec<f64> {
        self.weights.iter().zip(&self.start).map(|(weight, start)| weight - start).collect()
    }

    /// Takes back what is not kept of a change.
    fn shorten(&mut self, change: &[f64], kept: f64) {
        self.kept = kept;
        for (weight, change) in self.weights.iter_mut().zip(change) {
            *weight -= (1.0 - kept) * change;
        }
    }
}

/// The first of every `columns` weights.
fn intercepts(weights: &[f64], columns: usize) -> Vec<f64> {
    weights.iter().copied().step_by(columns).collect()
}

/// One number a class: two classes have one score, that of the second.
fn one_a_class(scores: Vec<f64>) -> Vec<f64> {
    if let [score] = scores[..] { vec![0.0, score] } else { scores }
}

fn set_intercepts(weights: &mut [f64], intercepts: &[f64], columns: usize) {
    weights.iter_mut().step_by(columns).zip(intercepts).for_each(|(weight, intercept)| *weight = *intercept);
}

/// How much of what an intercept changes by is due to centres, from the standard deviation of what their errors add to all scores, that of the scores,
/// and the intercept's own noise:
/// ```text
///   s² / (s² + (3/10 d)² + e²)
/// ```
fn share_of_centres(of_centres: f64, deviation: f64, noise: f64) -> f64 {
    of_centres.powi(2) / (of_centres.powi(2) + (SKEWNESS * deviation).powi(2) + noise.powi(2))
}

/// How much of a change of its start an intercept keeps: `e^{-h t}` with the curvature `h = curvature / A` of the mean loss at the base
/// rates.
fn left_of_start(curvature: f64, row_norm: f64, time: f64) -> f64 {
    (-curvature / row_norm * time).exp()
}

#[cfg(test)]
mod tests {
    use super::super::heavy_ball::Stride;
    use super::super::saturation::shares_of;
    use super::*;
    use crate::released_marginals::{AS_RELEASED, ReleasedMarginals};
    use reticent_core::coding::Coding;
    use reticent_core::encoding::NormRule;
    use reticent_core::schema::Schema;

    #[test]
    fn the_intercept_follows_a_better_start_as_far_as_it_has_not_moved() {
        assert!((left_of_start(0.25, 2.0, 8.0) - (-1f64).exp()).abs() < 1e-15);
        assert!((left_of_start(0.1, 3.0, 0.0) - 1.0).abs() < 1e-15);
    }

    /// Base rates go in as the shares that stand for them, and come out as themselves where the descent has not moved.
    #[test]
    fn intercepts_move_to_what_their_shares_stand_for() {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [1, 2, 3]\n\
                      [features]\na = { bounds = [0, 10] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let rates = [0.8, 0.1, 0.1];
        let start = centred_logs(&shares_of(&rates, 0.5));
        let weights: Vec<f64> = start.iter().flat_map(|intercept| [*intercept, 0.0]).collect();
        let descended = |is_started, time| Descended {
            scaled: ReleasedMarginals::of(&coding, &[0.0, 0.0], 100.0, 0.0, None).scaled(&coding, 100.0, AS_RELEASED),
            encoding: Arc::new(Encoding::plain(coding.clone(), NormRule::OwnNorm)),
            counts: ClassCounts::of(&[80.0, 10.0, 10.0], 1.0),
            rows: 100.0,
            is_started,
            start: weights.clone(),
            weights: weights.clone(),
            loss: Loss::TwoSidedExponential,
            saturation: 0.5,
            flow: Flow { stride: Stride { step: 1e-3 * time, momentum: 0.9 }, passes: 100, ridge: 0.0 },
            factor: 1.0,
            kept: 1.0,
            unexplained: 1.0,
            of_centres: 0.0,
            of_known_means: 0.0,
        };
        let moved = |is_started, time| -> Vec<f64> {
            let links = descended(is_started, time).links(&start);
            start.iter().zip(links).map(|(start, link)| start + link).collect()
        };
        assert_close(&moved(false, 0.0), &centred_logs(&rates));
        assert_close(&moved(true, 0.0), &start);
        let halfway: Vec<f64> =
            start.iter().zip(centred_logs(&rates)).map(|(start, whole)| (start + whole) / 2.0).collect();
        assert_close(&moved(false, 1e9), &halfway);
        assert_close(&moved(true, 1e9), &halfway);
        assert_eq!(descended(false, 0.0).links(&[0.9]), [0.0], "two classes");
    }

    /// By hand: errors of the centres of 1 beside scores of deviation 2 and a noise of 3/4 are 1/(1 + .36 + .5625) of what the intercept changes by.
    #[test]
    fn the_intercept_goes_with_columns_whose_centres_are_not_known() {
        assert!((share_of_centres(1.0, 2.0, 0.75) - 1.0 / 1.9225).abs() < 1e-15);
        assert!(share_of_centres(0.0, 0.0, 0.75).abs() < 1e-15 && share_of_centres(1e9, 1.0, 0.75) > 0.999);
    }

    fn assert_close(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-9 * (1.0 + expected.abs()), "{found} instead of {expected}");
        }
    }
}
