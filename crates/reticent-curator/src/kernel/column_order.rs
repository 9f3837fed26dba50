//! The chosen coordinates of a block a second time, column after column.
//!
//! Row after row, each coordinate adds to a total anywhere among all columns: with a million of them nearly every total is fetched from
//! far away, row for row. Column after column weights and totals are read and written in their order, and what is looked up is a
//! row's product or slope: of at most [`BLOCK_ROWS_MAX`] rows these stay in the second-level cache.

use super::lanes::{GROUP, PairedSlopes};
use crate::lattice::{BLOCK_ROWS_MAX, ChosenCoordinates};
use crate::out_of_memory::{OutOfMemory, zeros};

/// Coordinates with their columns, ascending, and their rows: private. A sum does not depend on the order, so neither does any answer.
pub struct ColumnOrder {
    /// Of the block: its number of rows, and that of the table's columns.
    of_rows: usize,
    of_columns: usize,
    columns: Vec<u32>,
    rows: Vec<u16>,
    values: Vec<i16>,
}

impl ColumnOrder {
    /// The coordinates of a block of a table with so many columns.
    ///
    /// # Errors
    /// [`OutOfMemory`]; the rows can do without.
    ///
    /// # Panics
    /// When the block has more than [`BLOCK_ROWS_MAX`] rows, or a coordinate is beyond the columns.
    pub fn of(chosen: &ChosenCoordinates<'_>, columns: usize) -> Result<Self, OutOfMemory> {
        let per_row = chosen.per_row.max(1);
        let rows = || chosen.columns.chunks(per_row).zip(chosen.values.chunks(per_row)).enumerate();
        // A place that its row does not use has a coordinate of 0.
        let each = |visit: &mut dyn FnMut(usize, usize, i16)| {
            for (row, (columns, values)) in rows() {
                let pairs = columns.iter().zip(values).filter(|(_, value)| **value != 0);
                pairs.for_each(|(column, value)| visit(*column as usize, row, *value));
            }
        };
        // Where the coordinates of a column begin; as they come in, where its next one goes.
        let mut places: Vec<usize> = zeros(columns + 1)?;
        each(&mut |column, _, _| places[column + 1] += 1);
        (0..columns).for_each(|column| places[column + 1] += places[column]);
        let count = places[columns];
        let (of_rows, of_columns) = (chosen.columns.len() / per_row, columns);
        let (columns, rows, values) = (zeros(count)?, zeros(count)?, zeros(count)?);
        let mut order = Self { of_rows, of_columns, columns, rows, values };
        each(&mut |column, row, value| {
            let place = places[column];
            order.columns[place] = column as u32;
            order.rows[place] = u16::try_from(row).expect("a block has at most 2^16 rows");
            order.values[place] = value;
            places[column] += 1;
        });
        Ok(order)
    }

    /// Whether it is of a block with so many rows, of a table with so many columns.
    pub(crate) fn is_of(&self, rows: usize, columns: usize) -> bool {
        // Without chosen coordinates a block has any number of rows.
        (self.of_rows == rows || self.values.is_empty()) && self.of_columns == columns
    }

    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (usize, usize, i32)> {
        let places = self.columns.iter().zip(&self.rows).zip(&self.values);
        places.map(|((column, row), value)| (*column as usize, usize::from(*row), i32::from(*value)))
    }
}

/// A gradient pass over the coordinates of a block: all products before the first slope, all totals after the last.
pub(super) struct ColumnPass<'a> {
    order: &'a ColumnOrder,
    /// One a row that a block may have: what a row of 16 bits looks up is there.
    dots: Vec<i32>,
    slopes: Vec<i16>,
}

impl<'a> ColumnPass<'a> {
    #[inline(always)]
    pub(super) fn new(order: &'a ColumnOrder, weights: &[i16]) -> Self {
        let mut dots = vec![0; BLOCK_ROWS_MAX];
        let of_rows: &mut [i32; BLOCK_ROWS_MAX] = dots.as_mut_slice().try_into().expect("as long");
        for (column, row, value) in order.each() {
            of_rows[row] += i32::from(weights[column]) * value;
        }
        Self { order, dots, slopes: vec![0; BLOCK_ROWS_MAX] }
    }

    /// See [`ChosenCoordinates::add_dots`].
    #[inline(always)]
    pub(super) fn add_dots(&self, first: usize, dots: &mut [i32; GROUP]) {
        for (dot, more) in dots.iter_mut().zip(&self.dots[first..first + GROUP]) {
            *dot += more;
        }
    }

    /// Keeps the slopes of a group.
    #[inline(always)]
    pub(super) fn keep(&mut self, first: usize, slopes: &PairedSlopes) {
        self.slopes[first..first + GROUP].copy_from_slice(slopes.as_flattened());
    }

    /// Adds slope times coordinate to the totals of all columns.
    #[inline(always)]
    pub(super) fn add_scaled(self, totals: &mut [i64]) {
        let slopes: &[i16; BLOCK_ROWS_MAX] = self.slopes.as_slice().try_into().expect("as long");
        for (column, row, value) in self.order.each() {
            totals[column] += i64::from(i32::from(slopes[row]) * value);
        }
    }
}
