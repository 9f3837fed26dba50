//! Weights files: `crates/reticent-hostile/src/weights.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("weights", input));
