//! The exact products of rows with the weights of each score, for questions that look at label and scores alone.

use super::lanes::{self, Chunk, GROUP, chunks_of, window};
use crate::lattice::CompactBlock;

/// One pass over one block.
pub(super) struct ScorePass<'a> {
    /// Score after score, one weight a column.
    pub(super) weights: &'a [i16],
    pub(super) block: CompactBlock<'a>,
}

impl ScorePass<'_> {
    /// The pass with its inner loop, in any instructions: it is compiled into each function below.
    #[inline(always)]
    fn run(&self, products: &mut [i32], dots: impl Fn(&[Chunk<i16>], &[i16], usize) -> [i32; GROUP]) {
        let CompactBlock { layout, packed, chosen } = self.block;
        let all_weights = || self.weights.chunks_exact(layout.columns());
        let weights: Vec<_> = all_weights().map(|weights| chunks_of(&self.block.packed_of(weights))).collect();
        let scores = weights.len();
        let mut copy = Vec::new();
        for (group, products) in products.chunks_mut(GROUP * scores).enumerate() {
            let first = group * GROUP;
            let window = window(packed.features, packed.columns, first, &mut copy);
            for (score, (weights, all_weights)) in weights.iter().zip(all_weights()).enumerate() {
                let mut of_group = dots(weights, window, packed.columns);
                chosen.add_dots(first, all_weights, &mut of_group);
                for (of_row, product) in products.chunks_exact_mut(scores).zip(of_group) {
                    of_row[score] = product;
                }
            }
        }
    }
}

pub(super) fn portable(pass: &ScorePass<'_>, products: &mut [i32]) {
    pass.run(products, lanes::portable::dots::<i16, false>);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &ScorePass<'_>, products: &mut [i32]) {
    pass.run(products, |weights, window, columns| lanes::avx2::dots::<i16, false, false>(weights, window, columns));
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &ScorePass<'_>, products: &mut [i32]) {
    pass.run(products, |weights, window, columns| lanes::avx512::dots::<i16, false, false>(weights, window, columns));
}
