//! Exact reveal, seeded noise and a tape of what a session did, for tests only.
//!
//! Compiled with the feature `danger`, which does not compile without debug assertions, so no release build holds it.
//! A repository test lists every file that says `danger`.

use std::sync::{Arc, Mutex, PoisonError};

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;

use crate::adjacency::Relation;
use crate::engine::{Disclosure, Engine};
use crate::ledger::{LedgerStore, Request};
use crate::minimum::MinimumQuery;
use crate::noise::discrete_laplace::sample_discrete_laplace;
use crate::noise::rounded_gaussian::sample_rounded_gaussian;
use crate::noise::source::NoiseSource;
use crate::query::SumQuery;
use crate::session::{Session, SessionError};
use crate::sum::{PartialSum, Release};
use crate::units::{NoiseDistribution, NoiseScale};

#[cfg(not(debug_assertions))]
compile_error!(
    "the feature `danger` of reticent-core reveals private sums: it does not build without debug assertions"
);

/// The exact, un-noised integers of a sum.
#[must_use]
pub fn reveal(sum: PartialSum) -> Vec<i128> {
    sum.into_totals()
}

/// Leave to ask an engine for what nobody has found to be public.
#[must_use]
pub fn disclosure() -> Disclosure {
    Disclosure::of_what_is_public()
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
    Session::open_with(engine, ledger, claimed, seeded(seed, None))
}

/// A [`seeded_session`] that writes every step to a tape: NOT PRIVATE.
///
/// # Errors
/// As [`Session::open`].
pub fn taped_session<'a>(
    engine: &'a dyn Engine,
    ledger: &'a mut dyn LedgerStore,
    claimed: Relation,
    seed: u64,
    tape: &SharedTape,
) -> Result<Session<'a>, SessionError> {
    Session::open_with(engine, ledger, claimed, seeded(seed, Some(tape.clone())))
}

/// One thing that a session did.
#[derive(Clone, Debug)]
pub enum Step {
    /// The ledger was charged. Written by the ledger, not by the session.
    Charged(Request),
    /// Noise was drawn.
    Drawn {
        /// Its distribution.
        noise: NoiseDistribution,
        /// Its scale.
        scale: NoiseScale,
        /// The draws.
        values: Vec<i128>,
    },
    /// An engine added up its rows.
    Summed {
        /// The question.
        query: SumQuery,
        /// Its own exact answer, whatever was put in its place.
        totals: Vec<i128>,
    },
    /// An engine found a minimum.
    Minimised {
        /// The question.
        query: MinimumQuery,
        /// The linear term that the engine was given.
        linear_term: Vec<i128>,
        /// Its own answer, whatever was put in its place.
        totals: Vec<i128>,
    },
    /// An answer left the session.
    Released(Release),
}

/// What a session did, in order, and what is to be put in place of its exact answers.
///
/// A replay on a neighbouring table puts the exact answers of the first table in place of its own. With the same draws the
/// released integers are then the same: as if the draw had been `noise + f(D) - f(D')`.
#[derive(Default)]
pub struct Tape {
    /// What was done.
    pub steps: Vec<Step>,
    /// Exact answers that take the place of the session's own, in order; none once they are used up.
    pub answers: std::collections::VecDeque<Vec<i128>>,
    /// Linear terms that take the place of those drawn, in order; none once they are used up.
    pub linear_terms: std::collections::VecDeque<Vec<i128>>,
}

/// A tape that both a session and its test hold.
pub type SharedTape = Arc<Mutex<Tape>>;

/// A tape to read or write. A test that failed while it held the tape has nothing to lose.
pub fn hold(tape: &SharedTape) -> std::sync::MutexGuard<'_, Tape> {
    tape.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A stream of noise that depends on a seed alone.
pub(crate) struct SeededNoise {
    stream: ChaCha20Rng,
    tape: Option<SharedTape>,
}

fn seeded(seed: u64, tape: Option<SharedTape>) -> NoiseSource {
    NoiseSource::Seeded(Box::new(SeededNoise { stream: ChaCha20Rng::seed_from_u64(seed), tape }))
}

impl SeededNoise {
    pub(crate) fn stream(&mut self) -> &mut ChaCha20Rng {
        &mut self.stream
    }

    pub(crate) fn witness_draw(&self, noise: NoiseDistribution, scale: NoiseScale, values: &[i128]) {
        if let Some(tape) = &self.tape {
            hold(tape).steps.push(Step::Drawn { noise, scale, values: values.to_vec() });
        }
    }
}

impl NoiseSource {
    fn tape(&self) -> Option<std::sync::MutexGuard<'_, Tape>> {
        match self {
            Self::OperatingSystem(_) => None,
            Self::Seeded(seeded) => seeded.tape.as_ref().map(hold),
        }
    }

    /// Writes an exact sum down and hands on what stands in its place.
    pub(crate) fn witness_sum(&self, query: &SumQuery, exact: PartialSum) -> PartialSum {
        let Some(mut tape) = self.tape() else { return exact };
        let totals = exact.into_totals();
        tape.steps.push(Step::Summed { query: query.clone(), totals: totals.clone() });
        PartialSum::of_totals(tape.answers.pop_front().unwrap_or(totals))
    }

    /// Hands on what stands in the place of a linear term.
    pub(crate) fn witness_linear_term(&self, drawn: Vec<i128>) -> Vec<i128> {
        let Some(mut tape) = self.tape() else { return drawn };
        tape.linear_terms.pop_front().unwrap_or(drawn)
    }

    /// Writes a minimum down and hands on what stands in its place.
    pub(crate) fn witness_minimum(
        &self,
        query: &MinimumQuery,
        linear_term: Vec<i128>,
        minimum: PartialSum,
    ) -> PartialSum {
        let Some(mut tape) = self.tape() else { return minimum };
        let totals = minimum.into_totals();
        tape.steps.push(Step::Minimised { query: query.clone(), linear_term, totals: totals.clone() });
        PartialSum::of_totals(tape.answers.pop_front().unwrap_or(totals))
    }

    pub(crate) fn witness_release(&self, release: &Release) {
        if let Some(mut tape) = self.tape() {
            tape.steps.push(Step::Released(release.clone()));
        }
    }
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
