//! Lattice rows without the zeros of wide blocks: of many categories a row has one, and that one alone is written down.
//!
//! ```text
//!   row            1 .4 | 0 1 0 | 0 0 0 ... 0 1 0 ... 0        numbers, a narrow block, a wide block
//!   packed         1 .4 | 0 1 0                                one place a column, in every row alike
//!   chosen                        (column, coordinate)         one a wide block
//! ```
//! The same row, integer for integer: a block is wide only where the encoding leaves all its other columns zero.

use crate::encoding::{CODE_MAX, Coding, Encoding, LATTICE_NORM_MAX, SlotKind, shrink_to_norm};

/// Fewest categories of a wide block: with fewer, a pass over all columns in order costs no more than one at random.
pub const WIDE_BLOCK_CATEGORIES: usize = 64;

/// Which columns have a place in every row. Public: from the schema, and from which centres are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactLayout {
    columns: usize,
    /// Ascending.
    packed: Vec<u32>,
    /// Of each slot of a row's codes, whether it is a wide block.
    wide: Vec<bool>,
}

/// Where a row is written to: private.
pub struct CompactRowMut<'a> {
    /// One coordinate a packed column.
    pub packed: &'a mut [i16],
    /// The column of the one coordinate of each wide block.
    pub chosen_columns: &'a mut [u32],
    /// That coordinate.
    pub chosen: &'a mut [i16],
}

impl CompactLayout {
    pub(crate) fn of(coding: &Coding, centre: &[f64]) -> Self {
        let (mut packed, mut wide) = (vec![0], Vec::new());
        let mut column = 1;
        for kind in coding.slot_kinds() {
            let columns = match kind {
                SlotKind::Numeric => 1,
                SlotKind::Categories(categories) => categories,
            };
            let block = column..column + columns;
            let is_wide = columns >= WIDE_BLOCK_CATEGORIES && centre[block.clone()].iter().all(|at| *at == 0.0);
            wide.push(is_wide);
            if !is_wide {
                packed.extend(block.map(|column| u32::try_from(column).expect("a schema caps its columns")));
            }
            column += columns;
        }
        Self { columns: column, packed, wide }
    }

    /// Columns of a whole row.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The columns that have a place in every row, ascending.
    #[must_use]
    pub fn packed(&self) -> &[u32] {
        &self.packed
    }

    /// Number of wide blocks, of each of which a row has one coordinate.
    #[must_use]
    pub fn wide_blocks(&self) -> usize {
        self.wide.iter().filter(|wide| **wide).count()
    }
}

impl Encoding {
    /// Puts one coded row on the lattice, as [`Encoding::encode_codes`] does, and writes it without the zeros of wide blocks.
    /// `scratch` has one place a packed column and wide block; returns the row's step.
    ///
    /// # Panics
    /// When a length is not that of [`Encoding::layout`].
    pub fn encode_compact(&self, codes: &[u16], scratch: &mut [f64], row: CompactRowMut<'_>) -> f32 {
        let layout = self.layout();
        let CompactRowMut { packed, chosen_columns, chosen } = row;
        assert_eq!((packed.len(), chosen.len()), (layout.packed.len(), layout.wide_blocks()), "a row of the layout");
        let (of_packed, of_chosen) = scratch.split_at_mut(packed.len());
        let (mut packed_values, mut chosen_values) = (of_packed.iter_mut(), of_chosen.iter_mut().zip(chosen_columns));
        // Squares are added in the order of the columns, like those of a whole row, whose other terms are zeros.
        let mut square = 0.0;
        let mut encoded = |column: usize, value: f64| {
            let encoded = self.scale()[column] * (value - self.centre()[column]);
            square += encoded * encoded;
            encoded
        };
        let mut pack = |value: f64| *packed_values.next().expect("one place a packed column") = value;
        pack(encoded(0, 1.0));
        let mut column = 1;
        for ((kind, wide), code) in self.coding().slot_kinds().zip(&layout.wide).zip(codes) {
            match kind {
                SlotKind::Numeric => {
                    pack(encoded(column, f64::from(*code) / f64::from(CODE_MAX)));
                    column += 1;
                }
                SlotKind::Categories(categories) if *wide => {
                    let (value, place) = chosen_values.next().expect("one place a wide block");
                    let at = column + usize::from(*code);
                    *place = u32::try_from(at).expect("a schema caps its columns");
                    *value = encoded(at, 1.0);
                    column += categories;
                }
                SlotKind::Categories(categories) => {
                    for category in 0..categories {
                        pack(encoded(column + category, if category == usize::from(*code) { 1.0 } else { 0.0 }));
                    }
                    column += categories;
                }
            }
        }
        let (steps_per_unit, step) = self.steps_per_unit(square.sqrt());
        for (places, values) in [(&mut *packed, of_packed), (&mut *chosen, of_chosen)] {
            for (place, value) in places.iter_mut().zip(values) {
                *place = truncated(*value * steps_per_unit);
            }
        }
        shrink_to_norm([packed, chosen]);
        step
    }
}

/// Toward zero, and never `i16::MIN`.
#[inline]
pub(crate) fn truncated(steps: f64) -> i16 {
    // `as` truncates toward zero and saturates; the clamp keeps i16::MIN out.
    let full = f64::from(LATTICE_NORM_MAX);
    steps.clamp(-full, full) as i16
}
