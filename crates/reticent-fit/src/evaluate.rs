//! How good a model is: on public rows exactly, on private rows by noisy counts.

pub mod labels;
pub mod private;
pub mod public;

use serde::{Serialize, Serializer};

/// Figures of a model on one table. Those that a task does not have are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Evaluation {
    /// Number of rows with a usable label; only for public rows, `null` otherwise.
    pub n: Option<u64>,
    /// Share of rows whose class has the largest probability.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<Figure>,
    /// Area under the ROC curve of two classes: the probability that a random row of the last class scores above one of the
    /// first, ties half.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auc: Option<Figure>,
    /// Mean negative log-likelihood of the classes in nats.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_loss: Option<Figure>,
    /// Mean squared error of a number, in its squared units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean_squared_error: Option<Figure>,
    /// Share of the variance that a regression explains: `1 - MSE / variance`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub r_squared: Option<Figure>,
    /// Predicted against observed shares of the last of two classes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calibration: Option<Calibration>,
}

/// Error, as a share of where a figure can lie, from which on its value is noise alone, and not told: it would nearly always be an end.
const HIDDEN: f64 = 0.5;

/// A figure, with the standard error that the noise of a private evaluation gives it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// The value; NaN where it is not defined, for example an AUC over one class.
    pub value: f64,
    /// Standard error from noise alone; `None` for public rows.
    pub standard_error: Option<f64>,
}

impl Figure {
    fn exact(value: f64) -> Self {
        Self { value, standard_error: None }
    }

    /// A noisy figure between 0 and `most`; NaN where noise hides it.
    fn noisy(value: f64, error: f64, most: f64) -> Self {
        Self { value: if error < HIDDEN * most { value } else { f64::NAN }, standard_error: Some(error) }
    }
}

/// A plain number where it is exact, so that scripts read `.accuracy`; an undefined one is `null`.
impl Serialize for Figure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.value.is_finite() { serializer.serialize_f64(self.value) } else { serializer.serialize_none() }
    }
}

/// Calibration over buckets of the predicted probability.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Mean absolute gap between predicted and observed shares, weighted by rows (expected calibration error).
    pub expected_error: Option<f64>,
    /// Observed share of the last class over all rows minus the mean prediction.
    pub bias: Option<f64>,
    /// The buckets that have rows.
    pub buckets: Vec<CalibrationBucket>,
}

/// One bucket of predicted probabilities.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct CalibrationBucket {
    /// Lower edge.
    pub low: f64,
    /// Upper edge.
    pub high: f64,
    /// Share of all rows that fall here.
    pub share: f64,
    /// Mean predicted probability; the middle of the bucket where it was not bought.
    pub predicted: f64,
    /// Observed share of the last class.
    pub observed: f64,
}

impl Calibration {
    /// Sums up buckets given as (rows, sum of predictions, rows of the last class); `edge` is where a share of the buckets ends.
    fn of_buckets(buckets: &[(f64, f64, f64)], edge: impl Fn(f64) -> f64) -> Self {
        let place = |index: usize| edge(index as f64 / buckets.len() as f64);
        let total: f64 = buckets.iter().map(|(rows, _, _)| rows).sum();
        let listed: Vec<CalibrationBucket> = buckets
            .iter()
            .enumerate()
            .filter(|(_, (rows, _, _))| *rows > 0.0)
            .map(|(index, (rows, predicted, positive))| CalibrationBucket {
                low: place(index),
                high: place(index + 1),
                share: rows / total,
                predicted: predicted / rows,
                observed: (positive / rows).clamp(0.0, 1.0),
            })
            .collect();
        if listed.is_empty() {
            return Self { expected_error: None, bias: None, buckets: listed };
        }
        let gaps = listed.iter().map(|bucket| bucket.share * (bucket.predicted - bucket.observed).abs());
        let biases = listed.iter().map(|bucket| bucket.share * (bucket.observed - bucket.predicted));
        Self { expected_error: Some(gaps.sum()), bias: Some(biases.sum()), buckets: listed }
    }
}
