//! Where in its bounds a numeric target lies, found in released counts: bounds are promises, and may be far wider than the values.

/// Counts are believed when twice their noise is at most this share of all rows.
const LARGEST_DOUBT: f64 = 0.3;
/// How much wider than the run of bins a window is: in any case, and for each share of the rows that may lie outside.
const MARGIN: (f64, f64) = (1.25, 15.0);
/// A window gains nothing unless it is narrower than this share of the bounds.
const WORTH_WHILE: f64 = 2.0 / 3.0;
/// Share of the rows whose target may lie beyond its window: what they add is then lost in the noise of products with the target,
/// which is about this times the columns over `n mu`; and at most 2 %.
const SPARED: (f64, f64) = (0.5, 0.02);

/// Released counts of rows by the bin of their target.
#[derive(Clone, Copy, Debug)]
pub struct TargetCounts<'a> {
    /// Rows in each of some bins of equal width over the bounds, with noise of `noise` each.
    pub bins: &'a [f64],
    /// Noise of a bin.
    pub noise: f64,
    /// All rows with a usable target, with noise of `rows_noise`.
    pub rows: f64,
    /// Noise of their number; 0 where it is public.
    pub rows_noise: f64,
}

/// A part of the bounds, where these are `-1` and `1`. It may pass them at one end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TargetPart {
    /// Its middle.
    pub centre: f64,
    /// Half its width.
    pub half: f64,
}

impl TargetPart {
    /// All of the bounds.
    pub const BOUNDS: Self = Self { centre: 0.0, half: 1.0 };
}

/// The share of the rows that a search may spare, for products of the target with so many columns: `min(2 %, columns / (2 signal))`, where
/// `signal` is the number of rows times `mu`, or over the noise of such a product.
#[must_use]
pub fn spared(columns: usize, signal: f64) -> f64 {
    (SPARED.0 * columns as f64 / signal).min(SPARED.1)
}

/// The narrowest run of bins that holds all rows, as far as can be told, with a margin:
/// ```text
///   run:     sum of its bins >= (1 - spared) rows - 2 e,    e² = length · noise² + rows_noise²,    2 e <= 3/10 rows
///   window:  1.25 + 15 (spared + 2 e / rows) times as wide, around the same middle, moved into the bounds
/// ```
/// `spared` is the share of rows that may be brought to the window's border. All of the bounds where no window is narrower than two
/// thirds of them.
#[must_use]
pub fn find_target(counts: &TargetCounts<'_>, spared: f64) -> TargetPart {
    let bins = counts.bins.len() as f64;
    let mut up_to = vec![0.0];
    for count in counts.bins {
        up_to.push(up_to[up_to.len() - 1] + count);
    }
    for length in 1..counts.bins.len() {
        let noise = (length as f64 * counts.noise.powi(2) + counts.rows_noise.powi(2)).sqrt();
        let doubt = 2.0 * noise / counts.rows;
        if doubt > LARGEST_DOUBT {
            break;
        }
        let runs = up_to.windows(length + 1).map(|run| run[length] - run[0]);
        let (first, held) = runs.enumerate().max_by(|(_, one), (_, other)| one.total_cmp(other)).expect("a run");
        if held >= (1.0 - spared - doubt) * counts.rows {
            let half = (MARGIN.0 + MARGIN.1 * (spared + doubt)) * length as f64 / bins;
            let centre = (2.0 * first as f64 + length as f64) / bins - 1.0;
            return if half < WORTH_WHILE { TargetPart { centre, half } } else { TargetPart::BOUNDS };
        }
    }
    TargetPart::BOUNDS
}

/// The part of their bounds in which the labels of so many public rows lie, found in noisy counts of them, for a product with a matrix of
/// so many columns. `product_noise`: that of a coordinate, where labels are at most 1 and rows of the matrix have norm 1.
#[must_use]
pub fn find_labels(bins: &[f64], bin_noise: f64, rows: usize, columns: usize, product_noise: f64) -> TargetPart {
    let rows = rows as f64;
    let counts = TargetCounts { bins, noise: bin_noise, rows, rows_noise: 0.0 };
    find_target(&counts, spared(columns, rows / product_noise))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1,000 rows with `shares` of all in the bins from `first`.
    fn bins(first: usize, shares: &[f64]) -> Vec<f64> {
        let mut bins = vec![0.0; 256];
        for (bin, share) in bins[first..].iter_mut().zip(shares) {
            *bin = share * 1000.0;
        }
        bins
    }

    fn found(bins: &[f64], noise: f64, spared: f64) -> TargetPart {
        find_target(&TargetCounts { bins, noise, rows: 1000.0, rows_noise: 0.0 }, spared)
    }

    fn half(bins: &[f64], noise: f64, spared: f64) -> f64 {
        found(bins, noise, spared).half
    }

    #[test]
    fn without_noise_it_is_the_run_of_all_rows_and_a_quarter() {
        let window = found(&bins(64, &[0.5, 0.0, 0.3, 0.2]), 0.0, 0.0);
        assert_eq!(window, TargetPart { centre: 132.0 / 256.0 - 1.0, half: 1.25 * 4.0 / 256.0 });
    }

    #[test]
    fn what_may_be_spared_narrows_and_the_margin_covers_it() {
        let far = [&[0.6, 0.39][..], &[0.0; 40], &[0.01]].concat();
        assert!(half(&bins(10, &far), 0.0, 0.005) > 40.0 / 256.0);
        let window = found(&bins(10, &far), 0.0, 0.02);
        assert!(
            (window.centre - (22.0 / 256.0 - 1.0)).abs() < 1e-12 && (window.half - 1.55 * 2.0 / 256.0).abs() < 1e-12
        );
    }

    #[test]
    fn more_rows_may_be_spared_the_more_noise_there_is() {
        for (columns, signal, expected) in [(10, 1e4, 5e-4), (20, 1e4, 1e-3), (10, 250.0, 0.02), (10, 1.0, 0.02)] {
            assert!((spared(columns, signal) - expected).abs() < 1e-12, "{columns} {signal}");
        }
    }

    #[test]
    fn doubt_widens_and_then_forbids() {
        let clear = bins(100, &[1.0]);
        let widened = half(&clear, 50.0, 0.0);
        assert!((widened - 2.75 / 256.0).abs() < 1e-9, "{widened}");
        assert_eq!(found(&clear, 251.0, 0.0), TargetPart::BOUNDS);
        assert_eq!(
            find_target(&TargetCounts { bins: &clear, noise: 0.0, rows: 1000.0, rows_noise: 251.0 }, 0.0),
            TargetPart::BOUNDS
        );
    }

    #[test]
    fn tight_bounds_and_bounds_of_noise_stay() {
        assert_eq!(found(&bins(0, &[1.0 / 256.0; 256]), 1.0, 0.02), TargetPart::BOUNDS);
        assert_eq!(found(&bins(0, &[-1.0; 256]), 300.0, 0.02), TargetPart::BOUNDS);
        let empty = TargetCounts { bins: &[0.0; 256], noise: 1.0, rows: 1.0, rows_noise: 1.0 };
        assert_eq!(find_target(&empty, 0.0), TargetPart::BOUNDS);
    }
}
