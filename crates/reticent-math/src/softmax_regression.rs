//! Ridge multinomial logistic (softmax) regression: the non-private yardstick of more than two classes.

use faer::Mat;

use crate::feature_table::FeatureTable;
use crate::lbfgs::{self, LbfgsError, Stop};

/// Most evaluations of the loss.
const EVALUATIONS: usize = 2000;

/// Weights, class after class, that minimise
/// `sum_i (ln sum_k e^{x_i w_k} - x_i w_{y_i}) + ridge/2 sum_k ||w_k||²`.
///
/// `labels` has one value below `classes` a row; `ridge` is a total (not multiplied by the number of rows). Stops when the gradient of the
/// scaled weights is at most `1e-8`, or when ten steps together lower the mean loss by less than `precision` nats. Columns are scaled by their curvature at zero, so that rare columns move as fast as common ones.
///
/// # Errors
/// [`LbfgsError`] when that is not reached: without a ridge there may be no minimum.
///
/// # Panics
/// When `features` does not have one row a label, or a label is not below `classes`.
pub fn fit(
    features: &FeatureTable,
    labels: &[usize],
    classes: usize,
    ridge: f64,
    precision: f64,
) -> Result<Vec<f64>, LbfgsError> {
    assert!(labels.iter().all(|label| *label < classes), "a label is one of the classes");
    let (rows, columns) = (features.rows(), features.columns());
    assert_eq!(labels.len(), rows, "one label a row");
    // Curvature at zero of each weight: p (1 - p) sum x², p = 1 / classes.
    let share = 1.0 / classes as f64;
    let length = |square: &f64| (share * (1.0 - share) * square + ridge).max(1e-12).sqrt().recip();
    let scale: Vec<f64> = features.squares().iter().map(length).collect();

    let mut weights = Mat::<f64>::zeros(columns, classes);
    let mut objective = |scaled: &[f64], gradient: &mut [f64]| {
        for class in 0..classes {
            for (column, scale) in scale.iter().enumerate() {
                weights[(column, class)] = scale * scaled[class * columns + column];
            }
        }
        let (loss, slopes) = features.loss_and_slopes(&weights, |block, residuals| {
            let of_block = labels[block].iter().enumerate();
            of_block.map(|(row, label)| to_residuals(residuals, row, *label)).sum::<f64>()
        });
        let loss = ridge / 2.0 * weights.squared_norm_l2() + loss;
        for class in 0..classes {
            for (column, scale) in scale.iter().enumerate() {
                let slope = slopes[(column, class)] + ridge * weights[(column, class)];
                gradient[class * columns + column] = scale * slope;
            }
        }
        loss
    };
    let count = rows.max(1) as f64;
    // In scaled weights the curvature is about 1: a gradient entry is about the distance from the minimum.
    let stop = Stop { gradient: 1e-8, decrease: precision * count, evaluations: EVALUATIONS };
    let mut weights = lbfgs::minimise(vec![0.0; columns * classes], &mut objective, stop)?;
    for of_class in weights.chunks_exact_mut(columns) {
        of_class.iter_mut().zip(&scale).for_each(|(weight, scale)| *weight *= scale);
    }
    Ok(weights)
}

/// Turns the scores of a row into probabilities minus the indicator of its class; returns its loss.
fn to_residuals(scores: &mut Mat<f64>, row: usize, label: usize) -> f64 {
    let classes = scores.ncols();
    let largest = (0..classes).fold(f64::NEG_INFINITY, |largest, class| largest.max(scores[(row, class)]));
    let of_label = scores[(row, label)] - largest;
    let mut total = 0.0;
    for class in 0..classes {
        let exponential = (scores[(row, class)] - largest).exp();
        scores[(row, class)] = exponential;
        total += exponential;
    }
    for class in 0..classes {
        scores[(row, class)] /= total;
    }
    scores[(row, label)] -= 1.0;
    total.ln() - of_label
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logistic_newton;

    /// Golden weights from `scipy.optimize.minimize` (see the script in `testdata/golden/public_fits.py`).
    #[test]
    fn agrees_with_an_independent_solver() {
        let features: Vec<f64> = (0..9).flat_map(|row| [1.0, f64::from(row) / 4.0 - 1.0]).collect();
        let labels = [0, 0, 1, 0, 1, 2, 1, 2, 2];
        let weights =
            fit(&FeatureTable::packed(features, 2), &labels, 3, 0.1, 0.0).expect("ridge makes it strictly convex");
        for (found, expected) in weights.iter().zip(GOLDEN) {
            assert!((found - expected).abs() < 1e-6, "{weights:?}");
        }
    }

    const GOLDEN: [f64; 6] = [
        -0.259_516_629_490_820_27,
        -2.563_608_071_621_657_4,
        0.519_033_258_981_640_8,
        0.0,
        -0.259_516_629_490_820_7,
        2.563_608_071_621_657_4,
    ];

    /// With two classes the difference of the two scores is a logistic regression with half the ridge.
    #[test]
    fn two_classes_are_logistic_regression() {
        let features: Vec<f64> = (0..8).flat_map(|row| [1.0, f64::from(row) / 4.0 - 1.0]).collect();
        let features = FeatureTable::packed(features, 2);
        let labels = [0, 0, 1, 0, 1, 0, 1, 1];
        let weights = fit(&features, &labels, 2, 0.1, 0.0).expect("strictly convex");
        let labels = labels.map(|label| label as f64);
        let binary = logistic_newton::fit(&features, &labels, 0.05).expect("strictly convex");
        for column in 0..2 {
            assert!((weights[2 + column] - weights[column] - binary[column]).abs() < 1e-6, "{weights:?} {binary:?}");
        }
    }
}
