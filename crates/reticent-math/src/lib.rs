//! Public numerics: nothing here knows of privacy, and nothing private may be passed in without having been released.

pub mod logistic_newton;
