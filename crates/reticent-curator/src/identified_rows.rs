//! The feature holder's own rows with their event ids: not private to this program, which scores them or makes weights of
//! them for their owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use reticent_core::coding::Coding;
use reticent_core::hex::hex;
use reticent_core::label_query::WeightList;
use reticent_core::public_features::{PublicFeatures, TooManyNumbers};
use reticent_core::schema::Schema;
use sha2::{Digest, Sha256};

use crate::source::{Row, SourceError, TableSource};

/// Which columns to make of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Columns {
    /// Numbers in `[0, 1]`, as [`PublicFeatures`] has them.
    UnitScaled,
    /// Numbers in the user's units, as a model's coefficients want them.
    Raw,
}

/// Ids and columns of all rows, in the table's order.
pub struct IdentifiedRows {
    /// One id a row; empty where the table has none.
    pub ids: Vec<Box<[u8]>>,
    /// The intercept first.
    pub features: PublicFeatures,
}

/// Ids and columns of a few rows.
#[derive(Default)]
struct MadeRows {
    ids: Vec<Box<[u8]>>,
    values: Vec<f64>,
}

/// A list of weights with an id that the table does not have.
#[derive(Clone, Copy, Debug, thiserror::Error, PartialEq, Eq)]
#[error("the id of row {row} of the weights file is not in the table; use the table that the weights were made of")]
pub struct UnknownId {
    /// Place in the weights file, counted from 1.
    pub row: usize,
}

/// Rows that cannot be held.
#[derive(Debug, thiserror::Error)]
pub enum IdentifiedRowsError {
    /// The file cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// It was read, and is too large.
    #[error(transparent)]
    Size(#[from] TooManyNumbers),
}

impl IdentifiedRows {
    /// Reads a source that was opened with event ids.
    ///
    /// # Errors
    /// [`IdentifiedRowsError`].
    pub fn read(
        source: TableSource,
        schema: &Schema,
        columns: Columns,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, IdentifiedRowsError> {
        let coding = Coding::of(schema);
        let width = coding.columns().len();
        let mut rows = Self { ids: Vec::new(), features: PublicFeatures { columns: width, values: Vec::new() } };
        let found = AtomicU64::new(0);
        let worker = || {
            let mut codes = vec![0u16; coding.codes()];
            let (coding, found) = (&coding, &found);
            move |row: Row<'_>, made: &mut MadeRows| {
                // A table that is too large is read to its end, for the number of its rows, and held no further.
                if PublicFeatures::check_size(1 + found.fetch_add(1, Ordering::Relaxed), width).is_err() {
                    return;
                }
                made.ids.push(row.id.unwrap_or_default().into());
                let start = made.values.len();
                made.values.resize(start + width, 0.0);
                let values = &mut made.values[start..];
                match columns {
                    Columns::UnitScaled => {
                        coding.encode_cells(row.cells, &mut codes);
                        coding.expand(&codes, values);
                    }
                    Columns::Raw => coding.raw_columns(row.cells, values),
                }
            }
        };
        source.for_each_made(width, progress, &worker, &mut |made: MadeRows| -> Result<(), SourceError> {
            rows.ids.extend(made.ids);
            rows.features.values.extend_from_slice(&made.values);
            Ok(())
        })?;
        PublicFeatures::check_size(found.into_inner(), width)?;
        Ok(rows)
    }

    /// SHA-256 of the columns' names and values in their order, to the 24 bits that machines agree on: tells another table from the one that
    /// weights were made of.
    #[must_use]
    pub fn fingerprint(schema: &Schema, features: &PublicFeatures) -> String {
        let mut digest = Sha256::new();
        for name in Coding::of(schema).column_names() {
            digest.update((name.len() as u64).to_le_bytes());
            digest.update(name);
        }
        let mut bytes = Vec::new();
        for row in features.values.chunks_exact(features.columns) {
            bytes.clear();
            row.iter().for_each(|value| bytes.extend_from_slice(&(*value as f32).to_le_bytes()));
            digest.update(&bytes);
        }
        hex(&digest.finalize())
    }

    /// The rows in the order of a list.
    ///
    /// # Errors
    /// [`UnknownId`] when the list names an event that the table does not have.
    pub fn in_order_of(self, list: &WeightList) -> Result<PublicFeatures, UnknownId> {
        // Weights that were made of this table are in its order: nothing is copied.
        if list.ids().iter().eq(self.ids.iter().map(|id| &**id)) {
            return Ok(self.features);
        }
        let width = self.features.columns;
        let places: HashMap<&[u8], usize> = self.ids.iter().enumerate().map(|(place, id)| (&**id, place)).collect();
        let mut values = Vec::with_capacity(list.ids().len() * width);
        for (row, id) in list.ids().iter().enumerate() {
            let place = *places.get(id).ok_or(UnknownId { row: row + 1 })?;
            values.extend_from_slice(&self.features.values[place * width..(place + 1) * width]);
        }
        Ok(PublicFeatures { columns: width, values })
    }
}
