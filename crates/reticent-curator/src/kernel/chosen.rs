//! The coordinates of wide blocks of categories, one a row and block, each in a column of its own choice.

use super::lanes::{GROUP, PairedSlopes};
use crate::lattice::ChosenCoordinates;

impl ChosenCoordinates<'_> {
    /// Those of the rows of a group, row by row; fewer at the end of a block.
    #[inline(always)]
    fn rows(&self, first: usize) -> impl Iterator<Item = (&[u32], &[i16])> {
        let places = first * self.per_row..((first + GROUP) * self.per_row).min(self.values.len());
        let (columns, values) = (&self.columns[places.clone()], &self.values[places]);
        // With no wide blocks there are no coordinates, and the size of a chunk is immaterial.
        let per_row = self.per_row.max(1);
        columns.chunks_exact(per_row).zip(values.chunks_exact(per_row))
    }

    /// Adds their part to the dot products of a group with the weights of all columns. Exact: the norms of both sides bound
    /// every partial sum of the whole row.
    #[inline(always)]
    pub(super) fn add_dots(&self, first: usize, weights: &[i16], dots: &mut [i32; GROUP]) {
        for (dot, (columns, values)) in dots.iter_mut().zip(self.rows(first)) {
            for (column, value) in columns.iter().zip(values) {
                *dot += i32::from(weights[*column as usize]) * i32::from(*value);
            }
        }
    }

    /// Adds their part to the squared norms of a group.
    #[inline(always)]
    pub(super) fn add_squares(&self, first: usize, squares: &mut [i32; GROUP]) {
        for (square, (_, values)) in squares.iter_mut().zip(self.rows(first)) {
            *square += values.iter().map(|value| i32::from(*value).pow(2)).sum::<i32>();
        }
    }

    /// Adds slope times coordinate to the totals of all columns.
    #[inline(always)]
    pub(super) fn add_scaled(&self, first: usize, slopes: &PairedSlopes, totals: &mut [i64]) {
        for (slope, (columns, values)) in slopes.as_flattened().iter().zip(self.rows(first)) {
            for (column, value) in columns.iter().zip(values) {
                totals[*column as usize] += i64::from(i32::from(*slope) * i32::from(*value));
            }
        }
    }
}
