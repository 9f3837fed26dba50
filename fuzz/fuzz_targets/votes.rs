//! Votes of a party, and lists of parties: `crates/reticent-hostile/src/votes.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("votes", input));
