//! The gradient pass of several classes: one score and one slope a row and class, in one pass over the row.

use reticent_core::pass_weights::PassWeights;

use super::lanes::{
    self, CHUNK, Chunk, Coordinate, GROUP, PairedSlopes, chunks_of, labels_of, paired, steps_of, window,
};
use super::slopes;
use crate::lattice::{CompactBlock, LatticeBlock};

/// Which slopes a row has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoftmaxSlopes {
    /// [`reticent_core::slope::softmax_slopes`].
    Softmax,
    /// [`reticent_core::slope::bounded_softmax_slopes`].
    Bounded,
}

/// One pass over one block.
pub(super) struct SoftmaxPass<'a, T> {
    pub(super) classes: usize,
    pub(super) slopes: SoftmaxSlopes,
    pub(super) weights: &'a PassWeights,
    pub(super) block: CompactBlock<'a, T>,
}

impl<T: Coordinate> SoftmaxPass<'_, T> {
    /// The pass with its inner loops, in any instructions: it is compiled into each function below. Weighted sums are taken
    /// of four classes at a time, so that what is read and interleaved serves all four.
    #[inline(always)]
    fn run(
        &self,
        totals: &mut [i64],
        dots: impl Fn(&[Chunk<i16>], &[i16], usize) -> [i32; GROUP],
        accumulate_four: impl Fn(&[PairedSlopes; 4], &[i16], usize, [&mut [Chunk<i64>]; 4]),
        accumulate_one: impl Fn(&[PairedSlopes; 1], &[i16], usize, [&mut [Chunk<i64>]; 1]),
    ) {
        let CompactBlock { layout, packed, chosen } = self.block;
        let LatticeBlock { columns, features, steps, labels } = packed;
        let of_class = |weights| chunks_of(&self.block.packed_of(weights));
        let all_weights = || self.weights.weights().chunks_exact(layout.columns());
        let weights: Vec<_> = all_weights().map(of_class).collect();
        let chunks = columns.div_ceil(CHUNK);
        let mut wide = vec![[0i64; CHUNK]; chunks * self.classes];
        let (mut copy, mut wider) = (Vec::new(), Vec::new());
        let mut scores = vec![[0.0f32; GROUP]; self.classes];
        let mut slopes = vec![[0i32; GROUP]; self.classes];
        for first in (0..labels.len()).step_by(GROUP) {
            // Once for all classes.
            let window = T::in_lattice_steps(window(features, columns, first, &mut copy), &mut wider);
            let (labels, steps) = (labels_of(labels, first), steps_of(steps, first));
            for ((scores, weights), all_weights) in scores.iter_mut().zip(&weights).zip(all_weights()) {
                let mut products = dots(weights, window, columns);
                chosen.add_dots(first, all_weights, &mut products);
                *scores = slopes::scores(&products, self.weights, &steps);
            }
            match self.slopes {
                SoftmaxSlopes::Softmax => slopes::softmax(&mut scores, &labels, &mut slopes),
                SoftmaxSlopes::Bounded => {
                    slopes::bounded_softmax(&mut scores, &labels, self.weights.saturation(), &mut slopes);
                }
            }
            let (fours, left) = slopes.as_chunks::<4>();
            let (wide_fours, wide_left) = wide.split_at_mut(fours.len() * 4 * chunks);
            for (slopes, wide) in fours.iter().zip(wide_fours.chunks_exact_mut(4 * chunks)) {
                let (one, rest) = wide.split_at_mut(chunks);
                let (two, rest) = rest.split_at_mut(chunks);
                let (three, four) = rest.split_at_mut(chunks);
                accumulate_four(&slopes.each_ref().map(paired), window, columns, [one, two, three, four]);
            }
            for (slopes, wide) in left.iter().zip(wide_left.chunks_exact_mut(chunks)) {
                accumulate_one(&[paired(slopes)], window, columns, [wide]);
            }
            for (slopes, totals) in slopes.iter().zip(totals.chunks_exact_mut(layout.columns())) {
                chosen.add_scaled(first, &paired(slopes), totals);
            }
        }
        for (totals, wide) in totals.chunks_exact_mut(layout.columns()).zip(wide.chunks_exact(chunks)) {
            self.block.add_packed(wide.as_flattened(), totals);
        }
    }
}

pub(super) fn portable<T: Coordinate>(pass: &SoftmaxPass<'_, T>, totals: &mut [i64]) {
    pass.run(totals, lanes::portable::dots::<i16, false>, lanes::portable::accumulate, lanes::portable::accumulate);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2<T: Coordinate>(pass: &SoftmaxPass<'_, T>, totals: &mut [i64]) {
    pass.run(
        totals,
        |weights, window, columns| lanes::avx2::dots::<i16, false, false>(weights, window, columns),
        |slopes, window, columns, totals| lanes::avx2::accumulate(slopes, window, columns, totals),
        |slopes, window, columns, totals| lanes::avx2::accumulate(slopes, window, columns, totals),
    );
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512<T: Coordinate>(pass: &SoftmaxPass<'_, T>, totals: &mut [i64]) {
    pass.run(
        totals,
        |weights, window, columns| lanes::avx512::dots::<i16, false, false>(weights, window, columns),
        |slopes, window, columns, totals| lanes::avx512::accumulate(slopes, window, columns, totals),
        |slopes, window, columns, totals| lanes::avx512::accumulate(slopes, window, columns, totals),
    );
}
