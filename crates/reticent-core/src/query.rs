//! The questions that may be asked of private rows: a closed list, each with its own sensitivity.
//!
//! A [`SumQuery`] is data: what is added up over the rows, with every public value that it needs. Its [`QueryShape`] is the
//! part that fixes size and sensitivity; it is known when a fit is planned, before any row is read or any weight is fitted.

mod error;
mod map;
mod sensitivity;
mod shape;
mod steps;

use std::sync::Arc;

pub use self::error::QueryError;
pub use self::map::{Loss, Map, ProductTarget, VoteRule, outputs, target_counts};
use self::map::{marginal_counts, number_slots};
pub use self::shape::{GRAM_MULTIPLIER_MAX, MATRIX_LABEL_MAX, NUMBER_BINS, QueryShape, STEP_MODELS_MAX};
pub use self::steps::{
    COUNT_STEP, GRADIENT_NORM_MAX, LOG_LOSS_STEP, MINIMUM_STEPS, MINIMUM_TOLERANCE, PARTY_STEPS, SLOPE_MAX, VOTE_STEPS,
    log_loss_cap,
};
use crate::encoding::{Encoding, LATTICE_NORM_MAX};
use crate::pass_weights::PassWeights;
use crate::public_matrix::PublicMatrix;
use crate::target_window::TargetWindow;

/// One question: what is added up over the rows.
#[derive(Clone, Debug)]
pub struct SumQuery {
    shape: QueryShape,
    asked: Asked,
    weights: PassWeights,
}

/// What a query is asked of.
#[derive(Clone, Debug)]
enum Asked {
    /// A table: how its codes become columns.
    Table(Arc<Encoding>),
    /// Labels or votes: a matrix with one row for each.
    Matrix(Arc<PublicMatrix>),
}

/// Most auxiliary rows of [`Map::PartyMinimum`]: rounding errors of the gradient stay far below the tolerance.
pub const MINIMUM_ROWS_MAX: u64 = 1 << 20;

impl SumQuery {
    /// A question to a table with its public values: how codes become columns, and the weights of the scores
    /// ([`PassWeights::none`] for a plain sum), score after score.
    ///
    /// # Errors
    /// [`QueryError::Columns`] when encoding or weights do not have the shape's columns.
    pub fn new(shape: QueryShape, encoding: Arc<Encoding>, weights: PassWeights) -> Result<Self, QueryError> {
        let encoded = encoding.coding().columns().len();
        let columns = match *shape.map() {
            Map::Gradient { columns, .. }
            | Map::ClippedGradient { columns, .. }
            | Map::SoftmaxGradient { columns, .. }
            | Map::BoundedSoftmaxGradient { columns, .. }
            | Map::Gram { columns, .. } => columns as usize,
            Map::Marginals { numeric, categorical, categories, .. } => {
                let asked = [numeric, categorical, categories];
                for (expected, found) in asked.into_iter().zip(marginal_counts(encoding.coding())) {
                    if expected != found {
                        return Err(QueryError::Columns { expected: expected as usize, found: found as usize });
                    }
                }
                encoded
            }
            Map::NumberBins { numeric, .. } => {
                let found = number_slots(encoding.coding());
                if numeric != found {
                    return Err(QueryError::Columns { expected: numeric as usize, found: found as usize });
                }
                encoded
            }
            Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. } => return Err(QueryError::Matrix),
            Map::Minimum(_) => return Err(QueryError::Kind),
            Map::ClassCount { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => encoded,
        };
        for (expected, found) in [(columns, encoded), (shape.map.weights(encoded), weights.weights().len())] {
            if expected != found {
                return Err(QueryError::Columns { expected, found });
            }
        }
        let has_number = matches!(
            *shape.map(),
            Map::TargetSum
                | Map::TargetBins { .. }
                | Map::ResidualSteps { .. }
                | Map::Gradient { loss: Loss::Huber, .. }
                | Map::Gram { target: ProductTarget::Number | ProductTarget::NumberOverNorm, .. }
        );
        check_window(&weights, has_number)?;
        Ok(Self { shape, asked: Asked::Table(encoding), weights })
    }

    /// A question to labels or votes that belong to the rows of a public matrix.
    ///
    /// # Errors
    /// [`QueryError::Matrix`] when the matrix is not within the bounds of the shape, [`QueryError::Columns`] when it has
    /// other columns.
    pub fn of_matrix(shape: QueryShape, matrix: Arc<PublicMatrix>) -> Result<Self, QueryError> {
        Self::of_matrix_in(shape, matrix, TargetWindow::BOUNDS)
    }

    /// The same question with labels, numbers, read in a part of their bounds.
    ///
    /// # Errors
    /// As [`Self::of_matrix`]; [`QueryError::Range`] for a window where no numbers are added up.
    pub fn of_matrix_in(
        shape: QueryShape,
        matrix: Arc<PublicMatrix>,
        window: TargetWindow,
    ) -> Result<Self, QueryError> {
        // `rows_max` is not held against the rows: how many have a usable label depends on labels, and no sensitivity on how many there are.
        let rows_found = matrix.rows() as u64;
        let (columns, within) = match *shape.map() {
            Map::MatrixProduct { columns, rows, row_norm_square, eigenvalue, .. } => {
                let within = matrix.row_norm_square() <= row_norm_square
                    && (rows == 0 || rows == rows_found)
                    && (eigenvalue == 0 || matrix.eigenvalue_bound().is_ok_and(|bound| bound <= eigenvalue));
                (columns, within)
            }
            Map::LabelsByBin { .. } | Map::LabelSquares => (matrix.columns() as u32, true),
            Map::PartyVectors { columns, .. } => (columns, rows_found > 0),
            // Every row of a public matrix has a norm of at most 2^20, which stands for 1.
            Map::PartyMinimum { columns, .. } => (columns, (1..=MINIMUM_ROWS_MAX).contains(&rows_found)),
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. }
            | Map::Gram { .. }
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::LabelBins
            | Map::Minimum(_)
            | Map::SquaredError => return Err(QueryError::Matrix),
        };
        if columns as usize != matrix.columns() {
            return Err(QueryError::Columns { expected: columns as usize, found: matrix.columns() });
        }
        if !within {
            return Err(QueryError::Matrix);
        }
        let has_number = matches!(
            *shape.map(),
            Map::MatrixProduct { target: ProductTarget::Number, .. } | Map::LabelsByBin { .. } | Map::LabelSquares
        );
        let weights = PassWeights::of_target(window);
        check_window(&weights, has_number)?;
        Ok(Self { shape, asked: Asked::Matrix(matrix), weights })
    }

    /// Size and sensitivity.
    #[must_use]
    pub fn shape(&self) -> &QueryShape {
        &self.shape
    }

    /// How codes become columns; shared by all passes of a fit. `None` for a question to labels or votes.
    #[must_use]
    pub fn encoding(&self) -> Option<&Arc<Encoding>> {
        match &self.asked {
            Asked::Table(encoding) => Some(encoding),
            Asked::Matrix(_) => None,
        }
    }

    /// The matrix of a question to labels or votes.
    #[must_use]
    pub fn matrix(&self) -> Option<&Arc<PublicMatrix>> {
        match &self.asked {
            Asked::Table(_) => None,
            Asked::Matrix(matrix) => Some(matrix),
        }
    }

    /// Weights of the scores; empty where no row is scored.
    #[must_use]
    pub fn weights(&self) -> &PassWeights {
        &self.weights
    }

    /// What one integer of the sum is worth: counts in rows, losses in nats, gradients in the units of a contribution.
    ///
    /// Gram queries and matrix products stay in integers: the step is 1.
    #[must_use]
    pub fn sum_step(&self) -> f64 {
        match self.shape.map {
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetBins { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::CorrectCount { .. }
            | Map::ExcessHits { .. }
            | Map::ConfidenceSteps { .. }
            | Map::ResidualSteps { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => 1.0 / COUNT_STEP as f64,
            Map::TargetSum => 1.0 / f64::from(LATTICE_NORM_MAX),
            Map::LabelSquares => f64::from(LATTICE_NORM_MAX).powi(-2),
            Map::LogLoss { .. } => 1.0 / LOG_LOSS_STEP as f64,
            Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. } => {
                let encoding = self.encoding().expect("a gradient is asked of a table");
                encoding.contribution_step() / f64::from(SLOPE_MAX)
            }
            Map::Gram { .. } | Map::MatrixProduct { .. } | Map::Minimum(_) => 1.0,
            Map::PartyVectors { .. } => 1.0 / f64::from(PARTY_STEPS),
            Map::PartyMinimum { .. } => 1.0 / f64::from(MINIMUM_STEPS),
        }
    }
}

/// A window is for numbers alone.
fn check_window(weights: &PassWeights, has_number: bool) -> Result<(), QueryError> {
    if has_number || weights.target_window() == TargetWindow::BOUNDS {
        Ok(())
    } else {
        Err(QueryError::Range("a window of the target"))
    }
}

#[cfg(test)]
mod tests;
