//! Who adds up the rows: a trait, so that memory, a stream or a cluster can answer the same query.

use thiserror::Error;

use crate::adjacency::PrivacyUnit;
use crate::minimum::MinimumQuery;
use crate::public_features::PublicFeatures;
use crate::query::SumQuery;
use crate::sum::PartialSum;

/// Holds private rows and answers with exact, opaque sums.
///
/// Contract: the answer is the sum over all rows (at most the unit's cap for each unit) of what
/// [`crate::contribution::add_contribution`] adds, for any order of the rows, number of threads and block size.
pub trait Engine {
    /// The unit that the rows were capped for when they were read.
    fn unit(&self) -> &PrivacyUnit;

    /// Fingerprint of the schema by which the rows were read ([`crate::schema::Schema::fingerprint`]): what a class, a category or a bound of
    /// another one means is not what it means here.
    fn schema(&self) -> &str;

    /// Adds up one query.
    ///
    /// # Errors
    /// [`EngineError`] when rows cannot be reached; never for what a row holds.
    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError>;

    /// Finds a minimum, on the lattice of answers.
    ///
    /// Contract: `trunc(2^36 omega)` for an `omega` at which the integer gradient of the perturbed objective, over all rows
    /// (at most the unit's cap for each unit), has a norm of at most [`crate::minimum::Minimum::tolerance`]. It always gets
    /// there, and neither the way nor its length is told to anybody. `perturbation` has one integer a coordinate in units of
    /// `2^-40`.
    ///
    /// # Errors
    /// [`EngineError`] when rows cannot be reached or this engine only adds up; never for what a row holds.
    fn exact_minimum(&self, query: &MinimumQuery, perturbation: &[i128]) -> Result<PartialSum, EngineError> {
        let _ = (query, perturbation);
        Err(EngineError(Box::new(NoMinima)))
    }

    /// Runs tasks that touch no rows and do not depend on each other, each once, in any order and on any threads: core starts no thread of
    /// its own. One after the other, unless an engine has threads.
    fn run_tasks(&self, tasks: Vec<Task<'_>>) {
        tasks.into_iter().for_each(|task| task());
    }

    /// The number of rows; `None` of an engine that does not tell.
    fn row_number(&self, disclosure: &Disclosure) -> Option<u64> {
        let _ = disclosure;
        None
    }

    /// The features of all rows, in the order in which a [`crate::public_matrix::PublicMatrix`] has to have its rows.
    ///
    /// # Errors
    /// [`EngineError`] when rows cannot be reached, or this engine has none to show.
    fn public_features(&self, disclosure: &Disclosure) -> Result<Option<PublicFeatures>, EngineError> {
        let _ = disclosure;
        Ok(None)
    }
}

/// That what an engine is asked to tell without noise is public under every promise of the ledger. Only [`crate::session::Session`], which
/// knows the promises, can say so: who merely holds an engine gets neither its number of rows nor its features.
///
/// ```compile_fail
/// let forged = reticent_core::engine::Disclosure(());
/// ```
pub struct Disclosure(());

impl Disclosure {
    pub(crate) fn of_what_is_public() -> Self {
        Self(())
    }
}

/// Work for [`Engine::run_tasks`].
pub type Task<'a> = Box<dyn FnOnce() + Send + 'a>;

/// An engine that only adds up.
#[derive(Debug, Error)]
#[error("these rows can only be added up, not searched for a minimum; choose a method that asks for sums")]
pub struct NoMinima;

/// Rows that could not be reached.
#[derive(Debug, Error)]
#[error("the rows could not be read: {0}; nothing was released, what was charged stays charged")]
pub struct EngineError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
