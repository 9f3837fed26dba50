//! What all fuzz targets share: a panic that nobody catches ends the process, and is a finding.

use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::sync::{Mutex, Once, PoisonError};

/// Reads and uses `input` as a file of the kind `name`.
///
/// The hook of `libfuzzer-sys` would end the process at every panic. The reader of Parquet catches those of its decoder, and
/// the file is then refused as damaged: so words are kept, and said only when nobody caught the panic.
pub fn run(name: &str, input: &[u8]) {
    static HOOK: Once = Once::new();
    static WORDS: Mutex<String> = Mutex::new(String::new());
    let words = || WORDS.lock().unwrap_or_else(PoisonError::into_inner);
    HOOK.call_once(|| {
        set_hook(Box::new(move |panic| {
            *words() = format!("{panic}\n{}", std::backtrace::Backtrace::force_capture());
        }));
    });
    if catch_unwind(AssertUnwindSafe(|| reticent_hostile::run(name, input))).is_err() {
        eprintln!("{}", words());
        std::process::abort();
    }
}
