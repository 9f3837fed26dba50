//! Numbers of which a row has few that are not 0: a row lists those and leaves out the others.
//!
//! ```text
//!   codes of a row     ... slots | size | place place number   place place number   0 0 0
//!                                  one    the place of a column in two codes, least first, and the code of its number;
//!                                         zeros where a row has fewer than it may have
//! ```
//! How many a row may list is public, and of a row with more the first count, in the order of the columns: no row can add more.

use crate::coding::{CODE_MAX, number_code};
use crate::record::Cell;

/// The columns that a row lists: public, from the schema. They come after all others.
#[derive(Clone, Debug, PartialEq)]
pub struct ListedColumns {
    pub(crate) first_column: usize,
    /// The feature of each column, ascending.
    pub(crate) features: Vec<usize>,
    /// Upper bound of each; the lower one is 0.
    pub(crate) highs: Vec<f64>,
    /// Columns that a row may list.
    pub(crate) most: usize,
}

/// Codes of one listed number.
const PLACE_CODES: usize = 3;

/// Row sizes are told apart by log2 of the sum of squared codes, from `SIZE_FLOOR` over a range of `SIZE_SPAN`; smaller rows count as
/// `SIZE_FLOOR`, the size of 1/181 of one full number.
const SIZE_FLOOR: f64 = 15.0;
const SIZE_SPAN: f64 = 32.0;

impl ListedColumns {
    /// The first of them among the encoded columns.
    #[must_use]
    pub fn first_column(&self) -> usize {
        self.first_column
    }

    /// Position in the schema of the feature of each column, ascending.
    #[must_use]
    pub fn features(&self) -> &[usize] {
        &self.features
    }

    /// Columns that a row may list.
    #[must_use]
    pub fn most(&self) -> usize {
        self.most
    }

    /// Codes of a row's list.
    #[must_use]
    pub fn codes(&self) -> usize {
        1 + PLACE_CODES * self.most
    }

    /// The code of a column, made of the cell of its feature.
    ///
    /// # Panics
    /// When there is no such column, or the cell is of another kind than the feature: mistakes of the caller's code.
    #[inline]
    #[must_use]
    pub fn code(&self, place: usize, cell: &Cell) -> u16 {
        match cell {
            Cell::Number(number) => number_code(*number, 0.0, self.highs[place]),
            Cell::Category(_) => unreachable!("a cell is made by the feature that it belongs to"),
        }
    }

    /// Writes the list of a row, of which `numbers` gives places and codes, the places ascending: the first that are not 0.
    ///
    /// A place that is not above the one before is left out: a column that stood there twice would weigh more than the row's norm
    /// says.
    ///
    /// # Panics
    /// When the codes are not [`Self::codes`] many.
    pub fn write(&self, numbers: impl Iterator<Item = (usize, u16)>, codes: &mut [u16]) {
        assert_eq!(codes.len(), self.codes(), "one list a row");
        codes.fill(0);
        let (size, places) = codes.split_at_mut(1);
        let mut square = 0;
        let (places, _) = places.as_chunks_mut::<PLACE_CODES>();
        let mut next = 0;
        let once = numbers.filter(|(place, code)| {
            let is_listed = *code > 0 && *place >= next && *place < self.features.len();
            next = if is_listed { place + 1 } else { next };
            is_listed
        });
        for (at, (place, code)) in places.iter_mut().zip(once) {
            *at = [place as u16, (place >> 16) as u16, code];
            square += u64::from(code).pow(2);
        }
        size[0] = size_code(square);
    }

    /// Column and code of each number of a row's list; where the row lists fewer than it may, the first column with code 0.
    #[inline(always)]
    pub fn numbers(&self, codes: &[u16]) -> impl Iterator<Item = (usize, u16)> {
        let (places, _) = codes[1..].as_chunks::<PLACE_CODES>();
        places
            .iter()
            .map(|[low, high, code]| (self.first_column + (usize::from(*low) | usize::from(*high) << 16), *code))
    }

    /// Squared norm of the list of a typical row, numbers in `[0, 1]`: what a mean of the first code of rows, over
    /// [`CODE_MAX`], stands for.
    #[must_use]
    pub fn typical_square(&self, mean_size: f64) -> f64 {
        let full = f64::from(CODE_MAX);
        (SIZE_FLOOR + SIZE_SPAN * mean_size).exp2() / (full * full)
    }
}

/// The size of a list from the sum of its squared codes: a logarithm that is linear between powers of 2.
fn size_code(square: u64) -> u16 {
    if square == 0 {
        return 0;
    }
    let whole = square.ilog2();
    let logarithm = f64::from(whole) + (square as f64 / (1u64 << whole) as f64 - 1.0);
    number_code(logarithm, SIZE_FLOOR, SIZE_SPAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_column_is_listed_twice() {
        let columns = ListedColumns { first_column: 5, features: vec![0, 1, 2, 3], highs: vec![1.0; 4], most: 3 };
        let mut codes = vec![7; columns.codes()];
        let given = [(1, 9), (1, 8), (0, 7), (2, 0), (3, 6), (4, 5), (9, 4)];
        columns.write(given.into_iter(), &mut codes);
        assert_eq!(columns.numbers(&codes).collect::<Vec<_>>(), [(6, 9), (8, 6), (5, 0)]);
        assert_eq!(codes[1..], [1, 0, 9, 3, 0, 6, 0, 0, 0]);
    }

    #[test]
    fn a_column_beyond_16_bits_has_its_place() {
        let features: Vec<usize> = (0..200_000).collect();
        let columns = ListedColumns { first_column: 5, highs: vec![1.0; features.len()], features, most: 2 };
        let mut codes = vec![7; columns.codes()];
        columns.write([(65_535, 9), (199_999, 8)].into_iter(), &mut codes);
        assert_eq!(columns.numbers(&codes).collect::<Vec<_>>(), [(65_540, 9), (200_004, 8)]);
    }

    #[test]
    fn a_typical_square_is_that_of_the_rows() {
        let columns = ListedColumns { first_column: 1, features: vec![0], highs: vec![1.0], most: 1 };
        for square in [1.0, 0.25, 3.0, 50.0, 1e-4, 60_000.0] {
            let code = size_code((square * f64::from(CODE_MAX).powi(2)) as u64);
            let found = columns.typical_square(f64::from(code) / f64::from(CODE_MAX));
            assert!((found / square).log2().abs() < 0.09, "{square} gives {found}");
        }
        assert_eq!([size_code(0), size_code(1), size_code(1 << 15)], [0; 3]);
        assert_eq!(size_code(u64::MAX), CODE_MAX);
    }
}
