//! The privacy boundary of Reticent.
//!
//! ```text
//!   schema ─▶ record ─▶ coding ─▶ encoding ─▶ contribution ─▶ sum ───────┐
//!   (public)  (one row: cells, codes, lattice, bounded integers) (exact, opaque)
//!                                                                        ├─▶ session ─▶ Release (public)
//!   query ─▶ sensitivity ─▶ account ─▶ ledger ─▶ grant ──────────────────┤
//!   (data)   (integers)     (prices)   (charged first)                   │
//!   noise: entropy ─▶ rounded Gaussian or discrete Laplace ──────────────┘
//! ```
//!
//! Every touch of private data is an exact sum of bounded integer vectors plus exact integer noise, or, for objective and
//! output perturbation, a minimum with a certificate in integers ([`minimum`]); the rest is public post-processing. This
//! crate does no file access, starts no thread, reads no clock and writes no log.

pub mod schema;
pub mod record;
pub mod coding;
pub mod listed_columns;
pub mod encoding;
pub mod compact_row;

pub mod public_matrix;
mod spectral_bound;
pub mod public_features;
pub mod target_window;
pub mod pass_weights;

pub mod query;
pub mod minimum;
pub mod label_query;

pub mod slope;
pub mod label_use;
pub mod largest_place;
pub mod contribution;
pub mod sum;

pub mod hex;
pub mod units;
mod ceil_sqrt;
pub mod adjacency;
pub mod account;
pub mod ledger;

pub mod noise;

pub mod engine;
pub mod session;

#[cfg(feature = "danger")]
pub mod danger;
