//! Lattice rows without the zeros of wide blocks and listed columns: of many categories a row has one, of many numbers few, and
//! those alone are written down.
//!
//! ```text
//!   row            1 .4 | 0 1 0 | 0 0 0 ... 0 1 0 ... 0        numbers, a narrow block, a wide block
//!   packed         1 .4 | 0 1 0                                one place a column, in every row alike
//!   chosen                        (column, coordinate)         one a wide block, then as many as a row may list
//! ```
//! The same row, integer for integer: a block is wide only where the encoding leaves all its other columns zero.

use crate::coding::{CODE_MAX, Coding, SlotKind, floor_code};
use crate::encoding::{Encoding, LATTICE_NORM_MAX, coarsen, shrink_to_norm};

/// Fewest categories of a wide block: with fewer, a pass over all columns in order costs no more than one at random.
pub const WIDE_BLOCK_CATEGORIES: usize = 64;

/// Which columns have a place in every row. Public: from the schema, and from which centres are zero.
#[derive(Clone, Debug, PartialEq)]
pub struct CompactLayout {
    columns: usize,
    /// Ascending.
    packed: Vec<u32>,
    chosen: usize,
    parts: Vec<Part>,
}

/// Neighbouring slots of a row's codes, in order.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    /// So many numbers.
    Numbers(usize),
    /// A block with a place for each of its categories.
    Narrow(usize),
    /// A block of so many categories with one place.
    Wide(usize),
    /// So many columns with the places of those that a row lists. The last part.
    Listed(usize),
    /// The same with a place for each of them, where some are not 0 although a row does not list them.
    ListedInPlaces(usize),
}

/// Where a row is written to: private.
pub struct CompactRowMut<'a> {
    /// One coordinate a packed column.
    pub packed: &'a mut [i16],
    /// The column of the one coordinate of each wide block, and of those that the row lists, ascending. Places that it does not
    /// use follow them, with any listed column and coordinate 0.
    pub chosen_columns: &'a mut [u32],
    /// That coordinate.
    pub chosen: &'a mut [i16],
}

impl CompactLayout {
    pub(crate) fn of(coding: &Coding, centre: &[f64]) -> Self {
        let mut layout = Self { columns: 1, packed: vec![0], chosen: 0, parts: Vec::new() };
        for kind in coding.slot_kinds() {
            match kind {
                SlotKind::Numeric => {
                    if let Some(Part::Numbers(numbers)) = layout.parts.last_mut() {
                        *numbers += 1;
                    } else {
                        layout.parts.push(Part::Numbers(1));
                    }
                    layout.pack(1);
                }
                SlotKind::Categories(categories) => {
                    let centres = &centre[layout.columns..layout.columns + categories];
                    if categories >= WIDE_BLOCK_CATEGORIES && centres.iter().all(|at| *at == 0.0) {
                        layout.parts.push(Part::Wide(categories));
                        layout.chosen += 1;
                        layout.columns += categories;
                    } else {
                        layout.parts.push(Part::Narrow(categories));
                        layout.pack(categories);
                    }
                }
            }
        }
        if let Some(listed) = coding.listed() {
            let columns = listed.features().len();
            if centre[layout.columns..].iter().all(|at| *at == 0.0) {
                layout.parts.push(Part::Listed(columns));
                layout.chosen += listed.most();
                layout.columns += columns;
            } else {
                layout.parts.push(Part::ListedInPlaces(columns));
                layout.pack(columns);
            }
        }
        layout
    }

    /// The squares of all of a row's values in their one order: those of packed columns in eight sums, by place, then the others.
    ///
    /// The order is part of the encoding: another one would round the norm of a row to a neighbouring number.
    pub(crate) fn sum_of_squares(&self, values: &[f64]) -> f64 {
        let packed: Vec<f64> = self.packed.iter().map(|column| values[*column as usize]).collect();
        let mut column = 1;
        let mut others = Vec::new();
        for part in &self.parts {
            let columns = match *part {
                Part::Numbers(columns) | Part::Narrow(columns) | Part::ListedInPlaces(columns) => columns,
                Part::Wide(columns) | Part::Listed(columns) => {
                    others.extend_from_slice(&values[column..column + columns]);
                    columns
                }
            };
            column += columns;
        }
        sum_of_squares(&packed, &others)
    }

    /// Gives the next columns a place.
    fn pack(&mut self, columns: usize) {
        let column = |column| u32::try_from(column).expect("a schema caps its columns");
        self.packed.extend((self.columns..self.columns + columns).map(column));
        self.columns += columns;
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

    /// Whether rows list columns, and may use fewer of these places.
    #[must_use]
    pub fn has_list(&self) -> bool {
        matches!(self.parts.last(), Some(Part::Listed(_)))
    }

    /// Coordinates of a row that have no place of their own: one of each wide block, and as many as a row may list.
    #[must_use]
    pub fn chosen(&self) -> usize {
        self.chosen
    }
}

impl Encoding {
    /// Puts one coded row on the lattice, as [`Encoding::encode_codes`] does, and writes it without those zeros that have no place.
    /// `scratch` has one place a packed and a chosen coordinate; returns the row's step.
    ///
    /// # Panics
    /// When a length is not that of [`Encoding::layout`].
    // Compiled into its caller, for the instructions that the caller may use.
    #[inline(always)]
    pub fn encode_compact(&self, codes: &[u16], scratch: &mut [f64], row: CompactRowMut<'_>) -> f32 {
        let layout = self.layout();
        let (codes, list) = self.coding().slots_and_list(codes);
        let CompactRowMut { packed, chosen_columns, chosen } = row;
        assert_eq!((packed.len(), chosen.len()), (layout.packed.len(), layout.chosen()), "a row of the layout");
        let (of_packed, of_chosen) = scratch.split_at_mut(packed.len());
        let (scale, centre, ranges) = (self.scale(), self.centre(), self.read_ranges());
        of_packed[0] = scale[0] * (1.0 - centre[0]);
        let (mut column, mut place, mut slot) = (1, 1, 0);
        let mut wide = of_chosen.iter_mut().zip(chosen_columns);
        for part in &layout.parts {
            match *part {
                Part::Numbers(numbers) => {
                    let values = &mut of_packed[place..place + numbers];
                    let columns = scale[column..column + numbers].iter().zip(&centre[column..column + numbers]);
                    let read = codes[slot..slot + numbers].iter().zip(&ranges[slot..slot + numbers]);
                    for ((value, (code, range)), (scale, centre)) in values.iter_mut().zip(read).zip(columns) {
                        *value = scale * (f64::from(range.of(*code)) / f64::from(CODE_MAX) - centre);
                    }
                    (column, place, slot) = (column + numbers, place + numbers, slot + numbers);
                }
                Part::Narrow(categories) => {
                    let values = &mut of_packed[place..place + categories];
                    let columns = scale[column..column + categories].iter().zip(&centre[column..column + categories]);
                    for (value, (scale, centre)) in values.iter_mut().zip(columns) {
                        *value = scale * (0.0 - centre);
                    }
                    let at = usize::from(codes[slot]);
                    values[at] = scale[column + at] * (1.0 - centre[column + at]);
                    (column, place, slot) = (column + categories, place + categories, slot + 1);
                }
                Part::Wide(categories) => {
                    let (value, chosen_column) = wide.next().expect("one place a wide block");
                    let at = column + usize::from(codes[slot]);
                    *chosen_column = u32::try_from(at).expect("a schema caps its columns");
                    // Its centre is 0.
                    *value = scale[at];
                    (column, slot) = (column + categories, slot + 1);
                }
                Part::Listed(_) => {
                    let listed = self.coding().listed().expect("the layout is that of the coding");
                    for ((at, code), (value, chosen_column)) in listed.numbers(list).zip(wide.by_ref()) {
                        *chosen_column = u32::try_from(at).expect("a schema caps its columns");
                        *value = scale[at] * (f64::from(code) / f64::from(CODE_MAX));
                    }
                }
                Part::ListedInPlaces(columns) => {
                    let values = &mut of_packed[place..place + columns];
                    for (value, (scale, centre)) in values.iter_mut().zip(scale[column..].iter().zip(&centre[column..]))
                    {
                        *value = scale * (0.0 - centre);
                    }
                    let listed = self.coding().listed().expect("the layout is that of the coding");
                    for (at, code) in listed.numbers(list).filter(|(_, code)| *code > 0) {
                        values[at - column] = scale[at] * (f64::from(code) / f64::from(CODE_MAX) - centre[at]);
                    }
                }
            }
        }
        let square = sum_of_squares(of_packed, of_chosen);
        let (steps_per_unit, step) = self.steps_per_unit(square.sqrt());
        for (places, values) in [(&mut *packed, of_packed), (&mut *chosen, of_chosen)] {
            for (place, value) in places.iter_mut().zip(values) {
                *place = truncated(*value * steps_per_unit);
            }
        }
        shrink_to_norm([&mut *packed, &mut *chosen]);
        if self.is_coarse() {
            coarsen([packed, chosen]);
        }
        step
    }
}

/// The squares of a row's values in their one order: those of packed columns in eight sums, by place; then the chosen.
#[inline(always)]
pub(crate) fn sum_of_squares(packed: &[f64], chosen: &[f64]) -> f64 {
    let mut sums = [0.0; 8];
    let (eights, rest) = packed.as_chunks::<8>();
    for eight in eights {
        for (sum, value) in sums.iter_mut().zip(eight) {
            *sum += value * value;
        }
    }
    for (sum, value) in sums.iter_mut().zip(rest) {
        *sum += value * value;
    }
    sums.iter().sum::<f64>() + chosen.iter().map(|value| value * value).sum::<f64>()
}

/// Toward zero, and never `i16::MIN`; 0 for what is not a number.
///
/// What `steps.clamp(-32767.0, 32767.0) as i16` says, in vector instructions.
#[inline(always)]
pub(crate) fn truncated(steps: f64) -> i16 {
    let full = f64::from(LATTICE_NORM_MAX);
    let size = steps.abs();
    let size = if size > full { full } else { size };
    let size = if size.is_nan() { 0.0 } else { size };
    let magnitude = floor_code(size) as i16;
    if steps < 0.0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::truncated;

    fn check(steps: f64) -> Result<(), TestCaseError> {
        prop_assert_eq!(truncated(steps), steps.clamp(-32767.0, 32767.0) as i16, "{:?}", steps);
        Ok(())
    }

    #[test]
    fn every_step_and_its_neighbours_are_truncated() {
        for whole in -32_800..=32_800 {
            let whole = f64::from(whole);
            for steps in [whole, whole.next_up(), whole.next_down(), whole + 0.5] {
                check(steps).expect("equal");
            }
        }
        for odd in [f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, -0.0, f64::MIN_POSITIVE] {
            check(odd).expect("equal");
        }
    }

    proptest! {
        #[test]
        fn every_number_is_truncated(bits: u64, near in -40_000.0..40_000.0) {
            check(f64::from_bits(bits))?;
            check(near)?;
        }
    }
}
