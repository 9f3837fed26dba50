//! A sum over the rows of a table, in blocks that all threads share, and the same to the last bit however many threads there are.

use std::ops::Range;

use faer::Mat;
use rayon::prelude::*;

/// What `of_block` makes of each block of rows, in the order of the rows: to be added up in that order.
///
/// A block has `least` rows or more (the last one fewer), so that what is made of it, where it has `least` columns, is no larger than its rows are.
pub(crate) fn of_row_blocks<T: Send>(rows: usize, least: usize, of_block: impl Fn(Range<usize>) -> T + Sync) -> Vec<T> {
    let length = BLOCK.max(least);
    if rows <= length {
        // Not as a task of a pool: products of one large block may share the threads.
        return vec![of_block(0..rows)];
    }
    let blocks = (0..rows.div_ceil(length)).into_par_iter();
    blocks.map(|block| of_block(block * length..((block + 1) * length).min(rows))).collect()
}

/// Rows that one thread adds up to a sum of so many numbers: as many sums are made side by side as have room.
pub(crate) fn rows_of_task(rows: usize, numbers: usize) -> usize {
    rows.div_ceil((NUMBERS_MAX / numbers.max(1)).clamp(1, TASKS_MAX))
}

/// The sum of the matrices that `of_block` makes of each block of rows.
pub(crate) fn sum_of_row_blocks(
    rows: usize,
    least: usize,
    of_block: impl Fn(Range<usize>) -> Mat<f64> + Sync,
) -> Mat<f64> {
    let matrices = of_row_blocks(rows, least, of_block).into_iter();
    matrices.reduce(|sum, matrix| sum + matrix).expect("one block at least")
}

/// Rows of a block: those of some dozens of columns stay in a core's cache from their scores to their slopes.
const BLOCK: usize = 2_048;
/// Most sums that are made side by side, and numbers in all of them together (a quarter of a gibibyte).
const TASKS_MAX: usize = 64;
const NUMBERS_MAX: usize = 1 << 25;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feature_table::FeatureTable;
    use crate::noise_aware_map::{self, Prior, ResponseModel, Statistic};
    use faer::MatRef;

    /// Three classes, two, and two of a release, over several blocks.
    #[test]
    fn fits_are_the_same_on_any_number_of_threads() {
        let rows = 2 * BLOCK + 5;
        let features: Vec<f64> =
            (0..rows).flat_map(|row| [1.0, (row as f64 * 0.7).sin(), (row as f64 * 0.3).cos()]).collect();
        let matrix = MatRef::from_row_major_slice(&features, rows, 3).to_owned();
        let vectors = &matrix * faer::Scale(0.5);
        let released = Mat::from_fn(3, 1, |place, _| [1500.0, 90.0, -40.0][place]);
        let features = FeatureTable::packed(features, 3);
        let labels: Vec<usize> = (0..rows).map(|row| (row * row + row / 7) % 3).collect();
        let ones: Vec<f64> = labels.iter().map(|label| f64::from(u8::from(*label == 1))).collect();
        let on_threads = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a few threads can be had");
            pool.install(|| {
                let three = crate::softmax_regression::fit(&features, &labels, 3, 0.1, 0.0).expect("a minimum");
                let two = crate::logistic_newton::fit(&features, &ones, 0.1).expect("a minimum");
                let statistic = Statistic {
                    features: matrix.as_ref().into(),
                    rows: vectors.as_ref().into(),
                    released: released.as_ref(),
                    noise: 30.0,
                    labels_per_row: 1.0,
                    square: None,
                };
                let prior = Prior::new(matrix.as_ref(), ResponseModel::Logistic, None);
                let noisy = noise_aware_map::fit(&statistic, ResponseModel::Logistic, &prior).expect("bounded");
                let noisy = noisy.weights.col(0).iter().copied().collect();
                [three, two, noisy].concat().into_iter().map(f64::to_bits).collect::<Vec<_>>()
            })
        };
        assert_eq!(on_threads(1), on_threads(3));
    }

    #[test]
    fn blocks_are_the_rows_in_their_order() {
        for (rows, least) in [(0, 1), (1, 1), (BLOCK, 1), (BLOCK + 1, 1), (5 * BLOCK + 7, 3000)] {
            let blocks = of_row_blocks(rows, least, |block| block);
            let together: Vec<usize> = blocks.iter().cloned().flatten().collect();
            assert!(together.into_iter().eq(0..rows), "{rows} {least}");
            assert!(blocks[..blocks.len() - 1].iter().all(|block| block.len() >= least.max(BLOCK)));
        }
    }
}
