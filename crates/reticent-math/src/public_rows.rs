//! Public rows as they are kept, made 64-bit numbers a block at a time.
//!
//! Tables of features and the vectors that stand for their rows have many times more numbers than anything that is made of them. As codes and as
//! integers they take 2 and 4 bytes each, and a block of them is widened in less time than it is worked on.

use std::ops::Range;

use faer::{Mat, MatMut, MatRef};
use pulp::Arch;

use crate::fixed_sequence::FixedSequence;
use crate::product::add_product;
use crate::row_blocks::{of_row_blocks, rows_of_task, sum_of_row_blocks};

/// Rows × columns of public numbers.
#[derive(Clone, Copy, Debug)]
pub struct PublicRows<'a>(Kept<'a>);

#[derive(Clone, Copy, Debug)]
enum Kept<'a> {
    Numbers(MatRef<'a, f64>),
    /// Row after row, in steps of `step`.
    Codes {
        codes: &'a [u16],
        columns: usize,
        step: f64,
    },
    /// Those columns that are taken, row after row of `width`, in steps of `step`.
    Integers {
        integers: &'a [i32],
        width: usize,
        taken: &'a [usize],
        step: f64,
    },
}

impl<'a> From<MatRef<'a, f64>> for PublicRows<'a> {
    fn from(numbers: MatRef<'a, f64>) -> Self {
        Self(Kept::Numbers(numbers))
    }
}

impl<'a> PublicRows<'a> {
    /// Rows of so many codes, in steps of `step`.
    ///
    /// # Panics
    /// When the codes do not fill whole rows.
    #[must_use]
    pub fn of_codes(codes: &'a [u16], columns: usize, step: f64) -> Self {
        assert!(codes.len().is_multiple_of(columns), "rows of {columns} codes");
        Self(Kept::Codes { codes, columns, step })
    }

    /// Some columns of rows of `width` integers, in steps of `step`.
    ///
    /// # Panics
    /// When the integers do not fill whole rows, have no such column, or columns are not ascending.
    #[must_use]
    pub fn of_integers(integers: &'a [i32], width: usize, taken: &'a [usize], step: f64) -> Self {
        assert!(integers.len().is_multiple_of(width), "rows of {width} integers");
        assert!(taken.is_sorted_by(|one, other| one < other), "columns from left to right");
        assert!(taken.last().is_none_or(|column| *column < width), "columns of {width}");
        Self(Kept::Integers { integers, width, taken, step })
    }

    /// Number of rows.
    #[must_use]
    pub fn nrows(&self) -> usize {
        match &self.0 {
            Kept::Numbers(numbers) => numbers.nrows(),
            Kept::Codes { codes, columns, .. } => codes.len() / columns,
            Kept::Integers { integers, width, .. } => integers.len() / width,
        }
    }

    /// Number of columns.
    #[must_use]
    pub fn ncols(&self) -> usize {
        match &self.0 {
            Kept::Numbers(numbers) => numbers.ncols(),
            Kept::Codes { columns, .. } => *columns,
            Kept::Integers { taken, .. } => taken.len(),
        }
    }

    pub(crate) fn is_finite(&self) -> bool {
        match &self.0 {
            Kept::Numbers(numbers) => numbers.norm_l2().is_finite(),
            Kept::Codes { .. } | Kept::Integers { .. } => true,
        }
    }

    /// Some rows after each other, in `room` where they are not kept as they are read.
    pub(crate) fn block<'r>(&self, rows: Range<usize>, room: &'r mut Vec<f64>) -> MatRef<'r, f64>
    where
        'a: 'r,
    {
        if let Kept::Numbers(numbers) = &self.0 {
            return numbers.subrows(rows.start, rows.len());
        }
        let (count, columns) = (rows.len(), self.ncols());
        room.resize(count * columns, 0.0);
        match &self.0 {
            // One pass over all of the block, in the widest vector instructions of the machine.
            Kept::Codes { codes, step, .. } => {
                let codes = &codes[rows.start * columns..rows.end * columns];
                Arch::new().dispatch(|| widen(room, codes, *step));
            }
            Kept::Integers { integers, width, step, .. } if *width == columns => {
                let integers = &integers[rows.start * columns..rows.end * columns];
                Arch::new().dispatch(|| widen(room, integers, *step));
            }
            Kept::Numbers(_) | Kept::Integers { .. } => {
                room.chunks_exact_mut(columns.max(1)).zip(rows).for_each(|(room, row)| self.write_row(row, room));
            }
        }
        MatRef::from_row_major_slice(room, count, columns)
    }

    /// Rows that are worth going through at a time.
    pub(crate) fn rows_of_part(&self) -> usize {
        let columns = self.ncols().max(1);
        (NUMBERS_OF_PART / columns).clamp(ROWS_OF_PART.0, ROWS_OF_PART.1).min((NUMBERS_MAX / columns).max(1))
    }

    /// Calls `visit` with some rows, so many at a time that they stay in a core's cache, but for wide ones.
    pub(crate) fn for_each_part(&self, rows: Range<usize>, mut visit: impl FnMut(Range<usize>, MatRef<'_, f64>)) {
        let (mut room, length) = (Vec::new(), self.rows_of_part());
        for start in rows.clone().step_by(length) {
            let part = start..(start + length).min(rows.end);
            visit(part.clone(), self.block(part, &mut room));
        }
    }

    /// The same, with the rows of others in the same places.
    pub(crate) fn for_each_part_beside(
        &self,
        others: PublicRows<'_>,
        rows: Range<usize>,
        mut visit: impl FnMut(MatRef<'_, f64>, MatRef<'_, f64>),
    ) {
        let mut room = Vec::new();
        self.for_each_part(rows, |part, rows| visit(rows, others.block(part, &mut room)));
    }

    /// Calls `visit` with each of some rows, in their order.
    pub(crate) fn for_each_row(&self, rows: Range<usize>, mut visit: impl FnMut(&[f64])) {
        let mut row = vec![0.0; self.ncols()];
        for place in rows {
            self.write_row(place, &mut row);
            visit(&row);
        }
    }

    /// These rows.
    pub(crate) fn gathered(&self, places: &[usize]) -> Mat<f64> {
        let (mut rows, mut row) = (Mat::zeros(places.len(), self.ncols()), vec![0.0; self.ncols()]);
        for (to, place) in places.iter().enumerate() {
            self.write_row(*place, &mut row);
            rows.row_mut(to).iter_mut().zip(&row).for_each(|(to, number)| *to = *number);
        }
        rows
    }

    /// All rows, or of more than `most` so many: one of each of as many stretches of rows. Which is drawn, the same every time: rows at equal
    /// distances would be all of one kind where kinds take turns.
    pub(crate) fn spread(&self, most: usize) -> Mat<f64> {
        let rows = self.nrows();
        let taken = rows.min(most);
        let mut sequence = FixedSequence::new(SEED);
        // Wide enough for rows beyond 2^32: the product stays below 2^64 for any table in memory.
        let start = |stretch: usize| stretch * rows / taken;
        let drawn = (0..taken).map(|stretch| {
            let length = start(stretch + 1) - start(stretch);
            start(stretch) + sequence.next_below(length as u64) as usize
        });
        self.gathered(&drawn.collect::<Vec<_>>())
    }

    /// Largest L2 norm of a row.
    #[must_use]
    pub fn longest_row(&self) -> f64 {
        let of_blocks = of_row_blocks(self.nrows(), 1, |rows| {
            let mut longest: f64 = 0.0;
            self.for_each_part(rows, |_, part| {
                longest = (0..part.nrows()).map(|row| part.row(row).norm_l2()).fold(longest, f64::max);
            });
            longest
        });
        of_blocks.into_iter().fold(0.0, f64::max)
    }

    /// `X w` for weights `w`, columns × outputs.
    pub(crate) fn times(&self, weights: &Mat<f64>) -> Mat<f64> {
        let blocks = of_row_blocks(self.nrows(), rows_of_task(self.nrows(), 1), |rows| {
            let (start, mut scores) = (rows.start, Mat::zeros(rows.len(), weights.ncols()));
            self.for_each_part(rows, |part, rows| {
                add_product(scores.subrows_mut(part.start - start, part.len()), rows, weights);
            });
            (start, scores)
        });
        let mut scores = Mat::zeros(self.nrows(), weights.ncols());
        for (start, block) in blocks {
            scores.subrows_mut(start, block.nrows()).copy_from(block);
        }
        scores
    }

    /// `Xᵀ Z` for as many other rows.
    pub(crate) fn transpose_times(&self, others: PublicRows<'_>) -> Mat<f64> {
        self.sum_beside(others, (self.ncols(), others.ncols()), |sum, rows, others| {
            add_product(sum, rows.transpose(), others);
        })
    }

    /// A matrix to which `add` adds what some rows bring, on all threads.
    pub(crate) fn sum(
        &self,
        (nrows, ncols): (usize, usize),
        add: impl Fn(MatMut<'_, f64>, Range<usize>, MatRef<'_, f64>) + Sync,
    ) -> Mat<f64> {
        sum_of_row_blocks(self.nrows(), rows_of_task(self.nrows(), nrows * ncols), |rows| {
            let mut sum = Mat::zeros(nrows, ncols);
            self.for_each_part(rows, |part, rows| add(sum.as_mut(), part, rows));
            sum
        })
    }

    /// The same of these rows and those of others in the same places.
    pub(crate) fn sum_beside(
        &self,
        others: PublicRows<'_>,
        (nrows, ncols): (usize, usize),
        add: impl Fn(MatMut<'_, f64>, MatRef<'_, f64>, MatRef<'_, f64>) + Sync,
    ) -> Mat<f64> {
        sum_of_row_blocks(self.nrows(), rows_of_task(self.nrows(), nrows * ncols), |rows| {
            let mut sum = Mat::zeros(nrows, ncols);
            self.for_each_part_beside(others, rows, |rows, others| add(sum.as_mut(), rows, others));
            sum
        })
    }

    fn write_row(&self, place: usize, row: &mut [f64]) {
        match &self.0 {
            Kept::Numbers(numbers) => {
                row.iter_mut().zip(numbers.row(place).iter()).for_each(|(to, number)| *to = *number);
            }
            Kept::Codes { codes, columns, step } => {
                let codes = &codes[place * columns..][..*columns];
                row.iter_mut().zip(codes).for_each(|(to, code)| *to = f64::from(*code) * step);
            }
            Kept::Integers { integers, width, taken, step } => {
                let integers = &integers[place * width..][..*width];
                row.iter_mut().zip(*taken).for_each(|(to, column)| *to = f64::from(integers[*column]) * step);
            }
        }
    }
}

/// Each number in its place, in steps of `step`.
#[inline(always)]
fn widen<T: Copy + Into<f64>>(room: &mut [f64], kept: &[T], step: f64) {
    room.iter_mut().zip(kept).for_each(|(number, kept)| *number = (*kept).into() * step);
}

/// Of the rows that are drawn.
const SEED: u64 = 20_000;
/// Numbers that are widened at a time, in 256 KiB: two such blocks and a product of theirs stay in a core's cache.
const NUMBERS_OF_PART: usize = 1 << 15;
/// Least and most rows of them. The products of columns are read and written once for all rows of a part, so these must not be few.
const ROWS_OF_PART: (usize, usize) = (256, 2_048);
/// Most numbers of a part, however wide rows are: 8 MiB.
const NUMBERS_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    /// Over several blocks.
    #[test]
    fn rows_are_the_same_however_they_are_kept() {
        let (rows, columns) = (5_000, 3);
        let codes: Vec<u16> = (0..rows * columns).map(|place| (place * 7919 % 1001) as u16).collect();
        let beside =
            |row: &[u16]| -> Vec<i32> { [-1].into_iter().chain(row.iter().map(|code| i32::from(*code))).collect() };
        let integers: Vec<i32> = codes.chunks_exact(columns).flat_map(beside).collect();
        let numbers: Vec<f64> = codes.iter().map(|code| f64::from(*code) * 0.001).collect();
        let numbers = MatRef::from_row_major_slice(&numbers, rows, columns).to_owned();
        let expected = PublicRows::from(numbers.as_ref());
        let of_codes = PublicRows::of_codes(&codes, columns, 0.001);
        let of_integers = PublicRows::of_integers(&integers, columns + 1, &[1, 2, 3], 0.001);
        let weights = Mat::from_fn(columns, 2, |row, column| row as f64 - 0.3 * column as f64);
        for found in [of_codes, of_integers] {
            assert_eq!((found.nrows(), found.ncols()), (rows, columns));
            assert_eq!(found.block(17..4_321, &mut Vec::new()), expected.block(17..4_321, &mut Vec::new()));
            assert_eq!(found.spread(999), expected.spread(999));
            assert_eq!(found.longest_row().to_bits(), expected.longest_row().to_bits());
            assert_eq!(found.times(&weights), expected.times(&weights));
            assert_eq!(found.transpose_times(found), expected.transpose_times(expected));
            let mut place = 0;
            found.for_each_row(0..rows, |row| {
                assert_eq!(row, numbers.row(place).iter().copied().collect::<Vec<_>>());
                place += 1;
            });
            assert_eq!(place, rows);
        }
        let none = PublicRows::of_integers(&integers, columns + 1, &[], 0.001);
        assert_eq!((none.nrows(), none.ncols(), none.block(2..9, &mut Vec::new()).shape()), (rows, 0, (7, 0)));
        assert_eq!(expected.spread(rows), numbers);
        assert!((expected.times(&weights) - &numbers * &weights).norm_max() < 1e-12);
        assert!((expected.transpose_times(expected) - numbers.transpose() * &numbers).norm_max() < 1e-9);
    }
}
