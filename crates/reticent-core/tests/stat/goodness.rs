//! The checks: each compares a sample with a table of exact probabilities and names what it found wrong.

use crate::golden::{CellTable, Cells, low_bits_limit, tables};
use reticent_core::units::NoiseScale;

/// Draws of a sample in CI.
pub(crate) const CI_COUNT: usize = 2_000_000;
/// Draws of a sample at night.
pub(crate) const NIGHTLY_COUNT: usize = 20_000_000;
/// Largest normal score of a mean: exceeded either way with probability 9.6e-7.
pub(crate) const SCORE_LIMIT: f64 = 4.9;
/// Relative error of the scale that every sample of `CI_COUNT` draws must be refused for.
pub(crate) const REJECTION_DISTANCE: f64 = 0.02;

/// A check that a sample did not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failed {
    /// Chi-square of the cells.
    Cells,
    /// Count of zeros or of tail draws.
    Counts,
    /// Chi-square of cells against their mirror images.
    Symmetry,
    /// Mean, second moment.
    Moments,
    /// Chi-square or correlation of neighbouring draws.
    Neighbours,
    /// Chi-square of the lowest byte.
    LowBits,
}

/// Every check that the sample fails, with its numbers.
pub(crate) fn failures(table: &CellTable, sample: &[i128]) -> Vec<(Failed, String)> {
    let mut failures = Vec::new();
    let mut require = |holds: bool, check: Failed, found: String| {
        if !holds {
            failures.push((check, found));
        }
    };

    let counts = counts(&table.cells, sample);
    let chi_square = chi_square(&counts, &table.cells.probabilities, sample.len());
    require(chi_square <= table.chi_square_limit, Failed::Cells, format!("{chi_square} > {}", table.chi_square_limit));

    for event in &table.counted {
        let found =
            sample.iter().filter(|&&value| event.beyond.map_or(value == 0, |beyond| value.abs() > beyond)).count();
        let (fewest, most) = event.limits(sample.len());
        let holds = (fewest..=most).contains(&(found as u64));
        require(holds, Failed::Counts, format!("{found} draws beyond {:?}, not {fewest}..={most}", event.beyond));
    }

    let mirror = mirror_chi_square(&counts);
    require(mirror <= table.mirror_limit, Failed::Symmetry, format!("{mirror} > {}", table.mirror_limit));

    for (moment, score) in [("mean", mean_score(table, sample)), ("second moment", second_moment_score(table, sample))]
    {
        require(score.abs() <= SCORE_LIMIT, Failed::Moments, format!("{moment} is {score} deviations off"));
    }

    let pairs = pair_chi_square(&table.pair_cells, sample);
    require(pairs <= table.pair_limit, Failed::Neighbours, format!("{pairs} > {}", table.pair_limit));
    let correlation = correlation_score(table, sample);
    require(correlation.abs() <= SCORE_LIMIT, Failed::Neighbours, format!("correlation {correlation} deviations off"));

    // Wide enough that 256 classes are equally likely to within what any sample could show.
    if table.scale >= 1 << 40 {
        let found = low_bits_chi_square(sample);
        require(found <= low_bits_limit(), Failed::LowBits, format!("{found} > {}", low_bits_limit()));
    }
    failures
}

/// Panics unless a sampler's draws pass every check at each scale that there is a table for. Every scale adds its place in the list
/// to the seed.
pub(crate) fn assert_every_scale_fits(
    sampler: &str,
    draw: impl Fn(NoiseScale, u64, usize) -> Vec<i128>,
    seed: u64,
    count: usize,
) {
    for (table, seed) in tables(sampler).iter().zip(seed..) {
        let scale = NoiseScale::new(table.scale).expect("in range");
        assert_fits(table, &draw(scale, seed, count));
    }
}

/// Panics unless the sample passes every check.
fn assert_fits(table: &CellTable, sample: &[i128]) {
    let failures = failures(table, sample);
    assert!(failures.is_empty(), "scale {}, {} draws: {failures:?}", table.scale, sample.len());
}

/// Panics unless the sample fails the check.
pub(crate) fn assert_refused(table: &CellTable, sample: &[i128], check: Failed) {
    let failures = failures(table, sample);
    assert!(
        failures.iter().any(|(failed, _)| *failed == check),
        "scale {}: {check:?} passed: {failures:?}",
        table.scale
    );
}

fn counts(cells: &Cells, sample: &[i128]) -> Vec<u64> {
    let mut counts = vec![0; cells.probabilities.len()];
    for &value in sample {
        counts[cells.cell_of(value)] += 1;
    }
    counts
}

fn chi_square(counts: &[u64], probabilities: &[f64], draws: usize) -> f64 {
    let term = |(&count, &probability): (&u64, &f64)| {
        let expected = probability * draws as f64;
        (count as f64 - expected).powi(2) / expected
    };
    counts.iter().zip(probabilities).map(term).sum()
}

/// Chi-square, with one degree of freedom for each pair, of the cells left of zero against those right of it.
fn mirror_chi_square(counts: &[u64]) -> f64 {
    let term = |(&left, &right): (&u64, &u64)| (left as f64 - right as f64).powi(2) / (left + right) as f64;
    counts.iter().zip(counts.iter().rev()).take(counts.len() / 2).map(term).sum()
}

fn mean_score(table: &CellTable, sample: &[i128]) -> f64 {
    let sum: i128 = sample.iter().sum();
    sum as f64 / (sample.len() as f64 * table.second_moment).sqrt()
}

fn second_moment_score(table: &CellTable, sample: &[i128]) -> f64 {
    let sum: i128 = sample.iter().map(|value| value * value).sum();
    let draws = sample.len() as f64;
    let variance = table.fourth_moment - table.second_moment.powi(2);
    (sum as f64 - draws * table.second_moment) / (draws * variance).sqrt()
}

/// Chi-square of the pairs (first, second), (third, fourth), ... against the product of their probabilities.
fn pair_chi_square(cells: &Cells, sample: &[i128]) -> f64 {
    let width = cells.probabilities.len();
    let mut counts = vec![0; width * width];
    for pair in sample.chunks_exact(2) {
        counts[cells.cell_of(pair[0]) * width + cells.cell_of(pair[1])] += 1;
    }
    let product = |first: &f64| cells.probabilities.iter().map(|second| first * second).collect::<Vec<_>>();
    let probabilities: Vec<f64> = cells.probabilities.iter().flat_map(product).collect();
    chi_square(&counts, &probabilities, sample.len() / 2)
}

/// Correlation of every draw with the next, in standard deviations.
fn correlation_score(table: &CellTable, sample: &[i128]) -> f64 {
    let sum: i128 = sample.windows(2).map(|pair| pair[0] * pair[1]).sum();
    sum as f64 / (table.second_moment * ((sample.len() - 1) as f64).sqrt())
}

fn low_bits_chi_square(sample: &[i128]) -> f64 {
    let mut counts = vec![0; 256];
    for &value in sample {
        counts[value.rem_euclid(256) as usize] += 1;
    }
    chi_square(&counts, &[1.0 / 256.0; 256], sample.len())
}
