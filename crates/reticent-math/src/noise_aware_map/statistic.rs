//! The released statistic, with the public rows that it belongs to.

use faer::MatRef;

use super::{MapError, ResponseModel};
use crate::public_rows::PublicRows;

/// A released number and the standard deviation of its noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noisy {
    /// The number.
    pub value: f64,
    /// Standard deviation of its noise.
    pub noise: f64,
}

/// What was released about the labels, and the public rows that it belongs to.
#[derive(Clone, Copy, Debug)]
pub struct Statistic<'a> {
    /// Public features `X`, n × k, the intercept's column of ones among them.
    pub features: PublicRows<'a>,
    /// Public vectors `D`, n × m: exactly those that the labels were multiplied by, in any unit.
    pub rows: PublicRows<'a>,
    /// `t = D^T Y + noise`, m × outputs, in the unit of `rows` times the unit of the labels.
    pub released: MatRef<'a, f64>,
    /// Standard deviation `S` of the noise of one coordinate, same unit.
    pub noise: f64,
    /// How many independent labels a row's label is the mean of: 1, or the number of parties that voted on it. Divides `V`
    /// in `C`.
    pub labels_per_row: f64,
    /// Linear model only: `sum y^2`, if it was released. It makes the variance of the labels known.
    pub square: Option<Noisy>,
}

impl Statistic<'_> {
    pub(super) fn check(&self, model: ResponseModel) -> Result<(), MapError> {
        if self.features.nrows() != self.rows.nrows() || self.features.nrows() == 0 {
            let message = format!("{} feature rows and {} vectors", self.features.nrows(), self.rows.nrows());
            return Err(MapError::Shape(message));
        }
        if self.released.shape() != (self.rows.ncols(), model.outputs()) {
            return Err(MapError::Shape(format!(
                "{} x {} released numbers where {} x {} belong",
                self.released.nrows(),
                self.released.ncols(),
                self.rows.ncols(),
                model.outputs()
            )));
        }
        let noisy = |square: Noisy| square.value.is_finite() && square.noise.is_finite() && square.noise > 0.0;
        let finite_values = self.features.is_finite() && self.rows.is_finite() && self.released.norm_l2().is_finite();
        let positive = |number: f64| number.is_finite() && number > 0.0;
        let usable = positive(self.noise) && positive(self.labels_per_row) && self.square.is_none_or(noisy);
        if !(finite_values && usable) {
            return Err(MapError::NotFinite);
        }
        Ok(())
    }
}
