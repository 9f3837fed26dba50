//! The rounded Gaussian against `Phi((k+1/2)/S) - Phi((k-1/2)/S)`.

use crate::golden::tables;
use crate::goodness::{CI_COUNT, NIGHTLY_COUNT, assert_fits};
use reticent_core::danger::draw_rounded_gaussian;
use reticent_core::units::NoiseScale;

/// Chosen once; every scale adds its place in the list.
const SEED: u64 = 0x0005_2AA0;

fn every_scale_fits(seed: u64, count: usize) {
    for (table, seed) in tables("rounded_gaussian").iter().zip(seed..) {
        let scale = NoiseScale::new(table.scale).expect("in range");
        assert_fits(table, &draw_rounded_gaussian(scale, seed, count));
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
