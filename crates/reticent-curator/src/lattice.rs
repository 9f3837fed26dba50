//! Blocks of lattice rows, wherever they were read from.

use reticent_core::compact_row::CompactLayout;
use reticent_core::contribution::CodedLabel;
use reticent_core::encoding::COARSE_STEPS;

use crate::kernel::ColumnOrder;

/// Most rows of a block. What is added up over one then fits 64 bits, whatever its rows are, and a row's place in it 16:
///
/// ```text
///   products of two coordinates, each below 2^15, times a multiplier of at most 2^12    2^16 2^30 2^12 = 2^58
///   coordinates times the limb of a slope, at most 2^30 (kernel::minimum)               2^16 2^15 2^30 = 2^61
/// ```
pub const BLOCK_ROWS_MAX: usize = 1 << 16;

/// Length of one lattice step of the rows of a block.
#[derive(Clone, Copy)]
pub enum Steps<'a> {
    /// The same for all rows, as [`reticent_core::encoding::Encoding::common_step`] says.
    Common(f32),
    /// One a row.
    Own(&'a [f32]),
}

impl Steps<'_> {
    /// The step of one row of the block.
    ///
    /// # Panics
    /// When there is no such row.
    #[must_use]
    #[inline]
    pub fn of_row(&self, row: usize) -> f32 {
        match self {
            Self::Common(step) => *step,
            Self::Own(steps) => steps[row],
        }
    }

    /// The steps of some rows of the block.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    pub fn of_rows(&self, rows: std::ops::Range<usize>) -> Self {
        match self {
            Self::Common(step) => Self::Common(*step),
            Self::Own(steps) => Self::Own(&steps[rows]),
        }
    }
}

/// Lattice rows that lie one after another, with their labels: private. Each has a norm of at most 32767, with its chosen
/// coordinates where it is a part of a [`CompactBlock`].
#[derive(Clone, Copy)]
pub struct LatticeBlock<'a, T = i16> {
    /// Coordinates of a row.
    pub columns: usize,
    /// Row after row, one coordinate a column, nothing between them.
    pub features: &'a [T],
    /// Length of one step of each row.
    pub steps: Steps<'a>,
    /// One a row; at most [`BLOCK_ROWS_MAX`] of them.
    pub labels: &'a [CodedLabel],
}

impl<T> LatticeBlock<'_, T> {
    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.features.len(), self.columns * self.labels.len(), "one row a label");
        if let Steps::Own(steps) = self.steps {
            assert_eq!(steps.len(), self.labels.len(), "one step a row");
        }
    }
}

/// Of each row of a block the coordinates that have no place of their own, each with its column: private.
#[derive(Clone, Copy)]
pub struct ChosenCoordinates<'a> {
    /// Coordinates of a row: [`CompactLayout::chosen`].
    pub per_row: usize,
    /// Whether a row may have fewer, so that its columns ascend only as far as it uses them: [`CompactLayout::has_list`].
    pub has_list: bool,
    /// Row after row, the column of each coordinate.
    pub columns: &'a [u32],
    /// The coordinates.
    pub values: &'a [i16],
    /// The same column after column, where somebody has them so: gradients of two classes are then added up that way.
    pub by_column: Option<&'a ColumnOrder>,
}

impl ChosenCoordinates<'_> {
    /// Those of some rows.
    ///
    /// # Panics
    /// When there are no such rows.
    #[must_use]
    #[inline]
    pub fn of_rows(&self, rows: std::ops::Range<usize>) -> Self {
        let places = rows.start * self.per_row..rows.end * self.per_row;
        Self {
            per_row: self.per_row,
            has_list: self.has_list,
            columns: &self.columns[places.clone()],
            values: &self.values[places],
            by_column: None,
        }
    }
}

/// Lattice rows without the zeros that have no place: private.
#[derive(Clone, Copy)]
pub struct CompactBlock<'a, T = i16> {
    /// Which columns are where.
    pub layout: &'a CompactLayout,
    /// The packed columns.
    pub packed: LatticeBlock<'a, T>,
    /// The others.
    pub chosen: ChosenCoordinates<'a>,
}

impl<'a, T> CompactBlock<'a, T> {
    /// Rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.packed.labels.len()
    }

    pub(crate) fn assert_whole(&self) {
        self.packed.assert_whole();
        assert_eq!(self.packed.columns, self.layout.packed().len(), "a block of the layout");
        assert_eq!(self.chosen.per_row, self.layout.chosen(), "a block of the layout");
        assert_eq!(self.chosen.columns.len(), self.rows() * self.chosen.per_row, "the same number of each row");
        assert_eq!(self.chosen.values.len(), self.chosen.columns.len(), "one column a coordinate");
        let is_of_block = |order: &ColumnOrder| order.is_of(self.rows(), self.layout.columns());
        assert!(self.chosen.by_column.is_none_or(is_of_block), "the order of another block");
    }

    /// Some of its rows.
    ///
    /// # Panics
    /// When there are no such rows.
    pub(crate) fn of_rows(&self, rows: std::ops::Range<usize>) -> Self {
        let LatticeBlock { columns, features, steps, labels } = self.packed;
        let packed = LatticeBlock {
            columns,
            features: &features[rows.start * columns..rows.end * columns],
            steps: steps.of_rows(rows.clone()),
            labels: &labels[rows.clone()],
        };
        Self { layout: self.layout, packed, chosen: self.chosen.of_rows(rows) }
    }

    /// The same, with its chosen coordinates in a second order.
    pub(crate) fn with(mut self, by_column: Option<&'a ColumnOrder>) -> Self {
        self.chosen.by_column = by_column;
        self
    }

    /// What belongs to the packed columns, of values of all columns.
    pub(crate) fn packed_of<V: Copy>(&self, values: &[V]) -> Vec<V> {
        self.layout.packed().iter().map(|column| values[*column as usize]).collect()
    }

    /// Adds totals of the packed columns to those of all columns.
    pub(crate) fn add_packed(&self, packed: &[i64], totals: &mut [i64]) {
        for (column, more) in self.layout.packed().iter().zip(packed) {
            totals[*column as usize] += more;
        }
    }
}

/// A block with its packed coordinates as an encoding has them: in 16 bits, or in 8 in units of [`COARSE_STEPS`].
#[derive(Clone, Copy)]
pub enum KeptBlock<'a> {
    /// Of a usual encoding.
    Fine(CompactBlock<'a>),
    /// Of a coarse one.
    Coarse(CompactBlock<'a, i8>),
}

impl<'a> KeptBlock<'a> {
    /// The same, with its chosen coordinates in a second order.
    pub(crate) fn with(self, by_column: Option<&'a ColumnOrder>) -> Self {
        match self {
            Self::Fine(block) => Self::Fine(block.with(by_column)),
            Self::Coarse(block) => Self::Coarse(block.with(by_column)),
        }
    }

    /// The block in 16 bits, which are written to `wider` where they are not at hand.
    pub(crate) fn widened<'w>(&self, wider: &'w mut Vec<i16>) -> CompactBlock<'w>
    where
        'a: 'w,
    {
        match *self {
            Self::Fine(block) => block,
            Self::Coarse(CompactBlock { layout, packed, chosen }) => {
                let LatticeBlock { columns, features, steps, labels } = packed;
                wider.resize(features.len(), 0);
                widen(features, wider);
                CompactBlock { layout, packed: LatticeBlock { columns, features: wider, steps, labels }, chosen }
            }
        }
    }
}

impl CompactBlock<'_> {
    /// Writes whole rows, zeros included, for what has no compact form.
    ///
    /// # Panics
    /// When `features` has not one place a column of every row.
    pub fn expand(&self, features: &mut [i16]) {
        self.assert_whole();
        let columns = self.layout.columns();
        assert_eq!(features.len(), columns * self.rows(), "one place a column");
        features.fill(0);
        for (row, features) in features.chunks_exact_mut(columns).enumerate() {
            let packed = &self.packed.features[row * self.packed.columns..][..self.packed.columns];
            for (column, value) in self.layout.packed().iter().zip(packed) {
                features[*column as usize] = *value;
            }
            let chosen = self.chosen.of_rows(row..row + 1);
            for (column, value) in chosen.columns.iter().zip(chosen.values) {
                // Added, as a place that the row does not use has a column that it may have used before, and 0.
                features[*column as usize] += value;
            }
        }
    }
}

/// Coarse coordinates in lattice steps.
///
/// # Panics
/// When there are not as many places.
pub(crate) fn widen(coarse: &[i8], fine: &mut [i16]) {
    assert_eq!(coarse.len(), fine.len(), "one place a coordinate");
    for (fine, coarse) in fine.iter_mut().zip(coarse) {
        *fine = i16::from(*coarse) * COARSE_STEPS;
    }
}

/// The other way, of coordinates that a coarse encoding made.
///
/// # Panics
/// When there are not as many places.
pub(crate) fn narrow(fine: &[i16], coarse: &mut [i8]) {
    assert_eq!(coarse.len(), fine.len(), "one place a coordinate");
    for (coarse, fine) in coarse.iter_mut().zip(fine) {
        *coarse = (*fine / COARSE_STEPS) as i8;
    }
}
