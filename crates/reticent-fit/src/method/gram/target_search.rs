//! Where in its bounds a numeric target lies, found in released counts: bounds are promises, and may be far wider than the values.

use reticent_core::query::TARGET_BINS;
use reticent_core::target_window::TargetWindow;

/// Counts are believed when twice their noise is at most this share of all rows.
const LARGEST_DOUBT: f64 = 0.3;
/// How much wider than the run of bins a window is: in any case, and for each share of the rows that may lie outside.
const MARGIN: (f64, f64) = (1.25, 15.0);
/// A window gains nothing unless it is narrower than this share of the bounds.
const WORTH_WHILE: f64 = 2.0 / 3.0;

/// Released counts of rows by the bin of their target.
pub(super) struct TargetCounts<'a> {
    /// Rows in each bin of the bounds, with noise of `noise` each.
    pub(super) bins: &'a [f64],
    /// Noise of a bin.
    pub(super) noise: f64,
    /// All rows with a usable target, with noise of `rows_noise`.
    pub(super) rows: f64,
    /// Noise of their number.
    pub(super) rows_noise: f64,
}

/// The narrowest run of bins that holds all rows, as far as can be told, with a margin:
/// ```text
///   run:     sum of its bins >= (1 - spared) rows - 2 e,    e² = length · noise² + rows_noise²,    2 e <= 3/10 rows
///   window:  1.25 + 15 (spared + 2 e / rows) times as wide, around the same middle, moved into the bounds
/// ```
/// `spared` is the share of rows that may be brought to the window's border. All of the bounds where no window is narrower than two
/// thirds of them.
pub(super) fn find_target(counts: &TargetCounts<'_>, spared: f64) -> TargetWindow {
    let bins = f64::from(TARGET_BINS);
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
            let middle = (2.0 * first as f64 + length as f64) / bins - 1.0;
            return if half < WORTH_WHILE { TargetWindow::new(middle, half) } else { TargetWindow::BOUNDS };
        }
    }
    TargetWindow::BOUNDS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with `share` of all in each bin from `first`.
    fn bins(first: usize, shares: &[f64]) -> Vec<f64> {
        let mut bins = vec![0.0; TARGET_BINS as usize];
        for (bin, share) in bins[first..].iter_mut().zip(shares) {
            *bin = share * 1000.0;
        }
        bins
    }

    fn found(bins: &[f64], noise: f64, spared: f64) -> TargetWindow {
        find_target(&TargetCounts { bins, noise, rows: 1000.0, rows_noise: 0.0 }, spared)
    }

    #[test]
    fn without_noise_it_is_the_run_of_all_rows_and_a_quarter() {
        let window = found(&bins(64, &[0.5, 0.0, 0.3, 0.2]), 0.0, 0.0);
        assert_eq!(window, TargetWindow::new(132.0 / 256.0 - 1.0, 1.25 * 4.0 / 256.0));
        // At the border of the bounds it is moved inward.
        let window = found(&bins(0, &[1.0]), 0.0, 0.0);
        assert!((window.centre() + 1.0 - window.half()).abs() < 1e-9);
    }

    #[test]
    fn what_may_be_spared_narrows_and_the_margin_covers_it() {
        let far = [&[0.6, 0.39][..], &[0.0; 40], &[0.01]].concat();
        assert!(found(&bins(10, &far), 0.0, 0.005).half() > 40.0 / 256.0);
        assert_eq!(found(&bins(10, &far), 0.0, 0.02), TargetWindow::new(22.0 / 256.0 - 1.0, 1.55 * 2.0 / 256.0));
    }

    #[test]
    fn doubt_widens_and_then_forbids() {
        let clear = bins(100, &[1.0]);
        let half = |noise| found(&clear, noise, 0.0).half();
        assert!((half(50.0) - 2.75 / 256.0).abs() < 1e-4, "{}", half(50.0));
        assert_eq!(found(&clear, 251.0, 0.0), TargetWindow::BOUNDS);
        assert_eq!(
            find_target(&TargetCounts { bins: &clear, noise: 0.0, rows: 1000.0, rows_noise: 251.0 }, 0.0),
            TargetWindow::BOUNDS
        );
    }

    #[test]
    fn tight_bounds_and_bounds_of_noise_stay() {
        assert_eq!(found(&bins(0, &[1.0 / 256.0; 256]), 1.0, 0.02), TargetWindow::BOUNDS);
        assert_eq!(found(&bins(0, &[-1.0; 256]), 300.0, 0.02), TargetWindow::BOUNDS);
        assert_eq!(
            find_target(&TargetCounts { bins: &[0.0; 256], noise: 1.0, rows: 1.0, rows_noise: 1.0 }, 0.0),
            TargetWindow::BOUNDS
        );
    }
}
