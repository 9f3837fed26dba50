//! The rows of a table that count: those with a label where only labels are private, and no more of a privacy unit than its cap.

use std::collections::HashMap;

use reticent_core::adjacency::{Adjacency, PrivacyUnit};
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL};
use reticent_core::schema::Privacy;

use super::SourceError;
use super::coded_batch::CodedBatch;
use crate::out_of_memory::{OutOfMemory, boxed};

/// Says which rows are handed on.
pub(crate) struct RowFilter {
    /// Whether rows without a usable label are left out: under label adjacency it is public which they are.
    only_labelled: bool,
    /// None when every row is a unit.
    rows_max: Option<u32>,
    rows_of_unit: HashMap<Box<[u8]>, u32>,
}

impl RowFilter {
    /// All of them.
    pub(crate) fn new(privacy: &Privacy) -> Self {
        let rows_max = match &privacy.unit {
            PrivacyUnit::Row => None,
            PrivacyUnit::Column { rows_max, .. } => Some(*rows_max),
        };
        Self { rows_max, ..Self::without_cap(privacy) }
    }

    /// All but the cap: those that are counted for it, by somebody else.
    pub(super) fn without_cap(privacy: &Privacy) -> Self {
        let only_labelled = match privacy.adjacency {
            Adjacency::Label => true,
            Adjacency::AddRemove | Adjacency::Replace | Adjacency::Party => false,
        };
        Self { only_labelled, rows_max: None, rows_of_unit: HashMap::new() }
    }

    /// Drops the rows that do not count: under label adjacency those without a label, then those that are past their unit's cap; fails where there was no memory for all of them. Rows without a key have an
    /// unusable label and add nothing, however many are kept.
    pub(super) fn apply(&mut self, slots: usize, batch: &mut CodedBatch) -> Result<(), SourceError> {
        if batch.is_lost() {
            return Err(SourceError::OutOfMemory);
        }
        if !self.only_labelled && self.rows_max.is_none() {
            return Ok(());
        }
        Ok(batch.retain(slots, |label, key| self.keeps(label, key))?)
    }

    /// Whether the next row counts, by its label and the key of its unit.
    pub(crate) fn keeps(&mut self, label: CodedLabel, key: &[u8]) -> Result<bool, OutOfMemory> {
        if self.only_labelled && label == UNUSABLE_LABEL {
            return Ok(false);
        }
        let Some(rows_max) = self.rows_max else { return Ok(true) };
        if let Some(rows) = self.rows_of_unit.get_mut(key) {
            *rows = rows.saturating_add(1);
            return Ok(*rows <= rows_max);
        }
        // An aborting allocation would print its size, and with it the number of units, or the length of a key.
        self.rows_of_unit.try_reserve(1).map_err(|_| OutOfMemory)?;
        self.rows_of_unit.insert(boxed(key)?, 1);
        Ok(rows_max >= 1)
    }
}
