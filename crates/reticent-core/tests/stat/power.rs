//! The checks can fail: samples made wrong in a known way are refused, each by the check that is there for it.

use crate::golden::{CellTable, table_at, tables};
use crate::goodness::{CI_COUNT, Failed, REJECTION_DISTANCE, assert_refused, failures};
use reticent_core::danger::{draw_discrete_laplace, draw_rounded_gaussian};
use reticent_core::units::NoiseScale;

const SEED: u64 = 0x0009_07E2;

fn scale(scale: u64) -> NoiseScale {
    NoiseScale::new(scale).expect("in range")
}

fn thousand() -> (CellTable, Vec<i128>) {
    (table_at("rounded_gaussian", 1000), draw_rounded_gaussian(scale(1000), SEED, CI_COUNT))
}

#[test]
fn a_wrong_scale_is_refused() {
    assert!((1000.0 * REJECTION_DISTANCE - 20.0).abs() < 1e-9, "1020 and 980 are this far from 1000");
    let gaussian = table_at("rounded_gaussian", 1000);
    let laplace = table_at("discrete_laplace", 1000);
    for wrong in [980, 1020] {
        let sample = draw_rounded_gaussian(scale(wrong), SEED, CI_COUNT);
        for check in [Failed::Cells, Failed::Moments, Failed::Counts] {
            assert_refused(&gaussian, &sample, check);
        }
        let sample = draw_discrete_laplace(scale(wrong), SEED, CI_COUNT);
        for check in [Failed::Cells, Failed::Moments, Failed::Counts] {
            assert_refused(&laplace, &sample, check);
        }
    }
    // At the large scale too, where a cell is made of many lattice points.
    let wrong = scale((1u64 << 40) / 50 * 51);
    assert_refused(
        &table_at("rounded_gaussian", 1 << 40),
        &draw_rounded_gaussian(wrong, SEED, CI_COUNT),
        Failed::Cells,
    );
}

#[test]
fn the_rejection_distance_is_one_that_the_sample_size_allows() {
    for table in tables("rounded_gaussian").iter().chain(&tables("discrete_laplace")) {
        assert!(table.scale_error_met < REJECTION_DISTANCE / 2.0, "scale {}: {}", table.scale, table.scale_error_met);
    }
}

#[test]
fn the_other_distribution_is_refused() {
    for at in [1, 1000] {
        let sample = draw_discrete_laplace(scale(at), SEED, CI_COUNT);
        assert_refused(&table_at("rounded_gaussian", at), &sample, Failed::Cells);
        let sample = draw_rounded_gaussian(scale(at), SEED, CI_COUNT);
        assert_refused(&table_at("discrete_laplace", at), &sample, Failed::Cells);
    }
}

/// `P(K = k) ∝ e^(-k²/(2 S²))` in place of the rounded Gaussian: at scale 1 they differ by a few percent of a cell.
#[test]
fn the_discrete_gaussian_is_refused() {
    let weight = |value: i128| (-0.5 * (value * value) as f64).exp();
    let total: f64 = (-9..=9).map(weight).sum();
    let mut sample: Vec<i128> =
        (-9..=9).flat_map(|value| vec![value; (weight(value) / total * CI_COUNT as f64).round() as usize]).collect();
    sample.resize(CI_COUNT, 0); // the rounding above leaves a few draws too many or too few
    let found = failures(&table_at("rounded_gaussian", 1), &sample[..]);
    assert!(found.iter().any(|(failed, _)| *failed == Failed::Cells), "{found:?}");
}

#[test]
fn wrong_rounding_is_refused() {
    // 7 Z rounded towards zero and downwards, from a draw 2^33 times as fine.
    let fine = draw_rounded_gaussian(scale(7 << 33), SEED, CI_COUNT);
    let table = table_at("rounded_gaussian", 7);
    let towards_zero: Vec<i128> = fine.iter().map(|value| value / (1 << 33)).collect();
    assert_refused(&table, &towards_zero, Failed::Counts);
    assert_refused(&table, &towards_zero, Failed::Cells);
    let downwards: Vec<i128> = fine.iter().map(|value| value >> 33).collect();
    assert_refused(&table, &downwards, Failed::Moments);
    assert_refused(&table, &downwards, Failed::Symmetry);
}

#[test]
fn a_biased_sign_is_refused() {
    let (table, mut sample) = thousand();
    for value in sample.iter_mut().step_by(50) {
        *value = value.abs();
    }
    assert_refused(&table, &sample, Failed::Symmetry);
    assert_refused(&table, &sample, Failed::Moments);
}

#[test]
fn a_short_tail_is_refused() {
    let (table, mut sample) = thousand();
    sample.iter_mut().for_each(|value| *value = (*value).clamp(-4000, 4000));
    assert_refused(&table, &sample, Failed::Counts);
}

#[test]
fn dependent_neighbours_are_refused() {
    // One draw in fifty repeats the one before it; or its magnitude, which the correlation does not see.
    let (table, mut sample) = thousand();
    for pair in sample.chunks_exact_mut(2).step_by(50) {
        pair[1] = pair[0];
    }
    assert_refused(&table, &sample, Failed::Neighbours);
    let (table, mut sample) = thousand();
    for (place, pair) in sample.chunks_exact_mut(2).enumerate().step_by(25) {
        pair[1] = if place % 2 == 0 { pair[0] } else { -pair[0] };
    }
    assert_refused(&table, &sample, Failed::Neighbours);
}

#[test]
fn a_coarse_lattice_is_refused() {
    // As if the last digits had been filled with zeros, which no cell wider than a point shows.
    let mut sample = draw_rounded_gaussian(scale(1 << 40), SEED, CI_COUNT);
    sample.iter_mut().step_by(50).for_each(|value| *value &= !0xff);
    assert_refused(&table_at("rounded_gaussian", 1 << 40), &sample, Failed::LowBits);
}
