//! How two looks for a number in its bounds check each other: each has noise of its own, and what one hides the other may show.

use crate::range_search::{BinCounts, BoundsPart};

/// Rows that stand at the end of a part say that it is cut off where they are this share of all, and by so many deviations of noise: fewer rows
/// have to be surer.
const CUT: [(f64, f64); 2] = [(0.2, 3.0), (0.05, 4.0)];
/// Rows beyond a part are told from noise where they are this share of all, and by so many deviations.
const BEYOND_MIN: f64 = 0.05;
const BEYOND_TOLD: f64 = 2.0;
/// An end this near to that of the bounds is there.
const EDGE: f64 = 1e-6;

/// What two looks say of what the second has found in the part that the first says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// The part itself cuts rows off.
    PartCutsOff,
    /// The part holds the rows, and what was found in it does not.
    LeavesOut,
    /// Nothing contradicts it.
    Holds,
}

/// Checks what was `found` in a part by the counts over the bounds and in that part, where so many of the rows may be spared. Where the part is all of
/// the bounds there is nothing to check.
#[must_use]
pub fn check(part: BoundsPart, found: BoundsPart, [over_bounds, in_part]: [&BinCounts<'_>; 2], spared: f64) -> Finding {
    if is_cut_off(part, in_part) {
        Finding::PartCutsOff
    } else if part != BoundsPart::BOUNDS && leaves_out(found, over_bounds, spared) {
        Finding::LeavesOut
    } else {
        Finding::Holds
    }
}

/// Whether more than a fifth of the rows, or surely more than a twentieth, lie in the last bin of a part on a side where the bounds go on, and stand out of
/// the bins beside it: rows beyond the part are there.
fn is_cut_off(part: BoundsPart, counts: &BinCounts<'_>) -> bool {
    let is_full = |bin: usize| {
        let holds =
            |(share, told): &(f64, f64)| counts.spike(bin, *told).is_some_and(|rows| rows > share * counts.rows);
        CUT.iter().any(holds)
    };
    let ends = [(part.centre - part.half, 0), (part.centre + part.half, counts.bins.len() - 1)];
    ends.into_iter().any(|(end, bin)| end.abs() < 1.0 - EDGE && is_full(bin))
}

/// Whether counts over the bounds say that more than 1 row in 20, and more than may be spared, is beyond a part, by two deviations of their noise:
/// ```text
///   beyond:  (n - inside) and outside, weighed by their precisions;    inside, outside: sums of the bins that touch the part, and of the others
/// ```
fn leaves_out(part: BoundsPart, counts: &BinCounts<'_>, spared: f64) -> bool {
    let bins = counts.bins.len() as f64;
    let [low, high] = part.ends().map(|end| end * bins);
    let (mut inside, mut outside, mut bins_inside) = (0.0, 0.0, 0.0);
    for (bin, count) in counts.bins.iter().enumerate() {
        if bin as f64 + 1.0 > low && (bin as f64) < high {
            inside += count;
            bins_inside += 1.0;
        } else {
            outside += count;
        }
    }
    let noise_square = counts.noise.powi(2);
    let of_inside = noise_square * bins_inside + counts.rows_noise.powi(2);
    let of_outside = noise_square * (bins - bins_inside);
    let both = of_inside + of_outside;
    let beyond = ((counts.rows - inside) * of_outside + outside * of_inside) / both;
    let error = (of_inside * of_outside / both).sqrt();
    beyond > spared.max(BEYOND_MIN) * counts.rows + BEYOND_TOLD * error
}

/// Two counts of the same bounds with the noise of a bin, by their precision, in the wider bins of the two.
#[must_use]
pub fn pooled(one: (&[f64], f64), two: (&[f64], f64)) -> (Vec<f64>, f64) {
    let bins = one.0.len().min(two.0.len());
    let in_bins = |(counts, noise): (&[f64], f64)| -> (Vec<f64>, f64) {
        let times = counts.len() / bins;
        let sums = counts.chunks_exact(times).map(|bins| bins.iter().sum()).collect();
        (sums, noise * (times as f64).sqrt())
    };
    let ((one, one_noise), (two, two_noise)) = (in_bins(one), in_bins(two));
    let of_one = two_noise.powi(2) / (one_noise.powi(2) + two_noise.powi(2));
    let bins = one.iter().zip(two).map(|(one, two)| of_one * one + (1.0 - of_one) * two).collect();
    (bins, one_noise * of_one.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 200 of 1,000 rows are beyond 8 of 64 bins. The sums of these 8 and of the others say so together with a noise of
    /// `(56 · 8 / 64)^(1/2) = 2.65` bins, and 150 more than may be are two of these for bins with noise 28.3.
    #[test]
    fn rows_beyond_a_part_are_told_from_noise() {
        let mut bins = vec![0.0; 64];
        bins[16..24].fill(100.0);
        bins[24..32].fill(25.0);
        let part = BoundsPart { centre: 20.0 / 32.0 - 1.0, half: 0.124 };
        let leaves_out = |noise: f64, part: BoundsPart, spared: f64| {
            leaves_out(part, &BinCounts { bins: &bins, noise, rows: 1000.0, rows_noise: 0.0 }, spared)
        };
        assert!(leaves_out(28.3, part, 0.02) && !leaves_out(28.4, part, 0.02));
        assert!(!leaves_out(1.0, part, 0.2), "as many may be spared");
        assert!(!leaves_out(1.0, BoundsPart { centre: 24.0 / 32.0 - 1.0, half: 0.249 }, 0.02));
    }

    /// By hand: rows in the last bin, where the bounds go on behind it, and 10 in each of the others; what stands out is 10 less, with a noise of
    /// `1.5^(1/2)` bins. 210 of 1,000 do by three of these for bins with noise 54, and 60 by four of them for 10.2.
    #[test]
    fn rows_at_the_end_of_a_part_tell_that_it_is_cut_off() {
        let cut_off = |centre: f64, last: f64, noise: f64| {
            let mut bins = vec![10.0; 64];
            bins[63] = last;
            is_cut_off(
                BoundsPart { centre, half: 0.25 },
                &BinCounts { bins: &bins, noise, rows: 1000.0, rows_noise: 0.0 },
            )
        };
        assert!(cut_off(0.0, 210.0, 54.0) && !cut_off(0.0, 210.0, 55.0));
        assert!(!cut_off(0.0, 190.0, 40.0), "less than a fifth, and too few for so much noise");
        assert!(cut_off(0.0, 60.0, 10.2) && !cut_off(0.0, 60.0, 10.3));
        assert!(!cut_off(0.0, 49.0, 0.1), "less than a twentieth");
        assert!(!cut_off(0.75, 210.0, 10.0), "the bounds end there");
    }

    /// By hand: four bins with noise 1, which make two with noise `2^(1/2)`, beside two with noise 2: two parts in three and one.
    #[test]
    fn two_counts_of_one_part_are_pooled() {
        let (bins, noise) = pooled((&[1.0, 2.0, 3.0, 4.0], 1.0), (&[6.0, 1.0], 2.0));
        let expected = [4.0, 5.0];
        assert!(bins.iter().zip(expected).all(|(found, expected)| (found - expected).abs() < 1e-12), "{bins:?}");
        assert!((noise - (4.0f64 / 3.0).sqrt()).abs() < 1e-12);
    }
}
