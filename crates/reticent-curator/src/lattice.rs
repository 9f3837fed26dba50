//! A block of lattice rows, wherever it was read from, and the exact sum of a query over it.

use reticent_core::contribution::{CodedLabel, product_label};
use reticent_core::encoding::LatticeRow;
use reticent_core::query::{Map, SumQuery};
use reticent_core::sum::PartialSum;

use crate::kernel::{Instructions, SoftmaxSlopes, add_gradient, add_products, add_softmax_gradient};

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

/// Lattice rows that lie one after another, with their labels: private. Each has a norm of at most 32767.
#[derive(Clone, Copy)]
pub struct LatticeBlock<'a> {
    /// Coordinates of a row.
    pub columns: usize,
    /// Row after row, one coordinate a column, nothing between them.
    pub features: &'a [i16],
    /// Length of one step of each row.
    pub steps: Steps<'a>,
    /// One a row; at most `2^16` of them.
    pub labels: &'a [CodedLabel],
}

impl LatticeBlock<'_> {
    pub(crate) fn assert_whole(&self) {
        assert_eq!(self.features.len(), self.columns * self.labels.len(), "one row a label");
        if let Steps::Own(steps) = self.steps {
            assert_eq!(steps.len(), self.labels.len(), "one step a row");
        }
    }

    /// The exact sum of a query that reads lattice rows: the same integers as core's scalar reference, row after row.
    ///
    /// # Panics
    /// On a query that is answered without lattice rows, and when features and labels are not of the same rows.
    pub fn sum(&self, query: &SumQuery) -> PartialSum {
        let Self { columns, features, steps, labels } = *self;
        self.assert_whole();
        let instructions = Instructions::best();
        assert!(labels.len() <= 1 << 16, "the products of a block fit 64 bits");
        let mut sum = PartialSum::zero(query);
        match *query.shape().map() {
            Map::Gradient { loss, .. } => {
                let mut totals = vec![0i64; columns];
                add_gradient(instructions, loss, query.weights(), self, &mut totals);
                sum.add_kernel_totals(&totals);
            }
            Map::SoftmaxGradient { classes, .. } | Map::BoundedSoftmaxGradient { classes, .. } => {
                let bounded = matches!(query.shape().map(), Map::BoundedSoftmaxGradient { .. });
                let slopes = if bounded { SoftmaxSlopes::Bounded } else { SoftmaxSlopes::Softmax };
                let mut totals = vec![0i64; classes as usize * columns];
                add_softmax_gradient(instructions, slopes, query.weights(), self, &mut totals);
                sum.add_kernel_totals(&totals);
            }
            Map::Gram { target, diagonal, off_diagonal, cross, square, .. } => {
                let of_row = |(row, label): (usize, &CodedLabel)| product_label(target, *label, steps.of_row(row));
                let labels: Vec<_> = labels.iter().enumerate().map(of_row).collect();
                let mut products = vec![0i64; columns * (columns + 1) / 2 + columns + 1];
                add_products(instructions, columns, features, &labels, &mut products);
                // A block of 2^16 rows, times a multiplier of at most 2^12, stays below 2^58.
                let multipliers = [diagonal, off_diagonal, cross, square].map(i64::from);
                sum.add_kernel_totals(&with_multipliers(&products, columns, multipliers));
            }
            Map::ClassCount { .. }
            | Map::ClippedGradient { .. }
            | Map::CorrectCount { .. }
            | Map::LogLoss { .. }
            | Map::ScoreHistogram { .. }
            | Map::SquaredError => {
                for (row, (features, label)) in features.chunks_exact(columns).zip(labels).enumerate() {
                    sum.add_row(query, LatticeRow { features, step: steps.of_row(row) }, *label);
                }
            }
            Map::Marginals { .. }
            | Map::MatrixProduct { .. }
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. }
            | Map::Minimum(_) => unreachable!("answered without the lattice"),
        }
        sum
    }
}

/// Products times the multipliers of their blocks, blocks with multiplier 0 of the label left out.
fn with_multipliers(products: &[i64], columns: usize, [diagonal, off_diagonal, cross, square]: [i64; 4]) -> Vec<i64> {
    let mut products = products.iter().copied();
    let mut totals = Vec::with_capacity(products.len());
    for first in 0..columns {
        totals.extend(products.by_ref().take(1).map(|product| product * diagonal));
        totals.extend(products.by_ref().take(columns - first - 1).map(|product| product * off_diagonal));
    }
    let with_label: Vec<i64> = products.by_ref().take(columns).collect();
    if cross > 0 {
        totals.extend(with_label.iter().map(|product| product * cross));
    }
    if square > 0 {
        totals.extend(products.map(|product| product * square));
    }
    totals
}
