//! The part of a query that fixes its size and its sensitivity.

use serde::{Deserialize, Serialize};

use super::{GRADIENT_NORM_MAX, Map, ProductTarget, QueryError, target_counts};
use crate::adjacency::{PrivacyUnit, UNIT_ROWS_MAX};
use crate::schema::{ROWS_MAX_LIMIT, Schema};

/// Size and sensitivity of a query, and all that the ledger has to know of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "ShapeDocument", into = "ShapeDocument")]
pub struct QueryShape {
    pub(super) map: Map,
    pub(super) unit: PrivacyUnit,
    pub(super) rows_max: u64,
}

/// Most models that [`Map::ConfidenceSteps`] and [`Map::ResidualSteps`] compare.
pub const STEP_MODELS_MAX: u32 = 64;

/// Fewest and most bins of equal width over the bounds of a number: see [`Map::NumberBins`] and [`Map::TargetBins`].
pub const NUMBER_BINS: (u32, u32) = (2, 256);

/// Largest multiplier of a block of [`Map::Gram`].
pub const GRAM_MULTIPLIER_MAX: u32 = 4096;

/// Largest label of [`Map::MatrixProduct`] in magnitude.
pub const MATRIX_LABEL_MAX: i32 = 1 << 20;

impl QueryShape {
    /// Checks that no table within `rows_max` overflows.
    ///
    /// # Errors
    /// [`QueryError`] says which public figure is out of range.
    pub fn new(map: Map, unit: PrivacyUnit, rows_max: u64) -> Result<Self, QueryError> {
        if !(1..=ROWS_MAX_LIMIT).contains(&rows_max) {
            return Err(QueryError::RowsMax(rows_max));
        }
        if !(1..=UNIT_ROWS_MAX).contains(&unit.rows_max()) {
            return Err(QueryError::UnitRows(unit.rows_max()));
        }
        check_ranges(&map)?;
        let coordinates = count_coordinates(&map);
        if !(1..=1 << 20).contains(&coordinates) {
            return Err(QueryError::Coordinates(coordinates));
        }
        Ok(Self { map, unit, rows_max })
    }

    /// A query of a table: unit and largest number of rows are those of its schema.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_schema(map: Map, schema: &Schema) -> Result<Self, QueryError> {
        let privacy = schema.privacy();
        Self::new(map, privacy.unit.clone(), privacy.rows_max)
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

    /// Declared maximum of the number of rows.
    #[must_use]
    pub fn rows_max(&self) -> u64 {
        self.rows_max
    }

    /// Number of integers that the sum has.
    #[must_use]
    pub fn coordinates(&self) -> u32 {
        u32::try_from(count_coordinates(&self.map)).expect("checked when the shape was made")
    }
}

fn check_ranges(map: &Map) -> Result<(), QueryError> {
    let range = |fits: bool, what| if fits { Ok(()) } else { Err(QueryError::Range(what)) };
    let is_legal = |bins: u32| bins.is_power_of_two() && (NUMBER_BINS.0..=NUMBER_BINS.1).contains(&bins);
    match *map {
        Map::ClassCount { classes }
        | Map::SoftmaxGradient { classes, .. }
        | Map::BoundedSoftmaxGradient { classes, .. }
        | Map::CorrectCount { classes }
        | Map::ExcessHits { classes }
        | Map::ConfidenceSteps { classes, .. }
        | Map::LogLoss { classes }
            if classes < 2 =>
        {
            Err(QueryError::Classes(classes))
        }
        Map::Marginals { classes: 1, .. } => Err(QueryError::Classes(1)),
        Map::NumberBins { numeric, bins } => {
            range(numeric > 0, "the number of numeric columns")?;
            range(is_legal(bins), "the number of bins")
        }
        Map::TargetBins { bins } | Map::LabelsByBin { bins } => range(is_legal(bins), "the number of bins"),
        Map::ConfidenceSteps { models, .. } | Map::ResidualSteps { models } => {
            range((1..=STEP_MODELS_MAX).contains(&models), "the number of models")
        }
        Map::ClippedGradient { clip, .. } => {
            range((1..=GRADIENT_NORM_MAX).contains(&clip), "the bound on a row's gradient")
        }
        Map::Gram { columns, diagonal, off_diagonal, cross, square, .. } => {
            range(columns > 0, "the number of columns")?;
            let multipliers = [diagonal, off_diagonal, cross, square];
            range(multipliers.into_iter().all(|one| one <= GRAM_MULTIPLIER_MAX), "a multiplier of a Gram query")
        }
        Map::MatrixProduct { outputs, target, label_low, label_high, row_norm_square, rows, .. } => {
            range(outputs > 0, "the number of outputs")?;
            range(target != ProductTarget::NumberOverNorm, "the target of a matrix product")?;
            range(
                (-MATRIX_LABEL_MAX..=0).contains(&label_low) && (0..=MATRIX_LABEL_MAX).contains(&label_high),
                "a label of a matrix product",
            )?;
            range(rows <= ROWS_MAX_LIMIT && row_norm_square <= 1 << 48, "the size of a public matrix")
        }
        Map::PartyVectors { norm, penalty, .. } => {
            range((1..=1 << 30).contains(&norm) && penalty > 0, "the norm or the penalty of a party's vector")
        }
        Map::PartyMinimum { penalty, parties, .. } => {
            range(penalty > 0 && (1..=ROWS_MAX_LIMIT).contains(&parties), "the penalty or the number of parties")
        }
        Map::Minimum(minimum) => minimum.check(),
        Map::ClassCount { .. }
        | Map::Marginals { .. }
        | Map::TargetSum
        | Map::LabelBins
        | Map::LabelSquares
        | Map::Gradient { .. }
        | Map::SoftmaxGradient { .. }
        | Map::BoundedSoftmaxGradient { .. }
        | Map::CorrectCount { .. }
        | Map::ExcessHits { .. }
        | Map::LogLoss { .. }
        | Map::ScoreHistogram { .. }
        | Map::SquaredError => Ok(()),
    }
}

fn count_coordinates(map: &Map) -> u64 {
    match *map {
        Map::LogLoss { .. } | Map::TargetSum | Map::LabelSquares => 1,
        Map::TargetBins { bins } | Map::LabelsByBin { bins } => u64::from(bins),
        Map::LabelBins => u64::from(NUMBER_BINS.1),
        Map::NumberBins { numeric, bins } => u64::from(bins) * u64::from(numeric),
        Map::CorrectCount { .. } | Map::ExcessHits { .. } => 2,
        Map::ConfidenceSteps { models, .. } | Map::ResidualSteps { models } => u64::from(models),
        Map::SquaredError => 4,
        Map::ClassCount { classes } => u64::from(classes),
        Map::Marginals { classes, numeric, categories, .. } => {
            u64::from(target_counts(classes)) + u64::from(categories) + 2 * u64::from(numeric)
        }
        Map::Gradient { columns, .. } | Map::ClippedGradient { columns, .. } => u64::from(columns),
        Map::SoftmaxGradient { classes, columns } | Map::BoundedSoftmaxGradient { classes, columns } => {
            u64::from(classes) * u64::from(columns)
        }
        Map::Gram { columns, cross, square, .. } => {
            let columns = u64::from(columns);
            columns * (columns + 1) / 2 + if cross > 0 { columns } else { 0 } + u64::from(square > 0)
        }
        Map::MatrixProduct { columns, outputs, .. }
        | Map::PartyVectors { columns, outputs, .. }
        | Map::PartyMinimum { columns, outputs, .. } => u64::from(outputs) * u64::from(columns),
        Map::Minimum(minimum) => minimum.coordinates(),
        Map::ScoreHistogram { buckets } => 2 * u64::from(buckets),
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
