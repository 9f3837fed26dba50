//! Reference numbers by `testdata/golden/label_regression.py`, and the data that they are of.

#![allow(clippy::unreadable_literal, reason = "as printed")]

use faer::{Mat, MatRef};

use super::Statistic;
use crate::public_rows::PublicRows;

pub(crate) const OPTIMAL_COVARIANCE_TRACE: f64 = 0.796095814307775;
pub(crate) const LOGISTIC_MODE: [f64; 3] = [0.49254832114489056, -0.7570714436464614, -0.061240282738113744];
pub(crate) const LOGISTIC_LOG_EVIDENCE: f64 = -4.681008290681614;
/// Class after class.
pub(crate) const MULTINOMIAL_MODE: [f64; 9] = [
    0.3630635513283779,
    0.32269089335357615,
    -0.8396913414129052,
    0.03570428379080221,
    -0.11797146343739383,
    0.21993914845695312,
    -0.3987678351191801,
    -0.20471942991618233,
    0.6197521929559521,
];
pub(crate) const DESCENT: [f64; 3] = [0.48646273852128524, -0.7365518090201411, -0.06443363430165285];
pub(crate) const LINEAR_MEAN: [f64; 3] = [0.06198728254894593, -0.037770685641456116, -0.01922355650935693];
pub(crate) const LINEAR_DEVIATION: [f64; 3] = [0.3084990734294913, 0.3917312551651103, 0.471636450162564];
pub(crate) const LINEAR_LOG_EVIDENCE: f64 = -4.770645744534095;
pub(crate) const TAU: f64 = 0.7;
const NOISE: f64 = 1.5;

pub(crate) struct Data {
    pub(crate) features: Mat<f64>,
    pub(crate) rows: Mat<f64>,
    pub(crate) longest: f64,
}

pub(crate) fn data() -> Data {
    let features = Mat::from_fn(40, 3, |row, column| match column {
        0 => 1.0,
        1 => (row % 7) as f64 / 6.0,
        _ => (row * row % 11) as f64 / 10.0,
    });
    let longest = PublicRows::from(features.as_ref()).longest_row();
    let rows = &features * faer::Scale(1.0 / longest);
    Data { features, rows, longest }
}

impl Data {
    fn release(&self, outputs: usize, label: impl Fn(usize, usize) -> f64, noise: &[f64]) -> Mat<f64> {
        let labels = Mat::from_fn(40, outputs, label);
        self.rows.transpose() * labels + Mat::from_fn(3, outputs, |row, output| noise[row * outputs + output])
    }

    pub(crate) fn logistic_release(&self) -> Mat<f64> {
        self.release(1, |row, _| f64::from(row * 5 % 8 < 4), &[1.0, -0.5, 0.75])
    }

    pub(crate) fn multinomial_release(&self) -> Mat<f64> {
        let noise = [1.0, -0.5, 0.25, 0.5, 0.0, -1.0, -0.25, 0.75, 1.5];
        self.release(3, |row, class| f64::from((row * 3 + row / 5) % 3 == class), &noise)
    }

    pub(crate) fn linear_release(&self) -> Mat<f64> {
        self.release(1, |row, _| (row as f64).sin(), &[0.3, -0.2, 0.1])
    }

    pub(crate) fn statistic<'a>(&'a self, released: &'a Mat<f64>) -> Statistic<'a> {
        statistic(&self.features, &self.rows, released, NOISE)
    }
}

/// A release about one label a row, of which no sum of squares is known.
pub(crate) fn statistic<'a>(
    features: &'a Mat<f64>,
    rows: &'a Mat<f64>,
    released: &'a Mat<f64>,
    noise: f64,
) -> Statistic<'a> {
    let (features, rows) = (features.as_ref().into(), rows.as_ref().into());
    Statistic { features, rows, released: released.as_ref(), noise, labels_per_row: 1.0, square: None }
}

pub(crate) fn assert_close(found: MatRef<'_, f64>, expected: &[f64], tolerance: f64) {
    assert_eq!(found.nrows() * found.ncols(), expected.len());
    for (place, expected) in expected.iter().enumerate() {
        let found = found[(place % found.nrows(), place / found.nrows())];
        assert!((found - expected).abs() < tolerance, "place {place}: {found} against {expected}");
    }
}
