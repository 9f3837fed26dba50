//! Why a query cannot be built.

use thiserror::Error;

use crate::schema::ROWS_MAX_LIMIT;

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
    #[error("a query by class needs at least 2 classes, not {0}")]
    Classes(u32),
    /// A query with nothing to add up, or too much.
    #[error("a query needs between 1 and 1048576 coordinates, not {0}; list fewer features or categories")]
    Coordinates(u64),
    /// A multiplier or label outside the range in which sensitivities fit 128 bits.
    #[error("{0} is outside the range that a query supports")]
    Range(&'static str),
    /// A shape that asks for a minimum where a sum is built, or the other way round.
    #[error("a query is for a sum or for a minimum: this one is of the other kind")]
    Kind,
    /// Public values that do not fit the shape.
    #[error("the public values have {found} columns where the query has {expected}")]
    Columns {
        /// Columns of the shape.
        expected: usize,
        /// Columns of the public values.
        found: usize,
    },
    /// A public matrix that is not within the bounds of the shape: its sensitivity would be larger than what was paid.
    #[error("the public matrix is not within the bounds that were planned for it")]
    Matrix,
}
