//! Model files: `crates/reticent-hostile/src/model.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("model", input));
