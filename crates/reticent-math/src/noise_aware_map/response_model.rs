//! How a label depends on its score, and the contrasts that are fitted of it.

use faer::{Mat, MatRef};

use crate::product::{add_product, product};
use crate::public_rows::PublicRows;

/// How a label depends on its score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseModel {
    /// Mean = score, one variance for all rows. Labels are in units in which they lie in `[-1, 1]`.
    Linear,
    /// Probability = `1 / (1 + e^-score)` of label 1, else 0.
    Logistic,
    /// Softmax of one score a class; labels are indicators.
    Multinomial {
        /// Number of classes, at least 2.
        classes: usize,
    },
}

impl ResponseModel {
    /// Scores a row, and columns of the released statistic.
    #[must_use]
    pub fn outputs(self) -> usize {
        match self {
            Self::Linear | Self::Logistic => 1,
            Self::Multinomial { classes } => classes,
        }
    }

    /// Free scores a row.
    pub(super) fn contrasts(self) -> usize {
        match self {
            Self::Linear | Self::Logistic => 1,
            Self::Multinomial { classes } => classes - 1,
        }
    }

    /// `U`, outputs × contrasts: orthonormal columns, each orthogonal to the constant (Helmert).
    pub(super) fn basis(self) -> Mat<f64> {
        match self {
            Self::Linear | Self::Logistic => Mat::identity(1, 1),
            Self::Multinomial { classes } => Mat::from_fn(classes, classes - 1, |class, contrast| {
                let before = (contrast + 1) as f64;
                let scale = (before * (before + 1.0)).sqrt();
                match class.cmp(&(contrast + 1)) {
                    std::cmp::Ordering::Less => 1.0 / scale,
                    std::cmp::Ordering::Equal => -before / scale,
                    std::cmp::Ordering::Greater => 0.0,
                }
            }),
        }
    }

    /// What vectors times labels add up to on average, `V^T p`: the vectors' columns × outputs.
    pub(crate) fn expected_sum(
        self,
        features: PublicRows<'_>,
        vectors: PublicRows<'_>,
        weights: &Mat<f64>,
    ) -> Mat<f64> {
        features.sum_beside(vectors, (vectors.ncols(), self.outputs()), |sum, features, vectors| {
            add_product(sum, vectors.transpose(), self.means(features, weights));
        })
    }

    /// Means of rows' labels, rows × outputs, from their features and weights, columns × outputs.
    pub(super) fn means(self, features: MatRef<'_, f64>, weights: &Mat<f64>) -> Mat<f64> {
        let mut means = product(features, weights);
        let mut of_row = vec![0.0; self.outputs()];
        for row in 0..means.nrows() {
            of_row.iter_mut().zip(means.row(row).iter()).for_each(|(place, score)| *place = *score);
            self.mean(&mut of_row);
            means.row_mut(row).iter_mut().zip(&of_row).for_each(|(place, mean)| *place = *mean);
        }
        means
    }

    /// Means of a row's labels, from its scores, in place.
    pub fn mean(self, scores: &mut [f64]) {
        match self {
            Self::Linear => {}
            Self::Logistic => scores[0] = 1.0 / (1.0 + (-scores[0]).exp()),
            Self::Multinomial { .. } => {
                let largest = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let mut total = 0.0;
                for score in scores.iter_mut() {
                    *score = (*score - largest).exp();
                    total += *score;
                }
                scores.iter_mut().for_each(|score| *score /= total);
            }
        }
    }
}
