//! Public rows, or a party's own, with their labels: what is fitted without privacy.

use reticent_core::schema::{Schema, TargetKind};

use crate::model::{ModelSize, check_size};
use crate::raw_columns::Columns;
use crate::unit_rows::UnitRows;

/// Rows that [`crate::public_fit`] and [`crate::party::local`] take, in memory by what is not 0 in them.
pub struct LabelledRows {
    pub(crate) rows: UnitRows,
    labels: Vec<f64>,
    /// Bounds of a target that is a number.
    bounds: Option<(f64, f64)>,
}

impl LabelledRows {
    /// No row yet.
    ///
    /// # Errors
    /// [`ModelSize`] where a model of them would be too large for its file: before rows are read.
    pub fn new(schema: &Schema) -> Result<Self, ModelSize> {
        check_size(schema)?;
        let bounds = match schema.target().kind {
            TargetKind::Bounds { low, high } => Some((low, high)),
            TargetKind::Classes(_) => None,
        };
        Ok(Self { rows: UnitRows::new(schema), labels: Vec::new(), bounds })
    }

    /// These rows.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of<R: Columns>(schema: &Schema, rows: impl IntoIterator<Item = (R, f64)>) -> Result<Self, ModelSize> {
        let mut all = Self::new(schema)?;
        rows.into_iter().for_each(|(row, label)| all.add(&row, label));
        Ok(all)
    }

    /// Takes the raw columns of a row ([`reticent_core::coding::Coding::raw_columns`]) and its label: the index of a class, or a number.
    pub fn add(&mut self, row: &(impl Columns + ?Sized), label: f64) {
        self.rows.add(row);
        self.labels.push(match self.bounds {
            None => label,
            Some((low, high)) => (label.clamp(low, high) - low) / (high - low) * 2.0 - 1.0,
        });
    }

    /// The index of the class of each row, or its number from -1, the lower bound, to 1.
    #[must_use]
    pub fn labels(&self) -> &[f64] {
        &self.labels
    }

    pub(crate) fn into_parts(self) -> (UnitRows, Vec<f64>) {
        (self.rows, self.labels)
    }
}
