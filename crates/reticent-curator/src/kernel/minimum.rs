//! The sum of `slope · row` where slopes and scores have more digits than a pass: for the search of a minimum.
//!
//! ```text
//!   exact  row ─▶ dots (whole numbers of 128 bits) ─▶ slopes of 59 bits ─▶ totals of 128 bits
//!   fast   row ─▶ dots (floats, eight lanes in a fixed order) ─▶ slopes of 31 bits ─▶ totals of 128 bits
//! ```
//! No machine multiplies many numbers of 128 bits at a time. So weights stand in three limbs and slopes in two, whose products with a
//! coordinate are added up in 64 bits:
//!
//! ```text
//!   w = l_0 + 2^30 l_1 + 2^60 l_2,  |l_i| <= 2^30    |sum_j l_i x_j| <= 2^30 2^15 columns <= 2^61    up to 2^16 columns
//!   s = h_0 + 2^29 h_1,             |h_i| <= 2^29    |sum_i h x_ij|  <= 2^29 2^15 rows    <= 2^60    up to 2^16 rows
//! ```

use crate::lattice::BLOCK_ROWS_MAX;

/// Rows of whole coordinates, and what becomes of their scores.
pub(crate) struct MinimumPass<'a, W, S> {
    /// Row after row, one coordinate a column.
    pub(crate) features: &'a [i16],
    pub(crate) columns: usize,
    /// Output after output.
    pub(crate) weights: &'a W,
    /// Slopes of a row, by its place in the pass and its dot products; `false` where the row does not count.
    pub(crate) slopes: S,
}

/// A pass that is compiled for each set of instructions.
pub(crate) trait RowPass {
    fn run(&self, totals: &mut [i128]);
}

/// Bits of the lower limb of a slope.
const LOW_BITS: u32 = 29;
/// Bits of each lower limb of a weight.
const LIMB_BITS: u32 = 30;
/// Columns up to which no product with a limb of the weights passes 64 bits; rows are [`BLOCK_ROWS_MAX`] at most.
const COLUMNS_MAX: usize = 1 << 16;

/// Weights in limbs where they fit, and as they are.
pub(crate) struct ExactWeights<'a> {
    whole: &'a [i128],
    /// Limb after limb, each of all outputs.
    limbs: Option<[Vec<i32>; 3]>,
}

impl<'a> ExactWeights<'a> {
    pub(crate) fn new(whole: &'a [i128], columns: usize) -> Self {
        let fits = |weight: &i128| weight.unsigned_abs() < 1 << (3 * LIMB_BITS - 1);
        let limb = |place: u32| whole.iter().map(|weight| limb_of(*weight, place)).collect();
        let limbs = (columns <= COLUMNS_MAX && whole.iter().all(fits)).then(|| [limb(0), limb(1), limb(2)]);
        Self { whole, limbs }
    }

    #[inline(always)]
    fn dot(&self, output: usize, row: &[i16]) -> i128 {
        let places = output * row.len()..(output + 1) * row.len();
        match &self.limbs {
            Some(limbs) => {
                let [low, middle, high] = limbs.each_ref().map(|limb| {
                    let products = limb[places.clone()].iter().zip(row);
                    products.map(|(limb, one)| i64::from(*limb) * i64::from(*one)).sum::<i64>()
                });
                i128::from(low) + (i128::from(middle) << LIMB_BITS) + (i128::from(high) << (2 * LIMB_BITS))
            }
            None => self.whole[places].iter().zip(row).map(|(weight, one)| weight * i128::from(*one)).sum(),
        }
    }
}

/// The lower two from 0 to `2^30 - 1`, the last one signed.
fn limb_of(weight: i128, place: u32) -> i32 {
    let shifted = weight >> (place * LIMB_BITS);
    if place < 2 { (shifted & ((1 << LIMB_BITS) - 1)) as i32 } else { shifted as i32 }
}

/// Slopes by exact dot products, in units of the product of a weight and a coordinate; slopes of at most `2^58`.
impl<S: Fn(usize, &[i128], &mut [i64]) -> bool> RowPass for MinimumPass<'_, ExactWeights<'_>, S> {
    #[inline(always)]
    fn run(&self, totals: &mut [i128]) {
        let outputs = totals.len() / self.columns;
        let (mut dots, mut slopes) = (vec![0; outputs], vec![0; outputs]);
        let (mut low, mut high) = (vec![0; totals.len()], vec![0; totals.len()]);
        for (place, row) in self.rows().enumerate() {
            for (output, dot) in dots.iter_mut().enumerate() {
                *dot = self.weights.dot(output, row);
            }
            if !(self.slopes)(place, &dots, &mut slopes) {
                continue;
            }
            let sums = low.chunks_exact_mut(self.columns).zip(high.chunks_exact_mut(self.columns));
            for (slope, (low, high)) in slopes.iter().zip(sums) {
                add_row(low, (slope & ((1 << LOW_BITS) - 1)) as i32, row);
                add_row(high, (slope >> LOW_BITS) as i32, row);
            }
        }
        for ((total, low), high) in totals.iter_mut().zip(low).zip(high) {
            *total += i128::from(low) + (i128::from(high) << LOW_BITS);
        }
    }
}

/// Slopes by dot products in floating point, which may be written over; slopes of at most `2^30`.
impl<S: Fn(usize, &mut [f64], &mut [i64]) -> bool> RowPass for MinimumPass<'_, Vec<f64>, S> {
    #[inline(always)]
    fn run(&self, totals: &mut [i128]) {
        let outputs = totals.len() / self.columns;
        let (mut dots, mut slopes, mut sums) = (vec![0.0; outputs], vec![0; outputs], vec![0; totals.len()]);
        for (place, row) in self.rows().enumerate() {
            for (dot, weights) in dots.iter_mut().zip(self.weights.chunks_exact(self.columns)) {
                *dot = float_dot(weights, row);
            }
            if !(self.slopes)(place, &mut dots, &mut slopes) {
                continue;
            }
            for (slope, sums) in slopes.iter().zip(sums.chunks_exact_mut(self.columns)) {
                add_row(sums, *slope as i32, row);
            }
        }
        totals.iter_mut().zip(sums).for_each(|(total, sum)| *total += i128::from(sum));
    }
}

impl<W, S> MinimumPass<'_, W, S> {
    #[inline(always)]
    fn rows(&self) -> impl Iterator<Item = &[i16]> {
        self.features.chunks_exact(self.columns)
    }

    pub(super) fn assert_fits(&self, totals: &[i128]) {
        assert!(self.columns > 0, "a row has columns");
        assert!(totals.len().is_multiple_of(self.columns), "one place a column and output");
        assert!(self.features.len() / self.columns <= BLOCK_ROWS_MAX, "a block of rows whose sums fit 64 bits");
    }
}

#[inline(always)]
fn add_row(sums: &mut [i64], slope: i32, row: &[i16]) {
    for (sum, one) in sums.iter_mut().zip(row) {
        *sum += i64::from(slope) * i64::from(*one);
    }
}

/// Eight lanes in a fixed order, so that a row's result is its own.
#[inline(always)]
pub(crate) fn float_dot(weights: &[f64], row: &[i16]) -> f64 {
    let mut lanes = [0.0f64; 8];
    let (weights, weights_rest) = weights.as_chunks::<8>();
    let (row, row_rest) = row.as_chunks::<8>();
    for (weights, row) in weights.iter().zip(row) {
        for ((lane, weight), one) in lanes.iter_mut().zip(weights).zip(row) {
            *lane += weight * f64::from(*one);
        }
    }
    let rest: f64 = weights_rest.iter().zip(row_rest).map(|(weight, one)| weight * f64::from(*one)).sum();
    lanes.iter().sum::<f64>() + rest
}

pub(super) fn portable(pass: &impl RowPass, totals: &mut [i128]) {
    pass.run(totals);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
pub(super) fn avx2(pass: &impl RowPass, totals: &mut [i128]) {
    pass.run(totals);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512vnni")]
pub(super) fn avx512(pass: &impl RowPass, totals: &mut [i128]) {
    pass.run(totals);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{Instructions, add_minimum};
    use super::{BLOCK_ROWS_MAX, COLUMNS_MAX, ExactWeights, LIMB_BITS, MinimumPass, RowPass, float_dot};

    /// Whole numbers up to both ends of so many bits, at the ends often.
    fn whole(bits: u32) -> impl Strategy<Value = i128> {
        let end = 1i128 << bits;
        prop_oneof![Just(end), Just(end - 1), Just(-end), Just(1 - end), Just(0), -end..end]
    }

    fn coordinate() -> impl Strategy<Value = i16> {
        prop_oneof![Just(i16::MAX), Just(i16::MIN), any::<i16>()]
    }

    #[derive(Debug, Clone)]
    struct Case {
        columns: usize,
        features: Vec<i16>,
        weights: Vec<i128>,
        slopes: Vec<i64>,
        counts: Vec<bool>,
    }

    fn case(weight_bits: impl Strategy<Value = u32>, slope_bits: u32) -> impl Strategy<Value = Case> {
        (1..40usize, 0..6usize, 1..4usize, weight_bits).prop_flat_map(move |(columns, rows, outputs, weight_bits)| {
            let features = prop::collection::vec(coordinate(), rows * columns);
            let weights = prop::collection::vec(whole(weight_bits), outputs * columns);
            let slopes = prop::collection::vec(whole(slope_bits).prop_map(|slope| slope as i64), outputs * rows);
            let counts = prop::collection::vec(prop::bool::weighted(0.8), rows);
            (features, weights, slopes, counts).prop_map(move |(features, weights, slopes, counts)| Case {
                columns,
                features,
                weights,
                slopes,
                counts,
            })
        })
    }

    impl Case {
        fn row(&self, place: usize) -> &[i16] {
            &self.features[place * self.columns..][..self.columns]
        }

        fn slopes(&self, place: usize, slopes: &mut [i64]) -> bool {
            slopes.copy_from_slice(&self.slopes[place * slopes.len()..][..slopes.len()]);
            self.counts[place]
        }

        fn dots(&self, place: usize) -> Vec<i128> {
            let dot = |weights: &[i128]| {
                weights.iter().zip(self.row(place)).map(|(weight, one)| weight * i128::from(*one)).sum()
            };
            self.weights.chunks_exact(self.columns).map(dot).collect()
        }

        /// Row after row with all the digits that there are, added to sevens.
        fn totals(&self) -> Vec<i128> {
            let mut totals = vec![7; self.weights.len()];
            for place in (0..self.counts.len()).filter(|place| self.counts[*place]) {
                let outputs = totals.len() / self.columns;
                let slopes = &self.slopes[place * outputs..][..outputs];
                for (slope, totals) in slopes.iter().zip(totals.chunks_exact_mut(self.columns)) {
                    for (total, one) in totals.iter_mut().zip(self.row(place)) {
                        *total += i128::from(*slope) * i128::from(*one);
                    }
                }
            }
            totals
        }

        /// The same by each set of instructions.
        fn assert_pass<W, S>(&self, weights: &W, slopes: S)
        where
            S: Copy,
            for<'a> MinimumPass<'a, W, S>: RowPass,
        {
            let (columns, features) = (self.columns, self.features.as_slice());
            for instructions in Instructions::available() {
                let mut totals = vec![7; self.weights.len()];
                let pass = MinimumPass { features, columns, weights, slopes };
                add_minimum(instructions, &pass, &mut totals);
                assert_eq!(totals, self.totals(), "{instructions:?}");
            }
        }

        fn assert_exact(&self) {
            self.assert_pass(
                &ExactWeights::new(&self.weights, self.columns),
                |place, dots: &[i128], slopes: &mut [i64]| {
                    assert_eq!(dots, self.dots(place));
                    self.slopes(place, slopes)
                },
            );
        }

        fn assert_fast(&self) {
            let weights: Vec<f64> = self.weights.iter().map(|weight| *weight as f64 / 3.0).collect();
            self.assert_pass(&weights, |place, dots: &mut [f64], slopes: &mut [i64]| {
                let expected = weights.chunks_exact(self.columns).map(|weights| float_dot(weights, self.row(place)));
                assert!(dots.iter().map(|dot| dot.to_bits()).eq(expected.map(f64::to_bits)), "the same in every bit");
                self.slopes(place, slopes)
            });
        }

        /// All at one end: the largest sums there are.
        fn extreme(columns: usize, rows: usize, weight: i128, slope: i64) -> Self {
            Self {
                columns,
                features: vec![i16::MIN; rows * columns],
                weights: vec![weight; columns],
                slopes: vec![slope; rows],
                counts: vec![true; rows],
            }
        }
    }

    proptest! {
        /// Weights that fit the limbs and weights that do not.
        #[test]
        fn exact_steps_are_whole_numbers(case in case(60..=100u32, 58)) {
            case.assert_exact();
        }

        #[test]
        fn fast_steps_have_the_same_slopes_times_rows(case in case(Just(60), 30)) {
            case.assert_fast();
        }
    }

    #[test]
    fn full_limbs_keep_to_their_bits() {
        let largest = (1i128 << (3 * LIMB_BITS - 1)) - 1;
        for weight in [largest, -largest, largest + 1] {
            for slope in [1 << 58, -(1 << 58), (1 << 58) - 1] {
                Case::extreme(COLUMNS_MAX, 1, weight, slope).assert_exact();
                Case::extreme(COLUMNS_MAX + 1, 1, weight, slope).assert_exact();
                Case::extreme(1, BLOCK_ROWS_MAX, weight, slope).assert_exact();
            }
        }
        for slope in [1 << 30, -(1 << 30)] {
            Case::extreme(2, BLOCK_ROWS_MAX, 1, slope).assert_fast();
        }
    }

    #[test]
    #[should_panic(expected = "a block of rows whose sums fit 64 bits")]
    fn too_many_rows_are_refused() {
        Case::extreme(1, BLOCK_ROWS_MAX + 1, 1, 1).assert_fast();
    }
}
