//! The exact sum of a query over one block after another: the same integers as core's scalar reference, row after row.

use reticent_core::coding::{Coding, SlotKind};
use reticent_core::compact_row::CompactLayout;
use reticent_core::contribution::{CodedLabel, UNUSABLE_LABEL, number_bin, product_label, target_bin};
use reticent_core::query::{COUNT_STEP, Loss, Map, ProductTarget, SumQuery, outputs};
use reticent_core::sum::PartialSum;

use crate::kernel::{
    Coordinate, GradientRule, Instructions, MarginalPlaces, SoftmaxSlopes, add_gradient, add_marginals, add_products,
    add_softmax_gradient, find_largest_slopes, find_score_products,
};
use crate::lattice::{BLOCK_ROWS_MAX, CompactBlock, KeptBlock, LatticeBlock};

/// What one thread has added up: private. Gradients stay in 64 bits from block to block, so that a block of few rows and many
/// columns costs no pass over all columns.
pub struct RunningSum<'a> {
    query: &'a SumQuery,
    instructions: Instructions,
    /// None as long as all is in the totals: it is twice as large.
    sum: Option<PartialSum>,
    /// Of gradients and marginals, not yet in the sum; empty until there are any.
    totals: Vec<i64>,
    /// Rows in the totals.
    rows: u64,
    /// Of marginals; none until there are any.
    places: Option<MarginalPlaces>,
}

/// Rows whose gradients and marginals fit 64 bits: a product of slope and coordinate is below `2^26`, a count is `2^20`.
const ROWS_MAX: u64 = 1 << 36;

/// Coordinates of the rows that are written out together where products are asked of rows with wide blocks.
const EXPANDED_COORDINATES: usize = 1 << 19;

/// Products of rows and weights that are found together, for questions that look at label and scores alone.
const PRODUCTS_OF_A_PART: usize = 1 << 13;

/// Columns whose totals the second-level cache holds, with the weights.
const CACHED_COLUMNS: usize = 1 << 16;

impl<'a> RunningSum<'a> {
    /// The sum over no rows.
    #[must_use]
    pub fn zero(query: &'a SumQuery) -> Self {
        let instructions = Instructions::best();
        Self { query, instructions, sum: None, totals: Vec::new(), rows: 0, places: None }
    }

    /// Adds the rows of a block. Bounds of their slopes, for a query that has a [`Self::clip`], are found if they are not at hand. Gradients read
    /// coarse rows as they are; for other queries they are widened first.
    ///
    /// # Panics
    /// On a query that is answered without lattice rows, and when the parts of the block are not of the same rows.
    pub fn add(&mut self, block: &KeptBlock<'_>, largest: Option<&[i16]>) {
        let was_gradient = match block {
            KeptBlock::Fine(block) => self.add_slopes(block, largest),
            KeptBlock::Coarse(block) => self.add_slopes(block, largest),
        };
        if !was_gradient {
            self.add_fine(&block.widened(&mut Vec::new()));
        }
    }

    /// Adds slopes times rows, and says whether the query asks for them.
    fn add_slopes<T: Coordinate>(&mut self, block: &CompactBlock<'_, T>, largest: Option<&[i16]>) -> bool {
        block.assert_whole();
        assert!(block.rows() <= BLOCK_ROWS_MAX, "the products of a block fit 64 bits");
        let map = self.query.shape().map();
        if matches!(map, Map::Gradient { .. } | Map::ClippedGradient { .. }) {
            self.add_gradient(block, largest);
        } else if matches!(map, Map::SoftmaxGradient { .. }) {
            self.add_softmax_gradient(SoftmaxSlopes::Softmax, block);
        } else if matches!(map, Map::BoundedSoftmaxGradient { .. }) {
            self.add_softmax_gradient(SoftmaxSlopes::Bounded, block);
        } else {
            return false;
        }
        true
    }

    fn add_fine(&mut self, block: &CompactBlock<'_>) {
        match *self.query.shape().map() {
            Map::Gram { target, diagonal, off_diagonal, cross, square, .. } => {
                self.add_gram(target, [diagonal, off_diagonal, cross, square], block);
            }
            Map::ScoreHistogram { .. } | Map::SquaredError => self.add_scored(1, block),
            Map::CorrectCount { classes } | Map::LogLoss { classes } => self.add_scored(outputs(classes), block),
            Map::ExcessHits { classes } => self.add_scored(2 * outputs(classes), block),
            Map::ConfidenceSteps { classes, models } => {
                self.add_scored((1 + models as usize) * outputs(classes), block)
            }
            Map::ResidualSteps { models } => self.add_scored(1 + models as usize, block),
            Map::ClassCount { .. }
            | Map::Marginals { .. }
            | Map::NumberBins { .. }
            | Map::TargetSum
            | Map::TargetBins { .. }
            | Map::MatrixProduct { .. }
            | Map::LabelsByBin { .. }
            | Map::LabelBins
            | Map::LabelSquares
            | Map::PartyVectors { .. }
            | Map::PartyMinimum { .. }
            | Map::Minimum(_) => unreachable!("answered without the lattice"),
            Map::Gradient { .. }
            | Map::ClippedGradient { .. }
            | Map::SoftmaxGradient { .. }
            | Map::BoundedSoftmaxGradient { .. } => unreachable!("added already"),
        }
    }

    /// The largest length of a row's slope times the row, where the query has one.
    #[must_use]
    pub fn clip(query: &SumQuery) -> Option<u32> {
        let Map::ClippedGradient { clip, .. } = *query.shape().map() else { return None };
        Some(clip)
    }

    /// Whether chosen coordinates are better added up column after column: where the totals of all columns are more than a cache holds.
    #[must_use]
    pub(crate) fn is_by_column(query: &SumQuery, layout: &CompactLayout) -> bool {
        matches!(query.shape().map(), Map::Gradient { .. } | Map::ClippedGradient { .. })
            && Self::has_many_columns(layout)
    }

    /// Whether that is so for a table with chosen coordinates.
    pub(crate) fn has_many_columns(layout: &CompactLayout) -> bool {
        layout.chosen() > 0 && layout.columns() > CACHED_COLUMNS
    }

    /// Adds rows to a query that is answered from codes and labels: [`Self::is_of_codes`].
    ///
    /// # Panics
    /// On any other query, and when the codes are not of whole rows, one a label.
    pub fn add_codes(&mut self, codes: &[u16], labels: &[CodedLabel]) {
        self.make_room(labels.len());
        let query = self.query;
        if let Map::TargetSum = query.shape().map() {
            let window = query.weights().target_window();
            let usable = labels.iter().filter(|label| **label != UNUSABLE_LABEL);
            self.totals[0] += usable.map(|label| i64::from(window.of(*label))).sum::<i64>();
            return;
        }
        if let Map::TargetBins { bins } = *query.shape().map() {
            let window = query.weights().target_window();
            for bin in labels.iter().filter_map(|label| target_bin(*label, window, bins)) {
                self.totals[bin] += COUNT_STEP;
            }
            return;
        }
        if let Map::NumberBins { bins, .. } = *query.shape().map() {
            let coding = query.encoding().expect("bins of numbers are asked of a table").coding();
            add_number_bins(bins, coding, codes, labels, &mut self.totals);
            return;
        }
        let places = self.places.get_or_insert_with(|| places_of(query));
        let codes = if places.codes() == 0 { &[] } else { codes };
        add_marginals(self.instructions, places, codes, labels, &mut self.totals);
    }

    /// Whether codes and labels are all that a question looks at.
    #[must_use]
    pub fn is_of_codes(query: &SumQuery) -> bool {
        matches!(
            query.shape().map(),
            Map::ClassCount { .. }
                | Map::Marginals { .. }
                | Map::NumberBins { .. }
                | Map::TargetSum
                | Map::TargetBins { .. }
        )
    }

    /// The sum over the rows of both, of which none is in both.
    #[must_use]
    pub fn joined(mut self, mut other: Self) -> Self {
        if self.rows + other.rows > ROWS_MAX {
            self.flush();
            other.flush();
        }
        if self.totals.is_empty() {
            std::mem::swap(&mut self.totals, &mut other.totals);
        }
        for (total, more) in self.totals.iter_mut().zip(&other.totals) {
            *total += more;
        }
        self.rows += other.rows;
        if let Some(sum) = other.sum {
            self.sum_mut().merge(sum);
        }
        self
    }

    /// The sum over all rows that were added.
    pub fn finish(mut self) -> PartialSum {
        self.flush();
        self.sum.unwrap_or_else(|| PartialSum::zero(self.query))
    }

    fn sum_mut(&mut self) -> &mut PartialSum {
        self.sum.get_or_insert_with(|| PartialSum::zero(self.query))
    }

    fn add_gradient<T: Coordinate>(&mut self, block: &CompactBlock<'_, T>, largest: Option<&[i16]>) {
        let (mut found, mut largest) = (Vec::new(), largest);
        if let (Some(clip), None) = (Self::clip(self.query), largest) {
            found.resize(block.rows(), 0);
            find_largest_slopes(self.instructions, clip, block, &mut found);
            largest = Some(&found);
        }
        let loss = if let Map::Gradient { loss, .. } = *self.query.shape().map() { loss } else { Loss::Logistic };
        self.make_room(block.rows());
        let rule = GradientRule { loss, largest };
        add_gradient(self.instructions, rule, self.query.weights(), block, &mut self.totals);
    }

    fn add_softmax_gradient<T: Coordinate>(&mut self, slopes: SoftmaxSlopes, block: &CompactBlock<'_, T>) {
        self.make_room(block.rows());
        add_softmax_gradient(self.instructions, slopes, self.query.weights(), block, &mut self.totals);
    }

    fn make_room(&mut self, rows: usize) {
        if self.rows + rows as u64 > ROWS_MAX {
            self.flush();
        }
        self.totals.resize(self.query.shape().coordinates() as usize, 0);
        self.rows += rows as u64;
    }

    fn flush(&mut self) {
        if self.rows > 0 {
            let totals = std::mem::take(&mut self.totals);
            self.sum_mut().add_kernel_totals(&totals);
            self.rows = 0;
        }
    }

    /// What looks at label and scores alone.
    fn add_scored(&mut self, scores: usize, block: &CompactBlock<'_>) {
        let query = self.query;
        let weights = &query.weights().weights()[..scores * block.layout.columns()];
        let rows_of_part = (PRODUCTS_OF_A_PART / scores).max(1);
        let (mut products, mut dots) = (Vec::new(), vec![0; scores]);
        for first in (0..block.rows()).step_by(rows_of_part) {
            let part = block.of_rows(first..block.rows().min(first + rows_of_part));
            products.resize(part.rows() * scores, 0);
            find_score_products(self.instructions, weights, &part, &mut products);
            let LatticeBlock { steps, labels, .. } = part.packed;
            for (row, (products, label)) in products.chunks_exact(scores).zip(labels).enumerate() {
                dots.iter_mut().zip(products).for_each(|(dot, product)| *dot = i64::from(*product));
                self.sum_mut().add_scored(query, &dots, steps.of_row(row), *label);
            }
        }
    }

    /// Products of whole rows, some at a time where the block has wide parts.
    fn add_gram(&mut self, target: ProductTarget, multipliers: [u32; 4], block: &CompactBlock<'_>) {
        if block.chosen.per_row == 0 {
            return self.add_products(target, multipliers, &block.packed);
        }
        let columns = block.layout.columns();
        let rows_of_part = (EXPANDED_COORDINATES / columns).max(1);
        let mut features = Vec::new();
        for first in (0..block.rows()).step_by(rows_of_part) {
            let part = block.of_rows(first..block.rows().min(first + rows_of_part));
            features.resize(part.rows() * columns, 0);
            part.expand(&mut features);
            self.add_products(target, multipliers, &LatticeBlock { columns, features: &features, ..part.packed });
        }
    }

    fn add_products(&mut self, target: ProductTarget, multipliers: [u32; 4], block: &LatticeBlock<'_>) {
        let LatticeBlock { columns, features, steps, labels } = *block;
        let window = self.query.weights().target_window();
        let of_row = |(row, label): (usize, &CodedLabel)| {
            product_label(target, window, *label, steps.of_row(row)).map_or(UNUSABLE_LABEL, |label| label as i16)
        };
        let labels: Vec<_> = labels.iter().enumerate().map(of_row).collect();
        let mut products = vec![0i64; columns * (columns + 1) / 2 + columns + 1];
        add_products(self.instructions, columns, features, &labels, &mut products);
        // They fit 64 bits: BLOCK_ROWS_MAX.
        self.sum_mut().add_kernel_totals(&with_multipliers(&products, columns, multipliers.map(i64::from)));
    }
}

/// One sum of two over different rows.
pub(crate) fn merged(mut left: PartialSum, right: PartialSum) -> PartialSum {
    left.merge(right);
    left
}

/// Where the marginals of a query lie; a class count is those of no codes.
fn places_of(query: &SumQuery) -> MarginalPlaces {
    if let Map::ClassCount { classes } = *query.shape().map() {
        return MarginalPlaces::new(classes, None);
    }
    let Map::Marginals { classes, .. } = *query.shape().map() else { unreachable!("answered from the lattice") };
    MarginalPlaces::new(classes, Some(query.encoding().expect("marginals are asked of a table").coding()))
}

/// Counts the numbers of rows by their bins.
fn add_number_bins(bins: u32, coding: &Coding, codes: &[u16], labels: &[CodedLabel], totals: &mut [i64]) {
    let numbers = coding.slot_kinds().enumerate().filter(|(_, kind)| matches!(kind, SlotKind::Numeric));
    let places: Vec<(usize, usize)> =
        numbers.zip(0..).map(|((slot, _), number)| (slot, number * bins as usize)).collect();
    // Half the room of the totals, which the first-level cache would often not hold.
    let mut counts = vec![0u32; totals.len()];
    let rows = codes.chunks_exact(coding.codes()).zip(labels);
    for (codes, _) in rows.filter(|(_, label)| **label != UNUSABLE_LABEL) {
        for (slot, first) in &places {
            counts[first + number_bin(codes[*slot], bins)] += 1;
        }
    }
    for (total, count) in totals.iter_mut().zip(counts) {
        *total += i64::from(count) * COUNT_STEP;
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reticent_core::adjacency::PrivacyUnit;
    use reticent_core::coding::Coding;
    use reticent_core::encoding::{Encoding, NormRule};
    use reticent_core::pass_weights::PassWeights;
    use reticent_core::query::QueryShape;
    use reticent_core::schema::Schema;

    use super::*;

    fn query() -> SumQuery {
        let schema = "[privacy]\nunit = \"row\"\nadjacency = \"add-remove\"\n[target]\ncolumn = \"y\"\nclasses = [0, 1]\n\
                      [features]\nx = { bounds = [0, 1] }\n";
        let coding = Coding::of(&Schema::from_text(schema).expect("legal"));
        let map = Map::Gradient { loss: Loss::Logistic, columns: 2 };
        let shape = QueryShape::new(map, PrivacyUnit::Row, 1 << 20).expect("small");
        let encoding = Arc::new(Encoding::plain(coding, NormRule::OwnNorm));
        SumQuery::new(shape, encoding, PassWeights::quantise(&[0.0; 2])).expect("fits")
    }

    /// As if rows had been added, each by the largest slope times the largest coordinate.
    fn after(query: &SumQuery, rows: u64) -> RunningSum<'_> {
        let mut sum = RunningSum::zero(query);
        sum.rows = rows;
        sum.totals = vec![(rows * 2048 * 32767) as i64; 2];
        sum
    }

    #[test]
    fn totals_go_to_the_sum_before_they_pass_their_bits() {
        let query = query();
        let mut sum = after(&query, ROWS_MAX - 1);
        sum.make_room(1);
        assert!(sum.sum.is_none() && sum.rows == ROWS_MAX, "as many as fit");
        for more in [1, 5] {
            let mut sum = after(&query, ROWS_MAX);
            sum.make_room(more);
            assert!(sum.sum.is_some() && sum.rows == more as u64 && sum.totals == [0, 0]);
        }
    }

    #[test]
    fn joined_totals_keep_to_their_bits() {
        let query = query();
        let sum = after(&query, ROWS_MAX - 3).joined(after(&query, 3));
        assert!(sum.sum.is_none() && sum.rows == ROWS_MAX && sum.totals == [(ROWS_MAX * 2048 * 32767) as i64; 2]);
        for rows in [1, ROWS_MAX] {
            let sum = after(&query, ROWS_MAX).joined(after(&query, rows));
            assert!(sum.sum.is_some() && sum.rows == 0 && sum.totals.is_empty());
        }
    }
}
