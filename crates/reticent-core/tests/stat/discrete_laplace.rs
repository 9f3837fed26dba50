//! The discrete Laplace against `(1 - e^(-1/b))/(1 + e^(-1/b)) e^(-|k|/b)`.

use crate::goodness::{CI_COUNT, NIGHTLY_COUNT, assert_every_scale_fits};
use reticent_core::danger::draw_discrete_laplace;

/// Chosen once; every scale adds its place in the list.
const SEED: u64 = 0x0001_A91A;

#[test]
fn draws_have_the_exact_distribution() {
    assert_every_scale_fits("discrete_laplace", draw_discrete_laplace, SEED, CI_COUNT);
}

#[test]
#[ignore = "takes a minute; run at night"]
fn many_draws_have_the_exact_distribution() {
    assert_every_scale_fits("discrete_laplace", draw_discrete_laplace, SEED + 100, NIGHTLY_COUNT);
}
