//! Kept inputs of the fuzzer, and the seeds that it started from.

mod kept;
mod seeds;
