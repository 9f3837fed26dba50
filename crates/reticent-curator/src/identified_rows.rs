//! The feature holder's own rows with their event ids: not private to this program, which scores them or makes weights of
//! them for their owner.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use reticent_core::coding::{Coding, UnitNumber};
use reticent_core::hex::hex;
use reticent_core::label_query::WeightList;
use reticent_core::public_features::{PublicFeatures, TooManyNumbers};
use reticent_core::record::Cell;
use reticent_core::schema::Schema;
use sha2::{Digest, Sha256};

use crate::source::{Row, SourceError, TableSource};

/// Ids of all rows, and what was made of each, in the table's order.
pub struct IdentifiedRows<N> {
    /// One id a row; empty where the table has none.
    pub ids: Vec<Box<[u8]>>,
    /// As many numbers for each row.
    pub numbers: Vec<N>,
    width: usize,
}

/// The same of a few rows.
struct MadeRows<N> {
    ids: Vec<Box<[u8]>>,
    numbers: Vec<N>,
}

impl<N> Default for MadeRows<N> {
    fn default() -> Self {
        Self { ids: Vec::new(), numbers: Vec::new() }
    }
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

impl IdentifiedRows<u16> {
    /// Reads the features of a source that was opened with event ids, as [`PublicFeatures`] has them.
    ///
    /// # Errors
    /// [`IdentifiedRowsError`].
    pub fn features(
        source: TableSource,
        schema: &Schema,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, IdentifiedRowsError> {
        let coding = Coding::of(schema);
        Self::read(source, [coding.columns().len(); 2], progress, || {
            let mut codes = vec![0u16; coding.codes()];
            let coding = &coding;
            move |cells: &[Cell], columns: &mut [u16]| {
                coding.encode_cells(cells, &mut codes);
                coding.expand(&codes, columns);
            }
        })
    }
}

impl<N: Copy + Default + Send + 'static> IdentifiedRows<N> {
    /// Reads a source that was opened with event ids; each of the makers of `maker` makes `width` numbers of the cells of a row, of which `held` are made
    /// in the end.
    ///
    /// # Errors
    /// [`IdentifiedRowsError`].
    pub fn read<M: FnMut(&[Cell], &mut [N]) + Send>(
        source: TableSource,
        [width, held]: [usize; 2],
        progress: &mut dyn FnMut(u64),
        maker: impl Fn() -> M + Sync,
    ) -> Result<Self, IdentifiedRowsError> {
        let mut rows = Self { ids: Vec::new(), numbers: Vec::new(), width };
        let found = AtomicU64::new(0);
        let worker = || {
            let (mut make, found) = (maker(), &found);
            move |row: Row<'_>, made: &mut MadeRows<N>| {
                // A table that is too large is read to its end, for the number of its rows, and held no further.
                if PublicFeatures::check_size(1 + found.fetch_add(1, Ordering::Relaxed), held).is_err() {
                    return;
                }
                made.ids.push(row.id.unwrap_or_default().into());
                let start = made.numbers.len();
                made.numbers.resize(start + width, N::default());
                make(row.cells, &mut made.numbers[start..]);
            }
        };
        source.for_each_made(width, progress, &worker, &mut |made: MadeRows<N>| -> Result<(), SourceError> {
            rows.ids.extend(made.ids);
            rows.numbers.extend_from_slice(&made.numbers);
            Ok(())
        })?;
        PublicFeatures::check_size(found.into_inner(), held)?;
        Ok(rows)
    }

    /// The numbers of the rows in the order of a list.
    ///
    /// # Errors
    /// [`UnknownId`] when the list names an event that the table does not have.
    pub fn in_order_of(self, list: &WeightList) -> Result<Vec<N>, UnknownId> {
        // Weights that were made of this table are in its order: nothing is copied.
        if list.ids().iter().eq(self.ids.iter().map(|id| &**id)) {
            return Ok(self.numbers);
        }
        let width = self.width;
        let places: HashMap<&[u8], usize> = self.ids.iter().enumerate().map(|(place, id)| (&**id, place)).collect();
        let mut numbers = Vec::with_capacity(list.ids().len() * width);
        for (row, id) in list.ids().iter().enumerate() {
            let place = *places.get(id).ok_or(UnknownId { row: row + 1 })?;
            numbers.extend_from_slice(&self.numbers[place * width..(place + 1) * width]);
        }
        Ok(numbers)
    }
}

/// SHA-256 of the names of a schema's columns and the features in their order, to the 24 bits that machines agree on: tells another table from the
/// one that weights were made of.
#[must_use]
pub fn fingerprint(schema: &Schema, features: &PublicFeatures) -> String {
    let unit_numbers =
        features.codes.chunks_exact(features.columns).map(|row| row.iter().map(|code| f64::of_code(*code)));
    fingerprint_of(schema, unit_numbers)
}

/// The same of numbers that a model made of each row.
#[must_use]
pub fn fingerprint_of(schema: &Schema, rows: impl Iterator<Item = impl Iterator<Item = f64>>) -> String {
    let mut digest = Sha256::new();
    for name in Coding::of(schema).column_names() {
        digest.update((name.len() as u64).to_le_bytes());
        digest.update(name);
    }
    let mut bytes = Vec::new();
    for row in rows {
        bytes.clear();
        row.for_each(|value| bytes.extend_from_slice(&(value as f32).to_le_bytes()));
        digest.update(&bytes);
    }
    hex(&digest.finalize())
}
