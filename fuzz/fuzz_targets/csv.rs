//! Text tables: `crates/reticent-hostile/src/csv.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("csv", input));
