//! The residual of the release at some parameters, linearised there.

use std::ops::Range;

use faer::{Mat, MatRef};

use super::algebra::{mirror_lower_half, stack};
use super::prior::weights_of;
use super::row_sample::RowSample;
use super::{Prior, ResponseModel, Statistic};
use crate::product::{add_lower_half, add_product};
use crate::row_blocks::{of_row_blocks, rows_of_task};

/// Residual, its derivative and its covariance at some parameters, in contrasts.
#[derive(Clone)]
pub(super) struct Linearised {
    pub(super) parameters: Mat<f64>,
    pub(super) residual: Mat<f64>,
    pub(super) jacobian: Mat<f64>,
    pub(super) covariance: Mat<f64>,
}

impl Linearised {
    pub(super) fn at(statistic: &Statistic<'_>, model: ResponseModel, prior: &Prior, parameters: &Mat<f64>) -> Self {
        let sums = Sums::of_all(statistic, model, &weights_of(parameters, model, prior));
        let residual = stack((statistic.released * model.basis()).as_ref()) - &sums.expected;
        Self::of(statistic, parameters, residual, sums, 1.0)
    }

    /// The residual of all rows, which is given, with derivative and covariance as a sample of them has them.
    pub(super) fn near(
        statistic: &Statistic<'_>,
        sample: &RowSample,
        model: ResponseModel,
        prior: &Prior,
        parameters: &Mat<f64>,
        residual: Mat<f64>,
    ) -> Self {
        let sums = Sums::of_all(&sample.of(statistic), model, &weights_of(parameters, model, prior));
        Self::of(statistic, parameters, residual, sums, sample.rows_each())
    }

    /// Each row that was added up stands for so many.
    fn of(statistic: &Statistic<'_>, parameters: &Mat<f64>, residual: Mat<f64>, sums: Sums, rows_each: f64) -> Self {
        let outputs = sums.covariance.nrows();
        let noise = Mat::<f64>::identity(outputs, outputs) * faer::Scale(statistic.noise.powi(2));
        Self {
            parameters: parameters.clone(),
            residual,
            jacobian: sums.jacobian * faer::Scale(rows_each),
            covariance: noise + sums.covariance * faer::Scale(rows_each / statistic.labels_per_row),
        }
    }
}

/// `r(theta)` alone.
pub(super) fn residual(
    statistic: &Statistic<'_>,
    model: ResponseModel,
    prior: &Prior,
    parameters: &Mat<f64>,
) -> Mat<f64> {
    let expected = model.expected_sum(statistic.features, statistic.rows, &weights_of(parameters, model, prior));
    stack(((statistic.released - expected) * model.basis()).as_ref())
}

/// What some rows add up to, in contrasts.
struct Sums {
    /// What is released of these rows on average, without noise.
    expected: Mat<f64>,
    /// Its derivative: of the corners of two contrasts those below the diagonal, until [`Self::mirror`].
    jacobian: Mat<f64>,
    /// Its covariance with one label a row: the same corners, and below the diagonal of each.
    covariance: Mat<f64>,
}

impl Sums {
    fn of_all(statistic: &Statistic<'_>, model: ResponseModel, weights: &Mat<f64>) -> Self {
        let (rows, columns) = (statistic.features.nrows(), statistic.features.ncols());
        let (outputs, contrasts) = (statistic.rows.ncols(), model.contrasts());
        let task = rows_of_task(rows, outputs * (outputs + columns) * contrasts.pow(2));
        let sums = of_row_blocks(rows, task, |rows| Self::of(statistic, model, weights, rows));
        let mut sums = sums.into_iter().reduce(Self::joined).expect("one block at least");
        sums.mirror(contrasts);
        sums
    }

    fn of(statistic: &Statistic<'_>, model: ResponseModel, weights: &Mat<f64>, rows: Range<usize>) -> Self {
        let (basis, contrasts) = (model.basis(), model.contrasts());
        let (outputs, columns) = (statistic.rows.ncols(), statistic.features.ncols());
        let mut expected = Mat::zeros(outputs, model.outputs());
        let mut jacobian = Mat::zeros(outputs * contrasts, columns * contrasts);
        let mut covariance = Mat::zeros(outputs * contrasts, outputs * contrasts);
        let mut room = Vec::new();
        statistic.features.for_each_part_beside(statistic.rows, rows, |features, rows| {
            let means = model.means(features, weights);
            add_product(expected.as_mut(), rows.transpose(), &means);
            let contrast_means = &means * &basis;
            room.resize(rows.nrows() * outputs, 0.0);
            for first in 0..contrasts {
                for second in 0..=first {
                    let covariances = contrast_covariances(model, &means, &contrast_means, first, second);
                    for ((row, scaled), factor) in room.chunks_exact_mut(outputs).enumerate().zip(covariances) {
                        scaled.iter_mut().zip(rows.row(row).iter()).for_each(|(to, value)| *to = value * factor);
                    }
                    let scaled = MatRef::from_row_major_slice(&room, rows.nrows(), outputs).transpose();
                    let corner = jacobian.submatrix_mut(first * outputs, second * columns, outputs, columns);
                    add_product(corner, scaled, features);
                    let corner = covariance.submatrix_mut(first * outputs, second * outputs, outputs, outputs);
                    add_lower_half(corner, scaled, rows);
                }
            }
        });
        Self { expected: stack((expected * &basis).as_ref()), jacobian, covariance }
    }

    fn joined(mut self, other: Self) -> Self {
        self.expected += other.expected;
        self.jacobian += other.jacobian;
        self.covariance += other.covariance;
        self
    }

    /// Fills what lies above the diagonals: two contrasts do to each other the same.
    fn mirror(&mut self, contrasts: usize) {
        let outputs = self.covariance.nrows() / contrasts;
        for (first, second) in (0..contrasts).flat_map(|first| (0..=first).map(move |second| (first, second))) {
            mirror_lower_half(self.covariance.submatrix_mut(first * outputs, second * outputs, outputs, outputs));
        }
        for matrix in [&mut self.jacobian, &mut self.covariance] {
            let (rows, columns) = (matrix.nrows() / contrasts, matrix.ncols() / contrasts);
            for (first, second) in (0..contrasts).flat_map(|first| (0..first).map(move |second| (first, second))) {
                let corner = matrix.submatrix(first * rows, second * columns, rows, columns).to_owned();
                matrix.submatrix_mut(second * rows, first * columns, rows, columns).copy_from(corner);
            }
        }
    }
}

/// Covariance of two contrasts of the labels of each row: means of the contrasts' products, less products of means.
fn contrast_covariances(
    model: ResponseModel,
    means: &Mat<f64>,
    contrast_means: &Mat<f64>,
    first: usize,
    second: usize,
) -> Vec<f64> {
    match model {
        ResponseModel::Linear => vec![1.0; means.nrows()],
        ResponseModel::Logistic => means.col(0).iter().map(|mean| mean * (1.0 - mean)).collect(),
        ResponseModel::Multinomial { classes } => {
            let of_both = contrast_means.col(first).iter().zip(contrast_means.col(second).iter());
            let mut covariances: Vec<f64> = of_both.map(|(first, second)| -first * second).collect();
            let basis = model.basis();
            for class in 0..classes {
                let both = basis[(class, first)] * basis[(class, second)];
                covariances.iter_mut().zip(means.col(class).iter()).for_each(|(sum, mean)| *sum += both * mean);
            }
            covariances
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;

    /// Over several blocks of several tasks.
    #[test]
    fn sums_are_those_of_one_row_after_another() {
        let (rows, columns, outputs, labels_per_row, noise) = (6_149, 3, 2, 4.0, 0.5);
        let mut sequence = FixedSequence::new(8);
        let mut normal = |rows, columns| Mat::from_fn(rows, columns, |_, _| sequence.next_normal());
        let (features, vectors) = (normal(rows, columns), normal(rows, outputs));
        for model in [ResponseModel::Linear, ResponseModel::Logistic, ResponseModel::Multinomial { classes: 3 }] {
            let (basis, contrasts) = (model.basis(), model.contrasts());
            let (released, parameters) = (normal(outputs, model.outputs()), normal(columns * contrasts, 1));
            let statistic = Statistic {
                features: features.as_ref().into(),
                rows: vectors.as_ref().into(),
                released: released.as_ref(),
                noise,
                labels_per_row,
                square: None,
            };
            let prior = Prior::new(features.as_ref(), model, None);
            let weights = weights_of(&parameters, model, &prior);
            let mut of_rows = stack((&released * &basis).as_ref());
            let mut jacobian = Mat::<f64>::zeros(outputs * contrasts, columns * contrasts);
            let mut covariance =
                Mat::<f64>::identity(outputs * contrasts, outputs * contrasts) * faer::Scale(noise * noise);
            for row in 0..rows {
                let scores = features.subrows(row, 1) * &weights;
                let mut means: Vec<f64> = (0..model.outputs()).map(|output| scores[(0, output)]).collect();
                model.mean(&mut means);
                let of_labels = |output: usize, other: usize| match model {
                    ResponseModel::Linear => 1.0,
                    ResponseModel::Logistic => means[0] * (1.0 - means[0]),
                    ResponseModel::Multinomial { .. } => {
                        means[output] * (f64::from(u8::from(output == other)) - means[other])
                    }
                };
                let of_labels = Mat::from_fn(model.outputs(), model.outputs(), of_labels);
                let of_contrasts = basis.transpose() * of_labels * &basis;
                let means = Mat::from_fn(1, model.outputs(), |_, output| means[output]) * &basis;
                for (first, place) in (0..contrasts).flat_map(|first| (0..outputs).map(move |place| (first, place))) {
                    let (at, vector) = (first * outputs + place, vectors[(row, place)]);
                    of_rows[(at, 0)] -= vector * means[(0, first)];
                    for second in 0..contrasts {
                        let slope = vector * of_contrasts[(first, second)];
                        for column in 0..columns {
                            jacobian[(at, second * columns + column)] += slope * features[(row, column)];
                        }
                        for other in 0..outputs {
                            covariance[(at, second * outputs + other)] +=
                                slope * vectors[(row, other)] / labels_per_row;
                        }
                    }
                }
            }
            let point = Linearised::at(&statistic, model, &prior, &parameters);
            let alone = residual(&statistic, model, &prior, &parameters);
            for (found, expected) in [
                (&point.residual, &of_rows),
                (&alone, &of_rows),
                (&point.jacobian, &jacobian),
                (&point.covariance, &covariance),
            ] {
                assert!((found - expected).norm_max() < 1e-8 * expected.norm_max(), "{model:?}");
            }
        }
    }
}
