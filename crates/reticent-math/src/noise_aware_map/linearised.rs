//! The residual of the release at some parameters, linearised there.

use faer::{Mat, MatRef};

use super::algebra::stack;
use super::prior::weights_of;
use super::{Prior, ResponseModel, Statistic};
use crate::product::product;

/// Residual, its derivative and its covariance at some parameters, in contrasts.
pub(super) struct Linearised {
    pub(super) parameters: Mat<f64>,
    pub(super) residual: Mat<f64>,
    pub(super) jacobian: Mat<f64>,
    pub(super) covariance: Mat<f64>,
}

impl Linearised {
    pub(super) fn at(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, parameters: &Mat<f64>) -> Self {
        let (basis, contrasts) = (model.basis(), model.contrasts());
        let (outputs, columns) = (statistic.rows.ncols(), statistic.features.ncols());
        let mut residual = stack((statistic.released * &basis).as_ref());
        let mut jacobian = Mat::<f64>::zeros(outputs * contrasts, columns * contrasts);
        let mut covariance =
            Mat::<f64>::identity(outputs * contrasts, outputs * contrasts) * faer::Scale(statistic.noise.powi(2));
        each_block(statistic, model, prior, parameters, |features, rows, means| {
            residual -= stack((product(rows.transpose(), means) * &basis).as_ref());
            // Means of the contrasts' products, less products of means: the covariance of the labels' contrasts.
            let contrast_means = means * &basis;
            for first in 0..contrasts {
                for second in 0..=first {
                    let variances: Vec<f64> = (0..rows.nrows())
                        .map(|row| match model {
                            ResponseModel::Linear => 1.0,
                            ResponseModel::Logistic => means[(row, 0)] * (1.0 - means[(row, 0)]),
                            ResponseModel::Multinomial { classes } => {
                                let both: f64 = (0..classes)
                                    .map(|class| basis[(class, first)] * basis[(class, second)] * means[(row, class)])
                                    .sum();
                                both - contrast_means[(row, first)] * contrast_means[(row, second)]
                            }
                        })
                        .collect();
                    let scaled =
                        Mat::from_fn(rows.nrows(), outputs, |row, output| rows[(row, output)] * variances[row]);
                    let (cross, square) = (product(scaled.transpose(), features), product(scaled.transpose(), rows));
                    let mut add = |first: usize, second: usize| {
                        let mut corner = jacobian.submatrix_mut(first * outputs, second * columns, outputs, columns);
                        corner += &cross;
                        let mut corner = covariance.submatrix_mut(first * outputs, second * outputs, outputs, outputs);
                        corner += &square * faer::Scale(1.0 / statistic.labels_per_row);
                    };
                    add(first, second);
                    if first != second {
                        add(second, first);
                    }
                }
            }
        });
        Self { parameters: parameters.clone(), residual, jacobian, covariance }
    }
}

/// `r(theta)` alone.
pub(super) fn residual(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    parameters: &Mat<f64>,
) -> Mat<f64> {
    let basis = model.basis();
    let mut residual = stack((statistic.released * &basis).as_ref());
    each_block(statistic, model, prior, parameters, |_, rows, means| {
        residual -= stack((product(rows.transpose(), means) * &basis).as_ref());
    });
    residual
}

/// Calls `visit(features, rows, means)` for blocks of rows; means has one column an output.
fn each_block(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    parameters: &Mat<f64>,
    mut visit: impl FnMut(MatRef<'_, f64>, MatRef<'_, f64>, MatRef<'_, f64>),
) {
    let weights = weights_of(parameters, model, prior);
    let mut scores = vec![0.0; model.outputs()];
    let mut first = 0;
    while first < statistic.features.nrows() {
        let count = BLOCK.min(statistic.features.nrows() - first);
        let features = statistic.features.subrows(first, count);
        let mut means = product(features, &weights);
        for row in 0..count {
            for (output, score) in scores.iter_mut().enumerate() {
                *score = means[(row, output)];
            }
            model.mean(&mut scores);
            for (output, mean) in scores.iter().enumerate() {
                means[(row, output)] = *mean;
            }
        }
        visit(features, statistic.rows.subrows(first, count), means.as_ref());
        first += count;
    }
}

/// Rows that are worked on at a time.
pub(super) const BLOCK: usize = 2_048;
