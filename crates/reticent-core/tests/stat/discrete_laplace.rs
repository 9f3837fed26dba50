//! The discrete Laplace against `(1 - e^(-1/b))/(1 + e^(-1/b)) e^(-|k|/b)`.

use crate::golden::tables;
use crate::goodness::{CI_COUNT, NIGHTLY_COUNT, assert_fits};
use reticent_core::danger::draw_discrete_laplace;
use reticent_core::units::NoiseScale;

/// Chosen once; every scale adds its place in the list.
const SEED: u64 = 0x0001_A91A;

fn every_scale_fits(seed: u64, count: usize) {
    for (table, seed) in tables("discrete_laplace").iter().zip(seed..) {
        let scale = NoiseScale::new(table.scale).expect("in range");
        assert_fits(table, &draw_discrete_laplace(scale, seed, count));
    }
}

#[test]
fn draws_have_the_exact_distribution() {
    every_scale_fits(SEED, CI_COUNT);
}

#[test]
#[ignore = "takes a minute; run at night"]
fn many_draws_have_the_exact_distribution() {
    every_scale_fits(SEED + 100, NIGHTLY_COUNT);
}
