//! Releases of labels: `crates/reticent-hostile/src/releases.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("releases", input));
