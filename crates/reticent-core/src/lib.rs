//! The privacy boundary of Reticent.
//!
//! ```text
//!   schema ─▶ record ─▶ encoding ─▶ contribution ─▶ sum ──────┐
//!   (public)  (one row: cells, codes, lattice, bounded integers) (exact, opaque)
//!                                                              ├─▶ session ─▶ Release (public)
//!   query ─▶ sensitivity ─▶ account ─▶ ledger ─▶ grant ────────┤
//!   (data)   (integers)     (prices)   (charged first)         │
//!   noise: entropy ─▶ rounded Gaussian or discrete Laplace ────┘
//! ```
//!
//! Every touch of private data is an exact sum of bounded integer vectors plus exact integer noise, or, for objective and
//! output perturbation, a minimum with a certificate in integers ([`minimum`]); the rest is public post-processing. This
//! crate does no file access, starts no thread, reads no clock and writes no log.

mod ceil_sqrt;
pub mod units;

pub mod adjacency;
pub mod schema;

pub mod coding;
pub mod compact_row;
pub mod contribution;
pub mod encoding;
pub mod label_query;
pub mod largest_place;
pub mod listed_columns;
pub mod minimum;
pub mod pass_weights;
pub mod public_features;
pub mod public_matrix;
pub mod query;
pub mod record;
pub mod slope;
mod spectral_bound;
pub mod sum;

pub mod noise;

pub mod account;
pub mod ledger;

pub mod engine;
pub mod session;

#[cfg(feature = "danger")]
pub mod danger;
