//! The coordinates of wide blocks and listed columns, as many in every row, each in a column of the row's choice.

use super::lanes::{GROUP, PairedSlopes};
use crate::lattice::ChosenCoordinates;

impl ChosenCoordinates<'_> {
    /// Those of the rows of a group, row by row; fewer at the end of a block.
    #[inline(always)]
    fn rows(&self, first: usize) -> impl Iterator<Item = (&[u32], &[i16])> {
        let places = first * self.per_row..((first + GROUP) * self.per_row).min(self.values.len());
        let (columns, values) = (&self.columns[places.clone()], &self.values[places]);
        // With no such coordinates the size of a chunk is immaterial.
        let per_row = self.per_row.max(1);
        columns.chunks_exact(per_row).zip(values.chunks_exact(per_row))
    }

    /// Hands on the coordinates of a row. Past where its columns ascend are places that it does not use, and their coordinates are
    /// 0: not worth reading.
    #[inline(always)]
    fn each(&self, (columns, values): (&[u32], &[i16]), mut add: impl FnMut(usize, i32)) {
        let pairs = columns.iter().zip(values);
        if self.has_list {
            let mut last = 0;
            for (column, value) in pairs.take_while(|(column, _)| **column > std::mem::replace(&mut last, **column)) {
                add(*column as usize, i32::from(*value));
            }
        } else {
            pairs.for_each(|(column, value)| add(*column as usize, i32::from(*value)));
        }
    }

    /// Adds their part to the dot products of a group with the weights of all columns. Exact: the norms of both sides bound
    /// every partial sum of the whole row.
    #[inline(always)]
    pub(super) fn add_dots(&self, first: usize, weights: &[i16], dots: &mut [i32; GROUP]) {
        for (dot, row) in dots.iter_mut().zip(self.rows(first)) {
            self.each(row, |column, value| *dot += i32::from(weights[column]) * value);
        }
    }

    /// Adds their part to the squared norms of a group.
    #[inline(always)]
    pub(super) fn add_squares(&self, first: usize, squares: &mut [i32; GROUP]) {
        for (square, row) in squares.iter_mut().zip(self.rows(first)) {
            self.each(row, |_, value| *square += value.pow(2));
        }
    }

    /// Adds slope times coordinate to the totals of all columns.
    #[inline(always)]
    pub(super) fn add_scaled(&self, first: usize, slopes: &PairedSlopes, totals: &mut [i64]) {
        for (slope, row) in slopes.as_flattened().iter().zip(self.rows(first)) {
            self.each(row, |column, value| totals[column] += i64::from(i32::from(*slope) * value));
        }
    }
}
