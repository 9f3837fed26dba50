//! The gradient pass of two classes or a number: one score and one slope a row.

use reticent_core::pass_weights::PassWeights;
use reticent_core::query::Loss;

use super::column_order::ColumnPass;
use super::lanes::{
    self, CHUNK, Chunk, Coordinate, GROUP, PairedSlopes, chunks_of, group_of, labels_of, paired, steps_of, window,
};
use super::slopes;
use crate::lattice::{CompactBlock, LatticeBlock};

/// Most groups whose slopes are found together, and the coordinates of all rows of such groups: with twice as many, passes beyond the cache are
/// slower on AMD Zen 4.
const BATCH: usize = 8;
const BATCH_COORDINATES: usize = 1 << 12;

/// What the slope of a row is.
#[derive(Clone, Copy)]
pub struct GradientRule<'a> {
    /// The loss that it is the slope of.
    pub loss: Loss,
    /// The largest magnitude of each row's slope, where rows are clipped: [`super::find_largest_slopes`].
    pub largest: Option<&'a [i16]>,
}

/// One pass over one block.
pub(super) struct GradientPass<'a, T> {
    pub(super) rule: GradientRule<'a>,
    pub(super) weights: &'a PassWeights,
    pub(super) block: CompactBlock<'a, T>,
}

impl<T: Coordinate> GradientPass<'_, T> {
    /// The pass with its inner loops, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(
        &self,
        totals: &mut [i64],
        dots: impl Fn(&[Chunk<i16>], &[T], usize) -> [i32; GROUP],
        accumulate: impl Fn(&[PairedSlopes; 1], &[T], usize, [&mut [Chunk<i64>]; 1]),
    ) {
        let CompactBlock { packed, chosen, .. } = self.block;
        let LatticeBlock { columns, features, steps, labels } = packed;
        let weights = chunks_of(&self.block.packed_of(self.weights.weights()));
        let mut wide = vec![[0i64; CHUNK]; weights.len()];
        let mut copy = Vec::new();
        let mut by_column = chosen.by_column.map(|order| ColumnPass::new(order, self.weights.weights()));
        // Several groups at a time, if all stay in the nearest cache: the slopes of one group are a long chain of operations.
        let batch = (BATCH_COORDINATES / (GROUP * columns)).clamp(1, BATCH);
        let (mut products, mut slopes) = ([[0i32; GROUP]; BATCH], [[[0i16; 2]; GROUP / 2]; BATCH]);
        for start in (0..labels.len()).step_by(batch * GROUP) {
            let end = labels.len().min(start + batch * GROUP);
            let groups = || (start..end).step_by(GROUP);
            for (first, products) in groups().zip(&mut products) {
                *products = dots(&weights, window(features, columns, first, &mut copy), columns);
                products.iter_mut().for_each(|product| *product *= T::STEPS);
                match &by_column {
                    Some(by_column) => by_column.add_dots(first, products),
                    None => chosen.add_dots(first, self.weights.weights(), products),
                }
            }
            for ((first, products), slopes) in groups().zip(&products).zip(&mut slopes) {
                let scores = slopes::scores(products, self.weights, &steps_of(steps, first));
                let mut of_group = slopes::single(self.rule.loss, self.weights, &scores, &labels_of(labels, first));
                if let Some(largest) = self.rule.largest {
                    slopes::clip(&mut of_group, &group_of(largest, first, 0));
                }
                *slopes = paired(&of_group);
            }
            for (first, slopes) in groups().zip(&slopes) {
                let window = window(features, columns, first, &mut copy);
                accumulate(std::array::from_ref(slopes), window, columns, [&mut wide]);
                match &mut by_column {
                    Some(by_column) => by_column.keep(first, slopes),
                    None => chosen.add_scaled(first, slopes, totals),
                }
            }
        }
        if let Some(by_column) = by_column {
            by_column.add_scaled(totals);
        }
        let steps = i64::from(T::STEPS);
        wide.as_flattened_mut().iter_mut().for_each(|total| *total *= steps);
        self.block.add_packed(wide.as_flattened(), totals);
    }
}

pub(super) fn portable<T: Coordinate>(pass: &GradientPass<'_, T>, totals: &mut [i64]) {
    pass.run(totals, lanes::portable::dots::<T, false>, lanes::portable::accumulate);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2<T: Coordinate>(pass: &GradientPass<'_, T>, totals: &mut [i64]) {
    pass.run(
        totals,
        |weights, window, columns| lanes::avx2::dots::<T, false, true>(weights, window, columns),
        |slopes, window, columns, totals| lanes::avx2::accumulate(slopes, window, columns, totals),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512<T: Coordinate>(pass: &GradientPass<'_, T>, totals: &mut [i64]) {
    pass.run(
        totals,
        |weights, window, columns| lanes::avx512::dots::<T, false, true>(weights, window, columns),
        |slopes, window, columns, totals| lanes::avx512::accumulate(slopes, window, columns, totals),
    );
}
