//! The rounded Gaussian against `Phi((k+1/2)/S) - Phi((k-1/2)/S)`.

use crate::goodness::{CI_COUNT, NIGHTLY_COUNT, assert_every_scale_fits};
use reticent_core::danger::draw_rounded_gaussian;

/// Chosen once; every scale adds its place in the list.
const SEED: u64 = 0x0005_2AA0;

#[test]
fn draws_have_the_exact_distribution() {
    assert_every_scale_fits("rounded_gaussian", draw_rounded_gaussian, SEED, CI_COUNT);
}

#[test]
#[ignore = "takes a minute; run at night"]
fn many_draws_have_the_exact_distribution() {
    assert_every_scale_fits("rounded_gaussian", draw_rounded_gaussian, SEED + 100, NIGHTLY_COUNT);
}
