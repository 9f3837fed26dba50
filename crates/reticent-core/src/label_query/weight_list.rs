//! The rows that a question names: event ids, and one row of integers for each.

use std::sync::Arc;

use thiserror::Error;

use super::event_ids::EventIds;
use crate::public_matrix::PublicMatrix;

/// Event ids with one row of integers each, in the order of whoever made the list: public, and checked when it is made.
pub struct WeightList {
    ids: EventIds,
    matrix: Arc<PublicMatrix>,
}

/// A list that is refused: the reasons are facts of the list alone.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum WeightListError {
    /// Rows and ids do not belong together.
    #[error("there are {ids} ids for {rows} rows")]
    Length {
        /// Ids.
        ids: usize,
        /// Rows of the matrix.
        rows: usize,
    },
    /// No row at all.
    #[error("there is no row; a list names at least one event")]
    Empty,
    /// A row that belongs to nothing.
    #[error("row {row} has no id")]
    NoId {
        /// Its place, counted from 1.
        row: usize,
    },
    /// One label under several rows would be worth more than its price.
    #[error(
        "row {row} has the id of an earlier row; each event may be listed once: add up its rows before they are sent"
    )]
    Repeated {
        /// The later place, counted from 1.
        row: usize,
    },
    /// The ids do not fit.
    #[error("not enough memory for the ids of the list; send fewer rows")]
    OutOfMemory,
}

impl WeightList {
    /// Takes ids and rows: each id is there once, so that one label moves one row of the sum.
    ///
    /// # Errors
    /// [`WeightListError::Length`] or [`WeightListError::Empty`].
    pub fn new(ids: EventIds, matrix: PublicMatrix) -> Result<Self, WeightListError> {
        if ids.len() != matrix.rows() {
            return Err(WeightListError::Length { ids: ids.len(), rows: matrix.rows() });
        }
        if ids.is_empty() {
            return Err(WeightListError::Empty);
        }
        Ok(Self { ids, matrix: Arc::new(matrix) })
    }

    /// Ids in the order of the rows.
    #[must_use]
    pub fn ids(&self) -> &EventIds {
        &self.ids
    }

    /// The integers.
    #[must_use]
    pub fn matrix(&self) -> &Arc<PublicMatrix> {
        &self.matrix
    }

    /// Whether no sum of these rows times labels of at most `label_max` can reach `2^62`: `rows · max |q| · label_max < 2^62`.
    ///
    /// Sums are kept in 128 bits, so nothing could overflow here; the bound keeps answers within what 64-bit tools read.
    #[must_use]
    pub fn fits_62_bits(&self, label_max: u32) -> bool {
        let largest = self.matrix.values().iter().map(|value| value.unsigned_abs()).max().unwrap_or(0);
        product_fits_62_bits(self.ids.len() as u64, largest, label_max)
    }
}

/// `rows · coordinate_max · label_max < 2^62`.
fn product_fits_62_bits(rows: u64, coordinate_max: u32, label_max: u32) -> bool {
    u128::from(rows) * u128::from(coordinate_max) * u128::from(label_max) < 1 << 62
}

#[cfg(test)]
mod tests {
    use super::super::tests::list;
    use super::*;

    #[test]
    fn an_id_may_be_listed_once() {
        assert!(list(&["a", "b"], &[1, 2]).is_ok());
        assert_eq!(list(&["a", "b", "a"], &[1, 2, 3]).err(), Some(WeightListError::Repeated { row: 3 }));
        assert_eq!(list(&["a", ""], &[1, 2]).err(), Some(WeightListError::NoId { row: 2 }));
        assert_eq!(list(&["a"], &[1, 2]).err(), Some(WeightListError::Length { ids: 1, rows: 2 }));
        assert_eq!(list(&[], &[]).err(), Some(WeightListError::Empty));
    }

    #[test]
    fn sums_that_could_pass_62_bits_are_noticed() {
        assert!(product_fits_62_bits((1 << 27) - 1, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(1 << 27, 1 << 20, 1 << 15));
        assert!(!product_fits_62_bits(u64::MAX, u32::MAX, u32::MAX));
        let of_rows = |rows: u32| {
            let ids = EventIds::of((0..rows).map(|row| row.to_string())).expect("each once");
            WeightList::new(ids, PublicMatrix::new(1, vec![1 << 20; rows as usize]).expect("short rows"))
        };
        assert!(of_rows(1024).expect("unique").fits_62_bits(u32::MAX));
        assert!(!of_rows(1025).expect("unique").fits_62_bits(u32::MAX));
    }

    #[test]
    fn a_list_keeps_its_ids_and_integers() {
        let list = list(&["a", "b"], &[7, -9]).expect("unique");
        assert!(list.ids().iter().eq([b"a", b"b"]));
        assert_eq!((list.ids().place_of(b"b"), list.ids().place_of(b"c")), (Some(1), None));
        assert_eq!(**list.matrix(), PublicMatrix::new(1, vec![7, -9]).expect("short rows"));
    }
}
