//! A release that is treated as linear in the parameters, and the posterior that it gives.

use faer::Mat;
use faer::linalg::solvers::{Llt, Solve};

use super::MapError;
use super::algebra::{dot, log_determinant, mirror_lower_half};
use super::linearised::Linearised;
use super::mixture::{Choice, Component};
use super::prior::PriorPrecision;
use crate::product::add_lower_half;
use crate::symmetric_factors::cholesky;

/// A release that is linear in the parameters: `z = r + J theta` has mean `J theta` and covariance `C`.
pub(super) struct Information {
    /// `J^T C^-1 J`.
    pub(super) information: Mat<f64>,
    /// `J^T C^-1 z`.
    pub(super) pull: Mat<f64>,
    /// `z^T C^-1 z / 2` and half the log determinant of `C`.
    pub(super) constant: f64,
}

impl Information {
    pub(super) fn new(point: &Linearised, covariance: &Llt<f64>) -> Self {
        let whitened = |matrix: &Mat<f64>| {
            let mut whitened = matrix.clone();
            covariance.L().solve_lower_triangular_in_place(whitened.as_mut());
            whitened
        };
        let observed = whitened(&(&point.residual + &point.jacobian * &point.parameters));
        let jacobian = whitened(&point.jacobian);
        let mut information = Mat::zeros(jacobian.ncols(), jacobian.ncols());
        add_lower_half(information.as_mut(), jacobian.transpose(), jacobian.as_ref());
        mirror_lower_half(information.as_mut());
        Self {
            information,
            pull: jacobian.transpose() * &observed,
            constant: dot(&observed, &observed) / 2.0 + log_determinant(covariance.L()),
        }
    }

    /// The posterior under a prior precision; its weight is the marginal likelihood.
    pub(super) fn posterior(
        &self,
        precision: &PriorPrecision,
        choice: Choice,
    ) -> Result<Component<Llt<f64>>, MapError> {
        let factor = cholesky(&(&self.information + &precision.matrix)).ok_or(MapError::Scale)?;
        let mean = factor.solve(&self.pull);
        let log_weight = choice.log_prior + dot(&self.pull, &mean) / 2.0 - self.constant - log_determinant(factor.L())
            + precision.half_log_determinant;
        Ok(Component { log_weight, choice, mean, precision: factor })
    }
}
