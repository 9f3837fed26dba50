//! The questions that may be asked of private rows: a closed list, each with its own sensitivity.
//!
//! A [`SumQuery`] is data: what is added up over the rows, with every public value that it needs. Its [`QueryShape`] is the
//! part that fixes size and sensitivity; it is known when a fit is planned, before any row is read or any weight is fitted.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::adjacency::{Adjacency, PrivacyUnit, Relation};
use crate::encoding::{Encoding, LATTICE_NORM_MAX};
use crate::units::SensitivitySquared;

/// Steps of a slope: a derivative of the loss in `[-1, 1]` becomes an integer in `[-2048, 2048]`.
///
/// 11 bits, because 32 products with coordinates up to 32767 then fit an i32.
pub const SLOPE_MAX: i32 = 2048;

/// Steps that one counted row adds: counts are kept on a fine lattice so that the noise scale can be fine too.
pub const COUNT_STEP: i64 = 1 << 20;

/// Steps of one unit of log loss.
pub const LOG_LOSS_STEP: i64 = 1 << 20;

/// A row's log loss is capped here, in nats, when it is added up for a private evaluation.
pub const LOG_LOSS_CAP: u32 = 4;

/// Largest declared maximum of rows: `2^36 · 2048 · 32767 < 2^63`, so that even a 64-bit engine does not overflow.
pub const ROWS_MAX_LIMIT: u64 = 1 << 36;

/// Convex losses of a linear score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Loss {
    /// `ln(1 + e^z) - y z`, slope `sigmoid(z) - y`.
    Logistic,
}

/// What is added up, without the public values that do not change the sensitivity.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Map {
    /// Rows by class, in steps of [`COUNT_STEP`]: one coordinate a class.
    ClassCount {
        /// Declared classes, at least 2.
        classes: u32,
    },
    /// Slope of the loss times the lattice row: one coordinate a column.
    Gradient {
        /// The loss.
        loss: Loss,
        /// Encoded columns, the intercept among them.
        columns: u32,
    },
    /// Usable rows, and those whose class the model gets right: two coordinates in steps of [`COUNT_STEP`].
    CorrectCount,
    /// Log loss capped at [`LOG_LOSS_CAP`], in steps of [`LOG_LOSS_STEP`]: one coordinate.
    LogLoss,
    /// Rows by predicted probability and class: `2 · buckets` coordinates, class 0 first.
    ScoreHistogram {
        /// Equal-width buckets of the probability of class 1.
        buckets: u32,
    },
}

/// Size and sensitivity of a query, and all that the ledger has to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "ShapeDocument", into = "ShapeDocument")]
pub struct QueryShape {
    map: Map,
    unit: PrivacyUnit,
    rows_max: u64,
}

/// A query that cannot be built.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum QueryError {
    /// The declared maximum of rows does not exclude overflow.
    #[error("rows_max must be between 1 and {ROWS_MAX_LIMIT}, not {0}: a larger table could overflow a 64-bit sum")]
    RowsMax(u64),
    /// A privacy unit that contributes no row, or so many that the square of the sensitivity does not fit.
    #[error("rows_max of the privacy unit must be between 1 and 1048576, not {0}")]
    UnitRows(u32),
    /// Fewer classes than a label can have.
    #[error("a count by class needs at least 2 classes, not {0}")]
    Classes(u32),
    /// A query with nothing to add up.
    #[error("a query needs between 1 and 1048576 coordinates, not {0}")]
    Coordinates(u32),
    /// Public values that do not fit the shape.
    #[error("the public values have {found} columns where the query has {expected}")]
    Columns {
        /// Columns of the shape.
        expected: usize,
        /// Columns of the public values.
        found: usize,
    },
}

impl QueryShape {
    /// Checks that no table within `rows_max` overflows.
    ///
    /// # Errors
    /// [`QueryError`] says which public figure is out of range.
    pub fn new(map: Map, unit: PrivacyUnit, rows_max: u64) -> Result<Self, QueryError> {
        if !(1..=ROWS_MAX_LIMIT).contains(&rows_max) {
            return Err(QueryError::RowsMax(rows_max));
        }
        if !(1..=1 << 20).contains(&unit.rows_max()) {
            return Err(QueryError::UnitRows(unit.rows_max()));
        }
        if let Map::ClassCount { classes: classes @ (0 | 1) } = map {
            return Err(QueryError::Classes(classes));
        }
        let shape = Self { map, unit, rows_max };
        if !(1..=1 << 20).contains(&shape.coordinates()) {
            return Err(QueryError::Coordinates(shape.coordinates()));
        }
        Ok(shape)
    }

    /// What is added up.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// Whose rows are bounded together.
    #[must_use]
    pub fn unit(&self) -> &PrivacyUnit {
        &self.unit
    }

    /// Number of integers that the sum has.
    #[must_use]
    pub fn coordinates(&self) -> u32 {
        match self.map {
            Map::LogLoss => 1,
            Map::CorrectCount => 2,
            Map::ClassCount { classes } => classes,
            Map::Gradient { columns, .. } => columns,
            Map::ScoreHistogram { buckets } => buckets.saturating_mul(2),
        }
    }

    /// Square of the L2 sensitivity under a relation, in lattice units; `None` when there is no finite bound.
    ///
    /// ```text
    ///   one row:   ||(rows, correct)||² <= 2 · 2^40      |loss| <= 4 · 2^20      ||counts by cell|| <= 2^20
    ///              ||slope · row|| <= 2048 · 32767
    ///   a unit of m rows, with one row's norm at most b, and |b - b'| the most that one row can move:
    ///     add-remove  m b        replace  m |b - b'|        label  m |b - b'| over labels only        party  none
    /// ```
    /// Guarantee: for tables that differ in one unit of `relation`, the exact sums differ by at most this, in L2.
    /// Source: derived at row F1 of `docs/formulas.md`.
    /// Edges: a unit other than the query's own has no bound here (`None`), nor has a whole party.
    #[must_use]
    pub fn sensitivity(&self, relation: &Relation) -> Option<SensitivitySquared> {
        if relation.unit != self.unit {
            return None;
        }
        let row_square = match relation.adjacency {
            Adjacency::AddRemove => self.row_norm_square(),
            Adjacency::Replace => self.row_change_square(),
            Adjacency::Label => self.label_change_square(),
            Adjacency::Party => return None,
        };
        let rows = u128::from(self.unit.rows_max());
        Some(SensitivitySquared::new(rows * rows * row_square))
    }

    /// Square of the largest norm of one row's contribution.
    fn row_norm_square(&self) -> u128 {
        let count = COUNT_STEP as u128;
        match self.map {
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } => count * count,
            Map::CorrectCount => 2 * count * count,
            Map::LogLoss => (LOG_LOSS_STEP as u128 * u128::from(LOG_LOSS_CAP)).pow(2),
            Map::Gradient { loss: Loss::Logistic, .. } => (SLOPE_MAX as u128 * LATTICE_NORM_MAX as u128).pow(2),
        }
    }

    /// Square of the most that the contribution of one row moves when the row is replaced by any other.
    fn row_change_square(&self) -> u128 {
        match self.map {
            // All contributions lie in the positive orthant with coordinates up to the step: a row with an unusable
            // label counts nothing, so a replaced row can still move a count by one.
            Map::CorrectCount | Map::LogLoss => self.row_norm_square(),
            // From one cell to another.
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } => 2 * self.row_norm_square(),
            // From c·x to -c·x.
            Map::Gradient { loss: Loss::Logistic, .. } => 4 * self.row_norm_square(),
        }
    }

    /// Square of the most that the contribution of one row moves when only its label changes.
    fn label_change_square(&self) -> u128 {
        match self.map {
            Map::CorrectCount | Map::LogLoss => self.row_norm_square(),
            Map::ClassCount { .. } | Map::ScoreHistogram { .. } => 2 * self.row_norm_square(),
            // s·x to (s - 2048)·x with 0 <= s <= 2048; to 0 when the label becomes unusable.
            Map::Gradient { loss: Loss::Logistic, .. } => self.row_norm_square(),
        }
    }
}

#[derive(Serialize, Deserialize)]
struct ShapeDocument {
    map: Map,
    unit: PrivacyUnit,
    rows_max: u64,
}

impl TryFrom<ShapeDocument> for QueryShape {
    type Error = QueryError;
    fn try_from(document: ShapeDocument) -> Result<Self, QueryError> {
        Self::new(document.map, document.unit, document.rows_max)
    }
}

impl From<QueryShape> for ShapeDocument {
    fn from(shape: QueryShape) -> Self {
        Self { map: shape.map, unit: shape.unit, rows_max: shape.rows_max }
    }
}

/// Weights of a linear score for one pass: 16-bit integers and one power of two, from public weights alone.
///
/// `||weights||_2 <= 65535`, so that by Cauchy-Schwarz every partial sum of `weights · row` stays below `2^31` for a row of
/// norm at most 32767: a 32-bit dot product is exact in any order.
#[derive(Clone, Debug, PartialEq)]
pub struct PassWeights {
    weights: Vec<i16>,
    /// A power of two: `weight ≈ step · weights[j]`.
    step: f32,
}

/// Bound on the norm of [`PassWeights`] in their own steps.
const PASS_WEIGHTS_NORM_MAX: f64 = 65_535.0;

impl PassWeights {
    /// For a query without a score.
    #[must_use]
    pub fn none() -> Self {
        Self { weights: Vec::new(), step: 1.0 }
    }

    /// Rounds public weights to the finest power-of-two grid that fits. NaN counts as zero.
    #[must_use]
    pub fn quantise(weights: &[f64]) -> Self {
        let finite = |weight: f64| if weight.is_nan() { 0.0 } else { weight.clamp(-1e15, 1e15) };
        let norm = weights.iter().map(|weight| finite(*weight).powi(2)).sum::<f64>().sqrt();
        let largest = weights.iter().map(|weight| finite(*weight).abs()).fold(0.0, f64::max);
        // Rounding adds at most half a step a coordinate.
        let rounding = 0.5 * (weights.len() as f64).sqrt() + 1.0;
        let needed = (norm / (PASS_WEIGHTS_NORM_MAX - rounding)).max(largest / (f64::from(LATTICE_NORM_MAX) - 0.5));
        let exponent = needed.max(2f64.powi(-100)).log2().ceil() as i32;
        let step = 2f64.powi(exponent);
        let weights: Vec<i16> = weights.iter().map(|weight| (finite(*weight) / step).round() as i16).collect();
        let square: u64 = weights.iter().map(|weight| u64::from(weight.unsigned_abs()).pow(2)).sum();
        assert!(
            square as f64 <= PASS_WEIGHTS_NORM_MAX * PASS_WEIGHTS_NORM_MAX,
            "the step was chosen so that this holds"
        );
        Self { weights, step: step as f32 }
    }

    /// The integers.
    #[must_use]
    pub fn weights(&self) -> &[i16] {
        &self.weights
    }

    /// What one integer step is worth; a power of two.
    #[must_use]
    pub fn step(&self) -> f32 {
        self.step
    }
}

/// One question: what is added up over the rows.
#[derive(Clone, Debug)]
pub struct SumQuery {
    shape: QueryShape,
    encoding: Arc<Encoding>,
    weights: PassWeights,
}

impl SumQuery {
    /// A question with its public values: how codes become columns, and the weights of the score
    /// ([`PassWeights::none`] for a plain count).
    ///
    /// # Errors
    /// [`QueryError::Columns`] when encoding or weights do not have the shape's columns.
    pub fn new(shape: QueryShape, encoding: Arc<Encoding>, weights: PassWeights) -> Result<Self, QueryError> {
        let encoded = encoding.coding().columns().len();
        let (columns, weighted) = match *shape.map() {
            Map::ClassCount { .. } => (encoded, 0),
            Map::Gradient { columns, .. } => (columns as usize, columns as usize),
            Map::CorrectCount | Map::LogLoss | Map::ScoreHistogram { .. } => (encoded, encoded),
        };
        for (expected, found) in [(columns, encoded), (weighted, weights.weights.len())] {
            if expected != found {
                return Err(QueryError::Columns { expected, found });
            }
        }
        Ok(Self { shape, encoding, weights })
    }

    /// Size and sensitivity.
    #[must_use]
    pub fn shape(&self) -> &QueryShape {
        &self.shape
    }

    /// Square of the L2 sensitivity: see [`QueryShape::sensitivity`].
    #[must_use]
    pub fn sensitivity(&self, relation: &Relation) -> Option<SensitivitySquared> {
        self.shape.sensitivity(relation)
    }

    /// How codes become columns; shared by all passes of a fit.
    #[must_use]
    pub fn encoding(&self) -> &Arc<Encoding> {
        &self.encoding
    }

    /// Weights of the score.
    #[must_use]
    pub fn weights(&self) -> &PassWeights {
        &self.weights
    }

    /// What one integer of the sum is worth: counts in rows, losses in nats, gradients in the units of a contribution.
    #[must_use]
    pub fn sum_step(&self) -> f64 {
        match self.shape.map {
            Map::ClassCount { .. } | Map::CorrectCount | Map::ScoreHistogram { .. } => 1.0 / COUNT_STEP as f64,
            Map::LogLoss => 1.0 / LOG_LOSS_STEP as f64,
            Map::Gradient { .. } => self.encoding.contribution_step() / f64::from(SLOPE_MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shape(map: Map) -> QueryShape {
        QueryShape::new(map, PrivacyUnit::Row, 1000).expect("small")
    }

    fn under(shape: &QueryShape, adjacency: Adjacency) -> Option<u128> {
        let relation = Relation { unit: shape.unit().clone(), adjacency };
        shape.sensitivity(&relation).map(SensitivitySquared::get)
    }

    #[test]
    fn gradient_sensitivity_follows_the_table() {
        let gradient = shape(Map::Gradient { loss: Loss::Logistic, columns: 5 });
        let once = (2048u128 * 32767).pow(2);
        assert_eq!(under(&gradient, Adjacency::AddRemove), Some(once));
        assert_eq!(under(&gradient, Adjacency::Replace), Some(4 * once));
        assert_eq!(under(&gradient, Adjacency::Label), Some(once));
        assert_eq!(under(&gradient, Adjacency::Party), None);
    }

    #[test]
    fn a_unit_of_rows_multiplies_the_sensitivity() {
        let unit = PrivacyUnit::Column { column: "patient".to_owned(), rows_max: 4 };
        let grouped = QueryShape::new(Map::ClassCount { classes: 2 }, unit, 1000).expect("small");
        assert_eq!(under(&grouped, Adjacency::AddRemove), Some(16 * (1 << 40)));
        let by_row = Relation { unit: PrivacyUnit::Row, adjacency: Adjacency::AddRemove };
        assert_eq!(grouped.sensitivity(&by_row), None, "another unit than the query's own has no bound");
    }

    #[test]
    fn shapes_that_could_overflow_are_refused() {
        let build = |rows_max| QueryShape::new(Map::LogLoss, PrivacyUnit::Row, rows_max);
        assert_eq!(build(0), Err(QueryError::RowsMax(0)));
        assert!(build(ROWS_MAX_LIMIT).is_ok());
        assert_eq!(build(ROWS_MAX_LIMIT + 1), Err(QueryError::RowsMax(ROWS_MAX_LIMIT + 1)));
        let largest = ROWS_MAX_LIMIT as i128 * SLOPE_MAX as i128 * LATTICE_NORM_MAX as i128;
        assert!(largest < i128::from(i64::MAX));
        assert_eq!(
            QueryShape::new(Map::ClassCount { classes: 1 }, PrivacyUnit::Row, 1),
            Err(QueryError::Classes(1)),
            "a row of class 1 would have no place"
        );
        let document = r#"{"map":"log-loss","unit":"row","rows_max":0}"#;
        assert!(serde_json::from_str::<QueryShape>(document).is_err(), "serde goes through the constructor");
    }

    proptest! {
        #[test]
        fn pass_weights_fit_an_exact_dot_product(weights in prop::collection::vec(-1e3f64..1e3, 1..200), power in -20i32..20) {
            let weights: Vec<f64> = weights.iter().map(|weight| weight * 2f64.powi(power)).collect();
            let pass = PassWeights::quantise(&weights);
            let square: u64 = pass.weights().iter().map(|weight| u64::from(weight.unsigned_abs()).pow(2)).sum();
            prop_assert!(square <= 65_535 * 65_535);
            prop_assert!(65_535 * 32_767 < i64::from(i32::MAX));
            for (weight, integer) in weights.iter().zip(pass.weights()) {
                prop_assert!((weight - f64::from(*integer) * f64::from(pass.step())).abs() <= 0.5 * f64::from(pass.step()));
            }
        }

        #[test]
        fn pass_weights_survive_any_number(weights in prop::collection::vec(any::<f64>(), 1..20)) {
            let pass = PassWeights::quantise(&weights);
            prop_assert!(pass.step() > 0.0 && pass.step().is_finite());
        }
    }
}
