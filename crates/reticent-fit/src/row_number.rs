//! The number of rows, as far as it is known before anything is counted.

use reticent_core::schema::Schema;

/// The number of rows that stands for an undeclared one.
const USUAL_ROWS: f64 = 36_000.0;

/// The declared number of rows, or a usual one: for what is decided before anything is counted.
pub(crate) fn expected_rows(schema: &Schema) -> f64 {
    schema.privacy().rows.map_or(USUAL_ROWS, |rows| rows as f64)
}

/// The declared number of rows: that of units, where each has one row at most.
pub(crate) fn declared_rows(schema: &Schema) -> Option<f64> {
    if schema.privacy().unit.rows_max() == 1 { schema.privacy().rows.map(|rows| rows as f64) } else { None }
}

/// Between 0 and 1: how little a signal `n mu` is, where that of `half` is half of little.
pub(crate) fn weakness(signal: f64, half: f64) -> f64 {
    1.0 / (1.0 + (signal / half).powi(2))
}
