//! What the prior alone says of directions in which public columns hardly differ.
//!
//! The prior holds one size for all effects. Where columns are nearly the same, a large effect of one and the opposite of another make a small
//! score, and neither a release nor that size tells how large they are: noise hides them, and other effects have decided what the size is. For errors
//! the prior is as wide there as scores allow, effects that make scores of one size in every direction:
//! ```text
//!   R = V L V^T     correlations of the columns, but for those that are the same in every row
//!   o_j = 1 where l_j >= 1/2 or nothing, else max(2 l_j, 1e-4)
//!   D   = G^(1/2) V (1 - o) V^T G^(1/2) = F F^T,  G the columns' variances of the prior:   P_o = P - D/tau²
//!   H_o = H - D/tau²,  a = H_o^-1 D m/tau²:   added to the covariance   H_o^-1 - H^-1 + a a^T
//!   Z   = H^-1 F,  N = tau² - F^T Z:          H_o^-1 - H^-1 = Z N^-1 Z^T,  a = Z N^-1 F^T m
//! ```
//! with the posterior `m`, `H` under each scale of the prior, on average over them, of effects of one size. `m + a` is the mean under the wider prior.
//!
//! Where columns do not differ at all no table could tell how an effect is shared among them: that the prior shares it out is a convention, and has no error.

use faer::Mat;
use faer::linalg::solvers::Solve;

use super::algebra::repeat;
use super::mixture::{Component, Mixture, Precision};
use super::{MapError, Prior, ResponseModel};
use crate::public_design::symmetric;
use crate::symmetric_factors::{cholesky, eigen};

/// Directions in which columns hardly differ.
pub(super) struct Collinearity {
    /// `F`, of all contrasts: a column for each direction.
    freed: Mat<f64>,
}

impl Collinearity {
    /// Of columns with these sums of products over so many rows, `X^T X`.
    pub(super) fn of(gram: &Mat<f64>, rows: usize, model: ResponseModel, prior: &Prior) -> Result<Self, MapError> {
        let products = gram * faer::Scale(1.0 / rows as f64) - &prior.mean_row * prior.mean_row.transpose();
        let columns = prior.deviations.len();
        let correlations = Mat::from_fn(columns, columns, |row, column| {
            let deviations = prior.deviations[row] * prior.deviations[column];
            if row == column || deviations == 0.0 {
                f64::from(u8::from(row == column))
            } else {
                (products[(row, column)] / deviations).clamp(-1.0, 1.0)
            }
        });
        let eigen = eigen(symmetric(&correlations).as_ref()).ok_or(MapError::Scale)?;
        let (values, vectors) = (eigen.S().column_vector(), eigen.U());
        let narrow: Vec<usize> = (0..columns).filter(|direction| kept(values[*direction]) < 1.0).collect();
        let freed = Mat::from_fn(columns, narrow.len(), |column, place| {
            let direction = narrow[place];
            // A constant column is a direction of its own, and not a narrow one.
            vectors[(column, direction)] * (prior.spread_square[column] * (1.0 - kept(values[direction]))).sqrt()
        });
        Ok(Self { freed: repeat(&freed, model.contrasts()) })
    }

    /// What is added to the covariance of posteriors.
    pub(super) fn added<P: Precision>(&self, posteriors: &Mixture<P>) -> Result<Mat<f64>, MapError> {
        let size = self.freed.nrows();
        let mut sum = Mat::zeros(size, size);
        if self.freed.ncols() > 0 {
            for (share, posterior) in posteriors.weighted() {
                sum += self.added_to(posterior)? * faer::Scale(share);
            }
        }
        Ok(sum)
    }

    fn added_to<P: Precision>(&self, posterior: &Component<P>) -> Result<Mat<f64>, MapError> {
        let solved = posterior.precision.solved(self.freed.as_ref());
        let directions = self.freed.ncols();
        let left = Mat::<f64>::identity(directions, directions) * faer::Scale(posterior.choice.tau.powi(2))
            - self.freed.transpose() * &solved;
        let left = cholesky(&symmetric(&left)).ok_or(MapError::Scale)?;
        let apart = &solved * left.solve(self.freed.transpose() * &posterior.mean);
        let mut root = solved.transpose().to_owned();
        left.L().solve_lower_triangular_in_place(root.as_mut());
        Ok(root.transpose() * &root + &apart * apart.transpose())
    }
}

/// The share of the prior's precision that is kept in a direction of this variance, where a column's is 1.
fn kept(variance: f64) -> f64 {
    if (SAME..NARROW).contains(&variance) { (variance / NARROW).max(KEPT_LEAST) } else { 1.0 }
}

/// Variance of a direction below which columns are the same but for rounding, and from which on the prior is as it is.
const SAME: f64 = 1e-9;
const NARROW: f64 = 0.5;
/// Least share of the prior's precision: errors are at most a hundred times as large.
const KEPT_LEAST: f64 = 1e-4;

#[cfg(test)]
mod tests {
    use super::super::effect_sizes::Effects;
    use super::super::golden;
    use super::super::mixture::Choice;
    use super::*;

    fn of(features: &Mat<f64>, model: ResponseModel, prior: &Prior) -> Collinearity {
        let gram = features.transpose() * features;
        Collinearity::of(&gram, features.nrows(), model, prior).expect("definite")
    }

    /// The intercept, two columns that are nearly the same, a rare flag, and another column.
    #[test]
    fn errors_of_nearly_equal_columns_are_those_of_a_wider_prior() {
        let text = include_str!("../../../../testdata/golden/collinearity.json");
        let golden: serde_json::Value = serde_json::from_str(text).expect("golden values");
        let features = Mat::from_fn(40, 5, |row, column| match column {
            0 => 1.0,
            1 => (row % 7) as f64 / 6.0,
            2 => (row % 7) as f64 / 6.0 + 0.1 * (row * row % 11) as f64 / 10.0,
            3 => f64::from(u8::from(row == 3)),
            _ => (row * 3 % 5) as f64 / 4.0,
        });
        let prior = Prior::new(features.as_ref(), ResponseModel::Linear, None);
        let prior = Prior { mean_score_deviation: 3.0, ..prior };
        let precision = features.transpose() * &features * faer::Scale(2.0) + prior.precision(0.3);
        let mean = [0.2, 1.0, -0.8, 0.1, 0.05];
        let posterior = Component {
            log_weight: 0.0,
            choice: Choice { tau: 0.3, effects: Effects::OfOneSize, variance: 1.0, log_prior: 0.0 },
            mean: Mat::from_fn(5, 1, |row, _| mean[row]),
            precision: cholesky(&precision).expect("definite"),
        };
        let added = of(&features, ResponseModel::Linear, &prior).added(&Mixture(vec![posterior])).expect("definite");
        let expected = golden["added"].as_array().expect("rows").iter().flat_map(|row| row.as_array().expect("a row"));
        let expected: Vec<f64> = expected.map(|number| number.as_f64().expect("a number")).collect();
        golden::assert_close(added.as_ref(), &expected, 1e-9);
    }

    /// Columns that differ, a constant one, one that is there twice, and two flags that exclude each other: what no table could tell stays a convention.
    #[test]
    fn columns_that_differ_and_columns_that_do_not_keep_their_prior() {
        let features = Mat::from_fn(70, 7, |row, column| match column {
            0 => 1.0,
            1 => 0.25,
            2 | 3 => (row % 7) as f64 / 6.0,
            4 => (row * row % 11) as f64 / 10.0,
            5 => f64::from(u8::from(row % 2 == 0)),
            _ => f64::from(u8::from(row % 2 == 1)),
        });
        let model = ResponseModel::Multinomial { classes: 3 };
        let prior = Prior::new(features.as_ref(), model, None);
        let found = of(&features, model, &prior);
        assert_eq!(found.freed.shape(), (14, 0));
    }

    #[test]
    fn a_prior_is_wider_the_less_columns_differ() {
        let shares = [0.0, 0.9e-9, 1.1e-9, 4e-5, 6e-5, 0.25, 0.499, 0.5, 3.0].map(kept);
        let expected = [1.0, 1.0, 1e-4, 1e-4, 1.2e-4, 0.5, 0.998, 1.0, 1.0];
        for (found, expected) in shares.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-12, "{shares:?}");
        }
    }
}
