//! Statistical tests of the exact samplers against exact probabilities; seeds are fixed, so a result never changes by
//! chance.
//!
//! Every check comes with a test that it can fail: samples made wrong in a known way must be refused.

mod discrete_laplace;
mod golden;
mod goodness;
mod power;
mod rounded_gaussian;
