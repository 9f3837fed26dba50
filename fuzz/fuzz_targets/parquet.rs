//! Parquet tables: `crates/reticent-hostile/src/parquet.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("parquet", input));
