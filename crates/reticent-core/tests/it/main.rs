//! Integration tests of the privacy boundary.

mod accounting;
mod encoding;
mod ledger_rules;
mod objective_perturbation;
mod sensitivity;
mod session;
