//! Public numerics: nothing here knows of privacy, and nothing private may be passed in without having been
//! released, except by `reticent-curator`, which answers for what it makes of the result.

pub mod discriminant;
pub mod fixed_sequence;
pub mod gram_regression;
pub mod lbfgs;
pub mod least_squares;
pub mod logistic_newton;
pub mod noise_aware_map;
pub mod noisy_spectrum;
pub mod public_design;
pub mod quadratic_repair;
pub mod released_gradient;
pub mod soft_label_regression;
pub mod softmax_regression;
pub mod whitening;

pub use faer::{Mat, MatRef, Scale};
