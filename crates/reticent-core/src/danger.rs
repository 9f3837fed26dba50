//! Exact reveal and seeded noise, for tests only.
//!
//! Compiled with the feature `danger`, which does not compile without debug assertions, so no release build holds it.
//! A repository test lists every file that says `danger`.

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::adjacency::Relation;
use crate::engine::Engine;
use crate::ledger::LedgerStore;
use crate::noise::discrete_laplace::sample_discrete_laplace;
use crate::noise::rounded_gaussian::sample_rounded_gaussian;
use crate::noise::source::NoiseSource;
use crate::session::{Session, SessionError};
use crate::sum::PartialSum;
use crate::units::NoiseScale;

#[cfg(not(debug_assertions))]
compile_error!(
    "the feature `danger` of reticent-core reveals private sums: it does not build without debug assertions"
);

/// The exact, un-noised integers of a sum.
#[must_use]
pub fn reveal(sum: PartialSum) -> Vec<i128> {
    sum.into_totals()
}

/// A session whose noise is determined by a seed: NOT PRIVATE.
///
/// # Errors
/// As [`Session::open`].
pub fn seeded_session<'a>(
    engine: &'a dyn Engine,
    ledger: &'a mut dyn LedgerStore,
    claimed: Relation,
    seed: u64,
) -> Result<Session<'a>, SessionError> {
    Session::open_with(engine, ledger, claimed, NoiseSource::seeded(seed))
}

/// Draws of the rounded Gaussian from a seeded stream.
#[must_use]
pub fn draw_rounded_gaussian(scale: NoiseScale, seed: u64, count: usize) -> Vec<i128> {
    let mut stream = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| infallible(sample_rounded_gaussian(scale, &mut stream))).collect()
}

/// Draws of the discrete Laplace from a seeded stream.
#[must_use]
pub fn draw_discrete_laplace(scale: NoiseScale, seed: u64, count: usize) -> Vec<i128> {
    let mut stream = ChaCha20Rng::seed_from_u64(seed);
    (0..count).map(|_| infallible(sample_discrete_laplace(scale, &mut stream))).collect()
}

fn infallible<T>(result: Result<T, std::convert::Infallible>) -> T {
    match result {
        Ok(value) => value,
        Err(never) => match never {},
    }
}
