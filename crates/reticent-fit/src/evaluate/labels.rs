//! Figures of a model whose rows are here and whose labels another organisation holds: linear in the labels, so that one
//! noisy matrix product buys them all.
//!
//! ```text
//!   two classes   log loss      (sum ln(1 + e^z) - sum y z) / n
//!                 buckets       sum of y over the rows of a bucket of scores: calibration, accuracy, AUC
//!   more classes  log loss      (sum ln sum_k e^(z_k) - sum_k sum y_k z_k) / n
//!                 accuracy      sum_k sum y_k [k has the largest score] / n
//! ```
//! Scores `z` and the number of rows `n` are public. Half of the square of a row's norm goes to the scores, half to the rest.

use std::fmt;

use reticent_core::largest_place::largest_place;
use reticent_core::public_matrix::PublicMatrix;
use reticent_math::sigmoid;

use super::{Calibration, CalibrationBucket, Evaluation, Figure, HIDDEN};
use crate::model::{Model, Task};

/// Buckets of about equally many rows; one more, because the score 0 is an edge too.
const BUCKETS: usize = 32;
/// Buckets of the calibration table.
const CALIBRATION_BUCKETS: usize = 8;
/// `floor(2^20 / sqrt 2)`: largest norm of each of the two parts of a row.
const PART: i32 = 741_455;

/// What is asked about the labels of some rows, and how the answer becomes figures.
pub struct LabelQuestions {
    matrix: PublicMatrix,
    rows: f64,
    /// What one integer of the score part is worth.
    score_step: f64,
    /// Sum over the rows of what log loss has without labels.
    log_normaliser: f64,
    parts: Parts,
}

enum Parts {
    TwoClasses(Vec<Bucket>),
    MoreClasses(usize),
}

/// Rows with neighbouring scores: public.
#[derive(Clone, Copy)]
struct Bucket {
    rows: f64,
    predicted: f64,
    /// Upper edge, as a probability.
    high: f64,
    positive: bool,
}

/// A model or a table that has no figures of this kind.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelQuestionsError {
    /// A squared error is not linear in the labels.
    #[error(
        "the model predicts a number, and a squared error is not linear in the labels: only models of classes are measured this way"
    )]
    Regression,
    /// No row, or a score that is not finite.
    #[error("the table has no row, or a row whose score is not a finite number: nothing can be asked about it")]
    Scores,
    /// The table is too long.
    #[error("the table has too many rows for one question; split it")]
    Size,
}

impl fmt::Debug for LabelQuestions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("LabelQuestions").field("matrix", &self.matrix).finish_non_exhaustive()
    }
}

impl LabelQuestions {
    /// Makes the weights of the scores that a model gives public rows, one row of weights each: one score a row and output, the outputs of a row
    /// after each other. A pure function of what is public.
    ///
    /// # Errors
    /// [`LabelQuestionsError`].
    pub fn of(model: &Model, scores: &[f64]) -> Result<Self, LabelQuestionsError> {
        let outputs = model.outputs.len();
        if model.task == Task::Regression {
            return Err(LabelQuestionsError::Regression);
        }
        if scores.is_empty() || !scores.iter().all(|score| score.is_finite()) {
            return Err(LabelQuestionsError::Scores);
        }
        if outputs == 1 { Self::of_two_classes(scores) } else { Self::of_more_classes(scores, outputs) }
    }

    /// Most columns of the weights for a model.
    #[must_use]
    pub fn columns_most(model: &Model) -> usize {
        // A score and its bucket, of which zero may divide one; or a score and a hit of each class.
        if model.outputs.len() == 1 { BUCKETS + 2 } else { 2 * model.outputs.len() }
    }

    /// The weights: rows of norm at most `2^20`.
    #[must_use]
    pub fn matrix(&self) -> &PublicMatrix {
        &self.matrix
    }

    /// The weights, given away.
    #[must_use]
    pub fn into_matrix(self) -> PublicMatrix {
        self.matrix
    }

    fn of_two_classes(scores: &[f64]) -> Result<Self, LabelQuestionsError> {
        let edges = edges(scores);
        let largest = scores.iter().fold(0.0f64, |largest, score| largest.max(score.abs())).max(f64::MIN_POSITIVE);
        let score_step = largest / f64::from(PART);
        let empty = |bucket: usize| {
            let low = if bucket == 0 { f64::NEG_INFINITY } else { edges[bucket - 1] };
            let high = edges.get(bucket).copied().unwrap_or(f64::INFINITY);
            Bucket { rows: 0.0, predicted: 0.0, high: sigmoid(high), positive: low >= 0.0 }
        };
        let mut buckets: Vec<Bucket> = (0..=edges.len()).map(empty).collect();
        let columns = 1 + buckets.len();
        let mut values = vec![0i32; scores.len() * columns];
        for (row, score) in values.chunks_exact_mut(columns).zip(scores) {
            let place = edges.partition_point(|edge| edge < score);
            // Truncation toward zero keeps the integer within the part.
            row[0] = ((score / score_step) as i32).clamp(-PART, PART);
            row[1 + place] = PART;
            buckets[place].rows += 1.0;
            buckets[place].predicted += sigmoid(*score);
        }
        let log_normaliser = scores.iter().map(|score| score.max(0.0) + (-score.abs()).exp().ln_1p()).sum();
        Self::new(columns, values, score_step, log_normaliser, Parts::TwoClasses(buckets))
    }

    fn of_more_classes(scores: &[f64], classes: usize) -> Result<Self, LabelQuestionsError> {
        let mut centred = scores.to_vec();
        let (mut longest, mut log_normaliser) = (f64::MIN_POSITIVE, 0.0);
        for row in centred.chunks_exact_mut(classes) {
            // What all classes share changes no probability.
            let mean = row.iter().sum::<f64>() / classes as f64;
            row.iter_mut().for_each(|score| *score -= mean);
            longest = row.iter().map(|score| score * score).sum::<f64>().sqrt().max(longest);
            let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            log_normaliser += largest + row.iter().map(|score| (score - largest).exp()).sum::<f64>().ln();
        }
        // Slightly longer, so that rounding in the division cannot pass the part.
        let score_step = longest * (1.0 + 1e-12) / f64::from(PART);
        let columns = 2 * classes;
        let mut values = vec![0i32; centred.len() * 2];
        for (row, scores) in values.chunks_exact_mut(columns).zip(centred.chunks_exact(classes)) {
            for (value, score) in row.iter_mut().zip(scores) {
                *value = ((score / score_step) as i32).clamp(-PART, PART);
            }
            row[classes + largest_place(scores)] = PART;
        }
        Self::new(columns, values, score_step, log_normaliser, Parts::MoreClasses(classes))
    }

    fn new(
        columns: usize,
        values: Vec<i32>,
        score_step: f64,
        log_normaliser: f64,
        parts: Parts,
    ) -> Result<Self, LabelQuestionsError> {
        let rows = (values.len() / columns) as f64;
        let matrix = PublicMatrix::new(columns, values).map_err(|_| LabelQuestionsError::Size)?;
        Ok(Self { matrix, rows, score_step, log_normaliser, parts })
    }

    /// Figures from the released integers, output after output, with noise of this standard deviation each.
    ///
    /// Standard errors come from the noise alone: the rows are taken as they are. Noise hides what it does in a private evaluation, and a log loss
    /// from an error of half of what even shares of the classes lose.
    ///
    /// # Panics
    /// When there are not as many integers as the question has coordinates.
    #[must_use]
    pub fn evaluate(&self, released: &[f64], noise: f64) -> Evaluation {
        let share = |value: f64, error: f64| Some(Figure::noisy(value.clamp(0.0, 1.0), error, 1.0));
        let loss = |scored: f64, error: f64, classes: usize| {
            let value = ((self.log_normaliser - scored * self.score_step) / self.rows).max(0.0);
            Some(Figure::noisy(value, error * self.score_step / self.rows, (classes as f64).ln()))
        };
        let count = f64::from(PART);
        match &self.parts {
            Parts::TwoClasses(buckets) => {
                assert_eq!(released.len(), 1 + buckets.len(), "one number a column");
                let positives: Vec<f64> = released[1..].iter().map(|value| value / count).collect();
                let noise_of_count = noise / count;
                let correct: f64 = buckets
                    .iter()
                    .zip(&positives)
                    .map(|(bucket, positives)| if bucket.positive { *positives } else { bucket.rows - positives })
                    .sum();
                let all = (buckets.len() as f64).sqrt();
                Evaluation {
                    n: Some(self.rows as u64),
                    accuracy: share(correct / self.rows, all * noise_of_count / self.rows),
                    auc: Some(area(buckets, &positives, noise_of_count)),
                    log_loss: loss(released[0], noise, 2),
                    calibration: Some(calibration(buckets, &positives, self.rows, noise_of_count)),
                    ..Evaluation::default()
                }
            }
            Parts::MoreClasses(classes) => {
                let columns = 2 * classes;
                assert_eq!(released.len(), columns * classes, "one number a column and class");
                let of_class = |class: usize, column: usize| released[class * columns + column];
                let scored: f64 = (0..*classes).map(|class| of_class(class, class)).sum();
                let correct: f64 = (0..*classes).map(|class| of_class(class, classes + class)).sum::<f64>() / count;
                let all = (*classes as f64).sqrt();
                Evaluation {
                    n: Some(self.rows as u64),
                    accuracy: share(correct / self.rows, all * noise / count / self.rows),
                    log_loss: loss(scored, all * noise, *classes),
                    ..Evaluation::default()
                }
            }
        }
    }
}

/// Edges between buckets: quantiles of the public scores, and 0, above which the last class is predicted.
fn edges(scores: &[f64]) -> Vec<f64> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(f64::total_cmp);
    let mut edges: Vec<f64> = (1..BUCKETS).map(|part| sorted[part * sorted.len() / BUCKETS]).chain([0.0]).collect();
    edges.sort_by(f64::total_cmp);
    edges.dedup_by(|later, earlier| (*later - *earlier).abs() <= f64::EPSILON * earlier.abs());
    edges
}

/// Area under the ROC curve by the trapezoid rule over buckets, ties within a bucket counted half; the error by the delta
/// method, with a bucket's negatives being its public rows less its positives.
fn area(buckets: &[Bucket], positives: &[f64], noise: f64) -> Figure {
    let value = |positives: &[f64]| {
        let (mut below, mut wins, mut total) = (0.0, 0.0, 0.0);
        for (bucket, positive) in buckets.iter().zip(positives) {
            let negative = bucket.rows - positive;
            wins += positive * (below + negative / 2.0);
            below += negative;
            total += positive;
        }
        wins / (total.max(1.0) * below.max(1.0))
    };
    let at = value(positives);
    let gradient = (0..positives.len()).map(|place| {
        let mut moved = positives.to_vec();
        moved[place] += 1.0;
        value(&moved) - at
    });
    let error = noise * gradient.map(|slope| slope * slope).sum::<f64>().sqrt();
    Figure::noisy(at.clamp(0.0, 1.0), error, 1.0)
}

/// Neighbouring buckets joined until each holds about an eighth of the rows; those whose observed share noise hides are left out.
fn calibration(buckets: &[Bucket], positives: &[f64], rows: f64, noise: f64) -> Calibration {
    let mut listed: Vec<CalibrationBucket> = Vec::with_capacity(CALIBRATION_BUCKETS);
    let (mut count, mut predicted, mut observed, mut low) = (0.0, 0.0, 0.0, 0.0);
    let (mut joined, mut seen, mut ended) = (0.0f64, 0.0, 0);
    for (bucket, positive) in buckets.iter().zip(positives) {
        count += bucket.rows;
        predicted += bucket.predicted;
        observed += positive;
        seen += bucket.rows;
        joined += 1.0;
        let due = (ended + 1) as f64 / CALIBRATION_BUCKETS as f64 * rows;
        if count > 0.0 && seen >= due - 0.5 {
            if noise * joined.sqrt() < HIDDEN * count {
                listed.push(CalibrationBucket {
                    low,
                    high: bucket.high,
                    share: count / rows,
                    predicted: predicted / count,
                    observed: (observed / count).clamp(0.0, 1.0),
                });
            }
            ended += 1;
            (count, predicted, observed, low, joined) = (0.0, 0.0, 0.0, bucket.high, 0.0);
        }
    }
    let gaps = listed.iter().map(|bucket| bucket.share * (bucket.predicted - bucket.observed).abs()).sum();
    let expected: f64 = buckets.iter().map(|bucket| bucket.predicted).sum();
    let bias = (positives.iter().sum::<f64>() - expected) / rows;
    let is_bias_told = noise * (buckets.len() as f64).sqrt() < HIDDEN * rows;
    Calibration {
        expected_error: (listed.len() == ended).then_some(gaps),
        bias: is_bias_told.then_some(bias),
        buckets: listed,
    }
}

#[cfg(test)]
mod tests {
    use reticent_core::public_matrix::MATRIX_NORM_MAX;
    use reticent_math::fixed_sequence::FixedSequence;

    use super::*;
    use crate::evaluate::public;

    /// Scores and labels that depend on them, the same in every run.
    fn rows(count: usize) -> Vec<(f64, bool)> {
        let mut sequence = FixedSequence::new(1);
        (0..count)
            .map(|_| {
                let score = 6.0 * sequence.next_share() - 3.5;
                (score, sequence.next_share() < sigmoid(score))
            })
            .collect()
    }

    fn product(matrix: &PublicMatrix, labels: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut sums = vec![0.0; matrix.columns()];
        for row in 0..matrix.rows() {
            for (sum, value) in sums.iter_mut().zip(matrix.row(row)) {
                *sum += labels(row) * f64::from(*value);
            }
        }
        sums
    }

    #[test]
    fn figures_without_noise_are_the_exact_ones() {
        let scored = rows(5000);
        let scores: Vec<f64> = scored.iter().map(|(score, _)| *score).collect();
        let questions = LabelQuestions::of_two_classes(&scores).expect("finite scores");
        let sums = product(questions.matrix(), |row| f64::from(u8::from(scored[row].1)));
        let (found, exact) = (questions.evaluate(&sums, 0.0), public::evaluate_binary(&scored));
        let value = |figure: Option<Figure>| figure.expect("two classes have it").value;
        assert!((value(found.log_loss) - value(exact.log_loss)).abs() < 1e-5);
        assert!((value(found.accuracy) - value(exact.accuracy)).abs() < 1e-9);
        // 33 buckets in the place of all scores.
        assert!((value(found.auc) - value(exact.auc)).abs() < 2e-3, "{:?} {:?}", found.auc, exact.auc);
        let (found, exact) = (found.calibration.expect("two"), exact.calibration.expect("two"));
        assert!((found.bias.expect("rows") - exact.bias.expect("rows")).abs() < 1e-9);
        assert_eq!(found.buckets.len(), CALIBRATION_BUCKETS);
        assert!((found.buckets.iter().map(|bucket| bucket.share).sum::<f64>() - 1.0).abs() < 1e-9);
        let gaps: f64 = found.buckets.iter().map(|bucket| bucket.share * (bucket.observed - bucket.predicted)).sum();
        assert!((gaps - found.bias.expect("rows")).abs() < 1e-9);
    }

    #[test]
    fn standard_errors_are_those_of_the_noise() {
        let scored = rows(2000);
        let scores: Vec<f64> = scored.iter().map(|(score, _)| *score).collect();
        let questions = LabelQuestions::of_two_classes(&scores).expect("finite scores");
        let sums = product(questions.matrix(), |row| f64::from(u8::from(scored[row].1)));
        let noise = 3e6;
        let exact = questions.evaluate(&sums, noise);
        let (mut squares, draws) = ([0.0; 3], 300);
        let mut sequence = FixedSequence::new(2);
        for _ in 0..draws {
            let noisy: Vec<f64> = sums.iter().map(|sum| sum + noise * sequence.next_normal()).collect();
            let found = questions.evaluate(&noisy, noise);
            for (square, (found, exact)) in squares.iter_mut().zip([
                (found.log_loss, exact.log_loss),
                (found.accuracy, exact.accuracy),
                (found.auc, exact.auc),
            ]) {
                *square += (found.expect("two").value - exact.expect("two").value).powi(2) / f64::from(draws);
            }
        }
        for (square, stated) in squares.iter().zip([exact.log_loss, exact.accuracy, exact.auc]) {
            let ratio = square.sqrt() / stated.expect("two").standard_error.expect("bought");
            // 300 draws: the ratio has a standard error of 4 %.
            assert!((0.8..1.2).contains(&ratio), "{ratio}");
        }
    }

    /// 5,000 rows, an eighth of them in four buckets: noise of 200 rows a count hides the share that is observed in each, and not how many are of the last
    /// class; of 4,000 all.
    #[test]
    fn what_noise_hides_is_not_told() {
        let scored = rows(5000);
        let scores: Vec<f64> = scored.iter().map(|(score, _)| *score).collect();
        let questions = LabelQuestions::of_two_classes(&scores).expect("finite scores");
        let sums = product(questions.matrix(), |row| f64::from(u8::from(scored[row].1)));
        let figures = |rows_of_noise: f64| {
            let found = questions.evaluate(&sums, rows_of_noise * f64::from(PART));
            let told = [found.accuracy, found.auc, found.log_loss].map(|figure| figure.expect("two").value.is_finite());
            let Calibration { expected_error, bias, buckets } = found.calibration.expect("two");
            (told, expected_error.is_some(), bias.is_some(), buckets.len())
        };
        assert_eq!(figures(50.0), ([true; 3], true, true, CALIBRATION_BUCKETS));
        assert_eq!(figures(200.0), ([true; 3], false, true, 0));
        assert_eq!(figures(4000.0), ([false; 3], false, false, 0));
        let classes = LabelQuestions::of_more_classes(&[2.0, 0.0, -1.0], 3).expect("finite scores");
        let found = classes.evaluate(&[0.0; 18], 1e9);
        assert!([found.accuracy, found.log_loss].iter().all(|figure| figure.expect("classes").value.is_nan()));
    }

    #[test]
    fn more_classes_have_log_loss_and_accuracy() {
        let scores = [2.0, 0.0, -1.0, 0.5, 1.5, 0.0, 0.1, 0.2, 0.3];
        let labels = [0usize, 2, 2];
        let questions = LabelQuestions::of_more_classes(&scores, 3).expect("finite scores");
        let sums: Vec<f64> = (0..3)
            .flat_map(|class| product(questions.matrix(), move |row| f64::from(u8::from(labels[row] == class))))
            .collect();
        let found = questions.evaluate(&sums, 0.0);
        let loss: f64 = scores
            .chunks_exact(3)
            .zip(labels)
            .map(|(row, label)| row.iter().map(|score| score.exp()).sum::<f64>().ln() - row[label])
            .sum::<f64>()
            / 3.0;
        assert!((found.log_loss.expect("classes").value - loss).abs() < 1e-5);
        assert!((found.accuracy.expect("classes").value - 2.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn rows_keep_the_norm_bound_and_nonsense_is_refused() {
        let scores: Vec<f64> = (0..1000).map(|index| (f64::from(index) - 500.0) * 7.7).collect();
        let questions = LabelQuestions::of_two_classes(&scores).expect("finite scores");
        assert!(questions.matrix().row_norm_square() <= u64::from(MATRIX_NORM_MAX as u32).pow(2));
        let flat = LabelQuestions::of_two_classes(&[0.0; 9]).expect("equal scores");
        assert_eq!(flat.matrix().rows(), 9);
        assert!(LabelQuestions::of_more_classes(&scores[..999], 3).is_ok());
    }
}
