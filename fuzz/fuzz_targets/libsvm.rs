//! libsvm tables: `crates/reticent-hostile/src/libsvm.rs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| reticent_fuzz::run("libsvm", input));
