//! Public numerics: nothing here knows of privacy, and nothing private may be passed in without having been
//! released, except by `reticent-curator`, which answers for what it makes of the result.
//!
//! ```text
//!   a released Gram matrix        noisy_spectrum ─▶ gram_regression,  quadratic_repair
//!   released counts of a number   range_search,  target_look,  look_checks ─▶ label_search,  flag
//!   released gradients            sequence_filter
//!   a released linear statistic   whitening, public_design ─▶ (asked) ─▶ noise_aware_map, released_gradient
//!   votes on public rows          soft_label_regression
//!   no noise: yardsticks          entry_lists ─▶ feature_table ─▶ least_squares, logistic_newton, softmax_regression
//!   repeated fits, in an audit    discriminant
//!   beneath all of them           lbfgs, fixed_sequence, normal_mean, public_rows ─▶ row_blocks ─▶ product ─▶ vector_registers
//! ```

pub mod noisy_spectrum;
pub mod gram_regression;
pub mod quadratic_repair;

pub mod sequence_filter;

pub mod range_search;
pub mod target_look;
pub mod look_checks;
pub mod label_search;
pub mod flag;

pub mod whitening;
pub mod public_rows;
pub mod public_design;
pub mod noise_aware_map;
pub mod released_gradient;

pub mod soft_label_regression;

pub mod entry_lists;
pub mod feature_table;
pub mod least_squares;
pub mod logistic_newton;
pub mod softmax_regression;

pub mod discriminant;

pub mod lbfgs;
pub mod fixed_sequence;
pub mod normal_mean;
mod row_blocks;
mod product;
mod symmetric_factors;
mod vector_registers;

pub use faer::{Mat, MatRef, Scale};

/// `1/(1 + e^-score)`, the probability that log-odds stand for.
#[must_use]
pub fn sigmoid(score: f64) -> f64 {
    1.0 / (1.0 + (-score).exp())
}
