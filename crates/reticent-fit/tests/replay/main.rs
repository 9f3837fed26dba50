//! Record and replay on neighbours: every method, every way to ask and every engine, handed to one harness.
//!
//! `RETICENT_REPLAY_CASES` sets the number of pairs for each combination of method, target, unit and adjacency; the default
//! is what continuous integration can wait for.

mod elsewhere;
mod evaluation;
mod methods;
mod parties;
mod support;
