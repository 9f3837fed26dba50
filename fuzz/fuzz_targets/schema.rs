//! Schemas: `crates/reticent-hostile/src/schema.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("schema", input));
