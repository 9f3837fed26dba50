//! Who adds up the rows: a trait, so that memory, a stream or a cluster can answer the same query.

use thiserror::Error;

use crate::adjacency::PrivacyUnit;
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

    /// Adds up one query.
    ///
    /// # Errors
    /// [`EngineError`] when rows cannot be reached; never for what a row holds.
    fn exact_sum(&self, query: &SumQuery) -> Result<PartialSum, EngineError>;

    /// The features of all rows, in the order in which a [`crate::public_matrix::PublicMatrix`] has to have its rows.
    /// [`crate::session::Session`] asks for them only where features are public to the fitter.
    ///
    /// # Errors
    /// [`EngineError`] when rows cannot be reached, or this engine has none to show.
    fn public_features(&self) -> Result<Option<PublicFeatures>, EngineError> {
        Ok(None)
    }
}

/// Rows that could not be reached.
#[derive(Debug, Error)]
#[error("the rows could not be read: {0}; nothing was released, what was charged stays charged")]
pub struct EngineError(#[source] pub Box<dyn std::error::Error + Send + Sync>);
