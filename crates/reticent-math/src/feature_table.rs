//! The features of many rows: columns that have a number in every row, and columns of which a row lists the few that are not 0.
//!
//! ```text
//!   row of the table   scale_j (x_j - centre_j)   of each listed column j, then the packed columns as they are
//! ```
//! Centres of listed columns are never subtracted from what is kept: products take them into account, so that they cost by the length of
//! the lists. Sums over rows are the same to the last bit on any number of threads.

use std::ops::Range;

use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::entry_lists::EntryLists;
use crate::product::product;
use crate::row_blocks::of_row_blocks;

/// Features of regressions without noise. Listed columns come first, packed columns after them.
pub struct FeatureTable {
    rows: usize,
    packed_columns: usize,
    /// Row after row.
    packed: Vec<f64>,
    listed: Option<Listed>,
}

/// Columns of which each row lists those that are not 0.
struct Listed {
    by_row: EntryLists,
    by_column: EntryLists,
    centre: Vec<f64>,
    scale: Vec<f64>,
}

impl FeatureTable {
    /// A table with packed columns alone, of which there is one at least, row after row.
    ///
    /// # Panics
    /// When the last row is not complete.
    #[must_use]
    pub fn packed(values: Vec<f64>, columns: usize) -> Self {
        assert!(values.len().is_multiple_of(columns), "whole rows");
        Self { rows: values.len() / columns, packed_columns: columns, packed: values, listed: None }
    }

    /// Puts listed columns before the packed ones: `by_row` has the entries of each row, before `centre` is subtracted from the column
    /// (from zeros that are not listed, too) and before it is multiplied by `scale`.
    ///
    /// # Panics
    /// When there is not one list a row and one centre and scale a column.
    #[must_use]
    pub fn with_listed(self, by_row: EntryLists, centre: Vec<f64>, scale: Vec<f64>) -> Self {
        assert!(by_row.len() == self.rows && centre.len() == scale.len(), "one list a row, and one scale a column");
        let by_column = by_row.transposed(scale.len());
        Self { listed: Some(Listed { by_row, by_column, centre, scale }), ..self }
    }

    /// Number of rows.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Number of columns, listed and packed.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.listed_columns() + self.packed_columns
    }

    /// How many numbers it holds, those of listed columns counted once.
    pub(crate) fn numbers(&self) -> usize {
        self.packed.len() + self.listed.as_ref().map_or(0, |listed| listed.by_row.entries())
    }

    /// Sum of the squares of each column.
    pub(crate) fn squares(&self) -> Vec<f64> {
        let mut squares = vec![0.0; self.columns()];
        let (of_listed, of_packed) = squares.split_at_mut(self.listed_columns());
        if let Some(listed) = &self.listed {
            for (column, (square, (centre, scale))) in
                of_listed.iter_mut().zip(listed.centre.iter().zip(&listed.scale)).enumerate()
            {
                let entries = listed.by_column.list(column);
                let zeros = (self.rows - entries.clone().count()) as f64;
                let from_centre = entries.map(|(_, value)| (value - centre).powi(2)).sum::<f64>();
                *square = (from_centre + zeros * centre.powi(2)) * scale.powi(2);
            }
        }
        for row in self.packed.chunks_exact(self.packed_columns) {
            of_packed.iter_mut().zip(row).for_each(|(square, value)| *square += value * value);
        }
        squares
    }

    /// What blocks of rows are multiplied by `weights` (columns × outputs) with.
    pub(crate) fn scorer<'a>(&'a self, weights: &'a Mat<f64>) -> Scorer<'a> {
        let (listed_columns, outputs) = (self.listed_columns(), weights.ncols());
        let packed = weights.subrows(listed_columns, self.packed_columns);
        let mut scorer = Scorer { table: self, packed, listed: Vec::new(), offset: vec![0.0; outputs] };
        if let Some(Listed { centre, scale, .. }) = &self.listed {
            scorer.listed.reserve_exact(listed_columns * outputs);
            for (column, (centre, scale)) in centre.iter().zip(scale).enumerate() {
                for (output, offset) in scorer.offset.iter_mut().enumerate() {
                    let weight = scale * weights[(column, output)];
                    scorer.listed.push(weight);
                    *offset -= centre * weight;
                }
            }
        }
        scorer
    }

    /// `f` and `Xᵀ R`, where `to_residuals` turns the scores `X W` of a block of rows into residuals `R`, and returns their part of `f`.
    pub(crate) fn loss_and_slopes(
        &self,
        weights: &Mat<f64>,
        to_residuals: impl Fn(Range<usize>, &mut Mat<f64>) -> f64 + Sync,
    ) -> (f64, Mat<f64>) {
        let outputs = weights.ncols();
        let scorer = self.scorer(weights);
        let (mut loss, mut of_packed) = (0.0, Mat::<f64>::zeros(self.packed_columns, outputs));
        let mut of_listed = self.listed.as_ref().map(|listed| ListedSlopes::new(listed, outputs));
        // Residuals of many rows are kept for the listed columns, each of which has rows all over the table.
        let at_once = if self.listed.is_some() { (RESIDUALS_AT_ONCE / outputs).max(1) } else { self.rows.max(1) };
        for start in (0..self.rows.max(1)).step_by(at_once) {
            let rows = at_once.min(self.rows - start);
            let blocks = of_row_blocks(rows, outputs, |block| {
                let block = start + block.start..start + block.end;
                let mut residuals = scorer.of(block.clone());
                let loss = to_residuals(block.clone(), &mut residuals);
                let slopes = product(self.packed_rows(block).transpose(), &residuals);
                (loss, slopes, self.listed.as_ref().map(|_| by_row(&residuals)))
            });
            let mut residuals = Vec::new();
            for (of_block, slopes_of_block, residuals_of_block) in blocks {
                loss += of_block;
                of_packed += slopes_of_block;
                residuals.extend(residuals_of_block.into_iter().flatten());
            }
            if let Some(of_listed) = &mut of_listed {
                of_listed.add(start..start + rows, &residuals);
            }
        }
        let Some(of_listed) = of_listed else { return (loss, of_packed) };
        let slopes = of_listed.finish();
        let listed_columns = slopes.len() / outputs;
        let slopes = Mat::from_fn(self.columns(), outputs, |column, output| match column.checked_sub(listed_columns) {
            Some(packed) => of_packed[(packed, output)],
            None => slopes[column * outputs + output],
        });
        (loss, slopes)
    }

    /// `Xᵀ V X`, of which only the lower triangle need be there. `variances` gives the diagonal of `V` for a block of rows; it is 1 where there
    /// are none.
    pub(crate) fn gram(&self, variances: Option<&(dyn Fn(Range<usize>) -> Vec<f64> + Sync)>) -> Mat<f64> {
        let columns = self.packed_columns;
        let blocks = of_row_blocks(self.rows, columns, |block| {
            let packed = self.packed_rows(block.clone());
            let Some(variances) = variances else { return (product(packed.transpose(), packed), None) };
            let variances = variances(block.clone());
            let deviations: Vec<f64> = variances.iter().map(|variance| variance.sqrt()).collect();
            let scaled = Mat::from_fn(block.len(), columns, |row, column| deviations[row] * packed[(row, column)]);
            (product(scaled.transpose(), &scaled), self.listed.as_ref().map(|_| variances))
        });
        let (matrices, variances): (Vec<Mat<f64>>, Vec<Option<Vec<f64>>>) = blocks.into_iter().unzip();
        let of_packed = matrices.into_iter().reduce(|sum, matrix| sum + matrix).expect("one block at least");
        let Some(listed) = &self.listed else { return of_packed };
        let variances: Vec<f64> = variances.into_iter().flatten().flatten().collect();
        let variances = if variances.is_empty() { vec![1.0; self.rows] } else { variances };
        self.with_listed_products(listed, of_packed.as_ref(), &variances)
    }

    /// Puts the products of listed columns with each other and with packed columns beside those of packed columns.
    fn with_listed_products(&self, listed: &Listed, of_packed: MatRef<'_, f64>, variances: &[f64]) -> Mat<f64> {
        let count = listed.scale.len();
        let mut gram = Mat::<f64>::zeros(self.columns(), self.columns());
        gram.submatrix_mut(count, count, self.packed_columns, self.packed_columns).copy_from(of_packed);
        let Listed { by_row, by_column, centre, scale } = listed;
        // V times the entries of each column, and times packed columns: what centres are multiplied by.
        let sum_of = |column: usize| by_column.list(column).map(|(row, value)| variances[row] * value).sum::<f64>();
        let sums: Vec<f64> = (0..count).map(sum_of).collect();
        let mut packed_sums = vec![0.0; self.packed_columns];
        for (row, variance) in self.packed.chunks_exact(self.packed_columns).zip(variances) {
            packed_sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += variance * value);
        }
        let total: f64 = variances.iter().sum();
        // One column is the work of one thread, over its rows in their order.
        gram.subcols_mut(0, count).par_col_iter_mut().enumerate().for_each(|(column, products)| {
            let products = products.try_as_col_major_mut().expect("columns of a new matrix").as_slice_mut();
            let (with_listed, with_packed) = products.split_at_mut(count);
            for (row, value) in by_column.list(column) {
                let value = variances[row] * value;
                for (other, other_value) in by_row.list(row).rev().take_while(|(other, _)| *other >= column) {
                    with_listed[other] += value * other_value;
                }
                let packed = &self.packed[row * self.packed_columns..][..self.packed_columns];
                with_packed.iter_mut().zip(packed).for_each(|(total, other)| *total += value * other);
            }
            let (own_centre, own_scale, own_sum) = (centre[column], scale[column], sums[column]);
            for other in column..count {
                let product = &mut with_listed[other];
                let by_centres =
                    own_centre * sums[other] + centre[other] * own_sum - own_centre * centre[other] * total;
                *product = own_scale * scale[other] * (*product - by_centres);
            }
            for (product, sum) in with_packed.iter_mut().zip(&packed_sums) {
                *product = own_scale * (*product - own_centre * sum);
            }
        });
        gram
    }

    fn listed_columns(&self) -> usize {
        self.listed.as_ref().map_or(0, |listed| listed.scale.len())
    }

    fn packed_rows(&self, block: Range<usize>) -> MatRef<'_, f64> {
        let columns = self.packed_columns;
        let values = &self.packed[block.start * columns..block.end * columns];
        MatRef::from_row_major_slice(values, block.len(), columns)
    }
}

/// `Xᵀ R` of listed columns, added up from the residuals `R` of some rows after those of others.
struct ListedSlopes<'a> {
    listed: &'a Listed,
    /// Column after column, before centres and scales.
    slopes: Vec<f64>,
    /// Sums of all residuals.
    totals: Vec<f64>,
}

impl<'a> ListedSlopes<'a> {
    fn new(listed: &'a Listed, outputs: usize) -> Self {
        Self { listed, slopes: vec![0.0; listed.scale.len() * outputs], totals: vec![0.0; outputs] }
    }

    /// Adds what `rows` contribute, of which `residuals` are given row after row.
    fn add(&mut self, rows: Range<usize>, residuals: &[f64]) {
        let outputs = self.totals.len();
        for residuals in residuals.chunks_exact(outputs) {
            self.totals.iter_mut().zip(residuals).for_each(|(total, residual)| *total += residual);
        }
        // One column is the work of one thread, over its rows in their order.
        let columns = self.slopes.par_chunks_mut(outputs).with_min_len(COLUMNS_OF_A_TASK).enumerate();
        columns.for_each(|(column, slopes)| {
            for (row, value) in self.listed.by_column.within(column, &rows) {
                let residuals = &residuals[(row - rows.start) * outputs..][..outputs];
                slopes.iter_mut().zip(residuals).for_each(|(slope, residual)| *slope += value * residual);
            }
        });
    }

    fn finish(mut self) -> Vec<f64> {
        let shapes = self.listed.centre.iter().zip(&self.listed.scale);
        for (slopes, (centre, scale)) in self.slopes.chunks_exact_mut(self.totals.len()).zip(shapes) {
            slopes.iter_mut().zip(&self.totals).for_each(|(slope, total)| *slope = scale * (*slope - centre * total));
        }
        self.slopes
    }
}

/// Columns with few entries that a thread takes at once.
const COLUMNS_OF_A_TASK: usize = 64;

/// Residuals that are kept for listed columns: 32 MiB.
const RESIDUALS_AT_ONCE: usize = 1 << 22;

/// A table with what it is multiplied by.
pub(crate) struct Scorer<'a> {
    table: &'a FeatureTable,
    packed: MatRef<'a, f64>,
    /// Weights of listed columns as they are kept, column after column.
    listed: Vec<f64>,
    /// What the centres of listed columns add to every row.
    offset: Vec<f64>,
}

impl Scorer<'_> {
    /// Scores of a block of rows, one column an output.
    pub(crate) fn of(&self, block: Range<usize>) -> Mat<f64> {
        let mut scores = product(self.table.packed_rows(block.clone()), self.packed);
        let Some(listed) = &self.table.listed else { return scores };
        let outputs = self.offset.len();
        let mut totals = vec![0.0; outputs];
        for (row, index) in block.enumerate() {
            totals.copy_from_slice(&self.offset);
            for (column, value) in listed.by_row.list(index) {
                let weights = &self.listed[column * outputs..][..outputs];
                totals.iter_mut().zip(weights).for_each(|(total, weight)| *total += value * weight);
            }
            totals.iter().enumerate().for_each(|(output, total)| scores[(row, output)] += total);
        }
        scores
    }
}

/// The numbers of a matrix row after row.
fn by_row(matrix: &Mat<f64>) -> Vec<f64> {
    (0..matrix.nrows()).flat_map(|row| matrix.row(row).iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixed_sequence::FixedSequence;
    use crate::{least_squares, logistic_newton, softmax_regression};

    const LISTED: usize = 40;
    const PACKED: usize = 3;
    /// More than a block of rows.
    const ROWS: usize = 5000;

    /// A category of 30 values and ten numbers that are mostly 0, beside an intercept and two numbers; the same with every number written
    /// down; and numbers to make targets of.
    fn both_forms() -> (FeatureTable, FeatureTable, Vec<f64>) {
        let mut sequence = FixedSequence::new(5);
        let centre: Vec<f64> = (0..LISTED).map(|column| 0.01 * (column % 7) as f64).collect();
        let scale: Vec<f64> = (0..LISTED).map(|column| 1.0 + 0.2 * (column % 5) as f64).collect();
        let (mut by_row, mut packed, mut all) = (EntryLists::default(), Vec::new(), Vec::new());
        let mut scores = Vec::new();
        for row in 0..ROWS {
            let category = (row * row + row / 3) % 30;
            let mut entries = vec![(category as u32, 1.0)];
            let mut numbers: Vec<u32> = (30..LISTED as u32).filter(|_| sequence.next_uniform() > 0.7).collect();
            entries.extend(numbers.drain(..).map(|column| (column, f64::from(column % 4) * 0.3 - 0.2)));
            let mut values = vec![0.0; LISTED];
            entries.iter().for_each(|(column, value)| values[*column as usize] = *value);
            by_row.push(entries.into_iter());
            let own = [1.0, sequence.next_normal(), sequence.next_normal()];
            let standardised =
                values.iter().zip(centre.iter().zip(&scale)).map(|(x, (centre, scale))| (x - centre) * scale);
            all.extend(standardised.chain(own));
            packed.extend(own);
            scores.push(own[1] - 0.5 * own[2] + 0.1 * category as f64 - 1.5 + sequence.next_normal());
        }
        let listed = FeatureTable::packed(packed, PACKED).with_listed(by_row, centre, scale);
        (listed, FeatureTable::packed(all, LISTED + PACKED), scores)
    }

    fn assert_close(found: &[f64], expected: &[f64], distance: f64) {
        assert_eq!(found.len(), expected.len());
        let furthest = found.iter().zip(expected).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
        assert!(furthest < distance, "{furthest}");
    }

    #[test]
    fn products_are_those_of_the_table_written_out() {
        let (listed, packed, scores) = both_forms();
        assert_close(&listed.squares(), &packed.squares(), 1e-8);
        let weights = Mat::from_fn(LISTED + PACKED, 2, |row, column| 0.1 * ((row * 7 + column * 3) % 11) as f64 - 0.5);
        let [of_listed, of_packed] = [&listed, &packed].map(|table| {
            let to_residuals = |block: Range<usize>, residuals: &mut Mat<f64>| {
                for (row, index) in block.enumerate() {
                    residuals[(row, 1)] -= scores[index];
                }
                residuals.col(0).iter().sum()
            };
            let (loss, slopes) = table.loss_and_slopes(&weights, to_residuals);
            let variances = |block: Range<usize>| block.map(|row| 0.1 + (row % 3) as f64).collect();
            (loss, slopes, table.gram(Some(&variances)), table.gram(None))
        });
        assert!((of_listed.0 - of_packed.0).abs() < 1e-8);
        assert_close(&by_row(&of_listed.1), &by_row(&of_packed.1), 1e-8);
        let lower = |matrix: &Mat<f64>| -> Vec<f64> {
            let rows = 0..matrix.nrows();
            rows.flat_map(|row| (0..=row).map(move |column| (row, column))).map(|place| matrix[place]).collect()
        };
        assert_close(&lower(&of_listed.2), &lower(&of_packed.2), 1e-8);
        assert_close(&lower(&of_listed.3), &lower(&of_packed.3), 1e-8);
    }

    #[test]
    fn residuals_of_some_rows_after_others_are_added_up_as_those_of_all() {
        let (table, _, scores) = both_forms();
        let listed = table.listed.as_ref().expect("it has listed columns");
        let slopes = |parts: &[Range<usize>]| {
            let mut slopes = ListedSlopes::new(listed, 1);
            parts.iter().for_each(|part| slopes.add(part.clone(), &scores[part.clone()]));
            slopes.finish().into_iter().map(f64::to_bits).collect::<Vec<_>>()
        };
        assert_eq!(slopes(&[0..2, 2..4000, 4000..ROWS]), slopes(std::slice::from_ref(&(0..ROWS))));
    }

    /// Targets of all kinds, from the numbers that a table comes with.
    fn fits(table: &FeatureTable, scores: &[f64]) -> [Vec<f64>; 3] {
        let ones: Vec<f64> = scores.iter().map(|score| f64::from(u8::from(*score > 0.0))).collect();
        let classes: Vec<usize> = scores.iter().map(|score| (score.clamp(-1.0, 1.0) + 1.0).round() as usize).collect();
        [
            least_squares::fit(table, scores, 0.1).expect("a minimum"),
            logistic_newton::fit(table, &ones, 0.1).expect("a minimum"),
            softmax_regression::fit(table, &classes, 3, 0.1, 0.0).expect("a minimum"),
        ]
    }

    #[test]
    fn fits_are_those_of_the_table_written_out() {
        let (listed, packed, scores) = both_forms();
        let [of_listed, of_packed] = [listed, packed].map(|table| fits(&table, &scores));
        // The last method stops where the loss is flat to its last digit.
        for ((of_listed, of_packed), distance) in of_listed.iter().zip(&of_packed).zip([1e-9, 1e-7, 1e-4]) {
            assert_close(of_listed, of_packed, distance);
        }
    }

    #[test]
    fn fits_are_the_same_on_any_number_of_threads() {
        let (listed, _, scores) = both_forms();
        let on_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads can be had");
            pool.install(|| fits(&listed, &scores).concat().into_iter().map(f64::to_bits).collect::<Vec<_>>())
        };
        assert_eq!(on_threads(1), on_threads(3));
    }
}
