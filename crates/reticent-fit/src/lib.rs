//! The public part of Reticent: all that it learns of a private table is a noisy release, beside declared facts.
//!
//! ```text
//!   schema, epsilon, delta ─▶ plan (pure) ─▶ method: asks a Session ─▶ model + certificate ─▶ report, evaluation
//! ```
//! A mistake in this crate costs accuracy, never privacy: it can only ask what the ledger has been charged for.
//!
//! Some modules are handed rows all the same, as plain columns that no release is made of: rows declared public
//! ([`public_fit`], [`labelled_rows`], [`unit_rows`], [`evaluate::public`], [`party::Auxiliary`]), features where labels alone are
//! private ([`method::walr`], [`labels_elsewhere`], [`evaluate::labels`]), rows that a model scores for whoever has them ([`raw_columns`]), and a party's
//! own, of which it makes votes ([`party::local`]): those are private, too, until the combiner has added noise.
#![doc = ""]
#![doc = include_str!("../README.md")]

pub mod audit;
pub mod certificate;
mod checked_minimum;
mod code_counts;
pub mod column_scaling;
pub mod evaluate;
pub mod gram_release;
pub mod labelled_rows;
pub mod labels_elsewhere;
pub mod method;
pub mod model;
mod number_bins;
mod number_marginals;
mod number_reading;
pub mod options;
pub mod party;
pub mod plan;
pub mod prepared_fit;
pub mod public_fit;
mod public_ranges;
pub mod raw_columns;
mod released_marginals;
mod row_number;
mod softmax;
mod target_bins;
mod trust;
pub mod unit_rows;
mod usable_rows;
