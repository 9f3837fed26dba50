//! Ledger files: `crates/reticent-hostile/src/ledger.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("ledger", input));
