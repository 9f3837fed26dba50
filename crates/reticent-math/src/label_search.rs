//! Where in their bounds the labels of public rows lie, found in noisy counts of them: the part in which a product reads them.

use crate::look_checks::{Finding, check, pooled};
use crate::range_search::{
    BinCounts, BoundsPart, NEGLIGIBLE, affordable_half, find_part, spared, variance_at_least, widened,
};
use crate::target_look::Look;

/// Up to so many of their deviations labels are usual, and noise may add that share of what they vary by to predictions for a window to hold them: one that
/// cuts off the end of a tail takes more from the slopes, and no standard error knows of it.
const USUAL: f64 = 5.0;
const LITTLE: f64 = 1.0 / 100.0;

/// The product for which labels are looked for.
#[derive(Clone, Copy, Debug)]
pub struct LabelSearch<'a> {
    /// Public rows. Some may have no label.
    pub rows: usize,
    /// Sum of squares of each of their columns, where a row has norm 1 at most.
    pub column_squares: &'a [f64],
    /// Noise of a coordinate of the product, where labels are at most 1.
    pub product_noise: f64,
}

/// Rows by the bin of their label.
#[derive(Clone, Debug)]
pub struct LabelCounts {
    /// The part of the bounds that the bins are of: rows beyond are in the first and the last.
    pub part: BoundsPart,
    /// Rows in each, with noise.
    pub bins: Vec<f64>,
    /// Standard deviation of the noise of one.
    pub noise: f64,
}

/// Where labels were found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FoundLabels {
    /// The part of the bounds in which they are to be read.
    pub part: BoundsPart,
    /// Their mean, as far as it is known, a place of the bounds: what rows without a label count as changes least there.
    pub mean: f64,
}

impl LabelSearch<'_> {
    /// The part in which labels are read. `count` is asked for them twice: over the bounds, and in the part that those say.
    ///
    /// Each look checks the other, whose noise is its own. A part that seems to cut many rows off is given up, and what is found in it where the
    /// counts over the bounds say that rows are beyond: see [`check`]. Where the first look tells nothing, both are of the bounds and
    /// count together.
    ///
    /// What is found is made wider where noise is negligible ([`widened`]): what it adds to predictions is taken from the columns as if they were
    /// uncorrelated, and along each of them to be no more than a coefficient of half the window would, `k_j = min(noise² / (n c_j), c_j / n)` with
    /// `c_j` the sum of squares. Up to five deviations of the labels it is wider where noise is little, too; they vary by the larger of what the two looks
    /// say: few bins over the bounds have less noise, and many in a part see what is narrower than one of these.
    ///
    /// # Errors
    /// Those of `count`.
    pub fn find<E>(&self, mut count: impl FnMut(Look, BoundsPart) -> Result<LabelCounts, E>) -> Result<FoundLabels, E> {
        let over_bounds = count(Look::OverBounds, BoundsPart::BOUNDS)?;
        let (part, counts_over_bounds) = self.part_of(Look::OverBounds, &over_bounds);
        let mut in_part = count(Look::InPart, part)?;
        if part == BoundsPart::BOUNDS {
            in_part = over_bounds.pooled(&in_part);
        }
        let (within, counts) = self.part_of(Look::InPart, &in_part);
        let BoundsPart { centre, half } = in_part.part;
        // Where the labels are, in the part that was counted.
        let mut held = within;
        let mut found = BoundsPart { centre: centre + half * within.centre, half: half * within.half };
        match check(in_part.part, found, [&counts_over_bounds, &counts], self.spared(counts_over_bounds.rows)) {
            Finding::PartCutsOff => {
                let (wider, counts) = self.part_of(Look::InPart, &over_bounds);
                let part = if wider.half > half { wider } else { BoundsPart::BOUNDS };
                return Ok(FoundLabels { part, mean: counts.mean_place(part) });
            }
            Finding::LeavesOut => (found, held) = (in_part.part, BoundsPart::BOUNDS),
            Finding::Holds => {}
        }
        let rows = self.rows as f64;
        let noise_square = |square: &f64| (self.product_noise.powi(2) / (square * rows)).min(square / rows);
        let noise_squares: Vec<f64> = self.column_squares.iter().map(noise_square).collect();
        let seen = variance_at_least(within, &counts) * half.powi(2);
        let all = variance_at_least(in_part.part, &counts_over_bounds).max(seen);
        let usual = affordable_half(LITTLE, all, &noise_squares).min(USUAL * all.sqrt());
        let part = widened(found, affordable_half(NEGLIGIBLE, seen, &noise_squares).max(usual));
        Ok(FoundLabels { part, mean: centre + half * counts.mean_place(held) })
    }

    /// Where labels lie in the part that was counted, and the counts as they were read.
    ///
    /// Rows without a label, or beyond their unit's cap, are in no bin. Where the bins seem to hold fewer rows than there are, by more than two
    /// deviations of their noise, or no part holds all rows, the part is searched that holds as many as the bins do.
    fn part_of<'counts>(&self, look: Look, counts: &'counts LabelCounts) -> (BoundsPart, BinCounts<'counts>) {
        let LabelCounts { bins, noise, .. } = counts;
        let search = |rows: f64, rows_noise: f64| {
            let counts = BinCounts { bins, noise: *noise, rows, rows_noise };
            (find_part(&counts, self.spared(rows), look.doubt_share()), counts)
        };
        let rows = self.rows as f64;
        let of_all = search(rows, 0.0);
        let (counted, doubt) = (bins.iter().sum::<f64>(), 2.0 * noise * (bins.len() as f64).sqrt());
        let is_short = counted < rows - doubt || of_all.0 == BoundsPart::BOUNDS;
        if is_short && counted > doubt { search(counted.min(rows), doubt / 2.0) } else { of_all }
    }

    /// The share of so many rows that may lie beyond what is found.
    fn spared(&self, rows: f64) -> f64 {
        spared(self.column_squares.len(), rows / self.product_noise)
    }
}

impl LabelCounts {
    /// Two counts of the same part, by their precision, in the wider bins of the two.
    fn pooled(&self, other: &Self) -> Self {
        let (bins, noise) = pooled((&self.bins, self.noise), (&other.bins, other.noise));
        Self { part: self.part, bins, noise }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// Rows by bin, of labels at these places of the bounds, which count for so much.
    fn counted(labels: impl Iterator<Item = (f64, f64)>, part: BoundsPart, bins: usize) -> Vec<f64> {
        let mut counts = vec![0.0; bins];
        for (label, rows) in labels {
            let share = ((label - part.centre) / part.half + 1.0) / 2.0;
            counts[(share * bins as f64).clamp(0.0, bins as f64 - 1.0) as usize] += rows;
        }
        counts
    }

    /// What is found of labels at these places, in so many bins with this noise for each look, of one sign and the other so that their sum has none.
    fn find_labels(search: LabelSearch<'_>, labels: &[f64], looks: [(usize, f64); 2]) -> FoundLabels {
        let Ok(found) = search.find(|look, part| {
            let (bins, noise) = look.of(looks);
            let mut bins = counted(labels.iter().map(|label| (*label, 1.0)), part, bins);
            bins.iter_mut().enumerate().for_each(|(bin, count)| *count += noise * [1.0, -1.0][bin % 2]);
            Ok::<_, Infallible>(LabelCounts { part, bins, noise })
        });
        found
    }

    fn find(search: LabelSearch<'_>, labels: &[f64], looks: [(usize, f64); 2]) -> BoundsPart {
        find_labels(search, labels, looks).part
    }

    /// So many labels spread evenly from one place of the bounds to another, where these are -1 and 1.
    fn spread(rows: usize, low: f64, high: f64) -> impl Iterator<Item = f64> {
        (0..rows).map(move |row| low + (high - low) * (row as f64 + 0.5) / rows as f64)
    }

    fn ends(part: BoundsPart) -> [f64; 2] {
        [part.centre - part.half, part.centre + part.half]
    }

    /// Of 10,000 rows 1 in 50 lies far out, which noise of the bins may hide; noise of the product decides whether it is read there.
    #[test]
    fn labels_far_out_are_kept_where_that_costs_little() {
        let labels: Vec<f64> = spread(9800, -0.2, -0.05).chain(spread(200, 0.18, 0.181)).collect();
        let part = |squares: &[f64], product_noise| {
            let search = LabelSearch { rows: 10_000, column_squares: squares, product_noise };
            find(search, &labels, [(64, 25.0), (256, 40.0)])
        };
        let end = |product_noise: f64| ends(part(&[5000.0, 5000.0], product_noise))[1];
        assert!(end(20.0) > 0.181, "{}", end(20.0));
        assert!(end(300.0) < 0.05, "{}", end(300.0));
        // A column that is nearly empty adds little, whatever its noise.
        let beside = |square: f64| part(&[5000.0, 5000.0, square], 60.0).half;
        assert!(beside(0.0) > beside(2.0) && beside(1e-9) > 0.999 * beside(0.0));
    }

    /// Of 1,000 rows some have no label, from one in 200 to nine in ten; the others are in a thirteenth of the bounds.
    #[test]
    fn rows_without_a_label_do_not_widen_a_window() {
        let search = LabelSearch { rows: 1000, column_squares: &[100.0; 10], product_noise: 0.01 };
        for missing in [0, 5, 50, 200, 500, 900] {
            let labels: Vec<f64> = spread(1000 - missing, -0.21, -0.06).collect();
            for noise in [0.0, 0.1, 1.0] {
                let part = find(search, &labels, [(64, noise), (256, noise)]);
                assert!(ends(part)[0] <= -0.2 && ends(part)[1] >= -0.07, "{missing} {noise} {part:?}");
                assert!(part.half < 0.5, "{missing} {noise} {part:?}");
            }
        }
        // What is hidden stays hidden, and labels that fill their bounds do so.
        assert_eq!(find(search, &[], [(64, 1.0), (256, 1.0)]), BoundsPart::BOUNDS);
        let all: Vec<f64> = spread(1000, -1.0, 1.0).collect();
        assert_eq!(find(search, &all, [(64, 1.0), (256, 1.0)]), BoundsPart::BOUNDS);
    }

    /// Eight in ten of the labels are at the lower end of where they are, next to an end of the bounds, and one row in five has none: the mean is that of the
    /// others, however wide the window is made.
    #[test]
    fn the_mean_of_the_labels_is_found() {
        let labels: Vec<f64> = spread(6400, -1.0, -0.99).chain(spread(1600, -0.99, -0.8)).collect();
        let mean = labels.iter().sum::<f64>() / 8000.0;
        let halves = [1.0, 30.0, 1e4].map(|product_noise| {
            let search = LabelSearch { rows: 10_000, column_squares: &[1000.0; 10], product_noise };
            let found = find_labels(search, &labels, [(64, 5.0), (256, 5.0)]);
            assert!((found.mean - mean).abs() < 0.003, "{found:?}");
            found.part.half
        });
        assert!(halves[0] > 2.0 * halves[2], "{halves:?}");
        // Of labels that noise hides the middle of the bounds is as good as any other place.
        let search = LabelSearch { rows: 10_000, column_squares: &[1000.0; 10], product_noise: 1e4 };
        let hidden = find_labels(search, &labels, [(16, 1e6), (16, 1e6)]);
        assert!(hidden.part == BoundsPart::BOUNDS && hidden.mean.abs() < 0.1, "{hidden:?}");
    }

    /// A thousandth of the bounds, which no bin over these could tell.
    #[test]
    fn a_second_look_finds_what_is_narrower_than_a_bin() {
        let search = LabelSearch { rows: 1000, column_squares: &[100.0; 10], product_noise: 500.0 };
        let labels: Vec<f64> = spread(1000, 0.3011, 0.3031).collect();
        let part = find(search, &labels, [(64, 1.0), (256, 1.0)]);
        assert!(ends(part)[0] <= 0.3011 && ends(part)[1] >= 0.3031 && part.half < 0.002, "{part:?}");
    }

    /// Half of the rows are in a tenth of the bounds, where noise of the first look sees nearly all: in that part the others are all at its end.
    #[test]
    fn a_part_that_cuts_many_rows_off_is_given_up() {
        let search = LabelSearch { rows: 1000, column_squares: &[100.0; 10], product_noise: 500.0 };
        let labels: Vec<f64> = spread(500, -0.4, -0.2).chain(spread(500, -0.2, 0.8)).collect();
        for seen in [1.0, 1.95] {
            let mut parts = Vec::new();
            let Ok(found) = search.find(|look, part| {
                parts.push(part);
                let rows = |label: &f64| look.of([if *label < -0.2 { seen } else { 2.0 - seen }, 1.0]);
                let bins = counted(labels.iter().map(|label| (*label, rows(label))), part, 64);
                Ok::<_, Infallible>(LabelCounts { part, bins, noise: 20.0 })
            });
            assert!(seen < 1.5 || ends(parts[1])[1] < 0.0, "{parts:?}");
            assert!(ends(found.part)[0] <= -0.39 && ends(found.part)[1] >= 0.75, "{seen} {found:?}");
        }
    }
}
