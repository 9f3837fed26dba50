//! The methods, one file each, with the same four items in the same order: `Params` → `Checked`, a pure `plan`, `fit`, tests.

pub mod noisy_gd;

use std::sync::Arc;

use reticent_core::encoding::Encoding;

/// What a method hands back: weights of the encoded columns, and the encoding that they belong to.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    /// Public map from rows to columns.
    pub encoding: Arc<Encoding>,
    /// One weight a column, the intercept first.
    pub weights: Vec<f64>,
}
