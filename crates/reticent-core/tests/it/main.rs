//! Integration tests of the privacy boundary.

mod accounting;
mod contribution;
mod declared_sensitivity;
mod encoding;
mod gram_sensitivity;
mod ledger_rules;
mod objective_perturbation;
mod sensitivity;
mod session;
