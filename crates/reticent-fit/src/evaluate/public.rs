//! Exact figures on rows that are declared public.

use reticent_core::largest_place::largest_place;

use super::{Calibration, Evaluation, Figure};
use crate::model::{Model, Task};
use crate::raw_columns::Columns;

/// Buckets of the calibration table.
const CALIBRATION_BUCKETS: usize = 10;

/// Evaluates a model on raw columns and labels: the index of a class, or a number.
///
/// Edges: no rows, or for the AUC rows of one class only and for R² rows of one number only, give NaN.
#[must_use]
pub fn evaluate<'a>(model: &Model, rows: impl Iterator<Item = (&'a [f64], f64)>) -> Evaluation {
    let scored: Vec<ScoredRow> = rows.map(|(columns, label)| ScoredRow::of(model, columns, label)).collect();
    evaluate_scored(model.task, scored)
}

/// What a model says of a row, and its label: of the row itself nothing is kept.
#[derive(Clone, Copy, Debug)]
pub enum ScoredRow {
    /// Two classes.
    Binary {
        /// Log-odds of the last class.
        score: f64,
        /// Whether it is the last class.
        is_last: bool,
    },
    /// More classes.
    Class {
        /// Whether the likeliest, of equal ones the first, was right.
        is_right: bool,
        /// Minus the logarithm of its probability.
        log_loss: f64,
    },
    /// A number.
    Number {
        /// What the model says.
        predicted: f64,
        /// What it is.
        label: f64,
    },
}

impl ScoredRow {
    /// Of a row's raw columns, the intercept first, and its label: the index of a class, or a number.
    ///
    /// # Panics
    /// When there is not one column a coefficient, or the label is no class of the model.
    #[must_use]
    pub fn of(model: &Model, columns: &(impl Columns + ?Sized), label: f64) -> Self {
        match model.task {
            Task::BinaryClassification => Self::Binary { score: model.score(0, columns), is_last: label > 0.5 },
            Task::MulticlassClassification => {
                let probabilities = model.probabilities(columns);
                let class = label as usize;
                let is_right = largest_place(&probabilities) == class;
                Self::Class { is_right, log_loss: -probabilities[class].max(f64::MIN_POSITIVE).ln() }
            }
            Task::Regression => Self::Number { predicted: model.number(columns), label },
        }
    }
}

/// The figures of rows that a model for such a task scored: see [`evaluate`].
#[must_use]
pub fn evaluate_scored(task: Task, rows: Vec<ScoredRow>) -> Evaluation {
    match task {
        Task::BinaryClassification => {
            let binary = |row| match row {
                ScoredRow::Binary { score, is_last } => Some((score, is_last)),
                ScoredRow::Class { .. } | ScoredRow::Number { .. } => None,
            };
            evaluate_binary(&rows.into_iter().filter_map(binary).collect::<Vec<_>>())
        }
        Task::MulticlassClassification => {
            let (mut count, mut right, mut losses) = (0u64, 0u64, 0.0);
            for row in rows {
                if let ScoredRow::Class { is_right, log_loss } = row {
                    count += 1;
                    right += u64::from(is_right);
                    losses += log_loss;
                }
            }
            Evaluation {
                n: Some(count),
                accuracy: Some(Figure::exact(right as f64 / count as f64)),
                log_loss: Some(Figure::exact(losses / count as f64)),
                ..Evaluation::default()
            }
        }
        Task::Regression => {
            let number = |row| match row {
                ScoredRow::Number { predicted, label } => Some((predicted, label)),
                ScoredRow::Binary { .. } | ScoredRow::Class { .. } => None,
            };
            evaluate_numbers(&rows.into_iter().filter_map(number).collect::<Vec<_>>())
        }
    }
}

/// Evaluates predicted numbers against true ones.
fn evaluate_numbers(pairs: &[(f64, f64)]) -> Evaluation {
    let count = pairs.len() as f64;
    let mean = pairs.iter().map(|(_, label)| label).sum::<f64>() / count;
    let error = pairs.iter().map(|(predicted, label)| (predicted - label).powi(2)).sum::<f64>() / count;
    let variance = pairs.iter().map(|(_, label)| (label - mean).powi(2)).sum::<f64>() / count;
    // By the labels: a mean that is rounded leaves a little variance.
    let varies = pairs.iter().any(|(_, label)| (label - pairs[0].1).abs() > 0.0);
    Evaluation {
        n: Some(pairs.len() as u64),
        mean_squared_error: Some(Figure::exact(error)),
        r_squared: Some(Figure::exact(if varies { 1.0 - error / variance } else { f64::NAN })),
        ..Evaluation::default()
    }
}

/// Evaluates scores (log-odds of the last class) against classes (true for the last class).
#[must_use]
pub fn evaluate_binary(scored: &[(f64, bool)]) -> Evaluation {
    let rows = scored.len() as f64;
    let correct = scored.iter().filter(|(score, class)| (*score > 0.0) == *class).count();
    let losses = scored.iter().map(|(score, class)| log_loss(*score, *class));
    let mut buckets = [(0.0, 0.0, 0.0); CALIBRATION_BUCKETS];
    for (score, class) in scored {
        let probability = 1.0 / (1.0 + (-score).exp());
        let index = ((probability * CALIBRATION_BUCKETS as f64) as usize).min(CALIBRATION_BUCKETS - 1);
        let bucket = &mut buckets[index];
        bucket.0 += 1.0;
        bucket.1 += probability;
        bucket.2 += f64::from(u8::from(*class));
    }
    Evaluation {
        n: Some(scored.len() as u64),
        accuracy: Some(Figure::exact(correct as f64 / rows)),
        auc: Some(Figure::exact(auc(scored))),
        log_loss: Some(Figure::exact(losses.sum::<f64>() / rows)),
        calibration: Some(Calibration::of_buckets(&buckets, |share| share)),
        ..Evaluation::default()
    }
}

/// `ln(1 + e^-margin)`, the margin being the score seen from the true class.
fn log_loss(score: f64, class: bool) -> f64 {
    let margin = if class { score } else { -score };
    (-margin).max(0.0) + (-margin.abs()).exp().ln_1p()
}

/// Mann-Whitney statistic with ties counted half, by ranks.
fn auc(scored: &[(f64, bool)]) -> f64 {
    let mut sorted = scored.to_vec();
    sorted.sort_by(|left, right| left.0.total_cmp(&right.0));
    let positives = sorted.iter().filter(|(_, class)| *class).count() as f64;
    let negatives = sorted.len() as f64 - positives;
    let mut below = 0.0;
    let mut wins = 0.0;
    for tied in sorted.chunk_by(|left, right| left.0.total_cmp(&right.0).is_eq()) {
        let tied_positives = tied.iter().filter(|(_, class)| *class).count() as f64;
        let tied_negatives = tied.len() as f64 - tied_positives;
        wins += tied_positives * (below + tied_negatives / 2.0);
        below += tied_negatives;
    }
    wins / (positives * negatives)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reticent_core::coding::Coding;
    use reticent_core::encoding::{Encoding, NormRule};
    use reticent_core::schema::Schema;

    use super::*;
    use crate::prepared_fit::Fitted;

    /// Figures of scikit-learn 1.5 on the same eight rows (`testdata/golden/metrics.py`).
    #[test]
    fn agrees_with_scikit_learn() {
        let scored = [
            (-2.0, false),
            (-1.0, true),
            (-0.5, false),
            (0.25, false),
            (0.25, true),
            (0.75, true),
            (1.5, false),
            (3.0, true),
        ];
        let found = evaluate_binary(&scored);
        assert!((found.accuracy.expect("binary").value - 0.625).abs() < 1e-12);
        assert!((found.auc.expect("binary").value - 0.656_25).abs() < 1e-12, "{}", found.auc.expect("binary").value);
        assert!(
            (found.log_loss.expect("binary").value - 0.681_627_144_771).abs() < 1e-9,
            "{}",
            found.log_loss.expect("binary").value
        );
    }

    /// Of classes that are alike a model predicts the first, and is right where that is the label.
    #[test]
    fn a_model_without_effects_is_right_about_one_class_only() {
        let schema = Schema::from_text(
            "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [\"a\", \"b\", \"c\"]\n\
             [features]\nx = { bounds = [0, 1] }\n",
        )
        .expect("legal");
        let encoding = Arc::new(Encoding::plain(Coding::of(&schema), NormRule::OwnNorm));
        let fitted = Fitted { encoding, weights: vec![0.0; 6], covariance: None };
        let model = Model::from_weights(&schema, &fitted, None);
        let row: &[f64] = &[1.0, 0.5];
        let found = evaluate(&model, [0.0, 1.0, 2.0, 2.0].into_iter().map(|label| (row, label)));
        assert!((found.accuracy.expect("of classes").value - 0.25).abs() < 1e-12);
    }

    #[test]
    fn undefined_figures_are_null() {
        let json = serde_json::to_value(evaluate_binary(&[])).expect("serialises");
        assert!(json["accuracy"].is_null() && json["auc"].is_null() && json["log_loss"].is_null());
        let one_class = evaluate_binary(&[(0.1, true), (0.2, true)]);
        assert!(one_class.auc.expect("binary").value.is_nan());
        assert!((one_class.accuracy.expect("binary").value - 1.0).abs() < 1e-12);
    }

    #[test]
    fn a_calibrated_model_has_no_gap() {
        // Probability 0.75 is observed 3 times in 4.
        let score = 3f64.ln();
        let scored = [(score, true), (score, true), (score, true), (score, false)];
        let calibration = evaluate_binary(&scored).calibration.expect("binary");
        assert!(calibration.expected_error.expect("has rows") < 1e-12);
        assert_eq!(calibration.buckets.len(), 1);
    }

    #[test]
    fn a_regression_has_error_and_explained_variance() {
        let found = evaluate_numbers(&[(1.0, 0.0), (2.0, 2.0), (3.0, 4.0)]);
        assert!((found.mean_squared_error.expect("a number").value - 2.0 / 3.0).abs() < 1e-12);
        assert!((found.r_squared.expect("a number").value - 0.75).abs() < 1e-12);
        // The mean of three times 0.1 is not 0.1.
        let constant = evaluate_numbers(&[(1.0, 0.1), (2.0, 0.1), (3.0, 0.1)]);
        assert!(constant.r_squared.expect("a number").value.is_nan());
    }
}
