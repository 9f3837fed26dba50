//! Exact noise on the integers: where its random bits come from and how they become a rounded Gaussian or a discrete
//! Laplace.
//!
//! No sampler uses a floating-point number, a table or a cut-off: each draw has exactly the stated distribution, given
//! independent uniform bits. A sampler asks for any cryptographic source and hands the source's failure to its caller;
//! the product's source is [`entropy::OsEntropy`].
//!
//! The number of bits a draw takes, and so its time, depends on the drawn value. Draw all noise of a release before
//! anything is answered; resisting an observer who times single draws is out of scope.

pub mod discrete_laplace;
pub mod entropy;
mod falling_run;
mod lazy_uniform;
pub mod rounded_gaussian;
#[cfg(test)]
mod scripted_source;
pub(crate) mod source;
