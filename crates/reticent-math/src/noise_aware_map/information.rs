//! A release that is treated as linear in the parameters, and the posterior that it gives.

use faer::Mat;
use faer::linalg::solvers::{Llt, Solve};

use super::MapError;
use super::algebra::{dot, log_determinant};
use super::linearised::Linearised;
use super::mixture::{Choice, Component};
use crate::public_design::symmetric;
use crate::symmetric_factors::cholesky;

/// A release that is linear in the parameters: `z = r + J theta` has mean `J theta` and covariance `C`.
pub(super) struct Information {
    /// `J^T C^-1 J`.
    information: Mat<f64>,
    /// `J^T C^-1 z`.
    pull: Mat<f64>,
    /// `z^T C^-1 z / 2` and half the log determinant of `C`.
    constant: f64,
}

impl Information {
    pub(super) fn new(point: &Linearised, covariance: &Llt<f64>) -> Self {
        let observed = &point.residual + &point.jacobian * &point.parameters;
        let weighted = covariance.solve(&point.jacobian);
        Self {
            information: symmetric(&(point.jacobian.transpose() * &weighted)),
            pull: weighted.transpose() * &observed,
            constant: dot(&observed, &covariance.solve(&observed)) / 2.0 + log_determinant(covariance.L()),
        }
    }

    /// The posterior under a prior precision; its weight is the marginal likelihood.
    pub(super) fn posterior(&self, precision: &Mat<f64>, choice: Choice) -> Result<Component, MapError> {
        let factor = cholesky(&symmetric(&(&self.information + precision))).ok_or(MapError::Scale)?;
        let prior_factor = cholesky(precision).ok_or(MapError::Scale)?;
        let mean = factor.solve(&self.pull);
        let log_weight = choice.log_prior + dot(&self.pull, &mean) / 2.0 - self.constant - log_determinant(factor.L())
            + log_determinant(prior_factor.L());
        Ok(Component { log_weight, choice, mean, precision: factor })
    }
}
