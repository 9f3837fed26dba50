//! How far scores lie apart in the table, in how far they do in public rows.
//!
//! Rows that are [drawn in public](super::public_rows) have columns that know nothing of each other. Where columns go together and a change is of their
//! difference, what it adds to the scores of the table spreads less than there: of a number and its double with opposite weights little is left. Intercepts
//! that keep the rates while scores are multiplied are then others, and confidence grows otherwise. How it grows is released with the
//! calibration, and no label is in it.
//!
//! Source: derived in `docs/methods/noisy-gd.md`, "Calibration".

use rayon::prelude::*;
use reticent_core::largest_place::largest_place;

use super::public_rows::PublicScores;
use crate::softmax::softmax;

/// Spreads are compared from an eighth to eight times that of public rows, at so many places an octave.
const OCTAVES: i32 = 3;
const PLACES: i32 = 8;
/// What is expected beforehand of the spread's octave: 0 with this standard deviation.
const DEVIATION: f64 = 0.75;
/// Error of what public rows say that confidence grows by, as a share of all that it grows by: numbers are not uniform.
const ERROR: f64 = 0.1;
/// Spreads are looked for where all that confidence moves by is so many times the noise of a step: below they are hardly known, and no model was better for them.
const KNOWN: f64 = 30.0;
/// Spreads above this are no more than public rows err by anyway; above 1, with a few rows far out, growth says little of the others, and intercepts
/// that followed were worse.
const NARROW: f64 = 0.75;
/// Steps that are farther than that from those of public rows, in squares and besides so many times the noise, are of a table that these do not describe.
const NOISE_SQUARES: f64 = 2.0;

/// A model that is compared with others: a factor on what the columns change, and its intercepts.
pub(super) type Compared = (f64, Vec<f64>);

/// Released [confidence steps](reticent_core::query::Map::ConfidenceSteps), and what was asked for.
pub(super) struct ReleasedSteps<'a> {
    /// Public rows.
    pub(super) scores: &'a PublicScores,
    pub(super) models: &'a [Compared],
    /// What changes are multiplied by to weigh rows.
    pub(super) weight: f64,
    /// Hits beyond the first model's confidence, and what confidence grows by from each model to the next, in rows.
    pub(super) steps: &'a [f64],
    /// Standard deviation of the noise of each.
    pub(super) noise: f64,
    pub(super) rows: f64,
}

impl ReleasedSteps<'_> {
    /// Public rows that lie as far apart as those of the table, and the steps that would have been released if models had had the `intercepts` that
    /// these call for. None where noise is more than a thirtieth of all that confidence moves by, where the spread is above 3/4, or the table's are no
    /// such rows.
    ///
    /// ```text
    ///   mean_j (g_j - e_j)² <= 2 noise² + (E/10)²     g_j: released growth of confidence;  e_j: that of these rows;  E: all that it grows by in what is returned
    /// ```
    pub(super) fn of_table(
        &self,
        intercepts: impl Fn(f64, &PublicScores) -> Vec<f64>,
    ) -> Option<(PublicScores, Vec<f64>)> {
        if self.moves() < KNOWN * self.noise {
            return None;
        }
        let spread = self.spread();
        if spread > NARROW {
            return None;
        }
        let table = spread_by(spread, self.scores);
        let meant: Vec<Compared> =
            self.models.iter().map(|(factor, _)| (*factor, intercepts(*factor, &table))).collect();
        let moved = self.moved(&meant, &table);
        let steps: Vec<f64> = self.steps.iter().zip(moved).map(|(step, moved)| step + moved).collect();
        let growth: f64 = steps[1..].iter().sum();
        let error = NOISE_SQUARES * self.noise.powi(2) + (ERROR * growth).powi(2);
        (self.far(&table) <= error * (steps.len() - 1) as f64).then_some((table, steps))
    }

    /// The spread of the table in that of public rows.
    ///
    /// ```text
    ///   weight(t) = exp(-sum_j (g_j - e_j(2^t))² / (2 (noise² + (G/10)²)) - t²/(2 (3/4)²)),   G = sum_j |g_j|
    ///   spread = 2^mean,   mean: of t by these weights, at eight places an octave from -3 to 3
    /// ```
    fn spread(&self) -> f64 {
        let variance = self.noise.powi(2) + (ERROR * self.moves()).powi(2);
        let costs: Vec<(f64, f64)> = (-OCTAVES * PLACES..=OCTAVES * PLACES)
            .into_par_iter()
            .map(|place| {
                let octave = f64::from(place) / f64::from(PLACES);
                let far = self.far(&spread_by(octave.exp2(), self.scores));
                (octave, (far / variance + (octave / DEVIATION).powi(2)) / 2.0)
            })
            .collect();
        let least = costs.iter().fold(f64::INFINITY, |least, (_, cost)| least.min(*cost));
        let (mut mean, mut total) = (0.0, 0.0);
        for (octave, cost) in costs {
            let likely = (least - cost).exp();
            mean += likely * octave;
            total += likely;
        }
        (mean / total).exp2()
    }

    /// All that confidence moves by.
    fn moves(&self) -> f64 {
        self.steps[1..].iter().map(|grown| grown.abs()).sum()
    }

    /// How far released growth is from that of rows with these scores, squared.
    fn far(&self, scores: &PublicScores) -> f64 {
        let expected = confidences(scores, self.models, self.weight);
        let grows = expected.windows(2).map(|pair| self.rows * (pair[1] - pair[0]));
        self.steps[1..].iter().zip(grows).map(|(found, expected)| (found - expected).powi(2)).sum()
    }

    /// What each step of rows with these scores moves by with other models.
    fn moved(&self, meant: &[Compared], scores: &PublicScores) -> impl Iterator<Item = f64> + use<> {
        let [meant, asked] = [meant, self.models].map(|models| confidences(scores, models, self.weight));
        let moved: Vec<f64> = meant.iter().zip(asked).map(|(meant, asked)| self.rows * (meant - asked)).collect();
        // The first step falls by what its confidence gains.
        let grows: Vec<f64> = moved.windows(2).map(|pair| pair[1] - pair[0]).collect();
        std::iter::once(-moved[0]).chain(grows)
    }
}

/// Public rows whose changes lie so many times as far from their mean.
pub(super) fn spread_by(spread: f64, scores: &PublicScores) -> PublicScores {
    let mut mean = vec![0.0; scores.first().map_or(0, |(_, rises)| rises.len())];
    for (_, rises) in scores {
        mean.iter_mut().zip(rises).for_each(|(mean, rise)| *mean += rise / scores.len() as f64);
    }
    let of_row = |(before, rises): &(Vec<f64>, Vec<f64>)| {
        (before.clone(), rises.iter().zip(&mean).map(|(rise, mean)| mean + spread * (rise - mean)).collect())
    };
    scores.iter().map(of_row).collect()
}

/// Mean weighted confidence of public rows by each model, as a table's
/// [confidence steps](reticent_core::query::Map::ConfidenceSteps) add it up for changes that are multiplied by `weight`.
fn confidences(scores: &PublicScores, models: &[Compared], weight: f64) -> Vec<f64> {
    let mut mean = vec![0.0; models.len()];
    for (before, rises) in scores {
        let (raised, rise) = most_raised(rises);
        let shares: Vec<f64> = models
            .iter()
            .map(|(factor, intercepts)| {
                // Two classes have one intercept, that of the second.
                let of_classes = std::iter::repeat_n(&0.0, rises.len() - intercepts.len()).chain(intercepts);
                let score = |((intercept, before), rise): ((&f64, &f64), &f64)| intercept + before + factor * rise;
                softmax(&of_classes.zip(before).zip(rises).map(score).collect::<Vec<_>>())[raised]
            })
            .collect();
        let grown: f64 = shares.windows(2).map(|pair| (pair[1] - pair[0]).powi(2)).sum();
        let longest = (grown + shares[0].max(1.0 - shares[0]).powi(2)).sqrt().max(1.0);
        let weighed = (weight * rise).clamp(0.0, 1.0) / longest / scores.len() as f64;
        mean.iter_mut().zip(shares).for_each(|(mean, share)| *mean += weighed * share);
    }
    mean
}

/// The class that rises most, and how far above the mean of all.
fn most_raised(rises: &[f64]) -> (usize, f64) {
    let raised = largest_place(rises);
    (raised, rises[raised] - rises.iter().sum::<f64>() / rises.len() as f64)
}

#[cfg(test)]
mod tests {
    use reticent_math::fixed_sequence::FixedSequence;

    use super::super::calibration::{FACTORS, intercepts_of, likely_factor, weight_scale};
    use super::*;

    const ENDS: [f64; 3] = [1.0, 0.0, -1.5];
    const ROWS: f64 = 10_000.0;
    const HITS: f64 = 700.0;

    /// Three classes of rates that are far apart, and changes that are drawn evenly between -2 and 2.
    fn public() -> PublicScores {
        let mut uniform = FixedSequence::new(3);
        let rises = |_| (0..3).map(|_| 2.0 * uniform.next_uniform()).collect();
        (0..500).map(rises).map(|rises| (vec![0.0; 3], rises)).collect()
    }

    fn models(scores: &PublicScores) -> Vec<Compared> {
        FACTORS.map(|factor| (factor, intercepts_of(factor, &ENDS, scores))).to_vec()
    }

    /// What a table of such rows adds up to.
    fn steps(table: &PublicScores, models: &[Compared], weight: f64) -> Vec<f64> {
        let confidences = confidences(table, models, weight);
        let grows = confidences.windows(2).map(|pair| ROWS * (pair[1] - pair[0]));
        std::iter::once(HITS - ROWS * confidences[0]).chain(grows).collect()
    }

    /// What is made of steps that were released with intercepts of public rows.
    fn made(steps: &[f64], noise: f64) -> (PublicScores, Vec<f64>) {
        let public = public();
        let (models, weight) = (models(&public), weight_scale(&public));
        let released = ReleasedSteps { scores: &public, models: &models, weight, steps, noise, rows: ROWS };
        let of_table = released.of_table(|factor, scores| intercepts_of(factor, &ENDS, scores));
        of_table.unwrap_or((public, steps.to_vec()))
    }

    /// How far the first class's change is from that of public rows, in its own.
    fn spread(scores: &PublicScores) -> f64 {
        let deviation = |scores: &PublicScores| {
            let mean = scores.iter().map(|(_, rises)| rises[0]).sum::<f64>() / scores.len() as f64;
            scores.iter().map(|(_, rises)| (rises[0] - mean).powi(2)).sum::<f64>().sqrt()
        };
        deviation(scores) / deviation(&public())
    }

    #[test]
    fn the_spread_of_a_table_is_found_and_its_steps_are_those_of_its_own_intercepts() {
        let public = public();
        let (asked, weight) = (models(&public), weight_scale(&public));
        for narrow in [0.2, 0.5, 1.0] {
            let table = spread_by(narrow, &public);
            let released = steps(&table, &asked, weight);
            let (found, made) = made(&released, 1.0);
            assert!((spread(&found) / narrow).log2().abs() < 0.15, "{narrow}: {}", spread(&found));
            let right = steps(&table, &models(&table), weight);
            let growth: f64 = right[1..].iter().sum();
            for (made, right) in made.iter().zip(&right) {
                assert!((made - right).abs() < 0.05 * growth, "{narrow}: {made} instead of {right}");
            }
        }
        let table = spread_by(0.2, &public);
        let grows = |steps: &[f64]| steps[1..].iter().all(|step| *step > 0.0);
        assert!(
            !grows(&steps(&table, &asked, weight)) && grows(&made(&steps(&table, &asked, weight), 1.0).1),
            "this hid how confidence grows"
        );
    }

    /// Scores half as far apart as those of public rows, that should be twice as large: with intercepts of public rows twice that was called for.
    #[test]
    fn the_factor_is_that_of_the_tables_own_intercepts() {
        let public = public();
        let (asked, weight, table) = (models(&public), weight_scale(&public), spread_by(0.5, &public));
        let right = [(2.0, intercepts_of(2.0, &ENDS, &table))];
        let hits = ROWS * confidences(&table, &right, weight)[0];
        let mut released = steps(&table, &asked, weight);
        released[0] += hits - HITS;
        let factor = |steps: &[f64]| likely_factor(steps, 0.1, ROWS, 0.0);
        let [before, after] = [factor(&released), factor(&made(&released, 0.1).1)];
        assert!((1.7..2.1).contains(&after) && before > 4.0, "{before} {after}");
    }

    #[test]
    fn noise_and_tables_that_no_public_rows_are_like_change_nothing() {
        let public = public();
        let (asked, weight) = (models(&public), weight_scale(&public));
        let narrow = steps(&spread_by(0.2, &public), &asked, weight);
        assert_eq!(
            made(&narrow, narrow[1..].iter().map(|grown| grown.abs()).sum::<f64>() / 29.0).1,
            narrow,
            "noise says too little"
        );
        let hardly = steps(&spread_by(0.85, &public), &asked, weight);
        assert_eq!(made(&hardly, 1.0).1, hardly, "public rows err by as much");
        let wide = steps(&spread_by(2.0, &public), &asked, weight);
        assert!((spread(&made(&wide, 1.0).0) - 1.0).abs() < 1e-12, "no wider");
        let strange = [100.0, -900.0, 300.0, -500.0, 800.0, -200.0];
        let (scores, kept) = made(&strange, 1.0);
        assert_eq!((spread(&scores), kept), (1.0, strange.to_vec()));
        let nothing: PublicScores = vec![(vec![0.0; 3], vec![0.0; 3]); 5];
        let released =
            ReleasedSteps { scores: &nothing, models: &asked, weight: 0.0, steps: &[0.0; 6], noise: 1.0, rows: ROWS };
        assert_eq!(released.of_table(|factor, scores| intercepts_of(factor, &ENDS, scores)), None, "no change");
    }

    /// By hand: rises of 1 above and below their mean of 3.
    #[test]
    fn changes_spread_about_their_mean() {
        let scores: PublicScores = vec![(vec![7.0], vec![2.0]), (vec![8.0], vec![4.0])];
        assert_eq!(spread_by(0.5, &scores), vec![(vec![7.0], vec![2.5]), (vec![8.0], vec![3.5])]);
    }

    /// By hand: two classes, a rise of 2 for the second, weighed by 1/2 of its rise above the mean: probabilities 1/2 and, three times as far and
    /// moved by 1, `1/(1 + e^-7)`; the contribution is no longer than 1 as it is.
    #[test]
    fn confidence_is_of_the_class_that_rises_most() {
        let scores: PublicScores = vec![(vec![0.0; 2], vec![0.0, 2.0])];
        let found = confidences(&scores, &[(0.0, vec![0.0]), (3.0, vec![1.0])], 0.5);
        // A confidence of 3/4 that falls to 1/4 and rises to 9/10 could be as long as sqrt(9/16 + 1/4 + (13/20)²) with a wrong class.
        assert!((found[0] - 0.25).abs() < 1e-12 && (found[1] - 0.5 / (1.0 + (-7f64).exp())).abs() < 1e-12, "{found:?}");
        let [three, third, nine] = [3f64, 1.0 / 3.0, 9.0].map(f64::ln);
        let models = [three, third, nine].map(|intercept| (0.0, vec![intercept]));
        let longest = (0.5625f64 + 0.25 + 0.65f64.powi(2)).sqrt();
        for (found, share) in confidences(&scores, &models, 0.5).iter().zip([0.75, 0.25, 0.9]) {
            assert!(longest > 1.1 && (found - 0.5 * share / longest).abs() < 1e-12, "{found}");
        }
    }
}
